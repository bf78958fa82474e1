"""Intervals of measures from the ranges of a card: draws of the card, and a log-normal fit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from advisor.reliability.failures.failure_model import FailureModel

Interval = tuple[float, float]

_DRAWS, _DRAWS_OF_A_LARGE_CHAIN, _LARGE = 32, 8, 4_000
_Z_975 = 1.959963984540054


def is_large(states: int) -> bool:
    """Whether a chain has so many states that each solution takes noticeable time.

    Then intervals come from fewer draws, and swings are computed on request only.
    """
    return states > _LARGE


def parameter_draws(model: FailureModel, states: int) -> Iterator[FailureModel]:
    """Cards drawn from a card's ranges, fewer for chains of many states; always the same ones.

    Measures computed with these cards can be compared draw by draw.
    """
    return model.draws(_DRAWS_OF_A_LARGE_CHAIN if is_large(states) else _DRAWS, seed=0)


def lognormal_interval(sample: Sequence[float]) -> Interval:
    """Central 95 % of a log-normal fitted to the sample; its extremes if not all are positive."""
    if not all(0 < value < math.inf for value in sample):
        return min(sample), max(sample)
    logs = [math.log(value) for value in sample]
    middle, width = statistics.fmean(logs), statistics.stdev(logs)
    return math.exp(middle - _Z_975 * width), math.exp(middle + _Z_975 * width)
