"""From blocks to estimates: what they counted, its rates, and the shares of each mechanism.

Sums go in the order of the blocks. Shares add up to the measure's value and have no intervals.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import CONFIGURATION
from advisor.reliability.results.fault_tolerance import never_writes, tolerance
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.results.units import Breakdown, Share, Weights
from advisor.reliability.sampler.block import LARGEST, VARIANCE, WEIGHTS, Row, mark
from advisor.reliability.sampler.compiled.memory_layout import (
    BINS_PER_DECADE,
    FIRST_LOSSES,
    LOSS_EVENTS,
    RECORDS_LOST,
    REFUSED,
    SHARES,
    SHORTEST_OUTAGE_S,
    STALLED,
    UNWRITABLE,
)
from advisor.reliability.sampler.intervals import (
    HEAVIER,
    Ratio,
    fullness,
    loss_chance,
    most_lost_at_once,
    outage_shares,
    rate,
    unseen_failures,
    waiting_time,
    with_a_missing_kind,
    with_shorter_logs,
    with_the_unseen,
    with_unseen_failures,
    with_unseen_outages,
    years_as_one,
)
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.workload import Workload
from advisor.tables import measures_as_fields


@dataclass(frozen=True)
class RateDefinition:
    """What a measure is the rate of.

    rows: of `KernelState.totals`, to be added up.
    most: the largest amount that an event can make.
    unseen: the most that one event could add unseen; 0 if no single event outweighs the others.
    largest: the most that one loss could add; 0 for what does not count losses.
    of_outages: what a year of outage adds; 0 for what does not grow with the length of outages.
    """

    rows: tuple[int, ...]
    exposures: Sequence[float]
    most: float
    unseen: float = 0.0
    largest: float = 0.0
    of_outages: float = 0.0
    ceiling: float = math.inf


class BlockTotals:
    """What all blocks counted, by cause.

    totals (blocks, rows, columns). years_as_one: how many of the years count as one independent
    year. unseen_failures: failures a year too rare to occur in these years, each of which may lose
    at once. missing: the pilot may have missed how most losses happen. at_risk, span: years of each
    block: until a first loss, and in all. fullness: as of `fullness`: all logs are full when a
    block, or a cycle, begins.
    """

    def __init__(
        self, ordered: Sequence[Row], plan: Plan, model: FailureModel, retention_years: float
    ) -> None:
        shape = (len(ordered), SHARES + len(plan.shares), -1)
        self.totals = np.array([row.causes for row in ordered]).reshape(shape)
        self.years = sum(row.years for row in ordered)
        self.years_as_one = years_as_one(len(ordered), self.years, plan.clumping)
        self.largest_weight = plan.largest_weight
        self.unseen_failures = unseen_failures(plan.unforced_failures_per_year, self.years)
        self.splits = plan.splitting is not None
        self.missing = plan.bias is not None and not plan.bias.finds_losses
        self.outages = outage_shares(plan, self.years)
        self.at_risk = [row.at_risk_hours / HOURS_PER_YEAR for row in ordered]
        self.span = [row.hours / HOURS_PER_YEAR for row in ordered]
        self._dependent = plan.clumping is not None
        self._cycles = [row.cycles for row in ordered]
        self._names = (*plan.table.names, CONFIGURATION)
        self._destroyed = transition_rates.shares_of_destruction(model)
        self.fullness = self._fullness(plan, retention_years)

    def _fullness(self, plan: Plan, retention_years: float) -> float:
        hours = [years * HOURS_PER_YEAR for years in self.span]
        losses = self.estimate(RateDefinition((LOSS_EVENTS,), self.span, 1.0, largest=1.0)).high
        stopped = self.estimate(RateDefinition((UNWRITABLE,), hours, 1.0)).high
        share = 1.0 if plan.bias is not None else min(1.0, retention_years / min(self.span))
        return fullness(losses * retention_years, min(stopped, 1.0), share)

    @property
    def first_losses(self) -> RateDefinition:
        """Losses that ended a stretch without any, while at risk."""
        return RateDefinition((FIRST_LOSSES,), self.at_risk, 1.0, largest=1.0)

    def estimate(self, measured: RateDefinition) -> Estimate:
        """Estimate a rate."""
        estimated = self._estimate(measured)
        return replace(
            estimated,
            value=min(estimated.value, measured.ceiling),
            high=min(estimated.high, measured.ceiling),
        )

    def _estimate(self, measured: RateDefinition) -> Estimate:
        estimated = rate(self.ratio(measured), self.years)
        if measured.of_outages:
            estimated = with_unseen_outages(estimated, measured.of_outages, self.outages)
        if RECORDS_LOST in measured.rows:
            estimated = with_shorter_logs(estimated, self.fullness)
        if self.missing:
            return with_a_missing_kind(estimated, self.ratio(measured).most)
        # Cycles and retrials are drawn so that the loss of a whole set is among them.
        estimated = with_unseen_failures(estimated, self.unseen_failures * measured.largest)
        unseen = 0.0 if self.largest_weight else measured.unseen * self.years_as_one
        return with_the_unseen(estimated, unseen) if unseen else estimated

    def ratio(self, measured: RateDefinition) -> Ratio:
        """What the blocks counted."""
        amounts = [math.fsum(block[list(measured.rows)].ravel()) for block in self.totals]
        largest = measured.most * self.years_as_one
        if self.largest_weight is not None:
            # Fewer cycles are drawn than begin in these years, and each may weigh more.
            largest *= self.largest_weight * self.years / math.fsum(self.span)
        # Outages and records lost vary, and so do the weights of paths that split.
        varies = measured.of_outages or RECORDS_LOST in measured.rows
        heavier = HEAVIER if self.splits or (varies and self.largest_weight is None) else 1.0
        events = self._events() if measured.rows == (FIRST_LOSSES,) else None
        return Ratio(amounts, measured.exposures, largest, heavier, events)

    def _events(self) -> tuple[float, float] | None:
        """Variance and largest weight of the first losses; None if they are not independent."""
        if self._dependent:
            return None
        if self.largest_weight is None:
            return math.fsum(self.totals[:, FIRST_LOSSES].ravel()), 1.0
        variance = math.fsum(cycles[VARIANCE] for cycles in self._cycles)
        return variance, max(cycles[LARGEST] for cycles in self._cycles)

    def by_cause(self, measured: RateDefinition) -> dict[str, float]:
        """Split a rate by mechanism."""
        exposure = math.fsum(measured.exposures)
        *column, no_disk = (
            math.fsum(self.totals[:, measured.rows, cause].ravel()) / exposure
            for cause in range(len(self._names) + 1)
        )
        parts = dict(zip(self._names, column, strict=True))
        for mechanism, portion in self._destroyed.items():
            parts[mechanism] += portion * no_disk
        return {cause: share for cause, share in parts.items() if share > 0}


_VERSIONS = ("kafka-replication-advisor", "numpy", "numba")


def history_of(rows: Sequence[Row]) -> tuple[tuple[float, ...], ...]:
    """Years and losses of each block, as `loss_chance` takes them."""
    if rows[0].cycles:
        return tuple((row.at_risk_hours / HOURS_PER_YEAR, *row.cycles[WEIGHTS:]) for row in rows)
    return tuple((row.years, row.lost_years) for row in rows)


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

    config, model, load, cluster: the arguments that the plan was made from, for the result.
    Raises InputError if a row is missing, duplicated or from another run.
    """
    ordered = _in_order(rows, blocks, plan)
    totals = BlockTotals(ordered, plan, model, load.retention_hours / HOURS_PER_YEAR)
    holds_records = plan.records_per_hour > 0.0 and not never_writes(config)
    years, rates = totals.years, _rates(plan, totals, holds_records)
    measured: dict[str, Estimate] = {
        name: _never(years) if entry is None else totals.estimate(entry)
        for name, entry in rates.items()
    }
    of_plan = plan.clumping, plan.largest_weight, plan.unforced_failures_per_year
    history = history_of(ordered)
    lost = loss_chance(history, years, *of_plan)
    if totals.missing:
        lost = with_a_missing_kind(lost, totals.ratio(totals.first_losses).most)
        lost = replace(lost, high=min(lost.high, 1.0))
    waiting = waiting_time(totals.ratio(totals.first_losses), years)
    if waiting.seen:
        waiting = replace(waiting, low=1.0 / (1.0 / waiting.low + totals.unseen_failures))
    measured |= {"loss_probability_per_year": lost, "mean_years_to_loss": waiting}
    measured |= _impossible(measured, plan, holds_records, years)
    return Sampled(
        **measures_as_fields(Sampled, measured),
        tolerates=tolerance(config),
        causes=_causes(measured["loss_probability_per_year"], totals, rates),
        years=years,
        seed=blocks[0].seed,
        blocks=len(blocks),
        versions=MappingProxyType({name: version(name) for name in _VERSIONS}),
        config=config,
        model=model,
        load=load,
        cluster=cluster,
        history=history,
        clumping=plan.clumping,
        outages=_outages(ordered),
        breakdown=breakdown(ordered, plan, model, lost.value),
        method=plan.method,
        weights=None if plan.largest_weight is None else _weights(ordered),
        largest_weight=plan.largest_weight,
        failure_rates=plan.unforced_failures_per_year,
    )


