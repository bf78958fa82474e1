"""ISR membership, acknowledgement, and the high watermark.

Sources: ``kafka.cluster.Partition`` and ``ReplicaManager`` (0.8.0 to 4.4); KAFKA-1546 (lag in
time, not in messages), KAFKA-7128 (epoch start), KAFKA-15583 (strict min ISR), KIP-497, KIP-841.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from advisor.protocol.rules.versions import Rules

NOT_ENOUGH_REPLICAS = "NOT_ENOUGH_REPLICAS"
NOT_ENOUGH_REPLICAS_AFTER_APPEND = "NOT_ENOUGH_REPLICAS_AFTER_APPEND"

_LOAD_FACTOR = 0.75  # Of Scala's HashSet.


def refusal_before_append(acks: str | int, isr_size: int, min_isr: int) -> str | None:
    """Return the error with which a leader rejects an acks=all request before appending it."""
    return NOT_ENOUGH_REPLICAS if acks == "all" and isr_size < min_isr else None


def expanded_isr(isr: tuple[int, ...], broker: int, rules: Rules) -> tuple[int, ...]:
    """Return the ISR that a leader proposes when a follower joins, in the order it is sent.

    The controller keeps that order, and ``kafka-topics.sh --describe`` shows it: the joining order,
    and since 4.2 that of Scala's mutable ``HashSet`` (``Partition.prepareIsrExpand``). Before, sets
    of five or more were iterated differently, which is not modelled.
    """
    members = (*isr, broker)
    # ``HashSet.from``: as many buckets as the members need, at least eight.
    needed = int((len(members) + 1) / _LOAD_FACTOR)
    return (
        _hash_set_order(members, _power_of_two(max(5, needed))) if rules.isr_by_bucket else members
    )


def shrunk_isr(isr: tuple[int, ...], out_of_sync: Collection[int], rules: Rules) -> tuple[int, ...]:
    """Return the ISR that a leader proposes without out-of-sync followers, in the order it is sent.

    As `expanded_isr`, but ``diff`` fills an empty set of sixteen buckets
    (``Partition.prepareIsrShrink``).
    """
    members = tuple(b for b in isr if b not in out_of_sync)
    buckets = 16
    while len(members) >= buckets * _LOAD_FACTOR:
        buckets *= 2
    return _hash_set_order(members, buckets) if rules.isr_by_bucket else members


def _power_of_two(least: int) -> int:
    return int(1 << (least - 1).bit_length())


def _hash_set_order(members: tuple[int, ...], buckets: int) -> tuple[int, ...]:
    """Order broker ids as Scala's mutable ``HashSet`` iterates: by bucket, then by hash."""
    return tuple(sorted(members, key=lambda b: ((b ^ b >> 16) % buckets, b ^ b >> 16)))


def is_caught_up(
    follower_leo: int,
    leader_leo: int,
    now_ms: int,
    last_caught_up_ms: int,
    replica_lag_time_max_ms: int,
) -> bool:
    """Return whether a follower stays in sync (since 0.9), as one at the leader's log end does."""
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
    """Return whether 0.8 removes a follower: silent for too long, or too many records behind."""
    silent = now_ms - last_fetch_ms > replica_lag_time_max_ms and follower_leo < leader_leo
    return silent or leader_leo - follower_leo > replica_lag_max_messages


def may_join(
    follower_leo: int, high_watermark: int, epoch_start: int, eligible: bool, rules: Rules
) -> bool:
    """Return whether a follower has caught up far enough to be proposed for the ISR.

    epoch_start: offset at which the leader's epoch began; checked since 2.1 (KAFKA-7128).
    eligible: whether the broker is neither fenced nor stopping; checked in KRaft since 3.3
        (KIP-841).
    """
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
    """Return the high watermark after a follower's fetch or an ISR change.

    Since 3.7 it does not advance while the ISR is below min ISR, whatever the producer's acks.

    waiting_leos: log end offsets of the other replicas that it waits for: the maximal ISR and,
        since 0.10.2, caught-up replicas outside it.
    """
    if rules.strict_min_isr and isr_size < min_isr:
        return current
    return max(current, min((leader_leo, *waiting_leos)))
