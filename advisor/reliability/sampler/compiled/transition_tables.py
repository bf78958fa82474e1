"""Partition transitions as arrays, filled on demand.

The kernel cannot call the protocol's rules; it looks up their results. Where one is missing it
returns, the rules are called here, once for all blocks of the process, and it continues. The
numbers of states depend on the order in which they are met; nothing that is sampled does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import AdvisorError
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_CLOSED
from advisor.reliability.partition.partition_state import CONTROLLER_WORKS
from advisor.reliability.partition.transition_table import Automaton, automaton

EVENTS = red.EVENTS
UNKNOWN = -1
# Beyond this many bytes the table of one setup is too large for a worker.
_MOST_BYTES = 2**30

_STEP_FIELDS = ("target", "losses", "total", "failed", "moved", "unflushed", "quiet")
_STATE_FIELDS = (
    *("writable", "readable", "growing", "whole", "gaps", "in_sync", "copying", "absent"),
    "undecided",
)
STEP = np.dtype([(name, np.int64) for name in _STEP_FIELDS])
STATE = np.dtype([(name, np.int64) for name in _STATE_FIELDS])


class Table(NamedTuple):
    """The transitions that the kernel reads.

    Attributes
    ----------
    entry : array of int32, shape (states, events, masks)
        Row of the step below, or UNKNOWN; bit s of the mask is slot s.
    steps : array of STEP, shape (rows,)
        Next state, the reduction's bits of losses, whether nothing is left, the leader failed or
        moved, gap 0 begins with what was not flushed; ``quiet``: nothing happens at all.
    gap_map : array of int64, shape (rows, gaps)
    states : array of STATE, shape (states,)
        ``whole``: every replica is up, in sync and complete, and the controller works;
        ``in_sync``: how many are. Masks of the slots that copy their log now (``copying``), and
        of all that have yet to (``absent``). ``undecided``: only an operator can elect a leader
        before an empty broker leads.
    """

    entry: NDArray[np.int32]
    steps: NDArray[Any]
    gap_map: NDArray[np.int64]
    states: NDArray[Any]


class Tables:
    """Grows a `Table` on demand."""

    def __init__(self, setup: ChainConstants, replicas: int) -> None:
        self.automaton: Automaton = automaton(setup, replicas)
        self.replicas = replicas
        self._known = 0
        self._rows = 0
        self.table = _empty(64, 256, replicas)
        self._take_states()

    def fill(self, state: int, event: int, mask: int) -> None:
        """Compute one transition by the rules and store it."""
        slots = tuple(slot for slot in range(self.replicas) if mask >> slot & 1)
        target, outcome = self.automaton.step(state, event, slots)
        self._take_states()
        row = self._rows
        if row == len(self.table.steps):
            self.table = self._longer(rows=2 * row)
        effects, losses = outcome.effects, outcome.losses
        in_place = outcome.gap_map == tuple(range(len(outcome.gap_map)))
        self.table.steps[row] = (
            target,
            losses,
            effects & Effect.TOTAL > 0,
            effects & Effect.FAILOVER > 0,
            effects & Effect.HANDOVER > 0,
            effects & Effect.UNFLUSHED > 0,
            target == state and losses == 0 and in_place,
        )
        self.table.gap_map[row, : len(outcome.gap_map)] = outcome.gap_map
        self.table.entry[state, event, mask] = row
        self._rows += 1

    def _take_states(self) -> None:
        """Store the states that were met since the last call."""
        known = self.automaton
        if len(known.states) > len(self.table.states):
            self.table = self._longer(states=2 * len(known.states))
        for number in range(self._known, len(known.states)):
            state = known.states[number]
            whole = set(state.condition) == {red.UP} and set(state.level) == {0}
            whole = whole and state.controller == CONTROLLER_WORKS
            absent = [slot for slot, own in enumerate(state.condition) if own == red.COPYING]
            writable = red.is_writable(state, known.setup)
            self.table.states[number] = (
                writable,
                known.readable(number),
                writable and state.gaps > 0,
                whole and len(state.registration.isr) == self.replicas,
                state.gaps,
                len(state.registration.isr),
                sum(1 << slot for slot in known.copying(number)),
                sum(1 << slot for slot in absent),
                red.operator_can_elect(state),
            )
        self._known = len(known.states)

    def _longer(self, states: int = 0, rows: int = 0) -> Table:
        old = self.table
        new = _empty(max(states, len(old.states)), max(rows, len(old.steps)), self.replicas)
        new.entry[: len(old.entry)] = old.entry
        new.steps[: len(old.steps)] = old.steps
        new.gap_map[: len(old.gap_map)] = old.gap_map
        new.states[: len(old.states)] = old.states
        return new


def _empty(states: int, rows: int, replicas: int) -> Table:
    if states * EVENTS * 2**replicas * 4 > _MOST_BYTES:
        raise AdvisorError(
            f"{replicas} replicas have more than {states // 2} states that matter, too many to "
            "sample; try fewer replicas, or a card with fewer mechanisms"
        )
    return Table(
        entry=np.full((states, EVENTS, 2**replicas), UNKNOWN, dtype=np.int32),
        steps=np.zeros(rows, dtype=STEP),
        gap_map=np.full((rows, max(replicas - 1, 1)), GAP_CLOSED, dtype=np.int64),
        states=np.zeros(states, dtype=STATE),
    )


@lru_cache(maxsize=16)
def tables(setup: ChainConstants, replicas: int) -> Tables:
    """The one growing table of a setup in this process."""
    return Tables(setup, replicas)
