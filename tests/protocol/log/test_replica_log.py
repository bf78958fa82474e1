"""Replica logs: appends, truncation to an offset, and what survives on disk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.protocol.log import replica_log
from advisor.protocol.log.replica_log import EMPTY, Log, Run


def written(*runs: tuple[int, int, int]) -> Log:
    return replica_log.append(EMPTY, [Run(*run) for run in runs], with_epochs=True)


def flat(log: Log) -> list[tuple[int, int]]:
    return [(run.epoch, run.first + i) for run in log.runs for i in range(run.length)]


def test_append_counts_offsets_and_notes_epochs():
    """Ten records of epoch 0 and two of epoch 3 end at offset 12."""
    log = written((0, 0, 10), (3, 10, 2))
    assert (log.leo, [tuple(e) for e in log.epochs]) == (12, [(0, 0), (3, 10)])


def test_append_before_0_11_has_no_epochs():
    """Without epochs in the message format the cache stays empty."""
    assert replica_log.append(EMPTY, [Run(0, 0, 4)], with_epochs=False).epochs == ()


def test_consecutive_records_are_one_run():
    """Two appends in one epoch with consecutive values form one run."""
    assert written((0, 0, 4), (0, 4, 3)) == written((0, 0, 7))


def test_an_epoch_may_begin_without_a_record():
    """A new leader caches its epoch at its log end (KAFKA-7415)."""
    log = replica_log.begin_epoch(written((0, 0, 4)), 2)
    assert ([tuple(e) for e in log.epochs], log.leo) == ([(0, 0), (2, 4)], 4)


def test_truncation_takes_checkpoint_flush_and_epochs_with_it():
    """No offset of a truncated log points past its end."""
    log = replica_log.flush(written((0, 0, 4), (1, 4, 4)))._replace(checkpoint=6)
    cut = replica_log.truncate(log, 3)
    assert (cut.leo, cut.flushed, cut.checkpoint) == (3, 3, 3)
    assert [tuple(e) for e in cut.epochs] == [(0, 0)]


@pytest.mark.parametrize("end", [4, 5, 9])
def test_truncation_at_the_end_still_drops_an_epoch_without_records(end):
    """A leader of epoch 2 that wrote nothing must not keep its epoch against the next leader's."""
    log = replica_log.begin_epoch(written((0, 0, 4)), 2)
    assert replica_log.truncate(log, end) == written((0, 0, 4))


def test_a_negative_offset_is_refused():
    """``UnifiedLog.truncateTo``: an IllegalArgumentException."""
    with pytest.raises(InputError, match=r"cannot truncate a log to a negative offset \(-1\)"):
        replica_log.truncate(written((0, 0, 4)), -1)


@pytest.mark.parametrize(("keep", "left"), [(None, 4), (0, 0), (5, 5), (6, 6), (9, 6)])
def test_power_loss_keeps_the_flushed_part_or_the_given_number(keep, left):
    """Without keep= the page cache is lost; with it, that many records survive."""
    log = written((0, 0, 4))
    log = replica_log.append(replica_log.flush(log), [Run(0, 4, 2)], with_epochs=True)
    assert replica_log.lose_power(log, keep).leo == left


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 3)), max_size=6), st.integers(0, 20))
def test_truncating_is_taking_a_prefix(sizes, end):
    """A truncated log is a prefix of the log."""
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
