"""The probability of a loss within a year that begins healthy, and its interval.

Of independent years it is a share. Of blocks of years that depend on each other, and of paths that
split, it is a rate over the blocks; its interval is formed for the hazard, ``-log(1 - p)``, which
has no upper limit, and turned into probabilities.

Of cycles it follows from the time until the first loss: a number of cycles without one, and the
way to the loss in the last. Its mean and variance follow from the moments of one cycle. The time
has a tail with a constant hazard; before that the hazard is lower, since a year begins healthy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.intervals.rates import (
    HEAVIER,
    Ratio,
    rate,
    share,
)
from advisor.reliability.sampler.intervals.unseen import unseen_failures, with_unseen_failures

# Phases of a time whose coefficient of variation is less: two of equal length vary the most.
_LEAST_PRODUCT = 0.25


def loss_chance(
    history: Sequence[tuple[float, ...]],
    years: int,
    clumping: float | None,
    largest_weight: float | None = None,
    unforced_failures: Sequence[float] = (),
) -> Estimate:
    """Probability of a loss within a year that begins healthy.

    history: of each block: its years, and those with a loss. Of cycles and of paths that split the
        years at risk, and of all first losses the sum of the weights, its variance, and the
        largest; then, of cycles, the years at risk before these losses and the sum of the squares
        of the years at risk of each cycle; of paths, the weight of the years with a loss, and the
        years.
    clumping: None if the years or cycles are independent; else as `Plan.clumping`.
    largest_weight: the most that a cycle or path can weigh; None for years as they come.
    unforced_failures: as `Plan.unforced_failures_per_year`: the upper end allows for those that are
        too rare to occur in these years.
    """
    if largest_weight is None:
        estimate = loss_share(
            [(int(block_years), int(lost)) for block_years, lost in history], clumping
        )
    elif clumping is None:
        estimate = _of_cycles(history, years, largest_weight)
    else:
        *_, due, of_years = zip(*history, strict=True)
        most = years_as_one(len(history), years, clumping)
        estimate = by_hazard(rate(Ratio(due, of_years, most, heavier=HEAVIER), years))
    estimate = with_unseen_failures(estimate, unseen_failures(unforced_failures, years))
    return replace(estimate, high=min(estimate.high, 1.0))


def _of_cycles(history: Sequence[tuple[float, ...]], years: int, largest_weight: float) -> Estimate:
    """From the rate of the first losses: cycles are independent, and each has one, if any."""
    at_risk, weights, variances, largest, to_loss, at_risk_squared = zip(*history, strict=True)
    exposure, losses = math.fsum(at_risk), math.fsum(weights)
    # Fewer cycles are drawn than begin in these years.
    most = largest_weight * years / exposure
    events = math.fsum(variances), max(largest)
    estimate = rate(Ratio(weights, at_risk, most, events=events), years)
    # How much less often years lose that begin healthy; where nothing was seen, no less.
    of_rate, method = 1.0, estimate.method
    if estimate.seen:
        method = f"weighted cycles, {method}"
        hazard = first_year_hazard(losses, exposure, math.fsum(to_loss), math.fsum(at_risk_squared))
        of_rate = hazard / estimate.value
    value, low, high = (
        -math.expm1(-of_rate * end) for end in (estimate.value, estimate.low, estimate.high)
    )
    return Estimate(value, low, high, years, method)


def first_year_hazard(
    losses: float, at_risk: float, to_loss: float, at_risk_squared: float
) -> float:
    """Return -log(1 - p) for the probability p of a loss in the first year, from sums over cycles.

    With N cycles, of which a part p loses, the time to the first loss is a geometric number of
    cycles without one, then the time until the loss in one that has it. So its mean is
    ``at_risk / losses``, and its second moment ``at_risk_squared / losses`` plus twice the mean
    times the mean of the cycles before the last. A time with these moments is taken as two phases,
    each exponential, if it varies less than an exponential one; else as an exponential tail that
    follows losses at once.

    at_risk: years at risk of all cycles, each with the healthy time before it.
    at_risk_squared: sum over all cycles of the square of their years at risk.
    """
    mean = at_risk / losses
    # Half of the squared mean less half of the variance, over the squared mean: 0 for exponential.
    excess = (to_loss - at_risk_squared / (2.0 * mean)) / (losses * mean)
    if excess <= 0.0:
        return 1.0 / (mean * (1.0 - excess)) + math.log1p(-excess)
    # Mean durations of the phases: their sum is the mean, their product so much of its square.
    product = min(excess, _LEAST_PRODUCT)
    root = math.sqrt(1.0 - 4.0 * product)
    long = mean * (1.0 + root) / 2.0
    short = mean * product / ((1.0 + root) / 2.0)
    if long - short < 1e-6 * mean:
        return 1.0 / long - math.log1p(1.0 / long)
    lost = -long * math.expm1(-1.0 / long) + short * math.expm1(-1.0 / short)
    return -math.log1p(-lost / (long - short))


def by_hazard(estimate: Estimate) -> Estimate:
    """Form the interval of a probability for its hazard, with the relative error that it has there.

    An interval of p by factors may reach beyond 1. The hazard -log(1 - p) changes by
    ``p / ((1 - p) hazard)`` times as much as p, both relative to themselves.
    """
    if not estimate.seen or estimate.value >= 1.0:
        return replace(estimate, value=min(estimate.value, 1.0), high=min(estimate.high, 1.0))
    hazard = -math.log1p(-estimate.value)
    steeper = estimate.value / ((1.0 - estimate.value) * hazard)
    low, high = (
        -math.expm1(-hazard * (end / estimate.value) ** steeper)
        for end in (estimate.low, estimate.high)
    )
    return replace(estimate, low=low, high=high)


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
    return by_hazard(rate(Ratio([float(losses) for _, losses in history], blocks, 1.0), years))


def years_as_one(blocks: int, years: int, clumping: float | None) -> float:
    """How many years of these blocks count as one independent year, at most.

    Losses of years that depend on each other come in clumps. So a run without any says less. Blocks
    are independent: the years of one count as one year at the least.
    """
    return 1.0 if clumping is None else min(clumping, years / blocks)
