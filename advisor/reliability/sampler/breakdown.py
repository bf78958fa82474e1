"""What each mechanism contributed to each measure.

Shares are additive: over mechanisms they sum up to the measure's value. They have no
intervals.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.mechanisms import CONFIGURATION
from advisor.reliability.results.units import Breakdown, Share
from advisor.reliability.sampler.block import Row
from advisor.reliability.sampler.compiled.memory_layout import (
    ENTRIES,
    FIRST_LOSSES,
    LOSS_EVENTS,
    RECORDS_LOST,
    REFUSED,
    STALLED,
    UNREADABLE,
    UNWRITABLE,
)
from advisor.reliability.sampler.plan import Plan


def breakdown(
    rows: Sequence[Row], plan: Plan, model: FailureModel, loss_probability: float
) -> Breakdown:
    """Split what all blocks counted by measure and mechanism.

    model: the card of the plan: it says how destroyed replicas came to be destroyed.
    loss_probability: in a year; it is split as the first losses are.
    """
    totals = np.array([row.causes for row in rows]).sum(axis=0).reshape(ENTRIES, -1)
    names = (*plan.table.names, CONFIGURATION)
    destroyed = transition_rates.shares_of_destruction(model)
    shares = []
    for measure, (entries, scale) in _scales(rows, plan, totals, loss_probability).items():
        *counted, no_disk = totals[entries].sum(axis=0).tolist()
        values = dict(zip(names, counted, strict=True))
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
    found = {
        "loss_probability_per_year": ([FIRST_LOSSES], lost / first if first else 0.0),
        "loss_events_per_year": ([LOSS_EVENTS], per_year),
        "acked_records_lost_per_year": ([RECORDS_LOST], 0.0 if unacknowledged else per_year),
        "write_unavailability": ([UNWRITABLE], of_time),
        "read_unavailability": ([UNREADABLE], of_time),
        "write_stalled": ([STALLED], of_time if any(plan.stall_hours) else 0.0),
        "records_refused_per_year": ([REFUSED], per_year),
        "records_dropped_per_year": ([RECORDS_LOST, REFUSED], per_year if unacknowledged else 0.0),
    }
    return {measure: entry for measure, entry in found.items() if entry[1] > 0.0}


def _replica_sets(plan: Plan) -> tuple[tuple[int, int, int], ...]:
    """Classes of replica sets: racks that one spans, how many there are, and their partitions."""
    sets: Counter[int] = Counter()
    partitions: Counter[int] = Counter()
    for replicas, count in zip(plan.sets, plan.partitions, strict=True):
        racks = len({plan.racks[broker] for broker in replicas})
        sets[racks] += 1
        partitions[racks] += count
    return tuple((racks, sets[racks], partitions[racks]) for racks in sorted(sets))
