"""Histories of clusters whose truth is known, to judge what is read from their metrics.

In: a cluster, and acts with their times (a crash, a rolling restart, Prometheus down, ...). Out:
what brokers and controllers would report at every moment, and the truth: outages with their
mechanisms and times, refused minutes, and when nobody watched. `metric_series.py` scrapes it.

The timings and the order of the signs are those of brokers that were watched under injected faults.
Nothing here is taken from the reader that it judges.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Bools = NDArray[np.bool_]

SESSION_S = 9.0
LEADER_BALANCE_S = 300.0
ACTIVE, LEAVING, FENCED = 30, 20, 10
"""Values of BrokerRegistrationState."""


class Kind(Enum):
    """A mechanism, by its name in the cards."""

    CRASH = "broker.crash"
    HOST = "broker.power"
    RESTART = "broker.restart"
    LAG = "broker.lag"
    HALF_DEAD = "broker.gray"
    TOGETHER = "cluster.crash"
    RACK = "rack.power"
    QUORUM = "cluster.controller"
    DISK_FULL = "cluster.disk_full"
    ROLLOUT = "cluster.rollout"
    FENCED = "broker fenced"
    """No card has it: a broker that froze or was cut off, and whose process lived."""


@dataclass(frozen=True)
class World:
    """A cluster; replicas are spread over the racks, and brokers are numbered from 1.

    Attributes
    ----------
    brokers, racks, controllers, partitions, replicas, min_isr : int
    version : str
        "3.9" has no states of registration; "4.3" has them.
    pods : bool
        Whether a broker that is restarted comes back with another address.
    start : float
        Seconds since 1970.
    """

    brokers: int = 6
    racks: int = 3
    controllers: int = 3
    partitions: int = 48
    replicas: int = 3
    min_isr: int = 2
    version: str = "4.3"
    pods: bool = False
    start: float = 1_750_000_000.0

    def rack_of(self, broker: int) -> int:
        """Return the rack of a broker, from 0."""
        return (broker - 1) % self.racks

    def placement(self) -> Counts:
        """Brokers of each partition, the preferred leader first; (partitions, replicas).

        Neighbours are of different racks, and leaders are shared evenly.
        """
        first = np.arange(self.partitions)[:, None]
        rounds = first // self.brokers % (self.brokers // self.racks if self.racks > 2 else 1)
        gap = np.arange(self.replicas)[None, :] * (1 + rounds * self.racks)
        return (first + gap) % self.brokers + 1


@dataclass(frozen=True)
class Act:
    """Something that is done to the cluster, or to those who watch it.

    Attributes
    ----------
    what : Kind or str
        A kind; or "hard end", "overlap", "rolling", "cut off", "prometheus down",
        "target missing", "controller restart".
    at : float
        Seconds after the start.
    brokers : tuple of int
        Who is struck; of controllers, their numbers from 1.
    seconds : float
        How long it lasts.
    dies : bool
        Whether a half-dead broker ends by its death.
    """

    what: Kind | str
    at: float
    brokers: tuple[int, ...] = ()
    seconds: float = 60.0
    dies: bool = False


@dataclass(frozen=True)
class TrueOutage:
    """An outage as it really was.

    Attributes
    ----------
    kind : Kind
    brokers : tuple of int
    start, end : float
        Seconds since 1970. From the death, the order to stop, or the moment out of the ISRs, until
        the broker serves again; of the quorum, without a leader.
    hard : bool
        Of a restart: whether it ended hard.
    overlaps : bool
        Of a restart: whether another one was on when it began.
    dies : bool
    """

    kind: Kind
    brokers: tuple[int, ...]
    start: float
    end: float
    hard: bool = False
    overlaps: bool = False
    dies: bool = False


@dataclass(frozen=True)
class Gap:
    """A time in which a target, or with None everything, was not scraped though it was well."""

    target: str | None
    start: float
    end: float


@dataclass
class Process:
    """A life of a broker's or controller's process, in seconds since 1970.

    Attributes
    ----------
    start, end : float
    answers : float
        When its exporter first answers.
    beans : float
        When Kafka's beans are there.
    stops : float
        When they are taken away, by the order to stop.
    """

    start: float
    answers: float
    beans: float
    stops: float = np.inf
    end: float = np.inf


@dataclass(frozen=True)
class Changes:
    """Piecewise constant values: from each time on, a row of them."""

    times: Array
    rows: NDArray[np.float64]

    def at(self, times: Array) -> NDArray[np.float64]:
        """Return the rows that hold at some times."""
        return self.rows[np.searchsorted(self.times, times, side="right") - 1]


BROKER_COLUMNS = (
    "leaders",
    "under_replicated",
    "under_min_isr",
    "at_min_isr",
    "shrinks",
    "expands",
    "failing",
    "state",
)
CLUSTER_COLUMNS = ("offline", "fenced", "leaving", "refused")


@dataclass
class History:
    """What happened, and what was there to be seen.

    Attributes
    ----------
    world : World
    end : float
    outages : list of TrueOutage
        By their start.
    gaps : list of Gap
    processes : dict of str to list of Process
        By target: "broker-1", "controller-1".
    broker_changes : dict of str to Changes
        By column: a value for each broker.
    cluster_changes : Changes
        A value for each of `CLUSTER_COLUMNS`.
    quorum_lost : list of (float, float)
    active_controllers : list of (float, int)
        Who is the active one from when on; 0 is nobody.
    disks_full : list of (int, float, float)
        Broker, and from when to when its disk has no space.
    versions : list of (float, int, str)
        From when on a broker has which version.
    frozen : list of Gap
        When the process of a broker stood still.
    """

    world: World
    end: float = 0.0
    outages: list[TrueOutage] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    processes: dict[str, list[Process]] = field(default_factory=dict)
    broker_changes: dict[str, Changes] = field(default_factory=dict)
    cluster_changes: Changes = field(default_factory=lambda: Changes(np.zeros(0), np.zeros(0)))
    quorum_lost: list[tuple[float, float]] = field(default_factory=list)
    active_controllers: list[tuple[float, int]] = field(default_factory=list)
    disks_full: list[tuple[int, float, float]] = field(default_factory=list)
    versions: list[tuple[float, int, str]] = field(default_factory=list)
    frozen: list[Gap] = field(default_factory=list)

    def of(self, kind: Kind) -> list[TrueOutage]:
        """Return the outages of a kind."""
        return [outage for outage in self.outages if outage.kind is kind]

    @property
    def refused_partition_minutes(self) -> float:
        """Minutes in which acks=all was refused or there was no leader, over all partitions."""
        return float(self._refused() @ self._lengths()) / 60.0

    @property
    def refused_minutes(self) -> float:
        """Minutes in which at least one partition refused."""
        return float((self._refused() > 0) @ self._lengths()) / 60.0

    def _refused(self) -> Array:
        return self.cluster_changes.rows[:, CLUSTER_COLUMNS.index("refused")]

    def _lengths(self) -> Array:
        lengths: Array = np.diff(np.append(self.cluster_changes.times, self.end))
        return lengths


def happened(world: World, acts: Sequence[Act], seed: int, seconds: float) -> History:
    """Let some acts happen, one after the other or at once, and return the history."""
    cluster = _Cluster(world, np.random.default_rng(seed), seconds)
    for act in sorted(acts, key=lambda a: a.at):
        cluster.plan(act)
    return cluster.run()


class _Cluster:
    """The state of all partitions, changed at moments from a queue."""

    def __init__(self, world: World, rng: np.random.Generator, seconds: float) -> None:
        self.world, self.rng = world, rng
        self.history = History(world, world.start + seconds)
        self.places = world.placement()
        self.isr = np.ones(self.places.shape, dtype=bool)
        self.leader = self.places[:, 0].copy()
        size = world.brokers + 1
        self.serving = np.ones(size, dtype=bool)
        self.caught_up = np.ones((size, size), dtype=bool)
        """Whether a broker follows another one closely enough; [follower, leader]."""
        self.choking = np.zeros(size, dtype=bool)
        self.state = np.full(size, ACTIVE)
        self.shrinks, self.expands = np.zeros(size), np.zeros(size)
        self.queue: list[tuple[float, int, Callable[[], None]]] = []
        self.order = itertools.count()
        self.snapshots: list[Array] = []
        self.totals: list[Array] = []
        self.times: list[float] = []
        self.balancing = False
        self.phase = rng.uniform(0.0, LEADER_BALANCE_S)
        self.busy = np.zeros(size)
        """Until when a planned act keeps a broker from serving."""
        for broker in range(1, size):
            self.history.processes[f"broker-{broker}"] = [self._old_process()]
            self.history.versions.append((world.start - 1e6, broker, world.version))
        for controller in range(1, world.controllers + 1):
            self.history.processes[f"controller-{controller}"] = [self._old_process()]
        self.history.active_controllers.append((world.start - 1e6, 1))

    def _old_process(self) -> Process:
        start = self.world.start - self.rng.uniform(1e5, 1e6)
        return Process(start, start + 2.0, start + 5.0)

    def run(self) -> History:
        self._record(self.world.start - 1.0)
        while self.queue and self.queue[0][0] < self.history.end:
            time, _, change = heapq.heappop(self.queue)
            change()
            self._settle(time)
            self._record(time)
        rows = np.array(self.snapshots)
        times = np.array(self.times)
        self.history.broker_changes = {
            name: Changes(times, rows[:, place]) for place, name in enumerate(BROKER_COLUMNS)
        }
        self.history.cluster_changes = Changes(times, np.array(self.totals))
        self.history.outages.sort(key=lambda outage: outage.start)
        return self.history

    def later(self, time: float, change: Callable[[], None]) -> None:
        heapq.heappush(self.queue, (time, next(self.order), change))

    def between(self, low: float, high: float) -> float:
        return float(self.rng.uniform(low, high))

    # What partitions do

    def _leave(self, broker: int) -> None:
        """Take a broker out of the ISRs and from the leaders, as the controller does."""
        self.serving[broker] = False
        holds = self.places == broker
        alone = self.isr.sum(axis=1) == 1
        self.isr &= ~(holds & ~alone[:, None])
        self._elect(np.flatnonzero(self.leader == broker))

    def _elect(self, partitions: Counts) -> None:
        """Give partitions the first replica in their ISR that serves as leader, or none."""
        places = self.places[partitions]
        able = self.isr[partitions] & self.serving[places]
        first = places[np.arange(len(partitions)), able.argmax(axis=1)]
        self.leader[partitions] = np.where(able.any(axis=1), first, 0)

    def _settle(self, time: float) -> None:
        """Let replicas that have caught up into the ISRs; leaders take them."""
        self._elect(np.flatnonzero(self.leader == 0))
        leader = self.leader[:, None]
        joins = ~self.isr & self.serving[self.places] & self.caught_up[self.places, leader]
        joins &= (leader > 0) & ~self.choking[leader]
        if joins.any():
            self.expands += self._by_leader(joins.sum(axis=1))
            self.isr |= joins
        if not self.balancing and (self.leader != self.places[:, 0]).any():
            self.balancing = True
            ticks = np.floor((time - self.phase) / LEADER_BALANCE_S) + 1.0
            self.later(float(ticks * LEADER_BALANCE_S + self.phase), self._balance)

    def _balance(self) -> None:
        """Give the leadership back to the preferred replicas that are in their ISR."""
        self.balancing = False
        preferred = self.places[:, 0]
        able = self.isr[:, 0] & self.serving[preferred] & (self.leader > 0)
        able &= ~self.choking[self.leader]
        self.leader = np.where(able, preferred, self.leader)

    def _shrink(self, follower: int, leader: int) -> None:
        """Let a leader take a follower out of its ISRs."""
        gone = (self.places == follower) & self.isr & (self.leader == leader)[:, None]
        self.caught_up[follower, leader] = False
        self.isr &= ~gone
        self.shrinks[leader] += gone.sum()

    def _choke(self, broker: int) -> None:
        """Let a leader take all of its followers out of its ISRs."""
        self.choking[broker] = True
        gone = (self.places != broker) & self.isr & (self.leader == broker)[:, None]
        self.isr &= ~gone
        self.shrinks[broker] += (gone.any(axis=1)).sum()

    def _by_leader(self, numbers: Counts | Bools) -> Array:
        sums: Array = np.bincount(self.leader, numbers, len(self.serving)).astype(float)
        return sums

    def _record(self, time: float) -> None:
        size, least = self.isr.sum(axis=1), self.world.min_isr
        led = self.leader > 0
        snapshot = [
            self._by_leader(led),
            self._by_leader(led & (size < self.world.replicas)),
            self._by_leader(led & (size < least)),
            self._by_leader(led & (size == least)),
            self.shrinks,
            self.expands,
            self.choking * (self._by_leader(led) > 0),
            self.state,
        ]
        refused = (~led | (size < least)).sum()
        fenced, leaving = (self.state[1:] == FENCED).sum(), (self.state[1:] == LEAVING).sum()
        self.times.append(time)
        self.snapshots.append(np.array(snapshot, dtype=float))
        self.totals.append(np.array([(~led).sum(), fenced, leaving, refused], dtype=float))

    # What happens to a broker

    def _fence(self, broker: int) -> None:
        self.state[broker] = FENCED
        self._leave(broker)

    def _dies(self, broker: int, at: float, back: float, hardness_s: float) -> float:
        """Kill a process at a moment and start it again; return when the broker serves again."""
        self.history.processes[f"broker-{broker}"][-1].end = at
        fenced = at + self.between(SESSION_S - 2.0, SESSION_S + 0.3)
        return self._returns(broker, fenced, back, hardness_s)

    def _returns(self, broker: int, fenced: float, back: float, recovery_s: float) -> float:
        """Start a process; who is not fenced yet is so when it registers."""
        process = self._started(f"broker-{broker}", back)
        registered = process.beans + self.between(0.3, 2.0)
        self.later(min(fenced, registered), lambda: self._fence(broker))
        serves = registered + self.between(0.5, 3.0) + recovery_s
        catches_up = serves + self.between(0.5, 8.0)

        def unfence() -> None:
            self.serving[broker], self.state[broker] = True, ACTIVE
            self.caught_up[broker, 1:] = False
            self.choking[broker] = False

        def joins() -> None:
            self.caught_up[broker, :] = True

        self.later(serves, unfence)
        self.later(catches_up, joins)
        self.busy[broker] = catches_up
        return serves

    def _started(self, target: str, start: float) -> Process:
        answers = start + self.between(0.8, 2.5)
        process = Process(start, answers, answers + self.between(1.0, 3.0))
        self.history.processes[target].append(process)
        return process

    def _stops(self, broker: int, at: float, seconds: float, hard: bool) -> tuple[float, float]:
        """Restart a broker; return when it serves again, and when its process ended."""
        process = self.history.processes[f"broker-{broker}"][-1]
        process.stops = at + self.between(0.02, 0.3)
        left = at + self.between(0.4, 1.5)

        def leaving() -> None:
            self.state[broker] = LEAVING

        self.later(at + self.between(0.1, 0.4), leaving)
        self.later(left, lambda: self._leave(broker))
        if hard:
            process.end = left + self.between(0.1, 2.0)
            fenced = process.end + self.between(SESSION_S - 2.0, SESSION_S)
        else:
            process.end = left + self.between(1.5, 5.0)
            fenced = left + self.between(0.2, 1.0)
        back = process.end + seconds
        recovery_s = self.between(5.0, 60.0) if hard else 0.0
        return self._returns(broker, fenced, back, recovery_s), process.end

    # Acts

    def plan(self, act: Act) -> None:
        at = self.world.start + act.at
        what = act.what
        if what in (Kind.CRASH, Kind.HOST):
            self._crash(Kind(what), act, at)
        elif what in (Kind.RESTART, "hard end", "overlap", "rolling"):
            self._restarts(act, at)
        elif what is Kind.LAG:
            self._lag(act, at)
        elif what is Kind.HALF_DEAD:
            self._half_dead(act, at)
        elif what in (Kind.TOGETHER, Kind.RACK, Kind.DISK_FULL):
            self._several(Kind(what), act, at)
        elif what is Kind.ROLLOUT:
            self._rollout(act, at)
        elif what is Kind.QUORUM:
            self._quorum(act, at)
        elif what in (Kind.FENCED, "cut off"):
            self._away(act, at)
        elif what == "prometheus down":
            self.history.gaps.append(Gap(None, at, at + act.seconds))
        elif what == "target missing":
            (broker,) = act.brokers
            self.history.gaps.append(Gap(f"broker-{broker}", at, at + act.seconds))
        elif what == "controller restart":
            self._restarts_controller(act, at)
        else:
            raise ValueError(what)

    def _add(
        self, kind: Kind, brokers: Sequence[int], start: float, end: float, **how: bool
    ) -> None:
        self.history.outages.append(TrueOutage(kind, tuple(brokers), start, end, **how))

    def _crash(self, kind: Kind, act: Act, at: float) -> None:
        (broker,) = act.brokers
        recovery_s = self.between(1.0, 20.0)
        end = self._dies(broker, at, at + act.seconds, recovery_s)
        self._add(kind, act.brokers, at, end)

    def _restarts(self, act: Act, at: float) -> None:
        before = -np.inf
        for place, broker in enumerate(act.brokers):
            overlaps = act.what == "overlap" and place > 0
            end, _ = self._stops(broker, at, act.seconds, act.what == "hard end")
            how = {"hard": act.what == "hard end", "overlaps": overlaps and at < before}
            self._add(Kind.RESTART, [broker], at, end, **how)
            before = end
            if act.what == "overlap":
                # The next one begins while this one is still away.
                at += self.between(0.2, 0.8) * (end - at)
            else:
                at = self.busy[broker] + self.between(20.0, 60.0)

    def _lag(self, act: Act, at: float) -> None:
        (broker,) = act.brokers
        others = [other for other in range(1, self.world.brokers + 1) if other != broker]
        last = at + act.seconds
        firsts = [at + self.between(0.0, 6.0) for _ in others]
        for other, first in zip(others, firsts, strict=True):
            self.later(first, partial(self._shrink, broker, other))
            self.later(last + self.between(0.0, 2.0), partial(self._follows, broker, other))
        self._add(Kind.LAG, act.brokers, min(firsts), last)

    def _follows(self, broker: int, leader: int) -> None:
        self.caught_up[broker, leader] = True

    def _half_dead(self, act: Act, at: float) -> None:
        (broker,) = act.brokers
        shrinks = at + self.between(15.0, 40.0)
        last = shrinks + act.seconds
        self.later(shrinks, lambda: self._choke(broker))
        if act.dies:
            end = self._dies(
                broker, last, last + self.between(20.0, 120.0), self.between(1.0, 20.0)
            )
        else:
            end = last + self.between(0.5, 4.0)

            def recovers() -> None:
                self.choking[broker] = False

            self.later(end, recovers)
        self._add(Kind.HALF_DEAD, act.brokers, shrinks, end, dies=act.dies)

    def _several(self, kind: Kind, act: Act, at: float) -> None:
        apart_s = {Kind.RACK: 0.4, Kind.TOGETHER: 1.5, Kind.DISK_FULL: 20.0}[kind]
        ends = []
        for place, broker in enumerate(act.brokers):
            dead = at + (self.between(0.0, apart_s) if place else 0.0)
            back = at + act.seconds + self.between(0.0, 5.0)
            ends.append(self._dies(broker, dead, back, self.between(1.0, 20.0)))
            if kind is Kind.DISK_FULL:
                self.history.disks_full.append((broker, dead - 1.0, back - 10.0))
        self._add(kind, act.brokers, at, max(ends))

    def _rollout(self, act: Act, at: float) -> None:
        """Restart brokers with a new version, which then die together until the old is back."""
        new = {"3.9": "3.9.2", "4.3": "4.3.1"}.get(self.world.version, "5.0")
        for broker in act.brokers:
            end, ended = self._stops(broker, at, 20.0, False)
            self.history.versions.append((ended, broker, new))
            self._add(Kind.RESTART, [broker], at, end)
            at = self.busy[broker] + self.between(20.0, 60.0)
        ends = []
        for broker in act.brokers:
            dead = at + self.between(0.0, 3.0)
            back = at + act.seconds + self.between(0.0, 5.0)
            ends.append(self._dies(broker, dead, back, self.between(1.0, 20.0)))
            self.history.versions.append((back, broker, self.world.version))
        self._add(Kind.ROLLOUT, act.brokers, at, max(ends))

    def _quorum(self, act: Act, at: float) -> None:
        """Kill all controllers but one, or with none named cut them off from each other."""
        back = at + act.seconds
        elected = back + self.between(1.0, 4.0)
        if act.brokers:
            for controller in act.brokers:
                self._controller(controller, at, back + self.between(0.0, 1.0))
            elected += 6.0
        self.history.quorum_lost.append((at, elected))
        self.history.active_controllers.append((at, 0))
        self._elect_controller(elected, set())
        self._add(Kind.QUORUM, (), at, elected)

    def _away(self, act: Act, at: float) -> None:
        """Freeze a broker's process, or cut it off from all but Prometheus."""
        (broker,) = act.brokers
        back = at + act.seconds
        if act.what is Kind.FENCED:
            self.history.frozen.append(Gap(f"broker-{broker}", at, back))
        fenced = at + self.between(SESSION_S - 2.0, SESSION_S + 0.3)
        serves = back + self.between(0.1, 1.0)

        def unfence() -> None:
            self.serving[broker], self.state[broker] = True, ACTIVE
            self.caught_up[broker, 1:] = False

        def joins() -> None:
            self.caught_up[broker, :] = True

        self.later(fenced, lambda: self._fence(broker))
        self.later(serves, unfence)
        self.later(serves + self.between(0.1, 3.0), joins)
        self._add(Kind.FENCED, act.brokers, fenced, serves)

    def _restarts_controller(self, act: Act, at: float) -> None:
        (controller,) = act.brokers
        self._controller(controller, at, at + act.seconds)
        if self.history.active_controllers[-1][1] == controller:
            self._elect_controller(at + self.between(0.5, 2.0), {controller})

    def _controller(self, controller: int, at: float, back: float) -> None:
        process = self.history.processes[f"controller-{controller}"][-1]
        process.end = process.stops = at
        self._started(f"controller-{controller}", back)

    def _elect_controller(self, at: float, without: set[int]) -> None:
        candidates = set(range(1, self.world.controllers + 1)) - without
        chosen = int(self.rng.choice(sorted(candidates)))
        self.history.active_controllers.append((at, chosen))


