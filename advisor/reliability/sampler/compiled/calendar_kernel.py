"""Rolling restarts by a calendar, compiled.

The calendar strikes at fixed times of the simulated clock, from outside the events of
:mod:`~advisor.reliability.sampler.compiled.fault_kernel`, which go on until the calendar is due.
Without a calendar it is never due, and no random number is drawn here.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.sampler.compiled.fault_kernel import set_condition
from advisor.reliability.sampler.compiled.group_kernel import mark_broker, mark_sets
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.quorum_kernel import NOTHING
from advisor.reliability.solver.jit import called

# Of `control.roll_state`: no rolling restart; one that acts when it is due; one that waits until
# every broker is up and every replica in sync.
IDLE, GOING, WAITING = 0, 1, 2
_WELL = WELL


@called
def take_turn(rng: Generator, sim: KernelState, well: bool) -> None:
    """The calendar is due: begin a rolling restart, or go on with the one that is under way."""
    control = sim.control[0]
    control.cause, control.event = control.roll_cause, control.roll_event
    control.second_event = NOTHING
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
        if sim.brokers[b].condition != _WELL:
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
