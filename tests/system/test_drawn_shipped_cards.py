"""Drawn numbers of every shipped card, settings and clusters: the exact answer against sampled."""

from __future__ import annotations

import random
from functools import lru_cache

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model, simulate
from advisor.catalog import model_names
from advisor.reliability.sampler.plan_reader import plan_for
from agreement_of_samples import Deviation, deviations
from sampled_runs import FAR

NAMES = tuple(model_names())
EACH = 2
# About half a second of sampling.
EVENTS = 8e6
UNEVEN = Cluster(brokers={1: "a", 2: "a", 3: "b", 4: "b", 5: "c"})


@lru_cache(maxsize=16)
def cards(name: str, draws: int = 16) -> tuple[FailureModel, ...]:
    """Draw every uncertain number of a shipped card."""
    return tuple(load_model(name).draws(draws, seed=5))


def drawn(seed: int) -> tuple[Cluster, Config, FailureModel, Workload]:
    """A question about one of the cards in turn."""
    draw = random.Random(7000 + seed)
    model = cards(NAMES[seed % len(NAMES)])[seed // len(NAMES)]
    uniform = Cluster.uniform(draw.choice([3, 4, 6, 9]), draw.choice([1, 2, 3, 3]))
    replicas = draw.choice([1, 2, 3, 3, 3])
    version = draw.choice(["3.9", "4.1"])
    config = Config(
        kafka_version=version,
        mode="zookeeper" if version == "3.9" and draw.random() < 0.5 else "kraft",
        replication_factor=replicas,
        min_insync_replicas=draw.randint(1, replicas),
        acks=draw.choice(["all", "all", "all", 1]),
        unclean_leader_election_enable=draw.random() < 0.2,
    )
    load = Workload(
        partitions=draw.choice([1, 6, 12]), records_per_second=10.0, retention_hours=24.0
    )
    if config.unclean_leader_election_enable:
        # The chain has too few of the quickest replacements, as its assumptions say; those may
        # lead.
        model = model.with_values({"broker.destroyed.shape": 1.0})
    return UNEVEN if draw.random() < 0.2 else uniform, config, model, load


def compared(seed: int, events: float = EVENTS) -> list[Deviation]:
    """Deviations of as many sampled years as hold so many events."""
    question = drawn(seed)
    years = max(1000, int(events / 2.0 / plan_for(*question).strikes_per_year))
    asked = {"years": years, "seed": seed, "engine": "local", "method": "crude"}
    return deviations(evaluate(*question), simulate(*question, **asked))


@pytest.mark.parametrize("seed", range(EACH * len(NAMES)))
def test_a_drawn_card_is_sampled_as_it_is_computed(seed: int) -> None:
    """No measure is more than four standard errors off, and time without writes is compared."""
    found = compared(seed)
    assert "write_unavailability" in {deviation.measure for deviation in found}
    assert not [deviation for deviation in found if abs(deviation.z) > FAR]
