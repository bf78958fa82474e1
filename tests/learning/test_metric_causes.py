"""What stopped a broker, by its signs: told where they prove it, and never by guessing."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from advisor.learning.evidence import ClusterHistory, Outage
from advisor.learning.metric_causes import BROKER_DOWN, DIED, OUT_OF_SYNC, SEVERAL_DOWN
from advisor.learning.metric_names import Metric, key_of
from advisor.learning.metric_outages import history_of
from advisor.learning.prometheus import Series
from advisor.learning.prometheus import series_of as read_series
from advisor.learning.transitions import samples_of
from metric_histories import Act, History, Kind, World, busy_acts, happened
from metric_series import Scraping, series_of

SEED, STEP = 5, 5.0
HOSTS = Scraping(step_s=STEP, node_exporter=True)
CRASH, POWER, RESTART = "broker.crash", "broker.power", "broker.restart"


def scraped(history: History, scraping: Scraping) -> list[Series]:
    """All samples at the times of their scrapes, as a dump or a live server has them."""
    rows: list[Series] = []
    for series in series_of(history, scraping):
        key = key_of(series.labels)
        if key is not None and len(series.times):
            rows += read_series(key, series.labels, series.times, series.values)
    return rows


def told(rows: Sequence[Series]) -> ClusterHistory:
    (samples,) = samples_of(rows, "metrics")
    return history_of(samples, "metrics")


def done(*acts: Act, scraping: Scraping = HOSTS) -> ClusterHistory:
    """What is told of some acts, the first of them after ten minutes and more."""
    return told(scraped(happened(World(), acts, SEED, 8_000.0), scraping))


def names(history: ClusterHistory) -> list[str]:
    return [outage.mechanism for outage in history.outages]


@pytest.mark.parametrize("version", ["3.9", "4.3"])
def test_every_kind_is_told_where_metrics_prove_it(version: str) -> None:
    """Every 5 s, with the hosts' own metrics: each event by its mechanism, and nothing else."""
    world = World(version=version)
    acts, seconds = busy_acts(world, SEED, 4)
    history = happened(world, acts, SEED, seconds)
    result = told(scraped(history, HOSTS))
    true = Counter(outage.kind.value for outage in history.outages)
    assert Counter(names(result)) == true
    assert {name: seen.events for name, seen in result.seen.items()} == {
        name: count for name, count in true.items() if name != Kind.RACK.value
    }
    for outage in result.outages:
        assert _was(history, outage), outage
    unclean = result.seen[RESTART].shares["unclean"]
    assert unclean.happened >= 3
    dies = result.seen["broker.gray"].shares["dies"]
    assert dies == (sum(o.dies for o in history.outages), 4)


def _was(history: History, outage: Outage) -> bool:
    start = outage.start.timestamp()
    return any(
        true.kind.value == outage.mechanism
        and true.start - 3 * STEP <= start <= true.end + 3 * STEP
        for true in history.outages
    )


@pytest.mark.parametrize("step_s", [15.0, 30.0, 60.0])
def test_longer_steps_tell_less_and_nothing_false(step_s: float) -> None:
    """What is not told is called so, and the card keeps its numbers for it."""
    world = World()
    acts, seconds = busy_acts(world, SEED, 3)
    history = happened(world, acts, SEED, seconds)
    result = told(scraped(history, Scraping(step_s=step_s, node_exporter=True)))
    untold = {BROKER_DOWN, SEVERAL_DOWN, DIED, OUT_OF_SYNC}
    late = 3 * step_s
    for outage in result.outages:
        start = outage.start.timestamp()
        near = [o for o in history.outages if o.start - late <= start <= o.end + late]
        assert near, outage
        assert outage.mechanism in untold | {o.kind.value for o in near}, outage
    assert CRASH not in result.seen
    assert {"broker.lag", "broker.gray", "cluster.controller"} <= set(result.seen)


