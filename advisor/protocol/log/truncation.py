"""Where a follower cuts its log before it copies from a leader.

Three generations: to its own high watermark (before 0.11), to the end of its last epoch as the
leader knows it (KIP-101), step by step to the largest common epoch (KIP-279, 2.0), and since 2.7
the same decision whenever a fetch answer says that the logs diverge.

Sources: ``AbstractFetcherThread.getOffsetTruncationState``, ``ReplicaFetcherThread`` (0.11 to 4.4).
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol.log import leader_epoch_cache
from advisor.protocol.log.leader_epoch_cache import UNDEFINED, EpochEnd
from advisor.protocol.log.replica_log import Log


class OffsetTruncationState(NamedTuple):
    """Truncate to ``offset``; ask again while not ``final``."""

    offset: int
    completed: bool


def after_kip101(follower: Log, high_watermark: int, leader: Log) -> OffsetTruncationState:
    """One question, answered by an offset; without an answer the high watermark must do.

    Parameters
    ----------
    follower, leader : Log
    high_watermark : int
        The follower's.
    """
    latest = leader_epoch_cache.latest(follower.epochs)
    answer = leader_epoch_cache.end_offset_for_kip101(leader.epochs, latest, leader.leo)
    if answer == UNDEFINED:
        return OffsetTruncationState(min(high_watermark, follower.leo), True)
    return OffsetTruncationState(min(answer, follower.leo), True)


def after_kip279(follower: Log, high_watermark: int, leader: Log) -> OffsetTruncationState:
    """One round of the search for the largest epoch that both logs know.

    A follower without any epoch cannot ask and goes by its high watermark.
    """
    latest = leader_epoch_cache.latest(follower.epochs)
    if latest == UNDEFINED:
        return OffsetTruncationState(min(high_watermark, follower.leo), True)
    answer = leader_epoch_cache.end_offset_for(leader.epochs, latest, leader.leo)
    return after_epoch_answer(follower, high_watermark, answer)


def after_epoch_answer(
    follower: Log, high_watermark: int, answer: EpochEnd
) -> OffsetTruncationState:
    """Where the leader's (epoch, end offset) tells the follower to cut."""
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
    """What a fetch answer says about a follower whose log is not the leader's (2.7).

    None if the follower's last epoch is known to the leader and reaches the fetch offset.
    """
    if last_fetched_epoch == UNDEFINED:
        return None
    answer = leader_epoch_cache.end_offset_for(leader.epochs, last_fetched_epoch, leader.leo)
    if answer.end == UNDEFINED:
        return None
    if answer.epoch < last_fetched_epoch or answer.end < fetch_offset:
        return answer
    return None
