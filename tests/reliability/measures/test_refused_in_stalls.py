"""Records refused during stalls: acks=all waits for a failed follower to leave the ISR."""

import math

import numpy as np
import pytest
from scipy import integrate

from advisor import Cluster, Config, Workload, evaluate, load_model
from advisor.reliability.case import IsrStalls, ProducerTimeouts, possible_mechanisms
from advisor.reliability.chain import ctmc
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.measures.ack_stalls import refused_hours_before_outage
from advisor.reliability.solver.sojourn_time import SojournTime
from cards import BROKERS_AND_RACKS, RARE, only
from replica_sets import measure_set, measured, parameters, solution
from sampled_runs import FAR, YEAR, card, off_by, sample

PAIR = Cluster.uniform(2, 2)
LOAD = Workload(records_per_second=1.0, replication_delay_ms=0.0)
# A follower hangs; a leader that hangs does not stall writes.
LAG_MS, PER_YEAR, MINUTES = 30_000, 60.0, 1.5
LAGS = card(broker_lag={"per_year": PER_YEAR, "minutes": MINUTES})
WELL = 1.0 / (1.0 + PER_YEAR / YEAR * MINUTES / 60.0)
# Delivery timeouts below, within and above the 30 to 45 s of a stall by a hung follower.
SHORT = {"delivery_timeout_ms": 10_000, "request_timeout_ms": 5_000}
MIDDLE = {"delivery_timeout_ms": 40_000, "request_timeout_ms": 5_000}
LONG = {"delivery_timeout_ms": 60_000}


def pair(**settings: object) -> Config:
    given = {"kafka_version": "4.1", "min_insync_replicas": 1, "acks": "all", **settings}
    return Config(replication_factor=2, replica_lag_time_max_ms=LAG_MS, **given)


@pytest.mark.parametrize(
    ("settings", "timeout_s"),
    [
        (SHORT, 10.0),
        (MIDDLE, 40.0),
        (LONG, 60.0),
        ({"retries": 0}, 30.0),
        ({"retries": 0, "request_timeout_ms": 4_000}, 4.0),
        ({"retries": 1, "request_timeout_ms": 20_000}, 40.1),
        # No retries, no delivery timeout: the oldest defaults.
        ({"kafka_version": "2.0"}, 30.0),
        ({"acks": 1, "retries": 0}, math.inf),
    ],
)
def test_a_hung_follower_refuses_what_exceeds_the_timeout(
    settings: dict[str, object], timeout_s: float
) -> None:
    """E[(stall - timeout)+] of a stall uniform over 30 to 45 s, one record a second."""
    found = evaluate(PAIR, pair(**settings), LAGS, LOAD)
    beyond, _ = integrate.quad(
        lambda wait: max(wait - timeout_s, 0.0) / 15.0, 30.0, 45.0, points=[40.0, 40.1]
    )
    assert found.records_refused_per_year == pytest.approx(WELL * PER_YEAR * beyond, rel=1e-9)


def test_a_dead_follower_refuses_what_exceeds_the_timeout() -> None:
    """Detection takes 9 s: a timeout of 4 s refuses 5 s of records more than one of 9 s.

    Without retries both refuse the same in outages.
    """
    model = card(broker_crash={"per_year": 10.0, "minutes": 60.0}, detection={"seconds": 9.0})
    short, long = (
        evaluate(PAIR, pair(retries=0, request_timeout_ms=limit_ms), model, LOAD)
        for limit_ms in (4_000, 9_000)
    )
    up = 1.0 / (1.0 + 10.0 / YEAR)
    more = short.records_refused_per_year - long.records_refused_per_year
    assert more == pytest.approx(up**2 * 10.0 * 5.0, rel=1e-9)
    assert long.records_refused_per_year > 0.0


@pytest.mark.parametrize(
    ("settings", "outage_s", "whole_s"),
    [
        (SHORT, 10.0, 10.0),
        (MIDDLE, 40.0, 40.0),
        (LONG, 60.0, 60.0),
        ({"delivery_timeout_ms": 120_000}, 120.0, 120.0),
        ({"retries": 0}, 0.0, 30.0),
        ({"kafka_version": "2.0", "retries": 900}, 90.0, math.inf),
    ],
)
def test_the_stall_before_an_outage_counts_towards_the_timeout(
    settings: dict[str, object], outage_s: float, whole_s: float
) -> None:
    """Min ISR 2 of 2: a record waits for the hung follower, then in the outage that follows.

    It is refused if stall and outage together exceed its timeout.
    """
    found = evaluate(PAIR, pair(min_insync_replicas=2, **settings), LAGS, LOAD)
    mean = MINUTES * 60.0

    def refused(written: float) -> float:
        """Probability that a record is written so long before the outage and refused."""
        waits = min((45.0 - written) / 15.0, 1.0)
        left = max(min(whole_s - written, outage_s), 0.0)
        expired = outage_s == 0.0 or written > whole_s
        return waits * (1.0 if expired else math.exp(-left / mean))

    before, _ = integrate.quad(refused, 0.0, 45.0, points=[10.0, 30.0, 40.0], epsrel=1e-12)
    within = mean * math.exp(-outage_s / mean)
    expected = WELL * PER_YEAR * (before + within)
    assert found.records_refused_per_year == pytest.approx(expected, rel=1e-9)


