"""Successor tables: failure and repair transitions, and the partition transitions they cause.

Both are evaluated once for each case and held as arrays, so that many states are explored at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import COPY, DECISION, WELL, BrokerEvent
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_CLOSED
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.lumping import broker_state_count
from advisor.reliability.statespace.state_index import Numbering, Pairs, place_values

_CAUSES, _LEADER_CHANGE = int(Effect.CAUSES), int(Effect.LEADER_CHANGE)
_LOSS, _TAIL = int(Effect.LOSS), int(Effect.TAIL)
_FAILOVER, _HANDOVER = int(Effect.FAILOVER), int(Effect.HANDOVER)

# The partition event for each broker event, by the value of `BrokerEvent`.
PARTITION_EVENT = tuple(
    {
        BrokerEvent.CRASH: red.CRASH,
        BrokerEvent.ISOLATE: red.ISOLATE,
        BrokerEvent.STOP: red.STOP,
        BrokerEvent.POWER: red.POWER,
        BrokerEvent.DESTROY: red.DESTROY,
        BrokerEvent.LAG: red.LAG,
        BrokerEvent.BACK: red.BACK,
        BrokerEvent.REPLACED: red.REPLACED,
        BrokerEvent.CAUGHT_UP: red.CAUGHT_UP,
        BrokerEvent.LIMP: red.LIMP,
        BrokerEvent.RECOVERED: red.RECOVERED,
        BrokerEvent.QUORUM_LOST: red.QUORUM_LOST,
        BrokerEvent.QUORUM_STOPPED: red.QUORUM_STOPPED,
        BrokerEvent.QUORUM_BACK: red.QUORUM_BACK,
    }[event]
    for event in BrokerEvent
)

# The partition's next state, the effects, and the number of the gap map.
_Way = tuple[int, int, int]


class _Rows(NamedTuple):
    """Columns of `FaultTransitions`; ``after`` slot by slot."""

    rate: list[int]
    events: list[int]
    after: list[int]


def partition_events(events: fault_processes.Events) -> fault_processes.Events:
    """The events of brokers as events of a partition."""
    return tuple([(PARTITION_EVENT[event], slots) for event, slots in events])


class EventSequences:
    """Numbered sequences of events, one for each kind of transition."""

    def __init__(self) -> None:
        self.listed: list[fault_processes.Events] = []
        self._numbers: dict[fault_processes.Events, int] = {}

    def number(self, events: fault_processes.Events) -> int:
        """The number of a sequence; events without slots are omitted."""
        index = self._numbers.get(events)
        if index is None:
            acting = tuple((event, slots) for event, slots in events if slots)
            index = self._numbers.setdefault(acting, len(self.listed))
            if index == len(self.listed):
                self.listed.append(acting)
            self._numbers[events] = index
        return index


class FaultTransitions:
    """Failures and repairs of the brokers, one row each; those of a broker state follow each other.

    own, racks (broker_states, slots): condition and rack of each slot's broker.
    waits (broker_states, outages): how many slots are in each outage.
    rate, events, after (rows,): number of the rate's name, of the events, and the brokers'
        conditions afterwards.
    outages (rows,): number of the outages afterwards, whichever brokers have them.
    """

    def __init__(self, environment: fault_processes.FaultEnvironment) -> None:
        replicas = len(environment.slot_racks)
        self.rate_names: list[str] = []
        self.event_sequences = EventSequences()
        self.numbers = Numbering(broker_state_count(environment))
        self._environment = environment
        self._outages = Numbering()
        self._places = place_values(environment.table.conditions, replicas)
        self._names: dict[str, int] = {}
        self._noticed: dict[fault_processes.Events, int] = {}
        self._of_brokers: dict[fault_processes.Own, _Rows] = {}
        self.own = self.racks = self.after = np.zeros((0, replicas), dtype=np.int64)
        self.waits = np.zeros((0, environment.table.conditions), dtype=np.int64)
        self.first = self.count = self.rate = self.events = np.zeros(0, dtype=np.int64)
        self.outages = self.first

    def outages_of(self, own: IntArray) -> IntArray:
        """Number of the outages that brokers have, whichever have them, shape (asked,)."""
        return self._outages.of(np.sort(own, axis=1) @ self._places)[0]

    def rate_number(self, name: str) -> int:
        """The number of a rate's name."""
        number = self._names.get(name)
        if number is None:
            number = self._names[name] = len(self.rate_names)
            self.rate_names.append(name)
        return number

    def add(self, own: IntArray, racks: IntArray) -> None:
        """Add broker states that are new."""
        self.own, self.racks = np.concatenate([self.own, own]), np.concatenate([self.racks, racks])
        conditions = range(self._environment.table.conditions)
        waits = np.stack([(own == condition).sum(axis=1) for condition in conditions], axis=1)
        waits[:, WELL] = 0
        self.waits = np.concatenate([self.waits, waits])
        unknown = np.full(len(own), -1)
        self.first = np.concatenate([self.first, unknown])
        self.count = np.concatenate([self.count, unknown])

    def ask(self, broker_states: IntArray) -> None:
        """Evaluate the rows of these broker conditions."""
        asked = np.unique(broker_states[self.count[broker_states] < 0])
        rows = _Rows([], [], [])
        ends = [0]
        for own, racks in zip(self.own[asked].tolist(), self.racks[asked].tolist(), strict=True):
            stands = fault_processes.BrokerStates(tuple(own), tuple(racks))
            of_racks = self._rows(fault_processes.of_racks(stands, self._environment))
            for column, anywhere, here in zip(
                rows, self._wherever(stands.own), of_racks, strict=True
            ):
                column += anywhere + here
            ends.append(len(rows.rate))
        self.first[asked], self.count[asked] = np.add(ends[:-1], len(self.rate)), np.diff(ends)
        if rows.rate:
            self.rate = np.concatenate([self.rate, rows.rate])
            self.events = np.concatenate([self.events, rows.events])
            after = np.array(rows.after).reshape(len(rows.rate), -1)
            self.after = np.concatenate([self.after, after])
            self.outages = np.concatenate([self.outages, self.outages_of(after)])

    def _wherever(self, own: fault_processes.Own) -> _Rows:
        """The rows that do not depend on the racks of the brokers, computed once."""
        rows = self._of_brokers.get(own)
        if rows is None:
            changes = fault_processes.broker_and_cluster_transitions(own, self._environment)
            rows = self._of_brokers[own] = self._rows(changes)
        return rows

    def _rows(self, changes: Iterable[fault_processes.Change]) -> _Rows:
        rows = _Rows([], [], [])
        for rate, own, events in changes:
            rows.rate.append(self.rate_number(rate))
            number = self._noticed.get(events)
            if number is None:
                number = self.event_sequences.number(partition_events(events))
                self._noticed[events] = number
            rows.events.append(number)
            rows.after.extend(own)
        return rows


