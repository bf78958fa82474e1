"""Who is in sync, what may be acknowledged, and how far consumers may read.

Sources: ``kafka.cluster.Partition`` and ``ReplicaManager`` (0.8.0 to 4.4); KAFKA-1546 (lag in
time, not in messages), KAFKA-7128 (epoch start), KAFKA-15583 (strict min ISR), KIP-497, KIP-841.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from advisor.protocol.rules.versions import Rules

NOT_ENOUGH_REPLICAS = "NOT_ENOUGH_REPLICAS"
_LOAD_FACTOR = 0.75  # Of a Scala HashSet, before it grows.
NOT_ENOUGH_REPLICAS_AFTER_APPEND = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"


def refusal_before_append(acks: str | int, isr_size: int, min_isr: int) -> str | None:
    """The error with which a leader refuses a produce request, or None if it appends it.

    Only acks=all looks at the in-sync replicas; acks=1 and acks=0 are never refused for them.
    """
    return NOT_ENOUGH_REPLICAS if acks == "all" and isr_size < min_isr else None


def needs_whole_isr(acks: str | int) -> bool:
    """True if the answer waits for every in-sync replica, not for min.insync.replicas of them."""
    return acks == "all"


def expanded_isr(isr: tuple[int, ...], broker: int, rules: Rules) -> tuple[int, ...]:
    """The ISR that a leader proposes when a follower joins, in the order that it is sent in.

    The controller keeps that order, and ``kafka-topics.sh --describe`` shows it. Until 4.1 it is
    that of joining. Since 4.2 the leader's is a Java set, copied on its way into Scala's mutable
    ``HashSet``, which is walked by bucket. Source: ``Partition.prepareIsrExpand``. (Before 4.2 sets
    of five and more were walked otherwise, which is not modelled.)

    Examples
    --------
    >>> from advisor.protocol.rules.versions import rules_for
    >>> joined((1, 9, 3), 2, rules_for("4.2"))
    (1, 9, 2, 3)
    >>> joined((1, 9, 3), 2, rules_for("4.1"))
    (1, 9, 3, 2)
    """
    members = (*isr, broker)
    # ``HashSet.from``: as many buckets as the members need, eight at least.
    needed = int((len(members) + 1) / _LOAD_FACTOR)
    return (
        _hash_set_order(members, _power_of_two(max(5, needed))) if rules.isr_by_bucket else members
    )


def shrunk_isr(isr: tuple[int, ...], out_of_sync: Collection[int], rules: Rules) -> tuple[int, ...]:
    """The ISR that a leader proposes without those that lag; in order as for `joined`.

    Source: ``Partition.prepareIsrShrink``, whose ``diff`` fills an empty set of sixteen buckets.
    """
    members = tuple(b for b in isr if b not in out_of_sync)
    buckets = 16
    while len(members) >= buckets * _LOAD_FACTOR:
        buckets *= 2
    return _hash_set_order(members, buckets) if rules.isr_by_bucket else members


def _power_of_two(least: int) -> int:
    return int(1 << (least - 1).bit_length())


def _hash_set_order(members: tuple[int, ...], buckets: int) -> tuple[int, ...]:
    """As Scala's mutable ``HashSet`` walks broker ids: by bucket, and by hash in each."""
    return tuple(sorted(members, key=lambda b: ((b ^ b >> 16) % buckets, b ^ b >> 16)))


def is_caught_up(
    follower_leo: int,
    leader_leo: int,
    now_ms: int,
    last_caught_up_ms: int,
    replica_lag_time_max_ms: int,
) -> bool:
    """A follower at the leader's end is in sync however long ago it fetched."""
    if follower_leo == leader_leo:
        return True
    return now_ms - last_caught_up_ms <= replica_lag_time_max_ms


def is_stuck_or_slow(
    follower_leo: int,
    leader_leo: int,
    now_ms: int,
    last_fetch_ms: int,
    replica_lag_time_max_ms: int,
    replica_lag_max_messages: int,
) -> bool:
    """0.8's rule: out of sync when silent for too long, or too many records behind."""
    silent = now_ms - last_fetch_ms > replica_lag_time_max_ms and follower_leo < leader_leo
    return silent or leader_leo - follower_leo > replica_lag_max_messages


def may_join(
    follower_leo: int, high_watermark: int, epoch_start: int, eligible: bool, rules: Rules
) -> bool:
    """Whether a follower has caught up far enough to be proposed for the ISR."""
    if follower_leo < high_watermark:
        return False
    if rules.join_needs_epoch_start and follower_leo < epoch_start:
        return False
    return eligible or not rules.join_refuses_fenced


def next_high_watermark(
    current: int,
    leader_leo: int,
    waiting_leos: Iterable[int],
    isr_size: int,
    min_isr: int,
    rules: Rules,
) -> int:
    """The high watermark after a follower's fetch or an ISR change.

    Parameters
    ----------
    current : int
        The high watermark now; it never goes back while a leader leads.
    leader_leo : int
    waiting_leos : iterable of int
        Log end offsets of the other replicas that it waits for: the maximal ISR, and (since
        0.10.2) replicas that are caught up though not yet in it.
    isr_size, min_isr : int
        Since 3.7 the high watermark stands still while the ISR is below min ISR, whatever acks.
    rules : Rules
    """
    if rules.strict_min_isr and isr_size < min_isr:
        return current
    return max(current, min((leader_leo, *waiting_leos)))
