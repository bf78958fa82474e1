"""Failures and repairs of brokers, compiled.

Failures of the whole cluster come as one Poisson process, thinned: those that strike no broker
change nothing (uniformisation). Each broker has a clock for its repair, and so have brokers that
return together. A mechanism whose time between events is not exponential has a clock for each
target, which runs from the end of the outage that it caused, or from its event if that struck no
broker. What each mechanism does stands in `KernelState`; this code knows none by name.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures.mechanisms import WELL, Scope
from advisor.reliability.failures.times import time_distribution as times
from advisor.reliability.sampler.compiled import isolated_kernel as isolated
from advisor.reliability.sampler.compiled import partition_kernel as partitions
from advisor.reliability.sampler.compiled.group_kernel import mark_broker
from advisor.reliability.sampler.compiled.memory_layout import SCOPES, UNBIASED, KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.solver.jit import called, inlined

_RACK, _CLUSTER = SCOPES.index(Scope.RACK), SCOPES.index(Scope.CLUSTER)


@inlined
def next_event(rng: Generator, table: Table, sim: KernelState, until: float) -> bool:
    """Take the next event, isolated outages aside; change the brokers, and mark the sets struck."""
    control = sim.control[0]
    if control.deferred_step != 0:
        partitions.take_deferred(sim)
        return True
    if control.next_strike < 0.0:
        control.next_strike = control.now + wait(rng, control.strikes_per_hour)
        start_renewals(rng, sim)
    while True:
        if isolated.may_skip(sim, until):
            isolated.skip_isolated(rng, sim, until)
        event_time, clock = control.next_strike, -1
        for i in range(control.running_count):
            if sim.clocks[sim.running[i]].due < event_time:
                clock = sim.running[i]
                event_time = sim.clocks[clock].due
        renewed = control.next_renewal < event_time
        if renewed:
            event_time = control.next_renewal
        end_time = memoryless_end(rng, sim)
        memoryless = end_time < event_time
        event_time = min(event_time, end_time)
        if event_time >= until:
            control.now = until
            return False
        control.now = event_time
        control.second_event = partitions.NOTHING
        control.failover_hours = control.broker_failover_hours
        if memoryless:
            partitions.copy_or_decide(rng, table, sim)
            return True
        if clock >= 0 and not renewed:
            repair(rng, sim, clock)
            break
        kind = _fail(rng, sim, renewed)
        if control.counts_isolated == 0 or not isolated.is_accounted_for(sim, kind, until):
            break
        b = sim.brokers[0].marked
        control.now = sim.clocks[b].due
        _leave(rng, sim, b)
    partitions.follow_quorum(sim)
    return True


@inlined
def memoryless_end(rng: Generator, sim: KernelState) -> float:
    """When the next copy ends, or an operator decides.

    Memoryless: a new draw after every event leaves the distribution unchanged.
    """
    control = sim.control[0]
    if control.running_copies == 0 and control.undecided_count == 0:
        return np.inf
    per_hour = control.copies_per_hour * control.running_copies
    per_hour += control.decisions_per_hour * control.undecided_count
    return float(control.now + wait(rng, per_hour))


@inlined
def _fail(rng: Generator, sim: KernelState, renewed: bool) -> int:
    """Take the event of the clock that is due, or else of the Poisson process; its kind."""
    control = sim.control[0]
    if renewed:
        number = pick_renewed(rng, sim)
        target = sim.renewals[_due(sim)].target
    else:
        control.next_strike = control.now + wait(rng, control.strikes_per_hour)
        number, target = _pick(rng, sim)
    if number != NO_KIND:
        strike(rng, sim, number, target)
    if control.drawn_as == isolated.OUTLASTS:
        isolated.draw_overlapping(rng, sim)
    control.drawn_as = isolated.NOT_DRAWN
    if renewed and number != NO_KIND:
        renew(rng, sim)
    return int(number)


@inlined
def wait(rng: Generator, per_hour: float) -> float:
    """Draw the hours until the next event of a Poisson process."""
    return rng.standard_exponential() / per_hour if per_hour > 0.0 else np.inf


@inlined
def _pick(rng: Generator, sim: KernelState) -> tuple[int, int]:
    """Choose the kind and the target of an event of the Poisson process, or NO_KIND."""
    control = sim.control[0]
    if control.drawn_kind != 0:
        # It was drawn with the time of the event; kinds count from 1.
        number, control.drawn_kind = control.drawn_kind - 1, 0
        return number, any_target(rng, sim, number)
    x = rng.random() * control.strikes_per_hour
    number = 0
    while number < len(sim.strikes) - 1 and x >= sim.strikes[number].per_hour:
        x -= sim.strikes[number].per_hour
        number += 1
    struck = sim.strikes[number]
    if struck.per_hour <= 0.0:
        return NO_KIND, 0
    return number, min(int(x / struck.per_hour * struck.targets), struck.targets - 1)


@inlined
def any_target(rng: Generator, sim: KernelState, number: int) -> int:
    """Draw the target of a kind, each with equal probability."""
    targets = sim.strikes[number].targets
    return int(min(int(rng.random() * targets), targets - 1))


@inlined
def strike(rng: Generator, sim: KernelState, number: int, target: int) -> None:
    """Let a kind of failure strike one of its targets."""
    control, struck = sim.control[0], sim.strikes[number]
    control.cause = struck.cause
    control.event = struck.event
    control.second_event = struck.turned_event
    control.failover_hours = struck.failover_hours
    if struck.of_quorum:
        quorum = len(sim.brokers) - 1
        if sim.brokers[quorum].condition == WELL:
            set_condition(rng, sim, quorum, struck.condition, False)
    elif struck.scope == _CLUSTER:
        at_every_broker = struck.every > 0.0 and _happens(
            rng, sim, struck.every, struck.biased_every
        )
        for b in range(control.brokers):
            _strike_one_of_several(rng, sim, number, b, at_every_broker)
    elif struck.scope == _RACK:
        _strike_racks(rng, sim, number, target)
    elif _severity(sim, target) <= struck.reach and not _excluded(sim, struck.excluded):
        # In place: this is what happens most.
        _begin_outage(rng, sim, target, struck.condition)
        mark_broker(sim, target, False)
        if struck.overlaps > 0.0 and control.brokers > 1:
            second = control.drawn_as == isolated.STRIKES_SECOND
            if control.drawn_as == isolated.NOT_DRAWN:
                second = _happens(rng, sim, struck.overlaps, struck.biased_overlaps)
            if second:
                _strike_second(rng, sim, number, target)


@inlined
def _happens(rng: Generator, sim: KernelState, natural: float, biased: float) -> bool:
    """Draw a chance; where cycles are weighed, note its biased over its natural probability."""
    happens, odds = _draw_chance(rng, sim, natural, biased, sim.control[0].biased_chances)
    sim.control[0].chance_odds *= odds
    return bool(happens)


@inlined
def _spreads(rng: Generator, sim: KernelState, natural: float, biased: float) -> bool:
    """Draw whether a failure spreads to another rack, which is biased apart from other chances."""
    spreads, odds = _draw_chance(rng, sim, natural, biased, sim.control[0].biased_spread)
    sim.control[0].spread_odds *= odds
    return bool(spreads)


@inlined
def _draw_chance(
    rng: Generator, sim: KernelState, natural: float, biased: float, is_biased: int
) -> tuple[bool, float]:
    """Draw a chance, and its biased over its natural probability; 1 where nothing is weighed."""
    x = rng.random()
    if sim.control[0].bias_mode == UNBIASED:
        return x < natural, 1.0
    happens = x < (biased if is_biased else natural)
    return happens, biased / natural if happens else (1.0 - biased) / (1.0 - natural)


@inlined
def _severity(sim: KernelState, b: int) -> int:
    """How far a broker is out of service, on the scale of `Strikes`."""
    return int(sim.outages[sim.brokers[b].condition].severity)


@inlined
def _excluded(sim: KernelState, conditions: int) -> bool:
    """Whether a broker is in one of some conditions, given as bits."""
    if conditions != 0:
        for condition in range(len(sim.outages)):
            if conditions >> condition & 1 and sim.outages[condition].brokers > 0:
                return True
    return False


@called
def _strike_second(rng: Generator, sim: KernelState, number: int, first: int) -> None:
    """Strike another broker as well, by chance: a restart that does not wait for the last one."""
    struck, others = sim.strikes[number], sim.control[0].brokers - 1
    b = min(int(rng.random() * others), others - 1)
    b += b >= first
    if _severity(sim, b) <= struck.reach:
        set_condition(rng, sim, b, struck.condition, True)


@called
def _strike_racks(rng: Generator, sim: KernelState, number: int, first: int) -> None:
    """Strike a rack, and each other rack by chance."""
    spreads, biased = sim.strikes[number].spreads, sim.strikes[number].biased_spreads
    for rack in range(len(sim.racks)):
        if rack == first or (spreads > 0.0 and _spreads(rng, sim, spreads, biased)):
            for i in range(sim.racks[rack].start, sim.racks[rack].end):
                _strike_one_of_several(rng, sim, number, sim.members[i], False)


@called
def _strike_one_of_several(
    rng: Generator, sim: KernelState, number: int, b: int, at_every_broker: bool
) -> None:
    """Strike a broker, perhaps by chance; or strike it and perhaps turn its outage into another.

    at_every_broker: the event strikes all brokers, and leaves none to chance.
    """
    struck = sim.strikes[number]
    hit = _severity(sim, b) <= struck.reach
    if b >= sim.control[0].brokers:
        # It stands for the voters of its rack, which count as out until the rack is back.
        if hit and sim.outages[struck.condition].of_rack:
            set_condition(rng, sim, b, struck.condition, False)
    elif struck.turned == WELL:
        certain = at_every_broker or not struck.by_chance
        if hit and (certain or _happens(rng, sim, struck.share, struck.biased_share)):
            set_condition(rng, sim, b, struck.condition, True)
    elif _severity(sim, b) <= struck.turned_reach:
        if hit:
            mark_broker(sim, b, False)
        if struck.share > 0.0 and _happens(rng, sim, struck.share, struck.biased_share):
            mark_broker(sim, b, True)
            set_condition(rng, sim, b, struck.turned, False)
        elif hit:
            set_condition(rng, sim, b, struck.condition, False)


@called
def set_condition(rng: Generator, sim: KernelState, b: int, condition: int, mark: bool) -> None:
    """Set a broker's condition and start the clock of its repair."""
    _begin_outage(rng, sim, b, condition)
    if mark:
        mark_broker(sim, b, False)


