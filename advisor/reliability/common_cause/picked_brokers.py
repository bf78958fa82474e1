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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from advisor.reliability.common_cause.joint_survival import LARGEST_PROBABILITY
from advisor.reliability.common_cause.outage_class import TransitionArrays
from advisor.reliability.failures.mechanisms import Scope, transition
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, adds_up

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

    chances (replicas + 1,).
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

    chances: probability of a loss by how many of the set's brokers are picked, from 0 to all.
    all_picked: how often, per year, an event picks all of them.
    per_year: loss events a year with all brokers among those that can be picked.
    others_per_year: loss events a year with a broker of the set out before.
    tails: probability that the leader drops an unreplicated tail, by how many brokers are picked.
    tails_per_year, other_tails_per_year: events a year that drop one, as for the losses.
    """

    chances: tuple[float, ...]
    all_picked: float
    per_year: float
    others_per_year: float
    tails: tuple[float, ...] = ()
    tails_per_year: float = 0.0
    other_tails_per_year: float = 0.0

    @property
    def total_per_year(self) -> float:
        """All loss events a year."""
        return self.per_year + self.others_per_year

    def pick(self, events_per_year: float, known: Pick | None = None) -> Pick:
        """How events pick brokers: as is known, or each by itself, as often as all are picked."""
        if known is not None:
            return known
        replicas = len(self.chances) - 1
        return Pick(float((self.all_picked / events_per_year) ** (1.0 / replicas)))

    def scaled(self, share: float) -> PickedLosses:
        """The same for a share of the loss events."""
        return self._replace(
            per_year=self.per_year * share, others_per_year=self.others_per_year * share
        )


def binomial(brokers: int, share: float) -> Vector:
    """Probability of each number of picked brokers, from 0 to all."""
    picked, left = np.arange(brokers + 1.0), np.arange(brokers, -1.0, -1.0)
    # n! / (k! (n - k)!) = 1 / ((n + 1) B(k + 1, n - k + 1)), which does not overflow.
    log = special.xlogy(picked, share) + special.xlog1py(left, -share)
    found: Vector = np.exp(log - special.betaln(picked + 1.0, left + 1.0)) / (brokers + 1.0)
    return found


def binomials(brokers: int, shares: Vector) -> Vector:
    """`binomial` for each of several shares, shape (brokers + 1, shares)."""
    picked, left = np.arange(brokers + 1.0), np.arange(brokers, -1.0, -1.0)
    log = special.xlogy(picked[:, None], shares) + special.xlog1py(left[:, None], -shares)
    log -= special.betaln(picked + 1.0, left + 1.0)[:, None]
    found: Vector = np.exp(log) / (brokers + 1.0)
    return found


def picked_losses(
    chain: TransitionArrays,
    replicas: int,
    per_year: Vector,
    happen: Vector,
    lost: Vector,
    any_tail: Vector,
) -> dict[str, PickedLosses]:
    """Losses of one set, by mechanism that picks brokers of the whole cluster by chance.

    per_year (names,): rates.
    happen (names,): how often transitions of each name happen, per year.
    lost, any_tail (transitions,): how many of them lose and how many drop tails, per year.
    """
    numbers: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
    for number, name in enumerate(chain.rate_names):
        known = transition(name)
        if known.chosen > 0 and known.mechanism.scope is Scope.CLUSTER:
            numbers[known.mechanism.name][known.chosen, known.among] = number
    names = len(chain.rate_names)
    lose, drop = (np.bincount(chain.rate, each, names) for each in (lost, any_tail))
    found = {}
    for mechanism, by_count in numbers.items():
        whole = [by_count.get((count, replicas)) for count in range(1, replicas + 1)]
        every = [math.fsum(each[list(by_count.values())]) for each in (lose, drop)]
        if whole[-1] is None or not any(every):
            continue
        losing, dropping = (
            math.fsum(each[n] for n in whole if n is not None) for each in (lose, drop)
        )
        chances, tails = (
            (0.0, *(each[n] / happen[n] if n is not None and happen[n] else 0.0 for n in whole))
            for each in (lose, drop)
        )
        found[mechanism] = PickedLosses(
            *(chances, float(per_year[whole[-1]]), losing, max(every[0] - losing, 0.0)),
            *(tails, dropping, max(every[1] - dropping, 0.0)),
        )
    return found


class AnyPicked(NamedTuple):
    """Given an event that picks brokers by chance.

    probability: that any set loses.
    total: mean number of sets that lose, and of leaders that drop tails.
    error: standard error of the probability; 0 where all choices are enumerated.
    dependence: how much higher the probability is if sets lose at different choices of brokers, as
        far as that is possible, rather than independently of each other given the choice.
    """

    probability: float
    total: float
    error: float
    dependence: float


class PickedBrokers:
    """Choices of brokers, and how many of each set are among them.

    sets (sets, replicas): distinct sets by rack pattern.
    """

    def __init__(
        self, sets: Mapping[tuple[int, ...], IntArray | Sequence[tuple[int, ...]]]
    ) -> None:
        held = {pattern: np.array(members) for pattern, members in sets.items() if len(members)}
        ids = np.unique(np.concatenate([members.ravel() for members in held.values()]))
        self._sets = {pattern: np.searchsorted(ids, members) for pattern, members in held.items()}
        self._ids, self._brokers = ids, len(ids)
        # The two estimates of a first loss ask for the same.
        self._known: dict[tuple[tuple[tuple[tuple[int, ...], bytes], ...], float], AnyPicked] = {}

    @property
    def brokers(self) -> int:
        """Number of brokers that hold replicas."""
        return self._brokers

    def any_loss_of(
        self,
        chances: Mapping[tuple[int, ...], Vector],
        pick: Pick,
        tails: Mapping[tuple[int, ...], LeaderTails] | None = None,
    ) -> AnyPicked:
        """The same where an event may pick all brokers instead: the mean of the two ways."""
        found = [(chance, self.any_loss(chances, share, tails)) for chance, share in pick.ways]
        if len(found) == 1:
            return found[0][1]
        return AnyPicked(*(sum(chance * way[n] for chance, way in found) for n in range(4)))

    def any_loss(
        self,
        chances: Mapping[tuple[int, ...], Vector],
        share: float,
        tails: Mapping[tuple[int, ...], LeaderTails] | None = None,
    ) -> AnyPicked:
        """Whether any set loses in an event; sets lose independently given who is picked.

        chances (replicas + 1,): probability of a loss by how many of a set's brokers are picked.
        share: probability of each broker to be picked.
        tails: a leader drops a tail only if it is itself picked.
        """
        chances = {pattern: some for pattern, some in chances.items() if pattern in self._sets}
        key = tuple((pattern, some.tobytes()) for pattern, some in chances.items()), share
        if tails:
            return self._with_tails(chances, share, tails)
        if key not in self._known:
            self._known[key] = self._any_loss(chances, share)
        return self._known[key]

    def _with_tails(
        self,
        chances: Mapping[tuple[int, ...], Vector],
        share: float,
        tails: Mapping[tuple[int, ...], LeaderTails],
    ) -> AnyPicked:
        """The same with tails; on large clusters they and whole sets are taken for independent."""
        of_sets = self.any_loss(chances, share)
        total = of_sets.total + math.fsum(
            float(binomial(len(some) - 1, share) @ some) * int(partitions.sum())
            for some, _, partitions, _ in tails.values()
        )
        if self._brokers <= _ENUMERATED:
            survival = {
                p: np.log1p(-np.minimum(some, LARGEST_PROBABILITY)) for p, some in chances.items()
            }
            log_survival = self._by_choice(survival) + self._tails_by_choice(tails)
            lost = -np.expm1(np.minimum(log_survival, 0.0))
            by_size = np.bincount(self._sizes, lost) / np.bincount(self._sizes)
            probability = float(binomial(self._brokers, share) @ by_size)
            return AnyPicked(probability, total, 0.0, of_sets.dependence)
        kept = np.zeros(self._brokers)
        for some, members, partitions, first_leads in tails.values():
            leaders = 1 if first_leads else len(some) - 1
            one = float(binomial(len(some) - 1, share) @ some) / share / leaders
            log = math.log1p(-min(one, LARGEST_PROBABILITY))
            brokers = np.searchsorted(self._ids, members[:, :leaders])
            counts = np.repeat(partitions, leaders)
            kept += log * np.bincount(brokers.ravel(), counts, self._brokers)
        none = float(np.prod(1.0 - share + share * np.exp(kept)))
        both = (1.0 - none) * of_sets.probability
        probability = 1.0 - none + of_sets.probability - both
        return AnyPicked(probability, total, of_sets.error + both, of_sets.dependence)

    def _tails_by_choice(self, tails: Mapping[tuple[int, ...], LeaderTails]) -> Vector:
        """Sum of the log-probabilities that no leader drops a tail, for every choice of brokers."""
        whole = np.zeros(1 << self._brokers)
        for some, members, partitions, first_leads in tails.values():
            bits = np.int64(1) << np.searchsorted(self._ids, members)
            always, by_count = [], some
            if first_leads:
                # It is one of those picked in as many cases as any other broker.
                always, by_count = [0], some[1:] * (len(some) - 1) / np.arange(1, len(some))
            kept = np.log1p(-np.minimum(by_count, LARGEST_PROBABILITY))
            for size in range(len(kept)):
                amount = float(np.diff(kept, size)[0])
                for others in combinations(range(len(always), bits.shape[1]), size):
                    part = bits[:, [*always, *others]].sum(axis=1)
                    whole += np.bincount(part, amount * partitions, len(whole))
        return self._over_parts(whole)

    def _any_loss(self, chances: Mapping[tuple[int, ...], Vector], share: float) -> AnyPicked:
        total = 0.0
        for pattern, some in chances.items():
            odds = binomial(len(some) - 1, share)
            total += float(odds @ some) * len(self._sets[pattern])
        survival = {
            p: np.log1p(-np.minimum(some, LARGEST_PROBABILITY)) for p, some in chances.items()
        }
        if share == 1.0:
            log_survival = math.fsum(
                float(of_sets[-1]) * len(self._sets[pattern])
                for pattern, of_sets in survival.items()
            )
            probability = -math.expm1(log_survival)
            return AnyPicked(probability, total, 0.0, max(min(total, 1.0) - probability, 0.0))
        odds = binomial(self._brokers, share)
        if self._brokers <= _ENUMERATED:
            lost = -np.expm1(np.minimum(self._by_choice(survival), 0.0))
            more = np.minimum(self._by_choice(chances), 1.0) - lost
            odds = odds / np.bincount(self._sizes)
            known, more = (odds @ np.bincount(self._sizes, each) for each in (lost, more))
            return AnyPicked(float(known), total, 0.0, max(float(more), 0.0))
        return self._sampled(chances, share, total)

    def _sampled(
        self, chances: Mapping[tuple[int, ...], Vector], share: float, total: float
    ) -> AnyPicked:
        """The same from choices drawn as often as they lose sets (Karp and Luby, FOCS 1983).

        A set, and how many of its brokers are picked, is drawn by how often it loses so; the
        other brokers are picked by chance. The probability is the mean number of sets that lose,
        times the mean of what any loses to what all of them lose at such choices. Where several
        sets lose at most choices, these are drawn as they come.
        """
        if total <= 0.0:
            return AnyPicked(0.0, 0.0, 0.0, 0.0)
        draw = np.random.default_rng(_SEED)
        held = share * sum(members.size for members in self._sets.values())
        choices = min(max(int(_CELLS / held), _FEWEST), _MOST_CHOICES)
        picked = draw.random((choices, self._brokers), dtype=np.float32) < share
        if total < _MANY:
            self._pick_losers(picked, chances, share, draw)
        whole, log_survival = np.zeros(len(picked)), np.zeros(len(picked))
        by_broker = np.ascontiguousarray(picked.T).astype(np.uint8)
        for pattern, some in chances.items():
            kept = np.log1p(-np.minimum(some, LARGEST_PROBABILITY))
            for members in np.array_split(
                self._sets[pattern], self._sets[pattern].size // _AT_ONCE + 1
            ):
                counts = by_broker[members[:, 0]]
                for column in range(1, members.shape[1]):
                    counts += by_broker[members[:, column]]
                whole += some[counts].sum(axis=0)
                log_survival += kept[counts].sum(axis=0)
        lost, apart = -np.expm1(log_survival), np.minimum(whole, 1.0)
        if total < _MANY:
            lost, apart = total * lost / whole, total * apart / whole
        else:
            # How many sets lose on average is known, and tells part of how often any does.
            off = whole - whole.mean()
            slope = float(off @ lost) / max(float(off @ off), 1e-300)
            lost, apart = (each + slope * (total - whole) for each in (lost, apart))
        known = float(lost.mean())
        error = float(lost.std(ddof=1)) / math.sqrt(choices)
        dependence = max(float(apart.mean()) - known, 0.0)
        return AnyPicked(min(max(known, 0.0), total, 1.0), total, error, dependence)

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
            odds.append(binomial(replicas, share) * some * sets)
            of += [(pattern, count) for count in range(replicas + 1)]
        weights = np.concatenate(odds)
        kinds = draw.choice(len(of), len(picked), p=weights / weights.sum())
        for kind in np.unique(kinds).tolist():
            pattern, count = of[kind]
            rows, sets = np.flatnonzero(kinds == kind), self._sets[pattern]
            members = draw.permuted(sets[draw.integers(len(sets), size=len(rows))], axis=1)
            picked[rows[:, None], members] = np.arange(members.shape[1]) < count

    def any_loss_of_draws(
        self, chances: Mapping[tuple[int, ...], Vector], picks: Sequence[Pick]
    ) -> tuple[Vector, Vector]:
        """Probability that any set loses in an event, and mean number of those that do.

        chances (replicas + 1, draws).
        picks: of each draw.
        """
        every = np.array([pick.every for pick in picks])
        share = np.array([pick.share for pick in picks])
        alone = self.any_loss_of_shares(chances, share)
        if not every.any():
            return alone
        together = self.any_loss_of_shares(chances, np.ones(len(picks)))
        probability, total = (
            (1.0 - every) * one + every * other for one, other in zip(alone, together, strict=True)
        )
        return probability, total

    def any_loss_of_shares(
        self, chances: Mapping[tuple[int, ...], Vector], share: Vector
    ) -> tuple[Vector, Vector]:
        """The same where brokers are picked independently, with a probability for each draw."""
        chances = {pattern: some for pattern, some in chances.items() if pattern in self._sets}
        if self._brokers > _ENUMERATED:
            found = [
                self.any_loss({p: some[:, draw].copy() for p, some in chances.items()}, picked)
                for draw, picked in enumerate(share.tolist())
            ]
            return np.array([one.probability for one in found]), np.array(
                [one.total for one in found]
            )
        total = np.zeros(len(share))
        whole = np.zeros((1 << self._brokers, len(share)))
        for pattern, some in chances.items():
            odds = binomials(len(some) - 1, share)
            total += (odds * some).sum(axis=0) * len(self._sets[pattern])
            kept = np.log1p(-np.minimum(some, LARGEST_PROBABILITY))
            for size, (choices, sets) in enumerate(self._parts[pattern], 1):
                whole[choices] += np.diff(kept, size, axis=0)[0] * sets[:, None]
        for broker in range(self._brokers):
            halves = whole.reshape(-1, 2, 1 << broker, len(share))
            halves[:, 1] += halves[:, 0]
        lost = adds_up(self._sizes, self._brokers + 1) @ -np.expm1(np.minimum(whole, 0.0))
        by_size = lost / np.bincount(self._sizes)[:, None]
        return (binomials(self._brokers, share) * by_size).sum(axis=0), total

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
        return self._over_parts(whole)

    def _over_parts(self, whole: Vector) -> Vector:
        """Sum over all parts of each choice, in place."""
        for broker in range(self._brokers):
            halves = whole.reshape(-1, 2, 1 << broker)
            halves[:, 1] += halves[:, 0]
        return whole
