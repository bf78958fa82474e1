"""First loss over all replica sets, from the losses of each.

Sets do not fail independently: one broker, rack or power feed holds replicas of many. A loss is
therefore attributed to its site, the broker, rack or cluster whose failure triggers it. Given such
a failure, each set there loses with its own probability, independently of the others. For a power
outage of the whole cluster this is the copyset formula, ``1 - (1 - q)^K`` (Cidon et al., USENIX
ATC 2013).

Sets that lose while the same brokers or racks are out are exposed at the same time. Those losses
are attributed to the coincident outage and counted once
(:mod:`advisor.reliability.common_cause.coincidence`).

Partitions on the same replicas lose together, with two exceptions. An unreplicated tail (records
acknowledged by the leader alone) belongs to its partition. And a lagging broker lags only for the
partitions that others lead: those it leads itself lose nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.outage_class import CLUSTER, Losses, scope_of
from advisor.reliability.common_cause.placement import Exchangeable, Placement, ReplicaSetClass
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.solver.first_passage import FirstLoss
from advisor.reliability.solver.generator import IntArray, Vector, sums

# A loss at every strike would have the logarithm of 0.
_MOST = 1.0 - 1e-12


@dataclass(frozen=True, eq=False)
class SetLosses:
    """When one partition on one replica set loses records; equal only to itself.

    Attributes
    ----------
    first : FirstLoss
        Starting healthy; its probability is that of a loss within a year.
    per_year : mapping of mechanism to float
        Loss events a year, by the mechanism that triggers them.
    shared : Losses
        Those of them that other sets may share, per year.
    tails : mapping of mechanism to float
        Those of them that drop an unreplicated tail.
    """

    first: FirstLoss
    per_year: Mapping[str, float]
    shared: Losses = field(default_factory=dict)
    tails: Mapping[str, float] = field(default_factory=dict)


class Tails(NamedTuple):
    """Losses of unreplicated tails: records acknowledged by the leader alone.

    Attributes
    ----------
    per_failure : int
        Tails that a failure of the leader may drop. Kafka moves leadership back to the preferred
        leader afterwards, which makes two.
    leaders : int
        The leader is one of so many replicas from the front of the list: with Kafka, the
        preferred one nearly all the time.
    """

    per_failure: int
    leaders: int


KAFKA_TAILS = Tails(per_failure=2, leaders=1)


class AnyLoss(NamedTuple):
    """First loss over all replica sets.

    Attributes
    ----------
    probability : float
        Of a loss within a year that starts healthy.
    mean_years : float
        Infinite if nothing can be lost.
    bounds : (float, float)
        On the probability, whatever the dependence between sets: the likeliest set's, and the sum
        over all sets (union bound).
    shares : tuple of (mechanism, float)
        Share of each mechanism in the first losses; they add up to 1, or there are none. What
        strikes several sets at once counts once here, other than in their loss events.
    """

    probability: float
    mean_years: float
    bounds: Interval
    shares: tuple[tuple[str, float], ...] = ()


def any_loss(
    losses: Mapping[tuple[int, ...], SetLosses],
    strikes_per_year: Callable[[str], float],
    placement: Placement,
    exchangeable: Exchangeable = Exchangeable.FOLLOWERS,
    tails: Tails | None = None,
) -> AnyLoss:
    """Probability in a year, and mean years, until at least one partition loses records.

    Parameters
    ----------
    losses : mapping of pattern to SetLosses
        Of one partition on a set of each rack pattern of the placement.
    strikes_per_year : callable
        How often a mechanism strikes one broker, one rack or the cluster; 0 for a mechanism that
        ends outages which others began.
    tails : Tails, optional
        None if no record is acknowledged by a leader alone.
    """
    sets = placement.replica_set_classes(exchangeable)
    counts = _independent_counts(losses, sets, tails is not None, exchangeable)
    firsts = {pattern: losses[pattern].first for pattern in sets}
    if sum(counts.values()) == 1:
        # Partitions of one set may have several patterns.
        pattern, only = max(firsts.items(), key=lambda each: each[1].probability)
        mean_years = only.mean_hours / HOURS_PER_YEAR
        shares = _shares(losses[pattern].per_year)
        return AnyLoss(only.probability, mean_years, (only.probability,) * 2, shares)
    hazards = {pattern: HOURS_PER_YEAR / first.mean_hours for pattern, first in firsts.items()}
    union_rate = math.fsum(hazards[pattern] * count for pattern, count in counts.items())
    if union_rate == 0:
        return AnyLoss(0.0, math.inf, (0.0, 0.0))
    by_mechanism: dict[str, float] = defaultdict(float)
    if tails:
        by_leader = placement.replica_set_classes(exchangeable, tails.leaders)
        survival = _JointSurvival(strikes_per_year, tails.per_failure)
        _combine_independent({p: losses[p].tails for p in by_leader}, by_leader, survival)
        survival.add_losses_per_year(by_mechanism)
    certain = {p: _first_losses(losses[p], hazards[p], tails is not None) for p in sets}
    survival = _JointSurvival(strikes_per_year, 1)
    rest = _combine_common_cause(certain, placement.coincident_sets(exchangeable), survival)
    _combine_independent(rest, sets, survival)
    survival.add_losses_per_year(by_mechanism)
    rate = min(max(math.fsum(by_mechanism.values()), *hazards.values()), union_rate)
    least = max(first.probability for first in firsts.values())
    most = math.fsum(firsts[pattern].probability * count for pattern, count in counts.items())
    most = min(most, 1.0)
    probability = min(max(-math.expm1(-rate), least), most)
    return AnyLoss(probability, 1.0 / rate, (least, most), _shares(by_mechanism))


def _shares(per_year: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Share of each mechanism in the losses, given how often each triggers one."""
    whole = math.fsum(per_year.values())
    return tuple((name, often / whole) for name, often in per_year.items() if often > 0)


