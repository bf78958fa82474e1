"""Samples in files of any kind and cut become the same data sets; silence is never an outage."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import advisor
from advisor.engines import run_here
from advisor.errors import InputError
from advisor.learning import metric_files, stages
from advisor.learning.evidence import ClusterHistory
from advisor.learning.metric_names import Metric
from advisor.learning.stages import read_in_stages
from stored_samples import (
    BEGIN,
    BROKERS,
    LAYOUTS,
    SCRAPES,
    STEP,
    Rows,
    Sample,
    contents,
    quiet,
    restart,
    samples_of,
    silence,
    write,
    write_answer,
    write_dump,
)

RESULTS = ("transitions", "outages", "mechanisms", "counts")


def eventful() -> list[Sample]:
    """A restart, a silent target, a time without Prometheus, and refused writes."""
    rows = quiet()
    restart(rows, BROKERS[1], 40, 48)
    silence(rows, BROKERS[0], 90, 95)
    for row in rows.values():
        row[130:150] = np.nan
    rows["kafka_server_replicamanager_underminisrpartitioncount", BROKERS[2]][200:210] = 3.0
    return samples_of(rows)


def learned(work: Path, *sources: Path) -> ClusterHistory:
    (history,) = read_in_stages(sources, str(work), run_here)
    return history


def test_a_history_has_what_happened(tmp_path: Path) -> None:
    """The same as a saved answer that is read at once says."""
    history = learned(tmp_path / "work", write(tmp_path / "a.parquet", eventful()))
    at_once = advisor.learn(
        write_answer(tmp_path / "a.json", eventful()), prior="three_az_cloud"
    ).histories[0]
    assert history == at_once
    (outage,) = history.outages
    assert outage.brokers == (BROKERS[1],)
    assert outage.start.timestamp() == pytest.approx(_scraped(BROKERS[1], 40), abs=0.01)
    assert len(history.gaps) == 4


def _scraped(target: str, place: int) -> float:
    (first, *_) = [sample.ms for sample in samples_of(quiet()) if sample.instance == target]
    return first / 1000.0 + STEP * place


def test_data_sets_are_by_cluster_and_day(tmp_path: Path) -> None:
    """Each with its columns; runs end at midnight."""
    work = tmp_path / "work"
    learned(work, write(tmp_path / "cluster=a%2Fb" / "a.parquet", eventful()).parent.parent)
    folders = sorted({path.parent.relative_to(work) for path in work.rglob("part-0.parquet")})
    cluster = "cluster=a%2Fb"
    days = ("day=2024-12-31", "day=2025-01-01")
    of_one_day = [Path(stage, cluster, days[1]) for stage in ("mechanisms", "outages")]
    transitions = [Path("transitions", cluster, day) for day in days]
    assert folders == [Path("counts", cluster), *of_one_day, *transitions]
    for day in days:
        table = parquet.read_table(work / "transitions" / cluster / day / "part-0.parquet")
        assert {str(moment.date()) for moment in table["first"].to_pylist()} == {day[4:]}
        assert {str(moment.date()) for moment in table["last"].to_pylist()} == {day[4:]}
        assert set(table["step_seconds"].to_pylist()) == {STEP}
    rows = pa.concat_tables(
        parquet.ParquetFile(path).read() for path in (work / "transitions").rglob("*.parquet")
    )
    assert sum(rows["samples"].to_pylist()) == len(eventful())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts_say_the_same(tmp_path: Path, layout: str) -> None:
    """Labels as a map, struct, text or columns, times in any unit, sorted by series or time."""
    learned(tmp_path / "one", write(tmp_path / "one.parquet", eventful()))
    learned(tmp_path / "other", write(tmp_path / "other.parquet", eventful(), layout))
    assert contents(tmp_path / "one", *RESULTS) == contents(tmp_path / "other", *RESULTS)


def test_many_different_labels_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More than a table of all combinations would hold; but not without end."""
    monkeypatch.setattr(metric_files, "_FEW_PLACES", -(10**9))
    path = write(tmp_path / "a.parquet", EVENTFUL)
    learned(tmp_path / "work", path)
    assert contents(tmp_path / "work", *RESULTS) == expected_contents()
    monkeypatch.setattr(metric_files, "_MOST_SERIES", 3)
    with pytest.raises(InputError, match="more than 3 series"):
        learned(tmp_path / "other", path)


