"""What Prometheus has of a history: samples with jitter and gaps, in several spellings.

In: a `History` and how it is scraped. Out: `Series` in memory; the JSON that `query_range` answers,
which looks back five minutes; the text of `promtool tsdb dump`, with true times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from metric_histories import (
    BROKER_COLUMNS,
    CLUSTER_COLUMNS,
    History,
    Process,
)

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

LOOKBACK_S = 300.0
_STALE = np.nan
_STARTS_WITHOUT_RECORDS_MS = 1.8e12


class Bean(NamedTuple):
    """An attribute of an MBean: domain, type, name, whether it counts, and its own labels."""

    domain: str
    type: str
    name: str
    counts: bool = False
    labels: tuple[tuple[str, str], ...] = ()


def _replica_manager(name: str, counts: bool = False) -> Bean:
    return Bean("kafka.server", "ReplicaManager", name, counts)


def _controller(name: str, *labels: tuple[str, str]) -> Bean:
    return Bean("kafka.controller", "KafkaController", name, False, labels)


GAUGES: Mapping[str, Bean] = {
    "leaders": _replica_manager("LeaderCount"),
    "under_replicated": _replica_manager("UnderReplicatedPartitions"),
    "under_min_isr": _replica_manager("UnderMinIsrPartitionCount"),
    "at_min_isr": _replica_manager("AtMinIsrPartitionCount"),
}
COUNTERS: Mapping[str, Bean] = {
    "shrinks": _replica_manager("IsrShrinksPerSec", True),
    "expands": _replica_manager("IsrExpandsPerSec", True),
}
PARTITIONS = _replica_manager("PartitionCount")
FAILED_PRODUCES = Bean("kafka.server", "BrokerTopicMetrics", "FailedProduceRequestsPerSec", True)
BROKER_STATE = Bean("kafka.server", "KafkaServer", "BrokerState")


# Spellings


Spelling = Callable[[Bean], tuple[str, dict[str, str]]]


def _rate_name(bean: Bean, total: str) -> str:
    return bean.name.removesuffix("PerSec") + total if bean.counts else bean.name


def _lower(bean: Bean) -> tuple[str, dict[str, str]]:
    """As the exporter's example for Kafka 2.0, and Strimzi's, write it."""
    name, labels = _camel(bean)
    return name.lower(), labels


def _camel(bean: Bean) -> tuple[str, dict[str, str]]:
    """The same rules without lowercaseOutputName."""
    domain = bean.domain.replace(".", "_")
    return f"{domain}_{bean.type}_{_rate_name(bean, '_total')}", dict(bean.labels)


def _count_total(bean: Bean) -> tuple[str, dict[str, str]]:
    """Counters as exporter 1.x writes them where a rule kept Count."""
    domain = bean.domain.replace(".", "_")
    suffix = "_count_total" if bean.counts else ""
    return f"{domain}_{bean.type}_{bean.name}{suffix}".lower(), dict(bean.labels)


def _value(bean: Bean) -> tuple[str, dict[str, str]]:
    """With the attribute as a suffix."""
    domain = bean.domain.replace(".", "_")
    suffix = "_Count" if bean.counts else "_Value"
    return f"{domain}_{bean.type}_{bean.name}{suffix}", dict(bean.labels)


def _name_label(bean: Bean) -> tuple[str, dict[str, str]]:
    """As the exporter writes without rules: the bean's name is a label."""
    domain = bean.domain.replace(".", "_")
    suffix = "Count" if bean.counts else "Value"
    return f"{domain}_{bean.type}_{suffix}", {"name": bean.name, **dict(bean.labels)}


SPELLINGS: Mapping[str, Spelling] = {
    "lower": _lower,
    "camel": _camel,
    "count_total": _count_total,
    "value": _value,
    "name_label": _name_label,
}


# Samples


@dataclass(frozen=True)
class Scraping:
    """How a cluster is scraped.

    Attributes
    ----------
    step_s : float
    spelling : str
        A key of `SPELLINGS`.
    cluster : str
        Label of all series; "" for none.
    jitter_s : float
        Standard deviation of the times of scrapes around their grid.
    node_exporter : bool
        Whether the hosts are scraped, too: their `up`, boot time and free space.
    seed : int
    """

    step_s: float = 15.0
    spelling: str = "lower"
    cluster: str = ""
    jitter_s: float = 0.004
    node_exporter: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Series:
    """A series: labels, its name among them, true times of its samples; NaN marks its end."""

    labels: Mapping[str, str]
    times: Array
    values: Array