@lru_cache(maxsize=64)
def changes(
    environment: fault_processes.FaultEnvironment, copying: bool, operator: bool = False
) -> FaultTransitions:
    """The one table of a fault environment, without names of rates that it does not use."""
    transitions = FaultTransitions(environment)
    if copying:
        transitions.rate_number(COPY)
    if operator:
        transitions.rate_number(DECISION)
    return transitions


class PartitionTransitions:
    """Transitions of a partition by sequences of events.

    exchanging: the last two slots are merged as exchangeable, though their order in the assignment
        matters.
    following, effects, gaps (rows,): the partition's next state, what happened as bits, and the
        number of the gap map.
    ways (rows,): how many equally likely outcomes the same events have, in rows one after the
        other.
    """

    def __init__(
        self, table: PartitionTransitionTable, sequences: EventSequences, exchanging: bool = False
    ) -> None:
        self._table, self._sequences, self._exchanging = table, sequences, exchanging
        self._width = max(table.replicas - 1, 1)
        self._asked = Pairs()
        self._maps: dict[tuple[int, ...], int] = {}
        self._noted: dict[red.Outcome, tuple[int, int]] = {}
        self.gap_maps: list[tuple[int, ...]] = []
        self.following = self.effects = self.gaps = np.zeros(0, dtype=np.int64)
        self.ways = self._first = self.following

    def of(self, partition: IntArray, events: IntArray) -> IntArray:
        """Row of each partition and sequence of events; the first of its ``ways``."""
        rows, new = self._asked.of(partition, events)
        if len(new):
            listed, before = self._sequences.listed, len(self.following)
            asked = zip(partition[new].tolist(), events[new].tolist(), strict=True)
            if self._exchanging:
                several = [self._ways(number, listed[sequence]) for number, sequence in asked]
                new_rows, count = list(chain.from_iterable(several)), np.array([*map(len, several)])
            else:
                new_rows = [
                    self._follow_events(number, listed[sequence]) for number, sequence in asked
                ]
                count = np.ones(len(new), dtype=np.int64)
            following, effects, gaps = np.array(new_rows, dtype=np.int64).T
            self._first = np.concatenate([self._first, before + np.cumsum(count) - count])
            self.ways = np.concatenate([self.ways, np.repeat(count, count)])
            self.following = np.concatenate([self.following, following])
            self.effects = np.concatenate([self.effects, effects])
            self.gaps = np.concatenate([self.gaps, gaps])
        return self._first.take(rows)

    def _ways(self, partition: int, events: fault_processes.Events) -> list[_Way]:
        """The possible outcomes: two where the order of the last two slots decides."""
        way = self._follow_events(partition, events)
        if not self._order_decides(partition, events, way[0]):
            return [way]
        table = self._table
        now, outcome = partition, red.nothing_happens(table.states[partition])
        for event, slots in events:
            now, later = table.last_first(now, event, slots)
            outcome = outcome.then(later)
        other = self._noted_as(partition, now, outcome)
        return [way] if other == way else [way, other]

    def _order_decides(self, before: int, events: fault_processes.Events, after: int) -> bool:
        """One of the last two slots leads where the other could."""
        state, last = self._table.states[after], self._table.replicas - 1
        old, leader = self._table.states[before].registration, state.registration.leader
        if leader < last - 1 or leader == old.leader:
            return False
        other = 2 * last - 1 - leader
        if state.condition[other] not in red.RUNNING:
            return False
        # In sync they are exchangeable, unless both return at once: the first unfenced leads.
        in_sync = leader in old.isr or leader in old.elr
        return not in_sync or any(
            event == red.QUORUM_BACK or (event in red.RETURNS and len(slots) > 1)
            for event, slots in events
        )

    def _follow_events(self, partition: int, events: fault_processes.Events) -> _Way:
        table = self._table
        if not events:
            now, outcome = partition, red.nothing_happens(table.states[partition])
        else:
            now, outcome = table.step(partition, *events[0])
            for event, slots in events[1:]:
                now, later = table.step(now, event, slots)
                outcome = outcome.then(later)
        return self._noted_as(partition, now, outcome)

    def _noted_as(self, partition: int, now: int, outcome: red.Outcome) -> _Way:
        """The partition's next state, what happened, and the number of the gap map."""
        noted = self._noted.get(outcome)
        if noted is None:
            noted = self._noted[outcome] = self._in_numbers(outcome)
        effects, gaps = noted
        table = self._table
        if effects & _LEADER_CHANGE and not (table.readable(partition) and table.readable(now)):
            effects &= ~_LEADER_CHANGE
        return now, effects, gaps

    def _in_numbers(self, outcome: red.Outcome) -> tuple[int, int]:
        """Its effects, of which a loss hides the tail, and a failover a handover; its gap map."""
        effects = outcome.effects & ~_CAUSES
        if effects & _LOSS:
            effects &= ~_TAIL
        if effects & _FAILOVER:
            effects &= ~_HANDOVER
        return effects, self.map_number(outcome.gap_map)

    def map_number(self, gaps: tuple[int, ...]) -> int:
        """The number of a gap map; a missing gap counts as one that every log has."""
        padded = gaps + (GAP_CLOSED,) * (self._width - len(gaps))
        number = self._maps.setdefault(padded, len(self.gap_maps))
        if number == len(self.gap_maps):
            self.gap_maps.append(padded)
        return number


