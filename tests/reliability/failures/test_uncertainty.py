"""Ranges of a further draw: how often they hold one, and their ends in special cases."""

import math

import numpy as np
import pytest

from advisor import FailureModel
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.uncertainty import fit_of, lognormal_interval

MANY = 100_000


def shares_outside(population: np.ndarray, size: int) -> tuple[float, float]:
    """Mean shares of the population below and above the interval, over its samples of a size."""
    ordered = np.sort(population)
    outside = []
    for sample in population[: 400 * size].reshape(400, size):
        low, high = lognormal_interval(sample.tolist())
        below = np.searchsorted(ordered, low)
        above = MANY - np.searchsorted(ordered, high, side="right")
        outside.append((below / MANY, above / MANY))
    below, above = np.mean(outside, axis=0)
    return float(below), float(above)


@pytest.mark.parametrize("size", [8, 16, 32])
@pytest.mark.parametrize("kind", ["log-normal", "sum", "reciprocal of a sum"])
def test_a_further_draw_is_within(kind, size):
    """About 2.5 % are beyond either end in the mean, also where many causes with tails add up.

    Logarithms of sums are skewed to the right, those of times to a loss to the left.
    """
    random = np.random.default_rng(1)
    parts = np.exp(random.normal(size=(MANY, 1 if kind == "log-normal" else 5)) * [[1.5]])
    population = parts.sum(axis=1)
    below, above = shares_outside(1.0 / population if "reciprocal" in kind else population, size)
    assert 0.018 < below < 0.034
    assert 0.018 < above < 0.034


def test_the_interval_holds_every_draw():
    sample = [1.0, 1.1, 1.2, 1.3, 50.0]
    low, high = lognormal_interval(sample)
    assert low < 1.0
    assert high >= 50.0


def test_equal_draws_have_no_width():
    assert lognormal_interval([3.0] * 8) == pytest.approx((3.0, 3.0), rel=1e-12)


@pytest.mark.parametrize("sample", [[0.0, 1.0, 2.0], [1.0, 2.0, math.inf]])
def test_without_a_logarithm_the_draws_are_the_range(sample):
    assert lognormal_interval(sample) == (min(sample), max(sample))


def test_no_end_of_a_probability_exceeds_one():
    """Its hazard is fitted; where it is small, that makes no difference."""
    fit = fit_of(is_probability=True)
    low, high = fit([0.2, 0.5, 0.9, 0.99])
    assert 0.0 < low < 0.2
    assert 0.99 < high <= 1.0
    rare = [1e-9, 3e-9, 2e-8, 4e-8]
    assert fit(rare) == pytest.approx(lognormal_interval(rare), rel=1e-5)
    assert fit([0.5, 1.0]) == (pytest.approx(0.5), 1.0)


def test_one_lopsided_number_keeps_its_range():
    """A rate of 1 with a range from 0.5 to 20: somewhat wider, since draws are few."""
    rate = {"value": 1.0, "low": 0.5, "high": 20.0}
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": rate, "minutes": 10.0}}})
    drawn = [each["broker.crash.per_year"] for each in uncertainty.parameter_draws(card, states=1)]
    low, high = lognormal_interval(drawn)
    assert low == pytest.approx(0.5, rel=0.25)
    assert high == pytest.approx(20.0, rel=0.4)
