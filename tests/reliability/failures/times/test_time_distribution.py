"""Distributions of times by their mean and one number, against scipy's and by hand."""

import math

import pytest
from scipy import integrate, stats

from advisor.reliability.failures.times.time_distribution import (
    EMPIRICAL,
    EXPONENTIAL,
    FIXED,
    GAMMA,
    KINDS,
    LOGNORMAL,
    WEIBULL,
    TimeDistribution,
)


def of_scipy(kind: int, parameter: float, scale: float) -> stats.rv_continuous:
    """The same distribution in scipy, from the scale that the package computes."""
    return {
        EXPONENTIAL: lambda: stats.expon(scale=scale),
        WEIBULL: lambda: stats.weibull_min(parameter, scale=scale),
        LOGNORMAL: lambda: stats.lognorm(parameter, scale=scale),
        GAMMA: lambda: stats.gamma(parameter, scale=scale),
    }[kind]()


@pytest.mark.parametrize(
    ("kind", "parameter"),
    [
        (EXPONENTIAL, 1.0),
        (WEIBULL, 0.7),
        (WEIBULL, 3.0),
        (LOGNORMAL, 1.2),
        (LOGNORMAL, 0.3),
        (GAMMA, 0.5),
        (GAMMA, 9.0),
    ],
)
def test_the_scale_gives_the_mean(kind: int, parameter: float) -> None:
    """Scipy's distribution of that scale has the mean asked for, and the stated variation."""
    mean, found = 137.0, TimeDistribution(kind, parameter)
    same = of_scipy(kind, parameter, found.scale(mean))
    assert same.mean() == pytest.approx(mean, rel=1e-12)
    assert same.var() / mean**2 == pytest.approx(found.variation, rel=1e-9)
    # Scipy's own mean is a formula, too: by the area under the survival function.
    area, _ = integrate.quad(same.sf, 0.0, math.inf, limit=500, epsrel=1e-8)
    assert area == pytest.approx(mean, rel=1e-5)


def test_times_that_were_seen_have_their_own_variation() -> None:
    """A list varies as its values do; a fixed time does not vary."""
    seen = TimeDistribution(EMPIRICAL, values=(1.0, 3.0, 8.0), unit="days")
    assert seen.values_mean_hours == 4.0 * 24.0
    assert seen.variation == pytest.approx((9.0 + 1.0 + 16.0) / 3.0 / 16.0)
    assert TimeDistribution(FIXED).variation == 0.0
    assert TimeDistribution(FIXED).scale(5.0) == seen.scale(5.0) == 5.0
    assert TimeDistribution(FIXED).values_mean_hours == 0.0


@pytest.mark.parametrize("kind", [WEIBULL, LOGNORMAL, GAMMA])
def test_the_limits_of_a_number_leave_a_mean_and_a_variance(kind: int) -> None:
    """At both ends of what a card may say, scale and variation are finite and positive."""
    for parameter in (KINDS[kind].least, KINDS[kind].most):
        found = TimeDistribution(kind, parameter)
        assert 0.0 < found.scale(1e-9) < found.scale(1e9) < math.inf
        assert 0.0 < found.variation < 1000.0


def test_a_distribution_says_what_it_is() -> None:
    """In words as in a card."""
    assert str(TimeDistribution(WEIBULL, 0.7)) == "weibull, shape 0.7"
    assert str(TimeDistribution(LOGNORMAL, 1.2)) == "lognormal, sigma 1.2"
    assert str(TimeDistribution(FIXED)) == "fixed"
    seen = TimeDistribution(EMPIRICAL, values=(3.0, 1500.0), unit="minutes", evidence="own: x")
    assert str(seen) == "empirical, 2 times of 3 to 1,500 minutes"
    assert seen.to_dict() == {
        "distribution": "empirical",
        "minutes": [3.0, 1500.0],
        "evidence": "own: x",
    }
