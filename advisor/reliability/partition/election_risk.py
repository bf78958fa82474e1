"""Whether the next clean election of a partition can lose data, and how many copies are pending.

It loses data when it elects a replica with an empty log while a better copy is down: that takes an
empty replica in the ISR or among the last known leaders. Without a controller no replica leaves the
ISR or the ELR, and one that lost records may be elected when the controller returns.
"""

from __future__ import annotations

from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.reliability.partition.log_levels import EMPTY
from advisor.reliability.partition.reduced_state import (
    CONTROLLER_WORKS,
    COPYING,
    DESTROYED,
    UP,
    PartitionState,
    is_readable,
)

SAFE, EMPTY_ELECTABLE, OFFLINE, OFFLINE_EMPTY_ELECTABLE = range(4)
# Columns of `risks`.
ELECTION_RISK, PENDING_COPIES, STALE_MEMBER, EMPTY_IN_ELR, NO_QUORUM, UNEXPANDED = COLUMNS = range(
    6
)


def unexpanded(replicas: int) -> PartitionState:
    """A placeholder for any state of a partition, used where the rules are not evaluated."""
    nothing = Registration(replicas=(), isr=(), leader=NO_LEADER)
    return PartitionState(nothing, (DESTROYED,) * replicas, (EMPTY,) * replicas)


def risks(state: PartitionState) -> tuple[float, ...]:
    """What bounds later losses, in columns; the worst case for an unexpanded partition."""
    if not state.registration.replicas:
        return OFFLINE_EMPTY_ELECTABLE, most_copies(len(state.level)), True, True, True, True
    members = members_left_behind(state)
    return election_risk(state), pending_copies_bound(state), *members, False


def election_risk(state: PartitionState) -> int:
    """The risk class of a partition: one of the four above."""
    registration = state.registration
    electable = (*registration.isr, *registration.last_known_elr)
    empty_electable = any(state.level[slot] == EMPTY for slot in electable)
    if is_readable(state):
        return EMPTY_ELECTABLE if empty_electable else SAFE
    return OFFLINE_EMPTY_ELECTABLE if empty_electable else OFFLINE


def members_left_behind(state: PartitionState) -> tuple[bool, bool, bool]:
    """What a lost controller quorum leaves.

    Returns whether a replica that may be elected lacks the newest records, but has others; whether
        one in the ELR is empty and another replica is not; whether there is no controller.
    """
    registration = state.registration
    electable = (*registration.isr, *registration.elr, *registration.last_known_elr)
    stale = any(0 < state.level[slot] < EMPTY for slot in electable)
    empty = state.has_data and any(state.level[slot] == EMPTY for slot in registration.elr)
    return stale, empty, state.controller != CONTROLLER_WORKS


def pending_copies_bound(state: PartitionState) -> float:
    """Bound on the mean time until no copy is pending, in mean durations of one copy.

    k copies in parallel take 1 + 1/2 + ... + 1/k of one. Without a leader, or without any record,
    every replica may have to copy after those in progress.
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
    return sum(1.0 / copy for copy in range(1, copies + 1))
