"""The chain: what it merges, what it neglects, and what it must agree with."""

import numpy as np
import pytest

from advisor.protocol.config import Config
from advisor.reliability import chain, faults, measures, symmetry
from advisor.reliability.model import HOURS_PER_YEAR, FailureModel
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


def solved(pattern, config, card=CARD):
    found = measures.measure(pattern, config, card, LOAD, len(pattern))
    return np.array(
        [sum(found.causes[name].values()) for name in MEASURES] + [found.first_loss.probability]
    )


def forget():
    chain.structure.cache_clear()
    measures.measure.cache_clear()


@pytest.fixture
def _fresh():
    forget()
    yield
    forget()


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("pattern", [(0, 1), (0, 0), (0, 1, 2), (0, 0, 0)])
@pytest.mark.parametrize("version", ["3.9", "4.2"])
@pytest.mark.parametrize(("min_isr", "acks"), [(1, "all"), (2, "all"), (1, 1)])
def test_exchanging_alike_replicas_changes_nothing(pattern, version, min_isr, acks, monkeypatch):
    """Where all racks hold equally many replicas in order, merging them is exact."""
    config = Config(
        kafka_version=version,
        replication_factor=len(pattern),
        min_insync_replicas=min_isr,
        acks=acks,
    )
    merged = solved(pattern, config)
    forget()
    monkeypatch.setattr(symmetry, "_exchanges", lambda racks, _: [tuple(range(len(racks)))])
    monkeypatch.setattr(chain, "_lump", lambda structure: structure)
    assert merged == pytest.approx(solved(pattern, config), rel=1e-9)


@pytest.mark.usefixtures("_fresh")
def test_unequal_racks_are_merged_within_a_hair(monkeypatch):
    """Two replicas in one rack and one in another: who leads first hardly matters."""
    config = Config(kafka_version="4.2", replication_factor=3, min_insync_replicas=2)
    merged = solved((0, 0, 1), config)
    forget()
    monkeypatch.setattr(symmetry, "_exchanges", lambda racks, _: [tuple(range(len(racks)))])
    assert merged == pytest.approx(solved((0, 0, 1), config), rel=1e-6)


@pytest.mark.usefixtures("_fresh")
def test_merging_equal_states_changes_nothing(monkeypatch):
    """Exact lumping: the merged chain has the measures of the whole one."""
    config = Config(kafka_version="4.2", replication_factor=3, min_insync_replicas=2)
    merged = solved((0, 1, 2), config)
    smaller = chain.structure(
        measures.setup_for(config, CARD, LOAD, 3), measures.setting_for((0, 1, 2), CARD)
    ).states
    forget()
    monkeypatch.setattr(chain, "_lump", lambda structure: structure)
    assert merged == pytest.approx(solved((0, 1, 2), config), rel=1e-11)
    whole = chain.structure(
        measures.setup_for(config, CARD, LOAD, 3), measures.setting_for((0, 1, 2), CARD)
    ).states
    assert smaller < whole


def test_neglected_states_are_counted():
    """A chain cut off at one brief spell says how often it is left, about as two spells meet."""
    config = Config(replication_factor=2, min_insync_replicas=1)
    card = FailureModel.from_dict({"broker": {"crash": {"per_year": 10.0, "minutes": 60.0}}})
    setup = measures.setup_for(config, card, LOAD, 2)
    setting = faults.Setting((0, 1), frozenset({"broker.crash"}), 1)
    cut = chain.structure(setup, setting)
    found = measures._Solution(cut, config, card, LOAD, 2, 1e-16).measures()
    rate = 10.0 / HOURS_PER_YEAR
    one_down = 2 * rate / (1.0 + rate + 2 * rate)
    assert found.neglected_per_year == pytest.approx(one_down * rate * HOURS_PER_YEAR, rel=1e-9)
    full = measures.measure((0, 1), config, card, LOAD, 2)
    assert full.neglected_per_year == 0.0


def test_blame_adds_up():
    """In every state the shares of blame add up to one."""
    config = Config(replication_factor=3, min_insync_replicas=2)
    found = chain.structure(
        measures.setup_for(config, CARD, LOAD, 3), measures.setting_for((0, 1, 2), CARD)
    )
    assert sum(found.blame.values()) == pytest.approx(np.ones(found.states))


def test_rates_out_of_healthy_are_the_cards():
    """Leaving the healthy state takes every mechanism of every broker and rack, no more."""
    config = Config(replication_factor=3, min_insync_replicas=2)
    found = chain.structure(
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
