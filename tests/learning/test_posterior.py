"""Posteriors against closed forms, importance sampling, and truths drawn from the prior."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import stats

from advisor.learning.posterior import (
    BETWEEN_CLUSTERS,
    Array,
    Counted,
    Lengths,
    Range,
    Share,
    cluster_posteriors,
    length_likelihood,
    posterior,
    product_posterior,
    rate_likelihood,
    share_likelihood,
    struck_posterior,
    values_at,
)
from advisor.reliability.failures.card import Quantity
from advisor.reliability.failures.distributions import range_of
from advisor.reliability.failures.failure_model import FailureModel, load_model

HOST = Quantity(0.2, 0.05, 0.56)
KINDS = {
    "two-piece": HOST,
    "from zero": Quantity(0.02, 0.0, 0.2),
    "zero": Quantity(0.0, 0.0, 0.3),
    "exact": Quantity(3.0, 3.0, 3.0),
    "counted": Quantity(*range_of(3, 10.0), events=3, exposure_years=10.0),
    "none counted": Quantity(*range_of(0, 2.0), events=0, exposure_years=2.0),
}
SAMPLE = 300_000


def drawn(number: Quantity, seed: int, most: float = math.inf) -> Array:
    deviates = np.random.default_rng(seed).standard_normal(SAMPLE)
    return values_at(number, deviates, most)


def weighted(values: Array, logs: Array) -> list[float]:
    """Value, low and high of a weighted sample."""
    order = np.argsort(values)
    passed = np.cumsum(np.exp(logs - logs.max())[order])
    low, value, high = np.interp(
        np.array([0.025, 0.5, 0.975]) * passed[-1], passed, values[order]
    ).tolist()
    return [value, low, high]


@pytest.mark.parametrize("kind", KINDS)
def test_a_prior_is_what_cards_draw(kind: str) -> None:
    """Many deviates at once give what `Quantity.at` gives for each."""
    number, deviates = KINDS[kind], np.linspace(-6.0, 6.0, 49)
    one_by_one = [number.at(deviate) for deviate in deviates]
    assert values_at(number, deviates).tolist() == pytest.approx(one_by_one, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_seen_leaves_the_prior(kind: str) -> None:
    """Without a count the posterior is the card's own range."""
    number = KINDS[kind]
    unchanged = posterior(number, np.zeros_like)
    low, value, high = (number.at(deviate) for deviate in (-1.959964, 0.0, 1.959964))
    assert unchanged == pytest.approx((value, low, high), rel=2e-3, abs=1e-6)


@pytest.mark.parametrize(("events", "years"), [(0, 0.04), (0, 50.0), (4, 36.0), (900, 12.0)])
def test_counts_on_counts_are_a_gamma_distribution(events: int, years: float) -> None:
    """Where the prior is itself a count, both counts added up are the posterior."""
    number = KINDS["counted"]
    exact = range_of(3 + events, 10.0 + years)
    assert posterior(number, rate_likelihood([Counted(events, years)])) == pytest.approx(
        exact, rel=3e-3
    )


@pytest.mark.parametrize("kind", ["two-piece", "from zero", "zero"])
@pytest.mark.parametrize(("events", "years"), [(0, 5.0), (1, 0.5), (4, 36.0)])
def test_rates_agree_with_importance_sampling(kind: str, events: int, years: float) -> None:
    """Draws of the card, weighted by a Poisson probability of scipy.stats, give the same."""
    rates = drawn(KINDS[kind], 1)
    expected = weighted(rates, stats.poisson.logpmf(events, rates * years))
    found = posterior(KINDS[kind], rate_likelihood([Counted(events, years)]))
    assert found == pytest.approx(expected, rel=0.05, abs=2e-3)


def test_many_events_leave_nothing_of_the_prior() -> None:
    """A count far from the card's range, and of a million, is the rate itself."""
    far = posterior(HOST, rate_likelihood([Counted(3600, 36.0)]))
    assert far == pytest.approx((100.0, 96.8, 103.3), rel=0.01)
    sharp = posterior(HOST, rate_likelihood([Counted(10**6, 4e6)]))
    assert sharp == pytest.approx((0.25, 0.25 * (1 - 1.96e-3), 0.25 * (1 + 1.96e-3)), rel=1e-4)


