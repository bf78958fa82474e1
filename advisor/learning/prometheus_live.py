"""Ask a Prometheus-compatible server for what changed, and in full only then.

A year of a cluster is some hundred million samples, of which one in two thousand differs from the
one before it. So the server is asked by the hour what its series said, how often they changed, and
how often each target was scraped; and for each sample only in the hours in which something changed
or a scrape is missing. That is a few thousand short questions instead of gigabytes.

`query_range` repeats the last sample for five minutes, so that a gap of Prometheus itself looks as
if everything stood still. Only `count_over_time(up[1h])` and `timestamp(up)` show it: samples are
given the times of the scrapes, and a scrape that is repeated is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.errors import InputError
from advisor.learning.metric_names import (
    OF_HOSTS,
    SPELLINGS,
    Metric,
    bean_pattern,
    host_of,
    key_of,
    metric_of,
    name_pattern,
)
from advisor.learning.prometheus import Answer, Array, Series, answer_of
from advisor.learning.prometheus_api import MOST_POINTS, Server, TooMuchError
from advisor.learning.transitions import Runs, rounded, runs_of, step_of

Hours = NDArray[np.bool_]

_HOUR, _DAY = 3600.0, 86_400.0
_LONGEST_YEARS = 3.0
"""How far back data is looked for where nothing says since when."""
_LOOKS = 500
"""At how many moments it is looked which series there are."""
_DAYS_AT_ONCE = 30.0
_FIRST_IN_FULL = 600.0
"""How much time is asked for first where each sample is."""
_MOST_NUMBERS = 400_000
"""In one answer: about ten megabytes."""
_OVERLAP = "65m"
"""An hour, and a sample before it: a change from one hour to the next belongs to one of them."""
_SLOW_MS = 30_000.0
_STEP_LOOK = 1200.0
_USUAL_STEP = 30.0
"""Between scrapes, where the server does not say when they were."""
_NO_DISKS = "tmpfs|devtmpfs|ramfs|squashfs|overlay|iso9660"
"""File systems whose free space says nothing of a broker's disks."""
_BEFORE_NEXT = 0.01
_MISSED = 1.5
"""Scrapes that an hour may lack: its ends fall between two."""

CHANGING = (
    *(Metric.UP, Metric.START, Metric.BROKER_STATE, Metric.UNDER_REPLICATED, Metric.UNDER_MIN_ISR),
    *(Metric.ISR_SHRINKS, Metric.OFFLINE_LOG_DIRS, Metric.OFFLINE, Metric.ACTIVE, Metric.FENCED),
    *(Metric.ACTIVE_BROKERS, Metric.SHUTTING_DOWN),
)
"""The metrics in whose changes an outage shows; what else changes is read by the hour."""


@dataclass(frozen=True)
class _Asked:
    """What a cluster's series are called, and where they begin.

    matchers: by the name of a metric in Prometheus: which of its series are read.
    names: the names that a metric has.
    begin, seen_last: from when on, and when last, they were seen, in seconds since 1970.
    clusters: by host: the cluster of the broker on it.
    """

    server: Server
    matchers: Mapping[str, str]
    names: Mapping[Metric, frozenset[str]]
    begin: float
    seen_last: float
    clusters: Mapping[str, str]

    def selector(self, name: str) -> str:
        """The series of one name."""
        return f"{{__name__={_quoted(name)},{self.matchers[name]}}}"

    def selectors(self) -> list[str]:
        """The series of all names, in as few selectors as possible."""
        alike: dict[str, list[str]] = {}
        for name, matchers in self.matchers.items():
            alike.setdefault(matchers, []).append(re.escape(name))
        return [
            f"{{__name__=~{_quoted('|'.join(names))},{matchers}}}"
            for matchers, names in alike.items()
        ]

    def placed(self, series: Series) -> Series:
        """A series of a host in the cluster of its broker, whose labels the host may not have."""
        if series.metric not in OF_HOSTS:
            return series
        return replace(series, cluster=self.clusters.get(host_of(series.target), series.cluster))


