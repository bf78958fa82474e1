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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy import stats

from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import CONFIGURATION, decided_by_settings
from advisor.reliability.results.fault_tolerance import tolerance
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.results.units import MEASURES
from advisor.reliability.sampler.block import Row, mark
from advisor.reliability.sampler.breakdown import breakdown
from advisor.reliability.sampler.memory_layout import (
    BINS_PER_DECADE,
    ENTRIES,
    FIRST_LOSSES,
    LOSS_EVENTS,
    RECORDS_LOST,
    REFUSED,
    SHORTEST_OUTAGE_S,
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


@dataclass(frozen=True)
class _Entry:
    """What a measure is the rate of.

    Attributes
    ----------
    rows : tuple of int
        Of `KernelState.totals`, to be added up.
    exposures : sequence of float, one for each block
    most : float
        As in `Ratio`.
    unseen : float
        The most that one event could add unseen; 0 if no single event outweighs the others.
    """

    rows: tuple[int, ...]
    exposures: Sequence[float]
    most: float
    unseen: float = 0.0


class _Books:
    """What all blocks counted, by cause.

    Attributes
    ----------
    totals : array, shape (blocks, 2, ENTRIES, columns)
        First what replication settings decide, then what they do not.
    years : int
    at_risk, span : lists of float
        Years of each block: until a first loss, and in all.
    """

    def __init__(self, ordered: Sequence[Row], plan: Plan, model: FailureModel) -> None:
        shape = (len(ordered), 2, ENTRIES, -1)
        self.totals = np.array([row.causes for row in ordered]).reshape(shape)
        self.years = sum(row.years for row in ordered)
        self.at_risk = [row.at_risk_hours / HOURS_PER_YEAR for row in ordered]
        self.span = [row.hours / HOURS_PER_YEAR for row in ordered]
        self._names = (*plan.table.names, CONFIGURATION)
        self._destroyed = transition_rates.shares_of_destruction(model)

    @property
    def first_losses(self) -> _Entry:
        """Losses that ended a stretch without any, while at risk."""
        return _Entry((FIRST_LOSSES,), self.at_risk, 1.0)

    def estimate(self, entry: _Entry, halves: tuple[int, ...] = (0, 1)) -> Estimate:
        """Estimate a rate, or the half of it that settings decide (0), or do not (1)."""
        amounts = [math.fsum(block[list(halves)][:, entry.rows].ravel()) for block in self.totals]
        found = rate(Ratio(amounts, entry.exposures, entry.most), self.years)
        return _with_the_unseen(found, entry.unseen) if entry.unseen else found

    def by_cause(self, entry: _Entry) -> dict[str, float]:
        """Split a rate by mechanism."""
        exposure = math.fsum(entry.exposures)
        *column, no_disk = (
            math.fsum(self.totals[:, :, entry.rows, cause].ravel()) / exposure
            for cause in range(len(self._names) + 1)
        )
        parts = dict(zip(self._names, column, strict=True))
        for mechanism, portion in self._destroyed.items():
            parts[mechanism] += portion * no_disk
        return {cause: part for cause, part in parts.items() if part > 0}


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
    books = _Books(ordered, plan, model)
    years, rates = books.years, _rates(plan, books)
    whole: dict[str, Any] = {
        name: _never(years) if entry is None else books.estimate(entry)
        for name, entry in rates.items()
    }
    found = Sampled(
        loss_probability_per_year=share(sum(row.lost_years for row in ordered), years),
        mean_years_to_loss=waiting_time(
            [row.first_losses for row in ordered], [row.at_risk_hours for row in ordered], years
        ),
        **whole,
        tolerates=tolerance(config),
        causes=MappingProxyType({}),
        parts=MappingProxyType({}),
        years=years,
        seed=blocks[0].seed,
        blocks=len(blocks),
        versions=MappingProxyType({name: version(name) for name in _VERSIONS}),
        config=config,
        model=model,
        load=load,
        cluster=cluster,
        history=tuple((row.years, row.lost_years) for row in ordered),
        outages=_outages(ordered),
        breakdown=breakdown(ordered, plan, model),
    )
    if plan.strikes_per_year <= 0:
        found = _where_nothing_happens(found)
    return replace(found, causes=_causes(found, books, rates), parts=_parts(found, books, rates))


def _outages(rows: Sequence[Row]) -> tuple[tuple[float, float, float], ...]:
    """Write outages by length: from how many seconds, to how many, and their number."""
    numbers = np.array([row.outages for row in rows]).sum(axis=0)
    edges = SHORTEST_OUTAGE_S * 10.0 ** (np.arange(len(numbers) + 1) / BINS_PER_DECADE)
    return tuple(
        (float(edges[place]), float(edges[place + 1]), float(numbers[place]))
        for place in np.flatnonzero(numbers)
    )


def _rates(plan: Plan, books: _Books) -> dict[str, _Entry | None]:
    """What the measures are the rates of; None for what these acks rule out."""
    partitions = sum(plan.partitions)
    hours = [years * HOURS_PER_YEAR * partitions for years in books.span]
    written = plan.records_per_hour * HOURS_PER_YEAR * partitions
    held = plan.retained_records * partitions
    whole_set = plan.retained_records * max(plan.partitions)
    lost = _Entry((RECORDS_LOST,), books.span, held, whole_set)
    dropped = _Entry((RECORDS_LOST, REFUSED), books.span, held + written, whole_set)
    unacknowledged = plan.setup.acks == 0
    return {
        "loss_events_per_year": _Entry((LOSS_EVENTS,), books.span, partitions),
        "acked_records_lost_per_year": None if unacknowledged else lost,
        "write_unavailability": _Entry((UNWRITABLE,), hours, 1.0),
        "read_unavailability": _Entry((UNREADABLE,), hours, 1.0),
        "write_stalled": _Entry((STALLED,), hours, 1.0) if any(plan.stall_hours) else None,
        "records_refused_per_year": _Entry((REFUSED,), books.span, written),
        "records_dropped_per_year": dropped if unacknowledged else None,
    }


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
    found: Sampled, books: _Books, rates: Mapping[str, _Entry | None]
) -> Mapping[str, Mapping[str, float]]:
    """Split each measure by mechanism; destroyed replicas by the rates of what destroys them."""
    causes = {name: {} if entry is None else books.by_cause(entry) for name, entry in rates.items()}
    lost = found.loss_probability_per_year
    firsts = books.by_cause(books.first_losses)
    scale = lost.value / math.fsum(firsts.values()) if lost.seen and firsts else 0.0
    causes["loss_probability_per_year"] = {
        name: part * scale for name, part in firsts.items() if scale
    }
    return MappingProxyType({name: MappingProxyType(parts) for name, parts in causes.items()})


