"""From what brokers reported to outages and counts: only what metrics prove.

A broker was down where its process began anew afterwards (`process_start_time_seconds`). A target
that did not answer and went on with the same process was not watched, and so was everything while
Prometheus itself was silent: that time is taken off the exposure, and is no outage. What stopped a
broker is told by `metric_causes`, where it can be told. A mechanism is counted where nearly all
events that may have been of it are told; else the card keeps its numbers for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise

import numpy as np

from advisor.errors import InputError
from advisor.formatting import HOURS_PER_YEAR, counted
from advisor.learning.evidence import (
    UNNAMED,
    ClusterHistory,
    Gap,
    Outage,
    Seen,
    Teaches,
    evidence_of,
    length_key,
)
from advisor.learning.metric_causes import (
    FENCED,
    Causes,
    Down,
    Event,
    of_quorum,
    stopping_one,
    stopping_several,
)
from advisor.learning.metric_causes import mechanism as mechanism_of
from advisor.learning.metric_names import Metric
from advisor.learning.posterior import Lengths, Share
from advisor.learning.refused_writes import refused_writes
from advisor.learning.transitions import Samples, true_runs
from advisor.reliability.failures.mechanism import per_hour
from advisor.reliability.failures.mechanisms import BrokerEvent, Scope, table

# With longer steps two brokers that are restarted one after the other look as if down together.
_LONGEST_STEP = 60.0
# A controller that fails over is away for seconds, and for up to a session with ZooKeeper.
_SHORTEST_QUORUM_LOSS = 60.0
_LATE = 1.05
"""Of a step: the longest time between two scrapes that are not missed."""
_LAG_MS, _NO_LAG_MS = 30_000.0, 1e11
_SAME_PROCESS = 1.0
# A target that is not there for so long at the beginning or the end came or went.
_EDGE_SECONDS = 300.0
_MOST_UNTOLD = 0.2
"""Share of the events that may have been of a mechanism, of which it is not told whether."""


@dataclass(frozen=True)
class Watch:
    """What was seen of one broker.

    seen (n,): when it was watched: up, or known to be down.
    is_down (n,).
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
    # Others may have been scraped since this one was for the last time, and lack it already.
    seen_last = samples.times[last + 1] - samples.step_seconds
    place = max(int(np.searchsorted(samples.times, seen_last, "right")) - 1, 0)
    before = float(np.nansum([row[place] for row in others]))
    seconds = samples.seconds[last + 1 :]
    return bool(seconds[lacking > before].sum() > 0.5 * seconds.sum())


