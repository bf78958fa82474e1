"""Which brokers hold all copies of something, and how likely it is to lose them all at once.

A copyset is a set of brokers that hold every replica of some partition; the scatter width of a
broker is the number of others that share partitions with it (Cidon et al., "Copysets", USENIX ATC
2013). Many copysets make it likely that some partition is lost when several brokers are lost at
once, however they are chosen; a large scatter width spreads the copying when one is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

from advisor.errors import InputError

Copyset = frozenset[int]

# So many sets of lost brokers are gone through one by one; above it bounds are given.
_MOST_ENUMERATED = 2_000_000
# A set of this size has 1024 subsets to be counted for the bounds.
_LARGEST_COUNTED = 10


class Chance(NamedTuple):
    """A probability and what it surely lies between; exact where both ends are equal.

    Attributes
    ----------
    value, low, high : float
    """

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the value is exact."""
        return self.low == self.high


@dataclass(frozen=True)
class Copysets:
    """The distinct copysets of a cluster.

    Attributes
    ----------
    sets : frozenset of frozenset of int
        Broker ids.
    brokers : int
        Of the whole cluster.
    """

    sets: frozenset[Copyset]
    brokers: int

    @cached_property
    def scatter_width(self) -> Mapping[int, int]:
        """How many other brokers share partitions with each broker that holds any."""
        others: dict[int, set[int]] = {}
        for members in self.sets:
            for broker in members:
                others.setdefault(broker, set()).update(members)
        return {broker: len(shared) - 1 for broker, shared in sorted(others.items())}

    @property
    def mean_scatter_width(self) -> float:
        """Mean over the brokers that hold partitions; 0 if there are none."""
        widths = self.scatter_width.values()
        return sum(widths) / len(widths) if widths else 0.0

    def chance_of_loss(self, lost: int) -> Chance:
        """Probability that brokers lost at once, at random, hold every copy of some partition.

        Parameters
        ----------
        lost : int
            How many brokers.

        Returns
        -------
        Chance
            Exact while there are few enough sets of lost brokers that take a partition with them.
            Otherwise the copysets are taken as independent, within the bounds of Dawson and
            Sankoff (Proc. AMS 18, 1967) and Kwerel (J. Am. Stat. Assoc. 70, 1975), which hold
            whatever their dependence.

        Raises
        ------
        InputError
            If there are not so many brokers.
        """
        if isinstance(lost, bool) or not isinstance(lost, int) or not 0 <= lost <= self.brokers:
            raise InputError(f"lost={lost!r} must be a whole number from 0 to {self.brokers}")
        sets = [members for members in self._smallest if len(members) <= lost]
        if not sets:
            return Chance(0.0, 0.0, 0.0)
        sizes = Counter(map(len, sets))
        ways = sum(n * math.comb(self.brokers - r, lost - r) for r, n in sizes.items())
        if ways <= _MOST_ENUMERATED:
            exact = self._fatal(sets, lost) / math.comb(self.brokers, lost)
            return Chance(exact, exact, exact)
        nobody = math.fsum(
            count * math.log1p(-min(chance_all_lost(size, self.brokers, lost), 1.0 - 1e-16))
            for size, count in sizes.items()
        )
        low, high = self._bounds(sets, lost)
        return Chance(min(max(-math.expm1(nobody), low), high), low, high)

    @cached_property
    def _smallest(self) -> tuple[Copyset, ...]:
        """The copysets that do not hold a smaller one: losing those loses something anyway."""
        sizes = sorted({len(members) for members in self.sets})

        def smaller(members: Copyset) -> Iterator[Copyset]:
            for size in (size for size in sizes if size < len(members)):
                yield from map(frozenset, combinations(members, size))

        return tuple(m for m in self.sets if not any(s in self.sets for s in smaller(m)))

    def _fatal(self, sets: Collection[Copyset], lost: int) -> int:
        """How many sets of so many brokers hold a copyset."""
        if all(len(members) == lost for members in sets):
            return len(sets)
        # A bit for each broker, those without partitions too: millions of sets fit as integers.
        bit = {broker: 1 << place for place, broker in enumerate(self.scatter_width)}
        every = [1 << place for place in range(self.brokers)]
        fatal: set[int] = set()
        for members in sets:
            held = sum(bit[broker] for broker in members)
            others = [one for one in every if not one & held]
            fatal.update(held + sum(more) for more in combinations(others, lost - len(members)))
        return len(fatal)

    def _bounds(self, sets: Collection[Copyset], lost: int) -> tuple[float, float]:
        sizes = Counter(map(len, sets))
        single = math.fsum(n * chance_all_lost(r, self.brokers, lost) for r, n in sizes.items())
        likeliest = chance_all_lost(min(sizes), self.brokers, lost)
        if max(sizes) > _LARGEST_COUNTED:
            return likeliest, min(single, 1.0)
        both = math.fsum(
            pairs * chance_all_lost(union, self.brokers, lost)
            for union, pairs in pairs_by_union(sets).items()
        )
        most = 1 + math.floor(2.0 * both / single)
        low = 2.0 * single / (most + 1) - 2.0 * both / (most * (most + 1))
        high = single - 2.0 * both / len(sets)
        high = min(high, 1.0)
        # Where both are the truth, rounding must not put the low end above it.
        return min(max(low, likeliest), high), high


