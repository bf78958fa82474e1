"""What stopped a broker, or shrank its ISRs: told by the order in which signs appear.

A broker that is told to stop hands its partitions over first: its beans go at once, it leaves its
ISRs, and its process ends last. One that dies is missed by the controller only when its session
runs out, seconds after its process has ended. So it counts which of both was seen first, the
replicas that others lack or the end of the process. Each is known as the time between two scrapes;
where those times overlap, and no state or rolling pattern tells, nothing is said.

That a follower lagged, or a leader lost its followers, is told by `IsrShrinks`: it rises where a
leader takes a follower out, and not where the controller does, for a broker that is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from advisor.learning.metric_names import Metric, host_of
from advisor.learning.prometheus import Array
from advisor.learning.transitions import Samples, true_runs
from advisor.reliability.failures.mechanisms import BrokerEvent, Scope, Sign, table

SEVERAL_DOWN, BROKER_DOWN = "several brokers down", "broker down"
DIED = "broker or its host died"
OUT_OF_SYNC = "replicas out of sync"
FENCED = "broker fenced"
OF_BROKERS = (BROKER_DOWN, DIED, OUT_OF_SYNC, FENCED)
"""What is said where metrics do not tell the mechanism."""

_SOONEST_MISSED_S, _LATEST_MISSED_S = 6.5, 12.0
"""After a death in which a session runs out: it takes 9 s, and heartbeats come every 2."""
_EARLIEST_LEAVE_S = 30.0
"""Before the end of its process a broker that is told to stop leaves its ISRs."""
_LATE = 1.05
"""Of a step: the longest time between two scrapes that are not missed."""
_SLACK_S = 0.5
"""What a scrape takes."""
_TOGETHER_S = 60.0
"""Between the starts of outages with one cause."""
_FENCED_AT_ONCE_S, _FENCED_LATE_S = 5.0, 2.0
"""After leaving its ISRs a broker is fenced at the end of its shutdown, else after its session."""
_FINEST_GRID_S = 6.0
"""Shorter than a session without a heartbeat: a death shows before it is missed."""
_FEWEST_WITNESSES = 4
_ROLLING_PAUSE_S = 900.0
_UPGRADED_S, _DAY_S = 7200.0, 86_400.0
"""Within which a version is new, and of which the usual one is that of most of the time."""
_SAME_BOOT_S = 90.0
_FASTEST_BOOT_S = 20.0
"""A process that is there sooner did not wait for its host."""
_SHRINKS_APART_S = 60.0
_LATEST_SHRINK_S = 45.0
"""After a death: followers that do not fetch leave an ISR after 30 s, by checks every 15 s."""
_MOST_LEADERS = 0.5
_STOPPING = (6.0, 7.0)
_LEAVING = 20.0
_WORDS = re.compile(r"\d+|\D+")


class Span(NamedTuple):
    """A moment that is known to lie between two times, in seconds since 1970."""

    low: float
    high: float


@dataclass(frozen=True)
class Down:
    """A broker that was down.

    first, last: first and last interval in which it was down, `last` before `first` if no scrape
        saw it down; of one that did not return, the last of all.
    """

    target: str
    first: int
    last: int
    returned: bool


@dataclass(frozen=True)
class Event:
    """Something that happened, and which mechanisms it may have been.

    may_be: mechanisms; one if metrics tell, none if no card has one for it.
    words: what it is called if they do not.
    start: seconds since 1970.
    end: when all was in sync again; None if it goes on.
    shares: by the key of the probability.
    variant: the key of the variant's probability.
    """

    may_be: tuple[str, ...]
    words: str
    brokers: tuple[str, ...]
    start: float
    end: float | None
    evidence: str
    shares: Mapping[str, bool] = field(default_factory=dict)
    variant: str = ""

    @property
    def name(self) -> str:
        """The mechanism, or what it is called without one."""
        return self.may_be[0] if len(self.may_be) == 1 else self.words


def mechanism(effect: BrokerEvent, scope: Scope, sign: Sign | None = None) -> str:
    """Return the name of the mechanism with an effect, whom it strikes, and its sign."""
    entries = (e for e in table().entries if (e.effect, e.scope, e.sign) == (effect, scope, sign))
    return next(entry.name for entry in entries)


def stopping_one() -> list[str]:
    """Return the mechanisms that stop the process of one broker."""
    stops = (BrokerEvent.CRASH, BrokerEvent.POWER, BrokerEvent.STOP)
    return [e.name for e in table().with_effect(*stops) if e.scope is Scope.BROKER]


def stopping_several() -> list[str]:
    """Return the mechanisms by which one cause stops the processes of several brokers."""
    stops = table().with_effect(BrokerEvent.CRASH)
    return [entry.name for entry in stops if entry.scope is Scope.CLUSTER]


def of_quorum() -> str:
    """Return the mechanism that takes the controller quorum."""
    return next(entry.name for entry in table().entries if entry.effect.of_quorum)


@dataclass(frozen=True)
class _Stop:
    """A broker that was down, and what is known of how that began and ended.

    death: when its process ended.
    began: when the next process began.
    end: when all was in sync again.
    """

    down: Down
    start: float
    death: Span
    began: float | None
    end: float | None
    orderly: bool | None = None
    hard: bool | None = None
    why: str = ""


class Causes:
    """The signs of a cluster's metrics, and the events that they tell of.

    brokers: names of their scraped targets.
    """

    def __init__(self, samples: Samples, downs: Sequence[Down], brokers: Sequence[str]) -> None:
        self.samples, self.brokers = samples, tuple(brokers)
        self.step, self.blur = samples.step_seconds, samples.blur
        self._edges = np.append(samples.times, samples.end)
        self._rises: dict[tuple[Metric, str], Array] = {}
        self.stops = sorted((self._stop(down) for down in downs), key=lambda s: s.death.low)

    # What was seen when

    def rises(self, metric: Metric, target: str) -> Array:
        """Times at which a metric was seen to be higher than in the scrape before."""
        key = (metric, target)
        if key not in self._rises:
            row = self.samples.of(metric, target)
            # A comparison with NaN, where nothing was reported, is false.
            self._rises[key] = self.samples.times[1:][row[1:] > row[:-1]]
        return self._rises[key]

    def seen_between(self, times: Sequence[float]) -> Span | None:
        """When something happened that several targets were seen to show from some times on."""
        if not times:
            return None
        first = min(times)
        same = [time for time in times if time <= first + self.step + self.blur]
        return Span(max(same) - self.step * _LATE - self.blur, first)

    def _place(self, time: float) -> int:
        place = int(np.searchsorted(self._edges, time, "right")) - 1
        return min(max(place, 0), len(self.samples.times) - 1)

    def _between(self, row: Array, start: float, end: float) -> Array:
        return row[self._place(start) : self._place(end) + 1]

    @cached_property
    def _lacking(self) -> Array:
        """Replicas that are missing, over all brokers."""
        targets = self.samples.targets_of(Metric.UNDER_REPLICATED)
        rows = [self.samples.of(Metric.UNDER_REPLICATED, target) for target in targets]
        lacking: Array = np.nansum(rows, axis=0) if rows else np.zeros(len(self.samples.times))
        return lacking

    # Outages of single brokers

    def _stop(self, down: Down) -> _Stop:
        samples = self.samples
        up, begun = samples.of(Metric.UP, down.target), samples.of(Metric.START, down.target)
        place, before = down.first, begun[down.first - 1] if down.first else np.nan
        while place <= down.last and up[place] == 1.0 and begun[place] == before:
            place += 1
        last = min(place, len(samples.times) - 1)
        seen_dead = float(samples.times[last])
        began = float(begun[down.last + 1]) if down.returned else None
        soonest = seen_dead - self.step * _LATE - self.blur
        # A clock of the broker's host that is wrong says nothing.
        if began is not None and not soonest <= began <= samples.times[down.last + 1]:
            began = None
        death = Span(soonest, seen_dead if began is None else min(seen_dead, began))
        start = float(samples.times[down.first])
        stop = _Stop(down, start, death, began, self._in_sync(down))
        if place > down.first:
            why = "its beans went while its process still ran"
            return replace(stop, orderly=True, why=why)
        return stop

    def _in_sync(self, down: Down) -> float | None:
        """When a broker was back and no more replicas were missing than before."""
        if not down.returned:
            return None
        back = down.last + 1
        before = self._lacking[max(down.first - 1, 0)]
        later = np.flatnonzero(self._lacking[back:] <= before)
        return float(self.samples.times[back + later[0]]) if len(later) else None

    def _window(self, stop: _Stop) -> Span | None:
        """When the signs of an outage have to be seen; None if another one explains them, too."""
        low = stop.death.low - _EARLIEST_LEAVE_S
        for other in self.stops:
            if self._at_once(stop, other) or other.start > stop.death.high:
                continue
            if other.end is None or other.end > stop.start - self.step:
                return None
            low = max(low, other.end)
        return Span(low, stop.death.high + _LATEST_MISSED_S + self.step + self.blur)

    def _at_once(self, stop: _Stop, other: _Stop) -> bool:
        """Whether two stopped between the same scrapes, so that they have their signs in common."""
        return abs(stop.start - other.start) <= self.step + self.blur

    def _told(self, stop: _Stop) -> _Stop:
        """How a broker stopped that stopped alone: in order, or by its death."""
        window = self._window(stop)
        if window is None:
            return stop
        struck = {other.down.target for other in self.stops if self._at_once(stop, other)}
        others = [broker for broker in self.brokers if broker not in struck]
        seen = [self._first_rise(Metric.UNDER_REPLICATED, o, window) for o in others]
        left_times = [time for time in seen if time is not None]
        left = self.seen_between(left_times)
        controllers = self.samples.targets_of(Metric.FENCED)
        seen = [self._first_rise(Metric.FENCED, controller, window) for controller in controllers]
        fenced_times = [time for time in seen if time is not None]
        fenced = self.seen_between(fenced_times)
        if stop.orderly is None:
            stop = self._by_states(stop, window)
        if stop.orderly is None and left is not None:
            alone = len(struck) == 1
            stop = self._by_order(stop, left, left_times, fenced_times, alone)
        if stop.orderly and left is not None and fenced is not None:
            stop = replace(stop, hard=self._hard(stop, left, fenced))
        return stop

    def _first_rise(self, metric: Metric, target: str, window: Span) -> float | None:
        rises = self.rises(metric, target)
        place = int(np.searchsorted(rises, window.low))
        is_in = place < len(rises) and rises[place] <= window.high
        return float(rises[place]) if is_in else None

    def _by_states(self, stop: _Stop, window: Span) -> _Stop:
        """Told by what 4.x says of brokers that shut down: of all that stopped then, if several."""
        until = stop.death.high + self.step + self.blur
        stopped = [other for other in self.stops if window.low <= other.start <= until]
        count = len({other.down.target for other in stopped})
        leaving: set[str] = set()
        for target in self.samples.targets_of(Metric.REGISTRATION):
            row = self._between(self.samples.of(Metric.REGISTRATION, target), window.low, until)
            if (row == _LEAVING).any():
                leaving.add(target.rpartition(" of ")[2])
        shutting_down = [
            self._between(self.samples.of(Metric.SHUTTING_DOWN, target), window.low, until)
            for target in self.samples.targets_of(Metric.SHUTTING_DOWN)
        ]
        own = self.samples.of(Metric.BROKER_STATE, stop.down.target)
        for metric, says_so in (
            (Metric.SHUTTING_DOWN, any((row >= count).any() for row in shutting_down)),
            (Metric.REGISTRATION, len(leaving) >= count),
            (Metric.BROKER_STATE, np.isin(self._between(own, window.low, until), _STOPPING).any()),
        ):
            if says_so:
                return replace(stop, orderly=True, why=f"{metric.value} says that it shut down")
        return stop

    def _by_order(
        self,
        stop: _Stop,
        left: Span,
        left_times: Sequence[float],
        fenced_times: Sequence[float],
        alone: bool,
    ) -> _Stop:
        """Told by whether replicas were missing before or after the process ended."""
        registered_again = stop.began is not None and stop.began <= left.high
        # Of several that stopped at once one may have left in order, and another died.
        if alone and left.high < stop.death.low + _SOONEST_MISSED_S and not registered_again:
            why = "other brokers lacked its replicas before its process ended"
            return replace(stop, orderly=True, why=why)
        # A session that runs out makes replicas missing and the broker fenced at one moment.
        seen = (*left_times, *fenced_times)
        missed = self.seen_between(seen) or left
        late = missed.low > stop.death.high + _SLACK_S
        # On a grid of answers the moments of scrapes are not known; all witnesses have to agree,
        # and one to be later than any is of a broker that left its ISRs before its process ended.
        on_grid = self.blur > 0.0 and self.step <= _FINEST_GRID_S
        agree = len(seen) >= _FEWEST_WITNESSES and min(seen) >= stop.start + self.step
        agree = agree and max(left_times) >= stop.start + 2 * self.step
        if (late or (on_grid and agree)) and not registered_again:
            why = "its process ended before other brokers lacked its replicas"
            return replace(stop, orderly=False, why=why)
        return stop

    def _hard(self, stop: _Stop, left: Span, fenced: Span) -> bool | None:
        """Whether a shutdown ended hard: then the broker is fenced when its session ends."""
        if stop.began is not None and stop.began <= fenced.high:
            return None
        if fenced.low > left.high + _FENCED_LATE_S:
            return True
        return False if fenced.high < left.low + _FENCED_AT_ONCE_S + _SLACK_S else None

    # Events

    def events(self) -> list[Event]:
        """Return what happened, the first first."""
        groups = [self._told_group(group) for group in self._groups()]
        stops = [stop for group in groups for stop in group]
        rolling = self._rolling(stops)
        events = [*self._shrunk(stops), *self._fenced(stops)]
        for group in groups:
            told = [
                replace(stop, orderly=True, why="all brokers stopped in turn")
                if stop.orderly is None and id(stop) in rolling
                else stop
                for stop in group
            ]
            events += self._of_group(told)
        return sorted(self._with_deaths(events), key=lambda event: event.start)

    def _groups(self) -> Iterator[list[_Stop]]:
        group: list[_Stop] = []
        for stop in self.stops:
            if group and not self._may_be_one(group, stop):
                yield group
                group = []
            group.append(stop)
        if group:
            yield group

    def _may_be_one(self, group: Sequence[_Stop], stop: _Stop) -> bool:
        """Whether one cause may have stopped brokers: within a minute, all down at once.

        Who is back before the next scrape may have been down with who stopped since the last one.
        """
        latest = max(np.inf if other.end is None else other.end for other in group)
        near = stop.start - group[0].start <= _TOGETHER_S + self.step
        struck = {other.down.target for other in group}
        at_once = stop.down.target not in struck and self._at_once(stop, group[0])
        return bool(near and (stop.start <= latest or at_once))

    def _told_group(self, group: Sequence[_Stop]) -> list[_Stop]:
        told = [self._told(stop) for stop in group]
        if len(group) == 1:
            return told
        fences = self._fences(group)
        for number, stop in enumerate(told):
            if stop.orderly is not None or fences is None:
                continue
            own = _own_fences(group, fences, number, self.step * _LATE + self.blur)
            if not own:
                continue
            if max(fence.high for fence in own) < stop.death.low + _SOONEST_MISSED_S:
                why = "it was fenced before its process ended"
                told[number] = replace(stop, orderly=True, why=why)
            elif (
                min(fence.low for fence in own) > stop.death.high + _SLACK_S
                and told[0].orderly is False
            ):
                why = "it was fenced after its process had ended"
                told[number] = replace(stop, orderly=False, why=why)
        return told

    def _fences(self, group: Sequence[_Stop]) -> list[Span] | None:
        """When each of a group was fenced, in their order; None if not all of them are seen."""
        window = Span(
            group[0].death.low - _EARLIEST_LEAVE_S,
            group[-1].death.high + _LATEST_MISSED_S + self.step + self.blur,
        )
        columns: list[list[float]] = []
        for controller in self.samples.targets_of(Metric.FENCED):
            row = self.samples.of(Metric.FENCED, controller)
            rises = self.rises(Metric.FENCED, controller)
            times: list[float] = []
            for time in rises[(rises >= window.low) & (rises <= window.high)]:
                place = self._place(float(time))
                times += [float(time)] * round(row[place] - row[place - 1])
            if len(times) == len(group):
                columns.append(times)
        if not columns:
            return None
        spans = [self.seen_between([column[n] for column in columns]) for n in range(len(group))]
        return [span for span in spans if span is not None]

    def _rolling(self, stops: Sequence[_Stop]) -> set[int]:
        """Outages in which all brokers stopped one after the other, in the order of their names."""
        rolling: set[int] = set()
        count, early = len(self.brokers), self.step + self.blur
        ordered = sorted(stops, key=lambda stop: stop.start)
        for first in range(len(ordered) - count + 1 if count > 2 else 0):
            turn = ordered[first : first + count]
            names = [_natural(stop.down.target) for stop in turn]
            if len(set(names)) < count or names not in (sorted(names), sorted(names)[::-1]):
                continue
            if any(stop.orderly is False for stop in turn):
                continue
            pairs = pairwise(turn)
            if all(
                a.end is not None and -early <= b.start - a.end <= _ROLLING_PAUSE_S
                for a, b in pairs
            ):
                rolling |= {id(stop) for stop in turn}
        return rolling

    def _of_group(self, group: Sequence[_Stop]) -> list[Event]:
        if len(group) == 1 or all(stop.orderly for stop in group):
            return [self._single(stop) for stop in group]
        start = min(stop.start for stop in group)
        ends = [stop.end for stop in group]
        end = None if None in ends else max(end for end in ends if end is not None)
        brokers = tuple(sorted({stop.down.target for stop in group}))
        died = [stop for stop in group if stop.orderly is False]
        if not any(stop.orderly for stop in group) and self._disks_full(group):
            full = (self._crash(Sign.FULL_DISK),)
            return [Event(full, SEVERAL_DOWN, brokers, start, end, "their disks had no room")]
        if not died or any(stop.orderly for stop in group) or len(brokers) < 2:
            singles, several = stopping_one(), self._several()
            why = "several brokers stopped within a minute"
            return [Event((*singles, *several), SEVERAL_DOWN, brokers, start, end, why)]
        may_be, why = self._common_cause(group)
        return [Event(may_be, SEVERAL_DOWN, brokers, start, end, why)]

    def _several(self) -> list[str]:
        racks = mechanism(BrokerEvent.POWER, Scope.RACK)
        return [*stopping_several(), racks, mechanism(BrokerEvent.POWER, Scope.CLUSTER)]

    def _single(self, stop: _Stop) -> Event:
        target = stop.down.target
        event = Event(tuple(stopping_one()), BROKER_DOWN, (target,), stop.start, stop.end, stop.why)
        if stop.orderly:
            entry = table()[mechanism(BrokerEvent.STOP, Scope.BROKER)]
            unclean = entry.variants[0].chance.key
            shares = {} if stop.hard is None else {unclean: stop.hard}
            variant = unclean if stop.hard else ""
            return replace(event, may_be=(entry.name,), shares=shares, variant=variant)
        crash, power = (
            mechanism(effect, Scope.BROKER) for effect in (BrokerEvent.CRASH, BrokerEvent.POWER)
        )
        rebooted = self._rebooted(stop)
        if stop.orderly is None:
            # A host that stayed up did not fail, and one that began anew may have been told to.
            may_be = _without(event.may_be, crash if rebooted else power)
            why = "another process_start_time_seconds; what stopped it was not seen"
            return replace(event, may_be=event.may_be if rebooted is None else may_be, evidence=why)
        if rebooted:
            return replace(event, may_be=(power,), evidence=f"{stop.why}; its host began anew")
        if rebooted is None:
            return replace(event, may_be=(crash, power), words=DIED)
        return replace(event, may_be=(crash,), evidence=f"{stop.why}; its host stayed up")

    def _rebooted(self, stop: _Stop) -> bool | None:
        """Whether a broker's host began anew meanwhile; None if no metric says it."""
        boots = self._host(stop.down.target, Metric.HOST_BOOT)
        back = self._edges[-1] if stop.end is None else stop.end
        if boots is not None:
            before = boots[: stop.down.first][~np.isnan(boots[: stop.down.first])]
            after = boots[self._place(back) :][~np.isnan(boots[self._place(back) :])]
            if len(before) and len(after):
                return bool(after[0] > before[-1] + _SAME_BOOT_S)
        if stop.began is not None and stop.began - stop.death.low < _FASTEST_BOOT_S:
            return False
        up = self.samples.of(Metric.UP, stop.down.target)
        took = self.samples.of(Metric.SCRAPE_SECONDS, stop.down.target)
        during = slice(stop.down.first, stop.down.last + 1)
        refused = took[during][up[during] == 0.0]
        # A host that is there refuses at once, and one that is not lets scrapes run into timeouts.
        return False if len(refused) and (refused == 0.0).all() else None

    def _host(self, target: str, metric: Metric) -> Array | None:
        names = [n for n in self.samples.targets_of(metric) if host_of(n) == host_of(target)]
        return self.samples.of(metric, names[0]) if len(names) == 1 else None

    # Common causes

    def _common_cause(self, group: Sequence[_Stop]) -> tuple[tuple[str, ...], str]:
        """Which mechanism stopped several at once, by elimination of all that it was not."""
        several = self._several()
        crashes = stopping_several()
        full, upgraded = self._disks_full(group), self._upgraded(group)
        rebooted = [self._rebooted(stop) for stop in group]
        if all(rebooted):
            whole = len({stop.down.target for stop in group}) == len(self.brokers)
            scope = Scope.CLUSTER if whole else Scope.RACK
            zones = {self._zone(stop.down.target) for stop in group}
            if scope is Scope.RACK and len(zones) > 1:
                return tuple(several), "their hosts began anew, in several zones"
            return (mechanism(BrokerEvent.POWER, scope),), "their hosts began anew"
        if upgraded and True not in rebooted:
            return (self._crash(Sign.NEW_VERSION),), "they had just got another version"
        may_be = list(several)
        if None not in rebooted:
            may_be = list(crashes) if True not in rebooted else may_be
        if full is False:
            may_be = list(_without(may_be, self._crash(Sign.FULL_DISK)))
        if upgraded is False:
            may_be = list(_without(may_be, self._crash(Sign.NEW_VERSION)))
        return tuple(may_be), "several brokers died within a minute"

    def _crash(self, sign: Sign) -> str:
        return mechanism(BrokerEvent.CRASH, Scope.CLUSTER, sign)

    def _zone(self, target: str) -> float:
        row = self.samples.of(Metric.ZONE, target)
        said = row[~np.isnan(row)]
        return float(said[-1]) if len(said) else 0.0

    def _disks_full(self, group: Sequence[_Stop]) -> bool | None:
        """Whether all of a group had no room on a disk; None if that is not known of all."""
        full: list[bool | None] = []
        for stop in group:
            rows = self._disks(stop.down.target)
            start, end = stop.start - _TOGETHER_S - self.step, stop.start + _TOGETHER_S
            last = self._place(start)
            was_full = [
                (self._between(row, start, end) == 0.0).any() and (row[: last + 1] > 0.0).any()
                for row in rows
            ]
            failed = self.samples.of(Metric.OFFLINE_LOG_DIRS, stop.down.target)
            if (self._between(failed, start, stop.start) > 0.0).any():
                full.append(True)
            else:
                full.append(any(was_full) if rows else None)
        return None if None in full else all(full)

    def _disks(self, target: str) -> list[Array]:
        names = self.samples.targets_of(Metric.HOST_ROOM)
        own = (name for name in names if host_of(name) == host_of(target))
        return [self.samples.of(Metric.HOST_ROOM, name) for name in own]

    def _upgraded(self, group: Sequence[_Stop]) -> bool | None:
        """Whether all of a group changed their version not long before; None if not known."""
        changed = []
        for stop in group:
            row = self.samples.of(Metric.VERSION, stop.down.target)
            first, last = self._place(stop.start - _DAY_S), self._place(stop.start)
            said, seconds = row[first:last], self.samples.seconds[first:last]
            is_said = ~np.isnan(said)
            if not is_said.any():
                return None
            own, recent = (
                said[is_said][-1],
                self.samples.times[first:last] > (stop.start - _UPGRADED_S),
            )
            is_old = is_said & ~recent
            versions = np.unique(said[is_old])
            times = [seconds[is_old & (said == version)].sum() for version in versions]
            usual = versions[np.argmax(times)] if len(versions) else said[is_said][0]
            changed.append(own != usual and not (said[is_old][-1:] == own).any())
        return all(changed)

    # Brokers that are fenced while their processes live

    def _fenced(self, stops: Sequence[_Stop]) -> Iterator[Event]:
        """Yield times in which brokers were fenced that did not stop: frozen, or cut off."""
        fenced = self._of_active(Metric.FENCED)
        is_whole = fenced + self._of_active(Metric.ACTIVE_BROKERS) == len(self.brokers)
        down = np.zeros(len(fenced))
        for stop in stops:
            until = np.inf if stop.end is None else stop.end
            down[self._place(stop.start - self.step - self.blur) : self._place(until) + 1] += 1.0
        for first, last in true_runs(is_whole & (fenced > down)):
            start, end = float(self._edges[first]), float(self._edges[last + 1])
            if not first or last + 1 == len(fenced) or not is_whole[[first - 1, last + 1]].all():
                # Who joins the cluster, or is not scraped, may have stopped unseen.
                continue
            if fenced[first - 1] >= fenced[first] or fenced[last + 1] >= fenced[last]:
                # An outage is seen to begin a scrape later, or to end a scrape earlier.
                continue
            away = self._down_throughout(stops, start, end)
            others = [broker for broker in self.brokers if broker not in away]
            if not all(self._lived(broker, first, last) for broker in others):
                continue
            count = int((fenced - down)[first : last + 1].max())
            silent = [broker for broker in others if self._was_silent(broker, first, last)]
            why = (
                f"FencedBrokerCount rose by {count} for {end - start:.0f} s, and every process "
                "lived: frozen or cut off, metrics do not tell which"
            )
            brokers = tuple(silent) if len(silent) == count else ()
            yield Event((), FENCED, brokers, start, end, why)

    def _of_active(self, metric: Metric) -> Array:
        """What the active controller says; others may have read too little of the records."""
        said: Array = np.full(len(self.samples.times), np.nan)
        for target in self.samples.targets_of(Metric.ACTIVE):
            is_active = self.samples.of(Metric.ACTIVE, target) == 1.0
            said = np.where(is_active, self.samples.of(metric, target), said)
        return said

    def _down_throughout(self, stops: Sequence[_Stop], start: float, end: float) -> set[str]:
        """Brokers that were down, and fenced for it, before and after a time."""
        late = _LATEST_MISSED_S + self.step + self.blur
        return {
            stop.down.target
            for stop in stops
            if stop.death.high + late < start and end + late < self._edges[stop.down.last + 1]
        }

    def _lived(self, broker: str, first: int, last: int) -> bool:
        """Whether a broker's process was the same after some intervals and a minute before them.

        One that starts is fenced until it serves.
        """
        begun = self.samples.of(Metric.START, broker)
        long_before = self._edges[first] - _TOGETHER_S - self.step - self.blur
        before, after = begun[: self._place(long_before) + 1], begun[last + 1 :]
        before, after = before[~np.isnan(before)], after[~np.isnan(after)]
        return bool(len(before) and len(after) and before[-1] == after[0])

    def _was_silent(self, broker: str, first: int, last: int) -> bool:
        return bool((self.samples.of(Metric.UP, broker)[first : last + 1] != 1.0).any())

    # ISRs that leaders shrink

    def _shrunk(self, stops: Sequence[_Stop]) -> Iterator[Event]:
        """Yield followers that lagged and leaders that lost theirs, while all brokers were up."""
        seen = sorted(
            (float(time), broker)
            for broker in self.brokers
            for time in self.rises(Metric.ISR_SHRINKS, broker)
            if not any(self._covers(stop, broker, float(time)) for stop in stops)
        )
        group: list[tuple[float, str]] = []
        end = -np.inf
        for time, broker in seen:
            if group and time > max(group[-1][0] + _SHRINKS_APART_S, end):
                yield self._of_shrinks(group, end)
                group = []
            group.append((time, broker))
            end = max(end, self._expanded(time))
        if group:
            yield self._of_shrinks(group, end)

    def _covers(self, stop: _Stop, broker: str, time: float) -> bool:
        """Whether an outage may be why a leader shrank an ISR: as it begins, or at its end."""
        late = self.step + self.blur
        begin = stop.start if broker == stop.down.target else stop.death.low - _SLACK_S
        if begin <= time <= stop.death.high + _LATEST_SHRINK_S + late:
            return True
        # Who returns is behind at first.
        back = self.samples.times[stop.down.last] if stop.down.returned else np.inf
        return bool(back <= time <= (np.inf if stop.end is None else stop.end + late))

    def _expanded(self, time: float) -> float:
        """When no more replicas were missing than before a shrink."""
        place = self._place(time)
        before = self._lacking[max(place - 1, 0)]
        is_back = self._lacking[place:] <= before
        # The replica is missing from some scrape of its leader on.
        gone = np.flatnonzero(~is_back)
        first = gone[0] if len(gone) and gone[0] < 3 else 0
        later = np.flatnonzero(is_back[first:])
        return float(self.samples.times[place + first + later[0]]) if len(later) else np.inf

    def _of_shrinks(self, group: Sequence[tuple[float, str]], end: float) -> Event:
        start = group[0][0]
        leaders = {broker for time, broker in group if time <= start + _SHRINKS_APART_S}
        lag = mechanism(BrokerEvent.LAG, Scope.BROKER)
        gray = mechanism(BrokerEvent.LIMP, Scope.BROKER)
        refusing = {b for b in self.brokers if self._most(Metric.UNDER_MIN_ISR, b, start, end) > 0}
        until = None if np.isinf(end) else end
        event = Event((lag, gray), OUT_OF_SYNC, (), start, until, "IsrShrinks rose")
        if len(leaders) == 1:
            (leader,) = leaders
            led = self._most(Metric.LEADERS, leader, start, end)
            mostly_behind = (
                self._most(Metric.UNDER_REPLICATED, leader, start, end) > _MOST_LEADERS * led
            )
            if mostly_behind and refusing == {leader}:
                why = "IsrShrinks rose on it alone, and most of what it led fell below min ISR"
                dies = table()[gray].dies
                shares = {} if dies is None else {dies.key: False}
                return replace(
                    event, may_be=(gray,), brokers=(leader,), evidence=why, shares=shares
                )
            if mostly_behind or refusing:
                return event
        elif refusing:
            return event
        why = f"IsrShrinks rose on {', '.join(sorted(leaders))}, and nothing was below min ISR"
        followers = [b for b in self.brokers if b not in leaders]
        struck = tuple(followers) if len(followers) == 1 else ()
        return replace(event, may_be=(lag,), brokers=struck, evidence=why)

    def _most(self, metric: Metric, broker: str, start: float, end: float) -> float:
        row = self._between(self.samples.of(metric, broker), start, min(end, start + 300.0))
        return float(np.nanmax(row)) if len(row) and not np.isnan(row).all() else 0.0

    def _with_deaths(self, events: Sequence[Event]) -> list[Event]:
        """Let the death of a half-dead leader be the end of that, and no crash of its own."""
        gray = table()[mechanism(BrokerEvent.LIMP, Scope.BROKER)]
        limping = [event for event in events if event.may_be == (gray.name,)]
        rest = [event for event in events if event.may_be != (gray.name,)]
        if gray.dies is None:
            return list(events)
        for number, event in enumerate(limping):
            for other in rest:
                is_in = event.start <= other.start <= (event.end or np.inf) + self.step
                deaths = {death.outage for death in gray.deaths}
                if other.brokers != event.brokers or not is_in or not deaths & set(other.may_be):
                    continue
                if not set(other.may_be) <= deaths:
                    # It may have been told to stop: whether that was its death is not known.
                    limping[number] = replace(event, shares={})
                else:
                    rest.remove(other)
                    why = f"{event.evidence}; then {other.evidence}"
                    shares: dict[str, bool] = {gray.dies.key: True}
                    if gray.hard is not None and len(other.may_be) == 1:
                        takes = {death.outage: death.takes_host for death in gray.deaths}
                        shares[gray.hard.key] = takes[other.may_be[0]]
                    limping[number] = replace(event, end=other.end, evidence=why, shares=shares)
                    break
        return [*limping, *rest]


def _own_fences(
    group: Sequence[_Stop], fences: Sequence[Span], number: int, late_s: float
) -> list[Span]:
    """Which fencings may be of one of a group, each of whom was fenced once.

    No broker was fenced before it was seen to serve for the last time; late_s: after a scrape, the
    next one at the latest.
    """
    seen_last = [stop.start - late_s for stop in group]
    others = sorted(time for place, time in enumerate(seen_last) if place != number)
    own = []
    for place, fence in enumerate(fences):
        rest = sorted(other.high for spot, other in enumerate(fences) if spot != place)
        pairs = zip(rest, others, strict=True)
        if fence.high >= seen_last[number] and all(high >= seen for high, seen in pairs):
            own.append(fence)
    return own


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """A name in an order in which broker-10 comes after broker-9."""
    return tuple((int(word), "") if word.isdigit() else (0, word) for word in _WORDS.findall(name))


def _without(names: Sequence[str], name: str) -> tuple[str, ...]:
    return tuple(other for other in names if other != name)
