"""The cluster's internal events and their order in virtual time.

All events enabled at one moment happen before time advances, in a fixed order: controller, metadata
updates (leaders before followers), shutdowns, ISR changes, fetches, and the leaders' timers. So
every run is reproducible.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from advisor.errors import ModelError
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.simulation import events, isr_expiration
from advisor.protocol.simulation.broker_lifecycle import Outcome
from advisor.protocol.simulation.events import Effect
from advisor.protocol.simulation.fetch import (
    fetch_has_effect,
    fetch_source,
    throttled_until_ms,
    unable_to_join,
)
from advisor.protocol.simulation.replica import delays_high_watermark, raise_high_watermark
from advisor.protocol.simulation.state import (
    ACTIVE,
    FENCED,
    FOLLOWER,
    LEADER,
    STOPPING,
    Broker,
    Partition,
    Replica,
    Settings,
    State,
    broker_of,
    has_controller,
    maximal_isr,
)
from advisor.protocol.simulation.step import step

# unclean.leader.election.interval.ms
SWEEP_MS = 300_000

# A cluster becomes quiescent within a few dozen steps; after this many it never will.
MAX_STEPS = 20_000


def enabled(state: State, settings: Settings) -> Iterator[Any]:
    """Yield the internal events that can happen now, in the order in which a run takes them."""
    if settings.only_controller:
        return
    yield from _controller_events(state, settings)
    yield from _metadata_events(state)
    yield from _shutdown_events(state, settings)
    yield from _replication_events(state, settings)
    yield from _timer_events(state, settings)


def _controller_events(state: State, settings: Settings) -> Iterator[Any]:
    if not state.has_quorum:
        return
    if state.controller_from_ms >= 0:
        if state.controller_from_ms <= state.now_ms:
            yield events.TakeOver()
        return
    # While a ZooKeeper controller is down, sessions still end and begin, without elections.
    expired_ms = state.now_ms - settings.session_timeout_ms
    for node in state.brokers:
        silent_ms = node.silent_since_ms
        if silent_ms is not None and silent_ms <= expired_ms and node.session != FENCED:
            yield events.Expire(node.id)
    for node in state.brokers:
        returns = node.running and node.connected and node.stops_by_ms is None
        if node.session == FENCED and returns:
            yield events.Unfence(node.id) if node.registered else events.Register(node.id)


def _session_expiry_ms(node: Broker, settings: Settings) -> int | None:
    if node.session == FENCED or node.silent_since_ms is None:
        return None
    return node.silent_since_ms + settings.session_timeout_ms


def _receives_metadata(node: Broker) -> bool:
    return node.running and node.connected and node.registered


def _metadata_events(state: State) -> Iterator[Any]:
    if not has_controller(state):
        return
    for position, partition in enumerate(state.partitions):
        stale = _stale_brokers(partition)
        if stale:
            receivers = [b.id for b in state.brokers if _receives_metadata(b)]
            for broker in stale:
                if broker in receivers:
                    yield events.ApplyMetadata(position, broker)


def _stale_brokers(partition: Partition) -> list[int]:
    """Return brokers with outdated partition metadata: the leader, then the others by id."""
    registration = partition.registration
    stale = [r.broker for r in partition.replicas if _is_stale(registration, r)]
    if not stale and len(partition.replicas) == len(registration.replicas):
        return stale
    hosts = [r.broker for r in partition.replicas]
    stale = sorted([*stale, *(broker for broker in registration.replicas if broker not in hosts)])
    if registration.leader in stale:
        stale.remove(registration.leader)
        stale.insert(0, registration.leader)
    return stale


def _is_stale(registration: Registration, replica: Replica) -> bool:
    if replica.broker not in registration.replicas:
        return True
    if registration.leader == replica.broker:
        return (
            replica.role != LEADER
            or replica.partition_epoch != registration.partition_epoch
            or replica.leader_epoch != registration.leader_epoch
        )
    return (
        replica.role != FOLLOWER
        or replica.leader_epoch != registration.leader_epoch
        or replica.leader != registration.leader
    )


def _shutdown_events(state: State, settings: Settings) -> Iterator[Any]:
    for node in state.brokers:
        if node.stops_by_ms is None:
            continue
        reached = node.connected and has_controller(state)
        consented = node.session == STOPPING
        if consented and settings.kraft:
            leads = any(p.registration.leader == node.id for p in state.partitions)
            consented = reached and not leads
        if consented or node.stops_by_ms <= state.now_ms:
            yield events.CompleteShutdown(node.id)
        elif reached and node.session != STOPPING:
            yield events.Stop(node.id)


def _replication_events(state: State, settings: Settings) -> Iterator[Any]:
    if has_controller(state):
        for position, partition in enumerate(state.partitions):
            for replica in partition.replicas:
                proposal = replica.proposal
                if proposal is None or proposal.refused:
                    continue
                if _receives_metadata(broker_of(state, replica.broker)):
                    yield events.SubmitIsr(position, replica.broker)
    for position, partition in enumerate(state.partitions):
        for replica in partition.replicas:
            if fetch_has_effect(state, partition, replica, settings):
                yield events.Fetch(position, replica.broker)


def _leaders(state: State) -> Iterator[tuple[int, Partition, Replica]]:
    for position, partition in enumerate(state.partitions):
        for replica in partition.replicas:
            if replica.role == LEADER and broker_of(state, replica.broker).running:
                yield position, partition, replica


def _timer_events(state: State, settings: Settings) -> Iterator[Any]:
    isr_check_due = state.now_ms % isr_expiration.period_ms(settings) == 0
    for position, partition, leader in _leaders(state):
        if isr_check_due and isr_expiration.out_of_sync_replicas(
            state, partition, leader, settings
        ):
            yield events.ShrinkIsr(position, leader.broker)
        timed_out = any(w.deadline_ms <= state.now_ms for w in leader.waiting)
        if timed_out or _high_watermark_can_advance(state, partition, leader, settings):
            yield events.Recheck(position, leader.broker)


def _high_watermark_can_advance(
    state: State, partition: Partition, leader: Replica, settings: Settings
) -> bool:
    if leader.hw >= leader.log.leo:
        return False
    excluded = unable_to_join(state, settings)
    advanced, _ = raise_high_watermark(partition, leader, state.now_ms, settings, excluded)
    return advanced is not partition


def next_time_ms(state: State, settings: Settings) -> int | None:
    """Return the next time at which an event will be enabled; None if there is none."""
    if settings.only_controller:
        return None
    times = [b.stops_by_ms for b in state.brokers if b.stops_by_ms is not None]
    if state.has_quorum and state.controller_from_ms >= 0:
        times.append(state.controller_from_ms)
    elif state.has_quorum:
        for node in state.brokers:
            due = _session_expiry_ms(node, settings)
            if due is not None:
                times.append(due)
    for _, partition, leader in _leaders(state):
        shrink_ms = isr_expiration.next_shrink_ms(state, partition, leader, settings)
        if shrink_ms is not None:
            times.append(shrink_ms)
        times.extend([w.deadline_ms for w in leader.waiting])
        if partition.throttle:
            times.extend(_throttled_ms(state, partition, leader))
        if leader.hw < leader.log.leo and settings.rules.high_watermark_waits_for_caught_up:
            excluded = unable_to_join(state, settings)
            members = maximal_isr(leader)
            times.extend(
                f.caught_up_ms + settings.lag_ms + 1
                for f in leader.followers
                if f.broker not in members
                and f.leo < leader.log.leo
                and delays_high_watermark(f, leader, state.now_ms, settings, excluded)
            )
    return min((t for t in times if t > state.now_ms), default=None)


def _throttled_ms(state: State, partition: Partition, leader: Replica) -> Iterator[int]:
    """Yield when new replicas of a throttled reassignment may copy again."""
    for follower in partition.replicas:
        if fetch_source(state, partition, follower) is leader:
            until_ms = throttled_until_ms(partition, leader, follower)
            if until_ms is not None:
                yield until_ms


def next_sweep_ms(state: State, settings: Settings) -> int | None:
    """Return the time of KRaft's next unclean-election sweep; None if it would elect no leader."""
    if not settings.rules.sweeps_for_unclean_election or not _unclean_candidates(state, settings):
        return None
    return (state.now_ms // SWEEP_MS + 1) * SWEEP_MS


def _unclean_candidates(state: State, settings: Settings) -> list[int]:
    """Return leaderless partitions, by index, that a sweep may elect a leader for.

    They have an active replica or, before 4.1, any last known leader.
    """
    if not state.has_quorum:
        return []
    active = {b.id for b in state.brokers if b.session == ACTIVE}
    fenced_may_lead = not settings.rules.last_known_leader_must_be_active
    return [
        position
        for position, p in enumerate(state.partitions)
        if p.unclean
        and p.registration.leader == NO_LEADER
        and (
            active.intersection(p.registration.replicas)
            or (fenced_may_lead and p.registration.last_known_elr)
        )
    ]


def next_event(state: State, settings: Settings) -> Any | None:
    """Return the next internal event, an advance to when there is one, or None."""
    for event in enabled(state, settings):
        return event
    due = next_time_ms(state, settings)
    return None if due is None else events.Advance(due - state.now_ms)


def run_now(state: State, settings: Settings) -> Outcome:
    """Run every event that can happen without time passing."""
    all_effects: list[Effect] = []
    for _ in range(MAX_STEPS):
        event = next(enabled(state, settings), None)
        if event is None:
            return state, tuple(all_effects)
        state, effects = step(state, event, settings)
        all_effects.extend(effects)
    raise no_quiescence_error(state, event)


def no_quiescence_error(state: State, event: Any) -> ModelError:
    """Return the error for a cluster that never becomes quiescent."""
    return ModelError(
        f"the cluster does not come to rest at {state.now_ms} ms: "
        f"after {MAX_STEPS} steps the next is still {event}"
    )


def settle(state: State, settings: Settings, rest_ms: int = 0) -> Outcome:
    """Run until no internal event remains, then let `rest_ms` pass."""
    state, effects = run_now(state, settings)
    all_effects = list(effects)
    while (due := next_time_ms(state, settings)) is not None:
        state, _ = step(state, events.Advance(due - state.now_ms), settings)
        state, effects = run_now(state, settings)
        all_effects.extend(effects)
    if rest_ms:
        state, _ = step(state, events.Advance(rest_ms), settings)
    return state, tuple(all_effects)


def run_for(state: State, settings: Settings, milliseconds: int) -> Outcome:
    """Let time pass, with all internal events in it, the controller's sweeps included."""
    end_ms = state.now_ms + milliseconds
    state, effects = run_now(state, settings)
    all_effects = list(effects)
    while True:
        due = [next_time_ms(state, settings), next_sweep_ms(state, settings)]
        now_ms = min((t for t in due if t is not None and t <= end_ms), default=end_ms)
        state, _ = step(state, events.Advance(now_ms - state.now_ms), settings)
        if now_ms % SWEEP_MS == 0 and settings.rules.sweeps_for_unclean_election:
            for position in _unclean_candidates(state, settings):
                state, effects = step(state, events.SweepUnclean(position), settings)
                all_effects.extend(effects)
        state, effects = run_now(state, settings)
        all_effects.extend(effects)
        if now_ms == end_ms:
            return state, tuple(all_effects)
