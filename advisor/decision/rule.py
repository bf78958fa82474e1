"""The rule, as arithmetic on arrays: what settings cost, which one to choose, how sure that is.

The last axis of an array is the settings, the one before it, if there is one, the draws of the
card's numbers. Losses are moments a year at which the topic loses acknowledged records, minutes are
those of a year without writes, and the price of a loss is the minutes without writes that are as
bad. Nothing here knows Kafka or a failure model.

What a number of the card is worth is read from the same draws. The expected value of perfect
information about it is what the mean cost falls by if the setting may depend on it: cut the draws,
ordered by the number, where another setting becomes better (M. Strong, J. Oakley, "An efficient
method for computing single-parameter partial expected value of perfect information", Medical
Decision Making 33, 2013). A cut through noise seems to save something as well, so what it saves is
counted in draws other than those that placed it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

MINUTES_PER_YEAR = 525_600.0
MINUTES_PER_LOSS = 10_080.0
"""The price of a loss unless a user gives another: a week without writes."""
KEPT_WITHIN_MINUTES, KEPT_WITHIN_SHARE = 10.0, 0.1
"""Today's setting is kept if it exceeds the least cost by less than either (share: of its own)."""
SURE, LIKELY = 0.95, 0.75
# Sums of the same failures differ by their rounding.
_ROUNDING = 1e-9
# Beyond it every setting is out of the question, and sums stay finite.
_MOST_MINUTES = 1e12
_FEWEST_DRAWS = 8


def losses_per_year(probability: ArrayLike) -> Array:
    """Return the losses a year behind the probability of at least one; infinite for 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log1p(-np.asarray(probability, dtype=float)))


def floor(amounts: Array) -> Array:
    """Return the least of each measure over the settings: what none of them prevents."""
    return np.asarray(amounts.min(axis=-1))


def costs(losses: Array, minutes: Array, minutes_per_loss: float) -> Array:
    """Return the cost above the floor, which would hide differences, in minutes without writes."""
    avoidable_losses = _above_floor(losses)
    if minutes_per_loss == 0.0:
        return _above_floor(minutes)
    return _above_floor(minutes) + minutes_per_loss * avoidable_losses


def _above_floor(amounts: Array) -> Array:
    least = floor(amounts)[..., None]
    # Two infinite amounts are equal, though their difference is no number.
    with np.errstate(invalid="ignore"):
        return np.where(amounts == least, 0.0, amounts - least)


def margin(cost: Array | float) -> Array:
    """Return by how much a cost may exceed the least and still be kept."""
    return np.maximum(KEPT_WITHIN_MINUTES, KEPT_WITHIN_SHARE * np.asarray(cost))


def least(cost: Array, candidates: Sequence[int]) -> int:
    """Return the candidate of least cost; of equal ones the first."""
    candidate_costs = cost[list(candidates)]
    return candidates[int(np.argmax(_equals(candidate_costs, candidate_costs.min())))]


def choose(
    cost: Array, candidates: Sequence[int], today: int | None = None, is_candidate: bool = True
) -> int:
    """Return the setting that the rule chooses at one set of costs.

    is_candidate: whether today's setting is one that could be chosen. It is then kept if it costs
        little more than the best; otherwise only if the best costs clearly more.
    """
    best = least(cost, candidates)
    if today is None:
        return best
    if is_candidate:
        exceeds = cost[today] - cost[best]
        return today if exceeds <= 0.0 or exceeds < margin(cost[today]) else best
    return today if cost[best] - cost[today] >= margin(cost[best]) else best


def _equals(cost: Array, other: Array | float) -> NDArray[np.bool_]:
    return cost <= np.asarray(other) + _ROUNDING * (1.0 + np.abs(other))


class Spread(NamedTuple):
    """A number over the draws.

    median, low, high: the middle draw, the least and the greatest of all; each may be infinite.
    """

    median: float
    low: float
    high: float


class Regret(NamedTuple):
    """What a setting costs above the best of each draw, in minutes without writes a year.

    mean, high: the mean over the draws, and what 95 % of them do not exceed.
    """

    mean: float
    high: float


class Standing(NamedTuple):
    """How a chosen setting does in the draws.

    best_in: draws in which no candidate costs less.
    kept_in: draws in which the rule would keep it: none costs less by ten minutes and by 10 %.
    """

    best_in: int
    kept_in: int
    draws: int
    regret: Regret


def standing(cost: Array, chosen: int, candidates: Sequence[int]) -> Standing:
    """Compare the chosen setting with the candidates in every draw."""
    chosen_cost = cost[:, chosen]
    best = np.minimum(cost[:, list(candidates)].min(axis=1), chosen_cost)
    with np.errstate(invalid="ignore"):
        regret = np.where(chosen_cost == best, 0.0, chosen_cost - best)
    is_best = _equals(chosen_cost, best)
    is_kept = is_best | (regret < margin(chosen_cost))
    high = float(np.quantile(regret, 0.95, method="inverted_cdf"))
    mean = float(regret.mean())
    return Standing(int(is_best.sum()), int(is_kept.sum()), len(cost), Regret(mean, high))


def confidence(kept_in: int, draws: int) -> str:
    """Return how sure a choice is, in a word; "" without draws.

    >>> confidence(122, 128), confidence(96, 128), confidence(95, 128), confidence(0, 0)
    ('sure', 'likely', 'depends', '')
    """
    if not draws:
        return ""
    share = kept_in / draws
    return "sure" if share >= SURE else "likely" if share >= LIKELY else "depends"


def break_even(
    losses_higher: ArrayLike, minutes_higher: ArrayLike, losses: ArrayLike, minutes: ArrayLike
) -> Array:
    """Return the price of a loss from which on the setting with the higher min ISR costs less.

    losses, minutes: of the other.
    The price is in minutes without writes; 0 where the higher min ISR is no worse in either
        measure, infinite where it is no better in either, or saves minutes and loses more.
    """
    lower, higher = (np.asarray(amounts, dtype=float) for amounts in (losses, losses_higher))
    extra = np.asarray(minutes_higher, dtype=float) - np.asarray(minutes)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        # Two infinite amounts are equal, though their difference is no number. A price above all
        # numbers is infinite.
        prevented = np.where(lower == higher, 0.0, lower - higher)
        price = np.where(prevented > 0.0, extra / prevented, math.inf)
    return np.where((extra <= 0.0) & (prevented >= 0.0), 0.0, price)


def spread(numbers: Array) -> Spread:
    """Return the median of all draws and their range.

    >>> spread(np.array([0.0, 300.0, 200.0, np.inf]))
    Spread(median=250.0, low=0.0, high=inf)
    """
    ordered = np.sort(numbers)
    below, above = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    # The difference of two infinite numbers is none.
    median = below if below == above else (below + above) / 2.0
    return Spread(float(median), float(ordered[0]), float(ordered[-1]))


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
