"""When one replica set loses under many cards at once: the numbers of `SetLosses`, draw by draw.

Which losses other sets may share follows from the chain alone; how often they happen has a column
for each draw.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from advisor.reliability.common_cause.outage_class import (
    PICKED,
    RARE,
    SCOPES,
    OutageClass,
    OutageClasses,
    leaves_some,
    marked,
    racks_at_once,
    scope_of,
)
from advisor.reliability.common_cause.picked_brokers import PickedLosses
from advisor.reliability.common_cause.set_losses import SetLosses
from advisor.reliability.common_cause.struck_losses import (
    StruckLosses,
    share_picked,
    strikes_of,
    struck_of_all_racks,
)
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import Scope, table, transition, transitions
from advisor.reliability.solver.first_passage import FirstLoss
from advisor.reliability.solver.generator import IntArray, Vector, adds_up

Kind = tuple[str, str, OutageClass]
"""Mechanism, scope of the event and outage class of losses that sets may share."""


class DrawnYear(NamedTuple):
    """How often a year the lossy moves of a chain happen and lose, a column for each draw.

    flux, at_once, early, any_tail (lossy moves, draws): as in `YearlyLosses`.
    alone (counts + 1, states, draws).
    out (draws,): share of time in which anything is out.
    by_name (names, draws).
    of_moves (moves, draws): how often every move happens.
    """

    flux: Vector
    at_once: Vector
    early: Vector
    any_tail: Vector
    alone: Vector
    out: Vector
    by_name: Vector
    of_moves: Vector


class DrawnPicked(NamedTuple):
    """`PickedLosses` in each draw; numbers by picked brokers in rows.

    chances, tails (replicas + 1, draws).
    all_picked, per_year, others_per_year, tails_per_year, other_tails_per_year (draws,).
    """

    chances: Vector
    all_picked: Vector
    per_year: Vector
    others_per_year: Vector
    tails: Vector
    tails_per_year: Vector
    other_tails_per_year: Vector

    def of(self, draw: int) -> PickedLosses:
        """One draw."""
        chances, tails = (tuple(part[:, draw].tolist()) for part in (self.chances, self.tails))
        return PickedLosses(
            chances,
            float(self.all_picked[draw]),
            float(self.per_year[draw]),
            float(self.others_per_year[draw]),
            tails,
            float(self.tails_per_year[draw]),
            float(self.other_tails_per_year[draw]),
        )


class DrawnStruck(NamedTuple):
    """`StruckLosses` in each draw.

    per_year, share (draws,).
    by_picked (picked + 1, draws).
    """

    per_year: Vector
    share: Vector
    by_picked: Vector

    def of(self, draw: int) -> StruckLosses:
        """One draw."""
        picked = self.by_picked[:, draw]
        return StruckLosses(
            float(self.per_year[draw]), float(self.share[draw]), tuple(picked.tolist())
        )


class DrawnLosses(NamedTuple):
    """`SetLosses` in each draw: numbers of shape (draws,) where one draw has a number.

    mean_hours, probability (draws,): of the first loss.
    """

    mean_hours: Vector
    probability: Vector
    per_year: Mapping[str, Vector]
    tails: Mapping[str, Vector]
    shared: Mapping[Kind, Vector]
    picked: Mapping[str, DrawnPicked]
    replacement_hours: Vector
    visits: Mapping[OutageClass, Vector]
    out: Vector
    struck: Mapping[str, DrawnStruck]

    def of(self, draw: int) -> SetLosses:
        """One draw, as the losses of one card."""
        return SetLosses(
            first=FirstLoss(
                float(self.mean_hours[draw]), float(self.probability[draw]), "of many draws"
            ),
            per_year=_positive(self.per_year, draw),
            shared=_positive(self.shared, draw),
            tails=_positive(self.tails, draw),
            picked={
                name: part.of(draw)
                for name, part in self.picked.items()
                if part.per_year[draw] + part.others_per_year[draw] > 0.0
                or part.tails_per_year[draw] + part.other_tails_per_year[draw] > 0.0
            },
            replacement_hours=float(self.replacement_hours[draw]),
            visits={racks: float(often[draw]) for racks, often in self.visits.items()},
            out=float(self.out[draw]),
            struck={
                name: part.of(draw)
                for name, part in self.struck.items()
                if part.per_year[draw] + part.by_picked[:, draw].sum() > 0.0
            },
        )


def _positive(amounts: Mapping[Any, Vector], draw: int) -> dict[Any, float]:
    return {key: float(often[draw]) for key, often in amounts.items() if often[draw] > 0.0}


class DrawnRates(NamedTuple):
    """The rates of a chain in each draw.

    names (names, draws): of the chain's names, per hour.
    every: of everything that can happen, in each draw.
    destruction: share of each mechanism in what destroys brokers, in each draw.
    """

    names: Vector
    every: Sequence[Mapping[str, float]]
    destruction: Sequence[Mapping[str, float]]

    @property
    def shares_of_destruction(self) -> dict[str, Vector]:
        """The same by mechanism."""
        names = dict.fromkeys(name for drawn in self.destruction for name in drawn)
        return {
            name: np.array([drawn.get(name, 0.0) for drawn in self.destruction]) for name in names
        }


def losses_of_draws(
    chain: Any,
    lossy: IntArray,
    first: tuple[Vector, Vector],
    by_name: tuple[Vector, Vector],
    year: DrawnYear,
    rates: DrawnRates,
) -> DrawnLosses:
    """Put the losses of one set together.

    lossy: the moves that may lose, ascending.
    first (draws,): mean hours to the first loss, and its probability within a year.
    by_name (names, draws): loss events a year and those that drop a tail, by name of the rate that
        triggers them.
    """
    causes, draws = _Causes(chain.rate_names, rates), len(rates.every)
    classes = chain.outage_classes[0]
    at_once = _in_any_case(chain, lossy, year)
    known = table()
    hours = [known.mean_hours(known.replacement, drawn) for drawn in rates.every]
    return DrawnLosses(
        mean_hours=first[0],
        probability=first[1],
        per_year=causes.summed(by_name[0]),
        tails=causes.summed(by_name[1]),
        shared=_shared(chain, lossy, classes, causes, at_once, year, rates),
        picked=_picked(chain, lossy, year, rates),
        replacement_hours=np.array(hours) * np.ones(draws),
        visits=_visits(chain, classes, year.of_moves),
        out=year.out,
        struck=_struck(chain, lossy, classes, at_once * year.alone[0, chain.source[lossy]], rates),
    )


class _Causes:
    """Mechanisms behind each name of a rate, with their shares in each draw."""

    def __init__(self, names: tuple[str, ...], rates: DrawnRates) -> None:
        destroying = rates.shares_of_destruction
        one = np.ones(len(rates.every))
        self.of_name: list[Mapping[str, Vector]] = []
        for name in names:
            found = transition(name)
            replaced = found.ends and found.mechanism.name == table().replacement.name
            self.of_name.append(destroying if replaced else {found.mechanism.name: one})

    def summed(self, amounts: Vector) -> dict[str, Vector]:
        """Sum amounts by name of rate, by mechanism."""
        totals: dict[str, Vector] = {}
        for number in np.flatnonzero(amounts.any(axis=1)).tolist():
            for mechanism, share in self.of_name[number].items():
                totals[mechanism] = totals.get(mechanism, 0.0) + amounts[number] * share
        return totals


def _in_any_case(chain: Any, lossy: IntArray, year: DrawnYear) -> Vector:
    """`lost_in_any_case` of each draw, of the lossy moves."""
    moves, group, none_picked = strikes_of(chain)
    if not len(moves):
        return year.at_once
    row = np.searchsorted(lossy, moves)
    losing = (row < len(lossy)) & (lossy[np.minimum(row, len(lossy) - 1)] == moves)
    none = adds_up(group[none_picked], int(group.max()) + 1)
    base = none @ year.of_moves[moves[none_picked]]
    amounts = np.zeros((len(moves), year.flux.shape[1]))
    amounts[losing] = year.at_once[row[losing]]
    base_lost = none @ amounts[none_picked]
    chance = base_lost / np.where(base > 0.0, base, np.inf)
    others = ~none_picked & losing
    in_any_case = np.zeros_like(amounts)
    in_any_case[others] = np.minimum(
        amounts[others], chance[group[others]] * year.of_moves[moves[others]]
    )
    more = (adds_up(group, len(base)) @ in_any_case) / np.where(base_lost > 0.0, base_lost, np.inf)
    moved = year.at_once.copy()
    first = none_picked & losing
    moved[row[first]] *= 1.0 + more[group[first]]
    moved[row[others]] -= in_any_case[others]
    return moved


def _shared(
    chain: Any,
    lossy: IntArray,
    classes: OutageClasses,
    causes: _Causes,
    certain: Vector,
    year: DrawnYear,
    rates: DrawnRates,
) -> dict[Kind, Vector]:
    """`shared_loss_rates` of each draw."""
    names = chain.rate_names
    known = [transition(name) for name in names]
    ends = np.array([entry.ends and entry.death is None for entry in known], dtype=bool)
    scope_of_name = [scope_of(name) for name in names]
    by_chance = np.array([entry.copies or entry.chosen > 0 for entry in known], dtype=bool)
    by_chance &= np.array([scope != PICKED for scope in scope_of_name], dtype=bool)
    losses: dict[Kind, Vector] = {}
    sums = _SharedSums(chain, classes, scope_of_name, causes, year.alone, losses)
    rate = chain.rate[lossy]
    for which in (~ends, ends):
        rows = np.flatnonzero((which & ~by_chance)[rate] & certain.any(axis=1))
        sums.add(scope_of_name, lossy[rows], chain.source[lossy[rows]], certain[rows])
    soon = np.flatnonzero(year.early.any(axis=1))
    target, window = chain.target[lossy[soon]], chain.flush_window
    whole = window.per_hour(rates.names, chain.states)[target]
    for scope in SCOPES:
        kept = ends | np.array([other == scope for other in scope_of_name], dtype=bool)
        part = window.per_hour(np.where(kept[:, None], rates.names, 0.0), chain.states)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(whole > 0.0, part[target] / whole, 0.0)
        sums.add([scope] * len(names), lossy[soon], target, year.early[soon] * share)
    return losses


class _SharedSums:
    """Sums losses by what other sets may share of them."""

    def __init__(
        self,
        chain: Any,
        classes: OutageClasses,
        scope_of_name: Sequence[str],
        causes: _Causes,
        alone: Vector,
        losses: dict[Kind, Vector],
    ) -> None:
        self._chain, self._causes, self._alone, self._losses = chain, causes, alone, losses
        self._distinct, self._number = classes
        self._several = np.array([scope == Scope.RACK.value for scope in scope_of_name], dtype=bool)
        serving = [sum(rack.in_service for rack in one or ()) for one in self._distinct]
        self._serving = np.array(serving)[self._number]

    def add(
        self, scopes: Sequence[str], moves: IntArray, before: IntArray, amounts: Vector
    ) -> None:
        """Add losses of some moves that find a set in the states before."""
        names, distinct = len(self._chain.rate_names), self._distinct
        rate, after = self._chain.rate[moves], self._chain.target[moves]
        struck = np.where(self._several[rate], self._serving[before] - self._serving[after], 1)
        codes = np.maximum(struck, 1) * len(distinct) + self._number[before]
        every, place = np.unique(codes * names + rate, return_inverse=True)
        summing = adds_up(place.ravel(), len(every))
        totals = np.stack([summing @ (amounts * part) for part in self._alone[:, before]])
        for row, code in enumerate(every.tolist()):
            index, name = divmod(code, names)
            racks, index = divmod(index, len(distinct))
            outage_class = distinct[index]
            if outage_class is None or not totals[:, row].any():
                continue
            scope = scopes[name] if racks == 1 else racks_at_once(racks)
            for found, amount in _by_class(outage_class, scope, totals[:, row]).items():
                for mechanism, share in self._causes.of_name[name].items():
                    kind = mechanism, scope, found
                    self._losses[kind] = self._losses.get(kind, 0.0) + share * amount


def _by_class(outage_class: OutageClass, scope: str, by_count: Vector) -> dict[OutageClass, Vector]:
    """Amounts, shape (counts, draws), by class with racks marked; see `outage_class`."""
    whole = by_count.sum(axis=0)
    if not leaves_some(outage_class, scope):
        return {outage_class: whole}
    serving = sum(rack.in_service for rack in outage_class)
    out = sum(rack.brokers_out for rack in outage_class)
    found: dict[OutageClass, Vector] = {}
    for count, amount in enumerate(by_count):
        few = (amount > RARE * whole) & (count < len(by_count) - 1)
        for among, part in (
            (min(max(count - out, 0), serving), np.where(few, amount, 0.0)),
            (serving, np.where(few, 0.0, amount)),
        ):
            if part.any():
                choices = marked(outage_class, among)
                for chosen in choices:
                    found[chosen] = found.get(chosen, 0.0) + part / len(choices)
    return found


def _picked(
    chain: Any, lossy: IntArray, year: DrawnYear, rates: DrawnRates
) -> dict[str, DrawnPicked]:
    """`picked_losses` of each draw."""
    numbers: dict[str, dict[tuple[int, int], int]] = defaultdict(dict)
    for number, name in enumerate(chain.rate_names):
        known = transition(name)
        if known.chosen > 0 and known.mechanism.scope is Scope.CLUSTER:
            numbers[known.mechanism.name][known.chosen, known.among] = number
    by_name = adds_up(chain.rate[lossy], len(chain.rate_names))
    lose, drop = by_name @ year.at_once, by_name @ year.any_tail
    replicas = chain.environment.replicas
    found = {}
    for mechanism, by_count in numbers.items():
        whole = [by_count.get((count, replicas)) for count in range(1, replicas + 1)]
        rows = list(by_count.values())
        if whole[-1] is None or not (lose[rows].any() or drop[rows].any()):
            continue
        some = [number for number in whole if number is not None]
        parts = []
        for often in (lose, drop):
            chances = np.zeros((replicas + 1, often.shape[1]))
            for count, row in enumerate(whole, 1):
                if row is not None:
                    happen = year.by_name[row]
                    chances[count] = often[row] / np.where(happen > 0.0, happen, np.inf)
            inside = often[some].sum(axis=0)
            parts.append((chances, inside, np.maximum(often[rows].sum(axis=0) - inside, 0.0)))
        (chances, losing, others), (tails, dropping, other_tails) = parts
        every = rates.names[whole[-1]] * HOURS_PER_YEAR
        found[mechanism] = DrawnPicked(chances, every, losing, others, tails, dropping, other_tails)
    return found


def _visits(chain: Any, classes: OutageClasses, flux: Vector) -> dict[OutageClass, Vector]:
    """Rate at which a set enters each outage class in each draw."""
    distinct, number = classes
    before, after = number[chain.source], number[chain.target]
    entering = np.flatnonzero(before != after)
    often = adds_up(after[entering], len(distinct)) @ flux[entering]
    return {racks: often[place] for place, racks in enumerate(distinct) if racks is not None}


def _struck(
    chain: Any, lossy: IntArray, classes: OutageClasses, at_once: Vector, rates: DrawnRates
) -> dict[str, DrawnStruck]:
    """`struck_losses` of each draw."""
    known = transitions(chain.rate_names)
    rows = np.flatnonzero(struck_of_all_racks(chain, classes)[lossy])
    by_name = adds_up(chain.rate[lossy[rows]], len(known)) @ at_once[rows]
    amounts: dict[str, dict[int, Vector]] = defaultdict(dict)
    for name in np.flatnonzero(by_name.any(axis=1)).tolist():
        by_picked = amounts[known[name].mechanism.name]
        chosen = max(known[name].chosen, 0)
        by_picked[chosen] = by_picked.get(chosen, 0.0) + by_name[name]
    losses = {}
    for mechanism, by_picked in amounts.items():
        nothing = np.zeros(rates.names.shape[1])
        none, share = by_picked.pop(0, nothing), nothing
        picked = np.array(
            [by_picked.get(count, nothing) for count in range(max(by_picked, default=-1) + 1)]
        ).reshape(-1, len(nothing))
        if by_picked:
            share = np.array([share_picked(mechanism, known, column) for column in rates.names.T])
        losses[mechanism] = DrawnStruck(none, share, picked)
    return losses
