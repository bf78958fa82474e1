"""Outage classes: which replicas of a set are out when it loses, and how often it loses so.

A replica set loses when an event (a failure, or a repair that brings back a stale replica) finds
other replicas out. If those are out because their racks are, every set in these racks is exposed
at the same time and loses in the same event. If their brokers are out, every set on them is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures.mechanisms import (
    WELL,
    BrokerEvent,
    Scope,
    table,
    transition,
)
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.statespace.flush_window import FlushWindowLosses
from advisor.reliability.statespace.state_index import codes_of_rows


class RackOutage(NamedTuple):
    """State of a set's replicas in one rack at the moment of a loss.

    brokers_out: of these, out or lagging because of their own broker.
    rack_out: the rack is out, and with it every replica not counted in ``brokers_out``.
    lagging: of ``brokers_out``, lagging. The leader of a partition never lags for it.
    destroyed: all of ``brokers_out`` are destroyed, if there are any.
    as_one: its replicas are in service, and were out, if at all, with their whole rack.
    """

    size: int
    brokers_out: int
    rack_out: bool
    lagging: int = 0
    destroyed: bool = False
    as_one: bool = False

    @property
    def in_service(self) -> bool:
        """Some of its replicas are."""
        return not self.rack_out and self.size > self.brokers_out


RARE = 1e-3
"""Smaller shares of a loss are not split by how many brokers were struck alone."""

OutageClass = tuple[RackOutage, ...]
"""The racks of a set, sorted."""

OutageClasses = tuple[list[OutageClass | None], IntArray]
"""Distinct classes (None: no replica is out), and the index of each state's among them."""

Kind = tuple[str, str, OutageClass]
"""Mechanism, scope of the event and outage class just before it, of losses that sets may share."""

SCOPES = ("broker", "rack", "cluster")
BROKER_REPAIR, RACK_REPAIR = "broker repair", "rack repair"
PICKED = "picked broker"
"""One broker of a struck rack, chosen by chance and destroyed."""
BROKER_DEATH = "broker death"
"""A broker that limped dies: all partitions that it led lose what it alone wrote."""

CLUSTER = -1
"""Site number of an event that strikes the whole cluster."""


def scope_of(name: str) -> str:
    """Scope of a mechanism or rate name: what it strikes at once, or what a repair brings back."""
    entry = transition(name)
    if entry.copies:
        return Scope.CLUSTER.value
    scope = entry.mechanism.scope
    if entry.death is not None:
        return BROKER_DEATH
    if scope is Scope.RACK and entry.chosen == 1:
        return PICKED
    if entry.ends:
        return RACK_REPAIR if scope is Scope.RACK and entry.mechanism.together else BROKER_REPAIR
    return scope.value


def racks_at_once(racks: int) -> str:
    """Scope of an event that strikes this many racks of a set."""
    return Scope.RACK.value if racks == 1 else f"{racks} racks"


def strikes_racks(scope: str) -> bool:
    """Whether events of this scope strike one rack or several."""
    return scope == Scope.RACK.value or scope.endswith(" racks")


def strikes(scope: str) -> bool:
    """Whether events of this scope are failures of what was in service."""
    return scope not in (BROKER_REPAIR, RACK_REPAIR, BROKER_DEATH)


def outage_classes(own: IntArray, racks: IntArray, together: Collection[int] = ()) -> OutageClasses:
    """Classify states by which replicas are out.

    own, racks (states, replicas): condition of each replica's broker, and its rack.
    together: conditions to treat as outages of a rack, although brokers leave them one by one.
    """
    mechanisms = table()
    # Destroyed brokers, and those that lost power with the whole site, come back one by one.
    shared = {condition for condition, entry in mechanisms.outages.items() if entry.together}
    shared.update(together)
    rack_out = np.array([condition in shared for condition in range(mechanisms.conditions)])
    broker_out = ~rack_out
    broker_out[WELL] = False
    lags = np.isin(own, mechanisms.conditions_with(BrokerEvent.LAG))
    destroyed = np.isin(own, mechanisms.stages(mechanisms.replacement.condition))
    # One number per rack; 0 for a rack without replicas.
    base = own.shape[1] + 1
    codes = np.zeros((len(own), int(racks.max(initial=0)) + 1), dtype=np.int64)
    for rack in range(codes.shape[1]):
        here = racks == rack
        out, lagging = (here & broker_out[own]).sum(axis=1), (here & lags).sum(axis=1)
        gone = (out > 0) & ((here & destroyed).sum(axis=1) == out)
        codes[:, rack] = (((here.sum(axis=1) * base + out) * base + lagging) * 2 + gone) * 2
        codes[:, rack] += (here & rack_out[own]).any(axis=1)
    codes.sort(axis=1)
    _, first, number = np.unique(codes_of_rows(codes.T), return_index=True, return_inverse=True)
    return [_decoded(row, base) for row in codes[first].tolist()], number.ravel()


