"""Detection and election times of the reference, and the error of using their mean."""

import csv
import math
import statistics

import pytest

from advisor import Cluster, FailureModel, Workload, evaluate
from advisor.catalog import data_path, model_names
from advisor.protocol.rules.config import Config
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.state import Broker, Settings
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.detection import detection_seconds
from advisor.reliability.failures.failure_model import load_model
from sampled_runs import card

CONFIG = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=2, acks="all")
SESSION_MS = 9_000
# Fetches and the controller's answer take single milliseconds in the reference.
MOMENT_MS = 100


def waited_ms(fault: object, phase_ms: int, config: Config = CONFIG) -> int:
    """Time that one record waits for its acknowledgement after a fault at a given moment."""
    cluster = Simulation(tuple(Broker(b) for b in (1, 2, 3)), Settings(config))
    cluster.apply(ev.CreateTopic("t", ((1, 2, 3),), 2, False))
    cluster.settle()
    assert cluster.produce("t", 0, 1, config) is None
    cluster.settle()
    cluster.pass_time(phase_ms)
    cluster.apply(fault)
    before = cluster.state.now_ms
    assert cluster.produce("t", 0, 1, config) is None
    return cluster.state.now_ms - before


@pytest.mark.parametrize("broker", [1, 3], ids=["leader", "follower"])
def test_a_death_is_waited_for_as_long_as_a_session(broker: int) -> None:
    """Leader or follower: writes wait for detection, and hardly longer."""
    for phase in range(0, 15_000, 1_700):
        waited = waited_ms(ev.Kill(broker), phase)
        assert SESSION_MS - 2_000 <= waited <= SESSION_MS + MOMENT_MS, phase


def test_a_hanging_follower_is_waited_for_1_to_1_5_times_the_lag_time() -> None:
    """Over evenly spread moments the mean is what is charged, within the spread of the moments.

    Moments 1.5 s apart stand for all within 750 ms.
    """
    lag_ms = CONFIG.replica_lag_time_max_ms
    waits = [waited_ms(ev.Lag(3), phase) for phase in range(0, 15_000, 1_500)]
    assert min(waits) >= lag_ms - MOMENT_MS
    assert max(waits) <= 1.5 * lag_ms + MOMENT_MS
    _, hung = transition_rates.stall_hours(CONFIG, load_model("three_az_cloud"))
    assert abs(statistics.fmean(waits) - hung * 3_600_000.0) <= 750 + MOMENT_MS


def test_a_shutdown_is_not_waited_for() -> None:
    """A follower in controlled shutdown leaves the ISR before it stops."""
    assert waited_ms(ev.Stop(3), 0) <= MOMENT_MS


@pytest.mark.parametrize("name", model_names())
def test_what_happens_during_a_reaction_is_rare(name: str) -> None:
    """A reaction of d is charged whole: too much by d / 2 over the outage's mean, at most 5 %.

    The smaller of an exponential of mean m and d has the mean ``m (1 - exp(-d/m))``, which is at
    least ``d - d**2 / 2m``. Another failure among three brokers comes in less than one reaction
    of ten thousand.
    """
    model = load_model(name)
    dead, _ = transition_rates.stall_hours(CONFIG, model)
    strikes = 0.0
    for mechanism in model.mechanisms:
        strikes += 3.0 * model.rate_per_hour(mechanism)
        if mechanism in ("broker.lag", "broker.restart", "rack.destroyed"):
            continue
        mean = model.repair_hours(mechanism)
        charged_too_much = 1.0 - mean / dead * -math.expm1(-dead / mean)
        assert charged_too_much <= min(dead / (2.0 * mean), 0.05), mechanism
    assert strikes * dead < 1e-4


MODES = [
    ("2.4", "zookeeper", 6_000),
    ("2.8", "zookeeper", 18_000),
    ("3.9", "zookeeper", 18_000),
    ("3.9", "kraft", 9_000),
    ("4.1", "kraft", 9_000),
]


def environment(version: str, mode: str, **changes: object) -> Config:
    """RF 3, min ISR 2, acks=all at a version."""
    return CONFIG.changed(kafka_version=version, mode=mode, **changes)


