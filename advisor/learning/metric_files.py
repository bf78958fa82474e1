"""Files of samples, of any size, read in pieces: Parquet, dumps, saved answers.

Parquet of long-term stores comes in two layouts, by the names of its columns:

- `timestamp`, `value` and `labels`: a map, a struct, or a text such as ``up{instance="b1"}`` or
  JSON;
- `timestamp`, `value`, `metric` (or `__name__`), and a column for each label, such as `instance`,
  `pod`, `job` and `cluster`.

A folder ``cluster=payments`` above a file is a label of all of it. What is not read is counted,
with the reason.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import numpy as np
from numpy.typing import NDArray

from advisor.errors import InputError, MissingExtraError, shown
from advisor.files import read_input
from advisor.learning.metric_names import Metric, key_of, metric_of, version_of
from advisor.learning.prometheus import (
    Series,
    answer_of,
    dump_of,
    is_answer,
    is_dump,
    label_text,
    labels_of,
)
from advisor.parsing import MOST_JSON_CHARACTERS, read_json

Numbers = NDArray[np.int64]
DUMPS = (".txt", ".om", ".prom", ".dump")
PARQUET = (".parquet", ".pq")
_TIMES, _VALUES = ("timestamp", "time", "ts"), ("value",)
_LABELS, _NAMES = "labels", ("metric", "__name__")
_FIRST_BYTES = 200
_ROWS_OF_TASK = 16_000_000
_ROWS_OF_BATCH = 1 << 20
_CHARACTERS_OF_PIECE = 32_000_000
_FEW_TIMES, _FEW_PLACES = 1_000, 1_000_000
_MOST_SERIES = 1_000_000
_MOST_REJECTS = 10_000
_MOST_BAD_LINES = 0.01
YEAR_9999_MS = 253_370_764_800_000
# Seconds since 1970 stay below it, milliseconds above; and so on, by a thousand.
_SECONDS = 100_000_000_000


class SeriesKey(NamedTuple):
    """What a series is of; `labels` tells two of one target and metric apart."""

    target: str
    metric: str
    labels: str
    cluster: str


class Sampled(NamedTuple):
    """Samples of many series, in any order.

    series (n,): places in `keys`.
    times (n,): milliseconds since 1970.
    values (n,).
    """

    keys: Sequence[SeriesKey]
    series: Numbers
    times: Numbers
    values: NDArray[np.float64]


@dataclass
class Rejects:
    """What was not read: samples by reason, and what it was."""

    samples: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, reason: str, what: str, samples: int) -> None:
        """Count samples, with an example of what they are unless there are too many."""
        key = (reason, what[:200])
        if key not in self.samples and len(self.samples) >= _MOST_REJECTS:
            key = (reason, "")
        self.samples[key] = self.samples.get(key, 0) + samples


@dataclass(frozen=True)
class Task:
    """A file, or row groups of one.

    first, last: row groups of Parquet, `last` not included; 0 and 0 of other files.
    labels: of all samples, from the names of its folders.
    stamp: size and time of the file: another one has other samples.
    """

    path: str
    first: int
    last: int
    labels: tuple[tuple[str, str], ...]
    stamp: str


def is_parquet(source: Any) -> bool:
    """Whether a source is a file of Parquet, or a folder with one."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = Path(source)
    files = path.rglob("*") if path.is_dir() else [path]
    return any(file.suffix.lower() in PARQUET for file in files)


def is_samples(source: Any) -> bool:
    """Whether a source is a file of samples by its name or first letters, or a folder."""
    if not isinstance(source, str | os.PathLike) or "://" in os.fspath(source):
        return False
    path = Path(source)
    if path.suffix.lower() == ".json" and path.is_file():
        with path.open("rb") as file:
            return b'"status"' in file.read(_FIRST_BYTES)
    return path.is_dir() or path.suffix.lower() in (*PARQUET, *DUMPS)


