"""How states come to rest, remembered: two runs that meet go on as one.

A run of the cluster by itself is a chain of steps without a choice. Each state of it is remembered
with the one that follows and with the rest at its end, so that no step is ever taken twice.
"""

from __future__ import annotations

from typing import NamedTuple

from advisor.protocol import events as ev
from advisor.protocol.explore_moments import period_of, same_moment
from advisor.protocol.schedule import MOST_STEPS, next_event, restless, run_for
from advisor.protocol.simulation import REST_MS
from advisor.protocol.state import Settings, State
from advisor.protocol.step import step


class Rest(NamedTuple):
    """A state at rest, how long it then waited for a period, and whether anything had to happen."""

    state: State
    late_ms: int
    pending: bool


class Rests:
    """What states come to.

    Attributes
    ----------
    seen : set of State
        Every state that was asked for, passed on the way to a rest, or at rest.
    """

    def __init__(self, settings: Settings) -> None:
        self.seen: set[State] = set()
        self._settings = settings
        self._period_ms = period_of(settings)
        self._next_of: dict[State, State] = {}
        self._rest_of: dict[State, Rest] = {}

    def of(self, state: State) -> Rest:
        """What a state comes to at rest, at the beginning of a period.

        So two ways to the same facts lead to the same state, whatever time each has taken.
        """
        known = self._rest_of.get(state)
        return self._run(state) if known is None else known

    def after(self, state: State, milliseconds: int) -> State:
        """The state so much later; what happens at once is known from the way to rest."""
        while (after := self._next_of.get(state)) is not None and after.now_ms == state.now_ms:
            state = after
        return run_for(state, self._settings, milliseconds)[0]

    def _run(self, state: State) -> Rest:
        """Go on step by step, until nothing is left to happen or the rest of the way is known."""
        passed: list[State] = []
        known = None
        while known is None:
            event = next_event(state, self._settings)
            if event is None:
                known = self._rest_of[state] = self._at_rest(state)
                break
            if len(passed) >= MOST_STEPS:
                raise restless(state, event)
            passed.append(state)
            after, _ = step(state, event, self._settings)
            self._next_of[state] = after
            state = after
            known = self._rest_of.get(state)
        if passed:
            known = known._replace(pending=True)
            self._rest_of.update(dict.fromkeys(passed, known))
            self.seen.update(passed)
        return known

    def _at_rest(self, state: State) -> Rest:
        """Let the rest pass, and then the time until a period begins."""
        self.seen.add(state)
        rested, _ = step(state, ev.Advance(REST_MS), self._settings)
        late_ms = -rested.now_ms % self._period_ms
        if late_ms:
            rested, _ = step(rested, ev.Advance(late_ms), self._settings)
        merged = same_moment(rested, self._settings)
        self.seen.add(merged)
        return Rest(merged, late_ms, False)
