"""The sampler's compiled loop: the machines' life and the partitions' together.

`run` comes back with MISSING when the tables lack an entry, and goes on from the same point when
it is called again with the entry filled in.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numpy.random import Generator

from advisor.reliability.model import HOURS_PER_YEAR
from advisor.reliability.sampler_board import FINISHED, MISSING, WELL_AGAIN, Board
from advisor.reliability.sampler_machines import happen
from advisor.reliability.sampler_partitions import account, all_known, live_through
from advisor.reliability.sampler_tables import Table

_compiled = njit(nogil=True, error_model="numpy", forceinline=True)
_YEAR = HOURS_PER_YEAR
# Where all is well less often, the measures that start from there mean little.
_LONGEST_WAIT = 10.0 * _YEAR


@_compiled
def _live(rng: Generator, table: Table, board: Board, until: float, well: bool) -> int:
    """Let time pass until an hour, or with ``well`` until all is well again."""
    desk = board.desk[0]
    while not (well and desk.pending == 0 and _is_well(board)):
        if desk.pending == 0:
            if not happen(rng, table, board, until):
                return FINISHED
            desk.pending = 1
        if not all_known(table, board):
            return MISSING
        desk.pending = 0
        desk.new_losses = 0
        for i in range(desk.touched):
            live_through(rng, table, board, board.touched[i])
        desk.touched = 0
        desk.events += 1.0
        if desk.new_losses > 0:
            _count_moment(board)
        if desk.waiting == 1 and _is_well(board):
            desk.waiting = 0
            desk.risk_since = desk.now
    return WELL_AGAIN


@_compiled
def _is_well(board: Board) -> bool:
    return bool(board.desk[0].unwell == 0 and board.desk[0].broken == 0)


@_compiled
def _count_moment(board: Board) -> None:
    """Count a moment at which one or more partitions lost something."""
    desk = board.desk[0]
    desk.loss_moments += 1.0
    desk.lost_this_year = 1
    if desk.waiting == 0:
        desk.at_risk += desk.now - desk.risk_since
        desk.first_losses += 1.0
        desk.waiting = 1


@_compiled
def _years(rng: Generator, table: Table, board: Board) -> int:
    """Live years that each begin when all is well, and the time between them."""
    desk = board.desk[0]
    while desk.years_left > 0:
        if desk.phase == 0:
            desk.year_end = desk.now + _YEAR
            desk.lost_this_year = 0
            desk.phase = 1
        if desk.phase == 1:
            if _live(rng, table, board, desk.year_end, False) == MISSING:
                return MISSING
            desk.lost_years += desk.lost_this_year
            desk.phase = 2
        code = _live(rng, table, board, desk.year_end + _LONGEST_WAIT, True)
        if code != WELL_AGAIN:
            return code
        desk.phase = 0
        desk.years_left -= 1
    for s in range(len(board.sets)):
        account(table, board, s)
    if desk.waiting == 0:
        desk.at_risk += desk.now - desk.risk_since
    return FINISHED


def _entry(sources: str) -> Callable[..., int]:
    """Compile the way in, with a cache.

    Numba's cache compares the age of this file and the values that a function closes over. What
    is called from here stands in other files, so their contents are closed over.
    """

    def run(rng: Generator, table: Table, board: Board) -> int:
        if len(sources) == 0:
            return FINISHED
        return _years(rng, table, board)

    options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
    try:
        compiled: Callable[..., int] = njit(**options)(run)
    except RuntimeError:
        # Neither beside this file nor in the user's cache may anything be written.
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="advisor-numba-")
        compiled = njit(**options)(run)
    return compiled


def _digest() -> str:
    parts = ("board", "machines", "partitions")
    here = Path(__file__)
    files = [here.with_name(f"sampler_{part}.py").read_bytes() for part in parts]
    return sha256(b"".join(files)).hexdigest()


run = _entry(_digest())
