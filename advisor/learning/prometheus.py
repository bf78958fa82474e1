"""What brokers reported to Prometheus, and when: answers of its HTTP API, and dumps of its data.

Answers are the JSON of `query_range`; dumps are the text of `promtool tsdb dump`, and OpenMetrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import InputError, shown
from advisor.learning.metric_names import Metric, key_of, version_of

Array = NDArray[np.float64]

_MOST_POINTS = 50_000_000
MOST_DUMP_BYTES = 500_000_000
_FIRST_CHARACTERS = 20_000
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SAMPLE = re.compile(r"\w*\{.*\} \S+ \d+(\.\d+)?")
# Seconds since 1970 stay below it for three thousand years.
_MILLISECONDS = 1e11
_TOLERANCE = 0.25
"""Of a step, by which a sample may be early or late."""
_MOST_OFF = 0.01


@dataclass(frozen=True)
class Series:
    """What one target reported of one metric; times in seconds since 1970, ascending."""

    cluster: str
    target: str
    metric: Metric
    times: Array
    values: Array


@dataclass(frozen=True)
class Samples:
    """What the targets of a cluster reported, on one grid of times.

    Attributes
    ----------
    cluster : str
    step_seconds : float
    times : array, shape (n,)
        Seconds since 1970.
    values : mapping of (Metric, str) to array, shape (n,)
        By metric and target; NaN where nothing was reported.
    """

    cluster: str
    step_seconds: float
    times: Array
    values: Mapping[tuple[Metric, str], Array]

    def targets_of(self, metric: Metric) -> list[str]:
        """Return the targets that ever reported a metric."""
        return sorted(target for kind, target in self.values if kind is metric)

    def of(self, metric: Metric, target: str) -> Array:
        """Return what a target reported; NaN throughout if nothing."""
        missing = np.full(len(self.times), np.nan)
        return self.values.get((metric, target), missing)


def is_answer(document: object) -> bool:
    """Whether a JSON document is an answer of Prometheus' HTTP API."""
    return isinstance(document, Mapping) and "status" in document


class Answer(NamedTuple):
    """The series of an answer that are read."""

    series: tuple[Series, ...]


def answer_of(document: Mapping[str, Any], where: str) -> Answer:
    """Return the series of an answer that are read; others are left out.

    Raises
    ------
    InputError
        It is an error, no range of times, or malformed.
    """
    if document.get("status") != "success":
        said = shown(document.get("error", "no reason was given"))
        raise InputError(f"{where}: Prometheus answered with an error ({said}); ask again.")
    data = document.get("data")
    if not isinstance(data, Mapping) or data.get("resultType") != "matrix":
        raise InputError(f"{where}: it is no range of times; save the answer of query_range.")
    results = data.get("result")
    if not isinstance(results, list):
        raise InputError(f"{where}: its result is no list.")
    return Answer(tuple(_series(results, where)))


def _series(results: Sequence[Any], where: str) -> Iterator[Series]:
    for number, result in enumerate(results, 1):
        labels = result.get("metric") if isinstance(result, Mapping) else None
        if not isinstance(labels, Mapping):
            raise InputError(f"{where}: series {number} has no labels.")
        key = key_of(labels)
        if key is not None:
            times, values = _numbers(result.get("values"), f"{where}: series {number}")
            yield series_of(key, labels, times, values)


def series_of(
    key: tuple[str, str, Metric], labels: Mapping[str, Any], times: Array, values: Array
) -> Series:
    """Return a series; that of a version, which is in a label, with the version as its number."""
    if key[2] is Metric.VERSION:
        values = np.full(len(times), version_of(labels) or np.nan)
    return Series(*key, times, values)


def is_dump(text: str) -> bool:
    r"""Whether a text is a dump of samples, by its first line that is no comment.

    >>> is_dump('{__name__="up", instance="b1"} 1 1735689600000\n'), is_dump("brokers = 12")
    (True, False)
    """
    lines = (line for line in text[:_FIRST_CHARACTERS].splitlines() if line[:1] not in ("", "#"))
    return _SAMPLE.fullmatch(next(lines, "")) is not None


