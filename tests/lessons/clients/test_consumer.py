"""Records that consumers lose and repeat when they crash, for each commit mode."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.lessons.clients.consumer import (
    AFTER,
    AUTO,
    BEFORE,
    Consumer,
    ConsumerRules,
    consume,
    crash,
    next_action,
    promise,
    step,
)


def rules(commit: str, **changes: Any) -> ConsumerRules:
    """Small batches and short intervals, so that ten records cover every case."""
    settings: dict[str, Any] = {
        "commit": commit,
        "max_poll_records": 3,
        "auto_commit_interval_ms": 7.0,
        "processing_ms": 2.0,
        "auto_offset_reset": "earliest",
    }
    return ConsumerRules(**{**settings, **changes})


WAYS = [AUTO, BEFORE, AFTER]


@pytest.mark.parametrize("commit", WAYS)
@pytest.mark.parametrize("records", [0, 1, 3, 10])
def test_without_a_crash_each_record_is_processed_once(commit: str, records: int) -> None:
    """Without a crash, every commit mode processes all records in order."""
    assert consume(records, rules(commit)).processed == tuple(range(records))


def test_committing_before_the_work_is_at_most_once() -> None:
    """A crash loses at most what one poll returned, and repeats nothing."""
    got = promise(10, rules(BEFORE))
    assert got.semantics == "at most once"
    assert got.most_lost == 3


def test_committing_after_the_work_is_at_least_once() -> None:
    """A crash repeats at most what one poll returned, and loses nothing."""
    got = promise(10, rules(AFTER))
    assert got.semantics == "at least once"
    assert got.most_repeated == 3


def test_auto_commit_in_the_polling_thread_loses_nothing() -> None:
    """``poll`` commits what earlier polls returned: killed anywhere, at least once."""
    got = promise(10, rules(AUTO))
    assert got.semantics == "at least once"
    # 7 ms of work and the batch that crosses the limit: two batches of three.
    assert got.most_repeated == 6


@pytest.mark.parametrize("commit", WAYS)
def test_two_crashes_keep_the_semantics(commit: str) -> None:
    """Exhaustive over pairs of crash points: same semantics as with one crash."""
    once, twice = promise(7, rules(commit)), promise(7, rules(commit), crashes=2)
    assert twice.crash_points == once.crash_points**2
    assert (twice.most_lost > 0) == (once.most_lost > 0)
    assert (twice.most_repeated > 0) == (once.most_repeated > 0)


def test_auto_commit_interval_bounds_what_is_repeated() -> None:
    """The longer the interval, the more records are repeated, up to all of them."""
    repeated = [
        promise(12, rules(AUTO, auto_commit_interval_ms=float(ms))).most_repeated
        for ms in (0, 7, 13, 1_000)
    ]
    assert repeated == [3, 6, 9, 12]


def test_latest_loses_what_came_before_the_first_commit() -> None:
    """auto.offset.reset=latest, the default: a group that never committed starts at the end."""
    assert promise(10, rules(AFTER, auto_offset_reset="latest")).most_lost == 10
    assert promise(10, rules(AFTER, auto_offset_reset="earliest")).most_lost == 0


def test_what_is_committed_is_what_earlier_polls_returned() -> None:
    """A poll does not commit the records that it returns."""
    way = rules(AUTO, auto_commit_interval_ms=0.0)
    state = step(Consumer(end=10), "start", way)
    state = step(state, "poll", way)
    assert (state.committed, state.position) == (0, 3)
    for _ in range(3):
        assert next_action(state, way) == "process"
        state = step(state, "process", way)
    state = step(state, "poll", way)
    assert (state.committed, state.position) == (3, 6)


def test_a_crash_keeps_only_the_committed_offset() -> None:
    """Position and buffered records are lost."""
    way = rules(AFTER)
    state = Consumer(end=9, position=6, committed=3, buffered=(4, 5), processed=(0, 1, 2, 3))
    after = crash(state)
    assert (after.position, after.buffered, after.committed) == (None, (), 3)
    assert step(after, "start", way).position == 3


@given(
    commit=st.sampled_from(WAYS),
    records=st.integers(0, 30),
    most=st.integers(1, 8),
    interval_ms=st.floats(0, 100),
    crashes=st.lists(st.integers(0, 60), max_size=4),
)
def test_no_way_both_loses_and_repeats(
    commit: str, records: int, most: int, interval_ms: float, crashes: list[int]
) -> None:
    """Random batches, intervals and crashes: only commits before processing lose records."""
    way = rules(commit, max_poll_records=most, auto_commit_interval_ms=interval_ms)
    got = consume(records, way, crashes)
    if commit == BEFORE:
        assert got.repeated == ()
        assert len(got.lost) <= most * len(crashes)
    else:
        assert got.lost == ()
        first = list(dict.fromkeys(got.processed))
        assert first == sorted(first)


@pytest.mark.parametrize(
    "wrong",
    [
        {"commit": "sometimes"},
        {"auto_offset_reset": "none"},
        {"max_poll_records": 0},
        {"processing_ms": float("nan")},
    ],
)
def test_invalid_rules_are_rejected(wrong: dict[str, Any]) -> None:
    """Unknown words and impossible numbers are errors."""
    with pytest.raises(InputError):
        rules(**{"commit": AUTO, **wrong})


def test_invalid_runs_are_rejected() -> None:
    """Negative counts are errors."""
    for call in (
        lambda: consume(-1, rules(AUTO)),
        lambda: consume(1, rules(AUTO), [-1]),
        lambda: promise(1, rules(AUTO), crashes=0),
    ):
        with pytest.raises(InputError):
            call()
