"""Cycles with likelier failures, compiled.

Until the next outage ends, a failure is forced with some probability (Lewis and Boehm, Nucl. Eng.
Des. 77, 1984); otherwise failures come at their natural rates. So frequent failures that do not
lead to losses keep their natural rate, and no such step multiplies the weight by more than
1 / (1 - that probability). Forced failures are drawn from those that preceded losses in the pilot
run, at first each kind with the same probability (balanced failure biasing, Shahabuddin, Management
Science 40(3), 1994). Most of them target brokers that share a replica set with brokers that failed
before, above all those of sets with few replicas left.

A share of the cycles is drawn without bias, and every cycle is weighed by its natural probability
over that of the mixture (the balance heuristic of Veach and Guibas, SIGGRAPH 1995), so that no
weight exceeds that of its first failure over the share. What happens in a cycle counts with the
weight that the cycle has then.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import WELL, Scope
from advisor.reliability.sampler.compiled import fault_kernel as faults
from advisor.reliability.sampler.compiled import kernel
from advisor.reliability.sampler.compiled import memory_layout as layout
from advisor.reliability.sampler.compiled import partition_kernel as partitions
from advisor.reliability.sampler.compiled.group_kernel import join_all
from advisor.reliability.sampler.compiled.kernel import apply_to_all, is_well
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.cycles import memory
from advisor.reliability.sampler.cycles.memory import Cycles
from advisor.reliability.solver.jit import called, entry, inlined

Weights = NDArray[np.float64]

_RACK, _CLUSTER = layout.SCOPES.index(Scope.RACK), layout.SCOPES.index(Scope.CLUSTER)
# Each replica that a set lacks multiplies the weight of the others by this power of two.
_EACH_LACKING = 3
# Probability that a failure is forced before the outages end, and the part of it that goes by the
# number of outages, not by the time that is left.
_FORCING, _BY_NUMBER = 0.75, 0.5
# Shares of the forced failures that are targeted, and that are power failures in the flush window;
# and of the outages whose duration is length-biased.
_TARGETED, _POWER_SHARE, _LENGTH_BIASED = 0.7, 0.3, 0.5


@called
def next_failure(
    rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles, hours: float
) -> float:
    """Hours until the next failure, whose kind and target are set; -1 if none comes so soon."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    # No failure can come between outages that end at the same moment.
    biased = control.bias_mode != layout.UNBIASED and 0.0 < hours < np.inf
    share = _forcing_share(sim, hours) if biased else 0.0
    window, total_weight = 0.0, 0.0
    if biased and cycle.has_power_failures == 1:
        window = max(min(hours, control.all_flushed_at - control.now), 0.0)
    if biased and control.bias_mode == layout.BIASED and rng.random() < share:
        total_weight = _set_target_weights(table, sim, all_cycles)
        if window > 0.0 and rng.random() < _POWER_SHARE:
            wait_hours = _draw_within(rng, sim, window)
            cycle.next_kind = _draw(all_cycles.biased_power[cycle.rarest_kind], rng.random())
        else:
            wait_hours = _draw_within(rng, sim, hours)
            cycle.next_kind = _draw(all_cycles.biased[cycle.rarest_kind], rng.random())
        cycle.next_target = _next_target(rng, sim, all_cycles, total_weight)
    else:
        wait_hours = faults.wait(rng, control.strikes_per_hour)
        if wait_hours >= hours:
            if biased:
                control.likelihood_ratio /= 1.0 - share
            return -1.0
        if biased:
            total_weight = _set_target_weights(table, sim, all_cycles)
        cycle.next_kind = _draw(all_cycles.natural, rng.random())
        cycle.next_target = faults.any_target(rng, sim, cycle.next_kind)
    if biased:
        odds = _density_ratio(sim, all_cycles, wait_hours, hours, window, total_weight)
        control.likelihood_ratio /= 1.0 - share + share * odds
        _note_failure(all_cycles, share * odds / (1.0 - share + share * odds))
    return float(wait_hours)


