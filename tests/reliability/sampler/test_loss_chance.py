"""The probability of a loss in a year that begins healthy, from cycles, blocks and paths."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from advisor import Cluster, Config, evaluate, simulate
from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.intervals import (
    Ratio,
    by_hazard,
    first_year_hazard,
    loss_chance,
    rate,
)
from sampled_runs import FAR, QUIET, card, off_by

PAIR = Config(replication_factor=2, min_insync_replicas=1)


@pytest.mark.parametrize(
    ("well", "ill", "chance"), [(0.05, 0.05, 0.1), (0.02, 0.1, 0.1), (0.05, 0.01, 0.5)]
)
def test_the_first_year_follows_from_the_moments_of_a_cycle(
    well: float, ill: float, chance: float
) -> None:
    """Against drawn times to the first loss, in cycles that take weeks and often lose."""
    rng, years = np.random.default_rng(5), 40_000
    lost = 0
    for _ in range(years):
        now = 0.0
        while now < 1.0:
            now += rng.exponential(well)
            if rng.random() < chance:
                now += rng.random() * rng.exponential(ill)
                lost += now < 1.0
                break
            now += rng.exponential(ill)
    at_risk = well + (1.0 - chance / 2.0) * ill
    to_loss = chance * (well + ill / 2.0)
    squared = 2.0 * well * at_risk + 2.0 * ill**2 * (1.0 - chance + chance / 3.0)
    found = -math.expm1(-first_year_hazard(chance, at_risk, to_loss, squared))
    error = math.sqrt(found * (1.0 - found) / years)
    assert abs(lost / years - found) < FAR * error


def test_losses_without_a_memory_come_at_their_rate() -> None:
    """Where a loss is as likely at any time, the first year is like any other."""
    hazard = first_year_hazard(1e-9, 1.0, 1e-9, 2.0)
    assert hazard == pytest.approx(1e-9, rel=1e-12)
    # In place of exponential times all are equal, or half are none and half are twice as long.
    steady = first_year_hazard(1.0, 0.7, 0.7, 0.7**2)
    wild = first_year_hazard(1.0, 0.7, 0.7, 3.0 * 0.7**2)
    assert -math.expm1(-wild) < -math.expm1(-1.0 / 0.7) < -math.expm1(-steady) < 1.0


@pytest.mark.parametrize("mean_years", [0.5, 0.1, 0.05, 0.02, 0.001])
def test_a_loss_that_is_nearly_sure_has_a_hazard(mean_years: float) -> None:
    """The two phases solved with sixty digits; in floats their chance rounds to 1 in the end."""
    excess = 0.2
    squared = 2.0 * mean_years**2 * (1.0 - excess)
    hazard = first_year_hazard(1.0, mean_years, mean_years, squared)
    with localcontext() as context:
        context.prec = 60
        mean, root = Decimal(mean_years), (1 - 4 * Decimal(excess)).sqrt()
        long, short = mean * (1 + root) / 2, mean * (1 - root) / 2
        survival = (long * (-1 / long).exp() - short * (-1 / short).exp()) / (long - short)
        assert hazard == pytest.approx(float(-survival.ln()), rel=1e-9)


@pytest.mark.parametrize(("per_year", "hours"), [(4.0, 1000.0), (1.5, 300.0)])
def test_frequent_losses_of_cycles_are_as_frequent_as_the_exact_ones(
    per_year: float, hours: float
) -> None:
    """Cycles that take weeks, and lose several times a year, leave no bias."""
    two = Cluster.uniform(2, racks=None)
    often = card(broker_destroyed={"per_year": per_year, "hours": hours})
    load = replace(QUIET, partitions=1)
    exact = evaluate(two, PAIR, often, load).loss_probability_per_year
    sampled = simulate(two, PAIR, often, load, 20_000, 3, "local", method="importance")
    found = sampled.loss_probability_per_year
    assert exact > 0.1
    assert found.high / found.low < 1.1
    assert abs(off_by(found, exact)) < FAR


def test_cycles_without_a_loss_have_a_bound() -> None:
    """What they could have lost with the largest weight, three times."""
    found = loss_chance([(10.0, 0.0, 0.0, 0.0, 0.0, 5.0)] * 4, 400, None, largest_weight=0.5)
    assert not found.seen
    assert found.high == pytest.approx(1.0 - math.exp(-math.log(20.0) * 0.5 / 40.0))


def test_a_probability_close_to_1_has_the_interval_of_its_hazard() -> None:
    """Of a hundred years nearly all lose: the upper end is below 1, and 95 % hold the truth."""
    rng, held = np.random.default_rng(5), 0
    for _ in range(300):
        lost = rng.binomial(4, 0.95, 32)
        found = loss_chance([(4, int(each)) for each in lost], 128, clumping=2.0)
        held += found.low <= 0.95 <= found.high
        assert found.high < 1.0 or found.value == 1.0
    assert held >= 270


def test_a_rare_probability_has_the_interval_of_a_rate() -> None:
    """There hazard and probability are the same; a probability that is certain has no hazard."""
    rare = rate(Ratio([1.0, 2.0, 0.0], [1e6] * 3, 1.0), 10)
    by = by_hazard(rare)
    assert (by.low, by.high) == pytest.approx((rare.low, rare.high), rel=1e-4)
    assert by_hazard(Estimate(1.2, 0.9, 1.5, 10, "")) == Estimate(1.0, 0.9, 1.0, 10, "")
