"""From blocks to estimates: sums in the order of the blocks.

The intervals are those of :mod:`advisor.reliability.sampler.intervals.rates`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import CONFIGURATION, decided_by_settings
from advisor.reliability.results.fault_tolerance import tolerance
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.results.units import MEASURES, Weights
from advisor.reliability.sampler.block import DUE, LARGEST, SQUARES, WEIGHTS, YEARS, Row, mark
from advisor.reliability.sampler.breakdown import breakdown
from advisor.reliability.sampler.compiled.memory_layout import (
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
from advisor.reliability.sampler.intervals.rates import (
    HEAVIER,
    Ratio,
    fullness,
    loss_chance,
    rate,
    unseen_failures,
    waiting_time,
    with_a_missing_kind,
    with_shorter_logs,
    with_the_unseen,
    with_unseen_failures,
    years_as_one,
)
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.workload import Workload

# Parts of the totals: what replication settings decide, and what they do not.
BY_SETTINGS, BEYOND = 0, 1
_VERSIONS = ("kafka-replication-advisor", "numpy", "numba")


def history_of(rows: Sequence[Row]) -> tuple[tuple[float, ...], ...]:
    """Years and losses of each block, as `loss_chance` takes them."""
    if len(rows[0].cycles) > YEARS:
        return tuple((row.cycles[YEARS], row.cycles[DUE]) for row in rows)
    if rows[0].cycles:
        return tuple(
            (row.at_risk_hours / HOURS_PER_YEAR, *(row.cycles[i] for i in (DUE, SQUARES, LARGEST)))
            for row in rows
        )
    return tuple((row.years, row.lost_years) for row in rows)


@dataclass(frozen=True)
class _RateDefinition:
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
    largest : float
        The most that one loss could add; 0 for what does not count losses.
    """

    rows: tuple[int, ...]
    exposures: Sequence[float]
    most: float
    unseen: float = 0.0
    largest: float = 0.0


