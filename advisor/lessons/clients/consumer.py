"""Consumer of one partition: records lost or repeated when it crashes.

``step(state, action, rules) -> state``. A crash may happen before any action; ``promise`` tries
all of them.

Since 0.9 auto-commit happens inside ``poll`` (and ``close``) and commits the position, that is, all
records returned by earlier polls. 0.8 committed from a background thread, with the position already
past the message being processed. Commits take no time; rebalances are not modelled.

Sources: ``ConsumerCoordinator.maybeAutoCommitOffsetsAsync``, ``SubscriptionState.allConsumed``
(3.9); ``ConsumerIterator.next``, ``ZookeeperConsumerConnector`` (0.8.0).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.errors import InputError

AUTO = "auto"
BACKGROUND = "background"
BEFORE = "before"
AFTER = "after"
EACH = "each"

START = "start"
POLL = "poll"
COMMIT = "commit"
PROCESS = "process"
DONE = "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRules:
    """How an application polls, processes and commits; defaults as in Kafka.

    commit (one of "auto", "background", "before", "after", "each"): ``enable.auto.commit`` since
        0.9; auto-commit of 0.8; ``commitSync`` before or after processing the records of a poll;
        ``commitSync`` after each record.
    auto_commit_interval_ms: 5 s since 0.9; 60 s in 0.8.
    max_poll_records: records that one poll returns at most.
    auto_offset_reset (one of "latest", "earliest"): where a group without a committed offset
        starts.
    processing_ms: time to process one record.
    own_thread: a worker thread processes records while the consumer thread keeps polling.
    poll_every_ms: interval between polls with ``own_thread``.
    closes: the consumer fails with an exception and runs ``close()``; otherwise it is killed.
    """

    commit: str = AUTO
    auto_commit_interval_ms: float = 5_000.0
    max_poll_records: int = 500
    auto_offset_reset: str = "latest"
    processing_ms: float = 1.0
    own_thread: bool = False
    poll_every_ms: float = 100.0
    closes: bool = False

    def __post_init__(self) -> None:
        if self.commit not in (AUTO, BACKGROUND, BEFORE, AFTER, EACH):
            raise InputError(
                f"commit={self.commit!r} is not a way to commit; "
                "write auto, background, before, after or each"
            )
        if self.auto_offset_reset not in ("latest", "earliest"):
            raise InputError(f"auto_offset_reset={self.auto_offset_reset!r}: latest or earliest")
        if self.max_poll_records < 1:
            raise InputError(f"max_poll_records={self.max_poll_records} must be at least 1")
        if self.commit == BACKGROUND and self.auto_commit_interval_ms == 0.0:
            raise InputError("auto_commit_interval_ms=0 would keep 0.8's thread busy forever")
        times = (self.auto_commit_interval_ms, self.processing_ms, self.poll_every_ms)
        if not all(0.0 <= ms < math.inf for ms in times) or self.poll_every_ms == 0.0:
            raise InputError(
                f"times must be finite and not negative, poll_every_ms above 0: {times}"
            )
        if self.own_thread and self.commit not in (AUTO, BEFORE):
            raise InputError(
                f"commit={self.commit!r} waits for the work; with own_thread use auto or before"
            )


@dataclass(frozen=True, slots=True)
class Consumer:
    """State of a consumer, its group's committed offset, and the records processed so far.

    end: log end offset; records are numbered by offset.
    position: next offset to fetch; None while the consumer is not running.
    buffered: records returned by a poll and not yet processed.
    in_progress: the first of these is being processed.
    commit_pending: the application has to commit next.
    subscribed: the consumer has been started before.
    commit_due_ms, poll_due_ms, work_done_ms: time of the next auto-commit, next poll and end of the
        current processing.
    processed: in order of processing, repetitions included.
    """

    end: int
    now_ms: float = 0.0
    position: int | None = None
    committed: int | None = None
    buffered: tuple[int, ...] = ()
    in_progress: bool = False
    commit_pending: bool = False
    subscribed: bool = False
    commit_due_ms: float = 0.0
    poll_due_ms: float = 0.0
    work_done_ms: float = 0.0
    processed: tuple[int, ...] = ()


def next_action(state: Consumer, rules: ConsumerRules) -> str | None:
    """Next action of the application; None when all records are processed."""
    if state.position is None:
        return START
    if state.in_progress and not rules.own_thread:
        finishes_ms = state.now_ms + rules.processing_ms
        commit_first = rules.commit == BACKGROUND and state.commit_due_ms <= finishes_ms
        return COMMIT if commit_first else DONE
    unread = state.position < state.end
    if rules.own_thread:
        if rules.commit == BEFORE and state.commit_pending:
            return COMMIT
        if not state.buffered:
            return POLL if unread else None
        return POLL if state.poll_due_ms <= state.work_done_ms else DONE
    if state.commit_pending and (rules.commit in (BEFORE, EACH) or not state.buffered):
        return COMMIT
    if state.buffered:
        return PROCESS
    return POLL if unread else None


def step(state: Consumer, action: str, rules: ConsumerRules) -> Consumer:
    """State after one action."""
    if action == START:
        return _start(state, rules)
    if action == POLL:
        return _poll(state, rules)
    if action == COMMIT:
        return _commit(state, rules)
    if action == PROCESS:
        taken = replace(state, in_progress=True)
        return (
            replace(taken, position=state.buffered[0] + 1) if rules.commit == BACKGROUND else taken
        )
    assert action == DONE
    return _done(state, rules)


def crash(state: Consumer, rules: ConsumerRules) -> Consumer:
    """State after a crash: only the committed offset survives.

    With auto-commit, ``close()`` commits the position first, including unprocessed records.
    """
    committed = state.committed
    if rules.closes and rules.commit in (AUTO, BACKGROUND) and state.position is not None:
        committed = state.position
    return replace(
        state,
        position=None,
        committed=committed,
        buffered=(),
        in_progress=False,
        commit_pending=False,
    )


def _start(state: Consumer, rules: ConsumerRules) -> Consumer:
    # The group subscribed before the first record was written, so the first start skips none.
    skips = state.subscribed and rules.auto_offset_reset == "latest"
    reset = state.end if skips else 0
    return replace(
        state,
        subscribed=True,
        position=reset if state.committed is None else state.committed,
        commit_due_ms=state.now_ms + rules.auto_commit_interval_ms,
        poll_due_ms=state.now_ms,
    )


def _poll(state: Consumer, rules: ConsumerRules) -> Consumer:
    """Auto-commit if it is due, then fetch; a commit excludes the records of the same poll."""
    assert state.position is not None
    now_ms = max(state.now_ms, state.poll_due_ms) if rules.own_thread else state.now_ms
    state = replace(state, now_ms=now_ms, poll_due_ms=now_ms + rules.poll_every_ms)
    if rules.commit == AUTO and now_ms >= state.commit_due_ms:
        state = replace(
            state,
            committed=state.position,
            commit_due_ms=now_ms + rules.auto_commit_interval_ms,
        )
    assert state.position is not None
    last = min(state.end, state.position + rules.max_poll_records)
    returned = tuple(range(state.position, last))
    if not state.buffered:
        state = replace(state, work_done_ms=now_ms + rules.processing_ms)
    return replace(
        state,
        # 0.8 advances the position only when the application takes a message.
        position=state.position if rules.commit == BACKGROUND else last,
        buffered=state.buffered + returned,
        commit_pending=bool(returned) and rules.commit in (BEFORE, AFTER),
    )


def _commit(state: Consumer, rules: ConsumerRules) -> Consumer:
    """Commit the offset of this commit mode; 0.8's background thread does so while processing."""
    if rules.commit == BACKGROUND:
        due_ms = state.commit_due_ms
        return replace(
            state, committed=state.position, commit_due_ms=due_ms + rules.auto_commit_interval_ms
        )
    last = state.processed[-1] + 1 if rules.commit == EACH else state.position
    return replace(state, committed=last, commit_pending=False)


