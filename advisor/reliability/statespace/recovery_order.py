"""Probability of loss over the order of recoveries, as ways without rates.

Where a partition has no leader, what is lost may depend on the order in which brokers return.
Outages end at rates of their own and without memory, so that each is the next to end with the
probability of its rate among all. The ways are the same for every card: they are explored once, and
the rates are filled in for each (absorption probabilities of an acyclic chain).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from advisor.reliability.solver.generator import IntArray, Vector, adds_up, sums

# Ends for any order of recoveries; every other end is the number of an outage.
CERTAIN_LOSS, NO_LOSS = -1, -2

Key = TypeVar("Key", bound=Hashable)
End = int | tuple[Key]
"""CERTAIN_LOSS, NO_LOSS, or, in a tuple of its own, the outage that goes on."""


class AbsorptionTable(NamedTuple):
    """Ways out of outages, without their rates.

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
        """Probability of a loss from each of some ends.

        ends (asked,): CERTAIN_LOSS, NO_LOSS or outages.
        rates (names,): per hour.
        """
        # The last two places are those of CERTAIN_LOSS and NO_LOSS.
        chance = np.zeros(self.outages + 2)
        chance[CERTAIN_LOSS] = 1.0
        rate = rates[self.rate]
        leaving = sums(self.outage, rate, self.outages)
        for first, last in pairwise((0, *self.stops)):
            ways = slice(first, last)
            share = rate[ways] / leaving[self.outage[ways]]
            chance += sums(self.outage[ways], share * chance[self.end[ways]], len(chance))
        return chance[ends]

    def of_draws(self, ends: IntArray, rates: Vector) -> Vector:
        """The same under the rates of many draws, a column each: shape (asked, draws)."""
        chance = np.zeros((self.outages + 2, rates.shape[1]))
        chance[CERTAIN_LOSS] = 1.0
        rate = rates[self.rate]
        leaving = adds_up(self.outage, len(chance)) @ rate
        for first, last in pairwise((0, *self.stops)):
            ways = slice(first, last)
            share = rate[ways] / leaving[self.outage[ways]]
            chance += adds_up(self.outage[ways], len(chance)) @ (share * chance[self.end[ways]])
        return chance[ends]


class Outages(Generic[Key]):
    """Numbered outages, explored on demand."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._ways: list[tuple[tuple[str, int], ...]] = []
        # Longest path through other outages, by outage.
        self._deep: list[int] = []

    def end(self, key: Key, ways: Callable[[Key], Iterable[tuple[str, End[Key]]]]) -> int:
        """End of an outage: CERTAIN_LOSS, NO_LOSS or its number.

        ways: name of the rate and end of every recovery. No outage may lead back to itself.
        """
        order = self._numbers.get(key)
        if order is not None:
            return order
        found = tuple(
            (name, end if isinstance(end, int) else self.end(end[0], ways))
            for name, end in ways(key)
        )
        different = {end for _, end in found} or {NO_LOSS}
        if len(different) == 1:
            (number,) = different
        else:
            number = len(self._ways)
            self._ways.append(found)
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
        """Table of some outages, and their numbers in it.

        place: index of every name of a rate.
        """
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
