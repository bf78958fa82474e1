"""The next failure of a biased cycle, compiled: when it comes, what it is, and whom it strikes.

Until the next outage ends, a failure is brought about with some probability; otherwise failures
come as they do. So frequent failures that have nothing to do with a loss come as often as they do,
and no such step multiplies the weight by more than 1 / (1 - that probability).

What is brought about is drawn by what came before losses of the pilot. A loss needs failures of
brokers that share a replica set, so most of it aims at brokers in the sets of those that were
struck before, most of all at those that a set has left; the rest strikes anyone. And some
comes at once: what was written last is not on disk until a flush.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from advisor.reliability.failures.mechanisms import WELL, Scope
from advisor.reliability.sampler.compiled.fault_kernel import any_target, wait
from advisor.reliability.sampler.compiled.jit import called, inlined
from advisor.reliability.sampler.compiled.memory_layout import (
    BIASED,
    SCOPES,
    UNBIASED,
    KernelState,
)
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.cycles.memory import Cycles

Weights = NDArray[np.float64]

_WELL = WELL
_RACK, _CLUSTER = SCOPES.index(Scope.RACK), SCOPES.index(Scope.CLUSTER)
# Of the failures brought about: aimed, and within the time of a flush.
_AIMED, _AT_ONCE = 0.7, 0.15
# Each replica that a set lacks makes the others so many times as likely, by the power of two.
_EACH_LACKING = 3


@called
def next_failure(
    rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles, hours: float
) -> float:
    """Hours until the next failure, whose course and target are set; -1 if none comes so soon."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    # No failure can come between outages that end at the same moment.
    biased = control.weighing != UNBIASED and 0.0 < hours < np.inf
    share = _share(sim, cycle.boost, hours) if biased else 0.0
    wanted = 0.0
    if biased and control.weighing == BIASED and rng.random() < share:
        wanted = _aim(table, sim, all_cycles)
        found = _soon(rng, sim, hours)
        cycle.next_course = _draw(all_cycles.biased[cycle.rarest], rng.random())
        cycle.next_target = _next_target(rng, sim, all_cycles, wanted)
    else:
        found = wait(rng, control.strikes)
        if found >= hours:
            if biased:
                control.ratio /= 1.0 - share
            return -1.0
        if biased:
            wanted = _aim(table, sim, all_cycles)
        cycle.next_course = _draw(all_cycles.natural, rng.random())
        cycle.next_target = any_target(rng, sim, cycle.next_course)
    if biased:
        odds = _odds(sim, all_cycles, found, hours, wanted)
        control.ratio /= 1.0 - share + share * odds
        _note(all_cycles, share * odds / (1.0 - share + share * odds))
    return float(found)


@inlined
def _share(sim: KernelState, boost: float, hours: float) -> float:
    """Probability that a failure is brought about within these hours, until something ends.

    Over all outages and copies that have yet to end it is about ``boost``: half of it by their
    number, for a short one may be all that a loss needs, and half of it by the time that is left.
    """
    control = sim.control[0]
    ends, last = control.running, hours
    for i in range(control.running):
        last = max(last, sim.clocks[sim.running[i]].due - control.now)
    if control.copying > 0:
        ends += control.copying
        last = max(last, 1.0 / control.copies_per_hour)
    if control.undecided > 0:
        ends += control.undecided
        last = max(last, 1.0 / control.decisions_per_hour)
    part = 0.5 / max(ends, 1) + (0.5 * hours / last if last > 0.0 else 0.5)
    return float(-math.expm1(math.log1p(-boost) * part))


@inlined
def _soon(rng: Generator, sim: KernelState, hours: float) -> float:
    """Draw the time of a failure that comes within these hours, or within those of a flush."""
    control = sim.control[0]
    within, x = hours, rng.random()
    if control.flush_hours > 0.0 and rng.random() < _AT_ONCE:
        within = min(hours, control.flush_hours)
    return float(-math.log1p(x * math.expm1(-control.strikes * within)) / control.strikes)


