"""The controller quorum, compiled: when it is lost, and what partitions are told.

It is lost while its own clock runs, or while racks with half of the voters or more are out. It is
lost before the brokers of the racks are struck, and back after they are: each is a step of its
own, at the same instant.
"""

from __future__ import annotations

from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.compiled.group_kernel import follow_all, mark_sets
from advisor.reliability.sampler.compiled.jit import called, inlined
from advisor.reliability.sampler.compiled.memory_layout import KernelState

NOTHING = -1
"""Of `control.afterwards`: no event follows at once."""
_WELL = WELL
_LOST, _QUORUM_BACK = red.QUORUM_LOST, red.QUORUM_BACK
# Of `control.deferred`: the next step is that of the brokers, or the quorum's return.
_BROKERS_NEXT, _QUORUM_NEXT = 1, 2


@inlined
def follow_quorum(sim: KernelState) -> None:
    """Mark the sets of the brokers that were struck; tell all if the quorum changed its state."""
    control = sim.control[0]
    mark_sets(sim)
    now = _quorum_state(sim)
    if now == control.quorum:
        return
    control.quorum = now
    if control.touched == 0:
        _tell_all(sim, now)
    elif now == _QUORUM_BACK:
        control.deferred = _QUORUM_NEXT
    else:
        control.deferred = _BROKERS_NEXT
        control.held_event, control.held_afterwards = control.event, control.afterwards
        _tell_all(sim, now)


@inlined
def _quorum_state(sim: KernelState) -> int:
    """The event after which the controller quorum is as it is now."""
    control, own = sim.control[0], sim.brokers[len(sim.brokers) - 1].own
    if own != _WELL:
        return int(sim.outages[own].begin)
    if control.voters > 0:
        out = 0
        for rack in range(len(sim.racks)):
            if sim.racks[rack].voters > 0 and rack_outage(sim, rack) != _WELL:
                out += sim.racks[rack].voters
        if 2 * out >= control.voters:
            return _LOST
    return _QUORUM_BACK


@inlined
def rack_outage(sim: KernelState, rack: int) -> int:
    """The condition of a rack that is out; else WELL."""
    for i in range(sim.racks[rack].start, sim.racks[rack].end):
        own = sim.brokers[sim.members[i]].own
        if sim.outages[own].of_rack:
            return int(own)
    return _WELL


@called
def _tell_all(sim: KernelState, event: int) -> None:
    """Mark every set; what the brokers' event marked is held back."""
    control = sim.control[0]
    follow_all(sim)
    control.event, control.afterwards = event, NOTHING
    control.touched = control.sets
    for s in range(control.sets):
        one = sim.sets[s]
        one.held, one.held_after = one.mask, one.mask_after
        one.mask, one.mask_after = 1, 0
        sim.touched[s] = s


@called
def take_deferred(sim: KernelState) -> None:
    """Take the second step of this instant."""
    control = sim.control[0]
    deferred, control.deferred = control.deferred, 0
    if deferred == _QUORUM_NEXT:
        _tell_all(sim, control.quorum)
        return
    control.event, control.afterwards = control.held_event, control.held_afterwards
    for s in range(control.sets):
        one = sim.sets[s]
        one.mask, one.mask_after = one.held, one.held_after
        one.held, one.held_after = 0, 0
        if one.mask != 0 or one.mask_after != 0:
            sim.touched[control.touched] = s
            control.touched += 1
