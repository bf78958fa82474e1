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
_FEW = 30
_FULL_BLOCKS = 0.75
HEAVIER = 2.0
"""Of outages, records and paths that split: one more block may be so many times as heavy as any.

How often retrials of one outage lose grows with the square of its length, or faster.
"""
# What is expected so often is missed by one run in 150.
SURELY_SEEN = 5.0
# What three digits show.
_NEARLY_FULL = 0.999


@dataclass(frozen=True)
class Ratio:
    """A rate: amounts per exposure, block by block.

    Attributes
    ----------
    amounts, exposures : sequences of float, one for each block
    most : float
        The largest amount that an event can make, in units of exposure: what is known if none
        was seen.
    heavier : float
        The upper end from few events allows for one more; this is its weight, in units of the
        heaviest seen.
    """

    amounts: Sequence[float]
    exposures: Sequence[float]
    most: float
    heavier: float = 1.0

    @property
    def is_of_few(self) -> bool:
        """Whether too few events make up most of it for blocks to vary as they mostly do.

        The amounts of blocks with n events of equal weight vary so that their effective number is
        1 / (1 + blocks / n) of the blocks: with 100 events in 32 blocks, three quarters.
        """
        if sum(1 for block in self.amounts if block > 0) < _FEW:
            return True
        squares = math.fsum(amount * amount for amount in self.amounts)
        effective = math.fsum(self.amounts) ** 2 / squares
        return effective < _FULL_BLOCKS * len(self.amounts)


def loss_chance(
    history: Sequence[tuple[float, ...]],
    years: int,
    clumping: float | None,
    largest_weight: float | None = None,
    unforced_failures: Sequence[float] = (),
) -> Estimate:
    """Probability of a loss within a year that begins healthy.

    Parameters
    ----------
    history : sequence of tuple of float
        Of each block: its years, and those with a loss; of cycles, the years at risk, and the
        weight of the first losses that fall within a year, then of all first losses the sum of
        the squares of their weights, and the largest. These are a rate: ``1 - exp(-rate)``.
        Of paths that split, as of years, with weighted losses.
    years : int
        Of all blocks.
    clumping : float, optional
        None if the years or cycles are independent; else as `Plan.clumping`.
    largest_weight : float, optional
        The most that a cycle or path can weigh; None for years as they come.
    unforced_failures : sequence of float
        As `Plan.unforced_failures_per_year`: the upper end allows for those that are too
        rare to occur in these years.
    """
    found = _chance_of_what_was_seen(history, years, clumping, largest_weight)
    found = with_unseen_failures(found, unseen_failures(unforced_failures, years))
    return replace(found, high=min(found.high, 1.0))


def _chance_of_what_was_seen(
    history: Sequence[tuple[float, ...]],
    years: int,
    clumping: float | None,
    largest_weight: float | None,
) -> Estimate:
    """Probability of a loss within a year, without what these years cannot show."""
    if largest_weight is None:
        return loss_share([(int(each), int(lost)) for each, lost in history], clumping)
    at_risk, due, *weights = zip(*history, strict=True)
    if clumping is not None:
        most = years_as_one(len(history), years, clumping)
        found = rate(Ratio(due, at_risk, most, heavier=HEAVIER), years)
        return replace(found, value=min(found.value, 1.0), high=min(found.high, 1.0))
    exposure = math.fsum(at_risk)
    if any(due):
        # Cycles are independent, and each has one first loss: its weight is known.
        squares, largest = weights
        ends = _weighted_count(math.fsum(due), math.fsum(squares), max(largest))
        per_year = (math.fsum(due), *ends)
        value, low, high = (-math.expm1(-each / exposure) for each in per_year)
        return Estimate(value, low, high, years, "weighted cycles, Fay-Feuer gamma interval")
    # Fewer cycles are drawn than begin in these years.
    high = -math.expm1(-NONE_SEEN * largest_weight / exposure)
    return Estimate(high, 0.0, high, years, f"not seen in {years:,} years: one-sided upper bound")


def unseen_failures(unforced_failures: Sequence[float], years: float) -> float:
    """Failures a year, of those of kinds expected less than five times in these years."""
    return math.fsum(each for each in unforced_failures if each * years < SURELY_SEEN)


def with_unseen_failures(found: Estimate, most: float) -> Estimate:
    """Widen an interval by the most that rare failures add, which nothing makes likelier."""
    if not (found.seen and most > 0.0):
        return found
    why = "the upper end allows for failures too rare to occur in these years"
    return replace(found, high=found.high + most, method=f"{found.method}; {why}")


def with_the_unseen(found: Estimate, most: float) -> Estimate:
    """Widen the interval of a mean that one rare event could dominate.

    The loss of everything that a replica set retains outweighs all smaller losses, and may be too
    rare to have been seen: up to 3 expected in n years.
    """
    if not found.seen:
        return found
    high = found.high + NONE_SEEN / found.n * most
    return replace(found, high=high, method=f"{found.method}; up to one unseen loss of a whole set")


