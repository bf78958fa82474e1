"""Times that are not exponential, and repairs that wait for a crew, compiled.

A mechanism whose time between events is not exponential has a clock for each broker, rack or
cluster that it strikes. It runs from the end of the outage that it caused, or from its event if
that struck no broker, to the next event. At the start of a block its age is in equilibrium, so that
no moment of a run is special. All other mechanisms stay in the one Poisson process of
:mod:`advisor.reliability.sampler.compiled.fault_kernel`.

The clock that is due first is found by a tournament: each inner node of a binary tree holds the
earlier of the two below it, and only the way up from a changed clock is played again.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures.times import time_distribution as times
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.solver.jit import called, inlined

_WEIBULL, _LOGNORMAL, _GAMMA = (
    times.WEIBULL,
    times.LOGNORMAL,
    times.GAMMA,
)
_FIXED, _EMPIRICAL = times.FIXED, times.EMPIRICAL

NO_CLOCK = 0
"""Of `BROKER.struck_by`: the Poisson process, or nothing; clocks count from 1."""
NO_KIND = -1


@called
def draw(rng: Generator, sim: KernelState, number: int) -> float:
    """Draw a time in hours from a distribution."""
    distribution = sim.distributions[number]
    kind, scale, parameter = distribution.kind, distribution.scale, distribution.parameter
    if kind == _FIXED:
        return float(scale)
    if kind == _WEIBULL:
        return float(scale * rng.standard_exponential() ** (1.0 / parameter))
    if kind == _LOGNORMAL:
        return float(scale * math.exp(parameter * rng.standard_normal()))
    if kind == _GAMMA:
        return float(scale * rng.standard_gamma(parameter))
    if kind == _EMPIRICAL:
        start, size = distribution.start, distribution.end - distribution.start
        return float(scale * sim.values[start + min(int(rng.random() * size), size - 1)])
    return float(scale * rng.standard_exponential())


@called
def draw_length_biased(rng: Generator, sim: KernelState, number: int) -> float:
    """Draw the time between events that contains a random moment: its density is x f(x) / mean.

    The moment is uniform within it (length-biased sampling; Cox, Renewal Theory, 1962).
    """
    distribution = sim.distributions[number]
    kind, scale, parameter = distribution.kind, distribution.scale, distribution.parameter
    whole = scale
    if kind == _WEIBULL:
        whole = scale * rng.standard_gamma(1.0 + 1.0 / parameter) ** (1.0 / parameter)
    elif kind == _LOGNORMAL:
        whole = scale * math.exp(parameter * (rng.standard_normal() + parameter))
    elif kind == _GAMMA:
        whole = scale * rng.standard_gamma(1.0 + parameter)
    elif kind == _EMPIRICAL:
        # The values are in units of their mean, so that their sum is their number.
        place, end = distribution.start, distribution.end - 1
        left = rng.random() * (end + 1 - place)
        while place < end and left >= sim.values[place]:
            left -= sim.values[place]
            place += 1
        whole = scale * sim.values[place]
    elif kind != _FIXED:
        whole = scale * rng.standard_gamma(2.0)
    return float(whole)


@called
def start_renewals(rng: Generator, sim: KernelState) -> None:
    """Set every clock as if it had run for ever, given that what it strikes is well."""
    now = sim.control[0].now
    for number in range(len(sim.renewals)):
        whole = draw_length_biased(rng, sim, sim.renewals[number].distribution)
        left = whole * rng.random()
        sim.renewals[number].since = now + left - whole
        _set_due(sim, number, now + left)


@called
def _set_due(sim: KernelState, number: int, due: float) -> None:
    """Set a clock, and play the tournament again on its way up."""
    clocks = len(sim.renewals)
    sim.renewals[number].due = due
    place = (clocks + number) // 2
    while place > 0:
        one, other = 2 * place, 2 * place + 1
        one = one - clocks if one >= clocks else sim.earliest[one]
        other = other - clocks if other >= clocks else sim.earliest[other]
        later = sim.renewals[other].due < sim.renewals[one].due
        sim.earliest[place] = other if later else one
        place //= 2
    first = sim.earliest[1] if clocks > 1 else 0
    sim.control[0].next_renewal = sim.renewals[first].due


@inlined
def _due(sim: KernelState) -> int:
    """The number of the clock that is due first."""
    return int(sim.earliest[1]) if len(sim.renewals) > 1 else 0


@called
def target_of_due(sim: KernelState) -> int:
    """The broker, rack or cluster that the clock that is due strikes."""
    return int(sim.renewals[_due(sim)].target)


@called
def pick_renewed(rng: Generator, sim: KernelState) -> int:
    """The kind that the clock that is due takes, or NO_KIND.

    Where one broker of the cluster at a time may be out for it, it waits for the one that is.
    """
    control = sim.control[0]
    number = _due(sim)
    clock = sim.renewals[number]
    waits = _until_allowed(sim, sim.strikes[clock.kind].excluded)
    if waits > control.now:
        sim.renewals[number].since = np.inf
        _set_due(sim, number, waits)
        return NO_KIND
    kind, last = clock.kind, clock.kind + clock.kinds - 1
    if kind < last:
        x = rng.random()
        while kind < last and x >= sim.strikes[kind].probability:
            x -= sim.strikes[kind].probability
            kind += 1
    control.striking_renewal = number + 1
    return int(kind)


@called
def _until_allowed(sim: KernelState, excluded: int) -> float:
    """When the last outage in some conditions, given as bits, ends; now without any."""
    control = sim.control[0]
    until = control.now
    if excluded != 0:
        for b in range(control.brokers):
            condition = sim.brokers[b].condition
            if condition > 0 and excluded >> condition & 1:
                until = max(until, sim.clocks[b].due)
    return float(until)


@called
def renew(rng: Generator, sim: KernelState) -> None:
    """After its event a clock runs again at once if it struck no broker, else when all are back."""
    control = sim.control[0]
    number = control.striking_renewal - 1
    control.striking_renewal = NO_CLOCK
    due = np.inf
    if sim.renewals[number].held == 0:
        due = control.now + draw(rng, sim, sim.renewals[number].distribution)
    sim.renewals[number].since = control.now
    _set_due(sim, number, due)


@called
def release(rng: Generator, sim: KernelState, b: int) -> None:
    """A broker is back; the clock that struck it runs again once all that it struck are."""
    number = sim.brokers[b].struck_by - 1
    sim.brokers[b].struck_by = NO_CLOCK
    clock = sim.renewals[number]
    clock.held -= 1
    if clock.held == 0:
        clock.since = sim.control[0].now
        _set_due(sim, number, sim.control[0].now + draw(rng, sim, clock.distribution))


@called
def hold(sim: KernelState) -> None:
    """Count a broker that the clock that is due strikes; before what it was out for ends."""
    renewing = sim.control[0].striking_renewal
    if renewing != NO_CLOCK:
        sim.renewals[renewing - 1].held += 1


@called
def begin_special(sim: KernelState, b: int, condition: int, clock: int) -> None:
    """Note which clock caused an outage, and take a crew for its repair, or a place in the queue.

    A repair that waits is not due before it has a crew; then its duration is drawn again.
    """
    control = sim.control[0]
    sim.brokers[b].struck_by = control.striking_renewal
    if sim.outages[condition].of_crew:
        if control.free_crews > 0:
            control.free_crews -= 1
        else:
            control.repairs_queued += 1
            sim.clocks[clock].queued = control.repairs_queued
            sim.clocks[clock].due = np.inf


@called
def next_for_crew(sim: KernelState, clock: int) -> int:
    """The repair that begins now that one is over: the one that waited longest; -1 for none."""
    control = sim.control[0]
    if sim.clocks[clock].queued > 0:
        # It waited itself, and leaves no crew behind.
        sim.clocks[clock].queued = 0
        return -1
    first = -1
    for i in range(control.running_count):
        other = sim.running[i]
        if sim.clocks[other].queued > 0 and (
            first < 0 or sim.clocks[other].queued < sim.clocks[first].queued
        ):
            first = other
    if first < 0:
        control.free_crews += 1
    else:
        sim.clocks[first].queued = 0
    return first
