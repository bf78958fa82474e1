"""First loss over all replica sets, from the losses of each.

Sets do not fail independently: one broker, rack or power feed holds replicas of many. A loss is
therefore attributed to its site, the broker, rack or cluster whose failure triggers it. Given such
a failure, each set there loses with its own probability, independently of the others. For a power
outage of the whole cluster this is the copyset formula, ``1 - (1 - q)^K`` (Cidon et al., USENIX
ATC 2013).

Sets that lose while the same brokers or racks are out are exposed at the same time. Those losses
are attributed to the coincident outage and counted once
(:mod:`advisor.reliability.common_cause.coincidence`). Where an event picks brokers by chance, each
set's loss follows from which were picked (:mod:`advisor.reliability.common_cause.picked_brokers`).

Partitions on the same replicas lose together, with two exceptions. An unreplicated tail (records
acknowledged by the leader alone) belongs to its partition. And a lagging broker lags only for the
partitions that others lead: those it leads itself lose nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from advisor.reliability.common_cause.common_events import (
    Unexamined,
    combine_common_events,
    combine_picked,
    combine_struck,
    combine_tails,
    destruction,
)
from advisor.reliability.common_cause.joint_survival import LARGEST_PROBABILITY, JointSurvival
from advisor.reliability.common_cause.outage_class import scope_of
from advisor.reliability.common_cause.placement import Placement, ReplicaSetClass
from advisor.reliability.common_cause.set_losses import SetLosses, Tails, first_only
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.fault_environment import Exchangeable
from advisor.reliability.failures.mechanisms import Scope
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.solver.first_passage import FirstLoss

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


def any_loss(
    losses: Mapping[Pattern, SetLosses],
    strikes_per_year: Callable[[str], float],
    placement: Placement,
    exchangeable: Exchangeable = Exchangeable.FOLLOWERS,
    tails: Tails | None = None,
    along: Callable[[str], float] = lambda _mechanism: 0.0,
    unexamined: Unexamined = ALL_THAT_MATTERS,
    picks: Mapping[str, Pick] = MappingProxyType({}),
) -> AnyLoss:
    """Probability in a year, and mean years, until at least one partition loses records.

    losses: of one partition on a set of each rack pattern of the placement.
    strikes_per_year: how often a mechanism strikes one broker, one rack or the cluster; 0 for a
        mechanism that ends outages which others began.
    tails: None if no record is acknowledged by a leader alone.
    along: probability that what strikes a rack takes each other one along, or a restart another
        one.
    unexamined: losses that sets may share and that are taken for independent nevertheless.
    picks: how events pick brokers by chance; left out, each broker independently.
    """
    sets = placement.replica_set_classes(exchangeable)
    alone = SetsAlone.of(losses, placement, exchangeable, tails is not None)
    if alone.sets == 1 or alone.per_year == 0:
        return alone.only(losses)
    survival = JointSurvival(strikes_per_year, placement.racks, along)
    by_leader = placement.replica_set_classes(exchangeable, tails.leaders) if tails else {}
    if tails:
        dropped = {pattern: losses[pattern].tails_of_sites for pattern in by_leader}
        kept = combine_tails(dropped, by_leader, survival, along, placement.brokers, tails)
        rest_of_tails = {p: _without(found, kept) for p, found in dropped.items()}
        _combine_independent(rest_of_tails, by_leader, survival, tails.per_failure)
    hazards = alone.hazards
    certain = {p: first_only(losses[p], hazards[p], tails is not None) for p in sets}
    rest, off = combine_struck(certain, sets, survival)
    brokers = placement.picked_brokers(exchangeable)
    off += combine_picked(certain, sets, by_leader, brokers, survival, picks)
    destroyed = destruction(certain, survival, placement, picks)
    coincident_sets = placement.coincident_sets(exchangeable)
    replicas = len(next(iter(sets)))
    others_out = brokers.brokers / replicas * max(found.out for found in certain.values())
    found = combine_common_events(
        *(certain, rest, sets, coincident_sets, destroyed, survival),
        min(others_out, 1.0),
        unexamined,
    )
    _combine_independent(found.rest, sets, survival)
    by_mechanism, drawn = survival.losses_per_year()
    rate = alone.possible(math.fsum(by_mechanism.values()))
    off = (off + drawn + min(found.off, rate)) / rate
    together = alone.together(rate, _shares(by_mechanism), off)
    return together._replace(left_out=min(found.left_out / rate, 1.0))


class SetsAlone(NamedTuple):
    """First losses of the sets of a placement, each by itself.

    counts: sets that may lose independently.
    """

    firsts: Mapping[Pattern, FirstLoss]
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
    def hazards(self) -> dict[Pattern, float]:
        """Losses a year of one set."""
        return {
            pattern: HOURS_PER_YEAR / first.mean_hours for pattern, first in self.firsts.items()
        }

    @property
    def per_year(self) -> float:
        """Losses a year of all sets."""
        hazards = self.hazards
        return math.fsum(hazards[pattern] * count for pattern, count in self.counts.items())

    def possible(self, per_year: float) -> float:
        """The rate of first losses, between the likeliest set's and that of all sets."""
        return min(max(per_year, *self.hazards.values()), self.per_year)

    def only(self, losses: Mapping[Pattern, SetLosses]) -> AnyLoss:
        """First loss of a single set, or of sets that lose nothing."""
        # Partitions of one set may have several patterns.
        pattern, first = max(self.firsts.items(), key=lambda each: each[1].probability)
        if self.per_year == 0:
            return AnyLoss(0.0, math.inf, (0.0, 0.0))
        shares = _shares(losses[pattern].per_year)
        years = first.mean_hours / HOURS_PER_YEAR
        return AnyLoss(first.probability, years, (first.probability,) * 2, shares)

    def together(
        self, per_year: float, shares: tuple[tuple[str, float], ...], error: float
    ) -> AnyLoss:
        """First loss of all sets, given how often any of them loses."""
        least = max(first.probability for first in self.firsts.values())
        most = math.fsum(self.firsts[p].probability * count for p, count in self.counts.items())
        most = min(most, 1.0)
        # Sets start healthy, so that their losses begin a little later.
        begun = -math.fsum(
            math.log1p(-min(self.firsts[p].probability, LARGEST_PROBABILITY)) * n
            for p, n in self.counts.items()
        )
        of_year = min(begun / self.per_year, 1.0)
        probability = min(max(-math.expm1(-per_year * of_year), least), most)
        return AnyLoss(probability, 1.0 / per_year, (least, most), shares, error)


