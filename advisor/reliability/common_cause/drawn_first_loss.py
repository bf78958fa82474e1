"""First loss over all replica sets under many cards at once, as `first_loss` combines them.

Which events several sets share follows from their places; how often each happens has a column for
each draw. What is only an error of the combination is not computed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.common_cause.common_events import Event, Unexamined
from advisor.reliability.common_cause.destroyed_brokers import Destruction, Exposure
from advisor.reliability.common_cause.drawn_losses import DrawnLosses, DrawnStruck
from advisor.reliability.common_cause.joint_survival import (
    LARGEST_PROBABILITY,
    distinct_homes,
)
from advisor.reliability.common_cause.outage_class import (
    CLUSTER,
    PICKED,
    OutageClass,
    scope_of,
    strikes,
    strikes_racks,
    unmarked,
)
from advisor.reliability.common_cause.picked_brokers import PickedBrokers, binomials
from advisor.reliability.common_cause.placement import Placement, ReplicaSetClass
from advisor.reliability.common_cause.struck_racks import StruckRacks
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.fault_environment import Exchangeable
from advisor.reliability.failures.mechanisms import Scope, table
from advisor.reliability.failures.transition_rates import Pick
from advisor.reliability.solver.generator import IntArray, Vector, adds_up

Pattern = tuple[int, ...]
_WHOLE_CLUSTER = np.array([CLUSTER])


class DrawnStrikes(NamedTuple):
    """What strikes a cluster in each draw.

    per_year, along (draws,): how often each strikes one broker, one rack or the cluster, and the
        probability that it takes others along.
    picks: how its events pick brokers by chance, in each draw.
    """

    per_year: Mapping[str, Vector]
    along: Mapping[str, Vector]
    picks: Mapping[str, Sequence[Pick]]

    @property
    def same_events(self) -> NDArray[np.bool_]:
        """Draws in which the same can happen as in the first."""
        same = np.bool_(True)
        for amounts in (*self.per_year.values(), *self.along.values()):
            same = same & ((amounts > 0.0) == (amounts[0] > 0.0))
        return np.asarray(same)


class _Survival:
    """`JointSurvival` of each draw."""

    def __init__(self, struck: DrawnStrikes, racks: int, draws: int) -> None:
        self._struck, self._racks, self._none = struck, racks, np.zeros(draws)
        self._at_sites: dict[tuple[str, str], list[tuple[IntArray, Vector]]] = defaultdict(list)
        self._at_homes: dict[str, list[tuple[IntArray, Vector]]] = defaultdict(list)
        self._independent: dict[str, Vector] = {}

    def strikes(self, mechanism: str) -> Vector:
        """Rate of a mechanism; 0 if it ends an outage that another began."""
        return self._struck.per_year.get(mechanism, self._none)

    def spreads(self, mechanism: str) -> Vector:
        """Probability that it takes others along."""
        return self._struck.along.get(mechanism, self._none)

    def all_of_each(self, mechanism: str, homes: IntArray) -> Vector:
        """`StruckRacks.all_of_each`, shape (homes, draws)."""
        spreads, sizes = self.spreads(mechanism), np.arange(1, homes.shape[1] + 1)[:, None]
        elsewhere = np.maximum(self._racks - sizes, 0)
        factors = spreads ** (sizes - 1) * (sizes + elsewhere * spreads)
        found: Vector = factors[(homes >= 0).sum(axis=1) - 1]
        return found

    def add_independent(self, mechanism: str, per_year: Vector) -> None:
        """Add losses that no other set shares."""
        self._independent[mechanism] = self._independent.get(mechanism, self._none) + per_year

    def add_at_sites(
        self,
        mechanism: str,
        scope: str,
        sites: IntArray,
        per_year: Vector,
        counts: IntArray | int = 1,
        trials: int = 1,
    ) -> None:
        """Add losses at each site, of one set; ``per_year`` of shape (sites, draws) or (draws,)."""
        often = self.strikes(mechanism)
        logs = self._log_survival(mechanism, len(sites), often, per_year, counts, trials)
        self._at_sites[mechanism, scope].append((sites, logs))

    def add_at_homes(
        self,
        mechanism: str,
        homes: IntArray,
        per_year: Vector,
        counts: IntArray | int = 1,
        trials: int = 1,
    ) -> None:
        """The same for losses when all racks of a home are struck."""
        often = self.strikes(mechanism) * self.all_of_each(mechanism, homes)
        logs = self._log_survival(mechanism, len(homes), often, per_year, counts, trials)
        self._at_homes[mechanism].append((homes, logs))

    def add_log_survival_at_homes(self, mechanism: str, homes: IntArray, logs: Vector) -> None:
        """Add the logarithm of the probability of no loss when all racks of a home are struck."""
        self._at_homes[mechanism].append((homes, logs))

    def _log_survival(
        self,
        mechanism: str,
        places: int,
        often: Vector,
        per_year: Vector,
        counts: IntArray | int,
        trials: int,
    ) -> Vector:
        many = np.broadcast_to(counts, places)[:, None]
        shares = per_year / np.where(often > 0.0, often, np.inf) / trials
        later = np.maximum(per_year - np.minimum(shares, 1.0) * often * trials, 0.0) * many
        excess = later.sum(axis=0)
        if (excess > 0.0).any():
            self.add_independent(mechanism, excess)
        found: Vector = np.log1p(-np.minimum(shares, LARGEST_PROBABILITY)) * (many * trials)
        return found

    def at_least(self) -> Vector:
        """Lower bound of the rate at which at least one set loses."""
        found = self._none + sum(self._independent.values())
        for (mechanism, _), added in self._at_sites.items():
            most = np.max([-np.expm1(logs.min(axis=0)) for _, logs in added], axis=0)
            found = found + self.strikes(mechanism) * most
        for mechanism, at_homes in self._at_homes.items():
            most = np.max(
                [
                    (self.all_of_each(mechanism, homes) * -np.expm1(logs)).max(axis=0)
                    for homes, logs in at_homes
                ],
                axis=0,
            )
            found = found + self.strikes(mechanism) * most
        return found

    def losses_per_year(self) -> Vector:
        """Rate per year at which at least one set loses."""
        found = self._none + sum(self._independent.values())
        for (mechanism, _), added in self._at_sites.items():
            sites, logs = (np.concatenate(columns) for columns in zip(*added, strict=True))
            first = int(sites.min())
            lost = -np.expm1(adds_up(sites - first, int(sites.max()) - first + 1) @ logs)
            found = found + lost.sum(axis=0) * self.strikes(mechanism)
        for mechanism, at_homes in self._at_homes.items():
            homes, which = distinct_homes([homes for homes, _ in at_homes])
            logs = adds_up(which, len(homes)) @ np.concatenate([logs for _, logs in at_homes])
            rates = [
                StruckRacks(self._racks, spreads).any_loss(homes, column).rate
                for spreads, column in zip(self.spreads(mechanism).tolist(), logs.T, strict=True)
            ]
            found = found + np.array(rates) * self.strikes(mechanism)
        return found


def first_loss_of_draws(
    losses: Mapping[Pattern, DrawnLosses],
    struck: DrawnStrikes,
    placement: Placement,
    exchangeable: Exchangeable,
    unexamined: Unexamined,
) -> tuple[Vector, Vector]:
    """Probability in a year, and mean years, until at least one partition loses records.

    losses: no leader drops tails.
    struck: the same for all draws.
    """
    sets = placement.replica_set_classes(exchangeable)
    counts = _independent_counts(losses, sets, exchangeable)
    with np.errstate(divide="ignore"):
        hazards = {pattern: HOURS_PER_YEAR / losses[pattern].mean_hours for pattern in sets}
    alone = sum(hazards[pattern] * count for pattern, count in counts.items())
    likeliest = np.max([losses[pattern].probability for pattern in sets], axis=0)
    if sum(counts.values()) == 1:
        slowest = np.argmax([losses[pattern].probability for pattern in sets], axis=0)
        hours = np.choose(slowest, [losses[pattern].mean_hours for pattern in sets])
        return likeliest, hours / HOURS_PER_YEAR
    survival = _Survival(struck, placement.racks, len(likeliest))
    certain = {p: _scaled(losses[p], hazards[p]) for p in sets}
    rest = _combine_struck(certain, sets, survival)
    _combine_picked(certain, sets, placement.picked_brokers(exchangeable), survival, struck)
    shared = _CommonEvents(certain, sets, placement, exchangeable, survival, struck)
    shared.combine(rest, unexamined)
    for pattern, members in sets.items():
        for mechanism, flux in rest[pattern].items():
            _combine_independent(mechanism, flux, members, survival)
    rate = np.minimum(
        np.maximum(survival.losses_per_year(), np.max([*hazards.values()], axis=0)), alone
    )
    begun, most = np.zeros_like(rate), np.zeros_like(rate)
    for pattern, count in counts.items():
        chance = losses[pattern].probability
        most = most + chance * count
        begun = begun - np.log1p(-np.minimum(chance, LARGEST_PROBABILITY)) * count
    with np.errstate(divide="ignore", invalid="ignore"):
        of_year = np.minimum(begun / alone, 1.0)
        lost = -np.expm1(-rate * of_year)
        probability = np.minimum(np.maximum(lost, likeliest), np.minimum(most, 1.0))
        never = alone == 0.0
        return np.where(never, 0.0, probability), np.where(never, np.inf, 1.0 / rate)


def _independent_counts(
    losses: Mapping[Pattern, DrawnLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    exchangeable: Exchangeable,
) -> dict[Pattern, int]:
    """How many of each pattern may lose independently; see `first_loss`."""
    kinds = (kind for found in losses.values() for kind in found.shared)
    lagging = any(rack.lagging for *_, racks in kinds for rack in racks)
    by_list = lagging or exchangeable is Exchangeable.NONE
    return {p: members.lists if by_list else members.sets for p, members in sets.items()}


def _scaled(losses: DrawnLosses, hazard: Vector) -> DrawnLosses:
    """Yearly losses, scaled to the rate of first losses."""
    total = hazard * 0.0 + sum(losses.per_year.values())
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(total > 0.0, np.minimum(hazard / total, 1.0), 1.0)
    return losses._replace(
        per_year={name: often * share for name, often in losses.per_year.items()},
        shared={kind: often * share for kind, often in losses.shared.items()},
        struck={
            name: part._replace(per_year=part.per_year * share, by_picked=part.by_picked * share)
            for name, part in losses.struck.items()
        },
        picked={
            name: part._replace(
                per_year=part.per_year * share, others_per_year=part.others_per_year * share
            )
            for name, part in losses.picked.items()
        },
    )


def _combine_struck(
    losses: Mapping[Pattern, DrawnLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: _Survival,
) -> dict[Pattern, dict[str, Vector]]:
    """Add losses of sets all of whose racks are struck; return what remains."""
    for mechanism in sorted({name for found in losses.values() for name in found.struck}):
        here = {
            pattern: found
            for pattern, found in losses.items()
            if mechanism in found.struck and sets[pattern].sets
        }
        if here:
            _combine_homes(mechanism, here, sets, survival)
    rest = {pattern: dict(found.per_year) for pattern, found in losses.items()}
    for pattern, found in losses.items():
        for mechanism, struck in found.struck.items():
            _deduct(rest[pattern], mechanism, struck.per_year + struck.by_picked.sum(axis=0))
    return rest


def _deduct(per_year: dict[str, Vector], mechanism: str, amount: Vector) -> None:
    per_year[mechanism] = np.maximum(per_year.get(mechanism, 0.0) - amount, 0.0)


def _combine_homes(
    mechanism: str,
    losses: Mapping[Pattern, DrawnLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    survival: _Survival,
) -> None:
    """Add the losses of all homes by one mechanism."""
    healthy = np.min([1.0 - found.out for found in losses.values()], axis=0)
    homes, which = distinct_homes([sets[pattern].homes[0] for pattern in losses])
    often = healthy * survival.strikes(mechanism) * survival.all_of_each(mechanism, homes)
    logs, begin, picking = np.zeros(often.shape), 0, []
    for pattern, found in losses.items():
        rows, of_set = sets[pattern].homes
        place, struck = which[begin : begin + len(rows)], found.struck[mechanism]
        begin += len(rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            chance = np.where(often[place] > 0.0, struck.per_year / often[place], 0.0)
        lasting = np.log1p(-np.minimum(chance, LARGEST_PROBABILITY))
        logs[place] += np.bincount(of_set, minlength=len(rows))[:, None] * lasting
        if len(struck.by_picked):
            picking.append((place[of_set], sets[pattern].members, struck))
    for home in np.unique(np.concatenate([place for place, *_ in picking] or [which[:0]])):
        by_kind: dict[Pattern, IntArray] = {}
        chances: dict[Pattern, Vector] = {}
        for number, (place, members, struck) in enumerate(picking):
            if (place == home).any():
                by_kind[(number,)] = members[place == home]
                chances[(number,)] = _chances_picked(struck, often[home], members.shape[1])
        share = picking[next(iter(by_kind))[0]][2].share
        lost = PickedBrokers(by_kind).any_loss_of_shares(chances, share)[0]
        logs[home] += np.log1p(-np.minimum(lost, LARGEST_PROBABILITY))
    in_all = np.minimum(-healthy * np.expm1(logs), LARGEST_PROBABILITY)
    survival.add_log_survival_at_homes(mechanism, homes, np.log1p(-in_all))


def _chances_picked(struck: DrawnStruck, often: Vector, replicas: int) -> Vector:
    """Probability of a loss by the number of picked brokers, if not lost in any case."""
    numbers = np.zeros((replicas + 1, len(often)))
    numbers[: len(struck.by_picked)] = struck.by_picked
    odds = often * binomials(replicas, struck.share)
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.maximum(1.0 - struck.per_year / often, 1.0 - LARGEST_PROBABILITY)
    found: Vector = np.minimum(numbers / np.where(odds > 0.0, odds, np.inf) / left, 1.0)
    return found


def _combine_picked(
    losses: Mapping[Pattern, DrawnLosses],
    sets: Mapping[Pattern, ReplicaSetClass],
    brokers: PickedBrokers,
    survival: _Survival,
    struck: DrawnStrikes,
) -> None:
    """Add the losses of events that pick brokers by chance."""
    for mechanism in {name: None for found in losses.values() for name in found.picked}:
        by_pattern = {
            p: found.picked[mechanism] for p, found in losses.items() if mechanism in found.picked
        }
        chances = {pattern: part.chances for pattern, part in by_pattern.items()}
        probability, total = brokers.any_loss_of_draws(chances, struck.picks[mechanism])
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(total > 0.0, probability / total, 1.0)
        whole = sum(
            (part.per_year + part.others_per_year) * sets[p].sets for p, part in by_pattern.items()
        )
        survival.add_at_sites(mechanism, "cluster", _WHOLE_CLUSTER, ratio * whole)


def _combine_independent(
    mechanism: str, flux: Vector, members: ReplicaSetClass, survival: _Survival
) -> None:
    """Add each set's losses at the sites it is exposed to, independent given a strike there."""
    if not members.sets or not flux.any():
        return
    if not survival.strikes(mechanism).any():
        survival.add_independent(mechanism, flux * members.sets)
        return
    scope = scope_of(mechanism)
    for (exposed_scope, spanned), (sites, counts) in members.exposure.items():
        if exposed_scope != scope:
            continue
        if scope == Scope.RACK.value:
            survival.add_at_homes(mechanism, sites[:, None], flux / spanned, counts)
        else:
            survival.add_at_sites(mechanism, scope, sites, flux / spanned, counts)


