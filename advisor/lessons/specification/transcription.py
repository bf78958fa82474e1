"""The public TLA+ specification of Kafka replication: states, invariants, variants, actions.

Functions are named after their operators in hachikuji/kafka-specification (modules
``KafkaReplication``, ``KafkaTruncateToHighWatermark``, ``Kip101``, ``Kip279``, ``Kip320FirstTry``
and ``Kip320``), in snake case. The model has one partition, a fixed set of replicas, and a
controller that may shrink the ISR or elect a leader at any time.

Two invariants keep the state small: every LeaderAndIsr request has its own epoch, counted from 0,
so the set of requests is a tuple indexed by epoch; and the quorum's leader and leader epoch are
those of the last request.

The five variants are successive fixes of follower truncation: ``TruncateToHighWatermark`` is Kafka
before 0.11; ``Kip101`` is 0.11 and 1.x; ``Kip279`` is 2.0; ``Kip320FirstTry`` was never released;
``Kip320`` is 2.1 and newer. Each action yields the changed parts of the state for every enabled
instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

NONE = -1
"""No leader, and no epoch yet."""

ReplicaIds = tuple[int, ...]
Record = tuple[int, int]
"""(id, leader epoch)."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants of the specification; replicas are numbered 0 to n - 1."""

    replicas: int
    log_size: int
    max_records: int
    max_leader_epoch: int


class Request(NamedTuple):
    """A LeaderAndIsr request; its leader epoch is its index in ``Control.requests``."""

    leader: int
    isr: ReplicaIds


class Control(NamedTuple):
    """Global part of the state: requests sent, the quorum's ISR, the next record id."""

    requests: tuple[Request, ...]
    isr: ReplicaIds
    next_record_id: int

    @property
    def leader(self) -> int:
        """The quorum's leader."""
        return self.requests[-1].leader if self.requests else NONE

    @property
    def leader_epoch(self) -> int:
        """The quorum's leader epoch."""
        return len(self.requests) - 1


class Replica(NamedTuple):
    """Local part of the state: a replica's log and its view of the partition."""

    me: int
    hw: int
    leader_epoch: int
    leader: int
    isr: ReplicaIds
    log: tuple[Record, ...]


def initial_control(constants: Constants) -> Control:
    """``Init``: every replica in sync, no leader, no request."""
    return Control((), tuple(range(constants.replicas)), 0)


def initial_replica(replica: int) -> Replica:
    """``Init``: an empty log, no leader known."""
    return Replica(replica, 0, NONE, NONE, (), ())


def replica_presumes_leadership(replica: Replica) -> bool:
    """Whether a replica considers itself the leader."""
    return replica.leader == replica.me


def replica_is_following(follower: Replica, leader: Replica) -> bool:
    """Whether a follower considers the other replica its leader."""
    return follower.leader == leader.me


def is_following_leader_epoch(leader: Replica, follower: Replica) -> bool:
    """Whether both agree on the leader and its epoch (``Kip320``)."""
    return (
        replica_presumes_leadership(leader)
        and replica_is_following(follower, leader)
        and follower.leader_epoch == leader.leader_epoch
    )


def is_true_leader(control: Control, leader: Replica) -> bool:
    """Whether a replica is leader by the quorum's state, with the same epoch."""
    return (
        control.leader == leader.me
        and replica_presumes_leadership(leader)
        and leader.leader_epoch == control.leader_epoch
    )


def has_offset(replica: Replica, offset: int) -> bool:
    """Whether a log holds a record at the offset."""
    return offset < len(replica.log)


def is_follower_caught_up(leader: Replica, follower: Replica, end_offset: int) -> bool:
    """Whether both logs reach the offset; epochs are not compared."""
    if not replica_is_following(follower, leader):
        return False
    both = has_offset(leader, end_offset - 1) and has_offset(follower, end_offset - 1)
    return end_offset == 0 or both


def is_follower_caught_up_to_leader_epoch(
    leader: Replica, follower: Replica, end_offset: int
) -> bool:
    """The same, with equal epochs of the last record before the offset (``Kip320FirstTry``)."""
    if not replica_presumes_leadership(leader):
        return False
    if not is_follower_caught_up(leader, follower, end_offset):
        return False
    last = end_offset - 1
    return end_offset == 0 or leader.log[last][1] == follower.log[last][1]


def has_high_watermark_reached_current_epoch(leader: Replica) -> bool:
    """Whether the record at the leader's high watermark, if any, is of the leader's epoch."""
    hw = leader.hw
    at_end = hw == len(leader.log)
    return at_end or (has_offset(leader, hw) and leader.log[hw][1] == leader.leader_epoch)


def lookup_offset_for_epoch(leader: Replica, follower: Replica, epoch: int) -> int:
    """End offset of an epoch in the leader's log; default: the follower's high watermark."""
    if not leader.log:
        return follower.hw
    if leader.log[-1][1] == epoch:
        return len(leader.log)
    larger = (offset for offset, record in enumerate(leader.log) if record[1] > epoch)
    return next(larger, follower.hw)


