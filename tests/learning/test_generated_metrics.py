"""The generator of metrics shows what real brokers showed, and what it calls true is true."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from metric_histories import OF_CARDS, Act, History, Kind, World, busy_acts, happened
from metric_series import SPELLINGS, Scraping, Series, dump, query_range, series_of

AT = 1_000.0
EVERY_SECOND = Scraping(step_s=1.0)


def rows(history: History, name: str, scraping: Scraping = EVERY_SECOND) -> list[Series]:
    """The series of a metric, without those of controllers' processes."""
    every = series_of(history, scraping)
    return [s for s in every if s.labels["__name__"].endswith(name) and s.labels["job"] == "kafka"]


def controllers(history: History, name: str) -> list[Series]:
    """The series of a metric, a controller each."""
    every = series_of(history, EVERY_SECOND)
    return [s for s in every if s.labels["__name__"].endswith(name) and s.labels["job"] != "kafka"]


def first(series: Series, rule: Callable[[np.ndarray], np.ndarray], after: float) -> float:
    """When a series first obeys a rule after a moment."""
    return float(series.times[(series.times > after) & rule(series.values)].min())


def story(what: Kind | str, *brokers: int, seconds: float = 120.0, **world: object) -> History:
    """One act in a cluster of six."""
    return happened(World(**world), [Act(what, AT, brokers, seconds)], 1, 3_000.0)


def order_of_signs(history: History) -> float:
    """How long after `up` of broker 2 fell others reported partitions as under-replicated."""
    began = history.world.start + AT - 10.0
    up = next(s for s in rows(history, "up") if s.labels["instance"].startswith("broker-2."))
    reported = rows(history, "underreplicatedpartitions")
    rises = [s.times[(s.times > began) & (s.values > 0)] for s in reported]
    return min(float(t.min()) for t in rises if len(t)) - first(up, lambda v: v == 0.0, began)


def states(history: History) -> list[float]:
    """What a controller says of the registration of broker 2, without repeats."""
    every = controllers(history, "brokerregistrationstate")
    values = next(s.values for s in every if s.labels["broker"] == "2")
    values = values[~np.isnan(values)]
    return values[np.append(True, np.diff(values) != 0.0)].tolist()


def test_a_crash_shows_up_first_and_a_restart_under_replicated_first() -> None:
    """The order of the signs, and the states of the registration."""
    crash, restart = story(Kind.CRASH, 2), story(Kind.RESTART, 2)
    assert 5.0 < order_of_signs(crash) < 11.0
    assert -6.0 < order_of_signs(restart) < 0.0
    assert states(crash) == [30.0, 10.0, 30.0]
    assert states(restart) == [30.0, 20.0, 10.0, 30.0]
    assert not rows(story(Kind.CRASH, 2, version="3.9"), "brokerregistrationstate")


@pytest.mark.parametrize(("what", "low", "high"), [(Kind.RESTART, 0.0, 4.0), ("hard end", 7, 14)])
def test_a_hard_end_is_fenced_late(what: Kind | str, low: float, high: float) -> None:
    """Its broker is out of the ISRs at once, but fenced only when its session ends."""
    history = story(what, 2)
    fenced = controllers(history, "fencedbrokercount")[0]
    began = history.world.start + AT
    assert low < first(fenced, lambda v: v > 0.0, began) - began < high
    assert history.outages[0].hard is (what == "hard end")


def test_a_half_dead_leader_shrinks_alone() -> None:
    """Only its own counter rises, requests to it fail, and every process stays up."""
    history = story(Kind.HALF_DEAD, 2)
    grown = {s.labels["instance"][:8]: np.nanmax(s.values) for s in rows(history, "shrinks_total")}
    failed = {
        s.labels["instance"][:8]: np.nanmax(s.values)
        for s in rows(history, "failedproducerequests_total")
    }
    for values in (grown, failed):
        assert [name for name, value in values.items() if value > 0.0] == ["broker-2"]
    assert all((s.values == 1.0).all() for s in rows(history, "up"))


@pytest.mark.parametrize(("what", "answers"), [(Kind.FENCED, False), ("cut off", True)])
def test_a_broker_that_freezes_is_fenced_and_lives(what: Kind | str, answers: bool) -> None:
    """Its process is the same; frozen it does not answer, cut off it does."""
    history = story(what, 2)
    fenced = controllers(history, "fencedbrokercount")[0]
    began = history.world.start + AT
    assert 7.0 < first(fenced, lambda v: v > 0.0, began) - began < 11.0
    assert first(fenced, lambda v: v == 0.0, began + 20.0) - began == pytest.approx(121.0, abs=1.5)
    ups = next(s for s in rows(history, "up") if s.labels["instance"].startswith("broker-2."))
    assert (ups.values == 1.0).all() == answers
    for starts in rows(history, "process_start_time_seconds"):
        assert len(set(starts.values[~np.isnan(starts.values)])) == 1


