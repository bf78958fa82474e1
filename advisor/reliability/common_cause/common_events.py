"""Events in which several sets lose at once, each counted once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.destroyed_brokers import Destruction, Exposure
from advisor.reliability.common_cause.joint_survival import (
    LARGEST_PROBABILITY,
    JointSurvival,
    distinct_homes,
)
from advisor.reliability.common_cause.outage_class import (
    BROKER_REPAIR,
    CLUSTER,
    PICKED,
    RACK_REPAIR,
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
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import Scope, table
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, sums

Pattern = tuple[int, ...]
_WHOLE_CLUSTER = np.array([CLUSTER])
# With so many brokers or rows not every choice of them is looked at.
_MANY_BROKERS, _MOST_ROWS = 13, 1_000_000
Event = tuple[str, str, bool]
"""Mechanism, scope, and whether it finds destroyed brokers, which are out for long."""


def combine_tails(
    losses: Mapping[Pattern, Mapping[str, float]],
    by_leader: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
    along: Callable[[str], float],
    brokers: int,
    tails: Tails,
) -> set[str]:
    """Add the tails that leaders drop where a failure takes another broker along.

    A restart falls together with that of one other broker with probability p. If the leaders of a
    broker then drop no tail with probability s, a restart drops none with
    ``s (1 - p + p mean(s))`` over the other brokers.

    losses: tails of one partition that are dropped, per year.
    by_leader: with the leaders' sites alone.
    along: the probability p of a mechanism, or 0.
    brokers: of the cluster, with leaders or without.
    Returns the mechanisms that take another broker along.
    """
    pairs = set()
    for mechanism in {name for found in losses.values() for name in found}:
        chance, often = along(mechanism), survival.strikes(mechanism)
        if not chance or not often or scope_of(mechanism) != Scope.BROKER.value:
            continue
        pairs.add(mechanism)
        logs = np.zeros(brokers)
        for pattern, members in by_leader.items():
            share = (
                losses[pattern].get(mechanism, 0.0) / (often * (1.0 + chance)) / tails.per_failure
            )
            for (scope, spanned), (sites, counts) in members.exposure.items():
                if scope == Scope.BROKER.value:
                    none = math.log1p(-min(share / spanned, LARGEST_PROBABILITY))
                    logs[sites] += tails.per_failure * counts * none
        none_at = np.exp(logs)
        elsewhere = (none_at.sum() - none_at) / max(brokers - 1, 1)
        without = none_at * (1.0 - chance + chance * elsewhere)
        survival.add_independent(mechanism, often * float((1.0 - without).sum()))
    return pairs


def combine_struck(
    losses: Mapping[Pattern, SetLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
) -> tuple[dict[Pattern, dict[str, float]], float]:
    """Add losses of sets all of whose racks are struck at once while nothing is out.

    Nothing is out for all sets of the same racks, as far as racks are what fails; given that, and
    the struck racks, sets lose independently. What they lose only because the strike destroys some
    brokers follows from which: it is computed for the sets of each home together, and taken to be
    independent between homes.

    Returns what remains of each set's losses, and how far the sum of what is added may be off, per
        year.
    """
    off = 0.0
    for mechanism in sorted({name for found in losses.values() for name in found.struck}):
        here = {
            pattern: found.struck[mechanism]
            for pattern, found in losses.items()
            if mechanism in found.struck and sets[pattern].sets
        }
        if here:
            healthy = min(1.0 - losses[pattern].out for pattern in here)
            off += _combine_homes(mechanism, here, sets, healthy, survival)
    return {pattern: _without_struck(found) for pattern, found in losses.items()}, off


def _without_struck(losses: SetLosses) -> dict[str, float]:
    per_year = dict(losses.per_year)
    for mechanism, struck in losses.struck.items():
        per_year[mechanism] = max(per_year.get(mechanism, 0.0) - struck.total_per_year, 0.0)
    return per_year


def _combine_homes(
    mechanism: str,
    struck: Mapping[Pattern, StruckLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    healthy: float,
    survival: JointSurvival,
) -> float:
    """Add the losses of all homes by one mechanism; return their error per year.

    healthy: share of time in which nothing is out.
    """
    racks, strikes = survival.struck_racks(mechanism), survival.strikes(mechanism)
    homes, which = distinct_homes([sets[pattern].homes[0] for pattern in struck])
    often = healthy * strikes * racks.all_of_each(homes)
    first = np.cumsum([0, *(len(sets[pattern].homes[0]) for pattern in struck)])
    logs, off, picking = np.zeros(len(homes)), 0.0, []
    for begin, (pattern, losses) in zip(first.tolist(), struck.items(), strict=False):
        rows, of_set = sets[pattern].homes
        place = which[begin : begin + len(rows)]
        chance = np.minimum(losses.per_year / often[place], LARGEST_PROBABILITY)
        logs[place] += np.bincount(of_set, minlength=len(rows)) * np.log1p(-chance)
        if losses.by_picked:
            picking.append((place[of_set], sets[pattern].members, losses))
    if picking:
        more, off = _log_survival_if_picked(picking, often, logs)
        # Where further racks are struck, sets of other homes may hold the same brokers.
        alone = (1.0 - racks.spreads) ** np.maximum(racks.racks - (homes >= 0).sum(axis=1), 0)
        apart = (1.0 - alone) * (len(homes) > 1)
        off += float((often * apart * np.exp(logs)) @ -np.expm1(more))
        logs += more
    in_all = np.minimum(-healthy * np.expm1(logs), LARGEST_PROBABILITY)
    survival.add_log_survival_at_homes(mechanism, homes, np.log1p(-in_all))
    return off


def _log_survival_if_picked(
    picking: Sequence[tuple[IntArray, IntArray, StruckLosses]], often: Vector, logs: Vector
) -> tuple[Vector, float]:
    """For each home what its sets lose only because brokers of struck racks are destroyed.

    picking: number of the home and brokers of each set, a row each, and the losses of one set.
    often (homes,): how often the racks are struck while nothing is out, per year.
    logs (homes,): logarithm of the probability that no set loses in any case.
    Returns (homes,): the same for these losses, if none is lost in any case; and their error per
        year.
    """
    kind = np.repeat(np.arange(len(picking)), [len(homes) for homes, _, _ in picking])
    which, every = (np.concatenate([given[n] for given in picking]) for n in (0, 1))
    found, off = np.zeros(len(logs)), 0.0
    for home in np.unique(which).tolist():
        here = which == home
        by_kind: dict[Pattern, IntArray] = {
            (n,): every[here & (kind == n)] for n in np.unique(kind[here]).tolist()
        }
        struck = [picking[key[0]][2] for key in by_kind]
        chances: dict[Pattern, Vector] = {
            key: _chances_picked(losses, float(often[home]), every.shape[1])
            for key, losses in zip(by_kind, struck, strict=True)
        }
        lost = PickedBrokers(by_kind).any_loss(chances, struck[0].share)
        found[home] = math.log1p(-min(lost.probability, LARGEST_PROBABILITY))
        together = max(lost.probability - _if_together(by_kind, chances, struck[0].share), 0.0)
        error = lost.error + max(lost.dependence, together)
        off += float(often[home] * np.exp(logs[home])) * error
    return found, off


def _if_together(
    sets: Mapping[Pattern, IntArray], chances: Mapping[Pattern, Vector], share: float
) -> float:
    """Probability that any set loses, if those that may at a choice of brokers lose together.

    Sets may lose by which of their brokers are picked, not only by how many: two that share this
    broker lose together. On many brokers, a lower bound: that of the likeliest set.
    """
    brokers = np.unique(np.concatenate([members.ravel() for members in sets.values()]))
    rows = sum(len(members) for members in sets.values()) << min(len(brokers), _MANY_BROKERS)
    if len(brokers) >= _MANY_BROKERS or rows > _MOST_ROWS:
        return max(float(binomial(len(some) - 1, share) @ some) for some in chances.values())
    choices = np.arange(1 << len(brokers))
    picked = (choices[:, None] >> np.arange(len(brokers))) & 1
    most = np.zeros(len(choices))
    for pattern, members in sets.items():
        counts = picked[:, np.searchsorted(brokers, members)].sum(axis=2)
        most = np.maximum(most, chances[pattern][counts].max(axis=1))
    count = picked.sum(axis=1)
    return float((share**count * (1.0 - share) ** (len(brokers) - count)) @ most)


def _chances_picked(struck: StruckLosses, often: float, replicas: int) -> Vector:
    """Probability of a loss by the number of picked brokers, if not lost in any case."""
    numbers = np.zeros(replicas + 1)
    numbers[: len(struck.by_picked)] = struck.by_picked
    odds = often * binomial(replicas, struck.share)
    left = max(1.0 - struck.per_year / often, 1.0 - LARGEST_PROBABILITY)
    found: Vector = np.minimum(numbers / np.where(odds > 0.0, odds, np.inf) / left, 1.0)
    return found


def combine_picked(
    losses: Mapping[Pattern, SetLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    by_leader: Mapping[Pattern, ReplicaSetClass],
    brokers: PickedBrokers,
    survival: JointSurvival,
    picks: Mapping[str, Pick],
) -> float:
    """Add the losses of events that pick brokers by chance; return their error per year.

    Where a broker of a set was out before, as many sets are taken to lose together.

    by_leader: partitions whose leaders may drop tails.
    """
    off = 0.0
    for mechanism in {name for found in losses.values() for name in found.picked}:
        by_pattern = {
            p: each.picked[mechanism] for p, each in losses.items() if mechanism in each.picked
        }
        by_chance = next(iter(by_pattern.values()))
        pick = by_chance.pick(survival.strikes(mechanism), picks.get(mechanism))
        chances = {pattern: np.array(picked.chances) for pattern, picked in by_pattern.items()}
        dropped = {
            p: LeaderTails(
                np.array(by_pattern[p].tails), members.members, members.on_set, members.leaders == 1
            )
            for p, members in by_leader.items()
            if p in by_pattern and any(by_pattern[p].tails)
        }
        found = brokers.any_loss_of(chances, pick, dropped)
        ratio = found.probability / found.total if found.total else 1.0
        whole = math.fsum(each.per_year * sets[p].sets for p, each in by_pattern.items())
        others = math.fsum(each.others_per_year * sets[p].sets for p, each in by_pattern.items())
        whole += math.fsum(by_pattern[p].tails_per_year * by_leader[p].partitions for p in dropped)
        others += math.fsum(
            by_pattern[p].other_tails_per_year * by_leader[p].partitions for p in dropped
        )
        survival.add_at_sites(mechanism, "cluster", _WHOLE_CLUSTER, ratio * (whole + others))
        off += (found.error + found.dependence) * survival.strikes(mechanism) + ratio * others
    return off


def destruction(
    losses: Mapping[Pattern, SetLosses],
    survival: JointSurvival,
    placement: Placement,
    picks: Mapping[str, Pick],
) -> Destruction:
    """Rates at which brokers are destroyed, alone or several at once."""
    hours = max(found.replacement_hours for found in losses.values())
    if not hours:
        return Destruction()
    known = table()
    ways = (known.replacement, *known.leading_to(known.replacement))
    per_year = {
        scope: math.fsum(survival.strikes(w.name) for w in ways if w.scope is scope)
        for scope in (Scope.BROKER, Scope.RACK)
    }
    picked = {
        (often * chance, share)
        for found in losses.values()
        for way in ways
        if way.name in found.picked and (often := survival.strikes(way.name))
        for chance, share in found.picked[way.name].pick(often, picks.get(way.name)).ways
    }
    # What destroys a whole site picks all.
    sites = (way for way in ways if way.scope is Scope.CLUSTER and way.share is None)
    picked |= {(often, 1.0) for site in sites if (often := survival.strikes(site.name))}
    broker, rack = per_year[Scope.BROKER], per_year[Scope.RACK]
    racks = len(set(placement.rack_of.values()))
    # Until the last broker of a rack is replaced.
    last = math.fsum(1.0 / (n + 1) for n in range(math.ceil(placement.brokers / racks)))
    years = last * hours / HOURS_PER_YEAR
    again = years * (placement.brokers * broker + racks * rack)
    within_racks = any(max(pattern) == 0 for pattern in losses)
    return Destruction(hours, broker, rack, tuple(picked), again, within_racks)


class Unexamined(NamedTuple):
    """Losses that sets may share, taken to be independent since they hardly matter.

    most: largest share of them in the rate of any loss.
    classes: most kinds of events that are examined.
    """

    most: float
    classes: int


class CommonEvents(NamedTuple):
    """What is left when events in which sets lose together are counted once.

    rest: what remains of each set's losses a year.
    off: how far the sum of what was added may be off, per year.
    left_out: losses a year of all sets that were not examined, which are a part of ``off``.
    """

    rest: dict[Pattern, Mapping[str, float]]
    off: float
    left_out: float


_Kind = tuple[Pattern, str, str, OutageClass]
"""Pattern, mechanism, scope and outage class of losses that sets may share."""


def combine_common_events(
    losses: Mapping[Pattern, SetLosses],
    rest: Mapping[Pattern, dict[str, float]],
    sets: Mapping[Pattern, ReplicaSetClass],
    coincident_sets: CoincidentSets,
    destroyed: Destruction,
    survival: JointSurvival,
    others_out: float,
    unexamined: Unexamined,
) -> CommonEvents:
    """Add the losses that sets share, each event once.

    rest: losses a year that are not yet added; what is added here is deducted.
    others_out: about the share of time in which any broker of the cluster is out.
    """
    parts: dict[Event, list[Exposure]] = defaultdict(list)
    for pattern, found in losses.items():
        per_year = rest[pattern]
        for mechanism, picked in found.picked.items():
            per_year[mechanism] = max(per_year[mechanism] - picked.total_per_year, 0.0)
    examined, left_out = _examined(losses, sets, survival, unexamined)
    off = left_out
    for (pattern, mechanism, scope, outage_class), flux in examined.items():
        rest[pattern][mechanism] = max(rest[pattern][mechanism] - flux, 0.0)
        destruction = any(rack.destroyed for rack in outage_class)
        _, shares = coincident_sets.events(pattern, scope, outage_class)
        exposure = Exposure(pattern, outage_class, flux, float(shares.sum()))
        parts[mechanism, scope, destruction].append(exposure)
        off += flux * _apart(coincident_sets, pattern, scope, outage_class)
    shared: dict[Event, Vector] = {}
    whole = math.fsum(each.per_year * each.events for some in parts.values() for each in some)
    # Each outage is looked at as if nothing else were out in the cluster.
    off += whole * others_out
    if destroyed.picked:
        # What comes back after such an event is counted at each broker that does.
        off += math.fsum(
            each.per_year * each.events * destroyed.after_picking(each.outage_class)
            for (_, scope, _), members in parts.items()
            for each in members
            if scope in (BROKER_REPAIR, RACK_REPAIR)
        )
    for event, members in parts.items():
        once = destroyed.exposed_once(coincident_sets, event[1], members, whole)
        shared[event], more = _per_event(members, once, event[1], coincident_sets)
        off += more
    off += _first_of_outage(shared, losses, parts, coincident_sets)
    for (mechanism, scope, _), often in shared.items():
        some = np.flatnonzero(often)
        if not len(some):
            continue
        sites, often = coincident_sets.sites(scope)[some], often[some]
        if scope_of(mechanism) == Scope.CLUSTER.value:
            # Brokers return one by one, but one failure struck them all.
            everywhere = np.repeat(_WHOLE_CLUSTER, len(some))
            survival.add_at_sites(mechanism, Scope.CLUSTER.value, everywhere, often)
        elif scope == PICKED:
            racks = coincident_sets.racks_of(sites[:, -1:])
            survival.add_at_homes(mechanism, racks, often)
        elif scope_of(mechanism) == Scope.RACK.value and strikes_racks(scope):
            survival.add_at_homes(mechanism, sites, often)
        else:
            survival.add_at_sites(mechanism, scope, sites[:, -1], often)
    return CommonEvents(dict(rest), off, left_out)


def _examined(
    losses: Mapping[Pattern, SetLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
    unexamined: Unexamined,
) -> tuple[dict[_Kind, float], float]:
    """Losses that matter if sets share them, and the sum over all sets of the others, per year."""
    held = [(pattern, found.sharable) for pattern, found in losses.items() if found.shared]
    if not held:
        return {}, 0.0
    sharable = [found for _, found in held]
    flux = np.concatenate(
        [
            found.per_year
            * np.array([survival.strikes(m) > 0.0 for m in found.mechanisms])[found.mechanism]
            for found in sharable
        ]
    )
    lists = [max(sets[pattern].lists, 1) for pattern, _ in held]
    first = np.cumsum([0, *(len(found.kinds) for found in sharable)])
    whole = flux * np.repeat(lists, np.diff(first))
    order = np.argsort(-whole, kind="stable")
    # Once those before it are counted, once each, and what survival knows.
    known = survival.at_least() + np.cumsum(flux[order])
    beyond = np.cumsum(whole[order][::-1])[::-1] - whole[order]
    enough = np.flatnonzero(beyond <= unexamined.most * known)
    some = min(int(enough[0]) + 1, unexamined.classes)
    if whole.sum() <= unexamined.most * survival.at_least():
        some = 0
    left_out = float(whole[order[some:]].sum())
    examined = {}
    # In the order of the chains.
    for place in np.sort(order[:some]).tolist():
        number = int(np.searchsorted(first, place, side="right")) - 1
        if flux[place] > 0.0:
            kind = sharable[number].kinds[place - int(first[number])]
            examined[(held[number][0], *kind)] = float(flux[place])
    return examined, left_out


def _apart(
    coincident_sets: CoincidentSets, pattern: Pattern, scope: str, outage_class: OutageClass
) -> float:
    """Number of extra events because it is not known which brokers are stale alone."""
    alone = sum(rack.in_service and not rack.as_one for rack in outage_class)
    if alone - strikes(scope) < 2:
        return 0.0
    as_one = tuple(sorted(rack._replace(as_one=rack.in_service) for rack in outage_class))
    most, least = (
        float(coincident_sets.events(pattern, scope, one)[1].sum())
        for one in (outage_class, as_one)
    )
    return max(most - least, 0.0)


def _per_event(
    losses: Sequence[Exposure],
    once: Sequence[tuple[float, float]],
    scope: str,
    coincident_sets: CoincidentSets,
) -> tuple[Vector, float]:
    """Loss rates of the events of one mechanism and scope, by number; and the sum's error."""
    by_pattern: dict[Pattern, list[tuple[Vector, IntArray]]] = defaultdict(list)
    off = 0.0
    for (pattern, outage_class, flux, events), (share, error) in zip(losses, once, strict=True):
        numbers, shares = coincident_sets.events(pattern, scope, outage_class)
        off += flux * error * events
        by_pattern[pattern].append((flux * share * shares, numbers))
    summed = []
    for members in by_pattern.values():
        amounts, numbers = (np.concatenate(some) for some in zip(*members, strict=True))
        summed.append(sums(numbers, amounts, 0))
    # Sets of several patterns may share an event.
    most = np.zeros(max(map(len, summed)))
    for amounts in summed:
        most[: len(amounts)] = np.maximum(most[: len(amounts)], amounts)
    return most, off