def _weights(rows: Sequence[Row]) -> Weights:
    """How well the weighted losses stand for the real ones."""
    losses = round(sum(row.first_losses for row in rows))
    total, varied = (
        math.fsum(row.cycles[column] for row in rows) for column in (WEIGHTS, VARIANCE)
    )
    return Weights.of(losses, total, varied, max(row.cycles[LARGEST] for row in rows))


def _outages(rows: Sequence[Row]) -> tuple[tuple[float, float, float], ...]:
    """Write outages by length: from how many seconds, to how many, and their number."""
    numbers = np.array([row.outages for row in rows]).sum(axis=0)
    edges = SHORTEST_OUTAGE_S * 10.0 ** (np.arange(len(numbers) + 1) / BINS_PER_DECADE)
    return tuple(
        (float(edges[place]), float(edges[place + 1]), float(numbers[place]))
        for place in np.flatnonzero(numbers)
    )


def _rates(
    plan: Plan, totals: BlockTotals, holds_records: bool
) -> dict[str, RateDefinition | None]:
    """What the measures are the rates of; None for what these settings rule out."""
    partitions = sum(plan.partitions)
    hours = [years * HOURS_PER_YEAR * partitions for years in totals.span]
    records_written = plan.records_per_hour * HOURS_PER_YEAR * partitions
    records_held = plan.retained_records * partitions
    whole_set = most_lost_at_once(plan) * max(plan.partitions)
    lost = RateDefinition((RECORDS_LOST,), totals.span, records_held, whole_set, whole_set)
    dropped = RateDefinition(
        (RECORDS_LOST, REFUSED), totals.span, records_held + records_written, whole_set, whole_set
    )
    unacknowledged = plan.constants.acks == 0
    losses = RateDefinition((LOSS_EVENTS,), totals.span, partitions, largest=partitions)
    # Without a follower there is none to wait for.
    waits = any(plan.stall_hours) and plan.replicas > 1
    return {
        "loss_events_per_year": losses if holds_records else None,
        "acked_records_lost_per_year": lost if holds_records and not unacknowledged else None,
        **{
            name: RateDefinition((SHARES + place,), hours, 1.0, of_outages=1.0, ceiling=1.0)
            for place, name in enumerate(plan.shares)
        },
        "write_stalled": RateDefinition((STALLED,), hours, 1.0, ceiling=1.0) if waits else None,
        "records_refused_per_year": RateDefinition(
            (REFUSED,), totals.span, records_written, of_outages=records_written
        ),
        "records_dropped_per_year": dropped if unacknowledged else None,
    }


