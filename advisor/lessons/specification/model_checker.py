"""Model checker for the public TLA+ specification of Kafka replication.

``check`` returns the numbers that TLC prints, and so shows which truncation defects KIP-101,
KIP-279 and KIP-320 fixed. Source: hachikuji/kafka-specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from advisor.errors import InputError
from advisor.lessons.specification.transcription import (
    NONE,
    VARIANTS,
    Constants,
    Control,
    Replica,
    ReplicaIds,
    Request,
    Variant,
    control_type_ok,
    controller_actions,
    follower_actions,
    initial_control,
    initial_replica,
    isr_actions,
    leader_actions,
    may_raise_high_watermark,
    replica_type_ok,
    same_below_high_watermark,
)
from advisor.protocol.exploration.search import survey

_CONTROL_BITS = 24
_REPLICA_BITS = 22
_CONTROL_MASK = (1 << _CONTROL_BITS) - 1
_REPLICA_MASK = (1 << _REPLICA_BITS) - 1

TYPE_OK, LEADER_IN_ISR, WEAK_ISR, STRONG_ISR = 1, 2, 4, 8

Renaming = tuple[int, ...]

T = TypeVar("T", Control, Replica)


class State(NamedTuple):
    """An unpacked state: the control and every replica."""

    control: Control
    replicas: tuple[Replica, ...]


class _Contribution(NamedTuple):
    """Actions and violations of one combination of the control and up to two replicas.

    steps: actions that leave the requests and the ISR unchanged, as integers to add.
    acknowledged: bit for each (leader, follower) whose follower acknowledges the next record.
    raises: (Required ``acknowledged`` bits, action) to increment a leader's high watermark.
    broken: bit for each violated invariant.
    """

    steps: tuple[int, ...] = ()
    control_steps: tuple[int, ...] = ()
    acknowledged: int = 0
    raises: tuple[tuple[int, int], ...] = ()
    broken: int = 0


class Space:
    """State space of one variant with given constants."""

    def __init__(self, variant: Variant, constants: Constants) -> None:
        self.variant = variant
        self.constants = constants
        self._controls: list[Control] = []
        self._control_ids: dict[Control, int] = {}
        self._replicas: list[Replica] = []
        self._replica_ids: dict[Replica, int] = {}
        self._renamings_by_control: dict[int, tuple[Renaming, ...]] = {}
        self._renamed_controls: dict[tuple[int, Renaming], int] = {}
        self._renamed_replicas: dict[tuple[int, Renaming], int] = {}
        self._renamings = tuple(permutations(range(constants.replicas)))
        self._parts = tuple(self._make_parts())

    @property
    def initial(self) -> int:
        """Packed initial state."""
        replicas = tuple(map(initial_replica, range(self.constants.replicas)))
        return self.pack(State(initial_control(self.constants), replicas))

    def pack(self, state: State) -> int:
        """Pack a state into an integer."""
        packed = _index_of(state.control, self._control_ids, self._controls, _CONTROL_BITS)
        for place, replica in enumerate(state.replicas):
            packed += self._replica_id(replica) << _shift(place)
        return packed

    def unpack(self, packed: int) -> State:
        """Unpack an integer into a state."""
        places = range(self.constants.replicas)
        replicas = tuple(self._replicas[packed >> _shift(p) & _REPLICA_MASK] for p in places)
        return State(self._controls[packed & _CONTROL_MASK], replicas)

    def successors(self, packed: int) -> list[int]:
        """The representatives that can follow a representative; some more than once."""
        steps: list[int] = []
        control_steps: list[int] = []
        raises: list[tuple[int, int]] = []
        acknowledged = 0
        for mask, seen, compute in self._parts:
            key = packed & mask
            contribution = seen.get(key)
            if contribution is None:
                contribution = seen[key] = compute(key)
            steps += contribution[0]
            control_steps += contribution[1]
            acknowledged |= contribution[2]
            raises += contribution[3]
        for needed, step in raises:
            if acknowledged & needed == needed:
                steps.append(step)
        canonical = self.canonical
        if len(self._canonical_renamings(packed & _CONTROL_MASK)) > 1:
            return [canonical(packed + step) for step in steps + control_steps]
        following = [packed + step for step in steps]
        following += [canonical(packed + step) for step in control_steps]
        return following

    def broken(self, packed: int) -> int:
        """Violated invariants of a state, as bits."""
        bits = 0
        for mask, seen, compute in self._parts:
            key = packed & mask
            contribution = seen.get(key)
            if contribution is None:
                contribution = seen[key] = compute(key)
            bits |= contribution[4]
        return bits

    def canonical(self, packed: int) -> int:
        """Representative of a state's symmetry class."""
        renamings = self._canonical_renamings(packed & _CONTROL_MASK)
        if len(renamings) == 1:
            (only,) = renamings
            return packed if only == self._renamings[0] else self._renamed(packed, only)
        return min(self._renamed(packed, renaming) for renaming in renamings)

    def weight(self, packed: int) -> int:
        """Number of states in a representative's symmetry class."""
        permutation_count = factorial(self.constants.replicas)
        renamings = self._canonical_renamings(packed & _CONTROL_MASK)
        if len(renamings) == 1:
            return permutation_count
        stabiliser = sum(self._renamed(packed, renaming) == packed for renaming in renamings)
        return permutation_count // stabiliser

    # Canonical form: minimise the control first, then break ties by the whole state.

    def _canonical_renamings(self, control_id: int) -> tuple[Renaming, ...]:
        """Permutations that minimise a control; for a minimal control, its stabiliser."""
        renamings = self._renamings_by_control.get(control_id)
        if renamings is None:
            control = self._controls[control_id]
            renamed = {r: _rename_control(control, r) for r in self._renamings}
            least = min(renamed.values())
            renamings = tuple(r for r in self._renamings if renamed[r] == least)
            self._renamings_by_control[control_id] = renamings
        return renamings

    def _renamed(self, packed: int, renaming: Renaming) -> int:
        key = (packed & _CONTROL_MASK, renaming)
        result = self._renamed_controls.get(key)
        if result is None:
            control = _rename_control(self._controls[key[0]], renaming)
            result = _index_of(control, self._control_ids, self._controls, _CONTROL_BITS)
            self._renamed_controls[key] = result
        cache = self._renamed_replicas
        packed >>= _CONTROL_BITS
        for place in renaming:
            key = (packed & _REPLICA_MASK, renaming)
            number = cache.get(key)
            if number is None:
                number = self._replica_id(_rename_replica(self._replicas[key[0]], renaming))
                cache[key] = number
            result += number << _shift(place)
            packed >>= _REPLICA_BITS
        return result

    # Contributions of the parts of a state.

    def _make_parts(
        self,
    ) -> Iterator[tuple[int, dict[int, _Contribution], Callable[[int], _Contribution]]]:
        """(bit mask, cache, function that computes a contribution) of each part."""
        yield _CONTROL_MASK, {}, self._control_contribution
        places = range(self.constants.replicas)
        for place in places:
            yield _part_mask(place), {}, self._replica_contribution(place)
        for one, other in combinations(places, 2):
            yield _part_mask(one, other), {}, self._pair_contribution(one, other)

    def _control_contribution(self, key: int) -> _Contribution:
        control = self._controls[key]
        control_steps = tuple(
            self._to_control(key, after) for after in controller_actions(control, self.constants)
        )
        broken = 0 if control_type_ok(control, self.constants) else TYPE_OK
        if control.leader not in control.isr:
            broken |= LEADER_IN_ISR
        return _Contribution(control_steps=control_steps, broken=broken)

    def _replica_contribution(self, place: int) -> Callable[[int], _Contribution]:
        def compute(key: int) -> _Contribution:
            control, replica = self._controls[key & _CONTROL_MASK], self._replica_at(key, place)
            steps = tuple(
                self._to_control(key, written) + self._to_replica(place, replica, after)
                for written, after in leader_actions(control, replica, self.constants)
            )
            raises: tuple[tuple[int, int], ...] = ()
            if may_raise_high_watermark(replica):
                raised = replica._replace(hw=replica.hw + 1)
                needed = sum(self._bit(place, member) for member in replica.isr if member != place)
                if place not in replica.isr or self.variant.acknowledges(replica, replica):
                    raises = ((needed, self._to_replica(place, replica, raised)),)
            broken = 0 if replica_type_ok(replica, self.constants) else TYPE_OK
            broken |= _disagreement(control, replica, replica)
            return _Contribution(steps=steps, raises=raises, broken=broken)

        return compute

    def _pair_contribution(self, one: int, other: int) -> Callable[[int], _Contribution]:
        def compute(key: int) -> _Contribution:
            control = self._controls[key & _CONTROL_MASK]
            steps: list[int] = []
            control_steps: list[int] = []
            acknowledged = broken = 0
            for at, by in ((one, other), (other, one)):
                leader, follower = self._replica_at(key, at), self._replica_at(key, by)
                steps += (
                    self._to_replica(by, follower, after)
                    for after in follower_actions(
                        self.variant, control, leader, follower, self.constants
                    )
                )
                control_steps += (
                    self._to_control(key, written) + self._to_replica(at, leader, after)
                    for written, after in isr_actions(self.variant, control, leader, follower)
                )
                if self.variant.acknowledges(leader, follower):
                    acknowledged |= self._bit(at, by)
                broken |= _disagreement(control, leader, follower)
            return _Contribution(tuple(steps), tuple(control_steps), acknowledged, (), broken)

        return compute

    def _bit(self, leader: int, follower: int) -> int:
        return 1 << leader * self.constants.replicas + follower

    def _replica_at(self, key: int, place: int) -> Replica:
        return self._replicas[key >> _shift(place) & _REPLICA_MASK]

    def _replica_id(self, replica: Replica) -> int:
        return _index_of(replica, self._replica_ids, self._replicas, _REPLICA_BITS)

    def _to_control(self, key: int, after: Control) -> int:
        number = _index_of(after, self._control_ids, self._controls, _CONTROL_BITS)
        return number - (key & _CONTROL_MASK)

    def _to_replica(self, place: int, before: Replica, after: Replica) -> int:
        return (self._replica_id(after) - self._replica_id(before)) << _shift(place)


