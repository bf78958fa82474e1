"""Estimates and their 95 % intervals, from what blocks of years counted.

A share of independent years has Clopper and Pearson's exact interval. Losses of weighted cycles,
and a rate of which few blocks saw anything, or of which few events make up most, have Fay and
Feuer's for weighted counts (Stat. Med. 16, 1997): the exact Poisson interval where all weights are
equal. A rate of which most blocks saw something has the ratio estimator's over the blocks, on a
logarithmic scale, with Student's t. Where times between failures are not exponential, years depend
on each other, and blocks do not: a share of such years is a rate over the blocks.

Where nothing was seen, at most about 3 in n independent years (one-sided) is all that is known.
What such a year could hold at most then bounds the other measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from scipy import stats

from advisor.errors import InputError
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanism import HANGING, Mechanism
from advisor.reliability.failures.mechanisms import BrokerEvent, Scope
from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.plan import Plan

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

    most: the largest amount that an event can make, in units of exposure.
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

        With n events of equal weight the effective number of blocks is 1 / (1 + blocks / n) of all:
        with 100 events in 32 blocks, three quarters.
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

    With n losses within the retention a log has (1 - exp(-n)) / n of a full one on average.

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


def with_shorter_logs(estimate: Estimate, fullness: float) -> Estimate:
    """Lower the lower end by `fullness`."""
    if not estimate.seen or fullness == 1.0:
        return estimate
    method = estimate.method
    if fullness < _NEARLY_FULL:
        method += "; the lower end allows for logs that are not full again"
    return replace(estimate, low=estimate.low * fullness, method=method)


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
    """A long-run rate and its interval, from ``n`` years."""
    amount, exposure = math.fsum(ratio.amounts), math.fsum(ratio.exposures)
    hit = sum(1 for block in ratio.amounts if block > 0)
    if hit == 0:
        high = NONE_SEEN / n * ratio.most
        return Estimate(high, 0.0, high, n, f"not seen in {n:,} years: one-sided upper bound")
    value = amount / exposure
    if ratio.is_of_few:
        low, high = _few(ratio)
        method = f"seen in {hit} of {len(ratio.amounts)} blocks, Fay-Feuer gamma interval"
        return Estimate(value, low / exposure, high / exposure, n, method)
    factor = math.exp(_relative_error(ratio, value) / value)
    method = f"ratio over {len(ratio.amounts)} blocks, Student's t of its logarithm"
    return Estimate(value, value / factor, value * factor, n, method)


def waiting_time(ratio: Ratio, n: int) -> Estimate:
    """Mean years until the first loss: time at risk over losses, both of each block."""
    loss_rate = rate(ratio, n)
    if not loss_rate.seen:
        low = 1.0 / loss_rate.high if loss_rate.high else math.inf
        return Estimate(low, low, math.inf, n, f"no loss in {n:,} years: one-sided lower bound")
    return Estimate(
        1.0 / loss_rate.value, 1.0 / loss_rate.high, 1.0 / loss_rate.low, n, loss_rate.method
    )


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
    low = _gamma_quantile(0.025, total, squares)
    # The upper end allows for one more event, as large as the largest.
    return low, _gamma_quantile(0.975, total + largest, squares + largest * largest)


def _gamma_quantile(probability: float, mean: float, variance: float) -> float:
    degrees = 2.0 * mean * mean / variance
    return float(variance / (2.0 * mean) * stats.chi2.ppf(probability, degrees))


def _relative_error(ratio: Ratio, value: float) -> float:
    """Half the width of a ratio's 95 % interval, from the variance between blocks."""
    blocks = len(ratio.amounts)
    scatter = math.fsum(
        (amount - value * exposure) ** 2
        for amount, exposure in zip(ratio.amounts, ratio.exposures, strict=True)
    )
    error = math.sqrt(blocks / (blocks - 1) * scatter) / math.fsum(ratio.exposures)
    return float(stats.t.ppf(0.975, blocks - 1)) * error


# What is expected so often is missed by one run in 150.
_SURELY_SEEN = 5.0


class OutageShares(NamedTuple):
    """Shares of all time with an outage of a partition's brokers, at the most.

    unseen: by those expected less than five times in the sampled years.
    """

    all: float
    unseen: float


