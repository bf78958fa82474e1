"""Failures and repairs of brokers, compiled.

Failures of the whole cluster come as one Poisson process, thinned: those that strike no broker
change nothing (uniformisation), so that the process is exactly that of
:mod:`advisor.reliability.failures.fault_processes`. Each broker has a clock for its repair, and so
have brokers that return together. A replaced broker makes one copy for all partitions that it
shares with the same brokers. What each mechanism does stands in the arrays of `KernelState`, filled
from the table of mechanisms; this code knows none by name.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures.mechanisms import WELL, Scope
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.jit import called, inlined
from advisor.reliability.sampler.memory_layout import SCOPES, KernelState
from advisor.reliability.sampler.transition_tables import Table

_WELL = WELL
_RACK, _CLUSTER = SCOPES.index(Scope.RACK), SCOPES.index(Scope.CLUSTER)
_NOTHING = -1
_E_COPIED = red.COPIED


@inlined
def next_event(rng: Generator, table: Table, sim: KernelState, until: float) -> bool:
    """Take the next event, change the brokers, and mark the sets that it strikes."""
    control = sim.control[0]
    if control.next_strike < 0.0:
        control.next_strike = control.now + _wait(rng, control.strikes)
    when, clock = control.next_strike, -1
    for i in range(control.running):
        if sim.clocks[sim.running[i]].due < when:
            clock = sim.running[i]
            when = sim.clocks[clock].due
    copied = False
    if control.copying > 0:
        # Memoryless: a new draw after every event leaves the distribution unchanged.
        done = control.now + _wait(rng, control.copies_per_hour * control.copying)
        if done < when:
            when, copied = done, True
    if when >= until:
        control.now = until
        return False
    control.now = when
    control.afterwards = _NOTHING
    if copied:
        _copy_ends(rng, table, sim)
    elif clock >= 0:
        _repair(sim, clock)
    else:
        control.next_strike = when + _wait(rng, control.strikes)
        _strike(rng, sim)
    return True


@inlined
def _wait(rng: Generator, per_hour: float) -> float:
    return rng.standard_exponential() / per_hour if per_hour > 0.0 else np.inf


@inlined
def _strike(rng: Generator, sim: KernelState) -> None:
    control = sim.control[0]
    x = rng.random() * control.strikes
    cause = 0
    while cause < len(sim.strikes) - 1 and x >= sim.strikes[cause].per_hour:
        x -= sim.strikes[cause].per_hour
        cause += 1
    struck = sim.strikes[cause]
    if struck.per_hour <= 0.0:
        return
    target = min(
        int(x / sim.strikes[cause].per_hour * sim.strikes[cause].targets),
        sim.strikes[cause].targets - 1,
    )
    control.cause = cause
    control.event = struck.event
    control.struck_beyond = struck.beyond
    if struck.scope == _CLUSTER:
        _strike_cluster(rng, sim, cause)
    elif struck.scope == _RACK:
        _strike_rack(rng, sim, cause, target)
    elif _severity(sim, target) <= struck.reach and (
        not struck.exclusive or sim.outages[struck.condition].brokers == 0
    ):
        set_condition(rng, sim, target, struck.condition, True)


@inlined
def _severity(sim: KernelState, b: int) -> int:
    """How far a broker is out of service, on the scale of `Strikes`."""
    return int(sim.outages[sim.brokers[b].own].severity)


@called
def _strike_rack(rng: Generator, sim: KernelState, cause: int, rack: int) -> None:
    struck = sim.strikes[cause]
    for i in range(sim.racks[rack].start, sim.racks[rack].end):
        b = sim.members[i]
        if _severity(sim, b) <= struck.reach:
            set_condition(rng, sim, b, struck.condition, True)


@called
def _strike_cluster(rng: Generator, sim: KernelState, cause: int) -> None:
    """Strike all brokers, or each by chance; or strike all and turn some outages into another."""
    control, struck = sim.control[0], sim.strikes[cause]
    control.afterwards = struck.turned_event
    for b in range(len(sim.brokers)):
        hit = _severity(sim, b) <= struck.reach
        if struck.turned == _WELL:
            if hit and (not struck.chance or rng.random() < struck.share):
                set_condition(rng, sim, b, struck.condition, True)
            continue
        if _severity(sim, b) > struck.turned_reach:
            continue
        if hit:
            _mark(sim, b, False)
        if rng.random() < struck.share:
            _mark(sim, b, True)
            set_condition(rng, sim, b, struck.turned, False)
        elif hit:
            set_condition(rng, sim, b, struck.condition, False)


@inlined
def set_condition(rng: Generator, sim: KernelState, b: int, condition: int, mark: bool) -> None:
    """Set a broker's condition and start the clock of its repair."""
    control = sim.control[0]
    _leave(sim, b)
    sim.brokers[b].own = condition
    sim.outages[condition].brokers += 1
    control.unwell += 1
    clock = _clock(sim, b, condition)
    sim.clocks[clock].held += 1
    # A broker that joins an outage of its rack or cluster shares the running clock.
    if sim.clocks[clock].place < 0:
        sim.clocks[clock].due = control.now + _duration(rng, sim, condition)
        sim.clocks[clock].place = control.running
        sim.running[control.running] = clock
        control.running += 1
    if mark:
        _mark(sim, b, False)


