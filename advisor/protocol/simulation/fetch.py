"""One fetch: the leader records the follower's offset and responds, the follower appends.

Sources: ``Partition.fetchRecords``, ``Replica.updateFetchState``, ``AbstractFetcherThread``
(0.8.0 to 4.4); KIP-101, KIP-279, KIP-320, and truncation on fetch in 2.7.
"""

from __future__ import annotations

from advisor.protocol.log import leader_epoch_cache, replica_log, truncation
from advisor.protocol.log.leader_epoch_cache import EpochEnd
from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.simulation.events import Effects, Halted, Truncated
from advisor.protocol.simulation.replica import raise_high_watermark
from advisor.protocol.simulation.state import (
    ACTIVE,
    FOLLOWER,
    LEADER,
    Broker,
    Follower,
    Partition,
    Proposal,
    Replica,
    Settings,
    State,
    broker_of,
    maximal_isr,
    replica_of,
    with_replica,
)

_NO_BROKERS: frozenset[int] = frozenset()


def fetch_source(state: State, partition: Partition, follower: Replica) -> Replica | None:
    """Return the leader replica that a follower can fetch from now, None if it cannot.

    The follower's own metadata decides. A leader that the controller has already deposed still
    responds, unless the epoch fences the fetch (KIP-320).
    """
    if follower.role != FOLLOWER or follower.leader < 0:
        return None
    follower_node = broker_of(state, follower.broker)
    leader_node = broker_of(state, follower.leader)
    if not (follower_node.running and follower_node.connected and follower_node.fetching):
        return None
    if not (leader_node.running and leader_node.connected):
        return None
    if follower_node.limping or leader_node.limping:
        return None
    leader = replica_of(partition, follower.leader)
    if leader is None or leader.role != LEADER:
        return None
    return leader


def accepts(leader: Replica, follower: Replica, settings: Settings) -> bool:
    """Return whether the leader accepts a fetch: from a replica, since KIP-320 in its own epoch."""
    if settings.rules.fence_fetch_by_epoch and leader.leader_epoch != follower.leader_epoch:
        return False
    return _follower_state(leader, follower.broker) is not None


def _follower_state(leader: Replica, broker: int) -> Follower | None:
    """Return a leader's state of a follower, None if it is not a replica."""
    for follower_state in leader.followers:
        if follower_state.broker == broker:
            return follower_state
    return None


def _with_follower_state(leader: Replica, updated: Follower) -> Replica:
    followers = tuple([updated if f.broker == updated.broker else f for f in leader.followers])
    return Replica(*leader[:11], followers, leader.waiting)


def throttled_until_ms(partition: Partition, leader: Replica, follower: Replica) -> int | None:
    """Return when a new replica may copy again; None if it is not throttled.

    A reassignment's throttle applies to replicas that are not in sync yet (KIP-73): each may copy
    that many records, and again a second later.
    """
    if not partition.throttle or follower.broker not in partition.registration.adding:
        return None
    if follower.broker in leader.isr or follower.log.leo >= leader.log.leo:
        return None
    follower_state = next(f for f in leader.followers if f.broker == follower.broker)
    return follower_state.fetch_ms + 1_000


def _is_throttled(state: State, partition: Partition, leader: Replica, follower: Replica) -> bool:
    until_ms = throttled_until_ms(partition, leader, follower)
    return until_ms is not None and until_ms > state.now_ms


def fetch_has_effect(
    state: State, partition: Partition, follower: Replica, settings: Settings
) -> bool:
    """Return whether a fetch now would change anything but times."""
    leader = fetch_source(state, partition, follower)
    if leader is None or not accepts(leader, follower, settings):
        return False
    if partition.throttle and _is_throttled(state, partition, leader, follower):
        return False
    follower_state = _follower_state(leader, follower.broker)
    assert follower_state is not None
    if (
        follower.truncating
        or follower.log.leo != leader.log.leo
        or follower_state.leo != follower.log.leo
        or follower_state.broker_epoch != broker_of(state, follower.broker).epoch
        or min(leader.hw, follower.log.leo) != follower.hw
        or _diverges(leader, follower, settings)
    ):
        return not is_stuck(leader, follower, settings)
    return _can_join(state, leader, follower_state, settings)


