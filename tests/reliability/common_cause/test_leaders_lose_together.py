"""One event drops the tails of many leaders, and it is one loss: closed forms, and samples."""

import math
from typing import Any

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate

# So much is written that each leader that fails has records that it alone holds.
BUSY = 1e6
RARE_YEARS = 100_000


def first_losses_a_year(
    brokers: int, racks: int | None, card: dict[str, Any], partitions: int, replicas: int = 3
) -> float:
    """Of partitions whose leaders alone acknowledge."""
    config = Config(replication_factor=replicas, min_insync_replicas=1, acks=1)
    load = Workload(partitions=partitions, records_per_second=BUSY)
    found = evaluate(Cluster.uniform(brokers, racks), config, FailureModel.from_dict(card), load)
    assert found.loss_probability_per_year == pytest.approx(
        -math.expm1(-1.0 / found.mean_years_to_loss), rel=1e-3
    )
    return 1.0 / found.mean_years_to_loss


@pytest.mark.parametrize("kind", ["wiped", "crash", "rollout", "disk_full"])
@pytest.mark.parametrize(("brokers", "replicas"), [(2, 2), (3, 3), (6, 3), (20, 2)])
def test_an_event_that_picks_brokers_is_one_loss(kind: str, brokers: int, replicas: int) -> None:
    """Every broker leads: an event loses unless it picks none of them."""
    lasts = {"hours": 0.1} if kind == "wiped" else {"minutes": 5.0}
    card = {"cluster": {kind: {"per_year": 0.5, "brokers": 0.3, **lasts}}}
    found = first_losses_a_year(brokers, None, card, 5 * brokers, replicas)
    assert found == pytest.approx(0.5 * (1.0 - 0.7**brokers), rel=1e-3)


@pytest.mark.parametrize("spreads", [0.05, 0.5])
@pytest.mark.parametrize("kind", ["network", "power"])
def test_a_rack_that_takes_others_along_is_one_loss(kind: str, spreads: float) -> None:
    """Leaders in every rack: each event is a loss. In one of three: unless it spares that rack."""
    card = {"rack": {kind: {"per_year": 0.05, "minutes": 8.0, "spreads": spreads}}}
    assert first_losses_a_year(6, 3, card, 48) == pytest.approx(0.15, rel=1e-4)
    struck = 0.05 * (1.0 + 2.0 * spreads)
    assert first_losses_a_year(6, 3, card, 1) == pytest.approx(struck, rel=1e-4)
    spared = 0.05 * (1.0 - spreads) ** 2
    assert first_losses_a_year(6, 3, card, 2) == pytest.approx(0.15 - spared, rel=1e-4)


def test_restarts_that_fall_together_are_one_loss() -> None:
    """Each broker leads, so that a restart is a loss, alone or together with another."""
    restart = {"per_year": 12.0, "minutes": 5.0, "overlap": 0.3}
    found = first_losses_a_year(6, 3, {"broker": {"restart": restart}}, 48)
    assert found == pytest.approx(6 * 12.0, rel=1e-2)


@pytest.mark.parametrize(
    ("cluster", "partitions", "records_per_second", "most_off"),
    [(Cluster.uniform(2, None), 2, 200.0, 0.01), (Cluster.uniform(20, 4), 100, 50.0, 0.1)],
)
def test_few_records_are_lost_as_often_as_sampled(
    cluster: Cluster, partitions: int, records_per_second: float, most_off: float
) -> None:
    """Where a leader that is picked seldom has a record of its own, whole sets count as well."""
    config = Config(replication_factor=2, min_insync_replicas=1, acks=1)
    model = FailureModel.from_dict(
        {"cluster": {"wiped": {"per_year": 0.5, "brokers": 0.2, "hours": 5.0}}}
    )
    load = Workload(partitions=partitions, records_per_second=records_per_second)
    exact = evaluate(cluster, config, model, load)
    inputs = cluster, config, model, load, RARE_YEARS, 1, "local"
    sampled = simulate(*inputs, method="crude").mean_years_to_loss
    off = exact.error_bounds["mean_years_to_loss"]
    assert sampled.low - off < exact.mean_years_to_loss < sampled.high + off
    assert off < most_off * exact.mean_years_to_loss
