"""Memoised transition table of the partition state: each rule is evaluated once."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import lru_cache

import numpy as np

from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.log_levels import EMPTY
from advisor.reliability.partition.reduced_state import (
    CONTROLLER_WORKS,
    COPYING,
    CRASH,
    POWER,
    UP,
    Outcome,
    PartitionState,
    apply,
    copies_run,
    healthy,
    is_readable,
    is_writable,
)
from advisor.reliability.solver.generator import IntArray

# Rows of `PartitionTransitionTable.facts`.
WRITABLE, READABLE, GAPS, IN_SYNC, COPIES = range(5)
_FACTS = 5

EXPLORING = threading.RLock()
"""Held while states are numbered: all threads of a process share their tables and graphs."""


class PartitionTransitionTable:
    """Numbered states of one partition and their transitions, explored on demand; 0 is healthy."""

    def __init__(self, constants: ChainConstants, replicas: int) -> None:
        self.constants = constants
        self.replicas = replicas
        self.states: list[PartitionState] = []
        self._facts = np.zeros((0, _FACTS), dtype=np.int64)
        self._numbers: dict[PartitionState, int] = {}
        self._steps: dict[tuple[int, int, tuple[int, ...]], tuple[int, Outcome]] = {}
        self._all_up = (UP,) * replicas
        start = healthy(replicas)
        if not is_writable(start, constants):
            # Nothing was ever acknowledged, so there is nothing to lose.
            start = start._replace(level=(EMPTY,) * replicas)
        self.number(start)

    def step(self, state: int, event: int, slots: tuple[int, ...]) -> tuple[int, Outcome]:
        """Number of the next state, and the outcome."""
        key = (state, event, slots)
        result = self._steps.get(key)
        if result is None:
            result = self._steps[key] = self._apply_rules(state, event, slots)
        return result

    def forget_steps(self) -> None:
        """Drop the steps, which can be computed again; states keep their numbers."""
        self._steps.clear()

    def _apply_rules(self, state: int, event: int, slots: tuple[int, ...]) -> tuple[int, Outcome]:
        before = self.states[state]
        if event == POWER and not (
            self.constants.page_cache and is_writable(before, self.constants)
        ):
            # Nothing was written that is not on disk yet.
            return self.step(state, CRASH, slots)
        following, outcome = apply(before, event, slots, self.constants)
        return self.number(self._rebalanced(following)), outcome

    def last_first(self, state: int, event: int, slots: tuple[int, ...]) -> tuple[int, Outcome]:
        """The same step with the last two slots in the opposite order of assignment."""
        *first_slots, last_but_one, last = assigned = tuple(range(self.replicas))
        order = (*first_slots, last, last_but_one)
        reordered_slots = tuple(sorted(slots, key=order.index))
        before = _assigned(self.states[state], order)
        following, outcome = apply(before, event, reordered_slots, self.constants)
        return self.number(self._rebalanced(_assigned(following, assigned))), outcome

    def _rebalanced(self, state: PartitionState) -> PartitionState:
        """Move the leadership of a fully replicated partition to the preferred leader.

        ``auto.leader.rebalance.enable`` does so within minutes; its cost is that of the change
        before.
        """
        fully_replicated = state.condition == self._all_up and len(set(state.level)) == 1
        if not fully_replicated or state.controller != CONTROLLER_WORKS:
            return state
        return self.states[0] if is_readable(state) else state

    def number(self, state: PartitionState) -> int:
        """The number of a state, assigned at first use."""
        number = self._numbers.get(state)
        if number is None:
            number = self._numbers[state] = len(self.states)
            self.states.append(state)
        return number

    def readable(self, number: int) -> bool:
        """Whether a leader serves reads."""
        return is_readable(self.states[number])

    def copying(self, number: int) -> tuple[int, ...]:
        """Slots whose copy is in progress, which takes a leader."""
        condition = self.states[number].condition
        if COPYING not in condition or not copies_run(self.states[number]):
            return ()
        return tuple(s for s, c in enumerate(condition) if c == COPYING)

    def facts(self, numbers: IntArray) -> IntArray:
        """WRITABLE, READABLE, GAPS, IN_SYNC and COPIES of partition states: (5, asked)."""
        new_states = len(self.states) - len(self._facts)
        if new_states > 0:
            self._facts = np.concatenate([self._facts, np.full((new_states, _FACTS), -1)])
        unknown = np.unique(numbers[self._facts[numbers, 0] < 0])
        if len(unknown):
            self._facts[unknown] = [self._facts_of(self.states[n]) for n in unknown.tolist()]
        return np.ascontiguousarray(self._facts.take(numbers, axis=0).T)

    def _facts_of(self, state: PartitionState) -> tuple[int, ...]:
        in_sync, copies = len(state.registration.isr), state.condition.count(COPYING)
        return is_writable(state, self.constants), is_readable(state), state.gaps, in_sync, copies


def _assigned(state: PartitionState, order: tuple[int, ...]) -> PartitionState:
    return state._replace(registration=replace(state.registration, replicas=order))


@lru_cache(maxsize=256)
def partition_transition_table(
    constants: ChainConstants, replicas: int
) -> PartitionTransitionTable:
    """The transition table of these constants, one per process."""
    return PartitionTransitionTable(constants, replicas)
