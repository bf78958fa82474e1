"""Solving the chain without subtraction.

Every number here is a sum of products of non-negative numbers, so that small ones keep their
digits; LU and Krylov solvers lose them in proportion to how rare a loss is (O'Cinneide, Numer.
Math. 65, 1993). The ideas:

* *Regeneration.* With the healthy state as the only way out, ``x = b + x P`` (P: jump
  probabilities without that state) is a sum over paths that all end soon; iterating it from 0
  grows monotonically to the answer.
* *Quasi-stationary extrapolation.* ``P(no loss by t) = c exp(-h t)`` but for terms that die out
  with the slowest repair; h and c come from the regenerative solution by inverse iteration.
* *Repeated squaring* of a short step where repairs are too slow for that; *uniformisation*
  (Jensen) where there are too many states for dense matrices, or few steps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from advisor.errors import AdvisorError, NotComputedError
from advisor.reliability import squaring, uniformisation
from advisor.reliability.elimination import LARGEST, Elimination

Vector = NDArray[np.float64]

# Relative accuracy of every entry: all digits, or enough for a draw of an uncertain card.
EXACT = 1e-16
ROUGH = 1e-4
# A sum over paths takes half a minute at most: so many sweeps, and entries gone through in all.
_MOST_SWEEPS, _MOST_ENTRIES = 200_000, 3e10
# A chain small enough is solved by elimination if the sum has not settled by then.
_SWEEPS = 2000
# Looking whether a sum has settled takes about as long as a sweep.
_SWEEPS_BETWEEN_LOOKS = 4
# By this factor less than the precision asked for, when the start is taken as forgotten.
_FORGOTTEN = math.exp(3.0)
# What the sums' own rounding hides.
_ROUNDED = 1e-13
# The bound on what is left of the start has a factor that may need as much as exp of this.
_MARGIN = 2.0
# A kernel beyond this leaves nothing of the bound.
_CONTRACTS = 0.9


def sums(place: NDArray[np.int64], amounts: Vector, size: int) -> Vector:
    """What the amounts at each of so many places add up to."""
    # Without amounts NumPy counts, in integers.
    return np.bincount(place, amounts, size).astype(np.float64)


@dataclass(frozen=True)
class Flow:
    """Rates per hour between states; the healthy state is 0.

    Attributes
    ----------
    rates : sparse array, shape (states, states)
        Off-diagonal rates from row to column.
    absorbed : array, shape (states,)
        Rate out of each state to absorption; zeros if there is none.
    """

    rates: sparse.csr_array
    absorbed: Vector

    @property
    def out(self) -> Vector:
        """Total rate out of each state."""
        return sums(self.sources, self.rates.data, len(self.absorbed)) + self.absorbed

    @property
    def sources(self) -> NDArray[np.int64]:
        """State that each of the matrix's entries leads out of."""
        return np.repeat(np.arange(len(self.absorbed)), np.diff(self.rates.indptr))

    @classmethod
    def of(
        cls,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        rate: Vector,
        absorbed: Vector,
    ) -> Flow:
        """The flow of some transitions.

        Parameters
        ----------
        source, target : arrays of int, shape (transitions,)
            The sources ascend; a pair may come several times, and its rates add up.
        rate : array, shape (transitions,)
        absorbed : array, shape (states,)
        """
        states = len(absorbed)
        begin = np.searchsorted(source, np.arange(states + 1))
        return cls(sparse.csr_array((rate, target, begin), shape=(states, states)), absorbed)


