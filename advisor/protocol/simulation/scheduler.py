"""What the cluster does by itself next, and when: the order of events in virtual time.

Everything that can happen at once happens before time passes, always in the same order: the
controller first, then who learns of its decisions (leaders before followers), ISR changes, fetches,
and last what leaders notice by the clock. So a run is the same every time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from advisor.errors import ModelError
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation import isr_expiration
from advisor.protocol.simulation.broker_lifecycle import Outcome
from advisor.protocol.simulation.events import Effect
from advisor.protocol.simulation.fetch import (
    changes_something,
    source_of,
    throttled_until_ms,
    unable_to_join,
)
from advisor.protocol.simulation.replica import joins_soon, raise_high_watermark
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

# A partition that comes to rest needs a few dozen steps; this many mean that it never will.
MOST_STEPS = 20_000


def enabled(state: State, settings: Settings) -> Iterator[Any]:
    """The events that can happen now, in the order in which a run takes them."""
    if settings.only_controller:
        return
    yield from _of_controller(state, settings)
    yield from _of_learning(state)
    yield from _of_leaving(state, settings)
    yield from _of_replication(state, settings)
    yield from _of_clock(state, settings)


def _of_controller(state: State, settings: Settings) -> Iterator[Any]:
    if state.controller_from_ms >= 0:
        if state.controller_from_ms <= state.now_ms:
            yield ev.TakeOver()
        return
    # Of a ZooKeeper controller that is down: sessions end and begin, and nobody acts on it.
    late_ms = state.now_ms - settings.session_timeout_ms
    for body in state.brokers:
        silent_ms = body.silent_since_ms
        if silent_ms is not None and silent_ms <= late_ms and body.session != FENCED:
            yield ev.Expire(body.id)
    for body in state.brokers:
        if body.session == FENCED and body.running and body.connected:
            yield ev.Unfence(body.id) if body.registered else ev.Register(body.id)


def _expires_ms(body: Broker, settings: Settings) -> int | None:
    if body.session == FENCED or body.silent_since_ms is None:
        return None
    return body.silent_since_ms + settings.session_timeout_ms


def _hears(body: Broker) -> bool:
    return body.running and body.connected and body.registered


def _of_learning(state: State) -> Iterator[Any]:
    if not has_controller(state):
        return
    for position, partition in enumerate(state.partitions):
        news = _unaware(partition)
        if news:
            hearing = [b.id for b in state.brokers if _hears(b)]
            for broker in news:
                if broker in hearing:
                    yield ev.ApplyMetadata(position, broker)


def _unaware(partition: Partition) -> list[int]:
    """Brokers that do not know the partition's record yet: the leader, then the others by id."""
    record = partition.registration
    news = [r.broker for r in partition.replicas if _is_news(record, r)]
    if not news and len(partition.replicas) == len(record.replicas):
        return news
    known = [r.broker for r in partition.replicas]
    news = sorted([*news, *(broker for broker in record.replicas if broker not in known)])
    if record.leader in news:
        news.remove(record.leader)
        news.insert(0, record.leader)
    return news


def _is_news(record: Registration, replica: Replica) -> bool:
    if replica.broker not in record.replicas:
        return True
    if record.leader == replica.broker:
        return (
            replica.role != LEADER
            or replica.partition_epoch != record.partition_epoch
            or replica.leader_epoch != record.leader_epoch
        )
    return (
        replica.role != FOLLOWER
        or replica.leader_epoch != record.leader_epoch
        or replica.leader != record.leader
    )


def _of_leaving(state: State, settings: Settings) -> Iterator[Any]:
    for body in state.brokers:
        if body.session == STOPPING and body.running:
            leads = any(p.registration.leader == body.id for p in state.partitions)
            if not leads or not settings.kraft:
                yield ev.CompleteShutdown(body.id)


def _of_replication(state: State, settings: Settings) -> Iterator[Any]:
    if has_controller(state):
        for position, partition in enumerate(state.partitions):
            for replica in partition.replicas:
                proposal = replica.proposal
                if proposal is None or proposal.refused:
                    continue
                if _hears(broker_of(state, replica.broker)):
                    yield ev.SubmitIsr(position, replica.broker)
    for position, partition in enumerate(state.partitions):
        for replica in partition.replicas:
            if changes_something(state, partition, replica, settings):
                yield ev.Fetch(position, replica.broker)


def _leaders(state: State) -> Iterator[tuple[int, Partition, Replica]]:
    for position, partition in enumerate(state.partitions):
        for replica in partition.replicas:
            if replica.role == LEADER and broker_of(state, replica.broker).running:
                yield position, partition, replica


def _of_clock(state: State, settings: Settings) -> Iterator[Any]:
    looks = state.now_ms % isr_expiration.period_ms(settings) == 0
    for position, partition, leader in _leaders(state):
        if looks and isr_expiration.out_of_sync_replicas(state, partition, leader, settings):
            yield ev.ShrinkIsr(position, leader.broker)
        late = any(w.deadline_ms <= state.now_ms for w in leader.waiting)
        if late or _could_rise(state, partition, leader, settings):
            yield ev.Recheck(position, leader.broker)


def _could_rise(state: State, partition: Partition, leader: Replica, settings: Settings) -> bool:
    if leader.hw >= leader.log.leo:
        return False
    dead = unable_to_join(state, settings)
    raised, _ = raise_high_watermark(partition, leader, state.now_ms, settings, dead)
    return raised is not partition


