"""Follower truncation: KIP-101, KIP-279, truncation on fetch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.protocol.log import replica_log
from advisor.protocol.log.replica_log import EMPTY, Log, Run
from advisor.protocol.log.truncation import (
    after_epoch_answer,
    after_kip101,
    after_kip279,
    divergence,
)


def written(*runs: tuple[int, int, int]) -> Log:
    return replica_log.append(EMPTY, [Run(*run) for run in runs], with_epochs=True)


def flat(log: Log) -> list[tuple[int, int]]:
    return [(run.epoch, run.first + i) for run in log.runs for i in range(run.length)]


def test_kip_101_keeps_what_the_leader_has():
    """A follower of the same epoch keeps its log up to the leader's end, whatever its HW."""
    follower, leader = written((0, 0, 5)), written((0, 0, 5))
    assert after_kip101(follower, 2, leader) == (5, True)


def test_kip_101_truncates_to_the_start_of_the_next_epoch():
    """The old leader's extra records are truncated."""
    follower, leader = written((0, 0, 7)), written((0, 0, 5), (1, 7, 3))
    assert after_kip101(follower, 2, leader) == (5, True)


def test_kip_101_falls_back_to_the_high_watermark():
    """A leader that has only older epochs cannot answer."""
    follower, leader = written((0, 0, 3), (2, 3, 2)), written((0, 0, 4))
    assert after_kip101(follower, 2, leader) == (2, True)


def test_kip_101_leaves_a_gap_that_kip_279_closes():
    """The leader never had the follower's last epoch: 1.1 keeps one record too many."""
    follower = written((0, 0, 2), (1, 10, 1))
    leader = written((0, 0, 4), (2, 20, 2))
    assert after_kip101(follower, 2, leader) == (3, True)
    first = after_kip279(follower, 2, leader)
    assert first == (2, True)


def test_kip_279_repeats_until_an_epoch_is_common():
    """The leader's answer names an epoch that the follower lacks: truncate and repeat."""
    follower = written((0, 0, 2), (2, 10, 2), (4, 12, 2))
    leader = written((0, 0, 2), (1, 20, 1), (3, 21, 3), (5, 24, 1))
    cut = after_kip279(follower, 0, leader)
    assert cut == (4, False)
    cut = after_kip279(replica_log.truncate(follower, cut.offset), 0, leader)
    assert cut == (2, False)
    cut = after_kip279(replica_log.truncate(follower, cut.offset), 0, leader)
    assert cut == (2, True)


def test_truncation_on_fetch_reports_nothing_while_logs_agree():
    """A follower whose log is a prefix of its leader's gets no diverging epoch (2.7)."""
    leader = written((0, 0, 5), (1, 5, 5))
    assert divergence(leader, 3, 0) is None
    assert divergence(leader, 7, 1) is None
    assert divergence(leader, 0, -1) is None


@pytest.mark.parametrize(
    ("last_fetched_epoch", "fetch_offset", "answer"),
    [
        (2, 5, (0, 2)),
        (0, 4, (0, 2)),
        (6, 6, (4, 13)),
        (5, 9, (4, 13)),
        (10, 18, (10, 17)),
        (0, 2, None),
        (7, 14, None),
        (9, 17, None),
        (10, 17, None),
        (11, 5, (-1, -1)),
    ],
)
def test_the_last_fetched_epoch_is_checked_as_by_kafka(last_fetched_epoch, fetch_offset, answer):
    """``PartitionTest.testLastFetchedOffsetValidation``; (-1, -1) is its OFFSET_OUT_OF_RANGE."""
    runs = (0, 0, 2), (3, 2, 3), (3, 5, 3), (4, 8, 5), (7, 13, 1), (9, 14, 3)
    leader = replica_log.begin_epoch(written(*runs), 10)
    assert divergence(leader, fetch_offset, last_fetched_epoch) == answer


def test_a_leader_without_epochs_cannot_place_any() -> None:
    """An empty epoch cache knows no epoch of a follower."""
    assert divergence(EMPTY, 3, 0) == (-1, -1)
    assert divergence(EMPTY, 3, -1) is None


def test_truncation_on_fetch_names_the_largest_common_epoch():
    """A follower past the end of its epoch, or in an unknown one, gets the diverging epoch."""
    leader = written((0, 0, 5), (2, 5, 5))
    assert divergence(leader, 7, 0) == (0, 5)
    assert divergence(leader, 7, 1) == (0, 5)
    follower = written((0, 0, 4), (1, 30, 3))
    assert after_epoch_answer(follower, 0, divergence(leader, 7, 1)).offset == 4


def _histories() -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """Elections of two brokers: the leader, the other's lag, and the records written."""
    return st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 3)), max_size=7)


@given(_histories())
def test_kip_279_always_ends_in_a_common_prefix(history):
    """After any elections and partial copies the follower truncates to a prefix of its leader."""
    copies, value = [EMPTY, EMPTY], 0
    for epoch, (leader, lag, count) in enumerate(history):
        copies[leader] = replica_log.begin_epoch(copies[leader], epoch)
        run = Run(epoch, value, count)
        copies[leader] = replica_log.append(copies[leader], [run], with_epochs=True)
        value += count
        follower = _truncated(copies[1 - leader], copies[leader])
        assert flat(follower) == flat(copies[leader])[: follower.leo]
        end = max(follower.leo, copies[leader].leo - lag)
        new = replica_log.records(copies[leader], follower.leo, end)
        copies[1 - leader] = replica_log.append(follower, new, with_epochs=True)


def _truncated(follower: Log, leader: Log) -> Log:
    for _ in range(20):
        cut = after_kip279(follower, 0, leader)
        follower = replica_log.truncate(follower, cut.offset)
        if cut.completed:
            return follower
    raise AssertionError("truncation does not end")
