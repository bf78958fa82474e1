"""Log completeness of the replicas: ranked levels, and the gaps between them.

Level 0 holds every acknowledged record that still exists, level 1 lacks the newest part, and so
on; ``EMPTY`` holds nothing. The part that level j holds and level j + 1 lacks is *gap* j; gap 0
grows while the partition is written with a replica down.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

EMPTY = 99
# A gap that ends: no log holds it any more, or every log does.
GAP_LOST, GAP_CLOSED = -1, -2

Levels = tuple[int, ...]
Slots = tuple[int, ...] | frozenset[int]
_REMEMBERED = 2**16


@lru_cache(maxsize=_REMEMBERED)
def gaps_between(levels: Levels) -> int:
    """Number of gaps between the finite levels."""
    return max(len(set(levels) - {EMPTY}) - 1, 0)


def newest(levels: Sequence[int]) -> frozenset[int]:
    """Slots with a complete log."""
    return frozenset([slot for slot, level in enumerate(levels) if level == 0])


@lru_cache(maxsize=_REMEMBERED)
def ranked(holds: Levels, before: Levels, pushed: Slots | None) -> tuple[Levels, tuple[int, ...]]:
    """Rank the logs again: the level of each slot, and for each old gap its new number.

    holds: per slot the first of the old gaps that it holds, with every older one; EMPTY if none.
    before: per slot the old level, which says how many gaps there were.
    pushed: slots that new records reach.
    """
    finite = sorted(set(holds) - {EMPTY})
    ranks = [EMPTY if held == EMPTY else finite.index(held) for held in holds]
    shift = 0
    if pushed is not None:
        ranks, shift = _push(ranks, pushed)
    moved = (_new_gap(gap, finite) for gap in range(gaps_between(before)))
    return tuple(ranks), tuple(gap + shift if gap >= 0 else gap for gap in moved)


def _new_gap(gap: int, finite: list[int]) -> int:
    if not finite or gap < finite[0]:
        return GAP_LOST
    holders = sum(1 for threshold in finite if threshold <= gap)
    return GAP_CLOSED if holders == len(finite) else holders - 1


def _push(ranks: list[int], top: Slots) -> tuple[list[int], int]:
    """New records reach ``top`` only: it becomes level 0, others drop by one if they were there."""
    others = [r for s, r in enumerate(ranks) if s not in top and r != EMPTY]
    if not others or min(others) > 0:
        raised = [0 if s in top else r for s, r in enumerate(ranks)]
        return raised, 0
    return [0 if s in top else (r if r == EMPTY else r + 1) for s, r in enumerate(ranks)], 1