def fetch(
    state: State, partition: Partition, broker: int, settings: Settings, answered: bool = True
) -> tuple[Partition, Effects]:
    """Run one fetch of a follower, if it reaches a leader, which records it answered or not."""
    follower = replica_of(partition, broker)
    if follower is None:
        return partition, ()
    leader = fetch_source(state, partition, follower)
    if leader is None or not accepts(leader, follower, settings):
        return partition, ()
    if _is_throttled(state, partition, leader, follower):
        return partition, ()
    if not answered and (follower.truncating or _diverges(leader, follower, settings)):
        return partition, ()
    if follower.truncating:
        return _fetch_epoch_end(partition, leader, follower, settings)
    if _is_out_of_range(leader, follower, settings):
        return _after_out_of_range(partition, leader, follower, settings)
    diverging = _diverging_epoch(leader, follower, settings)
    if diverging is not None:
        target = truncation.after_epoch_answer(follower.log, follower.hw, diverging)
        return _truncate(partition, follower, target.offset, truncating=False)
    high_watermark = leader.hw
    partition, effects = _record_fetch(state, partition, leader, broker, settings)
    if not answered:
        return partition, effects
    return _copy(partition, leader, follower, high_watermark, settings), effects


def _diverges(leader: Replica, follower: Replica, settings: Settings) -> bool:
    """Return whether the leader will respond with something other than records."""
    if _is_out_of_range(leader, follower, settings):
        return True
    return _diverging_epoch(leader, follower, settings) is not None


def _diverging_epoch(leader: Replica, follower: Replica, settings: Settings) -> EpochEnd | None:
    if not settings.rules.truncate_on_fetch:
        return None
    last = leader_epoch_cache.latest(follower.log.epochs)
    return truncation.divergence(leader.log, follower.log.leo, last)


def _is_out_of_range(leader: Replica, follower: Replica, settings: Settings) -> bool:
    """Return whether the leader will respond OFFSET_OUT_OF_RANGE.

    It does if it cannot place the last fetched epoch, or reports none and ends before the offset.
    """
    diverging = _diverging_epoch(leader, follower, settings)
    if diverging is None:
        return follower.log.leo > leader.log.leo
    return diverging == leader_epoch_cache.UNKNOWN_END


def _fetch_epoch_end(
    partition: Partition, leader: Replica, follower: Replica, settings: Settings
) -> tuple[Partition, Effects]:
    """Send OffsetsForLeaderEpoch, as before the first fetch in 0.11 to 2.6, and truncate."""
    if settings.rules.truncation == "epoch":
        target = truncation.after_kip101(follower.log, follower.hw, leader.log)
    else:
        target = truncation.after_kip279(follower.log, follower.hw, leader.log)
    return _truncate(partition, follower, target.offset, truncating=not target.completed)


def _truncate(
    partition: Partition, follower: Replica, offset: int, truncating: bool
) -> tuple[Partition, Effects]:
    log = replica_log.truncate(follower.log, offset)
    changed = follower._replace(log=log, hw=min(follower.hw, log.leo), truncating=truncating)
    effects: Effects = ()
    if log.leo < follower.log.leo:
        effects = (
            Truncated(
                partition.topic, partition.number, follower.broker, follower.log.leo, log.leo
            ),
        )
    return with_replica(partition, changed), effects


def is_stuck(leader: Replica, follower: Replica, settings: Settings) -> bool:
    """Return whether each fetch gets OFFSET_OUT_OF_RANGE and the follower changes nothing."""
    if follower.truncating or follower.log.leo > leader.log.leo:
        return False
    return _is_out_of_range(leader, follower, settings)


def _after_out_of_range(
    partition: Partition, leader: Replica, follower: Replica, settings: Settings
) -> tuple[Partition, Effects]:
    """Handle OFFSET_OUT_OF_RANGE (``AbstractFetcherThread.fetchOffsetAndTruncate``).

    A follower with a longer log than its leader truncates to the leader's end. Before 0.11 it took
    this for data loss by an unclean election: with unclean elections disabled its broker halted.
    A follower whose log is not longer keeps it and fetches again.
    """
    if is_stuck(leader, follower, settings):
        return partition, ()
    if not settings.with_epochs and not partition.unclean and not settings.rules.unclean_only:
        return partition, (Halted(follower.broker),)
    return _truncate(partition, follower, leader.log.leo, truncating=False)


