"""Outages of one broker that begin and end with all else healthy, compiled.

They are nearly all that happens. When one begins, its end is drawn, and so is the next failure: if
the end comes first, and no measure counts the time between, what it adds to the totals depends only
on broker and mechanism (the wait for a new leader, the wait for a follower to leave the ISR). So
the first of each kind is replayed and noted; all others are counted, without touching a replica
set. No random number is drawn that a replay would not draw: the sample path is the same.
"""

from __future__ import annotations

import math

from numpy.random import Generator

from advisor.reliability.failures.mechanisms import WELL, Scope
from advisor.reliability.sampler.compiled.group_kernel import group_of
from advisor.reliability.sampler.compiled.memory_layout import (
    FIRST_LOSSES,
    LOSS_EVENTS,
    RECORDS_LOST,
    SCOPES,
    KernelState,
)
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.solver.jit import called, inlined

# Of `ISOLATED.state`.
_UNKNOWN, _KNOWN, _REPLAYED = range(3)
_NONE = 0
_BROKER, _CLUSTER = SCOPES.index(Scope.BROKER), SCOPES.index(Scope.CLUSTER)
# Of `control.drawn_as`: why a failure of a kind that is skipped was not. Another comes before its
# outage is over, or it strikes a second broker.
NOT_DRAWN, OUTLASTS, STRIKES_SECOND = range(3)
# Outages are skipped that last at most this share of the mean time between failures, and only if
# more than this many failures are expected before the year or a rolling restart cuts in.
_LONGEST_SKIPPED, _FEWEST_FAILURES = 0.05, 32.0
# Events of a Poisson process are drawn one by one where so few are expected.
_FEW = 8.0


@inlined
def may_skip(sim: KernelState, until: float) -> bool:
    """Whether all is healthy, and enough failures are expected until a time to skip some."""
    control = sim.control[0]
    if control.skipped_per_hour == 0.0 or control.brokers_in_outage != 0:
        return False
    if control.sets_not_healthy != 0 or control.active_count != 0 or control.replaying != _NONE:
        return False
    expected = control.strikes_per_hour * (until - control.now)
    return bool(control.drawn_kind == 0 and expected > _FEWEST_FAILURES)


@called
def skip_isolated(rng: Generator, sim: KernelState, until: float) -> None:
    """Skip isolated outages, and draw the next failure that is anything else.

    At most half of the time left, t, is taken as healthy at once. Only if skipped outages filled
    the other half could they end after `until`: with failures at rate L the probability is below
    exp(-7 L t / 2), which is 1e-48 for the shortest t (Chernoff's bound, at 8 L).
    """
    control = sim.control[0]
    per_hour = control.strikes_per_hour
    others_per_hour = max(per_hour - control.skipped_per_hour, 0.0)
    while control.drawn_kind == 0 and per_hour * (until - control.now) > _FEWEST_FAILURES:
        healthy = rng.standard_exponential() / others_per_hour
        limit_hours = 0.5 * (until - control.now)
        struck = healthy < limit_hours
        healthy = min(healthy, limit_hours)
        control.now += healthy
        _pass(rng, sim, _draw_poisson(rng, control.skipped_per_hour * healthy))
        if struck:
            _draw_another(rng, sim, others_per_hour)
    if control.drawn_kind == 0:
        control.next_strike = control.now + rng.standard_exponential() / per_hour


@inlined
def _pass(rng: Generator, sim: KernelState, times: int) -> None:
    """Pass over so many isolated outages: of each kind in proportion to its rate."""
    control, outages_left, per_hour = sim.control[0], times, sim.control[0].skipped_per_hour
    # That each begins is an event, and that it ends.
    control.events += 2 * times
    for kind in range(len(sim.strikes)):
        struck = sim.strikes[kind]
        if outages_left > 0 and struck.skipped_per_hour > 0.0:
            of_kind = rng.binomial(outages_left, min(struck.skipped_per_hour / per_hour, 1.0))
            per_hour -= struck.skipped_per_hour
            if of_kind > 0:
                outages_left -= of_kind
                struck.skipped += of_kind
                outage = sim.outages[struck.condition]
                outage_time = rng.standard_gamma(outage.shape * of_kind)
                control.now += outage_time / (
                    outage.shape / outage.hours + control.strikes_per_hour
                )


