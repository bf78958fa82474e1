"""The next failure of a biased cycle, compiled: its time, its kind and its target.

Until the next outage ends, a failure is forced with some probability (forcing; Lewis and Boehm,
Nucl. Eng. Des. 77, 1984); otherwise failures come at their natural rates. Frequent failures that
do not lead to losses keep their natural rate, and no such step multiplies the weight by more than
1 / (1 - that probability).

Forced failures are drawn from those that preceded losses in the pilot run, after the same rarest
failure. Most of them target brokers that share a replica set with brokers that failed before, above
all those of sets with few replicas left; the rest are drawn from all brokers. While the last writes
of a set that takes no more are not yet on disk (the flush window), some forced failures are power
failures in that time.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from advisor.reliability.failures.mechanisms import WELL, Scope
from advisor.reliability.sampler.compiled.fault_kernel import any_target, wait
from advisor.reliability.sampler.compiled.memory_layout import (
    BIASED,
    SCOPES,
    UNBIASED,
    KernelState,
)
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.cycles.memory import Cycles
from advisor.reliability.solver.jit import called, inlined

Weights = NDArray[np.float64]

_WELL = WELL
_RACK, _CLUSTER = SCOPES.index(Scope.RACK), SCOPES.index(Scope.CLUSTER)
# Each replica that a set lacks multiplies the weight of the others by this power of two.
_EACH_LACKING = 3


@called
def next_failure(
    rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles, hours: float
) -> float:
    """Hours until the next failure, whose kind and target are set; -1 if none comes so soon."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    # No failure can come between outages that end at the same moment.
    biased = control.bias_mode != UNBIASED and 0.0 < hours < np.inf
    share = _forcing_share(sim, all_cycles, hours) if biased else 0.0
    window, total_weight = 0.0, 0.0
    if biased and cycle.has_power_failures == 1:
        window = max(min(hours, control.all_flushed_at - control.now), 0.0)
    if biased and control.bias_mode == BIASED and rng.random() < share:
        total_weight = _set_target_weights(table, sim, all_cycles)
        if window > 0.0 and rng.random() < cycle.power_share:
            wait_hours = _draw_within(rng, sim, window)
            cycle.next_kind = _draw(all_cycles.biased_power[cycle.rarest_kind], rng.random())
        else:
            wait_hours = _draw_within(rng, sim, hours)
            cycle.next_kind = _draw(all_cycles.biased[cycle.rarest_kind], rng.random())
        cycle.next_target = _next_target(rng, sim, all_cycles, total_weight)
    else:
        wait_hours = wait(rng, control.strikes_per_hour)
        if wait_hours >= hours:
            if biased:
                control.likelihood_ratio /= 1.0 - share
            return -1.0
        if biased:
            total_weight = _set_target_weights(table, sim, all_cycles)
        cycle.next_kind = _draw(all_cycles.natural, rng.random())
        cycle.next_target = any_target(rng, sim, cycle.next_kind)
    if biased:
        odds = _density_ratio(sim, all_cycles, wait_hours, hours, window, total_weight)
        control.likelihood_ratio /= 1.0 - share + share * odds
        _note_failure(all_cycles, share * odds / (1.0 - share + share * odds))
    return float(wait_hours)


@inlined
def _forcing_share(sim: KernelState, all_cycles: Cycles, hours: float) -> float:
    """Probability that a failure is forced within these hours, until an outage or copy ends.

    Over all outages and copies that have yet to end it is about ``forcing``: a part of it in
    proportion to their number, for a short one may be all that a loss needs, and the rest in
    proportion to the time that is left.
    """
    control, cycle = sim.control[0], all_cycles.cycle[0]
    ends, last = control.running_count, hours
    for i in range(control.running_count):
        last = max(last, sim.clocks[sim.running[i]].due - control.now)
    if control.running_copies > 0:
        ends += control.running_copies
        last = max(last, 1.0 / control.copies_per_hour)
    if control.undecided_count > 0:
        ends += control.undecided_count
        last = max(last, 1.0 / control.decisions_per_hour)
    by_time = 1.0 - cycle.by_number
    exponent = cycle.by_number / max(ends, 1) + (by_time * hours / last if last > 0.0 else by_time)
    return float(-math.expm1(math.log1p(-cycle.forcing) * exponent))


@inlined
def _draw_within(rng: Generator, sim: KernelState, hours: float) -> float:
    """Draw the time of a failure that comes within these hours."""
    rate = sim.control[0].strikes_per_hour
    return float(-math.log1p(rng.random() * math.expm1(-rate * hours)) / rate)