def _record_fetch(
    state: State, partition: Partition, leader: Replica, broker: int, settings: Settings
) -> tuple[Partition, Effects]:
    """Record the follower's fetch offset at the leader; ISR and high watermark may advance."""
    follower = replica_of(partition, broker)
    assert follower is not None
    offset = follower.log.leo
    follower_state = _follower_state(leader, broker)
    assert follower_state is not None
    epoch = broker_of(state, broker).epoch
    updated = _update_fetch_state(follower_state, offset, leader.log.leo, state.now_ms, epoch)
    leader = _with_follower_state(leader, updated)
    if _can_join(state, leader, updated, settings):
        isr = isr_rules.expanded_isr(leader.isr, broker, settings.rules)
        leader = leader._replace(proposal=propose(leader, isr))
    excluded = unable_to_join(state, settings)
    return raise_high_watermark(
        with_replica(partition, leader), leader, state.now_ms, settings, excluded
    )


def _update_fetch_state(
    follower_state: Follower, offset: int, leader_leo: int, now_ms: int, broker_epoch: int
) -> Follower:
    """Update when the follower was last caught up (``Replica.updateFetchState``)."""
    caught_up_ms = follower_state.caught_up_ms
    if offset >= leader_leo:
        caught_up_ms = max(caught_up_ms, now_ms)
    elif offset >= follower_state.leader_leo >= 0:
        caught_up_ms = max(caught_up_ms, follower_state.fetch_ms)
    return Follower(follower_state.broker, offset, caught_up_ms, now_ms, leader_leo, broker_epoch)


def _can_join(state: State, leader: Replica, follower_state: Follower, settings: Settings) -> bool:
    if leader.proposal is not None or follower_state.broker in maximal_isr(leader):
        return False
    broker = broker_of(state, follower_state.broker)
    return isr_rules.may_join(
        follower_state.leo,
        leader.hw,
        leader.epoch_start,
        _eligible(broker, follower_state, settings),
        settings.rules,
    )


def _eligible(broker: Broker, follower_state: Follower, settings: Settings) -> bool:
    """Return whether a broker is active (KIP-841) and not restarted since its fetch (KIP-903)."""
    if broker.session != ACTIVE:
        return False
    checks = settings.rules.broker_epoch_in_alter_partition
    return not checks or follower_state.broker_epoch in (-1, broker.epoch)


def unable_to_join(state: State, settings: Settings) -> frozenset[int]:
    """Return brokers for which the high watermark need not wait outside the ISR (KIP-841)."""
    if not settings.rules.high_watermark_ignores_dead:
        return _NO_BROKERS
    inactive = [b.id for b in state.brokers if b.session != ACTIVE]
    return frozenset(inactive) if inactive else _NO_BROKERS


def propose(leader: Replica, isr: tuple[int, ...]) -> Proposal:
    """Return an ISR proposal with the broker epochs of the fetches that it is based on."""
    broker_epochs = {f.broker: f.broker_epoch for f in leader.followers}
    return Proposal(isr, tuple(broker_epochs.get(b, -1) for b in isr))


def _copy(
    partition: Partition,
    leader: Replica,
    follower: Replica,
    high_watermark: int,
    settings: Settings,
) -> Partition:
    """Append the response at the follower; its high watermark is the leader's before this fetch."""
    log = follower.log
    if log.leo < leader.log.leo:
        end = leader.log.leo
        if throttled_until_ms(partition, leader, follower) is not None:
            end = min(end, log.leo + partition.throttle)
        new = replica_log.records(leader.log, log.leo, end)
        log = replica_log.append(log, new, settings.with_epochs)
    hw = min(high_watermark, log.leo)
    if log is follower.log and hw == follower.hw:
        return partition
    return with_replica(partition, follower._replace(log=log, hw=hw))


def record_last_fetches(state: State, partition: Partition, broker: int) -> Partition:
    """Record fetches up to now that a fault of this broker is about to end."""
    for follower in partition.replicas:
        leader = fetch_source(state, partition, follower)
        if leader is None or broker not in (leader.broker, follower.broker):
            continue
        follower_state = _follower_state(leader, follower.broker)
        if follower_state is None or follower_state.leo < 0:
            continue
        updated = follower_state._replace(caught_up_ms=state.now_ms, fetch_ms=state.now_ms)
        partition = with_replica(partition, _with_follower_state(leader, updated))
    return partition
