"""State space of one replica set under another scheme: every state, lumped, as arrays.

Brokers and racks fail and recover as in Kafka's chain
(:mod:`advisor.reliability.failures.fault_processes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.lessons.scheme_reliability.quorum_rules import (
    Outage,
    Quorums,
    Step,
    View,
    early_end,
    follow,
    is_running,
    settle,
)
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import COPY, HANGING, WELL, BrokerEvent
from advisor.reliability.partition.log_levels import EMPTY, GAP_CLOSED, Levels, gaps_between
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.statespace.flush_window import NO_LOSS, FlushWindowLosses, Outages

_STOPPED, _OUT_OF_SYNC, _WELL = range(3)
_NO_SLOT = -1

Key = tuple[tuple[int, ...], Levels]
"""Condition of each slot's broker, and completeness of its log."""


@dataclass(frozen=True, eq=False)
class SchemeChain:
    """A CTMC without numeric rates; equal only to itself.

    keys, writable, readable (states,): state 0 is healthy.
    source, target, rate (transitions,): state, state, index into ``rate_names``.
    weight (transitions,): share of the rate.
    losses, failed, moved, total (transitions,): as of a `Step`.
    gaps (states,): number of gaps between logs; see
        :mod:`advisor.reliability.partition.log_levels`.
    gap_map (transitions, most gaps): old gap to new gap, GAP_LOST or GAP_CLOSED.
    unflushed (transitions,): the new gap that begins with records lost from page caches, GAP_LOST
        or GAP_CLOSED.
    writes, reads (transitions,): whether the partition is writable, readable after the transition.
    flush_window: losses by power failures soon after writes have stopped, by the states after the
        stop.
    """

    keys: tuple[Key, ...]
    writable: NDArray[np.bool_]
    readable: NDArray[np.bool_]
    source: IntArray
    target: IntArray
    rate: IntArray
    weight: Vector
    losses: Vector
    failed: Vector
    moved: Vector
    total: NDArray[np.bool_]
    gaps: IntArray
    gap_map: IntArray
    unflushed: IntArray
    writes: NDArray[np.bool_]
    reads: NDArray[np.bool_]
    rate_names: tuple[str, ...]
    flush_window: FlushWindowLosses

    @cached_property
    def own(self) -> IntArray:
        """Condition of each slot's broker, shape (states, replicas)."""
        return np.array([own for own, _ in self.keys])


@lru_cache(maxsize=64)
def explored(scheme: Quorums, environment: fault_processes.FaultEnvironment) -> SchemeChain:
    """Every state that a healthy partition can reach, in the order in which they are met."""
    space = _Space(scheme, environment)
    moves: list[int] = []
    state = 0
    while state < len(space.keys):
        space.add_moves(state, moves)
        state += 1
    return space.chain(np.array(moves, dtype=np.int64).reshape(-1, 4).T)


class _BrokerChange(NamedTuple):
    """A failure or repair of the brokers.

    seen: number of all that a scheme sees of it: its events and which brokers run afterwards.
    hangs: slot of a broker that lags or limps, -1 for any other failure.
    power: brokers lose power.
    """

    change: fault_processes.Change
    seen: int
    hangs: int
    power: bool


