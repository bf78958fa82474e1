"""Logs, what survives on disk, and where followers cut (KIP-101, KIP-279, truncation on fetch)."""

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


def test_append_counts_offsets_and_notes_epochs():
    """Ten records of epoch 0 and two of epoch 3 end at offset 12."""
    log = written((0, 0, 10), (3, 10, 2))
    assert (log.leo, [tuple(e) for e in log.epochs]) == (12, [(0, 0), (3, 10)])


def test_append_before_0_11_knows_no_epochs():
    """Without epochs in the message format the cache stays empty."""
    assert replica_log.append(EMPTY, [Run(0, 0, 4)], with_epochs=False).epochs == ()


def test_consecutive_records_are_one_run():
    """Two appends of one epoch and consecutive values look like one."""
    assert written((0, 0, 4), (0, 4, 3)) == written((0, 0, 7))


def test_an_epoch_may_begin_without_a_record():
    """A new leader notes its epoch at its log end (KAFKA-7415)."""
    log = replica_log.begin_epoch(written((0, 0, 4)), 2)
    assert ([tuple(e) for e in log.epochs], log.leo) == ([(0, 0), (2, 4)], 4)


def test_truncation_takes_checkpoint_flush_and_epochs_with_it():
    """Nothing of a log points past its end."""
    log = replica_log.flush(written((0, 0, 4), (1, 4, 4)))._replace(checkpoint=6)
    cut = replica_log.truncate(log, 3)
    assert (cut.leo, cut.flushed, cut.checkpoint) == (3, 3, 3)
    assert [tuple(e) for e in cut.epochs] == [(0, 0)]


@pytest.mark.parametrize("end", [4, 5, 9])
def test_truncation_at_the_end_still_drops_an_epoch_without_records(end):
    """A leader of epoch 2 that wrote nothing must not keep its epoch against its successor's."""
    log = replica_log.begin_epoch(written((0, 0, 4)), 2)
    assert replica_log.truncate(log, end) == written((0, 0, 4))


@pytest.mark.parametrize(("keep", "left"), [(None, 4), (0, 0), (5, 5), (6, 6), (9, 6)])
def test_power_loss_keeps_the_flushed_part_or_what_is_said(keep, left):
    """Without keep= the page cache is gone; with it, that many records survive."""
    log = written((0, 0, 4))
    log = replica_log.append(replica_log.flush(log), [Run(0, 4, 2)], with_epochs=True)
    assert replica_log.lose_power(log, keep).leo == left


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=6), st.integers(0, 20))
def test_truncating_is_taking_a_prefix(sizes, end):
    """A truncated log is the first records of the log, one by one."""
    log, value = EMPTY, 0
    for epoch, count in sorted(sizes):
        log = replica_log.append(log, [Run(epoch, value, count)], with_epochs=True)
        value += count
    assert flat(replica_log.truncate(log, end)) == flat(log)[:end]


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=5),
)
def test_span_arithmetic_is_set_arithmetic(one, two):
    """Merging, subtracting and counting spans agree with sets of numbers."""
    a, b = replica_log.merged(one), replica_log.merged(two)
    left = {v for first, end in one for v in range(first, end)}
    right = {v for first, end in two for v in range(first, end)}
    rest = replica_log.without(a, b)
    assert {v for first, end in rest for v in range(first, end)} == left - right
    assert replica_log.size(rest) == len(left - right)


def test_kip_101_keeps_what_the_leader_has():
    """A follower of the same epoch keeps its log up to the leader's end, whatever its HW."""
    follower, leader = written((0, 0, 5)), written((0, 0, 5))
    assert after_kip101(follower, 2, leader) == (5, True)


def test_kip_101_cuts_at_the_start_of_the_next_epoch():
    """The old leader's extra records go."""
    follower, leader = written((0, 0, 7)), written((0, 0, 5), (1, 7, 3))
    assert after_kip101(follower, 2, leader) == (5, True)


def test_kip_101_falls_back_to_the_high_watermark():
    """A leader that knows only older epochs cannot answer."""
    follower, leader = written((0, 0, 3), (2, 3, 2)), written((0, 0, 4))
    assert after_kip101(follower, 2, leader) == (2, True)


def test_kip_101_leaves_a_gap_that_kip_279_closes():
    """The follower's last epoch was never seen by the leader: 1.1 keeps a record too many."""
    follower = written((0, 0, 2), (1, 10, 1))
    leader = written((0, 0, 4), (2, 20, 2))
    assert after_kip101(follower, 2, leader) == (3, True)
    first = after_kip279(follower, 2, leader)
    assert first == (2, True)


def test_kip_279_asks_again_until_an_epoch_is_common():
    """The leader's answer names an epoch that the follower does not have: cut and ask again."""
    follower = written((0, 0, 2), (2, 10, 2), (4, 12, 2))
    leader = written((0, 0, 2), (1, 20, 1), (3, 21, 3), (5, 24, 1))
    cut = after_kip279(follower, 0, leader)
    assert cut == (4, False)
    cut = after_kip279(replica_log.truncate(follower, cut.offset), 0, leader)
    assert cut == (2, False)
    cut = after_kip279(replica_log.truncate(follower, cut.offset), 0, leader)
    assert cut == (2, True)


def test_truncation_on_fetch_says_nothing_while_logs_agree():
    """A follower that is a prefix of its leader is told no divergence (2.7)."""
    leader = written((0, 0, 5), (1, 5, 5))
    assert divergence(leader, 3, 0) is None
    assert divergence(leader, 7, 1) is None
    assert divergence(leader, 0, -1) is None


def test_truncation_on_fetch_names_the_largest_common_epoch():
    """A follower past the end of its epoch, or in an unknown one, is told where to look."""
    leader = written((0, 0, 5), (2, 5, 5))
    assert divergence(leader, 7, 0) == (0, 5)
    assert divergence(leader, 7, 1) == (0, 5)
    follower = written((0, 0, 4), (1, 30, 3))
    assert after_epoch_answer(follower, 0, divergence(leader, 7, 1)).offset == 4


def _histories() -> st.SearchStrategy[list[tuple[int, int, int]]]:
    """Elections of two brokers: who leads, what the other kept of its log, how much is written."""
    return st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 3)), max_size=7)


@given(_histories())
def test_kip_279_always_ends_in_a_common_prefix(history):
    """After any elections and partial copies the follower cuts to a prefix of its leader."""
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
