"""From what brokers reported to outages and counts: only what metrics prove.

A broker was down where its process began anew afterwards (`process_start_time_seconds`). A target
that did not answer and went on with the same process was not watched, and so was everything while
Prometheus itself was silent: that time is taken off the exposure, and is no outage. What stopped a
broker (a crash, its host, a planned restart) and why several stopped together is in no metric at
usual scrape intervals: such outages are listed, and the card keeps its numbers for them. That
nothing happened is proved for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from advisor.errors import InputError
from advisor.formatting import HOURS_PER_YEAR, counted
from advisor.learning.evidence import ClusterHistory, Gap, Outage, Refused, Seen
from advisor.learning.metric_names import Metric
from advisor.learning.posterior import Lengths
from advisor.learning.prometheus import Array
from advisor.learning.transitions import Samples
from advisor.reliability.failures.mechanisms import BrokerEvent, Scope, table

BROKER_DOWN, SEVERAL_DOWN = "broker down", "several brokers down"
"""What outages are called whose mechanism metrics do not say."""
# With longer steps two brokers that are restarted one after the other look as if down together.
_LONGEST_STEP = 60.0
# A controller that fails over is away for seconds, and for up to a session with ZooKeeper.
_SHORTEST_QUORUM_LOSS = 60.0
_LAG_MS, _NO_LAG_MS = 30_000.0, 1e11
_SAME_PROCESS = 1.0
# A target that is not there for so long at the beginning or the end came or went.
_EDGE_SECONDS = 300.0
# Of all partitions, that brokers which are scraped lead; with less, some are not scraped.
_MOST_LED = 0.98


def stopping_one() -> list[str]:
    """The mechanisms that stop the process of one broker."""
    stops = (BrokerEvent.CRASH, BrokerEvent.POWER, BrokerEvent.STOP)
    return [e.name for e in table().with_effect(*stops) if e.scope is Scope.BROKER]


def stopping_several() -> list[str]:
    """The mechanisms by which one cause stops the processes of several brokers."""
    stops = table().with_effect(BrokerEvent.CRASH)
    return [entry.name for entry in stops if entry.scope is Scope.CLUSTER]


def of_quorum() -> str:
    """The mechanism that takes the controller quorum."""
    return next(entry.name for entry in table().entries if entry.effect.of_quorum)


@dataclass(frozen=True)
class Down:
    """A broker that was down.

    Attributes
    ----------
    target : str
    first, last : int
        First and last interval in which it was down, `last` before `first` if no scrape saw it
        down; of one that did not return, the last of all.
    returned : bool
    """

    target: str
    first: int
    last: int
    returned: bool


@dataclass(frozen=True)
class Watch:
    """What was seen of one broker.

    Attributes
    ----------
    downs : tuple of Down
    seen : array of bool, shape (n,)
        When it was watched: up, or known to be down.
    is_down : array of bool, shape (n,)
    """

    downs: tuple[Down, ...]
    seen: np.ndarray
    is_down: np.ndarray


def watch(samples: Samples, target: str) -> Watch:
    """Find when a broker was down, and when it was not watched."""
    up, begun = samples.of(Metric.UP, target), samples.of(Metric.START, target)
    awake = _any_target(samples)
    good = (up == 1.0) & _serves(samples, target)
    seen, is_down = good.copy(), np.zeros(len(good), dtype=bool)
    places = np.flatnonzero(good)
    downs = []
    restarted = begun[places[1:]] > begun[places[:-1]] + _SAME_PROCESS
    for number in np.flatnonzero(restarted):
        before, after = int(places[number]), int(places[number + 1])
        # What happened while nothing was watched is not counted, as that time is not.
        if awake[before + 1 : after].all() or up[before + 1] == 0.0:
            downs.append(Down(target, before + 1, after - 1, True))
            is_down[before + 1 : after] = awake[before + 1 : after]
    last = int(places[-1]) if len(places) else len(good) - 1
    if last + 1 < len(good) and _is_missed(samples, target, last):
        downs.append(Down(target, last + 1, len(good) - 1, False))
        is_down[last + 1 :] = awake[last + 1 :]
    return Watch(tuple(downs), seen | is_down, is_down)


def _serves(samples: Samples, target: str) -> np.ndarray:
    """Whether a broker reports what only a broker that runs does."""
    rows = [samples.of(metric, target) for metric in (Metric.UNDER_REPLICATED, Metric.LEADERS)]
    given = [row for row in rows if not np.isnan(row).all()]
    up = samples.of(Metric.UP, target)
    serves: np.ndarray = np.logical_and.reduce([~np.isnan(row) for row in given or [up]])
    return serves


def _any_target(samples: Samples) -> np.ndarray:
    """When Prometheus was awake: some target has a sample."""
    awake = np.zeros(len(samples.times), dtype=bool)
    for target in samples.targets_of(Metric.UP):
        awake |= ~np.isnan(samples.of(Metric.UP, target))
    return awake


def _is_missed(samples: Samples, target: str, last: int) -> bool:
    """Whether others lack a broker that does not return: it is down, not only silent."""
    silent = samples.of(Metric.UP, target)[last + 1 :]
    others = [
        samples.of(Metric.UNDER_REPLICATED, other)
        for other in samples.targets_of(Metric.UNDER_REPLICATED)
        if other != target
    ]
    if not others or not (silent == 0.0).all():
        return False
    lacking = np.nansum([row[last + 1 :] for row in others], axis=0)
    before = float(np.nansum([row[last] for row in others]))
    seconds = samples.seconds[last + 1 :]
    return bool(seconds[lacking > before].sum() > 0.5 * seconds.sum())


def history_of(samples: Samples, name: str) -> ClusterHistory:
    """Return what the metrics of a cluster prove, with notes on what they do not.

    Parameters
    ----------
    samples : Samples
    name : str
        What to call the cluster.
    """
    watches = {broker: watch(samples, broker) for broker in _brokers(samples)}
    if not watches:
        raise InputError(f"{name}: no target reports what brokers do, such as LeaderCount.")
    downs = [down for watched in watches.values() for down in watched.downs]
    together = _together(samples, watches)
    counts = _Counts(samples, {}, {}, [])
    counts.count_single(watches, downs)
    counts.count_together(watches)
    lost = counts.count_quorum_losses(name)
    refused = _refused(samples, watches)
    if not counts.seen and refused is None:
        counts.notes.append("Nothing that a card holds is proved by these metrics.")
    outages = [*_outages(samples, downs, together, name), *lost]
    return ClusterHistory(
        name=name,
        brokers=len(watches),
        years=_years(samples.seconds.sum()),
        seen=counts.seen,
        outages=tuple(sorted(outages, key=lambda outage: outage.start)),
        since=_moment(samples.times[0]),
        until=_moment(samples.end),
        refused=refused,
        exposures=counts.exposures,
        gaps=tuple(_gaps(samples, watches)),
        notes=tuple(counts.notes),
    )


def _years(seconds: float) -> float:
    return float(seconds) / 3600.0 / HOURS_PER_YEAR


@dataclass(frozen=True)
class _Counts:
    """Mechanisms of which metrics prove how often they happened, filled one after the other."""

    samples: Samples
    seen: dict[str, Seen]
    exposures: dict[str, float]
    notes: list[str]

    def _count(self, mechanism: str, seen: Seen, seconds: float) -> None:
        if seconds > 0.0:
            self.seen[mechanism] = seen
            self.exposures[mechanism] = _years(seconds)

    def _seconds(self, marks: np.ndarray) -> float:
        return float(self.samples.seconds[marks].sum())

    def count_single(self, watches: Mapping[str, Watch], downs: Sequence[Down]) -> None:
        """Enter that no broker was down, if so."""
        if downs:
            self.notes.append(
                f"Metrics show {counted(len(downs), 'outage')} of brokers and not what stopped "
                f"them: {', '.join(stopping_one())} stay as they were; count them by hand."
            )
            return
        if not self._has_starts(watches):
            self.notes.append(
                "Without process_start_time_seconds of every broker no outage is proved: "
                f"{', '.join([*stopping_one(), *stopping_several()])} stay as they were."
            )
            return
        moved = self._that_come_or_go(watches)
        if moved:
            self.notes.append(
                f"{moved[0]} is not there from the first to the last time, as after an outage from "
                "which a broker returns with another address: "
                f"{', '.join([*stopping_one(), *stopping_several()])} stay as they were."
            )
            return
        seconds = sum(self._seconds(watched.seen) for watched in watches.values())
        for mechanism in stopping_one():
            self._count(mechanism, Seen(0), seconds)

    def _that_come_or_go(self, watches: Mapping[str, Watch]) -> list[str]:
        """Brokers that were not seen at the beginning or the end, while others were scraped."""
        awake = _any_target(self.samples)
        until = np.cumsum(self.samples.seconds * awake)
        since = until - self.samples.seconds * awake
        edge = _EDGE_SECONDS + self.samples.step_seconds
        ends = (awake & (since < edge), awake & (until > until[-1] - edge))
        return [b for b, watched in watches.items() if not all(watched.seen[e].any() for e in ends)]

    def _has_starts(self, watches: Mapping[str, Watch]) -> bool:
        return set(watches) <= set(self.samples.targets_of(Metric.START))

    def count_together(self, watches: Mapping[str, Watch]) -> None:
        """Enter that no two brokers were down together, if so."""
        stay = f"{', '.join(stopping_several())} stay as they were"
        whole = self._has_starts(watches) and not self._that_come_or_go(watches)
        if len(watches) < 2 or not whole:
            return
        if self.samples.step_seconds > _LONGEST_STEP:
            self.notes.append(
                f"At a step of {self.samples.step_seconds:g} s it cannot be told whether brokers "
                f"were down together: {stay}."
            )
        elif _together(self.samples, watches, self.samples.step_seconds):
            self.notes.append(
                "Metrics show several brokers down at once, or nearly, and not why: "
                f"{stay}; count them by hand."
            )
        else:
            all_seen = np.logical_and.reduce([watched.seen for watched in watches.values()])
            for mechanism in stopping_several():
                self._count(mechanism, Seen(0), self._seconds(all_seen))

    def count_quorum_losses(self, name: str) -> list[Outage]:
        """Enter the times without an active controller, and return them."""
        samples = self.samples
        controllers = samples.targets_of(Metric.ACTIVE)
        if not controllers:
            return []
        rows = np.array([samples.of(Metric.ACTIVE, controller) for controller in controllers])
        active, behind = np.nansum(rows, axis=0), _behind(samples)
        watched = active >= 1.0
        lengths: tuple[list[float], list[float]] = ([], [])
        outages = []
        for first, last in _runs((active == 0.0) & ~np.isnan(rows).all(axis=0)):
            seconds = float(samples.seconds[first : last + 1].sum())
            lost = behind[first : last + 1].any()
            # A controller that is not scraped may be the active one, unless others fall behind.
            watched[first : last + 1] = lost or seconds < _SHORTEST_QUORUM_LOSS
            if not lost or seconds < _SHORTEST_QUORUM_LOSS:
                continue
            goes_on = last == len(samples.times) - 1
            lengths[goes_on].append(seconds / 60.0)
            end = None if goes_on else _end(samples, last)
            said = "the sum of ActiveControllerCount is 0, and LastAppliedRecordLagMs grows"
            start = _moment(samples.times[first])
            outages.append(Outage(of_quorum(), (), start, end, said, name))
        if self._may_be_lost(watched, ~np.isnan(rows).all(axis=0)):
            self.notes.append(
                "No controller was active or none answered for a time, and metrics do not say "
                f"which of both: {of_quorum()} stays as it was; count it by hand."
            )
            return outages
        both = {"minutes": Lengths(tuple(lengths[0]), tuple(lengths[1]))} if outages else {}
        self._count(of_quorum(), Seen(len(outages), both), self._seconds(watched))
        return outages

    def _may_be_lost(self, watched: np.ndarray, reported: np.ndarray) -> bool:
        """Whether a quorum may have been lost for long without any proof.

        Then no loss may be counted, as the proved ones are not all. Where a lag is reported, who is
        active and not scraped is known to be there by it.
        """
        is_told = bool(self.samples.targets_of(Metric.APPLIED_LAG_MS))
        unproved = ~watched & ~reported if is_told else ~watched
        runs = _runs(unproved & _any_target(self.samples))
        lengths = (self.samples.seconds[first : last + 1].sum() for first, last in runs)
        return any(length >= _SHORTEST_QUORUM_LOSS for length in lengths)


def _gaps(samples: Samples, watches: Mapping[str, Watch]) -> Iterator[Gap]:
    for broker, watched in watches.items():
        for first, last in _runs(~watched.seen):
            yield Gap(broker, _moment(samples.times[first]), _end(samples, last))


def _brokers(samples: Samples) -> list[str]:
    """Targets that report what only brokers do."""
    kinds = (Metric.UNDER_REPLICATED, Metric.UNDER_MIN_ISR, Metric.LEADERS)
    return sorted({target for kind in kinds for target in samples.targets_of(kind)})


def _runs(marks: np.ndarray) -> list[tuple[int, int]]:
    """First and last places of each run of marks."""
    edges = np.diff(np.concatenate([[0], marks.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


def _together(
    samples: Samples, watches: Mapping[str, Watch], around_seconds: float = 0.0
) -> list[tuple[float, float]]:
    """Times in which two brokers or more were down, or may have been between two scrapes."""
    spans = {broker: _spans(samples, w.downs, around_seconds) for broker, w in watches.items()}
    edges = np.unique(np.concatenate([*spans.values()]))
    down = np.zeros(len(edges))
    for own in spans.values():
        is_down = np.zeros(len(edges), dtype=bool)
        for start, end in own:
            is_down[(edges >= start) & (edges < end)] = True
        down += is_down
    return [(float(edges[first]), float(edges[last + 1])) for first, last in _runs(down >= 2)]


def _spans(samples: Samples, downs: Sequence[Down], around_seconds: float) -> Array:
    """Starts and ends of outages, shape (n, 2), in seconds since 1970."""
    starts = [samples.times[down.first] - around_seconds for down in downs]
    ends = [_end_seconds(samples, down.last) + around_seconds for down in downs]
    return np.array([starts, ends], dtype=np.float64).T


def _outages(
    samples: Samples, downs: list[Down], together: list[tuple[float, float]], name: str
) -> list[Outage]:
    rows = []
    for down, (start, end) in zip(downs, _spans(samples, downs, 0.0), strict=True):
        shared = any(first < end and start < last for first, last in together)
        rows.append(
            Outage(
                mechanism=SEVERAL_DOWN if shared else BROKER_DOWN,
                brokers=(down.target,),
                start=_moment(samples.times[down.first]),
                end=_end(samples, down.last) if down.returned else None,
                evidence=f"{down.target}: no answer, then another process_start_time_seconds"
                if down.returned
                else f"{down.target}: up is 0 to the end, and other brokers lack its replicas",
                cluster=name,
            )
        )
    return rows


def _end(samples: Samples, last: int) -> datetime:
    return _moment(_end_seconds(samples, last))


def _end_seconds(samples: Samples, last: int) -> float:
    return float(samples.times[last] + samples.seconds[last])


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


def _behind(samples: Samples) -> np.ndarray:
    """When some controller has applied nothing for long; one that starts says a time since 1970."""
    rows = [
        samples.of(Metric.APPLIED_LAG_MS, target)
        for target in samples.targets_of(Metric.APPLIED_LAG_MS)
    ]
    late = [(row > _LAG_MS) & (row < _NO_LAG_MS) for row in rows]
    behind: np.ndarray = np.logical_or.reduce(late or [np.zeros(len(samples.times), bool)])
    return behind


# Refused writes


def _refused(samples: Samples, watches: Mapping[str, Watch]) -> Refused | None:
    """Minutes without writes while every broker was watched; None if no metric says it.

    A partition without a leader is reported by no broker, but by every controller.
    """
    reporting = samples.targets_of(Metric.UNDER_MIN_ISR)
    controllers = samples.targets_of(Metric.OFFLINE)
    if not reporting or not controllers:
        return None
    partitions = _partitions(samples)
    is_seen = np.logical_and.reduce([watched.seen for watched in watches.values()])
    heard = np.array([samples.of(Metric.OFFLINE, target) for target in controllers])
    is_seen &= ~np.isnan(heard).all(axis=0)
    if not is_seen.any() or partitions <= 0.0:
        return None
    offline = np.nan_to_num(heard).max(axis=0)
    rows = np.array([samples.of(Metric.UNDER_MIN_ISR, target) for target in reporting])
    refused = (np.nansum(rows, axis=0) + offline)[is_seen]
    minutes = samples.seconds[is_seen] / 60.0
    total = float((refused * minutes).sum())
    return Refused(
        minutes=total / partitions,
        years=_years(samples.seconds[is_seen].sum()),
        partition_minutes=total,
        any_minutes=float(minutes[refused > 0].sum()),
    )


def _partitions(samples: Samples) -> float:
    """How many partitions there are; 0 if not known, or if some brokers are not scraped.

    By what controllers say, and by the leaders of all brokers.
    """
    said = [samples.of(Metric.PARTITIONS, t) for t in samples.targets_of(Metric.PARTITIONS)]
    led = [samples.of(Metric.LEADERS, t) for t in samples.targets_of(Metric.LEADERS)]
    leaders = _middle(np.nansum(led, axis=0), samples.seconds) if led else 0.0
    if not said:
        return leaders
    partitions = _middle(np.concatenate(said), np.tile(samples.seconds, len(said)))
    return partitions if not led or leaders >= _MOST_LED * partitions else 0.0


def _middle(values: Array, seconds: Array) -> float:
    """The median over the time in which something was reported."""
    given = ~np.isnan(values)
    if not given.any():
        return 0.0
    order = np.argsort(values[given])
    until = np.cumsum(seconds[given][order])
    return float(values[given][order][np.searchsorted(until, until[-1] / 2.0)])
