"""Counts that a person types, and incidents with their times: read into `ClusterHistory`.

A mapping, or the same as TOML or JSON::

    {"brokers": 12, "years": 3, "racks": 3,
     "events": {"broker.power": 4, "cluster.crash": [{"minutes": 40}]}}

`docs/learn.md` says what may stand there. CSV has counts (`mechanism,events,...`) or incidents
(`start,end,what,brokers`), a row each. Anything else is refused, with the place and the nearest
word: a misspelt mechanism would silently count nothing.
"""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from advisor.engines import engine_of
from advisor.errors import InputError, shown
from advisor.files import read_input
from advisor.formatting import HOURS_PER_YEAR, as_given
from advisor.learning.cloudwatch import CloudWatch, cloudwatch_of, histories_of, is_cloudwatch
from advisor.learning.evidence import UNNAMED, ClusterHistory, Outage, Refused, Seen
from advisor.learning.metric_files import DUMPS, is_parquet, is_samples
from advisor.learning.metric_outages import brokers_of, history_of
from advisor.learning.prometheus import (
    MOST_DUMP_BYTES,
    Answer,
    Series,
    answer_of,
    dump_of,
    is_answer,
    is_dump,
)
from advisor.learning.prometheus_api import Server, is_address, server_at
from advisor.learning.transitions import Runs, Samples, nothing_read, samples_of, samples_of_runs
from advisor.learning.typed_events import (
    TIMES,
    TypedEvents,
    amount,
    moment,
    near,
    whole_number,
)
from advisor.parsing import MOST_JSON_CHARACTERS, read_json, read_toml
from advisor.reliability.failures.mechanism import per_hour
from advisor.reliability.failures.mechanisms import Mechanism, Scope, table

_KEYS = (
    *("name", "brokers", "racks", "years", "months", "days", "since", "until", "mode"),
    *("events", "incidents", "refused_minutes"),
)
_INCIDENTS = "incidents"
_HERE = "local"
PACKED = (".gz", ".zst", ".xz", ".bz2", ".zip")
_HOST_AND_PORT = re.compile(r"[\w.-]+:\d{1,5}(/|$)")
_CLUSTERS = "clusters"
_LONG = {"years": 1.0, "months": 1.0 / 12.0, "days": 24.0 / HOURS_PER_YEAR}
_COUNT = "events"
MOST_BROKERS, MOST_YEARS = 100_000, 30.0
"""More than any Kafka cluster has, and longer than Kafka exists: taken for typos."""
# More than one an hour, of one broker, is no outage.
_MOST_PER_YEAR = HOURS_PER_YEAR
_COUNT_COLUMNS = ("mechanism", "events")
_INCIDENT_COLUMNS = ("start", "what")


@dataclass(frozen=True)
class Window:
    """What a source may leave out, because it is said beside it.

    Attributes
    ----------
    brokers, racks : int or None
        Of the cluster that was described.
    mode : str
    since, until : datetime or None
    client_properties : str or path or None
        A file with the login of a server of metrics.
    timeout_ms : int or None
        For each question to such a server.
    work : str or path or None
        A folder for data sets, if samples are read to them.
    engine : str
        What reads them.
    """

    brokers: int | None = None
    racks: int | None = None
    mode: str = "kraft"
    since: datetime | None = None
    until: datetime | None = None
    client_properties: str | os.PathLike[str] | None = None
    timeout_ms: int | None = None
    work: str | os.PathLike[str] | None = None
    engine: str = "local"


def read_histories(sources: Sequence[Any], window: Window) -> tuple[ClusterHistory, ...]:
    """Read sources, each one or several clusters.

    Raises
    ------
    InputError
        Anything that is misspelt, missing, negative, NaN, or more than there can be.
    """
    measured, typed = _measured(sources, window)
    if len(measured) == 1:
        # What is counted beside the metrics of a cluster was counted in the same time.
        window = replace(
            window,
            brokers=window.brokers or measured[0].brokers,
            since=window.since or measured[0].since,
            until=window.until or measured[0].until,
        )
    histories = _joined(measured, [h for counts in typed for h in counts.read(window)])
    names = [history.name for history in histories]
    if len(set(names)) < len(names):
        histories = [replace(h, name=f"cluster {n}") for n, h in enumerate(histories, 1)]
    return tuple(histories)


