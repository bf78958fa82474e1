"""Which number of the card to measure: what knowing it would save, and how far it narrows costs.

Both are read from the draws that the settings were compared on, without evaluating anything again.
The expected value of perfect information about one number is what the mean cost falls by if the
setting may depend on that number: cut the draws, ordered by the number, where another setting
becomes better (M. Strong, J. Oakley, "An efficient method for computing single-parameter partial
expected value of perfect information", Medical Decision Making 33, 2013). A cut through noise seems
to save something as well, so what it saves is counted in draws other than those that placed it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.decision.rule import Array

# Beyond it every setting is out of the question, and sums stay finite.
_MOST_MINUTES = 1e12
_FEWEST_DRAWS = 8


class Value(NamedTuple):
    """What knowing a number would save.

    minutes: minutes without writes a year.
    error: standard error.
    """

    minutes: float
    error: float


def value_of_information(number: Array, cost: Array) -> Value:
    """Return what knowing a number exactly would save on average, from paired draws.

    Where to cut, and which setting is best on either side, is decided on every second draw and
    applied to the others, and the other way round.

    number (draws,): the number in each draw.
    cost (draws, settings): of the candidates, in the same draws.

    >>> x = np.linspace(-1.0, 1.0, 512)
    >>> round(value_of_information(x, np.stack([0 * x, x], axis=1)).minutes, 2)
    0.25
    """
    if len(number) < _FEWEST_DRAWS:
        return Value(0.0, 0.0)
    order = np.argsort(number, kind="stable")
    ordered, bounded = number[order], np.minimum(cost, _MOST_MINUTES)[order]
    saved = np.empty(len(number))
    for first in (0, 1):
        learned, applied = slice(first, None, 2), slice(1 - first, None, 2)
        saved[applied] = _saved(
            ordered[learned], bounded[learned], ordered[applied], bounded[applied]
        )
    error = float(saved.std()) / float(np.sqrt(len(saved)))
    return Value(max(0.0, float(saved.mean())), error)


def _saved(number: Array, cost: Array, new_number: Array, new_cost: Array) -> Array:
    """What the best single cut of some ordered draws saves in each of some others."""
    below = np.concatenate([np.zeros((1, cost.shape[1])), np.cumsum(cost, axis=0)])
    above = below[-1] - below
    place = int(np.argmin(below.min(axis=1) + above.min(axis=1)))
    limit = np.inf if place == len(number) else number[place]
    policy = np.where(new_number < limit, below[place].argmin(), above[place].argmin())
    usual = new_cost[:, int(below[-1].argmin())]
    return np.asarray(usual - np.take_along_axis(new_cost, policy[:, None], axis=1)[:, 0])


def narrowing(number: Array, cost: Array) -> float:
    """Return which share of the variance of a cost's logarithm a number explains, 0 to 1.

    A parabola in the order of the number is fitted; what any order would explain is subtracted.

    number, cost (draws,): the number and the whole cost of one setting in each draw.
    """
    if len(number) < _FEWEST_DRAWS:
        return 0.0
    logs = np.log(np.clip(cost, 1e-300, _MOST_MINUTES))
    if np.ptp(logs) == 0.0:
        return 0.0
    order = np.empty(len(number))
    order[np.argsort(number, kind="stable")] = np.linspace(-1.0, 1.0, len(number))
    residuals = logs - np.polynomial.Polynomial.fit(order, logs, 2)(order)
    explained = 1.0 - float(residuals.var() / logs.var())
    free = (len(number) - 1) / (len(number) - 3)
    return max(0.0, 1.0 - (1.0 - explained) * free)
