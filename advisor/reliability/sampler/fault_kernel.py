"""The compiled life of the machines: what strikes them, and when they are back.

Faults of the whole cluster come as one Poisson process; those that find nothing to strike pass by
(uniformisation), which keeps the process of :mod:`advisor.reliability.failures.fault_processes` exactly. Repairs
have clocks of their own: one for each broker, and one for each rack and kind of rack failure,
whose brokers come back together. A replaced broker has one copy to make for all partitions that
it shares with the same brokers.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from advisor.reliability.failures.mechanisms import WELL, Scope
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.jit import called, inlined
from advisor.reliability.sampler.memory_layout import SCOPES, KernelState
from advisor.reliability.sampler.transition_tables import Table

_WELL = WELL
_RACK, _CLUSTER = SCOPES.index(Scope.RACK), SCOPES.index(Scope.CLUSTER)
_NOTHING = -1
_E_COPIED = red.COPIED


@inlined
def next_event(rng: Generator, table: Table, board: KernelState, until: float) -> bool:
    """Find what happens next, change the machines, and mark the sets that notice."""
    desk = board.desk[0]
    if desk.next_strike < 0.0:
        desk.next_strike = desk.now + _wait(rng, desk.strikes)
    when, clock = desk.next_strike, -1
    for i in range(desk.running):
        if board.clocks[board.running[i]].due < when:
            clock = board.running[i]
            when = board.clocks[clock].due
    copied = False
    if desk.copying > 0:
        # Exponential, so that a fresh draw after every event changes nothing.
        done = desk.now + _wait(rng, desk.copies_per_hour * desk.copying)
        if done < when:
            when, copied = done, True
    if when >= until:
        desk.now = until
        return False
    desk.now = when
    desk.afterwards = _NOTHING
    if copied:
        _copy_ends(rng, table, board)
    elif clock >= 0:
        _repair(board, clock)
    else:
        desk.next_strike = when + _wait(rng, desk.strikes)
        _strike(rng, board)
    return True


@inlined
def _wait(rng: Generator, per_hour: float) -> float:
    return rng.standard_exponential() / per_hour if per_hour > 0.0 else np.inf


@inlined
def _strike(rng: Generator, board: KernelState) -> None:
    desk = board.desk[0]
    x = rng.random() * desk.strikes
    cause = 0
    while cause < len(board.strikes) - 1 and x >= board.strikes[cause].per_hour:
        x -= board.strikes[cause].per_hour
        cause += 1
    struck = board.strikes[cause]
    if struck.per_hour <= 0.0:
        return
    target = min(
        int(x / board.strikes[cause].per_hour * board.strikes[cause].targets),
        board.strikes[cause].targets - 1,
    )
    desk.cause = cause
    desk.event = struck.event
    if struck.scope == _CLUSTER:
        _strike_cluster(rng, board, cause)
    elif struck.scope == _RACK:
        _strike_rack(rng, board, cause, target)
    elif _severity(board, target) <= struck.reach and (
        not struck.exclusive or board.spells[struck.condition].brokers == 0
    ):
        set_condition(rng, board, target, struck.condition, True)


@inlined
def _severity(board: KernelState, b: int) -> int:
    """How far a broker is out of service, on the scale of `Strikes`."""
    return int(board.spells[board.brokers[b].own].severity)


@called
def _strike_rack(rng: Generator, board: KernelState, cause: int, rack: int) -> None:
    struck = board.strikes[cause]
    for i in range(board.racks[rack].start, board.racks[rack].end):
        b = board.members[i]
        if _severity(board, b) <= struck.reach:
            set_condition(rng, board, b, struck.condition, True)


@called
def _strike_cluster(rng: Generator, board: KernelState, cause: int) -> None:
    """Strike all brokers, or each by chance; or strike all and turn some outages into another."""
    desk, struck = board.desk[0], board.strikes[cause]
    desk.afterwards = struck.turned_event
    for b in range(len(board.brokers)):
        hit = _severity(board, b) <= struck.reach
        if struck.turned == _WELL:
            if hit and (not struck.chance or rng.random() < struck.share):
                set_condition(rng, board, b, struck.condition, True)
            continue
        if _severity(board, b) > struck.turned_reach:
            continue
        if hit:
            _mark(board, b, False)
        if rng.random() < struck.share:
            _mark(board, b, True)
            set_condition(rng, board, b, struck.turned, False)
        elif hit:
            set_condition(rng, board, b, struck.condition, False)


@inlined
def set_condition(rng: Generator, board: KernelState, b: int, condition: int, mark: bool) -> None:
    """Give a broker a new condition, and its repair a clock."""
    desk = board.desk[0]
    _leave(board, b)
    board.brokers[b].own = condition
    board.spells[condition].brokers += 1
    desk.unwell += 1
    clock = _clock(board, b, condition)
    board.clocks[clock].held += 1
    # Brokers struck while others of the same joint outage are down share the clock that runs.
    if board.clocks[clock].place < 0:
        board.clocks[clock].due = desk.now + _duration(rng, board, condition)
        board.clocks[clock].place = desk.running
        board.running[desk.running] = clock
        desk.running += 1
    if mark:
        _mark(board, b, False)


@inlined
def _clock(board: KernelState, b: int, condition: int) -> int:
    """The clock that ends a broker's outage."""
    first = board.spells[condition].first_clock
    if first < 0:
        return b
    return int(first + board.spells[condition].stride * board.brokers[b].rack)


