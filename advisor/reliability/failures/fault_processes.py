"""Failure and repair transitions of the brokers of one replica set, of racks, and of the quorum.

A broker is healthy or in one outage at a time. Most failures strike running brokers only;
destruction strikes whatever still holds a log. A second failure of a broker that is down is
ignored, even if it would have lasted longer: the error is the rate times the duration of the
overlap. What each mechanism does is in :mod:`advisor.reliability.failures.mechanisms`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from advisor.reliability.failures.fault_environment import (
    BrokerStates,
    Change,
    Events,
    FaultEnvironment,
    Own,
    initial_state,
    quorum_state,
)
from advisor.reliability.failures.mechanisms import (
    WELL,
    BrokerEvent,
    Mechanism,
    Scope,
    Strikes,
    Table,
    death_of,
    pair_of,
    picks,
    picks_by_chance,
    prolonging,
    repair_of,
    striking,
)

__all__ = [
    "BrokerStates",
    "Change",
    "Events",
    "FaultEnvironment",
    "Own",
    "broker_and_cluster_transitions",
    "changes",
    "ends",
    "initial_state",
    "of_racks",
    "quorum_state",
]

# Events of the quorum reach every partition; the slot has no meaning.
_ANY_SLOT = (0,)
# Plain integers: enumeration members take ten times as long to hash.
_DESTROY, _BACK = int(BrokerEvent.DESTROY), int(BrokerEvent.QUORUM_BACK)
_OF_QUORUM = (int(BrokerEvent.QUORUM_LOST), int(BrokerEvent.QUORUM_STOPPED), _BACK)
# Bits of `_Failure.reach`.
_STRUCK, _CANDIDATE = 1, 2


def changes(brokers: BrokerStates, environment: FaultEnvironment) -> Iterator[Change]:
    """All transitions that can happen next."""
    yield from broker_and_cluster_transitions(brokers.own, environment)
    yield from of_racks(brokers, environment)


def broker_and_cluster_transitions(own: Own, environment: FaultEnvironment) -> Iterator[Change]:
    """Failures and repairs of single brokers, and those of the whole cluster.

    Where outages of racks can take the majority of the voters, `of_racks` yields them.
    """
    if not environment.voters:
        yield from _broker_and_cluster(own, environment)


def of_racks(brokers: BrokerStates, environment: FaultEnvironment) -> Iterator[Change]:
    """Failures and repairs of racks."""
    if not environment.voters:
        yield from _of_racks(brokers, environment)
        return
    before = quorum_state(brokers, environment)
    inner, racks = _broker_and_cluster(brokers.own, environment), _of_racks(brokers, environment)
    for change in (*inner, *racks):
        after = quorum_state(BrokerStates(change.own, brokers.racks), environment)
        yield _with_quorum(change, before, after)


def _with_quorum(change: Change, before: int, after: int) -> Change:
    """Put the loss of the quorum before other events of the change, and its return after them."""
    rate, own, events = change
    for event, _ in events:
        if event in _OF_QUORUM:
            events = tuple(each for each in events if each[0] not in _OF_QUORUM)
            break
    if before == after:
        return Change(rate, own, events)
    quorum = ((after, _ANY_SLOT),)
    return Change(rate, own, events + quorum if after == _BACK else quorum + events)


def _broker_and_cluster(own: Own, environment: FaultEnvironment) -> Iterator[Change]:
    process = _process(environment.table, environment.mechanisms)
    for slot in range(environment.replicas):
        yield from _broker_failures(own, slot, process)
        yield from _broker_repairs(own, slot, process)
    yield from _pairs(own, environment.replicas, process)
    slots = tuple(range(environment.replicas))
    for failure in process.cluster:
        if failure.entry.effect.of_quorum:
            yield from _quorum_failures(own, environment.quorum_slot, failure)
        else:
            for strike in _strikes_on(failure.reach_of(own), slots, failure, None):
                yield strike.change(own)
    yield from _joint_repairs(own, slots, process.cluster_repairs)
    if environment.quorum_slot >= 0:
        yield from _quorum_repairs(own, environment.quorum_slot, process)


def _of_racks(brokers: BrokerStates, environment: FaultEnvironment) -> Iterator[Change]:
    process = _process(environment.table, environment.mechanisms)
    own, placed = brokers.own, (brokers.racks, environment.rack_count, environment.replicas)
    for failure in process.rack:
        for strike in _rack_failures(failure, failure.reach_of(own), *placed):
            yield strike.change(own)
    for slots in [brokers.members(rack) for rack in range(environment.rack_count)]:
        yield from _joint_repairs(brokers.own, slots, process.rack_repairs, environment.replicas)


@lru_cache(maxsize=2**16)
def ends(brokers: BrokerStates, environment: FaultEnvironment) -> tuple[Change, ...]:
    """The outages that can end next, each in its usual way."""
    process = _process(environment.table, environment.shapes)
    slots = range(environment.replicas)
    endings: list[Change] = []
    for slot in slots:
        endings += _broker_repairs(brokers.own, slot, process)
    endings += _joint_repairs(brokers.own, tuple(slots), process.cluster_repairs)
    if environment.quorum_slot >= 0:
        endings += _quorum_repairs(brokers.own, environment.quorum_slot, process)
    for rack in range(environment.rack_count):
        members = brokers.members(rack)
        endings += _joint_repairs(brokers.own, members, process.rack_repairs, environment.replicas)
    if not environment.voters:
        return tuple(endings)
    before = quorum_state(brokers, environment)
    after = (
        quorum_state(BrokerStates(change.own, brokers.racks), environment) for change in endings
    )
    return tuple(
        _with_quorum(change, before, then) for change, then in zip(endings, after, strict=True)
    )


@dataclass(frozen=True, eq=False, slots=True)
class _Failure:
    """A kind of failure, compiled; hashed by identity, as it is looked up very often.

    event, condition: what happens to a struck broker, and the condition that it is left in.
    excluded: it does not strike while a broker is in one of these conditions.
    by_chance, spreads, overlaps: probabilities that are not 0: that of brokers to be picked, of
        racks to be struck together, and of a second broker to be.
    turned: the condition of those that are picked for another outage; WELL if chance picks who is
        struck, or none.
    reach: by condition: _STRUCK and _CANDIDATE, where a broker is struck and where it can be
        picked.
    """

    name: str
    event: int
    condition: int
    excluded: frozenset[int]
    by_chance: bool
    spreads: bool
    overlaps: bool
    turned: int
    reach: tuple[int, ...]
    entry: Mechanism

    def reach_of(self, own: Own) -> tuple[int, ...]:
        """``reach`` for the broker of each slot."""
        reach = self.reach
        return tuple([reach[condition] for condition in own])

    def change(self, name: str, own: Own, struck: tuple[int, ...]) -> Change:
        """Strike all of these brokers."""
        return Change(name, _with(own, struck, self.condition), ((self.event, struck),))


class _Strike(NamedTuple):
    """What a failure does: name of the rate, slots with their new condition, and events."""

    rate: str
    put: tuple[tuple[tuple[int, ...], int], ...]
    events: Events

    def change(self, own: Own) -> Change:
        """Apply it to brokers in these conditions."""
        after = list(own)
        for slots, condition in self.put:
            for slot in slots:
                after[slot] = condition
        return Change(self.rate, tuple(after), self.events)


class _Repair(NamedTuple):
    """How an outage ends, or goes on: name of the rate, event, and the condition afterwards."""

    rate: str
    event: int | None
    after: int = WELL

    def change(self, own: Own, recovered: tuple[int, ...], notified: tuple[int, ...]) -> Change:
        """End the outage of the recovered slots; the partition sees only the notified ones."""
        events = () if self.event is None else ((self.event, notified),)
        return Change(self.rate, _with(own, recovered, self.after), events)


Repairs = dict[int, tuple[_Repair, ...]]


class _Process(NamedTuple):
    """The failures of a fault environment by scope, and repairs by condition."""

    broker: tuple[_Failure, ...]
    rack: tuple[_Failure, ...]
    cluster: tuple[_Failure, ...]
    repairs: Repairs
    rack_repairs: Repairs
    cluster_repairs: Repairs
    quorum_repairs: Repairs


@lru_cache(maxsize=256)
def _process(mechanism_table: Table, mechanisms: frozenset[str]) -> _Process:
    def failures(scope: Scope) -> tuple[_Failure, ...]:
        happen = [c for c in mechanism_table.kinds if c.name in mechanisms and c.scope is scope]
        chosen = [c for c in happen if not c.variant or f"{c.name}.{c.variant}" in mechanisms]
        # Destruction last, whatever the order of the results.
        chosen.sort(key=lambda entry: entry.effect is BrokerEvent.DESTROY)
        return tuple(_failure(mechanism_table, entry, mechanisms) for entry in chosen)

    joint: dict[str, Repairs] = {"": {}, "rack": {}, "cluster": {}, "quorum": {}}
    for condition, entry in mechanism_table.outages.items():
        kind = "quorum" if entry.effect.of_quorum else entry.scope.value * entry.together
        joint[kind][condition] = _repairs(mechanism_table, entry, mechanisms)
    return _Process(
        failures(Scope.BROKER),
        failures(Scope.RACK),
        failures(Scope.CLUSTER),
        *joint.values(),
    )


def _repairs(
    mechanism_table: Table, entry: Mechanism, mechanisms: frozenset[str]
) -> tuple[_Repair, ...]:
    well = _Repair(repair_of(entry), int(entry.effect.end))
    if entry.shape_path in mechanisms and not entry.prolonged:
        return well, _Repair(prolonging(entry), None, mechanism_table.prolonged[entry.condition])
    possible = [death for death in entry.deaths if death_of(entry, death) in mechanisms]
    later = [(death, mechanism_table[death.outage]) for death in possible]
    return (
        well,
        *(_Repair(death_of(entry, d), int(then.effect), then.condition) for d, then in later),
    )


def _failure(mechanism_table: Table, entry: Mechanism, mechanisms: frozenset[str]) -> _Failure:
    def conditions(strikes: Strikes) -> frozenset[int]:
        return frozenset(
            c for c in range(mechanism_table.conditions) if mechanism_table.severity(c) <= strikes
        )

    other = mechanism_table[entry.turns_into] if entry.turns_into else None
    kinds = mechanism_table[entry.name].kinds if entry.exclusive else ()
    strikes = conditions(entry.strikes)
    picked = conditions(other.strikes if other else entry.strikes)
    return _Failure(
        entry.full_name,
        int(entry.effect),
        mechanism_table.condition_of(entry),
        frozenset(c for kind in kinds for c in mechanism_table.stages(kind.condition)),
        picks_by_chance(entry, mechanisms),
        entry.path(entry.spreads) in mechanisms,
        entry.path(entry.overlaps) in mechanisms,
        mechanism_table.condition_of(other) if other else WELL,
        tuple(
            _STRUCK * (c in strikes) + _CANDIDATE * (c in picked)
            for c in range(mechanism_table.conditions)
        ),
        entry,
    )


def _with(own: Own, slots: tuple[int, ...], condition: int) -> Own:
    """The conditions after some slots' brokers got a new one."""
    after = list(own)
    for slot in slots:
        after[slot] = condition
    return tuple(after)