def outage_shares(plan: Plan, years: int) -> OutageShares:
    """Shares of time with an outage, by all mechanisms and by those too rare to be surely seen.

    A mechanism with rate r and mean duration d, which strikes n replicas of a partition at once,
    has one of them out for r d (1 + 1/2 + ... + 1/n) of the time at most. Whatever d is, each of
    them may take the leader along, and let acknowledgements wait for a follower.
    """
    harmonic = sum(1.0 / n for n in range(1, plan.replicas + 1))
    # Restarts by a calendar, repairs that wait and operators add to what the card's numbers say.
    adds = plan.rolling is not None or plan.crews > 0 or plan.decisions_per_hour > 0.0
    total = unseen = 0.0
    for kind in plan.table.kinds:
        per_hour = plan.parameters_of(kind).per_hour * plan.targets(kind.scope)
        if per_hour == 0.0:
            continue
        struck = 1 if kind.scope is Scope.BROKER else plan.replicas
        hours = _hours(plan, kind) * harmonic + struck * _waits(plan, kind)
        share = per_hour * hours
        if kind.scope is Scope.BROKER:
            # Of those brokers that a partition has.
            share *= plan.replicas / len(plan.racks)
        total += share
        # Cycles begin with every mechanism: for them nothing is unseen.
        if plan.bias is None and per_hour * HOURS_PER_YEAR * years < _SURELY_SEEN:
            unseen += share
    return OutageShares(1.0 if adds else min(total, 1.0), min(unseen, 1.0))


def _hours(plan: Plan, entry: Mechanism) -> float:
    """Mean hours until a struck broker is back and has its logs."""
    mechanism_table = plan.table
    hours = plan.parameters_of(mechanism_table.begun[mechanism_table.condition_of(entry)]).hours
    if entry.effect is BrokerEvent.DESTROY and plan.copies_per_hour > 0.0:
        hours += 1.0 / plan.copies_per_hour
    for chance, turned in _turns(plan, entry):
        hours += chance * _hours(plan, mechanism_table[turned])
    return hours


def _turns(plan: Plan, entry: Mechanism) -> Iterator[tuple[float, str]]:
    """The outages that one may turn into, each with its probability, more than 0."""
    parameters = plan.parameters_of(entry)
    turns = [(parameters.share, entry.turns_into)]
    turns += [(parameters.death_chance(death), death.outage) for death in entry.deaths]
    yield from ((chance, turned) for chance, turned in turns if turned and chance > 0.0)


def _waits(plan: Plan, entry: Mechanism) -> float:
    """Hours without a leader, and of waiting for a follower, however short the outage is."""
    moved, mechanism_table = plan.failovers, plan.table
    dead, hung = plan.stall_hours
    hours = moved.broker if entry.scope is Scope.BROKER else max(moved.broker, moved.rack)
    hours += moved.move if entry.effect is BrokerEvent.STOP else 0.0
    hours += hung if entry.effect in HANGING else dead
    # What an outage turns into may change the leader again.
    for chance, turned in _turns(plan, entry):
        hours += chance * _waits(plan, mechanism_table[turned])
    return hours


def with_unseen_outages(estimate: Estimate, of_outages: float, shares: OutageShares) -> Estimate:
    """Let the upper end allow for outages too rare to occur; cut it at what all can add.

    of_outages: what a year of outage adds.
    """
    if not estimate.seen:
        bound = min(estimate.high, of_outages * shares.all)
        return replace(estimate, value=bound, high=bound)
    note = "the upper end allows for outages too rare to occur in these years"
    return widened(estimate, of_outages * shares.unseen, note) if shares.unseen else estimate


def most_lost_at_once(plan: Plan) -> float:
    """The most records of one partition that one event can lose."""
    mechanism_table = plan.table

    def destroys(entry: Mechanism) -> bool:
        turned = [entry.turns_into] if entry.turns_into else [d.outage for d in entry.deaths]
        return entry.effect is BrokerEvent.DESTROY or any(
            destroys(mechanism_table[course]) for course in turned
        )

    happens = [entry for entry in mechanism_table.kinds if plan.parameters_of(entry).per_hour > 0.0]
    if plan.constants.policy.unclean or any(map(destroys, happens)):
        return plan.retained_records
    latest = plan.unflushed_hours + plan.tail_hours
    return min(latest * plan.records_per_hour, plan.retained_records)


