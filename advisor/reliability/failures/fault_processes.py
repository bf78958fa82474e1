"""Failure and repair transitions of the brokers of one replica set, of racks, and of the quorum.

A broker is healthy or in one outage at a time. A second failure of a broker that is down is
ignored, even if it would have lasted longer: the error is the rate times the overlap. Behind the
slots of the replicas stands one for each rack with voters of the controller quorum and no replica,
and one for the quorum, which is lost while its own slot is out, or racks with a majority of the
voters are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple

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
    table,
)

BACK, LOST = int(BrokerEvent.QUORUM_BACK), int(BrokerEvent.QUORUM_LOST)

Replicas = tuple[int, ...]
Own = tuple[int, ...]
"""Per slot: the condition of its broker."""

Events = tuple[tuple[int, tuple[int, ...]], ...]
"""Values of `BrokerEvent`, each with the slots that it applies to, in order."""


class Exchangeable(Enum):
    """Which replicas of a list are exchangeable, given their racks.

    NONE: unclean elections follow the assignment. FOLLOWERS: the first leads. ALL: any may.
    """

    NONE = 0
    FOLLOWERS = 1
    ALL = 2

    def canonical(self, replicas: Replicas) -> Replicas:
        """The representative of all replica lists that lose together."""
        if self is Exchangeable.NONE:
            return replicas
        fixed = 1 if self is Exchangeable.FOLLOWERS else 0
        return (*replicas[:fixed], *sorted(replicas[fixed:]))


class RackPattern(tuple[int, ...]):
    """Rack number of each replica, and the voters of the controller quorum by rack number.

    Racks that hold voters and no replica have the highest numbers. A pattern without voters is
    equal to the tuple of its numbers.
    """

    voters: tuple[int, ...]

    def __new__(cls, racks: Iterable[int], voters: tuple[int, ...] = ()) -> RackPattern:
        """Make a pattern."""
        made = super().__new__(cls, racks)
        made.voters = voters
        return made

    def __eq__(self, other: object) -> bool:
        same = getattr(other, "voters", ()) == self.voters
        return same and tuple.__eq__(self, other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((tuple(self), self.voters)) if self.voters else tuple.__hash__(self)

    def __reduce__(self) -> tuple[type, tuple[tuple[int, ...], tuple[int, ...]]]:
        return RackPattern, (tuple(self), self.voters)


@lru_cache(maxsize=65_536)
def rack_pattern(
    racks: tuple[str, ...], exchangeable: Exchangeable, at_risk: tuple[tuple[str, int], ...]
) -> RackPattern:
    """The pattern of a list of replicas in these racks, with the voters of racks at risk."""
    voters = dict(at_risk)
    sizes, keeps_order = Counter(racks), exchangeable is Exchangeable.NONE
    ordered = list(racks)
    if keeps_order or (len(sizes) == len(racks) and not voters):
        order = list(sizes)
    else:
        first = None if exchangeable is Exchangeable.ALL else racks[0]
        order = sorted(sizes, key=lambda rack: (rack != first, -sizes[rack], -voters.get(rack, 0)))
        ordered.sort(key=order.index)
    beyond = sorted((n for rack, n in voters.items() if rack not in sizes), reverse=True)
    numbers = (*(voters.get(rack, 0) for rack in order), *beyond) if voters else ()
    return RackPattern((order.index(rack) for rack in ordered), numbers)


class BrokerStates(NamedTuple):
    """Brokers of one replica set, and what stands behind them: condition and rack of each slot."""

    own: Own
    racks: tuple[int, ...]

    def members(self, rack: int) -> tuple[int, ...]:
        """Slots in a rack."""
        return tuple([slot for slot, r in enumerate(self.racks) if r == rack])


class Change(NamedTuple):
    """One transition of the brokers: name of its rate, conditions by slot afterwards, events."""

    rate: str
    own: Own
    events: Events


@dataclass(frozen=True)
class FaultEnvironment:
    """Where the replicas are and what can happen there.

    racks: rack number per replica, 0 first.
    mechanisms: names of those that can happen, paths of the probabilities that are not 0, and of
        the shapes that are not 1.
    voters: voters of the controller quorum by rack number, first those of the racks with replicas;
        () if outages of racks cannot take the majority.
    table: what the names mean.
    """

    racks: tuple[int, ...]
    mechanisms: frozenset[str]
    voters: tuple[int, ...] = ()
    table: Table = field(default_factory=table, repr=False)

    @cached_property
    def shapes(self) -> frozenset[str]:
        """The ``mechanisms`` that are paths of shapes."""
        return _shapes(self.table, self.mechanisms)

    @property
    def replicas(self) -> int:
        """Number of slots that hold a replica; they come first."""
        return len(self.racks)

    @cached_property
    def rack_count(self) -> int:
        """Racks that hold replicas or voters."""
        return max(len(self.voters), max(self.racks) + 1)

    @cached_property
    def quorum_slot(self) -> int:
        """The slot of the controller quorum; -1 if nothing strikes it."""
        strikes = any(entry.name in self.mechanisms for entry in _of_quorum(self.table))
        return self.replicas + self.rack_count - max(self.racks) - 1 if strikes else -1

    @cached_property
    def slot_racks(self) -> tuple[int, ...]:
        """The rack of every slot; the quorum's slot has its own, which no failure strikes."""
        beyond = range(max(self.racks) + 1, self.rack_count)
        quorum = (self.rack_count,) if self.quorum_slot >= 0 else ()
        return (*self.racks, *beyond, *quorum)

    @property
    def without_controller(self) -> FaultEnvironment:
        """The same for schemes that have no controller quorum."""
        gone = {entry.name for entry in _of_quorum(self.table)}
        return replace(self, mechanisms=self.mechanisms - gone, voters=())

    @property
    def quorum_can_fail(self) -> bool:
        """Elections and ISR changes may stop."""
        return bool(self.voters) or self.quorum_slot >= 0