@inlined
def _forcing_share(sim: KernelState, hours: float) -> float:
    """Probability that a failure is forced within these hours, until an outage or copy ends.

    Over all outages and copies that have yet to end it is about `_FORCING`: a part of it in
    proportion to their number, for a short one may be all that a loss needs, and the rest in
    proportion to the time that is left.
    """
    control = sim.control[0]
    ends, longest = control.running_count, hours
    for i in range(control.running_count):
        longest = max(longest, sim.clocks[sim.running[i]].due - control.now)
    if control.running_copies > 0:
        ends += control.running_copies
        longest = max(longest, 1.0 / control.copies_per_hour)
    if control.undecided_count > 0:
        ends += control.undecided_count
        longest = max(longest, 1.0 / control.decisions_per_hour)
    by_time = 1.0 - _BY_NUMBER
    exponent = _BY_NUMBER / max(ends, 1) + (by_time * hours / longest if longest > 0.0 else by_time)
    return float(-math.expm1(math.log1p(-_FORCING) * exponent))


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
    in_window = _POWER_SHARE if window > 0.0 else 0.0
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
    by_weight = _TARGETED * weight / total_weight * struck.targets
    return float(odds * (1.0 - _TARGETED + by_weight))


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
    kind = all_cycles.cycle[0].next_kind
    if not _is_targeted(sim, kind, total_weight) or rng.random() >= _TARGETED:
        return int(faults.any_target(rng, sim, kind))
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
    return bool(sim.brokers[sim.slots[s, slot]].condition != WELL or absent >> slot & 1)


_LONGEST_CYCLE = 10.0 * HOURS_PER_YEAR
_TAKEN, _NONE = -1, -1
# In biased cycles: share of the failures and ends of outages whose chances are biased.
_BIASED_CHANCES = 0.5


def _cycles(rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles) -> int:
    """Run all cycles that are left."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    while True:
        if control.event_pending == 0:
            code = _take_next(rng, table, sim, all_cycles)
            if code != _TAKEN:
                return code
        if not partitions.all_known(table, sim):
            return layout.MISSING
        apply_to_all(rng, table, sim)
        if control.counted != 0:
            _collect(sim, all_cycles)
        if control.new_losses > 0:
            control.loss_moments += 1
            if cycle.lost == 0:
                _note_loss(sim, all_cycles)


@inlined
def _take_next(rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles) -> int:
    """Take the next event of this cycle, or the first one of the next."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    if cycle.running == 1 and control.deferred_step == 0 and is_well(sim):
        _end(sim, all_cycles)
    if cycle.running == 0:
        if not _begin(rng, sim, all_cycles):
            return layout.FINISHED
    elif not _next_event(rng, table, sim, all_cycles):
        return layout.NEVER_RECOVERED
    if control.bias_mode != layout.UNBIASED:
        _weigh(sim, all_cycles)
    control.event_pending = 1
    return _TAKEN