def test_without_its_host_a_crash_is_no_host_failure_and_no_crash() -> None:
    """Both end a process in the same way; the restart is told apart from both."""
    scraping = Scraping(step_s=STEP)
    acts = (Act(Kind.CRASH, 1_000.0, (2,), 300.0), Act(Kind.RESTART, 3_000.0, (3,), 30.0))
    history = done(*acts, scraping=scraping)
    assert names(history) == [DIED, RESTART]
    assert CRASH not in history.seen
    assert history.seen[RESTART].events == 1
    assert any(CRASH in note and POWER in note for note in history.notes)


@pytest.mark.parametrize(("seconds", "name"), [(0.001, CRASH), (10.0, DIED)])
def test_a_host_that_refuses_at_once_is_up(seconds: float, name: str) -> None:
    """A scrape of a host that is gone runs into its timeout."""
    act = Act(Kind.CRASH, 1_000.0, (2,), 300.0)
    rows = scraped(happened(World(), [act], SEED, 4_000.0), Scraping(step_s=STEP))
    ups = [row for row in rows if row.metric is Metric.UP]
    rows += [
        Series(up.cluster, up.target, Metric.SCRAPE_SECONDS, up.times, took)
        for up in ups
        for took in [np.where(up.values == 0.0, seconds, 0.2)]
    ]
    assert names(told(rows)) == [name]


def test_overlapping_restarts_are_no_common_cause() -> None:
    """Two restarts, the second of which did not wait, which a note says."""
    history = done(Act("overlap", 1_000.0, (2, 5), 60.0))
    assert names(history) == [RESTART, RESTART]
    assert history.seen["cluster.crash"].events == 0
    assert any("overlap" in note for note in history.notes)


def test_several_at_once_are_one_event() -> None:
    """With the brokers that it struck, of all."""
    history = done(Act(Kind.TOGETHER, 1_000.0, (1, 2, 6), 120.0))
    (outage,) = history.outages
    assert outage.mechanism == "cluster.crash"
    assert len(outage.brokers) == 3
    assert history.seen["cluster.crash"].struck == ((3, 6),)


@pytest.mark.parametrize(
    ("zones", "name"), [({1: "a", 4: "a"}, "rack.power"), ({1: "a", 4: "b"}, SEVERAL_DOWN)]
)
def test_a_rack_is_told_by_its_zone(zones: dict[int, str], name: str) -> None:
    """Hosts that fail at once stand in one rack, if labels say where they stand."""
    rows: list[Series] = []
    history = happened(World(), [Act(Kind.RACK, 1_000.0, (1, 4), 300.0)], SEED, 4_000.0)
    for series in series_of(history, HOSTS):
        number = int(series.labels["instance"].split(".")[0].rpartition("-")[2])
        zone = {1: "a", 4: "a", 2: "b", 5: "b"} | zones
        labels = {**series.labels, "topology_kubernetes_io_zone": zone.get(number, "c")}
        key = key_of(labels)
        if key is not None and len(series.times):
            rows += read_series(key, labels, series.times, series.values)
    result = told(rows)
    assert names(result) == [name]
    assert result.racks == 3
    if name == "rack.power":
        assert result.seen[name].events == 1
        assert result.exposures[name] == pytest.approx(3 * 4_000.0 / 86_400.0 / 365.0, rel=0.1)


def test_failed_log_directories_are_full_disks() -> None:
    """Where the brokers said so before they stopped."""
    act = Act(Kind.TOGETHER, 1_000.0, (1, 2), 120.0)
    history = happened(World(), [act], SEED, 4_000.0)
    rows = scraped(history, Scraping(step_s=STEP))
    start = history.outages[0].start
    for row in [row for row in rows if row.metric is Metric.LEADERS]:
        struck = row.target.startswith(("broker-1", "broker-2"))
        failed = np.where(np.isnan(row.values), np.nan, 0.0)
        failed[(row.times > start - 20.0) & (row.times < start) & struck] = 1.0
        rows.append(Series("", row.target, Metric.OFFLINE_LOG_DIRS, row.times, failed))
    assert names(told(rows)) == ["cluster.disk_full"]


