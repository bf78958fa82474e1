"""Cycles with likelier failures, compiled.

Between two events of a cycle either nothing fails or one more failure comes first; with bias, it
may be forced (`next_failure_kernel`), at first each kind with the same probability (balanced
failure biasing, Shahabuddin, Management Science 40(3), 1994). A share of the cycles is drawn
without bias, and every cycle is weighed by its natural probability over that of the mixture (the
balance heuristic of Veach and Guibas, SIGGRAPH 1995), so that no weight exceeds that of its first
failure over the share.

What happens in a cycle counts with the weight that the cycle has then.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.sampler.compiled import kernel
from advisor.reliability.sampler.compiled.copy_kernel import (
    copies_per_hour,
    copy_or_decide,
    decisions_per_hour,
)
from advisor.reliability.sampler.compiled.fault_kernel import any_target, repair, strike, wait
from advisor.reliability.sampler.compiled.group_kernel import join_all
from advisor.reliability.sampler.compiled.kernel import apply_to_all, is_well
from advisor.reliability.sampler.compiled.memory_layout import (
    BIASED,
    FINISHED,
    FIRST_LOSSES,
    MISSING,
    NEVER_RECOVERED,
    OUTAGES_COUNTED,
    PLAIN,
    RECORDS_LOST,
    TOTALS_COUNTED,
    UNBIASED,
    UNWRITABLE,
    KernelState,
)
from advisor.reliability.sampler.compiled.partition_kernel import all_known
from advisor.reliability.sampler.compiled.quorum_kernel import NOTHING, follow_quorum, take_deferred
from advisor.reliability.sampler.compiled.renewal_kernel import draw_length_biased
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.cycles import memory, next_failure_kernel
from advisor.reliability.sampler.cycles.memory import (
    LARGEST,
    LOST,
    NO_WRITES,
    NUMBER,
    RECORDS,
    SQUARES,
    WEIGHTS,
    Cycles,
)
from advisor.reliability.sampler.cycles.next_failure_kernel import next_failure, note_struck
from advisor.reliability.solver.jit import called, entry, inlined

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
        if not all_known(table, sim):
            return MISSING
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
            return FINISHED
    elif not _next_event(rng, table, sim, all_cycles):
        return NEVER_RECOVERED
    if control.bias_mode != UNBIASED:
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
    control.bias_mode = PLAIN if rng.random() < cycle.plain_share else BIASED
    control.likelihood_ratio, cycle.base_weight = 1.0, all_cycles.base[cycle.first_kind]
    kind = cycle.first_kind
    cycle.later_failures, cycle.lost = 0, 0
    cycle.rarest_kind = kind
    all_cycles.struck[:] = 0
    _strike_target(rng, sim, all_cycles, kind, any_target(rng, sim, kind))
    return True


@called
def _strike_target(
    rng: Generator, sim: KernelState, all_cycles: Cycles, kind: int, target: int
) -> None:
    """Let a kind strike a broker, rack or cluster."""
    sim.control[0].second_event = NOTHING
    note_struck(sim, all_cycles, kind, target)
    _choose_chances(rng, sim)
    sim.control[0].started_clock = _NONE
    strike(rng, sim, kind, target)
    _weigh_chances(sim)
    if sim.control[0].bias_mode != UNBIASED and sim.control[0].started_clock != _NONE:
        _bias_length(rng, sim, all_cycles.cycle[0].length_biased)
    follow_quorum(sim)


@called
def _bias_length(rng: Generator, sim: KernelState, share: float) -> None:
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
    if control.bias_mode == BIASED and rng.random() < share:
        hours = 0.0
        if shape == 0.0:
            hours = draw_length_biased(rng, sim, sim.outages[condition].distribution)
        else:
            hours = mean / shape * rng.standard_gamma(shape + 1.0)
        sim.clocks[clock].due = control.now + hours
    longer = (sim.clocks[clock].due - control.now) / mean
    control.likelihood_ratio /= 1.0 - share + share * longer


@inlined
def _choose_chances(rng: Generator, sim: KernelState) -> None:
    """Choose which chances of what comes now are biased: each kind in half of all cases.

    Most losses need one of two kinds: an outage that spreads to other racks, and brokers that fare
    worse than the rest.
    """
    control = sim.control[0]
    control.biased_spread = control.biased_chances = 0
    control.spread_odds = control.chance_odds = 1.0
    if control.bias_mode == BIASED:
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
        take_deferred(sim)
        return True
    if control.now - cycle.begun_at > _LONGEST_CYCLE:
        return False
    when, clock, memoryless = np.inf, -1, False
    for i in range(control.running_count):
        if sim.clocks[sim.running[i]].due < when:
            clock = sim.running[i]
            when = sim.clocks[clock].due
    if control.running_copies > 0 or control.undecided_count > 0:
        done = control.now + wait(rng, copies_per_hour(sim) + decisions_per_hour(sim))
        if done < when:
            when, memoryless = done, True
    failing = next_failure(rng, table, sim, all_cycles, when - control.now)
    if failing < 0.0:
        control.now = when
    elif failing < np.inf:
        control.now += failing
    else:
        return False
    control.second_event = NOTHING
    control.failover_hours = control.broker_failover_hours
    if failing >= 0.0:
        _strike_target(rng, sim, all_cycles, cycle.next_kind, cycle.next_target)
        cycle.later_failures += 1
        if cycle.later_failures == len(all_cycles.path):
            _weigh(sim, all_cycles)
            control.bias_mode = UNBIASED
    elif memoryless:
        copy_or_decide(rng, table, sim)
    else:
        _choose_chances(rng, sim)
        repair(rng, sim, clock)
        _weigh_chances(sim)
        follow_quorum(sim)
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
    if control.counted & TOTALS_COUNTED:
        for row in range(sim.totals.shape[0]):
            for column in range(sim.totals.shape[1]):
                amount = sim.totals[row, column]
                if amount != 0.0:
                    all_cycles.totals[row, column] += cycle.weight * amount
                    if row == UNWRITABLE:
                        _score(all_cycles, NO_WRITES, cycle.weight * amount)
                    elif row == RECORDS_LOST:
                        _score(all_cycles, RECORDS, cycle.weight * amount)
                    sim.totals[row, column] = 0.0
    if control.counted & OUTAGES_COUNTED:
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
    all_cycles.totals[FIRST_LOSSES, control.cause] += weight
    cycle.to_loss += weight * hours
    cycle.at_risk += weight * hours
    cycle.at_risk_squared += weight * hours * hours
    losses = all_cycles.first_losses[cycle.first_kind]
    losses[NUMBER] += 1.0
    losses[WEIGHTS] += weight
    losses[SQUARES] += weight * weight
    losses[LARGEST] = max(losses[LARGEST], weight)
    _score(all_cycles, LOST, weight)
    # A loss is what the bias is for; after it the cycle goes on at natural rates.
    control.bias_mode = UNBIASED


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


run = entry(_cycles, (*kernel.COMPILED, kernel, memory, next_failure_kernel))
"""Run the cycles that are left. Returns as the ``run`` of the compiled years does."""