class _BlockTotals:
    """What all blocks counted, by cause.

    Attributes
    ----------
    totals : array, shape (blocks, 2, ENTRIES, columns)
        By part: BY_SETTINGS or BEYOND.
    history : tuple of tuple of float
        As of `history_of`.
    years : int
    years_as_one : float
        How many of the years count as one independent year.
    largest_weight : float, optional
        The most that one cycle or path can weigh; None for years as they come.
    unseen_failures : float
        Failures a year too rare to occur in these years, each of which may lose at once. Retrials
        do not make them likelier; 0 for other methods, whose intervals allow for them.
    missing : bool
        The pilot may have missed how most losses happen.
    at_risk, span : lists of float
        Years of each block: until a first loss, and in all.
    fullness : float
        As of `fullness`: all logs are full when a block, or a cycle, begins.
    """

    def __init__(
        self, ordered: Sequence[Row], plan: Plan, model: FailureModel, retention_years: float
    ) -> None:
        shape = (len(ordered), 2, ENTRIES, -1)
        self.totals = np.array([row.causes for row in ordered]).reshape(shape)
        self.history = history_of(ordered)
        self.years = sum(row.years for row in ordered)
        self.years_as_one = years_as_one(len(ordered), self.years, plan.clumping)
        self.largest_weight = plan.largest_weight
        self.unseen_failures = unseen_failures(plan.unforced_failures_per_year, self.years)
        self.splits = plan.splitting is not None
        self.missing = plan.bias is not None and not plan.bias.finds_losses
        self.at_risk = [row.at_risk_hours / HOURS_PER_YEAR for row in ordered]
        self.span = [row.hours / HOURS_PER_YEAR for row in ordered]
        self._names = (*plan.table.names, CONFIGURATION)
        self._destroyed = transition_rates.shares_of_destruction(model)
        self.fullness = self._fullness(plan, retention_years)

    def _fullness(self, plan: Plan, retention_years: float) -> float:
        hours = [years * HOURS_PER_YEAR for years in self.span]
        losses = self.estimate(_RateDefinition((LOSS_EVENTS,), self.span, 1.0, largest=1.0)).high
        stopped = self.estimate(_RateDefinition((UNWRITABLE,), hours, 1.0)).high
        share = 1.0 if plan.bias is not None else min(1.0, retention_years / min(self.span))
        return fullness(losses * retention_years, min(stopped, 1.0), share)

    @property
    def first_losses(self) -> _RateDefinition:
        """Losses that ended a stretch without any, while at risk."""
        return _RateDefinition((FIRST_LOSSES,), self.at_risk, 1.0, largest=1.0)

    def estimate(
        self, measured: _RateDefinition, parts: tuple[int, ...] = (BY_SETTINGS, BEYOND)
    ) -> Estimate:
        """Estimate a rate, or the part of it that settings decide, or do not."""
        found = rate(self.ratio(measured, parts), self.years)
        if RECORDS_LOST in measured.rows:
            found = with_shorter_logs(found, self.fullness)
        if self.missing:
            return with_a_missing_kind(found, self.ratio(measured, parts).most)
        # Cycles and retrials are drawn so that the loss of a whole set is among them.
        found = with_unseen_failures(found, self.unseen_failures * measured.largest)
        unseen = 0.0 if self.largest_weight else measured.unseen * self.years_as_one
        return with_the_unseen(found, unseen) if unseen else found

    def ratio(
        self, measured: _RateDefinition, parts: tuple[int, ...] = (BY_SETTINGS, BEYOND)
    ) -> Ratio:
        """What the blocks counted."""
        amounts = [math.fsum(block[list(parts)][:, measured.rows].ravel()) for block in self.totals]
        most = measured.most * self.years_as_one
        if self.largest_weight is not None:
            # Fewer cycles are drawn than begin in these years, and each may weigh more.
            most *= self.largest_weight * self.years / math.fsum(self.span)
        weighted = self.largest_weight is not None
        heavier = HEAVIER if self.splits else 1.0
        return Ratio(amounts, measured.exposures, most, weighted, heavier)

    def by_cause(self, measured: _RateDefinition) -> dict[str, float]:
        """Split a rate by mechanism."""
        exposure = math.fsum(measured.exposures)
        *column, no_disk = (
            math.fsum(self.totals[:, :, measured.rows, cause].ravel()) / exposure
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
    counted = _BlockTotals(ordered, plan, model, load.retention_hours / HOURS_PER_YEAR)
    years, rates = counted.years, _rates(plan, counted)
    whole: dict[str, Any] = {
        name: _never(years) if entry is None else counted.estimate(entry)
        for name, entry in rates.items()
    }
    known = plan.clumping, plan.largest_weight, plan.unforced_failures_per_year
    lost = loss_chance(counted.history, years, *known)
    if counted.missing:
        lost = with_a_missing_kind(lost, counted.ratio(counted.first_losses).most)
        lost = replace(lost, high=min(lost.high, 1.0))
    waiting = waiting_time(counted.ratio(counted.first_losses), years)
    if waiting.seen:
        waiting = replace(waiting, low=1.0 / (1.0 / waiting.low + counted.unseen_failures))
    found = Sampled(
        loss_probability_per_year=lost,
        mean_years_to_loss=waiting,
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
        history=counted.history,
        clumping=plan.clumping,
        outages=_outages(ordered),
        breakdown=breakdown(ordered, plan, model, lost.value),
        method=plan.method,
        weights=None if plan.largest_weight is None else _weights(ordered),
        largest_weight=plan.largest_weight,
        failure_rates=plan.unforced_failures_per_year,
    )
    if plan.strikes_per_year <= 0:
        found = _where_nothing_happens(found)
    return replace(
        found, causes=_causes(found, counted, rates), parts=_parts(found, counted, rates)
    )


def _weights(rows: Sequence[Row]) -> Weights:
    """How well the weighted losses stand for the real ones."""
    total, squares = (math.fsum(row.cycles[place] for row in rows) for place in (WEIGHTS, SQUARES))
    losses, largest = sum(row.lost_years for row in rows), max(row.cycles[LARGEST] for row in rows)
    if not total > 0.0:
        return Weights(losses, 0.0, 0.0)
    return Weights(losses, total * total / squares, largest / total)


def _outages(rows: Sequence[Row]) -> tuple[tuple[float, float, float], ...]:
    """Write outages by length: from how many seconds, to how many, and their number."""
    numbers = np.array([row.outages for row in rows]).sum(axis=0)
    edges = SHORTEST_OUTAGE_S * 10.0 ** (np.arange(len(numbers) + 1) / BINS_PER_DECADE)
    return tuple(
        (float(edges[place]), float(edges[place + 1]), float(numbers[place]))
        for place in np.flatnonzero(numbers)
    )


def _rates(plan: Plan, counted: _BlockTotals) -> dict[str, _RateDefinition | None]:
    """What the measures are the rates of; None for what these acks rule out."""
    partitions = sum(plan.partitions)
    hours = [years * HOURS_PER_YEAR * partitions for years in counted.span]
    written = plan.records_per_hour * HOURS_PER_YEAR * partitions
    held = plan.retained_records * partitions
    whole_set = plan.retained_records * max(plan.partitions)
    lost = _RateDefinition((RECORDS_LOST,), counted.span, held, whole_set, whole_set)
    dropped = _RateDefinition(
        (RECORDS_LOST, REFUSED), counted.span, held + written, whole_set, whole_set
    )
    unacknowledged = plan.constants.acks == 0
    return {
        "loss_events_per_year": _RateDefinition(
            (LOSS_EVENTS,), counted.span, partitions, largest=partitions
        ),
        "acked_records_lost_per_year": None if unacknowledged else lost,
        "write_unavailability": _RateDefinition((UNWRITABLE,), hours, 1.0),
        "read_unavailability": _RateDefinition((UNREADABLE,), hours, 1.0),
        "write_stalled": _RateDefinition((STALLED,), hours, 1.0) if any(plan.stall_hours) else None,
        "records_refused_per_year": _RateDefinition((REFUSED,), counted.span, written),
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


def _in_order(rows: Sequence[Row], blocks: Sequence[Block], plan: Plan) -> list[Row]:
    wanted = [(block.index, block.years, mark(plan, block.seed)) for block in blocks]
    ordered = sorted(rows, key=lambda row: row.block)
    if [(row.block, row.years, row.plan) for row in ordered] != sorted(wanted):
        raise InputError("the rows to be merged are not one of each block of this run")
    return ordered


def _causes(
    found: Sampled, counted: _BlockTotals, rates: Mapping[str, _RateDefinition | None]
) -> Mapping[str, Mapping[str, float]]:
    """Split each measure by mechanism; destroyed replicas by the rates of what destroys them."""
    causes = {name: {} if each is None else counted.by_cause(each) for name, each in rates.items()}
    lost = found.loss_probability_per_year
    firsts = counted.by_cause(counted.first_losses)
    scale = lost.value / math.fsum(firsts.values()) if lost.seen and firsts else 0.0
    causes["loss_probability_per_year"] = {
        name: part * scale for name, part in firsts.items() if scale
    }
    return MappingProxyType({name: MappingProxyType(parts) for name, parts in causes.items()})


def _parts(
    found: Sampled, counted: _BlockTotals, rates: Mapping[str, _RateDefinition | None]
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
        else (counted.estimate(entry, (BY_SETTINGS,)), counted.estimate(entry, (BEYOND,)))
        for name, entry in rates.items()
    }
    whole = counted.estimate(counted.first_losses)
    firsts = [counted.estimate(counted.first_losses, (part,)) for part in (BY_SETTINGS, BEYOND)]
    by, beyond = (_share_of(part, whole) for part in firsts)
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
