"""Intervals of measures from the ranges of a card: draws of the card, and a log-normal fit."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence

from advisor.reliability.failures.failure_model import FailureModel

Interval = tuple[float, float]

_DRAWS, _DRAWS_OF_MANY_PARTITIONS, _DRAWS_OF_A_LARGE_CHAIN, _MANY_STATES = 32, 16, 8, 4_000
MANY_PARTITIONS = 2_000
"""With more partitions, the first loss of any set takes noticeable time to compute."""
_Z_975 = 1.959963984540054


def is_large(states: int, partitions: int = 1) -> bool:
    """Whether chains are so large, or sets so numerous, that evaluations take noticeable time.

    Then intervals come from fewer draws, and swings are computed on request only.
    """
    return states > _MANY_STATES or partitions > MANY_PARTITIONS


def draws(states: int, partitions: int = 1) -> int:
    """Number of draws from which intervals are computed."""
    if states > _MANY_STATES:
        return _DRAWS_OF_A_LARGE_CHAIN
    return _DRAWS_OF_MANY_PARTITIONS if is_large(states, partitions) else _DRAWS


def parameter_draws(
    model: FailureModel, states: int, partitions: int = 1
) -> Iterator[FailureModel]:
    """Cards drawn from a card's ranges, fewer where evaluations are slow; always the same ones.

    Measures computed with these cards can be compared draw by draw.
    """
    return model.draws(draws(states, partitions), seed=0)


def lognormal_interval(sample: Sequence[float]) -> Interval:
    """Central 95 % of a log-normal fitted to the sample; its extremes if not all are positive."""
    if not all(0 < value < math.inf for value in sample):
        return min(sample), max(sample)
    logs = [math.log(value) for value in sample]
    middle, width = statistics.fmean(logs), statistics.stdev(logs)
    return math.exp(middle - _Z_975 * width), math.exp(middle + _Z_975 * width)
