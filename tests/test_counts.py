"""Rates from counts: the gamma distribution that a count leaves, and its place in a card."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from advisor.errors import ModelError
from advisor.reliability.counts import range_of, rate_at
from advisor.reliability.model import FailureModel

counts = st.integers(min_value=0, max_value=10_000)
exposures = st.floats(min_value=1e-3, max_value=1e6)


def crashes(**number: object) -> FailureModel:
    return FailureModel.from_dict({"broker": {"crash": {"per_year": number, "minutes": 5}}})


@given(counts, exposures)
def test_the_range_is_that_of_the_gamma_distribution(events: int, exposure: float) -> None:
    """Median, 2.5 % and 97.5 % points are scipy.stats' own, which inverts by other means."""
    known = stats.gamma(events + 0.5, scale=1.0 / exposure)
    value, low, high = range_of(events, exposure)
    assert [low, value, high] == pytest.approx(known.ppf([0.025, 0.5, 0.975]).tolist(), rel=1e-7)
    assert 0 < low < value < high


@given(counts, exposures, st.floats(min_value=-6, max_value=6))
def test_a_deviate_keeps_its_probability(events: int, exposure: float, deviate: float) -> None:
    """The gamma probability below the rate is the normal probability below the deviate."""
    known = stats.gamma(events + 0.5, scale=1.0 / exposure)
    rate = rate_at(events, exposure, deviate)
    tail, expected = (known.sf, stats.norm.sf) if deviate > 0 else (known.cdf, stats.norm.cdf)
    assert tail(rate) == pytest.approx(expected(deviate), rel=1e-7)


@given(counts, exposures, st.floats(min_value=1.01, max_value=100))
def test_watching_longer_scales_the_rate(events: int, exposure: float, times: float) -> None:
    """The same count in a longer time is a rate smaller in proportion, range and all."""
    short, long = range_of(events, exposure), range_of(events, exposure * times)
    assert long == pytest.approx([end / times for end in short], rel=1e-12)


def test_the_interval_covers_as_often_as_it_says() -> None:
    """Of rates drawn from a prior and then counted, 95 % lie in their interval.

    The prior is a wide gamma distribution, close to that of Jeffreys over the range that matters,
    but proper; 4,000 trials have a standard error of 0.0034, and four of them are allowed.
    """
    rng = stats.gamma(0.5, scale=200.0).rvs(4000, random_state=1)
    seen = stats.poisson(rng).rvs(random_state=2)
    ends = {count: range_of(int(count), 1.0) for count in set(seen.tolist())}
    covered = [ends[k][1] <= rate <= ends[k][2] for rate, k in zip(rng, seen.tolist(), strict=True)]
    assert sum(covered) / len(covered) == pytest.approx(0.95, abs=4 * 0.0034)


def test_draws_come_from_the_gamma_distribution() -> None:
    """1024 draws of a counted rate lie where the distribution puts them.

    A scrambled Sobol sequence of n points has n/m points in each of m equal cells, so that its
    empirical distribution is off by less than a cell: 1/1024, where independent draws would be
    off by 0.04.
    """
    model = crashes(events=2, exposure_years=30)
    drawn = sorted(one["broker.crash.per_year"] for one in model.draws(1024, seed=4))
    expected = stats.gamma(2.5, scale=1 / 30).cdf(drawn)
    assert max(abs(p - (i + 0.5) / 1024) for i, p in enumerate(expected)) < 1 / 1024


def test_a_count_stands_in_a_card() -> None:
    """Value and range follow, the card survives a dict, and an exact value replaces the count."""
    model = crashes(events=3, exposure_years=40.0, evidence="own: tickets")
    number = model.quantities["broker.crash.per_year"]
    assert (number.value, number.low, number.high) == range_of(3, 40.0)
    assert model.uncertain == ("broker.crash.per_year",)
    assert FailureModel.from_dict(model.to_dict()).quantities == model.quantities
    fixed = model.with_values({"broker.crash.per_year": 1.0})
    assert not fixed.uncertain
    assert [one["broker.crash.per_year"] for one in fixed.draws(2, seed=1)] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("number", "problem"),
    [
        ({"events": 3}, "per_year needs both events and exposure_years"),
        ({"exposure_years": 3}, "per_year needs both events and exposure_years"),
        ({"events": 3, "exposure_years": 4, "value": 1}, "per_year has both a count and a value"),
        ({"events": 3, "exposure_years": 4, "low": 1}, "per_year has both a count and a value"),
        ({"events": 2.5, "exposure_years": 4}, "events must be a whole number, but is 2.5"),
        ({"events": 1e300, "exposure_years": 4}, "events must be a whole number"),
        ({"events": -1, "exposure_years": 4}, "events must not be negative"),
        ({"events": True, "exposure_years": 4}, "events must be a number, not True"),
        ({"events": 1, "exposure_years": 0}, "exposure_years must be more than 0"),
        ({"events": 1, "exposure_years": math.inf}, "exposure_years must be a finite number"),
        ({"events": 1, "exposure_years": 1e-320}, "exposure_years leaves no rate"),
        ({"event": 1, "exposure_years": 4}, "did you mean 'events'"),
    ],
)
def test_an_impossible_count_is_refused(number: dict[str, object], problem: str) -> None:
    """One sentence names the key and what is wrong with it."""
    with pytest.raises(ModelError) as refused:
        crashes(**number)
    assert problem in str(refused.value)


def test_only_a_rate_is_counted() -> None:
    """A duration with a count is refused, with the way out."""
    with pytest.raises(ModelError, match=r"minutes is no rate, .* give a value instead"):
        FailureModel.from_dict(
            {"broker": {"crash": {"per_year": 1, "minutes": {"events": 1, "exposure_years": 2}}}}
        )
