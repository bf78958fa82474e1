"""The chain: what it merges, what it neglects, and what it must agree with."""

import numpy as np
import pytest

from advisor.protocol.config import Config
from advisor.reliability import chain, graph, measures, solution, symmetry
from advisor.reliability.model import FailureModel, load_model
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 40.0, "minutes": 90.0},
            "power": {"per_year": 9.0, "minutes": 200.0},
            "destroyed": {"per_year": 5.0, "hours": 40.0},
        },
        "rack": {"network": {"per_year": 8.0, "minutes": 300.0}},
        "flush": {"seconds": 30.0},
    }
)
LOAD = Workload(partitions=1, records_per_second=10.0)
MEASURES = (
    "loss_events_per_year",
    "acked_records_lost_per_year",
    "write_unavailability",
    "read_unavailability",
    "records_refused_per_year",
)


def forget():
    graph.graph.cache_clear()
    chain.structure.cache_clear()
    measures.measure.cache_clear()


@pytest.fixture
def _fresh():
    forget()
    yield
    forget()


def whole(pattern, config, card):
    """Every measure of the chain of all states."""
    setup = measures.setup_for(config, card, LOAD, len(pattern))
    structure = chain.whole_structure(setup, measures.setting_for(pattern, card))
    found = measures.solution(structure, config, card, LOAD, len(pattern)).measures(config)
    values = [sum(found.causes[name].values()) for name in MEASURES]
    return np.array([*values, found.first_loss.probability]), structure.states


def unmerged(monkeypatch):
    forget()
    monkeypatch.setattr(symmetry, "_merges", lambda _: False)


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("pattern", [(0, 1), (0, 0), (0, 1, 2), (0, 0, 0), (0, 0, 1)])
@pytest.mark.parametrize("version", ["3.9", "4.2"])
@pytest.mark.parametrize(("min_isr", "acks"), [(1, "all"), (2, "all"), (1, 1)])
def test_exchanging_alike_replicas_changes_nothing(pattern, version, min_isr, acks, monkeypatch):
    """Merging states that are alike is exact, and saves states."""
    config = Config(
        kafka_version=version,
        replication_factor=len(pattern),
        min_insync_replicas=min_isr,
        acks=acks,
    )
    merged, few = whole(pattern, config, CARD)
    unmerged(monkeypatch)
    apart, many = whole(pattern, config, CARD)
    assert merged == pytest.approx(apart, rel=1e-9)
    assert few < many


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize(("min_isr", "acks"), [(1, "all"), (1, 1), (2, "all")])
@pytest.mark.parametrize("pattern", [(0, 1), (0, 0)])
def test_merging_moves_no_more_than_it_says_where_brokers_lag(pattern, min_isr, acks, monkeypatch):
    """A leader that lags is not quite like a follower; the stated share covers it."""
    card = load_model("three_az_cloud")
    config = Config(
        kafka_version="4.2", replication_factor=2, min_insync_replicas=min_isr, acks=acks
    )
    merged, _ = whole(pattern, config, card)
    unmerged(monkeypatch)
    assert merged == pytest.approx(whole(pattern, config, card)[0], rel=solution._MERGING)


def test_blame_adds_up():
    """In every state the shares of blame add up to one."""
    config = Config(replication_factor=3, min_insync_replicas=2)
    found = chain.whole_structure(
        measures.setup_for(config, CARD, LOAD, 3), measures.setting_for((0, 1, 2), CARD)
    )
    assert sum(found.blame.values()) == pytest.approx(np.ones(found.states))


def test_rates_out_of_healthy_are_the_cards():
    """Leaving the healthy state takes every mechanism of every broker and rack, no more."""
    config = Config(replication_factor=3, min_insync_replicas=2)
    found = chain.whole_structure(
        measures.setup_for(config, CARD, LOAD, 3), measures.setting_for((0, 0, 1), CARD)
    )
    out = found.source == 0
    counts = {
        name: found.weight[out & (found.rate == number)].sum()
        for number, name in enumerate(found.rate_names)
    }
    assert {name: count for name, count in counts.items() if count} == {
        "broker.crash": 3,
        "broker.power": 3,
        "broker.destroyed": 3,
        "rack.network": 2,
    }