def initial_state(environment: FaultEnvironment) -> BrokerStates:
    """Every broker is well."""
    racks = environment.slot_racks
    return BrokerStates((WELL,) * len(racks), racks)


def quorum_state(brokers: BrokerStates, environment: FaultEnvironment) -> int:
    """QUORUM_LOST or QUORUM_STOPPED while the controller quorum is, else QUORUM_BACK."""
    if environment.quorum_slot >= 0:
        own = brokers.own[environment.quorum_slot]
        if own != WELL:
            return int(environment.table.outages[own].effect)
    if environment.voters and _majority_out(
        *brokers, environment.voters, environment.table.of_racks
    ):
        return LOST
    return BACK


@lru_cache(maxsize=2**18)
def _majority_out(
    own: Own, racks: tuple[int, ...], voters: tuple[int, ...], of_racks: frozenset[int]
) -> bool:
    """Racks with half of the voters or more are out."""
    out = {rack for condition, rack in zip(own, racks, strict=True) if condition in of_racks}
    return 2 * sum(voters[rack] for rack in out) >= sum(voters)


@lru_cache(maxsize=256)
def _shapes(mechanism_table: Table, mechanisms: frozenset[str]) -> frozenset[str]:
    return mechanisms & {entry.shape_path for entry in mechanism_table.entries}


@lru_cache(maxsize=64)
def _of_quorum(mechanism_table: Table) -> tuple[Mechanism, ...]:
    return tuple(entry for entry in mechanism_table.entries if entry.effect.of_quorum)


# Events of the quorum reach every partition; the slot has no meaning.
_ANY_SLOT = (0,)
# Plain integers: enumeration members take ten times as long to hash.
_DESTROY = int(BrokerEvent.DESTROY)
_OF_QUORUM = (int(BrokerEvent.QUORUM_LOST), int(BrokerEvent.QUORUM_STOPPED), BACK)
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
    return Change(rate, own, events + quorum if after == BACK else quorum + events)


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
