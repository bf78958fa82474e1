"""Merging of followers although their order decides which one is elected uncleanly."""

import pytest

from advisor import Config, FailureModel, load_model
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.chain import ctmc
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.statespace import lumping
from advisor.reliability.workload import Workload
from cards import BROKERS_AND_RACKS, LIMPING_AND_SEVERAL, RARE, only
from merging import all_apart, whole
from replica_sets import parameters

GONE = {"per_year": 2.0, "hours": 60.0}
LOAD = Workload(partitions=12, records_per_second=1000, record_bytes=512)


def unclean(replicas, version, acks, min_isr):
    return Config(
        kafka_version=version,
        replication_factor=replicas,
        min_insync_replicas=min_isr,
        acks=acks,
        unclean_leader_election_enable=True,
    )


def ask(pattern, config, model):
    constants = parameters(config, model, LOAD, len(pattern)).constants
    return constants, FaultEnvironment(pattern, possible_mechanisms(model))


@pytest.mark.parametrize(
    ("racks", "last"),
    [
        ((0,), 0),
        ((0, 1), 1),
        ((0, 0), 1),
        ((0, 1, 2), 1),
        ((0, 1, 1), 1),
        ((0, 0, 0), 1),
        ((0, 0, 1), 2),
        ((0, 1, 0), 2),
        ((0, 1, 2, 3), 2),
        ((0, 1, 2, 0), 3),
        ((0, 1, 1, 0), 3),
        ((0, 0, 1, 1), 2),
        ((0, 1, 1, 2, 2), 3),
        ((0, 1, 2, 0, 1), 4),
    ],
)
def test_only_the_last_two_change_places_if_their_racks_are_alike(racks, last):
    """A follower behind them would tell more of the order, and the preferred replica is its own."""
    model = load_model("two_az")
    found = ask(racks, unclean(len(racks), "4.2", "all", 1), model)
    assert lumping.slot_classes(*found) == (*range(len(racks) - 1), last)
    stated = lumping._ELECTION_ORDER if last < len(racks) - 1 else 0.0
    assert lumping.lumping_error(*found) == stated
    assert not any(lumping.slot_classes(*ask(racks, Config(replication_factor=len(racks)), model)))


@pytest.mark.parametrize(("racks", "next_leader"), [((0, 1, 2), False), ((0, 1, 1, 2), True)])
def test_followers_that_lag_have_an_error_of_their_own(racks, next_leader):
    """Under clean elections it is added to that of the next leader's rack."""
    config = Config(replication_factor=len(racks))
    without = lumping._NEXT_LEADER if next_leader else 0.0
    for kept, lags in ((("broker.crash",), 0.0), (("broker.crash", "broker.lag"), 1.0)):
        stated = lumping.lumping_error(*ask(racks, config, only("single_rack", kept)))
        assert stated == without + lags * lumping._LAGGING_LEADER


@pytest.mark.parametrize("factor", [1.0, 50.0])
@pytest.mark.parametrize(
    ("card", "kept"),
    [("three_az_cloud", BROKERS_AND_RACKS), ("bare_metal_racks", LIMPING_AND_SEVERAL)],
)
@pytest.mark.parametrize(
    ("version", "acks", "min_isr"),
    [("4.2", "all", 2), ("3.7", "all", 2), ("4.2", 1, 1), ("0.8.0", "all", 1)],
)
@pytest.mark.parametrize("pattern", [(0, 1, 2), (0, 1, 1), (0, 0, 0)])
def test_merging_moves_no_more_than_is_stated(pattern, version, acks, min_isr, card, kept, factor):
    """Every measure of the chain of all states, also where all fails fifty times as often."""
    known = only(card, kept, RARE)
    rates = {name: known.get(f"{name}.per_year", 0.0) for name in kept}
    model = known.with_values({f"{name}.per_year": rate * factor for name, rate in rates.items()})
    config = unclean(3, version, acks, min_isr)
    merged, errors, few = whole(pattern, config, model, LOAD)
    with all_apart():
        apart, _, many = whole(pattern, config, model, LOAD)
    stated = lumping.lumping_error(*ask(pattern, config, model))
    assert merged == pytest.approx(apart, rel=stated / 4.0 if factor == 1.0 else stated, abs=0.0)
    assert all(errors[name] >= stated * merged[name] for name in errors)
    assert few < 0.6 * many


@pytest.mark.parametrize("kept", [("broker.lag", "rack.network"), ("broker.destroyed",)])
@pytest.mark.parametrize("pattern", [(0, 0, 0), (0, 1, 1), (0, 1, 2, 3), (0, 0, 1, 1)])
def test_merging_moves_no_more_where_little_else_fails(pattern, kept):
    """Where a loss takes several elections in one outage, the order matters most."""
    model = only("single_rack", (*kept, "broker.crash", "broker.lag"))
    config = unclean(len(pattern), "4.2", "all", 1)
    merged, _, few = whole(pattern, config, model, LOAD)
    with all_apart():
        apart, _, many = whole(pattern, config, model, LOAD)
    stated = lumping.lumping_error(*ask(pattern, config, model))
    assert merged == pytest.approx(apart, rel=stated / 4.0, abs=0.0)
    assert few < 0.6 * many


def test_each_is_taken_half_the_time():
    """What leaves a state adds up to whole events; some of them are halves."""
    model = only("three_az_cloud", BROKERS_AND_RACKS, RARE)
    constants, environment = ask((0, 1, 2), unclean(3, "3.7", "all", 2), model)
    structure = ctmc.whole_structure(constants, environment)
    assert {0.5, 1.0} <= set(structure.weight.tolist())
    out = {}
    for source, weight in zip(structure.source.tolist(), structure.weight.tolist(), strict=True):
        out[source] = out.get(source, 0.0) + weight
    assert all(total == round(total) for total in out.values())


@pytest.mark.parametrize("voters", [(1, 1, 1), (2, 2, 1)])
def test_merging_is_exact_where_racks_take_the_controller_quorum(voters):
    """Whom a new controller fences last may not depend on how replicas are numbered."""
    power = {"per_year": 6.0, "minutes": 900.0, "not_returning": 0.3, "spreads": 0.3}
    model = FailureModel.from_dict({"rack": {"power": power}, "broker": {"destroyed": GONE}})
    config = Config(replication_factor=3, min_insync_replicas=2)
    merged, _, few = whole((0, 1, 2), config, model, LOAD, voters)
    with all_apart():
        apart, _, many = whole((0, 1, 2), config, model, LOAD, voters)
    assert merged == pytest.approx(apart, rel=1e-6, abs=0.0)
    assert few < 0.6 * many
