"""Other ways to replicate a log, as rules: who must have a record, and who may lead.

Each scheme is a rule for who must have a record before it is acknowledged, and a rule for who may
lead (:mod:`advisor.protocol.schemes.rules`). As with Kafka, everybody has caught up before the next
fault.

- synchronous: all replicas must have a record; a replica that has everything leads.
- majority: a majority must have it; the longest log of a majority that answers leads.
- flushed majority: the same, and a record is on disk before it counts, as Raft and ZooKeeper
  have it. The other schemes, like Kafka, leave it to the page cache.
- asynchronous: the leader alone must have it; the longest log that is left leads. A leader that
  goes drops what only it had; Kafka with acks=1 drops twice, since it moves the leader back.

A replaced, empty replica neither votes nor acknowledges until it has copied the log, and copies it
from a replica than which no other log that still exists holds more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from advisor.protocol.schemes.rules import ASYNCHRONOUS, MAJORITY, SYNCHRONOUS
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import WELL, BrokerEvent, Strikes, table
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.log_levels import (
    GAP_CLOSED,
    GAP_LOST,
    gaps_between,
    newest,
    ranked,
)
from advisor.reliability.statespace.recovery_order import CERTAIN_LOSS, NO_LOSS, End, Outages

FLUSHED_MAJORITY = "flushed majority"
SCHEMES = (SYNCHRONOUS, MAJORITY, FLUSHED_MAJORITY, ASYNCHRONOUS)

_FALLS = (BrokerEvent.CRASH, BrokerEvent.ISOLATE, BrokerEvent.POWER, BrokerEvent.DESTROY)

Levels = tuple[int, ...]
"""Per slot how much of the acknowledged history its log holds: 0 all of it, 1 less, ..., EMPTY."""

Outage = tuple[Levels, Levels, fault_processes.Machines]
"""Nobody leads: the logs if power went late, if it went early, and what the machines suffer."""

GapMap = tuple[int, ...]
"""For each gap between levels its new number, GAP_LOST or GAP_CLOSED, as in `histories`."""


def is_running(condition: int) -> bool:
    """Whether a broker in a condition runs and is reachable."""
    return table().severity(condition) <= Strikes.RUNNING


class Quorums(NamedTuple):
    """A scheme's two rules.

    Attributes
    ----------
    rule : str
        The first in words.
    acknowledge : int
        How many replicas must have a record.
    elect : int
        Of how many that answer the longest log leads; 0: only a complete replica leads.
    tail : bool
        The leader may hold records that were acknowledged and that nobody else has yet.
    flushed : bool
        A record is on disk before it counts.
    """

    rule: str
    acknowledge: int
    elect: int
    tail: bool
    flushed: bool

    @classmethod
    def of(cls, name: str, replicas: int) -> Quorums:
        """The rules of a scheme over so many replicas."""
        quorum = replicas // 2 + 1
        majority = f"a majority, {quorum} of {replicas}"
        return {
            SYNCHRONOUS: cls(f"all {replicas} replicas", replicas, 0, False, False),
            MAJORITY: cls(majority, quorum, quorum, False, False),
            FLUSHED_MAJORITY: cls(f"{majority}, on disk", quorum, quorum, False, True),
            ASYNCHRONOUS: cls("the leader alone", 1, 1, True, False),
        }[name]


class View(NamedTuple):
    """A quiet partition: how complete its logs are, who takes part, and whether it serves.

    Attributes
    ----------
    levels : tuple of int
    members : frozenset of int
        Slots that new records reach.
    writable : bool
    lost : bool
        The new leader lacked acknowledged records.
    gap_map : tuple of int
        What became of the gaps between the levels that it was settled from.
    """

    levels: Levels
    members: frozenset[int]
    writable: bool
    lost: bool
    gap_map: GapMap

    @property
    def readable(self) -> bool:
        """Somebody leads."""
        return bool(self.members)


def settle(scheme: Quorums, own: tuple[int, ...], levels: Levels, copying: bool) -> View:
    """Elect, catch up and write, until the partition is quiet.

    Parameters
    ----------
    scheme : Quorums
    own : tuple of int
        What each slot's broker suffers, as in `faults`.
    levels : tuple of int
    copying : bool
        An empty replica needs time to copy.
    """
    held = list(levels)
    running = [slot for slot, condition in enumerate(own) if is_running(condition)]
    nothing_left = min(held) == red.EMPTY
    if nothing_left:
        # Nothing is left to wait for: whoever is there begins a new log.
        for slot in running:
            held[slot] = 0
    most = min(held)
    best = min((held[slot] for slot in running), default=red.EMPTY)
    if not copying and best == most:
        for slot in running:
            held[slot] = best if held[slot] == red.EMPTY else held[slot]
    voters = [slot for slot in running if held[slot] != red.EMPTY]
    leads = bool(voters) and (len(voters) >= scheme.elect if scheme.elect else best == most)
    lost = leads and best > most
    members: frozenset[int] = frozenset()
    if leads:
        held = [max(level, best) for level in held]
        if not copying:
            for slot in running:
                held[slot] = best if held[slot] == red.EMPTY else held[slot]
        well = [slot for slot in running if own[slot] == WELL]
        ready = frozenset(slot for slot in well if held[slot] != red.EMPTY)
        members = ready or frozenset([min(voters, key=lambda slot: held[slot])])
        for slot in members:
            held[slot] = best
    writable = leads and len(members) >= scheme.acknowledge
    if nothing_left and not writable:
        # The new log has no record yet that could be lost again.
        held = list(levels)
    # New records are in the members' logs and in no other.
    pushed = members if writable else None
    after, gap_map = ranked(tuple(held), levels, pushed)
    return View(after, members, writable, lost, gap_map)


class Step(NamedTuple):
    """What a change of the machines does to the partition.

    Attributes
    ----------
    view : View
        Afterwards.
    losses : float
        1 if acknowledged records were lost for certain.
    failed, moved : float
        Chances that the leader failed, or handed over. Every member is as likely to lead.
    total : bool
        No log is left.
    gap_map : tuple of int
        What became of the gaps there were.
    unflushed : int
        The gap that begins with what members lost with their power and others still hold;
        GAP_CLOSED if there is none, GAP_LOST if nobody holds it any more.
    """

    view: View
    losses: float = 0.0
    failed: float = 0.0
    moved: float = 0.0
    total: bool = False
    gap_map: GapMap = ()
    unflushed: int = GAP_CLOSED


def follow(
    scheme: Quorums,
    before: View,
    change: fault_processes.Change,
    copying: bool,
    page_cache: bool,
    early: bool = False,
) -> Step:
    """Let a partition live through one change of the machines.

    Parameters
    ----------
    scheme : Quorums
    before : View
    change : Change
    copying : bool
        An empty replica needs time to copy.
    page_cache : bool
        Records are acknowledged before they are on disk.
    early : bool
        Power goes before what was written last is on disk, though writing may have stopped.
    """
    levels, lost, total = before.levels, False, False
    # Each gap's new number, and last that of what some members' page caches lost.
    onto = (*range(gaps_between(levels)), GAP_CLOSED)
    struck: set[int] = set()
    stopped: set[int] = set()
    for event, slots in change.events:
        if event in _FALLS:
            struck |= before.members & set(slots)
        if event == BrokerEvent.STOP:
            stopped |= before.members & set(slots)
        if event == BrokerEvent.DESTROY:
            held = tuple(red.EMPTY if s in slots else level for s, level in enumerate(levels))
            lost |= min(levels) < min(held)
            total |= min(levels) < min(held) == red.EMPTY
            levels, step = ranked(held, levels, None)
            onto = _along(onto, step)
        if event == BrokerEvent.POWER and page_cache and (before.writable or early):
            # What was written last is in their page caches.
            holders = before.members if before.writable else newest(levels)
            spared = holders - set(slots)
            lost |= bool(holders) and not spared
            if spared and spared != holders:
                levels, step = ranked(levels, levels, spared)
                onto = (*_along(onto[:-1], step), 0)
    view = settle(scheme, change.own, levels, copying)
    onto = _along(onto, view.gap_map)
    size = max(len(before.members), 1)
    return Step(
        view=view,
        losses=float(lost or view.lost),
        failed=len(struck) / size,
        moved=len(stopped) / size,
        total=total,
        gap_map=onto[:-1],
        unflushed=onto[-1],
    )


def early_end(
    scheme: Quorums,
    before: View,
    change: fault_processes.Change,
    racks: tuple[int, ...],
    copying: bool,
    outages: Outages[Outage],
) -> int:
    """What power loses, right after writing has stopped, and would not lose later.

    Parameters
    ----------
    scheme : Quorums
    before : View
    change : Change
    racks : tuple of int
        Per slot: where its broker stands.
    copying : bool
        An empty replica needs time to copy.
    outages : Outages
        Those that were gone through before.

    Returns
    -------
    int
        CERTAIN_LOSS where no log has the newest records; one of ``outages`` where it depends on
        who is back first whether the next to lead lacks it; or NO_LOSS.
    """
    late = follow(scheme, before, change, copying, page_cache=True)
    if late.losses:
        return NO_LOSS
    soon = follow(scheme, before, change, copying, page_cache=True, early=True)
    if soon.losses:
        return CERTAIN_LOSS
    if soon.unflushed != 0 or soon.view.readable:
        return NO_LOSS

    def ways(key: Outage) -> Iterator[tuple[str, End[Outage]]]:
        for end in fault_processes.ends(key[2]):
            yield end.rate, _after(scheme, key, end.own, copying)

    machines = fault_processes.Machines(change.own, racks)
    return outages.end((late.view.levels, soon.view.levels, machines), ways)


def _after(scheme: Quorums, before: Outage, own: fault_processes.Own, copying: bool) -> End[Outage]:
    """How an outage goes on, or ends, when somebody is back."""
    late, soon = (settle(scheme, own, levels, copying) for levels in before[:2])
    if soon.gap_map[0] == GAP_LOST:
        # What is lost in any case is counted when it happens.
        return NO_LOSS if late.lost else CERTAIN_LOSS
    if soon.gap_map[0] != 0 or soon.readable:
        return NO_LOSS
    return ((late.levels, soon.levels, fault_processes.Machines(own, before[2].racks)),)


def _along(onto: GapMap, step: GapMap) -> GapMap:
    """Follow gaps one step further; those that ended stay ended."""
    return tuple(step[gap] if gap >= 0 else gap for gap in onto)