def test_dumps_and_answers_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text in pieces, and JSON."""
    monkeypatch.setattr(metric_files, "_CHARACTERS_OF_PIECE", 10_000)
    learned(tmp_path / "parquet", write(tmp_path / "a.parquet", eventful()))
    learned(tmp_path / "dump", write_dump(tmp_path / "a.txt", eventful()))
    learned(tmp_path / "answer", write_answer(tmp_path / "a.json", eventful()))
    expected = contents(tmp_path / "parquet", *RESULTS)
    assert contents(tmp_path / "dump", *RESULTS) == expected
    assert contents(tmp_path / "answer", *RESULTS) == expected


@given(st.data())
@settings(max_examples=15)
def test_files_may_be_cut_anyhow(data: st.DataObject) -> None:
    """Stretches of each series in any file, in any order, in batches of any size, some twice."""
    files: list[list[Sample]] = [[] for _ in range(data.draw(st.integers(1, 4)))]
    numbers = st.integers(0, len(files) - 1)
    by_series: dict[tuple[str, str], list[Sample]] = {}
    for sample in EVENTFUL:
        by_series.setdefault(sample[:2], []).append(sample)
    for samples in by_series.values():
        cuts = sorted(data.draw(st.lists(st.integers(0, len(samples)), max_size=3)))
        for first, last in zip([0, *cuts], [*cuts, len(samples)], strict=True):
            files[data.draw(numbers)] += samples[first:last]
    batch = data.draw(st.sampled_from([50, 333, 1 << 20]))
    shuffled = data.draw(st.booleans())
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder, work = Path(name, "files"), Path(name, "work")
        patch.setattr(metric_files, "_ROWS_OF_BATCH", batch)
        for number, samples in enumerate(files):
            layout = data.draw(st.sampled_from(["columns", "map", "by time"]))
            if shuffled and batch > len(samples):
                samples = [
                    samples[n] for n in np.random.default_rng(number).permutation(len(samples))
                ]
            write(folder / f"{data.draw(st.integers(0, 99))}-{number}.parquet", samples, layout)
        learned(work, folder)
        assert contents(work, *RESULTS) == expected_contents()


EVENTFUL = eventful()
_expected: dict[str, bytes] = {}


def expected_contents() -> dict[str, bytes]:
    """What all samples in one file give."""
    if not _expected:
        with TemporaryDirectory() as name:
            learned(Path(name, "work"), write(Path(name, "a.parquet"), EVENTFUL))
            _expected.update(contents(Path(name, "work"), *RESULTS))
    return _expected


gaps = st.lists(
    st.tuples(st.sampled_from([*BROKERS, "all"]), st.integers(0, SCRAPES), st.integers(1, 60)),
    max_size=5,
)


@given(gaps, st.booleans())
@settings(max_examples=20)
def test_a_gap_is_no_outage(missing: list[tuple[str, int, int]], says_down: bool) -> None:
    """Whatever is missing, of Prometheus or a target; it is taken off the exposure."""
    rows = quiet()
    for target, first, length in missing:
        if target == "all":
            for row in rows.values():
                row[first : first + length] = np.nan
        else:
            silence(rows, target, first, first + length)
            if not says_down:
                rows["up", target][first : first + length] = np.nan
    with TemporaryDirectory() as name:
        history = learned(Path(name, "work"), write(Path(name, "a.parquet"), samples_of(rows)))
    assert history.outages == ()
    seen = sum(int((~np.isnan(row)).sum()) for row in leaders(rows)) * STEP
    for mechanism, years in history.exposures.items():
        if mechanism.startswith("broker"):
            assert years * 365 * 86_400 == pytest.approx(seen, abs=3 * STEP)


def leaders(rows: Rows) -> list[np.ndarray]:
    return [rows["kafka_server_replicamanager_leadercount", broker] for broker in BROKERS]


def halves() -> tuple[list[Sample], list[Sample]]:
    middle = 1000 * (BEGIN + STEP * SCRAPES // 2)
    before = [sample for sample in EVENTFUL if sample.ms < middle]
    return before, [sample for sample in EVENTFUL if sample.ms >= middle]


def test_only_new_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data sets grow as files come; a file that changed is read anew."""
    read: list[str] = []

    def counting(task: metric_files.Task, rejects: metric_files.Rejects) -> Any:
        read.append(Path(task.path).name)
        return metric_files.samples_in(task, rejects)

    monkeypatch.setattr(stages, "samples_in", counting)
    folder, work = tmp_path / "files", tmp_path / "work"
    first, second = halves()
    write(folder / "a.parquet", first)
    learned(work, folder)
    write(folder / "b.parquet", second[:100])
    learned(work, folder)
    write(folder / "b.parquet", second)
    learned(work, folder)
    assert read == ["a.parquet", "b.parquet", "b.parquet"]
    assert contents(work, *RESULTS) == expected_contents()