def with_a_missing_kind(found: Estimate, most: float) -> Estimate:
    """Widen an interval by what the pilot may have missed: 3 of the heaviest cycles, unseen."""
    if not found.seen:
        return found
    high = found.high + NONE_SEEN / found.n * most
    why = "few losses in the pilot: most of them may be of a kind that was not drawn"
    return replace(found, high=high, method=f"{found.method}; {why}")


def fullness(losses: float, stopped: float, share: float) -> float:
    """How many of the records that full logs would lose are lost at the least.

    A log that was lost some time ago has what was written since. With this many losses, at random
    moments, within the retention it has (1 - exp(-losses)) / losses of a full one on average.

    Parameters
    ----------
    losses : float
        The most that a replica set has within the retention, on average.
    stopped : float
        Part of the time without writes: a log grows later than it was lost.
    share : float
        Part of the sampled time within a retention of a moment at which all logs were full.
    """
    if losses <= 0.0:
        return 1.0
    usual = -math.expm1(-losses) / losses * (1.0 - min(stopped, losses))
    if usual <= 0.0:
        return 0.0
    return usual / (usual + share * (1.0 - usual))


def with_shorter_logs(found: Estimate, least: float) -> Estimate:
    """Lower the lower end by `fullness`."""
    if not found.seen or least == 1.0:
        return found
    why = "; the lower end allows for logs that are not full again" if least < _NEARLY_FULL else ""
    return replace(found, low=found.low * least, method=f"{found.method}{why}")


def loss_share(history: Sequence[tuple[int, int]], clumping: float | None) -> Estimate:
    """Yearly probability of a loss, of years as they come; see `loss_chance`."""
    years, lost = (sum(column) for column in zip(*history, strict=True))
    if clumping is None:
        return share(lost, years)
    if lost == 0:
        bound = share(0, years).high
        high = -math.expm1(math.log1p(-bound) * years_as_one(len(history), years, clumping))
        return Estimate(
            high, 0.0, high, years, f"not seen in {years:,} years: one-sided upper bound"
        )
    blocks = [float(block) for block, _ in history]
    found = rate(Ratio([float(each) for _, each in history], blocks, 1.0), years)
    return replace(found, high=min(found.high, 1.0))


def years_as_one(blocks: int, years: int, clumping: float | None) -> float:
    """How many years of these blocks count as one independent year, at most.

    Losses of years that depend on each other come in clumps. So a run without any says less. Blocks
    are independent: the years of one count as one year at the least.
    """
    return 1.0 if clumping is None else min(clumping, years / blocks)


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


def rate(found: Ratio, n: int) -> Estimate:
    """A long-run rate and its interval.

    Parameters
    ----------
    n : int
        Years, for the record.
    """
    amount, exposure = math.fsum(found.amounts), math.fsum(found.exposures)
    seen = sum(1 for block in found.amounts if block > 0)
    if seen == 0:
        high = NONE_SEEN / n * found.most
        return Estimate(high, 0.0, high, n, f"not seen in {n:,} years: one-sided upper bound")
    value = amount / exposure
    if found.is_of_few:
        low, high = _few(found.amounts, found.heavier)
        method = f"seen in {seen} of {len(found.amounts)} blocks, Fay-Feuer gamma interval"
        return Estimate(value, low / exposure, high / exposure, n, method)
    factor = math.exp(_relative_error(found, value) / value)
    method = f"ratio over {len(found.amounts)} blocks, Student's t of its logarithm"
    return Estimate(value, value / factor, value * factor, n, method)


def waiting_time(found: Ratio, n: int) -> Estimate:
    """Mean years until the first loss: time at risk over losses, both of each block."""
    return waiting_for(rate(found, n))


def waiting_for(often: Estimate) -> Estimate:
    """Mean years until what comes so often a year."""
    n = often.n
    if not often.seen:
        low = 1.0 / often.high if often.high else math.inf
        return Estimate(low, low, math.inf, n, f"no loss in {n:,} years: one-sided lower bound")
    return Estimate(1.0 / often.value, 1.0 / often.high, 1.0 / often.low, n, often.method)


def _few(amounts: Sequence[float], heavier: float) -> tuple[float, float]:
    """Gamma interval of an expected sum of few amounts."""
    squares = math.fsum(amount * amount for amount in amounts)
    return _weighted_count(math.fsum(amounts), squares, heavier * max(amounts))


def _weighted_count(total: float, squares: float, largest: float) -> tuple[float, float]:
    """Gamma interval (Fay and Feuer) of an expected sum of weights, from those seen."""
    low = squares / (2.0 * total) * stats.chi2.ppf(0.025, 2.0 * total * total / squares)
    # The upper end allows for one more event, as large as the largest.
    more, squares = total + largest, squares + largest * largest
    high = squares / (2.0 * more) * stats.chi2.ppf(0.975, 2.0 * more * more / squares)
    return float(low), float(high)


def _relative_error(found: Ratio, value: float) -> float:
    """Half the width of a ratio's 95 % interval, from the variance between blocks."""
    blocks = len(found.amounts)
    scatter = math.fsum(
        (amount - value * exposure) ** 2
        for amount, exposure in zip(found.amounts, found.exposures, strict=True)
    )
    error = math.sqrt(blocks / (blocks - 1) * scatter) / math.fsum(found.exposures)
    return float(stats.t.ppf(0.975, blocks - 1)) * error