def files_of(source: str | os.PathLike[str]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return files and the labels that their folders have; hidden ones are left out.

    Raises InputError if a folder has none that is read.
    """
    path = Path(source)
    if not path.is_dir():
        return [(str(path), ())]
    suffixes = (*PARQUET, *DUMPS, ".json")
    files = []
    for file in sorted(path.rglob("*")):
        inside = file.relative_to(path).parts
        hidden = any(name.startswith((".", "_")) for name in inside)
        if file.suffix.lower() in suffixes and not hidden and file.is_file():
            pairs = (name.partition("=") for name in inside[:-1])
            labels = tuple((key, unquote(value)) for key, sign, value in pairs if sign)
            files.append((str(file), labels))
    if not files:
        raise InputError(f"{source}: the folder has no file of samples ({', '.join(suffixes)}).")
    return files


def tasks_of(path: str, labels: tuple[tuple[str, str], ...]) -> list[Task]:
    """Cut a file into tasks.

    Raises InputError if it cannot be read, or is none of the layouts.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such path"
        raise InputError(f"{path}: cannot be read ({why}).") from None
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{path}: it is no regular file.")
    stamp = f"{status.st_size} {status.st_mtime_ns}"
    if Path(path).suffix.lower() not in PARQUET:
        return [Task(path, 0, 0, labels, stamp)]
    file = _opened(path)
    Layout.of(file.schema_arrow, path)
    tasks, first, rows = [], 0, 0
    for number in range(file.num_row_groups):
        rows += file.metadata.row_group(number).num_rows
        if rows >= _ROWS_OF_TASK or number == file.num_row_groups - 1:
            tasks.append(Task(path, first, number + 1, labels, stamp))
            first, rows = number + 1, 0
    return tasks


def samples_in(task: Task, rejects: Rejects) -> Iterator[Sampled]:
    """Read the samples of a task, in pieces.

    Raises InputError if the file cannot be read.
    """
    suffix = Path(task.path).suffix.lower()
    if suffix in PARQUET:
        yield from _in_parquet(task, rejects)
    elif suffix == ".json":
        yield _of_series(_answered(task.path), rejects)
    else:
        for series in _dumped(task.path, rejects):
            yield _of_series(series, rejects)


# Text


def _answered(path: str) -> Iterable[Series]:
    try:
        document = read_json(read_input(path, MOST_JSON_CHARACTERS).decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not valid JSON ({error}).") from None
    if not is_answer(document):
        raise InputError(f"{path}: it is no answer of Prometheus.")
    return answer_of(document, path).series


def _dumped(path: str, rejects: Rejects) -> Iterator[Iterable[Series]]:
    lines = bad = 0
    for text in _pieces(path):
        if not lines and not is_dump(text):
            raise InputError(f"{path}: it is no dump of samples; its first line says no time.")
        bad_lines: list[str] = []
        yield dump_of(text, path, bad_lines).series
        for line in bad_lines:
            rejects.add("bad line", line, 1)
        lines, bad = lines + text.count("\n") + 1, bad + len(bad_lines)
        if bad > max(1.0, _MOST_BAD_LINES * lines):
            raise InputError(
                f"{path}: {bad:,} of {lines:,} lines are no samples, such as "
                f"{shown(bad_lines[0] if bad_lines else '')}."
            )
    if not lines:
        raise InputError(f"{path}: it is empty.")


def _pieces(path: str) -> Iterator[str]:
    """Whole lines, some tens of megabytes at a time."""
    try:
        with open(path, "rb") as file:
            while block := file.read(_CHARACTERS_OF_PIECE):
                yield (block + file.readline()).decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None


def _of_series(series: Iterable[Series], rejects: Rejects) -> Sampled:
    rows = [entry for entry in series if len(entry.times)]
    keys = [SeriesKey(e.target, e.metric.value, e.labels, e.cluster) for e in rows]
    places = np.repeat(np.arange(len(rows)), [len(entry.times) for entry in rows])
    times = 1000.0 * np.concatenate([np.empty(0), *(entry.times for entry in rows)])
    values = np.concatenate([np.empty(0), *(entry.values for entry in rows)])
    has_time = (times >= 0.0) & (times < YEAR_9999_MS)
    if not has_time.all():
        rejects.add("no time", "", int((~has_time).sum()))
    stays = has_time & ~np.isnan(values)
    return Sampled(keys, places[stays], np.rint(times[stays]).astype(np.int64), values[stays])


# Parquet


def arrow() -> Any:
    """Return pyarrow.

    Raises MissingExtraError if it is not installed.
    """
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError("reading Parquet", "spark") from None
    return pyarrow


class Layout(NamedTuple):
    """Which columns are what; `labels` is "" where each label has a column of its own."""

    time: str
    value: str
    labels: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, schema: Any, where: str) -> Layout:
        """Find the layout of a file.

        Raises InputError if it is none that is read.
        """
        types = arrow().types
        names = set(schema.names)
        time = next((name for name in _TIMES if name in names), "")
        value = next((name for name in _VALUES if name in names), "")
        kinds = (types.is_timestamp, types.is_integer, types.is_floating)
        is_time = bool(time) and any(is_kind(schema.field(time).type) for is_kind in kinds)
        is_value = bool(value) and any(is_kind(schema.field(value).type) for is_kind in kinds[1:])
        texts = tuple(field.name for field in schema if _is_text(field.type))
        if is_time and is_value and _LABELS in names:
            kind = schema.field(_LABELS).type
            if types.is_map(kind) or types.is_struct(kind) or _is_text(kind):
                return cls(time, value, _LABELS, (_LABELS,))
        if is_time and is_value and any(name in texts for name in _NAMES):
            return cls(time, value, "", texts)
        said = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise InputError(
            f"{where}: its columns are {shown(said)}; what is read has timestamp, value, and "
            "labels or metric and instance."
        )


def _is_text(kind: Any) -> bool:
    types = arrow().types
    inner = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(inner) or types.is_large_string(inner))