def runs_at(server: Server, since: float | None, until: float) -> list[Runs]:
    """Return what a server's series of Kafka said, as runs of equal values.

    since: seconds since 1970; None for all that there is, of three years at most.
    Raises InputError if it does not answer, or has no series of a broker.
    """
    asked = _discovered(server, since, until)
    begin = asked.begin if since is None else max(since, asked.begin)
    marks = np.arange(np.ceil(begin / _HOUR), np.floor(until / _HOUR) + 1) * _HOUR
    runs: list[Runs] = []
    step = _step_at(asked)
    if step is None or len(marks) < 2:
        return _in_full(asked, begin, until, step)
    for hours in _blocks(marks):
        quiet = _quiet_hours(asked, hours, step)
        runs += _by_the_hour(asked, hours, quiet, step)
        for start, end in _spans(hours, ~quiet):
            runs += _in_full(asked, start, end, step)
    for start, end in ((begin, float(marks[0])), (float(marks[-1]), until)):
        runs += _in_full(asked, start, end, step) if end - start >= step else []
    return runs


def _blocks(marks: Array) -> Iterator[Array]:
    """Hours that are asked for together: the same ones whenever a server is asked."""
    block = np.floor(marks[:-1] / (_DAYS_AT_ONCE * _DAY))
    edges = [0, *(np.flatnonzero(np.diff(block)) + 1).tolist(), len(marks) - 1]
    for first, last in pairwise(edges):
        yield marks[first : last + 1]


# Which series there are


def _discovered(server: Server, since: float | None, until: float) -> _Asked:
    """Find the series of Kafka by their names, and the jobs that have them.

    Metrics of some hours, that ended long ago, lie between all moments at which it is looked: then
    it is looked for samples between these moments, and there once more.
    """
    begin = until - _LONGEST_YEARS * 365.0 * _DAY if since is None else since
    asked = _looked_for(server, begin, until)
    if asked is None:
        around = None
        # A server that is older than the question says that it does not know it.
        with suppress(TooMuchError):
            around = _looked_for(server, begin, until, between=True)
        closer = around and _looked_for(server, around.begin, around.seen_last)
        asked = closer or around
    if asked is None:
        raise InputError(
            f"{server.where}: no series of a Kafka broker, such as "
            "kafka_server_replicamanager_underminisrpartitioncount, in that time."
        )
    return asked


def _looked_for(server: Server, begin: float, until: float, between: bool = False) -> _Asked | None:
    """The series that are there at some moments, or between them; None if there are none."""
    step = float(np.ceil(max(60.0, min((until - begin) / _LOOKS, _DAY))))
    own = "".join(f",{key}={_quoted(value)}" for key, value in server.labels.items())
    patterns = (
        f"{{__name__=~{_quoted(name_pattern())}{own}}}",
        f'{{__name__=~"(?i).*kafka.*_(value|count|number)",name=~{_quoted(bean_pattern())}{own}}}',
    )
    beans: dict[str, str] = {}
    names: dict[Metric, set[str]] = {}
    jobs: set[str] = set()
    clusters: dict[str, str] = {}
    first, last = np.inf, -np.inf
    for pattern in patterns:
        query = f"last_over_time({pattern}[{step:.0f}s])" if between else pattern
        for labels, times in _labels_and_times(server, query, begin, until, step):
            key = key_of(labels)
            if key is None or not len(times):
                continue
            name = str(labels["__name__"])
            in_label = metric_of({"__name__": name}) is None
            beans.setdefault(name, f"name=~{_quoted(bean_pattern())}," if in_label else "")
            names.setdefault(key[2], set()).add(name)
            jobs.add(str(labels.get("job", "")))
            clusters[host_of(str(labels.get("instance", "")))] = key[0]
            first, last = min(first, times[0]), max(last, times[-1])
    if not beans:
        return None
    for row in SPELLINGS:
        if row.metric in (Metric.UP, Metric.START, Metric.SCRAPE_SECONDS):
            beans[row.end], names[row.metric] = "", {row.end}
    job = f"job=~{_quoted('|'.join(map(re.escape, sorted(jobs))))}{own}"
    matchers = {name: f"{bean}{job}" for name, bean in beans.items()}
    hosts = "|".join(re.escape(host) for host in sorted(clusters) if host)
    for row in SPELLINGS if hosts else ():
        if row.metric in OF_HOSTS:
            disks = f",fstype!~{_quoted(_NO_DISKS)}" if row.metric is Metric.HOST_ROOM else ""
            matchers[row.end] = f"instance=~{_quoted(f'({hosts})(:[0-9]+)?')}{disks}"
    return _Asked(
        server,
        matchers,
        {metric: frozenset(spelled) for metric, spelled in names.items()},
        max(begin, float(first) - step),
        float(last),
        clusters,
    )