@pytest.mark.parametrize("shape", [None, Quantity(0.5, 0.5, 0.5), Quantity(0.5, 0.2, 1.0)])
def test_lengths_agree_with_importance_sampling(shape: Quantity | None) -> None:
    """Outages that ended and one that goes on, exponential, gamma, and of uncertain shape."""
    number, ended, ongoing = Quantity(10.0, 3.0, 60.0), [12.0, 3.0, 40.0, 22.0], 90.0
    means = drawn(number, 2)
    forms = np.ones(SAMPLE) if shape is None else drawn(shape, 3)
    known = stats.gamma(forms, scale=means / forms)
    logs = sum(known.logpdf(length) for length in ended) + known.logsf(ongoing)
    found = posterior(number, length_likelihood(Lengths(tuple(ended), (ongoing,)), shape))
    assert found == pytest.approx(weighted(means, logs), rel=0.03)


def test_an_outage_that_goes_on_prolongs_the_mean() -> None:
    """An outage cut off after an hour says less than one that ended, and more than none."""
    number = Quantity(10.0, 3.0, 60.0)
    none, cut, over = (
        posterior(number, length_likelihood(lengths)).value
        for lengths in (Lengths(), Lengths((), (600.0,)), Lengths((1.0,), ()))
    )
    assert over < none < cut


@pytest.mark.parametrize("share", [Share(0, 6), Share(3, 6), Share(6, 6)])
def test_probabilities_agree_with_importance_sampling(share: Share) -> None:
    """Shares of events, of a probability whose range is cut at 1."""
    number = Quantity(0.6, 0.2, 0.95)
    chances = drawn(number, 4, 1.0)
    logs = stats.binom.logpmf(share.happened, share.of, chances)
    found = posterior(number, share_likelihood(share), 1.0)
    assert found == pytest.approx(weighted(chances, logs), rel=0.02)
    assert found.high <= 1.0


@pytest.mark.parametrize("counted", [None, Counted(0, 2.0), Counted(5, 10.0)])
@pytest.mark.parametrize("ended", [(), (40.0, 25.0, 300.0)])
def test_products_agree_with_importance_sampling(
    counted: Counted | None, ended: tuple[float, ...]
) -> None:
    """A rate of which the card knows the product with its minutes: all three together."""
    product, minutes = Quantity(23.0, 4.0, 200.0), Quantity(230.0, 20.0, 1028.0)
    products, lengths = drawn(product, 5), drawn(minutes, 6)
    logs = np.zeros(SAMPLE)
    if counted:
        logs += stats.poisson.logpmf(counted.events, products / lengths * counted.exposure_years)
    logs += sum(stats.expon(scale=lengths).logpdf(length) for length in ended)
    found = product_posterior(
        product,
        minutes,
        rate_likelihood([counted]) if counted else None,
        length_likelihood(Lengths(ended)) if ended else None,
    )
    assert found.rate == pytest.approx(weighted(products / lengths, logs), rel=0.05)
    assert found.minutes == pytest.approx(weighted(lengths, logs), rel=0.05)
    assert found.product == pytest.approx(weighted(products, logs), rel=0.05)
    assert found.keeps_product is not (counted is not None and counted.events > 0)


def test_who_is_struck_agrees_with_importance_sampling() -> None:
    """Events that struck all may be of either kind, the others only of one."""
    every, brokers = Quantity(0.6, 0.2, 0.9), Quantity(0.5, 0.2, 0.8)
    wholes, chances = drawn(every, 7, 1.0), drawn(brokers, 8, 1.0)
    logs = np.log(wholes + (1 - wholes) * chances**3)
    logs += np.log1p(-np.minimum(wholes, 1 - 1e-12)) + stats.binom.logpmf(2, 6, chances)
    found, own = struck_posterior(every, brokers, [(3, 3), (2, 6)])
    assert found == pytest.approx(weighted(wholes, logs), rel=0.02)
    assert own == pytest.approx(weighted(chances, logs), rel=0.02)
    nothing, alone = struck_posterior(None, brokers, [(2, 6)])
    assert nothing is None
    assert alone == pytest.approx(posterior(brokers, share_likelihood(Share(2, 6)), 1.0), rel=2e-3)


FLEET = [Counted(events, 12.0) for events in (0, 0, 9, 1, 2, 0)]