@dataclass(frozen=True)
class _Target:
    """A target under one address: its scrapes, and when it answered."""

    labels: Mapping[str, str]
    times: Array
    up: Bools
    process: NDArray[np.int64]
    """Which of its processes a scrape met; -1 for none."""
    removed_at: float | None = None
    beans: Bools = field(default_factory=lambda: np.zeros(0, dtype=bool))


def series_of(history: History, scraping: Scraping) -> Iterator[Series]:
    """Yield everything that Prometheus has of a history, target after target."""
    rng = np.random.default_rng(scraping.seed)
    for target, processes in history.processes.items():
        kind, _, number = target.partition("-")
        for scraped in _targets(history, target, scraping, rng):
            if kind == "broker":
                yield from _of_broker(history, int(number), scraped, processes, scraping)
            else:
                yield from _of_controller(history, int(number), scraped, processes, scraping)
        if kind == "broker" and scraping.node_exporter:
            yield from _of_host(history, int(number), scraping, rng)


def _targets(
    history: History, target: str, scraping: Scraping, rng: np.random.Generator
) -> Iterator[_Target]:
    """Yield a target, or each of its addresses after the other."""
    processes = history.processes[target]
    offset = rng.uniform(0.0, scraping.step_s)
    for number, (since, until) in enumerate(_addresses(history, target, rng)):
        times = _scrapes(history, since, until, offset, scraping, rng)
        process = _of_intervals(times, [(p.answers, p.end) for p in processes])
        silent = sorted((*history.gaps, *history.frozen), key=lambda gap: gap.start)
        missing = [(gap.start, gap.end) for gap in silent if gap.target == target]
        up = (process >= 0) & (_of_intervals(times, missing) < 0)
        beans = up & (
            _of_intervals(times, [(p.beans, min(p.stops, p.end)) for p in processes]) >= 0
        )
        removed = until if until < history.end else None
        labels = _labels(history, target, number, scraping)
        yield _Target(labels, times, up, process, removed, beans)


def _addresses(
    history: History, target: str, rng: np.random.Generator
) -> Iterator[tuple[float, float]]:
    """Yield from when to when a target is under each address: a pod that was stopped gets another.

    One whose process died keeps its address.
    """
    since = history.world.start
    if history.world.pods:
        for before, after in pairwise(history.processes[target]):
            if before.stops < before.end:
                gone = before.end + float(rng.uniform(0.0, 5.0))
                yield since, min(gone, after.start)
                since = after.start
    yield since, history.end


def _scrapes(
    history: History,
    since: float,
    until: float,
    offset: float,
    scraping: Scraping,
    rng: np.random.Generator,
) -> Array:
    """Times of scrapes in milliseconds' precision, without those in which Prometheus was down."""
    step = scraping.step_s
    first, last = np.ceil((since - offset) / step), np.ceil((until - offset) / step)
    grid = np.arange(first, last) * step + offset
    times: Array = np.round(grid + rng.normal(0.0, scraping.jitter_s, len(grid)), 3)
    down = [(gap.start, gap.end) for gap in history.gaps if gap.target is None]
    watched: Array = times[_of_intervals(times, down) < 0]
    return watched


def _of_intervals(times: Array, intervals: list[tuple[float, float]]) -> NDArray[np.int64]:
    """Which of some separate intervals, in order, holds each time; -1 for none."""
    if not intervals:
        return np.full(len(times), -1)
    starts, ends = np.array(intervals).T
    place = np.searchsorted(starts, times, side="right") - 1
    inside = (place >= 0) & (times < ends[place])
    return np.where(inside, place, -1)


def _labels(history: History, target: str, number: int, scraping: Scraping) -> dict[str, str]:
    kind, _, name = target.partition("-")
    labels = {"job": "kafka" if kind == "broker" else "kafka-controller"}
    if scraping.cluster:
        labels["cluster"] = scraping.cluster
    if not history.world.pods:
        return {**labels, "instance": f"{target}.example.org:9404"}
    host = int(name) + (100 if kind == "controller" else 0)
    labels["instance"] = f"10.{number // 200}.{number % 200}.{host}:9404"
    return {**labels, "namespace": "kafka", "pod": f"main-{kind}-{name}"}


def _present(
    target: _Target, name: str, own: Mapping[str, str], values: Array, there: Bools
) -> Series:
    """The samples of a series that a target exports at some of its scrapes, and its stale markers.

    Where the scrape before had it and this one has not, Prometheus writes the end of the series.
    """
    ends = np.flatnonzero(there[:-1] & ~there[1:]) + 1
    wanted = there.copy()
    wanted[ends] = True
    times, kept_values = target.times[wanted], np.where(there, values, _STALE)[wanted]
    if target.removed_at is not None and len(there) and there[-1]:
        times = np.append(times, np.round(target.times[-1] + 10.0, 3))
        kept_values = np.append(kept_values, _STALE)
    return Series({"__name__": name, **target.labels, **own}, times, kept_values)