class Ends:
    """Copies that complete, one for each copying replica, and elections by an operator."""

    def __init__(self, table: PartitionTransitionTable, sequences: EventSequences) -> None:
        self._table = table
        self._copied = np.array(
            [sequences.number(((red.COPIED, (slot,)),)) for slot in range(table.replicas)]
        )
        decides = table.constants.operator
        self._decided = sequences.number(((red.DECIDED, (0,)),)) if decides else -1

    def of_copies(self, partition: IntArray) -> tuple[IntArray, IntArray]:
        """Index of the partition asked about, and the events, for every copy that can end."""
        copying = [self._table.copying(number) for number in partition.tolist()]
        count = np.array([len(slots) for slots in copying], dtype=np.int64)
        slots = np.array([slot for slots in copying for slot in slots], dtype=np.int64)
        return np.repeat(np.arange(len(count)), count), self._copied[slots]

    def by_operator(self, partition: IntArray) -> tuple[IntArray, IntArray]:
        """Index of the partition asked about, and the event, for every election possible."""
        states = self._table.states
        waits = [
            place
            for place, number in enumerate(partition.tolist() if self._decided >= 0 else ())
            if red.operator_can_elect(states[number])
        ]
        return np.array(waits, dtype=np.int64), np.full(len(waits), self._decided)
