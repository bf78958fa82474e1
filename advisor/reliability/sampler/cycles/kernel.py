"""Cycles with likelier failures, compiled.

Between two events of a cycle either nothing fails or one more failure comes first; with bias, one
is brought about (`next_failure_kernel`), at first each kind with the same probability (balanced
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
from advisor.reliability.sampler.compiled.jit import called, entry, inlined
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
from advisor.reliability.sampler.compiled.partition_kernel import account, all_known
from advisor.reliability.sampler.compiled.quorum_kernel import NOTHING, follow_quorum, take_deferred
from advisor.reliability.sampler.compiled.renewal_kernel import draw_around
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.cycles import memory, next_failure_kernel
from advisor.reliability.sampler.cycles.memory import (
    LOST_BEYOND,
    LOST_BY_SETTINGS,
    NO_WRITES,
    RECORDS,
    Cycles,
)
from advisor.reliability.sampler.cycles.next_failure_kernel import next_failure, note_struck

_YEAR = HOURS_PER_YEAR
_LONGEST_CYCLE = 10.0 * _YEAR
_TAKEN, _NONE = -1, -1
# Share of the biased failures, and ends of outages, whose chances are likelier.
_EAGER = 0.5


def _cycles(rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles) -> int:
    """Run all cycles that are left."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    while True:
        if control.pending == 0:
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
    if cycle.running == 1 and control.deferred == 0 and is_well(sim):
        _end(sim, all_cycles)
    if cycle.running == 0:
        if not _begin(rng, sim, all_cycles):
            return FINISHED
    elif not _next_event(rng, table, sim, all_cycles):
        return NEVER_RECOVERED
    if control.weighing != UNBIASED:
        _weigh(sim, all_cycles)
    control.pending = 1
    if control.struck_beyond == 1 and cycle.beyond == 0:
        _go_beyond(table, sim, all_cycles)
    control.struck_beyond = 0
    return _TAKEN


@called
def _begin(rng: Generator, sim: KernelState, all_cycles: Cycles) -> bool:
    """Let a failure strike the healthy cluster; False if no cycle is left."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    while cycle.course < len(all_cycles.left) and all_cycles.left[cycle.course] == 0:
        cycle.course += 1
    if cycle.course == len(all_cycles.left):
        return False
    all_cycles.left[cycle.course] -= 1
    control.now += 1.0 / control.strikes
    cycle.running, cycle.begun = 1, control.now
    control.weighing = PLAIN if rng.random() < cycle.mixed else BIASED
    control.ratio, cycle.base = 1.0, all_cycles.base[cycle.course]
    cycle.strikes, cycle.lost, cycle.beyond, cycle.rarest = 0, 0, 0, cycle.course
    all_cycles.struck[:] = 0
    _strike_target(rng, sim, all_cycles, cycle.course, any_target(rng, sim, cycle.course))
    return True


@called
def _strike_target(
    rng: Generator, sim: KernelState, all_cycles: Cycles, course: int, target: int
) -> None:
    """Let a course strike a broker, rack or cluster."""
    sim.control[0].afterwards = NOTHING
    note_struck(sim, all_cycles, course, target)
    _begin_chances(rng, sim)
    sim.control[0].started = _NONE
    strike(rng, sim, course, target)
    _end_chances(sim)
    lengthened = all_cycles.cycle[0].lengthened
    if lengthened > 0.0 and sim.control[0].weighing != UNBIASED and sim.control[0].started != _NONE:
        _lengthen(rng, sim, lengthened)
    follow_quorum(sim)


@called
def _lengthen(rng: Generator, sim: KernelState, share: float) -> None:
    """Draw a share of the outages that began just now so that they last longer.

    What overlaps with an outage comes the more often the longer it lasts. So they get a density
    that grows with their length, x f(x) / mean; of a mixture with f the weight is bounded.
    """
    control, clock = sim.control[0], sim.control[0].started
    own = sim.brokers[clock].own if clock < len(sim.brokers) else sim.clocks[clock].condition
    mean, shape = sim.outages[own].hours, sim.outages[own].shape
    if mean == 0.0:
        return
    if control.weighing == BIASED and rng.random() < share:
        hours = 0.0
        if shape == 0.0:
            hours = draw_around(rng, sim, sim.outages[own].law)
        else:
            hours = mean / shape * rng.standard_gamma(shape + 1.0)
        sim.clocks[clock].due = control.now + hours
    control.ratio /= 1.0 - share + share * (sim.clocks[clock].due - control.now) / mean


@inlined
def _begin_chances(rng: Generator, sim: KernelState) -> None:
    """Make the chances of what comes now likelier, or leave them: in half of the biased cycles."""
    control = sim.control[0]
    control.eager, control.odds = 0, 1.0
    if control.weighing == BIASED and rng.random() < _EAGER:
        control.eager = 1


@inlined
def _end_chances(sim: KernelState) -> None:
    """Note the odds of all chances that were drawn, whichever way they were drawn."""
    control = sim.control[0]
    control.ratio /= 1.0 - _EAGER + _EAGER * control.odds


@inlined
def _next_event(rng: Generator, table: Table, sim: KernelState, all_cycles: Cycles) -> bool:
    """Take the next event of a cycle; False if it lasts for ever."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    if control.deferred != 0:
        take_deferred(sim)
        return True
    if control.now - cycle.begun > _LONGEST_CYCLE:
        return False
    when, clock, memoryless = np.inf, -1, False
    for i in range(control.running):
        if sim.clocks[sim.running[i]].due < when:
            clock = sim.running[i]
            when = sim.clocks[clock].due
    if control.copying > 0 or control.undecided > 0:
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
    control.afterwards = NOTHING
    control.failover_hours = control.broker_failover_hours
    if failing >= 0.0:
        _strike_target(rng, sim, all_cycles, cycle.next_course, cycle.next_target)
        cycle.strikes += 1
        if cycle.strikes == len(all_cycles.path):
            _weigh(sim, all_cycles)
            control.weighing = UNBIASED
    elif memoryless:
        copy_or_decide(rng, table, sim)
    else:
        _begin_chances(rng, sim)
        repair(rng, sim, clock)
        _end_chances(sim)
        follow_quorum(sim)
    return True


