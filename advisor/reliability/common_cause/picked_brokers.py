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
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from advisor.reliability.common_cause.outage_class import TransitionArrays
from advisor.reliability.common_cause.struck_racks import LARGEST_PROBABILITY
from advisor.reliability.failures.mechanisms import Scope, transition
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, sums

BoolArray = NDArray[np.bool_]
# Up to this number of brokers every choice is enumerated (2 ** 16 of them).
_ENUMERATED = 16
# With more brokers, choices that are drawn; fewer where many brokers of many sets are picked.
_MOST_CHOICES, _FEWEST, _CELLS = 1024, 64, 4_000_000
# Replicas whose sets are looked at together.
_AT_ONCE = 12_000
# Mean number of sets that lose in an event from which on most events lose some.
_MANY = 1.0
_SEED = 20130626


class LeaderTails(NamedTuple):
    """Probability that a leader drops a tail, by how many brokers of its set are picked.

    chances (replicas + 1, draws).
    members (lists, replicas): brokers of each list.
    partitions (lists,).
    first_leads: the first broker of each list leads; otherwise any does as often.
    """

    chances: Vector
    members: IntArray
    partitions: IntArray
    first_leads: bool


class PickedLosses(NamedTuple):
    """Losses of one set by a mechanism that picks each broker by chance.

    chances (replicas + 1, draws): probability of a loss by how many of the set's brokers are
        picked, from 0 to all.
    per_year (draws,): loss events a year with all brokers among those that can be picked.
    others_per_year (draws,): loss events a year with a broker of the set out before.
    tails (replicas + 1, draws): probability that the leader drops an unreplicated tail.
    tails_per_year, other_tails_per_year (draws,): events a year that drop one, as for the losses.
    """

    chances: Vector
    per_year: Vector
    others_per_year: Vector
    tails: Vector
    tails_per_year: Vector
    other_tails_per_year: Vector

    @property
    def total_per_year(self) -> Vector:
        """All loss events a year."""
        return np.asarray(self.per_year + self.others_per_year)

    def scaled(self, share: Vector) -> PickedLosses:
        """The same for a share of the loss events."""
        return self._replace(
            per_year=self.per_year * share, others_per_year=self.others_per_year * share
        )


def binomial(brokers: int, shares: Vector) -> Vector:
    """Probability of each number of picked brokers, from 0 to all: (brokers + 1, shares)."""
    picked, left = np.arange(brokers + 1.0)[:, None], np.arange(brokers, -1.0, -1.0)[:, None]
    # n! / (k! (n - k)!) = 1 / ((n + 1) B(k + 1, n - k + 1)), which does not overflow.
    log = special.xlogy(picked, shares) + special.xlog1py(left, -shares)
    odds: Vector = np.exp(log - special.betaln(picked + 1.0, left + 1.0)) / (brokers + 1.0)
    return odds


def picked_losses(
    chain: TransitionArrays,
    lossy: IntArray,
    replicas: int,
    happen: Vector,
    lost: Vector,
    any_tail: Vector,
) -> dict[str, PickedLosses]:
    """Losses of one set, by mechanism that picks brokers of the whole cluster by chance.

    lossy: the transitions that may lose.
    happen (names, draws): how often transitions of each name happen, per year.
    lost, any_tail (lossy, draws): how many of them lose and how many drop tails, per year.
    """
    numbers: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
    for number, name in enumerate(chain.rate_names):
        entry = transition(name)
        if entry.chosen > 0 and entry.mechanism.scope is Scope.CLUSTER:
            numbers[entry.mechanism.name][entry.chosen, entry.among] = number
    rate, names = chain.rate[lossy], len(chain.rate_names)
    lose, drop = sums(rate, lost, names), sums(rate, any_tail, names)
    by_mechanism = {}
    for mechanism, by_count in numbers.items():
        whole = [by_count.get((count, replicas)) for count in range(1, replicas + 1)]
        rows = list(by_count.values())
        if whole[-1] is None or not (lose[rows].any() or drop[rows].any()):
            continue
        among_all = [number for number in whole if number is not None]
        parts = []
        for often in (lose, drop):
            chances = np.zeros((replicas + 1, often.shape[1]))
            for count, row in enumerate(whole, 1):
                if row is not None:
                    chances[count] = often[row] / np.where(happen[row] > 0.0, happen[row], np.inf)
            inside = often[among_all].sum(axis=0)
            parts += [chances, inside, np.maximum(often[rows].sum(axis=0) - inside, 0.0)]
        by_mechanism[mechanism] = PickedLosses(*parts)
    return by_mechanism


