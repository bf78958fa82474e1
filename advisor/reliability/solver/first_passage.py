"""First passage to absorption: MTTDL and P(loss within a horizon), without subtraction.

Every number is a sum of products of non-negative numbers, so that small ones keep their digits: LU
and Krylov solvers lose them the more, the rarer a loss is (O'Cinneide, Numer. Math. 65, 1993).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import sparse, special
from scipy.sparse import csgraph

from advisor.errors import AdvisorError
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
    """First passage from the healthy state to absorption; infinite hours if there is none."""

    mean_hours: float
    probability: float
    method: str


def first_loss(generator: Generator, horizon_hours: float, precision: float = EXACT) -> FirstLoss:
    """Mean time to absorption, and its probability within a horizon.

    ``P(no loss by t) = c exp(-h t)`` but for terms that die out with the slowest repair; h and c
    come from the regenerative solution. Where repairs are too slow for that a short step is squared
    again and again; and steps are followed one by one (uniformisation) where there are too many
    states for dense matrices, or few steps.
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
    left, largest_error = 0.0, math.inf
    if horizon_hours < math.log(_FORGOTTEN / precision) * slowest:
        largest_error = max(precision, _ROUNDED)
        left = _left_of_the_start(cycles, loss_per_healthy_hour, horizon_hours, largest_error)
    if left < math.inf:
        probability = _extrapolated(cycles, per_healthy_hour, ahead, horizon_hours)
        if left <= largest_error * probability:
            return FirstLoss(mean_hours, probability, "quasi-stationary extrapolation")
    if squaring_is_quicker(generator, horizon_hours):
        probability = absorbed_by_squaring(generator, horizon_hours)
        return FirstLoss(mean_hours, probability, "repeated squaring")
    probability = absorbed_by_uniformisation(generator, horizon_hours, precision)
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
    gain = cycles.weighted_cycle_gain(gains, growth)
    # The hazard is less than the losses of a healthy hour.
    if gain is None or growth <= loss_per_healthy_hour:
        return math.inf
    time, losses = map(float, gain)
    kernel = time * growth / (growth - loss_per_healthy_hour)
    if kernel >= _CONTRACTS:
        return math.inf
    at_once = kernel / (1.0 - kernel) * (float(cycles.generator.absorbed[0]) + losses)
    return math.exp(-growth * horizon_hours) / growth * (at_once + losses)


def _before_absorption(generator: Generator) -> Generator:
    """The states that are reachable before absorption."""
    order = csgraph.breadth_first_order(generator.rates, 0, return_predecessors=False)
    reachable = np.sort(order)
    if len(reachable) == len(generator.absorbed):
        return generator
    return Generator(
        sparse.csr_array(generator.rates[reachable][:, reachable]), generator.absorbed[reachable]
    )


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


# Uniformisation (Jensen) stops early by a bound of Collatz and Wielandt's kind: if a block of steps
# takes every state's probability to between a and b times what it was, so do the next blocks, and
# they lose between a, a^2, ... and b, b^2, ... times as much.
# Steps of a block, after which it is looked whether the rest is known.
_BLOCK = 1000
# A step costs as much as this many of the matrix's entries, whatever the matrix.
_ENTRIES_PER_STEP = 4000
# About half a minute of one core.
_MOST_ENTRIES = 3e10
_EPSILON = float(np.finfo(float).eps)


def absorbed_by_uniformisation(
    generator: Generator, horizon_hours: float, precision: float
) -> float:
    """Probability that a chain whose states can all be reached from state 0 is absorbed.

    Raises AdvisorError if that takes much more than half a minute.
    """
    out = generator.out
    pace = float(out.max()) * 1.000001
    weights = _Weights(pace * horizon_hours)
    jumps = sparse.csr_array(generator.rates.T / pace)
    stay = 1.0 - out / pace
    leave = generator.absorbed / pace
    there = np.zeros(len(out))
    there[0] = 1.0
    lost, begin = 0.0, 0
    wanted = max(precision, _EPSILON * weights.count)
    affordable = int(_MOST_ENTRIES / _entries_of_a_step(generator))
    while begin < weights.count:
        if begin >= affordable:
            raise _too_long(pace, weights.count)
        end = min(begin + _BLOCK, weights.count)
        before, losses = there, np.empty(end - begin)
        for step in range(end - begin):
            losses[step] = there @ leave
            there = jumps @ there + stay * there
        lost += float(losses @ weights.between(begin, end))
        begin = end
        if float(there.sum()) <= wanted * lost:
            return lost
        some = before > 0
        # A state that is reached for the first time in this block has no ratio yet.
        if end < weights.count and bool(np.all(some | (there == 0))):
            ratios = there[some] / before[some]
            slowest, fastest = float(ratios.min()), float(ratios.max())
            blocks = math.ceil((weights.count - end) / _BLOCK)
            if slowest > 0 and blocks * math.log(fastest / slowest) <= wanted:
                return lost + weights.rest(losses, fastest, end)
    return lost