FENCES: tuple[Kind | str, ...] = (Kind.FENCED, "cut off")
OF_CARDS = tuple(kind for kind in Kind if kind is not Kind.FENCED)
SCRIPTS: tuple[Kind | str, ...] = (*OF_CARDS, "hard end", "overlap", "rolling")
WATCHERS: tuple[str, ...] = ("prometheus down", "target missing", "controller restart")


def busy_acts(
    world: World, seed: int, each: int, what: Sequence[Kind | str] = (*SCRIPTS, *WATCHERS)
) -> tuple[list[Act], float]:
    """Return so many acts of each kind in random order, far apart; and how long that takes."""
    rng = np.random.default_rng(seed)
    chosen: list[Kind | str] = [kind for kind in what for _ in range(each)]
    acts, at = [], 1_200.0
    for place in rng.permutation(len(chosen)):
        act = _drawn(world, rng, chosen[place], at)
        acts.append(act)
        at += _lasts_s(act) + float(rng.uniform(420.0, 900.0))
    return acts, at + 600.0


def _lasts_s(act: Act) -> float:
    """An upper limit of how long an act goes on."""
    if act.what in ("rolling", "overlap", Kind.ROLLOUT):
        return act.seconds + len(act.brokers) * (act.seconds + 150.0)
    return act.seconds + 280.0