class AnyPicked(NamedTuple):
    """Given an event that picks brokers by chance; each of shape (draws,).

    probability: that any set loses.
    total: mean number of sets that lose, and of leaders that drop tails.
    error: standard error of the probability; 0 where all choices are enumerated.
    dependence: how much higher the probability is if sets lose at different choices of brokers, as
        far as that is possible, rather than independently of each other given the choice.
    """

    probability: Vector
    total: Vector
    error: Vector
    dependence: Vector


class PickedBrokers:
    """Choices of brokers, and how many of each set, by rack pattern, are among them."""

    def __init__(
        self, sets: Mapping[tuple[int, ...], IntArray | Sequence[tuple[int, ...]]]
    ) -> None:
        held = {pattern: np.array(members) for pattern, members in sets.items() if len(members)}
        ids = np.unique(np.concatenate([members.ravel() for members in held.values()]))
        self._sets = {pattern: np.searchsorted(ids, members) for pattern, members in held.items()}
        self._ids, self._brokers = ids, len(ids)
        # The two estimates of a first loss ask for the same.
        self._known: dict[tuple[tuple[tuple[tuple[int, ...], bytes], ...], bytes], AnyPicked] = {}

    @property
    def brokers(self) -> int:
        """Number of brokers that hold replicas."""
        return self._brokers

    def any_loss_of(
        self,
        chances: Mapping[tuple[int, ...], Vector],
        picks: Sequence[Pick],
        tails: Mapping[tuple[int, ...], LeaderTails],
    ) -> AnyPicked:
        """The same where an event may pick all brokers instead: the mean of the two ways."""
        every = np.array([pick.every for pick in picks])
        alone = self.any_loss(chances, np.array([pick.share for pick in picks]), tails)
        if not every.any():
            return alone
        together = self.any_loss(chances, np.ones(len(picks)), tails)
        return AnyPicked(
            *((1.0 - every) * one + every * all_ for one, all_ in zip(alone, together, strict=True))
        )

    def any_loss(
        self,
        chances: Mapping[tuple[int, ...], Vector],
        share: Vector,
        tails: Mapping[tuple[int, ...], LeaderTails] = MappingProxyType({}),
    ) -> AnyPicked:
        """Whether any set loses in an event; sets lose independently given who is picked.

        chances (replicas + 1, draws): probability of a loss by how many of a set's brokers are
            picked.
        share (draws,): probability of each broker to be picked.
        tails: a leader drops a tail only if it is itself picked.
        """
        chances = {pattern: some for pattern, some in chances.items() if pattern in self._sets}
        if tails:
            return self._with_tails(chances, share, tails)
        key = tuple((p, some.tobytes()) for p, some in chances.items()), share.tobytes()
        if key not in self._known:
            self._known[key] = self._any_loss(chances, share)
        return self._known[key]

    def _with_tails(
        self,
        chances: Mapping[tuple[int, ...], Vector],
        share: Vector,
        tails: Mapping[tuple[int, ...], LeaderTails],
    ) -> AnyPicked:
        """The same with tails; on large clusters they and whole sets are taken for independent."""
        of_sets, total = self.any_loss(chances, share), 0.0
        dropped = {
            pattern: (binomial(len(leading.chances) - 1, share) * leading.chances).sum(axis=0)
            for pattern, leading in tails.items()
        }
        total = of_sets.total + sum(
            dropped[pattern] * int(leading.partitions.sum()) for pattern, leading in tails.items()
        )
        if self._brokers <= _ENUMERATED:
            log_survival = self._by_choice(_logs(chances)) + self._tails_by_choice(tails)
            lost = -np.expm1(np.minimum(log_survival, 0.0))
            probability = self._mean(lost, share)
            return AnyPicked(probability, total, np.zeros_like(share), of_sets.dependence)
        log_kept = np.zeros((self._brokers, len(share)))
        for pattern, (some, members, partitions, first_leads) in tails.items():
            leaders = 1 if first_leads else len(some) - 1
            one = dropped[pattern] / share / leaders
            log = np.log1p(-np.minimum(one, LARGEST_PROBABILITY))
            brokers = np.searchsorted(self._ids, members[:, :leaders])
            counts = np.repeat(partitions, leaders)
            log_kept += log * np.bincount(brokers.ravel(), counts, self._brokers)[:, None]
        none = np.prod(1.0 - share + share * np.exp(log_kept), axis=0)
        both = (1.0 - none) * of_sets.probability
        probability = 1.0 - none + of_sets.probability - both
        return AnyPicked(probability, total, of_sets.error + both, of_sets.dependence)

    def _tails_by_choice(self, tails: Mapping[tuple[int, ...], LeaderTails]) -> Vector:
        """Sum of the log-probabilities that no leader drops a tail, for every choice of brokers."""
        draws = next(iter(tails.values())).chances.shape[1]
        whole = np.zeros((1 << self._brokers, draws))
        for some, members, partitions, first_leads in tails.values():
            bits = np.int64(1) << np.searchsorted(self._ids, members)
            always, by_count = [], some
            if first_leads:
                # It is one of those picked in as many cases as any other broker.
                always = [0]
                by_count = some[1:] * (len(some) - 1) / np.arange(1, len(some))[:, None]
            log_survival = np.log1p(-np.minimum(by_count, LARGEST_PROBABILITY))
            for size in range(len(log_survival)):
                amount = np.diff(log_survival, size, axis=0)[0]
                for others in combinations(range(len(always), bits.shape[1]), size):
                    choice = bits[:, [*always, *others]].sum(axis=1)
                    whole += sums(choice, amount * partitions[:, None], len(whole))
        return self._over_parts(whole)

    def _any_loss(self, chances: Mapping[tuple[int, ...], Vector], share: Vector) -> AnyPicked:
        total = np.zeros(len(share))
        for pattern, some in chances.items():
            odds = binomial(len(some) - 1, share)
            total += (odds * some).sum(axis=0) * len(self._sets[pattern])
        if self._brokers <= _ENUMERATED:
            lost = -np.expm1(np.minimum(self._by_choice(_logs(chances)), 0.0))
            any_lost = self._mean(lost, share)
            more = self._mean(np.minimum(self._by_choice(chances), 1.0) - lost, share)
            return AnyPicked(any_lost, total, np.zeros(len(share)), np.maximum(more, 0.0))
        drawn = [
            self._of_one_draw(
                {pattern: some[:, draw].copy() for pattern, some in chances.items()},
                *(float(share[draw]), float(total[draw])),
            )
            for draw in range(len(share))
        ]
        return AnyPicked(*(np.array(column) for column in zip(*drawn, strict=True)))

    def _mean(self, by_choice: Vector, share: Vector) -> Vector:
        """Mean over all choices of brokers, of an amount by choice."""
        sizes = self._sizes
        by_size = sums(sizes, by_choice, self._brokers + 1) / np.bincount(sizes)[:, None]
        mean: Vector = (binomial(self._brokers, share) * by_size).sum(axis=0)
        return mean

    def _of_one_draw(
        self, chances: Mapping[tuple[int, ...], Vector], share: float, total: float
    ) -> tuple[float, float, float, float]:
        """`AnyPicked` where there are too many choices to enumerate."""
        if share < 1.0:
            return self._sampled(chances, share, total)
        log_survival = math.fsum(
            math.log1p(-min(float(some[-1]), LARGEST_PROBABILITY)) * len(self._sets[pattern])
            for pattern, some in chances.items()
        )
        probability = -math.expm1(log_survival)
        return probability, total, 0.0, max(min(total, 1.0) - probability, 0.0)

    def _sampled(
        self, chances: Mapping[tuple[int, ...], Vector], share: float, total: float
    ) -> tuple[float, float, float, float]:
        """The same from choices drawn as often as they lose sets (Karp and Luby, FOCS 1983).

        The probability is the mean number of sets that lose, times the mean of what any loses to
        what all of them lose at such choices. Where several sets lose at most choices, these are
        drawn as they come.
        """
        if total <= 0.0:
            return 0.0, 0.0, 0.0, 0.0
        draw = np.random.default_rng(_SEED)
        held = share * sum(members.size for members in self._sets.values())
        choices = min(max(int(_CELLS / held), _FEWEST), _MOST_CHOICES)
        picked = draw.random((choices, self._brokers), dtype=np.float32) < share
        if total < _MANY:
            self._pick_losers(picked, chances, share, draw)
        whole, log_survival = np.zeros(len(picked)), np.zeros(len(picked))
        by_broker = np.ascontiguousarray(picked.T).astype(np.uint8)
        for pattern, some in chances.items():
            log_by_count = np.log1p(-np.minimum(some, LARGEST_PROBABILITY))
            for members in np.array_split(
                self._sets[pattern], self._sets[pattern].size // _AT_ONCE + 1
            ):
                counts = by_broker[members[:, 0]]
                for column in range(1, members.shape[1]):
                    counts += by_broker[members[:, column]]
                whole += some[counts].sum(axis=0)
                log_survival += log_by_count[counts].sum(axis=0)
        lost, apart = -np.expm1(log_survival), np.minimum(whole, 1.0)
        if total < _MANY:
            lost, apart = total * lost / whole, total * apart / whole
        else:
            # How many sets lose on average is known, and tells part of how often any does.
            off = whole - whole.mean()
            slope = float(off @ lost) / max(float(off @ off), 1e-300)
            lost, apart = (each + slope * (total - whole) for each in (lost, apart))
        any_lost = float(lost.mean())
        error = float(lost.std(ddof=1)) / math.sqrt(choices)
        dependence = max(float(apart.mean()) - any_lost, 0.0)
        return min(max(any_lost, 0.0), total, 1.0), total, error, dependence

    def _pick_losers(
        self,
        picked: BoolArray,
        chances: Mapping[tuple[int, ...], Vector],
        share: float,
        draw: np.random.Generator,
    ) -> None:
        """Let every choice, shape (choices, brokers), pick brokers of a set that loses."""
        odds, of = [], []
        for pattern, some in chances.items():
            sets, replicas = self._sets[pattern].shape
            odds.append(binomial(replicas, np.array([share]))[:, 0] * some * sets)
            of += [(pattern, count) for count in range(replicas + 1)]
        weights = np.concatenate(odds)
        kinds = draw.choice(len(of), len(picked), p=weights / weights.sum())
        for kind in np.unique(kinds).tolist():
            pattern, count = of[kind]
            rows, sets = np.flatnonzero(kinds == kind), self._sets[pattern]
            members = draw.permuted(sets[draw.integers(len(sets), size=len(rows))], axis=1)
            picked[rows[:, None], members] = np.arange(members.shape[1]) < count

    @cached_property
    def _sizes(self) -> IntArray:
        """Number of brokers in each choice, shape (2 ** brokers,)."""
        sizes = np.zeros(1, dtype=np.int64)
        for _ in range(self._brokers):
            sizes = np.concatenate([sizes, sizes + 1])
        return sizes

    @cached_property
    def _parts(self) -> dict[tuple[int, ...], tuple[tuple[IntArray, IntArray], ...]]:
        """Parts of sets as choices and the number of sets with each, by pattern and size."""
        choices_by_pattern = {}
        for pattern, members in self._sets.items():
            bits = np.int64(1) << members
            choices_by_pattern[pattern] = tuple(
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
        return choices_by_pattern

    def _by_choice(self, amounts: Mapping[tuple[int, ...], Vector]) -> Vector:
        """Sum over sets of an amount by how many are picked, for every choice of brokers.

        That of a set by its picked brokers is a sum over all parts of these; sums over all parts
        of a choice take one pass for each broker.
        """
        draws = max((some.shape[1] for some in amounts.values()), default=1)
        whole = np.zeros((1 << self._brokers, draws))
        for pattern, by_count in amounts.items():
            # Of each part alone: the differences of order 1, 2, ... of the amounts by count.
            for size, (choices, sets) in enumerate(self._parts[pattern], 1):
                whole[choices] += np.diff(by_count, size, axis=0)[0] * sets[:, None]
        return self._over_parts(whole)

    def _over_parts(self, whole: Vector) -> Vector:
        """Sum over all parts of each choice, in place."""
        for broker in range(self._brokers):
            halves = whole.reshape(-1, 2, 1 << broker, whole.shape[1])
            halves[:, 1] += halves[:, 0]
        return whole


def _logs(chances: Mapping[tuple[int, ...], Vector]) -> dict[tuple[int, ...], Vector]:
    """Logarithms of the probabilities of no loss."""
    return {p: np.log1p(-np.minimum(some, LARGEST_PROBABILITY)) for p, some in chances.items()}
