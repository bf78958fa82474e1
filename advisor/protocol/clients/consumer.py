"""A consumer that reads, works and commits: what it loses or repeats when it fails in between.

``step(state, act, rules) -> state`` with the acts of one partition's consumer. A crash may come
before any act; ``promise`` tries them all.

The consumer since 0.9 commits automatically inside ``poll`` (and in ``close``), always its
position: all that earlier polls returned. 0.8 committed from a thread of its own, and its position
is already past the message in hand. Commits arrive at once; rebalances are not modelled.

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
    """How an application consumes; the defaults are Kafka's.

    Attributes
    ----------
    commit : {"auto", "background", "before", "after", "each"}
        ``enable.auto.commit``; 0.8's automatic commit; ``commitSync`` before or after processing
        what a poll returned; or after each record.
    auto_commit_interval_ms : float
        5 s; 60 s in 0.8.
    max_poll_records : int
    auto_offset_reset : {"latest", "earliest"}
        Where a group without a committed offset begins.
    processing_ms : float
        For each record.
    own_thread : bool
        Records go to a worker thread, and polling goes on meanwhile.
    poll_every_ms : float
        Of the polling thread beside a worker.
    closes : bool
        The failure is an exception on whose way out ``close()`` runs; else the process is killed.
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
                f"commit={self.commit!r} is no way to commit; "
                "write auto, background, before, after or each"
            )
        if self.auto_offset_reset not in ("latest", "earliest"):
            raise InputError(f"auto_offset_reset={self.auto_offset_reset!r}: latest or earliest")
        if self.max_poll_records < 1:
            raise InputError(f"max_poll_records={self.max_poll_records} must be at least 1")
        if self.commit == BACKGROUND and self.auto_commit_interval_ms == 0.0:
            raise InputError("auto_commit_interval_ms=0 would keep 0.8's thread busy for ever")
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
    """A consumer, the offset its group has committed, and what has been processed so far.

    Attributes
    ----------
    end : int
        Log end offset; records are numbered by offset.
    position : int or None
        The next offset to fetch; None while the consumer is not running.
    held : tuple of int
        Returned by a poll, not yet processed.
    in_hand : bool
        The first of them is being worked on.
    to_commit : bool
        The application owes a commit.
    subscribed : bool
        The group has been there before.
    commit_due_ms, poll_due_ms, work_done_ms : float
    """

    end: int
    now_ms: float = 0.0
    position: int | None = None
    committed: int | None = None
    held: tuple[int, ...] = ()
    in_hand: bool = False
    to_commit: bool = False
    subscribed: bool = False
    commit_due_ms: float = 0.0
    poll_due_ms: float = 0.0
    work_done_ms: float = 0.0
    processed: tuple[int, ...] = ()


def next_act(state: Consumer, rules: ConsumerRules) -> str | None:
    """What the application does next; None once everything has been read and processed."""
    if state.position is None:
        return START
    if state.in_hand and not rules.own_thread:
        finishes_ms = state.now_ms + rules.processing_ms
        late = rules.commit == BACKGROUND and state.commit_due_ms <= finishes_ms
        return COMMIT if late else DONE
    unread = state.position < state.end
    if rules.own_thread:
        if rules.commit == BEFORE and state.to_commit:
            return COMMIT
        if not state.held:
            return POLL if unread else None
        return POLL if state.poll_due_ms <= state.work_done_ms else DONE
    if state.to_commit and (rules.commit in (BEFORE, EACH) or not state.held):
        return COMMIT
    if state.held:
        return PROCESS
    return POLL if unread else None


def step(state: Consumer, act: str, rules: ConsumerRules) -> Consumer:
    """The consumer after one act."""
    if act == START:
        return _start(state, rules)
    if act == POLL:
        return _poll(state, rules)
    if act == COMMIT:
        return _commit(state, rules)
    if act == PROCESS:
        taken = replace(state, in_hand=True)
        return replace(taken, position=state.held[0] + 1) if rules.commit == BACKGROUND else taken
    assert act == DONE
    return _done(state, rules)


def crash(state: Consumer, rules: ConsumerRules) -> Consumer:
    """The consumer fails: what was in memory is gone, the committed offset stays.

    On its way out ``close()`` commits the position where commits are automatic, processed or not.
    """
    committed = state.committed
    if rules.closes and rules.commit in (AUTO, BACKGROUND) and state.position is not None:
        committed = state.position
    return replace(
        state, position=None, committed=committed, held=(), in_hand=False, to_commit=False
    )