def copysets(placements: Iterable[Iterable[int]], brokers: int) -> Copysets:
    """Return the distinct copysets of replica lists, whatever their order.

    Parameters
    ----------
    placements : iterable of replica lists
    brokers : int
        Of the whole cluster.

    Raises
    ------
    InputError
        If the lists name more brokers than there are, or a list is empty.
    """
    found = frozenset(frozenset(replicas) for replicas in placements)
    if frozenset() in found:
        raise InputError("a partition without replicas has no copyset")
    named = len(frozenset().union(*found))
    if named > brokers:
        raise InputError(f"the placements name {named} brokers, but brokers={brokers}")
    return Copysets(found, brokers)


def chance_all_lost(replicas: int, brokers: int, lost: float) -> float:
    """Probability that brokers lost at random hold all of a given set of replicas.

    ``C(lost, replicas) / C(brokers, replicas)``, for a number lost that need not be whole: "1 % of
    the brokers".

    Parameters
    ----------
    replicas, brokers : int
    lost : float
    """
    return math.prod(max(lost - i, 0.0) / (brokers - i) for i in range(replicas))


def chance_any_lost(sets: int, replicas: int, brokers: int, lost: float) -> float:
    """Probability that brokers lost at random hold all replicas of any of so many copysets.

    Cidon et al.'s formula: the copysets are taken as independent.

    Parameters
    ----------
    sets : int
        Distinct copysets.
    replicas, brokers : int
    lost : float
        As for `chance_all_lost`.
    """
    each = chance_all_lost(replicas, brokers, lost)
    return 1.0 if each >= 1.0 else -math.expm1(sets * math.log1p(-each))


def pairs_by_union(sets: Collection[Copyset]) -> dict[int, int]:
    """Return how many pairs of distinct sets have so many members together.

    Pairs that share a given subset are counted by subset, so that the work grows with the number
    of sets and not of pairs; inclusion and exclusion then gives those that share exactly so many.
    """
    holders: dict[tuple[int, ...], Counter[int]] = {}
    for members in sets:
        ordered = sorted(members)
        for size in range(len(ordered) + 1):
            for part in combinations(ordered, size):
                holders.setdefault(part, Counter())[len(ordered)] += 1
    # Ordered pairs, each set with itself included, by the two sizes and the size of what is shared.
    shared: Counter[tuple[int, int, int]] = Counter()
    for part, by_size in holders.items():
        for one, first in by_size.items():
            for other, second in by_size.items():
                shared[one, other, len(part)] += first * second
    unions: Counter[int] = Counter()
    counts = Counter(map(len, sets))
    for one in counts:
        for other in counts:
            for size in range(min(one, other) + 1):
                exactly = sum(
                    (-1) ** (more - size) * math.comb(more, size) * shared[one, other, more]
                    for more in range(size, min(one, other) + 1)
                )
                if one == other == size:
                    exactly -= counts[one]
                unions[one + other - size] += exactly
    return {union: count // 2 for union, count in unions.items() if count}
