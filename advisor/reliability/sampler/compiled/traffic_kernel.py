"""Traffic by the hour of the day, and what producers give up, compiled."""

from __future__ import annotations

import math

from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.solver.jit import called, inlined


@inlined
def mean_hours(sim: KernelState, since: float, until: float) -> float:
    """Hours of mean traffic in which as many records are written as between two times."""
    if sim.control[0].hourly_traffic == 0:
        return until - since
    return _mean_hours_until(sim, until) - _mean_hours_until(sim, since)


@called
def _mean_hours_until(sim: KernelState, time: float) -> float:
    at = time + sim.control[0].hour_at_time_0
    days = math.floor(at / 24.0)
    hour = min(int(at - 24.0 * days), 23)
    rest = at - 24.0 * days - hour
    return float(24.0 * days + sim.traffic[hour] + rest * _step(sim, hour))


@inlined
def traffic_at(sim: KernelState, time: float) -> float:
    """Traffic of the hour, in units of the mean."""
    if sim.control[0].hourly_traffic == 0:
        return 1.0
    at = (time + sim.control[0].hour_at_time_0) % 24.0
    return float(_step(sim, min(int(at), 23)))


@inlined
def _step(sim: KernelState, hour: int) -> float:
    return float(sim.traffic[hour + 1] - sim.traffic[hour])


@called
def given_up_before(sim: KernelState, outage_hours: float) -> float:
    """Hours of the wait for a hung follower that are given up, given the outage that follows."""
    control = sim.control[0]
    if outage_hours > control.budget_hours:
        return float(control.hung_stall_hours)
    return given_up_hung(sim, max(control.delivery_hours - outage_hours, 0.0))


@inlined
def given_up_hung(sim: KernelState, hours: float) -> float:
    """Mean hours of the wait for a hung follower beyond a producer's timeouts."""
    control = sim.control[0]
    patience, lag = min(control.waiting_budget_hours, hours), control.lag_hours
    if patience <= lag:
        return float(control.hung_stall_hours - patience)
    # The wait is uniform between 1 and 1.5 lag times.
    left = max(1.5 * lag - patience, 0.0)
    return float(left * left / lag) if left > 0.0 else 0.0
