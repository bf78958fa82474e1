"""One replica of a partition: roles, appends, high watermark, responses to producers.

Sources: ``kafka.cluster.Partition`` (makeLeader, makeFollower, maybeIncrementLeaderHW,
checkEnoughReplicasReachOffset) and ``ReplicaManager`` (0.8.0 to 4.4).
"""

from __future__ import annotations

from collections.abc import Collection

from advisor.protocol.log import replica_log
from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.simulation.events import Acked, Effect, Effects, Failed, Truncated
from advisor.protocol.simulation.state import (
    FOLLOWER,
    LEADER,
    NEVER_MS,
    OFFLINE,
    Follower,
    Partition,
    Replica,
    Settings,
    maximal_isr,
    with_replica,
)

NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"
NETWORK_EXCEPTION = "NETWORK_EXCEPTION"
REQUEST_TIMED_OUT = "REQUEST_TIMED_OUT"


def go_offline(
    partition: Partition, replica: Replica, log: replica_log.Log
) -> tuple[Partition, Effects]:
    """End a replica's process: its state is lost, `log` is what the fault leaves of its log."""
    failed = _fail_pending(partition, replica, NETWORK_EXCEPTION)
    offline = Replica(replica.broker, log=log, hw=min(log.checkpoint, log.leo), role=OFFLINE)
    return with_replica(partition, offline), failed


def apply_metadata(
    partition: Partition, broker: int, now_ms: int, settings: Settings, excluded: Collection[int]
) -> tuple[Partition, Effects]:
    """Apply the controller's record at a broker and take the role that it assigns."""
    registration = partition.registration
    replica = next((r for r in partition.replicas if r.broker == broker), None)
    if broker not in registration.replicas:
        others = tuple(r for r in partition.replicas if r.broker != broker)
        lost = () if replica is None else _fail_pending(partition, replica, NOT_LEADER)
        return partition._replace(replicas=others), lost
    if replica is None:
        replica = Replica(broker)
    if registration.leader == broker:
        leader = _make_leader(replica, registration, now_ms, settings)
        changed = with_replica(partition, leader)
        return raise_high_watermark(changed, leader, now_ms, settings, excluded)
    return _make_follower(partition, replica, settings)


def _make_leader(
    replica: Replica, registration: Registration, now_ms: int, settings: Settings
) -> Replica:
    """Become, or remain, the leader named in the record.

    Only a new leader epoch, cached at once since 2.1, resets the follower states.
    """
    log = replica.log
    followers = replica.followers
    epoch_start = replica.epoch_start
    if registration.leader_epoch > replica.leader_epoch or replica.role != LEADER:
        epoch_start = log.leo
        if settings.with_epochs and settings.rules.epoch_at_become_leader:
            log = replica_log.begin_epoch(log, registration.leader_epoch)
        followers = tuple(
            _reset_follower(replica, other, registration, now_ms)
            for other in registration.replicas
            if other != replica.broker
        )
    else:
        states = {f.broker: f for f in followers}
        followers = tuple(
            states.get(other, Follower(other))
            for other in registration.replicas
            if other != replica.broker
        )
    return replica._replace(
        log=log,
        role=LEADER,
        leader=replica.broker,
        leader_epoch=registration.leader_epoch,
        partition_epoch=registration.partition_epoch,
        truncating=False,
        epoch_start=epoch_start,
        isr=registration.isr,
        proposal=None,
        followers=followers,
    )


def _reset_follower(
    leader: Replica, other: int, registration: Registration, now_ms: int
) -> Follower:
    """Return a follower's state at the start of a leader epoch: caught up now if in the ISR."""
    in_sync_since_ms = now_ms if other in registration.isr else NEVER_MS
    previous = next((f for f in leader.followers if f.broker == other), None)
    if leader.role == LEADER and previous is not None:
        return previous._replace(
            caught_up_ms=in_sync_since_ms, fetch_ms=in_sync_since_ms, leader_leo=leader.log.leo
        )
    return Follower(other, caught_up_ms=in_sync_since_ms)


