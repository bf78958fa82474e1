"""The compiled event loop: failures and repairs of brokers, and transitions of partition_kernel.

`run` returns MISSING when the transition table lacks an entry, and continues from the same point
when it is called again with the entry filled in.

The calendar of rolling restarts strikes at fixed times of the simulated clock, between two events.
A rolling restart that is sampled alone begins with a healthy cluster, or, if it does not wait,
``span_hours`` later. For ``accelerated_hours`` from then the first failure has its rate multiplied
by ``acceleration``. What is counted is weighted with the likelihood ratio of the path, so that the
means are unbiased: with failures at rate L, none of which came within t of these hours, it is
exp((acceleration - 1) L t); with the first after t of them it is that divided by ``acceleration``.
No weight is large, however long a rolling restart takes.
"""

from __future__ import annotations

import math
from types import ModuleType

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures import mechanism, mechanisms
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.failures.times import time_distribution
from advisor.reliability.partition import effects, log_levels, reduced_state
from advisor.reliability.sampler.compiled import (
    fault_kernel,
    group_kernel,
    isolated_kernel,
    partition_kernel,
    transition_tables,
)
from advisor.reliability.sampler.compiled import memory_layout as layout
from advisor.reliability.sampler.compiled.fault_kernel import next_event, set_condition
from advisor.reliability.sampler.compiled.group_kernel import mark_broker, mark_sets, settle
from advisor.reliability.sampler.compiled.isolated_kernel import add_isolated, go_on_with_replay
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.solver import jit
from advisor.reliability.solver.jit import called, entry, inlined

# Of `control.roll_state`: no rolling restart; one that acts when it is due; one that waits until
# every broker is up and every replica in sync.
IDLE, GOING, WAITING = 0, 1, 2


@called
def take_turn(rng: Generator, sim: KernelState, well: bool) -> None:
    """The calendar is due: begin a rolling restart, or go on with the one that is under way."""
    control = sim.control[0]
    control.cause, control.event = control.roll_cause, control.roll_event
    control.second_event = partition_kernel.NOTHING
    control.failover_hours = control.broker_failover_hours
    if control.roll_state == IDLE:
        control.roll_state, control.roll_next = GOING, 0
    if control.roll_next >= control.brokers:
        _end(sim)
    elif control.roll_waits == 1 and not well:
        control.roll_state, control.roll_due = WAITING, np.inf
    else:
        _stop_next(rng, sim)


@called
def _stop_next(rng: Generator, sim: KernelState) -> None:
    """Stop the next brokers; one that is out already is passed over."""
    control = sim.control[0]
    place = control.roll_next
    batch = sim.brokers[place].batch
    while place < control.brokers and sim.brokers[place].batch == batch:
        b = sim.brokers[place].rolling
        place += 1
        if sim.brokers[b].condition != WELL:
            continue
        if control.roll_unclean > 0.0 and rng.random() < control.roll_unclean:
            control.second_event = control.roll_unclean_event
            set_condition(rng, sim, b, control.roll_unclean_condition, False)
            mark_broker(sim, b, True)
        else:
            set_condition(rng, sim, b, control.roll_condition, True)
    mark_sets(sim)
    control.roll_next = place
    if control.roll_waits == 1:
        control.roll_state, control.roll_due = WAITING, np.inf
    else:
        control.roll_state = GOING
        control.roll_due = control.now + control.roll_up_hours + control.roll_pause_hours


@called
def go_on(sim: KernelState) -> None:
    """All that a rolling restart waited for is well: the next brokers follow after the pause."""
    control = sim.control[0]
    if control.roll_next >= control.brokers:
        _end(sim)
    else:
        control.roll_state, control.roll_due = GOING, control.now + control.roll_pause_hours


@called
def _end(sim: KernelState) -> None:
    """The rolling restart is over; dates that passed meanwhile are left out."""
    control = sim.control[0]
    control.roll_state = IDLE
    while control.roll_date <= control.now:
        control.roll_date += control.roll_period_hours
    control.roll_due = control.roll_date


# Measures that start from a healthy cluster mean little if it is healthy less often.
_LONGEST_WAIT = 10.0 * HOURS_PER_YEAR


@inlined
def _live(rng: Generator, table: Table, sim: KernelState, until: float, well: bool) -> int:
    """Advance to an hour, or with ``well`` until everything is healthy and nothing restarts."""
    control = sim.control[0]
    while not (well and control.event_pending == 0 and is_well(sim) and control.roll_state == IDLE):
        if control.event_pending == 0:
            # What the calendar does happens between two events.
            if not next_event(rng, table, sim, min(until, control.roll_due)):
                if control.roll_due >= until:
                    return layout.FINISHED
                take_turn(rng, sim, is_well(sim))
            control.event_pending = 1
        if not partition_kernel.all_known(table, sim):
            return layout.MISSING
        apply_to_all(rng, table, sim)
        if control.replaying > 0:
            go_on_with_replay(table, sim)
        if control.new_losses > 0:
            _count_moment(sim)
        if control.lost_since_healthy == 1 and is_well(sim):
            control.lost_since_healthy = 0
            control.at_risk_since = control.now
        if control.roll_state == WAITING and is_well(sim):
            go_on(sim)
    return layout.RECOVERED