class _Counts(NamedTuple):
    """Counts that a person typed: a table, or the text of a CSV."""

    content: Mapping[Any, Any] | str
    where: str
    folder: Path | None = None

    def read(self, window: Window) -> list[ClusterHistory]:
        if isinstance(self.content, str):
            return _of_csv(self.content, self.where, window)
        return _of_document(self.content, self.where, window, self.folder)


def _measured(sources: Sequence[Any], window: Window) -> tuple[list[ClusterHistory], list[_Counts]]:
    """What metrics say, cluster by cluster; and what was typed, still to be read."""
    histories: list[ClusterHistory] = []
    answers: list[Answer] = []
    of_cloud: list[CloudWatch] = []
    typed: list[_Counts] = []
    if window.work is not None or any(is_parquet(source) for source in sources):
        staged = [source for source in sources if is_samples(source)]
        asked = [source for source in sources if window.work is not None and is_address(source)]
        if not staged and not asked:
            raise InputError(
                "there are no samples for --work; counts and answers of CloudWatch need no folder."
            )
        histories += _of_stages(staged, asked, window)
        sources = [source for source in sources if source not in (*staged, *asked)]
    elif window.engine != _HERE:
        raise InputError(
            f"engine={shown(window.engine)} reads Parquet, or what goes to a folder for data sets "
            "(work); there is neither."
        )
    files = [file for source in sources for file in _files(source)]
    for number, source in enumerate(files, 1):
        where = f"source {number}" if len(files) > 1 else "counts"
        read = _read_source(source, where, window)
        # Answers about different metrics, or months, are of the same clusters.
        if isinstance(read, Answer):
            answers.append(read)
        elif isinstance(read, CloudWatch):
            of_cloud.append(read)
        elif isinstance(read, _Counts):
            typed.append(read)
        else:
            histories += read
    if answers:
        histories += _of_answers(answers, window)
    if of_cloud:
        histories += histories_of([_inside(answer, window) for answer in of_cloud], "CloudWatch")
    return histories, typed


def _joined(
    measured: Sequence[ClusterHistory], typed: Sequence[ClusterHistory]
) -> list[ClusterHistory]:
    """What was typed of a cluster with metrics is added to them; the others are clusters too.

    Raises
    ------
    InputError
        Counts that do not say of which of several clusters they are.
    """
    histories = {history.name: history for history in measured}
    alone = []
    for history in typed:
        name = history.name
        if len(measured) == len(typed) == 1 and not (history.named and measured[0].named):
            name = measured[0].name
        if name in histories:
            histories[name] = histories[name].with_counts(history)
        elif measured and not history.named:
            names = ", ".join(histories)
            raise InputError(
                f"{history.name}: say of which cluster the counts are (name); there are metrics of "
                f"{names}."
            )
        else:
            alone.append(history)
    return [*histories.values(), *alone]


def is_metrics(source: str) -> bool:
    """Whether a source has metrics, and not counts that a person typed."""
    if is_samples(source) or is_address(source):
        return True
    is_file = source.lower().endswith(".json") and Path(source).is_file()
    return is_file and isinstance(_read_source(source, source, Window()), CloudWatch)


def _files(source: Any) -> list[Any]:
    """The answers and dumps in a folder, or the source itself."""
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        files = [f for f in sorted(Path(source).iterdir()) if f.suffix in (".json", *DUMPS)]
        if not files:
            raise InputError(
                f"{source}: the folder has no answer of Prometheus (.json) and no dump (.txt)."
            )
        return list(files)
    return [source]


def _of_answers(answers: Sequence[Answer], window: Window) -> list[ClusterHistory]:
    """Read what brokers reported, in the time that was said."""
    inside = [_cut(row, window) for answer in answers for row in answer.series]
    return _of_samples(samples_of(inside, "these metrics"), window)


def _inside(answer: CloudWatch, window: Window) -> CloudWatch:
    rows = [row._replace(series=_cut(row.series, window)) for row in answer.series]
    return CloudWatch(tuple(row for row in rows if len(row.series.times)))


