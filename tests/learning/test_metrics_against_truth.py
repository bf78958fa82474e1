"""What is read from generated metrics, against what really happened."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from advisor.learning.counts import Window, read_histories
from advisor.learning.evidence import ClusterHistory
from advisor.learning.metric_causes import FENCED
from metric_histories import (
    FENCES,
    OF_CARDS,
    SCRIPTS,
    WATCHERS,
    Act,
    History,
    Kind,
    World,
    busy_acts,
    happened,
)
from metric_judge import AWAY, Judged, judge
from metric_series import Scraping, dump, query_range

SEED = 11
# World and scraping: steps, versions, spellings and addresses, each of them at least once.
SCRAPED = (
    (World(), Scraping(step_s=5.0)),
    (World(pods=True), Scraping(step_s=15.0, spelling="count_total")),
    (World(version="3.9"), Scraping(step_s=15.0, spelling="camel", cluster="main")),
    (World(version="3.9", brokers=9), Scraping(step_s=30.0, spelling="value")),
    (World(brokers=12, pods=True), Scraping(step_s=60.0, spelling="name_label")),
)
NAMES = [f"{w.version}, every {s.step_s:g} s, {s.spelling}" for w, s in SCRAPED]


def busy(world: World, each: int, what: Sequence[Kind | str] = (*SCRIPTS, *WATCHERS)) -> History:
    """A history with so many of everything."""
    acts, seconds = busy_acts(world, SEED, each, what)
    return happened(world, acts, SEED, seconds)


def read(history: History, scraping: Scraping) -> ClusterHistory:
    """What is learned from the answers of Prometheus."""
    (result,) = read_histories([query_range(history, scraping)], Window())
    return result


def check(history: History, result: ClusterHistory, scraping: Scraping) -> Judged:
    """Nothing false or called wrongly, each outage there, refused minutes as they were."""
    judged = judge(history, result.outages, 3.0 * scraping.step_s + 20.0)
    assert not judged.false_rows
    assert len(judged.misnamed) <= 0.03 * len(result.outages)
    for kind in {*OF_CARDS, *(outage.kind for outage in history.outages)}:
        true = len(history.of(kind))
        assert judged.found[kind] >= 0.97 * true > 0, kind
    for kind in (Kind.LAG, Kind.HALF_DEAD, Kind.QUORUM, Kind.FENCED):
        assert judged.named[kind] == judged.found[kind], kind
    refused = result.refused
    assert refused is not None
    # Every minute, and controllers and brokers not at the same moment: less exact.
    within = 0.1 if scraping.step_s < 60.0 else 0.2
    assert refused.partition_minutes == pytest.approx(history.refused_partition_minutes, rel=within)
    return judged


@pytest.mark.parametrize(("world", "scraping"), SCRAPED, ids=NAMES)
def test_what_is_read_really_happened(world: World, scraping: Scraping) -> None:
    """No row is false, no outage is missing; gaps and addresses are none."""
    history = busy(world, 2)
    check(history, read(history, scraping), scraping)


@pytest.mark.parametrize(("world", "scraping"), SCRAPED, ids=NAMES)
def test_brokers_that_freeze_or_are_cut_off_are_told(world: World, scraping: Scraping) -> None:
    """Each of them, and no other outage is taken for one; they count as nothing."""
    history = busy(world, 2, (*SCRIPTS, *WATCHERS, *FENCES))
    result = read(history, scraping)
    check(history, result, scraping)
    fenced = [outage for outage in result.outages if outage.mechanism == FENCED]
    assert len(fenced) == len(history.of(Kind.FENCED)) == 4
    assert sum(bool(outage.brokers) for outage in fenced) == len(history.frozen) == 2
    assert FENCED not in result.seen


@pytest.mark.parametrize("step_s", [5.0, 10.0, 15.0])
@pytest.mark.parametrize("on_grid", [False, True], ids=["dump", "answers"])
def test_bursts_are_as_long_as_they_were(step_s: float, on_grid: bool, tmp_path: Path) -> None:
    """Refusals of a few scrapes, that several brokers and all controllers see at other moments."""
    rng = np.random.default_rng(SEED)
    acts = [
        Act(Kind.TOGETHER, 1_200.0 + 331.7 * place, tuple(chosen), float(rng.uniform(5.0, 15.0)))
        for place, chosen in enumerate(rng.permuted(np.tile(range(1, 7), (60, 1)), axis=1)[:, :4])
    ]
    history = happened(World(), acts, SEED, 1_500.0 + 331.7 * len(acts))
    scraping = Scraping(step_s=step_s)
    path = tmp_path / "dump.txt"
    path.write_text("" if on_grid else "\n".join(dump(history, scraping)) + "\n")
    (result,) = read_histories([query_range(history, scraping) if on_grid else path], Window())
    refused = result.refused
    assert refused is not None
    assert 10.0 < history.refused_minutes * 60.0 / len(acts) < 40.0
    assert refused.any_minutes == pytest.approx(history.refused_minutes, rel=0.05)
    assert refused.partition_minutes == pytest.approx(history.refused_partition_minutes, rel=0.05)
    off = abs((refused.partition_minutes or 0.0) - history.refused_partition_minutes)
    assert off < 1.5 * refused.partition_minutes_off < 0.2 * history.refused_partition_minutes


def test_a_dump_says_the_same(tmp_path: Path) -> None:
    """Of true times there are as many outages as of answers on a grid."""
    history = busy(World(), 1)
    path = tmp_path / "dump.txt"
    path.write_text("\n".join(dump(history, Scraping())) + "\n")
    (result,) = read_histories([path], Window())
    check(history, result, Scraping())


@pytest.mark.parametrize("what", ["prometheus down", "target missing", "controller restart"])
@pytest.mark.parametrize("step_s", [5.0, 15.0, 30.0, 60.0])
def test_silence_is_no_outage_and_no_health(what: str, step_s: float) -> None:
    """Whatever the step: nothing is counted, and what was not watched is no exposure."""
    acts = [Act(what, 2_000.0 * place, (2,), 900.0) for place in range(1, 4)]
    history = happened(World(), acts, SEED, 8_000.0)
    result = read(history, Scraping(step_s=step_s))
    assert not result.outages
    assert not any(seen.events for seen in result.seen.values())
    silent_s = sum((gap.end - gap.start).total_seconds() for gap in result.gaps)
    targets = {"prometheus down": 6, "target missing": 1, "controller restart": 0}[what]
    # Targets begin to be scraped one after the other.
    assert silent_s <= 3 * targets * (900.0 + 3.0 * step_s) + 6 * step_s
    # Answers go on for five minutes after the last sample, and do not show which of them are old.
    lookback_s = 300.0 if what == "prometheus down" else 0.0
    assert silent_s >= 3 * targets * (900.0 - lookback_s - 3.0 * step_s)


def test_hundreds_of_outages_are_read_rightly() -> None:
    """Forty of each kind in half a month, every 15 s."""
    history = busy(World(), 40)
    judged = check(history, read(history, Scraping()), Scraping())
    assert sum(judged.found[kind] for kind in AWAY) > 700


def test_no_restart_is_called_a_crash_on_a_grid() -> None:
    """One that ends hard between two answers looks as a death does; crashes are told still."""
    world = World(version="3.9", brokers=9)
    orders = ("rolling", "hard end", "overlap", Kind.RESTART)
    acts, seconds = busy_acts(world, 105, 10, orders)
    history = happened(world, acts, 105, seconds)
    scraping = Scraping(step_s=5.0, node_exporter=True)
    judged = judge(history, read(history, scraping).outages, 35.0)
    assert not judged.misnamed
    assert judged.named[Kind.RESTART] > 0.9 * len(history.of(Kind.RESTART)) > 100
    acts, seconds = busy_acts(world, SEED, 10, (Kind.CRASH,))
    crashed = happened(world, acts, SEED, seconds)
    assert judge(crashed, read(crashed, scraping).outages, 35.0).named[Kind.CRASH] >= 7


@pytest.mark.parametrize("step_s", [5.0, 15.0, 30.0])
@pytest.mark.parametrize("version", ["3.9", "4.3"])
def test_a_leader_that_limps_while_another_broker_is_down_is_told(
    version: str, step_s: float
) -> None:
    """Only around its beginning and its end may an outage be why ISRs shrink."""
    world = World(version=version)
    acts = [Act(Kind.CRASH, 1_200.0, (1,), 1_800.0), Act(Kind.HALF_DEAD, 1_900.0, (3,), 200.0)]
    history = happened(world, acts, SEED, 4_000.0)
    scraping = Scraping(step_s=step_s, node_exporter=True)
    judged = judge(history, read(history, scraping).outages, 35.0)
    assert judged.named[Kind.HALF_DEAD] == judged.found[Kind.CRASH] == 1
    assert not judged.misnamed
    assert not judged.false_rows


@pytest.mark.parametrize("step_s", [5.0, 10.0, 15.0, 30.0])
@pytest.mark.parametrize("version", ["3.9", "4.3"])
def test_a_death_during_a_restart_is_no_restart(version: str, step_s: float) -> None:
    """Who leaves in order proves nothing of another that dies between the same scrapes."""
    acts = []
    for place in range(12):
        at, first = 1_200.0 + 900.0 * place + 1.7 * place, place % 6 + 1
        acts.append(Act(Kind.RESTART, at, (first,), 25.0))
        acts.append(Act(Kind.CRASH, at + 1.5 + place, (first % 6 + 1,), 25.0))
    history = happened(World(version=version), acts, SEED, 13_000.0)
    judged = judge(history, read(history, Scraping(step_s=step_s)).outages, 3 * step_s + 20.0)
    assert not judged.false_rows
    assert not judged.misnamed
    assert judged.found[Kind.CRASH] == judged.found[Kind.RESTART] == 12
