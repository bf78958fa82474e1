"""Copies of replaced replicas, and decisions of operators: both end at a rate of their own."""

from __future__ import annotations

from numpy.random import Generator

from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.compiled.jit import called, inlined
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table

_E_COPIED, _E_DECIDED = red.COPIED, red.DECIDED


@inlined
def copies_per_hour(sim: KernelState) -> float:
    """Rate at which one of the running copies ends."""
    return float(sim.control[0].copies_per_hour * sim.control[0].copying)


@inlined
def decisions_per_hour(sim: KernelState) -> float:
    """Rate at which an operator elects a leader of one of the sets that need it."""
    return float(sim.control[0].decisions_per_hour * sim.control[0].undecided)


@called
def copy_or_decide(rng: Generator, table: Table, sim: KernelState) -> None:
    """End a copy, or let an operator elect a leader."""
    decisions = decisions_per_hour(sim)
    both = copies_per_hour(sim) + decisions
    if decisions > 0.0 and rng.random() * both < decisions:
        _decide(rng, table, sim)
    else:
        _copy_ends(rng, table, sim)


@called
def _decide(rng: Generator, table: Table, sim: KernelState) -> None:
    """An operator elects a leader of one of the sets that need it, each with equal probability."""
    control = sim.control[0]
    left = min(int(rng.random() * control.undecided), control.undecided - 1)
    # No electable replica can return with its log: what destroyed the disks is the cause.
    control.cause = control.no_disk
    control.event = _E_DECIDED
    for s in range(len(sim.sets)):
        if table.states[sim.sets[s].state].undecided:
            if left == 0:
                sim.sets[s].mask = 1
                sim.touched[0] = s
                control.touched = 1
                return
            left -= 1


@called
def _copy_ends(rng: Generator, table: Table, sim: KernelState) -> None:
    """One of the running copies ends, each with the same probability."""
    control = sim.control[0]
    left = min(int(rng.random() * control.copying), control.copying - 1)
    control.cause = control.no_disk
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