def next_time_ms(state: State, settings: Settings) -> int | None:
    """When something will be enabled next, if nothing is now; None: never."""
    if settings.only_controller:
        return None
    times = []
    if state.controller_from_ms >= 0:
        times.append(state.controller_from_ms)
    else:
        for body in state.brokers:
            due = _expires_ms(body, settings)
            if due is not None:
                times.append(due)
    for _, partition, leader in _leaders(state):
        look = isr_expiration.next_look_ms(state, partition, leader, settings)
        if look is not None:
            times.append(look)
        times.extend([w.deadline_ms for w in leader.waiting])
        if partition.throttle:
            times.extend(_throttled_ms(state, partition, leader))
        if leader.hw < leader.log.leo and settings.rules.high_watermark_waits_for_caught_up:
            dead = unable_to_join(state, settings)
            members = maximal_isr(leader)
            times.extend(
                f.caught_up_ms + settings.lag_ms + 1
                for f in leader.followers
                if f.broker not in members
                and f.leo < leader.log.leo
                and joins_soon(f, leader, state.now_ms, settings, dead)
            )
    return min((t for t in times if t > state.now_ms), default=None)


def _throttled_ms(state: State, partition: Partition, leader: Replica) -> Iterator[int]:
    """When new replicas of a throttled reassignment may copy again."""
    for follower in partition.replicas:
        if source_of(state, partition, follower) is leader:
            until_ms = throttled_until_ms(partition, leader, follower)
            if until_ms is not None:
                yield until_ms


def next_sweep_ms(state: State, settings: Settings) -> int | None:
    """When KRaft looks for leaderless partitions that may elect uncleanly; None: it would not."""
    if not settings.rules.sweeps_for_unclean_election or not _sweepable(state, settings):
        return None
    return (state.now_ms // SWEEP_MS + 1) * SWEEP_MS


def _sweepable(state: State, settings: Settings) -> list[int]:
    """Where a sweep may elect: with an active replica or, before 4.1, any last known leader."""
    active = {b.id for b in state.brokers if b.session == ACTIVE}
    fenced_will_do = not settings.rules.last_known_leader_must_be_active
    return [
        position
        for position, p in enumerate(state.partitions)
        if p.unclean
        and p.registration.leader == NO_LEADER
        and (
            active.intersection(p.registration.replicas)
            or (fenced_will_do and p.registration.last_known_elr)
        )
    ]


def next_event(state: State, settings: Settings) -> Any | None:
    """What the cluster does next by itself: something now, or time passes until then; or None."""
    for event in enabled(state, settings):
        return event
    due = next_time_ms(state, settings)
    return None if due is None else ev.Advance(due - state.now_ms)


def run_now(state: State, settings: Settings) -> Outcome:
    """Everything that can happen without time passing."""
    seen: list[Effect] = []
    for _ in range(MOST_STEPS):
        event = next(enabled(state, settings), None)
        if event is None:
            return state, tuple(seen)
        state, effects = step(state, event, settings)
        seen.extend(effects)
    raise restless(state, event)


def restless(state: State, event: Any) -> ModelError:
    """The error of a cluster that goes on for ever."""
    return ModelError(
        f"the cluster does not come to rest at {state.now_ms} ms: "
        f"after {MOST_STEPS} steps the next is still {event}"
    )


def settle(state: State, settings: Settings, rest_ms: int = 0) -> Outcome:
    """Run until nothing more will happen by itself, then let ``rest_ms`` pass."""
    state, effects = run_now(state, settings)
    seen = list(effects)
    while (due := next_time_ms(state, settings)) is not None:
        state, _ = step(state, ev.Advance(due - state.now_ms), settings)
        state, effects = run_now(state, settings)
        seen.extend(effects)
    if rest_ms:
        state, _ = step(state, ev.Advance(rest_ms), settings)
    return state, tuple(seen)


def run_for(state: State, settings: Settings, milliseconds: int) -> Outcome:
    """Let time pass, with everything that happens in it, sweeps of the controller too."""
    end_ms = state.now_ms + milliseconds
    state, effects = run_now(state, settings)
    seen = list(effects)
    while True:
        due = [next_time_ms(state, settings), next_sweep_ms(state, settings)]
        now_ms = min((t for t in due if t is not None and t <= end_ms), default=end_ms)
        state, _ = step(state, ev.Advance(now_ms - state.now_ms), settings)
        if now_ms % SWEEP_MS == 0 and settings.rules.sweeps_for_unclean_election:
            for position in _sweepable(state, settings):
                state, effects = step(state, ev.SweepUnclean(position), settings)
                seen.extend(effects)
        state, effects = run_now(state, settings)
        seen.extend(effects)
        if now_ms == end_ms:
            return state, tuple(seen)


def timeless(state: State) -> State:
    """The same state with the clock set to 0: two moments that differ only in time become equal."""
    now_ms = state.now_ms
    brokers = tuple(
        b if b.silent_since_ms is None else b._replace(silent_since_ms=b.silent_since_ms - now_ms)
        for b in state.brokers
    )
    partitions = tuple(
        p._replace(replicas=tuple(_timeless_copy(r, now_ms) for r in p.replicas))
        for p in state.partitions
    )
    from_ms = state.controller_from_ms
    return state._replace(
        now_ms=0,
        brokers=brokers,
        partitions=partitions,
        controller_from_ms=from_ms if from_ms < 0 else from_ms - now_ms,
    )


def _timeless_copy(replica: Replica, now_ms: int) -> Replica:
    if replica.role != LEADER:
        return replica
    followers = tuple(
        f._replace(caught_up_ms=f.caught_up_ms - now_ms, fetch_ms=f.fetch_ms - now_ms)
        for f in replica.followers
    )
    waiting = tuple(w._replace(deadline_ms=w.deadline_ms - now_ms) for w in replica.waiting)
    return replica._replace(followers=followers, waiting=waiting)
