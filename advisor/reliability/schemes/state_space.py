"""The Markov chain of one replica set under another scheme: every state, as arrays.

Brokers and racks fail and return as for Kafka (:mod:`advisor.reliability.failures.fault_processes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import COPY, BrokerEvent
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.log_levels import GAP_CLOSED, gaps_between
from advisor.reliability.schemes.quorum_rules import (
    Levels,
    Outage,
    Quorums,
    Step,
    View,
    early_end,
    follow,
    is_running,
    settle,
)
from advisor.reliability.statespace.flush_window import FlushWindowLosses
from advisor.reliability.statespace.recovery_order import NO_LOSS, Outages

Key = tuple[tuple[int, ...], Levels]
"""What each slot's broker suffers, and how complete its log is."""


@dataclass(frozen=True)
class SchemeChain:
    """A chain without its rates.

    Attributes
    ----------
    keys : tuple of Key
        What each state is; 0 is the healthy one.
    writable, readable : arrays of bool, shape (states,)
    source, target, rate : arrays of int, shape (transitions,)
        State, state, index into ``rate_names``.
    weight : array of float, shape (transitions,)
        Share of the rate.
    losses, failed, moved : arrays of float, shape (transitions,)
        Chances that acknowledged records are lost for certain, and that the leader failed or
        handed over.
    total : array of bool, shape (transitions,)
        No log is left.
    gaps : array of int, shape (states,)
        How many gaps there are between logs; see :mod:`advisor.reliability.partition.log_levels`.
    gap_map : array of int, shape (transitions, most gaps)
        Old gap to new gap, or GAP_LOST or GAP_CLOSED.
    unflushed : array of int, shape (transitions,)
        The new gap that begins with what was in the page caches of some members only, or
        GAP_LOST or GAP_CLOSED.
    writes, reads : arrays of bool, shape (transitions,)
        Whether the partition serves when the transition is over. The state it leads to is one of
        those alike, and serves in the same way.
    rate_names : tuple of str
    cuts : Cuts
        What power loses that goes right after writing has stopped, in the states it leads to.
    """

    keys: tuple[Key, ...]
    writable: NDArray[np.bool_]
    readable: NDArray[np.bool_]
    source: NDArray[np.int64]
    target: NDArray[np.int64]
    rate: NDArray[np.int64]
    weight: NDArray[np.float64]
    losses: NDArray[np.float64]
    failed: NDArray[np.float64]
    moved: NDArray[np.float64]
    total: NDArray[np.bool_]
    gaps: NDArray[np.int64]
    gap_map: NDArray[np.int64]
    unflushed: NDArray[np.int64]
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
def explored(
    scheme: Quorums, setting: fault_processes.Setting, copying: bool, page_cache: bool
) -> SchemeChain:
    """Everything that can come of a healthy partition.

    Parameters
    ----------
    scheme : Quorums
    setting : Setting
        Where the replicas stand and what can happen there.
    copying : bool
        A replaced, empty broker needs time to copy the log.
    page_cache : bool
        Records are acknowledged before they are on disk.
    """
    well = fault_processes.initial_state(setting).own
    first = settle(scheme, well, (0,) * len(well), copying)
    numbers: dict[Key, int] = {(well, first.levels): 0}
    views, found = [first], []
    for own, levels in _growing(numbers):
        number = numbers[own, levels]
        for name, weight, step, machines in _moves(
            scheme, setting, own, views[number], copying, page_cache
        ):
            key = _alike(setting.racks, machines, step.view.levels)
            if key not in numbers:
                numbers[key] = len(views)
                views.append(settle(scheme, *key, copying))
            found.append(_Move(number, numbers[key], name, weight, step))
    keys = tuple(numbers)
    stopped = {m.target for m in found if views[m.source].writable} if page_cache else set()
    outages: Outages[Outage] = Outages()
    early = [
        (number, *cut)
        for number in sorted(stopped)
        for cut in _early_cuts(scheme, setting, keys[number][0], views[number], copying, outages)
    ]
    return _arrays(keys, views, found, early, outages)