def dump_of(text: str, where: str) -> Answer:
    """Return the series of a dump that are read; others are left out.

    Raises
    ------
    InputError
        A line is no sample with a time.
    """
    keys: dict[str, tuple[str, str, Metric] | None] = {}
    all_labels: dict[str, dict[str, str]] = {}
    rows: dict[str, list[tuple[float, float]]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line[:1] in ("", "#"):
            continue
        name, _, rest = line.rpartition("} ")
        try:
            value, time = map(float, rest.split())
        except ValueError:
            raise InputError(
                f"{where}:{number}: it is no sample with a time: {shown(line)}."
            ) from None
        if name not in keys:
            before, _, inside = name.partition("{")
            labels = {key: _unquoted(text) for key, text in _LABEL.findall(inside)}
            all_labels[name] = {"__name__": before, **labels} if before else labels
            keys[name] = key_of(all_labels[name])
        if keys[name] is not None:
            rows.setdefault(name, []).append((time, value))
    dumped = []
    for name, pairs in rows.items():
        key = keys[name]
        if key is not None:
            numbers = np.array(sorted(pairs))
            # Dumps of blocks have milliseconds, OpenMetrics has seconds.
            seconds = numbers[:, 0] / (1000.0 if numbers[-1, 0] > _MILLISECONDS else 1.0)
            dumped.append(series_of(key, all_labels[name], seconds, numbers[:, 1]))
    return Answer(tuple(dumped))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def _numbers(raw: Any, where: str) -> tuple[Array, Array]:
    try:
        pairs = np.array([(time, float(value)) for time, value in raw], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{where}: its values are no pairs of a time and a number.") from None
    if not len(pairs):
        return np.empty(0), np.empty(0)
    times = pairs[:, 0]
    if not np.isfinite(times).all() or (np.diff(times) <= 0).any():
        raise InputError(f"{where}: its times do not ascend.")
    return times, pairs[:, 1]


def samples_of(series: Iterable[Series], where: str) -> list[Samples]:
    """Put series on a grid of times, for each cluster; pieces of a series are joined.

    Raises
    ------
    InputError
        Nothing to read, or steps that differ.
    """
    by_cluster: dict[str, list[Series]] = {}
    for entry in series:
        if len(entry.times):
            by_cluster.setdefault(entry.cluster, []).append(entry)
    if not by_cluster:
        raise InputError(
            f"{where}: there is no series of a broker that is read, such as up with the label "
            "instance and kafka_server_replicamanager_underminisrpartitioncount."
        )
    return [_on_grid(cluster, members, where) for cluster, members in by_cluster.items()]


def _on_grid(cluster: str, series: Sequence[Series], where: str) -> Samples:
    step = _step(series, where)
    first = min(float(entry.times[0]) for entry in series)
    last = max(float(entry.times[-1]) for entry in series)
    length = round((last - first) / step) + 1
    keys = {(entry.metric, entry.target) for entry in series}
    if length * len(keys) > _MOST_POINTS:
        raise InputError(
            f"{where}: {length:,} times of {len(keys):,} series are more than can be held; ask for "
            "less time, or a longer step."
        )
    all_places = [_places(entry, first, step, where) for entry in series]
    length = 1 + max(int(places[-1]) for places in all_places)
    values: dict[tuple[Metric, str], Array] = {key: np.full(length, np.nan) for key in keys}
    for entry, places in zip(series, all_places, strict=True):
        row = values[entry.metric, entry.target]
        if (~np.isnan(row[places]) & (row[places] != entry.values)).any():
            raise InputError(
                f"{where}: two series of {entry.metric.name.lower()} are both of "
                f"{shown(entry.target)}; ask for the job of the brokers only."
            )
        row[places] = entry.values
    times: Array = first + step * np.arange(length, dtype=np.float64)
    return Samples(cluster, step, times, values)


def _places(entry: Series, first: float, step: float, where: str) -> NDArray[np.int64]:
    """Places of samples on a grid; a target is scraped at a moment of its own in each step."""
    exact = (entry.times - first) / step
    # By the middle of the circle of moments, so that 0.99 and 0.01 are near each other.
    moment = np.angle(np.exp(2j * np.pi * exact).mean()) / (2.0 * np.pi)
    moment += moment < -_TOLERANCE
    places: NDArray[np.int64] = np.maximum(np.round(exact - moment), 0).astype(np.int64)
    is_off = np.abs(exact - moment - places) > _TOLERANCE
    too_long = len(exact) > 1 and abs(np.median(np.diff(exact)) - 1.0) > _TOLERANCE
    if too_long or is_off.mean() > _MOST_OFF:
        raise InputError(
            f"{where}: times are not {step:g} s apart everywhere; ask for all with one step, "
            "and starts that are multiples of it."
        )
    return places


def _step(series: Sequence[Series], where: str) -> float:
    gaps = [np.diff(entry.times) for entry in series if len(entry.times) > 1]
    if not gaps:
        raise InputError(f"{where}: no series has two times; ask for a longer time.")
    steps, counts = np.unique(np.round(np.concatenate(gaps), 3), return_counts=True)
    return float(steps[counts.argmax()])
