"""Other ways to replicate a log, as rules: who must have a record, and who may lead.

Each scheme is a rule for who must have a record before it is acknowledged, and a rule for who may
lead (:mod:`advisor.protocol.schemes`). As with Kafka, everybody has caught up before the next
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

from typing import NamedTuple

from advisor.protocol.schemes import ASYNCHRONOUS, MAJORITY, SYNCHRONOUS
from advisor.reliability import faults
from advisor.reliability import reduction as red

FLUSHED_MAJORITY = "flushed majority"
SCHEMES = (SYNCHRONOUS, MAJORITY, FLUSHED_MAJORITY, ASYNCHRONOUS)

RUNNING = (faults.WELL, faults.LAGGING)
_FALLS = (red.CRASH, red.ISOLATE, red.POWER, red.DESTROY)

Levels = tuple[int, ...]
"""Per slot how much of the acknowledged history its log holds: 0 all of it, 1 less, ..., EMPTY."""


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
    """A quiet partition: how complete its logs are, who takes part, and whether it serves."""

    levels: Levels
    members: frozenset[int]
    writable: bool
    lost: bool

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
    running = [slot for slot, condition in enumerate(own) if condition in RUNNING]
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
        well = [slot for slot in running if own[slot] == faults.WELL]
        ready = frozenset(slot for slot in well if held[slot] != red.EMPTY)
        members = ready or frozenset([min(voters, key=lambda slot: held[slot])])
        for slot in members:
            held[slot] = best
    writable = leads and len(members) >= scheme.acknowledge
    if writable:
        held = _written(held, members)
    elif nothing_left:
        # The new log has no record yet that could be lost again.
        held = list(levels)
    return View(_ranked(held), members, writable, lost)


def _written(held: list[int], members: frozenset[int]) -> list[int]:
    """New records are in the members' logs and in no other."""
    return [-1 if slot in members else level for slot, level in enumerate(held)]


def _ranked(held: list[int]) -> Levels:
    finite = sorted({level for level in held if level != red.EMPTY})
    return tuple(red.EMPTY if level == red.EMPTY else finite.index(level) for level in held)


class Step(NamedTuple):
    """What a change of the machines does to the partition."""

    view: View
    losses: float
    failed: float
    moved: float


def follow(
    scheme: Quorums, before: View, change: faults.Change, copying: bool, page_cache: bool
) -> Step:
    """Let a partition live through one change of the machines.

    Returns
    -------
    Step
        The partition afterwards; whether acknowledged records were lost for certain; and the
        chances that the leader failed, or handed over. Every member is as likely to lead.
    """
    held = list(before.levels)
    lost = False
    struck: set[int] = set()
    stopped: set[int] = set()
    for event, slots in change.events:
        if event in _FALLS:
            struck |= before.members & set(slots)
        if event == red.STOP:
            stopped |= before.members & set(slots)
        if event == red.DESTROY:
            most = min(held)
            held = [red.EMPTY if slot in slots else level for slot, level in enumerate(held)]
            lost |= most != red.EMPTY and min(held) > most
        if event == red.POWER and page_cache and before.writable:
            spared = before.members - set(slots)
            lost |= not spared
            if spared and spared != before.members:
                held = _written(held, spared)
    after = settle(scheme, change.machines.own, _ranked(held), copying)
    size = max(len(before.members), 1)
    certain = float(lost or after.lost)
    return Step(after, certain, len(struck) / size, len(stopped) / size)
