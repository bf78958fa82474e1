"""Which followers are out of sync, and when a leader notices.

A leader checks every half ``replica.lag.time.max.ms``, so it notices after 1 to 1.5 times that
time. Sources: ``Partition.maybeShrinkIsr``, ``ReplicaManager`` (isr-expiration task).
"""

from __future__ import annotations

from advisor.protocol.rules import isr as isr_rules
from advisor.protocol.rules.partition_registration import Replicas
from advisor.protocol.simulation.fetch import accepts, fetch_source, is_stuck
from advisor.protocol.simulation.state import (
    Follower,
    Partition,
    Replica,
    Settings,
    State,
    replica_of,
)


def period_ms(settings: Settings) -> int:
    """Return the time between two ISR checks of a leader."""
    return max(1, settings.lag_ms // 2)


def out_of_sync_replicas(
    state: State, partition: Partition, leader: Replica, settings: Settings
) -> Replicas:
    """Return ISR members that the leader would remove now; none while an ISR change is pending."""
    if leader.proposal is not None:
        return ()
    out_of_sync = []
    for follower in leader.followers:
        if follower.broker not in leader.isr or _is_fetching(state, partition, follower, settings):
            continue
        due_ms = _due_ms(follower, leader, settings)
        if due_ms is not None and due_ms <= state.now_ms:
            out_of_sync.append(follower.broker)
    return tuple(out_of_sync)


def next_shrink_ms(
    state: State, partition: Partition, leader: Replica, settings: Settings
) -> int | None:
    """Return when the leader's ISR check next removes a follower; None if it does not."""
    if leader.proposal is not None:
        return None
    earliest_ms = None
    for follower in leader.followers:
        if follower.broker not in leader.isr or _is_fetching(state, partition, follower, settings):
            continue
        due_ms = _due_ms(follower, leader, settings)
        if due_ms is None:
            continue
        period = period_ms(settings)
        check_ms = -(-max(due_ms, state.now_ms) // period) * period
        earliest_ms = check_ms if earliest_ms is None else min(earliest_ms, check_ms)
    return earliest_ms


def _is_fetching(
    state: State, partition: Partition, follower: Follower, settings: Settings
) -> bool:
    """Return whether a follower is fetching now: it is then about to be caught up."""
    replica = replica_of(partition, follower.broker)
    if replica is None:
        return False
    source = fetch_source(state, partition, replica)
    if source is None or not accepts(source, replica, settings):
        return False
    return not is_stuck(source, replica, settings)


def _due_ms(follower: Follower, leader: Replica, settings: Settings) -> int | None:
    """Return when a follower becomes out of sync; None while it is at the leader's log end."""
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
