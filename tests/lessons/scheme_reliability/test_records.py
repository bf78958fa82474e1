"""Records that other schemes lose: closed forms, and Kafka where both agree."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import integrate

import conditions
from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.lessons.scheme_reliability.comparison import SchemeRow, compare_schemes, rows_beside
from advisor.lessons.scheme_reliability.quorum_rules import (
    SCHEMES,
    Outage,
    Quorums,
    early_end,
    settle,
)
from advisor.lessons.scheme_reliability.state_space import explored
from advisor.reliability import measure_table
from advisor.reliability.case import possible_mechanisms
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.failure_model import load_model
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.failures.mechanisms import BrokerEvent
from advisor.reliability.measures import records_lost
from advisor.reliability.statespace.flush_window import Outages
from sampled_runs import card

YEAR = 8760.0
RECORDS = "acked_records_lost_per_year"
# One record an hour: records lost are hours of writing.
HOURLY = Workload(records_per_second=1 / 3600, replication_delay_ms=0.0, retention_hours=168.0)
FLUSH_HOURS, PATIENCE_HOURS = 0.01, 2.0
UNFLUSHED = ("synchronous", "majority", "asynchronous")


def rows(
    model: FailureModel, replicas: int, load: Workload = HOURLY, **settings: object
) -> Mapping[str, SchemeRow]:
    config = Config(
        **{"replication_factor": replicas, "min_insync_replicas": 1, "acks": "all", **settings}
    )
    # The other schemes have no controller quorum: Kafka's is out of reach.
    elsewhere = {101: "x", 102: "y", 103: "z"}
    cluster = Cluster.uniform(brokers=replicas, racks=replicas, controllers=elsewhere)
    return {row.name: row for row in compare_schemes(cluster, config, model, load)}


def test_with_one_replica_all_schemes_are_kafka() -> None:
    """No followers and no votes: every measure is that of Kafka with RF 1.

    The flushed majority loses as Kafka does if flushing takes no time.
    """
    mechanisms = {
        "broker_crash": {"per_year": 20, "minutes": 60},
        "broker_power": {"per_year": 5, "minutes": 30},
        "broker_destroyed": {"per_year": 2, "hours": 12},
        "broker_restart": {"per_year": 12, "minutes": 8},
    }
    for flush, names in (({"seconds": 30}, UNFLUSHED), ({"seconds": 0}, SCHEMES)):
        found = rows(card(**mechanisms, flush=flush), replicas=1)
        for name in names:
            for measure in measure_table.names():
                own, same = getattr(found[name], measure), getattr(found["isr"], measure)
                assert own == pytest.approx(same, rel=records_lost.ACCURACY), (name, measure)
        assert found["isr"].acked_records_lost_per_year > 0


def test_what_a_stale_leader_drops_is_what_kafkas_unclean_leader_drops() -> None:
    """Two replicas that return with their logs: the first to return leads, in both chains.

    Asynchronous without replication delay, and Kafka with unclean elections and without ELR. All
    losses are gaps of stale leaders.
    """
    model = card(
        broker_crash={"per_year": 50, "minutes": 600}, rack_network={"per_year": 20, "minutes": 90}
    )
    unclean = {"unclean_leader_election_enable": True, "eligible_leader_replicas": False}
    found = rows(model, replicas=2, **unclean)
    assert found["isr"].acked_records_lost_per_year > 1
    for measure in (RECORDS, "loss_events_per_year", "records_refused_per_year"):
        same = pytest.approx(getattr(found["isr"], measure), rel=records_lost.ACCURACY)
        assert getattr(found["asynchronous"], measure) == same


def test_where_nothing_is_lost_refusals_are_those_of_min_isr_rf() -> None:
    """Crashes and network partitions: synchronous is Kafka with min ISR 3, retries included."""
    model = card(
        broker_crash={"per_year": 50, "minutes": 600},
        rack_network={"per_year": 20, "minutes": 90},
        detection={"seconds": 9},
    )
    found = rows(model, replicas=3, min_insync_replicas=3, delivery_timeout_ms=3_600_000)
    for measure in (RECORDS, "records_refused_per_year", "write_unavailability", "write_stalled"):
        same = pytest.approx(getattr(found["isr"], measure), rel=1e-12)
        assert getattr(found["synchronous"], measure) == same
    assert found["synchronous"].acked_records_lost_per_year == 0
    assert found["synchronous"].records_refused_per_year > 0


@pytest.mark.parametrize("name", ["synchronous", "majority"])
def test_losing_both_disks_loses_a_whole_log(name: str) -> None:
    """Replacement takes 12 h: event rate in closed form, each a log of its age or retention.

    Writes need both replicas, so the log grows only while both are up; a log younger than the
    retention loses its age, with mean ``1 - exp``.
    """
    rate, repair = 50 / YEAR, 1 / 12
    one = 2 * rate / (rate + repair)
    unwritten = rate * one / repair
    none = (rate * one + rate * unwritten) / (2 * repair)
    whole = 1 + one + none + unwritten
    per_hour = one * rate / whole
    per_written_hour = per_hour * whole
    hours = -math.expm1(-per_written_hour * HOURLY.retention_hours) / per_written_hour
    found = rows(card(broker_destroyed={"per_year": 50, "hours": 12}), replicas=2)[name]
    assert found.acked_records_lost_per_year == pytest.approx(per_hour * YEAR * hours, rel=1e-12)


@pytest.mark.parametrize("replicas", [1, 2, 3])
def test_power_lost_everywhere_costs_what_was_not_flushed(replicas: int) -> None:
    """Power failures times flush seconds times record rate; a flushed majority loses nothing.

    A synchronous scheme loses only while all replicas are up; all are back at the same moment.
    """
    per_year, minutes, seconds = 4, 90, 30
    model = card(
        cluster_power={"per_year": per_year, "minutes": minutes}, flush={"seconds": seconds}
    )
    load = Workload(records_per_second=100.0, replication_delay_ms=0.0)
    found = rows(model, replicas, load)
    power, back = per_year / YEAR, 60 / minutes
    whole_up = back / (back + power)
    expected = whole_up * per_year * seconds * load.records_per_second
    assert found["synchronous"].acked_records_lost_per_year == pytest.approx(expected, rel=1e-12)
    assert found["flushed majority"].acked_records_lost_per_year == 0
    assert found["majority"].acked_records_lost_per_year >= expected * (1 - 1e-12)


@pytest.mark.parametrize("name", ["synchronous", "majority"])
def test_what_one_page_cache_lost_goes_with_the_disk_of_the_other(name: str) -> None:
    """Two replicas, one without power, the other destroyed: the last seconds are lost.

    Retention equals the flush time here, so that this loss and that of both disks cost the same. A
    power failure within the flush window of the other log costs half. Leading order; neglected
    terms are of order rate times duration.
    """
    power, dark, destroyed, gone, flush = 2 / YEAR, 1.0, 1 / YEAR, 1.0, 0.01
    model = card(
        broker_power={"per_year": power * YEAR, "minutes": dark * 60},
        broker_destroyed={"per_year": destroyed * YEAR, "hours": gone},
        flush={"seconds": flush * 3600},
    )
    load = Workload(records_per_second=1.0, replication_delay_ms=0.0, retention_hours=flush)
    events = 2 * destroyed * (power * dark + destroyed * gone) * YEAR
    early = 2 * (power + destroyed) * power * flush * YEAR
    found = rows(model, 2, load)[name]
    off = 5 * (power * dark + destroyed * gone)
    records = (events + early / 2) * flush * 3600
    assert found.acked_records_lost_per_year == pytest.approx(records, rel=off)
    # The tolerance would detect missing flush-window losses.
    assert off < early / 2 / events < 0.1


@pytest.mark.parametrize("name", ["synchronous", "majority"])
def test_power_lost_twice_before_all_is_on_disk_loses_the_last_seconds(name: str) -> None:
    """Two replicas: a power failure within F of another loses records, 2 power^2 F times a year.

    It must precede the first one's recovery and any other transition: a fraction power / pace
    times 1 - exp(-pace F) of the failures that begin with both up. A failure after t loses F - t of
    writing, and a record with 1 - exp(t - F), at one an hour. Kafka with min ISR 2 is the same.
    """
    power, back, flush = 30 / YEAR, 1.0, 1 / 6
    model = card(
        broker_power={"per_year": power * YEAR, "minutes": back * 60},
        flush={"seconds": flush * 3600},
    )
    found = rows(model, 2, min_insync_replicas=2)
    pace = power + 1 / back
    soon = -math.expm1(-pace * flush) / pace
    firsts = 2 * power * YEAR / (1 + power * back) ** 2
    cuts, hours = firsts * power * soon, firsts * power * (flush - soon) / pace
    some, _ = integrate.quad(
        lambda t: math.exp(-pace * t) * -math.expm1(t - flush), 0.0, flush, epsabs=0.0
    )
    events = firsts * power * some
    # Leading order: neglects brokers already down, and those that recover in time.
    off = 2 * power * back + pace * flush / 2
    assert cuts == pytest.approx(2 * power**2 * flush * YEAR, rel=off)
    assert hours == pytest.approx(cuts * flush / 2, rel=pace * flush / 3)
    for row in (found[name], found["isr"]):
        assert row.loss_events_per_year == pytest.approx(events, rel=1e-12)
        assert row.acked_records_lost_per_year == pytest.approx(hours, rel=1e-12)
        # The first loss starts from healthy, later ones from a broker down.
        assert row.mean_years_to_loss == pytest.approx(1 / events, rel=4 * power * back)
    assert found["flushed majority"].loss_events_per_year == 0


def early_chance(name: str, levels: tuple[int, ...], crashed: float, dark: float) -> float:
    """Probability that early power loses slot 1's newest records for good; the others crashed.

    Parameters are the log levels before, and the repair rates per hour.
    """
    scheme = Quorums.of(name, len(levels))
    mechanisms = frozenset({"broker.crash", "broker.power"})
    environment = FaultEnvironment(tuple(range(len(levels))), mechanisms)
    others = (conditions.CRASHED,) * (len(levels) - 2)
    stopped = settle(scheme, (conditions.CRASHED, conditions.WELL, *others), levels)
    after = (conditions.CRASHED, conditions.DARK, *others)
    change = fault_processes.Change("broker.power", after, ((BrokerEvent.POWER, (1,)),))
    outages: Outages[Outage] = Outages()
    end = early_end(scheme, stopped, change, environment, outages)
    rates = {"repair broker.crash": crashed, "repair broker.power": dark}
    odds, ends = outages.odds([end], {name: number for number, name in enumerate(rates)})
    return float(odds.of(ends, np.array(list(rates.values())))[0])


@pytest.mark.parametrize(("crashed", "dark"), [(1.0, 1.0), (1.0, 50.0), (20.0, 0.1)])
def test_recovery_order_decides_whether_early_power_loses(crashed: float, dark: float) -> None:
    """A majority of three stops as one crashes with another down; then the last loses power.

    Only the crashed broker holds the newest records; they are lost if the other two return first.
    If another held everything, nothing is lost.
    """
    either = 2.0 * crashed + dark
    last = dark / either / 2.0 + crashed / either * dark / (crashed + dark)
    assert early_chance("majority", (0, 0, 1), crashed, dark) == pytest.approx(last, rel=1e-12)
    assert early_chance("majority", (0, 0, 0), crashed, dark) == 0.0
    assert early_chance("majority", (1, 0, 1), crashed, dark) == 1.0
    assert early_chance("synchronous", (0, 0, 1), crashed, dark) == 0.0


def test_losses_that_occur_anyway_are_not_attributed_to_early_power() -> None:
    """Slots 0 and 1 of five hold the newest records, and 1 loses power. The first three lead.

    Of the ten triples that may return first, three have 1 and not 0. One has neither, and loses
    with or without early power.
    """
    assert early_chance("majority", (0, 0, 1, 1, 1), 1.0, 1.0) == pytest.approx(0.3, rel=1e-12)


def test_a_tail_costs_the_records_that_only_the_leader_had() -> None:
    """Asynchronous: failures of a leader with a follower, times its mean lead in records."""
    down = 50 / YEAR / (50 / YEAR + 1 / 10)
    two_or_more = (1 - down) ** 3 + 3 * down * (1 - down) ** 2
    model = card(broker_crash={"per_year": 50, "minutes": 600})
    with_tails, without = (
        rows(model, 3, Workload(records_per_second=10, replication_delay_ms=delay_ms))
        for delay_ms in (500, 0)
    )
    found = with_tails["asynchronous"].acked_records_lost_per_year
    rest = without["asynchronous"].acked_records_lost_per_year
    # Rounding of a difference of large numbers, which include the same gaps.
    rounding = 1e-14 * found / (50 * two_or_more * 5)
    assert found - rest == pytest.approx(50 * two_or_more * 5, rel=1e-11 + rounding)
    for name in ("synchronous", "majority"):
        assert with_tails[name] == without[name]


@pytest.mark.parametrize("name", SCHEMES)
@pytest.mark.parametrize("copying", [True, False])
def test_gap_maps_lead_to_gaps_that_exist(name: str, copying: bool) -> None:
    """Transitions map gaps to gaps of the target state; settling again changes nothing."""
    model = card(
        broker_crash={"per_year": 1, "minutes": 1},
        broker_lag={"per_year": 1, "minutes": 1},
        broker_destroyed={"per_year": 1, "hours": 1},
        rack_power={"per_year": 1, "minutes": 1},
        cluster_power={"per_year": 1, "minutes": 1, "not_returning": 0.1},
    )
    scheme = Quorums.of(name, 3, copying)
    found = explored(scheme, FaultEnvironment((0, 0, 1), possible_mechanisms(model)))
    there = np.arange(found.gap_map.shape[1]) < found.gaps[found.source][:, None]
    after = found.gaps[found.target][:, None]
    assert (found.gap_map[there] < np.broadcast_to(after, there.shape)[there]).all()
    assert (found.gap_map[~there] < 0).all()
    assert (found.unflushed < found.gaps[found.target]).all()
    for own, levels in found.keys:
        view = settle(scheme, own, levels)
        assert view.levels == levels
        assert not view.lost


def test_acks_0_reports_dropped_records() -> None:
    """Kafka's row says how many records it drops; other schemes respond, as with acks=1."""
    model, cluster = load_model("three_az_cloud"), Cluster.uniform(brokers=3, racks=3)
    config = Config(replication_factor=3, min_insync_replicas=2, acks=0)
    asked = rows_beside(evaluate(cluster, config, model))
    answered = rows_beside(evaluate(cluster, config.changed(acks=1), model))
    assert asked[1:] == answered[1:]
    assert asked[0].acked_records_lost_per_year == 0
    assert asked[0].records_dropped_per_year > 0
    assert all(row.records_dropped_per_year == 0 for row in asked[1:])