def _opened(path: str, dictionaries: Sequence[str] = ()) -> Any:
    from_arrow = arrow()
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(path, read_dictionary=list(dictionaries))
    except (from_arrow.ArrowException, OSError, ValueError) as error:
        raise _torn(path, error) from None


def _torn(path: str, error: Exception) -> InputError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return InputError(f"{path}: it is no Parquet, or torn ({shown(reason)}).")


def _in_parquet(task: Task, rejects: Rejects) -> Iterator[Sampled]:
    file = _opened(task.path)
    layout = Layout.of(file.schema_arrow, task.path)
    leaves = [file.schema.column(number) for number in range(len(file.schema))]
    # Labels are the same over and over.
    texts = [leaf.path for leaf in leaves if leaf.path.split(".")[0] in layout.columns]
    file = _opened(task.path, texts)
    known = _Known(dict(task.labels), rejects)
    batches = file.iter_batches(
        batch_size=_ROWS_OF_BATCH,
        row_groups=range(task.first, task.last),
        columns=[layout.time, layout.value, *layout.columns],
        use_threads=False,
    )
    try:
        for batch in batches:
            yield _of_batch(batch, layout, known)
            if len(known.places) > _MOST_SERIES:
                raise InputError(
                    f"{task.path}: it has more than {_MOST_SERIES:,} series; export the brokers' "
                    "only."
                )
    except (arrow().ArrowException, OSError, UnicodeDecodeError) as error:
        raise _torn(task.path, error) from None