def test_a_sample_an_hour_is_no_hour_of_health() -> None:
    """Between days with a sample each 30 s, a day on which a target answers each hour is a gap."""
    regular = np.arange(2880) * 30_000
    hourly = stages.DAY_MS + np.arange(24) * 3_600_000
    times = np.concatenate([regular, hourly, regular + 2 * stages.DAY_MS])
    ones = np.ones(len(times), dtype=np.int64)
    rows, steps = stages.merged(stages.Rows(0 * ones, times, times, ones, np.ones(len(times))))
    assert steps.tolist() == [30, 3600, 30]
    keys = [metric_files.SeriesKey("b1", "up", "", "")]
    samples = stages.samples_of_rows("", keys, rows, steps, "here")
    up = samples.of(Metric.UP, "b1")
    assert samples.seconds[up == 1.0].sum() == pytest.approx(2 * 86_400 + 24 * 30, abs=60)


def test_a_cluster_that_is_gone_leaves_nothing(tmp_path: Path) -> None:
    """A file that changed has what it has now, and no more."""
    folder, work = tmp_path / "files", tmp_path / "work"
    for job, name in (("before", "a"), ("after", "b")):
        write(folder / "f.parquet", EVENTFUL, job=job)
        table = parquet.read_table(folder / "f.parquet")
        names = pa.array([name] * len(table))
        parquet.write_table(table.append_column("cluster", names), folder / "f.parquet")
        assert learned(work, folder).name == name
    clusters = {path.relative_to(work).parts[1] for path in work.glob("*/cluster=*/**/*.parquet")}
    assert clusters == {"cluster=b"}


def test_runs_inside_others_change_nothing() -> None:
    """Of files that overlap: a run that another has within it, before one that goes on."""
    seconds = np.array([[0, 600], [30, 60], [630, 900]]) * 1000
    counts = np.array([21, 2, 10])
    rows = stages.Rows(
        np.zeros(3, dtype=np.int64), seconds[:, 0], seconds[:, 1], counts, np.ones(3)
    )
    whole, _ = stages.merged(rows)
    assert [whole.firsts.tolist(), whole.lasts.tolist(), whole.counts.tolist()] == [
        [0],
        [900_000],
        [33],
    ]
    first_two, _ = stages.merged(rows.at(slice(0, 2)))
    assert first_two.lasts.tolist() == [600_000]


