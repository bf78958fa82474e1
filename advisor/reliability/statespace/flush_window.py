"""Power failures within the flush window after writes have stopped.

A power failure is *early* if it comes within the window, and *late* after it. The last records are
in the page caches of the in-sync replicas only: if power fails early, no log has them any more, or
the next leader lacks them, which may depend on the order of recoveries. This second failure is
charged to the transition into the state that refuses writes; a third one is part of the error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from advisor.reliability.failures import fault_processes
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.statespace.lumping import Symmetry
from advisor.reliability.statespace.successors import (
    PARTITION_EVENT,
    EventSequences,
    PartitionTransitions,
)

# Ends for any order of recoveries; every other end is the number of an outage.
CERTAIN_LOSS, NO_LOSS = -1, -2

Key = TypeVar("Key", bound=Hashable)
End = int | tuple[Key]
"""CERTAIN_LOSS, NO_LOSS, or, in a tuple of its own, the outage that goes on."""


class AbsorptionTable(NamedTuple):
    """Ways out of outages, without their rates: absorption probabilities of an acyclic chain.

    Outages end at rates of their own and without memory, so that each is the next to end with the
    probability of its rate among all. The ways are the same for every card.

    outage, rate, end (ways,): from which outage, index of the name of the rate, and CERTAIN_LOSS,
        NO_LOSS or an outage.
    stops: ways up to each of these lead to ends that those up to the one before have settled.
    """

    outages: int
    outage: IntArray
    rate: IntArray
    end: IntArray
    stops: tuple[int, ...]

    def of(self, ends: IntArray, rates: Vector) -> Vector:
        """Probability of a loss from each of some ends, at rates (names,) or (names, draws)."""
        # The last two places are those of CERTAIN_LOSS and NO_LOSS.
        chance = np.zeros((self.outages + 2, *rates.shape[1:]))
        chance[CERTAIN_LOSS] = 1.0
        rate = rates[self.rate]
        leaving = sums(self.outage, rate, self.outages)
        for first, last in pairwise((0, *self.stops)):
            ways = slice(first, last)
            share = rate[ways] / leaving[self.outage[ways]]
            chance += sums(self.outage[ways], share * chance[self.end[ways]], len(chance))
        return chance[ends]


class Outages(Generic[Key]):
    """Numbered outages, explored on demand."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._ways: list[tuple[tuple[str, int], ...]] = []
        # Longest path through other outages, by outage.
        self._deep: list[int] = []

    def end(self, key: Key, ways: Callable[[Key], Iterable[tuple[str, End[Key]]]]) -> int:
        """End of an outage, given the name of the rate and the end of every recovery.

        No outage may lead back to itself.
        """
        order = self._numbers.get(key)
        if order is not None:
            return order
        ends_of_ways = tuple(
            (name, end if isinstance(end, int) else self.end(end[0], ways))
            for name, end in ways(key)
        )
        different = {end for _, end in ends_of_ways} or {NO_LOSS}
        if len(different) == 1:
            (number,) = different
        else:
            number = len(self._ways)
            self._ways.append(ends_of_ways)
            self._deep.append(1 + max(self._deep[end] if end >= 0 else 0 for end in different))
        self._numbers[key] = number
        return number

    def names(self, ends: Sequence[int]) -> list[str]:
        """Names of the rates that decide how outages end."""
        return list(
            dict.fromkeys(name for outage in self._within(ends) for name, _ in self._ways[outage])
        )

    def odds(
        self, ends: Sequence[int], place: Mapping[str, int]
    ) -> tuple[AbsorptionTable, IntArray]:
        """Table of some outages, and their numbers in it, given the index of each rate by name."""
        within = sorted(self._within(ends), key=self._deep.__getitem__)
        new = {
            CERTAIN_LOSS: CERTAIN_LOSS,
            NO_LOSS: NO_LOSS,
            **{old: number for number, old in enumerate(within)},
        }
        rows = [
            (new[old], place[name], new[end]) for old in within for name, end in self._ways[old]
        ]
        deep = Counter(self._deep[old] for old in within for _ in self._ways[old])
        stops = tuple(accumulate(count for _, count in sorted(deep.items())))
        outage, rate, way = np.array(rows, dtype=np.int64).reshape(-1, 3).T
        renamed = np.array([new[end] for end in ends], dtype=np.int64)
        return AbsorptionTable(len(within), outage, rate, way, stops), renamed

    def _within(self, ends: Sequence[int]) -> list[int]:
        """These outages and all that they may lead to."""
        outages = dict.fromkeys(end for end in ends if end >= 0)
        waiting = list(outages)
        while waiting:
            for _, end in self._ways[waiting.pop()]:
                if end >= 0 and end not in outages:
                    outages[end] = None
                    waiting.append(end)
        return list(outages)


