"""What a partition has to fear: how near it is to an election that loses, and what it must copy.

A partition without a leader can get one whose log is empty, while a better copy is down. That
needs an empty replica that the registration lets lead: in the ISR or among the last known
leaders (whoever comes back empty has left the ELR). Such a partition is *armed*; without a leader
it is on the *brink*. One that is *leaderless* without being armed loses nothing by a clean
election.
"""

from __future__ import annotations

from advisor.reliability.reduction import EMPTY, LAGGING, UP, PartitionState, is_readable

CALM, ARMED, LEADERLESS, BRINK = range(4)
# Columns of `Graph.perils`.
PERIL, COPIES = range(2)


def peril(state: PartitionState) -> int:
    """How near a partition is to an election that loses: one of the four above."""
    registration = state.registration
    electable = (*registration.isr, *registration.last_known_elr)
    armed = any(state.level[slot] == EMPTY for slot in electable)
    if is_readable(state):
        return ARMED if armed else CALM
    return BRINK if armed else LEADERLESS


def copies_ahead(state: PartitionState) -> int:
    """How many replicas have to copy everything before all is well, as far as can be told.

    Those that are away, or copying, and hold nothing. Without a leader it may become all: the next
    one may hold nothing itself.
    """
    if not is_readable(state):
        return len(state.level)
    return sum(
        level == EMPTY and condition not in (UP, LAGGING)
        for level, condition in zip(state.level, state.condition, strict=True)
    )
