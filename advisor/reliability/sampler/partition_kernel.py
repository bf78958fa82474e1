"""The compiled life of the partitions: what an event does to the replica sets that notice it.

What a partition becomes is looked up in the tables of :mod:`advisor.reliability.sampler.transition_tables`.
All partitions on one replica set live the same life; their records and losses are counted for
each of them.
"""

from __future__ import annotations

from numpy.random import Generator

from advisor.reliability.failures.mechanisms import WELL
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.sampler.jit import called, inlined
from advisor.reliability.sampler.memory_layout import (
    LOSS_EVENTS,
    NO_CAUSE,
    NO_DISK,
    RECORDS_LOST,
    REFUSED,
    STALLED,
    UNREADABLE,
    UNWRITABLE,
    KernelState,
)
from advisor.reliability.sampler.transition_tables import UNKNOWN, Table

_WELL, _REPLACED = WELL, red.REPLACED
_LAG, _STOP, _POWER, _EARLY_POWER = red.LAG, red.STOP, red.POWER, red.EARLY_POWER
_PAGE_CACHE, _TAIL, _GAP_LOST = int(Effect.PAGE_CACHE_LOSS), int(Effect.TAIL), GAP_LOST


@inlined
def all_known(table: Table, board: KernelState) -> bool:
    """Whether the table holds what the sets are about to become; else name what it lacks."""
    desk = board.desk[0]
    for i in range(desk.touched):
        one = board.sets[board.touched[i]]
        state = one.state
        if one.mask != 0:
            event = _event(table, board, board.touched[i])
            row = table.entry[state, event, one.mask]
            if row == UNKNOWN:
                desk.miss_state, desk.miss_event, desk.miss_mask = state, event, one.mask
                return False
            state = table.steps[row].target
        if one.mask_after != 0:
            row = table.entry[state, desk.afterwards, one.mask_after]
            if row == UNKNOWN:
                desk.miss_state = state
                desk.miss_event, desk.miss_mask = desk.afterwards, one.mask_after
                return False
    return True


@inlined
def _event(table: Table, board: KernelState, s: int) -> int:
    """What strikes a set; power may go so soon after the last write that not all is on disk."""
    desk, one = board.desk[0], board.sets[s]
    early = desk.event == _POWER and desk.now < one.flushed
    return _EARLY_POWER if early and not table.states[one.state].writable else desk.event


@inlined
def apply_event(rng: Generator, table: Table, board: KernelState, s: int) -> None:
    """Take one set through the event, and the one after it if there is one."""
    desk, one = board.desk[0], board.sets[s]
    mask, mask_after = one.mask, one.mask_after
    one.mask = 0
    one.mask_after = 0
    event = _event(table, board, s)
    row = table.entry[one.state, event, mask]
    if mask_after == 0 and table.steps[row].quiet:
        if not table.states[one.state].writable:
            account(table, board, s)
            attribute_outage(table, board, s)
        return
    account(table, board, s)
    before, losses, lost, failed, moved = one.state, 0, 0.0, 0, 0
    for turn in range(2):
        struck = mask_after if turn else mask
        if struck == 0:
            continue
        row = table.entry[one.state, desk.afterwards if turn else event, struck]
        step = table.steps[row]
        losses |= step.losses
        failed |= step.failed
        moved |= step.moved
        lost += _shift_gaps(table, board, s, row)
        one.state = step.target
        if step.unflushed or step.losses & _PAGE_CACHE != 0:
            lost += strike_page_cache(table, board, s, event == _EARLY_POWER, step.unflushed)
    old, new = table.states[before], table.states[one.state]
    desk.broken += old.whole - new.whole
    if old.copying != new.copying:
        _note_copies(board, s, old.copying, new.copying)
    if losses != 0:
        _count_loss(rng, board, s, losses, lost)
    if (failed or moved) and old.readable and new.readable:
        failover_hours = board.strikes[desk.cause].failover_hours
        hours = failover_hours if failed else desk.handover_hours
        _count_leader_change(board, s, hours, old.writable and new.writable)
    elif old.writable and new.in_sync < old.in_sync and (new.writable or event == _LAG):
        # The wait for a dead follower is inside the outage that it brings; a laggard's is before.
        _count_stall(board, s)
    if not new.writable:
        _stand_still(board, s, old.writable, losses)
        attribute_outage(table, board, s)
    else:
        one.waited = 0