_EARLY = {red.POWER: red.EARLY_POWER}
# Event that ends the outage of a replica, by its condition.
_RETURNS = {
    **dict.fromkeys(red.DOWN, red.BACK),
    red.DESTROYED: red.REPLACED,
    red.NOT_FETCHING: red.CAUGHT_UP,
    red.LIMPING: red.RECOVERED,
}
Outage = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""The partition after a late and an early power failure, broker conditions, racks; no leader."""

# Below this two terms of the series have more digits than the quotient.
_FEW = 1e-5


class FlushWindowLosses(NamedTuple):
    """Losses by early power failures, by state that refuses writes.

    state, rate (failures,): the state, and the index of the name of the failure's rate.
    end (failures,): CERTAIN_LOSS, or the outage in ``odds`` that decides.
    """

    state: IntArray
    rate: IntArray
    end: IntArray
    odds: AbsorptionTable

    def per_hour(self, rates: Vector, states: int) -> Vector:
        """Rate of the early power failures that lose records, by state, at rates as of `odds`."""
        chance = self.odds.of(self.end, rates)
        return sums(self.state, rates[self.rate] * chance, states)


def flush_window_loss(per_hour: Vector, out: Vector, hours: Vector) -> tuple[Vector, Vector]:
    """Probability of the loss by a power failure within the flush window, times 1 and its hours.

    With power failures at rate r, changes of any kind at rate o, and x = o times the hours T until
    all is on disk, a power failure is the next change and within T with probability
    ``r T (1 - exp(-x)) / x``. One after t hours loses T - t hours of writes, on average
    ``r T^2 (x - 1 + exp(-x)) / x^2``.
    """
    changes = out * hours
    few = changes < _FEW
    safe = np.where(few, 1.0, changes)
    once = np.where(few, 1.0 - changes / 2.0, -np.expm1(-safe) / safe)
    twice = np.where(few, 0.5 - changes / 6.0, (safe + np.expm1(-safe)) / safe**2)
    return per_hour * hours * once, per_hour * hours**2 * twice


class FlushWindowFailures:
    """Losses by early power failures; the rules are evaluated once per partition and failure."""

    def __init__(
        self,
        table: PartitionTransitionTable,
        sequences: EventSequences,
        transitions: PartitionTransitions,
        symmetry: Symmetry,
        environment: fault_processes.FaultEnvironment,
    ) -> None:
        self._table, self._sequences, self._environment = table, sequences, environment
        self._transitions, self._symmetry = transitions, symmetry
        self._early = np.zeros(0, dtype=np.int64)
        self._known: dict[tuple[int, int], int | None] = {}
        # The same, by what distinguishes the slots of the two partitions.
        self._by_role: dict[tuple[tuple[int, ...], ...], int | None] = {}
        self.outages: Outages[Outage] = Outages()

    def early(self, events: IntArray) -> IntArray:
        """The same events with an early power failure; -1 if none of them is a power failure."""
        more = []
        for listed in self._sequences.listed[len(self._early) :]:
            early = tuple((_EARLY.get(event, event), slots) for event, slots in listed)
            more.append(-1 if early == listed else self._sequences.number(early))
        self._early = np.concatenate([self._early, np.array(more, dtype=np.int64)])
        return self._early[events]

    def ends(
        self, partition: IntArray, events: IntArray, early: IntArray, own: IntArray, racks: IntArray
    ) -> IntArray:
        """What an early power failure loses and a later one would not.

        own, racks (asked, replicas): condition of each slot's broker afterwards, and its rack.
        """
        transitions = self._transitions
        late, soon = transitions.of(partition, events), transitions.of(partition, early)
        if_late, if_early = transitions.effects[late], transitions.effects[soon]
        spared = if_late & Effect.LOSS == 0
        kinds = np.where(spared & (if_early & Effect.LOSS > 0), CERTAIN_LOSS, NO_LOSS)
        waits = spared & (if_early & Effect.LOSS == 0) & (if_early & Effect.UNFLUSHED > 0)
        for place in np.flatnonzero(waits).tolist():
            both = int(transitions.following[late[place]]), int(transitions.following[soon[place]])
            end = self._end_in_any_order(*both)
            if end is None:
                key = (*both, tuple(own[place].tolist()), tuple(racks[place].tolist()))
                end = self.outages.end(key, self._ways)
            kinds[place] = end
        return kinds

    def _ways(self, key: Outage) -> Iterator[tuple[str, End[Outage]]]:
        late, soon, own, racks = key
        brokers = fault_processes.BrokerStates(own, racks)
        for change in fault_processes.ends(brokers, self._environment):
            after: int | tuple[int, int] = (late, soon)
            for event, slots in change.events:
                if isinstance(after, tuple):
                    after = self._after(*after, PARTITION_EVENT[event], slots)
            if isinstance(after, tuple):
                end = self._end_in_any_order(*after)
                if end is None:
                    yield change.rate, ((*after, change.own, racks),)
                    continue
                after = end
            yield change.rate, after

    def _end_in_any_order(self, late: int, soon: int) -> int | None:
        """End of an outage if the order of recoveries does not matter; None if it does."""
        table = self._table
        if table.readable(soon):
            return NO_LOSS
        both = late, soon
        if both not in self._known:
            key = tuple(sorted(self._symmetry.by_slot(*both)))
            if key not in self._by_role:
                self._by_role[key] = self._common(*both)
            self._known[both] = self._by_role[key]
        return self._known[both]

    def _common(self, late: int, soon: int) -> int | None:
        """Common end of every recovery; None if they differ."""
        common: int | None = None
        if self._table.states[soon].controller != red.CONTROLLER_WORKS:
            return None
        of_slot = self._symmetry.by_slot(late, soon)
        condition_of = self._table.states[soon].condition
        # One slot represents all that are exchangeable with it.
        for slot in dict(zip(of_slot, range(len(of_slot)), strict=True)).values():
            condition = condition_of[slot]
            if condition in _RETURNS:
                after = self._after(late, soon, _RETURNS[condition], (slot,))
                if after == (late, soon):
                    continue
                end = after if isinstance(after, int) else self._end_in_any_order(*after)
                if end is None or common not in (None, end):
                    return None
                common = end
        return NO_LOSS if common is None else common

    def _after(
        self, late: int, soon: int, event: int, slots: tuple[int, ...]
    ) -> int | tuple[int, int]:
        """CERTAIN_LOSS or NO_LOSS once there is a leader, else the two partitions without one."""
        later, same = self._table.step(late, event, slots)
        following, outcome = self._table.step(soon, event, slots)
        onto = outcome.gap_map[0]
        if onto == GAP_LOST:
            # What is lost in any case is counted when it happens.
            return NO_LOSS if same.effects & Effect.LOSS else CERTAIN_LOSS
        return (later, following) if onto == 0 else NO_LOSS
