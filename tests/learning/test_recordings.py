"""What is read from recordings of real brokers, judged by what was done and recorded."""

from pathlib import Path

import numpy as np
import pytest

from advisor.learning.counts import Window, read_histories
from advisor.learning.evidence import ClusterHistory
from metric_histories import History, Kind, TrueOutage
from metric_judge import judge
from recorded_metrics import (
    SCRAPE_S,
    dump_of,
    history_of,
    recorded_bursts,
    recorded_versions,
    truth_of,
)

VERSIONS = recorded_versions()
EVERY = pytest.mark.parametrize("keep_every", [1, 3, 6, 12], ids=["5 s", "15 s", "30 s", "60 s"])
EACH = pytest.mark.parametrize("version", VERSIONS)
EACH_BURSTS = pytest.mark.parametrize("version", recorded_bursts())


def read(version: str, keep_every: int, folder: Path) -> ClusterHistory:
    """What is learned from a dump that has every so many-th scrape."""
    path = folder / "dump.txt"
    path.write_text(dump_of(version, keep_every))
    (result,) = read_histories([path], Window())
    return result


def tellable(history: History, kind: Kind, step_s: float) -> list[TrueOutage]:
    """Outages of a kind, without a leader that shrinks its ISRs within two scrapes after an outage.

    That may be the outage's doing. Of the recordings it is so at one scrape a minute only.
    """
    ends = np.array([outage.end for outage in history.outages])
    return [
        outage
        for outage in history.of(kind)
        if kind is not Kind.HALF_DEAD
        or not ((outage.start - 2.0 * step_s < ends) & (ends < outage.start)).any()
    ]


def test_there_are_recordings_of_both_versions() -> None:
    """Each with every fault: three kinds of restart, crashes, limping, quorum, silence."""
    assert VERSIONS == ["3.9", "4.3"]
    for version in VERSIONS:
        outages = history_of(version).outages
        kinds = [o.kind for o in outages]
        assert kinds.count(Kind.RESTART) == 4
        assert sum(o.hard for o in outages) == sum(o.overlaps for o in outages) == 1
        for kind in (Kind.CRASH, Kind.TOGETHER, Kind.RACK, Kind.HALF_DEAD, Kind.QUORUM):
            assert kinds.count(kind) == 1
        steps = [SCRAPE_S * every for every in (1, 3, 6, 12)]
        told = [len(tellable(history_of(version), Kind.HALF_DEAD, step)) for step in steps]
        assert told == [1, 1, 1, 0]
        assert [gap.target for gap in history_of(version).gaps] == [None, "broker-3"]


@EVERY
@EACH
def test_what_really_happened_is_found_and_nothing_else(
    version: str, keep_every: int, tmp_path: Path
) -> None:
    """Every outage, none called wrongly; silence of Prometheus or of a target is none."""
    history, result = history_of(version), read(version, keep_every, tmp_path)
    judged = judge(history, result.outages, SCRAPE_S * keep_every + 15.0)
    assert not judged.false_rows
    assert not judged.misnamed
    for kind in Kind:
        least = len(tellable(history, kind, SCRAPE_S * keep_every))
        assert least <= judged.found[kind] <= len(history.of(kind)), kind
    for kind in (Kind.HALF_DEAD, Kind.QUORUM):
        assert judged.named[kind] == judged.found[kind], kind


def test_what_coarser_scrapes_tell_of_restarts(tmp_path: Path) -> None:
    """States of 4.x tell a restart while a scrape falls into it; at a minute none does."""
    history = history_of("4.3")
    named = [
        judge(history, read("4.3", every, tmp_path).outages, SCRAPE_S * every + 15.0).named
        for every in (1, 3, 6, 12)
    ]
    restarts = [by_kind[Kind.RESTART] for by_kind in named]
    assert restarts[0] == len(history.of(Kind.RESTART)) == 4
    assert restarts == sorted(restarts, reverse=True)
    assert restarts[-1] == 0
    assert all(by_kind[Kind.CRASH] == 0 for by_kind in named)


@EACH
def test_refused_minutes_are_those_of_the_metadata_log(version: str, tmp_path: Path) -> None:
    """Every five seconds: within a tenth."""
    refused, truth = read(version, 1, tmp_path).refused, truth_of(version)
    assert refused is not None
    assert truth["refused_partition_minutes"] > 5.0
    expected = pytest.approx(truth["refused_partition_minutes"], rel=0.1)
    assert refused.partition_minutes == expected


@EVERY
@EACH_BURSTS
def test_a_broker_that_froze_or_was_cut_off_is_told_by_its_fencing(
    version: str, keep_every: int, tmp_path: Path
) -> None:
    """All six every five seconds, by the broker's name where it did not answer; nothing false."""
    history, result = history_of(version), read(version, keep_every, tmp_path)
    judged = judge(history, result.outages, SCRAPE_S * keep_every + 15.0)
    assert not judged.false_rows
    assert not judged.misnamed
    for kind in (Kind.CRASH, Kind.RESTART, Kind.TOGETHER, Kind.RACK):
        assert judged.found[kind] == len(history.of(kind)), kind
    truly_fenced = history.of(Kind.FENCED)
    assert [true.brokers for true in truly_fenced] == [(2,), (4,), (5,), (3,), (1,), (2,)]
    if keep_every > 1:
        return
    fenced = [row for row in result.outages if row.mechanism == Kind.FENCED.value]
    named = [("broker-2:7071",), ("broker-4:7071",), ("broker-5:7071",), (), ("broker-1:7071",), ()]
    assert [row.brokers for row in fenced] == named
    assert any(note.startswith("6 times brokers were fenced") for note in result.notes)
    late_s = 1.1 * SCRAPE_S
    for row, true in zip(fenced, truly_fenced, strict=True):
        assert row.end is not None
        assert row.start.timestamp() == pytest.approx(true.start, abs=late_s)
        assert row.end.timestamp() == pytest.approx(true.end, abs=late_s)


@EACH_BURSTS
def test_short_refusals_are_those_of_the_metadata_log(version: str, tmp_path: Path) -> None:
    """Of 5 to 23 s, also while a broker is frozen: within a tenth, and what is said of it."""
    refused, truth = read(version, 1, tmp_path).refused, truth_of(version)
    assert refused is not None
    assert refused.partition_minutes is not None
    true = truth["refused_partition_minutes"]
    assert 10.0 < true < 12.0
    assert refused.partition_minutes == pytest.approx(true, rel=0.1)
    assert refused.any_minutes == pytest.approx(truth["refused_minutes"], rel=0.1)
    assert abs(refused.partition_minutes - true) < refused.partition_minutes_off < 0.15 * true
