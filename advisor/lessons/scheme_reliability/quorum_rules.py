"""Replication schemes as two rules: which replicas must have a record, and which may lead.

The rules follow :mod:`advisor.lessons.schemes.rules`. As in Kafka's chain, replicas have caught
up before the next fault.

- synchronous: all replicas must have a record; a complete replica leads.
- majority: a majority must have it; of a majority that is up, the longest log leads.
- flushed majority: the same, and a record counts once it is on disk, as in Raft and ZooKeeper. The
  other schemes, like Kafka, acknowledge from the page cache.
- asynchronous: the leader alone must have it; the longest log that is up leads. A failed leader
  drops its unreplicated tail; Kafka with acks=1 drops two, since it moves leadership back.

A replaced, empty replica neither votes nor acknowledges until it has copied the log, and copies it
only from a replica with the longest log that exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from advisor.lessons.schemes.rules import ASYNCHRONOUS, MAJORITY, SYNCHRONOUS
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import WELL, BrokerEvent, Strikes, table
from advisor.reliability.partition.log_levels import (
    EMPTY,
    GAP_CLOSED,
    GAP_LOST,
    Levels,
    gaps_between,
    newest,
    ranked,
)
from advisor.reliability.statespace.flush_window import CERTAIN_LOSS, NO_LOSS, End, Outages

FLUSHED_MAJORITY = "flushed majority"
SCHEMES = (SYNCHRONOUS, MAJORITY, FLUSHED_MAJORITY, ASYNCHRONOUS)

_FAILURES = (BrokerEvent.CRASH, BrokerEvent.ISOLATE, BrokerEvent.POWER, BrokerEvent.DESTROY)

Outage = tuple[Levels, Levels, fault_processes.BrokerStates]
"""No leader: log levels if power failed after the flush, if before it, and the brokers."""

GapMap = tuple[int, ...]
"""For each gap between log levels its new number, GAP_LOST or GAP_CLOSED."""


def is_running(condition: int) -> bool:
    """Whether a broker in a condition runs and is reachable."""
    return table().severity(condition) <= Strikes.RUNNING


class Quorums(NamedTuple):
    """A scheme over a number of replicas.

    acknowledge: how many replicas must have a record.
    elect: of how many that are up the longest log leads; 0: only a complete replica leads.
    tail: the leader may hold acknowledged records that no other replica has yet.
    page_cache: records are acknowledged before they are on disk.
    """

    acknowledge: int
    elect: int
    tail: bool = False
    page_cache: bool = True
    copying: bool = True

    @classmethod
    def of(cls, name: str, replicas: int, copying: bool = True, page_cache: bool = True) -> Quorums:
        """The rules of a scheme; ``page_cache`` is False if flushing takes no time."""
        quorum = replicas // 2 + 1
        scheme = {
            SYNCHRONOUS: cls(replicas, 0),
            MAJORITY: cls(quorum, quorum),
            FLUSHED_MAJORITY: cls(quorum, quorum, page_cache=False),
            ASYNCHRONOUS: cls(1, 1, tail=True),
        }[name]
        return scheme._replace(copying=copying, page_cache=page_cache and scheme.page_cache)


class View(NamedTuple):
    """A quiescent partition.

    members: slots that receive new records; empty without a leader.
    lost: the new leader lacked acknowledged records.
    gap_map: what became of the gaps between the previous levels.
    """

    levels: Levels
    members: frozenset[int]
    writable: bool
    lost: bool
    gap_map: GapMap

    @property
    def readable(self) -> bool:
        """Whether there is a leader."""
        return bool(self.members)


def settle(scheme: Quorums, own: tuple[int, ...], levels: Levels) -> View:
    """Elect, replicate and write until the partition is quiescent."""
    held = list(levels)
    running = [slot for slot, condition in enumerate(own) if is_running(condition)]
    nothing_left = min(held) == EMPTY
    if nothing_left:
        # No log to wait for: the replicas that run begin a new one.
        for slot in running:
            held[slot] = 0
    longest = min(held)
    best = min((held[slot] for slot in running), default=EMPTY)
    if not scheme.copying and best == longest:
        _fill_empty(held, running, best)
    voters = [slot for slot in running if held[slot] != EMPTY]
    leads = bool(voters) and (len(voters) >= scheme.elect if scheme.elect else best == longest)
    lost = leads and best > longest
    members: frozenset[int] = frozenset()
    if leads:
        # Followers truncate to the leader's log.
        held = [max(level, best) for level in held]
        if not scheme.copying:
            _fill_empty(held, running, best)
        in_sync = frozenset(s for s in running if own[s] == WELL and held[s] != EMPTY)
        members = in_sync or frozenset([min(voters, key=lambda slot: held[slot])])
        for slot in members:
            held[slot] = best
    writable = leads and len(members) >= scheme.acknowledge
    if nothing_left and not writable:
        # The new log has no record yet that could be lost again.
        held = list(levels)
    after, gap_map = ranked(tuple(held), levels, members if writable else None)
    return View(after, members, writable, lost, gap_map)


def _fill_empty(held: list[int], running: list[int], level: int) -> None:
    """Copy a log to the empty replicas that run."""
    for slot in running:
        held[slot] = level if held[slot] == EMPTY else held[slot]


class Step(NamedTuple):
    """What a failure or repair does to the partition.

    losses: 1 if acknowledged records, other than a tail, were lost.
    failed, moved: probability that the leader failed, or handed over; each member is equally likely
        to lead.
    total: no log is left.
    gap_map: what became of the previous gaps.
    unflushed: the gap that begins with records lost from page caches of some members; GAP_CLOSED if
        there is none, GAP_LOST if no log holds them.
    """

    view: View
    losses: float = 0.0
    failed: float = 0.0
    moved: float = 0.0
    total: bool = False
    gap_map: GapMap = ()
    unflushed: int = GAP_CLOSED


def follow(
    scheme: Quorums, before: View, change: fault_processes.Change, early: bool = False
) -> Step:
    """Apply one transition of the brokers to the partition.

    early: power fails before the newest records are on disk, even if writing has stopped.
    """
    levels, lost, total = before.levels, False, False
    # New number of each gap, and at the end of the one begun by lost page caches.
    gap_map = (*range(gaps_between(levels)), GAP_CLOSED)
    failed: set[int] = set()
    stopped: set[int] = set()
    for event, slots in change.events:
        if event in _FAILURES:
            failed |= before.members & set(slots)
        if event == BrokerEvent.STOP:
            stopped |= before.members & set(slots)
        if event == BrokerEvent.DESTROY:
            held = tuple(EMPTY if s in slots else level for s, level in enumerate(levels))
            lost |= min(levels) < min(held)
            total |= min(levels) < min(held) == EMPTY
            levels, step = ranked(held, levels, None)
            gap_map = _composed(gap_map, step)
        if event == BrokerEvent.POWER and scheme.page_cache and (before.writable or early):
            # The newest records are in the page caches of these.
            holders = before.members if before.writable else newest(levels)
            spared = holders - set(slots)
            lost |= bool(holders) and not spared
            if spared and spared != holders:
                levels, step = ranked(levels, levels, spared)
                gap_map = (*_composed(gap_map[:-1], step), 0)
    view = settle(scheme, change.own, levels)
    gap_map = _composed(gap_map, view.gap_map)
    size = max(len(before.members), 1)
    return Step(
        view=view,
        losses=float(lost or view.lost),
        failed=len(failed) / size,
        moved=len(stopped) / size,
        total=total,
        gap_map=gap_map[:-1],
        unflushed=gap_map[-1],
    )


def early_end(
    scheme: Quorums,
    before: View,
    change: fault_processes.Change,
    environment: fault_processes.FaultEnvironment,
    outages: Outages[Outage],
) -> int:
    """What a power failure loses within the flush window, but would not lose later.

    Returns CERTAIN_LOSS if no log has the newest records; NO_LOSS; or the number of an outage in
        which the order of recovery decides whether the next leader has them.
    """
    late = follow(scheme, before, change)
    if late.losses:
        return NO_LOSS
    soon = follow(scheme, before, change, early=True)
    if soon.losses:
        return CERTAIN_LOSS
    if soon.unflushed != 0 or soon.view.readable:
        return NO_LOSS

    def ways(key: Outage) -> Iterator[tuple[str, End[Outage]]]:
        for end in fault_processes.ends(key[2], environment):
            yield end.rate, _after(scheme, key, end.own)

    brokers = fault_processes.BrokerStates(change.own, environment.racks)
    return outages.end((late.view.levels, soon.view.levels, brokers), ways)


def _after(scheme: Quorums, before: Outage, own: fault_processes.Own) -> End[Outage]:
    """How an outage ends or goes on after a recovery."""
    late, soon = (settle(scheme, own, levels) for levels in before[:2])
    if soon.gap_map[0] == GAP_LOST:
        # A loss that occurs either way is counted when it occurs.
        return NO_LOSS if late.lost else CERTAIN_LOSS
    if soon.gap_map[0] != 0 or soon.readable:
        return NO_LOSS
    return ((late.levels, soon.levels, fault_processes.BrokerStates(own, before[2].racks)),)


def _composed(first: GapMap, second: GapMap) -> GapMap:
    """One gap map after another; gaps that ended stay ended."""
    return tuple(second[gap] if gap >= 0 else gap for gap in first)
