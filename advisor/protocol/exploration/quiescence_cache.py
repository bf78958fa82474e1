"""How states come to rest, remembered: two runs that meet go on as one.

A run of the cluster by itself is a chain of steps without a choice. Each state of it is remembered
with the one that follows and with the rest at its end, so that no step is ever taken twice.
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


class Rest(NamedTuple):
    """A state at rest, how long it then waited for a period, and whether anything had to happen."""

    state: State
    late_ms: int
    pending: bool


class _Known:
    """What is remembered of a state: whether it is at rest, what follows, and the rest to come."""

    __slots__ = ("following", "quiet", "rest")

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.following: State | None = None
        self.rest: Rest | None = None


class QuiescenceCache:
    """What states come to.

    Attributes
    ----------
    seen : mapping with a key for every state that was asked for, passed on the way to a rest, or
        at rest.
    """

    def __init__(self, settings: Settings) -> None:
        self.seen: dict[State, _Known] = {}
        self._settings = settings
        self._period_ms = period_of(settings)

    def of(self, state: State) -> Rest:
        """What a state comes to at rest, at the beginning of a period.

        So two ways to the same facts lead to the same state, whatever time each has taken.
        """
        known = self.seen.setdefault(state, _Known())
        return self._run(state, known) if known.rest is None else known.rest

    def is_quiet(self, state: State) -> bool:
        """Whether nothing happens any more, however long one waits."""
        known = self.seen.get(state)
        return (known is not None and known.quiet) or not self.of(state).pending

    def after(self, state: State, milliseconds: int) -> State:
        """The state so much later; what happens at once is known from the way to rest."""
        now_ms = state.now_ms
        while (known := self.seen.get(state)) is not None:
            if known.following is None or known.following.now_ms != now_ms:
                break
            state = known.following
        return run_for(state, self._settings, milliseconds)[0]

    def _run(self, state: State, known: _Known) -> Rest:
        """Go on step by step, until nothing is left to happen or the rest of the way is known."""
        passed: list[_Known] = []
        while known.rest is None:
            event = next_event(state, self._settings)
            if event is None:
                known.rest = self._at_rest(state)
                break
            if len(passed) >= MAX_STEPS:
                raise no_quiescence_error(state, event)
            passed.append(known)
            state, _ = step(state, event, self._settings)
            known.following = state
            known = self.seen.setdefault(state, _Known())
        rest = known.rest
        if passed:
            rest = rest._replace(pending=True)
            for known in passed:
                known.rest = rest
        return rest

    def _at_rest(self, state: State) -> Rest:
        """Let the rest pass, and then the time until a period begins."""
        rested, _ = step(state, ev.Advance(REST_MS), self._settings)
        late_ms = -rested.now_ms % self._period_ms
        if late_ms:
            rested, _ = step(rested, ev.Advance(late_ms), self._settings)
        merged = canonical_state(rested, self._settings)
        self.seen.setdefault(merged, _Known(quiet=True))
        return Rest(merged, late_ms, False)
