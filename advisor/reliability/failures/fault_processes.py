"""Failure and repair transitions of the brokers of one replica set and of their racks.

A broker is well or in one condition at a time, and the outage that ends first ends it. Most
failures strike running brokers only; destruction strikes whatever still holds a log. That a
failure finds a broker down already, and would have kept it down longer, is neglected: an overlap
of two outages of one broker, of relative weight rate times duration. What each mechanism does
stands in :mod:`advisor.reliability.failures.mechanisms`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from advisor.reliability.failures.mechanisms import (
    WELL,
    BrokerEvent,
    Mechanism,
    Scope,
    Strikes,
    Table,
    repair_of,
    striking,
    table,
)

# Plain integers: enumeration members take ten times as long to hash.
_DESTROY = int(BrokerEvent.DESTROY)

Events = tuple[tuple[int, tuple[int, ...]], ...]
"""Values of `BrokerEvent`, each with the slots that it applies to, in order."""
Own = tuple[int, ...]
"""Per slot: the condition of its broker."""


class BrokerStates(NamedTuple):
    """Brokers of one replica set.

    Attributes
    ----------
    own : tuple of int
        Per slot: the condition of its broker.
    racks : tuple of int
        Per slot: its rack.
    """

    own: Own
    racks: tuple[int, ...]

    def members(self, rack: int) -> tuple[int, ...]:
        """Slots in a rack."""
        return tuple([slot for slot, r in enumerate(self.racks) if r == rack])


class Change(NamedTuple):
    """One transition of the brokers.

    Attributes
    ----------
    rate : str
        Name of the rate, such as "broker.crash" or "repair broker.crash".
    own : tuple of int
        Condition of each slot's broker afterwards.
    events : tuple of (event, slots)
        What happens to brokers, in order: values of `BrokerEvent`.
    """

    rate: str
    own: Own
    events: Events


@dataclass(frozen=True, slots=True)
class Setting:
    """Where the replicas are and what can happen there.

    Attributes
    ----------
    racks : tuple of int
        Rack number per slot, 0 first.
    mechanisms : frozenset of str
        Names of those that can happen, and paths of the probabilities that are not 0.
    table : Table
        What the names mean.
    """

    racks: tuple[int, ...]
    mechanisms: frozenset[str]
    table: Table = field(default_factory=table, repr=False)


def initial_state(setting: Setting) -> BrokerStates:
    """Every broker is well."""
    return BrokerStates((WELL,) * len(setting.racks), setting.racks)


def changes(brokers: BrokerStates, setting: Setting) -> Iterator[Change]:
    """All transitions that can happen next."""
    yield from broker_and_cluster_transitions(brokers.own, setting)
    yield from of_racks(brokers, setting)


def broker_and_cluster_transitions(own: Own, setting: Setting) -> Iterator[Change]:
    """Failures and repairs of single brokers, and those of the whole cluster."""
    process = _process(setting.table, setting.mechanisms)
    for slot in range(len(own)):
        yield from _broker_failures(own, slot, process)
        yield from _broker_repairs(own, slot, process)
    slots = tuple(range(len(own)))
    for failure in process.cluster:
        yield from _cluster_failures(own, slots, failure)
    yield from _joint_repairs(own, slots, process.cluster_repairs)


def of_racks(brokers: BrokerStates, setting: Setting) -> Iterator[Change]:
    """Failures and repairs of racks."""
    process = _process(setting.table, setting.mechanisms)
    for rack in range(max(setting.racks) + 1):
        members = brokers.members(rack)
        for failure in process.rack:
            struck = tuple([s for s in members if brokers.own[s] in failure.strikes])
            if struck:
                yield failure.change(brokers.own, struck)
        yield from _joint_repairs(brokers.own, members, process.rack_repairs)


def ends(brokers: BrokerStates, known: Table | None = None) -> Iterator[Change]:
    """The outages that can end next."""
    process = _process(known or table(), frozenset())
    slots = tuple(range(len(brokers.own)))
    for slot in slots:
        yield from _broker_repairs(brokers.own, slot, process)
    yield from _joint_repairs(brokers.own, slots, process.cluster_repairs)
    for rack in range(max(brokers.racks) + 1):
        yield from _joint_repairs(brokers.own, brokers.members(rack), process.rack_repairs)


class _Failure(NamedTuple):
    """A mechanism, compiled.

    Attributes
    ----------
    name : str
    event, condition : int
        What happens to a struck broker, and the condition that it is left in.
    strikes : frozenset of int
        The conditions in which a broker is struck.
    exclusive : bool
    by_chance : bool
        A probability that is not 0 picks brokers.
    turned : int
        The condition of those that it picks for another outage; WELL if it picks who is struck,
        or none.
    candidates : frozenset of int
        The conditions in which a broker can be picked.
    entry : Mechanism
    """

    name: str
    event: int
    condition: int
    strikes: frozenset[int]
    exclusive: bool
    by_chance: bool
    turned: int
    candidates: frozenset[int]
    entry: Mechanism

    def change(self, own: Own, struck: tuple[int, ...]) -> Change:
        """All of some brokers are struck."""
        return Change(self.name, _with(own, struck, self.condition), ((self.event, struck),))


class _Process(NamedTuple):
    """The failures of a setting by scope; and, by condition, name and event of repairs."""

    broker: tuple[_Failure, ...]
    rack: tuple[_Failure, ...]
    cluster: tuple[_Failure, ...]
    repairs: dict[int, tuple[str, int]]
    rack_repairs: dict[int, tuple[str, int]]
    cluster_repairs: dict[int, tuple[str, int]]


@lru_cache(maxsize=256)
def _process(known: Table, mechanisms: frozenset[str]) -> _Process:
    def failures(scope: Scope) -> tuple[_Failure, ...]:
        chosen = [e for e in known.entries if e.name in mechanisms and e.scope is scope]
        # Destruction last, whatever the order of the results.
        chosen.sort(key=lambda entry: entry.effect is BrokerEvent.DESTROY)
        return tuple(_failure(known, entry, mechanisms) for entry in chosen)

    def repairs(joint: Scope | None) -> dict[int, tuple[str, int]]:
        return {
            condition: (repair_of(entry), int(entry.effect.end))
            for condition, entry in known.outages.items()
            if (entry.scope if entry.together else None) is joint
        }

    return _Process(
        failures(Scope.BROKER),
        failures(Scope.RACK),
        failures(Scope.CLUSTER),
        repairs(None),
        repairs(Scope.RACK),
        repairs(Scope.CLUSTER),
    )


def _failure(known: Table, entry: Mechanism, mechanisms: frozenset[str]) -> _Failure:
    def conditions(strikes: Strikes) -> frozenset[int]:
        return frozenset(c for c in range(known.conditions) if known.severity(c) <= strikes)

    other = known[entry.turns_into] if entry.turns_into else None
    return _Failure(
        entry.name,
        int(entry.effect),
        known.condition_of(entry),
        conditions(entry.strikes),
        entry.exclusive,
        entry.share_path in mechanisms,
        known.condition_of(other) if other else WELL,
        conditions(other.strikes if other else entry.strikes),
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
        if own[slot] not in failure.strikes:
            continue
        if failure.exclusive and failure.condition in own:
            continue
        yield failure.change(own, (slot,))


def _broker_repairs(own: Own, slot: int, process: _Process) -> Iterator[Change]:
    repair = process.repairs.get(own[slot])
    if repair is not None:
        rate, event = repair
        yield Change(rate, _with(own, (slot,), WELL), ((event, (slot,)),))


def _joint_repairs(
    own: Own, members: tuple[int, ...], repairs: dict[int, tuple[str, int]]
) -> Iterator[Change]:
    """Ends of outages that all brokers struck together leave together."""
    for condition, (rate, event) in repairs.items():
        back = tuple([s for s in members if own[s] == condition])
        if back:
            yield Change(rate, _with(own, back, WELL), ((event, back),))


def _cluster_failures(own: Own, slots: tuple[int, ...], failure: _Failure) -> Iterator[Change]:
    struck = tuple([slot for slot in slots if own[slot] in failure.strikes])
    if failure.entry.share is None:
        if struck:
            yield failure.change(own, struck)
        return
    candidates = tuple([slot for slot in slots if own[slot] in failure.candidates])
    down = _with(own, struck, failure.condition)
    for rate, picked in _picks(failure.entry, candidates, failure.by_chance):
        if failure.turned:
            events = ((failure.event, struck), (_DESTROY, picked))
            yield Change(rate, _with(down, picked, failure.turned), events)
        elif picked:
            after = _with(own, picked, failure.condition)
            yield Change(rate, after, ((failure.event, picked),))


@lru_cache(maxsize=4096)
def _picks(
    entry: Mechanism, candidates: tuple[int, ...], by_chance: bool
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Name of the rate and picked slots, for every set that the probability may pick."""
    return tuple(
        (striking(entry, count, len(candidates)), picked)
        for count in range(len(candidates) + 1 if by_chance else 1)
        for picked in combinations(candidates, count)
    )
