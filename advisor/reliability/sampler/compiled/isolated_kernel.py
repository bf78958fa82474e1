"""Outages of one broker that begin and end with all else healthy, compiled.

They are nearly all that happens. When one begins, its end is drawn, and so is the next failure: if
the end comes first, and writes go on meanwhile, what it adds to the totals depends only on broker
and mechanism (the wait for a new leader, the wait for a follower to leave the ISR). So the first of
each kind is replayed and noted; all others are counted, without touching a replica set. No random
number is drawn that a replay would not draw: the sample path is the same.
"""

from __future__ import annotations

from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.sampler.compiled.group_kernel import group_of
from advisor.reliability.sampler.compiled.memory_layout import (
    FIRST_LOSSES,
    LOSS_EVENTS,
    RECORDS_LOST,
    KernelState,
)
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.sampler.jit import called, inlined

_WELL = WELL
# Of `ISOLATED.state`.
_UNKNOWN, _KNOWN, _REPLAYED = range(3)
_NONE = 0


@inlined
def is_accounted_for(sim: KernelState, kind: int, until: float) -> bool:
    """Count the outage that has just begun, if it is isolated and what it adds is known.

    Parameters
    ----------
    kind : int
        What began it.
    until : float
        What happens at that time is not isolated from it.
    """
    control = sim.control[0]
    alone = control.brokers_in_outage == 1 and control.sets_not_healthy == 0
    if not alone or control.struck_count != 1 or control.active_count != 0:
        return False
    b = sim.brokers[0].marked
    outage = sim.outages[sim.brokers[b].condition]
    if outage.first_clock >= 0 or outage.dies > 0.0 or sim.strikes[kind].beyond_settings:
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
            kept = sim.totals[row, column]
            sim.totals[row, column] = sim.replayed_totals[row, column]
            sim.replayed_totals[row, column] = kept
    for place in range(len(sim.outages_by_length)):
        count = sim.outages_by_length[place]
        sim.outages_by_length[place] = sim.replayed_outages[place]
        sim.replayed_outages[place] = count


@called
def go_on_with_replay(table: Table, sim: KernelState) -> None:
    """Note what a replayed outage adds, once it is over, or that each has to be replayed."""
    control = sim.control[0]
    place = control.replaying - 1
    one, b = sim.isolated[place], place % control.brokers
    if sim.brokers[b].condition != _WELL:
        if not _is_writable(table, sim, b):
            one.state = _REPLAYED
        return
    control.replaying = _NONE
    _exchange(sim)
    if control.sets_not_healthy != 0 or not _is_noted(sim, place):
        one.state = _REPLAYED
    elif one.state == _UNKNOWN:
        one.state = _KNOWN
    for row in range(sim.totals.shape[0]):
        for column in range(sim.totals.shape[1]):
            sim.totals[row, column] += sim.replayed_totals[row, column]
            sim.replayed_totals[row, column] = 0.0
    for length in range(len(sim.outages_by_length)):
        sim.outages_by_length[length] += sim.replayed_outages[length]
        sim.replayed_outages[length] = 0.0


@inlined
def _is_writable(table: Table, sim: KernelState, b: int) -> bool:
    """Whether all sets on a broker can be written."""
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        if not table.states[sim.sets[sim.served[i].set].state].writable:
            return False
    if sim.control[0].grouped == 1:
        for slot in range(sim.slots.shape[1]):
            if not table.states[sim.sets[group_of(sim, b, slot)].state].writable:
                return False
    return True


@inlined
def _is_noted(sim: KernelState, place: int) -> bool:
    """Note what a replay added; False where it lost records, or is more than fits."""
    one, kind = sim.isolated[place], place // sim.control[0].brokers
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
            one.length, one.outages = length, sim.replayed_outages[length]
    return lengths <= 1


@called
def add_isolated(sim: KernelState) -> None:
    """Add all that was counted to the totals."""
    brokers = sim.control[0].brokers
    for place in range(len(sim.isolated)):
        one = sim.isolated[place]
        if one.times > 0:
            cause = sim.strikes[place // brokers].cause
            for row in range(sim.totals.shape[0]):
                sim.totals[row, cause] += one.times * sim.isolated_totals[place, row]
            sim.outages_by_length[one.length] += one.times * one.outages
