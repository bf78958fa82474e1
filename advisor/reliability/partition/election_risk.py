"""What a partition has to fear: how near it is to an election that loses, and what it must copy.

A partition without a leader can get one whose log is empty, while a better copy is down. That
needs an empty replica that the registration lets lead: in the ISR or among the last known
leaders (whoever comes back empty has left the ELR). Such a partition is *armed*; without a leader
it is on the *brink*. One that is *leaderless* without being armed loses nothing by a clean
election.
"""

from __future__ import annotations

from advisor.reliability.partition.reduced_state import (
    COPYING,
    EMPTY,
    UP,
    PartitionState,
    is_readable,
)

SAFE, EMPTY_ELECTABLE, OFFLINE, OFFLINE_EMPTY_ELECTABLE = range(4)
# Columns of `Graph.election_risks`.
ELECTION_RISK, PENDING_COPIES = range(2)


def election_risk(state: PartitionState) -> int:
    """How near a partition is to an election that loses: one of the four above."""
    registration = state.registration
    electable = (*registration.isr, *registration.last_known_elr)
    armed = any(state.level[slot] == EMPTY for slot in electable)
    if is_readable(state):
        return EMPTY_ELECTABLE if armed else SAFE
    return OFFLINE_EMPTY_ELECTABLE if armed else OFFLINE


def pending_copies_bound(state: PartitionState) -> float:
    """A bound on the mean time until every replica has copied, in times that one copy takes.

    Copies that run together take as long as the longest of them: 1 + 1/2 + ... + 1/k of one. Who
    holds nothing while others hold something has to copy, or may have to once it has fallen.
    Without a leader, or without any record, everyone may have to, after the copies under way.
    """
    empty = [
        condition
        for level, condition in zip(state.level, state.condition, strict=True)
        if level == EMPTY
    ]
    if not is_readable(state):
        return len(state.level) + _longest_of(len(empty))
    if not state.has_data:
        return len(state.level) + _longest_of(empty.count(COPYING))
    return empty.count(UP) + _longest_of(len(empty) - empty.count(UP))


def most_copies(replicas: int) -> float:
    """The largest that :func:`pending_copies_bound` can be."""
    return replicas + _longest_of(replicas)


def _longest_of(copies: int) -> float:
    return sum(1.0 / one for one in range(1, copies + 1))
