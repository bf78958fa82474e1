"""Regenerative cycles: paths that leave the healthy state and return to it or are absorbed.

Visits and rewards of a cycle are Neumann series of the jump matrix without the healthy state,
summed from below; where cycles are too long, elimination takes over.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy import sparse

from advisor.errors import AdvisorError, NotComputedError
from advisor.reliability.solver.generator import EXACT, ROUGH, Generator, Vector, sums
from advisor.reliability.solver.gth_elimination import LARGEST, Elimination

# A Neumann series takes half a minute at most: sweeps, and matrix entries read in all.
_MOST_SWEEPS, _MOST_ENTRIES = 200_000, 3e10
# A small chain is eliminated if the series has not converged after this many sweeps.
_SWEEPS = 2000

# A convergence check costs about as much as a sweep.
_SWEEPS_PER_CHECK = 4


class RegenerativeCycles:
    """Cycles from the healthy state until return or absorption.

    out, start, back (states,): rates out of each state, from the healthy state, and to it.
    """

    def __init__(self, generator: Generator, precision: float = EXACT) -> None:
        self.generator = generator
        self.precision = precision
        self.out = generator.out
        if len(self.out) > 1 and not np.all(self.out[1:] > 0):
            raise AdvisorError("a state of the chain cannot be left: give every outage a duration")
        states = len(self.out)
        source, target, rate = generator.sources, generator.rates.indices, generator.rates.data
        leaves, returns = source == 0, target == 0
        self.start: Vector = sums(target[leaves], rate[leaves], states)
        self.back: Vector = sums(source[returns], rate[returns], states)
        inner = ~leaves & ~returns
        # Jump probabilities.
        shares = rate[inner] / self.out[source[inner]]
        begin = np.cumsum(np.bincount(source[inner], minlength=states))
        self._rows = sparse.csr_array(
            (shares, target[inner] - 1, begin), shape=(states - 1, states - 1)
        )

    @cached_property
    def _columns(self) -> sparse.csr_array:
        """The transposed jump matrix."""
        return sparse.csr_array(self._rows.T)

    def forward(self, source: Vector) -> Vector:
        """Mean hours spent in each other state, for a flow ``source`` entering them (per hour)."""
        arrivals = self._followed(self._columns, source[1:])
        if arrivals is None:
            return np.concatenate([[0.0], self._eliminated(source[1:], True)])
        return np.concatenate([[0.0], arrivals / self.out[1:]])

    def backward(self, gain: Vector) -> Vector:
        """Mean total of each ``gain`` per hour collected from each other state until the end."""
        first = (gain[1:].T / self.out[1:]).T
        value = self._followed(self._rows, first)
        if value is None:
            value = self._eliminated(gain[1:], False)
        return np.concatenate([np.zeros_like(gain[:1]), value])

    def weighted_cycle_gain(self, gain: Vector, per_hour: float) -> Vector | None:
        """Gain of a cycle where an hour at age t counts ``exp(per_hour * t)`` times.

        Returns (gains,): per healthy hour; None if it diverges or does not converge quickly.
        """
        slower = self.out[1:] - per_hour
        if not np.all(slower > 0):
            return None
        # Killing at a negative rate: each state is left more slowly, to the same targets.
        more = sparse.diags_array(self.out[1:] / slower)
        jumps = sparse.csr_array(more @ self._rows)
        with np.errstate(over="ignore", invalid="ignore"):
            value = sum_of_paths(jumps, (gain[1:].T / slower).T, ROUGH, _SWEEPS)
            total = None if value is None else self.start[1:] @ value
        return total if total is not None and bool(np.all(np.isfinite(total))) else None

    def _followed(self, jumps: sparse.csr_array, first: Vector) -> Vector | None:
        """The Neumann series; None where elimination is quicker."""
        if "_elimination" in vars(self):
            return None
        patience = _SWEEPS if len(self.out) <= LARGEST else None
        return sum_of_paths(jumps, first, self.precision, patience)

    def _eliminated(self, given: Vector, forward: bool) -> Vector:
        """The same by elimination, where cycles are too long for the series."""
        return self._elimination.solve(given, forward)

    @cached_property
    def _elimination(self) -> Elimination:
        leak = self.back[1:] + self.generator.absorbed[1:]
        return Elimination(self.generator.rates[1:, 1:].toarray(), leak)


def sum_of_paths(
    jumps: sparse.csr_array,
    first: Vector,
    precision: float = EXACT,
    patience: int | None = None,
) -> Vector | None:
    """``first + jumps first + jumps^2 first + ...``, all terms non-negative.

    Stops once the remainder changes no entry by more than ``precision`` of itself; None if that
    takes more than ``patience`` terms. Raises NotComputedError if it takes more than half a minute,
    without a ``patience``.
    """
    total = first.copy()
    term = first
    nothing = 1e-29 * max(float(total.max(initial=0.0)), np.finfo(float).tiny)
    previous = math.inf
    sweeps = most_sweeps(jumps.nnz * math.prod(first.shape[1:])) if patience is None else patience
    for sweep in range(1, sweeps + 1):
        term = jumps @ term
        total += term
        if sweep % _SWEEPS_PER_CHECK:
            continue
        size = float(term.max(initial=0.0))
        # Contraction per sweep; slower at first.
        shrunk = size / previous if previous > 0 else 0.0
        ratio = min(shrunk ** (1.0 / _SWEEPS_PER_CHECK), 0.999999) if shrunk > 0 else 0.9
        previous = size
        left = term / (1.0 - ratio)
        if size <= nothing or bool(np.all(left <= precision * total)):
            return np.asarray(total)
    if patience is not None:
        return None
    raise NotComputedError(
        f"the chain did not settle within {sweeps} sweeps: outages so frequent and long that "
        "a healthy cluster is almost never reached are too much for a chain of this size"
    )


def most_sweeps(entries: int) -> int:
    """Largest number of sweeps over a matrix with this many entries before a series is given up."""
    return int(min(_MOST_SWEEPS, max(_MOST_ENTRIES / max(entries, 1), _SWEEPS)))


def stationary(generator: Generator, precision: float = EXACT) -> Vector:
    """Long-run fraction of time in each state of a chain without absorption."""
    cycles = RegenerativeCycles(generator, precision)
    if cycles.out[0] == 0:
        return np.concatenate([[1.0], np.zeros(len(cycles.out) - 1)])
    time = cycles.forward(cycles.start)
    time[0] = 1.0
    fractions: Vector = time / time.sum()
    return fractions
