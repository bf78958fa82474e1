"""What Amazon MSK reported to CloudWatch: the JSON of `aws cloudwatch get-metric-data`.

A result says what it is of in its label only, so that the query has to put the metric's name there,
and the broker's number. Its values are of periods: a minute, five, or an hour. An average above 0
says that something was above 0 in the period, and how much on average; a maximum, how much at most.
When in the period that was, and how often, is in neither.

MSK has no metric that says when a process began. So an outage cannot be told from a lagging
follower, and what is proved is that nothing happened, how long writes were refused, and, by the
minute, that no controller was active.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from advisor.errors import InputError, shown
from advisor.formatting import HOURS_PER_YEAR
from advisor.learning.evidence import UNNAMED, ClusterHistory, Gap, Outage, Refused, Seen
from advisor.learning.metric_causes import of_quorum, stopping_one, stopping_several
from advisor.learning.metric_names import Metric, metric_of
from advisor.learning.posterior import Lengths
from advisor.learning.prometheus import Array, Series
from advisor.learning.transitions import Samples, runs_of, samples_of_runs, step_of
from advisor.rendering import one_line

UNDER_REPLICATED = "under-replicated partitions"
"""What a time is called in which replicas were missing, for whatever reason."""
_RESULTS = "MetricDataResults"
_STATISTICS = ("average", "maximum", "minimum", "sum", "samplecount")
_BROKERS = (Metric.UNDER_REPLICATED, Metric.UNDER_MIN_ISR)
_CLUSTERS = (Metric.OFFLINE, Metric.ACTIVE, Metric.PARTITIONS)
_WHOLE_CLUSTER = "cluster"
_MINUTE = 60.0


class CloudWatchSeries(NamedTuple):
    """A series, the seconds of its periods, and its statistic, or "" if the label has none."""

    series: Series
    period: float
    statistic: str


class CloudWatch(NamedTuple):
    """The series of an answer that are read."""

    series: tuple[CloudWatchSeries, ...]


def is_cloudwatch(document: object) -> bool:
    """Whether a JSON document is what `get-metric-data` answers."""
    return isinstance(document, Mapping) and _RESULTS in document


def cloudwatch_of(document: Mapping[str, Any], where: str) -> CloudWatch:
    """Return the series of an answer that are read; others are left out.

    Raises InputError if it is malformed, or not complete.
    """
    results = document[_RESULTS]
    if not isinstance(results, list):
        raise InputError(f"{where}: {_RESULTS} is no list.")
    if document.get("NextToken"):
        raise InputError(
            f"{where}: the answer goes on (NextToken); without --max-items the AWS CLI gets all."
        )
    rows = [_one(result, f"{where}: result {n}") for n, result in enumerate(results, 1)]
    return CloudWatch(tuple(row for row in rows if row is not None))


def _one(result: Any, where: str) -> CloudWatchSeries | None:
    if not isinstance(result, Mapping):
        raise InputError(f"{where} is no table.")
    label = f"{result.get('Label', '')} {result.get('Id', '')}"
    words = re.findall(r"[^\s,;:|=]+", label)
    metric = next((m for m in (metric_of({"__name__": word}) for word in words) if m), None)
    if metric not in (*_BROKERS, *_CLUSTERS):
        return None
    if result.get("StatusCode") not in (None, "Complete"):
        raise InputError(f"{where}: it is not complete ({shown(result.get('StatusCode'))}).")
    times, values = _numbers(result, where)
    if len(times) < 2:
        return None
    plain = [word.lower() for word in words]
    statistic = next((name for name in _STATISTICS if name in plain), "")
    if statistic in ("minimum", "samplecount"):
        return None
    target = _WHOLE_CLUSTER
    if metric in _BROKERS:
        target = next((word for word in words if word.isascii() and word.isdigit()), "")
        if not target:
            raise InputError(
                f"{where}: its label ({shown(result.get('Label', ''))}) has no broker's number; "
                "the query of docs/learn.md writes it there."
            )
    return CloudWatchSeries(
        Series(_cluster(words), one_line(target), metric, times, values),
        step_of(np.diff(times)),
        statistic,
    )


def _cluster(words: Sequence[str]) -> str:
    """The cluster's name: the word `cluster=...` of a label, as the query of the docs writes it."""
    for name, value in pairwise(words):
        if name.lower() == "cluster":
            return one_line(value)
    return ""


