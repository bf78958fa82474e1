"""Isolated outages that are counted: the same sample path and totals as when each is replayed."""

import numpy as np
import pytest

from advisor import Cluster, Config, Workload
from advisor.reliability.sampler import block as blocks
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import CONFIGS, TRIO, card

SELDOM = card(
    broker_crash={"per_year": 4.0, "minutes": 60.0},
    broker_power={"per_year": 2.0, "minutes": 90.0},
    broker_destroyed={"per_year": 0.2, "hours": 5.0},
    broker_lag={"per_year": 12.0, "minutes": 5.0},
    broker_gray={"per_year": 1.0, "minutes": 60.0, "dies": 0.1},
    broker_restart={"per_year": 12.0, "minutes": 15.0, "overlap": 0.05, "unclean": 0.1},
    rack_network={"per_year": 1.0, "minutes": 120.0, "spreads": 0.2},
    cluster_crash={"per_year": 0.5, "minutes": 120.0, "brokers": 0.7},
    cluster_wiped={"per_year": 0.1, "hours": 5.0, "brokers": 0.5},
    cluster_controller={"per_year": 0.5, "minutes": 240.0, "stops": 0.5},
)
"""A card on which most outages are isolated."""
EVERY = {
    **CONFIGS,
    "every replica": Config(replication_factor=2, min_insync_replicas=2),
}


def both(plan: Plan, years: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Row, Row]:
    """The same block with isolated outages counted, and with all replayed."""
    counted = run_block(plan, Block(7, 0, years))
    monkeypatch.setattr(Plan, "counts_isolated", False)
    return counted, run_block(plan, Block(7, 0, years))


def check_same(counted: Row, replayed: Row) -> None:
    """Only the order in which numbers are added may differ."""
    exactly = ("events", "hours", "lost_years", "at_risk_hours", "first_losses", "loss_moments")
    for name in exactly:
        assert getattr(counted, name) == getattr(replayed, name), name
    np.testing.assert_allclose(counted.causes, replayed.causes, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(counted.outages, replayed.outages, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(("brokers", "racks", "partitions"), [(3, 3, 2), (6, 3, 40), (9, 9, 200)])
def test_what_is_counted_is_what_a_replay_adds(
    name: str, brokers: int, racks: int, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are the same, whether sets are in groups or not and whatever is lost."""
    load = Workload(partitions=partitions, records_per_second=1e4)
    plan = plan_for(Cluster.uniform(brokers, racks), EVERY[name], SELDOM, load)
    counted, replayed = both(plan, 100, monkeypatch)
    assert replayed.events > 1_000
    check_same(counted, replayed)


def test_it_stops_for_rolling_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """An outage that the calendar would meet is not isolated."""
    load = Workload(partitions=40, records_per_second=1e4)
    weekly = {"weekday": "monday", "hour": 3, "every_weeks": 1, "at_once": 2, "minutes": 15}
    model = card(broker_crash={"per_year": 40.0, "minutes": 60.0}, calendar=weekly)
    plan = plan_for(Cluster.uniform(6, 3), TRIO, model, load)
    check_same(*both(plan, 50, monkeypatch))


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [("RF 3", 0.8, 1.0), ("acks=1", 0.1, 0.6), ("every replica", 0.0, 0.5), ("RF 1", 0.0, 0.5)],
)
def test_most_are_counted_where_writes_go_on(name: str, least: float, most: float) -> None:
    """An outage that refuses writes or loses records is replayed, since its length matters."""
    plan = plan_for(Cluster.uniform(6, 3), EVERY[name], SELDOM, Workload(partitions=40))
    sim = blocks._state_after(plan, Block(7, 0, 100))
    assert least <= 2 * sim.isolated["times"].sum() / sim.control[0]["events"] <= most