class Excursions:
    """Paths that leave the healthy state and end when they are back there or absorbed.

    Attributes
    ----------
    out, start, back : arrays, shape (states,)
        Rates out of each state, from the healthy state, and to it.
    """

    def __init__(self, flow: Flow, precision: float = EXACT) -> None:
        self.flow = flow
        self.precision = precision
        self.out = flow.out
        if len(self.out) > 1 and not np.all(self.out[1:] > 0):
            raise AdvisorError("a state of the chain cannot be left: give every outage a duration")
        states = len(self.out)
        source, target, rate = flow.sources, flow.rates.indices, flow.rates.data
        leaves, returns = source == 0, target == 0
        self.start: Vector = sums(target[leaves], rate[leaves], states)
        self.back: Vector = sums(source[returns], rate[returns], states)
        inner = ~leaves & ~returns
        # Chances of the next state.
        shares = rate[inner] / self.out[source[inner]]
        begin = np.cumsum(np.bincount(source[inner], minlength=states))
        self._rows = sparse.csr_array(
            (shares, target[inner] - 1, begin), shape=(states - 1, states - 1)
        )

    @cached_property
    def _columns(self) -> sparse.csr_array:
        """The same by the state that is reached."""
        return sparse.csr_array(self._rows.T)

    def forward(self, source: Vector) -> Vector:
        """Mean hours spent in each other state, for a flow ``source`` entering them (per hour)."""
        arrivals = self._followed(self._columns, source[1:])
        if arrivals is None:
            return np.concatenate([[0.0], self._eliminated(source[1:], True)])
        return np.concatenate([[0.0], arrivals / self.out[1:]])

    def backward(self, gain: Vector) -> Vector:
        """Mean total of ``gain`` per hour collected from each other state until the end.

        Parameters
        ----------
        gain : array, shape (states,) or (states, gains)
        """
        first = (gain[1:].T / self.out[1:]).T
        value = self._followed(self._rows, first)
        if value is None:
            value = self._eliminated(gain[1:], False)
        return np.concatenate([np.zeros_like(gain[:1]), value])

    def lasting(self, gain: Vector, per_hour: float) -> Vector | None:
        """What excursions collect where an hour's gain grows by ``exp(per_hour * age)``.

        Parameters
        ----------
        gain : array, shape (states, gains)
        per_hour : float
            How fast; less than every state is left.

        Returns
        -------
        array, shape (gains,), or None
            Per healthy hour; None where it is endless, or takes long to tell.
        """
        slower = self.out[1:] - per_hour
        if not np.all(slower > 0):
            return None
        # Killed at a negative rate: as if each state were left more slowly, for the same places.
        more = sparse.diags_array(self.out[1:] / slower)
        jumps = sparse.csr_array(more @ self._rows)
        with np.errstate(over="ignore", invalid="ignore"):
            value = sum_of_paths(jumps, (gain[1:].T / slower).T, ROUGH, _SWEEPS)
            found = None if value is None else self.start[1:] @ value
        return found if found is not None and bool(np.all(np.isfinite(found))) else None

    def _followed(self, jumps: sparse.csr_array, first: Vector) -> Vector | None:
        """The sum over paths; None where elimination is quicker."""
        if "_elimination" in vars(self):
            return None
        patience = _SWEEPS if len(self.out) <= LARGEST else None
        return sum_of_paths(jumps, first, self.precision, patience)

    def _eliminated(self, given: Vector, forward: bool) -> Vector:
        """The same by elimination, where excursions are too long to be followed."""
        return self._elimination.solve(given, forward)

    @cached_property
    def _elimination(self) -> Elimination:
        leak = self.back[1:] + self.flow.absorbed[1:]
        return Elimination(self.flow.rates[1:, 1:].toarray(), leak)


def sum_of_paths(
    jumps: sparse.csr_array,
    first: Vector,
    precision: float = EXACT,
    patience: int | None = None,
) -> Vector | None:
    """``first + jumps first + jumps^2 first + ...``, all terms non-negative.

    Stops once what is left can change no entry by more than ``precision`` of itself; None if
    that takes more than ``patience`` terms.

    Raises
    ------
    NotComputedError
        If it takes more than half a minute, without a ``patience``.
    """
    total = first.copy()
    term = first
    nothing = 1e-29 * max(float(total.max(initial=0.0)), np.finfo(float).tiny)
    previous = math.inf
    most = most_sweeps(jumps.nnz * math.prod(first.shape[1:])) if patience is None else patience
    for sweep in range(1, most + 1):
        term = jumps @ term
        total += term
        if sweep % _SWEEPS_BETWEEN_LOOKS:
            continue
        size = float(term.max(initial=0.0))
        # Terms shrink by this much in a sweep; more slowly at first.
        shrunk = size / previous if previous > 0 else 0.0
        ratio = min(shrunk ** (1.0 / _SWEEPS_BETWEEN_LOOKS), 0.999999) if shrunk > 0 else 0.9
        previous = size
        left = term / (1.0 - ratio)
        if size <= nothing or bool(np.all(left <= precision * total)):
            return np.asarray(total)
    if patience is not None:
        return None
    raise NotComputedError(
        f"the chain did not settle within {most} sweeps: outages so frequent and long that "
        "a healthy cluster is hardly ever seen are too much for a chain of this size"
    )


def most_sweeps(entries: int) -> int:
    """How often so many entries are gone through before a sum over paths is given up."""
    return int(min(_MOST_SWEEPS, max(_MOST_ENTRIES / max(entries, 1), _SWEEPS)))


def stationary(flow: Flow, precision: float = EXACT) -> Vector:
    """Long-run fraction of time in each state of a chain without absorption."""
    hours = Excursions(flow, precision)
    if hours.out[0] == 0:
        return np.concatenate([[1.0], np.zeros(len(hours.out) - 1)])
    time = hours.forward(hours.start)
    time[0] = 1.0
    fractions: Vector = time / time.sum()
    return fractions


@dataclass(frozen=True)
class FirstLoss:
    """When a chain that starts healthy is absorbed for the first time.

    Attributes
    ----------
    mean_hours : float
        Infinite if nothing can be lost.
    probability : float
        Of absorption within the horizon.
    method : str
    """

    mean_hours: float
    probability: float
    method: str


