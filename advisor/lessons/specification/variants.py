"""The five variants of the specification: successive fixes of follower truncation.

``TruncateToHighWatermark`` is Kafka before 0.11; ``Kip101`` is 0.11 and 1.x; ``Kip279`` is 2.0;
``Kip320FirstTry`` was never released; ``Kip320`` is 2.1 and newer.

Source: hachikuji/kafka-specification, one module each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.lessons.specification.state import (
    Replica,
    first_non_matching_offset_from_tail,
    has_high_watermark_reached_current_epoch,
    has_offset,
    is_follower_caught_up,
    is_follower_caught_up_to_leader_epoch,
    is_following_leader_epoch,
    lookup_offset_for_epoch,
    replica_is_following,
    replica_presumes_leadership,
)


@dataclass(frozen=True, slots=True)
class Variant:
    """One module of the specification, as its checks on followers and leaders.

    truncation_offset: (request epoch, leader, follower) -> offset to which a new follower
        truncates; None if it must wait.
    may_fetch: (leader, follower) -> whether the follower may fetch the next record.
    acknowledges: (leader, follower) -> whether the follower has the record at the leader's high
        watermark.
    keeps_up: (leader, follower) -> whether the leader must keep the follower in the ISR.
    may_join: (leader, follower) -> whether the leader may add the follower to the ISR.
    truncates_later: a follower may also truncate later, when its log has diverged
        (``FollowerTruncate``).
    """

    name: str
    truncation_offset: Callable[[int, Replica, Replica], int | None]
    may_fetch: Callable[[Replica, Replica], bool]
    acknowledges: Callable[[Replica, Replica], bool]
    keeps_up: Callable[[Replica, Replica], bool]
    may_join: Callable[[Replica, Replica], bool]
    truncates_later: bool = False


def _to_high_watermark(_epoch: int, _leader: Replica, follower: Replica) -> int:
    return follower.hw


def _kip101(_epoch: int, leader: Replica, follower: Replica) -> int:
    if not follower.log:
        return 0
    return lookup_offset_for_epoch(leader, follower, follower.log[-1][1])


def _kip279(_epoch: int, leader: Replica, follower: Replica) -> int:
    return first_non_matching_offset_from_tail(leader, follower)


def _kip320(epoch: int, leader: Replica, follower: Replica) -> int | None:
    """As KIP-279, but only with a leader of the same epoch."""
    if not replica_presumes_leadership(leader) or leader.leader_epoch != epoch:
        return None
    return first_non_matching_offset_from_tail(leader, follower)


def _no_truncation(_epoch: int, _leader: Replica, follower: Replica) -> int:
    return len(follower.log)


def _follows(leader: Replica, follower: Replica) -> bool:
    return replica_presumes_leadership(leader) and replica_is_following(follower, leader)


def _has_reached_high_watermark(leader: Replica, follower: Replica) -> bool:
    return replica_is_following(follower, leader) and has_offset(follower, leader.hw)


def _is_at_end(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up(leader, follower, len(leader.log))


def _is_at_high_watermark(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up(leader, follower, leader.hw)


def _may_fetch_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(leader, follower, len(follower.log))


def _acknowledges_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(leader, follower, leader.hw + 1)


def _keeps_up_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(leader, follower, len(leader.log))


def _may_join_first_try(leader: Replica, follower: Replica) -> bool:
    return is_follower_caught_up_to_leader_epoch(
        leader, follower, leader.hw
    ) and has_high_watermark_reached_current_epoch(leader)


def _acknowledges_fenced(leader: Replica, follower: Replica) -> bool:
    return is_following_leader_epoch(leader, follower) and has_offset(follower, leader.hw)


def _keeps_up_fenced(leader: Replica, follower: Replica) -> bool:
    behind = len(follower.log) < len(leader.log)
    return is_following_leader_epoch(leader, follower) and not behind


def _may_join_fenced(leader: Replica, follower: Replica) -> bool:
    return (
        is_following_leader_epoch(leader, follower)
        and (leader.hw == 0 or has_offset(follower, leader.hw - 1))
        and has_high_watermark_reached_current_epoch(leader)
    )


_UNFENCED = (_follows, _has_reached_high_watermark, _is_at_end, _is_at_high_watermark)
_FENCED = (is_following_leader_epoch, _acknowledges_fenced, _keeps_up_fenced, _may_join_fenced)
_FIRST_TRY = (
    _may_fetch_first_try,
    _acknowledges_first_try,
    _keeps_up_first_try,
    _may_join_first_try,
)

VARIANTS: dict[str, Variant] = {
    variant.name: variant
    for variant in (
        Variant("TruncateToHighWatermark", _to_high_watermark, *_UNFENCED),
        Variant("Kip101", _kip101, *_UNFENCED),
        Variant("Kip279", _kip279, *_UNFENCED),
        Variant("Kip320FirstTry", _no_truncation, *_FIRST_TRY, truncates_later=True),
        Variant("Kip320", _kip320, *_FENCED),
    )
}
"""The five variants by name, oldest first."""
