"""From blocks to estimates: sums in the order of the blocks.

The intervals are those of :mod:`advisor.reliability.sampler.intervals`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from types import MappingProxyType
from typing import Any

import numpy as np

from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.results.fault_tolerance import never_writes, tolerance
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.results.units import Weights
from advisor.reliability.sampler.block import LARGEST, VARIANCE, WEIGHTS, Row, mark
from advisor.reliability.sampler.block_totals import BlockTotals, RateDefinition
from advisor.reliability.sampler.breakdown import breakdown
from advisor.reliability.sampler.compiled.memory_layout import (
    BINS_PER_DECADE,
    LOSS_EVENTS,
    RECORDS_LOST,
    REFUSED,
    SHORTEST_OUTAGE_S,
    STALLED,
    UNREADABLE,
    UNWRITABLE,
)
from advisor.reliability.sampler.intervals.loss_chance import loss_chance
from advisor.reliability.sampler.intervals.rates import waiting_time
from advisor.reliability.sampler.intervals.unseen import most_lost_at_once, with_a_missing_kind
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.workload import Workload

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
    counted = BlockTotals(ordered, plan, model, load.retention_hours / HOURS_PER_YEAR)
    holds_records = plan.records_per_hour > 0.0 and not never_writes(config)
    years, rates = counted.years, _rates(plan, counted, holds_records)
    whole: dict[str, Any] = {
        name: _never(years) if entry is None else counted.estimate(entry)
        for name, entry in rates.items()
    }
    known = plan.clumping, plan.largest_weight, plan.unforced_failures_per_year
    history = history_of(ordered)
    lost = loss_chance(history, years, *known)
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
    if plan.strikes_per_year <= 0:
        found = _where_nothing_happens(found)
    elif not holds_records:
        found = _without_losses(found, "cannot happen: no record is ever acknowledged")
    return replace(found, causes=_causes(found, counted, rates))


def _weights(rows: Sequence[Row]) -> Weights:
    """How well the weighted losses stand for the real ones."""
    losses = round(sum(row.first_losses for row in rows))
    total, varied = (math.fsum(row.cycles[at] for row in rows) for at in (WEIGHTS, VARIANCE))
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
    plan: Plan, counted: BlockTotals, holds_records: bool
) -> dict[str, RateDefinition | None]:
    """What the measures are the rates of; None for what these settings rule out."""
    partitions = sum(plan.partitions)
    hours = [years * HOURS_PER_YEAR * partitions for years in counted.span]
    written = plan.records_per_hour * HOURS_PER_YEAR * partitions
    held = plan.retained_records * partitions
    whole_set = most_lost_at_once(plan) * max(plan.partitions)
    lost = RateDefinition((RECORDS_LOST,), counted.span, held, whole_set, whole_set)
    dropped = RateDefinition(
        (RECORDS_LOST, REFUSED), counted.span, held + written, whole_set, whole_set
    )
    unacknowledged = plan.constants.acks == 0
    losses = RateDefinition((LOSS_EVENTS,), counted.span, partitions, largest=partitions)
    # Without a follower there is none to wait for.
    waits = any(plan.stall_hours) and plan.replicas > 1
    return {
        "loss_events_per_year": losses if holds_records else None,
        "acked_records_lost_per_year": lost if holds_records and not unacknowledged else None,
        "write_unavailability": RateDefinition(
            (UNWRITABLE,), hours, 1.0, of_outages=1.0, ceiling=1.0
        ),
        "read_unavailability": RateDefinition(
            (UNREADABLE,), hours, 1.0, of_outages=1.0, ceiling=1.0
        ),
        "write_stalled": RateDefinition((STALLED,), hours, 1.0, ceiling=1.0) if waits else None,
        "records_refused_per_year": RateDefinition(
            (REFUSED,), counted.span, written, of_outages=written
        ),
        "records_dropped_per_year": dropped if unacknowledged else None,
    }


def _never(years: int, why: str = "cannot happen with these settings") -> Estimate:
    """An estimate of 0 for what cannot happen."""
    return Estimate(0.0, 0.0, 0.0, years, why)


def _waits_for_ever(years: int, why: str) -> Estimate:
    """The mean time until what cannot happen."""
    return Estimate(math.inf, math.inf, math.inf, years, why)


def _without_losses(found: Sampled, why: str) -> Sampled:
    """If no record is at risk, a loss that was not seen cannot happen."""
    return replace(
        found,
        loss_probability_per_year=_never(found.years, why),
        mean_years_to_loss=_waits_for_ever(found.years, why),
    )


def _where_nothing_happens(found: Sampled) -> Sampled:
    """If every rate of the card is 0, what was not seen cannot happen."""
    why = "cannot happen: every rate of this card is 0"
    unseen = [name for name in measure_table.computed() if not found.estimate(name).seen]
    known: dict[str, Any] = {name: _never(found.years, why) for name in unseen}
    known["mean_years_to_loss"] = _waits_for_ever(found.years, why)
    return replace(found, **known)


def _in_order(rows: Sequence[Row], blocks: Sequence[Block], plan: Plan) -> list[Row]:
    wanted = [(block.index, block.years, mark(plan, block.seed)) for block in blocks]
    ordered = sorted(rows, key=lambda row: row.block)
    if [(row.block, row.years, row.plan) for row in ordered] != sorted(wanted):
        raise InputError("the rows to be merged are not one of each block of this run")
    return ordered


def _causes(
    found: Sampled, counted: BlockTotals, rates: Mapping[str, RateDefinition | None]
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
