"""What the charts are drawn from: settings with two small sides each, and their intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor.errors import InputError


@dataclass(frozen=True)
class Estimated:
    """A small side with its 95 % interval: a probability per year or a fraction of time.

    Raises
    ------
    InputError
        Unless 0 <= low <= value <= high, all finite.
    """

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        # The interval's ends come from samples: its middle may miss by rounding alone.
        tiny = 1e-9 * self.value
        if not 0 <= self.low <= self.value + tiny or not self.value - tiny <= self.high < math.inf:
            raise InputError(f"an interval needs 0 <= low <= value <= high, got {self}")


@dataclass(frozen=True)
class Point:
    """One setting and what it does.

    Attributes
    ----------
    replication_factor, min_insync_replicas
        The topic's.
    acks
        The producer's: "all", 1 or 0.
    loss
        Probability of losing an acknowledged record, per year.
    refused
        Fraction of time in which writes are refused.
    """

    replication_factor: int
    min_insync_replicas: int
    acks: str | int
    loss: Estimated
    refused: Estimated

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands on the axis of the curves."""
        return (self.replication_factor, self.min_insync_replicas)

    @property
    def name(self) -> str:
        """The setting in Kafka's words, in short."""
        return f"RF {self.replication_factor}, min ISR {self.min_insync_replicas}, acks={self.acks}"


def dominates(one: Point, other: Point) -> bool:
    """Return whether `one` is nowhere worse than `other`, with no more replicas, and not equal."""
    ours = (one.loss.value, one.refused.value, one.replication_factor)
    theirs = (other.loss.value, other.refused.value, other.replication_factor)
    return ours != theirs and all(a <= b for a, b in zip(ours, theirs, strict=True))


def dominated(points: Iterable[Point]) -> frozenset[Point]:
    """Return the points that another one dominates: nobody has a reason to choose them."""
    known = tuple(points)
    return frozenset(p for p in known if any(dominates(q, p) for q in known))


def by_replication_factor(points: Sequence[Point]) -> dict[int, tuple[Point, ...]]:
    """Group points into the segments of a curve: by replication factor, min ISR ascending."""
    ordered = sorted(points, key=lambda point: point.place)
    factors = sorted({point.replication_factor for point in ordered})
    return {rf: tuple(p for p in ordered if p.replication_factor == rf) for rf in factors}


def slots(points: Iterable[Point]) -> dict[tuple[int, int], float]:
    """Return where each (replication factor, min ISR) stands on the x axis.

    Neighbours stand 1 apart, and one more between replication factors.
    """
    positions: dict[tuple[int, int], float] = {}
    x = 0.0
    previous = None
    for place in sorted({point.place for point in points}):
        if previous is not None:
            x += 1.0 if place[0] == previous else 2.0
        positions[place] = x
        previous = place[0]
    return positions