def _labels_and_times(
    server: Server, query: str, start: float, end: float, step: float
) -> Iterator[tuple[Mapping[str, Any], Array]]:
    for result in _pieces(server, query, start, end, step):
        labels, values = result.get("metric"), result.get("values")
        if isinstance(labels, Mapping) and isinstance(values, list) and "__name__" in labels:
            yield labels, np.array([float(value[0]) for value in values])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pieces(
    server: Server, query: str, start: float, end: float, step: float
) -> Iterator[Mapping[str, Any]]:
    """The series of an answer, asked for in pieces as long as the server gives."""
    longest = MOST_POINTS * step
    while start <= end:
        until = min(start + longest - step, end)
        try:
            result = server.ask(query, start, until, step)
        except TooMuchError:
            longest = step * np.floor((until - start + step) / step / 2.0)
            if longest < step:
                raise
            continue
        yield from (series for series in result if isinstance(series, Mapping))
        start = until + step


def _answer(asked: _Asked, query: str, start: float, end: float, step: float) -> Answer:
    results = list(_pieces(asked.server, query, start, end, step))
    return answer_of(
        {"status": "success", "data": {"resultType": "matrix", "result": results}},
        asked.server.where,
    )


# By the hour


def _step_at(asked: _Asked) -> float | None:
    """Seconds between two scrapes, by the times of the last ones; None if they are not said."""
    query = f"timestamp({asked.selector('up')})"
    for back in (0.0, _DAY, 7.0 * _DAY):
        end = asked.seen_last - back
        try:
            rows = list(_pieces(asked.server, query, end - _STEP_LOOK, end, 1.0))
        except TooMuchError:
            return None
        gaps = [np.diff(np.unique(_values(row))) for row in rows]
        together = np.concatenate([*gaps, np.empty(0)])
        if len(together):
            return step_of(together)
    return None


def _values(row: Mapping[str, Any]) -> Array:
    try:
        return np.array([float(value) for _, value in row.get("values", ())])
    except (TypeError, ValueError):
        return np.empty(0)


def _quiet_hours(asked: _Asked, marks: Array, step: float) -> Hours:
    """Hours in which no scrape is missing and nothing changed."""
    quiet = np.ones(len(marks) - 1, dtype=bool)
    for metric in CHANGING:
        for name in asked.names.get(metric, ()):
            quiet &= ~_hours_above(asked, f"changes({_within(asked, name)})", marks, 0.0)
    for name in asked.names.get(Metric.APPLIED_LAG_MS, ()):
        query = f"max_over_time({_within(asked, name)})"
        quiet &= ~_hours_above(asked, query, marks, _SLOW_MS)
    return quiet & _scraped(asked, marks, step)


def _within(asked: _Asked, name: str) -> str:
    return f"{asked.selector(name)}[{_OVERLAP}]"


def _hours_above(asked: _Asked, query: str, marks: Array, limit: float) -> Hours:
    """Hours in which a query is above a limit for some series."""
    above = np.zeros(len(marks) - 1, dtype=bool)
    for _, places, values in _on_hours(asked, query, marks):
        above[places[values > limit]] = True
    return above


def _on_hours(
    asked: _Asked, query: str, marks: Array
) -> Iterator[tuple[Mapping[str, Any], NDArray[np.int64], Array]]:
    """Labels of a series, the hours at whose ends it has a value, and the values."""
    first, last = float(marks[1]), float(marks[-1])
    for row in _pieces(asked.server, query, first, last, _HOUR):
        times = np.array([float(value[0]) for value in row.get("values", ())])
        places = np.round((times - first) / _HOUR).astype(np.int64)
        yield row.get("metric", {}), places, _values(row)


def _scraped(asked: _Asked, marks: Array, step: float) -> Hours:
    """Hours in which each target that is there was scraped throughout, or not at all."""
    whole = np.ones(len(marks) - 1, dtype=bool)
    up = f"count_over_time({asked.selector('up')}[1h])"
    for _, places, counts in _on_hours(asked, up, marks):
        scrapes = np.zeros(len(whole))
        scrapes[places] = counts
        whole &= (scrapes == 0.0) | (scrapes >= _HOUR / step - _MISSED)
    return whole


