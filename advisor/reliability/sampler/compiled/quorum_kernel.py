"""The controller quorum, compiled: when it is lost, and how that reaches partitions.

It is lost while its own clock runs, or while racks with half of the voters or more are out. It is
lost before the brokers of the racks are struck, and back after they are: each is a step of its
own, at the same instant.
"""

from __future__ import annotations

from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.compiled.group_kernel import follow_all, mark_sets
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.solver.jit import called, inlined

NOTHING = -1
"""Of `control.second_event`: none follows."""
_WELL = WELL
_LOST, _QUORUM_BACK = red.QUORUM_LOST, red.QUORUM_BACK
# Of `control.deferred_step`: the next step is that of the brokers, or the quorum's return.
_BROKERS_NEXT, _QUORUM_NEXT = 1, 2


@inlined
def follow_quorum(sim: KernelState) -> None:
    """Mark the sets of the brokers that were struck; all sets if the quorum changed its state."""
    control = sim.control[0]
    mark_sets(sim)
    now = _quorum_state(sim)
    if now == control.quorum_event:
        return
    control.quorum_event = now
    if control.touched_count == 0:
        _mark_all(sim, now)
    elif now == _QUORUM_BACK:
        control.deferred_step = _QUORUM_NEXT
    else:
        control.deferred_step = _BROKERS_NEXT
        control.deferred_event, control.deferred_second_event = control.event, control.second_event
        _mark_all(sim, now)


@inlined
def _quorum_state(sim: KernelState) -> int:
    """The event after which the controller quorum is as it is now."""
    control, condition = sim.control[0], sim.brokers[len(sim.brokers) - 1].condition
    if condition != _WELL:
        return int(sim.outages[condition].begin)
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
        condition = sim.brokers[sim.members[i]].condition
        if sim.outages[condition].of_rack:
            return int(condition)
    return _WELL


@called
def _mark_all(sim: KernelState, event: int) -> None:
    """Mark every set; what the event of the brokers marked is deferred to the next step."""
    control = sim.control[0]
    follow_all(sim)
    control.event, control.second_event = event, NOTHING
    control.touched_count = control.sets
    for s in range(control.sets):
        replica_set = sim.sets[s]
        replica_set.deferred_mask, replica_set.deferred_second_mask = (
            replica_set.mask,
            replica_set.second_mask,
        )
        replica_set.mask, replica_set.second_mask = 1, 0
        sim.touched[s] = s


@called
def take_deferred(sim: KernelState) -> None:
    """Take the second step of this instant."""
    control = sim.control[0]
    deferred, control.deferred_step = control.deferred_step, 0
    if deferred == _QUORUM_NEXT:
        _mark_all(sim, control.quorum_event)
        return
    control.event, control.second_event = control.deferred_event, control.deferred_second_event
    for s in range(control.sets):
        replica_set = sim.sets[s]
        replica_set.mask, replica_set.second_mask = (
            replica_set.deferred_mask,
            replica_set.deferred_second_mask,
        )
        replica_set.deferred_mask, replica_set.deferred_second_mask = 0, 0
        if replica_set.mask != 0 or replica_set.second_mask != 0:
            sim.touched[control.touched_count] = s
            control.touched_count += 1
