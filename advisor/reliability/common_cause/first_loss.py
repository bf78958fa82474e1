"""From the losses of each replica set to the chance that any of them loses.

Sets do not fail independently: one broker, rack or power feed holds replicas of many. So a loss is
counted at its site, the broker, rack or cluster whose failure sets it off: given such a failure,
each set there loses with its own share, independently of the others. For power lost everywhere at
once this is the copyset formula, ``1 - (1 - q)^K`` (Cidon et al., USENIX ATC 2013).

Sets that lose while brokers or racks are away that they share are weak at the same time. Those
losses are counted by what they have in common, once each
(:mod:`advisor.reliability.common_cause.coincidence`).

Partitions on the same replicas lose together, with two exceptions. What only a leader had, a tail,
belongs to its partition alone. And a broker that lags does so for the partitions that others lead:
those that it leads itself lose nothing then.
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
from numpy.typing import NDArray

from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.outage_class import CLUSTER, Losses, scope_of
from advisor.reliability.common_cause.placement import ReplicaSetClass
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.solver.first_passage import FirstLoss
from advisor.reliability.solver.generator import IntArray, sums

Vector = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SetLosses:
    """When one partition on one replica set loses something.

    Equal only to itself: whoever asks again about the same chain hands over the same one.

    Attributes
    ----------
    first : FirstLoss
        From healthy, over a year.
    per_year : mapping of mechanism to float
        Loss events a year, by the mechanism that sets them off.
    together : Losses
        Those of them that others may have part in.
    tails : mapping of mechanism to float
        Those of them that a leader has by itself.
    """

    first: FirstLoss
    per_year: Mapping[str, float]
    together: Losses = field(default_factory=dict)
    tails: Mapping[str, float] = field(default_factory=dict)


class Tails(NamedTuple):
    """Whose records are lost that only a leader had, and how often.

    Attributes
    ----------
    each_change : int
        Tails that a failure of the leader may drop. Kafka moves the leader back afterwards, which
        makes two.
    leaders : int
        The leader is one of so many of a set's replicas, from the first: with Kafka it is the
        preferred one nearly all the time.
    """

    each_change: int
    leaders: int


KAFKA_TAILS = Tails(each_change=2, leaders=1)


class AnyLoss(NamedTuple):
    """When the first of all sets loses something.

    Attributes
    ----------
    probability : float
        Of a loss within a year that starts healthy.
    mean_years : float
        Infinite if nothing can be lost.
    bounds : (float, float)
        What the probability lies between, whatever the dependence between the sets.
    """

    probability: float
    mean_years: float
    bounds: Interval


def any_loss(
    losses: Mapping[tuple[int, ...], SetLosses],
    strikes_per_year: Callable[[str], float],
    sets: Mapping[tuple[int, ...], ReplicaSetClass],
    coincident_sets: CoincidentSets | None = None,
    tails: tuple[Tails, Mapping[tuple[int, ...], ReplicaSetClass]] | None = None,
    ordered: bool = False,
) -> AnyLoss:
    """Chance in a year and mean years until at least one partition loses something.

    Parameters
    ----------
    losses : mapping of pattern to SetLosses
        What one partition on sets of a rack pattern loses.
    strikes_per_year : callable
        How often a mechanism strikes one broker, one rack or the cluster.
    sets : mapping of pattern to Alike
        Which sets there are, by `Placement.alike`.
    meetings : Meetings, optional
        Of the same sets. Without it all sets are independent, given the failure.
    tails : (Tails, mapping of pattern to Alike), optional
        What only leaders have, and the same sets by partitions and leaders; None if no record is
        acknowledged by a leader alone.
    ordered : bool
        The order of replicas decides elections.
    """
    counts = _counted(losses, sets, tails is not None, ordered)
    firsts = {pattern: losses[pattern].first for pattern in sets}
    if sum(counts.values()) == 1:
        only = max(firsts.values(), key=lambda first: first.probability)
        mean_years = only.mean_hours / HOURS_PER_YEAR
        return AnyLoss(only.probability, mean_years, (only.probability,) * 2)
    known = {pattern: HOURS_PER_YEAR / first.mean_hours for pattern, first in firsts.items()}
    most_often = math.fsum(known[pattern] * count for pattern, count in counts.items())
    if most_often == 0:
        return AnyLoss(0.0, math.inf, (0.0, 0.0))
    rate = 0.0
    if tails:
        each, led = tails
        nobody = _JointSurvival(strikes_per_year, each.each_change)
        _combine_independent({pattern: losses[pattern].tails for pattern in led}, led, nobody)
        rate = nobody.rate_of_somebody
    fluxes = {
        pattern: _of_first_losses(losses[pattern], known[pattern], bool(tails)) for pattern in sets
    }
    nobody = _JointSurvival(strikes_per_year, 1)
    apart = {pattern: found.per_year for pattern, found in fluxes.items()}
    if coincident_sets:
        apart = _combine_common_cause(fluxes, coincident_sets, nobody)
    _combine_independent(apart, sets, nobody)
    rate = min(max(rate + nobody.rate_of_somebody, *known.values()), most_often)
    least = max(first.probability for first in firsts.values())
    most = math.fsum(firsts[pattern].probability * count for pattern, count in counts.items())
    most = min(most, 1.0)
    return AnyLoss(min(max(-math.expm1(-rate), least), most), 1.0 / rate, (least, most))


def _counted(
    losses: Mapping[tuple[int, ...], SetLosses],
    sets: Mapping[tuple[int, ...], ReplicaSetClass],
    tails: bool,
    ordered: bool,
) -> dict[tuple[int, ...], int]:
    """How many may lose apart from each other: partitions on the same replicas lose together.

    But not their tails. Nor those of different leaders, none of whom lags for his own, or of
    different orders, if these decide.
    """
    if tails:
        return {pattern: alike.partitions for pattern, alike in sets.items()}
    weak = chain.from_iterable(found.together for found in losses.values())
    if ordered or any(rack.lagging for *_, racks in weak for rack in racks):
        return {pattern: alike.lists for pattern, alike in sets.items()}
    return {pattern: alike.sets for pattern, alike in sets.items()}


def _of_first_losses(found: SetLosses, known_per_year: float, tails: bool) -> SetLosses:
    """What a set loses a year but for tails, without what soon follows another loss.

    Losses come in clumps; the chain knows how much rarer the first of them is, if all that it
    counts are these.
    """
    certain = {name: flux - found.tails.get(name, 0.0) for name, flux in found.per_year.items()}
    total = math.fsum(certain.values())
    share = min(known_per_year / total, 1.0) if total > 0 and not tails else 1.0
    return SetLosses(
        found.first,
        {mechanism: max(flux, 0.0) * share for mechanism, flux in certain.items()},
        {key: flux * share for key, flux in found.together.items()},
    )


class _JointSurvival:
    """How likely it is, at each stroke, that nobody loses.

    Where somebody loses more often than a mechanism strikes the site, what exceeds that was set
    off later, by what is not shared. So more sets, or more losses, never make a loss rarer.

    Parameters
    ----------
    strikes_per_year : callable
        How often a mechanism strikes one broker, one rack or the cluster.
    chances : int
        Of losing at each stroke.
    """

    def __init__(self, strikes_per_year: Callable[[str], float], chances: int) -> None:
        self._strikes = lru_cache(maxsize=None)(strikes_per_year)
        self._chances = chances
        self._logarithms: dict[tuple[str, str, Hashable], float] = defaultdict(float)
        self._alone = 0.0

    def strikes(self, mechanism: str) -> bool:
        """Whether it strikes; otherwise it ends a spell that something else began."""
        return self._strikes(mechanism) > 0

    def add_independent(self, per_year: float) -> None:
        """Losses that nothing else has part in."""
        self._alone += per_year

    def lose(
        self, mechanism: str, scope: str, site: Hashable, per_year: float, count: int = 1
    ) -> None:
        """So many lose at a site, each so often, independently when it is struck."""
        strikes, chances = self._strikes(mechanism), self._chances
        share = per_year / strikes / chances
        unhurt = chances * math.log1p(-min(share, 1.0 - 1e-12))
        self._logarithms[mechanism, scope, site] += unhurt * count
        if share > 1.0:
            self._alone += (share - 1.0) * strikes * chances * count

    def lose_at(self, mechanism: str, scope: str, sites: IntArray, per_year: Vector) -> None:
        """The same, once at each of some sites, which may be named several times."""
        strikes, chances = self._strikes(mechanism), self._chances
        shares = per_year / strikes / chances
        unhurt = chances * np.log1p(-np.minimum(shares, 1.0 - 1e-12))
        distinct, which = np.unique(sites, return_inverse=True)
        there = np.bincount(which.ravel(), unhurt, len(distinct))
        for site, logarithm in zip(distinct.tolist(), there.tolist(), strict=True):
            self._logarithms[mechanism, scope, site] += logarithm
        self._alone += float(np.maximum(shares - 1.0, 0.0).sum()) * strikes * chances

    @property
    def rate_of_somebody(self) -> float:
        """How often, per year, at least one loses something."""
        return self._alone + math.fsum(
            -math.expm1(logarithm) * self._strikes(mechanism)
            for (mechanism, _, _), logarithm in self._logarithms.items()
        )


def _combine_common_cause(
    fluxes: Mapping[tuple[int, ...], SetLosses],
    coincident_sets: CoincidentSets,
    nobody: _JointSurvival,
) -> dict[tuple[int, ...], Mapping[str, float]]:
    """Count what several sets lose at once; return the rest of the losses."""
    shared: dict[tuple[str, str], list[Vector]] = defaultdict(list)
    rest: dict[tuple[int, ...], Mapping[str, float]] = {}
    for pattern, found in fluxes.items():
        per_year = dict(found.per_year)
        here: dict[tuple[str, str], list[tuple[float, IntArray, Vector]]] = defaultdict(list)
        for (mechanism, scope, weakness), flux in found.together.items():
            if nobody.strikes(mechanism):
                per_year[mechanism] = max(per_year[mechanism] - flux, 0.0)
                here[mechanism, scope].append(
                    (flux, *coincident_sets.met(pattern, scope, weakness))
                )
        for (mechanism, scope), parts in here.items():
            shared[mechanism, scope].append(_summed(parts))
        rest[pattern] = per_year
    for (mechanism, scope), by_pattern in shared.items():
        # Sets of several patterns may see the same event.
        often = np.zeros(max(map(len, by_pattern)))
        for amounts in by_pattern:
            often[: len(amounts)] = np.maximum(often[: len(amounts)], amounts)
        sites = coincident_sets.sites(scope)[: len(often)]
        if scope_of(mechanism) == "cluster":
            # Whoever is back, one by one, the same failure took them all.
            scope, sites = "cluster", np.full_like(sites, CLUSTER)
        nobody.lose_at(mechanism, scope, sites, often)
    return rest


def _summed(found: Sequence[tuple[float, IntArray, Vector]]) -> Vector:
    """What falls to each event, by its number, of some fluxes, their events and parts in these."""
    fluxes, events, parts = zip(*found, strict=True)
    amounts = np.repeat(fluxes, [len(numbers) for numbers in events]) * np.concatenate(parts)
    return sums(np.concatenate(events), amounts, 0)


def _combine_independent(
    fluxes: Mapping[tuple[int, ...], Mapping[str, float]],
    sets: Mapping[tuple[int, ...], ReplicaSetClass],
    nobody: _JointSurvival,
) -> None:
    """Count what each set loses by itself, where it is struck."""
    for pattern, alike in sets.items():
        for mechanism, flux in fluxes[pattern].items():
            if not nobody.strikes(mechanism):
                nobody.add_independent(flux * alike.sets)
                continue
            scope = scope_of(mechanism)
            for (struck, sites), partitions in alike.struck.items():
                if struck != scope:
                    continue
                for site, count in partitions.items():
                    nobody.lose(mechanism, scope, site, flux / sites, count)