def _parts(
    found: Sampled, books: _Books, rates: Mapping[str, _Entry | None]
) -> Mapping[str, tuple[Estimate, Estimate]]:
    """Split each measure into what replication settings decide and what they do not.

    Beyond settings is what happens from the strike of a mechanism that is, until all is healthy.
    """
    if all(map(decided_by_settings, found.model.mechanisms)):
        nothing = _never(found.years, "cannot happen: settings decide all that this card holds")
        return MappingProxyType({name: (found.estimate(name), nothing) for name in MEASURES})
    never = _never(found.years)
    parts = {
        name: (never, never)
        if entry is None
        else (books.estimate(entry, (0,)), books.estimate(entry, (1,)))
        for name, entry in rates.items()
    }
    whole = books.estimate(books.first_losses)
    halves = [books.estimate(books.first_losses, (half,)) for half in (0, 1)]
    by, beyond = (_share_of(part, whole) for part in halves)
    lost, waited = found.loss_probability_per_year, found.mean_years_to_loss
    if lost.seen:
        logarithm = math.log1p(-lost.value) if lost.value < 1.0 else -math.inf
        decided = _scaled(by, lost, lambda share: -math.expm1(logarithm * share))
        left = 1.0 - decided.value
        rest = _scaled(beyond, lost, lambda share: -math.expm1(logarithm * share) * left)
        parts["loss_probability_per_year"] = decided, rest
    else:
        parts["loss_probability_per_year"] = lost, lost
    unknown = replace(waited, value=0.0, low=0.0)
    parts["mean_years_to_loss"] = (
        (
            _scaled(by, waited, lambda share: waited.value * share),
            _scaled(beyond, waited, lambda share: waited.value * share),
        )
        if waited.seen
        else (unknown, unknown)
    )
    return MappingProxyType(parts)


def _share_of(part: Estimate, whole: Estimate) -> Estimate:
    """Share of a part in the first losses; 0 to 1 if there were none."""
    if not whole.seen:
        return Estimate(1.0, 0.0, 1.0, part.n, part.method)
    value, low, high = (each / whole.value for each in (part.value, part.low, part.high))
    return Estimate(value, low, high, part.n, f"by its share of the first losses: {part.method}")


def _scaled(share: Estimate, measure: Estimate, scale: Callable[[float], float]) -> Estimate:
    """A part of a measure, from its share in the first losses."""
    value, low, high = map(scale, (share.value, share.low, share.high))
    return Estimate(value, low, high, measure.n, share.method)


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