def _cut(series: Series, window: Window) -> Series:
    """A series in the time that was said."""
    since = window.since.timestamp() if window.since else -math.inf
    until = window.until.timestamp() if window.until else math.inf
    marks = (series.times >= since) & (series.times < until)
    return replace(series, times=series.times[marks], values=series.values[marks])


def _of_samples(all_samples: Sequence[Samples], window: Window) -> list[ClusterHistory]:
    # Exporters of hosts may lack the label of the cluster, and make none of their own.
    own = [samples for samples in all_samples if brokers_of(samples)] or all_samples
    return [
        replace(
            history_of(samples, samples.cluster or UNNAMED),
            mode=window.mode,
        )
        for samples in own
    ]


def _of_stages(
    sources: Sequence[Any], addresses: Sequence[str], window: Window
) -> list[ClusterHistory]:
    """Read samples in stages: to a folder that was named, or to one that goes away."""
    from advisor.learning.stages import read_in_stages

    servers = [_server(address, window) for address in addresses]
    with ExitStack() as stack:
        work = window.work or stack.enter_context(TemporaryDirectory(prefix="advisor-learn-"))
        engine = engine_of(window.engine)
        histories = read_in_stages(
            sources, os.fspath(work), engine, window.since, window.until, servers
        )
    return [replace(history, mode=window.mode) for history in histories]


def _server(address: str, window: Window) -> Server:
    """A server to ask about a time that has begun."""
    until = datetime.now(UTC) if window.until is None else window.until
    if window.since is not None and window.since >= until:
        raise InputError("since is not before until.")
    return server_at(address, window.client_properties, window.timeout_ms)


def _of_server(address: str, window: Window) -> list[ClusterHistory]:
    """Ask a server what brokers reported, in the time that was said."""
    from advisor.learning.prometheus_live import runs_at

    until = datetime.now(UTC) if window.until is None else window.until
    since = None if window.since is None else window.since.timestamp()
    server = _server(address, window)
    by_cluster: dict[str, list[Runs]] = {}
    for runs in runs_at(server, since, until.timestamp()):
        by_cluster.setdefault(runs.cluster, []).append(runs)
    if not by_cluster:
        raise nothing_read(server.where)
    return _of_samples(
        [samples_of_runs(runs, server.where) for runs in by_cluster.values()], window
    )


def _read_source(
    source: Any, where: str, window: Window
) -> list[ClusterHistory] | Answer | CloudWatch | _Counts:
    if is_answer(source):
        return answer_of(source, where)
    if is_cloudwatch(source):
        return cloudwatch_of(source, where)
    if isinstance(source, Mapping):
        return _Counts(source, where)
    if not isinstance(source, str | os.PathLike):
        raise InputError(f"{where}: give a mapping of counts or a file, not {shown(source)}.")
    path = os.fspath(source)
    if is_address(path):
        return _of_server(path, window)
    suffix = Path(path).suffix.lower()
    text = _text(path, MOST_DUMP_BYTES if suffix in DUMPS else MOST_JSON_CHARACTERS)
    if suffix not in (".csv", ".json") and is_dump(text):
        return dump_of(text, path)
    if suffix == ".csv":
        return _Counts(text, path)
    document = _document(text, path, suffix)
    if is_answer(document):
        return answer_of(document, path)
    if is_cloudwatch(document):
        return cloudwatch_of(document, path)
    if not isinstance(document, Mapping):
        raise InputError(f"{path}: give a table with brokers, years and events.")
    return _Counts(document, path, Path(path).parent)


def _document(text: str, path: str, suffix: str) -> Any:
    """What a file of JSON or TOML has; a description of a cluster is called that."""
    try:
        return read_json(text) if suffix == ".json" else read_toml(text)
    except ValueError as error:
        from advisor.cluster.formats.sources import source_of

        described = source_of(text, suffix)
        if described is not None and described.read is not None:
            raise InputError(
                f"{path}: this is {described.name}, which describes a cluster and counts nothing; "
                "give it as the cluster, with --cluster."
            ) from None
        kind = "JSON" if suffix == ".json" else "TOML"
        raise InputError(
            f"{path}: not valid {kind} ({error}); counts are .toml, .json or .csv."
        ) from None


