"""Events that strike each broker by chance: which sets lose depends on which brokers were picked.

A site loses power and each broker is gone for good with some probability; automation wipes each
broker with some probability. Once it is known which brokers were picked, a set's loss is decided by
how many of its own are among them. So all choices of brokers are enumerated; on large clusters
choices are sampled, always the same ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import NamedTuple, Protocol

import numpy as np
from scipy import stats

from advisor.reliability.failures.mechanisms import Scope, transition
from advisor.reliability.solver.generator import IntArray, Vector

# Up to so many brokers every choice is enumerated (2 ** 16 of them).
_ENUMERATED = 16
# Beyond, brokers are picked in so many random orders, fewer where there are many sets.
_ORDERS, _FEWEST, _POSITIONS = 512, 16, 1_000_000
_SEED = 20130626
# A certain loss would have the logarithm of 0.
_MOST = 1.0 - 1e-12


class PickedLosses(NamedTuple):
    """Losses of one set by a mechanism that picks each broker by chance.

    Attributes
    ----------
    chances : tuple of float
        Probability of a loss by how many of the set's brokers are picked, from 0 to all.
    all_picked : float
        How often, per year, an event picks all of them.
    per_year : float
        Loss events a year with all brokers among those that can be picked.
    others_per_year : float
        Loss events a year with a broker of the set out before.
    """

    chances: tuple[float, ...]
    all_picked: float
    per_year: float
    others_per_year: float

    @property
    def total_per_year(self) -> float:
        """All loss events a year."""
        return self.per_year + self.others_per_year

    def share(self, events_per_year: float) -> float:
        """Probability to be picked, given how often an event picks brokers."""
        replicas = len(self.chances) - 1
        return float((self.all_picked / events_per_year) ** (1.0 / replicas))

    def scaled(self, share: float) -> PickedLosses:
        """The same for a share of the loss events."""
        return self._replace(
            per_year=self.per_year * share, others_per_year=self.others_per_year * share
        )


class Chain(Protocol):
    """The transitions of a CTMC, by the names of their rates."""

    @property
    def rate(self) -> IntArray:
        """Index of each transition's rate name."""

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Names of rates."""


def picked_losses(
    chain: Chain, replicas: int, per_year: Vector, flux: Vector, lost: Vector
) -> dict[str, PickedLosses]:
    """Losses of one set, by mechanism that picks brokers of the whole cluster by chance.

    Parameters
    ----------
    per_year : array, shape (names,)
        Rates.
    flux, lost : array, shape (transitions,)
        How often transitions happen, and how many of them lose, per year.
    """
    numbers: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
    for number, name in enumerate(chain.rate_names):
        known = transition(name)
        if known.chosen > 0 and known.mechanism.scope is Scope.CLUSTER:
            numbers[known.mechanism.name][known.chosen, known.among] = number
    names = len(chain.rate_names)
    happen, lose = (np.bincount(chain.rate, each, names) for each in (flux, lost))
    found = {}
    for mechanism, by_count in numbers.items():
        whole = [by_count.get((count, replicas)) for count in range(1, replicas + 1)]
        every = math.fsum(lose[list(by_count.values())])
        if whole[-1] is None or not every:
            continue
        losing = math.fsum(lose[n] for n in whole if n is not None)
        chances = [lose[n] / happen[n] if n is not None and happen[n] else 0.0 for n in whole]
        all_picked = float(per_year[whole[-1]])
        found[mechanism] = PickedLosses((0.0, *chances), all_picked, losing, every - losing)
    return found


class AnyPicked(NamedTuple):
    """Given an event that picks brokers by chance.

    Attributes
    ----------
    probability : float
        That any set loses.
    total : float
        Mean number of sets that lose.
    error : float
        Standard error of the probability; 0 where all choices are enumerated.
    dependence : float
        How much higher the probability is if sets lose at different choices of brokers, as far as
        that is possible, rather than independently of each other given the choice.
    """

    probability: float
    total: float
    error: float
    dependence: float


class PickedBrokers:
    """Choices of brokers, and how many of each set are among them.

    Parameters
    ----------
    sets : mapping of pattern to sequence of replicas
        Distinct sets by rack pattern.
    """

    def __init__(self, sets: Mapping[tuple[int, ...], Sequence[tuple[int, ...]]]) -> None:
        held = {pattern: np.array(members) for pattern, members in sets.items() if members}
        ids = np.unique(np.concatenate([members.ravel() for members in held.values()]))
        self._sets = {pattern: np.searchsorted(ids, members) for pattern, members in held.items()}
        self._brokers = len(ids)

    @property
    def brokers(self) -> int:
        """How many brokers hold replicas."""
        return self._brokers

    def any_loss(self, chances: Mapping[tuple[int, ...], Vector], share: float) -> AnyPicked:
        """Whether any set loses in an event; sets lose independently given who is picked.

        Parameters
        ----------
        chances : mapping of pattern to array, shape (replicas + 1,)
            Probability of a loss by how many of a set's brokers are picked.
        share : float
            Probability of each broker to be picked.
        """
        total = 0.0
        chances = {pattern: some for pattern, some in chances.items() if pattern in self._sets}
        for pattern, some in chances.items():
            picked = np.arange(len(some))
            odds = stats.binom.pmf(picked, picked[-1], share)
            total += float(odds @ some) * len(self._sets[pattern])
        survival = {p: np.log1p(-np.minimum(some, _MOST)) for p, some in chances.items()}
        odds = stats.binom.pmf(np.arange(self._brokers + 1), self._brokers, share)
        if self._brokers <= _ENUMERATED:
            lost = -np.expm1(np.minimum(self._by_choice(survival), 0.0))
            more = np.minimum(self._by_choice(chances), 1.0) - lost
            by_size = np.bincount(self._sizes, lost) / np.bincount(self._sizes)
            more = np.bincount(self._sizes, more) / np.bincount(self._sizes)
            return AnyPicked(float(odds @ by_size), total, 0.0, max(float(odds @ more), 0.0))
        log_survival, counts = self._by_order(survival), self._by_order(chances)
        each = -np.expm1(np.minimum(log_survival, 0.0))
        apart = float(((np.minimum(counts, 1.0) - each) @ odds).mean())
        lost = each @ odds
        # How many sets lose on average is known, and tells part of how often any does.
        count = counts @ odds
        off = count - count.mean()
        slope = float(off @ lost) / max(float(off @ off), 1e-300)
        known = float(lost.mean()) + slope * (total - float(count.mean()))
        error = float((lost - slope * off).std(ddof=1)) / math.sqrt(len(lost))
        return AnyPicked(min(max(known, 0.0), total, 1.0), total, error, max(apart, 0.0))

    @cached_property
    def _sizes(self) -> IntArray:
        """How many brokers each choice holds, shape (2 ** brokers,)."""
        sizes = np.zeros(1, dtype=np.int64)
        for _ in range(self._brokers):
            sizes = np.concatenate([sizes, sizes + 1])
        return sizes

    @cached_property
    def _parts(self) -> dict[tuple[int, ...], tuple[tuple[IntArray, IntArray], ...]]:
        """By pattern and size: parts of sets as choices, and how many sets have each."""
        found = {}
        for pattern, members in self._sets.items():
            bits = np.int64(1) << members
            found[pattern] = tuple(
                np.unique(
                    np.concatenate(
                        [
                            bits[:, some].sum(axis=1)
                            for some in map(list, combinations(range(bits.shape[1]), size))
                        ]
                    ),
                    return_counts=True,
                )
                for size in range(1, bits.shape[1] + 1)
            )
        return found

    def _by_choice(self, amounts: Mapping[tuple[int, ...], Vector]) -> Vector:
        """Sum over sets of an amount by how many are picked, for every choice of brokers.

        That of a set by its picked brokers is a sum over all parts of these; sums over all parts
        of a choice take one pass for each broker.
        """
        whole = np.zeros(1 << self._brokers)
        for pattern, by_count in amounts.items():
            # Of each part alone: the differences of order 1, 2, ... of the amounts by count.
            parts = [float(np.diff(by_count, size)[0]) for size in range(1, len(by_count))]
            for amount, (choices, sets) in zip(parts, self._parts[pattern], strict=True):
                whole[choices] += amount * sets
        for broker in range(self._brokers):
            halves = whole.reshape(-1, 2, 1 << broker)
            halves[:, 1] += halves[:, 0]
        return whole

    @cached_property
    def _places(self) -> dict[tuple[int, ...], IntArray]:
        """Places of each set's brokers in random orders, ascending; (orders, sets, replicas)."""
        held = sum(members.size for members in self._sets.values())
        orders = min(max(_POSITIONS // held, _FEWEST), _ORDERS)
        draw = np.random.default_rng(_SEED)
        order = draw.permuted(np.tile(np.arange(self._brokers), (orders, 1)), axis=1)
        return {
            pattern: np.sort(order[:, members], axis=2) for pattern, members in self._sets.items()
        }

    def _by_order(self, amounts: Mapping[tuple[int, ...], Vector]) -> Vector:
        """Sum over sets of an amount by how many are picked, if the first of an order are.

        Returns
        -------
        array, shape (orders, brokers + 1)
        """
        size = self._brokers + 1
        rows = np.arange(len(next(iter(self._places.values()))))[:, None] * size
        whole = np.zeros(len(rows) * size)
        for pattern, by_count in amounts.items():
            places = self._places[pattern]
            # Picking the next broker of a set changes its amount by a step.
            for count, change in enumerate(np.diff(by_count).tolist()):
                if change:
                    where = (rows + places[:, :, count] + 1).ravel()
                    whole += change * np.bincount(where, minlength=len(whole))
        return whole.reshape(-1, size).cumsum(axis=1)
