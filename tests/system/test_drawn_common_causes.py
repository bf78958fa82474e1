"""Drawn cards of common causes: the exact answer against sampled years, and rare ones in cycles."""

from __future__ import annotations

import random
from typing import Any

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate
from agreement_of_samples import deviations
from sampled_runs import FAR, off_by

LOAD = Workload(partitions=6, records_per_second=10.0, retention_hours=24.0)
DRAWN = range(12)


def drawn_card(seed: int, rarer: float = 1.0) -> FailureModel:
    """A card with every number that a common cause may have; rates are divided by ``rarer``."""
    draw = random.Random(seed)

    def chance() -> float:
        return round(draw.uniform(0.1, 0.9), 3)

    def among(low: float, high: float) -> float:
        return round(low * (high / low) ** draw.random(), 4)

    def often(low: float, high: float) -> float:
        return among(low, high) / rarer

    def common(low: float, high: float) -> dict[str, float]:
        return {"per_year": often(low, high), "brokers": chance(), "all": chance()}

    card: dict[str, Any] = {
        "broker": {
            "crash": {"per_year": often(2, 12), "minutes": among(30, 240)},
            "power": {"per_year": often(1, 5), "minutes": among(30, 240)},
            "destroyed": {"per_year": often(0.2, 2), "hours": among(5, 48)},
            "gray": {
                "per_year": often(5, 30),
                "minutes": among(30, 240),
                "dies": chance(),
                "hard": chance(),
            },
        },
        "cluster": {
            "crash": {**common(3, 12), "minutes": among(30, 240)},
            "rollout": {**common(1, 6), "minutes": among(30, 240)},
            "disk_full": {**common(1, 6), "minutes": among(30, 240)},
            "wiped": {**common(0.1, 1), "hours": among(2, 24)},
            "destroyed": {"per_year": often(0.05, 0.5)},
        },
        "flush": {"seconds": 1800.0},
        "detection": {"seconds": 5.0},
    }
    if draw.random() < 0.5:
        card["operator"] = {"hours": among(1, 12)}
    return FailureModel.from_dict(card)


def drawn_setting(seed: int) -> tuple[Cluster, Config]:
    """A cluster and a configuration."""
    draw = random.Random(1000 + seed)
    replicas = draw.choice([1, 2, 3, 3])
    config = Config(
        kafka_version=draw.choice(["3.9", "4.1"]),
        replication_factor=replicas,
        min_insync_replicas=draw.randint(1, replicas),
        acks="all",
        unclean_leader_election_enable=draw.random() < 0.3,
    )
    return Cluster.uniform(draw.choice([4, 6]), draw.choice([1, 2, 3])), config


@pytest.mark.parametrize("seed", DRAWN)
def test_a_drawn_card_is_sampled_as_it_is_computed(seed: int) -> None:
    """No measure is more than four standard errors off, and losses are among those compared."""
    model, (cluster, config) = drawn_card(seed), drawn_setting(seed)
    exact = evaluate(cluster, config, model, LOAD)
    asked: dict[str, Any] = {"years": 2000, "seed": seed, "engine": "local", "method": "crude"}
    found = deviations(exact, simulate(cluster, config, model, LOAD, **asked))
    assert {"loss_events_per_year", "write_unavailability"} <= {each.measure for each in found}
    assert not [each for each in found if abs(each.z) > FAR]


@pytest.mark.parametrize("seed", [0, 3, 8])
def test_rare_common_causes_are_found_in_cycles(seed: int) -> None:
    """Biased chances, that of all brokers among them, are weighed: a thousand times as rare."""
    model, (cluster, config) = drawn_card(seed, rarer=1000.0), drawn_setting(seed)
    exact = evaluate(cluster, config, model, LOAD)
    asked: dict[str, Any] = {"years": 2000, "seed": seed, "engine": "local", "method": "importance"}
    sampled = simulate(cluster, config, model, LOAD, **asked)
    for measure in ("loss_events_per_year", "write_unavailability"):
        assert abs(off_by(getattr(sampled, measure), getattr(exact, measure))) < FAR, measure