def first_non_matching_offset_from_tail(leader: Replica, follower: Replica) -> int:
    """One after the last offset at which both logs hold the same record."""
    shared = min(len(leader.log), len(follower.log))
    matching = (
        offset + 1
        for offset in reversed(range(shared))
        if leader.log[offset] == follower.log[offset]
    )
    return next(matching, 0)


def truncate_to(replica: Replica, offset: int) -> Replica:
    """Truncate a log to the offset, and lower the high watermark if needed."""
    return replica._replace(log=replica.log[:offset], hw=min(offset, replica.hw))


def same_below_high_watermark(leader: Replica, other: Replica) -> bool:
    """Whether the other log has all records below a presumed leader's high watermark."""
    if not replica_presumes_leadership(leader):
        return True
    hw = leader.hw
    return len(leader.log) >= hw and leader.log[:hw] == other.log[:hw]


def replica_type_ok(replica: Replica, constants: Constants) -> bool:
    """``TypeOk`` of one replica: all values within the constants."""
    ids = range(constants.replicas)
    epochs = range(NONE, constants.max_leader_epoch + 1)
    return (
        0 <= replica.hw <= constants.log_size
        and replica.leader_epoch in epochs
        and replica.leader in (NONE, *ids)
        and set(replica.isr) <= set(ids)
        and len(replica.log) <= constants.log_size
        and all(0 <= r < constants.max_records and 0 <= e in epochs for r, e in replica.log)
    )


def control_type_ok(control: Control, constants: Constants) -> bool:
    """``TypeOk`` of the quorum, the requests and the record counter."""
    ids = set(range(constants.replicas))
    return (
        len(control.requests) <= constants.max_leader_epoch + 1
        and 0 <= control.next_record_id <= constants.max_records
        and set(control.isr) <= ids
        and all(r.leader in (NONE, *ids) and set(r.isr) <= ids for r in control.requests)
    )


@dataclass(frozen=True, slots=True)
class Variant:
    """One module of the specification, as its checks on followers and leaders.

    truncation_offset: (request epoch, leader, follower) -> offset to which a new follower
        truncates; None if it must wait.
    may_fetch: (leader, follower) -> whether the follower may fetch the next record.
    acknowledges: (leader, follower) -> whether the follower has the record at the leader's high
        watermark.
    keeps_up: (leader, follower) -> whether the leader must keep the follower in the ISR.
    may_join: (leader, follower) -> whether the leader may add the follower to the ISR.
    truncates_later: a follower may also truncate later, when its log has diverged
        (``FollowerTruncate``).
    """

    name: str
    truncation_offset: Callable[[int, Replica, Replica], int | None]
    may_fetch: Callable[[Replica, Replica], bool]
    acknowledges: Callable[[Replica, Replica], bool]
    keeps_up: Callable[[Replica, Replica], bool]
    may_join: Callable[[Replica, Replica], bool]
    truncates_later: bool = False


def _to_high_watermark(_epoch: int, _leader: Replica, follower: Replica) -> int:
    return follower.hw


def _kip101(_epoch: int, leader: Replica, follower: Replica) -> int:
    if not follower.log:
        return 0
    return lookup_offset_for_epoch(leader, follower, follower.log[-1][1])


def _kip279(_epoch: int, leader: Replica, follower: Replica) -> int:
    return first_non_matching_offset_from_tail(leader, follower)


def _kip320(epoch: int, leader: Replica, follower: Replica) -> int | None:
    """As KIP-279, but only with a leader of the same epoch."""
    if not replica_presumes_leadership(leader) or leader.leader_epoch != epoch:
        return None
    return first_non_matching_offset_from_tail(leader, follower)


def _no_truncation(_epoch: int, _leader: Replica, follower: Replica) -> int:
    return len(follower.log)


def _follows(leader: Replica, follower: Replica) -> bool:
    return replica_presumes_leadership(leader) and replica_is_following(follower, leader)


def _has_reached_high_watermark(leader: Replica, follower: Replica) -> bool:
    return replica_is_following(follower, leader) and has_offset(follower, leader.hw)