def _independent_counts(
    losses: Mapping[tuple[int, ...], SetLosses],
    sets: Mapping[tuple[int, ...], ReplicaSetClass],
    tails: bool,
    exchangeable: Exchangeable,
) -> dict[tuple[int, ...], int]:
    """How many of each pattern may lose independently: partitions on one set lose together.

    Not so their tails; nor partitions of different leaders, which do not lag for themselves, or
    of different orders where these decide elections.
    """
    if tails:
        return {pattern: members.partitions for pattern, members in sets.items()}
    classes = chain.from_iterable(found.shared for found in losses.values())
    lagging = any(rack.lagging for *_, racks in classes for rack in racks)
    if lagging or exchangeable is Exchangeable.NONE:
        return {pattern: members.lists for pattern, members in sets.items()}
    return {pattern: members.sets for pattern, members in sets.items()}


def _first_losses(found: SetLosses, hazard_per_year: float, tails: bool) -> SetLosses:
    """Yearly losses of a set except tails, scaled to the rate of first losses.

    Losses cluster: one is soon followed by others. The chain gives the hazard of the first of
    them, provided that it counts no tails.
    """
    certain = {name: flux - found.tails.get(name, 0.0) for name, flux in found.per_year.items()}
    total = math.fsum(certain.values())
    share = min(hazard_per_year / total, 1.0) if total > 0 and not tails else 1.0
    return SetLosses(
        found.first,
        {mechanism: max(flux, 0.0) * share for mechanism, flux in certain.items()},
        {key: flux * share for key, flux in found.shared.items()},
    )


