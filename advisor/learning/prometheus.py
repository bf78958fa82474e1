"""What brokers reported to Prometheus, and when: answers of its HTTP API, and dumps of its data.

Answers are the JSON of `query_range`; dumps are the text of `promtool tsdb dump`, and OpenMetrics.

One MBean has many spellings, by the rules of the exporter. A metric is known by the end of its
name, without case and punctuation. So ``kafka_server_ReplicaManager_UnderMinIsrPartitionCount``,
``kafka_server_replicamanager_underminisrpartitioncount_value`` and
``kafka_server_replicamanager_value`` with the label ``name="UnderMinIsrPartitionCount"`` are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import InputError, shown
from advisor.rendering import one_line

Array = NDArray[np.float64]


class Metric(Enum):
    """A metric, by the end of its name: small letters and digits only."""

    UP = "up"
    """Whether the target answered; Prometheus' own."""
    START = "processstarttimeseconds"
    """When the process began; the exporter's, of every JVM."""
    UNDER_REPLICATED = "underreplicatedpartitions"
    """kafka.server:type=ReplicaManager,name=UnderReplicatedPartitions, of each broker."""
    UNDER_MIN_ISR = "underminisrpartitioncount"
    """kafka.server:type=ReplicaManager,name=UnderMinIsrPartitionCount, of each broker."""
    LEADERS = "replicamanagerleadercount"
    """kafka.server:type=ReplicaManager,name=LeaderCount, of each broker."""
    OFFLINE = "offlinepartitionscount"
    """kafka.controller:type=KafkaController,name=OfflinePartitionsCount; every controller's."""
    PARTITIONS = "globalpartitioncount"
    """kafka.controller:type=KafkaController,name=GlobalPartitionCount; every controller's."""
    ACTIVE = "activecontrollercount"
    """kafka.controller:type=KafkaController,name=ActiveControllerCount; 1 on the active one."""
    APPLIED_LAG_MS = "lastappliedrecordlagms"
    """kafka.controller:type=KafkaController,name=LastAppliedRecordLagMs; grows without a quorum."""


_WHOLE = (Metric.UP,)
_SUFFIXES = ("value", "total", "count")
_TARGETS = ("pod", "kubernetes_pod_name", "instance")
"""Labels that name a target: a pod keeps its name when its address changes."""
_CLUSTERS = ("cluster", "kafka_cluster", "strimzi_io_cluster")
MOST_DUMP_BYTES = 500_000_000
_FIRST_CHARACTERS = 20_000
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SAMPLE = re.compile(r"\w*\{.*\} \S+ \d+(\.\d+)?")
# Seconds since 1970 stay below it for three thousand years.
_MILLISECONDS = 1e11


def metric_of(labels: Mapping[str, Any]) -> Metric | None:
    """Return the metric that a series is of; None if it is none that is read.

    >>> metric_of({"__name__": "kafka_server_ReplicaManager_UnderMinIsrPartitionCount_Value"}).name
    'UNDER_MIN_ISR'
    >>> metric_of({"__name__": "kafka_controller_value", "name": "OfflinePartitionsCount"}).name
    'OFFLINE'
    """
    name = _plain(labels.get("__name__", ""))
    if name == Metric.UP.value:
        return Metric.UP
    own = _plain(labels.get("name", ""))
    for spelled in (name, *(name.removesuffix(s) for s in _SUFFIXES if name.endswith(s))):
        for metric in Metric:
            if metric not in _WHOLE and f"{spelled}{own}".endswith(metric.value):
                return metric
    return None


def _plain(text: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", str(text).lower())


@dataclass(frozen=True)
class Series:
    """What one target reported of one metric; times in seconds since 1970, ascending."""

    cluster: str
    target: str
    metric: Metric
    times: Array
    values: Array


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
        key = _key(labels)
        if key is not None:
            times, values = _numbers(result.get("values"), f"{where}: series {number}")
            yield Series(*key, times, values)


def _key(labels: Mapping[str, Any]) -> tuple[str, str, Metric] | None:
    """Cluster, target and metric of a series; None if it is not read."""
    metric = metric_of(labels)
    target = next((one_line(labels[key]) for key in _TARGETS if key in labels), "")
    if metric is None or not target:
        return None
    cluster = next((one_line(labels[key]) for key in _CLUSTERS if key in labels), "")
    return cluster, target, metric


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
            keys[name] = _key({"__name__": before, **labels} if before else labels)
        if keys[name] is not None:
            rows.setdefault(name, []).append((time, value))
    # Dumps of blocks have milliseconds, OpenMetrics has seconds.
    return Answer(tuple(_dumped(keys[name], pairs) for name, pairs in rows.items()))


def _dumped(key: tuple[str, str, Metric] | None, pairs: Sequence[tuple[float, float]]) -> Series:
    assert key is not None
    numbers = np.array(sorted(pairs))
    times = numbers[:, 0]
    return Series(*key, times / 1000.0 if times[-1] > _MILLISECONDS else times, numbers[:, 1])


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
