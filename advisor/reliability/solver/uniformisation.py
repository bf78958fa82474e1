"""Uniformisation (Jensen) for P(absorption), stopped early by a Collatz-Wielandt bound.

The steps converge: each block of steps then loses the same share of the last block's loss. A block
is a matrix without negative entries; if it takes every state's probability to between a and b times
what it was, so do the next blocks, and they lose between a, a^2, ... and b, b^2, ... times as much
(as Collatz and Wielandt bound an eigenvalue).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from advisor.errors import AdvisorError

if TYPE_CHECKING:
    from advisor.reliability.solver.generator import Generator

Vector = NDArray[np.float64]

# Steps after which it is looked whether the rest is known.
_BLOCK = 1000
# A step costs as much as this many of the matrix's entries, whatever the matrix.
_ENTRIES_PER_STEP = 4000
# About half a minute of one core.
_MOST_ENTRIES = 3e10
_EPSILON = float(np.finfo(float).eps)


def absorbed_within(generator: Generator, horizon_hours: float, precision: float) -> float:
    """Probability that a chain that starts in state 0 is absorbed.

    flow: every state of it can be reached.
    precision: requested relative accuracy; rounding over many steps may limit it.
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
            least, most = float(ratios.min()), float(ratios.max())
            blocks = math.ceil((weights.count - end) / _BLOCK)
            if least > 0 and blocks * math.log(most / least) <= wanted:
                return lost + weights.rest(losses, most, end)
    return lost


def entries(generator: Generator, horizon_hours: float) -> float:
    """Matrix entries read by a series that does not stop early."""
    return float(generator.out.max()) * horizon_hours * _entries_of_a_step(generator)


def _entries_of_a_step(generator: Generator) -> int:
    return int(generator.rates.nnz) + _ENTRIES_PER_STEP


class _Weights:
    """By which a step's losses count: the chance that there are more steps than come before it.

    mean: steps within the horizon; their number is Poisson distributed.
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
        """What is lost from ``begin`` on if each block loses ``ratio`` times what the last did.

        losses (steps of a block,): of each step of the block that ends at ``begin``.
        """
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
