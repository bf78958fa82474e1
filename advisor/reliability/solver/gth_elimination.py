"""Grassmann-Taksar-Heyman elimination: no subtraction, for chains with long cycles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from advisor.errors import AdvisorError

Vector = NDArray[np.float64]

LARGEST = 1500
"""States that take seconds; it grows with their cube."""


class Elimination:
    """Solves ``x (D - A) = given`` and ``(D - A) x = given``, keeping the digits of every entry.

    Grassmann, Taksar and Heyman's elimination (Oper. Res. 33, 1985): D is never formed; the total
    rate of a state is the sum of its rates to the states that remain and of its leak.

    rates (n, n): A, off-diagonal rates.
    leak (n,): rate out of the system from each state.
    Raises AdvisorError if a part of the chain cannot be left.
    """

    def __init__(self, rates: Vector, leak: Vector) -> None:
        rates, leak = rates.copy(), leak.copy()
        np.fill_diagonal(rates, 0.0)
        total = np.zeros(len(leak))
        for last in range(len(leak) - 1, -1, -1):
            onward = rates[last, :last]
            total[last] = onward.sum() + leak[last]
            if total[last] == 0:
                raise AdvisorError(
                    "a part of the chain cannot be left: give every outage a duration"
                )
            arriving = rates[:last, last] / total[last]
            leak[:last] += arriving * leak[last]
            rates[:last, :last] += np.outer(arriving, onward)
            np.fill_diagonal(rates[:last, :last], 0.0)
        # Of each state: rates to and from those that are left when it is eliminated.
        self._rates, self._total = rates, total

    def solve(self, given: Vector, forward: bool) -> Vector:
        """Solve ``x (D - A) = given`` if forward, else ``(D - A) x = given``, for each column."""
        rates, total, given = self._rates, self._total, given.copy()
        for last in range(len(total) - 1, -1, -1):
            share = (rates[last, :last] if forward else rates[:last, last]) / total[last]
            given[:last] += np.multiply.outer(share, given[last])
        solved = np.zeros_like(given)
        for state in range(len(total)):
            row = rates[:state, state] if forward else rates[state, :state]
            solved[state] = (given[state] + row @ solved[:state]) / total[state]
        return solved
