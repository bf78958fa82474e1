"""State space of one replica set, explored on demand by the protocol's rules.

A state is the condition of the brokers and of the partition. Transitions carry names of rates, not
rates. States are numbered in the order of exploration; no result depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import COPY, DECISION
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.election_risk import COLUMNS, risks, unexpanded
from advisor.reliability.partition.transition_table import COPIES, partition_transition_table
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.flush_window import (
    NO_LOSS,
    FlushWindowFailures,
    Outage,
    Outages,
)
from advisor.reliability.statespace.lumping import Symmetry
from advisor.reliability.statespace.state_index import Pairs, spread
from advisor.reliability.statespace.successors import (
    Ends,
    PartitionTransitions,
    changes,
)

# Columns of the moves out of a state; see `Graph.moves`.
TARGET, RATE, EFFECTS, GAPS, WAYS, TIMES = range(6)
# A transition with one of these effects counts even if it leads back to its state.
NOTHING = np.zeros(0, dtype=np.int64)
_KEPT_IN_PLACE = int(Effect.LOSS | Effect.TAIL | Effect.TOTAL)


class NextTransitions(NamedTuple):
    """Transitions that can happen next, before the rules are evaluated; one in each row.

    owner: index into the states asked about.
    own, racks (transitions, slots): condition of each slot's broker afterwards, and its rack.
    unexpanded: placeholder states that they lead to if the rules are not evaluated.
    """

    owner: IntArray
    rate: IntArray
    events: IntArray
    own: IntArray
    racks: IntArray
    unexpanded: IntArray


class Graph:
    """Numbered states of one replica set and their transitions; state 0 is healthy.

    gap_maps: old gap to new gap, or GAP_LOST or GAP_CLOSED.
    """

    def __init__(
        self, constants: ChainConstants, environment: fault_processes.FaultEnvironment
    ) -> None:
        self.environment = environment
        self.table = partition_transition_table(constants, len(environment.racks))
        self._changes = changes(environment, constants.copying, constants.operator)
        self._symmetry = Symmetry(self.table, environment)
        self._transitions = PartitionTransitions(
            self.table, self._changes.event_sequences, self._symmetry.exchanging
        )
        self._ends = Ends(self.table, self._changes.event_sequences)
        self._flush_window = FlushWindowFailures(
            self.table,
            self._changes.event_sequences,
            self._transitions,
            self._symmetry,
            environment,
        )
        self._numbers = Pairs()
        self.rate_names = self._changes.rate_names
        self.gap_maps = self._transitions.gap_maps
        self.broker_states = self.partition = np.zeros(0, dtype=np.int64)
        self._election_risks = np.zeros((0, len(COLUMNS)))
        self._by_outages = NOTHING
        self._unexpanded = self.table.number(unexpanded(self.table.replicas))
        well = np.array([fault_processes.initial_state(environment).own])
        self._numbered(well, np.array([environment.slot_racks]), np.zeros(1, dtype=np.int64))

    def __len__(self) -> int:
        """Number of states found so far."""
        return len(self.partition)

    def next_transitions(self, states: IntArray) -> NextTransitions:
        """Failures and repairs that can happen next in some states."""
        broker_states, partition = self.broker_states[states], self.partition[states]
        changes = self._changes
        changes.ask(broker_states)
        owner, row = spread(changes.first[broker_states], changes.count[broker_states])
        copier, done = self._ends.of_copies(partition)
        waits, decided = self._ends.by_operator(partition)
        unchanged = np.concatenate([copier, waits])
        rate = changes.rate[row]
        for name, which in ((COPY, copier), (DECISION, waits)):
            if len(which):
                rate = np.concatenate([rate, np.full(len(which), changes.rate_number(name))])
        owner = np.concatenate([owner, unchanged])
        same = changes.own.take(broker_states[unchanged], axis=0)
        own = np.concatenate([changes.after.take(row, axis=0), same])
        racks = changes.racks.take(broker_states[owner], axis=0)
        outages = np.concatenate([changes.outages[row], changes.outages_of(same)])
        return NextTransitions(
            owner=owner,
            rate=rate,
            events=np.concatenate([changes.events[row], done, decided]),
            own=own,
            racks=racks,
            unexpanded=self._with_unexpanded_partition(own, racks, outages),
        )

    def _with_unexpanded_partition(
        self, own: IntArray, racks: IntArray, outages: IntArray
    ) -> IntArray:
        """The placeholder state of each set of outages."""
        more = int(outages.max(initial=-1)) + 1 - len(self._by_outages)
        if more > 0:
            self._by_outages = np.concatenate([self._by_outages, np.full(more, -1)])
        new, first = np.unique(outages[self._by_outages[outages] < 0], return_index=True)
        if len(new):
            place = np.flatnonzero(self._by_outages[outages] < 0)[first]
            unexpanded = np.full(len(new), self._unexpanded)
            self._by_outages[new] = self._numbered(own[place], racks[place], unexpanded)
        return self._by_outages[outages]

    def is_unexpanded(self, states: IntArray) -> NDArray[np.bool_]:
        """Whether the partition is a placeholder, its rules not evaluated; shape (states,)."""
        unexpanded: NDArray[np.bool_] = self.partition[states] == self._unexpanded
        return unexpanded

    def moves(
        self,
        states: IntArray,
        upcoming: NextTransitions | None = None,
        unexpanded: IntArray = NOTHING,
    ) -> tuple[IntArray, IntArray]:
        """Transitions out of states; those that change and lose nothing are omitted.

        unexpanded: entries of ``upcoming`` for which the rules are not evaluated.
        Returns owner (moves,): index into ``states``, ascending; rows (moves, 6): target, rate,
            effects, gap map, one of how many ways it may come, and multiplicity.
        """
        upcoming = upcoming or self.next_transitions(states)
        if not len(unexpanded):
            return _merged(self._followed(states, upcoming))
        expanded = np.ones(len(upcoming.owner), dtype=bool)
        expanded[unexpanded] = False
        few = NextTransitions(*(column.compress(~expanded, axis=0) for column in upcoming))
        columns = np.zeros((len(unexpanded), 6), dtype=np.int64)
        columns[:, 0], columns[:, 1], columns[:, 2] = few.owner, few.unexpanded, few.rate
        columns[:, 4], columns[:, 5] = self._transitions.map_number(()), 1
        asked = NextTransitions(*(column.compress(expanded, axis=0) for column in upcoming))
        return _merged(np.concatenate([self._followed(states, asked), columns]))

    def waits(self, states: IntArray) -> IntArray:
        """Number of replicas that wait for each kind of end, shape (states, waits)."""
        copying = self.table.facts(self.partition[states])[COPIES]
        brokers = self._changes.waits.take(self.broker_states[states], axis=0)
        return np.concatenate([brokers, copying[:, None]], axis=1)

    def brokers(self, states: IntArray) -> tuple[IntArray, IntArray]:
        """Condition and rack of each slot's broker, both of shape (states, replicas)."""
        broker_states = self.broker_states[states]
        changes = self._changes
        return changes.own.take(broker_states, axis=0), changes.racks.take(broker_states, axis=0)

    def election_risks(self, states: IntArray) -> NDArray[np.float64]:
        """Columns of :mod:`advisor.reliability.partition.election_risk`, shape (states, 6)."""
        partition = self.partition[states]
        unknown = len(self.table.states) - len(self._election_risks)
        more = np.full((unknown, len(COLUMNS)), -1.0)
        self._election_risks = np.concatenate([self._election_risks, more])
        for number in np.unique(partition[self._election_risks[partition, 0] < 0]).tolist():
            self._election_risks[number] = risks(self.table.states[number])
        return self._election_risks.take(partition, axis=0)

    def flush_window_losses(self, states: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Losses by power failures within the flush window, in states that refuse writes.

        Returns, by loss, the index into ``states``, the number of the rate's name, and the end.
        """
        broker_states, changes = self.broker_states[states], self._changes
        changes.ask(broker_states)
        owner, row = spread(changes.first[broker_states], changes.count[broker_states])
        early = self._flush_window.early(changes.events[row])
        about = np.flatnonzero(early >= 0)
        owner, row = owner[about], row[about]
        end = self._flush_window.ends(
            self.partition[states[owner]],
            changes.events[row],
            early[about],
            changes.after[row],
            changes.racks[broker_states[owner]],
        )
        loses = end != NO_LOSS
        return owner[loses], changes.rate[row[loses]], end[loses]

    @property
    def outages(self) -> Outages[Outage]:
        """Outages in which the order of recoveries decides what an early power failure loses."""
        return self._flush_window.outages

    def _followed(self, states: IntArray, upcoming: NextTransitions) -> IntArray:
        """Owner, target, rate, effects, gap map and ways of everything, by the rules."""
        source, rate, events, own, racks, _ = upcoming
        row = self._transitions.of(self.partition[states[source]], events)
        ways = self._transitions.ways[row]
        if (ways > 1).any():
            owner, row = spread(row, ways)
            source, rate, ways = source[owner], rate[owner], ways[owner]
            own, racks = own.take(owner, axis=0), racks.take(owner, axis=0)
        target = self._numbered(own, racks, self._transitions.following[row])
        effects = self._transitions.effects[row]
        counted = (target != states[source]) | (effects & _KEPT_IN_PLACE > 0)
        columns = [source, target, rate, effects, self._transitions.gaps[row], ways]
        return np.stack(columns, axis=1).compress(counted, axis=0)

    def _numbered(self, own: IntArray, racks: IntArray, partition: IntArray) -> IntArray:
        """The numbers of states, assigned at first use."""
        code, partition = self._symmetry.representatives(own, racks, partition)
        broker_states, new = self._changes.numbers.of(code)
        if len(new):
            self._changes.add(*self._symmetry.broker_states(code[new]))
        numbers, new = self._numbers.of(broker_states, partition)
        self.broker_states = np.concatenate([self.broker_states, broker_states[new]])
        self.partition = np.concatenate([self.partition, partition[new]])
        return numbers


def _merged(columns: IntArray) -> tuple[IntArray, IntArray]:
    """Equal transitions of a state as one, with their number as the last column."""
    code = np.zeros(len(columns), dtype=np.int64)
    for column in columns.T:
        code = code * (int(column.max(initial=0)) + 1) + column
    _, first, times = np.unique(code, return_index=True, return_counts=True)
    merged = columns.take(first, axis=0)
    return merged[:, 0], np.concatenate([merged[:, 1:], times[:, None]], axis=1)


def shared_constants(
    constants: ChainConstants, environment: fault_processes.FaultEnvironment
) -> ChainConstants:
    """The constants whose state space serves these as well.

    Where every ISR is large enough, acks=all is acknowledged as acks=1 is, and differs only in that
    no tail is lost. Without a controller the ISR cannot shrink, and acks=all waits for members that
    are gone.
    """
    if environment.quorum_can_fail:
        return constants
    never_refused = constants.acks != "all" or constants.policy.min_isr <= 1
    return replace(constants, acks=1) if never_refused else constants


@lru_cache(maxsize=24)
def graph(constants: ChainConstants, environment: fault_processes.FaultEnvironment) -> Graph:
    """The state space of these constants and environment, one per process."""
    return Graph(constants, environment)
