"""Where the replicas of a set are, what can fail there, and the conditions of their brokers.

Behind the slots of the replicas stand, where they matter, one slot for each rack that holds voters
of the controller quorum and no replica, and one for the quorum itself. The quorum is lost while
its own slot is out, or while racks with a majority of the voters are. A rack with replicas is out
while one of its slots is in an outage of the rack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import NamedTuple

from advisor.reliability.failures.mechanisms import WELL, BrokerEvent, Mechanism, Table, table

BACK, LOST = int(BrokerEvent.QUORUM_BACK), int(BrokerEvent.QUORUM_LOST)

Replicas = tuple[int, ...]
Own = tuple[int, ...]
"""Per slot: the condition of its broker."""

Events = tuple[tuple[int, tuple[int, ...]], ...]
"""Values of `BrokerEvent`, each with the slots that it applies to, in order."""


class Exchangeable(Enum):
    """Which replicas of a list are exchangeable, given their racks.

    NONE: unclean elections follow the order of the assignment. FOLLOWERS: the first leads. ALL:
    any.
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
    """QUORUMLOST or QUORUM_STOPPED while the controller quorum is, else QUORUMBACK."""
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
