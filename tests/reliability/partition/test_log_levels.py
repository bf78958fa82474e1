"""Histories by rank: what becomes of each gap."""

import pytest

from advisor.reliability.partition.log_levels import (
    EMPTY,
    GAP_CLOSED,
    GAP_LOST,
    gaps_between,
    ranked,
)


@pytest.mark.parametrize(
    ("levels", "gaps"),
    [((0, 0, 0), 0), ((0, 1, 1), 1), ((0, 1, 2), 2), ((0, EMPTY), 0), ((EMPTY, EMPTY), 0)],
)
def test_gaps_lie_between_levels(levels, gaps):
    """A log that is empty or complete adds none."""
    assert gaps_between(levels) == gaps


@pytest.mark.parametrize(
    ("holds", "before", "pushed", "levels", "gap_map"),
    [
        # The only replica that held the newest gap is gone: it is lost, the older one is the first.
        ((EMPTY, 1, 2), (0, 1, 2), None, (EMPTY, 0, 1), (GAP_LOST, 0)),
        # The second has caught up with the first, so that everyone holds what was missing.
        ((0, 0), (0, 1), None, (0, 0), (GAP_CLOSED,)),
        # Nothing is left.
        ((EMPTY, EMPTY), (0, 1), None, (EMPTY, EMPTY), (GAP_LOST,)),
        # New records reach the first alone: a new gap opens before the old one.
        ((0, 0, 1), (0, 0, 1), frozenset({0}), (0, 1, 2), (1,)),
        # New records reach the one that was ahead already: its gap grows.
        ((0, 1), (0, 1), frozenset({0}), (0, 1), (0,)),
        # The middle one has caught up: two gaps have become one.
        ((0, 0, 2), (0, 1, 2), None, (0, 0, 1), (0, 0)),
    ],
)
def test_gaps_are_followed(holds, before, pushed, levels, gap_map):
    """Ranks close up, and every old gap finds its place, is everyone's, or is lost."""
    assert ranked(holds, before, pushed) == (levels, gap_map)