def test_without_a_quorum_only_the_lag_of_survivors_grows() -> None:
    """By a second each second; no write is refused, and nothing of the brokers moves."""
    history = story(Kind.QUORUM, 1, 2, seconds=200.0)
    active = controllers(history, "activecontrollercount")
    middle = history.world.start + AT + 100.0
    values = [s.values[np.searchsorted(s.times, middle) - 1] for s in active]
    assert np.nansum(values) == 0.0
    survivor = controllers(history, "lastappliedrecordlagms")[2]
    assert survivor.values[np.searchsorted(survivor.times, middle) - 1] == pytest.approx(
        1e5, rel=0.02
    )
    assert max(controllers(history, "lastappliedrecordlagms")[0].values) == 1.8e12
    assert history.refused_partition_minutes == 0.0
    assert not any((s.values > 0.0).any() for s in rows(history, "underreplicatedpartitions"))


def test_a_gap_of_prometheus_is_bridged_by_answers_only() -> None:
    """Answers go on for five minutes; a dump has the true times; a missing target says 0."""
    history = story("prometheus down", seconds=900.0)
    begin, end = history.gaps[0].start, history.gaps[0].end
    ups = rows(history, "up", Scraping())
    assert not any(((s.times > begin) & (s.times < end)).any() for s in ups)
    answer = query_range(history, Scraping())["data"]["result"]
    times = np.array([time for time, _ in answer[0]["values"]])
    bridged = times[(times > begin + 16.0) & (times < end)]
    assert 270.0 < bridged.max() - begin < 300.0
    missing = story("target missing", 2, seconds=300.0)
    starts = rows(missing, "process_start_time_seconds")
    assert all(len(set(s.values[~np.isnan(s.values)])) == 1 for s in starts)
    assert any((s.values == 0.0).any() for s in rows(missing, "up"))


@pytest.mark.parametrize("version", ["3.9", "4.3"])
def test_the_truth_agrees_with_its_own_series(version: str) -> None:
    """Refused minutes of the state are those of the series; in the end all are in sync again."""
    world = World(version=version)
    acts, seconds = busy_acts(world, 3, 3)
    history = happened(world, acts, 3, seconds)
    under = rows(history, "underminisrpartitioncount", Scraping(step_s=5.0))
    grid = np.arange(world.start, history.end, 5.0)
    total = sum(np.nan_to_num(at(s, grid)).sum() for s in under)
    offline = controllers(history, "offlinepartitionscount")
    total += np.max([np.nan_to_num(at(s, grid)) for s in offline], axis=0).sum()
    watched = 1.0 - sum(g.end - g.start for g in history.gaps if g.target is None) / seconds
    assert total * 5.0 / 60.0 == pytest.approx(history.refused_partition_minutes, rel=0.1)
    assert 0.0 < history.refused_minutes < history.refused_partition_minutes
    assert watched > 0.9
    assert history.cluster_changes.rows[-1].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert (history.broker_changes["under_replicated"].rows[-1] == 0.0).all()
    assert {o.kind for o in history.outages} == set(OF_CARDS)


def at(series: Series, times: np.ndarray) -> np.ndarray:
    """The last sample before some times, none if that is long ago."""
    place = np.maximum(np.searchsorted(series.times, times, side="right") - 1, 0)
    near = np.abs(times - series.times[place]) < 8.0
    return np.where(near, series.values[place], np.nan)


def test_a_pod_that_is_stopped_comes_back_under_another_address() -> None:
    """Its pod keeps its name; one whose process died keeps the address, too."""
    acts = [Act(Kind.RESTART, AT, (2,), 30.0), Act(Kind.CRASH, 2 * AT, (2,), 30.0)]
    history = happened(World(pods=True), acts, 1, 4_000.0)
    own = [s for s in rows(history, "up") if s.labels["pod"] == "main-broker-2"]
    assert len({s.labels["instance"] for s in own}) == 2
    assert np.isnan(own[0].values[-1])
    assert (own[1].values == 0.0).any()


def test_every_spelling_is_written_and_read_back_as_json() -> None:
    """Names differ, numbers do not; a dump has a line for each sample."""
    history = story(Kind.CRASH, 2)
    names = set()
    for spelling in SPELLINGS:
        answer = query_range(history, Scraping(spelling=spelling, cluster="a"))
        assert json.loads(json.dumps(answer)) == answer
        labels = [r["metric"] for r in answer["data"]["result"]]
        names.add(next(n["__name__"] for n in labels if "shrinks" in json.dumps(n).lower()))
    assert len(names) == len(SPELLINGS)
    lines = list(dump(history, Scraping()))
    assert len(lines) == sum(len(s.times) for s in series_of(history, Scraping()))
    assert any(" NaN " in line for line in lines)