def _start(state: Consumer, rules: ConsumerRules) -> Consumer:
    # The group subscribed before the first record came, so its very first start skips none.
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
    """Commit the position if it is time, then fetch: never what this very poll returns."""
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
    if not state.held:
        state = replace(state, work_done_ms=now_ms + rules.processing_ms)
    return replace(
        state,
        # 0.8 counts a message as consumed when the application takes it.
        position=state.position if rules.commit == BACKGROUND else last,
        held=state.held + returned,
        to_commit=bool(returned) and rules.commit in (BEFORE, AFTER),
    )


def _commit(state: Consumer, rules: ConsumerRules) -> Consumer:
    """The offset that this way of committing commits; 0.8's thread does so while work goes on."""
    if rules.commit == BACKGROUND:
        due_ms = state.commit_due_ms
        return replace(
            state, committed=state.position, commit_due_ms=due_ms + rules.auto_commit_interval_ms
        )
    last = state.processed[-1] + 1 if rules.commit == EACH else state.position
    return replace(state, committed=last, to_commit=False)


def _done(state: Consumer, rules: ConsumerRules) -> Consumer:
    """A record is processed."""
    at_ms = state.work_done_ms if rules.own_thread else state.now_ms + rules.processing_ms
    return replace(
        state,
        now_ms=max(state.now_ms, at_ms),
        work_done_ms=at_ms + rules.processing_ms,
        held=state.held[1:],
        in_hand=False,
        processed=(*state.processed, state.held[0]),
        to_commit=state.to_commit or rules.commit == EACH,
    )


@dataclass(frozen=True, slots=True)
class Consumption:
    """What a group made of its records.

    Attributes
    ----------
    records : int
    processed : tuple of int
        In the order of the work, repetitions included.
    """

    records: int
    processed: tuple[int, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """Records that nobody ever processed."""
        done = set(self.processed)
        return tuple(record for record in range(self.records) if record not in done)

    @property
    def repeated(self) -> tuple[int, ...]:
        """Records processed more than once, ascending."""
        return tuple(sorted(r for r, n in Counter(self.processed).items() if n > 1))


def consume(records: int, rules: ConsumerRules, crashes: Sequence[int] = ()) -> Consumption:
    """Read all records, failing before the n-th act of each life in turn, then to the end.

    Parameters
    ----------
    records : int
        They come after the group has subscribed for the first time.
    rules : ConsumerRules
    crashes : sequence of int
        Acts that each life takes before it fails; a number past its last act fails at its end.
    """
    if records < 0 or any(acts < 0 for acts in crashes):
        raise InputError(f"records={records} and crashes={list(crashes)} must not be negative")
    state = Consumer(end=records)
    for acts in crashes:
        state = crash(_live(state, rules, acts)[0], rules)
    return Consumption(records, _live(state, rules)[0].processed)


def _live(state: Consumer, rules: ConsumerRules, acts: float = math.inf) -> tuple[Consumer, int]:
    """The consumer after so many acts, or all it has to do; and how many it took."""
    taken = 0
    while taken < acts and (act := next_act(state, rules)) is not None:
        state = step(state, act, rules)
        taken += 1
    return state, taken


@dataclass(frozen=True, slots=True)
class Promise:
    """The worst that crashes can do.

    Attributes
    ----------
    crash_points : int
        Runs tried.
    most_lost, most_repeated : int
        Records, in the worst of them.
    """

    crash_points: int
    most_lost: int
    most_repeated: int

    @property
    def semantics(self) -> str:
        """The delivery semantics by their usual names."""
        if self.most_lost == 0:
            return "at least once" if self.most_repeated else "exactly once"
        return "neither" if self.most_repeated else "at most once"


def promise(records: int, rules: ConsumerRules, lives: int = 1) -> Promise:
    """Try every moment at which a consumer can fail, in each of so many lives.

    Notes
    -----
    A life after a crash may be longer than an undisturbed one only by what it repeats, so every
    life is tried up to the acts of an undisturbed run.
    """
    if lives < 1:
        raise InputError(f"lives={lives} must be at least 1")
    _, acts = _live(Consumer(end=records), rules)
    runs = [
        consume(records, rules, crashes)
        for crashes in itertools.product(range(acts + 1), repeat=lives)
    ]
    return Promise(
        len(runs),
        max(len(run.lost) for run in runs),
        max(len(run.repeated) for run in runs),
    )
