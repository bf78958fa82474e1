"""Other ways to replicate a log, under the same card and the same faults as Kafka's ISR.

Each scheme is a rule for who must have a record before it is acknowledged, and a rule for who may
lead (:mod:`advisor.protocol.schemes`). Brokers and racks fail and return as for Kafka
(:mod:`advisor.reliability.faults`), and here too everybody has caught up before the next fault.

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

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy import sparse

from advisor.errors import NotComputedError
from advisor.protocol.config import Config
from advisor.protocol.schemes import ASYNCHRONOUS, MAJORITY, SYNCHRONOUS
from advisor.reliability import faults, rates, solve
from advisor.reliability import reduction as red
from advisor.reliability.evaluate import evaluate
from advisor.reliability.measures import setting_for
from advisor.reliability.model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.placement import Brokers, place
from advisor.reliability.workload import Workload

FLUSHED_MAJORITY = "flushed majority"
SCHEMES = (SYNCHRONOUS, MAJORITY, FLUSHED_MAJORITY, ASYNCHRONOUS)
MOST_REPLICAS = 3
"""Beyond that there are too many states to go through them all."""

_RUNNING = (faults.WELL, faults.LAGGING)
_FALLS = (red.CRASH, red.ISOLATE, red.POWER, red.DESTROY)

Levels = tuple[int, ...]
"""Per slot how much of the acknowledged history its log holds: 0 all of it, 1 less, ..., EMPTY."""


@dataclass(frozen=True)
class SchemeRow:
    """What one scheme loses and refuses.

    Attributes
    ----------
    name : str
        "isr" for the configuration that was asked about.
    rule : str
        Who must have a record before it is acknowledged, in words.
    loss_events_per_year : float
        Over all partitions.
    write_unavailability, read_unavailability : float
        Fractions of time, mean over partitions.
    """

    name: str
    rule: str
    loss_events_per_year: float
    write_unavailability: float
    read_unavailability: float


def compare_schemes(
    cluster: Brokers, config: Config, model: FailureModel, load: Workload | None = None
) -> tuple[SchemeRow, ...]:
    """Set a configuration beside the other schemes with as many replicas on the same brokers.

    Raises
    ------
    NotComputedError
        More than three replicas, or what `evaluate` does not compute.
    """
    load = load or Workload()
    kafka = evaluate(cluster, config, model, load)
    words = f"the in-sync replicas, at least {config.effective_min_insync_replicas}"
    rule = words if config.acks == "all" else "the leader alone"
    own = (kafka.loss_events_per_year, kafka.write_unavailability, kafka.read_unavailability)
    others = (scheme_row(name, cluster, config, model, load) for name in SCHEMES)
    return (SchemeRow("isr", rule, *own), *others)


def scheme_row(
    name: str, cluster: Brokers, config: Config, model: FailureModel, load: Workload
) -> SchemeRow:
    """What one scheme loses and refuses, with the replicas placed as Kafka would place them."""
    assert config.replication_factor is not None
    if config.replication_factor > MOST_REPLICAS:
        raise NotComputedError(
            f"replication_factor={config.replication_factor}: other schemes are compared for up "
            f"to {MOST_REPLICAS} replicas"
        )
    scheme = Quorums.of(name, config.replication_factor)
    where = place(cluster, config, load.partitions)
    counts: Counter[tuple[int, ...]] = Counter()
    for replicas, count in where.sets:
        counts[where.pattern(replicas, ordered=False)] += count
    found = {
        pattern: _measures(scheme, pattern, config, model, load, where.brokers)
        for pattern in counts
    }
    losses, refused, unread = (
        math.fsum(found[pattern][column] * count for pattern, count in counts.items())
        for column in range(3)
    )
    partitions = counts.total()
    return SchemeRow(name, scheme.rule, losses, refused / partitions, unread / partitions)


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
    running = [slot for slot, condition in enumerate(own) if condition in _RUNNING]
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


@dataclass
class _Chain:
    """States and transitions as they are found."""

    numbers: dict[tuple[tuple[int, ...], Levels], int]
    moves: list[tuple[int, int, str, float, Step]]
    views: list[View]


def _explore(scheme: Quorums, setting: faults.Setting, copying: bool, page_cache: bool) -> _Chain:
    well = faults.all_well(setting).own
    first = settle(scheme, well, (0,) * len(well), copying)
    found = _Chain({(well, first.levels): 0}, [], [first])
    for own, levels in _growing(found.numbers):
        number = found.numbers[own, levels]
        for name, weight, step, machines in _moves(
            scheme, setting, own, found.views[number], copying, page_cache
        ):
            key = _alike(setting.racks, machines, step.view.levels)
            if key not in found.numbers:
                found.numbers[key] = len(found.views)
                found.views.append(settle(scheme, *key, copying))
            found.moves.append((number, found.numbers[key], name, weight, step))
    return found


def _growing(
    numbers: dict[tuple[tuple[int, ...], Levels], int],
) -> Iterator[tuple[tuple[int, ...], Levels]]:
    """Yield the keys, those too that are added meanwhile."""
    done = 0
    while done < len(numbers):
        for key in list(numbers)[done:]:
            done += 1
            yield key


def _moves(
    scheme: Quorums,
    setting: faults.Setting,
    own: tuple[int, ...],
    before: View,
    copying: bool,
    page_cache: bool,
) -> Iterator[tuple[str, float, Step, tuple[int, ...]]]:
    """Yield rate name, weight, step and machines of everything that can happen next."""
    for change in faults.changes(faults.Machines(own, setting.racks), setting):
        weight = 1.0
        if change.rate == "broker.lag":
            (slot,) = change.events[0][1]
            size = len(before.members)
            # A leader does not lag behind itself, and every member is as likely to lead.
            weight = (size - 1) / size if slot in before.members else 1.0
        if weight:
            step = follow(scheme, before, change, copying, page_cache)
            yield change.rate, weight, step, change.machines.own
    most = min(before.levels)
    sources = [s for s, c in enumerate(own) if c in _RUNNING and before.levels[s] == most]
    for slot, level in enumerate(before.levels):
        if level == red.EMPTY and own[slot] in _RUNNING and sources and most != red.EMPTY:
            held = tuple(most if s == slot else value for s, value in enumerate(before.levels))
            yield "copy", 1.0, Step(settle(scheme, own, held, copying), 0.0, 0.0, 0.0), own


def _alike(
    racks: tuple[int, ...], own: tuple[int, ...], levels: Levels
) -> tuple[tuple[int, ...], Levels]:
    """One of the states that differ only in the names of brokers and of racks of one size."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for rack, condition, level in zip(racks, own, levels, strict=True):
        groups.setdefault(rack, []).append((condition, level))
    # The fullest rack comes first in a pattern; those of one size may change places.
    ordered = sorted((sorted(group) for group in groups.values()), key=lambda g: (-len(g), g))
    slots = [slot for group in ordered for slot in group]
    return tuple(condition for condition, _ in slots), tuple(level for _, level in slots)


