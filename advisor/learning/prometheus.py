"""What brokers reported to Prometheus, and when: answers of its HTTP API, and dumps of its data.

Answers are the JSON of `query_range`; dumps are the text of `promtool tsdb dump`, and OpenMetrics.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import InputError, shown
from advisor.learning.metric_names import Metric, key_of, version_of, zone_of

Array = NDArray[np.float64]

MOST_DUMP_BYTES = 500_000_000
_FIRST_CHARACTERS = 20_000
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SAMPLE = re.compile(r"\w*\{.*\} \S+ \d+(\.\d+)?")
# Seconds since 1970 stay below it for three thousand years.
_MILLISECONDS = 1e11


@dataclass(frozen=True)
class Series:
    """What one target reported of one metric; times in seconds since 1970, ascending.

    Labels, as a text, tell two series of one target and metric apart.
    """

    cluster: str
    target: str
    metric: Metric
    times: Array
    values: Array
    labels: str = ""


def is_answer(document: object) -> bool:
    """Whether a JSON document is an answer of Prometheus' HTTP API."""
    return isinstance(document, Mapping) and "status" in document


class Answer(NamedTuple):
    """The series of an answer that are read."""

    series: tuple[Series, ...]


def answer_of(document: Mapping[str, Any], where: str) -> Answer:
    """Return the series of an answer that are read; others are left out.

    Raises InputError if it is an error, no range of times, or malformed.
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
            yield from series_of(key, labels, times, values)


def series_of(
    key: tuple[str, str, Metric], labels: Mapping[str, Any], times: Array, values: Array
) -> Iterator[Series]:
    """Yield a series, and what its labels say: the version, or the zone where the target stands."""
    if key[2] is Metric.VERSION:
        values = np.where(np.isnan(values), np.nan, version_of(labels) or np.nan)
    text = label_text(labels)
    yield Series(*key, times, values, text)
    zone = zone_of(labels) if key[2] is Metric.UP else None
    if zone is not None:
        in_zone = np.where(np.isnan(values), np.nan, zone)
        yield Series(*key[:2], Metric.ZONE, times, in_zone, text)


def label_text(labels: Mapping[str, Any]) -> str:
    """Return labels as a text, which is the same for the same labels.

    >>> label_text({"instance": "b1", "__name__": "up"})
    '__name__="up",instance="b1"'
    """
    return ",".join(f'{key}="{labels[key]}"' for key in sorted(labels))


def is_dump(text: str) -> bool:
    r"""Whether a text is a dump of samples, by its first line that is no comment.

    >>> is_dump('{__name__="up", instance="b1"} 1 1735689600000\n'), is_dump("brokers = 12")
    (True, False)
    """
    lines = (line for line in text[:_FIRST_CHARACTERS].splitlines() if line[:1] not in ("", "#"))
    return _SAMPLE.fullmatch(next(lines, "")) is not None


def dump_of(text: str, where: str, bad_lines: list[str] | None = None) -> Answer:
    """Return the series of a dump that are read; others are left out.

    Lines that are no samples with a time are put into a list, if one is given.

    Raises InputError if a line is no sample with a time, and there is no list for it.
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
            if bad_lines is not None:
                bad_lines.append(line)
                continue
            raise InputError(
                f"{where}:{number}: it is no sample with a time: {shown(line)}."
            ) from None
        if name not in keys:
            all_labels[name] = labels_of(name)
            keys[name] = key_of(all_labels[name])
        if keys[name] is not None:
            rows.setdefault(name, []).append((time, value))
    dumped: list[Series] = []
    for name, pairs in rows.items():
        key = keys[name]
        if key is not None:
            numbers = np.array(sorted(pairs))
            # Dumps of blocks have milliseconds, OpenMetrics has seconds.
            seconds = numbers[:, 0] / (1000.0 if numbers[-1, 0] > _MILLISECONDS else 1.0)
            dumped.extend(series_of(key, all_labels[name], seconds, numbers[:, 1]))
    return Answer(tuple(dumped))


def labels_of(text: str) -> dict[str, str]:
    """Return the labels of a series as Prometheus writes it.

    >>> labels_of('up{instance="b1"}')
    {'__name__': 'up', 'instance': 'b1'}
    """
    name, _, inside = text.partition("{")
    labels = {key: _unquoted(said) for key, said in _LABEL.findall(inside)}
    return {"__name__": name, **labels} if name else labels


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