def _never(
    years: int, reason: str = "cannot happen with these settings", value: float = 0.0
) -> Estimate:
    """How often what cannot happen does, or the infinite time until it does."""
    return Estimate(value, value, value, years, reason)


def _impossible(
    measured: Mapping[str, Estimate], plan: Plan, holds_records: bool, years: int
) -> dict[str, Estimate]:
    """What was not seen cannot happen if every rate of the card is 0, or no record is at risk."""
    if plan.strikes_per_year <= 0:
        reason = "cannot happen: every rate of this card is 0"
        unseen = [name for name, estimate in measured.items() if not estimate.seen]
    elif not holds_records:
        reason = "cannot happen: no record is ever acknowledged"
        unseen = ["loss_probability_per_year"]
    else:
        return {}
    impossible = {name: _never(years, reason) for name in unseen}
    impossible["mean_years_to_loss"] = _never(years, reason, math.inf)
    return impossible


def _in_order(rows: Sequence[Row], blocks: Sequence[Block], plan: Plan) -> list[Row]:
    expected = [(block.index, block.years, mark(plan, block.seed)) for block in blocks]
    ordered = sorted(rows, key=lambda row: row.block)
    if [(row.block, row.years, row.plan) for row in ordered] != sorted(expected):
        raise InputError("the rows to be merged are not one of each block of this run")
    return ordered