def _drawn(world: World, rng: np.random.Generator, what: Kind | str, at: float) -> Act:
    """Draw whom an act strikes and for how long."""
    brokers = [int(broker) for broker in rng.permutation(world.brokers) + 1]
    seconds = float(np.exp(rng.uniform(*np.log([45.0, 600.0]))))
    dies = False
    if what in (Kind.RESTART, "hard end", "overlap", "rolling"):
        seconds = float(rng.uniform(8.0, 90.0))
        number = 2 if what == "overlap" else 1
        struck = sorted(brokers) if what == "rolling" else brokers[:number]
    elif what is Kind.HOST:
        struck, seconds = brokers[:1], float(rng.uniform(180.0, 1_500.0))
    elif what in (Kind.TOGETHER, Kind.DISK_FULL):
        struck = _of_several_racks(world, brokers, int(rng.integers(2, world.brokers)))
    elif what is Kind.RACK:
        rack = int(rng.integers(world.racks))
        struck = [broker for broker in sorted(brokers) if world.rack_of(broker) == rack]
    elif what is Kind.ROLLOUT:
        struck = list(range(1, int(rng.integers(2, world.brokers)) + 1))
    elif what in (Kind.FENCED, "cut off"):
        # What is fenced for less than a step is seen by luck.
        struck, seconds = brokers[:1], float(np.exp(rng.uniform(*np.log([120.0, 900.0]))))
    elif what is Kind.QUORUM:
        # Elections take seconds; what is shorter than two minutes may be called one.
        seconds = float(np.exp(rng.uniform(*np.log([120.0, 1_500.0]))))
        controllers = [int(c) for c in rng.permutation(world.controllers) + 1]
        struck = controllers[:-1] if rng.random() < 0.7 else []
    elif what == "controller restart":
        struck, seconds = [int(rng.integers(world.controllers)) + 1], float(rng.uniform(10.0, 60.0))
    elif what == "prometheus down":
        struck, seconds = [], float(rng.uniform(60.0, 1_800.0))
    else:
        struck = brokers[:1]
        dies = what is Kind.HALF_DEAD and rng.random() < 0.2
    return Act(what, at, tuple(struck), seconds, dies)


def _of_several_racks(world: World, brokers: Sequence[int], number: int) -> list[int]:
    """The first so many brokers, or more until they are of several racks."""
    while len({world.rack_of(broker) for broker in brokers[:number]}) < 2:
        number += 1
    return list(brokers[:number])