@pytest.mark.parametrize("name", model_names())
def test_a_shipped_card_detects_a_death_when_real_brokers_did(name: str) -> None:
    """Within 1 % of the measured means of default sessions, and all others within its range."""
    with data_path("broker_timings.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["quantity"] == "detection_by_log"]
    assert {row["mode"] for row in rows} == {"kraft", "zookeeper"}
    model = load_model(name)
    for row in rows:
        session_ms, mode = int(row["session_timeout_ms"]), row["mode"]
        timeout = {
            "kraft": {"broker_session_timeout_ms": session_ms},
            "zookeeper": {"zookeeper_session_timeout_ms": session_ms},
        }[mode]
        config = environment(row["release"], mode, **timeout)
        measured = int(row["value"]) / session_ms
        share = model.quantities[f"detection.{mode}_sessions"]
        assert share.low <= measured <= share.high
        cited = (row["release"], session_ms) in (("4.3.1", 9_000), ("3.9.2", 18_000))
        if cited and row["partitions"] == "1":
            found = detection_seconds(config, model)
            assert found == pytest.approx(int(row["value"]) / 1000.0, rel=0.01)


@pytest.mark.parametrize(("version", "mode", "session_ms"), MODES)
def test_the_reference_detects_a_death_within_the_range(
    version: str, mode: str, session_ms: int
) -> None:
    """Every wait of the executed protocol lies in the card's range for the mode's default."""
    model = load_model("three_az_cloud")
    config = environment(version, mode)
    share = model.quantities[f"detection.{mode}_sessions"]
    for phase in range(0, 15_000, 1_700):
        waited = waited_ms(ev.Kill(1), phase, config)
        assert share.low * session_ms <= waited <= share.high * session_ms + MOMENT_MS, phase
    assert detection_seconds(config, model) == pytest.approx(
        share.value * session_ms / 1000.0, rel=1e-15
    )


@pytest.mark.parametrize(("version", "mode", "session_ms"), MODES)
def test_unavailability_follows_the_session_timeout(
    version: str, mode: str, session_ms: int
) -> None:
    """Each leader crashes once a year and is back at once: a share of a session is refused."""
    shares = {"kraft_sessions": 0.5, "zookeeper_sessions": 0.75}
    model = card(broker_crash={"per_year": 1.0, "minutes": 1e-3}, detection=shares)
    found = evaluate(
        Cluster.uniform(3, 3), environment(version, mode), model, Workload(partitions=1)
    )
    seconds = shares[f"{mode}_sessions"] * session_ms / 1000.0
    assert found.write_unavailability == pytest.approx(seconds / 3600 / 8760, rel=1e-6)
    assert found.write_stalled >= found.write_unavailability


def test_a_card_may_give_seconds_instead() -> None:
    """They count whatever the mode and the timeout; without either, detection takes no time."""
    crash = {"per_year": 1.0, "minutes": 5.0}
    seconds = card(broker_crash=crash, detection={"seconds": 3.0})
    both = load_model("three_az_cloud").to_dict()
    both["detection"]["seconds"] = 3.0
    shipped = load_model("three_az_cloud")
    for version, mode, _ in MODES:
        config = environment(version, mode)
        assert detection_seconds(config, seconds) == 3.0
        assert detection_seconds(config, FailureModel.from_dict(both)) == 3.0
        assert detection_seconds(config, card(broker_crash=crash)) == 0.0
        assert detection_seconds(config, shipped) > 5.0


def test_detection_stays_uncertain() -> None:
    """Its range is drawn for intervals, and the tornado shows the mode's number alone to matter."""
    model = load_model("three_az_cloud")
    drawn = {detection_seconds(CONFIG, m) for m in model.draws(8, seed=1)}
    assert len(drawn) == 8
    assert min(drawn) < detection_seconds(CONFIG, model) < max(drawn)
    result = evaluate(Cluster.uniform(3, 3), CONFIG, model, Workload(partitions=1))
    rows = {row.path: row for row in result.tornado("write_unavailability")}
    own = rows["detection.kraft_sessions"]
    assert own.result_at_low < result.write_unavailability < own.result_at_high
    assert rows["detection.zookeeper_sessions"].factor == 1.0