def _text(path: str, most_bytes: int = MOST_JSON_CHARACTERS) -> str:
    try:
        text = read_input(path, most_bytes).decode("utf-8-sig")
    except OSError as error:
        hint = "; an address begins with http:// or https://" if _HOST_AND_PORT.match(path) else ""
        raise InputError(f"{path}: cannot be read ({error.strerror}){hint}.") from None
    except UnicodeDecodeError as error:
        packed = "; unpack it first" if path.lower().endswith(PACKED) else ""
        raise InputError(f"{path}: not UTF-8 text (byte {error.start}){packed}.") from None
    except ValueError:
        raise InputError(f"{shown(path)} is not a path.") from None
    if not text.strip():
        raise InputError(f"{path}: it is empty.")
    return text


# A mapping


def _of_document(
    document: Mapping[Any, Any], where: str, window: Window, folder: Path | None = None
) -> list[ClusterHistory]:
    if _CLUSTERS not in document:
        return [_history(document, where, window, folder)]
    clusters = document[_CLUSTERS]
    if len(document) > 1 or not isinstance(clusters, list | tuple) or not clusters:
        raise InputError(f"{where}: `{_CLUSTERS}` stands alone, and is a list of tables.")
    tables = enumerate(clusters, 1)
    return [_history(entry, f"{where}: cluster {n}", window, folder) for n, entry in tables]


def _history(raw: Any, where: str, window: Window, folder: Path | None = None) -> ClusterHistory:
    if not isinstance(raw, Mapping):
        raise InputError(f"{where}: give a table with brokers, years and events.")
    for key in raw:
        if key not in _KEYS:
            raise InputError(f"{where}: {shown(key)} is no key of counts; {near(key, _KEYS)}")
    history = _frame(raw, where, window)
    if _COUNT not in raw and _INCIDENTS not in raw:
        raise InputError(f"{where}: give events, such as {_example()}, or a file of incidents.")
    events = raw.get(_COUNT, {})
    if not isinstance(events, Mapping):
        raise InputError(f"{where}: events is a table, such as {_example()}.")
    typed = _with_events(history, dict(_by_mechanism(events, where)), where)
    if _INCIDENTS not in raw:
        return typed
    path = raw[_INCIDENTS]
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"{where}: incidents names a CSV file, not {shown(path)}.")
    named = os.fspath(path if folder is None else folder / path)
    listed = _with_csv(history, _text(named), named)
    for name in typed.seen:
        if name in listed.seen:
            raise InputError(f"{where}: {name} is in events and in {named}; count it once.")
    return replace(
        typed,
        seen={**typed.seen, **listed.seen},
        outages=tuple(sorted((*typed.outages, *listed.outages), key=_start)),
        left_out=typed.left_out + listed.left_out,
    )


def _example() -> str:
    return f'{{"{table().names[0]}": 4}}'


def _frame(raw: Mapping[Any, Any], where: str, window: Window) -> ClusterHistory:
    """The cluster and the time in which it was watched, without events."""
    brokers = raw.get("brokers", window.brokers)
    if brokers is None:
        raise InputError(f"{where}: say how many brokers there were (brokers).")
    racks = raw.get("racks", window.racks)
    count = whole_number(brokers, f"{where}: brokers", 1, MOST_BROKERS)
    mode = raw.get("mode", window.mode)
    if mode not in ("kraft", "zookeeper"):
        raise InputError(f"{where}: mode is kraft or zookeeper, not {shown(mode)}.")
    name = raw.get("name", where)
    if not isinstance(name, str):
        raise InputError(f"{where}: name is a text, not {shown(name)}.")
    refused = raw.get("refused_minutes")
    years, since, until = _watched(raw, where, window)
    history = ClusterHistory(
        name=name,
        named="name" in raw,
        brokers=count,
        years=years,
        racks=None if racks is None else whole_number(racks, f"{where}: racks", 1, count),
        mode=mode,
        since=since,
        until=until,
    )
    if refused is None:
        return history
    minutes = amount(refused, f"{where}: refused_minutes")
    if minutes > years * HOURS_PER_YEAR * 60.0:
        raise InputError(f"{where}: refused_minutes is more than all the time that was watched.")
    return replace(history, refused=Refused(minutes, years))


