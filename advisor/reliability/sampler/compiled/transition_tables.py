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
from advisor.reliability.measure_table import States
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_CLOSED
from advisor.reliability.partition.reduced_state import CONTROLLER_WORKS
from advisor.reliability.partition.transition_table import (
    EXPLORING,
    PartitionTransitionTable,
    partition_transition_table,
)

EVENTS = red.EVENTS
UNKNOWN = -1
# More fill a worker's memory: 150 bytes a row here, and as much in Python; a kilobyte a state.
_MOST_ROWS = 2**22
_MOST_STATES = 2**22
MASK_BITS = 16
# Of the multiplicative hash (Knuth, The Art of Computer Programming, vol. 3, 6.4): 2**64 over the
# golden ratio, as a signed number.
_GOLDEN = -7046029254386353131

_TOO_MANY = (
    "{} replicas pass through more states than fit into memory; try fewer replicas or years, or a "
    "card with fewer mechanisms"
)

_STEP_FIELDS = ("target", "losses", "total", "failed", "moved", "unflushed", "quiet")
_STATE_FIELDS = (
    *("writable", "readable", "growing", "whole", "gaps", "in_sync", "copying", "absent"),
    *("undecided", "measured"),
)
STEP = np.dtype([(name, np.int64) for name in _STEP_FIELDS])
STATE = np.dtype([(name, np.int64) for name in _STATE_FIELDS])


class Table(NamedTuple):
    """The transitions that the kernel reads.

    keys (places,): what is known: a state, an event and a mask in one number, at the first free
        place from its hash; bit s of the mask is slot s. UNKNOWN marks a free place.
    rows (places,): row of the step below.
    steps (rows,): next state, the reduction's bits of losses, whether nothing is left, the leader
        failed or moved, gap 0 begins with what was not flushed; ``quiet``: nothing happens at all.
    gap_map (rows, gaps).
    states (states,): ``whole``: every replica is up, in sync and complete, and the controller
        works; ``in_sync``: how many are. Masks of the slots that copy their log now (``copying``),
        and of all that have yet to (``absent``). ``undecided``: only an operator can elect a leader
        before an empty broker leads. ``measured``: bits of the measures whose states it is one of.
    """

    keys: NDArray[np.int64]
    rows: NDArray[np.int32]
    steps: NDArray[Any]
    gap_map: NDArray[np.int64]
    states: NDArray[Any]


def place_of(keys: NDArray[np.int64], key: int) -> int:
    """Where a key stands, or the free place that it would take. It is compiled, too."""
    mask = len(keys) - 1
    place = (key * _GOLDEN) >> 32 & mask
    while keys[place] not in (key, UNKNOWN):
        place = (place + 1) & mask
    return int(place)


class Tables:
    """Grows a `Table` on demand; one that is full forgets its transitions, but no state."""

    def __init__(
        self, constants: ChainConstants, replicas: int, shares: tuple[States, ...]
    ) -> None:
        self.shares = shares
        self.transition_table: PartitionTransitionTable = partition_transition_table(
            constants, replicas
        )
        self.replicas = replicas
        self._known = 0
        self._rows = 0
        if replicas > MASK_BITS:
            raise AdvisorError(_TOO_MANY.format(replicas))
        self.table = _empty(64, 256, replicas)
        self._take_states()

    def fill(self, state: int, event: int, mask: int) -> None:
        """Compute one transition by the rules and store it."""
        slots = tuple(slot for slot in range(self.replicas) if mask >> slot & 1)
        with EXPLORING:
            self._add(state, event, mask, slots)

    def _add(self, state: int, event: int, mask: int, slots: tuple[int, ...]) -> None:
        target, outcome = self.transition_table.step(state, event, slots)
        self._take_states()
        if self._rows == _MOST_ROWS:
            self._forget_transitions()
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
        key = (state * EVENTS + event) << MASK_BITS | mask
        place = place_of(self.table.keys, key)
        self.table.keys[place], self.table.rows[place] = key, row
        self._rows += 1

    def _forget_transitions(self) -> None:
        """Make room; the rules give the same transitions when they are needed again."""
        self.transition_table.forget_steps()
        self.table.keys[:] = self.table.rows[:] = UNKNOWN
        self.table.gap_map[:] = GAP_CLOSED
        self._rows = 0

    def _take_states(self) -> None:
        """Store the states that were met since the last call."""
        partition_states = self.transition_table
        if len(partition_states.states) > _MOST_STATES:
            raise AdvisorError(_TOO_MANY.format(self.replicas))
        if len(partition_states.states) > len(self.table.states):
            self.table = self._longer(states=2 * len(partition_states.states))
        for number in range(self._known, len(partition_states.states)):
            state = partition_states.states[number]
            is_healthy = set(state.condition) == {red.UP} and set(state.level) == {0}
            is_healthy = is_healthy and state.controller == CONTROLLER_WORKS
            absent = [
                slot for slot, condition in enumerate(state.condition) if condition == red.COPYING
            ]
            writable = red.is_writable(state, partition_states.constants)
            self.table.states[number] = (
                writable,
                partition_states.readable(number),
                writable and state.gaps > 0,
                is_healthy and len(state.registration.isr) == self.replicas,
                state.gaps,
                len(state.registration.isr),
                sum(1 << slot for slot in partition_states.copying(number)),
                sum(1 << slot for slot in absent),
                red.operator_can_elect(state),
                sum(
                    holds(state, partition_states.constants) << place
                    for place, holds in enumerate(self.shares)
                ),
            )
        self._known = len(partition_states.states)

    def _longer(self, states: int = 0, rows: int = 0) -> Table:
        old = self.table
        new = _empty(max(states, len(old.states)), max(rows, len(old.steps)), self.replicas)
        if rows:
            occupied = old.keys != UNKNOWN
            for key, row in zip(
                old.keys[occupied].tolist(), old.rows[occupied].tolist(), strict=True
            ):
                place = place_of(new.keys, key)
                new.keys[place], new.rows[place] = key, row
        else:
            new = new._replace(keys=old.keys, rows=old.rows)
        new.steps[: len(old.steps)] = old.steps
        new.gap_map[: len(old.gap_map)] = old.gap_map
        new.states[: len(old.states)] = old.states
        return new


def _empty(states: int, rows: int, replicas: int) -> Table:
    return Table(
        keys=np.full(2 * rows, UNKNOWN, dtype=np.int64),
        rows=np.full(2 * rows, UNKNOWN, dtype=np.int32),
        steps=np.zeros(rows, dtype=STEP),
        gap_map=np.full((rows, max(replicas - 1, 1)), GAP_CLOSED, dtype=np.int64),
        states=np.zeros(states, dtype=STATE),
    )


@lru_cache(maxsize=16)
def tables(constants: ChainConstants, replicas: int, shares: tuple[States, ...]) -> Tables:
    """The one growing table of some constants and measures in this process."""
    with EXPLORING:
        return Tables(constants, replicas, shares)