@inlined
def _weigh(sim: KernelState, all_cycles: Cycles) -> None:
    """Weigh the cycle by its natural probability over that with which it was drawn."""
    cycle, ratio = all_cycles.cycle[0], sim.control[0].ratio
    cycle.weight = 0.0
    if ratio > 0.0:
        cycle.weight = cycle.base / (cycle.mixed + (1.0 - cycle.mixed) / ratio)


@called
def _go_beyond(table: Table, sim: KernelState, all_cycles: Cycles) -> None:
    """From here on, until all is healthy, nothing is decided by settings."""
    control = sim.control[0]
    if all_cycles.cycle[0].strikes > 0:
        for s in range(len(sim.sets)):
            account(table, sim, s)
        if control.counted != 0:
            _collect(sim, all_cycles)
    all_cycles.cycle[0].beyond = 1


@called
def _collect(sim: KernelState, all_cycles: Cycles) -> None:
    """Move what was counted to the totals, by the weight that the cycle has now."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    if control.counted & TOTALS_COUNTED:
        onto = all_cycles.totals[cycle.beyond]
        for row in range(sim.totals.shape[0]):
            for column in range(sim.totals.shape[1]):
                found = sim.totals[row, column]
                if found != 0.0:
                    onto[row, column] += cycle.weight * found
                    if row == UNWRITABLE and cycle.beyond == 0:
                        _score(all_cycles, NO_WRITES, cycle.weight * found)
                    elif row == RECORDS_LOST and cycle.beyond == 0:
                        _score(all_cycles, RECORDS, cycle.weight * found)
                    sim.totals[row, column] = 0.0
    if control.counted & OUTAGES_COUNTED:
        for place in range(len(sim.outages_by_length)):
            all_cycles.outages_by_length[place] += cycle.weight * sim.outages_by_length[place]
            sim.outages_by_length[place] = 0.0
    control.counted = 0


@inlined
def _score(all_cycles: Cycles, aim: int, amount: float) -> None:
    """Note that an aim of the bias was reached, and which failures came before."""
    all_cycles.values[aim] += amount
    for place in range(min(all_cycles.cycle[0].strikes, len(all_cycles.path))):
        before, course = all_cycles.path_before[place], all_cycles.path[place]
        all_cycles.scores[aim, before, course] += amount * all_cycles.brought_about[place]


@called
def _note_loss(sim: KernelState, all_cycles: Cycles) -> None:
    """Count the first moment of a cycle at which one or more partitions lose something."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    cycle.lost = 1
    weight, hours = cycle.weight, control.now - cycle.begun
    all_cycles.totals[cycle.beyond, FIRST_LOSSES, control.cause] += weight
    # Of the cycles that begin within a year, those in its last hours lose after its end.
    cycle.due += weight * max(1.0 - hours / _YEAR, 0.0)
    cycle.at_risk += weight * hours
    cycle.lost_cycles += 1
    cycle.weights += weight
    cycle.squares += weight * weight
    cycle.largest = max(cycle.largest, weight)
    aim = LOST_BEYOND if cycle.beyond == 1 else LOST_BY_SETTINGS
    _score(all_cycles, aim, weight)
    # What the bias was for has happened.
    control.weighing = UNBIASED


@called
def _end(sim: KernelState, all_cycles: Cycles) -> None:
    """End a cycle: everything is healthy again."""
    control, cycle = sim.control[0], all_cycles.cycle[0]
    hours = control.now - cycle.begun
    cycle.hours += cycle.weight * hours
    if cycle.strikes > 0:
        cycle.overlaps += cycle.weight
    if cycle.lost == 0:
        cycle.at_risk += cycle.weight * hours
    else:
        # The next cycle is long after this one: logs are as long as their retention again.
        for s in range(len(sim.sets)):
            sim.sets[s].base = control.retained
        if control.grouped == 1:
            join_all(sim)
    for aim in range(len(all_cycles.values)):
        value = all_cycles.values[aim]
        if value != 0.0:
            all_cycles.means[aim] += value
            value /= cycle.base
            all_cycles.seconds[aim, cycle.course] += value * value
            all_cycles.values[aim] = 0.0
    cycle.running = 0
    cycle.done += 1


run = entry(_cycles, (*kernel.COMPILED, kernel, memory, next_failure_kernel))
"""Run the cycles that are left. Returns as the ``run`` of the compiled years does."""