def _shift(place: int) -> int:
    return _CONTROL_BITS + place * _REPLICA_BITS


def _part_mask(*places: int) -> int:
    return _CONTROL_MASK + sum(_REPLICA_MASK << _shift(place) for place in places)


def _disagreement(control: Control, leader: Replica, other: Replica) -> int:
    if same_below_high_watermark(leader, other):
        return 0
    weak = WEAK_ISR if other.me in leader.isr else 0
    return weak | (STRONG_ISR if other.me in control.isr else 0)


def _index_of(item: T, numbers: dict[T, int], items: list[T], bits: int) -> int:
    """Index of an object, assigned at first use."""
    number = numbers.get(item)
    if number is None:
        number = numbers[item] = len(items)
        items.append(item)
        if number >> bits:
            raise InputError(
                f"these constants give more than {1 << bits} states of one part; take smaller ones"
            )
    return number


def _rename_control(control: Control, renaming: Renaming) -> Control:
    requests = tuple(
        Request(_rename(r.leader, renaming), _rename_isr(r.isr, renaming)) for r in control.requests
    )
    return Control(requests, _rename_isr(control.isr, renaming), control.next_record_id)


def _rename_replica(replica: Replica, renaming: Renaming) -> Replica:
    return replica._replace(
        me=renaming[replica.me],
        leader=_rename(replica.leader, renaming),
        isr=_rename_isr(replica.isr, renaming),
    )