class _Known:
    """Series by their labels as they stand in a file, and which of them are read."""

    def __init__(self, of_all: Mapping[str, str], rejects: Rejects) -> None:
        self.places: dict[Any, int] = {}
        self.keys: list[SeriesKey] = []
        self.versions: dict[int, float] = {}
        self._of_all, self._rejects = of_all, rejects

    def place(self, spelled: Any, labels: Mapping[str, Any], samples: int) -> int:
        """Return the place of a series in `keys`; below 0 if it is not read."""
        if spelled not in self.places and len(self.places) <= _MOST_SERIES:
            self.places[spelled] = self._new({**self._of_all, **labels})
        place = self.places.get(spelled, -1)
        if place < 0:
            self._reject({**self._of_all, **labels}, samples)
        return place

    def _new(self, labels: Mapping[str, Any]) -> int:
        key = key_of(labels)
        if key is None:
            return -1
        cluster, target, metric = key
        self.keys.append(SeriesKey(target, metric.value, label_text(labels), cluster))
        if metric is Metric.VERSION:
            self.versions[len(self.keys) - 1] = version_of(labels) or float("nan")
        return len(self.keys) - 1

    def _reject(self, labels: Mapping[str, Any], samples: int) -> None:
        if metric_of(labels) is None:
            self._rejects.add("unknown metric", str(labels.get("__name__", "")), samples)
        else:
            self._rejects.add("no target", label_text(labels), samples)


def _of_batch(batch: Any, layout: Layout, known: _Known) -> Sampled:
    """Read a batch of a file.

    Pure: the same rows give the same samples, wherever it runs.
    """
    times, has_time = _milliseconds(batch.column(layout.time))
    values = _floats(batch.column(layout.value))
    has_time = has_time & (times >= 0) & (times < YEAR_9999_MS)
    if not has_time.all():
        known._rejects.add("no time", "", int((~has_time).sum()))
    groups, spellings = _label_sets(batch, layout)
    counted = np.bincount(groups, minlength=len(spellings))
    places = np.full(len(spellings), -1)
    for number in np.flatnonzero(counted):
        spelled, labels = spellings[number]
        places[number] = known.place(spelled, labels, int(counted[number]))
    series = places[groups]
    for place, version in known.versions.items():
        values[series == place] = version
    stays = has_time & (series >= 0) & ~np.isnan(values)
    if stays.all():
        return Sampled(known.keys, series, times, values)
    return Sampled(known.keys, series[stays], times[stays], values[stays])


