"""Intervals from the years of blocks: shares of years, rates, waiting times.

Three kinds, all 95 %:

* a share of independent years: Clopper and Pearson's exact one;
* losses of weighted cycles, and a rate of which few blocks saw anything, or of which few events
  make up most: Fay and Feuer's for weighted counts (Stat. Med. 16, 1997), which is the exact
  Poisson interval where all weights are equal;
* a rate of which most blocks saw something: the ratio estimator's over the blocks, on a
  logarithmic scale, with Student's t.

Years depend on each other where times between failures are not exponential. Blocks do not: a share
of such years is a rate over the blocks.

Where nothing was seen, at most about 3 in n independent years (one-sided) is all that is known.
What such a year could hold at most then bounds the other measures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from scipy import stats

from advisor.errors import InputError
from advisor.reliability.results.sampled import Estimate

NONE_SEEN = -math.log(0.05)
"""Poisson: no event is seen with 5 % probability if this many were to be expected."""
# Blocks that saw anything, and effective losses: fewer are few.
_FEW, _FEW_EFFECTIVE = 30, 200.0
_FULL_BLOCKS = 0.75
HEAVIER = 2.0
"""Of outages, records and paths that split: one more block may be so many times as heavy as any.

How often retrials of one outage lose grows with the square of its length, or faster.
"""
# Of n effective losses with unequal weights, one more may be 1 + this / n times as heavy as any,
# at most HEAVIER times.
_HEAVIER_OF_FEW = 30.0
# What three digits show.
_NEARLY_FULL = 0.999


@dataclass(frozen=True)
class Ratio:
    """A rate: amounts per exposure, block by block.

    most: the largest amount that an event can make, in units of exposure: what is known if none was
        seen.
    heavier: the upper end from few events allows for one more; this is its weight, in units of the
        heaviest seen.
    events: variance of the sum of the weights of all events, and the largest weight, where events
        are independent and these are known; else a block counts as one event.
    """

    amounts: Sequence[float]
    exposures: Sequence[float]
    most: float
    heavier: float = 1.0
    events: tuple[float, float] | None = None

    @property
    def is_of_few(self) -> bool:
        """Whether too few events make up most of it for blocks to vary as they mostly do.

        The amounts of blocks with n events of equal weight vary so that their effective number is
        1 / (1 + blocks / n) of the blocks: with 100 events in 32 blocks, three quarters. Where the
        weights of all events are known, their own effective number says more.
        """
        if self.events is not None and math.fsum(self.amounts) ** 2 < (
            _FEW_EFFECTIVE * self.events[0]
        ):
            return True
        if sum(1 for block in self.amounts if block > 0) < _FEW:
            return True
        squares = math.fsum(amount * amount for amount in self.amounts)
        effective = math.fsum(self.amounts) ** 2 / squares
        return effective < _FULL_BLOCKS * len(self.amounts)


def fullness(losses: float, stopped: float, share: float) -> float:
    """How many of the records that full logs would lose are lost at the least.

    A log that was lost some time ago has what was written since. With this many losses, at random
    moments, within the retention it has (1 - exp(-losses)) / losses of a full one on average.

    losses: the most that a replica set has within the retention, on average.
    stopped: part of the time without writes: a log grows later than it was lost.
    share: part of the sampled time within a retention of a moment at which all logs were full.
    """
    if losses <= 0.0:
        return 1.0
    usual = -math.expm1(-losses) / losses * (1.0 - min(stopped, losses))
    if usual <= 0.0:
        return 0.0
    return usual / (usual + share * (1.0 - usual))


def with_shorter_logs(estimate: Estimate, least: float) -> Estimate:
    """Lower the lower end by `fullness`."""
    if not estimate.seen or least == 1.0:
        return estimate
    why = "; the lower end allows for logs that are not full again" if least < _NEARLY_FULL else ""
    return replace(estimate, low=estimate.low * least, method=f"{estimate.method}{why}")


def share(successes: int, n: int) -> Estimate:
    """Yearly probability of something that happened in some of n independent years."""
    if n < 1 or not 0 <= successes <= n:
        raise InputError(f"{successes} of {n} years cannot be")
    if successes == 0:
        high = -math.expm1(math.log(0.05) / n)
        return Estimate(high, 0.0, high, n, f"not seen in {n:,} years: one-sided upper bound")
    low = float(stats.beta.ppf(0.025, successes, n - successes + 1))
    high = float(stats.beta.ppf(0.975, successes + 1, n - successes)) if successes < n else 1.0
    method = f"{successes:,} of {n:,} years, Clopper-Pearson"
    return Estimate(successes / n, low, high, n, method)


def rate(ratio: Ratio, n: int) -> Estimate:
    """A long-run rate and its interval.

    n: years, for the record.
    """
    amount, exposure = math.fsum(ratio.amounts), math.fsum(ratio.exposures)
    seen = sum(1 for block in ratio.amounts if block > 0)
    if seen == 0:
        high = NONE_SEEN / n * ratio.most
        return Estimate(high, 0.0, high, n, f"not seen in {n:,} years: one-sided upper bound")
    value = amount / exposure
    if ratio.is_of_few:
        low, high = _few(ratio)
        method = f"seen in {seen} of {len(ratio.amounts)} blocks, Fay-Feuer gamma interval"
        return Estimate(value, low / exposure, high / exposure, n, method)
    factor = math.exp(_relative_error(ratio, value) / value)
    method = f"ratio over {len(ratio.amounts)} blocks, Student's t of its logarithm"
    return Estimate(value, value / factor, value * factor, n, method)


def waiting_time(ratio: Ratio, n: int) -> Estimate:
    """Mean years until the first loss: time at risk over losses, both of each block."""
    often = rate(ratio, n)
    if not often.seen:
        low = 1.0 / often.high if often.high else math.inf
        return Estimate(low, low, math.inf, n, f"no loss in {n:,} years: one-sided lower bound")
    return Estimate(1.0 / often.value, 1.0 / often.high, 1.0 / often.low, n, often.method)


def _few(ratio: Ratio) -> tuple[float, float]:
    """Gamma interval of an expected sum of few amounts."""
    total = math.fsum(ratio.amounts)
    if ratio.events is None:
        squares = math.fsum(amount * amount for amount in ratio.amounts)
        return _weighted_count(total, squares, ratio.heavier * max(ratio.amounts))
    squares, largest = ratio.events
    if not math.isclose(total * largest, squares):  # as it is if all weights are equal
        largest *= min(1.0 + _HEAVIER_OF_FEW * squares / total**2, HEAVIER)
    return _weighted_count(total, squares, largest)


def _weighted_count(total: float, squares: float, largest: float) -> tuple[float, float]:
    """Gamma interval (Fay and Feuer) of an expected sum of weights, from those seen."""
    low = squares / (2.0 * total) * stats.chi2.ppf(0.025, 2.0 * total * total / squares)
    # The upper end allows for one more event, as large as the largest.
    more, squares = total + largest, squares + largest * largest
    high = squares / (2.0 * more) * stats.chi2.ppf(0.975, 2.0 * more * more / squares)
    return float(low), float(high)


def _relative_error(ratio: Ratio, value: float) -> float:
    """Half the width of a ratio's 95 % interval, from the variance between blocks."""
    blocks = len(ratio.amounts)
    scatter = math.fsum(
        (amount - value * exposure) ** 2
        for amount, exposure in zip(ratio.amounts, ratio.exposures, strict=True)
    )
    error = math.sqrt(blocks / (blocks - 1) * scatter) / math.fsum(ratio.exposures)
    return float(stats.t.ppf(0.975, blocks - 1)) * error
