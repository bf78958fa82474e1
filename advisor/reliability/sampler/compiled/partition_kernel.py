"""What an event does to the sets that it strikes, compiled: transitions, copies, accounting.

All partitions on one replica set share one state; records and losses are counted for each of them.
The controller quorum is lost while its own clock runs, or while racks with half of the voters or
more are out: before the brokers of the racks are struck, and back after they are, each as a step
of its own at the same instant.
"""

from __future__ import annotations

import math

from numpy.random import Generator

from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.sampler.compiled import group_kernel as groups
from advisor.reliability.sampler.compiled import memory_layout as layout
from advisor.reliability.sampler.compiled import transition_tables as transitions
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.compiled.transition_tables import Table
from advisor.reliability.solver.jit import called, inlined

NOTHING = -1
"""Of `control.second_event`: none follows."""
_LOST, _QUORUM_BACK = red.QUORUM_LOST, red.QUORUM_BACK
# Of `control.deferred_step`: the next step is that of the brokers, or the quorum's return.
_BROKERS_NEXT, _QUORUM_NEXT = 1, 2


@inlined
def follow_quorum(sim: KernelState) -> None:
    """Mark the sets of the brokers that were struck; all sets if the quorum changed its state."""
    control = sim.control[0]
    groups.mark_sets(sim)
    quorum_state = _quorum_state(sim)
    if quorum_state == control.quorum_event:
        return
    control.quorum_event = quorum_state
    if control.touched_count == 0:
        _mark_all(sim, quorum_state)
    elif quorum_state == _QUORUM_BACK:
        control.deferred_step = _QUORUM_NEXT
    else:
        control.deferred_step = _BROKERS_NEXT
        control.deferred_event, control.deferred_second_event = control.event, control.second_event
        _mark_all(sim, quorum_state)


@inlined
def _quorum_state(sim: KernelState) -> int:
    """The event after which the controller quorum is as it is now."""
    control, condition = sim.control[0], sim.brokers[len(sim.brokers) - 1].condition
    if condition != WELL:
        return int(sim.outages[condition].begin)
    if control.voters > 0:
        voters_out = 0
        for rack in range(len(sim.racks)):
            if sim.racks[rack].voters > 0 and rack_outage(sim, rack) != WELL:
                voters_out += sim.racks[rack].voters
        if 2 * voters_out >= control.voters:
            return _LOST
    return _QUORUM_BACK


@inlined
def rack_outage(sim: KernelState, rack: int) -> int:
    """The condition of a rack that is out; else WELL."""
    for i in range(sim.racks[rack].start, sim.racks[rack].end):
        condition = sim.brokers[sim.members[i]].condition
        if sim.outages[condition].of_rack:
            return int(condition)
    return WELL


@called
def _mark_all(sim: KernelState, event: int) -> None:
    """Mark every set; what the event of the brokers marked is deferred to the next step."""
    control = sim.control[0]
    groups.follow_all(sim)
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


_E_COPIED, _E_DECIDED = red.COPIED, red.DECIDED


@called
def copy_or_decide(rng: Generator, table: Table, sim: KernelState) -> None:
    """End a copy, or let an operator elect a leader."""
    control = sim.control[0]
    decisions = control.decisions_per_hour * control.undecided_count
    all_per_hour = control.copies_per_hour * control.running_copies + decisions
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
    place = min(int(rng.random() * control.undecided_count), control.undecided_count - 1)
    s = sim.sets[place].undecided
    sim.sets[s].mask = 1
    sim.touched[0] = s
    control.touched_count = 1


@called
def _copy_ends(rng: Generator, table: Table, sim: KernelState) -> None:
    """One of the running copies ends, each with the same probability; mark the slots it fills."""
    control = sim.control[0]
    place = min(int(rng.random() * control.running_copies), control.running_copies - 1)
    copy = sim.copies[place].filling
    control.cause = control.no_disk_cause
    control.event = _E_COPIED
    b = sim.copies[copy].broker
    for i in range(sim.brokers[b].start, sim.brokers[b].end):
        s, bit = sim.served[i].set, sim.served[i].bit
        copying = table.states[sim.sets[s].state].copying
        if sim.served[i].copy == copy and copying & bit != 0:
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


