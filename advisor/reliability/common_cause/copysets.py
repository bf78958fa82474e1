"""Copysets, scatter width, and the probability that simultaneous broker losses lose a partition.

A copyset is a set of brokers that holds every replica of some partition. The scatter width of a
broker is the number of others that share partitions with it (Cidon et al., "Copysets", USENIX ATC
2013). The more copysets, the likelier it is that several brokers lost at once take a partition
with them; the larger the scatter width, the more brokers a replaced one can be copied from.
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

# Up to so many sets of lost brokers are enumerated; beyond, the probability is bounded.
_MOST_ENUMERATED = 2_000_000
# Second-order bounds count all subsets of a copyset: 1024 at this size.
_LARGEST_COUNTED = 10


class Chance(NamedTuple):
    """A probability with rigorous bounds; exact if they are equal.

    Attributes
    ----------
    value, low, high : float
        The probability, and its lower and upper bound.
    """

    value: float
    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether the bounds are equal."""
        return self.low == self.high


@dataclass(frozen=True)
class Copysets:
    """The distinct copysets of a cluster.

    Attributes
    ----------
    sets : frozenset of frozenset of int
        Broker ids of each copyset.
    brokers : int
        Number of brokers in the whole cluster.
    """

    sets: frozenset[Copyset]
    brokers: int

    @cached_property
    def scatter_width(self) -> Mapping[int, int]:
        """Scatter width of each broker that holds replicas."""
        others: dict[int, set[int]] = {}
        for members in self.sets:
            for broker in members:
                others.setdefault(broker, set()).update(members)
        return {broker: len(shared) - 1 for broker, shared in sorted(others.items())}

    @property
    def mean_scatter_width(self) -> float:
        """Mean over the brokers that hold replicas; 0 if there are none."""
        widths = self.scatter_width.values()
        return sum(widths) / len(widths) if widths else 0.0

    def chance_of_loss(self, lost: int) -> Chance:
        """Probability that brokers lost at once, at random, hold every copy of some partition.

        Parameters
        ----------
        lost : int
            How many brokers are lost.

        Returns
        -------
        Chance
            Exact if few enough sets of lost brokers lose a partition to enumerate them. Otherwise
            copysets are treated as independent, clipped to the bounds of Dawson and Sankoff (Proc.
            AMS 18, 1967) and Kwerel (J. Am. Stat. Assoc. 70, 1975), which hold for any dependence.

        Raises
        ------
        InputError
            If ``lost`` is not a whole number from 0 to the number of brokers.

        See Also
        --------
        chance_any_lost : the same for so many copysets, treated as independent.

        Examples
        --------
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
        sizes = sorted({len(members) for members in self.sets})

        def smaller(members: Copyset) -> Iterator[Copyset]:
            for size in (size for size in sizes if size < len(members)):
                yield from map(frozenset, combinations(members, size))

        return tuple(m for m in self.sets if not any(s in self.sets for s in smaller(m)))

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
        most = 1 + math.floor(2.0 * both / single)
        low = 2.0 * single / (most + 1) - 2.0 * both / (most * (most + 1))
        high = single - 2.0 * both / len(sets)
        high = min(high, 1.0)
        # Rounding must not put the lower bound above the upper one.
        return min(max(low, likeliest), high), high


def copysets(placements: Iterable[Iterable[int]], brokers: int) -> Copysets:
    """Return the distinct copysets of a placement.

    Parameters
    ----------
    placements : iterable of iterable of int
        Broker ids of each partition's replicas, in any order.
    brokers : int
        Number of brokers in the whole cluster.

    Returns
    -------
    Copysets
        With the scatter width of each broker, and the probability of a loss.

    Raises
    ------
    InputError
        If the placement names more brokers than there are, or a partition has no replicas.

    See Also
    --------
    Copysets.chance_of_loss : probability that brokers lost at once lose a partition.
    place : the placement of a topic, as Kafka would choose it.

    Examples
    --------
    >>> found = copysets([(1, 2, 3), (3, 2, 1), (1, 4, 5)], brokers=6)
    >>> len(found.sets)
    2
    >>> found.scatter_width
    {1: 4, 2: 2, 3: 2, 4: 2, 5: 2}
    >>> found.chance_of_loss(3).value
    0.1
    """
    found = frozenset(frozenset(replicas) for replicas in placements)
    if frozenset() in found:
        raise InputError("a partition without replicas has no copyset")
    named = len(frozenset().union(*found))
    if named > brokers:
        raise InputError(f"the placements name {named} brokers, but brokers={brokers}")
    return Copysets(found, brokers)


def chance_all_lost(replicas: int, brokers: int, lost: float) -> float:
    """Probability that brokers lost at once, at random, hold all replicas of one partition.

    ``C(lost, replicas) / C(brokers, replicas)``, extended to numbers lost that are not whole, such
    as "1 % of the brokers".

    Parameters
    ----------
    replicas : int
        Replicas of the partition.
    brokers : int
        Number of brokers in the whole cluster.
    lost : float
        How many brokers are lost.

    Returns
    -------
    float
        Probability.

    Examples
    --------
    >>> chance_all_lost(replicas=3, brokers=6, lost=3)
    0.05
    """
    return math.prod(max(lost - i, 0.0) / (brokers - i) for i in range(replicas))


def chance_any_lost(sets: int, replicas: int, brokers: int, lost: float) -> float:
    """Probability that brokers lost at once, at random, hold all replicas of some partition.

    The copyset formula ``1 - (1 - q)^K`` of Cidon et al. (USENIX ATC 2013): copysets are treated
    as independent.

    Parameters
    ----------
    sets : int
        Number of distinct copysets.
    replicas : int
        Replicas of each partition.
    brokers : int
        Number of brokers in the whole cluster.
    lost : float
        How many brokers are lost; need not be whole.

    Returns
    -------
    float
        Probability.

    See Also
    --------
    Copysets.chance_of_loss : exact or bounded, for the copysets of a real placement.
    chance_all_lost : the probability of one copyset.

    Examples
    --------
    Of 5000 nodes 1 % are lost; copyset placement with scatter width 10 has 8330 copysets:

    >>> round(chance_any_lost(sets=8330, replicas=3, brokers=5000, lost=50), 4)
    0.0078
    """
    each = chance_all_lost(replicas, brokers, lost)
    return 1.0 if each >= 1.0 else -math.expm1(sets * math.log1p(-each))


def pairs_by_union(sets: Collection[Copyset]) -> dict[int, int]:
    """Count the pairs of distinct sets by the size of their union.

    Pairs are counted by the subsets they share, so that the work grows with the number of sets
    rather than pairs; inclusion-exclusion then gives the pairs that share exactly so many members.
    """
    holders: dict[tuple[int, ...], Counter[int]] = {}
    for members in sets:
        ordered = sorted(members)
        for size in range(len(ordered) + 1):
            for part in combinations(ordered, size):
                holders.setdefault(part, Counter())[len(ordered)] += 1
    # Ordered pairs, each set with itself included, by both sizes and the size of a shared subset.
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