class _JointSurvival:
    """Log-probability, per mechanism and site, that no set loses when the site is struck.

    Where a set loses more often than its site is struck, the excess was triggered later, by
    something that is not shared. So more sets, or more losses, never make the first loss rarer.

    Parameters
    ----------
    strikes_per_year : callable
        How often a mechanism strikes one broker, one rack or the cluster.
    trials : int
        Chances to lose per strike.
    """

    def __init__(self, strikes_per_year: Callable[[str], float], trials: int) -> None:
        self._strikes = lru_cache(maxsize=None)(strikes_per_year)
        self._trials = trials
        self._log_survival: dict[tuple[str, str, Hashable], float] = defaultdict(float)
        self._independent: dict[str, float] = defaultdict(float)

    def strikes(self, mechanism: str) -> bool:
        """Whether the mechanism strikes; otherwise it ends an outage that another began."""
        return self._strikes(mechanism) > 0

    def add_independent(self, mechanism: str, per_year: float) -> None:
        """Add losses that no other set shares."""
        self._independent[mechanism] += per_year

    def add_at_site(
        self, mechanism: str, scope: str, site: Hashable, per_year: float, count: int
    ) -> None:
        """Add ``count`` sets at a site, each losing so often, independently given a strike."""
        strikes, trials = self._strikes(mechanism), self._trials
        share = per_year / strikes / trials
        log_survival = trials * math.log1p(-min(share, _MOST))
        self._log_survival[mechanism, scope, site] += log_survival * count
        if share > 1.0:
            self.add_independent(mechanism, (share - 1.0) * strikes * trials * count)

    def add_at_sites(self, mechanism: str, scope: str, sites: IntArray, per_year: Vector) -> None:
        """Add one loss at each of several sites, which may repeat."""
        strikes, trials = self._strikes(mechanism), self._trials
        shares = per_year / strikes / trials
        log_survival = trials * np.log1p(-np.minimum(shares, _MOST))
        distinct, which = np.unique(sites, return_inverse=True)
        totals = np.bincount(which.ravel(), log_survival, len(distinct))
        for site, total in zip(distinct.tolist(), totals.tolist(), strict=True):
            self._log_survival[mechanism, scope, site] += total
        excess = float(np.maximum(shares - 1.0, 0.0).sum()) * strikes * trials
        self.add_independent(mechanism, excess)

    def add_losses_per_year(self, by_mechanism: dict[str, float]) -> None:
        """Add to each mechanism how often, per year, at least one set loses by it."""
        parts = defaultdict(list)
        for mechanism, often in self._independent.items():
            parts[mechanism].append(often)
        for (mechanism, _, _), log_survival in self._log_survival.items():
            parts[mechanism].append(-math.expm1(log_survival) * self._strikes(mechanism))
        for mechanism, amounts in parts.items():
            by_mechanism[mechanism] += math.fsum(amounts)


def _combine_common_cause(
    losses: Mapping[tuple[int, ...], SetLosses],
    coincident_sets: CoincidentSets,
    survival: _JointSurvival,
) -> dict[tuple[int, ...], Mapping[str, float]]:
    """Add the losses that sets share, each event once; return what remains of each set's."""
    shared: dict[tuple[str, str], list[Vector]] = defaultdict(list)
    rest: dict[tuple[int, ...], Mapping[str, float]] = {}
    for pattern, found in losses.items():
        per_year = dict(found.per_year)
        here: dict[tuple[str, str], list[tuple[float, IntArray, Vector]]] = defaultdict(list)
        for (mechanism, scope, outage_class), flux in found.shared.items():
            if survival.strikes(mechanism):
                per_year[mechanism] = max(per_year[mechanism] - flux, 0.0)
                events = coincident_sets.events(pattern, scope, outage_class)
                here[mechanism, scope].append((flux, *events))
        for (mechanism, scope), parts in here.items():
            shared[mechanism, scope].append(_per_event(parts))
        rest[pattern] = per_year
    for (mechanism, scope), by_pattern in shared.items():
        # Sets of several patterns may share an event.
        often = np.zeros(max(map(len, by_pattern)))
        for amounts in by_pattern:
            often[: len(amounts)] = np.maximum(often[: len(amounts)], amounts)
        sites = coincident_sets.sites(scope)[: len(often)]
        if scope_of(mechanism) == "cluster":
            # Brokers return one by one, but one failure struck them all.
            scope, sites = "cluster", np.full_like(sites, CLUSTER)
        survival.add_at_sites(mechanism, scope, sites, often)
    return rest


def _per_event(parts: Sequence[tuple[float, IntArray, Vector]]) -> Vector:
    """Total by event number of losses, each given with its events and a set's share in them."""
    fluxes, events, shares = zip(*parts, strict=True)
    amounts = np.repeat(fluxes, [len(numbers) for numbers in events]) * np.concatenate(shares)
    return sums(np.concatenate(events), amounts, 0)


def _combine_independent(
    losses: Mapping[tuple[int, ...], Mapping[str, float]],
    sets: Mapping[tuple[int, ...], ReplicaSetClass],
    survival: _JointSurvival,
) -> None:
    """Add each set's losses at the sites it is exposed to, independent given a strike there."""
    for pattern, members in sets.items():
        for mechanism, flux in losses[pattern].items():
            if not survival.strikes(mechanism):
                survival.add_independent(mechanism, flux * members.sets)
                continue
            scope = scope_of(mechanism)
            for (exposed_scope, spanned), exposure in members.exposure.items():
                if exposed_scope == scope:
                    for site, count in exposure.items():
                        survival.add_at_site(mechanism, scope, site, flux / spanned, count)