def _numbers(result: Mapping[str, Any], where: str) -> tuple[Array, Array]:
    stamps, values = result.get("Timestamps"), result.get("Values")
    if not isinstance(stamps, list) or not isinstance(values, list) or len(stamps) != len(values):
        raise InputError(f"{where}: it has no Timestamps with as many Values.")
    try:
        times = np.array([_seconds(stamp) for stamp in stamps])
        numbers = np.array([float(value) for value in values])
    except (TypeError, ValueError):
        raise InputError(f"{where}: a time or a value in it cannot be read.") from None
    # CloudWatch gives the last first, unless told otherwise.
    order = np.argsort(times, kind="stable")
    times, numbers = times[order], numbers[order]
    if len(times) and ((np.diff(times) <= 0).any() or not np.isfinite(numbers).all()):
        raise InputError(f"{where}: a time is there twice, or a value is no number.")
    return times, numbers


def _seconds(stamp: Any) -> float:
    if isinstance(stamp, int | float) and not isinstance(stamp, bool):
        return float(stamp)
    moment = datetime.fromisoformat(str(stamp).replace("Z", "+00:00"))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# What it proves


def histories_of(answers: Sequence[CloudWatch], where: str) -> list[ClusterHistory]:
    """Return what happened in each cluster.

    Raises InputError if there is no series of a broker.
    """
    by_cluster: dict[str, list[CloudWatchSeries]] = {}
    for row in (row for answer in answers for row in answer.series):
        by_cluster.setdefault(row.series.cluster, []).append(row)
    if not any(row.series.metric in _BROKERS for rows in by_cluster.values() for row in rows):
        raise InputError(
            f"{where}: no result is of UnderReplicatedPartitions or UnderMinIsrPartitionCount of a "
            "broker, by its label; docs/learn.md has the query."
        )
    return [_history(rows, name or UNNAMED, where) for name, rows in by_cluster.items()]


def _history(rows: Sequence[CloudWatchSeries], name: str, where: str) -> ClusterHistory:
    rows = _finest(rows)
    samples = samples_of_runs([runs_of(row.series, row.period) for row in rows], where)
    seen: dict[str, Seen] = {}
    exposures: dict[str, float] = {}
    notes: list[str] = []
    quiet = _quiet(samples)
    if quiet is None:
        notes.append(_note(stopping_one(), "UnderReplicatedPartitions of the brokers is missing"))
    elif (quiet == 0.0).any():
        said = "a missing replica may be an outage or a follower that lags"
        notes.append(_note(stopping_one(), said))
    else:
        watched = len(samples.targets_of(Metric.UNDER_REPLICATED))
        seconds = float(samples.seconds[quiet == 1.0].sum())
        for mechanism in (*stopping_one(), *stopping_several()):
            of_cluster = mechanism in stopping_several()
            seen[mechanism] = Seen(0)
            exposures[mechanism] = _years(seconds) * (1 if of_cluster else watched)
    lost, length = _quorum(samples, rows, notes)
    if length is not None:
        ended = tuple((o.end - o.start).total_seconds() / 60.0 for o in lost if o.end is not None)
        both = {"minutes": Lengths(ended)} if lost else {}
        seen[of_quorum()], exposures[of_quorum()] = Seen(len(lost), both), _years(length)
    brokers = {t for metric in _BROKERS for t in samples.targets_of(metric)}
    return ClusterHistory(
        name=name,
        named=name != UNNAMED,
        brokers=max(len(brokers), 1),
        years=_years(samples.seconds.sum()),
        seen=seen,
        outages=tuple(sorted([*lost, *_missing(samples, quiet, name)], key=lambda o: o.start)),
        since=_moment(samples.times[0]),
        until=_moment(samples.end),
        refused=_refused(samples, rows, notes),
        exposures=exposures,
        gaps=tuple(_gaps(samples, brokers)),
        notes=tuple(notes),
    )


def _note(mechanisms: Sequence[str], reason: str) -> str:
    return f"CloudWatch does not tell {', '.join(mechanisms)}: {reason}; they stay as they were."


def _finest(rows: Sequence[CloudWatchSeries]) -> list[CloudWatchSeries]:
    """Series without the times of which a shorter period is there."""
    chosen: list[CloudWatchSeries] = []
    for row in sorted(rows, key=lambda row: row.period):
        series = row.series
        outside = np.ones(len(series.times), dtype=bool)
        for other in chosen:
            if (other.series.metric, other.series.target) == (series.metric, series.target):
                first, last = other.series.times[0], other.series.times[-1] + other.period
                outside &= (series.times + row.period <= first) | (series.times >= last)
        if outside.any():
            rest = replace(series, times=series.times[outside], values=series.values[outside])
            chosen.append(row._replace(series=rest))
    return chosen