class KilledError(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("survive", [0, 1, 2, 3])
def test_what_was_killed_goes_on(tmp_path: Path, survive: int) -> None:
    """Wherever it ended, the next call gives the same bytes, and nothing finished is lost."""
    folder = tmp_path / "files"
    for number, samples in enumerate(halves()):
        write(folder / f"{number}.parquet", samples)

    def killed(function: Callable[[Any], Any], tasks: Sequence[Any]) -> list[Any]:
        results = []
        for task in tasks:
            if len(done) == survive:
                raise KilledError
            results.append(function(task))
            done.append(task)
        return results

    done: list[Any] = []
    half = tmp_path / "killed" / "runs" / ".a.parquet.0123.part"
    half.parent.mkdir(parents=True)
    half.touch()
    os.utime(half, (0, 0))
    read_in_stages([folder], str(tmp_path / "whole"), run_here)
    try:
        read_in_stages([folder], str(tmp_path / "killed"), killed)
    except KilledError:
        assert survive < 3
    finished = contents(tmp_path / "killed")
    read_in_stages([folder], str(tmp_path / "killed"), run_here)
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
    assert finished.items() <= contents(tmp_path / "killed").items()
    assert not half.exists()


def test_a_damaged_part_is_read_anew(tmp_path: Path) -> None:
    """One that is no Parquet any more counts as not done."""
    folder, work = tmp_path / "files", tmp_path / "work"
    write(folder / "a.parquet", EVENTFUL)
    learned(work, folder)
    (done,) = (work / "rejects").glob("*.parquet")
    done.write_bytes(done.read_bytes()[:-9])
    learned(work, folder)
    assert contents(work, *RESULTS) == expected_contents()


def _torn(path: Path) -> None:
    write(path, EVENTFUL)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _torn_inside(path: Path) -> None:
    write(path, EVENTFUL)
    content = bytearray(path.read_bytes())
    content[100:3000] = os.urandom(2900)
    path.write_bytes(content)


def _foreign(path: Path) -> None:
    parquet.write_table(pa.table({"order\x1b[31m": [1, 2], "price": [0.5, 0.7]}), path)


BAD = {
    "torn.parquet": (_torn, "no Parquet, or torn"),
    "inside.parquet": (_torn_inside, "no Parquet, or torn"),
    "empty.parquet": (Path.touch, "no Parquet, or torn"),
    "text.parquet": (lambda path: path.write_text("hello"), "no Parquet, or torn"),
    "foreign.parquet": (_foreign, "labels or metric and instance"),
    "empty.txt": (Path.touch, "is empty"),
    "counts.txt": (lambda path: path.write_text("brokers = 12\n"), "no dump of samples"),
    "binary.txt": (lambda path: path.write_bytes(bytes(range(256)) * 9), "no dump of samples"),
    "mixed.txt": (
        lambda path: path.write_text('{__name__="up", instance="b"} 1 1735689600000\n' + "x\n" * 9),
        "9 of 11 lines are no samples",
    ),
    "counts.json": (lambda path: path.write_text('{"brokers": 12}'), "no answer"),
    "torn.json": (lambda path: path.write_text('{"status": "succ'), "not valid JSON"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_refused_and_the_others_stay(tmp_path: Path, name: str) -> None:
    """In one sentence, with its name; without it all goes on, with the same bytes."""
    folder, work = tmp_path / "files", tmp_path / "work"
    write(folder / "good.parquet", EVENTFUL)
    make, said = BAD[name]
    make(folder / name)
    with pytest.raises(InputError, match=said) as refused:
        read_in_stages([folder], str(work), run_here)
    message = str(refused.value)
    assert name in message
    assert "\n" not in message
    assert "\x1b" not in message
    assert len(list((work / "rejects").glob("good-*.parquet"))) == 1
    (folder / name).unlink()
    before = contents(work, "runs", "rejects")
    learned(work, folder)
    assert contents(work, "runs", "rejects") == before
    assert contents(work, *RESULTS) == expected_contents()


def test_rejects_are_kept_with_reasons(tmp_path: Path) -> None:
    """Other metrics, series without a target, samples without a time, and bad lines."""
    ms = 1000 * BEGIN
    odd = [
        Sample("node_load1", "b1:9100", ms, 1.0),
        Sample("up", "", ms, 1.0),
        Sample("up", "b1:9404", -5, 1.0),
    ]
    write(tmp_path / "files" / "a.parquet", [*EVENTFUL, *odd])
    write_dump(tmp_path / "files" / "b.txt", EVENTFUL[:500])
    with (tmp_path / "files" / "b.txt").open("a") as file:
        file.write("half a li")
    history = learned(tmp_path / "work", tmp_path / "files")
    rows = [
        (row["reason"], row["what"], row["samples"])
        for path in (tmp_path / "work" / "rejects").glob("*.parquet")
        for row in parquet.read_table(path).to_pylist()
    ]
    assert sorted(rows) == [
        ("bad line", "half a li", 1),
        ("no target", '__name__="up",job="k"', 1),
        ("no time", "", 1),
        ("unknown metric", "node_load1", 1),
    ]
    assert "bad line" in " ".join(history.notes)


def test_a_hostile_cluster_stays_in_its_folder(tmp_path: Path) -> None:
    """Names from outside are no paths."""
    path = tmp_path / "files" / "a.parquet"
    write(path, EVENTFUL)
    table = parquet.read_table(path)
    names = pa.array(["../../../evil\n\x1b[31m"] * len(table))
    parquet.write_table(table.append_column("cluster", names), path)
    learned(tmp_path / "work", tmp_path / "files")
    assert {entry.name for entry in tmp_path.iterdir()} == {"files", "work"}
    assert not list(tmp_path.rglob("evil*"))


def test_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    """Data sets are written to an empty or a new folder, or on to earlier ones."""
    (tmp_path / "thesis.doc").touch()
    with pytest.raises(InputError, match="empty or new folder"):
        read_in_stages([write(tmp_path / "a.parquet", EVENTFUL)], str(tmp_path), run_here)


def test_clusters_are_apart(tmp_path: Path) -> None:
    """By the label; one of other jobs, without a broker, is left out and named."""
    for name in ("a", "b"):
        write(tmp_path / "files" / f"cluster={name}" / "a.parquet", EVENTFUL)
    others = [Sample("up", f"web{n}:80", s.ms, 1.0) for n in (1, 2) for s in EVENTFUL[:200]]
    write(tmp_path / "files" / "cluster=web" / "a.parquet", others)
    work = str(tmp_path / "work")
    histories = read_in_stages([tmp_path / "files"], work, run_here)
    assert [history.name for history in histories] == ["a", "b"]
    assert "web" in " ".join(histories[0].notes)
    assert histories[0].seen == histories[1].seen


def test_pods_and_pairs_of_prometheus_are_one(tmp_path: Path) -> None:
    """Series that differ in other labels are laid together; contradictions are refused."""
    write(tmp_path / "files" / "a.parquet", EVENTFUL)
    later = [sample._replace(ms=sample.ms + 4_000) for sample in EVENTFUL]
    write(tmp_path / "files" / "b.parquet", later, job="replica")
    history = learned(tmp_path / "work", tmp_path / "files")
    assert [outage.brokers for outage in history.outages] == [(BROKERS[1],)]
    false = [sample._replace(value=7.0) for sample in EVENTFUL if "leader" in sample.metric]
    write(tmp_path / "files" / "c.parquet", false, job="false")
    with pytest.raises(InputError, match="both of"):
        learned(tmp_path / "work", tmp_path / "files")


def test_time_can_be_cut(tmp_path: Path) -> None:
    """Since and until say what was seen; the transitions have all of it."""
    path = write(tmp_path / "a.parquet", EVENTFUL)
    work = tmp_path / "work"
    result = advisor.learn(
        path,
        prior="three_az_cloud",
        since="2025-01-01T00:30",
        until="2025-01-01T01:30",
        work=work,
    )
    (history,) = result.histories
    assert history.years * 365 * 24 == pytest.approx(1.0, abs=0.02)
    assert history.outages == ()
    assert contents(work, "transitions") == {
        name: content
        for name, content in expected_contents().items()
        if name.startswith("transitions")
    }
    fits = parquet.read_table(work / "fits" / "part-0.parquet")
    assert set(fits["number"].to_pylist()) == {row.number for row in result.numbers}


def test_parquet_needs_no_folder_for_data_sets(tmp_path: Path) -> None:
    """Then they go away; an unknown engine is refused."""
    path = write(tmp_path / "a.parquet", EVENTFUL)
    (history,) = advisor.learn(path, prior="three_az_cloud").histories
    assert len(history.outages) == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["a.parquet"]
    with pytest.raises(InputError, match="local or spark"):
        advisor.learn(path, prior="three_az_cloud", engine="hadoop")
