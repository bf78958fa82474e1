"""Events in which several sets lose at once, each counted once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence

import numpy as np

from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.destroyed_brokers import Destruction, Exposure
from advisor.reliability.common_cause.joint_survival import LARGEST_PROBABILITY, JointSurvival
from advisor.reliability.common_cause.outage_class import (
    BROKER_REPAIR,
    CLUSTER,
    PICKED,
    RACK_REPAIR,
    OutageClass,
    scope_of,
    strikes,
    unmarked,
)
from advisor.reliability.common_cause.picked_brokers import LeaderTails, PickedBrokers
from advisor.reliability.common_cause.placement import Placement, ReplicaSetClass
from advisor.reliability.common_cause.set_losses import SetLosses, Tails
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import Scope, table
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, sums

Pattern = tuple[int, ...]
Event = tuple[str, str, bool]
"""Mechanism, scope, and whether it finds destroyed brokers, which are out for long."""


def combine_tails(
    losses: Mapping[Pattern, Mapping[str, float]],
    by_leader: Mapping[Pattern, ReplicaSetClass],
    survival: JointSurvival,
    along: Callable[[str], float],
    sites: Mapping[str, int],
    tails: Tails,
) -> dict[str, float]:
    """Add the tails that leaders drop where a failure takes other sites along.

    A rack that fails takes each other one along with probability p; a restart falls together with
    that of one other broker. If the leaders of a site then drop no tail with probability s, a
    failure of the first site drops none with ``s prod(1 - p + p s)`` over the other racks, or
    ``s (1 - p + p mean(s))`` over the other brokers.

    Parameters
    ----------
    losses : mapping of pattern to mapping of mechanism to float
        Tails of one partition that are dropped, per year.
    by_leader : mapping of pattern to ReplicaSetClass
        With the leaders' sites alone.
    along : callable
        The probability p of a mechanism, or 0.
    sites : mapping of scope to int
        How many brokers and racks the cluster has, with leaders or without.

    Returns
    -------
    dict of mechanism to float
        Probability that the leaders of a site that is struck drop none: the mean of all sites.
    """
    kept = {}
    for mechanism in {name for found in losses.values() for name in found}:
        chance, often, at = along(mechanism), survival.strikes(mechanism), scope_of(mechanism)
        if not chance or not often:
            continue
        others = sites[at] - 1
        struck = often * (1.0 + chance * (others if at == Scope.RACK.value else 1))
        logs: dict[Hashable, float] = defaultdict(float)
        for pattern, members in by_leader.items():
            share = losses[pattern].get(mechanism, 0.0) / struck / tails.per_failure
            for (scope, spanned), exposure in members.exposure.items():
                if scope == at:
                    for site, count in exposure.items():
                        none = math.log1p(-min(share / spanned, LARGEST_PROBABILITY))
                        logs[site] += tails.per_failure * count * none
        none_at = np.ones(max(sites[at], len(logs)))
        none_at[: len(logs)] = np.exp([*logs.values()])
        if at == Scope.RACK.value:
            none_along = 1.0 - chance + chance * none_at
            without = none_at * float(none_along.prod()) / none_along
        else:
            elsewhere = (none_at.sum() - none_at) / max(others, 1)
            without = none_at * (1.0 - chance + chance * elsewhere)
        survival.add_independent(mechanism, often * float((1.0 - without).sum()))
        kept[mechanism] = math.exp(math.fsum(logs.values()) / len(logs))
    return kept


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

    Parameters
    ----------
    by_leader : mapping of pattern to ReplicaSetClass
        Partitions whose leaders may drop tails.
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
            p: LeaderTails(np.array(by_pattern[p].tails), members.on_set, members.leaders == 1)
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
        survival.add_at_site(mechanism, "cluster", CLUSTER, ratio * (whole + others), 1)
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


def combine_common_events(
    losses: Mapping[Pattern, SetLosses],
    coincident_sets: CoincidentSets,
    destroyed: Destruction,
    survival: JointSurvival,
    others_out: float,
) -> tuple[dict[Pattern, Mapping[str, float]], float]:
    """Add the losses that sets share, each event once.

    Parameters
    ----------
    others_out : float
        About the share of time in which any broker of the cluster is out.

    Returns
    -------
    (dict of pattern to losses, float)
        What remains of each set's, and how far the sum of what is added may be off, per year.
    """
    parts: dict[Event, list[Exposure]] = defaultdict(list)
    rest: dict[Pattern, Mapping[str, float]] = {}
    off = 0.0
    for pattern, found in losses.items():
        per_year = dict(found.per_year)
        for mechanism, picked in found.picked.items():
            per_year[mechanism] = max(per_year[mechanism] - picked.total_per_year, 0.0)
        for (mechanism, scope, outage_class), flux in found.shared.items():
            if survival.strikes(mechanism):
                per_year[mechanism] = max(per_year[mechanism] - flux, 0.0)
                destruction = any(rack.destroyed for rack in outage_class)
                _, shares = coincident_sets.events(pattern, scope, outage_class)
                exposure = Exposure(pattern, outage_class, flux, float(shares.sum()))
                parts[mechanism, scope, destruction].append(exposure)
                off += flux * _apart(coincident_sets, pattern, scope, outage_class)
        rest[pattern] = per_year
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
        sites, often = coincident_sets.sites(scope)[some], often[some]
        if scope_of(mechanism) == "cluster":
            # Brokers return one by one, but one failure struck them all.
            scope, sites = "cluster", np.full_like(sites, CLUSTER)
        elif scope == PICKED:
            scope, sites = "rack", coincident_sets.racks_of(sites)
        if len(some):
            survival.add_at_sites(mechanism, scope, sites, often)
    return rest, off


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