def _make_follower(
    partition: Partition, replica: Replica, settings: Settings
) -> tuple[Partition, Effects]:
    """Become a follower of the leader in the record, and truncate if the rules do so here."""
    registration = partition.registration
    leader_changed = replica.leader != registration.leader or replica.role != FOLLOWER
    epoch_changed = registration.leader_epoch > replica.leader_epoch or replica.role != FOLLOWER
    restarts = leader_changed or (epoch_changed and settings.rules.truncate_on_every_epoch)
    log = replica.log
    effects = list(_fail_pending(partition, replica, NOT_LEADER))
    if restarts and registration.leader != NO_LEADER and not settings.with_epochs:
        log = replica_log.truncate(log, min(replica.hw, log.leo))
        if log.leo < replica.log.leo:
            effects.append(_truncated(partition, replica, log.leo))
    truncates_by_epoch = settings.with_epochs and not settings.rules.truncate_on_fetch
    changed = Replica(
        broker=replica.broker,
        log=log,
        hw=replica.hw,
        role=FOLLOWER,
        leader=registration.leader,
        leader_epoch=registration.leader_epoch,
        partition_epoch=registration.partition_epoch,
        truncating=truncates_by_epoch
        and registration.leader != NO_LEADER
        and (restarts or replica.truncating),
    )
    return with_replica(partition, changed), tuple(effects)


def append_records(replica: Replica, first: int, count: int, settings: Settings) -> Replica:
    """Append records to a leader's log in its own epoch."""
    run = replica_log.Run(replica.leader_epoch, first, count)
    return replica._replace(log=replica_log.append(replica.log, (run,), settings.with_epochs))


def raise_high_watermark(
    partition: Partition,
    leader: Replica,
    now_ms: int,
    settings: Settings,
    excluded: Collection[int] = (),
) -> tuple[Partition, Effects]:
    """Advance a leader's high watermark as far as possible and answer the requests it completes.

    excluded: ids of brokers outside the ISR to ignore: fenced or stopping, as far as the leader
        knows.
    """
    rules = settings.rules
    members = maximal_isr(leader)
    waits_for_caught_up = rules.high_watermark_waits_for_caught_up
    waiting_leos = [
        f.leo
        for f in leader.followers
        if f.broker in members
        or (waits_for_caught_up and delays_high_watermark(f, leader, now_ms, settings, excluded))
    ]
    min_isr = settings.min_isr(partition)
    high = isr_rules.next_high_watermark(
        leader.hw, leader.log.leo, waiting_leos, len(leader.isr), min_isr, rules
    )
    if high == leader.hw:
        return partition, ()
    if partition.registration.leader == leader.broker:
        newly_committed = replica_log.spans(replica_log.records(leader.log, leader.hw, high))
        partition = partition._replace(
            committed=replica_log.merged((*partition.committed, *newly_committed))
        )
    return _complete_requests(partition, leader._replace(hw=high), min_isr)


def delays_high_watermark(
    follower: Follower,
    leader: Replica,
    now_ms: int,
    settings: Settings,
    excluded: Collection[int] = (),
) -> bool:
    """Return whether the high watermark waits for a follower outside the ISR: it is caught up."""
    if settings.rules.high_watermark_ignores_dead and follower.broker in excluded:
        return False
    return isr_rules.is_caught_up(
        follower.leo, leader.log.leo, now_ms, follower.caught_up_ms, settings.lag_ms
    )


def _complete_requests(
    partition: Partition, leader: Replica, min_isr: int
) -> tuple[Partition, Effects]:
    """Answer the acks=all requests that the high watermark has reached.

    The size of the maximal ISR decides between success and NOT_ENOUGH_REPLICAS_AFTER_APPEND.
    """
    if not leader.waiting:
        return with_replica(partition, leader), ()
    effects: list[Effect] = []
    remaining = []
    acked = partition.acked
    enough = len(maximal_isr(leader)) >= min_isr
    for request in leader.waiting:
        if request.end > leader.hw:
            remaining.append(request)
        elif enough:
            acked = replica_log.merged((*acked, request.span))
            effects.append(Acked(partition.topic, partition.number, request.span))
        else:
            error = isr_rules.NOT_ENOUGH_REPLICAS_AFTER_APPEND
            effects.append(Failed(partition.topic, partition.number, request.span, error))
    changed = leader._replace(waiting=tuple(remaining))
    return with_replica(partition._replace(acked=acked), changed), tuple(effects)


def time_out_requests(
    partition: Partition, leader: Replica, now_ms: int
) -> tuple[Partition, Effects]:
    """Answer the requests whose deadline has passed."""
    expired = [w for w in leader.waiting if w.deadline_ms <= now_ms]
    if not expired:
        return partition, ()
    remaining = tuple(w for w in leader.waiting if w.deadline_ms > now_ms)
    effects = tuple(
        Failed(partition.topic, partition.number, w.span, REQUEST_TIMED_OUT) for w in expired
    )
    return with_replica(partition, leader._replace(waiting=remaining)), effects


def _fail_pending(partition: Partition, replica: Replica, error: str) -> Effects:
    return tuple(Failed(partition.topic, partition.number, w.span, error) for w in replica.waiting)


def _truncated(partition: Partition, replica: Replica, after: int) -> Truncated:
    return Truncated(partition.topic, partition.number, replica.broker, replica.log.leo, after)
