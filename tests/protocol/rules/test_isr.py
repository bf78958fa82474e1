"""ISR membership, acknowledgement, and the high watermark."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.protocol.rules.isr import (
    NOT_ENOUGH_REPLICAS,
    is_caught_up,
    is_stuck_or_slow,
    may_join,
    next_high_watermark,
    refusal_before_append,
)
from advisor.protocol.rules.versions import rules_for

OFFSETS = range(5)


@pytest.mark.parametrize("acks", ["all", 1, 0])
def test_only_acks_all_is_refused_for_the_isr(acks: str | int) -> None:
    """``ReplicaManager``: min.insync.replicas does not apply to acks=1 and acks=0."""
    for isr_size, min_isr in itertools.product(range(1, 5), repeat=2):
        refused = refusal_before_append(acks, isr_size, min_isr)
        assert refused == (NOT_ENOUGH_REPLICAS if acks == "all" and isr_size < min_isr else None)


# --- lag -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("follower", "leader", "silent_ms", "caught_up"),
    [
        (10, 10, 10**9, True),
        (9, 10, 0, True),
        (9, 10, 30_000, True),
        (9, 10, 30_001, False),
        (11, 10, 30_001, False),
    ],
)
def test_lag_counts_time_and_only_behind_the_leaders_end(
    follower: int, leader: int, silent_ms: int, caught_up: bool
) -> None:
    """``Partition.isFollowerOutOfSync`` (0.9 on): an idle follower at the end is never shrunk."""
    assert is_caught_up(follower, leader, 10**9, 10**9 - silent_ms, 30_000) == caught_up


@pytest.mark.parametrize(
    ("follower", "leader", "silent_ms", "out"),
    [
        (10, 10, 10**9, False),
        (9, 10, 10_000, False),
        (9, 10, 10_001, True),
        (6_000, 10_000, 0, False),
        (5_999, 10_000, 0, True),
    ],
)
def test_0_8_shrank_by_messages_too(follower: int, leader: int, silent_ms: int, out: bool) -> None:
    """0.8: silent for more than 10 s while behind, or more than 4000 messages behind."""
    got = is_stuck_or_slow(follower, leader, 10**9, 10**9 - silent_ms, 10_000, 4_000)
    assert got == out


def test_a_burst_removes_a_healthy_follower_in_0_8_only() -> None:
    """KAFKA-1546: one batch of 5000 messages made every follower slow at once."""
    assert is_stuck_or_slow(0, 5_000, 0, 0, 10_000, 4_000)
    assert is_caught_up(0, 5_000, 0, 0, 10_000)


# --- joining -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "mode"), [("2.0", None), ("2.1", None), ("3.9", "zookeeper"), ("3.3", "kraft")]
)
def test_joining_the_isr_over_all_small_cases(version: str, mode: str | None) -> None:
    """At the high watermark; from 2.1 also at the epoch start; from 3.3 (KRaft) unless fenced."""
    rules = rules_for(version, mode)
    for leo, high_watermark, start in itertools.product(OFFSETS, repeat=3):
        for eligible in (True, False):
            expected = leo >= high_watermark
            if version != "2.0":
                expected = expected and leo >= start
            if mode == "kraft":
                expected = expected and eligible
            assert may_join(leo, high_watermark, start, eligible, rules) == expected


def test_kafka_7128_joining_too_early() -> None:
    """L05: a follower past a stale high watermark, short of the epoch start, joined before 2.1."""
    assert may_join(2, 1, 5, True, rules_for("2.0"))
    assert not may_join(2, 1, 5, True, rules_for("2.1"))


# --- high watermark ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2.8", "3.6", "3.7", "4.2"])
def test_high_watermark_over_all_small_cases(version: str) -> None:
    """The least log end offset waited for, never backwards, frozen below min ISR from 3.7."""
    rules = rules_for(version)
    frozen_rule = version in ("3.7", "4.2")
    for current, leader, one, two in itertools.product(OFFSETS, repeat=4):
        for isr_size, min_isr in itertools.product(range(1, 4), repeat=2):
            got = next_high_watermark(current, leader, (one, two), isr_size, min_isr, rules)
            if frozen_rule and isr_size < min_isr:
                assert got == current
            else:
                assert got == max(current, min(leader, one, two))


def test_strict_min_isr_as_in_kafkas_own_test() -> None:
    """KAFKA-15583: min ISR 3, ISR 2, log end 10: the high watermark stays 0 until the ISR is 3."""
    rules = rules_for("3.7")
    assert next_high_watermark(0, 10, (10,), 2, 3, rules) == 0
    assert next_high_watermark(0, 10, (10, 10), 3, 3, rules) == 10
    assert next_high_watermark(0, 10, (10,), 2, 3, rules_for("3.6")) == 10


def test_a_leader_alone_in_the_isr_commits_its_log() -> None:
    """With no follower to wait for, the high watermark is the log end, if min ISR is 1."""
    assert next_high_watermark(3, 8, (), 1, 1, rules_for("4.2")) == 8
    assert next_high_watermark(3, 8, (), 1, 2, rules_for("4.2")) == 3


@given(
    current=st.integers(0, 100),
    leader=st.integers(0, 100),
    waiting=st.lists(st.integers(0, 100), max_size=5),
    isr_size=st.integers(1, 6),
    min_isr=st.integers(1, 6),
    version=st.sampled_from(["0.9", "2.8", "3.7", "4.2"]),
)
def test_high_watermark_never_goes_back_nor_past_a_replica(
    current: int, leader: int, waiting: list[int], isr_size: int, min_isr: int, version: str
) -> None:
    """It is monotonic, and every replica waited for has the records below it."""
    got = next_high_watermark(current, leader, waiting, isr_size, min_isr, rules_for(version))
    assert got >= current
    if got > current:
        assert all(leo >= got for leo in (leader, *waiting))