def _milliseconds(column: Any) -> tuple[Numbers, NDArray[np.bool_]]:
    """Times, and where there is one."""
    pa = arrow()
    has_time = np.ones(len(column), dtype=bool)
    if column.null_count:
        has_time = column.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(column.type):
        numbers = column.cast(pa.timestamp("ms"), safe=False).cast(pa.int64())
        return _filled(numbers, 0).astype(np.int64, copy=False), has_time
    numbers = _filled(column, 0)
    if pa.types.is_floating(column.type):
        has_time = has_time & np.isfinite(numbers)
        numbers = np.where(has_time, numbers, 0.0)
    # Seconds, milliseconds, microseconds or nanoseconds, by what is usual.
    usual = float(np.median(numbers[:: len(numbers) // _FEW_TIMES + 1])) if len(numbers) else 0.0
    factor = 1000.0
    while usual > _SECONDS:
        usual, factor = usual / 1000.0, factor / 1000.0
    if np.issubdtype(numbers.dtype, np.integer) and factor <= 1.0:
        return (numbers // round(1.0 / factor)).astype(np.int64, copy=False), has_time
    return np.rint(np.clip(numbers * factor, -1.0, YEAR_9999_MS)).astype(np.int64), has_time


def _floats(column: Any) -> NDArray[np.float64]:
    numbers: NDArray[np.float64] = _filled(column, None).astype(np.float64)
    return numbers


def _filled(column: Any, value: Any) -> Any:
    """Return a column's numbers; a null is a value, or NaN."""
    if column.null_count and value is not None:
        column = column.fill_null(value)
    return column.to_numpy(zero_copy_only=False)


def _label_sets(batch: Any, layout: Layout) -> tuple[Numbers, list[tuple[Any, Mapping[str, Any]]]]:
    """Number the sets of labels in a batch; each with how it is spelled, and its labels."""
    types = arrow().types
    if not layout.labels:
        return _of_columns([(name, batch.column(name)) for name in layout.columns])
    column = batch.column(layout.labels)
    if types.is_map(column.type):
        return _of_maps(column)
    if types.is_struct(column.type):
        fields = zip(column.type, column.flatten(), strict=True)
        texts = [(field.name, inner) for field, inner in fields if _is_text(field.type)]
        return _of_columns(texts)
    codes, words = _coded(column)
    return codes, [(word, _parsed(word)) for word in words]


def _coded(column: Any) -> tuple[Numbers, list[str]]:
    """Codes of texts, and the texts; a null is an empty one."""
    if not arrow().types.is_dictionary(column.type):
        column = column.dictionary_encode()
    words = [word or "" for word in column.dictionary.to_pylist()]
    codes = _filled(column.indices, len(words)).astype(np.int64)
    return codes, [*words, ""]


def _of_columns(
    columns: Sequence[tuple[str, Any]],
) -> tuple[Numbers, list[tuple[Any, Mapping[str, Any]]]]:
    names = ["__name__" if name == "metric" else name for name, _ in columns]
    groups, sets = combined([column for _, column in columns])
    pairs = (zip(names, words, strict=True) for words in sets)
    return groups, [
        (words, {name: word for name, word in own if word})
        for words, own in zip(sets, pairs, strict=True)
    ]


def combined(columns: Sequence[Any]) -> tuple[Numbers, list[tuple[str, ...]]]:
    """Number the combinations of texts that there are in rows of columns."""
    groups = np.zeros(len(columns[0]) if columns else 0, dtype=np.int64)
    sets: list[tuple[str, ...]] = [()]
    for column in columns:
        codes, words = _coded(column)
        places = groups * len(words) + codes
        there, groups = _renumbered(places, len(sets) * len(words))
        sets = [(*sets[place // len(words)], words[place % len(words)]) for place in there]
    return groups, sets


def _renumbered(places: Numbers, size: int) -> tuple[Numbers, Numbers]:
    """The places below a size that there are, and for each row the number of its own."""
    if size > len(places) + _FEW_PLACES:
        there, numbers = np.unique(places, return_inverse=True)
        return there, numbers.astype(np.int64)
    is_there = np.zeros(size, dtype=bool)
    is_there[places] = True
    there = np.flatnonzero(is_there)
    renumbered = np.zeros(size, dtype=np.int64)
    renumbered[there] = np.arange(len(there))
    return there, renumbered[places]


def _of_maps(column: Any) -> tuple[Numbers, list[tuple[Any, Mapping[str, Any]]]]:
    """By a hash of each row's pairs, in whatever order they stand."""
    offsets = column.offsets.to_numpy()
    first, last = int(offsets[0]), int(offsets[-1])
    keys, words = _coded(column.keys.slice(first, last - first))
    items, others = _coded(column.items.slice(first, last - first))
    pairs = _mixed(keys * len(others) + items)
    lengths = np.diff(offsets)
    totals = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(pairs, dtype=np.uint64)])
    hashes = totals[offsets[1:] - first] - totals[offsets[:-1] - first]
    _, places, groups = np.unique(hashes, return_index=True, return_inverse=True)
    sets: list[tuple[Any, Mapping[str, Any]]] = []
    for place in places:
        start, length = int(offsets[place]) - first, int(lengths[place])
        labels = {words[keys[n]]: others[items[n]] for n in range(start, start + length)}
        sets.append((tuple(sorted(labels.items())), labels))
    return groups.astype(np.int64), sets


def _mixed(numbers: Numbers) -> NDArray[np.uint64]:
    """Spread numbers over 64 bits (the finaliser of splitmix64)."""
    mixed = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    spread: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return spread


def _parsed(text: str) -> Mapping[str, Any]:
    """Read labels from a text: JSON, or as Prometheus writes them."""
    name, _, inside = text.partition("{")
    if not name.strip() and '"' in inside and "=" not in inside.partition('"')[0]:
        try:
            document = json.loads(text)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}
    return labels_of(text)