def scaled(alone: SetsAlone, nominal: AnyLoss, before: AnyLoss, after: AnyLoss) -> AnyLoss:
    """First loss on another card, by how that changes the first loss of fewer sets.

    Mechanism by mechanism: what many sets share weighs less among few.

    alone: all sets on the other card.
    before, after: of the fewer sets, on the card and on the other one.
    """
    if not alone.per_year:
        return AnyLoss(0.0, math.inf, (0.0, 0.0))
    often = dict(after.shares)
    whole = before.mean_years / after.mean_years if math.isfinite(before.mean_years) else 1.0
    factors = {
        name: whole * often.get(name, 0.0) / share for name, share in before.shares if share > 0
    }
    rates = {name: share * factors.get(name, whole) for name, share in nominal.shares}
    factor = math.fsum(rates.values())
    rate = alone.possible(factor / nominal.mean_years)
    return alone.together(rate, _shares(rates), nominal.error + after.error)


def _without(per_year: Mapping[str, float], names: Collection[str]) -> dict[str, float]:
    return {name: often for name, often in per_year.items() if name not in names}


def _shares(per_year: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Share of each mechanism in the losses, given how often each triggers one."""
    whole = math.fsum(per_year.values())
    return tuple((name, often / whole) for name, often in per_year.items() if often > 0)


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
    classes = chain.from_iterable(found.shared for found in losses.values())
    lagging = any(rack.lagging for *_, racks in classes for rack in racks)
    if lagging or exchangeable is Exchangeable.NONE:
        return {pattern: members.lists for pattern, members in sets.items()}
    return {pattern: members.sets for pattern, members in sets.items()}


def _combine_independent(
    losses: Mapping[Pattern, Mapping[str, float]],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
    trials: int = 1,
) -> None:
    """Add each set's losses at the sites it is exposed to, independent given a strike there."""
    for pattern, members in sets.items():
        for mechanism, flux in losses[pattern].items():
            if not members.sets or not flux:
                continue
            if not survival.strikes(mechanism):
                survival.add_independent(mechanism, flux * members.sets)
                continue
            scope = scope_of(mechanism)
            for (exposed_scope, spanned), (sites, counts) in members.exposure.items():
                if exposed_scope != scope:
                    continue
                each = flux / spanned
                if scope == Scope.RACK.value:
                    survival.add_at_homes(mechanism, sites[:, None], each, counts, trials)
                else:
                    survival.add_at_sites(mechanism, scope, sites, each, counts, trials)