def history_of(samples: Samples, name: str) -> ClusterHistory:
    """Return what the metrics of a cluster prove, with notes on what they do not.

    name: what to call the cluster.
    """
    watches = {broker: watch(samples, broker) for broker in brokers_of(samples)}
    if not watches:
        raise InputError(f"{name}: no target reports what brokers do, such as LeaderCount.")
    downs = [down for watched in watches.values() for down in watched.downs]
    events = Causes(samples, downs, sorted(watches)).events()
    counts = _Counts(samples, watches, events)
    counts.count_events()
    lost = counts.count_quorum_losses(name)
    refused = refused_writes(samples, _all_watched(samples, watches, events))
    if not counts.seen and refused is None:
        counts.notes.append("Nothing that a card holds is proved by these metrics.")
    outages = [*(_outage(event, name) for event in events), *lost]
    return ClusterHistory(
        name=name,
        named=name != UNNAMED,
        brokers=len(watches),
        racks=counts.zones or None,
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


def _all_watched(
    samples: Samples, watches: Mapping[str, Watch], events: Sequence[Event]
) -> np.ndarray:
    """When every broker was watched, or fenced: then it leads nothing of which it could tell."""
    is_watched = {broker: watched.seen.copy() for broker, watched in watches.items()}
    # A fencing is seen up to a scrape late.
    late = samples.step_seconds + samples.blur
    for event in events:
        if event.name == FENCED and event.end is not None:
            is_in = (samples.times >= event.start - late) & (samples.times < event.end)
            for broker in event.brokers:
                is_watched[broker] |= is_in
    every: np.ndarray = np.logical_and.reduce(list(is_watched.values()))
    return every


def _years(seconds: float) -> float:
    return float(seconds) / 3600.0 / HOURS_PER_YEAR


@dataclass(frozen=True)
class _Counts:
    """Mechanisms of which metrics prove how often they happened, filled one after the other."""

    samples: Samples
    watches: Mapping[str, Watch]
    events: Sequence[Event]
    seen: dict[str, Seen] = field(default_factory=dict)
    exposures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def _count(self, mechanism: str, seen: Seen, seconds: float) -> None:
        if seconds > 0.0:
            self.seen[mechanism] = seen
            self.exposures[mechanism] = _years(seconds)

    def _seconds(self, marks: np.ndarray) -> float:
        return float(self.samples.seconds[marks].sum())

    @cached_property
    def zones(self) -> int:
        """In how many zones brokers stand; 0 if labels do not say it of all."""
        rows = [self.samples.of(Metric.ZONE, broker) for broker in self.watches]
        zones = {float(np.nanmax(row)) for row in rows if not np.isnan(row).all()}
        return len(zones) if all(not np.isnan(row).all() for row in rows) else 0

    def count_events(self) -> None:
        """Enter how often brokers stopped or lagged, also that they never did."""
        broker_seconds = sum(self._seconds(watched.seen) for watched in self.watches.values())
        whole = self._seconds(np.logical_and.reduce([w.seen for w in self.watches.values()]))
        untold: dict[int, list[str]] = {}
        if self._stops_are_seen():
            for mechanism in stopping_one():
                self._enter(mechanism, broker_seconds, untold)
            if len(self.watches) > 1 and self._is_fine([*stopping_several()]):
                for mechanism in stopping_several():
                    self._enter(mechanism, whole, untold)
                if self.zones > 1:
                    rack = mechanism_of(BrokerEvent.POWER, Scope.RACK)
                    self._enter(rack, whole * self.zones, untold)
        if self._has((Metric.ISR_SHRINKS, Metric.UNDER_REPLICATED, Metric.UNDER_MIN_ISR)):
            for effect in (BrokerEvent.LAG, BrokerEvent.LIMP):
                self._enter(mechanism_of(effect, Scope.BROKER), broker_seconds, untold)
        for number, mechanisms in untold.items():
            self.notes.append(
                f"Metrics show {counted(number, 'event')} that may have been of "
                f"{', '.join(mechanisms)} and do not tell which: they stay as they were; count "
                "them by hand."
            )
        self._note_overlaps()
        self._note_fenced()

    def _enter(self, name: str, seconds: float, untold: dict[int, list[str]]) -> None:
        """Count a mechanism, if nearly all events that may have been of it are told."""
        own = [event for event in self.events if event.may_be == (name,)]
        unsure = sum(name in event.may_be and len(event.may_be) > 1 for event in self.events)
        if unsure > _MOST_UNTOLD * (len(own) + unsure):
            untold.setdefault(unsure, []).append(name)
            return
        if unsure:
            self.notes.append(
                f"{name}: {counted(unsure, 'event')} besides the {len(own)} that were counted may "
                "have been of it; the time that counts is shortened by as much."
            )
            seconds *= len(own) / (len(own) + unsure)
        self._count(name, self._added_up(name, own), seconds)

    def _added_up(self, name: str, events: Sequence[Event]) -> Seen:
        entry = table()[name]
        lengths: dict[str, tuple[list[float], list[float]]] = {}
        shares: dict[str, Share] = {}
        for event in events:
            key = length_key(entry, event.variant)
            if key:
                last = self.samples.end if event.end is None else event.end
                both = lengths.setdefault(key, ([], []))
                hours = max(last - event.start, self.samples.step_seconds / 2.0) / 3600.0
                both[event.end is None].append(hours * per_hour(key))
            for share, happened in event.shares.items():
                before = shares.get(share, Share(0, 0))
                shares[share] = Share(before.happened + happened, before.of + 1)
        # Which restarts ended hard is told of some more easily than of others.
        told = {
            key: share
            for key, share in shares.items()
            if evidence_of(entry).get(key) is Teaches.SHARE_OF_DEATHS
            or share.of >= (1.0 - _MOST_UNTOLD) * len(events)
        }
        is_each = Teaches.EACH_BROKER in evidence_of(entry).values()
        return Seen(
            len(events),
            {key: Lengths(tuple(ended), tuple(on)) for key, (ended, on) in lengths.items()},
            told,
            tuple((len(e.brokers), len(self.watches)) for e in events) if is_each else (),
        )

    def _note_overlaps(self) -> None:
        restart = mechanism_of(BrokerEvent.STOP, Scope.BROKER)
        own = [event for event in self.events if event.may_be == (restart,)]
        overlaps = sum(
            a.end is None or b.start < a.end
            for a, b in pairwise(sorted(own, key=lambda event: event.start))
        )
        if overlaps:
            self.notes.append(
                f"{counted(overlaps, 'restart')} of {len(own)} began before the broker before was "
                f"back in sync: that is what {restart} has a number for, {_overlap_key()}."
            )

    def _note_fenced(self) -> None:
        number = sum(event.name == FENCED for event in self.events)
        if number:
            self.notes.append(
                f"{counted(number, 'time')} brokers were fenced while their processes lived, "
                "frozen or cut off: no card has a number for that, and it counts as nothing."
            )

    def _stops_are_seen(self) -> bool:
        """Whether an outage of any broker would have been seen."""
        stay = f"{', '.join([*stopping_one(), *stopping_several()])} stay as they were."
        if not self._has((Metric.START,)):
            self.notes.append(
                "Without process_start_time_seconds of every broker no outage is proved: " + stay
            )
            return False
        moved = self._that_come_or_go(self.watches)
        if moved:
            self.notes.append(
                f"{moved[0]} is not there from the first to the last time, as after an outage from "
                f"which a broker returns with another address: {stay}"
            )
        return not moved

    def _is_fine(self, several: Sequence[str]) -> bool:
        if self.samples.step_seconds <= _LONGEST_STEP:
            return True
        self.notes.append(
            f"At a step of {self.samples.step_seconds:g} s it cannot be told whether brokers "
            f"were down together: {', '.join(several)} stay as they were."
        )
        return False

    def _has(self, metrics: Sequence[Metric]) -> bool:
        return all(set(self.watches) <= set(self.samples.targets_of(m)) for m in metrics)

    def _that_come_or_go(self, watches: Mapping[str, Watch]) -> list[str]:
        """Brokers that were not seen at the beginning or the end, while others were scraped."""
        awake = _any_target(self.samples)
        until = np.cumsum(self.samples.seconds * awake)
        since = until - self.samples.seconds * awake
        edge = _EDGE_SECONDS + self.samples.step_seconds
        ends = (awake & (since < edge), awake & (until > until[-1] - edge))
        return [b for b, watched in watches.items() if not all(watched.seen[e].any() for e in ends)]

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
        for first, last in true_runs((active == 0.0) & ~np.isnan(rows).all(axis=0)):
            seconds = float(samples.seconds[first : last + 1].sum())
            lost = behind[first : last + 1].any()
            # A controller that is not scraped may be the active one, unless others fall behind.
            watched[first : last + 1] = lost or seconds < _SHORTEST_QUORUM_LOSS
            # It may have begun and ended up to half a step from what was seen of it.
            if not lost or seconds + _LATE * samples.step_seconds < _SHORTEST_QUORUM_LOSS:
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
        runs = true_runs(unproved & _any_target(self.samples))
        lengths = (self.samples.seconds[first : last + 1].sum() for first, last in runs)
        return any(length >= _SHORTEST_QUORUM_LOSS for length in lengths)


def _gaps(samples: Samples, watches: Mapping[str, Watch]) -> Iterator[Gap]:
    for broker, watched in watches.items():
        for first, last in true_runs(~watched.seen):
            yield Gap(broker, _moment(samples.times[first]), _end(samples, last))


def brokers_of(samples: Samples) -> list[str]:
    """Return the targets that report what only brokers do."""
    kinds = (Metric.UNDER_REPLICATED, Metric.UNDER_MIN_ISR, Metric.LEADERS)
    return sorted({target for kind in kinds for target in samples.targets_of(kind)})


def _outage(event: Event, name: str) -> Outage:
    return Outage(
        mechanism=event.name,
        brokers=event.brokers,
        start=_moment(event.start),
        end=None if event.end is None else _moment(event.end),
        evidence=f"{', '.join(event.brokers)}: {event.evidence}".removeprefix(": "),
        cluster=name,
    )


def _overlap_key() -> str:
    overlaps = table()[mechanism_of(BrokerEvent.STOP, Scope.BROKER)].overlaps
    return "" if overlaps is None else overlaps.key


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