@called
def _begin(rng: Generator, sim: KernelState, all_cycles: Cycles) -> bool:
    """Let a failure strike the healthy cluster; False if no cycle is left."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    while cycle.first_kind < len(all_cycles.left) and all_cycles.left[cycle.first_kind] == 0:
        cycle.first_kind += 1
    if cycle.first_kind == len(all_cycles.left):
        return False
    all_cycles.left[cycle.first_kind] -= 1
    control.now += 1.0 / control.strikes_per_hour
    cycle.running, cycle.begun_at = 1, control.now
    control.bias_mode = layout.PLAIN if rng.random() < cycle.plain_share else layout.BIASED
    control.likelihood_ratio, cycle.base_weight = 1.0, all_cycles.base[cycle.first_kind]
    kind = cycle.first_kind
    cycle.later_failures, cycle.lost = 0, 0
    cycle.rarest_kind = kind
    all_cycles.struck[:] = 0
    _strike_target(rng, sim, all_cycles, kind, faults.any_target(rng, sim, kind))
    return True


@called
def _strike_target(
    rng: Generator, sim: KernelState, all_cycles: Cycles, kind: int, target: int
) -> None:
    """Let a kind strike a broker, rack or cluster."""
    sim.control[0].second_event = partitions.NOTHING
    note_struck(sim, all_cycles, kind, target)
    _choose_chances(rng, sim)
    sim.control[0].started_clock = _NONE
    faults.strike(rng, sim, kind, target)
    _weigh_chances(sim)
    if sim.control[0].bias_mode != layout.UNBIASED and sim.control[0].started_clock != _NONE:
        _bias_length(rng, sim)
    partitions.follow_quorum(sim)


@called
def _bias_length(rng: Generator, sim: KernelState) -> None:
    """Draw the duration of the outage that began last from a mixture with a length-biased density.

    The longer an outage, the more often another failure overlaps with it. The length-biased density
    is x f(x) / mean; with a mixture of it and f the weight is bounded.
    """
    control, clock = sim.control[0], sim.control[0].started_clock
    condition = (
        sim.brokers[clock].condition if clock < len(sim.brokers) else sim.clocks[clock].condition
    )
    mean, shape = sim.outages[condition].hours, sim.outages[condition].shape
    if mean == 0.0:
        return
    if control.bias_mode == layout.BIASED and rng.random() < _LENGTH_BIASED:
        hours = 0.0
        if shape == 0.0:
            hours = faults.draw_length_biased(rng, sim, sim.outages[condition].distribution)
        else:
            hours = mean / shape * rng.standard_gamma(shape + 1.0)
        sim.clocks[clock].due = control.now + hours
    longer = (sim.clocks[clock].due - control.now) / mean
    control.likelihood_ratio /= 1.0 - _LENGTH_BIASED + _LENGTH_BIASED * longer


@inlined
def _choose_chances(rng: Generator, sim: KernelState) -> None:
    """Choose which chances of what comes now are biased: each kind in half of all cases.

    Most losses need one of two kinds: an outage that spreads to other racks, and brokers that fare
    worse than the rest.
    """
    control = sim.control[0]
    control.biased_spread = control.biased_chances = 0
    control.spread_odds = control.chance_odds = 1.0
    if control.bias_mode == layout.BIASED:
        control.biased_spread = int(rng.random() < _BIASED_CHANCES)
        control.biased_chances = int(rng.random() < _BIASED_CHANCES)


@inlined
def _weigh_chances(sim: KernelState) -> None:
    """Weigh what was drawn by chance, each kind by its mixture of biased and natural chances."""
    control = sim.control[0]
    control.likelihood_ratio /= 1.0 - _BIASED_CHANCES + _BIASED_CHANCES * control.spread_odds
    control.likelihood_ratio /= 1.0 - _BIASED_CHANCES + _BIASED_CHANCES * control.chance_odds


@inlined
def _next_event(rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles) -> bool:
    """Take the next event of a cycle; False if it lasts for ever."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    if control.deferred_step != 0:
        partitions.take_deferred(sim)
        return True
    if control.now - cycle.begun_at > _LONGEST_CYCLE:
        return False
    event_time, clock = np.inf, -1
    for i in range(control.running_count):
        if sim.clocks[sim.running[i]].due < event_time:
            clock = sim.running[i]
            event_time = sim.clocks[clock].due
    end_time = faults.memoryless_end(rng, sim)
    memoryless = end_time < event_time
    event_time = min(event_time, end_time)
    failing = next_failure(rng, table, sim, all_cycles, event_time - control.now)
    if failing < 0.0:
        control.now = event_time
    elif failing < np.inf:
        control.now += failing
    else:
        return False
    control.second_event = partitions.NOTHING
    control.failover_hours = control.broker_failover_hours
    if failing >= 0.0:
        _strike_target(rng, sim, all_cycles, cycle.next_kind, cycle.next_target)
        cycle.later_failures += 1
        if cycle.later_failures == len(all_cycles.path):
            _weigh(sim, all_cycles)
            control.bias_mode = layout.UNBIASED
    elif memoryless:
        partitions.copy_or_decide(rng, table, sim)
    else:
        _choose_chances(rng, sim)
        faults.repair(rng, sim, clock)
        _weigh_chances(sim)
        partitions.follow_quorum(sim)
    return True


