"""Data of the charts: settings with loss probability, write unavailability and intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor.errors import InputError


@dataclass(frozen=True)
class Estimated:
    """A loss probability per year or an unavailability, with its 95 % interval."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        # Interval ends come from samples, so that the value may lie outside by rounding.
        tiny = 1e-9 * self.value
        if not 0 <= self.low <= self.value + tiny or not self.value - tiny <= self.high < math.inf:
            raise InputError(f"an interval needs 0 <= low <= value <= high, got {self}")


@dataclass(frozen=True)
class Point:
    """One setting in the charts: its loss probability per year, and its write unavailability."""

    replication_factor: int
    min_insync_replicas: int
    acks: str | int
    loss: Estimated
    refused: Estimated

    @property
    def place(self) -> tuple[int, int]:
        """Replication factor and min ISR: the position on the x axis of the curves."""
        return (self.replication_factor, self.min_insync_replicas)

    @property
    def name(self) -> str:
        """Short name of the setting."""
        return f"RF {self.replication_factor}, min ISR {self.min_insync_replicas}, acks={self.acks}"


def dominates(point: Point, other: Point) -> bool:
    """Return whether `point` is better in loss, refusals or replicas, and worse in none of them."""
    first, second = ((p.loss.value, p.refused.value, p.replication_factor) for p in (point, other))
    return first != second and all(a <= b for a, b in zip(first, second, strict=True))


def dominated(points: Iterable[Point]) -> frozenset[Point]:
    """Return the points that another one dominates: those not on the Pareto front."""
    candidates = tuple(points)
    return frozenset(p for p in candidates if any(dominates(q, p) for q in candidates))


def by_replication_factor(points: Sequence[Point]) -> dict[int, tuple[Point, ...]]:
    """Group points by replication factor, min ISR ascending: the segments of a curve."""
    ordered = sorted(points, key=lambda point: point.place)
    factors = sorted({point.replication_factor for point in ordered})
    return {rf: tuple(p for p in ordered if p.replication_factor == rf) for rf in factors}


def slots(points: Iterable[Point]) -> dict[tuple[int, int], float]:
    """Return the x position of each (replication factor, min ISR), 2 apart between factors."""
    positions: dict[tuple[int, int], float] = {}
    x = 0.0
    previous = None
    for place in sorted({point.place for point in points}):
        if previous is not None:
            x += 1.0 if place[0] == previous else 2.0
        positions[place] = x
        previous = place[0]
    return positions