@inlined
def _begin_outage(rng: Generator, sim: KernelState, b: int, condition: int) -> None:
    control = sim.control[0]
    if control.has_clocks_or_crews:
        hold(sim)
    _leave(rng, sim, b)
    sim.brokers[b].condition = condition
    sim.outages[condition].brokers += 1
    control.brokers_in_outage += 1
    clock = _clock(sim, b, condition)
    sim.clocks[clock].held += 1
    # A broker that joins an outage of its rack or cluster shares the running clock.
    if sim.clocks[clock].place < 0:
        sim.clocks[clock].due = control.now + _duration(rng, sim, condition)
        sim.clocks[clock].place = control.running_count
        control.started_clock = clock
        sim.running[control.running_count] = clock
        control.running_count += 1
    if control.has_clocks_or_crews:
        begin_special(sim, b, condition, clock)


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
    if shape == 0.0:
        return float(draw(rng, sim, sim.outages[condition].distribution))
    return float(mean / shape * rng.standard_gamma(shape))


@inlined
def _leave(rng: Generator, sim: KernelState, b: int) -> None:
    """End a broker's outage."""
    condition = sim.brokers[b].condition
    if condition == WELL:
        return
    sim.brokers[b].condition = WELL
    sim.outages[condition].brokers -= 1
    sim.control[0].brokers_in_outage -= 1
    clock = _clock(sim, b, condition)
    sim.clocks[clock].held -= 1
    if sim.clocks[clock].held == 0:
        _stop_clock(sim, clock)
    if sim.control[0].has_clocks_or_crews:
        _end_special(rng, sim, b, condition, clock)


