"""Limping brokers, overlapping restarts, spreading outages, wiped logs and the controller quorum.

The sampler against the exact chain and closed forms.
"""

import math

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.reliability import measure_table
from advisor.reliability.partition.transition_table import partition_transition_table
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.compiled.transition_tables import tables
from advisor.reliability.sampler.plan import Block
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import FAR, MANY_RACKS, QUIET, TRIO, YEAR, card, off_by, sample

CRASH = {"per_year": 6.0, "minutes": 600.0}
GONE = {"per_year": 2.0, "hours": 60.0}
TIMING = {
    "flush": {"seconds": 30.0},
    "detection": {"seconds": 9.0},
    "election": {"ms_per_leader": 500.0},
}
SEVERAL = {"per_year": 4.0, "brokers": 0.4, "minutes": 500.0}
CARDS = {
    "limping": {
        "broker_gray": {"per_year": 20.0, "minutes": 300.0, "dies": 0.3},
        "broker_power": {"per_year": 2.0, "minutes": 400.0},
    },
    "limping and copying": {
        "broker_gray": {"per_year": 20.0, "minutes": 300.0, "dies": 0.0},
        "broker_destroyed": GONE,
        "copy": {"bytes_per_second": 1000.0},
    },
    "overlapping restarts": {
        "broker_restart": {
            "per_year": 15.0,
            "minutes": 200.0,
            "overlap": 0.4,
            "unclean": 0.3,
            "unclean_minutes": 500.0,
        },
        "broker_crash": CRASH,
    },
    "spreading": {
        "rack_network": {"per_year": 3.0, "minutes": 600.0, "spreads": 0.3},
        "rack_power": {"per_year": 2.0, "minutes": 600.0, "spreads": 0.2, "not_returning": 0.2},
        "rack_destroyed": {"per_year": 0.3, "spreads": 0.2},
        "broker_destroyed": {"hours": 60.0},
    },
    "several at once": {
        "cluster_crash": SEVERAL,
        "cluster_rollout": {**SEVERAL, "minutes": 200.0},
        "cluster_disk_full": {**SEVERAL, "brokers": 0.2},
        "broker_crash": CRASH,
    },
    "wiped": {
        "cluster_wiped": {"per_year": 1.0, "brokers": 0.5, "hours": 100.0},
        "broker_destroyed": GONE,
        "copy": {"bytes_per_second": 1000.0},
    },
    "without a controller": {
        "cluster_controller": {"per_year": 12.0, "minutes": 600.0, "stops": 0.3},
        "broker_crash": CRASH,
    },
    "limping without a controller": {
        "cluster_controller": {"per_year": 12.0, "minutes": 600.0, "stops": 0.3},
        "broker_gray": {"per_year": 10.0, "minutes": 300.0, "dies": 0.2},
        "broker_power": {"per_year": 3.0, "minutes": 300.0},
    },
}
CARDS["all together"] = {
    "broker_gray": {"per_year": 6.0, "minutes": 300.0, "dies": 0.3},
    "broker_restart": {"per_year": 6.0, "minutes": 200.0, "overlap": 0.4, "unclean": 0.3},
    "rack_network": {"per_year": 2.0, "minutes": 600.0, "spreads": 0.3},
    "cluster_crash": {"per_year": 1.0, "brokers": 0.4, "minutes": 500.0},
    "cluster_wiped": {"per_year": 0.5, "brokers": 0.4, "hours": 60.0},
    "cluster_controller": {"per_year": 4.0, "minutes": 400.0, "stops": 0.3},
}
NETWORK = {"per_year": 6.0, "minutes": 600.0}
CARDS["voters in racks"] = {"rack_network": NETWORK, "rack_power": NETWORK, "broker_crash": CRASH}
CARDS["voters, spreading"] = {
    "rack_network": {**NETWORK, "spreads": 0.4},
    "rack_power": {"per_year": 3.0, "minutes": 600.0, "spreads": 0.2, "not_returning": 0.2},
    "broker_crash": CRASH,
    "broker_destroyed": {"hours": 60.0},
}
CARDS["voters elsewhere"] = {
    "rack_network": {**NETWORK, "spreads": 0.4},
    "rack_power": {"per_year": 3.0, "minutes": 600.0, "spreads": 0.2, "not_returning": 0.2},
    "rack_destroyed": {"per_year": 0.3, "spreads": 0.2},
    "broker_destroyed": {"hours": 60.0},
    "cluster_controller": {"per_year": 6.0, "minutes": 400.0, "stops": 0.3},
}
CARDS["an operator decides"] = {
    "broker_crash": CRASH,
    "broker_destroyed": GONE,
    "operator": {"hours": 8.0},
    "copy": {"bytes_per_second": 1000.0},
}
PAIR = Config(replication_factor=2, min_insync_replicas=1)
RACKS = Cluster.uniform(brokers=6, racks=3)
ONE_EACH = {1: "a", 2: "b", 3: "c"}
ELSEWHERE = Cluster(brokers={1: "a", 2: "b"}, controllers=ONE_EACH)
CASES = {
    "limping": (MANY_RACKS, TRIO),
    "limping and copying": (MANY_RACKS, TRIO),
    "overlapping restarts": (MANY_RACKS, TRIO),
    "spreading": (RACKS, PAIR),
    "several at once": (MANY_RACKS, TRIO),
    "wiped": (MANY_RACKS, TRIO),
    "without a controller": (MANY_RACKS, TRIO),
    "limping without a controller": (MANY_RACKS, PAIR),
    "all together": (RACKS, PAIR),
    "voters in racks": (Cluster.uniform(brokers=4, racks=2), PAIR),
    "voters, spreading": (Cluster(brokers=ONE_EACH, controllers=ONE_EACH), TRIO),
    "voters elsewhere": (ELSEWHERE, PAIR),
    "an operator decides": (MANY_RACKS, PAIR),
}


