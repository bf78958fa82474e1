"""Memoised runs to quiescence.

Without commands the simulation is deterministic. Every state on the way to quiescence is stored
with its successor and with the quiescent state at the end, so no step is computed twice.
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol.exploration.state_equivalence import canonical_state, period_of
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import REST_MS
from advisor.protocol.simulation.scheduler import (
    MAX_STEPS,
    next_event,
    no_quiescence_error,
    run_for,
)
from advisor.protocol.simulation.state import Settings, State
from advisor.protocol.simulation.step import step


class Quiescence(NamedTuple):
    """The quiescent state that a state leads to.

    state: canonical, at the start of a period of the cluster's periodic work.
    wait_ms: time from quiescence to the start of that period.
    pending: whether any event happened on the way.
    """

    state: State
    wait_ms: int
    pending: bool


class _CacheEntry:
    """Successor and quiescent state of one state, as far as they are known."""

    __slots__ = ("quiescence", "quiet", "successor")

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.successor: State | None = None
        self.quiescence: Quiescence | None = None


class QuiescenceCache:
    """Maps states to the quiescent states that they lead to.

    settings: settings of the simulated cluster.
    seen: has a key for every state looked up, passed on the way to quiescence, or quiescent.
    """

    def __init__(self, settings: Settings) -> None:
        self.seen: dict[State, _CacheEntry] = {}
        self._settings = settings
        self._period_ms = period_of(settings)

    def settle(self, state: State) -> Quiescence:
        """Run a state to quiescence and on to the start of the next period.

        States that differ only in elapsed time then become equal.
        """
        entry = self.seen.setdefault(state, _CacheEntry())
        return self._run(state, entry) if entry.quiescence is None else entry.quiescence

    def is_quiet(self, state: State) -> bool:
        """Whether no event follows without a command."""
        entry = self.seen.get(state)
        return (entry is not None and entry.quiet) or not self.settle(state).pending

    def advance(self, state: State, milliseconds: int) -> State:
        """The state after a time; events due immediately are taken from the cache."""
        now_ms = state.now_ms
        while (entry := self.seen.get(state)) is not None:
            if entry.successor is None or entry.successor.now_ms != now_ms:
                break
            state = entry.successor
        return run_for(state, self._settings, milliseconds)[0]

    def _run(self, state: State, entry: _CacheEntry) -> Quiescence:
        """Step until no event is left or a state with a known quiescent state is reached."""
        passed: list[_CacheEntry] = []
        while entry.quiescence is None:
            event = next_event(state, self._settings)
            if event is None:
                entry.quiescence = self._at_next_period(state)
                break
            if len(passed) >= MAX_STEPS:
                raise no_quiescence_error(state, event)
            passed.append(entry)
            state, _ = step(state, event, self._settings)
            entry.successor = state
            entry = self.seen.setdefault(state, _CacheEntry())
        quiescence = entry.quiescence
        if passed:
            quiescence = quiescence._replace(pending=True)
            for entry in passed:
                entry.quiescence = quiescence
        return quiescence

    def _at_next_period(self, state: State) -> Quiescence:
        """Wait the settling time, then until a period of the periodic work begins."""
        settled, _ = step(state, ev.Advance(REST_MS), self._settings)
        wait_ms = -settled.now_ms % self._period_ms
        if wait_ms:
            settled, _ = step(settled, ev.Advance(wait_ms), self._settings)
        canonical = canonical_state(settled, self._settings)
        self.seen.setdefault(canonical, _CacheEntry(quiet=True))
        return Quiescence(canonical, wait_ms, False)