def _quiet(samples: Samples) -> Array | None:
    """1 where every broker says that no replica is missing, 0 where some is; else NaN."""
    targets = samples.targets_of(Metric.UNDER_REPLICATED)
    if not targets:
        return None
    rows = np.array([samples.of(Metric.UNDER_REPLICATED, target) for target in targets])
    is_missing = (np.nan_to_num(rows) > 0.0).any(axis=0)
    quiet: Array = np.where(np.isnan(rows).any(axis=0), np.nan, 1.0)
    quiet[is_missing] = 0.0
    return quiet


def _missing(samples: Samples, quiet: Array | None, name: str) -> list[Outage]:
    """Times with missing replicas, for the timeline; whether brokers were down is not known."""
    spans = [] if quiet is None else _spans(samples, quiet == 0.0)
    said = "UnderReplicatedPartitions above 0 in these periods"
    return [Outage(UNDER_REPLICATED, (), start, end, said, name) for start, end in spans]


def _quorum(
    samples: Samples, rows: Sequence[CloudWatchSeries], notes: list[str]
) -> tuple[list[Outage], float | None]:
    """Times without an active controller, and the seconds that were watched; None if unknown."""
    periods = [row.period for row in rows if row.series.metric is Metric.ACTIVE]
    if not periods:
        return [], None
    active = samples.of(Metric.ACTIVE, _WHOLE_CLUSTER)
    said = "ActiveControllerCount is 0 in these periods"
    name = of_quorum()
    lost = [Outage(name, (), a, b, said) for a, b in _spans(samples, active == 0.0)]
    if max(periods) > _MINUTE:
        notes.append(_note([name], "a loss that is shorter than a period does not show"))
        return lost, None
    return lost, float(samples.seconds[~np.isnan(active)].sum())


def _refused(
    samples: Samples, rows: Sequence[CloudWatchSeries], notes: list[str]
) -> Refused | None:
    """Minutes without writes; None where a period is too long to say how many."""
    targets = samples.targets_of(Metric.UNDER_MIN_ISR)
    partitions = samples.of(Metric.PARTITIONS, _WHOLE_CLUSTER)
    if not targets or not samples.targets_of(Metric.OFFLINE) or np.isnan(partitions).all():
        return None
    offline = samples.of(Metric.OFFLINE, _WHOLE_CLUSTER)
    under = np.array([samples.of(Metric.UNDER_MIN_ISR, target) for target in targets])
    is_seen = ~np.isnan(under).any(axis=0) & ~np.isnan(offline)
    refused = np.nansum(under, axis=0) + np.nan_to_num(offline)
    vague = [row for row in rows if _is_vague(row) and (row.series.values > 0.0).any()]
    if vague:
        notes.append(
            f"{vague[0].series.metric.value} is above 0 in a period of "
            f"{vague[0].period / _MINUTE:g} minutes, and for how long is not known: how much was "
            "refused is not compared."
        )
        return None
    total = float((refused * samples.seconds)[is_seen].sum()) / _MINUTE
    any_minutes = float(samples.seconds[is_seen & (refused > 0.0)].sum()) / _MINUTE
    return Refused(
        minutes=total / max(float(np.nanmedian(partitions)), 1.0),
        years=_years(samples.seconds[is_seen].sum()),
        partition_minutes=total,
        any_minutes=any_minutes,
    )


def _is_vague(row: CloudWatchSeries) -> bool:
    """Whether a value does not say how long; of a cluster's metric several brokers report each."""
    exact = row.statistic == "average" and row.series.metric is Metric.UNDER_MIN_ISR
    of_writes = row.series.metric in (Metric.UNDER_MIN_ISR, Metric.OFFLINE)
    return of_writes and row.period > _MINUTE and not exact


def _gaps(samples: Samples, brokers: Iterable[str]) -> Iterator[Gap]:
    for broker in sorted(brokers):
        rows = [samples.of(m, broker) for m in _BROKERS if broker in samples.targets_of(m)]
        silent = np.logical_or.reduce([np.isnan(row) for row in rows])
        yield from (Gap(broker, start, end) for start, end in _spans(samples, silent))


def _spans(samples: Samples, marks: np.ndarray) -> list[tuple[datetime, datetime]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marks.astype(np.int8), [0]])))
    times = np.append(samples.times, samples.end)
    pairs = zip(edges[::2], edges[1::2], strict=True)
    return [(_moment(times[first]), _moment(times[last])) for first, last in pairs]


def _years(seconds: float) -> float:
    return float(seconds) / 3600.0 / HOURS_PER_YEAR


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)
