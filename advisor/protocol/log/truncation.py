"""Where a follower cuts its log before it copies from a leader.

Three generations: to its own high watermark (before 0.11), to the end of its last epoch as the
leader knows it (KIP-101), step by step to the largest common epoch (KIP-279, 2.0), and since 2.7
the same decision whenever a fetch answer says that the logs diverge.

Sources: ``AbstractFetcherThread.getOffsetTruncationState``, ``ReplicaFetcherThread`` (0.11 to 4.4).
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol.log import leader_epoch_cache as epoch_cache
from advisor.protocol.log.leader_epoch_cache import UNDEFINED, EpochEnd
from advisor.protocol.log.replica_log import Log


class Cut(NamedTuple):
    """Truncate to ``offset``; ask again while not ``final``."""

    offset: int
    final: bool


def after_kip101(follower: Log, high_watermark: int, leader: Log) -> Cut:
    """One question, answered by an offset; without an answer the high watermark must do.

    Parameters
    ----------
    follower, leader : Log
    high_watermark : int
        The follower's.
    """
    latest = epoch_cache.latest(follower.epochs)
    answer = epoch_cache.end_offset_for_kip101(leader.epochs, latest, leader.leo)
    if answer == UNDEFINED:
        return Cut(min(high_watermark, follower.leo), True)
    return Cut(min(answer, follower.leo), True)


def after_kip279(follower: Log, high_watermark: int, leader: Log) -> Cut:
    """One round of the search for the largest epoch that both logs know.

    A follower without any epoch cannot ask and goes by its high watermark.
    """
    latest = epoch_cache.latest(follower.epochs)
    if latest == UNDEFINED:
        return Cut(min(high_watermark, follower.leo), True)
    answer = epoch_cache.end_offset_for(leader.epochs, latest, leader.leo)
    return by_answer(follower, high_watermark, answer)


def by_answer(follower: Log, high_watermark: int, answer: EpochEnd) -> Cut:
    """Where the leader's (epoch, end offset) tells the follower to cut."""
    if answer.end == UNDEFINED:
        return Cut(min(high_watermark, follower.leo), True)
    if answer.epoch == UNDEFINED:
        return Cut(min(answer.end, follower.leo), True)
    own = epoch_cache.end_offset_for(follower.epochs, answer.epoch, follower.leo)
    if own.end == UNDEFINED:
        return Cut(min(answer.end, follower.leo), True)
    if own.epoch != answer.epoch:
        return Cut(min(own.end, follower.leo), False)
    return Cut(min(own.end, answer.end, follower.leo), True)


def divergence(leader: Log, fetch_offset: int, last_fetched_epoch: int) -> EpochEnd | None:
    """What a fetch answer says about a follower whose log is not the leader's (2.7).

    None if the follower's last epoch is known to the leader and reaches the fetch offset.
    """
    if last_fetched_epoch == UNDEFINED:
        return None
    answer = epoch_cache.end_offset_for(leader.epochs, last_fetched_epoch, leader.leo)
    if answer.end == UNDEFINED:
        return None
    if answer.epoch < last_fetched_epoch or answer.end < fetch_offset:
        return answer
    return None