def _done(state: Consumer, rules: ConsumerRules) -> Consumer:
    """Finish processing a record."""
    at_ms = state.work_done_ms if rules.own_thread else state.now_ms + rules.processing_ms
    return replace(
        state,
        now_ms=max(state.now_ms, at_ms),
        work_done_ms=at_ms + rules.processing_ms,
        buffered=state.buffered[1:],
        in_progress=False,
        processed=(*state.processed, state.buffered[0]),
        commit_pending=state.commit_pending or rules.commit == EACH,
    )


@dataclass(frozen=True, slots=True)
class Consumption:
    """Records processed by a group.

    processed: in order of processing, repetitions included.
    """

    records: int
    processed: tuple[int, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """Records never processed."""
        done = set(self.processed)
        return tuple(record for record in range(self.records) if record not in done)

    @property
    def repeated(self) -> tuple[int, ...]:
        """Records processed more than once, ascending."""
        return tuple(sorted(r for r, n in Counter(self.processed).items() if n > 1))


def consume(records: int, rules: ConsumerRules, crashes: Sequence[int] = ()) -> Consumption:
    """Consume all records, with crashes.

    records: records written after the group first subscribed.
    crashes: actions before each crash, counted from the start or the last restart; a number beyond
        the last action crashes after it. After the last crash the consumer runs to the end.
    Raises InputError if a number is negative.

    Committing before processing, a crash loses the rest of the batch:

    >>> rules = ConsumerRules(commit="before", auto_offset_reset="earliest")
    >>> consume(3, rules, crashes=[5]).lost
    (1, 2)
    """
    if records < 0 or any(actions < 0 for actions in crashes):
        raise InputError(f"records={records} and crashes={list(crashes)} must not be negative")
    state = Consumer(end=records)
    for actions in crashes:
        state = crash(_run(state, rules, actions)[0], rules)
    return Consumption(records, _run(state, rules)[0].processed)


def _run(state: Consumer, rules: ConsumerRules, actions: float = math.inf) -> tuple[Consumer, int]:
    """Run up to a number of actions or to the end; returns the state and the actions taken."""
    taken = 0
    while taken < actions and (action := next_action(state, rules)) is not None:
        state = step(state, action, rules)
        taken += 1
    return state, taken


@dataclass(frozen=True, slots=True)
class DeliverySemantics:
    """Delivery semantics of a consumer: the worst case over all crash points.

    crash_points: combinations of crash points tried.
    most_lost, most_repeated: largest number of records lost or repeated in one run.
    """

    crash_points: int
    most_lost: int
    most_repeated: int

    @property
    def semantics(self) -> str:
        """``"exactly once"``, ``"at least once"``, ``"at most once"`` or ``"neither"``."""
        if self.most_lost == 0:
            return "at least once" if self.most_repeated else "exactly once"
        return "neither" if self.most_repeated else "at most once"


def promise(records: int, rules: ConsumerRules, crashes: int = 1) -> DeliverySemantics:
    """Try every crash point of a consumer and return its delivery semantics.

    rules: how the application polls, processes and commits.
    crashes: number of crashes in a run, at least 1.
    Returns most records lost and most records repeated in any run.
    Raises InputError if ``crashes`` is below 1.

    A run after a crash is longer than a run without crashes only by the records it repeats, so
    crash points are tried up to the number of actions of a run without crashes.
    """
    if crashes < 1:
        raise InputError(f"crashes={crashes} must be at least 1")
    _, actions = _run(Consumer(end=records), rules)
    runs = [
        consume(records, rules, crash_points)
        for crash_points in itertools.product(range(actions + 1), repeat=crashes)
    ]
    return DeliverySemantics(
        len(runs),
        max(len(run.lost) for run in runs),
        max(len(run.repeated) for run in runs),
    )
