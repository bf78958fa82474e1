"""Consumer of one partition: records lost or repeated when it crashes.

Auto-commit happens inside ``poll`` and commits what earlier polls returned. Commits take no time;
rebalances are not modelled.
Sources: ``ConsumerCoordinator.maybeAutoCommitOffsetsAsync``, ``SubscriptionState.allConsumed``.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.errors import InputError

AUTO = "auto"
BEFORE = "before"
AFTER = "after"

START = "start"
POLL = "poll"
COMMIT = "commit"
PROCESS = "process"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerRules:
    """How an application polls, processes and commits; defaults as in Kafka.

    commit: "auto" is ``enable.auto.commit``; "before" and "after" call ``commitSync`` before or
        after processing the records of a poll.
    """

    commit: str = AUTO
    auto_commit_interval_ms: float = 5_000.0
    max_poll_records: int = 500
    auto_offset_reset: str = "latest"
    processing_ms: float = 1.0

    def __post_init__(self) -> None:
        if self.commit not in (AUTO, BEFORE, AFTER):
            raise InputError(
                f"commit={self.commit!r} is not a way to commit; write auto, before or after"
            )
        if self.auto_offset_reset not in ("latest", "earliest"):
            raise InputError(f"auto_offset_reset={self.auto_offset_reset!r}: latest or earliest")
        if self.max_poll_records < 1:
            raise InputError(f"max_poll_records={self.max_poll_records} must be at least 1")
        times = (self.auto_commit_interval_ms, self.processing_ms)
        if not all(0.0 <= ms < math.inf for ms in times):
            raise InputError(f"times must be finite and not negative: {times}")


@dataclass(frozen=True, slots=True)
class Consumer:
    """State of a consumer, its group's committed offset, and the records processed so far.

    position: next offset to fetch; None while the consumer is not running.
    commit_pending: the application has to commit before it polls again.
    """

    end: int
    now_ms: float = 0.0
    position: int | None = None
    committed: int | None = None
    buffered: tuple[int, ...] = ()
    commit_pending: bool = False
    subscribed: bool = False
    commit_due_ms: float = 0.0
    processed: tuple[int, ...] = ()


def next_action(state: Consumer, rules: ConsumerRules) -> str | None:
    """Next action of the application; None when all records are processed."""
    if state.position is None:
        return START
    if state.commit_pending and (rules.commit == BEFORE or not state.buffered):
        return COMMIT
    if state.buffered:
        return PROCESS
    return POLL if state.position < state.end else None


def step(state: Consumer, action: str, rules: ConsumerRules) -> Consumer:
    """State after one action."""
    if action == START:
        return _start(state, rules)
    if action == POLL:
        return _poll(state, rules)
    if action == COMMIT:
        return replace(state, committed=state.position, commit_pending=False)
    assert action == PROCESS
    return replace(
        state,
        now_ms=state.now_ms + rules.processing_ms,
        buffered=state.buffered[1:],
        processed=(*state.processed, state.buffered[0]),
    )


def crash(state: Consumer) -> Consumer:
    """State after a crash: only the committed offset survives."""
    return replace(state, position=None, buffered=(), commit_pending=False)


def _start(state: Consumer, rules: ConsumerRules) -> Consumer:
    # The group subscribed before the first record was written, so the first start skips none.
    skips = state.subscribed and rules.auto_offset_reset == "latest"
    reset = state.end if skips else 0
    return replace(
        state,
        subscribed=True,
        position=reset if state.committed is None else state.committed,
        commit_due_ms=state.now_ms + rules.auto_commit_interval_ms,
    )


def _poll(state: Consumer, rules: ConsumerRules) -> Consumer:
    """Auto-commit if it is due, then fetch; a commit excludes the records of the same poll."""
    assert state.position is not None
    if rules.commit == AUTO and state.now_ms >= state.commit_due_ms:
        due_ms = state.now_ms + rules.auto_commit_interval_ms
        state = replace(state, committed=state.position, commit_due_ms=due_ms)
    assert state.position is not None
    last = min(state.end, state.position + rules.max_poll_records)
    returned = tuple(range(state.position, last))
    return replace(
        state,
        position=last,
        buffered=returned,
        commit_pending=bool(returned) and rules.commit in (BEFORE, AFTER),
    )


@dataclass(frozen=True, slots=True)
class Consumption:
    """Records processed by a group, in order of processing, repetitions included."""

    records: int
    processed: tuple[int, ...]

    @property
    def lost(self) -> tuple[int, ...]:
        """Records never processed."""
        return tuple(sorted(set(range(self.records)) - set(self.processed)))

    @property
    def repeated(self) -> tuple[int, ...]:
        """Records processed more than once, ascending."""
        return tuple(sorted(r for r, n in Counter(self.processed).items() if n > 1))


def consume(records: int, rules: ConsumerRules, crashes: Sequence[int] = ()) -> Consumption:
    """Consume all records, which were written after the group first subscribed, with crashes.

    crashes: actions before each crash, counted from the start or the last restart; a number beyond
        the last action crashes after it.
    """
    if records < 0 or any(actions < 0 for actions in crashes):
        raise InputError(f"records={records} and crashes={list(crashes)} must not be negative")
    state = Consumer(end=records)
    for actions in crashes:
        state = crash(_run(state, rules, actions)[0])
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
    """Largest numbers of records lost and repeated in one run, over all crash points tried."""

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
    """Try every crash point of a consumer that crashes so often in a run."""
    if crashes < 1:
        raise InputError(f"crashes={crashes} must be at least 1")
    # A run after a crash is longer only by the records it repeats, so no point is missed.
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
