"""`evaluate` for several replica sets: the first loss of any of them."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from advisor.cluster import Cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.common_events import Unexamined
from advisor.reliability.evaluate import evaluate, topic_evaluator
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.measures import first_losses
from advisor.reliability.workload import Workload

# Kinds of shared losses that are examined.
_KINDS = 5
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


@pytest.mark.parametrize("factor", [0.5, 3.0])
def test_other_cards_are_scaled_from_fewer_sets(
    factor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first loss of 600 sets on another card, from 100 of them, is that of all within 6 %."""
    card, cluster = load_model("three_az_cloud"), Cluster.uniform(60, racks=3)
    config = Config(replication_factor=2, min_insync_replicas=1)
    load = Workload(partitions=600, records_per_second=6000.0)
    nominal = evaluate(cluster, config, card, load)
    for path in ("broker.gray.per_year", "broker.destroyed.per_year", "cluster.wiped.per_year"):
        other = card.with_values({path: factor * card.get(path, 0.0)})
        exact = nominal.reevaluate(other)
        monkeypatch.setattr(first_losses, "_MANY_SETS", 200)
        monkeypatch.setattr(first_losses, "_FEWER_SETS", 100)
        scaled = evaluate(cluster, config, card, load).reevaluate(other)
        monkeypatch.undo()
        assert scaled.mean_years_to_loss != exact.mean_years_to_loss
        assert scaled.mean_years_to_loss == pytest.approx(exact.mean_years_to_loss, rel=0.06)
        assert scaled.write_unavailability == exact.write_unavailability


@pytest.mark.parametrize("name", ["three_az_cloud", "bare_metal_racks"])
def test_one_topic_of_many_is_within_its_stated_error(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few kinds of shared losses are examined; what is left out is said, and in the error.

    So many kinds of each estimate, and each with brokers that are stale together: no more.
    """
    asked: Counter[tuple[object, ...]] = Counter()
    events = CoincidentSets._numbered

    def counted(self: CoincidentSets, *key: Any) -> Any:
        asked[key] += 1
        return events(self, *key)

    draw, card = random.Random(3), load_model(name)
    lists = tuple(tuple(draw.sample(range(1, 61), 2)) for _ in range(80))
    cluster, config = Cluster.uniform(60, racks=6), Config(replication_factor=2)
    given, load = (cluster, config, card), Workload(partitions=80)
    monkeypatch.setattr(CoincidentSets, "_numbered", counted)
    monkeypatch.setattr(first_losses, "ONE_OF_MANY", Unexamined(1e-6, _KINDS))
    found = topic_evaluator()(*given, load, placement=lists)
    few = asked.total()
    asked.clear()
    whole = evaluate(*given, load, placement=lists)
    assert 0 < few <= 2 * 2 * _KINDS < asked.total()
    measure = "loss_probability_per_year"
    off, least = found.error_bounds[measure], whole.error_bounds[measure]
    assert least <= off < 0.1 * found.loss_probability_per_year
    assert abs(found.loss_probability_per_year - whole.loss_probability_per_year) <= off
    assert "% of the losses not examined" in found.method
    assert found.write_unavailability == whole.write_unavailability
