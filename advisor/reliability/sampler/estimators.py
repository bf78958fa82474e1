"""From blocks to estimates: sums in the order of the blocks, and intervals that fit them.

Three kinds of interval, all 95 %:

* a share of independent years: Clopper and Pearson's exact one;
* a rate of which few blocks saw anything: Fay and Feuer's for weighted counts (Stat. Med. 16,
  1997), which is the exact Poisson interval where all weights are equal;
* a rate of which most blocks saw something: the ratio estimator's over the blocks, on a
  logarithmic scale, with Student's t.

Where nothing was seen, at most about 3 in n years (one-sided) is all that is known. What such a
year could hold at most then bounds the other measures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import CONFIGURATION
from advisor.reliability.results.fault_tolerance import tolerance
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.results.units import MEASURES
from advisor.reliability.sampler.block import Row, mark
from advisor.reliability.sampler.memory_layout import (
    ENTRIES,
    EXTRA_COLUMNS,
    LOSS_EVENTS,
    NO_DISK,
    RECORDS_LOST,
    REFUSED,
    STALLED,
    UNREADABLE,
    UNWRITABLE,
)
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.workload import Workload

_VERSIONS = ("kafka-replication-advisor", "numpy", "numba")

# Poisson: no event is seen with 5 % probability if this many were to be expected.
_NONE_SEEN = -math.log(0.05)
_FEW = 30


@dataclass(frozen=True)
class Ratio:
    """A rate: amounts per exposure, block by block.

    Attributes
    ----------
    amounts, exposures : sequences of float, one for each block
    most : float
        The largest amount that an event can make, in units of exposure: what is known if none
        was seen.
    """

    amounts: Sequence[float]
    exposures: Sequence[float]
    most: float


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
        high = _NONE_SEEN / n * found.most
        return Estimate(high, 0.0, high, n, f"not seen in {n:,} years: one-sided upper bound")
    value = amount / exposure
    if seen < _FEW:
        low, high = _few(found.amounts)
        method = f"seen in {seen} of {len(found.amounts)} blocks, Fay-Feuer gamma interval"
        return Estimate(value, low / exposure, high / exposure, n, method)
    factor = math.exp(_relative_error(found, value) / value)
    method = f"ratio over {len(found.amounts)} blocks, Student's t of its logarithm"
    return Estimate(value, value / factor, value * factor, n, method)


def waiting_time(losses: Sequence[int], hours: Sequence[float], n: int) -> Estimate:
    """Mean years until the first loss: time at risk over losses."""
    found = rate(Ratio(losses, [each / HOURS_PER_YEAR for each in hours], 1.0), n)
    if not found.seen:
        low = 1.0 / found.high
        return Estimate(low, low, math.inf, n, f"no loss in {n:,} years: one-sided lower bound")
    return Estimate(1.0 / found.value, 1.0 / found.high, 1.0 / found.low, n, found.method)


def merge(
    rows: Sequence[Row],
    blocks: Sequence[Block],
    plan: Plan,
    *,
    config: Config,
    model: FailureModel,
    load: Workload,
    cluster: Any,
) -> Sampled:
    """Merge the rows of all blocks, in any order, into one result.

    Parameters
    ----------
    rows : sequence of Row
        One for each block.
    config, model, load, cluster
        The arguments that the plan was made from, for the result.

    Raises
    ------
    InputError
        If a row is missing, duplicated or from another run.
    """
    ordered = _in_order(rows, blocks, plan)
    years = sum(row.years for row in ordered)
    span = [row.hours / HOURS_PER_YEAR for row in ordered]
    each = [hours * sum(plan.partitions) for hours in (row.hours for row in ordered)]
    written = plan.records_per_hour * HOURS_PER_YEAR * sum(plan.partitions)
    books = np.array([row.causes for row in ordered]).reshape(len(ordered), ENTRIES, -1)
    amounts = [[math.fsum(block[entry]) for block in books] for entry in range(ENTRIES)]
    held = plan.retained_records * sum(plan.partitions)
    whole_set = plan.retained_records * max(plan.partitions)
    lost = _with_the_unseen(rate(Ratio(amounts[RECORDS_LOST], span, held), years), whole_set)
    gone = [sum(both) for both in zip(amounts[RECORDS_LOST], amounts[REFUSED], strict=True)]
    dropped = _with_the_unseen(rate(Ratio(gone, span, held + written), years), whole_set)
    unacknowledged = plan.setup.acks == 0
    found = Sampled(
        loss_probability_per_year=share(sum(row.lost_years for row in ordered), years),
        loss_events_per_year=rate(Ratio(amounts[LOSS_EVENTS], span, sum(plan.partitions)), years),
        mean_years_to_loss=waiting_time(
            [row.first_losses for row in ordered], [row.at_risk_hours for row in ordered], years
        ),
        acked_records_lost_per_year=_never(years) if unacknowledged else lost,
        write_unavailability=rate(Ratio(amounts[UNWRITABLE], each, 1.0), years),
        read_unavailability=rate(Ratio(amounts[UNREADABLE], each, 1.0), years),
        write_stalled=rate(Ratio(amounts[STALLED], each, 1.0), years)
        if any(plan.stall_hours)
        else _never(years),
        records_refused_per_year=rate(Ratio(amounts[REFUSED], span, written), years),
        records_dropped_per_year=dropped if unacknowledged else _never(years),
        tolerates=tolerance(config),
        causes=_causes(books, plan, math.fsum(span), math.fsum(each), model, unacknowledged),
        years=years,
        seed=blocks[0].seed,
        blocks=len(blocks),
        versions=MappingProxyType({name: version(name) for name in _VERSIONS}),
        config=config,
        model=model,
        load=load,
        cluster=cluster,
    )
    return found if plan.strikes_per_year > 0 else _where_nothing_happens(found)


def _never(years: int, why: str = "cannot happen with these acks") -> Estimate:
    """An estimate of 0 for what cannot happen."""
    return Estimate(0.0, 0.0, 0.0, years, why)


def _where_nothing_happens(found: Sampled) -> Sampled:
    """If every rate of the card is 0, what was not seen cannot happen."""
    why = "cannot happen: every rate of this card is 0"
    known: dict[str, Any] = {
        name: _never(found.years, why) for name in MEASURES if not found.estimate(name).seen
    }
    known["mean_years_to_loss"] = Estimate(math.inf, math.inf, math.inf, found.years, why)
    return replace(found, **known)


def _with_the_unseen(found: Estimate, most: float) -> Estimate:
    """Widen the interval of a mean that one rare event could dominate.

    The loss of everything that a replica set retains outweighs all smaller losses, and may be too
    rare to have been seen: up to 3 expected in n years.
    """
    if not found.seen:
        return found
    high = found.high + _NONE_SEEN / found.n * most
    return replace(found, high=high, method=f"{found.method}; up to one unseen loss of a whole set")


def _in_order(rows: Sequence[Row], blocks: Sequence[Block], plan: Plan) -> list[Row]:
    wanted = [(block.index, block.years, mark(plan, block.seed)) for block in blocks]
    ordered = sorted(rows, key=lambda row: row.block)
    if [(row.block, row.years, row.plan) for row in ordered] != sorted(wanted):
        raise InputError("the rows to be merged are not one of each block of this run")
    return ordered


def _causes(
    books: NDArray[np.float64],
    plan: Plan,
    years: float,
    partition_hours: float,
    model: FailureModel,
    unacknowledged: bool,
) -> Mapping[str, Mapping[str, float]]:
    """Split each measure by mechanism; destroyed replicas by the rates of what destroys them."""
    names = plan.table.names
    destroyed = transition_rates.shares_of_destruction(model)
    lost, dropped = [RECORDS_LOST], [RECORDS_LOST, REFUSED]
    exposure = {
        "loss_events_per_year": ([LOSS_EVENTS], years),
        "acked_records_lost_per_year": ([] if unacknowledged else lost, years),
        "write_unavailability": ([UNWRITABLE], partition_hours),
        "read_unavailability": ([UNREADABLE], partition_hours),
        "write_stalled": ([STALLED], partition_hours),
        "records_refused_per_year": ([REFUSED], years),
        "records_dropped_per_year": (dropped if unacknowledged else [], years),
    }
    causes = {}
    for name, (entries, whole) in exposure.items():
        columns = range(len(names) + EXTRA_COLUMNS)
        column = [math.fsum(books[:, entries, cause].ravel()) / whole for cause in columns]
        parts = dict(zip((*names, CONFIGURATION), column, strict=False))
        for mechanism, portion in destroyed.items():
            parts[mechanism] += portion * column[NO_DISK]
        causes[name] = MappingProxyType({cause: part for cause, part in parts.items() if part > 0})
    return MappingProxyType(causes)


def _few(amounts: Sequence[float]) -> tuple[float, float]:
    """Gamma interval (Fay and Feuer) of an expected sum of few amounts."""
    total = math.fsum(amounts)
    square = math.fsum(amount * amount for amount in amounts)
    largest = max(amounts)
    low = square / (2.0 * total) * stats.chi2.ppf(0.025, 2.0 * total * total / square)
    # The upper end allows for one more event, as large as the largest.
    more, square = total + largest, square + largest * largest
    high = square / (2.0 * more) * stats.chi2.ppf(0.975, 2.0 * more * more / square)
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