@inlined
def _draw_poisson(rng: Generator, mean: float) -> int:
    """Draw a Poisson number. Numba's own draw allocates memory, which a kernel must not.

    Draws when a certain event comes, and how many come before it (Ahrens and Dieter, Computing 12,
    1974).
    """
    count, remaining_mean = 0, mean
    while remaining_mean > _FEW:
        ahead = int(0.875 * remaining_mean)
        reached = rng.standard_gamma(float(ahead))
        if reached > remaining_mean:
            return count + int(rng.binomial(ahead - 1, remaining_mean / reached))
        count += ahead
        remaining_mean -= reached
    remaining_mean -= rng.standard_exponential()
    while remaining_mean > 0.0:
        count += 1
        remaining_mean -= rng.standard_exponential()
    return count


@inlined
def _draw_another(rng: Generator, sim: KernelState, failures_per_hour: float) -> None:
    """Draw the kind of a failure that is not skipped, and why it is not; it comes now."""
    control, x, within = sim.control[0], rng.random() * failures_per_hour, 0.0
    for kind in range(len(sim.strikes)):
        per_hour = sim.strikes[kind].per_hour - sim.strikes[kind].skipped_per_hour
        if per_hour > 0.0:
            control.drawn_kind, within = kind + 1, x
            if x < per_hour:
                break
            x -= per_hour
    control.next_strike = control.now
    struck = sim.strikes[control.drawn_kind - 1]
    if struck.skipped_per_hour > 0.0:
        second = within < struck.per_hour * _second_chance(sim, control.drawn_kind - 1)
        control.drawn_as = STRIKES_SECOND if second else OUTLASTS


@called
def draw_overlapping(rng: Generator, sim: KernelState) -> None:
    """Draw how long the outage lasts that began last, and the next failure, before its end.

    With failures at rate L the length x has a density proportional to f(x) (1 - exp(-L x)): it is
    drawn from the length-biased one, x f(x) / mean, and accepted with (1 - exp(-L x)) / (L x).
    """
    control, b = sim.control[0], sim.control[0].started_clock
    outage, per_hour = sim.outages[sim.brokers[b].condition], control.strikes_per_hour
    while True:
        hours = outage.hours / outage.shape * rng.standard_gamma(outage.shape + 1.0)
        chance = -math.expm1(-per_hour * hours)
        if rng.random() * per_hour * hours < chance:
            break
    sim.clocks[b].due = control.now + hours
    control.next_strike = control.now - math.log1p(-rng.random() * chance) / per_hour


@inlined
def _second_chance(sim: KernelState, kind: int) -> float:
    """Probability that a failure strikes a second broker."""
    return float(sim.strikes[kind].overlaps if sim.control[0].brokers > 1 else 0.0)


@called
def _note_known(sim: KernelState, kind: int) -> None:
    """Note that it is known what a kind adds on one more broker; if on all, it can be skipped."""
    control, struck = sim.control[0], sim.strikes[kind]
    struck.known += 1
    outage = sim.outages[struck.condition]
    if struck.scope != _BROKER or struck.known < control.brokers:
        return
    longest = _LONGEST_SKIPPED * min(outage.shape, 1.0) / control.strikes_per_hour
    if 0.0 < outage.hours < longest:
        failures_meanwhile = outage.hours / outage.shape * control.strikes_per_hour
        isolated = (1.0 - _second_chance(sim, kind)) * (1.0 + failures_meanwhile) ** -outage.shape
        struck.skipped_per_hour = struck.per_hour * isolated
        control.skipped_per_hour += struck.skipped_per_hour