def _entries_of_a_step(generator: Generator) -> int:
    return int(generator.rates.nnz) + _ENTRIES_PER_STEP


class _Weights:
    """By which a step's losses count: the chance that there are more steps than come before it.

    count: steps after which weights are 0 to all digits.
    """

    def __init__(self, mean: float) -> None:
        spread = 9.0 * math.sqrt(mean) + 60.0
        self._first, self.count = max(0, int(mean - spread)), int(mean + spread) + 1
        self._tail: Vector = special.pdtrc(np.arange(self._first, self.count), mean)

    def between(self, begin: int, end: int) -> Vector:
        """Weights of the steps from ``begin`` on and before ``end``."""
        return np.concatenate(
            [
                np.ones(max(0, min(end, self._first) - begin)),
                self._tail[max(0, begin - self._first) : max(0, end - self._first)],
            ]
        )

    def rest(self, losses: Vector, ratio: float, begin: int) -> float:
        """What is lost from ``begin`` on if each block loses ``ratio`` times what the last did."""
        blocks = max(0, self._first - begin) // len(losses)
        whole = float(np.sum(ratio ** np.arange(1.0, blocks + 1.0))) * float(losses.sum())
        begin += blocks * len(losses)
        step = np.arange(self.count - begin)
        share = ratio ** (blocks + 1.0 + step // len(losses))
        cut = self.between(begin, self.count)
        return whole + float(np.sum(share * losses[step % len(losses)] * cut))


def _too_long(pace: float, steps: int) -> AdvisorError:
    return AdvisorError(
        f"some repairs take too long against the shortest outages: of {steps:,} steps of "
        f"{3600.0 / pace:.2g} s too few are done in half a minute, and there are too many states "
        "for less; leave out of the card what ends soonest (where little is stored, copy), or use "
        "simulate()"
    )


# Squaring the transition matrix of a short step until the step is the horizon takes twenty products
# instead of a million steps (Shao, Gao and Xue, UMINF 12.04; Xue and Ye, Numer. Math. 110, 2008).
# A matrix of this many rows takes 130 MB, and its squares half a minute.
_LARGEST_SQUARED = 4000
# Entries of a dense product in the time of one entry of a sparse product.
_DENSE_IS_QUICKER = 30.0
# The last squarings are replaced by vector-matrix products.
_LAST_SQUARINGS = 6
# Smaller mean numbers of moves count as this one: the inverse of their rate would overflow.
_FEWEST_MOVES = 1e-300
# Smaller terms of the short step's series change no digit.
_NOTHING = 1e-20


def absorbed_by_squaring(generator: Generator, horizon_hours: float) -> float:
    """Probability that a chain that starts in state 0 is absorbed."""
    squares, mean = _squares(generator, horizon_hours)
    pace = mean * 2.0**squares / horizon_hours
    stay = sparse.diags_array(1.0 - generator.out / pace)
    lost = sparse.csr_array(generator.absorbed[:, None] / pace)
    jumps = sparse.csr_array(
        sparse.block_array([[generator.rates / pace + stay, lost], [None, sparse.eye_array(1)]])
    )
    weight = math.exp(-mean)
    term = np.eye(jumps.shape[0])
    within: Vector = weight * term
    count = 0
    while weight > _NOTHING:
        count += 1
        weight *= mean / count
        term = jumps @ term
        within += weight * term
    # A squaring costs more than the few vector products that it would save.
    steps = min(squares, _LAST_SQUARINGS)
    for _ in range(squares - steps):
        within = _rounded_off(within)
        within = within @ within
    within = _rounded_off(within)
    row = within[0]
    for _ in range(2**steps - 1):
        row = row @ within
        row /= row.sum()
    return float(row[-1])


def squaring_is_quicker(generator: Generator, horizon_hours: float) -> bool:
    """Whether squaring beats uniformisation that does not stop early."""
    size = len(generator.absorbed) + 1
    squares, _ = _squares(generator, horizon_hours)
    entries_read = float(generator.out.max()) * horizon_hours * _entries_of_a_step(generator)
    return size <= _LARGEST_SQUARED and squares * size**3 < _DENSE_IS_QUICKER * entries_read


def _squares(generator: Generator, horizon_hours: float) -> tuple[int, float]:
    """Number of squarings to the horizon, and mean number of jumps in the first step."""
    moves = max(float(generator.out.max()) * 1.000001 * horizon_hours, _FEWEST_MOVES)
    squares = max(math.ceil(math.log2(moves)), 0)
    return squares, moves / 2.0**squares


def _rounded_off(within: Vector) -> Vector:
    """Rows rescaled to sum to one."""
    rounded: Vector = within / within.sum(axis=1, keepdims=True)
    return rounded
