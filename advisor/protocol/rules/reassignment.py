"""Partition reassignment and its cancellation.

Sources: ``PartitionReassignmentReplicas``, ``PartitionReassignmentRevert``,
``ReplicationControlManager.alterPartitionReassignment`` (KRaft);
``KafkaController.onPartitionReassignment`` (ZooKeeper); KIP-455, KAFKA-15665.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from advisor.protocol.rules import election
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration, Replicas


def begin(
    registration: Registration, target: Replicas, active: frozenset[int], policy: Policy
) -> Registration:
    """Start a reassignment: the target replicas first, then those to be removed, ascending.

    A target that needs no copying completes at once.
    """
    removing = tuple(sorted(set(registration.replicas) - set(target)))
    adding = tuple(sorted(set(target) - set(registration.replicas)))
    if policy.rules.mode == "kraft":
        return election.kraft_change(
            registration,
            active=active,
            min_isr=policy.min_isr,
            rules=policy.rules,
            replicas=(*target, *removing),
            removing=removing or None,
            adding=adding or None,
        )
    replicas = (*target, *removing)
    started = _written(registration, replicas=replicas, adding=adding, removing=removing)
    return zookeeper_finish(started, active)


def zookeeper_finish(registration: Registration, live: frozenset[int]) -> Registration:
    """Complete a reassignment whose target is in the ISR; otherwise return the same record."""
    if not registration.adding and not registration.removing:
        return registration
    target = tuple(r for r in registration.replicas if r not in registration.removing)
    if not set(target) <= set(registration.isr):
        return registration
    leader = registration.leader
    if leader not in target or leader not in live:
        elected = election.zookeeper_reassigned(target, registration.isr, live)
        leader = NO_LEADER if elected is None else elected
    isr = tuple(r for r in registration.isr if r in target)
    return _written(registration, replicas=target, adding=(), removing=(), isr=isr, leader=leader)


def cancel(
    registration: Registration, active: frozenset[int], policy: Policy
) -> Registration | None:
    """Restore the previous replicas; None if that needs a disabled unclean election."""
    before = tuple(r for r in registration.replicas if r not in registration.adding)
    isr = tuple(r for r in registration.isr if r not in registration.adding)
    if not isr:
        if not policy.unclean:
            return None
        isr = before[:1]
    if policy.rules.mode == "kraft":
        return election.kraft_change(
            registration,
            active=active,
            min_isr=policy.min_isr,
            rules=policy.rules,
            kind=policy.automatic_election,
            isr=isr,
            replicas=before,
            adding=(),
            removing=(),
        )
    leader = registration.leader
    if leader not in before:
        elected = election.zookeeper_reassigned(before, isr, active)
        leader = NO_LEADER if elected is None else elected
    return _written(registration, replicas=before, adding=(), removing=(), isr=isr, leader=leader)


def _written(registration: Registration, **changes: Any) -> Registration:
    """Return the record that the ZooKeeper controller writes, with both epochs raised."""
    return replace(
        registration,
        **changes,
        leader_epoch=registration.leader_epoch + 1,
        partition_epoch=registration.partition_epoch + 1,
    )


def clear_elr(registration: Registration) -> Registration:
    """Clear ELR and last known leader, as after a change of min.insync.replicas (KIP-966)."""
    if not registration.elr and not registration.last_known_elr:
        return registration
    return replace(
        registration,
        elr=(),
        last_known_elr=(),
        partition_epoch=registration.partition_epoch + 1,
    )