@inlined
def is_accounted_for(sim: KernelState, kind: int, until: float) -> bool:
    """Count the outage that has just begun, if it is isolated and what it adds is known.

    until: what happens at that time is not isolated from it.
    """
    control = sim.control[0]
    is_only_outage = control.brokers_in_outage == 1 and control.sets_not_healthy == 0
    if not is_only_outage or control.struck_count != 1 or control.active_count != 0:
        return False
    b = sim.brokers[0].marked
    outage = sim.outages[sim.brokers[b].condition]
    if outage.first_clock >= 0 or outage.dies > 0.0 or sim.strikes[kind].scope == _CLUSTER:
        return False
    if sim.clocks[b].due >= min(control.next_strike, until) or sim.brokers[b].struck != 1:
        return False
    place = kind * control.brokers + b
    if sim.isolated[place].state == _UNKNOWN:
        control.replaying = place + 1
        _exchange(sim)
    if sim.isolated[place].state != _KNOWN:
        return False
    sim.isolated[place].times += 1
    sim.brokers[b].struck = 0
    control.struck_count = 0
    # That it begins is an event, and that it ends.
    control.events += 2
    return True


@called
def _exchange(sim: KernelState) -> None:
    """Exchange the totals with those of a replay, which begin and end as zeros."""
    for row in range(sim.totals.shape[0]):
        for column in range(sim.totals.shape[1]):
            total = sim.totals[row, column]
            sim.totals[row, column] = sim.replayed_totals[row, column]
            sim.replayed_totals[row, column] = total
    for place in range(len(sim.outages_by_length)):
        count = sim.outages_by_length[place]
        sim.outages_by_length[place] = sim.replayed_outages[place]
        sim.replayed_outages[place] = count


@called
def go_on_with_replay(table: Table, sim: KernelState) -> None:
    """Note what a replayed outage adds, once it is over, or that each has to be replayed."""
    control = sim.control[0]
    place = control.replaying - 1
    entry, b = sim.isolated[place], place % control.brokers
    if sim.brokers[b].condition != WELL:
        if _is_measured(table, sim, b):
            entry.state = _REPLAYED
        return
    control.replaying = _NONE
    _exchange(sim)
    if control.sets_not_healthy != 0 or not _is_noted(sim, place):
        entry.state = _REPLAYED
    elif entry.state == _UNKNOWN:
        entry.state = _KNOWN
        _note_known(sim, place // control.brokers)
    for row in range(sim.totals.shape[0]):
        for column in range(sim.totals.shape[1]):
            sim.totals[row, column] += sim.replayed_totals[row, column]
            sim.replayed_totals[row, column] = 0.0
    for length in range(len(sim.outages_by_length)):
        sim.outages_by_length[length] += sim.replayed_outages[length]
        sim.replayed_outages[length] = 0.0


@inlined
def _is_measured(table: Table, sim: KernelState, b: int) -> bool:
    """Whether the time counts in which any set on a broker is as it is now."""
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        if table.states[sim.sets[sim.served[i].set].state].measured != 0:
            return True
    if sim.control[0].grouped == 1:
        for slot in range(sim.slots.shape[1]):
            if table.states[sim.sets[group_of(sim, b, slot)].state].measured != 0:
                return True
    return False


@inlined
def _is_noted(sim: KernelState, place: int) -> bool:
    """Note what a replay added; False where it lost records, or is more than fits."""
    entry, kind = sim.isolated[place], place // sim.control[0].brokers
    cause = sim.strikes[kind].cause
    for row in range(sim.totals.shape[0]):
        for column in range(sim.totals.shape[1]):
            if column != cause and sim.replayed_totals[row, column] != 0.0:
                return False
        sim.isolated_totals[place, row] = sim.replayed_totals[row, cause]
    for row in (LOSS_EVENTS, RECORDS_LOST, FIRST_LOSSES):
        if sim.replayed_totals[row, cause] != 0.0:
            return False
    lengths = 0
    for length in range(len(sim.outages_by_length)):
        if sim.replayed_outages[length] != 0.0:
            lengths += 1
            entry.length, entry.outages = length, sim.replayed_outages[length]
    return lengths <= 1


@called
def add_isolated(sim: KernelState) -> None:
    """Add all that was counted to the totals."""
    brokers = sim.control[0].brokers
    for place in range(len(sim.isolated)):
        entry, struck = sim.isolated[place], sim.strikes[place // brokers]
        # Which brokers the skipped ones struck is not drawn: each as often.
        times = entry.times + struck.skipped / brokers
        if times > 0.0:
            for row in range(sim.totals.shape[0]):
                sim.totals[row, struck.cause] += times * sim.isolated_totals[place, row]
            sim.outages_by_length[entry.length] += times * entry.outages
