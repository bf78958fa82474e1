"""The chain: what it merges, what it neglects, and what it must agree with."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.protocol.rules.config import Config
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.chain import ctmc, state_selection
from advisor.reliability.failures.failure_model import FailureModel, load_model
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.statespace import lumping, state_graph
from advisor.reliability.workload import Workload
from merging import all_apart, forget, whole
from replica_sets import measure_set, measured, parameters, solution

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


@pytest.fixture
def _fresh():
    forget()
    yield
    forget()


@pytest.mark.parametrize("pattern", [(0, 1), (0, 0), (0, 1, 2), (0, 0, 0), (0, 0, 1), (0, 1, 1)])
@pytest.mark.parametrize("version", ["3.9", "4.2"])
@pytest.mark.parametrize(("min_isr", "acks"), [(1, "all"), (2, "all"), (1, 1)])
def test_merging_exchangeable_replicas_changes_nothing(pattern, version, min_isr, acks):
    """Merging exchangeable states is exact, and saves states."""
    config = Config(
        kafka_version=version,
        replication_factor=len(pattern),
        min_insync_replicas=min_isr,
        acks=acks,
    )
    merged, _, few = whole(pattern, config, CARD, LOAD)
    with all_apart():
        apart, _, many = whole(pattern, config, CARD, LOAD)
    assert merged == pytest.approx(apart, rel=1e-9, abs=0.0)
    assert few < many


@pytest.mark.parametrize(("min_isr", "acks"), [(1, "all"), (1, 1), (2, "all")])
@pytest.mark.parametrize("pattern", [(0, 1), (0, 0)])
def test_merging_moves_no_more_than_it_says_where_brokers_lag(pattern, min_isr, acks):
    """A leader that lags is not quite like a follower; the stated share covers it."""
    card = load_model("three_az_cloud")
    config = Config(
        kafka_version="4.2", replication_factor=2, min_insync_replicas=min_isr, acks=acks
    )
    merged, _, _ = whole(pattern, config, card, LOAD)
    with all_apart():
        apart, _, _ = whole(pattern, config, card, LOAD)
    assert merged == pytest.approx(apart, rel=lumping._LAGGING_LEADER, abs=0.0)


def test_blame_adds_up():
    """In every state the shares of attribution add up to one."""
    config = Config(replication_factor=3, min_insync_replicas=2)
    found = ctmc.whole_structure(
        parameters(config, CARD, LOAD, 3).constants,
        FaultEnvironment((0, 1, 2), possible_mechanisms(CARD)),
    )
    assert sum(found.attribution.values()) == pytest.approx(np.ones(found.states))


def test_rates_out_of_healthy_are_the_cards():
    """Leaving the healthy state takes every mechanism of every broker and rack, no more."""
    config = Config(replication_factor=3, min_insync_replicas=2)
    found = ctmc.whole_structure(
        parameters(config, CARD, LOAD, 3).constants,
        FaultEnvironment((0, 0, 1), possible_mechanisms(CARD)),
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


@pytest.mark.parametrize(
    ("version", "acks", "same"), [("3.9", 1, True), ("3.9", "all", False), ("4.2", 1, False)]
)
def test_all_min_isrs_share_a_chain_where_no_rule_reads_min_isr(version, acks, same):
    """With acks=1 only a controller with ELR looks at the min ISR; the numbers stay the same."""
    one, three = (
        Config(kafka_version=version, replication_factor=3, min_insync_replicas=least, acks=acks)
        for least in (1, 3)
    )
    setups = [parameters(config, CARD, LOAD, 3).constants for config in (one, three)]
    assert (setups[0] == setups[1]) == same
    asked = replace(setups[1], policy=replace(setups[1].policy, min_isr=3))
    environment = FaultEnvironment((0, 1, 2), possible_mechanisms(CARD))
    apart = ctmc.whole_structure(asked, environment)
    together = ctmc.whole_structure(setups[0], environment)
    found = [
        measured(solution(structure, three, CARD, LOAD, 3), three, CARD)
        for structure in (apart, together)
    ]
    totals = [[sum(of.causes[name].values()) for name in MEASURES] for of in found]
    assert (totals[0] == pytest.approx(totals[1], rel=1e-12)) == same


def test_no_more_is_missing_than_the_selection_allows():
    """Five replicas, all mechanisms: every bound is within its share of the measure."""
    pattern, card = (0, 0, 1, 1, 2), load_model("bare_metal_racks")
    config = Config(replication_factor=5, min_insync_replicas=3)
    found = measure_set(pattern, config, card, LOAD, 6)
    # Losses, records, not writable, not readable. The choice goes by failures up to twice as
    # frequent and outages up to twice as long, so that what it allows is four times as much.
    allowed = dict(zip(MEASURES, state_selection._SHARE_OF_MANY * 4.0, strict=False))
    for name, share in allowed.items():
        assert found.errors[name] <= share * sum(found.causes[name].values()), name


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("version", ["3.9", "4.2"])
@pytest.mark.parametrize("unclean", [False, True])
@pytest.mark.parametrize(("min_isr", "shared"), [(1, True), (2, False)])
def test_a_graph_serves_acks_that_no_isr_refuses(version, unclean, min_isr, shared, monkeypatch):
    """With min ISR 1 acks=all has the graph of acks=1, and the numbers of a graph of its own."""
    config = Config(
        kafka_version=version,
        replication_factor=3,
        min_insync_replicas=min_isr,
        acks="all",
        unclean_leader_election_enable=unclean,
    )
    numbers = parameters(config, CARD, LOAD, 3)
    found = state_graph.shared_constants(numbers.constants, numbers.environment((0, 1, 2)))
    assert (found.acks == 1) == shared
    lone, _, _ = whole((0, 1, 2), config.changed(acks=1), CARD, LOAD)
    served, _, states = whole((0, 1, 2), config, CARD, LOAD)
    monkeypatch.setattr(ctmc, "shared_constants", lambda constants, _: constants)
    forget()
    apart, _, as_many = whole((0, 1, 2), config, CARD, LOAD)
    assert states == as_many
    assert served == pytest.approx(apart, rel=1e-12, abs=0.0)
    # Tails are what only acks=1 loses.
    assert served["loss_events_per_year"] < lone["loss_events_per_year"]
