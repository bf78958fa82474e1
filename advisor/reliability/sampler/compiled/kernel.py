"""The compiled event loop: failures and repairs of brokers, and transitions of partitions.

`run` returns MISSING when the transition table lacks an entry, and continues from the same point
when it is called again with the entry filled in.

A rolling restart that is sampled alone begins with a healthy cluster, or, if it does not wait,
``span_hours`` later. The first failure comes ``hurry`` times as fast for ``hurry_hours`` from then.
What is counted has the likelihood ratio of the path as its weight, so that means stay what they
are: with failures at rate L, none of which came within t of these hours, it is
exp((hurry - 1) L t); with the first after t of them it is that divided by ``hurry``. No weight is
large, however long a rolling restart takes.
"""

from __future__ import annotations

import math
from types import ModuleType

from numpy.random import Generator

from advisor.reliability.failures import mechanism, mechanisms
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.times import time_distribution
from advisor.reliability.partition import effects, log_levels, reduced_state
from advisor.reliability.sampler.compiled import (
    calendar_kernel,
    copy_kernel,
    fault_kernel,
    group_kernel,
    jit,
    memory_layout,
    partition_kernel,
    quorum_kernel,
    renewal_kernel,
    traffic_kernel,
    transition_tables,
)
from advisor.reliability.sampler.compiled.calendar_kernel import (
    GOING,
    IDLE,
    WAITING,
    go_on,
    take_turn,
)
from advisor.reliability.sampler.compiled.fault_kernel import next_event
from advisor.reliability.sampler.compiled.group_kernel import settle
from advisor.reliability.sampler.compiled.jit import called, entry, inlined
from advisor.reliability.sampler.compiled.memory_layout import (
    FINISHED,
    FIRST_LOSSES,
    MISSING,
    NEVER_RECOVERED,
    RECOVERED,
    REFUSED,
    UNWRITABLE,
    KernelState,
)
from advisor.reliability.sampler.compiled.partition_kernel import account, all_known, apply_event
from advisor.reliability.sampler.compiled.transition_tables import Table

# Measures that start from a healthy cluster mean little if it is healthy less often.
_LONGEST_WAIT = 10.0 * HOURS_PER_YEAR


@inlined
def _live(rng: Generator, table: Table, sim: KernelState, until: float, well: bool) -> int:
    """Advance to an hour, or with ``well`` until everything is healthy and nothing restarts."""
    control = sim.control[0]
    while not (well and control.pending == 0 and is_well(sim) and control.rolling == IDLE):
        if control.pending == 0:
            # What the calendar does happens between two events.
            if not next_event(rng, table, sim, min(until, control.roll_due)):
                if control.roll_due >= until:
                    return FINISHED
                take_turn(rng, sim, is_well(sim))
            control.pending = 1
            if control.struck_beyond == 1 and control.beyond == 0:
                control.beyond = 1
                _turn_the_page(table, sim)
            control.struck_beyond = 0
        if not all_known(table, sim):
            return MISSING
        apply_to_all(rng, table, sim)
        if control.new_losses > 0:
            _count_moment(sim)
        if control.waiting == 1 and is_well(sim):
            control.waiting = 0
            control.risk_since = control.now
        if control.beyond == 1 and is_well(sim):
            control.beyond = 0
            _turn_the_page(table, sim)
        if control.rolling == WAITING and is_well(sim):
            go_on(sim)
    return RECOVERED


@inlined
def apply_to_all(rng: Generator, table: Table, sim: KernelState) -> None:
    """Apply the event to all that it strikes."""
    control = sim.control[0]
    control.pending = 0
    control.new_losses = 0
    for i in range(control.touched):
        apply_event(rng, table, sim, sim.touched[i])
    if control.grouped == 1:
        settle(sim)
    control.touched = 0
    control.events += 1


@inlined
def is_well(sim: KernelState) -> bool:
    """Whether every broker and replica is healthy."""
    return bool(sim.control[0].unwell == 0 and sim.control[0].broken == 0)


@called
def _turn_the_page(table: Table, sim: KernelState) -> None:
    """Count on in the other totals: what settings decide, or what they do not.

    What a mechanism beyond settings starts is beyond them until every broker and replica is healthy
    again: without it, nothing of that would have happened.
    """
    for s in range(len(sim.sets)):
        account(table, sim, s)
    for row in range(sim.totals.shape[0]):
        for column in range(sim.totals.shape[1]):
            kept = sim.totals[row, column]
            sim.totals[row, column] = sim.aside[row, column]
            sim.aside[row, column] = kept


