"""Repairs with a gamma shape, solved in two stages, against formulas for gamma repairs."""

import math
from functools import cache

import numpy as np
import pytest
from scipy import special, stats

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate
from advisor.errors import NotComputedError
from advisor.reliability.failures.distributions import LARGEST_SHAPE, two_stages
from advisor.reliability.sampler.plan_reader import plan_for
from agreement_of_samples import deviations, table
from sampled_runs import FAR

YEAR = 8760.0
SHAPES = (0.2, 0.5, 0.7, 1.5, 2.0)
ONE = Workload(records_per_second=1.0)


def card(shape: float | None, per_year: float = 5.0, hours: float = 24.0) -> FailureModel:
    """Return a card on which brokers are destroyed."""
    numbers = {"per_year": per_year, "hours": hours}
    if shape is not None:
        numbers["shape"] = shape
    return FailureModel.from_dict({"broker": {"destroyed": numbers}})


def answer(replicas: int, model: FailureModel, **settings: object) -> object:
    """Evaluate as many brokers as replicas."""
    at = Cluster.uniform(brokers=replicas, racks=None)
    config = Config(replication_factor=replicas, min_insync_replicas=1, **settings)
    return evaluate(at, config, model, ONE)


@pytest.mark.parametrize("shape", [0.01, *SHAPES, 0.999, 1.0, 1.3, 1.999])
def test_two_stages_have_the_first_three_moments_of_the_gamma_distribution(shape):
    """Moments of sums of exponential times by hand: E[X^n] = n! times sums of products."""
    first, second, goes_on = two_stages(shape)
    assert 0.0 <= goes_on <= 1.0 + 1e-12
    for n in (1, 2, 3):
        both = sum(first**k * second ** (n - k) for k in range(n + 1))
        found = math.factorial(n) * ((1.0 - goes_on) * first**n + goes_on * both)
        assert found == pytest.approx(stats.gamma(shape, scale=1.0 / shape).moment(n), rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("replicas", [1, 2])
def test_unavailability_knows_only_the_mean(replicas, shape):
    """Brokers that fail and return by themselves: the share of time, whatever the shape."""
    found = answer(replicas, card(shape)).write_unavailability
    assert found == pytest.approx(answer(replicas, card(None)).write_unavailability, rel=1e-9)


def years_of_two(shape: float, per_year: float, hours: float) -> float:
    """Mean years until the second of two brokers is destroyed before the first is replaced.

    The chance that a broker outlives a repair is the Laplace transform of its law.
    """
    mean = hours / YEAR
    dies = -math.expm1(-shape * math.log1p(per_year * mean / shape))
    return (1.0 / (2.0 * per_year) + dies / per_year) / dies


@pytest.mark.parametrize(
    ("per_year", "within"), [(0.5, 1e-6), (5.0, 1e-4), (50.0, 0.004)], ids=["rare", "some", "often"]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_two_brokers(shape, per_year, within):
    """Exact in the fourth order of rate times duration; at one failure in 7 days 0.4 % off."""
    found = answer(2, card(shape, per_year)).mean_years_to_loss
    assert found == pytest.approx(years_of_two(shape, per_year, 24.0), rel=within)


def test_the_shape_tells_in_the_first_loss_of_two_brokers():
    """Two stages or one make a difference that the formula above can see."""
    often = years_of_two(0.5, 50.0, 24.0)
    assert answer(2, card(None, 50.0)).mean_years_to_loss != pytest.approx(often, rel=0.03)


@cache
def years_of_three(shape: float, per_year: float, hours: float) -> float:
    """Mean years until three brokers are destroyed at once, by quadrature over gamma repairs.

    While one is down for x more, h(x) is the chance of a loss before all are up, T(x) the time.
    """
    mean, points = hours / YEAR, 100
    nodes, weights = np.polynomial.legendre.leggauss(points)
    # Evenly in u^3, so that the ends of the distribution have many points.
    u, w = (nodes + 1.0) / 2.0, weights / 2.0
    v, dv = u**3 * (10.0 - 15.0 * u + 6.0 * u * u), w * 30.0 * u * u * (1.0 - u) ** 2
    repair = special.gammaincinv(shape, v) * mean / shape
    grid = np.concatenate([[0.0], np.geomspace(1e-6, 60.0, 250) * mean])
    t, dt = (nodes[:, None] + 1.0) / 2.0 * grid, weights[:, None] / 2.0 * grid
    left, strikes = grid - t, 2.0 * per_year * np.exp(-2.0 * per_year * t) * dt
    least = np.minimum(left[..., None], repair)
    rest, up = np.abs(left[..., None] - repair), np.exp(-per_year * least)
    chance, time = np.zeros(len(grid)), np.zeros(len(grid))
    alone = -np.expm1(-2.0 * per_year * grid) / (2.0 * per_year)
    for _ in range(8):
        lost = (1.0 - up + up * np.interp(rest, grid, chance)) @ dv
        more = ((1.0 - up) / per_year + up * np.interp(rest, grid, time)) @ dv
        chance, time = (strikes * lost).sum(axis=0), alone + (strikes * more).sum(axis=0)
    begun = np.interp(repair, grid, chance) @ dv
    return float((1.0 / (3.0 * per_year) + np.interp(repair, grid, time) @ dv) / begun)


@pytest.mark.parametrize("shape", [0.5, 0.7, 1.5, 2.0])
def test_three_brokers(shape):
    """Order of strikes and the shorter of what is left: 0.1 % at five failures a broker-year."""
    found = answer(3, card(shape)).mean_years_to_loss
    assert found == pytest.approx(years_of_three(shape, 5.0, 24.0), rel=1e-3)


@pytest.mark.parametrize(("shape", "within"), [(0.5, 0.04), (0.7, 0.02), (1.5, 0.03), (2.0, 1e-6)])
@pytest.mark.parametrize("budget_hours", [12.0, 24.0, 72.0])
def test_refused_records_follow_the_tail(shape, within, budget_hours):
    """Records written with more of the outage left than producers retry: mean of D beyond it."""
    model = card(shape)
    timeout = int(budget_hours * 3_600_000)
    found = answer(1, model, delivery_timeout_ms=timeout, retries=2**31 - 1)
    at = Cluster.uniform(brokers=1, racks=None)
    config = found.config
    budget = plan_for(at, config, model, ONE).budget_hours
    law = stats.gamma(shape, scale=24.0 / shape)
    beyond = 24.0 * stats.gamma(shape + 1.0, scale=24.0 / shape).sf(budget) - budget * law.sf(
        budget
    )
    ends = 5.0 / (1.0 + 5.0 * 24.0 / YEAR)
    assert found.records_refused_per_year == pytest.approx(ends * beyond * 3600.0, rel=within)


NUMBERS = {
    "broker": {
        "crash": {"per_year": 6.0, "minutes": 300.0, "shape": 0.5},
        "destroyed": {"per_year": 3.0, "hours": 30.0, "shape": 0.5},
    },
    "rack": {"power": {"per_year": 2.0, "minutes": 300.0, "not_returning": 0.1, "shape": 1.5}},
    "copy": {"bytes_per_second": 1e5},
}
QUORUM_APART = {101: "x", 102: "y", 103: "z"}


def without_shapes(tables: dict) -> dict:
    """Return a card's tables with exponential repairs."""
    return {
        key: without_shapes(inner) if isinstance(inner, dict) else inner
        for key, inner in tables.items()
        if key != "shape"
    }


def test_shapes_against_sampling():
    """Brokers and racks, with replacements after both and copies: producers that retry for hours.

    They notice the shape: without it the two are far apart.
    """
    at = Cluster.uniform(brokers=3, racks=3, controllers=QUORUM_APART)
    config = Config(replication_factor=3, min_insync_replicas=2, delivery_timeout_ms=7_200_000)
    load = Workload(records_per_second=100.0, replication_delay_ms=0.0)
    model = FailureModel.from_dict(NUMBERS)
    exact = evaluate(at, config, model, load)
    sampled = simulate(at, config, model, load, years=80_000, seed=5, engine="local")
    found = [("shaped", each) for each in deviations(exact, sampled)]
    assert len(found) >= 4
    assert max(abs(each.z) for _, each in found) < FAR, table(found)
    exponential = evaluate(at, config, FailureModel.from_dict(without_shapes(NUMBERS)), load)
    assert max(abs(each.z) for each in deviations(exponential, sampled)) > FAR


EVERY = {
    "broker": {
        "crash": {"per_year": 6.0, "minutes": 300.0, "shape": 0.5},
        "power": {"per_year": 3.0, "minutes": 400.0, "shape": 0.4},
        "destroyed": {"per_year": 3.0, "hours": 30.0, "shape": 0.5},
        "restart": {"per_year": 6.0, "minutes": 60.0, "unclean": 0.2, "shape": 2.0},
    },
    "rack": {
        "network": {"per_year": 2.0, "minutes": 500.0, "shape": 0.5},
        "power": {"per_year": 1.0, "minutes": 900.0, "shape": 0.3},
        "destroyed": {"per_year": 0.3},
    },
    "cluster": {
        "crash": {"per_year": 1.0, "brokers": 0.5, "minutes": 300.0, "shape": 0.5},
        "controller": {"per_year": 2.0, "minutes": 300.0, "stops": 0.5, "shape": 1.5},
    },
}


def test_every_mechanism_takes_a_shape():
    """One broker: each kind of outage alone, by broker, rack, cluster and quorum, for its mean."""
    at = Cluster.uniform(brokers=1, racks=1)
    config = Config(replication_factor=1)
    for scope, section in EVERY.items():
        for name, numbers in section.items():
            tables: dict = {scope: {name: numbers}}
            if scope == "rack":
                tables["broker"] = {"destroyed": {"per_year": 0.0, "hours": 30.0, "shape": 0.5}}
            shaped = evaluate(at, config, FailureModel.from_dict(tables), ONE)
            mean = evaluate(at, config, FailureModel.from_dict(without_shapes(tables)), ONE)
            assert mean.write_unavailability > 0.0
            assert shaped.write_unavailability == pytest.approx(mean.write_unavailability, rel=1e-9)


def test_a_shape_beyond_two_stages_is_refused_by_name():
    """Two stages cannot vary less than an Erlang distribution of two."""
    with pytest.raises(NotComputedError, match=r"broker\.destroyed\.shape=2\.1.*up to 2; simulate"):
        answer(2, card(2.1))


def test_a_range_of_shapes_is_drawn_where_it_can_be_solved():
    """Intervals, the tornado and the split by settings accept it; draws stop at 2."""
    numbers = {"per_year": 5.0, "hours": 24.0}
    numbers["shape"] = {"value": 1.0, "low": 0.4, "high": 2.0}
    model = FailureModel.from_dict(
        {
            "broker": {"destroyed": numbers},
            "cluster": {"crash": {"per_year": 1.0, "brokers": 0.5, "minutes": 60.0}},
        }
    )
    drawn = [each["broker.destroyed.shape"] for each in model.draws(64, seed=0)]
    assert max(drawn) == LARGEST_SHAPE
    assert min(drawn) < 0.5
    found = answer(2, model)
    low, high = found.interval("mean_years_to_loss")
    assert low < found.mean_years_to_loss < high
    assert "broker.destroyed.shape" in {
        row.path for row in found.tornado("mean_years_to_loss").rows
    }
    exponential = answer(
        2,
        FailureModel.from_dict(
            {
                "broker": {"destroyed": {"per_year": 5.0, "hours": 24.0}},
                "cluster": {"crash": {"per_year": 1.0, "brokers": 0.5, "minutes": 60.0}},
            }
        ),
    )
    assert found.mean_years_to_loss == pytest.approx(exponential.mean_years_to_loss, rel=1e-9)
