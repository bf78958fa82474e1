"""Stalls of acks=all until the ISR shrinks; acks=0 drops; refusals follow outage lengths."""

import math

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model, simulate
from sampled_runs import card

PAIR = Cluster.uniform(2, 2)
LOAD = Workload(records_per_second=1.0, replication_delay_ms=0.0)
CRASHES = card(broker_crash={"per_year": 10.0, "minutes": 60.0}, detection={"seconds": 9.0})
LAGS = card(broker_lag={"per_year": 10.0, "minutes": 60.0}, detection={"seconds": 9.0})
RESTARTS = card(broker_restart={"per_year": 10.0, "minutes": 60.0}, detection={"seconds": 9.0})
PER_HOUR = 10.0 / 8760.0


def pair(**settings: object) -> Config:
    given = {"min_insync_replicas": 1, "acks": "all", **settings}
    return Config(kafka_version="4.1", replication_factor=2, **given)


def test_a_dead_follower_stalls_until_the_controller_notices() -> None:
    """While both brokers are up the follower crashes at its rate, and each detection takes 9 s."""
    up = 1.0 / (1.0 + PER_HOUR)
    found = evaluate(PAIR, pair(), CRASHES, LOAD)
    assert found.write_stalled == pytest.approx(up**2 * PER_HOUR * 9.0 / 3600.0, rel=1e-9)
    assert set(found.causes["write_stalled"]) == {"broker.crash"}


@pytest.mark.parametrize("lag_ms", [10_000, 30_000])
def test_a_follower_that_hangs_stalls_for_the_lag_time(lag_ms: int) -> None:
    """It leaves after 1 to 1.5 times replica.lag.time.max.ms, 1.25 times on average."""
    well = 1.0 / (1.0 + PER_HOUR)
    found = evaluate(PAIR, pair(replica_lag_time_max_ms=lag_ms), LAGS, LOAD)
    hours = 1.25 * lag_ms / 3_600_000.0
    assert found.write_stalled == pytest.approx(well * PER_HOUR * hours, rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "model"),
    [
        ({"acks": 1}, CRASHES),
        ({"acks": 0}, LAGS),
        ({"min_insync_replicas": 2}, CRASHES),
        ({}, RESTARTS),
    ],
    ids=["acks=1", "acks=0", "not writable without it", "controlled shutdown"],
)
def test_what_does_not_wait_does_not_stall(
    settings: dict[str, object], model: FailureModel
) -> None:
    """No stall if no follower is waited for, writes are refused, or the shutdown is announced."""
    config = pair(**settings)
    exact = evaluate(PAIR, config, model, LOAD)
    sampled = simulate(PAIR, config, model, LOAD, years=50, seed=1, engine="local")
    assert exact.write_stalled == 0.0
    assert sampled.write_stalled.low == 0.0
    assert not sampled.causes["write_stalled"]


def test_acks_0_drops_and_does_not_lose() -> None:
    """One broker, ten outages of an hour a year: records written during them are dropped."""
    config = Config(kafka_version="4.1", replication_factor=1, acks=0)
    model = card(broker_crash={"per_year": 10.0, "minutes": 60.0})
    found = evaluate(Cluster.uniform(1, 1), config, model, LOAD)
    down = PER_HOUR / (1.0 + PER_HOUR)
    assert found.records_dropped_per_year == pytest.approx(8760.0 * 3600.0 * down, rel=1e-12)
    assert found.acked_records_lost_per_year == 0.0
    assert ": nothing acknowledged, 36,000 records lost a year, " in found.summary
    assert "data loss" not in found.summary
    assert set(found.causes["records_dropped_per_year"]) == {"broker.crash"}
    sampled = simulate(Cluster.uniform(1, 1), config, model, LOAD, years=50, seed=1, engine="local")
    assert sampled.acked_records_lost_per_year.high == 0.0
    assert sampled.records_dropped_per_year.seen
    assert ": nothing acknowledged, " in sampled.summary
    assert " records lost a year, " in sampled.summary


@pytest.mark.parametrize("acks", ["all", 1])
def test_only_acks_0_drops(acks: str | int) -> None:
    """With acknowledgements a record is lost or refused, and the producer can tell."""
    found = evaluate(PAIR, pair(acks=acks), CRASHES, LOAD)
    assert found.records_dropped_per_year == 0.0
    assert found.records_refused_per_year > 0.0


def test_refusals_follow_the_distribution_of_outages() -> None:
    """Short crashes and long replacements refuse their own shares, not that of the mean outage.

    With a timeout b, a share ``exp(-b/d)`` of the records written in exponential outages of mean d
    is refused. Failures of a broker that is already down are neglected.
    """
    model = card(
        broker_crash={"per_year": 10.0, "minutes": 1.0},
        broker_destroyed={"per_year": 1.0, "hours": 2.0},
    )
    config = Config(kafka_version="4.1", replication_factor=1, delivery_timeout_ms=120_000)
    found = evaluate(Cluster.uniform(1, 1), config, model, LOAD)
    crashes, destroyed = 10.0 * 60.0 * math.exp(-2.0), 7200.0 * math.exp(-1.0 / 60.0)
    assert found.records_refused_per_year == pytest.approx(crashes + destroyed, rel=2e-3)
    mean = (10.0 / 60.0 + 2.0) / 11.0
    by_mean = (600.0 + 7200.0) * math.exp(-1.0 / 30.0 / mean)
    assert abs(by_mean - found.records_refused_per_year) > 0.05 * by_mean


def test_a_setting_that_is_never_writable_has_unavailability_one() -> None:
    """Shares of time do not exceed 1, whatever the rounding of their parts."""
    rare = FailureModel.from_dict(
        {"broker": {"power": {"per_year": 0.2, "minutes": 10.0}}, "flush": {"seconds": 35.0}}
    )
    config = Config(replication_factor=3, min_insync_replicas=4, kafka_version="2.0", acks="all")
    found = evaluate(Cluster.uniform(brokers=3, racks=3), config, rare)
    assert found.write_unavailability == 1.0


def test_acks_1_has_no_stall_error_even_without_a_truncation_bound() -> None:
    """An infinite truncation bound times a stall of no length adds nothing."""
    mechanisms = load_model("bare_metal_racks").to_dict()
    mechanisms["broker"]["crash"] = {"per_year": 500.0, "minutes": 600.0}
    often = FailureModel.from_dict(mechanisms)
    config = Config(replication_factor=3, min_insync_replicas=1, acks=1)
    found = evaluate(Cluster.uniform(brokers=3, racks=3), config, often)
    assert math.isinf(found.error_bounds["loss_events_per_year"])
    assert found.error_bounds["write_stalled"] == 0.0
