"""Isolated outages that are counted or skipped add what they add when each is replayed."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from advisor import Cluster, Config, FailureModel, Workload
from advisor.reliability.sampler import block as blocks
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.sampler.plan_reader import plan_for
from sampled_runs import CONFIGS, TRIO, card, state_without_skipping

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
    """The same block with isolated outages counted one by one, and with all replayed."""
    monkeypatch.setattr(blocks, "new_state", state_without_skipping)
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
    counted = sim.isolated["times"].sum() + sim.strikes["skipped"].sum()
    assert least <= 2 * counted / sim.control[0]["events"] <= most


RESTARTS = card(
    broker_crash={"per_year": 20.0, "minutes": 30.0},
    broker_lag={"per_year": 60.0, "minutes": 5.0},
    broker_gray={"per_year": 1.0, "minutes": 60.0, "dies": 0.1},
    broker_restart={"per_year": 60.0, "minutes": 15.0, "overlap": 0.05, "unclean": 0.1},
    rack_network={"per_year": 2.0, "minutes": 120.0},
)
"""A card with a hundred failures of a broker a year, most of which are skipped."""
WEEKLY = card(
    broker_crash={"per_year": 200.0, "minutes": 10.0},
    broker_power={"per_year": 20.0, "minutes": 90.0},
    calendar={"weekday": "monday", "hour": 3, "every_weeks": 4, "at_once": 2, "minutes": 15},
)
"""Restarts by a calendar, between which most failures are skipped."""


def sums_by_block(plan: Plan, seed: int) -> NDArray[np.float64]:
    """All that is counted, for each block of the same length."""
    rows = [run_block(plan, Block(seed, index, 25)) for index in range(400)]
    return np.array([(*row[4:9], *row.causes, *row.outages) for row in rows], dtype=float)


@pytest.mark.parametrize("shape", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("model", "brokers"), [(RESTARTS, 6), (WEEKLY, 4)])
def test_what_is_skipped_adds_the_same_on_average(
    model: FailureModel, brokers: int, shape: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every total and every length of outages, within what chance explains.

    Overlapping outages refuse writes, so their lengths show when both begin and end.
    """
    load = Workload(partitions=20, records_per_second=1e4)
    plan = plan_for(Cluster.uniform(brokers, 2), TRIO, model, load)
    gamma = {name: replace(each, shape=shape) for name, each in plan.mechanisms.items()}
    plan = replace(plan, mechanisms=gamma)
    sim = blocks._state_after(plan, Block(1, 0, 100))
    assert 4 * sim.strikes["skipped"].sum() > sim.control[0]["events"]
    skipped = sums_by_block(plan, 1)
    monkeypatch.setattr(blocks, "new_state", state_without_skipping)
    counted = sums_by_block(plan, 2)
    errors = np.sqrt((skipped.var(axis=0) + counted.var(axis=0)) / len(counted))
    apart = np.abs(skipped.mean(axis=0) - counted.mean(axis=0))
    assert np.all(apart <= 4.5 * errors + 1e-9 * np.abs(counted.mean(axis=0)))
    known = apart[errors > 0.0] / errors[errors > 0.0]
    assert len(known) > 40
    assert 0.6 < np.sqrt(np.mean(known**2)) < 1.4