@called
def _note_copies(board: KernelState, s: int, before: int, after: int) -> None:
    """Join copies, or leave them; one that fills nothing any more is over."""
    desk = board.desk[0]
    for slot in range(board.copy_of.shape[1]):
        was, runs = before >> slot & 1, after >> slot & 1
        if was != runs:
            copy = board.copies[board.copy_of[s, slot]]
            copy.running += runs - was
            if copy.running == runs:
                desk.copying += runs - was


@inlined
def _stand_still(board: KernelState, s: int, was_writable: bool, losses: int) -> None:
    """Note when writing stopped, and when all that is left of it is on disk."""
    desk, one = board.desk[0], board.sets[s]
    if was_writable:
        one.down = desk.now
        # Nothing was acknowledged while who lags was waited for.
        waited = desk.hung_stall_hours if desk.event == _LAG else 0.0
        one.flushed = desk.now + max(desk.flush_hours - waited, 0.0)
    if losses & ~_TAIL != 0:
        # The newest records are lost, and with them all that was not on disk.
        one.flushed = desk.now


@called
def account(table: Table, board: KernelState, s: int) -> None:
    """Add the time since a set was last looked at to the books."""
    desk, one = board.desk[0], board.sets[s]
    state, passed = table.states[one.state], desk.now - one.since
    if state.writable:
        records = passed * desk.records_per_hour
        if state.growing:
            board.gaps[s, 0] += records
        else:
            one.base = min(desk.retained, one.base + records)
    else:
        given_up = one.down + desk.budget_hours
        beyond = max(desk.now - max(given_up, one.since), 0.0)
        for cause in range(board.book.shape[1]):
            share = board.blame[s, cause] * one.weight
            if share > 0.0:
                board.book[UNWRITABLE, cause] += share * passed
                board.book[REFUSED, cause] += share * beyond * desk.records_per_hour
                if not state.readable:
                    board.book[UNREADABLE, cause] += share * passed
        if one.waited:
            since = _given_up_before(board, one.since - one.down)
            more = _given_up_before(board, desk.now - one.down) - since
            board.book[REFUSED, one.waited - 1] += one.weight * more * desk.records_per_hour
    one.since = desk.now


@called
def _given_up_before(board: KernelState, outage_hours: float) -> float:
    """Hours of a hung follower's wait that are given up, when an outage after it lasts so long."""
    desk = board.desk[0]
    if outage_hours > desk.budget_hours:
        return float(desk.hung_stall_hours)
    return _given_up_hung(board, max(desk.delivery_hours - outage_hours, 0.0))


@inlined
def _given_up_hung(board: KernelState, hours: float) -> float:
    """Mean hours of a hung follower's wait that are given up after so many, or sooner."""
    desk = board.desk[0]
    patience, lag = min(desk.waiting_budget_hours, hours), desk.lag_hours
    if patience <= lag:
        return float(desk.hung_stall_hours - patience)
    # A wait of 1 to 1.5 lag times, evenly spread.
    left = max(1.5 * lag - patience, 0.0)
    return float(left * left / lag) if left > 0.0 else 0.0


@inlined
def _bits(mask: int) -> int:
    count = 0
    while mask != 0:
        mask &= mask - 1
        count += 1
    return count


@inlined
def _shift_gaps(table: Table, board: KernelState, s: int, row: int) -> float:
    """Move every gap to its new place; return the records that were lost with them."""
    desk, one = board.desk[0], board.sets[s]
    lost = 0.0
    gaps = table.states[one.state].gaps
    if gaps > 0:
        width = len(board.moved)
        for gap in range(width):
            board.moved[gap] = 0.0
        for gap in range(gaps):
            onto = table.gap_map[row, gap]
            if onto >= 0:
                board.moved[onto] += board.gaps[s, gap]
            elif onto == _GAP_LOST:
                lost += board.gaps[s, gap]
            else:
                one.base = min(desk.retained, one.base + board.gaps[s, gap])
        for gap in range(width):
            board.gaps[s, gap] = board.moved[gap]
    if table.steps[row].total:
        lost += one.base
        one.base = 0.0
    return lost


