"""Rates from counts of events: their gamma posterior, and counts in cards."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from advisor.errors import ModelError
from advisor.reliability.failures.distributions import range_of, rate_at
from advisor.reliability.failures.failure_model import FailureModel

counts = st.integers(min_value=0, max_value=10_000)
exposures = st.floats(min_value=1e-3, max_value=1e6)


def crashes(**number: object) -> FailureModel:
    return FailureModel.from_dict({"broker": {"crash": {"per_year": number, "minutes": 5}}})


@given(counts, exposures)
def test_the_range_is_that_of_the_gamma_distribution(events: int, exposure: float) -> None:
    """Median, 2.5 % and 97.5 % points equal those of scipy.stats, computed differently."""
    known = stats.gamma(events + 0.5, scale=1.0 / exposure)
    value, low, high = range_of(events, exposure)
    assert [low, value, high] == pytest.approx(known.ppf([0.025, 0.5, 0.975]).tolist(), rel=1e-7)
    assert 0 < low < value < high


@example(3, 10.0, 7.5)
@given(counts, exposures, st.floats(min_value=-8, max_value=8))
def test_a_deviate_keeps_its_probability(events: int, exposure: float, deviate: float) -> None:
    """The gamma probability below the rate is the normal probability below the deviate."""
    known = stats.gamma(events + 0.5, scale=1.0 / exposure)
    rate = rate_at(events, exposure, deviate)
    tail, expected = (known.sf, stats.norm.sf) if deviate > 0 else (known.cdf, stats.norm.cdf)
    assert tail(rate) == pytest.approx(expected(deviate), rel=1e-7, abs=0.0)


@given(counts, exposures, st.floats(min_value=1.01, max_value=100))
def test_watching_longer_scales_the_rate(events: int, exposure: float, times: float) -> None:
    """Rate and range are inversely proportional to the exposure."""
    short, long = range_of(events, exposure), range_of(events, exposure * times)
    assert long == pytest.approx([end / times for end in short], rel=1e-12)


TRIALS = 4000
# A right interval fails one of a grid's checks once in a million runs of the whole grid.
RARELY = 1e-6
RATES, EXPOSURES = (0.02, 0.3, 2.0), (1.0, 7.0, 50.0, 400.0)


def covers(counts: list[int], rates: list[float], exposure: float) -> int:
    """How many of the rates lie in the interval of their count."""
    ends = {count: range_of(count, exposure) for count in set(counts)}
    pairs = zip(counts, rates, strict=True)
    return sum(ends[count][1] <= rate <= ends[count][2] for count, rate in pairs)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("exposure", EXPOSURES)
def test_a_known_rate_is_covered_as_often_as_can_be(rate: float, exposure: float) -> None:
    """Counts drawn at a known rate: hits are binomial with the chance that summing counts gives.

    At one rate the chance is not 95 %, for counts are whole numbers: it is the sum of the Poisson
    probabilities of those counts whose interval, from scipy.stats, holds the rate.
    """
    mean = rate * exposure
    seen = stats.poisson(mean).rvs(TRIALS, random_state=1).tolist()
    possible = range(int(mean + 40 * math.sqrt(mean) + 60))
    chance = math.fsum(
        stats.poisson(mean).pmf(count)
        for count in possible
        if abs(stats.gamma(count + 0.5, scale=1 / exposure).cdf(rate) - 0.5) <= 0.475
    )
    hits = covers(seen, [rate] * TRIALS, exposure)
    limit = RARELY / len(RATES) / len(EXPOSURES) / 2
    assert stats.binom.cdf(hits, TRIALS, min(chance, 1.0)) > limit
    assert stats.binom.sf(hits - 1, TRIALS, min(chance, 1.0)) > limit


@pytest.mark.parametrize("exposure", EXPOSURES)
def test_rates_from_the_prior_are_covered_95_times_in_a_hundred(exposure: float) -> None:
    """Rates drawn from a wide prior and counted: hits are binomial with a chance of 95 %.

    The prior is a gamma distribution of shape 1/2, that of Jeffreys but for an end at a mean
    count of a million: it draws the posterior in by a millionth, which 4,000 trials do not see.
    """
    rates = stats.gamma(0.5, scale=1e6 / exposure).rvs(TRIALS, random_state=1)
    seen = stats.poisson(rates * exposure).rvs(random_state=2)
    hits = covers(seen.tolist(), rates.tolist(), exposure)
    limit = RARELY / len(EXPOSURES) / 2
    assert stats.binom.cdf(hits, TRIALS, 0.95) > limit
    assert stats.binom.sf(hits - 1, TRIALS, 0.95) > limit


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