_LAG, _LIMP, _STOP = red.LAG, red.LIMP, red.STOP
_POWER, _EARLY_POWER = red.POWER, red.EARLY_POWER
_PAGE_CACHE, _TAIL, _GAP_LOST = int(Effect.PAGE_CACHE_LOSS), int(Effect.TAIL), GAP_LOST
_UNWRITABLE = 1 << layout.UNWRITABLE - layout.SHARES
_UNREADABLE = 1 << layout.UNREADABLE - layout.SHARES
_SHORTEST_HOURS = layout.SHORTEST_OUTAGE_S / 3600.0
# If this many records are expected, the probability of none is below the precision of a float.
_CERTAIN = 40.0
_place_of = inlined(transitions.place_of)


@inlined
def _row_of(table: Table, state: int, event: int, mask: int) -> int:
    """The row of a step, or UNKNOWN."""
    return int(
        table.rows[
            _place_of(
                table.keys,
                (state * transitions.EVENTS + event) << transitions.MASK_BITS | mask,
            )
        ]
    )


@inlined
def all_known(table: Table, sim: KernelState) -> bool:
    """Whether the table holds every transition needed; else note the missing entry."""
    control = sim.control[0]
    i = 0
    while i < control.touched_count:
        s = sim.touched[i]
        replica_set = sim.sets[s]
        state = replica_set.state
        if replica_set.mask != 0:
            event = _event(table, sim, s)
            row = _row_of(table, state, event, replica_set.mask)
            if row == transitions.UNKNOWN:
                control.missing_state, control.missing_event = state, event
                control.missing_mask = replica_set.mask
                return False
            state = table.steps[row].target
        if replica_set.second_mask != 0:
            row = _row_of(table, state, control.second_event, replica_set.second_mask)
            if row == transitions.UNKNOWN:
                control.missing_state = state
                control.missing_event, control.missing_mask = (
                    control.second_event,
                    replica_set.second_mask,
                )
                return False
            state = table.steps[row].target
        if s >= control.sets and (table.states[state].copying or table.states[state].undecided):
            # Each set makes copies and waits for an operator by itself.
            groups.split_group(sim, i)
        else:
            i += 1
    return True


@inlined
def _event(table: Table, sim: KernelState, s: int) -> int:
    """The event as a set sees it; power may fail within the flush window after the last write."""
    control, replica_set = sim.control[0], sim.sets[s]
    early = control.event == _POWER and control.now < replica_set.flushed_at
    return _EARLY_POWER if early and not table.states[replica_set.state].writable else control.event


@inlined
def _hangs(event: int) -> bool:
    """A follower is up and does not fetch, or not from its leader."""
    return event in (_LAG, _LIMP)


@inlined
def apply_event(rng: Generator, table: Table, sim: KernelState, s: int) -> None:
    """Apply the event to one set, and the event that follows at once if there is one."""
    control, replica_set = sim.control[0], sim.sets[s]
    mask, second_mask = replica_set.mask, replica_set.second_mask
    replica_set.mask = 0
    replica_set.second_mask = 0
    event = _event(table, sim, s)
    row = _row_of(table, replica_set.state, event, mask)
    if second_mask == 0 and table.steps[row].quiet:
        if table.states[replica_set.state].measured != 0:
            account(table, sim, s)
            attribute_outage(table, sim, s)
        return
    account(table, sim, s)
    before, losses, lost, failed, moved = replica_set.state, 0, 0.0, 0, 0
    for turn in range(2):
        struck = second_mask if turn else mask
        if struck == 0:
            continue
        row = _row_of(table, replica_set.state, control.second_event if turn else event, struck)
        step = table.steps[row]
        losses |= step.losses
        failed |= step.failed
        moved |= step.moved
        lost_in_gaps = _shift_gaps(table, sim, s, row)
        lost += lost_in_gaps
        replica_set.state = step.target
        # The newest records, which were not on disk, are in the gaps that are lost.
        if step.unflushed or (step.losses & _PAGE_CACHE != 0 and lost_in_gaps == 0.0):
            lost += strike_page_cache(table, sim, s, event == _EARLY_POWER, step.unflushed)
    old, new = table.states[before], table.states[replica_set.state]
    control.sets_not_healthy += old.whole - new.whole
    replica_set.not_healthy = 1 - new.whole
    if old.copying != new.copying or old.undecided != new.undecided:
        note_copies(sim, s, old.copying, new.copying)
        note_undecided(sim, s, old.undecided, new.undecided)
    if losses != 0:
        _count_loss(rng, sim, s, losses, lost)
    if (failed or moved) and old.readable and new.readable:
        hours = control.failover_hours if failed else control.handover_hours
        measures = control.in_elections & ~(old.measured | new.measured)
        _count_leader_change(sim, s, hours, measures)
    elif old.writable and new.in_sync < old.in_sync and (new.writable or _hangs(event)):
        # The wait for a dead follower is part of the outage; that for one that hangs precedes it.
        _count_stall(sim, s)
    if new.measured != 0:
        attribute_outage(table, sim, s)
    if not new.writable:
        _stand_still(sim, s, old.writable, losses)
    else:
        _go_on(sim, s, old.writable)