class _Shared(NamedTuple):
    """Losses of the sets of one pattern in one outage class, in each draw."""

    pattern: Pattern
    outage_class: OutageClass
    per_year: Vector


class _CommonEvents:
    """`combine_common_events` of each draw."""

    def __init__(
        self,
        losses: Mapping[Pattern, DrawnLosses],
        sets: Mapping[Pattern, ReplicaSetClass],
        placement: Placement,
        exchangeable: Exchangeable,
        survival: _Survival,
        struck: DrawnStrikes,
    ) -> None:
        self._losses, self._sets, self._survival = losses, sets, survival
        self._coincident = placement.coincident_sets(exchangeable)
        self._destroyed = _destructions(losses, survival, placement, struck)

    def combine(self, rest: dict[Pattern, dict[str, Vector]], unexamined: Unexamined) -> None:
        """Add the losses that sets share, each event once; deduct them from the rest."""
        for pattern, found in self._losses.items():
            for mechanism, picked in found.picked.items():
                _deduct(rest[pattern], mechanism, picked.per_year + picked.others_per_year)
        parts: dict[Event, list[_Shared]] = defaultdict(list)
        for pattern, (mechanism, scope, outage_class), flux in self._examined(unexamined):
            _deduct(rest[pattern], mechanism, flux)
            destruction = any(rack.destroyed for rack in outage_class)
            parts[mechanism, scope, destruction].append(_Shared(pattern, outage_class, flux))
        whole = sum(
            member.per_year * self._events(event, member)[1].sum()
            for event, members in parts.items()
            for member in members
        )
        shared = {
            event: self._per_event(event, members, self._once(event, members, whole))
            for event, members in parts.items()
        }
        self._first_of_outage(shared, parts)
        for (mechanism, scope, _), often in shared.items():
            some = np.flatnonzero(often.any(axis=1))
            if len(some):
                self._add(mechanism, scope, self._coincident.sites(scope)[some], often[some])

    def _events(self, event: Event, member: _Shared) -> tuple[IntArray, Vector]:
        return self._coincident.events(member.pattern, event[1], member.outage_class)

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
    ) -> list[tuple[Pattern, tuple[str, str, OutageClass], Vector]]:
        """Losses that matter if sets share them; 0 in the draws in which they do not."""
        kinds = [
            (pattern, kind, often if self._survival.strikes(kind[0]).any() else 0.0 * often)
            for pattern, found in self._losses.items()
            for kind, often in found.shared.items()
        ]
        if not kinds:
            return []
        flux = np.array([often for *_, often in kinds])
        lists = np.array([max(self._sets[pattern].lists, 1) for pattern, *_ in kinds])
        whole, known = flux * lists[:, None], self._survival.at_least()
        order = np.argsort(-whole, axis=0, kind="stable")
        ranked = np.take_along_axis(whole, order, axis=0)
        counted = known + np.cumsum(np.take_along_axis(flux, order, axis=0), axis=0)
        beyond = np.cumsum(ranked[::-1], axis=0)[::-1] - ranked
        enough = np.argmax(beyond <= unexamined.most * counted, axis=0)
        some = np.minimum(enough + 1, unexamined.classes)
        some[whole.sum(axis=0) <= unexamined.most * known] = 0
        kept = np.zeros(flux.shape, dtype=bool)
        np.put_along_axis(kept, order, np.arange(len(kinds))[:, None] < some, axis=0)
        flux = np.where(kept, flux, 0.0)
        return [
            (pattern, kind, flux[row])
            for row, (pattern, kind, _) in enumerate(kinds)
            if flux[row].any()
        ]

    def _once(self, event: Event, members: Sequence[_Shared], whole: Vector) -> Vector:
        """Rate at which any set of a class is exposed, as a share; shape (members, draws)."""
        once = np.ones((len(members), len(whole)))
        if not event[2] or not strikes(event[1]):
            return once
        events = [float(self._events(event, member)[1].sum()) for member in members]
        for draw, destroyed in enumerate(self._destroyed):
            rows = [row for row, member in enumerate(members) if member.per_year[draw] > 0.0]
            if not rows:
                continue
            exposed = [
                Exposure(*members[row][:2], float(members[row].per_year[draw]), events[row])
                for row in rows
            ]
            found = destroyed.exposed_once(self._coincident, event[1], exposed, float(whole[draw]))
            once[rows, draw] = [share for share, _ in found]
        return once

    def _per_event(self, event: Event, members: Sequence[_Shared], once: Vector) -> Vector:
        """Loss rates of the events of one mechanism and scope, shape (events, draws)."""
        by_pattern: dict[Pattern, list[int]] = defaultdict(list)
        for row, member in enumerate(members):
            by_pattern[member.pattern].append(row)
        found = [self._events(event, member) for member in members]
        size = 1 + max(int(numbers.max(initial=-1)) for numbers, _ in found)
        most = np.zeros((size, once.shape[1]))
        for rows in by_pattern.values():
            summed = np.zeros_like(most)
            for row in rows:
                numbers, shares = found[row]
                summed[numbers] += shares[:, None] * (members[row].per_year * once[row])
            # Sets of several patterns may share an event.
            np.maximum(most, summed, out=most)
        return most

    def _first_of_outage(
        self, shared: dict[Event, Vector], parts: Mapping[Event, Sequence[_Shared]]
    ) -> None:
        """Deduct losses that follow others in the same outage."""
        struck = {key: members for key, members in parts.items() if strikes(key[1]) and key[2]}
        if not struck:
            return
        coincident, size = self._coincident, self._coincident.outages_so_far
        draws = next(iter(shared.values())).shape[1]
        visits, whole = np.zeros((size, draws)), np.zeros((size, draws))
        brokers = np.ones(size)
        before = {key: coincident.outages(key[1])[: len(shared[key])] for key in struck}
        for key, members in struck.items():
            whole += adds_up(before[key], size) @ shared[key]
            for pattern, outage_class, per_year in members:
                which = coincident.outages_of_class(pattern, key[1], outage_class)
                _, outages = coincident.ways(pattern, outage_class, key[1])
                often = self._losses[pattern].visits.get(unmarked(outage_class), np.zeros(draws))
                often = np.where(per_year > 0.0, often / outages, 0.0)
                visits[which] = np.maximum(visits[which], often)
                brokers[which] = 1 + sum(rack.brokers_out + rack.rack_out for rack in outage_class)
        odds = brokers[:, None] / np.where(visits > 0.0, visits, np.inf)
        for key, which in before.items():
            rates = shared[key]
            shared[key] = rates / (1.0 + odds[which] * np.maximum(whole[which] - rates, 0.0))


