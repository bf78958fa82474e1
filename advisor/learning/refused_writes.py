"""Minutes in which writes were refused, and how exactly scrapes tell them.

A count that is held from one scrape to the next lasts as long as it should, on average: it is seen
late by a part of a step, at its end as at its beginning. What several targets say together does
not: held so, a burst begins with the first scrape that sees it and ends after the last one, up to a
step too late. So rises, or falls, that may have been at one moment are given one: the middle of the
time that all scrapes leave for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from advisor.formatting import HOURS_PER_YEAR
from advisor.learning.evidence import Refused
from advisor.learning.metric_names import Metric
from advisor.learning.prometheus import Array
from advisor.learning.transitions import Samples

# Of all partitions, that brokers which are scraped lead; with less, some are not scraped.
_MOST_LED = 0.98
_WIDE = 2.0
"""Standard deviations on each side: 95 of 100 times."""


@dataclass
class _Moment:
    """When counts rose, or fell: after `low`, at `high` at the latest; the value of each row."""

    low: float
    high: float
    values: dict[int, float]

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2.0

    @property
    def variance(self) -> float:
        """Of a moment that may have been at any time between both."""
        return (self.high - self.low) ** 2 / 12.0


def refused_writes(samples: Samples, is_seen: np.ndarray) -> Refused | None:
    """Return the minutes without writes while every broker was watched; None if no metric says it.

    A partition without a leader is reported by no broker, but by every controller.

    is_seen (n,): the intervals in which every broker was watched.
    """
    reporting = samples.targets_of(Metric.UNDER_MIN_ISR)
    controllers = samples.targets_of(Metric.OFFLINE)
    if not reporting or not controllers:
        return None
    partitions = _partitions(samples)
    heard = np.array([samples.of(Metric.OFFLINE, target) for target in controllers])
    is_seen = is_seen & ~np.isnan(heard).all(axis=0)
    if not is_seen.any() or partitions <= 0.0:
        return None
    under = np.array([samples.of(Metric.UNDER_MIN_ISR, target) for target in reporting])
    rows = np.nan_to_num(np.concatenate([under, heard]))
    moments = _moments(rows[:, is_seen], samples.times[is_seen], samples.step_seconds, samples.blur)
    counts = _counts(rows[:, is_seen][:, 0], moments, len(reporting))
    edges, minutes = _watched_minutes(samples, is_seen, [moment.middle for moment in moments])
    held = counts[np.searchsorted([moment.middle for moment in moments], edges, side="right")]
    variances = np.array([moment.variance for moment in moments])
    total = float((held * minutes).sum())
    return Refused(
        minutes=total / partitions,
        years=float(samples.seconds[is_seen].sum()) / 3600.0 / HOURS_PER_YEAR,
        partition_minutes=total,
        any_minutes=float(minutes[held > 0.0].sum()),
        partition_minutes_off=_off(np.diff(counts), variances),
        any_minutes_off=_off(np.diff((counts > 0.0).astype(float)), variances),
    )


def _moments(rows: Array, times: Array, step: float, blur: float) -> list[_Moment]:
    """When rows changed, with as few moments as their scrapes allow.

    rows (r, n), times (n,): the values from each time on, which is that of a scrape.
    blur: how much a sample may be older than its time.
    """
    changed, places = np.nonzero(rows[:, 1:] != rows[:, :-1])
    last: dict[bool, _Moment] = {}
    moments: list[_Moment] = []
    for number in np.argsort(times[places + 1], kind="stable"):
        row, place = int(changed[number]), int(places[number]) + 1
        high, value = float(times[place]), float(rows[row, place])
        low, rises = high - step - blur, value > rows[row, place - 1]
        moment = last.get(rises)
        if moment is None or low >= moment.high or row in moment.values:
            moment = last[rises] = _Moment(low, high, {})
            moments.append(moment)
        moment.low = max(moment.low, low)
        moment.values[row] = value
    return sorted(moments, key=lambda moment: moment.middle)


def _counts(first: Array, moments: Sequence[_Moment], brokers: int) -> Array:
    """Partitions that refuse, at first and after each moment; the first rows are of brokers."""
    row = first.copy()
    counts = [row[:brokers].sum() + row[brokers:].max()]
    for moment in moments:
        for place, value in moment.values.items():
            row[place] = value
        counts.append(row[:brokers].sum() + row[brokers:].max())
    return np.array(counts)


def _watched_minutes(
    samples: Samples, is_seen: np.ndarray, moments: Sequence[float]
) -> tuple[Array, Array]:
    """Starts of intervals in which nothing changes, and how long each was watched."""
    edges = np.append(samples.times, samples.end)
    inside = [time for time in moments if edges[0] < time < edges[-1]]
    finer = np.unique(np.concatenate([edges, inside]))
    own = is_seen[np.searchsorted(edges, finer[:-1], side="right") - 1]
    return finer[:-1], np.diff(finer) * own / 60.0


def _off(steps: Array, variances: Array) -> float:
    """By how many minutes an amount may be off that changes by steps at uncertain moments."""
    return _WIDE * float(np.sqrt((steps**2 * variances).sum())) / 60.0


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