def _decoded(codes: Sequence[int], base: int) -> OutageClass | None:
    racks = []
    for code in filter(None, codes):
        rest, rack_out = divmod(code, 2)
        rest, destroyed = divmod(rest, 2)
        rest, lagging = divmod(rest, base)
        racks.append(RackOutage(*divmod(rest, base), bool(rack_out), lagging, bool(destroyed)))
    return tuple(racks) if any(rack.brokers_out or rack.rack_out for rack in racks) else None


class TransitionArrays(Protocol):
    """The transitions of a CTMC."""

    @property
    def source(self) -> IntArray:
        """State of each transition."""

    @property
    def target(self) -> IntArray:
        """State it leads to."""

    @property
    def rate(self) -> IntArray:
        """Index of its rate's name."""

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Names of rates."""

    @property
    def flush_window(self) -> FlushWindowLosses:
        """Losses by power failures within the flush window."""


def shared_loss_rates(
    chain: TransitionArrays,
    lossy: IntArray,
    classes: OutageClasses,
    repair_classes: OutageClasses,
    causes: Sequence[Mapping[str, Any]],
    rates_per_hour: Vector,
    certain: Vector,
    early: Vector,
    alone: Vector,
) -> dict[Kind, Vector]:
    """Loss rates of one set that other sets may share, each of shape (draws,).

    Excluded are losses by the end of a copy, and by failures that several brokers do not survive:
    survivors and copy times are drawn for each set independently.

    lossy: the transitions that may lose.
    classes, repair_classes: of the chain's states, for losses by failures and for those by repairs.
    causes: mechanisms behind each name of a rate, with their shares.
    rates_per_hour (names, draws).
    certain, early (lossy, draws): losses with a transition, and by a power failure within the flush
        window after it.
    alone (counts + 1, states, draws): share of each state by how many brokers were struck alone
        since nothing was out: none, one, ..., more.
    """
    states, names = len(classes[1]), chain.rate_names
    entries = [transition(name) for name in names]
    ends = np.array([entry.ends and entry.death is None for entry in entries], dtype=bool)
    scope_of_name = [scope_of(name) for name in names]
    several = np.array([scope == Scope.RACK.value for scope in scope_of_name], dtype=bool)
    # Drawn for each set independently: the end of its copy, and which brokers a probability picks.
    by_chance = np.array([entry.copies or entry.chosen > 0 for entry in entries], dtype=bool)
    by_chance &= np.array([scope != PICKED for scope in scope_of_name], dtype=bool)
    events = []
    for of_states, which in ((classes, ~ends), (repair_classes, ends)):
        rows = np.flatnonzero((which & ~by_chance)[chain.rate[lossy]] & certain.any(axis=1))
        moves = lossy[rows]
        events.append((of_states, scope_of_name, moves, chain.source[moves], certain[rows]))
    rows = np.flatnonzero(early.any(axis=1))
    target = chain.target[lossy[rows]]
    whole = chain.flush_window.per_hour(rates_per_hour, states)[target]
    for scope in SCOPES:
        counted = ends | np.array([other == scope for other in scope_of_name], dtype=bool)
        of_scope = chain.flush_window.per_hour(rates_per_hour * counted[:, None], states)[target]
        amounts = early[rows] * of_scope / np.where(whole > 0.0, whole, np.inf)
        events.append((classes, [scope] * len(names), lossy[rows], target, amounts))
    losses: dict[Kind, Vector] = {}
    for of_states, scopes, moves, before, amounts in events:
        for name, racks, outage_class, by_count in _by_event(
            chain, of_states, several, moves, before, amounts, alone
        ):
            scope = scopes[name] if racks == 1 else racks_at_once(racks)
            for marked_class, amount in _by_class(outage_class, scope, by_count).items():
                for mechanism, share in causes[name].items():
                    kind = mechanism, scope, marked_class
                    losses[kind] = losses.get(kind, 0.0) + share * amount
    return losses


def _by_event(
    chain: TransitionArrays,
    classes: OutageClasses,
    several: NDArray[np.bool_],
    moves: IntArray,
    before: IntArray,
    amounts: Vector,
    alone: Vector,
) -> Iterator[tuple[int, int, OutageClass, Vector]]:
    """Sum amounts (moves, draws) by name, number of racks struck, and class of the state before.

    several (names,): whether more than one rack may be struck.
    Yields these with the amounts by how many brokers were struck alone: (counts, draws).
    """
    (distinct, number), names = classes, len(chain.rate_names)
    serving = np.array([sum(rack.in_service for rack in racks or ()) for racks in distinct])[number]
    rate, after = chain.rate[moves], chain.target[moves]
    struck = np.where(several[rate], serving[before] - serving[after], 1)
    codes = (np.maximum(struck, 1) * len(distinct) + number[before]) * names + rate
    every, place = np.unique(codes, return_inverse=True)
    totals = np.stack(
        [sums(place.ravel(), amounts * share, len(every)) for share in alone[:, before]]
    )
    for row in np.flatnonzero(totals.any(axis=(0, 2))).tolist():
        index, name = divmod(int(every[row]), names)
        racks, index = divmod(index, len(distinct))
        outage_class = distinct[index]
        if outage_class is not None:
            yield name, racks, outage_class, totals[:, row]


def _by_class(outage_class: OutageClass, scope: str, by_count: Vector) -> dict[OutageClass, Vector]:
    """Amounts by how many brokers were struck alone, as amounts by class with racks marked.

    Of these brokers as many as are out, are out; each other one is in a rack in service.

    by_count (counts, draws).
    """
    serving = sum(rack.in_service for rack in outage_class)
    out = sum(rack.brokers_out for rack in outage_class)
    whole = by_count.sum(axis=0)
    if not leaves_some(outage_class, scope):
        return {outage_class: whole}
    by_class: dict[OutageClass, Vector] = {}
    for count, amount in enumerate(by_count):
        # The last is any number.
        few = (amount > RARE * whole) & (count < len(by_count) - 1)
        for among, amounts in (
            (min(max(count - out, 0), serving), np.where(few, amount, 0.0)),
            (serving, np.where(few, 0.0, amount)),
        ):
            if amounts.any():
                choices = marked(outage_class, among)
                for chosen in choices:
                    by_class[chosen] = by_class.get(chosen, 0.0) + amounts / len(choices)
    return by_class


@lru_cache(maxsize=4096)
def marked(outage_class: OutageClass, among: int) -> tuple[OutageClass, ...]:
    """The class with all racks in service marked as one, but for each choice of so many."""
    serving = [n for n, rack in enumerate(outage_class) if rack.in_service]
    return tuple(
        tuple(
            sorted(
                rack._replace(as_one=rack.in_service and n not in chosen)
                for n, rack in enumerate(outage_class)
            )
        )
        for chosen in combinations(serving, among)
    )


@lru_cache(maxsize=4096)
def leaves_some(outage_class: OutageClass, scope: str) -> bool:
    """Whether an event may leave replicas in service that it does not strike."""
    serving = [rack for rack in outage_class if rack.in_service]
    if scope in (Scope.CLUSTER.value, BROKER_DEATH):
        return False
    if scope in (Scope.BROKER.value, PICKED):
        return sum(rack.size - rack.brokers_out for rack in serving) > 1
    return bool(serving) and scope != racks_at_once(len(serving))


def unmarked(outage_class: OutageClass) -> OutageClass:
    """The class, however its replicas in service came to be so."""
    return tuple(sorted(rack._replace(as_one=False) for rack in outage_class))


def visits(
    chain: TransitionArrays, classes: OutageClasses, flux: Vector
) -> dict[OutageClass, Vector]:
    """Rate at which a set enters each outage class; flux (transitions, draws), in the same unit."""
    distinct, number = classes
    before, after = number[chain.source], number[chain.target]
    entering = np.flatnonzero(before != after)
    often = sums(after[entering], flux[entering], len(distinct))
    return {racks: often[row] for row, racks in enumerate(distinct) if racks is not None}