class _Space:
    """The states found so far; rules are asked once for all that they see."""

    def __init__(self, scheme: Quorums, environment: fault_processes.FaultEnvironment) -> None:
        self._scheme, self._environment = scheme, environment
        self.keys: list[Key] = []
        self._view_of: list[int] = []
        self._views: list[View] = []
        self._view_numbers: dict[View, int] = {}
        self._seen: dict[tuple[fault_processes.Events, int], int] = {}
        self._changes: dict[fault_processes.Own, list[_BrokerChange]] = {}
        self._rates: dict[str, int] = {}
        self._weights: dict[int, float] = {}
        self._steps: list[Step] = []
        # By view, the step of what is seen; by levels, the state of the brokers' conditions.
        self._step_of: list[dict[int, int]] = []
        self._states: dict[Levels, dict[fault_processes.Own, int]] = {}
        well = fault_processes.initial_state(environment).own
        self._state(well, settle(scheme, well, (0,) * len(well)).levels)

    def _state(self, own: fault_processes.Own, levels: Levels) -> int:
        """The number of a state, given at first use; exchangeable states are one (lumping)."""
        key = _canonical(self._environment.racks, own, levels)
        states = self._states.setdefault(key[1], {})
        number = states.get(key[0])
        if number is None:
            number = states[key[0]] = len(self.keys)
            self.keys.append(key)
            view = settle(self._scheme, *key)
            seen = self._view_numbers.setdefault(view, len(self._views))
            if seen == len(self._views):
                self._views.append(view)
                self._step_of.append({})
            self._view_of.append(seen)
        self._states.setdefault(levels, {})[own] = number
        return number

    def _changes_of(self, own: fault_processes.Own) -> list[_BrokerChange]:
        changes = self._changes.get(own)
        if changes is None:
            brokers = fault_processes.BrokerStates(own, self._environment.racks)
            changes = self._changes[own] = [
                _BrokerChange(
                    change,
                    self._seen.setdefault((change.events, _roles(change.own)), len(self._seen)),
                    _hanging_slot(change.events),
                    any(event == BrokerEvent.POWER for event, _ in change.events),
                )
                for change in fault_processes.changes(brokers, self._environment)
            ]
        return changes

    def add_moves(self, state: int, moves: list[int]) -> None:
        """Add source, target, rate's name and step of each transition out of a state."""
        own, view = self.keys[state][0], self._view_of[state]
        members = self._views[view].members
        step_of, rates = self._step_of[view], self._rates
        for change, seen, hangs, _ in self._changes_of(own):
            if hangs in members:
                # A leader that lags or limps counts as well; each member is as likely to lead.
                if len(members) == 1:
                    continue
                self._weights[len(moves) // 4] = (len(members) - 1) / len(members)
            step = step_of.get(seen)
            if step is None:
                step = step_of[seen] = len(self._steps)
                self._steps.append(follow(self._scheme, self._views[view], change))
            self._add(moves, state, change.own, step, rates.setdefault(change.rate, len(rates)))
        if EMPTY in self._views[view].levels:
            for copied in self._copies(state):
                self._steps.append(copied)
                copy = rates.setdefault(COPY, len(rates))
                self._add(moves, state, own, len(self._steps) - 1, copy)

    def _add(
        self, moves: list[int], state: int, after: fault_processes.Own, step: int, rate: int
    ) -> None:
        levels = self._steps[step].view.levels
        states = self._states.get(levels)
        target = None if states is None else states.get(after)
        if target is None:
            target = self._state(after, levels)
        moves += (state, target, rate, step)

    def _copies(self, state: int) -> Iterator[Step]:
        """What follows when an empty replica has copied a longest log."""
        own, levels = self.keys[state][0], self._views[self._view_of[state]].levels
        longest = min(levels)
        sources = [s for s, c in enumerate(own) if is_running(c) and levels[s] == longest]
        for slot, level in enumerate(levels):
            if level == EMPTY and is_running(own[slot]) and sources and longest != EMPTY:
                held = tuple(longest if s == slot else value for s, value in enumerate(levels))
                view = settle(self._scheme, own, held)
                yield Step(view, gap_map=view.gap_map)

    def _early_losses(
        self, stopped: list[int], outages: Outages[Outage]
    ) -> Iterator[tuple[int, str, int]]:
        """State, rate and end of power failures that lose within the flush window after a stop."""
        ends: dict[tuple[int, int, fault_processes.Own], int] = {}
        for state in stopped if self._scheme.page_cache else ():
            view = self._view_of[state]
            for change, seen, _, power in self._changes_of(self.keys[state][0]):
                if not power:
                    continue
                key = view, seen, change.own
                if key not in ends:
                    ends[key] = early_end(
                        self._scheme, self._views[view], change, self._environment, outages
                    )
                if ends[key] != NO_LOSS:
                    yield state, change.rate, ends[key]

    def chain(self, moves: IntArray) -> SchemeChain:
        """All states and transitions as arrays."""
        source, target, rate, step_of = moves
        weight = np.ones(len(source))
        weight[list(self._weights)] = list(self._weights.values())
        views, steps = [self._views[number] for number in self._view_of], self._steps
        writable = np.array([view.writable for view in views])
        stopped = np.unique(target[writable[source] & ~writable[target]]).tolist()
        outages: Outages[Outage] = Outages()
        early = list(self._early_losses(stopped, outages))
        ends = [end for _, _, end in early]
        names = list(self._rates)
        names += [name for name in outages.names(ends) if name not in names]
        index = {name: number for number, name in enumerate(names)}
        odds, renamed = outages.odds(ends, index)
        gap_map = np.full((len(steps), max(self._environment.replicas - 1, 1)), GAP_CLOSED)
        for row, step in enumerate(steps):
            gap_map[row, : len(step.gap_map)] = step.gap_map
        return SchemeChain(
            keys=tuple(self.keys),
            writable=writable,
            readable=np.array([view.readable for view in views]),
            source=source,
            target=target,
            rate=rate,
            weight=weight,
            losses=np.array([step.losses for step in steps])[step_of],
            failed=np.array([step.failed for step in steps])[step_of],
            moved=np.array([step.moved for step in steps])[step_of],
            total=np.array([step.total for step in steps], dtype=bool)[step_of],
            gaps=np.array([gaps_between(view.levels) for view in views]),
            gap_map=gap_map[step_of],
            unflushed=np.array([step.unflushed for step in steps], dtype=np.int64)[step_of],
            writes=np.array([step.view.writable for step in steps], dtype=bool)[step_of],
            reads=np.array([step.view.readable for step in steps], dtype=bool)[step_of],
            rate_names=tuple(names),
            flush_window=FlushWindowLosses(
                np.array([state for state, _, _ in early], dtype=np.int64),
                np.array([index[power] for _, power, _ in early], dtype=np.int64),
                renamed,
                odds,
            ),
        )


def _roles(own: fault_processes.Own) -> int:
    """One number for what a scheme sees of the brokers."""
    code = 0
    for condition in own:
        running = _OUT_OF_SYNC if is_running(condition) else _STOPPED
        code = 3 * code + (_WELL if condition == WELL else running)
    return code


def _hanging_slot(events: fault_processes.Events) -> int:
    # Without events the second stage of an outage begins, which changes nothing for the partition.
    event, slots = events[0] if events else (None, ())
    return slots[0] if event in HANGING else _NO_SLOT


def _canonical(racks: tuple[int, ...], own: tuple[int, ...], levels: Levels) -> Key:
    """The representative of states that differ by exchangeable brokers or racks (lumping)."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for rack, condition, level in zip(racks, own, levels, strict=True):
        groups.setdefault(rack, []).append((condition, level))
    # The fullest rack comes first in a pattern; racks of one size are exchangeable.
    ordered = sorted((sorted(group) for group in groups.values()), key=lambda g: (-len(g), g))
    slots = [slot for group in ordered for slot in group]
    return tuple(condition for condition, _ in slots), tuple(level for _, level in slots)
