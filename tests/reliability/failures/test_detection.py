"""Detection and election times of the reference, and the error of using their mean."""

import math
import statistics

import pytest

from advisor.catalog import model_names
from advisor.protocol.rules.config import Config
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.state import Broker, Settings
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import load_model

CONFIG = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=2, acks="all")
SESSION_MS = 9_000
# Fetches and the controller's answer take single milliseconds in the reference.
MOMENT_MS = 100


def waited_ms(fault: object, phase_ms: int) -> int:
    """Hours that one record waits for its acknowledgement after a fault at a given moment."""
    cluster = Simulation(tuple(Broker(b) for b in (1, 2, 3)), Settings.of(CONFIG))
    cluster.apply(ev.CreateTopic("t", ((1, 2, 3),), 2, False))
    cluster.settle()
    assert cluster.produce("t", 0, 1, CONFIG) is None
    cluster.settle()
    cluster.pass_time(phase_ms)
    cluster.apply(fault)
    before = cluster.state.now_ms
    assert cluster.produce("t", 0, 1, CONFIG) is None
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


@pytest.mark.parametrize("card", model_names())
def test_what_happens_during_a_reaction_is_rare(card: str) -> None:
    """A reaction of d is charged whole: too much by d / 2 over the outage's mean, at most 5 %.

    The smaller of an exponential of mean m and d has the mean ``m (1 - exp(-d/m))``, which is at
    least ``d - d**2 / 2m``. Another failure among three brokers comes in less than one reaction
    of ten thousand.
    """
    model = load_model(card)
    dead, _ = transition_rates.stall_hours(CONFIG, model)
    strikes = 0.0
    for name in model.mechanisms:
        strikes += 3.0 * model.rate_per_hour(name)
        if name in ("broker.lag", "broker.restart", "rack.destroyed"):
            continue
        mean = model.repair_hours(name)
        charged_too_much = 1.0 - mean / dead * -math.expm1(-dead / mean)
        assert charged_too_much <= min(dead / (2.0 * mean), 0.05), name
    assert strikes * dead < 1e-4