@inlined
def apply_to_all(rng: Generator, table: Table, sim: KernelState) -> None:
    """Apply the event to all that it strikes."""
    control = sim.control[0]
    control.event_pending = 0
    control.new_losses = 0
    for i in range(control.touched_count):
        partition_kernel.apply_event(rng, table, sim, sim.touched[i])
    if control.grouped == 1:
        settle(sim)
    control.touched_count = 0
    control.events += 1


@inlined
def is_well(sim: KernelState) -> bool:
    """Whether every broker and replica is healthy."""
    return bool(sim.control[0].brokers_in_outage == 0 and sim.control[0].sets_not_healthy == 0)


@called
def _count_moment(sim: KernelState) -> None:
    """Count a moment at which one or more partitions lost something."""
    control = sim.control[0]
    control.loss_moments += 1
    control.lost_this_year = 1
    if control.lost_since_healthy == 0:
        control.at_risk_hours += control.now - control.at_risk_since
        control.first_losses += 1
        sim.totals[layout.FIRST_LOSSES, control.cause] += 1.0
        control.lost_since_healthy = 1


@called
def _begin_alone(rng: Generator, table: Table, sim: KernelState) -> None:
    """Begin a rolling restart that is sampled by itself, and count from here."""
    control = sim.control[0]
    partition_kernel.account_for_all(table, sim)
    for row in range(sim.totals.shape[0]):
        for column in range(sim.totals.shape[1]):
            sim.totals[row, column] = 0.0
    control.roll_begun, control.roll_due = control.now, control.now
    control.roll_state, control.roll_next = GOING, 0
    control.hour_at_time_0 = control.roll_hour - control.now
    if control.acceleration > 1.0 and control.strikes_per_hour > 0.0:
        # In units of the mean time between failures; at first the rate is accelerated.
        wait = rng.standard_exponential()
        soon = control.strikes_per_hour * control.accelerated_hours
        if wait < control.acceleration * soon:
            wait /= control.acceleration
        else:
            wait -= (control.acceleration - 1.0) * soon
        control.next_strike = control.now + wait / control.strikes_per_hour
    control.first_strike = control.next_strike


@called
def _end_alone(table: Table, sim: KernelState) -> None:
    """Add what was counted of a rolling restart, weighted, to the sums."""
    control = sim.control[0]
    partition_kernel.account_for_all(table, sim)
    struck = control.now >= control.first_strike
    hours = min(control.now, control.first_strike) - control.roll_begun
    weight = 1.0
    if control.acceleration > 1.0:
        soon = min(hours, control.accelerated_hours)
        weight = math.exp((control.acceleration - 1.0) * control.strikes_per_hour * soon)
        if struck and hours < control.accelerated_hours:
            weight /= control.acceleration
    unwritable, refused, lost = 0.0, 0.0, 0.0
    for cause in range(sim.totals.shape[1]):
        unwritable += sim.totals[layout.UNWRITABLE, cause]
        refused += sim.totals[layout.REFUSED, cause]
        lost += sim.totals[layout.FIRST_LOSSES, cause]
    control.sum_weight += weight
    control.largest_weight = max(control.largest_weight, weight)
    if struck:
        control.largest_struck_weight = max(control.largest_struck_weight, weight)
    control.sum_hours += weight * (control.now - control.roll_begun)
    control.sum_unwritable += weight * unwritable
    control.sum_refused += weight * refused
    control.sum_lost += weight if lost > 0.0 else 0.0
    # The next failure comes at its own rate again.
    control.next_strike = -1.0


def _years(rng: Generator, table: Table, sim: KernelState) -> int:
    """Advance through years that begin healthy, and the time between them."""
    control = sim.control[0]
    while control.years_left > 0:
        if control.phase == 0:
            control.year_end = control.now + control.span_hours
            control.lost_this_year = 0
            control.phase = 1
        resting = control.phase == 2
        until = control.year_end + _LONGEST_WAIT if resting else control.year_end
        code = _live(rng, table, sim, until, resting)
        if code == layout.MISSING:
            return layout.MISSING
        if not resting:
            control.lost_years += control.lost_this_year
            control.phase = 2
            if control.roll_alone == 1:
                _begin_alone(rng, table, sim)
        elif code == layout.FINISHED:
            return layout.NEVER_RECOVERED
        else:
            if control.roll_alone == 1:
                _end_alone(table, sim)
            control.phase = 0
            control.years_left -= 1
    partition_kernel.account_for_all(table, sim)
    add_isolated(sim)
    if control.lost_since_healthy == 0:
        control.at_risk_hours += control.now - control.at_risk_since
    return layout.FINISHED


COMPILED: tuple[ModuleType, ...] = (
    effects,
    fault_kernel,
    group_kernel,
    isolated_kernel,
    jit,
    log_levels,
    mechanism,
    mechanisms,
    layout,
    partition_kernel,
    reduced_state,
    time_distribution,
    transition_tables,
)
"""Modules that are compiled into the kernel, this one aside."""


run = entry(_years, COMPILED)
"""Advance through the years that ``sim.control`` sets. Returns FINISHED; MISSING, with the missing
entry of the table in ``sim.control``; or NEVER_RECOVERED: ten years without a healthy moment."""