def _spelled(
    target: _Target, scraping: Scraping, bean: Bean, values: Array, there: Bools
) -> Series:
    name, own = SPELLINGS[scraping.spelling](bean)
    return _present(target, name, own, np.asarray(values, dtype=float), there)


def _of_process(target: _Target, processes: list[Process]) -> Iterator[Series]:
    """Yield `up`, and when the process began."""
    always = np.ones(len(target.times), dtype=bool)
    yield _present(target, "up", {}, target.up.astype(float), always)
    starts = np.round([process.start for process in processes], 3)
    began = starts[np.maximum(target.process, 0)]
    yield _present(target, "process_start_time_seconds", {}, began, target.up)


def _of_broker(
    history: History,
    broker: int,
    target: _Target,
    processes: list[Process],
    scraping: Scraping,
) -> Iterator[Series]:
    yield from _of_process(target, processes)
    times, there = target.times, target.beans
    columns = {name: history.broker_changes[name].at(times)[:, broker] for name in BROKER_COLUMNS}
    for name, bean in GAUGES.items():
        yield _spelled(target, scraping, bean, columns[name], there)
    hosted = (history.world.placement() == broker).sum()
    yield _spelled(target, scraping, PARTITIONS, np.full(len(times), hosted), there)
    began = np.array([process.start for process in processes])
    which = np.maximum(target.process, 0)
    for name, bean in COUNTERS.items():
        before = history.broker_changes[name].at(np.maximum(began, history.world.start))[:, broker]
        yield _spelled(target, scraping, bean, columns[name] - before[which], there)
    failed = _failed(history, broker, times)
    failed -= _failed(history, broker, np.maximum(began, history.world.start))[which]
    yield _spelled(target, scraping, FAILED_PRODUCES, np.round(failed), there)
    state = np.where(columns["state"] == 10, 2, 3)
    yield _spelled(target, scraping, BROKER_STATE, state, there)
    for version in sorted({version for _, other, version in history.versions if other == broker}):
        runs = _version_at(history, broker, began, version)[which]
        own = {"version": version}
        yield _present(target, "kafka_server_app_info", own, np.ones(len(times)), there & runs)


def _failed(history: History, broker: int, times: Array) -> Array:
    """Requests to produce that had failed by some times, ten a second while the leader chokes."""
    changes = history.broker_changes["failing"]
    failing = changes.rows[:, broker]
    by_change = np.concatenate([[0.0], np.cumsum(np.diff(changes.times) * failing[:-1])])
    place = np.searchsorted(changes.times, times, side="right") - 1
    result: Array = 10.0 * (by_change[place] + failing[place] * (times - changes.times[place]))
    return result


def _version_at(history: History, broker: int, began: Array, version: str) -> Bools:
    """Whether processes that began at some times run a version."""
    own = [(since, said) for since, other, said in history.versions if other == broker]
    place = np.searchsorted([since for since, _ in own], began, side="right") - 1
    runs: Bools = np.array([own[max(p, 0)][1] == version for p in place], dtype=bool)
    return runs


def _of_controller(
    history: History,
    controller: int,
    target: _Target,
    processes: list[Process],
    scraping: Scraping,
) -> Iterator[Series]:
    yield from _of_process(target, processes)
    times, there, world = target.times, target.beans, history.world
    since, active = map(np.array, zip(*history.active_controllers, strict=True))
    is_active = active[np.searchsorted(since, times, side="right") - 1] == controller
    yield _spelled(target, scraping, _controller("ActiveControllerCount"), is_active, there)
    # A controller that starts has read no records yet.
    beans_since = np.array([p.beans for p in processes])[np.maximum(target.process, 0)]
    empty = times < beans_since + 4.0
    totals = history.cluster_changes.at(times)
    for name, column in (("OfflinePartitionsCount", "offline"), ("FencedBrokerCount", "fenced")):
        values = np.where(empty, 0.0, totals[:, CLUSTER_COLUMNS.index(column)])
        yield _spelled(target, scraping, _controller(name), values, there)
    fenced = totals[:, CLUSTER_COLUMNS.index("fenced")]
    counts = {"ActiveBrokerCount": world.brokers - fenced}
    counts["GlobalPartitionCount"] = np.full(len(times), float(world.partitions))
    for name, values in counts.items():
        yield _spelled(target, scraping, _controller(name), np.where(empty, 0.0, values), there)
    yield _spelled(
        target,
        scraping,
        _controller("LastAppliedRecordLagMs"),
        _lag_ms(history, times, empty),
        there,
    )
    if world.version.startswith("3."):
        return
    leaving = np.where(empty, 0.0, totals[:, CLUSTER_COLUMNS.index("leaving")])
    yield _spelled(target, scraping, _controller("ControlledShutdownBrokerCount"), leaving, there)
    states = history.broker_changes["state"].at(times)
    for broker in range(1, world.brokers + 1):
        bean = _controller("BrokerRegistrationState", ("broker", str(broker)))
        yield _spelled(target, scraping, bean, states[:, broker], there & ~empty)