def test_a_follower_that_lags_is_no_outage() -> None:
    """`IsrShrinks` rises on its leaders; how long, and no crash."""
    history = done(Act(Kind.LAG, 1_000.0, (2,), 120.0))
    assert names(history) == ["broker.lag"]
    (minutes,) = history.seen["broker.lag"].lengths["minutes"].ended
    assert minutes == pytest.approx(2.0, abs=0.3)
    assert history.seen[CRASH].events == 0


def test_a_half_dead_leader_that_dies_is_one_event() -> None:
    """Its death is how that ended, and no crash of its own."""
    act = Act(Kind.HALF_DEAD, 1_000.0, (2,), 200.0, dies=True)
    history = done(act)
    assert names(history) == ["broker.gray"]
    assert history.seen["broker.gray"].shares == {"dies": (1, 1), "hard": (0, 1)}
    assert history.seen[CRASH].events == 0
    # Every minute its death looks as a restart does: whether it died is not known.
    vague = done(act, scraping=Scraping(step_s=60.0))
    assert "dies" not in vague.seen["broker.gray"].shares


def test_a_few_events_that_are_not_told_shorten_the_time_that_counts() -> None:
    """Nine restarts are told, one is not: a tenth of the exposure is left out."""
    acts = [Act(Kind.RESTART, 600.0 * n + 600.0, (n % 6 + 1,), 30.0) for n in range(10)]
    rows = scraped(happened(World(), acts, SEED, 8_000.0), HOSTS)
    beans = next(r for r in rows if r.metric is Metric.LEADERS and r.target.startswith("broker-4"))
    without = set(beans.times[np.isnan(beans.values)].tolist())
    hidden = []
    for row in rows:
        # Of the last outage, of broker 4, only its end is seen.
        late = row.times > 5_900.0 + World().start
        values = row.values.copy()
        if row.metric is Metric.UNDER_REPLICATED:
            values[late & ~np.isnan(values)] = 0.0
        if row.metric is Metric.UP and row.target == beans.target:
            values[late & np.isin(row.times, list(without))] = 0.0
        seen = ~late if row.metric in _SIGNS else np.ones(len(late), dtype=bool)
        hidden.append(Series("", row.target, row.metric, row.times[seen], values[seen]))
    whole, part = told(rows), told(hidden)
    assert whole.seen[RESTART].events == 10
    assert names(part).count(BROKER_DOWN) == 1
    assert part.seen[RESTART].events == 9
    assert part.exposures[RESTART] == pytest.approx(0.9 * whole.exposures[RESTART], rel=0.02)


_SIGNS = (Metric.FENCED, Metric.SHUTTING_DOWN, Metric.REGISTRATION, Metric.BROKER_STATE)


@pytest.mark.parametrize("step_s", [30.0, 60.0])
def test_deaths_at_once_that_no_scrape_saw_may_have_one_cause(step_s: float) -> None:
    """Back before the next scrape: nothing says that brokers were not down together."""
    acts = [Act(Kind.TOGETHER, at, (2, 3), 1.0) for at in (1_201.0, 1_606.0, 2_403.0, 2_833.0)]
    result = done(*acts, scraping=Scraping(step_s=step_s))
    assert names(result) == [SEVERAL_DOWN] * 4
    assert "cluster.crash" not in result.seen


def test_who_dies_at_the_end_is_missed_though_others_are_scraped_first() -> None:
    """They may lack its replicas in the scrape after its last one, before its own one fails."""
    for late_s in range(0, 116, 6):
        act = Act(Kind.CRASH, 7_850.0 + late_s, (4,), 900.0)
        (outage,) = done(act, scraping=Scraping(step_s=60.0)).outages
        assert (outage.mechanism, outage.end) == (BROKER_DOWN, None)


@pytest.mark.parametrize("step_s", [5.0, 15.0, 30.0, 60.0])
def test_a_lost_quorum_is_not_overlooked_between_scrapes(step_s: float) -> None:
    """Ninety seconds: at one scrape a minute they are seen once or twice."""
    acts = [Act(Kind.QUORUM, 1_200.0 + 607.0 * n, (1, 2), 95.0) for n in range(10)]
    result = done(*acts, scraping=Scraping(step_s=step_s))
    seen = result.seen["cluster.controller"]
    assert seen.events == len(acts) == len(result.outages)
