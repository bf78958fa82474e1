"""Distributions of a card's numbers: learned rates, normal deviates, and stages of durations.

With the prior of Jeffreys, 1/sqrt(rate), k events in T years leave the rate with a gamma
distribution of shape k + 1/2 and scale 1/T ("Theory of Probability", 3rd edition, section 3.10).
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

from advisor.caches import cache_folder, is_private_file
from advisor.errors import ModelError, expect, shown

_JEFFREYS = 0.5
# The standard normal's 97.5 % point.
_Z_975 = 1.959963984540054


MOST_DRAWS = 100_000
# Points that take more are drawn anew each time.
_MOST_BYTES = 2**20
LARGEST_SHAPE = 2.0
"""The largest shape that two stages can have."""


class TwoStages(NamedTuple):
    """Exponential stages of a duration with mean 1: every one has the first, some the second.

    goes_on: probability that the second stage follows the first.
    """

    first: float
    second: float
    goes_on: float


def two_stages(shape: float) -> TwoStages:
    """Two exponential stages with the first three moments of a gamma distribution of mean 1.

    The moments over their factorials follow a recurrence of order two, of which the lengths of the
    stages are the roots (A. Bobbio, A. Horvath, M. Telek, Stochastic Models 21, 2005). 2 is two
    equal stages, exactly; two stages cannot vary less. What comes sooner than a tenth of the mean
    is not matched: 17 % of all repairs instead of 25 % at shape 0.5.

    >>> two_stages(2.0)
    TwoStages(first=0.5, second=0.5, goes_on=1.0)
    >>> [round(number, 3) for number in two_stages(0.5)]
    [0.293, 1.707, 0.414]
    """
    apart = math.sqrt(2.0 * (shape + 1.0) * (2.0 - shape))
    first, second = ((2.0 * (shape + 1.0) + sign * apart) / (6.0 * shape) for sign in (-1.0, 1.0))
    return TwoStages(first, second, (1.0 - first) / second)


def rate_at(events: int, exposure_years: float, deviate: float) -> float:
    """The quantile of the rate per year that a standard normal deviate stands for."""
    # Imported here: few cards count, and scipy takes longer than all of advisor may.
    from scipy.special import gammainccinv, gammaincinv, ndtr

    shape = events + _JEFFREYS
    # From the nearer tail, where a probability keeps its digits.
    if deviate > 0:
        return float(gammainccinv(shape, ndtr(-deviate))) / exposure_years
    return float(gammaincinv(shape, ndtr(deviate))) / exposure_years


def range_of(events: int, exposure_years: float) -> tuple[float, float, float]:
    """The median of the rate and its 2.5 % and 97.5 % points, per year."""
    low, value, high = (rate_at(events, exposure_years, z) for z in (-_Z_975, 0.0, _Z_975))
    return value, low, high


def normal_deviates(n: int, dimensions: int, seed: int) -> list[list[float]]:
    """Return `n` rows of `dimensions` standard normal deviates, low-discrepancy."""
    if not 1 <= expect("n", n, int, "a whole number") <= MOST_DRAWS:
        raise ModelError(f"draws needs n >= 1, got {shown(n)}; at most {MOST_DRAWS:,} are drawn.")
    if not 0 <= expect("seed", seed, int, "a whole number") < 2**64:
        raise ModelError(f"seed={shown(seed)} must be a whole number from 0 below 2**64.")
    if dimensions == 0:
        return [[] for _ in range(n)]
    # Imported here: scipy takes longer than all of advisor may, and few callers draw.
    from scipy.special import ndtri

    bits = 30
    uniform = _uniform(dimensions, seed, math.ceil(math.log2(n)), bits)[:n]
    # The grid has cells of 2^-30 and may hold 0: take the middles, so that no deviate is infinite.
    deviates: list[list[float]] = ndtri(uniform + 2.0 ** -(bits + 1)).tolist()
    return deviates


def _uniform(dimensions: int, seed: int, power: int, bits: int) -> Any:
    """Points of a scrambled Sobol sequence; on disk, as importing what draws them takes longer."""
    import numpy as np
    import scipy

    key = f"sobol {scipy.__version__} {np.__version__} {dimensions} {seed} {power} {bits}"
    path = None
    with suppress(OSError):
        path = cache_folder("draws") / f"{sha256(key.encode()).hexdigest()}.npy"
        if is_private_file(path):
            with suppress(ValueError):
                return np.load(path, allow_pickle=False)
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimensions, scramble=True, bits=bits, seed=seed)
    uniform = sequence.random_base2(power)
    if path is not None and uniform.nbytes <= _MOST_BYTES:
        with suppress(OSError):
            written = path.with_suffix(f".{os.getpid()}")
            with written.open("wb") as file:
                np.save(file, uniform)
            written.chmod(0o600)
            written.replace(path)
    return uniform
