"""Where a follower truncates its log before it fetches from a leader.

Before 0.11: to its own high watermark. KIP-101 (0.11): to the end of its last epoch in the leader's
log. KIP-279 (2.0): step by step to the largest common epoch. Since 2.7 the same decision is made
whenever a fetch response reports diverging logs.

Sources: ``AbstractFetcherThread.getOffsetTruncationState``, ``ReplicaFetcherThread`` (0.11 to 4.4).
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol.log import leader_epoch_cache
from advisor.protocol.log.leader_epoch_cache import UNDEFINED, EpochEnd
from advisor.protocol.log.replica_log import Log


class OffsetTruncationState(NamedTuple):
    """Offset to truncate to; repeat the request while not ``completed``."""

    offset: int
    completed: bool


def after_kip101(follower: Log, high_watermark: int, leader: Log) -> OffsetTruncationState:
    """Truncate after one OffsetsForLeaderEpoch answer, or to the high watermark without one."""
    latest = leader_epoch_cache.latest(follower.epochs)
    answer = leader_epoch_cache.end_offset_for_kip101(leader.epochs, latest, leader.leo)
    if answer == UNDEFINED:
        return OffsetTruncationState(min(high_watermark, follower.leo), True)
    return OffsetTruncationState(min(answer, follower.leo), True)


def after_kip279(follower: Log, high_watermark: int, leader: Log) -> OffsetTruncationState:
    """Take one step towards the largest epoch common to both logs.

    A follower without epochs truncates to its high watermark.
    """
    latest = leader_epoch_cache.latest(follower.epochs)
    if latest == UNDEFINED:
        return OffsetTruncationState(min(high_watermark, follower.leo), True)
    answer = leader_epoch_cache.end_offset_for(leader.epochs, latest, leader.leo)
    return after_epoch_answer(follower, high_watermark, answer)


def after_epoch_answer(
    follower: Log, high_watermark: int, answer: EpochEnd
) -> OffsetTruncationState:
    """Return where the leader's (epoch, end offset) makes the follower truncate."""
    if answer.end == UNDEFINED:
        return OffsetTruncationState(min(high_watermark, follower.leo), True)
    if answer.epoch == UNDEFINED:
        return OffsetTruncationState(min(answer.end, follower.leo), True)
    own = leader_epoch_cache.end_offset_for(follower.epochs, answer.epoch, follower.leo)
    if own.end == UNDEFINED:
        return OffsetTruncationState(min(answer.end, follower.leo), True)
    if own.epoch != answer.epoch:
        return OffsetTruncationState(min(own.end, follower.leo), False)
    return OffsetTruncationState(min(own.end, answer.end, follower.leo), True)


def divergence(leader: Log, fetch_offset: int, last_fetched_epoch: int) -> EpochEnd | None:
    """Return the diverging epoch that a fetch response reports (2.7).

    None if the leader has the follower's last fetched epoch and it reaches the fetch offset.
    ``UNKNOWN_END`` if that epoch is above all of the leader's: it responds OFFSET_OUT_OF_RANGE
    (``Partition.readRecords``).
    """
    if last_fetched_epoch == UNDEFINED:
        return None
    answer = leader_epoch_cache.end_offset_for(leader.epochs, last_fetched_epoch, leader.leo)
    if answer.epoch < last_fetched_epoch or answer.end < fetch_offset:
        return answer
    return None
