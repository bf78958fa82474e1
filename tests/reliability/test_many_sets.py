"""`evaluate` for several replica sets: the first loss of any of them."""

import math

import numpy as np
import pytest

from advisor.cluster import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload

# An operator who elects a remaining replica at once where Kafka would wait.
AT_ONCE = {"hours": 1e-5}


def test_many_sets_lie_between_their_bounds():
    """The chance that any set loses: above the likeliest one's, below the sum."""
    found = evaluate(
        Cluster.uniform(brokers=6, racks=3),
        Config(replication_factor=3),
        FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}),
        Workload(partitions=24),
    )
    low, high = found.bounds
    assert low < found.loss_probability_per_year <= high


def test_power_lost_everywhere_is_one_event_for_all_sets():
    """Thirty sets lose their page cache in the same moment: once in ten years, not three a year."""
    card = FailureModel.from_dict(
        {"cluster": {"power": {"per_year": 0.1, "minutes": 60}}, "flush": {"seconds": 30}}
    )
    at = Cluster.uniform(brokers=9, racks=3)
    found = evaluate(at, Config(replication_factor=3), card, Workload(partitions=60))
    assert found.mean_years_to_loss == pytest.approx(10.0, rel=1e-4)
    assert found.loss_probability_per_year == pytest.approx(-math.expm1(-0.1), rel=1e-3)
    assert found.loss_events_per_year == pytest.approx(6.0, rel=1e-3)


def test_copysets():
    """Of 30 brokers, each stays gone with 0.2, and any of some sets of three is gone.

    Ten sets without a broker in common follow Cidon et al.: ``1 - (1 - p^3)^10`` of power failures.
    Of thirty that share brokers fewer lose at all, as drawn here; every record is long on disk. An
    operator elects a replica that is left.
    """
    card = FailureModel.from_dict(
        {
            "broker": {"destroyed": {"hours": 10.0}},
            "cluster": {"power": {"per_year": 0.01, "minutes": 0.001, "not_returning": 0.2}},
            "operator": AT_ONCE,
        }
    )
    at = Cluster.uniform(brokers=30, racks=None)
    config, draws = Config(replication_factor=3), 400_000
    gone = np.random.default_rng(1).random((draws, 30)) < 0.2
    apart = tuple((b, b + 10, b + 20) for b in range(1, 11))
    ring = tuple((b, (b + 7) % 30 + 1, (b + 16) % 30 + 1) for b in range(1, 31))
    drawn = float(gone[:, np.array(ring) - 1].all(axis=2).any(axis=1).mean())
    sampling = 3.0 * math.sqrt(drawn / draws)
    for sets, chance, off in ((apart, 1.0 - (1.0 - 0.2**3) ** 10, 0.0), (ring, drawn, sampling)):
        found = evaluate(at, config, card, placement=sets)
        years, error = found.mean_years_to_loss, found.error_bounds["mean_years_to_loss"]
        assert abs(years - 1.0 / (0.01 * chance)) < 3.0 * error + off * 100.0 / chance**2
        assert error < 0.03 * years
    assert drawn < 0.93 * (1.0 - (1.0 - 0.2**3) ** 30)


def test_sets_that_share_nothing_lose_first_as_often_as_each_by_itself() -> None:
    """Two disjoint replica sets: twice the rate of first losses, though losses come in clumps."""
    model = FailureModel.from_dict(
        {"broker": {"destroyed": {"per_year": 500, "hours": 12}}, "operator": AT_ONCE}
    )
    config = Config(replication_factor=3, min_insync_replicas=1, acks="all")
    cluster = Cluster.uniform(brokers=6, racks=6)
    one = evaluate(cluster, config, model, placement=((1, 2, 3),))
    two = evaluate(cluster, config, model, placement=((1, 2, 3), (4, 5, 6)))
    assert one.loss_events_per_year * one.mean_years_to_loss > 1.1
    # Each has half of the records, so that a log destroyed again and again is empty more often.
    assert two.mean_years_to_loss == pytest.approx(one.mean_years_to_loss / 2, rel=1e-8)