@inlined
def _density_ratio(
    sim: KernelState,
    all_cycles: Cycles,
    wait_hours: float,
    hours: float,
    window: float,
    total_weight: float,
) -> float:
    """Density of a forced failure over its natural density."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    kind, before, rate = cycle.next_kind, cycle.rarest_kind, control.strikes_per_hour
    in_window = cycle.power_share if window > 0.0 else 0.0
    odds = (1.0 - in_window) * all_cycles.biased[before, kind] / -math.expm1(-rate * hours)
    if wait_hours < window:
        odds += in_window * all_cycles.biased_power[before, kind] / -math.expm1(-rate * window)
    odds /= all_cycles.natural[kind]
    if not _is_targeted(sim, kind, total_weight):
        return float(odds)
    weight, struck = 0.0, sim.strikes[kind]
    if struck.scope == _RACK:
        for i in range(sim.racks[cycle.next_target].start, sim.racks[cycle.next_target].end):
            if sim.members[i] < control.brokers:
                weight += all_cycles.target_weights[sim.members[i]]
    else:
        weight = all_cycles.target_weights[cycle.next_target]
    share = cycle.targeted
    return float(odds * (1.0 - share + share * weight / total_weight * struck.targets))


@inlined
def _note_failure(all_cycles: Cycles, forced: float) -> None:
    """Note a failure of this cycle, and the probability that it was forced, given what it is."""
    cycle = all_cycles.cycle[0]
    place, kind = cycle.later_failures, cycle.next_kind
    all_cycles.path[place] = kind
    all_cycles.path_before[place] = cycle.rarest_kind
    all_cycles.forced[place] = forced
    if all_cycles.natural[kind] < all_cycles.natural[cycle.rarest_kind]:
        cycle.rarest_kind = kind


@inlined
def _next_target(rng: Generator, sim: KernelState, all_cycles: Cycles, total_weight: float) -> int:
    """Draw the target of a forced failure."""
    kind, share = all_cycles.cycle[0].next_kind, all_cycles.cycle[0].targeted
    if not _is_targeted(sim, kind, total_weight) or rng.random() >= share:
        return int(any_target(rng, sim, kind))
    target = _draw(all_cycles.target_weights, rng.random() * total_weight)
    return int(sim.brokers[target].rack if sim.strikes[kind].scope == _RACK else target)


@inlined
def _is_targeted(sim: KernelState, kind: int, total_weight: float) -> bool:
    """Whether a failure has several targets, and their weights differ."""
    struck = sim.strikes[kind]
    several = struck.targets > 1 and not struck.of_quorum and struck.scope != _CLUSTER
    return bool(several and total_weight > 0.0)


@inlined
def _draw(weights: Weights, x: float) -> int:
    """The index at which the cumulative weights exceed a number."""
    last = 0
    for place in range(len(weights)):
        if weights[place] > 0.0:
            last = place
            if x < weights[place]:
                break
            x -= weights[place]
    return last


@called
def note_struck(sim: KernelState, all_cycles: Cycles, kind: int, target: int) -> None:
    """Remember the brokers that a failure strikes."""
    struck = sim.strikes[kind]
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
def _set_target_weights(table: Table, sim: KernelState, all_cycles: Cycles) -> float:
    """Set the weight of each broker as the target of the next failure; return their sum."""
    width, total = sim.slots.shape[1], 0.0
    all_cycles.target_weights[:] = 0.0
    for b in range(sim.control[0].brokers):
        if all_cycles.struck[b] == 0:
            continue
        for i in range(sim.brokers[b].start, sim.brokers[b].end):
            s, lacking = sim.served[i].set, 0
            for slot in range(width):
                lacking += _lacks(table, sim, s, slot)
            if lacking in (0, width):
                continue
            weight = float(1 << _EACH_LACKING * lacking)
            total += weight
            for slot in range(width):
                if not _lacks(table, sim, s, slot):
                    all_cycles.target_weights[sim.slots[s, slot]] += weight / (width - lacking)
    return total


@inlined
def _lacks(table: Table, sim: KernelState, s: int, slot: int) -> bool:
    """Whether a set lacks a replica: its broker is out, or has yet to copy its log."""
    absent = table.states[sim.sets[s].state].absent
    return bool(sim.brokers[sim.slots[s, slot]].condition != _WELL or absent >> slot & 1)
