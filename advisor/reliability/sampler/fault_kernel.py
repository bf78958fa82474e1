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

from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.failure_model import MECHANISMS
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.sampler.jit import called, inlined
from advisor.reliability.sampler.memory_layout import CAUSES, KernelState
from advisor.reliability.sampler.transition_tables import Table

(
    _CRASH, _POWER, _DESTROYED, _LAG, _RESTART,
    _RACK_NETWORK, _RACK_POWER, _RACK_DESTROYED, _CLUSTER_POWER,
) = (MECHANISMS.index(name) for name in (
    "broker.crash", "broker.power", "broker.destroyed", "broker.lag", "broker.restart",
    "rack.network", "rack.power", "rack.destroyed", "cluster.power",
))  # fmt: skip
_WELL, _CRASHED, _DARK, _DARK_ALL = (
    fault_processes.WELL,
    fault_processes.CRASHED,
    fault_processes.DARK,
    fault_processes.DARK_ALL,
)
_RESTARTED, _GONE, _LAGGING = (
    fault_processes.RESTARTING,
    fault_processes.GONE,
    fault_processes.LAGGING,
)
_ISOLATED, _RACK_DARK = fault_processes.ISOLATED, fault_processes.RACK_DARK
_NOTHING = -1
_E_CRASH, _E_ISOLATE, _E_STOP, _E_POWER, _E_DESTROY = (
    red.CRASH, red.ISOLATE, red.STOP, red.POWER, red.DESTROY,
)  # fmt: skip
_E_BACK, _E_REPLACED, _E_COPIED, _E_LAG, _E_CAUGHT_UP = (
    red.BACK, red.REPLACED, red.COPIED, red.LAG, red.CAUGHT_UP,
)  # fmt: skip


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
    while cause < CAUSES - 1 and x >= board.strikes[cause].per_hour:
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
    if cause == _CLUSTER_POWER:
        _cluster_power(rng, board)
    elif cause in (_RACK_NETWORK, _RACK_POWER, _RACK_DESTROYED):
        _strike_rack(rng, board, cause, target)
    else:
        _strike_broker(rng, board, cause, target)


@inlined
def _strike_broker(rng: Generator, board: KernelState, cause: int, b: int) -> None:
    desk, own = board.desk[0], board.brokers[b].own
    running = own in (_WELL, _LAGGING)
    if cause == _DESTROYED:
        strikes, event, after = own != _GONE, _E_DESTROY, _GONE
    elif cause == _CRASH:
        strikes, event, after = running, _E_CRASH, _CRASHED
    elif cause == _POWER:
        strikes, event, after = running, _E_POWER, _DARK
    elif cause == _LAG:
        strikes, event, after = own == _WELL, _E_LAG, _LAGGING
    else:
        # One restart at a time in the whole cluster.
        strikes, event, after = own == _WELL and desk.restarting < 0, _E_STOP, _RESTARTED
    if strikes:
        desk.event = event
        set_condition(rng, board, b, after, True)


@called
def _strike_rack(rng: Generator, board: KernelState, cause: int, rack: int) -> None:
    desk = board.desk[0]
    if cause == _RACK_NETWORK:
        desk.event = _E_ISOLATE
    else:
        desk.event = _E_POWER if cause == _RACK_POWER else _E_DESTROY
    for i in range(board.racks[rack].start, board.racks[rack].end):
        b = board.members[i]
        own = board.brokers[b].own
        if cause == _RACK_DESTROYED:
            if own != _GONE:
                set_condition(rng, board, b, _GONE, True)
        elif own in (_WELL, _LAGGING) or (cause == _RACK_POWER and own == _ISOLATED):
            after = _ISOLATED if cause == _RACK_NETWORK else _RACK_DARK
            set_condition(rng, board, b, after, True)


@called
def _cluster_power(rng: Generator, board: KernelState) -> None:
    """Everything that runs goes dark; of everything that stands, some never returns."""
    desk = board.desk[0]
    desk.event = _E_POWER
    desk.afterwards = _E_DESTROY
    for b in range(len(board.brokers)):
        if board.brokers[b].own == _GONE:
            continue
        running = board.brokers[b].own in (_WELL, _LAGGING, _ISOLATED)
        if running:
            _mark(board, b, False)
        if rng.random() < desk.not_returning:
            _mark(board, b, True)
            set_condition(rng, board, b, _GONE, False)
        elif running:
            set_condition(rng, board, b, _DARK_ALL, False)


@inlined
def set_condition(rng: Generator, board: KernelState, b: int, condition: int, mark: bool) -> None:
    """Give a broker a new condition, and its repair a clock."""
    desk = board.desk[0]
    _leave(board, b)
    board.brokers[b].own = condition
    desk.unwell += 1
    if condition == _RESTARTED:
        desk.restarting = b
    clock = b
    if condition in (_ISOLATED, _RACK_DARK):
        spell = len(board.brokers) + 2 * board.brokers[b].rack + (condition == _RACK_DARK)
        board.clocks[spell].held += 1
        clock = spell
    # Brokers of a rack struck while it is down already share the clock that runs.
    if board.clocks[clock].place < 0:
        board.clocks[clock].due = desk.now + _duration(rng, board, condition)
        board.clocks[clock].place = desk.running
        board.running[desk.running] = clock
        desk.running += 1
    if mark:
        _mark(board, b, False)


@inlined
def _duration(rng: Generator, board: KernelState, condition: int) -> float:
    mean, shape = board.spells[condition].hours, board.spells[condition].shape
    if shape == 1.0:
        return float(mean * rng.standard_exponential())
    return float(mean / shape * rng.standard_gamma(shape))


@inlined
def _leave(board: KernelState, b: int) -> None:
    """End what a broker suffers; it is well afterwards."""
    desk = board.desk[0]
    own = board.brokers[b].own
    if own == _WELL:
        return
    board.brokers[b].own = _WELL
    desk.unwell -= 1
    if own == _RESTARTED:
        desk.restarting = -1
    if own in (_ISOLATED, _RACK_DARK):
        spell = len(board.brokers) + 2 * board.brokers[b].rack + (own == _RACK_DARK)
        board.clocks[spell].held -= 1
        if board.clocks[spell].held == 0:
            _stop_clock(board, spell)
    else:
        _stop_clock(board, b)


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
    brokers = len(board.brokers)
    if clock < brokers:
        own = board.brokers[clock].own
        desk.cause = board.spells[own].cause
        desk.event = _E_BACK
        if own == _GONE:
            desk.event = _E_REPLACED
        elif own == _LAGGING:
            desk.event = _E_CAUGHT_UP
        _mark(board, clock, False)
        _leave(board, clock)
        return
    rack, dark = (clock - brokers) // 2, (clock - brokers) % 2
    condition = _RACK_DARK if dark else _ISOLATED
    desk.cause = board.spells[condition].cause
    desk.event = _E_BACK
    for i in range(board.racks[rack].start, board.racks[rack].end):
        b = board.members[i]
        if board.brokers[b].own == condition:
            _mark(board, b, False)
            _leave(board, b)


@called
def _copy_ends(rng: Generator, table: Table, board: KernelState) -> None:
    """One of all copies is done, each as likely, in all sets that it fills."""
    desk = board.desk[0]
    left = min(int(rng.random() * desk.copying), desk.copying - 1)
    desk.cause = _DESTROYED
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
