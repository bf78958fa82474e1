"""Who leads next: the elections of the KRaft and of the ZooKeeper controller.

Everything that elects a leader, in the reference and in its reductions, calls this module.

Sources: ``PartitionChangeBuilder`` and ``ReplicationControlManager`` (KRaft, KIP-631, KIP-704,
KIP-966, KAFKA-15021, KAFKA-15665, KAFKA-19522); ``kafka.controller.Election`` (ZooKeeper).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

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
    """The KRaft controller's choice among the replicas: (leader, was it unclean).

    Parameters
    ----------
    registration : Registration
        The partition as recorded; its replicas are asked in their order.
    isr, elr : tuple of int
        The ISR and ELR as they will be.
    active : collection of int
        Brokers neither fenced nor in controlled shutdown.
    kind : {"online", "preferred", "unclean"}
    rules : Rules

    Notes
    -----
    Order: in-sync replica; eligible replica if no in-sync one is left; last known leader (with
    ELR, both sets empty: unclean in all but name); any active replica if the election may be
    unclean.
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
    """The ELR after the ISR becomes ``isr`` (KIP-966).

    Empty while the ISR has ``min_isr`` members; below it, whoever was in the ISR or ELR and is not
    in the new ISR, without the replicas in ``lost``, which came back from an unclean shutdown.
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
    """One change of a partition as the KRaft controller makes it.

    Parameters
    ----------
    registration : Registration
    active : collection of int
        Brokers that may lead.
    min_isr : int
        The effective min.insync.replicas.
    rules : Rules
    kind : {"online", "preferred", "unclean"}
    isr, replicas, adding, removing : tuple of int, optional
        What to change it to; None leaves it.
    recovering : bool, optional
        The recovery state that the leader reported.
    lost : collection of int
        Replicas back from an unclean shutdown: they leave the ELR.

    Returns
    -------
    Registration
        The very same object if nothing changes; then no epoch moves either.
    """
    proposed = _proposal(registration, isr, replicas, adding, removing)
    completed = _complete_reassignment(proposed, rules)
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
    """The ISR and ELR under a leader: one elected uncleanly or from the ELR begins alone.

    Without ELR an empty ISR is never written: its last member stays.
    """
    if leader != registration.leader and unclean:
        return (leader,), ()
    if leader != registration.leader and leader in elr:
        return (leader,), tuple(r for r in elr if r != leader)
    if not isr and not rules.eligible_leader_replicas:
        return registration.isr, elr
    return isr, elr


def _with_epochs(before: Registration, after: Registration, rules: Rules) -> Registration:
    """A change with its epochs; the record of before where nothing changed.

    Any change raises the partition epoch. The leader epoch rises with a new leader, with a
    replica that leaves, and in older versions with an ISR that shrinks (KAFKA-15021).
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


class _Proposal:
    """The assignment and ISR that a change asks for."""

    __slots__ = ("adding", "isr", "removing", "replicas")

    def __init__(
        self, isr: Replicas, replicas: Replicas, adding: Replicas, removing: Replicas
    ) -> None:
        self.isr, self.replicas, self.adding, self.removing = isr, replicas, adding, removing


def _proposal(
    registration: Registration,
    isr: Replicas | None,
    replicas: Replicas | None,
    adding: Replicas | None,
    removing: Replicas | None,
) -> _Proposal:
    """What is asked for, and the record's own where nothing is."""
    return _Proposal(
        registration.isr if isr is None else isr,
        registration.replicas if replicas is None else replicas,
        registration.adding if adding is None else adding,
        registration.removing if removing is None else removing,
    )


def _complete_reassignment(proposal: _Proposal, rules: Rules) -> _Proposal:
    """Finish a reassignment whose target is in sync (``PartitionReassignmentReplicas``).

    Every added replica must be in the ISR, and at least one member of the target. From 3.8 to 4.2
    the whole target must (KAFKA-15665); since 4.3 only where more replicas go than come
    (KAFKA-19975), so that a dead member of the target no longer holds up a move.
    """
    if not proposal.adding and not proposal.removing:
        return proposal
    isr = tuple(r for r in proposal.isr if r not in proposal.removing)
    target = tuple(r for r in proposal.replicas if r not in proposal.removing)
    waits_for = rules.reassignment_waits_for
    needed = set(target if waits_for == "target" else proposal.adding)
    if waits_for == "added_unless_fewer" and len(proposal.adding) < len(proposal.removing):
        needed |= set(target)
    if not isr or not target or not needed <= set(isr):
        return proposal
    return _Proposal(isr, target, (), ())


def _next_last_known(
    registration: Registration, isr: Replicas, leader: int, rules: Rules
) -> Replicas:
    """The last known leader: stored when the ISR empties, cleared by the next leader.

    Since 4.1 it is stored whenever a partition loses its leader (KAFKA-19522); the two differ
    where a fenced member stays in the ISR.
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
    """The ZooKeeper controller's election for a partition without a live leader.

    Returns
    -------
    (leader, isr) or None
        None if no replica may lead.

    Notes
    -----
    Clean: the first live member of the ISR in assignment order; 0.8.0 took it in ISR order. The
    new ISR is its live members. Unclean: the first live replica, alone.
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
    """The preferred replica, if it is live and in sync; the ISR stays."""
    preferred = registration.replicas[0]
    return preferred if preferred in live and preferred in registration.isr else None


def zookeeper_reassigned(target: Replicas, isr: Replicas, live: Collection[int]) -> int | None:
    """The first replica of a reassignment's target that is live and in sync."""
    return next((r for r in target if r in live and r in isr), None)


def zookeeper_controlled_shutdown(
    registration: Registration, live: Collection[int], shutting_down: Collection[int]
) -> tuple[int, Replicas] | None:
    """The next leader before a broker stops, and the ISR without it; None if there is nobody."""
    isr = tuple(r for r in registration.isr if r not in shutting_down)
    for replica in registration.replicas:
        if replica in live and replica in isr:
            return replica, isr
    return None