def made(name: str) -> FailureModel:
    """Read one of the cards."""
    return card(**CARDS[name], **TIMING)


@pytest.mark.parametrize("name", CASES)
def test_the_chain_and_the_sampler_agree(name: str) -> None:
    """One partition, sampled in the whole cluster, agrees with its CTMC."""
    cluster, config = CASES[name]
    exact = evaluate(cluster, config, made(name), QUIET)
    found, _ = sample(cluster, config, made(name), QUIET, years=3000)
    off = {}
    for measure in measure_table.names():
        one, truth = found.estimate(measure), getattr(exact, measure)
        if not one.seen or truth in (0.0, math.inf):
            assert one.low <= truth <= one.high, (measure, one, truth)
        elif measure == "loss_probability_per_year" and one.value == 1.0:
            assert truth > one.low, (measure, one, truth)
        else:
            off[measure] = off_by(one, truth)
    assert max(map(abs, off.values())) < FAR, off


@pytest.mark.parametrize("name", ["voters in racks", "voters elsewhere", "wiped", "spreading"])
def test_the_chain_and_the_sampler_blame_the_same(name: str) -> None:
    """Unavailability and losses have the same causes, in the same shares."""
    cluster, config = CASES[name]
    exact = evaluate(cluster, config, made(name), QUIET)
    found, _ = sample(cluster, config, made(name), QUIET, years=3000)
    for measure in ("write_unavailability", "loss_events_per_year"):
        mine, truth = found.causes[measure], exact.causes[measure]
        whole = math.fsum(truth.values())
        for cause in {*mine, *truth}:
            part = truth.get(cause, 0.0) / whole
            assert mine.get(cause, 0.0) / whole == pytest.approx(part, rel=0.15, abs=0.04), cause