def first_loss(flow: Flow, horizon_hours: float, precision: float = EXACT) -> FirstLoss:
    """Mean time to absorption, and its probability within a horizon.

    Parameters
    ----------
    flow : Flow
        With the loss transitions as ``absorbed``.
    horizon_hours : float
    precision : float
        Relative accuracy asked for.
    """
    if not np.any(flow.absorbed > 0):
        return FirstLoss(math.inf, 0.0, "no modelled event loses anything")
    if len(flow.absorbed) == 1:
        rate = float(flow.absorbed[0])
        return FirstLoss(1.0 / rate, -math.expm1(-rate * horizon_hours), "closed form")
    flow = _before_absorption(flow)
    hours = Excursions(flow, precision)
    per_healthy_hour = hours.forward(hours.start)
    per_healthy_hour[0] = 1.0
    loss_per_healthy_hour = float(per_healthy_hour @ flow.absorbed)
    mean_hours = float(per_healthy_hour.sum()) / loss_per_healthy_hour
    ahead = hours.backward(np.ones(len(hours.out)))
    slowest = float(ahead.max())
    # What is left of the start decays as exp(-horizon / slowest), or faster.
    left, most = 0.0, math.inf
    if horizon_hours < math.log(_FORGOTTEN / precision) * slowest:
        most = max(precision, _ROUNDED)
        left = _left_of_the_start(hours, loss_per_healthy_hour, horizon_hours, most)
    if left < math.inf:
        probability = _extrapolated(hours, per_healthy_hour, ahead, horizon_hours)
        if left <= most * probability:
            return FirstLoss(mean_hours, probability, "quasi-stationary extrapolation")
    if squaring.is_quicker(flow, horizon_hours, uniformisation.entries(flow, horizon_hours)):
        probability = squaring.absorbed_within(flow, horizon_hours)
        return FirstLoss(mean_hours, probability, "repeated squaring")
    probability = uniformisation.absorbed_within(flow, horizon_hours, precision)
    return FirstLoss(mean_hours, probability, "uniformisation")


def _left_of_the_start(
    hours: Excursions, loss_per_healthy_hour: float, horizon_hours: float, wanted: float
) -> float:
    """A bound on what the extrapolation to the horizon is off, having begun healthy.

    The chance of being healthy at t, times ``exp(h t)`` (h: the hazard), solves a renewal equation
    ``1 = v + k * v`` with a kernel k >= 0 made of excursions that go on. Where K, the integral of
    ``k exp(x t)``, is below 1, v is within ``K / (1 - K) exp(-x t)`` of its limit. Losses follow
    from v through what excursions lose at each age; their integral from the horizon on gives the
    bound, with ``x + h`` for the growth that :meth:`Excursions.lasting` weighs ages by.
    """
    growth = (math.log(1.0 / wanted) + _MARGIN) / horizon_hours
    gains = np.stack([np.ones(len(hours.out)), hours.flow.absorbed], axis=1)
    found = hours.lasting(gains, growth)
    # The hazard is less than the losses of a healthy hour.
    if found is None or growth <= loss_per_healthy_hour:
        return math.inf
    time, losses = map(float, found)
    kernel = time * growth / (growth - loss_per_healthy_hour)
    if kernel >= _CONTRACTS:
        return math.inf
    at_once = kernel / (1.0 - kernel) * (float(hours.flow.absorbed[0]) + losses)
    return math.exp(-growth * horizon_hours) / growth * (at_once + losses)


def _before_absorption(flow: Flow) -> Flow:
    """The part of the chain that can be reached without being absorbed."""
    order = csgraph.breadth_first_order(flow.rates, 0, return_predecessors=False)
    kept = np.sort(order)
    if len(kept) == len(flow.absorbed):
        return flow
    return Flow(sparse.csr_array(flow.rates[kept][:, kept]), flow.absorbed[kept])


def _extrapolated(hours: Excursions, visits: Vector, ahead: Vector, horizon_hours: float) -> float:
    """``1 - c exp(-h t)`` from the quasi-stationary distribution and its rate of loss."""
    flow = hours.flow
    loss_per_healthy_hour = float(visits @ flow.absorbed)
    there = visits / visits.sum()
    hazard = 0.0
    for _ in range(100):
        # One step of inverse iteration: there (-S)^-1, with the healthy state eliminated.
        inside = hours.forward(there)
        healthy = (there[0] + float(inside @ hours.back)) / loss_per_healthy_hour
        following = inside + healthy * visits
        previous, hazard = hazard, float(there.sum() / following.sum())
        there = following / following.sum()
        if abs(hazard - previous) <= 10 * hours.precision * hazard:
            break
    # How much less survival there is from elsewhere: 1 - u(s)/u(0), u the right eigenvector.
    lost = hours.backward(flow.absorbed)
    behind = np.zeros(len(lost))
    for _ in range(100):
        previous_behind = behind
        behind = lost - hazard * ahead
        if np.abs(behind - previous_behind).max() <= 10 * hours.precision:
            break
        ahead = hours.backward(1.0 - behind)
    shortfall = float(there @ behind)
    lead = shortfall / (1.0 - shortfall)
    decay = -math.expm1(-hazard * horizon_hours)
    return decay - lead * (1.0 - decay)