def test_fleets_agree_with_importance_sampling() -> None:
    """The fleet's rate, and those of clusters with and without events, drawn from the model."""
    rng, rates = np.random.default_rng(9), drawn(HOST, 10)
    shapes = (BETWEEN_CLUSTERS * rng.standard_normal(SAMPLE)) ** -2.0
    logs = np.zeros(SAMPLE)
    for events, exposure in FLEET:
        # Its mean is the fleet's; the gamma distribution of a cluster's rate is integrated out.
        logs += stats.nbinom.logpmf(events, shapes, shapes / (shapes + rates * exposure))
    fleet = posterior(HOST, rate_likelihood(FLEET))
    assert fleet == pytest.approx(weighted(rates, logs), rel=0.03)
    for (events, exposure), found in zip(FLEET, cluster_posteriors(HOST, FLEET), strict=True):
        own = rng.gamma(shapes + events, 1.0 / (shapes / rates + exposure))
        value, low, high = weighted(own, logs)
        assert (found.value, found.high) == pytest.approx((value, high), rel=0.05)
        assert found.low == pytest.approx(low, rel=0.2)


@pytest.mark.parametrize("times", [1, 100_000])
def test_many_rates_at_once_are_interpolated(times: int) -> None:
    """The likelihood of a fleet's rate is the same for many rates as for a few, busy or not."""
    fleet = [Counted(times * events, times * years) for events, years in FLEET]
    likelihood = rate_likelihood(fleet)
    rates = np.geomspace(1e-9, 1e9, 80_000)
    many, best = likelihood(rates.reshape(200, 400)).ravel(), likelihood(np.array([0.167])).max()
    few = np.concatenate([likelihood(part) for part in np.split(rates, 40)])
    matters = few > best - 40.0
    assert matters.sum() > 100
    assert np.abs(many - few)[matters].max() < 2e-3
    assert (many[~matters] < best - 39.0).all()


def test_counts_around_a_fleet_are_negative_binomial() -> None:
    """A Poisson count whose rate is gamma around another: sampled, against scipy's formula."""
    rng = np.random.default_rng(12)
    counts = rng.poisson(rng.gamma(4.0, 3.0 / 4.0, size=SAMPLE))
    for events in (0, 3, 8):
        expected = stats.nbinom.pmf(events, 4.0, 4.0 / (4.0 + 3.0))
        assert np.mean(counts == events) == pytest.approx(expected, rel=0.03)


def test_a_cluster_without_events_borrows_from_the_others() -> None:
    """Beside busy clusters its rate is higher than by itself, beside quiet ones lower."""
    alone = posterior(HOST, rate_likelihood([Counted(0, 12.0)])).value
    busy = [Counted(0, 12.0), *[Counted(12, 12.0)] * 5]
    quiet = [Counted(0, 12.0)] * 6
    assert cluster_posteriors(HOST, quiet)[0].value < alone
    assert alone < cluster_posteriors(HOST, busy)[0].value < cluster_posteriors(HOST, busy)[1].value


FLEETS = 200
BROKERS = 12


def test_intervals_cover_the_truth() -> None:
    """Rates drawn from a card lie in the 95 % interval of their count in 92 to 98 %.

    For one cluster and ten that share their rates, fifteen days and fifteen months; pooled over
    the rates of 200 fleets.
    """
    card, rng = load_model("three_az_cloud"), np.random.default_rng(11)
    truths = list(card.draws(256, seed=5))[:FLEETS]
    paths = [path for path in card.uncertain if path.endswith("per_year")]
    for clusters in (1, 10):
        for years in (15 / 365, 1.25):
            inside = [
                covered(card, path, truth, clusters, years, rng)
                for path in paths
                for truth in truths
            ]
            assert len(inside) == FLEETS * 17
            assert 0.92 <= np.mean(inside) <= 0.98, (clusters, years)


def covered(
    card: FailureModel,
    path: str,
    truth: FailureModel,
    clusters: int,
    years: float,
    rng: np.random.Generator,
) -> bool:
    """Count events at a true rate, and say whether the interval of the count holds it."""
    targets = {"broker": BROKERS, "rack": 3}.get(path.partition(".")[0], 1)
    exposure = targets * years
    events = sorted(rng.poisson(truth[path] * exposure, size=clusters).tolist())
    found = interval(card, path, events, exposure)
    return found.low <= truth[path] <= found.high


_intervals: dict[tuple[object, ...], Range] = {}


def interval(card: FailureModel, path: str, events: Sequence[int], exposure: float) -> Range:
    key = path, *events, exposure
    if key not in _intervals:
        number = card.quantities[path]
        seen: Callable[[Array], Array] = rate_likelihood([Counted(n, exposure) for n in events])
        if number.minutes_per_year is None:
            _intervals[key] = posterior(number, seen)
        else:
            minutes = card.quantities[f"{path.rpartition('.')[0]}.minutes"]
            product = Quantity(*number.minutes_per_year)
            _intervals[key] = product_posterior(product, minutes, seen, None).rate
    return _intervals[key]