@called
def strike_page_cache(table: Table, board: KernelState, s: int, early: bool, spared: bool) -> float:
    """Take the records that were not on disk out of the logs of those who lost power.

    Where others are ``spared`` and have them, they become gap 0; else their number is returned,
    for they are lost. They are the newest: in the first gaps, and below all gaps what is missing.
    """
    desk, one = board.desk[0], board.sets[s]
    hours = one.flushed - desk.now if early else desk.flush_hours
    wanted = min(hours * desk.records_per_hour, desk.retained)
    left = wanted
    for gap in range(table.states[one.state].gaps):
        part = min(left, board.gaps[s, gap])
        board.gaps[s, gap] -= part
        left -= part
    part = min(left, one.base)
    one.base -= part
    taken = float(wanted - (left - part))
    if spared:
        board.gaps[s, 0] = taken
        return 0.0
    return taken


@called
def _count_loss(rng: Generator, board: KernelState, s: int, losses: int, lost: float) -> None:
    """Count the loss events of a set's partitions, and the records."""
    desk, weight = board.desk[0], board.sets[s].weight
    events, records = weight, lost
    if losses & ~_TAIL == 0:
        # A leader that goes will lead again. Each of the two changes drops what its leader alone
        # had acknowledged, and loses something only if there was any.
        records += 2.0 * desk.tail
        events = 0.0
        for _ in range(2 * int(weight)):
            events += 1.0 if rng.random() < desk.tail_chance else 0.0
    desk.new_losses += int(events)
    board.book[LOSS_EVENTS, desk.cause] += events
    board.book[RECORDS_LOST, desk.cause] += weight * min(records, desk.retained)


@called
def _count_leader_change(board: KernelState, s: int, hours: float, writable: bool) -> None:
    """Count the moments until a new leader serves, which is quicker than any repair."""
    desk, weight = board.desk[0], board.sets[s].weight
    board.book[UNREADABLE, desk.cause] += weight * hours
    if writable:
        beyond = max(hours - desk.budget_hours, 0.0)
        board.book[UNWRITABLE, desk.cause] += weight * hours
        board.book[REFUSED, desk.cause] += weight * beyond * desk.records_per_hour


@called
def _count_stall(board: KernelState, s: int) -> None:
    """Count the wait for a follower that leaves the ISR; one that is shut down leaves at once.

    If an outage follows, more of what was written meanwhile is given up; see `account`.
    """
    desk, weight = board.desk[0], board.sets[s].weight
    if desk.event == _STOP:
        return
    hours = desk.dead_stall_hours
    beyond = max(hours - desk.waiting_budget_hours, 0.0)
    if desk.event == _LAG:
        board.sets[s].waited = desk.cause + 1
        hours, beyond = desk.hung_stall_hours, _given_up_hung(board, desk.delivery_hours)
    board.book[STALLED, desk.cause] += weight * hours
    board.book[REFUSED, desk.cause] += weight * beyond * desk.records_per_hour


@called
def attribute_outage(table: Table, board: KernelState, s: int) -> None:
    """Share a set's outage equally among the spells and copies that keep replicas away."""
    copies, total = _bits(table.states[board.sets[s].state].absent), 0
    for cause in range(board.book.shape[1]):
        board.blame[s, cause] = 0.0
    for slot in range(board.slots.shape[1]):
        own = board.brokers[board.slots[s, slot]].own
        if board.spells[own].end == _REPLACED:
            copies += 1
        elif own != _WELL:
            board.blame[s, board.spells[own].cause] += 1.0
            total += 1
    total += copies
    board.blame[s, NO_DISK] = copies
    if total == 0:
        board.blame[s, NO_CAUSE] = 1.0
        return
    for cause in range(board.book.shape[1]):
        board.blame[s, cause] /= total