_explored = lru_cache(maxsize=64)(_explore)


def _measures(
    scheme: Quorums,
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
) -> tuple[float, float, float]:
    """Loss events a year, and the shares of time without writes and without reads."""
    copying = rates.copy_hours(config, model, load, brokers) > 0
    page_cache = model.get("flush.seconds", 0.0) > 0 and not scheme.flushed
    found = _explored(scheme, setting_for(pattern, model), copying, page_cache)
    size = len(found.views)
    per_hour = {
        name: rates.rate_per_hour(name, config, model, load, brokers)
        for name in {move[2] for move in found.moves}
    }
    source = np.array([move[0] for move in found.moves])
    target = np.array([move[1] for move in found.moves])
    rate = np.array([per_hour[name] * weight for _, _, name, weight, _ in found.moves])
    moving = (source != target) & (rate > 0)
    matrix = sparse.csr_array((rate[moving], (source[moving], target[moving])), shape=(size, size))
    share = solve.stationary(solve.Flow(matrix, np.zeros(size)))
    outage = rates.failover_hours(model, load, brokers)
    tail = load.records_per_second / load.partitions * load.replication_delay_ms / 1000.0
    some = -math.expm1(-tail) if scheme.tail else 0.0
    losses: list[float] = []
    refused = [float(share[n]) for n, view in enumerate(found.views) if not view.writable]
    unread = [float(share[n]) for n, view in enumerate(found.views) if not view.readable]
    for (number, _, _, _, step), amount in zip(found.moves, rate, strict=True):
        flux, before = float(share[number] * amount), found.views[number]
        # What only the leader had is lost once another leads.
        going = min(step.failed + step.moved, 1.0)
        dropped = some * going if before.writable and step.view.readable else 0.0
        losses.append(flux * (step.losses + (1.0 - step.losses) * dropped))
        change = flux * (step.failed * outage[0] + step.moved * outage[1])
        refused.append(change * (before.writable and step.view.writable))
        unread.append(change * (before.readable and step.view.readable))
    return math.fsum(losses) * HOURS_PER_YEAR, math.fsum(refused), math.fsum(unread)