def _is_at_end(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up(leader, follower, len(leader.log))


def _is_at_high_watermark(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up(leader, follower, leader.hw)


def _may_fetch_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(leader, follower, len(follower.log))


def _acknowledges_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(leader, follower, leader.hw + 1)


def _keeps_up_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(leader, follower, len(leader.log))


def _may_join_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(
        leader, follower, leader.hw
    ) and has_high_watermark_reached_current_epoch(leader)


def _acknowledges_fenced(leader: Replica, follower: Replica) -> bool:
    return is_following_leader_epoch(leader, follower) and has_offset(follower, leader.hw)


def _keeps_up_fenced(leader: Replica, follower: Replica) -> bool:
    behind = len(follower.log) < len(leader.log)
    return is_following_leader_epoch(leader, follower) and not behind


def _may_join_fenced(leader: Replica, follower: Replica) -> bool:
    return (
        is_following_leader_epoch(leader, follower)
        and (leader.hw == 0 or has_offset(follower, leader.hw - 1))
        and has_high_watermark_reached_current_epoch(leader)
    )


_UNFENCED = (_follows, _has_reached_high_watermark, _is_at_end, _is_at_high_watermark)
_FENCED = (is_following_leader_epoch, _acknowledges_fenced, _keeps_up_fenced, _may_join_fenced)
_FIRST_TRY = (
    _may_fetch_first_try,
    _acknowledges_first_try,
    _keeps_up_first_try,
    _may_join_first_try,
)

VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("TruncateToHighWatermark", _to_high_watermark, *_UNFENCED),
        Variant("Kip101", _kip101, *_UNFENCED),
        Variant("Kip279", _kip279, *_UNFENCED),
        Variant("Kip320FirstTry", _no_truncation, *_FIRST_TRY, truncates_later=True),
        Variant("Kip320", _kip320, *_FENCED),
    )
}
"""The five variants by name, oldest first."""


def controller_actions(control: Control, constants: Constants) -> Iterator[Control]:
    """``ControllerShrinkIsr`` and ``ControllerElectLeader``; both increment the leader epoch."""
    if len(control.requests) > constants.max_leader_epoch:
        return
    leader, isr = control.leader, control.isr
    for replica in range(constants.replicas):
        without = tuple(member for member in isr if member != replica)
        if leader == replica:
            yield _updated(control, NONE, without or isr)
        elif replica in isr:
            yield _updated(control, leader, without)
    for replica in isr:
        if replica != leader:
            yield _updated(control, replica, isr)


def _updated(control: Control, leader: int, isr: ReplicaIds) -> Control:
    return Control((*control.requests, Request(leader, isr)), isr, control.next_record_id)


def leader_actions(
    control: Control, replica: Replica, constants: Constants
) -> Iterator[tuple[Control, Replica]]:
    """``BecomeLeader`` and ``LeaderWrite``: actions of a single replica."""
    for epoch in range(replica.leader_epoch + 1, len(control.requests)):
        leader, isr = control.requests[epoch]
        if leader == replica.me:
            yield control, replica._replace(leader_epoch=epoch, leader=leader, isr=isr)
    room = len(replica.log) < constants.log_size
    if replica_presumes_leadership(replica) and room:
        record = (control.next_record_id, replica.leader_epoch)
        if record[0] < constants.max_records:
            written = control._replace(next_record_id=record[0] + 1)
            yield written, replica._replace(log=(*replica.log, record))


def follower_actions(
    variant: Variant, control: Control, leader: Replica, follower: Replica, constants: Constants
) -> Iterator[Replica]:
    """``BecomeFollower``, ``FollowerFetch`` and ``FollowerTruncate``: only the follower changes."""
    for epoch in range(follower.leader_epoch + 1, len(control.requests)):
        request = control.requests[epoch]
        if request.leader == leader.me:
            offset = variant.truncation_offset(epoch, leader, follower)
            if offset is not None and offset <= len(follower.log):
                believing = follower._replace(leader_epoch=epoch, leader=leader.me, isr=request.isr)
                yield truncate_to(believing, offset)
    end = len(follower.log)
    if end < constants.log_size and has_offset(leader, end) and variant.may_fetch(leader, follower):
        log = (*follower.log, leader.log[end])
        yield follower._replace(log=log, hw=min(leader.hw, end + 1))
    if variant.truncates_later and _follower_needs_truncation(leader, follower):
        yield truncate_to(follower, first_non_matching_offset_from_tail(leader, follower))


def _follower_needs_truncation(leader: Replica, follower: Replica) -> bool:
    if not _follows(leader, follower):
        return False
    end = len(follower.log)
    if end > len(leader.log):
        return True
    return end > 0 and leader.log[end - 1][1] != follower.log[end - 1][1]


def isr_actions(
    variant: Variant, control: Control, leader: Replica, follower: Replica
) -> Iterator[tuple[Control, Replica]]:
    """``LeaderShrinkIsr`` and ``LeaderExpandIsr``; only the true leader can update the quorum."""
    if not is_true_leader(control, leader):
        return
    if follower.me in leader.isr:
        if variant.keeps_up(leader, follower):
            return
        isr = tuple(member for member in leader.isr if member != follower.me)
    else:
        if not variant.may_join(leader, follower):
            return
        isr = tuple(sorted((*leader.isr, follower.me)))
    yield control._replace(isr=isr), leader._replace(isr=isr)


def may_raise_high_watermark(leader: Replica) -> bool:
    """Leader's part of ``LeaderIncHighWatermark``; each ISR member must acknowledge as well."""
    return replica_presumes_leadership(leader) and has_offset(leader, leader.hw)
