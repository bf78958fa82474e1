"""What the blocks of a sample counted, and the rates that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import CONFIGURATION
from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.block import LARGEST, VARIANCE, Row
from advisor.reliability.sampler.compiled.memory_layout import (
    ENTRIES,
    FIRST_LOSSES,
    LOSS_EVENTS,
    RECORDS_LOST,
    UNWRITABLE,
)
from advisor.reliability.sampler.intervals.loss_chance import years_as_one
from advisor.reliability.sampler.intervals.rates import (
    HEAVIER,
    Ratio,
    fullness,
    rate,
    with_shorter_logs,
)
from advisor.reliability.sampler.intervals.unseen import (
    outage_shares,
    unseen_failures,
    with_a_missing_kind,
    with_the_unseen,
    with_unseen_failures,
    with_unseen_outages,
)
from advisor.reliability.sampler.plan import Plan


@dataclass(frozen=True)
class RateDefinition:
    """What a measure is the rate of.

    rows: of `KernelState.totals`, to be added up.
    unseen: the most that one event could add unseen; 0 if no single event outweighs the others.
    largest: the most that one loss could add; 0 for what does not count losses.
    of_outages: what a year of outage adds; 0 for what does not grow with the length of outages.
    ceiling: what the rate cannot exceed.
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

    totals (blocks, ENTRIES, columns).
    years_as_one: how many of the years count as one independent year.
    largest_weight: the most that one cycle or path can weigh; None for years as they come.
    unseen_failures: failures a year too rare to occur in these years, each of which may lose at
        once. Retrials do not make them likelier; 0 for other methods, whose intervals allow for
        them.
    missing: the pilot may have missed how most losses happen.
    at_risk, span: years of each block: until a first loss, and in all.
    fullness: as of `fullness`: all logs are full when a block, or a cycle, begins.
    """

    def __init__(
        self, ordered: Sequence[Row], plan: Plan, model: FailureModel, retention_years: float
    ) -> None:
        shape = (len(ordered), ENTRIES, -1)
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
        found = self._estimate(measured)
        return replace(
            found, value=min(found.value, measured.ceiling), high=min(found.high, measured.ceiling)
        )

    def _estimate(self, measured: RateDefinition) -> Estimate:
        found = rate(self.ratio(measured), self.years)
        if measured.of_outages:
            found = with_unseen_outages(found, measured.of_outages, self.outages)
        if RECORDS_LOST in measured.rows:
            found = with_shorter_logs(found, self.fullness)
        if self.missing:
            return with_a_missing_kind(found, self.ratio(measured).most)
        # Cycles and retrials are drawn so that the loss of a whole set is among them.
        found = with_unseen_failures(found, self.unseen_failures * measured.largest)
        unseen = 0.0 if self.largest_weight else measured.unseen * self.years_as_one
        return with_the_unseen(found, unseen) if unseen else found

    def ratio(self, measured: RateDefinition) -> Ratio:
        """What the blocks counted."""
        amounts = [math.fsum(block[list(measured.rows)].ravel()) for block in self.totals]
        most = measured.most * self.years_as_one
        if self.largest_weight is not None:
            # Fewer cycles are drawn than begin in these years, and each may weigh more.
            most *= self.largest_weight * self.years / math.fsum(self.span)
        # Outages and records lost vary, and so do the weights of paths that split.
        varies = measured.of_outages or RECORDS_LOST in measured.rows
        heavier = HEAVIER if self.splits or (varies and self.largest_weight is None) else 1.0
        events = self._events() if measured.rows == (FIRST_LOSSES,) else None
        return Ratio(amounts, measured.exposures, most, heavier, events)

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
        return {cause: part for cause, part in parts.items() if part > 0}