@inlined
def _clock(sim: KernelState, b: int, condition: int) -> int:
    """The clock that ends a broker's outage."""
    first = sim.outages[condition].first_clock
    if first < 0:
        return b
    return int(first + sim.outages[condition].stride * sim.brokers[b].rack)


@inlined
def _duration(rng: Generator, sim: KernelState, condition: int) -> float:
    mean, shape = sim.outages[condition].hours, sim.outages[condition].shape
    if shape == 1.0:
        return float(mean * rng.standard_exponential())
    return float(mean / shape * rng.standard_gamma(shape))


@inlined
def _leave(sim: KernelState, b: int) -> None:
    """End a broker's outage."""
    own = sim.brokers[b].own
    if own == _WELL:
        return
    sim.brokers[b].own = _WELL
    sim.outages[own].brokers -= 1
    sim.control[0].unwell -= 1
    clock = _clock(sim, b, own)
    sim.clocks[clock].held -= 1
    if sim.clocks[clock].held == 0:
        _stop_clock(sim, clock)


@called
def _stop_clock(sim: KernelState, clock: int) -> None:
    control = sim.control[0]
    control.running -= 1
    last = sim.running[control.running]
    sim.running[sim.clocks[clock].place] = last
    sim.clocks[last].place = sim.clocks[clock].place
    sim.clocks[clock].place = -1


@inlined
def _repair(sim: KernelState, clock: int) -> None:
    control = sim.control[0]
    if clock < len(sim.brokers):
        outage = sim.outages[sim.brokers[clock].own]
        control.cause = outage.cause
        control.event = outage.end
        _mark(sim, clock, False)
        _leave(sim, clock)
        return
    condition, rack = sim.clocks[clock].condition, sim.clocks[clock].rack
    control.cause = sim.outages[condition].cause
    control.event = sim.outages[condition].end
    first, end = 0, len(sim.members)
    if rack >= 0:
        first, end = sim.racks[rack].start, sim.racks[rack].end
    for i in range(first, end):
        b = sim.members[i]
        if sim.brokers[b].own == condition:
            _mark(sim, b, False)
            _leave(sim, b)


@called
def _copy_ends(rng: Generator, table: Table, sim: KernelState) -> None:
    """One of the running copies ends, each with the same probability."""
    control = sim.control[0]
    left = min(int(rng.random() * control.copying), control.copying - 1)
    control.cause = control.copied
    control.event = _E_COPIED
    for done in range(len(sim.copies)):
        if sim.copies[done].running == 0:
            continue
        if left == 0:
            _fill(table, sim, done)
            return
        left -= 1


@called
def _fill(table: Table, sim: KernelState, done: int) -> None:
    """Mark the slots that a copy fills."""
    control, b = sim.control[0], sim.copies[done].broker
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        s, bit = sim.served[i].set, sim.served[i].bit
        copying = table.states[sim.sets[s].state].copying
        if sim.served[i].copy == done and copying & bit != 0:
            sim.sets[s].mask = bit
            sim.touched[control.touched] = s
            control.touched += 1


@inlined
def _mark(sim: KernelState, b: int, afterwards: bool) -> None:
    """Mark a broker's slot as struck in every set on it."""
    control = sim.control[0]
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        s, bit = sim.served[i].set, sim.served[i].bit
        one = sim.sets[s]
        if one.mask == 0 and one.mask_after == 0:
            sim.touched[control.touched] = s
            control.touched += 1
        if afterwards:
            one.mask_after |= bit
        else:
            one.mask |= bit
