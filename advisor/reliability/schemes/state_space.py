"""State space of one replica set under another scheme: every state, lumped, as arrays.

Brokers and racks fail and recover as in Kafka's chain
(:mod:`advisor.reliability.failures.fault_processes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import COPY, HANGING, BrokerEvent
from advisor.reliability.partition.log_levels import EMPTY, GAP_CLOSED, Levels, gaps_between
from advisor.reliability.schemes.quorum_rules import (
    Outage,
    Quorums,
    Step,
    View,
    early_end,
    follow,
    is_running,
    settle,
)
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.statespace.flush_window import FlushWindowLosses
from advisor.reliability.statespace.recovery_order import NO_LOSS, Outages

Key = tuple[tuple[int, ...], Levels]
"""Condition of each slot's broker, and completeness of its log."""


@dataclass(frozen=True, eq=False)
class SchemeChain:
    """A CTMC without numeric rates; equal only to itself.

    Attributes
    ----------
    keys : tuple of Key
        The states; 0 is healthy.
    writable, readable : arrays of bool, shape (states,)
    source, target, rate : arrays of int, shape (transitions,)
        State, state, index into ``rate_names``.
    weight : array of float, shape (transitions,)
        Share of the rate.
    losses, failed, moved : arrays of float, shape (transitions,)
        Probability that acknowledged records other than a tail are lost, that the leader failed,
        and that it handed over.
    total : array of bool, shape (transitions,)
        No log is left.
    gaps : array of int, shape (states,)
        Number of gaps between logs; see :mod:`advisor.reliability.partition.log_levels`.
    gap_map : array of int, shape (transitions, most gaps)
        Old gap to new gap, GAP_LOST or GAP_CLOSED.
    unflushed : array of int, shape (transitions,)
        The new gap that begins with records lost from page caches, GAP_LOST or GAP_CLOSED.
    writes, reads : arrays of bool, shape (transitions,)
        Whether the partition is writable, readable after the transition.
    rate_names : tuple of str
    cuts : FlushWindowLosses
        Losses by power failures right after writing has stopped, by the states after the stop.
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
    cuts: FlushWindowLosses


class _Move(NamedTuple):
    source: int
    target: int
    rate: str
    weight: float
    step: Step


@lru_cache(maxsize=64)
def explored(scheme: Quorums, setting: fault_processes.Setting) -> SchemeChain:
    """Every state that a healthy partition can reach.

    Parameters
    ----------
    setting : Setting
        Racks of the replicas and the failures that can happen there.
    """
    well = fault_processes.initial_state(setting).own
    first = settle(scheme, well, (0,) * len(well))
    numbers: dict[Key, int] = {(well, first.levels): 0}
    keys, views, moves = list(numbers), [first], []
    # New keys are appended while the loop runs.
    for number, (own, _) in enumerate(keys):
        for name, weight, step, after in _transitions(scheme, setting, own, views[number]):
            key = _canonical(setting.racks, after, step.view.levels)
            if key not in numbers:
                numbers[key] = len(keys)
                keys.append(key)
                views.append(settle(scheme, *key))
            moves.append(_Move(number, numbers[key], name, weight, step))
    stopped = {m.target for m in moves if views[m.source].writable} if scheme.page_cache else set()
    outages: Outages[Outage] = Outages()
    early = [
        (number, *loss)
        for number in sorted(stopped)
        for loss in _early_losses(scheme, setting, keys[number][0], views[number], outages)
    ]
    return _arrays(tuple(keys), views, moves, early, outages)


def _early_losses(
    scheme: Quorums,
    setting: fault_processes.Setting,
    own: tuple[int, ...],
    view: View,
    outages: Outages[Outage],
) -> Iterator[tuple[str, int]]:
    """Yield the rate names of power failures that lose within the flush window, and their ends."""
    if view.writable:
        return
    for change in fault_processes.changes(
        fault_processes.BrokerStates(own, setting.racks), setting
    ):
        if any(event == BrokerEvent.POWER for event, _ in change.events):
            end = early_end(scheme, view, change, setting, outages)
            if end != NO_LOSS:
                yield change.rate, end


def _arrays(
    keys: tuple[Key, ...],
    views: list[View],
    moves: list[_Move],
    early: list[tuple[int, str, int]],
    outages: Outages[Outage],
) -> SchemeChain:
    ends = [end for *_, end in early]
    names = tuple(dict.fromkeys([*(move.rate for move in moves), *outages.names(ends)]))
    index = {name: number for number, name in enumerate(names)}
    width = max(len(keys[0][0]) - 1, 1)
    gap_map = np.full((len(moves), width), GAP_CLOSED, dtype=np.int64)
    for row, move in enumerate(moves):
        gap_map[row, : len(move.step.gap_map)] = move.step.gap_map
    odds, renamed = outages.odds(ends, index)
    return SchemeChain(
        keys=keys,
        writable=np.array([view.writable for view in views]),
        readable=np.array([view.readable for view in views]),
        source=np.array([move.source for move in moves], dtype=np.int64),
        target=np.array([move.target for move in moves], dtype=np.int64),
        rate=np.array([index[move.rate] for move in moves], dtype=np.int64),
        weight=np.array([move.weight for move in moves]),
        losses=np.array([move.step.losses for move in moves]),
        failed=np.array([move.step.failed for move in moves]),
        moved=np.array([move.step.moved for move in moves]),
        total=np.array([move.step.total for move in moves], dtype=np.bool_),
        gaps=np.array([gaps_between(view.levels) for view in views], dtype=np.int64),
        gap_map=gap_map,
        unflushed=np.array([move.step.unflushed for move in moves], dtype=np.int64),
        writes=np.array([move.step.view.writable for move in moves], dtype=np.bool_),
        reads=np.array([move.step.view.readable for move in moves], dtype=np.bool_),
        rate_names=names,
        cuts=FlushWindowLosses(
            np.array([state for state, _, _ in early], dtype=np.int64),
            np.array([index[rate] for _, rate, _ in early], dtype=np.int64),
            renamed,
            odds,
        ),
    )


def _transitions(
    scheme: Quorums, setting: fault_processes.Setting, own: tuple[int, ...], before: View
) -> Iterator[tuple[str, float, Step, tuple[int, ...]]]:
    """Yield rate name, weight, step and broker conditions of every transition."""
    for change in fault_processes.changes(
        fault_processes.BrokerStates(own, setting.racks), setting
    ):
        weight = 1.0
        if change.events[0][0] in HANGING:
            (slot,) = change.events[0][1]
            size = len(before.members)
            # A leader that lags or limps counts as well, and each member is equally likely to lead.
            weight = (size - 1) / size if slot in before.members else 1.0
        if weight:
            yield change.rate, weight, follow(scheme, before, change), change.own
    longest = min(before.levels)
    sources = [s for s, c in enumerate(own) if is_running(c) and before.levels[s] == longest]
    for slot, level in enumerate(before.levels):
        if level == EMPTY and is_running(own[slot]) and sources and longest != EMPTY:
            held = tuple(longest if s == slot else value for s, value in enumerate(before.levels))
            view = settle(scheme, own, held)
            yield COPY, 1.0, Step(view, gap_map=view.gap_map), own


def _canonical(racks: tuple[int, ...], own: tuple[int, ...], levels: Levels) -> Key:
    """The representative of states that differ by exchangeable brokers or racks (lumping)."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for rack, condition, level in zip(racks, own, levels, strict=True):
        groups.setdefault(rack, []).append((condition, level))
    # The fullest rack comes first in a pattern; racks of one size are exchangeable.
    ordered = sorted((sorted(group) for group in groups.values()), key=lambda g: (-len(g), g))
    slots = [slot for group in ordered for slot in group]
    return tuple(condition for condition, _ in slots), tuple(level for _, level in slots)
