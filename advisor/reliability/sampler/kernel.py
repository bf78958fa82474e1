"""The sampler's compiled loop: the machines' life and the partitions' together.

`run` comes back with MISSING when the tables lack an entry, and goes on from the same point when
it is called again with the entry filled in.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from numpy.random import Generator

from advisor.reliability.failures import mechanism, mechanisms
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.partition import reduced_state
from advisor.reliability.sampler import (
    fault_kernel,
    jit,
    memory_layout,
    partition_kernel,
    transition_tables,
)
from advisor.reliability.sampler.fault_kernel import next_event
from advisor.reliability.sampler.jit import called, entry, inlined
from advisor.reliability.sampler.memory_layout import (
    FINISHED,
    MISSING,
    NEVER_WELL,
    WELL_AGAIN,
    KernelState,
)
from advisor.reliability.sampler.partition_kernel import account, all_known, apply_event
from advisor.reliability.sampler.transition_tables import Table

_YEAR = HOURS_PER_YEAR
# Where all is well less often, the measures that start from there mean little.
_LONGEST_WAIT = 10.0 * _YEAR


@inlined
def _live(rng: Generator, table: Table, board: KernelState, until: float, well: bool) -> int:
    """Let time pass until an hour, or with ``well`` until all is well again."""
    desk = board.desk[0]
    while not (well and desk.pending == 0 and _is_well(board)):
        if desk.pending == 0:
            if not next_event(rng, table, board, until):
                return FINISHED
            desk.pending = 1
        if not all_known(table, board):
            return MISSING
        desk.pending = 0
        desk.new_losses = 0
        for i in range(desk.touched):
            apply_event(rng, table, board, board.touched[i])
        desk.touched = 0
        desk.events += 1
        if desk.new_losses > 0:
            _count_moment(board)
        if desk.waiting == 1 and _is_well(board):
            desk.waiting = 0
            desk.risk_since = desk.now
    return WELL_AGAIN


@inlined
def _is_well(board: KernelState) -> bool:
    return bool(board.desk[0].unwell == 0 and board.desk[0].broken == 0)


@called
def _count_moment(board: KernelState) -> None:
    """Count a moment at which one or more partitions lost something."""
    desk = board.desk[0]
    desk.loss_moments += 1
    desk.lost_this_year = 1
    if desk.waiting == 0:
        desk.at_risk += desk.now - desk.risk_since
        desk.first_losses += 1
        desk.waiting = 1


@inlined
def _years(rng: Generator, table: Table, board: KernelState) -> int:
    """Live years that each begin when all is well, and the time between them."""
    desk = board.desk[0]
    while desk.years_left > 0:
        if desk.phase == 0:
            desk.year_end = desk.now + _YEAR
            desk.lost_this_year = 0
            desk.phase = 1
        resting = desk.phase == 2
        until = desk.year_end + _LONGEST_WAIT if resting else desk.year_end
        code = _live(rng, table, board, until, resting)
        if code == MISSING:
            return MISSING
        if not resting:
            desk.lost_years += desk.lost_this_year
            desk.phase = 2
        elif code == FINISHED:
            return NEVER_WELL
        else:
            desk.phase = 0
            desk.years_left -= 1
    for s in range(len(board.sets)):
        account(table, board, s)
    if desk.waiting == 0:
        desk.at_risk += desk.now - desk.risk_since
    return FINISHED


def _way_in(sources: str) -> Callable[..., int]:
    """Compile what Python calls.

    Numba's cache compares the age of this file and the values that a function closes over. What
    is called from here stands in other files, so their contents are closed over.
    """

    def run(rng: Generator, table: Table, board: KernelState) -> int:
        return int(_years(rng, table, board)) if len(sources) > 0 else FINISHED

    return entry(run)


def _digest() -> str:
    compiled = (
        fault_kernel,
        jit,
        mechanism,
        mechanisms,
        memory_layout,
        partition_kernel,
        reduced_state,
        transition_tables,
    )
    files = (Path(module.__file__ or "") for module in compiled)
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


run = _way_in(_digest())
"""Live the years that ``board.desk`` asks for. Returns FINISHED; MISSING, with the entry of the
table that it lacks in ``board.desk``; or NEVER_WELL after ten years of waiting for health."""