def _watched(
    raw: Mapping[Any, Any], where: str, window: Window
) -> tuple[float, datetime | None, datetime | None]:
    stated = [key for key in _LONG if key in raw]
    since = moment(raw["since"], f"{where}: since") if "since" in raw else window.since
    until = moment(raw["until"], f"{where}: until") if "until" in raw else window.until
    if stated:
        if len(stated) > 1 or "since" in raw or "until" in raw:
            raise InputError(f"{where}: give years, months or days, or since and until: one way.")
        (key,) = stated
        years = amount(raw[key], f"{where}: {key}") * _LONG[key]
        since = until = None
    elif since is None or until is None:
        raise InputError(f"{where}: say for how long was counted: years, or since and until.")
    elif until <= since:
        raise InputError(f"{where}: until is not after since.")
    else:
        years = (until - since).total_seconds() / 3600.0 / HOURS_PER_YEAR
    if not 0.0 < years <= MOST_YEARS:
        raise InputError(
            f"{where}: {as_given(years)} years were watched; it must be more than 0 and at most "
            f"{MOST_YEARS:g}."
        )
    return years, since, until


def _by_mechanism(events: Mapping[Any, Any], where: str) -> Iterator[tuple[Mechanism, Any]]:
    """Mechanisms and what is said of each; in TOML their names may be nested tables."""
    mechanisms = table()
    groups = {name.partition(".")[0] for name in mechanisms.names}
    for key, raw in events.items():
        if key in groups and isinstance(raw, Mapping):
            for inner, content in raw.items():
                yield mechanism_of(f"{key}.{inner}", where), content
        else:
            yield mechanism_of(key, where), raw


def mechanism_of(name: Any, where: str) -> Mechanism:
    """Return the mechanism of a name, or of what sentences call it.

    Raises
    ------
    InputError
        If there is none; the message has the nearest name.
    """
    mechanisms = table()
    if isinstance(name, str):
        said = name.strip().lower()
        if said in mechanisms:
            return mechanisms[said]
        for entry in mechanisms.entries:
            if said in (entry.words, entry.words.removesuffix("s")):
                return entry
    raise InputError(f"{where}: no mechanism {shown(name)}; {near(name, mechanisms.names)}")


def _with_events(
    history: ClusterHistory, events: Mapping[Mechanism, Any], where: str
) -> ClusterHistory:
    seen: dict[str, Seen] = {}
    outages: list[Outage] = []
    left_out = history.left_out
    for entry, raw in events.items():
        here = f"{where}: {entry.name}"
        if entry.scope is Scope.RACK and history.racks is None:
            raise InputError(f"{here} is counted in rack-years: say how many racks there are.")
        seen[entry.name], dated = TypedEvents(entry, history, here).read(raw)
        outages += dated
        if isinstance(raw, list | tuple):
            left_out += len(raw) - seen[entry.name].events
        _check_often(entry, seen[entry.name], history, here)
    in_order = tuple(sorted(outages, key=_start))
    return replace(history, seen=seen, outages=in_order, left_out=left_out)


def _start(outage: Outage) -> datetime:
    return outage.start


def _check_often(entry: Mechanism, seen: Seen, history: ClusterHistory, where: str) -> None:
    exposure = history.exposure_years(entry.scope)
    if seen.events > max(1.0, _MOST_PER_YEAR * exposure):
        raise InputError(
            f"{where}: {seen.events:,} events in {as_given(exposure)} {entry.scope.value}-years "
            "are more than one an hour; check events, brokers and years."
        )


# CSV


