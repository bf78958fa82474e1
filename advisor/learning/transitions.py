"""From samples to what changed: runs of equal values, and when which of them held.

One sample in two thousand differs from the one before it. So only runs are held: the first and last
time of a value without a gap. A gap is more than one and a half steps without a sample, and ends a
run; the last value of a run holds for one step.

Each target is scraped at a moment of its own, some milliseconds early or late. What changed in one
scrape of a target is given one time; targets keep their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.errors import InputError, shown
from advisor.formatting import HOURS_PER_YEAR
from advisor.learning.metric_names import Metric
from advisor.learning.prometheus import Array, Series

Places = NDArray[np.int64]
_Key = tuple[Metric, str]

JOINED = 1.5
"""Steps between two samples beyond which something is missing between them."""
RESOLUTIONS = {
    Metric.APPLIED_LAG_MS: 10_000.0,
    Metric.SCRAPE_SECONDS: 2.0,
    Metric.HOST_BOOT: 60.0,
    Metric.HOST_ROOM: 2.0**26,
}
"""Of metrics that never stand still: the steps by which they are held, rounded down."""
_SAME_SCRAPE = 0.25
"""Of a step, between changes that were seen in one scrape of a target."""
_MOST_OFF = 0.01
"""Share of the gaps between samples that may be no multiple of a step."""
ENOUGH_GAPS = 10
_HANDOVER_S = 300.0
"""After the start of a series in which one of the same target may end: Prometheus looks back so."""
MOST_TIMES_COMMON = 5
"""Of the step of a cluster, beyond which a step is taken for gaps: a target that hardly answers."""
_MOST_POINTS = 100_000_000
# Prometheus began in 2012; more is a clock that was wrong for a time, or another unit.
_MOST_YEARS = 30.0
_YEAR_9999 = 253_370_764_800.0


class Runs(NamedTuple):
    """Runs of equal values without a gap, of one metric of one target.

    step_seconds: between two samples.
    firsts, lasts (n,): times of the first and last sample of each run, in seconds since 1970;
        firsts ascend.
    counts (n,): samples of each run.
    values (n,).
    labels: tell two series of one target and metric apart.
    """

    cluster: str
    target: str
    metric: Metric
    step_seconds: float
    firsts: Array
    lasts: Array
    counts: Places
    values: Array
    labels: str = ""


def runs_of(series: Series, step_seconds: float) -> Runs:
    """Return the runs of a series; NaN, which marks an end, counts as no sample.

    >>> times = np.array([0.0, 30.0, 60.0, 150.0, 180.0])
    >>> up = Series("", "b1", Metric.UP, times, np.array([1.0, 1.0, 0.0, 0.0, 0.0]))
    >>> runs = runs_of(up, 30.0)
    >>> runs.firsts.tolist(), runs.lasts.tolist(), runs.values.tolist()
    ([0.0, 60.0, 150.0], [30.0, 60.0, 180.0], [1.0, 0.0, 0.0])
    """
    is_sample = ~np.isnan(series.values)
    times, values = series.times[is_sample], rounded(series.metric, series.values[is_sample])
    is_break = (np.diff(times) > JOINED * step_seconds) | (values[1:] != values[:-1])
    starts = np.flatnonzero(np.concatenate([[len(times) > 0], is_break]))
    ends = np.append(starts[1:], len(times))[: len(starts)]
    return Runs(
        series.cluster,
        series.target,
        series.metric,
        step_seconds,
        times[starts],
        times[ends - 1],
        ends - starts,
        values[starts],
        series.labels,
    )


def rounded(metric: Metric, values: Array) -> Array:
    """Return values as they are held: exact, but for metrics that never stand still."""
    resolution = RESOLUTIONS.get(metric)
    if resolution is None:
        return values
    held: Array = np.floor(values / resolution) * resolution
    # Of a disk only counts whether it has room.
    return np.minimum(held, resolution) if metric is Metric.HOST_ROOM else held


class _Held(NamedTuple):
    """What held when: value i from edge i to edge i + 1; NaN where nothing was reported."""

    edges: Array
    values: Array


@dataclass(frozen=True)
class Samples:
    """What the targets of a cluster reported, piecewise constant.

    step_seconds: between two scrapes.
    times (n,): starts of the intervals in which nothing changes, in seconds since 1970.
    seconds (n,): lengths of the intervals.
    """

    cluster: str
    step_seconds: float
    times: Array
    seconds: Array
    _places: Mapping[_Key, Places]
    _values: Mapping[_Key, Array]

    @property
    def end(self) -> float:
        """When the last interval ends, in seconds since 1970."""
        return float(self.times[-1] + self.seconds[-1])

    @property
    def blur(self) -> float:
        """How many seconds a sample may be older than its time: a step, on one grid for all."""
        phases = (self.times[1:] / self.step_seconds) % 1.0
        around = np.abs(np.exp(2j * np.pi * phases).mean()) if len(phases) else 1.0
        return self.step_seconds if around > 0.999 else 0.0

    def targets_of(self, metric: Metric) -> list[str]:
        """Return the targets that ever reported a metric."""
        return sorted(target for kind, target in self._values if kind is metric)

    def of(self, metric: Metric, target: str) -> Array:
        """Return what a target reported in each interval; NaN where, or if, nothing."""
        row: Array = np.full(len(self.times), np.nan)
        places = self._places.get((metric, target))
        if places is not None:
            values = self._values[metric, target]
            row[places[0] : places[-1]] = np.repeat(values, np.diff(places))
        return row


def samples_of(series: Iterable[Series], where: str) -> list[Samples]:
    """Return what held when in each cluster; pieces of a series are joined.

    Raises InputError: nothing to read, or no common step.
    """
    by_cluster: dict[str, list[Series]] = {}
    for entry in series:
        if len(entry.times):
            by_cluster.setdefault(entry.cluster, []).append(entry)
    if not by_cluster:
        raise nothing_read(where)
    return [samples_of_runs(_with_steps(members, where), where) for members in by_cluster.values()]


def nothing_read(where: str) -> InputError:
    """Return what is said where no series is one that is read."""
    return InputError(
        f"{where}: there is no series of a broker that is read, such as up with the label "
        "instance and kafka_server_replicamanager_underminisrpartitioncount."
    )


def _with_steps(members: Sequence[Series], where: str) -> list[Runs]:
    """Runs of the series of a cluster, each with the step of its target and metric."""
    gaps: dict[_Key, list[Array]] = {}
    for entry in members:
        gaps.setdefault((entry.metric, entry.target), []).append(np.diff(entry.times))
    joined = {key: np.concatenate(pieces) for key, pieces in gaps.items()}
    everywhere = np.concatenate([*joined.values()])
    if not len(everywhere):
        raise InputError(f"{where}: no series has two times; ask for a longer time.")
    common = step_of(everywhere)
    steps = {key: _own_step(own, common) for key, own in joined.items()}
    off = sum(int(_is_off(own / steps[key]).sum()) for key, own in joined.items())
    if off > _MOST_OFF * len(everywhere):
        raise InputError(
            f"{where}: times are not {common:g} s apart everywhere; ask for all with one step, "
            "and starts that are multiples of it."
        )
    return [runs_of(entry, steps[entry.metric, entry.target]) for entry in members]


def _own_step(gaps: Array, common: float) -> float:
    own = step_of(gaps) if len(gaps) >= ENOUGH_GAPS else common
    return own if own <= MOST_TIMES_COMMON * common else common


def _is_off(gaps_in_steps: Array) -> NDArray[np.bool_]:
    off: NDArray[np.bool_] = np.abs(gaps_in_steps - np.round(gaps_in_steps)) > _SAME_SCRAPE
    return off


def step_of(gaps: Array) -> float:
    """Return the most frequent of gaps between samples, in whole seconds.

    >>> step_of(np.array([30.01, 29.98, 60.0, 30.0]))
    30.0
    """
    steps, counts = np.unique(np.round(gaps), return_counts=True)
    return max(float(steps[counts.argmax()]), 1.0)


def samples_of_runs(runs: Sequence[Runs], where: str) -> Samples:
    """Return what held when in one cluster; runs of one metric of one target are laid together.

    Raises InputError: two series of one metric and target that contradict each other, or more than
        can be held.
    """
    by_key: dict[_Key, list[Runs]] = {}
    for entry in runs:
        if len(entry.values):
            by_key.setdefault((entry.metric, entry.target), []).append(entry)
    if not by_key:
        raise nothing_read(where)
    held = {key: _overlaid(pieces, where) for key, pieces in by_key.items()}
    step = _common_step(runs)
    held = _to_the_edges(_at_scrapes(held, step), step)
    times = np.unique(np.concatenate([row.edges for row in held.values()]))
    if times[-1] - times[0] > _MOST_YEARS * HOURS_PER_YEAR * 3600.0 or not _is_date(times[[0, -1]]):
        raise InputError(
            f"{where}: times go from {times[0]:.0f} to {times[-1]:.0f} s since 1970, which no "
            "Prometheus has seen; say since and until."
        )
    targets = len({target for _, target in held})
    if len(times) * targets > _MOST_POINTS:
        raise InputError(
            f"{where}: {targets:,} targets change at {len(times):,} times, more than can be held; "
            "give less time."
        )
    places = {key: np.searchsorted(times, row.edges) for key, row in held.items()}
    values = {key: row.values for key, row in held.items()}
    return Samples(runs[0].cluster, step, times[:-1], np.diff(times), places, values)


def _is_date(seconds: Array) -> bool:
    return bool((seconds >= 0.0).all() and (seconds < _YEAR_9999).all())


def _common_step(runs: Sequence[Runs]) -> float:
    """The step of most samples."""
    samples: dict[float, int] = {}
    for entry in runs:
        samples[entry.step_seconds] = samples.get(entry.step_seconds, 0) + int(entry.counts.sum())
    return max(samples, key=lambda step: (samples[step], -step))


def _overlaid(pieces: Sequence[Runs], where: str) -> _Held:
    """What several series of one metric of one target say, of which a later piece counts."""
    rows = [_held(piece) for piece in sorted(pieces, key=lambda piece: float(piece.firsts[0]))]
    if len(rows) == 1:
        return rows[0]
    step = pieces[0].step_seconds
    edges = np.unique(np.concatenate([row.edges for row in rows]))
    values, seconds = np.full(len(edges) - 1, np.nan), np.diff(edges)
    for row in rows:
        places = np.searchsorted(edges, row.edges)
        inside = slice(places[0], places[-1])
        given, before = np.repeat(row.values, np.diff(places)), values[inside]
        is_both = ~np.isnan(given) & ~np.isnan(before) & (given != before)
        # A pod's old address may be scraped still, or repeated, when its new one is already there.
        if row.edges[0] > edges[0] + step:
            is_both &= edges[1:][inside] > row.edges[0] + _HANDOVER_S + step
        # Two that are scraped at different moments differ for less than a step at each change.
        if (is_both & (seconds[inside] >= step)).any():
            raise InputError(
                f"{where}: two series of {pieces[0].metric.name.lower()} are both of "
                f"{shown(pieces[0].target)}; ask for the job of the brokers only."
            )
        values[inside] = np.where(np.isnan(given), before, given)
    is_seam = np.isnan(values) & (seconds < (JOINED - 1.0) * step)
    before_seams = np.where(is_seam, 0, np.arange(len(values)))
    return _Held(edges, values[np.maximum.accumulate(before_seams)])


def _held(runs: Runs) -> _Held:
    """When which value held: to the next run, or for a step after the last sample."""
    ends = runs.lasts + runs.step_seconds
    is_gap = runs.firsts[1:] - runs.lasts[:-1] > JOINED * runs.step_seconds
    before_gaps = np.flatnonzero(is_gap) + 1
    edges = np.insert(runs.firsts, before_gaps, ends[before_gaps - 1])
    return _Held(np.append(edges, ends[-1]), np.insert(runs.values, before_gaps, np.nan))


def _at_scrapes(held: Mapping[_Key, _Held], step: float) -> dict[_Key, _Held]:
    """Give what changed in one scrape of a target one time, the first."""
    by_target: dict[str, list[Array]] = {}
    for (_, target), row in held.items():
        by_target.setdefault(target, []).append(row.edges)
    scrapes = {}
    for target, edges in by_target.items():
        times = np.unique(np.concatenate(edges))
        scrapes[target] = times[np.append(True, np.diff(times) > _SAME_SCRAPE * step)]
    return {
        (metric, target): _moved(row, scrapes[target]) for (metric, target), row in held.items()
    }


def _moved(row: _Held, scrapes: Array) -> _Held:
    edges = scrapes[np.searchsorted(scrapes, row.edges, side="right") - 1]
    # What began and ended in one scrape is gone; a single such run holds for a step.
    stays = np.append(np.diff(edges) > 0.0, True)
    return _Held(edges[stays], row.values[stays[:-1]])


def _to_the_edges(held: Mapping[_Key, _Held], step: float) -> dict[_Key, _Held]:
    """Let targets begin and end together whose first and last scrapes are within one step."""
    firsts, lasts = _ends_of_targets(held)
    begin, end = min(firsts.values()), max(lasts.values())
    moved = {}
    for (metric, target), row in held.items():
        edges = row.edges.copy()
        if edges[0] == firsts[target] < begin + step:
            edges[0] = begin
        if edges[-1] == lasts[target] > end - step:
            edges[-1] = end
        moved[metric, target] = _Held(edges, row.values)
    return moved


def _ends_of_targets(held: Mapping[_Key, _Held]) -> tuple[dict[str, float], dict[str, float]]:
    firsts: dict[str, float] = {}
    lasts: dict[str, float] = {}
    for (_, target), row in held.items():
        first, last = float(row.edges[0]), float(row.edges[-1])
        firsts[target] = min(firsts.get(target, first), first)
        lasts[target] = max(lasts.get(target, last), last)
    return firsts, lasts


def true_runs(marks: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last places of each run of marks.

    >>> true_runs(np.array([True, False, True, True]))
    [(0, 0), (2, 3)]
    """
    edges = np.diff(np.concatenate([[0], marks.astype(np.int8), [0]]))
    starts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1) - 1
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
