"""Who is too far behind to stay in the ISR, and when a leader will notice.

A leader looks every half ``replica.lag.time.max.ms``, so it notices after once to one and a half
times that time. Sources: ``Partition.maybeShrinkIsr``, ``ReplicaManager`` (isr-expiration task).
"""

from __future__ import annotations

from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.rules.partition_registration import Replicas
from advisor.protocol.simulation.fetch import accepts, source_of
from advisor.protocol.simulation.state import (
    Follower,
    Partition,
    Replica,
    Settings,
    State,
    replica_of,
)


def period_ms(settings: Settings) -> int:
    """How often a leader looks."""
    return max(1, settings.lag_ms // 2)


def out_of_sync_replicas(
    state: State, partition: Partition, leader: Replica, settings: Settings
) -> Replicas:
    """ISR members that the leader would strike now; none while an ISR change is under way."""
    if leader.proposal is not None:
        return ()
    late = []
    for follower in leader.followers:
        if follower.broker not in leader.isr or _copies(state, partition, follower, settings):
            continue
        due_ms = _due_ms(follower, leader, settings)
        if due_ms is not None and due_ms <= state.now_ms:
            late.append(follower.broker)
    return tuple(late)


def next_look_ms(
    state: State, partition: Partition, leader: Replica, settings: Settings
) -> int | None:
    """When the leader's next look strikes somebody; None if none would."""
    if leader.proposal is not None:
        return None
    found = None
    for follower in leader.followers:
        if follower.broker not in leader.isr or _copies(state, partition, follower, settings):
            continue
        due_ms = _due_ms(follower, leader, settings)
        if due_ms is None:
            continue
        period = period_ms(settings)
        look_ms = -(-max(due_ms, state.now_ms) // period) * period
        found = look_ms if found is None else min(found, look_ms)
    return found


def _copies(state: State, partition: Partition, known: Follower, settings: Settings) -> bool:
    """Whether the follower is fetching right now: then it is a moment away from caught up."""
    follower = replica_of(partition, known.broker)
    if follower is None:
        return False
    source = source_of(state, partition, follower)
    return source is not None and accepts(source, follower, settings)


def _due_ms(follower: Follower, leader: Replica, settings: Settings) -> int | None:
    """From when on the follower counts as out of sync; None while it is at the leader's end."""
    if settings.lag_messages is not None:
        behind = leader.log.leo - max(follower.leo, 0)
        if isr_rules.is_stuck_or_slow(
            follower.leo, leader.log.leo, 0, 0, settings.lag_ms, settings.lag_messages
        ):
            return follower.fetch_ms
        return follower.fetch_ms + settings.lag_ms + 1 if behind > 0 else None
    if follower.leo == leader.log.leo:
        return None
    return follower.caught_up_ms + settings.lag_ms + 1