def _causes(
    lost: Estimate, totals: BlockTotals, rates: Mapping[str, RateDefinition | None]
) -> Mapping[str, Mapping[str, float]]:
    """Split each measure by mechanism; destroyed replicas by the rates of what destroys them."""
    causes = {
        name: {} if definition is None else totals.by_cause(definition)
        for name, definition in rates.items()
    }
    firsts = totals.by_cause(totals.first_losses)
    scale = lost.value / math.fsum(firsts.values()) if lost.seen and firsts else 0.0
    causes["loss_probability_per_year"] = {
        name: share * scale for name, share in firsts.items() if scale
    }
    return MappingProxyType({name: MappingProxyType(parts) for name, parts in causes.items()})


def breakdown(
    rows: Sequence[Row], plan: Plan, model: FailureModel, loss_probability: float
) -> Breakdown:
    """Split what all blocks counted by measure and mechanism.

    loss_probability: in a year; it is split as the first losses are.
    """
    totals = np.array([row.causes for row in rows]).sum(axis=0)
    totals = totals.reshape(SHARES + len(plan.shares), -1)
    names = (*plan.table.names, CONFIGURATION)
    destroyed = transition_rates.shares_of_destruction(model)
    shares = []
    for measure, (entries, scale) in _scales(rows, plan, totals, loss_probability).items():
        *amounts, no_disk = totals[entries].sum(axis=0).tolist()
        values = dict(zip(names, amounts, strict=True))
        for mechanism, portion in destroyed.items():
            values[mechanism] += portion * no_disk
        shares += [Share(measure, n, v * scale) for n, v in values.items() if v > 0.0]
    span_years = math.fsum(row.hours for row in rows) / HOURS_PER_YEAR
    return Breakdown(tuple(shares), _replica_sets(plan), span_years)


def _scales(
    rows: Sequence[Row], plan: Plan, totals: NDArray[np.float64], lost: float
) -> dict[str, tuple[list[int], float]]:
    """Rows of the totals that make up a measure, and what to multiply them by."""
    hours = math.fsum(row.hours for row in rows)
    per_year = HOURS_PER_YEAR / hours
    of_time = 1.0 / (hours * sum(plan.partitions))
    first = float(totals[FIRST_LOSSES].sum())
    unacknowledged = plan.constants.acks == 0
    scales = {
        "loss_probability_per_year": ([FIRST_LOSSES], lost / first if first else 0.0),
        "loss_events_per_year": ([LOSS_EVENTS], per_year),
        "acked_records_lost_per_year": ([RECORDS_LOST], 0.0 if unacknowledged else per_year),
        **{name: ([SHARES + place], of_time) for place, name in enumerate(plan.shares)},
        "write_stalled": ([STALLED], of_time if any(plan.stall_hours) else 0.0),
        "records_refused_per_year": ([REFUSED], per_year),
        "records_dropped_per_year": ([RECORDS_LOST, REFUSED], per_year if unacknowledged else 0.0),
    }
    return {measure: entry for measure, entry in scales.items() if entry[1] > 0.0}


def _replica_sets(plan: Plan) -> tuple[tuple[int, int, int], ...]:
    """Classes of replica sets: racks that one spans, how many there are, and their partitions."""
    sets: Counter[int] = Counter()
    partitions: Counter[int] = Counter()
    for replicas, count in zip(plan.sets, plan.partitions, strict=True):
        racks = len({plan.racks[broker] for broker in replicas})
        sets[racks] += 1
        partitions[racks] += count
    return tuple((racks, sets[racks], partitions[racks]) for racks in sorted(sets))