@inlined
def _go_on(sim: KernelState, s: int, was_writable: bool) -> None:
    """Note that writes go on, and how long they did not."""
    sim.sets[s].stall_cause = 0
    if not was_writable:
        _note_outage(sim, s, sim.control[0].now - sim.sets[s].stopped_at)


@inlined
def _stand_still(sim: KernelState, s: int, was_writable: bool, losses: int) -> None:
    """Note when writes stopped, and when everything written is on disk."""
    control, replica_set = sim.control[0], sim.sets[s]
    if was_writable:
        replica_set.stopped_at = control.now
        # Nothing was acknowledged while the leader waited for a follower that hangs.
        waited = control.hung_stall_hours if _hangs(control.event) else 0.0
        replica_set.flushed_at = control.now + max(control.flush_hours - waited, 0.0)
        control.all_flushed_at = max(control.all_flushed_at, replica_set.flushed_at)
    if losses & ~_TAIL != 0:
        # The newest records are lost, and all that was not on disk is among them.
        replica_set.flushed_at = control.now


@called
def account_for_all(table: Table, sim: KernelState) -> None:
    """Add the time since each set was last accounted for to the totals."""
    for s in range(len(sim.sets)):
        account(table, sim, s)


@called
def account(table: Table, sim: KernelState, s: int) -> None:
    """Add the time since a set was last accounted for to the totals."""
    control, replica_set = sim.control[0], sim.sets[s]
    state = table.states[replica_set.state]
    if state.measured != 0:
        _count_time(sim, s, state.measured, state.writable)
    if state.writable:
        records = (
            groups.mean_hours(sim, replica_set.accounted_until, control.now)
            * control.records_per_hour
        )
        if state.growing:
            sim.gaps[s, 0] += records
        else:
            replica_set.base_records = min(
                control.retained_records, replica_set.base_records + records
            )
    elif replica_set.stall_cause:
        since = groups.given_up_before(sim, replica_set.accounted_until - replica_set.stopped_at)
        given_up_hours = groups.given_up_before(sim, control.now - replica_set.stopped_at) - since
        given_up_hours *= groups.traffic_at(sim, replica_set.stopped_at)
        sim.totals[layout.REFUSED, replica_set.stall_cause - 1] += (
            replica_set.weight * given_up_hours * control.records_per_hour
        )
    replica_set.accounted_until = control.now


@inlined
def _count_time(sim: KernelState, s: int, measured: int, writable: int) -> None:
    """Add the time since then to the measures of a set's state, and what is given up, by cause."""
    control, replica_set = sim.control[0], sim.sets[s]
    control.counted |= layout.TOTALS_COUNTED
    hours, beyond = control.now - replica_set.accounted_until, 0.0
    given_up = max(replica_set.stopped_at + control.budget_hours, replica_set.accounted_until)
    if not writable and control.now > given_up:
        beyond = groups.mean_hours(sim, given_up, control.now)
    for cause in range(sim.totals.shape[1]):
        share = sim.attribution[s, cause] * replica_set.weight
        if share > 0.0:
            sim.totals[layout.REFUSED, cause] += share * beyond * control.records_per_hour
            _add_to_measures(sim, measured, cause, share * hours)