def test_short_outages_after_long_stalls_are_resolved() -> None:
    """Outages of milliseconds after stalls of a minute, against a sum over many thousand steps."""
    quick = card(broker_lag={"per_year": PER_YEAR, "minutes": 1e-4})
    config = pair(min_insync_replicas=2, **MIDDLE)
    constants = parameters(config, quick, LOAD, 2).constants
    structure = ctmc.whole_structure(
        constants, FaultEnvironment((0, 1), possible_mechanisms(quick))
    )
    solved = solution(structure, config, quick, LOAD, 2)
    outage = SojournTime(solved.generator, ~structure.writable)
    found = refused_hours_before_outage(
        IsrStalls.of(config, quick), outage, ProducerTimeouts.of(config)
    )
    mean = 0.006
    # A record written less than 40 s before a short outage is refused if the outage outlasts it.
    written = 40.0 - np.geomspace(1e-9, 10.0, 200_001)
    chance = np.exp(-(40.0 - written) / mean) * np.minimum((45.0 - written) / 15.0, 1.0)
    expected = -np.trapezoid(chance, written) + 5.0**2 / 30.0
    assert found.max() * 3600.0 == pytest.approx(expected, rel=1e-7)


BOTH = card(
    broker_lag={"per_year": 60.0, "minutes": 1.5},
    broker_crash={"per_year": 40.0, "minutes": 2.0},
    detection={"seconds": 9.0},
)


@pytest.mark.parametrize("replicas", [2, 3])
@pytest.mark.parametrize(
    "settings",
    [
        SHORT,
        MIDDLE,
        {"delivery_timeout_ms": 5_000, "request_timeout_ms": 2_000},
        {"retries": 0},
        {"retries": 12},
        {"retries": 70, "request_timeout_ms": 500},
        {},
    ],
    ids=str,
)
def test_sampled_and_computed_refusals_agree(replicas: int, settings: dict[str, object]) -> None:
    """Hung and crashed followers, short and long timeouts, outages after the stalls."""
    config = Config(
        kafka_version="4.1",
        replication_factor=replicas,
        min_insync_replicas=2,
        acks="all",
        **settings,
    )
    cluster = Cluster.uniform(replicas, replicas)
    found, _ = sample(cluster, config, BOTH, LOAD, years=10_000)
    exact = evaluate(cluster, config, BOTH, LOAD)
    assert abs(off_by(found.records_refused_per_year, exact.records_refused_per_year)) < FAR
    assert set(found.causes["records_refused_per_year"]) == set(BOTH.mechanisms)


@pytest.mark.parametrize("settings", [SHORT, {"retries": 0}, {}], ids=str)
@pytest.mark.parametrize("min_isr", [1, 2])
def test_truncation_stays_within_the_error_bound(min_isr: int, settings: dict[str, object]) -> None:
    """The untruncated chain's refusals differ from the truncated one's by at most its bound."""
    config = Config(
        replication_factor=3, min_insync_replicas=min_isr, acks="all", **settings
    ).changed(kafka_version="4.2")
    model, name = only("three_az_cloud", BROKERS_AND_RACKS, RARE), "records_refused_per_year"
    kept = measure_set((0, 1, 2), config, model, LOAD, 3)
    constants = parameters(config, model, LOAD, 3).constants
    structure = ctmc.whole_structure(
        constants, FaultEnvironment((0, 1, 2), possible_mechanisms(model))
    )
    full = measured(solution(structure, config, model, LOAD, 3), config, model)
    assert kept.states < full.states
    off = abs(math.fsum(kept.causes[name].values()) - math.fsum(full.causes[name].values()))
    assert off <= kept.errors[name]


@pytest.mark.parametrize(
    ("settings", "wait_s"),
    [
        (SHORT, 37.5),
        ({"retries": 0}, 37.5),
        # Without a timeout nothing is refused, and acks=1 waits for no follower.
        ({"retry_backoff_ms": 0, "kafka_version": "2.0", "retries": 2**31 - 1}, 0.0),
        ({"acks": 1}, 0.0),
    ],
)
def test_truncated_stalls_may_refuse_all_their_records(
    settings: dict[str, object], wait_s: float
) -> None:
    """Entries into truncated states and stalls in them: each may be a whole stall by a hung one."""
    config = pair(**settings)
    constants = parameters(config, LAGS, LOAD, 2).constants
    structure = ctmc.whole_structure(constants, FaultEnvironment((0, 1), possible_mechanisms(LAGS)))
    solved = solution(structure, config, LAGS, LOAD, 2)
    name, stalls, ways_out = "records_refused_per_year", 3e-3, 2e-3
    without = measured(solved, config, LAGS).errors[name]
    solved.__dict__["_truncation_error"] = [0.0, 0.0, 0.0, 0.0, stalls]
    solved.__dict__["_truncated_flux"] = (ways_out, 0.0)
    more = measured(solved, config, LAGS).errors[name] - without
    assert more == pytest.approx((stalls + ways_out) * wait_s * YEAR, rel=1e-3)


def test_retries_without_a_deadline_refuse_nothing():
    """Kafka 2.0 has no delivery timeout: two billion retries outlast every outage."""
    config = Config(kafka_version="2.0", replication_factor=3, acks="all", retries=2**31 - 1)
    found = evaluate(Cluster.uniform(brokers=6, racks=3), config, load_model("three_az_cloud"))
    assert found.records_refused_per_year == 0.0