@called
def _end_special(rng: Generator, sim: KernelState, b: int, condition: int, clock: int) -> None:
    """Free the crew of an outage that ends, and let the clock that caused it run."""
    if sim.outages[condition].of_crew:
        following = next_for_crew(sim, clock)
        if following >= 0:
            hours = _duration(rng, sim, sim.brokers[following].condition)
            sim.clocks[following].due = sim.control[0].now + hours
    if sim.brokers[b].struck_by != NO_CLOCK:
        release(rng, sim, b)


@called
def _stop_clock(sim: KernelState, clock: int) -> None:
    control = sim.control[0]
    control.running_count -= 1
    last = sim.running[control.running_count]
    sim.running[sim.clocks[clock].place] = last
    sim.clocks[last].place = sim.clocks[clock].place
    sim.clocks[clock].place = -1


@inlined
def repair(rng: Generator, sim: KernelState, clock: int) -> None:
    """End the outage of the brokers that wait for a clock."""
    control = sim.control[0]
    if clock < len(sim.brokers):
        outage = sim.outages[sim.brokers[clock].condition]
        # A new, empty disk belongs to what destroyed the old one.
        replaced = sim.brokers[clock].condition == control.replaced_condition
        control.cause = control.no_disk_cause if replaced else outage.cause
        control.event = outage.end
        mark_broker(sim, clock, False)
        if outage.dies > 0.0 and _happens(rng, sim, outage.dies, outage.biased_dies):
            after = outage.after
            if outage.hard < 1.0 and not _happens(rng, sim, outage.hard, outage.biased_hard):
                after = outage.after_process
            control.event = sim.outages[after].begin
            # What struck it is the cause until it is well.
            control.striking_renewal = sim.brokers[clock].struck_by
            set_condition(rng, sim, clock, after, False)
            control.striking_renewal = NO_CLOCK
        else:
            _leave(rng, sim, clock)
        return
    condition, rack = sim.clocks[clock].condition, sim.clocks[clock].rack
    control.cause = sim.outages[condition].cause
    control.event = sim.outages[condition].end
    first, end = 0, len(sim.members)
    if rack >= 0:
        first, end = sim.racks[rack].start, sim.racks[rack].end
    for i in range(first, end):
        b = sim.members[i]
        if sim.brokers[b].condition == condition:
            mark_broker(sim, b, False)
            _leave(rng, sim, b)


