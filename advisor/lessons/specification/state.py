"""States, operators and invariants of the public TLA+ specification of Kafka replication.

Functions are named after their operators in hachikuji/kafka-specification (modules
``KafkaReplication``, ``KafkaTruncateToHighWatermark``, ``Kip101``, ``Kip279``, ``Kip320FirstTry``
and ``Kip320``), in snake case. The model has one partition, a fixed set of replicas, and a
controller that may shrink the ISR or elect a leader at any time.

Two invariants keep the state small: every LeaderAndIsr request has its own epoch, counted from 0,
so the set of requests is a tuple indexed by epoch; and the quorum's leader and leader epoch are
those of the last request.
"""

from __future__ import annotations

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
