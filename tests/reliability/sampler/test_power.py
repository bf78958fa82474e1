"""Power failures within the flush window: sampled, and in closed form."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor import Cluster, Config, Workload, evaluate
from advisor.reliability.results.sampled import Estimate
from advisor.reliability.sampler.compiled.partition_kernel import strike_page_cache
from sampled_runs import FAR, QUIET, TRIO, YEAR, card, off_by, sample

PAIR = Cluster.uniform(brokers=2, racks=2)
BOTH = Config(replication_factor=2, min_insync_replicas=2)
FLUSH_HOURS = 1.0 / 6.0
# Long beside the flush time, yet a whole log that might be lost unseen weighs little.
LOAD = Workload(records_per_second=1.0, replication_delay_ms=0.0, retention_hours=5.0 * FLUSH_HOURS)


def near(found: Estimate, exact: float, off: float) -> bool:
    """Whether a measure was seen and agrees with a formula of a stated relative error."""
    if not found.seen:
        return False
    error = (math.log(found.high) - math.log(found.low)) / (2.0 * 1.96)
    return abs(math.log(found.value / exact)) < FAR * error + off


@pytest.mark.parametrize(
    ("per_year", "minutes", "cluster_per_year", "years"),
    [(30.0, 60.0, 0.0, 100_000), (8000.0, 6.0, 0.0, 200), (1000.0, 6.0, 1000.0, 500)],
    ids=["as by hand", "so often that all terms count", "the whole site too"],
)
def test_two_cuts_within_the_flush_time_lose_what_was_written_last(
    per_year: float, minutes: float, cluster_per_year: float, years: int
) -> None:
    """RF 2, min ISR 2: one goes dark, the other within F, before the first is back.

    Until then nothing was written for s, so that F - s of writing is lost; a cut of both loses F.
    Of two brokers, one dark leaves by another cut at c + l, or by its return at m.
    """
    flush = FLUSH_HOURS
    model = card(
        broker_power={"per_year": per_year, "minutes": minutes},
        cluster_power={"per_year": cluster_per_year, "minutes": minutes, "not_returning": 0.0},
        flush={"seconds": flush * 3600.0},
    )
    found, _ = sample(PAIR, BOTH, model, LOAD, years)
    power, site, back = per_year / YEAR, cluster_per_year / YEAR, 60.0 / minutes
    again = power + site
    one_dark = (2.0 * power + site) / back
    both_dark = (site + again * one_dark) / (2.0 * back)
    whole = 1.0 / (1.0 + one_dark + both_dark)
    pace = again + back
    soon = -math.expm1(-pace * flush) / pace
    events = whole * (site + 2.0 * power * again * soon)
    records = whole * (site * flush + 2.0 * power * again * (flush - soon) / pace) * 3600.0
    assert abs(off_by(found.loss_events_per_year, events * YEAR)) < FAR
    assert abs(off_by(found.acked_records_lost_per_year, records * YEAR)) < FAR


def test_who_went_dark_last_leads_without_what_a_crashed_one_has() -> None:
    """One crashes and keeps all, the other goes dark within F: it led last, so it leads again.

    What it had not flushed, F - s of writing, is cut off the log of the first. Leading order in
    rate times duration; what comes back within F is counted.
    """
    crash, power, flush, hours = 90.0 / YEAR, 10.0 / YEAR, FLUSH_HOURS, 1.0
    model = card(
        broker_crash={"per_year": crash * YEAR, "minutes": hours * 60.0},
        broker_power={"per_year": power * YEAR, "minutes": hours * 60.0},
        flush={"seconds": flush * 3600.0},
    )
    found, _ = sample(PAIR, BOTH, model, LOAD, years=60_000)
    pace = crash + power + 1.0 / hours
    soon = -math.expm1(-pace * flush) / pace
    paths = 2.0 * (crash + power) * power * YEAR
    off = 5.0 * (crash + power) * hours
    assert near(found.loss_events_per_year, paths * soon, off)
    assert near(found.acked_records_lost_per_year, paths * 3600.0 * (flush - soon) / pace, off)
    # Without the crashes, or with a loss of nothing, it would be a tenth.
    assert off < 0.1


def test_what_was_waited_for_was_not_written_last() -> None:
    """A follower that hangs stops writes a lag time after the last record that was acknowledged.

    Without ELR a leader that then goes dark leads again, and lacks what it had not flushed: those
    F without the wait. Leading order, beside two cuts of power.
    """
    lag, power, flush = 400.0 / YEAR, 10.0 / YEAR, FLUSH_HOURS
    lag_hours, dark_hours, lag_time_ms = 0.2, 1.0, 192_000
    model = card(
        broker_lag={"per_year": lag * YEAR, "minutes": lag_hours * 60.0},
        broker_power={"per_year": power * YEAR, "minutes": dark_hours * 60.0},
        flush={"seconds": flush * 3600.0},
    )
    config = BOTH.changed(kafka_version="3.9", replica_lag_time_max_ms=lag_time_ms)
    found, _ = sample(PAIR, config, model, LOAD, years=30_000)
    left = flush - 1.25 * lag_time_ms / 3_600_000.0
    soon_lagging = -math.expm1(-left / lag_hours) * lag_hours
    soon_dark = -math.expm1(-flush / dark_hours) * dark_hours
    off = 5.0 * (lag * lag_hours + power * dark_hours)
    events = power * (lag * soon_lagging + 2.0 * power * soon_dark)
    records = power * (
        lag * (left - soon_lagging) * lag_hours + 2.0 * power * (flush - soon_dark) * dark_hours
    )
    assert near(found.loss_events_per_year, events * YEAR, off)
    assert near(found.acked_records_lost_per_year, records * YEAR * 3600.0, off)


def test_what_one_cut_took_goes_with_the_disk_of_the_other() -> None:
    """One dark, the other destroyed: the last F of writing is gone, and is counted once.

    Retention and flush take equally long, so that both disks cost as much. Power that goes at s
    after the writing stopped, with the first broker, dark or destroyed, not back, takes F - s.
    Leading order; terms left out are a share of rate times duration.
    """
    power, dark, destroyed, gone, flush = 10.0 / YEAR, 1.0, 5.0 / YEAR, 1.0, 0.01
    model = card(
        broker_power={"per_year": power * YEAR, "minutes": dark * 60.0},
        broker_destroyed={"per_year": destroyed * YEAR, "hours": gone},
        flush={"seconds": flush * 3600.0},
    )
    load = Workload(records_per_second=1.0, replication_delay_ms=0.0, retention_hours=flush)
    found, _ = sample(PAIR, BOTH, model, load, years=300_000)
    later = 2.0 * destroyed * (power * dark + destroyed * gone) * flush
    early = 2.0 * power * (power + destroyed) * flush**2 / 2.0
    off = 5.0 * (power * dark + destroyed * gone)
    assert near(found.acked_records_lost_per_year, (later + early) * 3600.0 * YEAR, off)


@pytest.mark.parametrize("replicas", [2, 3])
def test_a_hung_follower_is_waited_for_though_writes_are_refused_without_it(replicas: int) -> None:
    """Min ISR = RF: it stalls all for 1.25 times the lag time, and is out of the ISR then."""
    per_hour = 10.0 / YEAR
    model = card(broker_lag={"per_year": 10.0, "minutes": 60.0})
    config = Config(
        replication_factor=replicas, min_insync_replicas=replicas, replica_lag_time_max_ms=30_000
    )
    cluster = Cluster.uniform(brokers=replicas, racks=replicas)
    found, _ = sample(cluster, config, model, QUIET, years=2000)
    followers = replicas - 1
    well = (1.0 / (1.0 + per_hour)) ** followers
    exact = well * followers * per_hour * 1.25 * 30.0 / 3600.0
    assert abs(off_by(found.write_stalled, exact)) < FAR


OFTEN = {
    "broker_power": {"per_year": 60.0, "minutes": 60.0},
    "broker_crash": {"per_year": 100.0, "minutes": 60.0},
    "broker_lag": {"per_year": 100.0, "minutes": 60.0},
    "rack_power": {"per_year": 20.0, "minutes": 120.0},
    "rack_network": {"per_year": 50.0, "minutes": 120.0},
    "flush": {"seconds": FLUSH_HOURS * 3600.0},
}
ALL_THREE = Config(replication_factor=3, min_insync_replicas=3)
TRIO_OF_RACKS = Cluster.uniform(brokers=3, racks=3)
CASES = {
    "with ELR": (PAIR, BOTH, ("broker_power", "broker_crash", "broker_lag")),
    "without ELR": (
        PAIR,
        BOTH.changed(kafka_version="3.9"),
        ("broker_power", "broker_crash", "broker_lag"),
    ),
    "min ISR 3 of 3": (Cluster.uniform(4, 2), ALL_THREE, ("rack_power", "broker_power")),
    "min ISR 2 of 3": (TRIO_OF_RACKS, TRIO, ("broker_power", "broker_crash")),
    "racks": (Cluster.uniform(4, 2), TRIO, ("rack_power", "rack_network", "broker_power")),
}
LOSSES = ("loss_events_per_year", "mean_years_to_loss", "acked_records_lost_per_year")


@pytest.mark.parametrize("case", CASES)
def test_the_chain_loses_as_much_to_early_power(case: str) -> None:
    """Sampled and computed losses agree, up to what a third failure within F could do."""
    cluster, config, names = CASES[case]
    model = card(**{name: OFTEN[name] for name in (*names, "flush")})
    found, _ = sample(cluster, config, model, LOAD, years=10_000)
    exact = evaluate(cluster, config, model, LOAD)
    at_once = sum(OFTEN[name]["per_year"] for name in names) * len(cluster.brokers) / YEAR
    for name in (*LOSSES, "write_stalled"):
        if getattr(exact, name) > 0.0:
            assert near(found.estimate(name), getattr(exact, name), at_once * FLUSH_HOURS), name


def test_what_takes_three_failures_is_within_the_error() -> None:
    """Three hosts lose power within F: the chain has no such loss, and says how many at most.

    Of three, any first, then the two others: 3 l^3 F^2, before any is back. The bound takes the
    third for lost whichever power goes with it, of three brokers rather than one.
    """
    per_year = 200.0
    model = card(broker_power={"per_year": per_year, "minutes": 600.0}, flush=OFTEN["flush"])
    found, _ = sample(TRIO_OF_RACKS, ALL_THREE, model, LOAD, years=20_000)
    exact = evaluate(TRIO_OF_RACKS, ALL_THREE, model, LOAD)
    in_flush = per_year / YEAR * FLUSH_HOURS
    healthy = 1.0 / (1.0 + per_year / YEAR * 10.0) ** 3
    by_hand = healthy * 3.0 * per_year * in_flush**2
    assert near(found.loss_events_per_year, by_hand, 3.0 * in_flush + FLUSH_HOURS / 10.0)
    assert exact.loss_events_per_year == 0.0
    assert exact.error_bounds["loss_events_per_year"] == pytest.approx(3.0 * by_hand, rel=1e-3)
    assert found.loss_events_per_year.low < exact.error_bounds["loss_events_per_year"]
    records = exact.error_bounds["acked_records_lost_per_year"]
    assert found.acked_records_lost_per_year.low < records


RECORDS = st.integers(0, 50)


@given(st.lists(RECORDS, max_size=3), RECORDS, RECORDS, st.booleans(), st.booleans())
def test_the_newest_records_are_taken_and_none_is_made(
    older: list[int], base: int, unflushed: int, spared: bool, early: bool
) -> None:
    """Of the whole log its end is cut off, at most as much as there is, and lost or put first."""
    now = 7.0
    gaps = np.array([0.0, *older]) if spared else np.array([*older, 0.0])
    one = SimpleNamespace(state=0, base_records=float(base), flushed_at=now + unflushed)
    control = SimpleNamespace(
        now=now,
        flush_hours=math.nan if early else unflushed,
        records_per_hour=1.0,
        retained_records=100.0,
    )
    sim = SimpleNamespace(control=[control], sets=[one], gaps=gaps[None, :])
    table = SimpleNamespace(states=[SimpleNamespace(gaps=len(older) + spared)])
    lost = strike_page_cache.py_func(table, sim, 0, early, spared)
    whole = base + sum(older)
    taken = min(unflushed, whole)
    # How far each part of the log reaches, the oldest first, before and after.
    reach = np.cumsum([base, *older[::-1]])
    left = np.array([one.base_records, *(gaps[1:] if spared else gaps[:-1])[::-1]])
    assert np.array_equal(np.cumsum(left), np.minimum(reach, whole - taken))
    assert (gaps[0], lost) == (taken, 0.0) if spared else lost == taken
