"""Sampled against exact results, measure by measure, in standard errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from advisor.reliability import measure_table
from advisor.reliability.failures import detection
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.transition_rates import stall_hours
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Estimate, Sampled

# With fewer events than this the sample's error is neither normal nor well known.
_FEWEST_EVENTS = 100.0
_DETECTION = (detection.OVERRIDE, *detection.IN_SESSIONS.values())
_CHANGE_OF_LEADER = (*_DETECTION, "election.ms_per_leader")


@dataclass(frozen=True)
class Deviation:
    """One measure, exact and sampled.

    Attributes
    ----------
    measure : str
    exact, sampled : float
    events : float
        Lower bound on the independent events that the sample should hold.
    z : float
        Sampled minus exact in standard errors; standard normal if both are right.
    """

    measure: str
    exact: float
    sampled: float
    events: float
    z: float


def deviations(exact: Reliability, sampled: Sampled) -> tuple[Deviation, ...]:
    """Return the measures that can be compared and their deviations.

    The exact result alone decides which: a measure is left out if the sample cannot hold a hundred
    of its events, or if nothing contributes to it. Loss probability and mean time to loss are left
    out for several replica sets, whose dependence `evaluate` bounds but does not solve.

    Parameters
    ----------
    sampled : Sampled
        Same cluster, configuration, card and load.
    """
    found = []
    # Bounds are equal too where a loss is certain.
    one_set = exact.bounds[0] == exact.bounds[1] < 1.0
    for measure in measure_table.names():
        if measure in ("loss_probability_per_year", "mean_years_to_loss") and not one_set:
            continue
        events = _events(exact, measure, sampled.years)
        if events < _FEWEST_EVENTS:
            continue
        value, estimate = float(getattr(exact, measure)), sampled.estimate(measure)
        if measure == "loss_probability_per_year":
            if value * sampled.years < _FEWEST_EVENTS or value > 0.999:
                continue
            z = _share_off(estimate, value)
        else:
            z = _ratio_off(estimate, value, sampled.blocks)
        found.append(Deviation(measure, value, estimate.value, events, z))
    return tuple(found)


def table(rows: Iterable[tuple[str, Deviation]]) -> str:
    """Return named deviations as lines of text, the largest first."""
    header = f"{'z':>6}  {'exact':>11}  {'sampled':>11}  {'events':>9}  what"
    lines = [
        f"{d.z:6.2f}  {d.exact:11.5g}  {d.sampled:11.5g}  {d.events:9.3g}  {d.measure}, {name}"
        for name, d in sorted(rows, key=lambda row: -abs(row[1].z))
    ]
    return "\n".join([header, *lines])


def _events(exact: Reliability, measure: str, years: int) -> float:
    """Lower bound on the independent events in a sample, from the exact result.

    Unavailability is mostly many short changes of leader, while the sampling error comes from few
    long outages. So only the long outages are counted.
    """
    losses = years / exact.mean_years_to_loss
    if "loss" in measure:
        return losses
    if measure == "write_stalled":
        longest = max(stall_hours(exact.config, exact.model))
        return exact.write_stalled * HOURS_PER_YEAR * years / longest if longest else 0.0
    at_once = {path: 0.0 for path in _CHANGE_OF_LEADER if path in exact.model.quantities}
    long = exact.reevaluate(exact.model.with_values(at_once)) if at_once else exact
    amount, load = float(getattr(long, measure)), exact.load
    longest = max(
        (_hours(exact, mechanism) for mechanism in exact.causes[measure]), default=math.inf
    )
    written = load.records_per_hour_per_partition
    if measure == "acked_records_lost_per_year":
        largest = load.partitions * load.retained_records_per_partition
        return min(amount * years / largest, losses)
    if measure == "records_dropped_per_year":
        largest = load.partitions * written * max(load.retention_hours, longest)
        return min(amount * years / largest, losses)
    if measure == "records_refused_per_year":
        return amount * years / (load.partitions * written * longest)
    return amount * HOURS_PER_YEAR * years / longest


def _hours(exact: Reliability, mechanism: str) -> float:
    """Mean hours of a mechanism's outages; infinite where the configuration itself refuses."""
    if mechanism not in exact.model.mechanisms:
        return math.inf
    return exact.model.repair_hours(mechanism)


def _share_off(found: Estimate, exact: float) -> float:
    """Normal deviate of a count of years: its binomial mid-p value."""
    from scipy import stats

    seen = round(found.value * found.n) if found.seen else 0
    law = stats.binom(round(found.n), exact)
    below, here = float(law.cdf(seen - 1)), float(law.pmf(seen))
    if below < 0.5:
        return float(stats.norm.ppf(below + here / 2.0))
    return float(stats.norm.isf(law.sf(seen) + here / 2.0))


def _ratio_off(found: Estimate, exact: float, blocks: int) -> float:
    """Normal deviate of a ratio over blocks, which has Student's interval on its logarithm."""
    from scipy import stats

    if not found.seen:
        return -math.inf if exact > found.high else math.inf
    # The upper end may have been widened for unseen events; the lower end never is. Mean times
    # are not widened at all.
    half = math.log(found.value / found.low)
    student = stats.t(blocks - 1)
    steps = math.log(found.value / exact) / half * float(student.ppf(0.975))
    return float(math.copysign(stats.norm.isf(student.sf(abs(steps))), steps))
