"""Copies of replaced replicas, and decisions of operators: both end at constant rates."""

from __future__ import annotations

from numpy.random import Generator

from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.solver.jit import called, inlined

_E_COPIED, _E_DECIDED = red.COPIED, red.DECIDED


@inlined
def copies_per_hour(sim: KernelState) -> float:
    """Rate at which one of the running copies ends."""
    return float(sim.control[0].copies_per_hour * sim.control[0].running_copies)


@inlined
def decisions_per_hour(sim: KernelState) -> float:
    """Rate at which an operator elects a leader of one of the sets that need it."""
    return float(sim.control[0].decisions_per_hour * sim.control[0].undecided_count)


@called
def copy_or_decide(rng: Generator, table: Table, sim: KernelState) -> None:
    """End a copy, or let an operator elect a leader."""
    decisions = decisions_per_hour(sim)
    all_per_hour = copies_per_hour(sim) + decisions
    if decisions > 0.0 and rng.random() * all_per_hour < decisions:
        _decide(rng, sim)
    else:
        _copy_ends(rng, table, sim)


@called
def _decide(rng: Generator, sim: KernelState) -> None:
    """An operator elects a leader of one of the sets that need it, each with equal probability."""
    control = sim.control[0]
    # No electable replica can return with its log: what destroyed the disks is the cause.
    control.cause = control.no_disk_cause
    control.event = _E_DECIDED
    left = min(int(rng.random() * control.undecided_count), control.undecided_count - 1)
    s = sim.sets[left].undecided
    sim.sets[s].mask = 1
    sim.touched[0] = s
    control.touched_count = 1


@called
def _copy_ends(rng: Generator, table: Table, sim: KernelState) -> None:
    """One of the running copies ends, each with the same probability; mark the slots it fills."""
    control = sim.control[0]
    left = min(int(rng.random() * control.running_copies), control.running_copies - 1)
    done = sim.copies[left].filling
    control.cause = control.no_disk_cause
    control.event = _E_COPIED
    b = sim.copies[done].broker
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        s, bit = sim.served[i].set, sim.served[i].bit
        copying = table.states[sim.sets[s].state].copying
        if sim.served[i].copy == done and copying & bit != 0:
            sim.sets[s].mask = bit
            sim.touched[control.touched_count] = s
            control.touched_count += 1


@called
def note_copies(sim: KernelState, s: int, before: int, after: int) -> None:
    """Update how many sets each copy fills; one that fills none is over."""
    control = sim.control[0]
    for slot in range(sim.copy_of.shape[1]):
        was, runs = before >> slot & 1, after >> slot & 1
        if was == runs:
            continue
        number = sim.copy_of[s, slot]
        copy = sim.copies[number]
        copy.running += runs - was
        if copy.running == 1 and runs:
            copy.place = control.running_copies
            sim.copies[control.running_copies].filling = number
            control.running_copies += 1
        elif copy.running == 0:
            control.running_copies -= 1
            last = sim.copies[control.running_copies].filling
            sim.copies[copy.place].filling = last
            sim.copies[last].place = copy.place


@called
def note_undecided(sim: KernelState, s: int, before: int, after: int) -> None:
    """Note whether a set needs an operator."""
    control = sim.control[0]
    if before == after:
        return
    if after:
        sim.sets[s].place = control.undecided_count
        sim.sets[control.undecided_count].undecided = s
        control.undecided_count += 1
    else:
        control.undecided_count -= 1
        last = sim.sets[control.undecided_count].undecided
        sim.sets[sim.sets[s].place].undecided = last
        sim.sets[last].place = sim.sets[s].place
