"""Intervals of measures from the ranges of a card: draws of it, and the range of one more."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence

from scipy import special

from advisor.reliability.failures.failure_model import FailureModel

Interval = tuple[float, float]

_DRAWS, _DRAWS_OF_MANY_PARTITIONS, _DRAWS_OF_A_LARGE_CHAIN, _MANY_STATES = 32, 16, 8, 4_000
SEED = 0
"""Of every draw of a card, so that results can be compared draw by draw."""
MANY_PARTITIONS = 2_000
"""With more partitions, the first loss of any set takes noticeable time to compute."""


def is_large(states: int, partitions: int = 1) -> bool:
    """Whether evaluations take noticeable time: then intervals come from fewer draws."""
    return states > _MANY_STATES or partitions > MANY_PARTITIONS


def draws(states: int, partitions: int = 1) -> int:
    """Number of draws from which intervals are computed."""
    if states > _MANY_STATES:
        return _DRAWS_OF_A_LARGE_CHAIN
    return _DRAWS_OF_MANY_PARTITIONS if is_large(states, partitions) else _DRAWS


def parameter_draws(
    model: FailureModel, states: int, partitions: int = 1
) -> Iterator[FailureModel]:
    """Cards drawn from a card's ranges, fewer where evaluations are slow; always the same ones."""
    return model.draws(draws(states, partitions), SEED)


def lognormal_interval(sample: Sequence[float]) -> Interval:
    """Range that holds a further draw with a probability of 95 %, from draws of the card.

    A two-piece log-normal: around the median of the logarithms each side has a standard deviation s
    of its own and ends at ``t(0.975, n/2) s sqrt(1 + 1/n)``, the prediction interval of a normal
    sample (Hahn and Meeker, Statistical Intervals, 1991, section 4.7). Never narrower than the
    draws.
    """
    lowest, highest = min(sample), max(sample)
    if not 0 < lowest <= highest < math.inf:
        return lowest, highest
    logs = sorted(math.log(value) for value in sample)
    middle, count = statistics.median(logs), len(logs)
    times = float(special.stdtrit(count // 2, 0.975)) * math.sqrt(1.0 + 1.0 / count)
    below = _root_mean_square(middle - log for log in logs if log <= middle)
    above = _root_mean_square(log - middle for log in logs if log >= middle)
    low, high = math.exp(middle - times * below), math.exp(middle + times * above)
    return min(low, lowest), max(high, highest)


def fit_of(is_probability: bool) -> Callable[[Sequence[float]], Interval]:
    """Return how the interval of a measure follows from draws: probabilities have their own."""
    return _of_probability if is_probability else lognormal_interval


def _of_probability(sample: Sequence[float]) -> Interval:
    # By the hazard -log(1 - p), so that no end exceeds 1.
    hazards = [-math.log1p(-p) if p < 1.0 else math.inf for p in sample]
    low, high = (-math.expm1(-end) for end in lognormal_interval(hazards))
    return low, high


def _root_mean_square(distances: Iterable[float]) -> float:
    return math.sqrt(statistics.fmean(distance * distance for distance in distances))