@inlined
def _duration(rng: Generator, board: KernelState, condition: int) -> float:
    mean, shape = board.spells[condition].hours, board.spells[condition].shape
    if shape == 1.0:
        return float(mean * rng.standard_exponential())
    return float(mean / shape * rng.standard_gamma(shape))


@inlined
def _leave(board: KernelState, b: int) -> None:
    """End a broker's outage; it is well afterwards."""
    own = board.brokers[b].own
    if own == _WELL:
        return
    board.brokers[b].own = _WELL
    board.spells[own].brokers -= 1
    board.desk[0].unwell -= 1
    clock = _clock(board, b, own)
    board.clocks[clock].held -= 1
    if board.clocks[clock].held == 0:
        _stop_clock(board, clock)


@called
def _stop_clock(board: KernelState, clock: int) -> None:
    desk = board.desk[0]
    desk.running -= 1
    last = board.running[desk.running]
    board.running[board.clocks[clock].place] = last
    board.clocks[last].place = board.clocks[clock].place
    board.clocks[clock].place = -1


@inlined
def _repair(board: KernelState, clock: int) -> None:
    desk = board.desk[0]
    if clock < len(board.brokers):
        spell = board.spells[board.brokers[clock].own]
        desk.cause = spell.cause
        desk.event = spell.end
        _mark(board, clock, False)
        _leave(board, clock)
        return
    condition, rack = board.clocks[clock].condition, board.clocks[clock].rack
    desk.cause = board.spells[condition].cause
    desk.event = board.spells[condition].end
    first, end = 0, len(board.members)
    if rack >= 0:
        first, end = board.racks[rack].start, board.racks[rack].end
    for i in range(first, end):
        b = board.members[i]
        if board.brokers[b].own == condition:
            _mark(board, b, False)
            _leave(board, b)


@called
def _copy_ends(rng: Generator, table: Table, board: KernelState) -> None:
    """One of all copies is done, each as likely, in all sets that it fills."""
    desk = board.desk[0]
    left = min(int(rng.random() * desk.copying), desk.copying - 1)
    desk.cause = desk.copied
    desk.event = _E_COPIED
    for done in range(len(board.copies)):
        if board.copies[done].running == 0:
            continue
        if left == 0:
            _fill(table, board, done)
            return
        left -= 1


@called
def _fill(table: Table, board: KernelState, done: int) -> None:
    """Mark the slots that a copy fills."""
    desk, b = board.desk[0], board.copies[done].broker
    for i in range(board.brokers[b].start, board.brokers[b].end):
        s, bit = board.served[i].set, board.served[i].bit
        copying = table.states[board.sets[s].state].copying
        if board.served[i].copy == done and copying & bit != 0:
            board.sets[s].mask = bit
            board.touched[desk.touched] = s
            desk.touched += 1


@inlined
def _mark(board: KernelState, b: int, afterwards: bool) -> None:
    """Note that a broker's slot is struck in every set that it serves."""
    desk = board.desk[0]
    for i in range(board.brokers[b].start, board.brokers[b].end):
        s, bit = board.served[i].set, board.served[i].bit
        one = board.sets[s]
        if one.mask == 0 and one.mask_after == 0:
            board.touched[desk.touched] = s
            desk.touched += 1
        if afterwards:
            one.mask_after |= bit
        else:
            one.mask |= bit