def _early_cuts(
    scheme: Quorums,
    setting: fault_processes.Setting,
    own: tuple[int, ...],
    view: View,
    copying: bool,
    outages: Outages[Outage],
) -> Iterator[tuple[str, int]]:
    """Yield the names of power failures that may lose early, and what comes of them."""
    if view.writable:
        return
    for change in fault_processes.changes(fault_processes.Machines(own, setting.racks), setting):
        if any(event == BrokerEvent.POWER for event, _ in change.events):
            end = early_end(scheme, view, change, setting.racks, copying, outages)
            if end != NO_LOSS:
                yield change.rate, end


def _arrays(
    keys: tuple[Key, ...],
    views: list[View],
    found: list[_Move],
    early: list[tuple[int, str, int]],
    outages: Outages[Outage],
) -> SchemeChain:
    ends = [end for *_, end in early]
    names = tuple(dict.fromkeys([*(move.rate for move in found), *outages.names(ends)]))
    place = {name: number for number, name in enumerate(names)}
    width = max(len(keys[0][0]) - 1, 1)
    gap_map = np.full((len(found), width), GAP_CLOSED, dtype=np.int64)
    for row, move in enumerate(found):
        gap_map[row, : len(move.step.gap_map)] = move.step.gap_map
    odds, renamed = outages.odds(ends, place)
    return SchemeChain(
        keys=keys,
        writable=np.array([view.writable for view in views]),
        readable=np.array([view.readable for view in views]),
        source=np.array([move.source for move in found], dtype=np.int64),
        target=np.array([move.target for move in found], dtype=np.int64),
        rate=np.array([place[move.rate] for move in found], dtype=np.int64),
        weight=np.array([move.weight for move in found]),
        losses=np.array([move.step.losses for move in found]),
        failed=np.array([move.step.failed for move in found]),
        moved=np.array([move.step.moved for move in found]),
        total=np.array([move.step.total for move in found], dtype=np.bool_),
        gaps=np.array([gaps_between(view.levels) for view in views], dtype=np.int64),
        gap_map=gap_map,
        unflushed=np.array([move.step.unflushed for move in found], dtype=np.int64),
        writes=np.array([move.step.view.writable for move in found], dtype=np.bool_),
        reads=np.array([move.step.view.readable for move in found], dtype=np.bool_),
        rate_names=names,
        cuts=FlushWindowLosses(
            np.array([state for state, _, _ in early], dtype=np.int64),
            np.array([place[rate] for _, rate, _ in early], dtype=np.int64),
            renamed,
            odds,
        ),
    )


def _growing(numbers: dict[Key, int]) -> Iterator[Key]:
    """Yield the keys, those too that are added meanwhile."""
    done = 0
    while done < len(numbers):
        for key in list(numbers)[done:]:
            done += 1
            yield key


def _moves(
    scheme: Quorums,
    setting: fault_processes.Setting,
    own: tuple[int, ...],
    before: View,
    copying: bool,
    page_cache: bool,
) -> Iterator[tuple[str, float, Step, tuple[int, ...]]]:
    """Yield rate name, weight, step and machines of everything that can happen next."""
    for change in fault_processes.changes(fault_processes.Machines(own, setting.racks), setting):
        weight = 1.0
        if change.events[0][0] == BrokerEvent.LAG:
            (slot,) = change.events[0][1]
            size = len(before.members)
            # A leader does not lag behind itself, and every member is as likely to lead.
            weight = (size - 1) / size if slot in before.members else 1.0
        if weight:
            step = follow(scheme, before, change, copying, page_cache)
            yield change.rate, weight, step, change.own
    most = min(before.levels)
    sources = [s for s, c in enumerate(own) if is_running(c) and before.levels[s] == most]
    for slot, level in enumerate(before.levels):
        if level == red.EMPTY and is_running(own[slot]) and sources and most != red.EMPTY:
            held = tuple(most if s == slot else value for s, value in enumerate(before.levels))
            view = settle(scheme, own, held, copying)
            yield COPY, 1.0, Step(view, gap_map=view.gap_map), own


def _alike(racks: tuple[int, ...], own: tuple[int, ...], levels: Levels) -> Key:
    """One of the states that differ only in the names of brokers and of racks of one size."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for rack, condition, level in zip(racks, own, levels, strict=True):
        groups.setdefault(rack, []).append((condition, level))
    # The fullest rack comes first in a pattern; those of one size may change places.
    ordered = sorted((sorted(group) for group in groups.values()), key=lambda g: (-len(g), g))
    slots = [slot for group in ordered for slot in group]
    return tuple(condition for condition, _ in slots), tuple(level for _, level in slots)