def _rename(replica: int, renaming: Renaming) -> int:
    return NONE if replica == NONE else renaming[replica]


def _rename_isr(isr: ReplicaIds, renaming: Renaming) -> ReplicaIds:
    return tuple(sorted(renaming[member] for member in isr))


INVARIANTS: Mapping[str, int] = MappingProxyType(
    {
        "TypeOk": TYPE_OK,
        "LeaderInIsr": LEADER_IN_ISR,
        "WeakIsr": WEAK_ISR,
        "StrongIsr": STRONG_ISR,
    }
)
"""Invariants of the specification by name, and their bits in ``Space.broken``."""


@dataclass(frozen=True, slots=True)
class Result:
    """Result of an exhaustive search of one variant.

    distinct_states: as counted by TLC, the initial state included.
    depth: transitions to the furthest state. TLC prints one more, since it counts states.
    shortest: invariant name -> transitions of a shortest violation; None if the invariant holds.
        ``LeaderInIsr`` is violated by the initial state (0), which has no leader.
    visited: states stored: one of each symmetry class.
    """

    variant: str
    constants: Constants
    distinct_states: int
    depth: int
    shortest: Mapping[str, int | None]
    visited: int


def check(
    variant: str, replicas: int, log_size: int, max_records: int, max_leader_epoch: int
) -> Result:
    """Visit every reachable state of a variant and check all invariants.

    log_size, max_records, max_leader_epoch: longest log, most records written, and highest leader
        epoch, from 0.
    """
    space = _space(variant, replicas, log_size, max_records, max_leader_epoch)
    result = survey(
        space.initial,
        space.successors,
        broken=space.broken,
        weight=space.weight,
    )
    depths = {bit: len(path) - 1 for bit, path in result.violations.items()}
    shortest = {name: depths.get(bit) for name, bit in INVARIANTS.items()}
    return Result(
        variant=space.variant.name,
        constants=space.constants,
        distinct_states=result.states,
        depth=result.depth,
        shortest=MappingProxyType(shortest),
        visited=result.visited,
    )


def _space(
    variant: str, replicas: int, log_size: int, max_records: int, max_leader_epoch: int
) -> Space:
    constants = Constants(replicas, log_size, max_records, max_leader_epoch)
    for name, value, least in (
        ("replicas", replicas, 1),
        ("log_size", log_size, 0),
        ("max_records", max_records, 0),
        ("max_leader_epoch", max_leader_epoch, 0),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InputError(f"{name}={value!r} must be a whole number of at least {least}")
    return Space(_variant(variant), constants)


_ALIASES = {
    "KafkaTruncateToHighWatermark": "TruncateToHighWatermark",
    "TruncateToHW": "TruncateToHighWatermark",
}


def _variant(name: str) -> Variant:
    variant = VARIANTS.get(_ALIASES.get(name, name))
    if variant is None:
        raise InputError(f"unknown variant {name!r}; one of {', '.join(VARIANTS)}")
    return variant