def _broker_failures(own: Own, slot: int, process: _Process) -> Iterator[Change]:
    for failure in process.broker:
        if failure.reach[own[slot]] & _STRUCK and failure.excluded.isdisjoint(own):
            yield failure.change(failure.name, own, (slot,))


def _pairs(own: Own, replicas: int, process: _Process) -> Iterator[Change]:
    """Restarts that did not wait for the last broker: both are out at once."""
    for failure in process.broker:
        if failure.overlaps and failure.excluded.isdisjoint(own):
            ready = [slot for slot in range(replicas) if failure.reach[own[slot]] & _STRUCK]
            for pair in combinations(ready, 2):
                yield failure.change(pair_of(failure.entry), own, pair)


def _broker_repairs(own: Own, slot: int, process: _Process) -> Iterator[Change]:
    for way in process.repairs.get(own[slot], ()):
        yield way.change(own, (slot,), (slot,))


def _joint_repairs(
    own: Own, members: tuple[int, ...], repairs: Repairs, replicas: int | None = None
) -> Iterator[Change]:
    """Ends of outages from which all brokers that were hit together recover at the same moment.

    The partition is notified only of slots below ``replicas``, if given.
    """
    for condition, ways in repairs.items():
        recovered = tuple([s for s in members if own[s] == condition])
        if recovered:
            notified = tuple([s for s in recovered if replicas is None or s < replicas])
            for way in ways:
                yield way.change(own, recovered, notified)