def _by_the_hour(asked: _Asked, marks: Array, quiet: Hours, step: float) -> Iterator[Runs]:
    """Runs of what held in quiet hours: what was said at their ends."""
    for query in asked.selectors():
        answer = _answer(asked, query, float(marks[1]), float(marks[-1]), _HOUR)
        for series in map(asked.placed, answer.series):
            places = np.round((series.times - marks[1]) / _HOUR).astype(np.int64)
            is_quiet = quiet[places] & ~np.isnan(series.values)
            if not is_quiet.any():
                continue
            starts = marks[places[is_quiet]]
            count = max(round(_HOUR / step), 1)
            yield Runs(
                series.cluster,
                series.target,
                series.metric,
                step,
                starts,
                # Until the first scrape of the next hour, whenever in a step that is.
                starts + _HOUR - step * _BEFORE_NEXT,
                np.full(len(starts), count),
                _in_quiet(series.metric, series.values[is_quiet]),
                series.labels,
            )


def _in_quiet(metric: Metric, values: Array) -> Array:
    """What held in quiet hours: of what never stands still, that it was small."""
    if metric is Metric.APPLIED_LAG_MS:
        return np.zeros(len(values))
    return rounded(metric, values)


def _spans(marks: Array, chosen: Hours) -> Iterator[tuple[float, float]]:
    """Hours that are chosen, those next to each other together."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], chosen.astype(np.int8), [0]])))
    for first, last in zip(edges[::2], edges[1::2], strict=True):
        yield float(marks[first]), float(marks[last])


# Each sample


def _in_full(asked: _Asked, start: float, end: float, scraped: float | None) -> list[Runs]:
    """Runs of each sample of some time, in pieces that a server answers."""
    step = scraped or _USUAL_STEP
    begin = np.floor(start / step) * step
    length = step * max(_FIRST_IN_FULL / step, 1.0)
    runs: list[Runs] = []
    while begin < end:
        last = min(begin + length, end)
        series, numbers = _scrapes(asked, begin, last, step, scraped is not None)
        later = (_from(start, entry) for entry in series)
        runs += [runs_of(entry, step) for entry in later if len(entry.times)]
        # As much more as an answer may have, by how much this one had.
        more = _MOST_NUMBERS / max(numbers, 1)
        length = min(length * max(more, 0.5), MOST_POINTS * step, max(4.0 * length, _HOUR))
        length = max(step * np.floor(length / step), step)
        begin = last + step
    return runs


def _from(start: float, entry: Series) -> Series:
    later = entry.times >= start
    return replace(entry, times=entry.times[later], values=entry.values[later])


def _scrapes(
    asked: _Asked, start: float, end: float, step: float, has_times: bool
) -> tuple[list[Series], int]:
    """The samples of a piece, each once, at the times of the scrapes; and how many numbers."""
    moments = _scrape_times(asked, start, end, step) if has_times else {}
    series: list[Series] = []
    numbers = 0
    for query in asked.selectors():
        answer = _answer(asked, query, start, end, step)
        for entry in map(asked.placed, answer.series):
            numbers += len(entry.times)
            times = moments.get((entry.cluster, entry.target.partition(" of ")[0]))
            if not has_times or entry.metric in OF_HOSTS:
                series.append(entry)
            elif times is not None:
                series.append(_at_scrapes(entry, times, start, step))
    return series, numbers


def _scrape_times(
    asked: _Asked, start: float, end: float, step: float
) -> dict[tuple[str, str], Array]:
    """When each target was scraped last before each moment; NaN if never."""
    moments: dict[tuple[str, str], Array] = {}
    query = f"timestamp({asked.selector('up')})"
    count = int(np.floor((end - start) / step)) + 1
    for row in _pieces(asked.server, query, start, end, step):
        key = key_of({**row.get("metric", {}), "__name__": "up"})
        if key is None:
            continue
        values = _values(row)
        times = np.array([float(value[0]) for value in row.get("values", ())])
        places = np.round((times - start) / step).astype(np.int64)
        own = moments.setdefault(key[:2], np.full(count, np.nan))
        own[places] = np.fmax(own[places], values)
    return moments


def _at_scrapes(entry: Series, moments: Array, start: float, step: float) -> Series:
    """A series at the times of the scrapes, without those that are only repeated."""
    places = np.round((entry.times - start) / step).astype(np.int64)
    scraped = moments[places]
    before = np.where(places > 0, moments[np.maximum(places - 1, 0)], np.nan)
    is_new = ~np.isnan(scraped) & ~(scraped == before)
    return replace(entry, times=scraped[is_new], values=entry.values[is_new])
