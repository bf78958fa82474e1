"""Copysets, scatter width, and the probability that simultaneous broker losses lose a partition.

A copyset is a set of brokers that holds every replica of some partition; the scatter width of a
broker is the number of others that share partitions with it (Cidon et al., USENIX ATC 2013).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, compress, permutations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from advisor.errors import InputError

Copyset = frozenset[int]
_Numbers = npt.NDArray[np.int64]

# With more sets of lost brokers the probability is bounded instead of enumerated.
_MOST_ENUMERATED = 2_000_000
# Second-order bounds count all subsets of a copyset: 1024 at this size.
_LARGEST_COUNTED = 10
_LARGEST_CODE = 2**62


class Chance(NamedTuple):
    """A probability with rigorous bounds; exact if they are equal."""

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the bounds are equal."""
        return self.low == self.high


@dataclass(frozen=True)
class Copysets:
    """The distinct copysets of a cluster, and the number of its brokers."""

    sets: frozenset[Copyset]
    brokers: int

    @cached_property
    def scatter_width(self) -> Mapping[int, int]:
        """Scatter width of each broker that holds replicas."""
        brokers, tables = _numbered(_by_size(self.sets))
        widths = np.zeros(len(brokers), np.int64)
        pairs = [_parts(tables[size], permutations(range(size), 2)) for size in tables if size > 1]
        if pairs:
            distinct, _ = _counted(np.concatenate(_codes(pairs, len(brokers))))
            widths += np.bincount(distinct // len(brokers), minlength=len(brokers))
        return dict(zip(brokers, widths.tolist(), strict=True))

    @property
    def mean_scatter_width(self) -> float:
        """Mean over the brokers that hold replicas; 0 if there are none."""
        widths = self.scatter_width.values()
        return sum(widths) / len(widths) if widths else 0.0

    def chance_of_loss(self, lost: int) -> Chance:
        """Probability that brokers lost at once, at random, hold every copy of some partition.

        Exact if few enough sets of lost brokers lose a partition to enumerate them. Otherwise
        copysets are treated as independent, clipped to the bounds of Dawson and Sankoff (Proc. AMS
        18, 1967) and Kwerel (J. Am. Stat. Assoc. 70, 1975), which hold for any dependence.

        >>> copysets([(1, 2), (3, 4)], brokers=4).chance_of_loss(2)
        Chance(value=0.3333333333333333, low=0.3333333333333333, high=0.3333333333333333)
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
        log_survival = math.fsum(
            count * math.log1p(-min(chance_all_lost(size, self.brokers, lost), 1.0 - 1e-16))
            for size, count in sizes.items()
        )
        low, high = self._bounds(sets, lost)
        return Chance(min(max(-math.expm1(log_survival), low), high), low, high)

    @cached_property
    def _smallest(self) -> tuple[Copyset, ...]:
        """Copysets that contain no smaller one, whose loss would already lose a partition."""
        by_size = _by_size(self.sets)
        brokers, tables = _numbered(by_size)
        smallest: list[Copyset] = []
        for size, sets in by_size.items():
            contains = np.zeros(len(sets), np.bool_)
            for other in (other for other in tables if other < size):
                parts = _parts(tables[size], combinations(range(size), other))
                own, smaller = _codes([parts, tables[other]], len(brokers))
                contains |= np.isin(own, smaller).reshape(len(sets), -1).any(axis=1)
            smallest.extend(compress(sets, ~contains))
        return tuple(smallest)

    def _fatal(self, sets: Collection[Copyset], lost: int) -> int:
        """How many sets of ``lost`` brokers contain a copyset."""
        if all(len(members) == lost for members in sets):
            return len(sets)
        # Bit masks: millions of sets fit in memory as integers. Brokers without replicas get a bit.
        bit = {broker: 1 << position for position, broker in enumerate(self.scatter_width)}
        every = [1 << position for position in range(self.brokers)]
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
        at_most = 1 + math.floor(2.0 * both / single)
        low = 2.0 * single / (at_most + 1) - 2.0 * both / (at_most * (at_most + 1))
        high = single - 2.0 * both / len(sets)
        high = min(high, 1.0)
        # Rounding must not put the lower bound above the upper one.
        return min(max(low, likeliest), high), high


def copysets(placements: Iterable[Iterable[int]], brokers: int) -> Copysets:
    """Return the distinct copysets of a placement: the broker ids of each partition's replicas.

    >>> found = copysets([(1, 2, 3), (3, 2, 1), (1, 4, 5)], brokers=6)
    >>> len(found.sets)
    2
    >>> found.scatter_width
    {1: 4, 2: 2, 3: 2, 4: 2, 5: 2}
    >>> found.chance_of_loss(3).value
    0.1
    """
    distinct = frozenset(frozenset(replicas) for replicas in placements)
    if frozenset() in distinct:
        raise InputError("a partition without replicas has no copyset")
    named = len(frozenset().union(*distinct))
    if named > brokers:
        raise InputError(f"the placements name {named} brokers, but brokers={brokers}")
    return Copysets(distinct, brokers)


def chance_all_lost(replicas: int, brokers: int, lost: float) -> float:
    """Probability that brokers lost at once, at random, hold all replicas of one partition.

    ``C(lost, replicas) / C(brokers, replicas)``, extended to numbers lost that are not whole.

    >>> chance_all_lost(replicas=3, brokers=6, lost=3)
    0.05
    """
    return math.prod(max(lost - i, 0.0) / (brokers - i) for i in range(replicas))


def pairs_by_union(sets: Collection[Copyset]) -> dict[int, int]:
    """Count the pairs of distinct sets by the size of their union.

    Pairs are counted by the subsets they share, so that the work grows with the number of sets
    rather than pairs; inclusion-exclusion then gives the pairs by the number of members they share.
    """
    shared = _shared_subsets(sets)
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


def _shared_subsets(sets: Collection[Copyset]) -> Counter[tuple[int, int, int]]:
    """Count ordered pairs of sets, each with itself included, once for each subset they share."""
    brokers, tables = _numbered(_by_size(sets))
    shared: Counter[tuple[int, int, int]] = Counter()
    for size in range(max(tables, default=-1) + 1):
        holding = [size_of_set for size_of_set in tables if size_of_set >= size]
        parts = [
            _parts(tables[size_of_set], combinations(range(size_of_set), size))
            for size_of_set in holding
        ]
        codes = _codes(parts, len(brokers))
        holders = {
            size_of_set: _counted(own) for size_of_set, own in zip(holding, codes, strict=True)
        }
        for one, (subsets, times) in holders.items():
            for other, (others, their_times) in holders.items():
                _, here, there = np.intersect1d(
                    subsets, others, assume_unique=True, return_indices=True
                )
                shared[one, other, size] = int(times[here] @ their_times[there])
    return shared


def _by_size(sets: Iterable[Copyset]) -> dict[int, list[Copyset]]:
    by_size: dict[int, list[Copyset]] = {}
    for members in sets:
        by_size.setdefault(len(members), []).append(members)
    return by_size


def _numbered(by_size: Mapping[int, Sequence[Copyset]]) -> tuple[list[int], dict[int, _Numbers]]:
    """Return all broker ids in order, and by size the sets, a row each, as positions in these."""
    ids = {
        size: np.fromiter(chain.from_iterable(same), np.int64, size * len(same))
        for size, same in by_size.items()
    }
    brokers = np.unique(np.concatenate([*ids.values(), np.array([], np.int64)]))
    tables = {
        size: np.sort(np.searchsorted(brokers, found).reshape(len(by_size[size]), size))
        for size, found in ids.items()
    }
    return brokers.tolist(), tables


def _parts(table: _Numbers, columns: Iterable[tuple[int, ...]]) -> _Numbers:
    """Return these columns of all rows, for each choice of columns."""
    chosen = np.array(list(columns), dtype=np.intp)
    return table[:, chosen].reshape(chosen.shape[0] * len(table), chosen.shape[1])


def _codes(tables: Sequence[_Numbers], brokers: int) -> list[_Numbers]:
    """Return a number for each row of these tables, equal where the rows are."""
    rows = np.concatenate(tables)
    codes, codes_so_far = np.zeros(len(rows), np.int64), 1
    for column in rows.T:
        if codes_so_far > _LARGEST_CODE // brokers:
            distinct, codes = np.unique(codes, return_inverse=True)
            codes_so_far = len(distinct)
        codes, codes_so_far = codes * brokers + column, codes_so_far * brokers
    return np.split(codes, np.cumsum([len(table) for table in tables])[:-1])


def _counted(codes: _Numbers) -> tuple[_Numbers, _Numbers]:
    """Return the distinct numbers in order, and how often each occurs."""
    # Several times as fast as numpy.unique where most are distinct.
    ordered = np.sort(codes)
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[first], np.diff(first, append=len(ordered))
