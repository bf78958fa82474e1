"""First passage to absorption: MTTDL and P(loss within a horizon), without subtraction.

Every number here is a sum of products of non-negative numbers, so that small ones keep their
digits; LU and Krylov solvers lose them in proportion to how rare a loss is (O'Cinneide, Numer.
Math. 65, 1993). The methods:

* *Regeneration.* With the healthy state as the only way out, ``x = b + x P`` (P: jump
  probabilities without that state) is a sum over short paths; iterated from 0 it grows
  monotonically to the answer.
* *Quasi-stationary extrapolation.* ``P(no loss by t) = c exp(-h t)`` but for terms that die out
  with the slowest repair; h and c come from the regenerative solution by inverse iteration.
* *Repeated squaring* of a short step where repairs are too slow for that; *uniformisation*
  (Jensen) where there are too many states for dense matrices, or few steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from advisor.reliability.solver import matrix_squaring, uniformisation
from advisor.reliability.solver.generator import EXACT, Generator, Vector
from advisor.reliability.solver.regenerative import RegenerativeCycles

# The initial distribution counts as forgotten at this fraction of the requested precision.
_FORGOTTEN = math.exp(3.0)
# Rounding error of the sums.
_ROUNDED = 1e-13
# The bound on what is left of the start has a factor that may need as much as exp of this.
_MARGIN = 2.0
# A kernel beyond this leaves nothing of the bound.
_CONTRACTS = 0.9


@dataclass(frozen=True)
class FirstLoss:
    """First passage from the healthy state to absorption.

    mean_hours: infinite if nothing can be lost.
    probability: of absorption within the horizon.
    """

    mean_hours: float
    probability: float
    method: str


def first_loss(generator: Generator, horizon_hours: float, precision: float = EXACT) -> FirstLoss:
    """Mean time to absorption, and its probability within a horizon.

    generator: with the loss transitions as ``absorbed``.
    precision: requested relative accuracy.
    """
    if not np.any(generator.absorbed > 0):
        return FirstLoss(math.inf, 0.0, "no modelled event loses anything")
    if len(generator.absorbed) == 1:
        rate = float(generator.absorbed[0])
        return FirstLoss(1.0 / rate, -math.expm1(-rate * horizon_hours), "closed form")
    generator = _before_absorption(generator)
    cycles = RegenerativeCycles(generator, precision)
    per_healthy_hour = cycles.forward(cycles.start)
    per_healthy_hour[0] = 1.0
    loss_per_healthy_hour = float(per_healthy_hour @ generator.absorbed)
    mean_hours = float(per_healthy_hour.sum()) / loss_per_healthy_hour
    ahead = cycles.backward(np.ones(len(cycles.out)))
    slowest = float(ahead.max())
    # What is left of the start decays as exp(-horizon / slowest), or faster.
    left, most = 0.0, math.inf
    if horizon_hours < math.log(_FORGOTTEN / precision) * slowest:
        most = max(precision, _ROUNDED)
        left = _left_of_the_start(cycles, loss_per_healthy_hour, horizon_hours, most)
    if left < math.inf:
        probability = _extrapolated(cycles, per_healthy_hour, ahead, horizon_hours)
        if left <= most * probability:
            return FirstLoss(mean_hours, probability, "quasi-stationary extrapolation")
    if matrix_squaring.is_quicker(
        generator, horizon_hours, uniformisation.entries(generator, horizon_hours)
    ):
        probability = matrix_squaring.absorbed_within(generator, horizon_hours)
        return FirstLoss(mean_hours, probability, "repeated squaring")
    probability = uniformisation.absorbed_within(generator, horizon_hours, precision)
    return FirstLoss(mean_hours, probability, "uniformisation")


def _left_of_the_start(
    cycles: RegenerativeCycles, loss_per_healthy_hour: float, horizon_hours: float, wanted: float
) -> float:
    """Bound on the error of the extrapolation, for a healthy start.

    The chance of being healthy at t, times ``exp(h t)`` (h: the hazard), solves a renewal equation
    ``1 = v + k * v`` with a kernel k >= 0 made of excursions that go on. Where K, the integral of
    ``k exp(x t)``, is below 1, v is within ``K / (1 - K) exp(-x t)`` of its limit. Losses follow
    from v through what excursions lose at each age; their integral from the horizon on gives the
    bound, with ``x + h`` for the growth rate in :meth:`RegenerativeCycles.weighted_cycle_gain`.
    """
    growth = (math.log(1.0 / wanted) + _MARGIN) / horizon_hours
    gains = np.stack([np.ones(len(cycles.out)), cycles.generator.absorbed], axis=1)
    found = cycles.weighted_cycle_gain(gains, growth)
    # The hazard is less than the losses of a healthy hour.
    if found is None or growth <= loss_per_healthy_hour:
        return math.inf
    time, losses = map(float, found)
    kernel = time * growth / (growth - loss_per_healthy_hour)
    if kernel >= _CONTRACTS:
        return math.inf
    at_once = kernel / (1.0 - kernel) * (float(cycles.generator.absorbed[0]) + losses)
    return math.exp(-growth * horizon_hours) / growth * (at_once + losses)


def _before_absorption(generator: Generator) -> Generator:
    """The states that are reachable before absorption."""
    order = csgraph.breadth_first_order(generator.rates, 0, return_predecessors=False)
    kept = np.sort(order)
    if len(kept) == len(generator.absorbed):
        return generator
    return Generator(sparse.csr_array(generator.rates[kept][:, kept]), generator.absorbed[kept])


def _extrapolated(
    cycles: RegenerativeCycles, visits: Vector, ahead: Vector, horizon_hours: float
) -> float:
    """``1 - c exp(-h t)`` from the quasi-stationary distribution and its rate of loss."""
    generator = cycles.generator
    loss_per_healthy_hour = float(visits @ generator.absorbed)
    there = visits / visits.sum()
    hazard = 0.0
    for _ in range(100):
        # One step of inverse iteration: there (-S)^-1, with the healthy state eliminated.
        inside = cycles.forward(there)
        healthy = (there[0] + float(inside @ cycles.back)) / loss_per_healthy_hour
        following = inside + healthy * visits
        previous, hazard = hazard, float(there.sum() / following.sum())
        there = following / following.sum()
        if abs(hazard - previous) <= 10 * cycles.precision * hazard:
            break
    # Relative loss of survival from state s: 1 - u(s)/u(0), u the right eigenvector.
    lost = cycles.backward(generator.absorbed)
    behind = np.zeros(len(lost))
    for _ in range(100):
        previous_behind = behind
        behind = lost - hazard * ahead
        if np.abs(behind - previous_behind).max() <= 10 * cycles.precision:
            break
        ahead = cycles.backward(1.0 - behind)
    shortfall = float(there @ behind)
    lead = shortfall / (1.0 - shortfall)
    decay = -math.expm1(-hazard * horizon_hours)
    return decay - lead * (1.0 - decay)