@inlined
def _odds(sim: KernelState, all_cycles: Cycles, found: float, hours: float, wanted: float) -> float:
    """Density of a failure that is brought about over that of one that comes as it does."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    at_once = _AT_ONCE if control.flush_hours > 0.0 else 0.0
    times = (1.0 - at_once) / -math.expm1(-control.strikes * hours)
    soon = min(hours, control.flush_hours)
    if at_once > 0.0 and found < soon:
        times += at_once / -math.expm1(-control.strikes * soon)
    course = cycle.next_course
    courses = all_cycles.biased[cycle.rarest, course] / all_cycles.natural[course]
    if not _is_aimed(sim, course, wanted):
        return float(times * courses)
    aimed, struck = 0.0, sim.strikes[course]
    if struck.scope == _RACK:
        for i in range(sim.racks[cycle.next_target].start, sim.racks[cycle.next_target].end):
            if sim.members[i] < control.brokers:
                aimed += all_cycles.wanted[sim.members[i]]
    else:
        aimed = all_cycles.wanted[cycle.next_target]
    return float(times * courses * (1.0 - _AIMED + _AIMED * aimed / wanted * struck.targets))


@inlined
def _note(all_cycles: Cycles, brought_about: float) -> None:
    """Note a failure of this cycle, and how likely it is that it was brought about."""
    cycle = all_cycles.cycle[0]
    place, course = cycle.strikes, cycle.next_course
    all_cycles.path[place] = course
    all_cycles.path_before[place] = cycle.rarest
    all_cycles.brought_about[place] = brought_about
    if all_cycles.natural[course] < all_cycles.natural[cycle.rarest]:
        cycle.rarest = course


@inlined
def _next_target(rng: Generator, sim: KernelState, all_cycles: Cycles, wanted: float) -> int:
    """Draw whom a failure that is brought about strikes."""
    course = all_cycles.cycle[0].next_course
    if not _is_aimed(sim, course, wanted) or rng.random() >= _AIMED:
        return int(any_target(rng, sim, course))
    target = _draw(all_cycles.wanted, rng.random() * wanted)
    return int(sim.brokers[target].rack if sim.strikes[course].scope == _RACK else target)


@inlined
def _is_aimed(sim: KernelState, course: int, wanted: float) -> bool:
    """Whether a failure has targets to choose from, and some are better than others."""
    struck = sim.strikes[course]
    several = struck.targets > 1 and not struck.of_quorum and struck.scope != _CLUSTER
    return bool(several and wanted > 0.0)


@inlined
def _draw(weights: Weights, x: float) -> int:
    """The place of a number among weights that are laid end to end."""
    last = 0
    for place in range(len(weights)):
        if weights[place] > 0.0:
            last = place
            if x < weights[place]:
                break
            x -= weights[place]
    return last


@called
def note_struck(sim: KernelState, all_cycles: Cycles, course: int, target: int) -> None:
    """Remember the brokers that a failure strikes."""
    struck = sim.strikes[course]
    if struck.of_quorum or struck.scope == _CLUSTER:
        return
    if struck.scope == _RACK:
        for i in range(sim.racks[target].start, sim.racks[target].end):
            _note_one(sim, all_cycles, sim.members[i])
    else:
        _note_one(sim, all_cycles, target)


@inlined
def _note_one(sim: KernelState, all_cycles: Cycles, b: int) -> None:
    if b < sim.control[0].brokers:
        all_cycles.struck[b] = 1


@called
def _aim(table: Table, sim: KernelState, all_cycles: Cycles) -> float:
    """Fill in how much each broker is wanted; return the sum."""
    width, total = sim.slots.shape[1], 0.0
    all_cycles.wanted[:] = 0.0
    for b in range(sim.control[0].brokers):
        if all_cycles.struck[b] == 0:
            continue
        for i in range(sim.brokers[b].start, sim.brokers[b].end):
            s, lacking = sim.served[i].set, 0
            for slot in range(width):
                lacking += _lacks(table, sim, s, slot)
            if lacking in (0, width):
                continue
            wanted = float(1 << _EACH_LACKING * lacking)
            total += wanted
            for slot in range(width):
                if not _lacks(table, sim, s, slot):
                    all_cycles.wanted[sim.slots[s, slot]] += wanted / (width - lacking)
    return total


@inlined
def _lacks(table: Table, sim: KernelState, s: int, slot: int) -> bool:
    """Whether a set lacks a replica: its broker is out, or has yet to copy its log."""
    absent = table.states[sim.sets[s].state].absent
    return bool(sim.brokers[sim.slots[s, slot]].own != _WELL or absent >> slot & 1)
