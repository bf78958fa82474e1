"""Samples of any amount become data sets, in stages: each a folder of Parquet.

samples -> runs -> transitions -> outages, mechanisms -> counts

A file of samples is read once, to runs of equal values (`runs`, a file for each task and cluster)
and to what was not read (`rejects`, a file for each task, written last: it says that the task is
done). Runs of a cluster from all files are merged (`transitions`) and say what happened. So new
files are the only ones that are read again, and what was killed halfway goes on.

A day in UTC is a partition, and ends runs: a day that is complete does not change any more. Samples
of a series on one day have to be one step apart, and a file has to have consecutive ones; then it
does not matter which file has which, or in which order.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from hashlib import sha256
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from time import time
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from advisor.engines import Engine
from advisor.errors import InputError
from advisor.files import replace_file
from advisor.formatting import counted
from advisor.learning.evidence import UNNAMED, ClusterHistory
from advisor.learning.metric_files import (
    Numbers,
    Rejects,
    Sampled,
    SeriesKey,
    Task,
    arrow,
    combined,
    files_of,
    samples_in,
    tasks_of,
)
from advisor.learning.metric_names import Metric
from advisor.learning.metric_outages import history_of
from advisor.learning.prometheus_api import AnsweredServer, Server
from advisor.learning.prometheus_live import runs_at
from advisor.learning.transitions import (
    ENOUGH_GAPS,
    JOINED,
    MOST_TIMES_COMMON,
    RESOLUTIONS,
    Runs,
    Samples,
    nothing_read,
    rounded,
    samples_of_runs,
)
from advisor.progress import progress_bar

ANSWERS, RUNS, REJECTS = "answers", "runs", "rejects"
STAGES = (ANSWERS, RUNS, REJECTS, "transitions", "outages", "mechanisms", "counts", "fits")
DAY_MS = 86_400_000
_LONGEST_GAP_S = 99_999
_SURELY_DEAD_S = 3600.0
_NO_CLUSTER = "__HIVE_DEFAULT_PARTITION__"
"""What Spark and Arrow read as no value."""
_NAMED = 3


# Runs


class Rows(NamedTuple):
    """Runs of many series; a sample is a run of one.

    series (n,).
    firsts, lasts (n,): milliseconds since 1970, on one day.
    counts (n,): samples.
    values (n,).
    """

    series: Numbers
    firsts: Numbers
    lasts: Numbers
    counts: Numbers
    values: NDArray[np.float64]

    def at(self, places: Any) -> Rows:
        """Return some of them."""
        return Rows(*(column[places] for column in self))


def rows_of(samples: Sampled) -> Rows:
    """Return samples as runs of one, with values as they are held."""
    values = samples.values
    for metric in RESOLUTIONS:
        is_rounded = np.array([key.metric == metric.value for key in samples.keys], dtype=bool)
        if is_rounded.any():
            chosen = is_rounded[samples.series]
            values[chosen] = rounded(metric, values[chosen])
    return Rows(
        samples.series, samples.times, samples.times, np.ones(len(values), np.int64), values
    )


def merged(rows: Rows) -> tuple[Rows, Numbers]:
    """Join runs of equal values without a gap, by series and day.

    rows: in any order.
    Returns the rows by series and time, and the seconds between two samples on the day of each
        run; 0 if too few say it. Then nothing is joined.
    """
    if not len(rows.series):
        return rows, np.empty(0, dtype=np.int64)
    rows = _in_order(rows)
    days = rows.firsts // DAY_MS
    is_new = (np.diff(rows.series) != 0) | (np.diff(days) != 0)
    groups = np.concatenate([[0], np.cumsum(is_new)])
    # A run may end after one that begins later, where files overlap.
    since = groups * DAY_MS - days * DAY_MS
    reach = np.maximum.accumulate(rows.lasts + since) - since
    gaps = rows.firsts[1:] - reach[:-1]
    steps = _steps(rows, groups, gaps, is_new)
    is_gap = gaps > np.rint(1000.0 * JOINED * steps[groups[1:]])
    differs = rows.values[1:] != rows.values[:-1]
    starts = np.flatnonzero(np.concatenate([[True], is_new | differs | is_gap]))
    joined = Rows(
        rows.series[starts],
        rows.firsts[starts],
        np.maximum.reduceat(rows.lasts, starts),
        np.add.reduceat(rows.counts, starts),
        rows.values[starts],
    )
    return joined, steps[groups[starts]]


def _in_order(rows: Rows) -> Rows:
    if _ascends(rows):
        return rows
    # Few series are sorted by their digits, which is quick, and files by time stay so.
    kind = np.uint16 if rows.series.max() < 1 << 16 else np.int64
    rows = rows.at(np.argsort(rows.series.astype(kind), kind="stable"))
    if _ascends(rows):
        return rows
    return rows.at(np.lexsort((rows.values, rows.lasts, rows.firsts, rows.series)))


def _ascends(rows: Rows) -> bool:
    series = np.diff(rows.series)
    return bool(((series > 0) | ((series == 0) & (np.diff(rows.firsts) > 0))).all())


def _steps(rows: Rows, groups: Numbers, gaps: Numbers, is_new: NDArray[np.bool_]) -> Numbers:
    """Most frequent whole seconds between samples, for each group; 0 where there are few."""
    between = np.flatnonzero(~is_new & (gaps > 0))
    inside = np.flatnonzero(rows.counts > 1)
    pieces = rows.counts[inside] - 1
    lengths = np.concatenate([gaps[between], (rows.lasts - rows.firsts)[inside] / pieces])
    weights = np.concatenate([np.ones(len(between)), pieces])
    seconds = np.clip(np.rint(lengths / 1000.0), 1, _LONGEST_GAP_S).astype(np.int64)
    owners = np.concatenate([groups[between + 1], groups[inside]])
    steps = np.zeros(int(groups[-1]) + 1, dtype=np.int64)
    if not len(owners):
        return steps
    keys = owners * (_LONGEST_GAP_S + 1) + seconds
    # Neighbours are equal nearly everywhere.
    starts = np.flatnonzero(np.concatenate([[True], np.diff(keys) != 0]))
    keys, places = np.unique(keys[starts], return_inverse=True)
    votes = np.bincount(places, np.add.reduceat(weights, starts))
    owners, seconds = np.divmod(keys, _LONGEST_GAP_S + 1)
    order = np.lexsort((seconds, -votes, owners))
    best = order[np.concatenate([[True], np.diff(owners[order]) != 0])]
    steps[owners[best]] = seconds[best]
    steps[np.bincount(owners, votes, len(steps)) < ENOUGH_GAPS] = 0
    return steps


# Reading: a task of a file to runs


def read_task(work: str, task: Task) -> str:
    """Read a task to runs of each cluster, unless that is done; return why it cannot be, or ""."""
    name = f"{_part_name(task)}.parquet"
    done = Path(work, REJECTS, name)
    if _stamp_of(done) == task.stamp:
        return ""
    done.unlink(missing_ok=True)
    for part in Path(work, RUNS).glob(f"*/{name}"):
        part.unlink()
    rejects = Rejects()
    try:
        by_cluster = _runs_of(task, rejects)
    except InputError as error:
        return str(error)
    for cluster, (keys, rows) in by_cluster.items():
        table = _table(keys, rows)
        _write(Path(work, RUNS, _folder(cluster), name), table)
    reasons = [(*key, samples) for key, samples in sorted(rejects.samples.items())]
    table = _rejects_table(task, reasons)
    _write(done, table.replace_schema_metadata({"stamp": task.stamp}))
    return ""


def _part_name(task: Task) -> str:
    digest = sha256(f"{task.path}\0{task.first}\0{task.last}".encode()).hexdigest()[:16]
    stem = re.sub(r"[^A-Za-z0-9]+", "-", Path(task.path).stem)[:40].strip("-")
    return f"{stem}-{digest}" if stem else digest


def _stamp_of(path: Path) -> str:
    from pyarrow import parquet

    try:
        metadata = parquet.read_schema(path).metadata or {}
    except (arrow().ArrowException, OSError):
        return ""
    return str(metadata.get(b"stamp", b"").decode())


def _runs_of(task: Task, rejects: Rejects) -> dict[str, tuple[list[SeriesKey], Rows]]:
    """Runs of a task by cluster; only runs are held, batch by batch."""
    numbers: dict[SeriesKey, int] = {}
    pieces: list[Rows] = []
    for samples in samples_in(task, rejects):
        rows, _ = merged(rows_of(samples))
        own = [numbers.setdefault(key, len(numbers)) for key in samples.keys]
        pieces.append(rows._replace(series=np.array(own, dtype=np.int64)[rows.series]))
    keys = list(numbers)
    rows, _ = merged(_joined(pieces))
    clusters = sorted({key.cluster for key in keys})
    cluster_of = np.array([clusters.index(key.cluster) for key in keys], dtype=np.int64)
    owners = cluster_of[rows.series]
    return {
        cluster: _numbered(keys, rows.at(owners == number))
        for number, cluster in enumerate(clusters)
        if (owners == number).any()
    }


def _joined(pieces: Sequence[Rows]) -> Rows:
    kinds = (np.int64, np.int64, np.int64, np.int64, np.float64)
    columns = zip(*pieces, strict=True) if pieces else ((),) * len(kinds)
    return Rows(
        *(
            np.concatenate([np.empty(0, dtype=kind), *column])
            for kind, column in zip(kinds, columns, strict=True)
        )
    )


def _numbered(keys: Sequence[SeriesKey], rows: Rows) -> tuple[list[SeriesKey], Rows]:
    """Number the series that there are by their names, so that the same rows are the same."""
    there = sorted(np.unique(rows.series), key=lambda number: keys[number])
    renumbered = np.zeros(len(keys), dtype=np.int64)
    renumbered[there] = np.arange(len(there))
    rows = rows._replace(series=renumbered[rows.series])
    return [keys[number] for number in there], rows.at(np.argsort(rows.series, kind="stable"))


# Reading: a server to runs of each cluster


def read_server(work: str, server: Server, since: float | None, until: float) -> str:
    """Ask a server what it has, and write that as runs; return why it does not answer, or "".

    since, until: seconds since 1970.
    """
    folder = Path(work, ANSWERS)
    folder.mkdir(exist_ok=True)
    try:
        answered = runs_at(AnsweredServer(**vars(server), folder=folder), since, until)
    except InputError as error:
        stays = (
            " What it answered is kept; the same command goes on." if any(folder.iterdir()) else ""
        )
        return f"{error}{stays}"
    name = f"{_part_name(Task(server.where, 0, 0, tuple(server.labels.items()), ''))}.parquet"
    for path in Path(work, RUNS).glob(f"*/{name}"):
        path.unlink()
    by_cluster: dict[str, list[Runs]] = {}
    for runs in answered:
        by_cluster.setdefault(runs.cluster, []).append(runs)
    for cluster, own in by_cluster.items():
        _write(Path(work, RUNS, _folder(cluster), name), _table(*_numbered(*rows_of_runs(own))))
    return ""


def rows_of_runs(all_runs: Sequence[Runs]) -> tuple[list[SeriesKey], Rows]:
    """Cut runs at midnight."""
    numbers: dict[SeriesKey, int] = {}
    pieces = []
    for runs in all_runs:
        key = SeriesKey(runs.target, runs.metric.value, runs.labels, "")
        number = numbers.setdefault(key, len(numbers))
        firsts, lasts = (np.rint(1000.0 * times) for times in (runs.firsts, runs.lasts))
        steps = np.rint((lasts - firsts) / (1000.0 * runs.step_seconds))
        days = (lasts // DAY_MS - firsts // DAY_MS).astype(np.int64) + 1
        owners = np.repeat(np.arange(len(days)), days)
        midnights = np.arange(len(owners)) - np.repeat(np.cumsum(days) - days, days)
        midnights = (midnights + firsts[owners] // DAY_MS) * DAY_MS
        apart = (lasts - firsts) / np.maximum(steps, 1.0)
        apart = np.where(steps > 0.0, apart, 1000.0 * runs.step_seconds)[owners]
        begin = firsts[owners]
        # The first sample of a day, and the last one before the next.
        low = np.maximum(np.ceil((midnights - begin) / apart), 0.0)
        high = np.minimum(np.ceil((midnights + DAY_MS - begin) / apart) - 1.0, steps[owners])
        pieces.append(
            Rows(
                np.full(len(owners), number),
                np.rint(begin + low * apart).astype(np.int64),
                np.rint(begin + high * apart).astype(np.int64),
                (high - low).astype(np.int64) + 1,
                runs.values[owners],
            ).at(high >= low)
        )
    return list(numbers), _joined(pieces)


# Parquet


def _table(keys: Sequence[SeriesKey], rows: Rows, steps: Numbers | None = None) -> Any:
    pa = arrow()
    moment = pa.timestamp("ms", "UTC")

    def named(names: Sequence[str]) -> Any:
        return pa.DictionaryArray.from_arrays(rows.series.astype(np.int32), pa.array(names)).cast(
            pa.string()
        )

    columns = {
        "target": named([key.target for key in keys]),
        "metric": named([key.metric for key in keys]),
        "labels": named([key.labels for key in keys]),
        "first": pa.array(rows.firsts).cast(moment),
        "last": pa.array(rows.lasts).cast(moment),
        "samples": pa.array(rows.counts),
        "value": pa.array(rows.values),
    }
    if steps is not None:
        columns["step_seconds"] = pa.array(steps.astype(np.int32))
    return pa.table(columns)


def _rejects_table(task: Task, reasons: Sequence[tuple[str, str, int]]) -> Any:
    pa = arrow()
    kinds = [("reason", pa.string()), ("what", pa.string()), ("samples", pa.int64())]
    rows = {
        name: pa.array([row[place] for row in reasons], kind)
        for place, (name, kind) in enumerate(kinds)
    }
    return pa.table({"source": pa.array([task.path] * len(reasons), pa.string()), **rows})


def _write(path: Path, table: Any) -> None:
    """Write a file whole or not at all; one with the same content is left as it is."""
    from pyarrow import parquet

    content = BytesIO()
    parquet.write_table(table, content, compression="zstd")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_bytes() != content.getvalue():
        replace_file(path, content.getvalue())


def _folder(cluster: str) -> str:
    return f"cluster={quote(cluster, safe='') or _NO_CLUSTER}"


def _cluster_of(folder: str) -> str:
    name = folder.partition("=")[2]
    return "" if name == _NO_CLUSTER else unquote(name)


def _write_days(work: str, stage: str, cluster: str, table: Any, days: Numbers) -> None:
    """Write a file for each day, which ascend, and remove those of days that are gone."""
    folder = Path(work, stage, _folder(cluster))
    paths = set()
    edges = np.flatnonzero(np.diff(days, prepend=-1, append=-1) != 0)
    for start, end in pairwise(edges.tolist()):
        day = date(1970, 1, 1) + timedelta(int(days[start]))
        path = folder / f"day={day}" / "part-0.parquet"
        _write(path, table.slice(start, end - start))
        paths.add(path)
    for path in folder.glob("*/part-0.parquet"):
        if path not in paths:
            path.unlink()


# Of a cluster: runs of all files to what happened


@dataclass(frozen=True)
class _Frame:
    """The time that was said, in milliseconds since 1970; None if it was not."""

    since: int | None
    until: int | None


def learn_cluster(work: str, frame: _Frame, cluster: str) -> bytes | str:
    """Write the data sets of a cluster; return its history, pickled, or why there is none."""
    keys, rows, steps = _read_runs(Path(work, RUNS, _folder(cluster)))
    days = rows.firsts // DAY_MS
    order = np.lexsort((rows.firsts, rows.series, days))
    table = _table(keys, rows.at(order), steps[order])
    _write_days(work, "transitions", cluster, table, days[order])
    where = f"metrics of {cluster}" if cluster else "these metrics"
    try:
        samples = samples_of_rows(cluster, keys, *_within(frame, rows, steps), where)
        history = history_of(samples, cluster or UNNAMED)
    except InputError as error:
        return str(error)
    _write_history(work, cluster, history)
    return pickle.dumps(history)


def _read_runs(folder: Path) -> tuple[list[SeriesKey], Rows, Numbers]:
    """Merge the runs of all tasks of a cluster."""
    from pyarrow import parquet

    numbers: dict[SeriesKey, int] = {}
    pieces = []
    for path in sorted(folder.glob("*.parquet")):
        table = parquet.ParquetFile(path).read()
        texts = [table.column(name).combine_chunks() for name in ("target", "metric", "labels")]
        groups, sets = combined(texts)
        own = [
            numbers.setdefault(SeriesKey(target, metric, labels, ""), len(numbers))
            for target, metric, labels in sets
        ]
        series = np.array(own, dtype=np.int64)[groups]
        firsts, lasts = (
            table.column(name).cast(arrow().int64()).to_numpy() for name in ("first", "last")
        )
        counts, values = (table.column(name).to_numpy() for name in ("samples", "value"))
        pieces.append(Rows(series, firsts, lasts, counts, values))
    keys, rows = _numbered(list(numbers), _joined(pieces))
    return keys, *merged(rows)


def _within(frame: _Frame, rows: Rows, steps: Numbers) -> tuple[Rows, Numbers]:
    if frame.since is not None:
        stays = rows.lasts >= frame.since
        rows, steps = rows.at(stays), steps[stays]
        rows = rows._replace(firsts=np.maximum(rows.firsts, frame.since))
    if frame.until is not None:
        stays = rows.firsts < frame.until
        rows, steps = rows.at(stays), steps[stays]
        rows = rows._replace(lasts=np.minimum(rows.lasts, frame.until - 1))
    return rows, steps


def samples_of_rows(
    cluster: str, keys: Sequence[SeriesKey], rows: Rows, steps: Numbers, where: str
) -> Samples:
    """Return what held when in a cluster.

    Raises InputError: nothing to read, no common step, or series that contradict each other.
    """
    if not len(rows.series):
        raise nothing_read(where)
    common = _common_step(rows, steps, where)
    is_rare = steps > MOST_TIMES_COMMON * common
    if is_rare.any():
        rows, steps = _taken_apart(rows, steps, is_rare)
    steps = np.where((steps == 0) | (steps > MOST_TIMES_COMMON * common), common, steps)
    metrics = {metric.value: metric for metric in Metric}
    pieces = []
    # Days of one series with one step are a piece.
    is_new = (np.diff(rows.series) != 0) | (np.diff(steps) != 0)
    for places in np.split(np.arange(len(steps)), np.flatnonzero(is_new) + 1):
        key = keys[int(rows.series[places[0]])]
        own = rows.at(places)
        runs = (own.firsts / 1000.0, own.lasts / 1000.0, own.counts, own.values)
        step = float(steps[places[0]])
        pieces.append(Runs(cluster, key.target, metrics[key.metric], step, *runs))
    return samples_of_runs(pieces, where)


def _taken_apart(rows: Rows, steps: Numbers, is_rare: NDArray[np.bool_]) -> tuple[Rows, Numbers]:
    """Make runs of samples that are far apart runs of one again: between them nothing was seen."""
    times = np.where(is_rare, rows.counts, 1)
    owners = np.repeat(np.arange(len(times)), times)
    numbers = np.arange(len(owners)) - np.repeat(np.cumsum(times) - times, times)
    apart = (rows.lasts - rows.firsts) // np.maximum(rows.counts - 1, 1)
    whole, rare = rows.at(owners), is_rare[owners]
    firsts = whole.firsts + numbers * apart[owners]
    return (
        whole._replace(
            firsts=firsts,
            lasts=np.where(rare, firsts, whole.lasts),
            counts=np.where(rare, 1, whole.counts),
        ),
        steps[owners],
    )


def _common_step(rows: Rows, steps: Numbers, where: str) -> int:
    """The step of most samples; where few say it, the most frequent gap."""
    if (steps > 0).any():
        seconds, places = np.unique(steps[steps > 0], return_inverse=True)
        votes = np.bincount(places, rows.counts[steps > 0])
        return int(seconds[votes.argmax()])
    gaps = (rows.firsts[1:] - rows.lasts[:-1])[np.diff(rows.series) == 0]
    if not (gaps > 0).any():
        raise InputError(f"{where}: no series has two times; ask for a longer time.")
    seconds, votes = np.unique(np.maximum(np.rint(gaps[gaps > 0] / 1000.0), 1), return_counts=True)
    return int(seconds[votes.argmax()])


def _write_history(work: str, cluster: str, history: ClusterHistory) -> None:
    pa = arrow()
    moment = pa.timestamp("ms", "UTC")
    events = [
        (o.mechanism, [str(broker) for broker in o.brokers], o.start, o.end, o.evidence)
        for o in history.outages
    ]
    down = [(b, start, end, "down") for _, brokers, start, end, _ in events for b in brokers]
    unseen = [(gap.broker, gap.start, gap.end, "not watched") for gap in history.gaps]
    mechanisms = [
        ("mechanism", pa.string()),
        ("brokers", pa.list_(pa.string())),
        ("start", moment),
        ("end", moment),
        ("evidence", pa.string()),
    ]
    outages = [("broker", pa.string()), ("start", moment), ("end", moment), ("state", pa.string())]
    _write_rows(work, "mechanisms", cluster, mechanisms, events, 2)
    _write_rows(work, "outages", cluster, outages, sorted(down + unseen, key=_by_start), 1)
    counts = [
        ("mechanism", pa.string()),
        ("events", pa.int64()),
        ("exposure_years", pa.float64()),
    ]
    exposures = history.exposures
    seen = sorted((name, row.events, exposures.get(name)) for name, row in history.seen.items())
    _write(Path(work, "counts", _folder(cluster), "part-0.parquet"), _columns(counts, seen))


def _by_start(row: tuple[str, datetime, datetime | None, str]) -> tuple[datetime, str, str]:
    return row[1], row[0], row[3]


def _columns(kinds: Sequence[tuple[str, Any]], rows: Sequence[tuple[Any, ...]]) -> Any:
    pa = arrow()
    return pa.table(
        {name: pa.array([row[n] for row in rows], kind) for n, (name, kind) in enumerate(kinds)}
    )


def _write_rows(
    work: str,
    stage: str,
    cluster: str,
    kinds: Sequence[tuple[str, Any]],
    rows: Sequence[tuple[Any, ...]],
    start: int,
) -> None:
    days = [int(row[start].timestamp() // 86_400) for row in rows]
    _write_days(work, stage, cluster, _columns(kinds, rows), np.array(days, dtype=np.int64))


# All of it


def read_in_stages(
    sources: Sequence[Any],
    work: str,
    engine: Engine,
    since: datetime | None = None,
    until: datetime | None = None,
    servers: Sequence[Server] = (),
) -> list[ClusterHistory]:
    """Read files of samples to a folder of data sets, and return what clusters have seen.

    work: the folder; what it has of these files is not read again.
    engine: runs the tasks.
    servers: are asked after the files are read, for what `work` does not have of their answers.
    since, until: only this time says what was seen; `transitions` have all of it.
    Raises InputError: files that cannot be read, after all others are done; or nothing to learn
        from.
    """
    _prepare(work)
    tasks, wrong = _planned(sources, Path(work).resolve())
    with progress_bar(len(tasks), "part", "reading samples") as advance:
        for sentence in engine(partial(read_task, work), tasks):
            wrong += filter(None, [sentence])
            advance(1)
    for server in servers:
        last = time() if until is None else until.timestamp()
        first = None if since is None else since.timestamp()
        wrong += filter(None, [read_server(work, server, first, last)])
    if wrong:
        more = len(wrong) - _NAMED
        also = f" And {counted(more, 'more file')} cannot be read." if more > 0 else ""
        others = f" What {work} has of other files stays." if len(tasks) > len(wrong) else ""
        raise InputError(" ".join(wrong[:_NAMED]) + also + others)
    folders = {path.parent.name for path in Path(work, RUNS).glob("cluster=*/*.parquet")}
    for path in Path(work).glob("*/cluster=*/**/part-0.parquet"):
        if path.relative_to(work).parts[1] not in folders:
            path.unlink()
    clusters = sorted(map(_cluster_of, folders))
    frame = _Frame(_ms(since), _ms(until))
    results = list(engine(partial(learn_cluster, work, frame), clusters))
    histories = [pickle.loads(result) for result in results if isinstance(result, bytes)]
    # Other jobs have clusters of their own, without a broker.
    refusals = [result for result in results if isinstance(result, str)]
    if not histories:
        raise InputError(" ".join(refusals[:_NAMED])) if refusals else nothing_read(work)
    notes = (*histories[0].notes, *_left_out(work), *refusals)
    return [replace(histories[0], notes=notes), *histories[1:]]


def _prepare(work: str) -> None:
    """Make the folder of data sets.

    Raises InputError if it is a file, or has other things.
    """
    arrow()
    folder = Path(work)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{work} is a file; name a folder for data sets.")
    try:
        names = {path.name for path in folder.iterdir()} if folder.exists() else set()
        if names - set(STAGES):
            raise InputError(f"{work} has other files; name an empty or new folder for data sets.")
        for stage in (RUNS, REJECTS):
            (folder / stage).mkdir(parents=True, exist_ok=True)
        # What was being written when an earlier call was killed; another may be at work now.
        for path in folder.rglob(".*.parquet.*.part"):
            if time() - path.stat().st_mtime > _SURELY_DEAD_S:
                path.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{work}: no folder can be made there ({error.strerror}).") from None


def _planned(sources: Sequence[Any], work: Path) -> tuple[list[Task], list[str]]:
    """Cut all files into tasks; also what is wrong with those that are none."""
    tasks: list[Task] = []
    wrong: list[str] = []
    for source in sources:
        try:
            files = files_of(source)
        except InputError as error:
            wrong.append(str(error))
            continue
        for path, labels in files:
            # Data sets may be in the folder that is read.
            if work in Path(path).resolve().parents:
                continue
            try:
                tasks += tasks_of(path, labels)
            except InputError as error:
                wrong.append(str(error))
    return list(dict.fromkeys(tasks)), wrong


def _left_out(work: str) -> Iterator[str]:
    """What was not read though it should have been, in sentences."""
    from pyarrow import parquet

    samples: dict[str, int] = {}
    for path in sorted(Path(work, REJECTS).glob("*.parquet")):
        for row in parquet.ParquetFile(path).read(columns=["reason", "samples"]).to_pylist():
            samples[row["reason"]] = samples.get(row["reason"], 0) + row["samples"]
    for reason in ("bad line", "no time"):
        if reason in samples:
            yield f"{counted(samples[reason], 'sample')} left out: {reason} ({work}/rejects)."


def _ms(moment: datetime | None) -> int | None:
    return None if moment is None else round(1000.0 * moment.timestamp())


def write_fits(work: str, numbers: Sequence[Any]) -> None:
    """Write the numbers of a card before and after, the last stage."""
    pa = arrow()
    ends = ("before", "before_low", "before_high", "now", "now_low", "now_high")
    kinds = [("number", pa.string()), *((end, pa.float64()) for end in ends), ("seen", pa.string())]
    rows = [(row.number, *row.prior, *row.posterior, row.evidence) for row in numbers]
    _write(Path(work, "fits", "part-0.parquet"), _columns(kinds, rows))
