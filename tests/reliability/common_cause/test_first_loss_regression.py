"""First losses of topics like many others: fitted to those of the others, within a stated error."""

import random

import numpy as np
import pytest

from advisor.cluster import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause import first_loss_regression
from advisor.reliability.common_cause.first_loss_regression import FirstLossRegression, _Fit
from advisor.reliability.evaluate import evaluate, topic_evaluator
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.measures import first_losses
from advisor.reliability.workload import Workload

BROKERS = 60
CARD = load_model("three_az_cloud")


def replicas(
    draw: random.Random, partitions: int, racks: int | None
) -> tuple[tuple[int, ...], ...]:
    """Two random brokers for each partition, of different racks if there are any."""
    found = []
    while len(found) < partitions:
        one, other = draw.sample(range(1, BROKERS + 1), 2)
        if racks is None or one % racks != other % racks:
            found.append((one, other))
    return tuple(found)


@pytest.mark.parametrize("racks", [3, None])
def test_fitted_first_losses_are_those_computed(racks: int | None) -> None:
    """Of forty topics of assorted sizes most are fitted; each is within its stated error."""
    draw = random.Random(7)
    cluster = Cluster.uniform(BROKERS, racks=3)
    config = Config(replication_factor=2, min_insync_replicas=1)
    known = FirstLossRegression()
    fitted = topic_evaluator(known)
    off = []
    for _ in range(40):
        placement = replicas(draw, draw.randint(20, 40), racks)
        load = Workload(partitions=len(placement), records_per_second=10.0 * len(placement))
        before = known.fitted
        found = fitted(cluster, config, CARD, load, placement=placement)
        exact = evaluate(cluster, config, CARD, load, placement=placement)
        apart = abs(found.loss_probability_per_year - exact.loss_probability_per_year)
        added = (
            found.error_bounds["loss_probability_per_year"]
            - exact.error_bounds["loss_probability_per_year"]
        )
        if known.fitted == before:
            assert found.loss_probability_per_year == exact.loss_probability_per_year
        else:
            assert apart <= added + 1e-12
            off.append(apart / exact.loss_probability_per_year)
        for name in ("loss_events_per_year", "write_unavailability", "records_refused_per_year"):
            assert getattr(found, name) == getattr(exact, name)
        assert found.bounds == exact.bounds
    assert len(off) >= 15
    # Fitted, not computed; and far below the two hundredths that are allowed at most.
    assert 0.0 < max(off) < 1e-2


def test_topics_of_other_rates_are_not_compared() -> None:
    """Another card or another min ISR is another kind, for which nothing is known."""
    cluster = Cluster.uniform(9, racks=3)
    known = FirstLossRegression()
    evaluated = topic_evaluator(known)
    placement = ((1, 2), (4, 5), (7, 8))
    for min_isr in (1, 2):
        for card in (CARD, load_model("two_az")):
            config = Config(replication_factor=2, min_insync_replicas=min_isr)
            evaluated(cluster, config, card, Workload(partitions=3), placement=placement)
    assert (known.computed, known.fitted) == (4, 0)
    assert len(known._kinds) == 4


def test_a_topic_beyond_those_computed_is_not_fitted() -> None:
    """A fit is asked only within the range of what it was made of, and in its directions."""
    draw = np.random.default_rng(1)
    where = draw.normal(size=(12, 3)) * (1.0, 2.0, 0.0)
    rates = where @ np.array([[0.1, 0.2], [0.3, 0.1], [0.0, 0.0]])
    fit = _Fit(where, rates)
    middle = where.mean(axis=0)
    assert fit.error_at(middle) < 1e-9
    assert fit.at(middle) == pytest.approx(rates.mean(axis=0))
    assert fit.error_at(middle + np.array([100.0, 0.0, 0.0])) == np.inf
    assert fit.error_at(middle + np.array([0.0, 0.0, 1.0])) == np.inf


def test_a_fit_states_how_badly_it_predicts() -> None:
    """The stated error covers nearly all rates that were not part of the fit, also noisy ones."""
    draw = np.random.default_rng(2)
    where = draw.normal(size=(30, 2))
    noise = 1e-3 * draw.normal(size=(30, 2))
    rates = where @ np.array([[0.1, 0.2], [0.3, 0.1]]) + noise
    fit = _Fit(where, rates)
    others = 0.5 * draw.normal(size=(200, 2))
    real = others @ np.array([[0.1, 0.2], [0.3, 0.1]]) + 1e-3 * draw.normal(size=(200, 2))
    held = [
        np.abs(fit.at(one) - rate).max() <= fit.error_at(one)
        for one, rate in zip(others, real, strict=True)
    ]
    assert np.mean(held) > 0.97
    assert fit.error_at(others[0]) < 1e-2


def test_too_few_topics_are_not_fitted() -> None:
    """A line goes through any two topics; it says nothing about a third."""
    where, rates = np.array([[0.0], [1.0]]), np.array([[0.0, 0.0], [1.0, 1.0]])
    assert _Fit(where, rates).error_at(np.array([0.5])) == np.inf
    assert first_loss_regression._MORE >= 3


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_other_cards_are_scaled_from_fewer_sets(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first loss of 600 sets on another card, from 100 of them, is that of all within 6 %."""
    cluster = Cluster.uniform(60, racks=3)
    config = Config(replication_factor=2, min_insync_replicas=1)
    load = Workload(partitions=600, records_per_second=6000.0)
    nominal = evaluate(cluster, config, CARD, load)
    for path in ("broker.gray.per_year", "broker.destroyed.per_year", "cluster.wiped.per_year"):
        card = CARD.with_values({path: factor * CARD.get(path, 0.0)})
        exact = nominal.reevaluate(card)
        monkeypatch.setattr(first_losses, "_MANY_SETS", 200)
        monkeypatch.setattr(first_losses, "_FEWER_SETS", 100)
        scaled = evaluate(cluster, config, CARD, load).reevaluate(card)
        monkeypatch.undo()
        assert scaled.mean_years_to_loss != exact.mean_years_to_loss
        assert scaled.mean_years_to_loss == pytest.approx(exact.mean_years_to_loss, rel=0.06)
        assert scaled.write_unavailability == exact.write_unavailability
