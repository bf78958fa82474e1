"""Sojourn-time distribution in a set of states: how long outages last, by uniformisation."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special

from advisor.errors import AdvisorError
from advisor.reliability.solver import gth_elimination
from advisor.reliability.solver.generator import Generator, Vector

# Below the rounding of what it is added to.
_ROUNDING = 1e-17
# Numbers that a series may keep for the next question (2 MB).
_REMEMBERED = 2**18
# Chances of numbers of events that are worked out together (8 MB).
_AT_ONCE = 2**20
# A series over more events would take too long.
_MOST_EVENTS = 5_000_000
# With more events than this, finding the hours that no sojourn reaches costs less than the series.
_MANY_EVENTS = 100_000
# No chance of staying that is smaller changes any number.
_NEVER = 1e-30


class TooManyStepsError(AdvisorError):
    """The series needs too many steps for the time asked about."""


class SojournTime:
    """Sojourn time in a set of states; the terms of Jensen's series are kept for any hours."""

    def __init__(self, generator: Generator, members: NDArray[np.bool_]) -> None:
        self._size = len(members)
        self._index = np.flatnonzero(members)
        rows = sparse.csr_array(generator.rates[self._index])
        inner = self._inner = sparse.csr_array(rows[:, self._index])
        self._leak = rows @ ~members + generator.absorbed[self._index]
        out = generator.out[self._index]
        self._pace = max(float(out.max(initial=0.0)), 1e-300)
        stay = sparse.diags_array(1.0 - out / self._pace)
        self._jumps = sparse.csr_array(inner / self._pace + stay)
        self._terms = np.ones((1, len(self._index)))

    @property
    def pace(self) -> float:
        """Largest rate out of a state of the set, per hour."""
        return self._pace

    def after(self, hours: float) -> Vector:
        """Probability of staying in the set for ``hours`` more, by state; 0 outside the set."""
        return self.weighted_survival(np.array([hours]), np.ones(1))

    def weighted_survival(self, hours: Vector, weights: Vector) -> Vector:
        """Weighted sum of survival probabilities at several hours, by state; 0 outside the set.

        Raises TooManyStepsError if the series would need more than five million steps.
        """
        stays = np.zeros(self._size)
        if self._pace * float(hours.max()) > _MANY_EVENTS:
            shorter = hours < self._longest_hours
            hours, weights = hours[shorter], weights[shorter]
        mean = self._pace * float(hours.max(initial=0.0))
        if mean > _MOST_EVENTS:
            raise TooManyStepsError("the producer's budget is too long against the shortest outage")
        chances = np.zeros(int(mean + 9.0 * math.sqrt(mean) + 60.0))
        at_once = max(_AT_ONCE // len(chances), 1)
        for first in range(0, len(weights), at_once):
            some = slice(first, first + at_once)
            jumps = _poisson(self._pace * hours[some], len(chances))
            chances += (jumps * weights[some]).sum(axis=1)
        # Terms do not grow, so that the chances that are left bound what is cut off.
        left = np.cumsum(chances[::-1])[::-1]
        steps = int(np.argmax(left <= _ROUNDING * float(weights.sum())))
        self._remember(min(steps + 1, 1 + _REMEMBERED // max(len(self._index), 1)))
        terms = self._terms[: steps + 1]
        # As a product of matrices its threads would take longer than they save.
        total = np.einsum("i,ij->j", chances[: len(terms)], terms)
        term = terms[-1]
        for step in range(len(terms), steps + 1):
            term = self._jumps @ term
            total += chances[step] * term
        stays[self._index] = total
        return stays

    @cached_property
    def _longest_hours(self) -> float:
        """Longer sojourns have a probability that changes no digit.

        With h the mean hours until the set is left, H the largest and m the smallest of them, each
        h falls by h / H an hour at least, so that ``P(T > t) <= H / m * exp(-t / H)``.
        """
        if not 0 < len(self._index) <= gth_elimination.LARGEST:
            return math.inf
        leaving = gth_elimination.Elimination(self._inner.toarray(), self._leak)
        hours = leaving.solve(np.ones(len(self._index)), forward=False)
        longest, shortest = float(hours.max()), float(hours.min())
        return longest * math.log(longest / shortest / _NEVER)

    def _remember(self, count: int) -> None:
        """Compute the first ``count`` terms of the series, unless they are known."""
        computed = len(self._terms)
        if count <= computed:
            return
        terms = np.empty((count, len(self._index)))
        terms[:computed] = self._terms
        for step in range(computed, count):
            terms[step] = self._jumps @ terms[step - 1]
        self._terms = terms


def _poisson(means: Vector, count: int) -> Vector:
    """Chances of 0, 1, ... events, shape (count, means).

    `scipy.stats` takes twenty times as long for so few.
    """
    events = np.arange(count)[:, None]
    logarithms = special.xlogy(events, means) - special.gammaln(events + 1)
    chances: Vector = np.exp(logarithms - means)
    return chances
