"""Leader elections of the KRaft and the ZooKeeper controller, for simulation and reduced models.

Sources: ``PartitionChangeBuilder`` and ``ReplicationControlManager`` (KRaft, KIP-631, KIP-704,
KIP-966, KAFKA-15021, KAFKA-15665, KAFKA-19522); ``kafka.controller.Election`` (ZooKeeper).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from advisor.protocol.rules.partition_registration import NO_LEADER, Registration, Replicas
from advisor.protocol.rules.versions import Rules

ONLINE = "online"
PREFERRED = "preferred"
UNCLEAN = "unclean"


def choose(
    registration: Registration,
    isr: Replicas,
    elr: Replicas,
    active: Collection[int],
    kind: str,
    rules: Rules,
) -> tuple[int, bool]:
    """Return KRaft's choice of a leader, and whether it may lack committed records.

    Order: the preferred replica if `kind` says so; the present leader; an in-sync replica, or an
    eligible one if the ISR is empty; the last known leader (with ELR, if ISR and ELR are empty: an
    unclean election in effect); any active replica if the election may be unclean.

    isr, elr: broker ids after the change.
    active: ids of brokers that are neither fenced nor in controlled shutdown.
    """

    def valid(replica: int) -> bool:
        eligible = replica in isr or (not isr and replica in elr)
        return eligible and replica in active

    if kind == PREFERRED and valid(registration.replicas[0]):
        return registration.replicas[0], False
    if valid(registration.leader):
        return registration.leader, False
    for replica in registration.replicas:
        if valid(replica):
            return replica, False
    last_known = _last_known_leader(registration, isr, elr, active, rules)
    if last_known is not None:
        return last_known, True
    if kind == UNCLEAN:
        for replica in registration.replicas:
            if replica in active:
                return replica, True
    return NO_LEADER, False


def _last_known_leader(
    registration: Registration,
    isr: Replicas,
    elr: Replicas,
    active: Collection[int],
    rules: Rules,
) -> int | None:
    if not rules.eligible_leader_replicas or isr or elr or len(registration.last_known_elr) != 1:
        return None
    leader = registration.last_known_elr[0]
    if rules.last_known_leader_must_be_active and leader not in active:
        return None
    return leader


def next_eligible(
    registration: Registration,
    isr: Replicas,
    min_isr: int,
    unclean_shutdowns: Collection[int],
    rules: Rules,
) -> Replicas:
    """Return the ELR after the ISR becomes `isr` (KIP-966).

    While the ISR has fewer than `min_isr` members, it holds the former ISR and ELR members that
    left, except those that registered after an unclean shutdown.
    """
    if not rules.eligible_leader_replicas or len(isr) >= min_isr:
        return ()
    candidates = {*registration.elr, *registration.isr} - set(isr) - set(unclean_shutdowns)
    return tuple(sorted(candidates))


def kraft_change(
    registration: Registration,
    *,
    active: Collection[int],
    min_isr: int,
    rules: Rules,
    kind: str = ONLINE,
    isr: Replicas | None = None,
    replicas: Replicas | None = None,
    adding: Replicas | None = None,
    removing: Replicas | None = None,
    recovering: bool | None = None,
    unclean_shutdowns: Collection[int] = (),
) -> Registration:
    """Return a partition's record after one change by the KRaft controller.

    active: ids of brokers that may lead: neither fenced nor in controlled shutdown.
    kind (one of "online", "preferred", "unclean"): the election, if the change needs one.
    isr, replicas, adding, removing, recovering: what changes; None leaves it as it is.
    unclean_shutdowns: ids of brokers that registered after an unclean shutdown; they leave the ELR.
    Returns the same object, with its epochs, if nothing changes.
    """
    requested = _RequestedChange(
        registration.isr if isr is None else isr,
        registration.replicas if replicas is None else replicas,
        registration.adding if adding is None else adding,
        registration.removing if removing is None else removing,
    )
    completed = _complete_reassignment(requested, rules)
    elr = next_eligible(registration, completed.isr, min_isr, unclean_shutdowns, rules)
    reassigned = registration
    if completed.replicas != registration.replicas:
        reassigned = replace(registration, replicas=completed.replicas)
    leader, unclean = choose(reassigned, completed.isr, elr, active, kind, rules)
    new_isr, elr = _isr_and_elr_under(leader, unclean, completed.isr, elr, registration, rules)
    needs_recovery = unclean and leader != registration.leader and rules.leader_recovery_state
    changed = Registration(
        replicas=completed.replicas,
        isr=new_isr,
        leader=leader,
        elr=elr,
        last_known_elr=_next_last_known(registration, new_isr, leader, rules),
        leader_epoch=registration.leader_epoch,
        partition_epoch=registration.partition_epoch,
        recovering=needs_recovery
        or (registration.recovering if recovering is None else recovering),
        adding=completed.adding,
        removing=completed.removing,
    )
    return _with_epochs(registration, changed, rules)


def _isr_and_elr_under(
    leader: int,
    unclean: bool,
    isr: Replicas,
    elr: Replicas,
    registration: Registration,
    rules: Rules,
) -> tuple[Replicas, Replicas]:
    """Return ISR and ELR under a leader; one elected uncleanly or from the ELR is alone in the ISR.

    Without ELR the last member stays: an empty ISR is never written.
    """
    if leader != registration.leader and unclean:
        return (leader,), ()
    if leader != registration.leader and leader in elr:
        return (leader,), tuple(r for r in elr if r != leader)
    if not isr and not rules.eligible_leader_replicas:
        return registration.isr, elr
    return isr, elr


def _with_epochs(before: Registration, after: Registration, rules: Rules) -> Registration:
    """Return the changed record with its epochs raised; the old record if nothing changed.

    Every change raises the partition epoch. The leader epoch rises with a new leader, a removed
    replica and, in older versions, a shrinking ISR (KAFKA-15021).
    """
    if after == before:
        return before
    bumps_leader_epoch = (
        after.leader != before.leader
        or not set(after.replicas) >= set(before.replicas)
        or (rules.epoch_bump_on_isr_shrink and not set(after.isr) >= set(before.isr))
    )
    return replace(
        after,
        leader_epoch=before.leader_epoch + bumps_leader_epoch,
        partition_epoch=before.partition_epoch + 1,
    )


class _RequestedChange(NamedTuple):
    """Assignment and ISR that a change requests."""

    isr: Replicas
    replicas: Replicas
    adding: Replicas
    removing: Replicas


def _complete_reassignment(requested: _RequestedChange, rules: Rules) -> _RequestedChange:
    """Complete a reassignment whose target is in sync (``PartitionReassignmentReplicas``).

    Every added replica must be in the ISR, and at least one replica of the target. From 3.8 to 4.2
    the whole target must be (KAFKA-15665); since 4.3 only if more replicas are removed than added
    (KAFKA-19975), so that a dead replica of the target no longer blocks the reassignment.
    """
    if not requested.adding and not requested.removing:
        return requested
    isr = tuple(r for r in requested.isr if r not in requested.removing)
    target = tuple(r for r in requested.replicas if r not in requested.removing)
    waits_for = rules.reassignment_waits_for
    needed = set(target if waits_for == "target" else requested.adding)
    if waits_for == "added_unless_fewer" and len(requested.adding) < len(requested.removing):
        needed |= set(target)
    if not isr or not target or not needed <= set(isr):
        return requested
    return _RequestedChange(isr, target, (), ())


def _next_last_known(
    registration: Registration, isr: Replicas, leader: int, rules: Rules
) -> Replicas:
    """Return the last known leader: stored when the ISR empties, cleared by the next leader.

    Since 4.1 it is stored whenever a partition loses its leader (KAFKA-19522), which differs if a
    fenced member stays in the ISR.
    """
    last_known = registration.last_known_elr
    if not rules.eligible_leader_replicas:
        return last_known
    if leader != NO_LEADER:
        return ()
    if rules.last_known_leader_must_be_active:
        stores = registration.leader != NO_LEADER and not last_known
    else:
        stores = not isr and isr != registration.isr and last_known != (registration.leader,)
    return (registration.leader,) if stores else last_known


def zookeeper_offline(
    registration: Registration, live: Collection[int], unclean: bool, rules: Rules
) -> tuple[int, Replicas] | None:
    """Elect a leader for a partition without a live one; return leader and ISR, None without.

    Clean: the first live ISR member in assignment order (in 0.8.0 in ISR order); the live members
    form the new ISR. Unclean: the first live replica, alone in the ISR.
    """
    in_sync = tuple(r for r in registration.isr if r in live)
    order = registration.isr if rules.elect_in_isr_order else registration.replicas
    for replica in order:
        if replica in in_sync:
            return replica, in_sync
    if unclean:
        for replica in registration.replicas:
            if replica in live:
                return replica, (replica,)
    return None


def zookeeper_preferred(registration: Registration, live: Collection[int]) -> int | None:
    """Return the preferred replica if it is live and in sync, else None; the ISR stays."""
    preferred = registration.replicas[0]
    return preferred if preferred in live and preferred in registration.isr else None


def zookeeper_reassigned(target: Replicas, isr: Replicas, live: Collection[int]) -> int | None:
    """Return the first replica of a reassignment's target that is live and in sync."""
    return next((r for r in target if r in live and r in isr), None)


def zookeeper_controlled_shutdown(
    registration: Registration, live: Collection[int], shutting_down: Collection[int]
) -> tuple[int, Replicas] | None:
    """Return the leader and ISR before a broker stops; None if no other replica may lead."""
    isr = tuple(r for r in registration.isr if r not in shutting_down)
    for replica in registration.replicas:
        if replica in live and replica in isr:
            return replica, isr
    return None
