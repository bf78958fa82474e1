"""First loss over all replica sets, from the losses of each.

A loss is attributed to its site: the broker, rack or cluster whose failure triggers it. Given such
a failure, each set there loses independently; for a whole cluster this is the copyset formula
(Cidon et al., USENIX ATC 2013). Sets that lose while the same brokers or racks are out are counted
once (`coincidence`), and where brokers are picked by chance, by which were (`picked_brokers`).
Partitions on the same replicas lose together, but for tails and for lag.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from advisor.reliability.common_cause.common_events import (
    CommonEvents,
    Unexamined,
    combine_picked,
    combine_struck,
    combine_tails,
    destructions,
)
from advisor.reliability.common_cause.outage_class import scope_of
from advisor.reliability.common_cause.placement import Placement, ReplicaSetClass
from advisor.reliability.common_cause.set_losses import FirstOfSet, SetLosses, Tails, first_only
from advisor.reliability.common_cause.struck_racks import (
    LARGEST_PROBABILITY,
    JointSurvival,
    StrikeRates,
)
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.fault_processes import Exchangeable
from advisor.reliability.failures.mechanisms import Scope
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.solver.generator import Vector

Pattern = tuple[int, ...]

KAFKA_TAILS = Tails(per_failure=2, leaders=1)
ALL_THAT_MATTERS = Unexamined(1e-5, 512)
"""Of one topic."""
ONE_OF_MANY = Unexamined(5e-3, 64)
"""Of a topic that is audited with hundreds of others: within a hundredth or so."""


class AnyLoss(NamedTuple):
    """First loss over all replica sets.

    probability: of a loss within a year that starts healthy.
    mean_years: infinite if nothing can be lost.
    bounds: on the probability, whatever the dependence between sets: the likeliest set's, and the
        sum over all sets (union bound).
    shares: share of each mechanism in the first losses; they add up to 1, or there are none. What
        strikes several sets at once counts once here, other than in their loss events.
    error: how far the rate of first losses may be off because sets depend on each other in ways
        that are approximated, as a share of it.
    left_out: losses that were not examined for what sets share, as a share of it; part of the
        error.
    """

    probability: float
    mean_years: float
    bounds: Interval
    shares: tuple[tuple[str, float], ...] = ()
    error: float = 0.0
    left_out: float = 0.0


class AnyLosses(NamedTuple):
    """`AnyLoss` in each draw of a card: numbers of shape (draws,).

    by_mechanism: how often a year each triggers a first loss, up to a factor.
    """

    probability: Vector
    mean_years: Vector
    least: Vector
    most: Vector
    by_mechanism: Mapping[str, Vector]
    error: Vector | float = 0.0
    left_out: Vector | float = 0.0

    def of(self, draw: int) -> AnyLoss:
        """One draw."""
        often = {name: float(amounts[draw]) for name, amounts in self.by_mechanism.items()}
        whole, draws = math.fsum(often.values()), np.zeros(len(self.probability))
        return AnyLoss(
            float(self.probability[draw]),
            float(self.mean_years[draw]),
            (float(self.least[draw]), float(self.most[draw])),
            tuple((name, amount / whole) for name, amount in often.items() if amount > 0),
            float((draws + self.error)[draw]),
            float((draws + self.left_out)[draw]),
        )


def any_loss(
    losses: Mapping[Pattern, SetLosses],
    struck: StrikeRates,
    placement: Placement,
    exchangeable: Exchangeable = Exchangeable.FOLLOWERS,
    tails: Tails | None = None,
    unexamined: Unexamined = ALL_THAT_MATTERS,
) -> AnyLosses:
    """Probability in a year, and mean years, until at least one partition loses records.

    losses: of one partition on a set of each rack pattern of the placement.
    struck: the same mechanisms can happen in all draws.
    tails: None if no record is acknowledged by a leader alone.
    unexamined: losses that sets may share and that are taken for independent nevertheless.
    """
    sets = placement.replica_set_classes(exchangeable)
    alone = SetsAlone.of(losses, placement, exchangeable, tails is not None)
    if alone.sets == 1 or not alone.per_year.any():
        return alone.only(losses)
    survival = JointSurvival(struck, placement.racks, len(alone.per_year))
    by_leader = placement.replica_set_classes(exchangeable, tails.leaders) if tails else {}
    if tails:
        dropped = {pattern: losses[pattern].tails_of_sites for pattern in by_leader}
        along = combine_tails(dropped, by_leader, survival, placement.brokers, tails)
        rest_of_tails = {
            pattern: {name: often for name, often in rates_by_name.items() if name not in along}
            for pattern, rates_by_name in dropped.items()
        }
        _combine_independent(rest_of_tails, by_leader, survival, tails.per_failure)
    hazards = alone.hazards
    certain = {p: first_only(losses[p], hazards[p], tails is not None) for p in sets}
    rest, off = combine_struck(certain, sets, survival)
    brokers = placement.picked_brokers(exchangeable)
    off = off + combine_picked(certain, sets, by_leader, brokers, survival, struck.picks)
    destroyed = destructions(certain, survival, placement, struck.picks)
    common = CommonEvents(
        *(certain, rest, sets, placement.coincident_sets(exchangeable), destroyed, survival)
    )
    replicas = len(next(iter(sets)))
    out = np.max([of_set.out for of_set in certain.values()], axis=0)
    others_out = np.minimum(brokers.brokers / replicas * out, 1.0)
    off_shared, left_out = common.combine(unexamined, others_out)
    _combine_independent(rest, sets, survival)
    by_mechanism, drawn = survival.losses_per_year()
    rate = alone.possible(survival.nothing + sum(by_mechanism.values()))
    with np.errstate(divide="ignore", invalid="ignore"):
        off = (off + drawn + np.minimum(off_shared, rate)) / rate
        left_out = np.minimum(left_out / rate, 1.0)
    return alone.together(rate, by_mechanism, off)._replace(left_out=left_out)


class SetsAlone(NamedTuple):
    """First losses of the sets of a placement, each by itself.

    counts: sets that may lose independently.
    """

    firsts: Mapping[Pattern, FirstOfSet]
    counts: Mapping[Pattern, int]

    @classmethod
    def of(
        cls,
        losses: Mapping[Pattern, SetLosses],
        placement: Placement,
        exchangeable: Exchangeable,
        tails: bool,
    ) -> SetsAlone:
        """Take the sets of a placement apart; `tails` says whether any leader has some."""
        sets = placement.replica_set_classes(exchangeable)
        counts = _independent_counts(losses, sets, tails, exchangeable)
        return SetsAlone({pattern: losses[pattern].first for pattern in sets}, counts)

    @property
    def sets(self) -> int:
        """Number of sets that may lose independently."""
        return sum(self.counts.values())

    @property
    def hazards(self) -> dict[Pattern, Vector]:
        """Losses a year of one set."""
        return {
            pattern: HOURS_PER_YEAR / first.mean_hours for pattern, first in self.firsts.items()
        }

    @property
    def per_year(self) -> Vector:
        """Losses a year of all sets."""
        hazards = self.hazards
        rates = [hazards[pattern] * count for pattern, count in self.counts.items()]
        return np.asarray(np.sum(rates, axis=0))

    def possible(self, per_year: Vector | float) -> Vector:
        """The rate of first losses, between the likeliest set's and that of all sets."""
        likeliest = np.max([*self.hazards.values()], axis=0)
        return np.asarray(np.minimum(np.maximum(per_year, likeliest), self.per_year))

    def only(self, losses: Mapping[Pattern, SetLosses]) -> AnyLosses:
        """First loss of a single set, or of sets that lose nothing."""
        # Partitions of one set may have several patterns.
        chances = np.array([first.probability for first in self.firsts.values()])
        likeliest = np.argmax(chances, axis=0)
        hours = np.choose(likeliest, [first.mean_hours for first in self.firsts.values()])
        nothing, per_year = np.zeros(len(hours)), [losses[p].per_year for p in self.firsts]
        by_mechanism = {
            name: np.choose(
                likeliest, [rates_by_name.get(name, nothing) for rates_by_name in per_year]
            )
            for name in dict.fromkeys(name for rates_by_name in per_year for name in rates_by_name)
        }
        chance = chances.max(axis=0)
        return AnyLosses(chance, hours / HOURS_PER_YEAR, chance, chance, by_mechanism)

    def together(
        self, per_year: Vector, by_mechanism: Mapping[str, Vector], error: Vector | float
    ) -> AnyLosses:
        """First loss of all sets, given how often any of them loses."""
        at_least = np.max([first.probability for first in self.firsts.values()], axis=0)
        at_most, begun = np.zeros_like(at_least), np.zeros_like(at_least)
        for pattern, count in self.counts.items():
            chance = self.firsts[pattern].probability
            at_most = at_most + chance * count
            begun = begun - np.log1p(-np.minimum(chance, LARGEST_PROBABILITY)) * count
        at_most = np.minimum(at_most, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Sets start healthy, so that their losses begin a little later.
            of_year = np.minimum(begun / self.per_year, 1.0)
            lost = -np.expm1(-per_year * of_year)
            never = self.per_year == 0.0
            probability = np.where(never, 0.0, np.minimum(np.maximum(lost, at_least), at_most))
            return AnyLosses(probability, 1.0 / per_year, at_least, at_most, by_mechanism, error)


def scaled(alone: SetsAlone, nominal: AnyLoss, before: AnyLoss, after: AnyLoss) -> AnyLoss:
    """First loss on another card, by how that changes the first loss of fewer sets.

    Mechanism by mechanism: what many sets share weighs less among few.

    alone: all sets on the other card.
    before, after: of the fewer sets, on the card and on the other one.
    """
    if not alone.per_year.any():
        return AnyLoss(0.0, math.inf, (0.0, 0.0))
    often = dict(after.shares)
    whole = before.mean_years / after.mean_years if math.isfinite(before.mean_years) else 1.0
    factors = {
        name: whole * often.get(name, 0.0) / share for name, share in before.shares if share > 0
    }
    rates = {name: share * factors.get(name, whole) for name, share in nominal.shares}
    rate = alone.possible(math.fsum(rates.values()) / nominal.mean_years)
    by_mechanism = {name: np.array([amount]) for name, amount in rates.items()}
    return alone.together(rate, by_mechanism, nominal.error + after.error).of(0)


def _independent_counts(
    losses: Mapping[Pattern, SetLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    tails: bool,
    exchangeable: Exchangeable,
) -> dict[Pattern, int]:
    """How many of each pattern may lose independently: partitions on one set lose together.

    Not so their tails; nor partitions of different leaders, which do not lag for themselves, or
    of different orders where these decide elections.
    """
    if tails:
        return {pattern: members.partitions for pattern, members in sets.items()}
    kinds = (kind for of_set in losses.values() for kind in of_set.shared.kinds)
    lagging = any(rack.lagging for *_, racks in kinds for rack in racks)
    if lagging or exchangeable is Exchangeable.NONE:
        return {pattern: members.lists for pattern, members in sets.items()}
    return {pattern: members.sets for pattern, members in sets.items()}


def _combine_independent(
    losses: Mapping[Pattern, Mapping[str, Vector]],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
    trials: int = 1,
) -> None:
    """Add each set's losses at the sites it is exposed to, independent given a strike there."""
    for pattern, members in sets.items():
        for mechanism, flux in losses[pattern].items():
            if not members.sets or not flux.any():
                continue
            if not survival.strikes(mechanism).any():
                survival.add_independent(mechanism, flux * members.sets)
                continue
            scope = scope_of(mechanism)
            for (exposed_scope, spanned), (sites, counts) in members.exposure.items():
                if exposed_scope != scope:
                    continue
                at_each = flux / spanned
                if scope == Scope.RACK.value:
                    survival.add_at_homes(mechanism, sites[:, None], at_each, counts, trials)
                else:
                    survival.add_at_sites(mechanism, scope, sites, at_each, counts, trials)