def test_a_limping_leader_that_dies_loses_what_it_alone_has_once() -> None:
    """With unclean elections the whole gap is lost; its last ten minutes do not count twice."""
    per_year, dies, limps = 20.0, 0.3, 0.5
    gray = {"per_year": per_year, "minutes": limps * 60.0, "dies": dies}
    model = card(broker_gray=gray, **{**TIMING, "flush": {"seconds": 600.0}})
    config = Config(
        replication_factor=3, min_insync_replicas=1, unclean_leader_election_enable=True
    )
    exact = evaluate(MANY_RACKS, config, model, QUIET)
    found, _ = sample(MANY_RACKS, config, model, years=20_000)
    # A leader limps again only after it was well for its mean time.
    deaths = per_year * dies / (1.0 + per_year * limps / YEAR)
    hours = exact.acked_records_lost_per_year / (QUIET.records_per_second * 3600.0)
    assert hours == pytest.approx(deaths * limps, rel=2e-3)
    assert abs(off_by(found.acked_records_lost_per_year, deaths * limps * 3600.0)) < FAR


def test_one_broker_crashing_for_a_cause_of_all() -> None:
    """One broker, one replica: unwritable for the share of time that the outages take."""
    model = card(cluster_crash={"per_year": 20.0, "brokers": 0.5, "minutes": 60.0})
    found, _ = sample(Cluster.uniform(1, 1), Config(replication_factor=1), model)
    up = YEAR / (20.0 * 0.5)
    assert abs(off_by(found.write_unavailability, 1.0 / (up + 1.0))) < FAR
    assert found.causes["write_unavailability"].keys() == {"cluster.crash"}


def test_all_logs_wiped_at_once_are_lost() -> None:
    """A partition is lost where every one of its brokers is among those that are wiped."""
    per_year, brokers = 2.0, 0.5
    model = card(cluster_wiped={"per_year": per_year, "brokers": brokers, "hours": 0.01})
    config = Config(replication_factor=2, min_insync_replicas=1)
    found, _ = sample(Cluster.uniform(6, 6), config, model)
    assert abs(off_by(found.loss_events_per_year, per_year * brokers**2)) < FAR


def test_without_a_controller_that_also_stops_clients_nothing_is_written() -> None:
    """One replica needs no election: only the outages that stop clients count."""
    model = card(cluster_controller={"per_year": 20.0, "minutes": 60.0, "stops": 0.25})
    found, _ = sample(Cluster.uniform(1, 1), Config(replication_factor=1), model)
    up, per_hour = YEAR / 20.0, 20.0 / YEAR
    assert abs(off_by(found.write_unavailability, per_hour * 0.25 * up / (up + 1.0))) < FAR
    assert found.causes["write_unavailability"].keys() == {"cluster.controller"}


def test_the_voters_of_a_rack_without_brokers_stop_what_needs_elections() -> None:
    """Two voters of three in a rack alone: with one replica, its outage stops nothing."""
    model = card(rack_network={"per_year": 20.0, "minutes": 60.0})
    cluster = Cluster(brokers={1: "a"}, controllers={1: "a", 2: "b", 3: "b"})
    found, _ = sample(cluster, Config(replication_factor=1), model)
    up = YEAR / 20.0
    # While the voters are gone, too, the broker that is back is still waiting to register.
    assert abs(off_by(found.write_unavailability, 1.0 / (up + 1.0))) < FAR


def test_a_block_with_a_quorum_is_the_same_whenever_it_is_run() -> None:
    """A block's row depends neither on earlier blocks nor on how full the tables are."""
    cluster, config = CASES["voters elsewhere"]
    plan = plan_for(cluster, config, made("voters elsewhere"), Workload(partitions=24))
    assert plan.voters == (1, 1, 1)
    first = run_block(plan, Block(7, 3, 50))
    tables.cache_clear()
    partition_transition_table.cache_clear()
    run_block(plan, Block(8, 0, 20))
    assert run_block(plan, Block(7, 3, 50)) == first
