"""Events in which several sets lose at once, each counted once.

An event that destroys several brokers exposes several sets, and one later failure makes all of them
lose: so the exposures of sets are not added up.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.outage_class import (
    BROKER_REPAIR,
    CLUSTER,
    PICKED,
    RACK_REPAIR,
    Kind,
    OutageClass,
    scope_of,
    strikes,
    strikes_racks,
    unmarked,
)
from advisor.reliability.common_cause.picked_brokers import (
    LeaderTails,
    PickedBrokers,
    binomial,
)
from advisor.reliability.common_cause.placement import Placement, ReplicaSetClass
from advisor.reliability.common_cause.set_losses import SetLosses, Tails
from advisor.reliability.common_cause.struck_losses import StruckLosses
from advisor.reliability.common_cause.struck_racks import (
    LARGEST_PROBABILITY,
    JointSurvival,
    distinct_homes,
)
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import Scope, table
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, sums

Pattern = tuple[int, ...]
# Smaller shares of all losses are taken to be distinct, and their sum counts as an error.
_RARE = 2e-4

Exposed = tuple[Pattern, OutageClass]


class Exposure(NamedTuple):
    """Losses of the sets of one pattern in one outage class.

    per_year: of one set, in each draw or in one.
    events: number of distinct events in which these sets can lose.
    """

    pattern: Pattern
    outage_class: OutageClass
    per_year: Any
    events: float


class Destruction(NamedTuple):
    """Rates at which brokers are destroyed, and the time to replace them.

    hours: mean time until one is replaced.
    broker, rack: rates per year for one broker, and for all brokers of a rack at once.
    picked: rate per year of an event that picks brokers of the whole cluster, and the share picked.
    again: mean number of further destructions, of any broker or rack, until all are replaced.
    within_racks: some set has all its brokers in one rack: destroying one rack loses records.
    """

    hours: float = 0.0
    broker: float = 0.0
    rack: float = 0.0
    picked: tuple[tuple[float, float], ...] = ()
    again: float = 0.0
    within_racks: bool = False

    def after_picking(self, outage_class: OutageClass) -> float:
        """In how many outages of a class an event picked the destroyed brokers, at the most."""
        if not self.picked:
            return 0.0
        weights = _weights(self, outage_class)
        picked = math.fsum(weight for (_, share, _), weight in weights.items() if share > 0.0)
        return picked / math.fsum(weights.values()) if picked else 0.0

    def exposed_once(
        self, sets: CoincidentSets, scope: str, losses: Sequence[Exposure], whole: float
    ) -> list[tuple[float, float]]:
        """Rate at which any set of a class is exposed, as a share of the sum over distinct outages.

        Part of the error is that not all of these losses are the first of their outage.

        whole: approximate rate per year at which any set loses, by any event.
        Returns the share and its error, for each of the classes.
        """
        once, off = np.ones(len(losses)), np.zeros(len(losses))
        if not strikes(scope) or not self.hours or not (self.rack or self.picked):
            return list(zip(once.tolist(), off.tolist(), strict=True))
        # For each kind of destruction: number of the class, the class with racks marked, rate.
        kinds: dict[tuple[int, float], list[tuple[int, Exposed, float]]] = defaultdict(list)
        for number, (pattern, outage_class, often, events) in enumerate(losses):
            weights = _weights(self, outage_class)
            total = math.fsum(weights.values())
            for (destroyed_racks, share, marked), weight in weights.items():
                if not any(rack.destroyed for rack in marked):
                    continue
                if often * weight * events > _RARE * total * whole:
                    exposed = pattern, marked
                    kinds[destroyed_racks, share].append((number, exposed, often * weight / total))
                else:
                    off[number] += weight / total
        for (destroyed_racks, share), members in kinds.items():
            exposures = tuple(exposed for _, exposed, _ in members)
            replacement = sets.staggered_replacement(scope, exposures, by_rack=destroyed_racks > 0)
            rates = np.array([often / sets.ways(*each, scope)[0] for _, each, often in members])
            sizes = [_sizes(outage_class) for _, outage_class in exposures]
            if destroyed_racks:
                products = np.array([math.prod(each) for each in sizes])
                distinct, error = replacement.after_rack_destructions(rates, products)
            else:
                totals = np.array([sum(each) for each in sizes])
                distinct, error = replacement.after_random_destructions(rates, totals, share)
            # Twice: two kinds of outages may expose other sets before the rack is replaced.
            lost = 2.0 * (self.again + self.within_racks) if destroyed_racks else 1.0
            for number, _, often in members:
                share_of_set = often / losses[number].per_year
                once[number] -= (1.0 - distinct) * share_of_set
                off[number] += (2.0 * error + distinct * lost) * share_of_set
        return list(zip(once.tolist(), off.tolist(), strict=True))


@lru_cache(maxsize=4096)
def _weights(
    destruction: Destruction, outage_class: OutageClass
) -> Mapping[tuple[int, float, OutageClass], float]:
    """Weights of the ways in which the destroyed brokers of a class can be out together.

    By number of destroyed racks, share picked by an event, and class with the destroyed racks
    marked.
    """
    years = destruction.hours / HOURS_PER_YEAR
    out = {n: rack.brokers_out for n, rack in enumerate(outage_class) if rack.destroyed}
    ways: dict[tuple[int, float, OutageClass], float] = defaultdict(float)
    for destroyed_racks in range(len(out) + 1):
        for racks in combinations(out, destroyed_racks):
            weight = math.prod(
                destruction.rack * years / count
                if rack in racks
                else (destruction.broker * years) ** count
                for rack, count in out.items()
            )
            ways[destroyed_racks, 0.0, _marked(outage_class, racks)] += weight
    needed = sum(out.values())
    if needed:
        for often, share in destruction.picked:
            key = 0, share, _marked(outage_class, tuple(out))
            ways[key] += often * years * share**needed / needed
    return ways


@lru_cache(maxsize=4096)
def _marked(outage_class: OutageClass, racks: tuple[int, ...]) -> OutageClass:
    """The class with only these racks marked as destroyed."""
    marked = (rack._replace(destroyed=n in racks) for n, rack in enumerate(outage_class))
    return tuple(sorted(marked))


@lru_cache(maxsize=4096)
def _sizes(outage_class: OutageClass) -> tuple[int, ...]:
    return tuple(rack.brokers_out for rack in outage_class if rack.destroyed)


_WHOLE_CLUSTER = np.array([CLUSTER])
# With so many brokers or rows not every choice of them is looked at.
_MANY_BROKERS, _MOST_ROWS = 13, 1_000_000
Event = tuple[str, str, bool]
"""Mechanism, scope, and whether it finds destroyed brokers, which are out for long."""


def combine_tails(
    losses: Mapping[Pattern, Mapping[str, Vector]],
    by_leader: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
    brokers: int,
    tails: Tails,
) -> set[str]:
    """Add the tails that leaders drop where a failure takes another broker along; return which do.

    A restart falls together with that of one other broker with probability p. If the leaders of a
    broker then drop no tail with probability s, a restart drops none with
    ``s (1 - p + p mean(s))`` over the other brokers.
    """
    pairs = set()
    for mechanism in {name for by_name in losses.values() for name in by_name}:
        chance, often = survival.along(mechanism), survival.strikes(mechanism)
        if not chance.any() or not often.any() or scope_of(mechanism) != Scope.BROKER.value:
            continue
        pairs.add(mechanism)
        logs = np.zeros((brokers, len(often)))
        for pattern, members in by_leader.items():
            dropped = losses[pattern].get(mechanism, survival.nothing)
            share = dropped / (often * (1.0 + chance)) / tails.per_failure
            for (scope, spanned), (sites, counts) in members.exposure.items():
                if scope == Scope.BROKER.value:
                    none = np.log1p(-np.minimum(share / spanned, LARGEST_PROBABILITY))
                    logs[sites] += tails.per_failure * counts[:, None] * none
        none_at = np.exp(logs)
        elsewhere = (none_at.sum(axis=0) - none_at) / max(brokers - 1, 1)
        without = none_at * (1.0 - chance + chance * elsewhere)
        survival.add_independent(mechanism, often * (1.0 - without).sum(axis=0))
    return pairs


def combine_struck(
    losses: Mapping[Pattern, SetLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
) -> tuple[dict[Pattern, dict[str, Vector]], Vector]:
    """Add losses of sets all of whose racks are struck at once while nothing is out.

    Given the struck racks, sets lose independently. What they lose only because the strike destroys
    some brokers is computed for the sets of each home together, and independent between homes.

    Returns what remains of each set's losses, and how far the sum added may be off, per year.
    """
    off = survival.nothing
    for mechanism in sorted({name for of_set in losses.values() for name in of_set.struck}):
        here = {
            pattern: of_set
            for pattern, of_set in losses.items()
            if mechanism in of_set.struck and sets[pattern].sets
        }
        if here:
            off = off + _combine_homes(mechanism, here, sets, survival)
    rest = {pattern: dict(of_set.per_year) for pattern, of_set in losses.items()}
    for pattern, of_set in losses.items():
        for mechanism, struck in of_set.struck.items():
            _deduct(rest[pattern], mechanism, struck.total_per_year)
    return rest, off


def _deduct(per_year: dict[str, Vector], mechanism: str, amount: Vector) -> None:
    per_year[mechanism] = np.maximum(per_year.get(mechanism, 0.0) - amount, 0.0)


def _combine_homes(
    mechanism: str,
    losses: Mapping[Pattern, SetLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
) -> Vector:
    """Add the losses of all homes by one mechanism; return their error per year."""
    # Share of time in which nothing is out.
    healthy = np.min([1.0 - losses_of_set.out for losses_of_set in losses.values()], axis=0)
    homes, which = distinct_homes([sets[pattern].homes[0] for pattern in losses])
    often = healthy * survival.strikes(mechanism) * survival.all_of_each(mechanism, homes)
    logs, off, begin, picking = np.zeros(often.shape), survival.nothing, 0, []
    for pattern, losses_of_set in losses.items():
        rows, of_set = sets[pattern].homes
        place, struck = which[begin : begin + len(rows)], losses_of_set.struck[mechanism]
        begin += len(rows)
        chance = struck.per_year / np.where(often[place] > 0.0, often[place], np.inf)
        lasting = np.log1p(-np.minimum(chance, LARGEST_PROBABILITY))
        logs[place] += np.bincount(of_set, minlength=len(rows))[:, None] * lasting
        if len(struck.by_picked):
            picking.append((place[of_set], sets[pattern].members, struck))
    if picking:
        more, off = _log_survival_if_picked(picking, often, logs)
        # Where further racks are struck, sets of other homes may hold the same brokers.
        apart = (1.0 - survival.elsewhere_spared(mechanism, homes)) * (len(homes) > 1)
        off = off + (often * apart * np.exp(logs) * -np.expm1(more)).sum(axis=0)
        logs += more
    in_all = np.minimum(-healthy * np.expm1(logs), LARGEST_PROBABILITY)
    survival.add_log_survival_at_homes(mechanism, homes, np.log1p(-in_all))
    return off


def _log_survival_if_picked(
    picking: Sequence[tuple[IntArray, IntArray, StruckLosses]], often: Vector, logs: Vector
) -> tuple[Vector, Vector]:
    """For each home what its sets lose only because brokers of struck racks are destroyed.

    picking: number of the home and brokers of each set, a row each, and the losses of one set.
    often, logs (homes, draws): strikes a year while nothing is out, and log-survival in any case.
    Returns (homes, draws): the same for these losses, if none is lost in any case; and their error.
    """
    log_survival, off = np.zeros_like(logs), np.zeros(logs.shape[1])
    for home in np.unique(np.concatenate([homes for homes, _, _ in picking])).tolist():
        by_kind: dict[Pattern, IntArray] = {}
        chances: dict[Pattern, Vector] = {}
        for number, (homes, members, struck) in enumerate(picking):
            if (homes == home).any():
                by_kind[(number,)] = members[homes == home]
                chances[(number,)] = _chances_picked(struck, often[home], members.shape[1])
        share = picking[next(iter(by_kind))[0]][2].share
        lost = PickedBrokers(by_kind).any_loss(chances, share)
        log_survival[home] = np.log1p(-np.minimum(lost.probability, LARGEST_PROBABILITY))
        together = _if_together(by_kind, chances, share) - lost.probability
        error = lost.error + np.maximum(lost.dependence, together)
        off += often[home] * np.exp(logs[home]) * error
    return log_survival, off


def _if_together(
    sets: Mapping[Pattern, IntArray], chances: Mapping[Pattern, Vector], share: Vector
) -> Vector:
    """Probability that any set loses, if those that may at a choice of brokers lose together.

    On many brokers, or for many draws, a lower bound: that of the likeliest set.
    """
    brokers = np.unique(np.concatenate([members.ravel() for members in sets.values()]))
    rows = sum(len(members) for members in sets.values()) << min(len(brokers), _MANY_BROKERS)
    if len(brokers) >= _MANY_BROKERS or rows > _MOST_ROWS or len(share) > 1:
        alone = [(binomial(len(some) - 1, share) * some).sum(axis=0) for some in chances.values()]
        return np.asarray(np.max(alone, axis=0))
    choices = np.arange(1 << len(brokers))
    picked = (choices[:, None] >> np.arange(len(brokers))) & 1
    any_lost = np.zeros(len(choices))
    for pattern, members in sets.items():
        counts = picked[:, np.searchsorted(brokers, members)].sum(axis=2)
        any_lost = np.maximum(any_lost, chances[pattern][counts, 0].max(axis=1))
    count = picked.sum(axis=1)
    odds = share**count * (1.0 - share) ** (len(brokers) - count)
    return np.array([float(odds @ any_lost)])


def _chances_picked(struck: StruckLosses, often: Vector, replicas: int) -> Vector:
    """Probability of a loss by the number of picked brokers, if not lost in any case."""
    numbers = np.zeros((replicas + 1, len(often)))
    numbers[: len(struck.by_picked)] = struck.by_picked
    odds = often * binomial(replicas, struck.share)
    lost = struck.per_year / np.where(often > 0.0, often, np.inf)
    left = np.maximum(1.0 - lost, 1.0 - LARGEST_PROBABILITY)
    chances: Vector = np.minimum(numbers / np.where(odds > 0.0, odds, np.inf) / left, 1.0)
    return chances


def combine_picked(
    losses: Mapping[Pattern, SetLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    by_leader: Mapping[Pattern, ReplicaSetClass],
    brokers: PickedBrokers,
    survival: JointSurvival,
    picks: Mapping[str, Sequence[Pick]],
) -> Vector:
    """Add the losses of events that pick brokers by chance; return their error per year.

    Where a broker of a set was out before, as many sets are taken to lose together.
    """
    off = survival.nothing
    for mechanism in dict.fromkeys(name for lost in losses.values() for name in lost.picked):
        by_pattern = {
            p: lost.picked[mechanism] for p, lost in losses.items() if mechanism in lost.picked
        }
        dropped = {
            p: LeaderTails(
                by_pattern[p].tails, leading.members, leading.on_set, leading.leaders == 1
            )
            for p, leading in by_leader.items()
            if p in by_pattern and by_pattern[p].tails.any()
        }
        chances = {pattern: picked.chances for pattern, picked in by_pattern.items()}
        lost = brokers.any_loss_of(chances, picks[mechanism], dropped)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(lost.total > 0.0, lost.probability / lost.total, 1.0)
        whole, others = survival.nothing, survival.nothing
        for p, picked in by_pattern.items():
            whole = whole + picked.per_year * sets[p].sets
            others = others + picked.others_per_year * sets[p].sets
        for p in dropped:
            whole = whole + by_pattern[p].tails_per_year * by_leader[p].partitions
            others = others + by_pattern[p].other_tails_per_year * by_leader[p].partitions
        survival.add_at_sites(mechanism, "cluster", _WHOLE_CLUSTER, ratio * (whole + others))
        off = off + (lost.error + lost.dependence) * survival.strikes(mechanism) + ratio * others
    return off


def destructions(
    losses: Mapping[Pattern, SetLosses],
    survival: JointSurvival,
    placement: Placement,
    picks: Mapping[str, Sequence[Pick]],
) -> list[Destruction]:
    """Rates at which brokers are destroyed, alone or several at once, in each draw."""
    hours = np.max([found.replacement_hours for found in losses.values()], axis=0)
    mechanisms = table()
    ways = (mechanisms.replacement, *mechanisms.leading_to(mechanisms.replacement))
    broker, rack = (
        survival.nothing + sum(survival.strikes(way.name) for way in ways if way.scope is scope)
        for scope in (Scope.BROKER, Scope.RACK)
    )
    picking = [
        way.name for way in ways if any(way.name in found.picked for found in losses.values())
    ]
    # What destroys a whole site picks all.
    sites = [way.name for way in ways if way.scope is Scope.CLUSTER and way.share is None]
    racks = len(set(placement.rack_of.values()))
    # Until the last broker of a rack is replaced.
    last = math.fsum(1.0 / (n + 1) for n in range(math.ceil(placement.brokers / racks)))
    again = last * hours / HOURS_PER_YEAR * (placement.brokers * broker + racks * rack)
    within_racks = any(max(pattern) == 0 for pattern in losses)
    found = []
    for draw, replaced in enumerate(hours.tolist()):
        often = {name: float(survival.strikes(name)[draw]) for name in (*picking, *sites)}
        picked = {
            (often[name] * chance, share)
            for name in picking
            if often[name]
            for chance, share in picks[name][draw].ways
        } | {(often[name], 1.0) for name in sites if often[name]}
        numbers = float(broker[draw]), float(rack[draw]), tuple(picked), float(again[draw])
        found.append(Destruction(replaced, *numbers, within_racks) if replaced else Destruction())
    return found


class Unexamined(NamedTuple):
    """Losses that sets may share, taken to be independent since they hardly matter.

    most: largest share of them in the rate of any loss.
    classes: most kinds of events that are examined.
    """

    most: float
    classes: int


class CommonEvents:
    """Losses that sets share, each event counted once; what is added is deducted from ``rest``."""

    def __init__(
        self,
        losses: Mapping[Pattern, SetLosses],
        rest: dict[Pattern, dict[str, Vector]],
        sets: Mapping[Pattern, ReplicaSetClass],
        coincident_sets: CoincidentSets,
        destroyed: Sequence[Destruction],
        survival: JointSurvival,
    ) -> None:
        self._losses, self._rest, self._sets, self._survival = losses, rest, sets, survival
        self._coincident, self._destroyed = coincident_sets, destroyed

    def combine(self, unexamined: Unexamined, others_out: Vector) -> tuple[Vector, Vector]:
        """Add the losses that sets share, each event once.

        others_out (draws,): about the share of time in which any broker of the cluster is out.
        Returns how far the sum may be off, per year, and the part of it that was not examined.
        """
        for pattern, of_set in self._losses.items():
            for mechanism, picked in of_set.picked.items():
                _deduct(self._rest[pattern], mechanism, picked.total_per_year)
        examined, left_out = self._examined(unexamined)
        off, parts = left_out, defaultdict(list)
        for pattern, (mechanism, scope, outage_class), flux in examined:
            _deduct(self._rest[pattern], mechanism, flux)
            destruction = any(rack.destroyed for rack in outage_class)
            shares = self._coincident.events(pattern, scope, outage_class)[1]
            member = Exposure(pattern, outage_class, flux, float(shares.sum()))
            parts[mechanism, scope, destruction].append(member)
            off = off + flux * self._apart(pattern, scope, outage_class)
        whole = self._survival.nothing + sum(
            member.per_year * member.events for members in parts.values() for member in members
        )
        # Each outage is looked at as if nothing else were out in the cluster.
        off = off + whole * others_out + self._after_picking(parts)
        shared: dict[Event, Vector] = {}
        for event, members in parts.items():
            shared[event], more = self._per_event(event, members, whole)
            off = off + more
        off = off + self._first_of_outage(shared, parts)
        for (mechanism, scope, _), often in shared.items():
            some = np.flatnonzero(often.any(axis=1))
            if len(some):
                self._add(mechanism, scope, self._coincident.sites(scope)[some], often[some])
        return off, left_out

    def _add(self, mechanism: str, scope: str, sites: IntArray, often: Vector) -> None:
        survival, of = self._survival, scope_of(mechanism)
        if of == Scope.CLUSTER.value:
            # Brokers return one by one, but one failure struck them all.
            everywhere = np.repeat(_WHOLE_CLUSTER, len(sites))
            survival.add_at_sites(mechanism, Scope.CLUSTER.value, everywhere, often)
        elif scope == PICKED:
            racks = self._coincident.racks_of(sites[:, -1:])
            survival.add_at_homes(mechanism, racks, often)
        elif of == Scope.RACK.value and strikes_racks(scope):
            survival.add_at_homes(mechanism, sites, often)
        else:
            survival.add_at_sites(mechanism, scope, sites[:, -1], often)

    def _examined(
        self, unexamined: Unexamined
    ) -> tuple[list[tuple[Pattern, Kind, Vector]], Vector]:
        """Losses that matter if sets share them, 0 in other draws; and the sum of the others."""
        survival, held = self._survival, [*self._losses.items()]
        struck = {
            kind[0]: survival.strikes(kind[0]).any()
            for _, of_set in held
            for kind in of_set.shared.kinds
        }
        kinds = [(pattern, kind) for pattern, of_set in held for kind in of_set.shared.kinds]
        if not kinds:
            return [], survival.nothing
        flux = np.concatenate([of_set.shared.per_year for _, of_set in held if of_set.shared.kinds])
        flux = flux * np.array([struck[kind[0]] for _, kind in kinds])[:, None]
        lists = np.array([max(self._sets[pattern].lists, 1) for pattern, _ in kinds])
        whole, certain = flux * lists[:, None], survival.at_least()
        order = np.argsort(-whole, axis=0, kind="stable")
        ranked = np.take_along_axis(whole, order, axis=0)
        # Once those before it are counted, once each, and what survival knows.
        counted = certain + np.cumsum(np.take_along_axis(flux, order, axis=0), axis=0)
        beyond = np.cumsum(ranked[::-1], axis=0)[::-1] - ranked
        enough = np.argmax(beyond <= unexamined.most * counted, axis=0)
        some = np.minimum(enough + 1, unexamined.classes)
        some[whole.sum(axis=0) <= unexamined.most * certain] = 0
        examined = np.zeros(flux.shape, dtype=bool)
        np.put_along_axis(examined, order, np.arange(len(kinds))[:, None] < some, axis=0)
        flux, left_out = np.where(examined, flux, 0.0), np.where(examined, 0.0, whole).sum(axis=0)
        rows = np.flatnonzero(flux.any(axis=1)).tolist()
        return [(*kinds[row], flux[row]) for row in rows], left_out

    def _apart(self, pattern: Pattern, scope: str, outage_class: OutageClass) -> float:
        """Number of extra events because it is not known which brokers are stale alone."""
        alone = sum(rack.in_service and not rack.as_one for rack in outage_class)
        if alone - strikes(scope) < 2:
            return 0.0
        as_one = tuple(sorted(rack._replace(as_one=rack.in_service) for rack in outage_class))
        at_most, at_least = (
            float(self._coincident.events(pattern, scope, racks)[1].sum())
            for racks in (outage_class, as_one)
        )
        return max(at_most - at_least, 0.0)

    def _after_picking(self, parts: Mapping[Event, Sequence[Exposure]]) -> Vector:
        """How often what comes back after such an event is counted at each broker that does."""
        off = self._survival.nothing
        for (_, scope, _), members in parts.items():
            if scope not in (BROKER_REPAIR, RACK_REPAIR):
                continue
            for member in members:
                shares = [d.after_picking(member.outage_class) for d in self._destroyed]
                off = off + member.per_year * member.events * np.array(shares)
        return off

    def _once(
        self, event: Event, members: Sequence[Exposure], whole: Vector
    ) -> tuple[Vector, Vector]:
        """Rate at which any set of a class is exposed, as a share; its error: (members, draws)."""
        once = np.ones((len(members), len(whole)))
        off = np.zeros_like(once)
        if not event[2] or not strikes(event[1]):
            return once, off
        for draw, destroyed in enumerate(self._destroyed):
            rows = [row for row, member in enumerate(members) if member.per_year[draw] > 0.0]
            if rows:
                exposed = [
                    members[row]._replace(per_year=float(members[row].per_year[draw]))
                    for row in rows
                ]
                shares = destroyed.exposed_once(
                    self._coincident, event[1], exposed, float(whole[draw])
                )
                once[rows, draw], off[rows, draw] = np.array(shares).T
        return once, off

    def _per_event(
        self, event: Event, members: Sequence[Exposure], whole: Vector
    ) -> tuple[Vector, Vector]:
        """Loss rates of the events of one mechanism and scope, (events, draws); and their error."""
        once, error = self._once(event, members, whole)
        events = [
            self._coincident.events(some.pattern, event[1], some.outage_class) for some in members
        ]
        size = 1 + max(int(numbers.max(initial=-1)) for numbers, _ in events)
        by_pattern: dict[Pattern, list[int]] = defaultdict(list)
        off = self._survival.nothing
        for row, member in enumerate(members):
            by_pattern[member.pattern].append(row)
            off = off + member.per_year * error[row] * member.events
        per_event = np.zeros((size, len(whole)))
        for rows in by_pattern.values():
            summed = np.zeros_like(per_event)
            for row in rows:
                numbers, shares = events[row]
                summed[numbers] += shares[:, None] * (members[row].per_year * once[row])
            # Sets of several patterns may share an event.
            np.maximum(per_event, summed, out=per_event)
        return per_event, off

    def _first_of_outage(
        self, shared: dict[Event, Vector], parts: Mapping[Event, Sequence[Exposure]]
    ) -> Vector:
        """Deduct losses that follow others in the same outage; return the error of that, per year.

        A loss that needs r brokers out leaves r - 1 of them and one more failure away from another
        loss, so r times the odds before it if repairs take equally long. Only destroyed brokers are
        out for long enough to matter. The error is twice the deduction: an outage may expose
        further sets.
        """
        struck = {key: members for key, members in parts.items() if strikes(key[1]) and key[2]}
        coincident, size = self._coincident, self._coincident.outages_so_far
        nothing, off = self._survival.nothing, self._survival.nothing
        visits, whole = np.zeros((size, len(nothing))), np.zeros((size, len(nothing)))
        brokers = np.ones(size)
        before = {key: coincident.outages(key[1])[: len(shared[key])] for key in struck}
        for key, members in struck.items():
            whole += sums(before[key], shared[key], size)
            for pattern, outage_class, per_year, _ in members:
                which = coincident.outages_of_class(pattern, key[1], outage_class)
                _, outages = coincident.ways(pattern, outage_class, key[1])
                often = self._losses[pattern].visits.get(unmarked(outage_class), nothing)
                often = np.where(per_year > 0.0, often / outages, 0.0)
                visits[which] = np.maximum(visits[which], often)
                brokers[which] = 1 + sum(rack.brokers_out + rack.rack_out for rack in outage_class)
        odds = brokers[:, None] / np.where(visits > 0.0, visits, np.inf)
        for key, which in before.items():
            rates = shared[key]
            more = odds[which] * np.maximum(whole[which] - rates, 0.0)
            shared[key] = rates / (1.0 + more)
            off = off + 2.0 * (rates * (more / (1.0 + more))).sum(axis=0)
        return off