@inlined
def _add_to_measures(sim: KernelState, measured: int, cause: int, hours: float) -> None:
    # By themselves, as a loop over all would cost a tenth of the time.
    if measured & _UNWRITABLE:
        sim.totals[layout.UNWRITABLE, cause] += hours
    if measured & _UNREADABLE:
        sim.totals[layout.UNREADABLE, cause] += hours
    for row in range(layout.UNREADABLE + 1, sim.totals.shape[0]):
        if measured >> (row - layout.SHARES) & 1:
            sim.totals[row, cause] += hours


@inlined
def _bits(mask: int) -> int:
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count


@inlined
def _shift_gaps(table: Table, sim: KernelState, s: int, row: int) -> float:
    """Move the gaps to their new numbers; return the records that were lost with them."""
    control, replica_set = sim.control[0], sim.sets[s]
    lost = 0.0
    gaps = table.states[replica_set.state].gaps
    if gaps > 0:
        width = len(sim.moved)
        for gap in range(width):
            sim.moved[gap] = 0.0
        for gap in range(gaps):
            onto = table.gap_map[row, gap]
            if onto >= 0:
                sim.moved[onto] += sim.gaps[s, gap]
            elif onto == _GAP_LOST:
                lost += sim.gaps[s, gap]
            else:
                replica_set.base_records = min(
                    control.retained_records, replica_set.base_records + sim.gaps[s, gap]
                )
        for gap in range(width):
            sim.gaps[s, gap] = sim.moved[gap]
    if table.steps[row].total:
        lost += replica_set.base_records
        replica_set.base_records = 0.0
    return lost


@called
def strike_page_cache(table: Table, sim: KernelState, s: int, early: bool, spared: bool) -> float:
    """Remove the records that were not on disk from the logs of brokers that lost power.

    Where others are ``spared`` and have them, they become gap 0; else their number is returned,
    for they are lost. They are the newest: in the first gaps, and below all gaps what is missing.
    """
    control, replica_set = sim.control[0], sim.sets[s]
    hours = replica_set.flushed_at - control.now if early else control.flush_hours
    newest = min(hours * control.records_per_hour, control.retained_records)
    remaining = newest
    for gap in range(table.states[replica_set.state].gaps):
        lost_here = min(remaining, sim.gaps[s, gap])
        sim.gaps[s, gap] -= lost_here
        remaining -= lost_here
    lost_here = min(remaining, replica_set.base_records)
    replica_set.base_records -= lost_here
    lost = float(newest - (remaining - lost_here))
    if spared:
        sim.gaps[s, 0] = lost
        return 0.0
    return lost


@called
def _count_loss(rng: Generator, sim: KernelState, s: int, losses: int, lost: float) -> None:
    """Count the loss events of a set's partitions, and the records lost.

    A loss counts only if a record is lost. Records arrive as a Poisson process, and ``lost`` is
    their mean number given the path. What is counted is the mean number of partitions that lose
    any, and whether any of them does is drawn, for the first loss.
    """
    control, weight = sim.control[0], sim.sets[s].weight
    if losses & ~_TAIL == 0:
        # Leadership moves away and back. Each change drops the records that only the old leader
        # had acknowledged, if there are any.
        records, events = 2.0 * control.tail_records, 0.0
        for _ in range(2 * int(weight)):
            events += 1.0 if rng.random() < control.tail_chance else 0.0
        control.new_losses += int(events)
    else:
        records = min(lost, control.retained_records)
        events = -weight * math.expm1(-records)
        chance = -math.expm1(-weight * records)
        if weight * records > _CERTAIN or (chance > 0.0 and rng.random() < chance):
            control.new_losses += 1
    control.counted |= layout.TOTALS_COUNTED
    sim.totals[layout.LOSS_EVENTS, control.cause] += events
    sim.totals[layout.RECORDS_LOST, control.cause] += weight * records