def _destructions(
    losses: Mapping[Pattern, DrawnLosses],
    survival: _Survival,
    placement: Placement,
    struck: DrawnStrikes,
) -> list[Destruction]:
    """`common_events.destruction` of each draw."""
    hours = np.max([found.replacement_hours for found in losses.values()], axis=0)
    known = table()
    ways = (known.replacement, *known.leading_to(known.replacement))
    broker, rack = (
        hours * 0.0 + sum(survival.strikes(way.name) for way in ways if way.scope is scope)
        for scope in (Scope.BROKER, Scope.RACK)
    )
    picking = [
        way.name
        for way in ways
        if any(way.name in found.picked for found in losses.values())
        and survival.strikes(way.name).any()
    ]
    sites = [way.name for way in ways if way.scope is Scope.CLUSTER and way.share is None]
    racks = len(set(placement.rack_of.values()))
    last = sum(1.0 / (n + 1) for n in range(-(-placement.brokers // racks)))
    again = last * hours / HOURS_PER_YEAR * (placement.brokers * broker + racks * rack)
    within_racks = any(max(pattern) == 0 for pattern in losses)
    found = []
    for draw, replaced in enumerate(hours.tolist()):
        picked = {
            (float(survival.strikes(name)[draw]) * chance, share)
            for name in picking
            for chance, share in struck.picks[name][draw].ways
        }
        picked |= {(often, 1.0) for name in sites if (often := float(survival.strikes(name)[draw]))}
        numbers = float(broker[draw]), float(rack[draw]), tuple(picked), float(again[draw])
        found.append(Destruction(replaced, *numbers, within_racks) if replaced else Destruction())
    return found
