"""A partition as its controller records it."""

from __future__ import annotations

from dataclasses import dataclass

NO_LEADER = -1

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Registration:
    """The controller's record of one partition, as both kinds of controller store it.

    replicas, isr, elr, last_known_elr: broker ids. `replicas` is in order of preference; the others
        are in the order written.
    recovering: the leader was elected uncleanly and has not reported recovery (KIP-704).
    adding, removing: broker ids of a running reassignment, else empty.
    """

    replicas: Replicas
    isr: Replicas
    leader: int
    elr: Replicas = ()
    last_known_elr: Replicas = ()
    leader_epoch: int = 0
    partition_epoch: int = 0
    recovering: bool = False
    adding: Replicas = ()
    removing: Replicas = ()


def new_registration(replicas: Replicas, usable: frozenset[int]) -> Registration | None:
    """Return a new partition's record: every active replica in sync, the first of them leader.

    None if no replica is active: a controller never writes an empty first ISR. Source:
    ``ReplicationControlManager.buildPartitionRegistration`` (KRaft) and
    ``PartitionStateMachine.initializeLeaderAndIsrForPartitions`` (ZooKeeper).
    """
    isr = tuple(replica for replica in replicas if replica in usable)
    return Registration(replicas=replicas, isr=isr, leader=isr[0]) if isr else None
