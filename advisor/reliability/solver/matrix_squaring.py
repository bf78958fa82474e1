"""Transient absorption by repeated squaring of P(dt), for chains with slow repairs.

The transition matrix of a short step is squared until the step is the horizon: twenty matrix
products instead of a million steps. No entry is negative, so that nothing cancels and the smallest
probability keeps its digits (Shao, Gao and Xue, UMINF 12.04; Xue and Ye, Numer. Math. 110, 2008).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

if TYPE_CHECKING:
    from advisor.reliability.solver.generator import Generator

Vector = NDArray[np.float64]

# A matrix of this many rows takes 130 MB, and its squares half a minute.
_LARGEST = 4000
# Entries of a dense product in the time of one entry of a sparse product.
_QUICKER = 30.0
# The last squarings are replaced by vector-matrix products.
_LAST = 6
# Smaller mean numbers of moves count as this one: the inverse of their rate would overflow.
_FEWEST_MOVES = 1e-300
# Smaller terms of the short step's series change no digit.
_NOTHING = 1e-20


def absorbed_within(generator: Generator, horizon_hours: float) -> float:
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
    steps = min(squares, _LAST)
    for _ in range(squares - steps):
        within = _rounded_off(within)
        within = within @ within
    within = _rounded_off(within)
    row = within[0]
    for _ in range(2**steps - 1):
        row = row @ within
        row /= row.sum()
    return float(row[-1])


def is_quicker(generator: Generator, horizon_hours: float, entries_of_a_series: float) -> bool:
    """Whether squaring beats a series that reads this many entries."""
    size = len(generator.absorbed) + 1
    squares, _ = _squares(generator, horizon_hours)
    return size <= _LARGEST and squares * size**3 < _QUICKER * entries_of_a_series


def _squares(generator: Generator, horizon_hours: float) -> tuple[int, float]:
    """Number of squarings to the horizon, and mean number of jumps in the first step."""
    moves = max(float(generator.out.max()) * 1.000001 * horizon_hours, _FEWEST_MOVES)
    squares = max(math.ceil(math.log2(moves)), 0)
    return squares, moves / 2.0**squares


def _rounded_off(within: Vector) -> Vector:
    """Rows rescaled to sum to one."""
    rounded: Vector = within / within.sum(axis=1, keepdims=True)
    return rounded