def _quorum_failures(own: Own, slot: int, failure: _Failure) -> Iterator[Change]:
    if own[slot] == WELL:
        after = _with(own, (slot,), failure.condition)
        yield Change(failure.name, after, ((failure.event, _ANY_SLOT),))


def _quorum_repairs(own: Own, slot: int, process: _Process) -> Iterator[Change]:
    for way in process.quorum_repairs.get(own[slot], ()):
        yield way.change(own, (slot,), _ANY_SLOT)


@lru_cache(maxsize=2**14)
def _rack_failures(
    failure: _Failure, reach: tuple[int, ...], racks: tuple[int, ...], count: int, replicas: int
) -> tuple[_Strike, ...]:
    """One rack fails, or, where failures spread, any racks at once.

    Kept, since thousands of states differ only in conditions that matter to no strike.
    """
    which = _CANDIDATE if failure.by_chance else _STRUCK
    members = [tuple([s for s, r in enumerate(racks) if r == rack]) for rack in range(count)]
    ready = [slots for slots in members if any(reach[slot] & which for slot in slots)]
    every: list[_Strike] = []
    for size in range(1, len(ready) + 1) if failure.spreads else (1,):
        of_racks = (size, len(ready)) if failure.spreads else None
        for struck in combinations(ready, size):
            slots = [slot for rack in struck for slot in rack]
            brokers = tuple([slot for slot in slots if slot < replicas])
            strikes = list(_strikes_on(reach, brokers, failure, of_racks))
            voters = tuple([s for s in slots if s >= replicas and reach[s] & _STRUCK])
            # A rack of voters alone has nothing to be destroyed for good.
            if voters and failure.entry.together:
                strikes = strikes or [_Strike(striking(failure.entry, of_racks), (), ())]
                also = ((voters, failure.condition),)
                strikes = [strike._replace(put=strike.put + also) for strike in strikes]
            every += strikes
    return tuple(every)


def _strikes_on(
    reach: tuple[int, ...],
    slots: tuple[int, ...],
    failure: _Failure,
    racks: tuple[int, int] | None,
) -> Iterator[_Strike]:
    """All of some brokers are struck; or each by chance; or all, and some turn into another."""
    struck = tuple([slot for slot in slots if reach[slot] & _STRUCK])
    if failure.entry.share is None or (failure.turned and not failure.by_chance):
        if struck:
            put, event = ((struck, failure.condition),), (failure.event, struck)
            yield _Strike(striking(failure.entry, racks), put, (event,))
        return
    candidates = tuple([slot for slot in slots if reach[slot] & _CANDIDATE])
    for rate, picked in picks(failure.entry, candidates, failure.by_chance, racks):
        if failure.turned:
            events = ((failure.event, struck), (_DESTROY, picked))
            yield _Strike(rate, ((struck, failure.condition), (picked, failure.turned)), events)
        elif picked:
            yield _Strike(rate, ((picked, failure.condition),), ((failure.event, picked),))
