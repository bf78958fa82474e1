"""What a controller remembers of one partition."""

from __future__ import annotations

from dataclasses import dataclass

NO_LEADER = -1

Replicas = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Registration:
    """A partition as its controller records it.

    The KRaft controller keeps it as ``PartitionRegistration``; the ZooKeeper controller keeps the
    first three and the epochs in ``/brokers/topics/T/partitions/N/state``.

    Attributes
    ----------
    replicas, isr, elr, last_known_elr : tuple of int
        Broker ids. The order of ``replicas`` is the order of preference; the others are kept as
        they were written.
    leader : int
        ``NO_LEADER`` (-1) without one.
    leader_epoch, partition_epoch : int
    recovering : bool
        The leader was elected uncleanly and has not said that it recovered (KIP-704).
    adding, removing : tuple of int
        Not empty while a reassignment runs.
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


def new_registration(replicas: Replicas, usable: frozenset[int]) -> Registration:
    """A new partition: every usable replica is in sync, the first of them leads.

    Source: ``ReplicationControlManager.buildPartitionRegistration`` (KRaft) and
    ``PartitionStateMachine.initializeLeaderAndIsrForPartitions`` (ZooKeeper).
    """
    isr = tuple(replica for replica in replicas if replica in usable)
    return Registration(replicas=replicas, isr=isr, leader=isr[0] if isr else NO_LEADER)