def _first_of_outage(
    shared: dict[Event, Vector],
    losses: Mapping[Pattern, SetLosses],
    parts: Mapping[Event, Sequence[Exposure]],
    coincident_sets: CoincidentSets,
) -> float:
    """Deduct losses that follow others in the same outage; return the error of that, per year.

    One outage exposes several sets, each to a different next failure. A loss that needs r brokers
    out leaves r - 1 of them and one more failure away from another loss, so r times the odds before
    it if repairs take equally long. Only destroyed brokers are out for long enough to matter. The
    error is twice the deduction: an outage may also hold brokers that expose further sets.
    """
    struck = {key: members for key, members in parts.items() if strikes(key[1]) and key[2]}
    some = {key: np.flatnonzero(shared[key]) for key in struck}
    before = {key: coincident_sets.outages(key[1])[some[key]] for key in struck}
    size = coincident_sets.outages_so_far
    visits, whole, brokers = np.zeros(size), np.zeros(size), np.ones(size)
    for key, members in struck.items():
        whole += np.bincount(before[key], shared[key][some[key]], size)
        for pattern, outage_class, *_ in members:
            which = coincident_sets.outages_of_class(pattern, key[1], outage_class)
            _, outages = coincident_sets.ways(pattern, outage_class, key[1])
            often = losses[pattern].visits.get(unmarked(outage_class), 0.0) / outages
            visits[which] = np.maximum(visits[which], often)
            brokers[which] = 1 + sum(rack.brokers_out + rack.rack_out for rack in outage_class)
    odds = brokers / np.where(visits > 0, visits, np.inf)
    off = 0.0
    for key, which in before.items():
        rates = shared[key][some[key]]
        more = odds[which] * np.maximum(whole[which] - rates, 0.0)
        shared[key][some[key]] = rates / (1.0 + more)
        off += 2.0 * float(rates @ (more / (1.0 + more)))
    return off