def unseen_failures(unforced_failures: Sequence[float], years: float) -> float:
    """Failures a year, of those of kinds expected less than five times in these years."""
    return math.fsum(per_year for per_year in unforced_failures if per_year * years < _SURELY_SEEN)


def with_unseen_failures(estimate: Estimate, largest_rate: float) -> Estimate:
    """Widen an interval by the most that rare failures add, which nothing makes likelier."""
    note = "the upper end allows for failures too rare to occur in these years"
    return widened(estimate, largest_rate, note) if largest_rate > 0.0 else estimate


def with_the_unseen(estimate: Estimate, largest: float) -> Estimate:
    """Widen an interval that losing a whole set could dominate: up to 3 expected in n years."""
    note = "up to one unseen loss of a whole set"
    return widened(estimate, NONE_SEEN / estimate.n * largest, note)


def with_a_missing_kind(estimate: Estimate, largest: float) -> Estimate:
    """Widen an interval by what the pilot may have missed: 3 of the heaviest cycles, unseen."""
    note = "few losses in the pilot: most of them may be of a kind that was not drawn"
    return widened(estimate, NONE_SEEN / estimate.n * largest, note)


def widened(estimate: Estimate, by: float, note: str) -> Estimate:
    """Raise the upper end of what was seen, and say why."""
    if not estimate.seen:
        return estimate
    return replace(estimate, high=estimate.high + by, method=f"{estimate.method}; {note}")


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

    Of independent years it is a share; of years that depend on each other, and of paths that split,
    a rate over the blocks, and its interval is formed for the hazard, ``-log(1 - p)``.

    history: of each block: its years, and those with a loss. Of cycles and of paths that split the
        years at risk, and what follows the number of cycles in `Row.cycles`.
    clumping, largest_weight, unforced_failures: of the `Plan`.
    """
    if largest_weight is None:
        estimate = loss_share(
            [(int(block_years), int(lost)) for block_years, lost in history], clumping
        )
    elif clumping is None:
        estimate = _of_cycles(history, years, largest_weight)
    else:
        *_, due, of_years = zip(*history, strict=True)
        largest = years_as_one(len(history), years, clumping)
        estimate = by_hazard(rate(Ratio(due, of_years, largest, heavier=HEAVIER), years))
    estimate = with_unseen_failures(estimate, unseen_failures(unforced_failures, years))
    return replace(estimate, high=min(estimate.high, 1.0))


def _of_cycles(history: Sequence[tuple[float, ...]], years: int, largest_weight: float) -> Estimate:
    """From the rate of the first losses: cycles are independent, and each has one, if any."""
    at_risk, weights, variances, largest_of_blocks, to_loss, at_risk_squared = zip(
        *history, strict=True
    )
    exposure, losses = math.fsum(at_risk), math.fsum(weights)
    # Fewer cycles are drawn than begin in these years.
    largest = largest_weight * years / exposure
    events = math.fsum(variances), max(largest_of_blocks)
    estimate = rate(Ratio(weights, at_risk, largest, events=events), years)
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


_NEARLY_SURE = 0.99


def first_year_hazard(
    losses: float, at_risk: float, to_loss: float, at_risk_squared: float
) -> float:
    """Return -log(1 - p) for the probability p of a loss in the first year, from sums over cycles.

    The time to the first loss is a geometric number of cycles without one, then the time until the
    loss in one that has it. So its mean is ``at_risk / losses``, and its second moment
    ``at_risk_squared / losses`` plus twice the mean times the mean of the cycles before the last.
    A time with these moments is taken as two phases, each exponential, if it varies less than an
    exponential one; else as an exponential tail that follows losses at once.
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
    probability = lost / (long - short)
    if probability < _NEARLY_SURE:
        return -math.log1p(-probability)
    # What is left of 1 has no digits then.
    decayed = short * math.exp(1.0 / long - 1.0 / short)
    return 1.0 / long - math.log((long - decayed) / (long - short))


def by_hazard(estimate: Estimate) -> Estimate:
    """Form the interval of a probability p for its hazard, since by factors it may reach beyond 1.

    The hazard -log(1 - p) changes by ``p / ((1 - p) hazard)`` times as much as p, both relative to
    themselves.
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

    Losses of years that depend on each other come in clumps, so a run without any says less; blocks
    are independent.
    """
    return 1.0 if clumping is None else min(clumping, years / blocks)
