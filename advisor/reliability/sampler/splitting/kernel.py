"""Years whose paths split, compiled: the years of the compiled kernel, with retrials beside them.

The main path is never cut: it goes through all years. What happens on any path counts with the
weight that the path has then. A retrial ends before all is healthy, so that the main path alone
begins years.
"""

from __future__ import annotations

from numpy.random import Generator

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.sampler.compiled import kernel
from advisor.reliability.sampler.compiled.fault_kernel import next_event
from advisor.reliability.sampler.compiled.kernel import is_well
from advisor.reliability.sampler.compiled.memory_layout import (
    FINISHED,
    FIRST_LOSSES,
    MISSING,
    NEVER_RECOVERED,
    OUTAGES_COUNTED,
    TOTALS_COUNTED,
    KernelState,
)
from advisor.reliability.sampler.compiled.partition_kernel import account, all_known, apply_event
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.splitting import memory, residual_times, retrials
from advisor.reliability.sampler.splitting.memory import Paths
from advisor.reliability.sampler.splitting.retrials import leave, split, split_again
from advisor.reliability.solver.jit import called, entry, inlined

_LONGEST_WAIT = 10.0 * HOURS_PER_YEAR
_WELL = WELL
_TAKEN = -1


@inlined
def _years(rng: Generator, table: Table, sim: KernelState, paths: Paths) -> int:
    """Advance through all years that are left, and all retrials."""
    control = sim.control[0]
    while True:
        if control.event_pending == 0:
            code = _take_next(rng, table, sim, paths)
            if code != _TAKEN:
                return code
        if not all_known(table, sim):
            return MISSING
        control.event_pending = 0
        control.new_losses = 0
        for i in range(control.touched_count):
            apply_event(rng, table, sim, sim.touched[i])
            _set_level(table, sim, paths, sim.touched[i])
        control.touched_count = 0
        if control.counted != 0:
            _collect(sim, paths)
        if control.new_losses > 0:
            _note_loss(sim, paths)
        if is_well(sim):
            control.lost_since_healthy = 0
        _follow_level(rng, sim, paths)


@inlined
def _take_next(rng: Generator, table: Table, sim: KernelState, paths: Paths) -> int:
    """Take the next event of this path."""
    control = sim.control[0]
    while True:
        if control.phase == 2 and is_well(sim):
            control.phase = 0
            control.years_left -= 1
        if control.phase == 0:
            if control.years_left == 0:
                _finish(table, sim, paths)
                return FINISHED
            control.year_end = control.now + control.span_hours
            control.lost_this_year = 0
            control.phase = 1
        until = control.year_end
        if control.phase == 2:
            until += _LONGEST_WAIT
        next_split = paths.path[0].next_split
        if next_event(rng, table, sim, min(until, next_split)):
            break
        if next_split < until:
            split_again(rng, sim, paths)
            continue
        if control.phase == 2:
            return NEVER_RECOVERED
        control.phase = 2
    control.event_pending = 1
    _be_at_risk(sim, paths)
    return _TAKEN


@inlined
def _be_at_risk(sim: KernelState, paths: Paths) -> None:
    """Count the time since the last event, unless all is yet to be healthy after a loss."""
    control, path = sim.control[0], paths.path[0]
    if control.lost_since_healthy == 0:
        path.at_risk += path.weight * (control.now - path.counted_until)
    path.counted_until = control.now


@inlined
def _follow_level(rng: Generator, sim: KernelState, paths: Paths) -> None:
    """End retrials, or split the path, by its level after an event."""
    path = paths.path[0]
    if path.depth > 0 and paths.frames[0].retrial == 1:
        path.retrial_events += 1
    else:
        path.main_events += 1
    level = len(paths.levels) - 1
    while level > 0 and paths.levels[level].sets == 0:
        level -= 1
    before, path.level = path.level, level
    if path.depth > 0 and level < paths.frames[path.depth - 1].floor:
        path.level = leave(rng, sim, paths, level)
    elif level > before:
        paths.levels[level].risen += 1
        split(rng, sim, paths, before, level, sim.control[0].flush_hours)


@inlined
def _set_level(table: Table, sim: KernelState, paths: Paths, s: int) -> None:
    """Count the replicas of a set that are out or not in sync."""
    state, out = table.states[sim.sets[s].state], 0
    replicas = sim.slots.shape[1]
    for slot in range(replicas):
        condition = sim.brokers[sim.slots[s, slot]].condition
        if condition != _WELL or state.absent >> slot & 1:
            out += 1
    level = max(out, replicas - state.in_sync)
    if level != paths.level_of[s]:
        paths.levels[paths.level_of[s]].sets -= 1
        paths.levels[level].sets += 1
        paths.level_of[s] = level


@called
def _account_for_all(table: Table, sim: KernelState, paths: Paths) -> None:
    for s in range(len(sim.sets)):
        account(table, sim, s)
    if sim.control[0].counted != 0:
        _collect(sim, paths)


@called
def _collect(sim: KernelState, paths: Paths) -> None:
    """Move what was counted to the totals, by the weight that the path has now."""
    control, weight = sim.control[0], paths.path[0].weight
    if control.counted & TOTALS_COUNTED:
        for row in range(sim.totals.shape[0]):
            for column in range(sim.totals.shape[1]):
                paths.totals[row, column] += weight * sim.totals[row, column]
                sim.totals[row, column] = 0.0
    if control.counted & OUTAGES_COUNTED:
        for place in range(len(sim.outages_by_length)):
            paths.outages_by_length[place] += weight * sim.outages_by_length[place]
            sim.outages_by_length[place] = 0.0
    control.counted = 0


@called
def _note_loss(sim: KernelState, paths: Paths) -> None:
    """Count a moment at which one or more partitions lost something."""
    control, path = sim.control[0], paths.path[0]
    weight = path.weight
    path.loss_moments += 1
    if control.phase == 1 and control.lost_this_year == 0:
        path.due += weight
    control.lost_this_year = 1
    if control.lost_since_healthy == 0:
        control.lost_since_healthy = 1
        paths.totals[FIRST_LOSSES, control.cause] += weight
        path.lost += 1
        path.weights += weight
        path.squares += weight * weight
        path.largest = max(path.largest, weight)


@called
def _finish(table: Table, sim: KernelState, paths: Paths) -> None:
    """Account for the time since the last event of the main path."""
    _account_for_all(table, sim, paths)
    _be_at_risk(sim, paths)


def _run(rng: Generator, table: Table, sim: KernelState, paths: Paths) -> int:
    return int(_years(rng, table, sim, paths))


run = entry(_run, (*kernel.COMPILED, kernel, memory, residual_times, retrials))
"""Advance through the years that are left. Returns as the ``run`` of the compiled years does."""