_WEIBULL, _LOGNORMAL, _GAMMA = times.WEIBULL, times.LOGNORMAL, times.GAMMA
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
    duration = scale
    if kind == _WEIBULL:
        duration = scale * rng.standard_gamma(1.0 + 1.0 / parameter) ** (1.0 / parameter)
    elif kind == _LOGNORMAL:
        duration = scale * math.exp(parameter * (rng.standard_normal() + parameter))
    elif kind == _GAMMA:
        duration = scale * rng.standard_gamma(1.0 + parameter)
    elif kind == _EMPIRICAL:
        # The values are in units of their mean, so that their sum is their number.
        place, end = distribution.start, distribution.end - 1
        remaining = rng.random() * (end + 1 - place)
        while place < end and remaining >= sim.values[place]:
            remaining -= sim.values[place]
            place += 1
        duration = scale * sim.values[place]
    elif kind != _FIXED:
        duration = scale * rng.standard_gamma(2.0)
    return float(duration)


@called
def start_renewals(rng: Generator, sim: KernelState) -> None:
    """Set every clock as if it had run for ever, given that what it strikes is well.

    So no moment of a run is special.
    """
    now = sim.control[0].now
    for number in range(len(sim.renewals)):
        duration = draw_length_biased(rng, sim, sim.renewals[number].distribution)
        remaining_hours = duration * rng.random()
        sim.renewals[number].since = now + remaining_hours - duration
        _set_due(sim, number, now + remaining_hours)


@called
def _set_due(sim: KernelState, number: int, due: float) -> None:
    """Set a clock, and find the one that is due first: the winner of a tournament.

    Each inner node of a binary tree holds the earlier of the two below it, and only the way up from
    a changed clock is played again.
    """
    clocks = len(sim.renewals)
    sim.renewals[number].due = due
    place = (clocks + number) // 2
    while place > 0:
        left_child, right_child = 2 * place, 2 * place + 1
        left_child = left_child - clocks if left_child >= clocks else sim.earliest[left_child]
        right_child = right_child - clocks if right_child >= clocks else sim.earliest[right_child]
        right_is_due_first = sim.renewals[right_child].due < sim.renewals[left_child].due
        sim.earliest[place] = right_child if right_is_due_first else left_child
        place //= 2
    first = sim.earliest[1] if clocks > 1 else 0
    sim.control[0].next_renewal = sim.renewals[first].due


@inlined
def _due(sim: KernelState) -> int:
    """The number of the clock that is due first."""
    return int(sim.earliest[1]) if len(sim.renewals) > 1 else 0


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
        waiting = sim.running[i]
        if sim.clocks[waiting].queued > 0 and (
            first < 0 or sim.clocks[waiting].queued < sim.clocks[first].queued
        ):
            first = waiting
    if first < 0:
        control.free_crews += 1
    else:
        sim.clocks[first].queued = 0
    return first