def _of_csv(text: str, path: str, window: Window) -> list[ClusterHistory]:
    """Read a CSV of incidents in the cluster that was described, or of counts in one or several."""
    columns, rows = _rows(text, path)
    if "mechanism" not in columns:
        frame = replace(_frame({}, path, window), name=Path(path).stem)
        return [_with_csv(frame, text, path)]
    clusters: dict[str, list[tuple[int, dict[str, str]]]] = {}
    for line, row in rows:
        clusters.setdefault(row.get("cluster", ""), []).append((line, row))
    histories = []
    for name, members in clusters.items():
        stated: dict[str, Any] = {"name": name} if name else {}
        for key in ("brokers", "racks", "mode", *_LONG, "since", "until"):
            said = {row[key] for _, row in members if row.get(key)}
            if len(said) > 1:
                raise InputError(f"{path}: {key} of one cluster is {' and '.join(sorted(said))}.")
            if said:
                (text_of_key,) = said
                stated[key] = (
                    text_of_key if key in ("mode", "since", "until") else _cell(text_of_key)
                )
        frame = _frame(stated, path, window)
        frame = frame if name else replace(frame, name=Path(path).stem)
        histories.append(_with_counts(frame, members, path))
    return histories


def _with_csv(history: ClusterHistory, text: str, path: str) -> ClusterHistory:
    columns, rows = _rows(text, path)
    if "mechanism" in columns:
        return _with_counts(history, rows, path)
    if history.since is None or history.until is None:
        raise InputError(
            f"{path}: incidents have dates; say since and until, so that it is known which of them "
            "were in the time that was watched."
        )
    events: dict[Mechanism, list[dict[str, Any]]] = {}
    for line, row in rows:
        entry = mechanism_of(row["what"], f"{path}:{line}")
        event: dict[str, Any] = {key: row[key] for key in TIMES if row.get(key)}
        event["where"] = f"{path}:{line}"
        brokers = row.get("brokers", "").replace(",", " ").replace(";", " ").split()
        if brokers:
            event["brokers"] = [_cell(broker) for broker in brokers]
        if row.get("racks"):
            event["racks"] = _cell(row["racks"])
        events.setdefault(entry, []).append(event)
    return _with_events(history, events, path)


def _with_counts(
    history: ClusterHistory, rows: Sequence[tuple[int, dict[str, str]]], path: str
) -> ClusterHistory:
    events: dict[Mechanism, dict[str, Any]] = {}
    frame = {"cluster", "mechanism", "brokers", "racks", "mode", *_LONG, "since", "until"}
    for line, row in rows:
        entry = mechanism_of(row["mechanism"], f"{path}:{line}")
        if entry in events:
            raise InputError(f"{path}:{line}: {entry.name} was counted in an earlier row, too.")
        typed: dict[str, Any] = {}
        for key, cell in row.items():
            if cell and key not in frame:
                parts = [_cell(word) for word in cell.replace(";", " ").split()]
                typed[key] = parts if per_hour(key) else parts[0]
        typed["where"] = f"{path}:{line}"
        events[entry] = typed
    return _with_events(history, events, path)


def _rows(text: str, path: str) -> tuple[tuple[str, ...], list[tuple[int, dict[str, str]]]]:
    """Columns and rows of a CSV, with their lines; lines that begin with # are comments."""
    lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if _says(line)]
    if not lines:
        raise InputError(f"{path}: it is empty; give a header and rows.")
    try:
        table_rows = [next(csv.reader(StringIO(line), strict=True)) for _, line in lines]
    except csv.Error as error:
        raise InputError(f"{path}: not valid CSV ({error}).") from None
    columns = tuple(cell.strip().lower() for cell in table_rows[0])
    for wanted in (_COUNT_COLUMNS, _INCIDENT_COLUMNS):
        if set(wanted) <= set(columns):
            break
    else:
        raise InputError(
            f"{path}: the first line must name the columns: mechanism,events,... for counts, or "
            f"start,end,what,brokers for incidents; it has {shown(','.join(columns))}."
        )
    if len(set(columns)) < len(columns):
        raise InputError(f"{path}: a column is there twice.")
    rows = []
    for (line, _), cells in zip(lines[1:], table_rows[1:], strict=True):
        if len(cells) != len(columns):
            raise InputError(
                f"{path}:{line}: {len(cells)} fields, but {len(columns)} columns; put fields with "
                "commas into quotes."
            )
        stripped = (cell.strip() for cell in cells)
        rows.append((line, dict(zip(columns, stripped, strict=True))))
    return columns, rows


def _says(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _cell(text: str) -> Any:
    """A number of a CSV, or the text if it is none, which is then refused where it stands."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