@inlined
def _weigh(sim: KernelState, all_cycles: Cycles) -> None:
    """Weigh the cycle by its natural probability over that with which it was drawn."""
    cycle, ratio = all_cycles.cycle[0], sim.control[0].likelihood_ratio
    cycle.weight = 0.0
    if ratio > 0.0:
        cycle.weight = cycle.base_weight / (cycle.plain_share + (1.0 - cycle.plain_share) / ratio)


@called
def _collect(sim: KernelState, all_cycles: Cycles) -> None:
    """Move what was counted to the totals, by the weight that the cycle has now."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    if control.counted & layout.TOTALS_COUNTED:
        for row in range(sim.totals.shape[0]):
            for column in range(sim.totals.shape[1]):
                amount = sim.totals[row, column]
                if amount != 0.0:
                    all_cycles.totals[row, column] += cycle.weight * amount
                    if row == layout.UNWRITABLE:
                        _score(all_cycles, memory.NO_WRITES, cycle.weight * amount)
                    elif row == layout.RECORDS_LOST:
                        _score(all_cycles, memory.RECORDS, cycle.weight * amount)
                    sim.totals[row, column] = 0.0
    if control.counted & layout.OUTAGES_COUNTED:
        for place in range(len(sim.outages_by_length)):
            all_cycles.outages_by_length[place] += cycle.weight * sim.outages_by_length[place]
            sim.outages_by_length[place] = 0.0
    control.counted = 0


@inlined
def _score(all_cycles: Cycles, objective: int, amount: float) -> None:
    """Note that an objective of the bias was reached, and which failures came before."""
    all_cycles.values[objective] += amount
    for place in range(min(all_cycles.cycle[0].later_failures, len(all_cycles.path))):
        before, kind = all_cycles.path_before[place], all_cycles.path[place]
        all_cycles.scores[objective, before, kind] += amount * all_cycles.forced[place]


@called
def _note_loss(sim: KernelState, all_cycles: Cycles) -> None:
    """Count the first moment of a cycle at which one or more partitions lose something."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    cycle.lost = 1
    weight, hours = cycle.weight, control.now - cycle.begun_at
    all_cycles.totals[layout.FIRST_LOSSES, control.cause] += weight
    cycle.to_loss += weight * hours
    cycle.at_risk += weight * hours
    cycle.at_risk_squared += weight * hours * hours
    losses = all_cycles.first_losses[cycle.first_kind]
    losses[memory.NUMBER] += 1.0
    losses[memory.WEIGHTS] += weight
    losses[memory.SQUARES] += weight * weight
    losses[memory.LARGEST] = max(losses[memory.LARGEST], weight)
    _score(all_cycles, memory.LOST, weight)
    # A loss is what the bias is for; after it the cycle goes on at natural rates.
    control.bias_mode = layout.UNBIASED


@called
def _end(sim: KernelState, all_cycles: Cycles) -> None:
    """End a cycle: everything is healthy again."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    hours = control.now - cycle.begun_at
    cycle.hours += cycle.weight * hours
    if cycle.later_failures > 0:
        cycle.overlaps += cycle.weight
    if cycle.lost == 0:
        cycle.at_risk += cycle.weight * hours
        cycle.at_risk_squared += cycle.weight * hours * hours
    else:
        # The next cycle is long after this one: logs are as long as their retention again.
        for s in range(len(sim.sets)):
            sim.sets[s].base_records = control.retained_records
        if control.grouped == 1:
            join_all(sim)
    for objective in range(len(all_cycles.values)):
        value = all_cycles.values[objective]
        if value != 0.0:
            all_cycles.means[objective] += value
            value /= cycle.base_weight
            all_cycles.second_moments[objective, cycle.first_kind] += value * value
            all_cycles.values[objective] = 0.0
    cycle.running = 0
    cycle.done += 1


run = entry(_cycles, (*kernel.COMPILED, kernel, memory))
"""Run the cycles that are left. Returns as the ``run`` of the compiled years does."""
