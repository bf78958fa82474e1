"""Actions of the specification's next-state relation, for one partition.

Actions are named as in hachikuji/kafka-specification (``KafkaReplication``, ``Kip320FirstTry``).
Each yields (label, changed parts of the state) for every enabled instance.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.lessons.specification.state import (
    NONE,
    Constants,
    Control,
    Replica,
    ReplicaIds,
    Request,
    first_non_matching_offset_from_tail,
    has_offset,
    is_true_leader,
    replica_is_following,
    replica_presumes_leadership,
    truncate_to,
)
from advisor.lessons.specification.variants import Variant


def controller_actions(control: Control, constants: Constants) -> Iterator[tuple[str, Control]]:
    """``ControllerShrinkIsr`` and ``ControllerElectLeader``; both increment the leader epoch."""
    if len(control.requests) > constants.max_leader_epoch:
        return
    leader, isr = control.leader, control.isr
    for replica in range(constants.replicas):
        without = tuple(member for member in isr if member != replica)
        if leader == replica:
            yield f"ControllerShrinkIsr({replica})", _updated(control, NONE, without or isr)
        elif replica in isr:
            yield f"ControllerShrinkIsr({replica})", _updated(control, leader, without)
    for replica in isr:
        if replica != leader:
            yield f"ControllerElectLeader({replica})", _updated(control, replica, isr)


def _updated(control: Control, leader: int, isr: ReplicaIds) -> Control:
    return Control((*control.requests, Request(leader, isr)), isr, control.next_record_id)


def leader_actions(
    control: Control, replica: Replica, constants: Constants
) -> Iterator[tuple[str, Control, Replica]]:
    """``BecomeLeader`` and ``LeaderWrite``: actions of a single replica."""
    for epoch in range(replica.leader_epoch + 1, len(control.requests)):
        leader, isr = control.requests[epoch]
        if leader == replica.me:
            after = replica._replace(leader_epoch=epoch, leader=leader, isr=isr)
            yield f"BecomeLeader({leader}, epoch {epoch})", control, after
    room = len(replica.log) < constants.log_size
    if replica_presumes_leadership(replica) and room:
        record = (control.next_record_id, replica.leader_epoch)
        if record[0] < constants.max_records:
            written = control._replace(next_record_id=record[0] + 1)
            yield (
                f"LeaderWrite({replica.me}, record {record[0]})",
                written,
                replica._replace(log=(*replica.log, record)),
            )


def follower_actions(
    variant: Variant, control: Control, leader: Replica, follower: Replica, constants: Constants
) -> Iterator[tuple[str, Replica]]:
    """``BecomeFollower``, ``FollowerFetch`` and ``FollowerTruncate``: only the follower changes."""
    pair = f"{follower.me} of {leader.me}"
    for epoch in range(follower.leader_epoch + 1, len(control.requests)):
        request = control.requests[epoch]
        if request.leader == leader.me:
            offset = variant.truncation_offset(epoch, leader, follower)
            if offset is not None and offset <= len(follower.log):
                believing = follower._replace(leader_epoch=epoch, leader=leader.me, isr=request.isr)
                yield f"BecomeFollower({pair}, epoch {epoch})", truncate_to(believing, offset)
    end = len(follower.log)
    if end < constants.log_size and has_offset(leader, end) and variant.may_fetch(leader, follower):
        log = (*follower.log, leader.log[end])
        after = follower._replace(log=log, hw=min(leader.hw, end + 1))
        yield f"FollowerFetch({pair})", after
    if variant.truncates_later and _follower_needs_truncation(leader, follower):
        offset = first_non_matching_offset_from_tail(leader, follower)
        yield f"FollowerTruncate({pair})", truncate_to(follower, offset)


def _follower_needs_truncation(leader: Replica, follower: Replica) -> bool:
    if not (replica_presumes_leadership(leader) and replica_is_following(follower, leader)):
        return False
    end = len(follower.log)
    if end > len(leader.log):
        return True
    return end > 0 and leader.log[end - 1][1] != follower.log[end - 1][1]


def isr_actions(
    variant: Variant, control: Control, leader: Replica, follower: Replica
) -> Iterator[tuple[str, Control, Replica]]:
    """``LeaderShrinkIsr`` and ``LeaderExpandIsr``; only the true leader can update the quorum."""
    if not is_true_leader(control, leader):
        return
    if follower.me in leader.isr:
        if variant.keeps_up(leader, follower):
            return
        label = f"LeaderShrinkIsr({leader.me}, without {follower.me})"
        isr = tuple(member for member in leader.isr if member != follower.me)
    else:
        if not variant.may_join(leader, follower):
            return
        label = f"LeaderExpandIsr({leader.me}, with {follower.me})"
        isr = tuple(sorted((*leader.isr, follower.me)))
    yield label, control._replace(isr=isr), leader._replace(isr=isr)


def may_raise_high_watermark(leader: Replica) -> bool:
    """Leader's part of ``LeaderIncHighWatermark``; each ISR member must acknowledge as well."""
    return replica_presumes_leadership(leader) and has_offset(leader, leader.hw)
