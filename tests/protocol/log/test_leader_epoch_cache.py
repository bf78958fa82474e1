"""The leader epoch cache against the tables of Kafka's own ``LeaderEpochFileCacheTest``."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.protocol.log.leader_epoch_cache import (
    EpochEnd,
    EpochStart,
    assign,
    end_offset_for,
    end_offset_for_kip101,
    latest,
    truncate_from_end,
)

NOTHING = EpochEnd(-1, -1)


def cache(*entries: tuple[int, int]) -> tuple[EpochStart, ...]:
    epochs: tuple[EpochStart, ...] = ()
    for epoch, start in entries:
        epochs = assign(epochs, epoch, start)
    return epochs


@pytest.mark.parametrize(
    ("assigned", "kept"),
    [
        ([(2, 10)], [(2, 10)]),
        ([(2, 9), (2, 10)], [(2, 9)]),
        ([(2, 9), (3, 9)], [(3, 9)]),
        ([(2, 6), (3, 5)], [(3, 5)]),
        ([(1, 5), (2, 6), (1, 7)], [(1, 7)]),
        ([(5, 11), (6, 12), (7, 13), (7, 12)], [(5, 11), (7, 12)]),
        ([(0, 0), (1, 0)], [(1, 0)]),
        ([(0, 0), (1, 0), (2, 5)], [(1, 0), (2, 5)]),
    ],
)
def test_assign_keeps_epochs_and_offsets_rising(assigned, kept):
    """Later assignments win; repetitions of the latest epoch do not move it."""
    assert [tuple(entry) for entry in cache(*assigned)] == kept


@pytest.mark.parametrize(
    ("assigned", "requested", "leo", "answer"),
    [
        ([(2, 10)], 2, 11, (2, 11)),
        ([(2, 11), (2, 12)], 2, 14, (2, 14)),
        ([(2, 11), (3, 12)], -1, 0, (-1, -1)),
        ([], 0, 0, (-1, -1)),
        ([], -1, 73, (-1, -1)),
        ([(5, 11), (6, 12), (7, 13)], 4, 0, (4, 11)),
        ([(5, 11), (6, 12), (7, 13), (7, 12)], 5, 0, (5, 12)),
        ([(5, 11), (6, 12), (7, 13), (7, 12)], 6, 0, (5, 12)),
        ([(1, 11), (2, 13), (3, 15)], 2, 17, (2, 15)),
        ([(0, 10), (2, 13), (4, 17)], 1, 0, (0, 13)),
        ([(0, 10), (2, 13), (4, 17)], 2, 0, (2, 17)),
        ([(0, 10), (2, 13), (4, 17)], 3, 0, (2, 17)),
        ([(2, 100)], 3, 100, (-1, -1)),
        ([(1, 5), (2, 6), (1, 7)], 1, 8, (1, 8)),
        ([(1, 5), (2, 6), (1, 7)], 2, 8, (-1, -1)),
        ([(0, 0), (1, 0)], 1, 5, (1, 5)),
        ([(0, 0), (1, 0)], 0, 5, (0, 0)),
    ],
)
def test_answer_to_offsets_for_leader_epoch(assigned, requested, leo, answer):
    """KIP-279: the largest epoch not above the request, and where it ends."""
    assert tuple(end_offset_for(cache(*assigned), requested, leo)) == answer


@pytest.mark.parametrize(
    ("assigned", "requested", "leo", "answer"),
    [
        ([(0, 0), (2, 4)], 0, 6, 4),
        ([(0, 0), (2, 4)], 1, 6, 4),
        ([(0, 0), (2, 4)], 2, 6, 6),
        ([(0, 0), (2, 4)], 3, 6, -1),
        ([(2, 4)], 1, 6, -1),
        ([], 0, 6, -1),
        ([(0, 0)], -1, 6, -1),
    ],
)
def test_first_answer_of_kip_101_named_no_epoch(assigned, requested, leo, answer):
    """KIP-101: the start of the first higher epoch, even if the requested one does not exist."""
    assert end_offset_for_kip101(cache(*assigned), requested, leo) == answer


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (12, [(2, 6), (3, 8), (4, 11)]),
        (11, [(2, 6), (3, 8)]),
        (9, [(2, 6), (3, 8)]),
        (8, [(2, 6)]),
        (6, []),
        (0, []),
        (-1, [(2, 6), (3, 8), (4, 11)]),
    ],
)
def test_truncate_from_end_drops_epochs_that_began_there(end, kept):
    """An epoch stays if it begins before the truncation offset; all stay if it is negative.

    ``shouldNotResetEpochHistoryTailIfUndefinedPassed`` and its neighbours.
    """
    entries = cache((2, 6), (3, 8), (4, 11))
    assert [tuple(e) for e in truncate_from_end(entries, end)] == kept


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=12))
def test_a_cache_always_rises(assigned):
    """For any assignments epochs and offsets rise strictly, and the last one wins."""
    entries = cache(*assigned)
    assert all(a.epoch < b.epoch and a.start < b.start for a, b in pairwise(entries))
    if assigned:
        assert latest(entries) == assigned[-1][0]


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), min_size=1, max_size=8),
    st.integers(0, 7),
)
def test_the_answer_is_where_a_scan_of_the_log_finds_it(assigned, requested):
    """The end offset is one past the last record whose epoch is not above the request."""
    entries = cache(*assigned)
    leo = entries[-1].start + 2
    written = {
        offset: max(e.epoch for e in entries if e.start <= offset)
        for offset in range(entries[0].start, leo)
    }
    answer = end_offset_for(entries, requested, leo)
    if requested > entries[-1].epoch:
        assert answer == NOTHING
    else:
        below = [offset for offset, epoch in written.items() if epoch <= requested]
        assert answer.end == (max(below) + 1 if below else entries[0].start)