@called
def _count_moment(sim: KernelState) -> None:
    """Count a moment at which one or more partitions lost something."""
    control = sim.control[0]
    control.loss_moments += 1
    control.lost_this_year = 1
    if control.waiting == 0:
        control.at_risk += control.now - control.risk_since
        control.first_losses += 1
        sim.totals[FIRST_LOSSES, control.cause] += 1.0
        control.waiting = 1


@called
def _begin_alone(rng: Generator, table: Table, sim: KernelState) -> None:
    """Begin a rolling restart that is sampled by itself, and count from here."""
    control = sim.control[0]
    _count_afresh(table, sim)
    control.roll_begun, control.roll_due = control.now, control.now
    control.rolling, control.roll_place = GOING, 0
    control.day_start = control.roll_hour - control.now
    if control.hurry > 1.0 and control.strikes > 0.0:
        # In units of the mean time between failures; hurried ones first.
        wait, soon = rng.standard_exponential(), control.strikes * control.hurry_hours
        if wait < control.hurry * soon:
            wait /= control.hurry
        else:
            wait -= (control.hurry - 1.0) * soon
        control.next_strike = control.now + wait / control.strikes
    control.first_strike = control.next_strike


@called
def _end_alone(table: Table, sim: KernelState) -> None:
    """Add what settings decide of a rolling restart, weighted, to the sums."""
    control = sim.control[0]
    for s in range(len(sim.sets)):
        account(table, sim, s)
    struck = control.now >= control.first_strike
    hours = min(control.now, control.first_strike) - control.roll_begun
    weight = 1.0
    if control.hurry > 1.0:
        soon = min(hours, control.hurry_hours)
        weight = math.exp((control.hurry - 1.0) * control.strikes * soon)
        if struck and hours < control.hurry_hours:
            weight /= control.hurry
    unwritable, refused, lost = 0.0, 0.0, 0.0
    for cause in range(sim.totals.shape[1]):
        unwritable += sim.totals[UNWRITABLE, cause]
        refused += sim.totals[REFUSED, cause]
        lost += sim.totals[FIRST_LOSSES, cause]
    control.sum_weight += weight
    control.most_weight = max(control.most_weight, weight)
    if struck:
        control.most_struck = max(control.most_struck, weight)
    control.sum_hours += weight * (control.now - control.roll_begun)
    control.sum_unwritable += weight * unwritable
    control.sum_refused += weight * refused
    control.sum_lost += weight if lost > 0.0 else 0.0
    # The next failure comes at its own rate again.
    control.next_strike = -1.0


@called
def _count_afresh(table: Table, sim: KernelState) -> None:
    for s in range(len(sim.sets)):
        account(table, sim, s)
    for row in range(sim.totals.shape[0]):
        for column in range(sim.totals.shape[1]):
            sim.totals[row, column] = 0.0
            sim.aside[row, column] = 0.0


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
        if code == MISSING:
            return MISSING
        if not resting:
            control.lost_years += control.lost_this_year
            control.phase = 2
            if control.alone == 1:
                _begin_alone(rng, table, sim)
        elif code == FINISHED:
            return NEVER_RECOVERED
        else:
            if control.alone == 1:
                _end_alone(table, sim)
            control.phase = 0
            control.years_left -= 1
    for s in range(len(sim.sets)):
        account(table, sim, s)
    if control.waiting == 0:
        control.at_risk += control.now - control.risk_since
    return FINISHED


COMPILED: tuple[ModuleType, ...] = (
    calendar_kernel,
    copy_kernel,
    effects,
    fault_kernel,
    group_kernel,
    jit,
    log_levels,
    mechanism,
    mechanisms,
    memory_layout,
    partition_kernel,
    quorum_kernel,
    reduced_state,
    renewal_kernel,
    time_distribution,
    traffic_kernel,
    transition_tables,
)
"""Modules that are compiled into the kernel, this one aside."""


run = entry(_years, COMPILED)
"""Advance through the years that ``sim.control`` sets. Returns FINISHED; MISSING, with the missing
entry of the table in ``sim.control``; or NEVER_RECOVERED: ten years without a healthy moment."""