@called
def _count_leader_change(sim: KernelState, s: int, hours: float, measured: int) -> None:
    """Count the time until a new leader serves, which is shorter than any repair."""
    control, weight = sim.control[0], sim.sets[s].weight
    control.counted |= layout.TOTALS_COUNTED
    _add_to_measures(sim, measured, control.cause, weight * hours)
    if measured & _UNWRITABLE:
        beyond = max(hours - control.budget_hours, 0.0) * groups.traffic_at(sim, control.now)
        sim.totals[layout.REFUSED, control.cause] += weight * beyond * control.records_per_hour
        _note_outage(sim, s, hours)


@called
def _note_outage(sim: KernelState, s: int, hours: float) -> None:
    """Count an outage of writes by its length; the time until a new leader serves is a mean."""
    place = 0
    if hours > _SHORTEST_HOURS:
        place = min(
            int(math.log10(hours / _SHORTEST_HOURS) * layout.BINS_PER_DECADE),
            layout.OUTAGE_BINS - 1,
        )
    sim.control[0].counted |= layout.OUTAGES_COUNTED
    sim.outages_by_length[place] += sim.sets[s].weight


@called
def _count_stall(sim: KernelState, s: int) -> None:
    """Count the wait for a follower to leave the ISR; one that shuts down leaves at once.

    If an outage follows, more of what was written meanwhile is given up; see `account`.
    """
    control, weight = sim.control[0], sim.sets[s].weight
    if control.event == _STOP:
        return
    hours = control.dead_stall_hours
    beyond = max(hours - control.waiting_budget_hours, 0.0)
    if _hangs(control.event):
        sim.sets[s].stall_cause = control.cause + 1
        hours, beyond = control.hung_stall_hours, groups.given_up_hung(sim, control.delivery_hours)
    beyond *= groups.traffic_at(sim, control.now)
    control.counted |= layout.TOTALS_COUNTED
    sim.totals[layout.STALLED, control.cause] += weight * hours
    sim.totals[layout.REFUSED, control.cause] += weight * beyond * control.records_per_hour


@called
def attribute_outage(table: Table, sim: KernelState, s: int) -> None:
    """Attribute a set's outage in equal shares to the outages and copies behind it."""
    control = sim.control[0]
    copies, total = _bits(table.states[sim.sets[s].state].absent), 0
    for cause in range(sim.totals.shape[1]):
        sim.attribution[s, cause] = 0.0
    for slot in range(sim.slots.shape[1]):
        b = sim.slots[s, slot]
        condition = sim.brokers[b].condition if b >= 0 else WELL
        if condition == control.replaced_condition:
            copies += 1
        elif condition != WELL:
            sim.attribution[s, sim.outages[condition].cause] += 1.0
            total += 1
    condition = sim.brokers[len(sim.brokers) - 1].condition
    if condition != WELL:
        sim.attribution[s, sim.outages[condition].cause] += 1.0
        total += 1
    if control.voters > 0:
        total += _attribute_to_voters(sim, s)
    total += copies
    sim.attribution[s, layout.NO_DISK] = copies
    if total == 0:
        sim.attribution[s, layout.NO_CAUSE] = 1.0
        return
    for cause in range(sim.totals.shape[1]):
        sim.attribution[s, cause] /= total


@called
def _attribute_to_voters(sim: KernelState, s: int) -> int:
    """Count the racks of voters that are out, but for those that a replica is out with."""
    count = 0
    for rack in range(len(sim.racks)):
        condition = rack_outage(sim, rack) if sim.racks[rack].voters > 0 else WELL
        for slot in range(sim.slots.shape[1]):
            b = sim.slots[s, slot]
            has_replica = b >= 0 and sim.brokers[b].rack == rack
            if has_replica and sim.outages[sim.brokers[b].condition].of_rack:
                condition = WELL
        if condition != WELL:
            sim.attribution[s, sim.outages[condition].cause] += 1.0
            count += 1
    return count