def _lag_ms(history: History, times: Array, empty: Bools) -> Array:
    """Age of the last record: up to half a second, and growing while there is no quorum."""
    usual = np.floor(times * 1_000.0 % 500.0)
    lost = _of_intervals(times, history.quorum_lost)
    since = np.array([start for start, _ in history.quorum_lost] or [0.0])
    grown = np.floor((times - since[np.maximum(lost, 0)]) * 1_000.0) + usual
    return np.where(empty, _STARTS_WITHOUT_RECORDS_MS, np.where(lost >= 0, grown, usual))


def _of_host(
    history: History, broker: int, scraping: Scraping, rng: np.random.Generator
) -> Iterator[Series]:
    """Yield what the host's exporter has: it is away with the host, not with the broker."""
    start, offset = history.world.start, rng.uniform(0.0, scraping.step_s)
    times = _scrapes(history, start, history.end, offset, scraping, rng)
    struck = [o for o in history.outages if o.kind.value in ("broker.power", "rack.power")]
    own = [o for o in struck if broker in o.brokers]
    away, boots = [], [start - 1e6]
    for outage in own:
        later = [p.start for p in history.processes[f"broker-{broker}"] if p.start > outage.start]
        away.append((outage.start, min(later) - 3.0))
        boots.append(min(later) - 20.0)
    up = _of_intervals(times, away) < 0
    labels = {"job": "node", "instance": f"broker-{broker}.example.org:9100"}
    if scraping.cluster:
        labels["cluster"] = scraping.cluster
    target = _Target(labels, times, up, np.zeros(len(times), dtype=np.int64))
    yield _present(target, "up", {}, up.astype(float), np.ones(len(times), dtype=bool))
    booted = np.array(boots)[np.searchsorted(boots, times, side="right") - 1]
    yield _present(target, "node_boot_time_seconds", {}, np.floor(booted), up)
    full = [(a, b) for other, a, b in history.disks_full if other == broker]
    free = np.where(_of_intervals(times, sorted(full)) < 0, 4e11, 0.0)
    own_labels = {"mountpoint": "/var/lib/kafka"}
    yield _present(target, "node_filesystem_avail_bytes", own_labels, free, up)


# What is written


def query_range(
    history: History, scraping: Scraping, step_s: float | None = None
) -> dict[str, Any]:
    """Return what the HTTP API answers for all series, on a grid; silence is bridged."""
    step = step_s or scraping.step_s
    start = np.ceil(history.world.start / step) * step
    grid = np.arange(start, history.end, step)
    rows = []
    for series in series_of(history, scraping):
        values = _looked_up(series, grid)
        there = ~np.isnan(values)
        if there.any():
            texts = _texts(values[there])
            pairs = [[time, text] for time, text in zip(grid[there].tolist(), texts, strict=True)]
            rows.append({"metric": dict(series.labels), "values": pairs})
    return {"status": "success", "data": {"resultType": "matrix", "result": rows}}


def _looked_up(series: Series, grid: Array) -> Array:
    """The last sample of the five minutes before each time; NaN if there is none."""
    if not len(series.times):
        return np.full(len(grid), np.nan)
    place = np.searchsorted(series.times, grid, side="right") - 1
    fresh = (place >= 0) & (grid - series.times[place] < LOOKBACK_S)
    return np.where(fresh, series.values[place], np.nan)


def dump(history: History, scraping: Scraping) -> Iterator[str]:
    """Yield the lines of `promtool tsdb dump`: every sample with its own time, series by series."""
    for series in series_of(history, scraping):
        inside = ", ".join(f'{name}="{text}"' for name, text in sorted(series.labels.items()))
        stamps = np.round(series.times * 1_000.0).astype(np.int64).tolist()
        for text, stamp in zip(_texts(series.values), stamps, strict=True):
            yield f"{{{inside}}} {text} {stamp}"


def _texts(values: Array) -> list[str]:
    """Values as Go writes them in short: whole numbers without a point."""
    distinct, places = np.unique(values, return_inverse=True)
    texts = ["NaN" if np.isnan(value) else _text(float(value)) for value in distinct]
    return [texts[place] for place in places]


def _text(value: float) -> str:
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
