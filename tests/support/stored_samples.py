"""Samples of a small cluster as long-term stores keep them, with known truth, in any layout."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import parquet

STEP, SCRAPES = 30, 240
# A quarter of an hour before midnight.
BEGIN = 1_735_689_600 - 900
BROKERS = ("b1:9404", "b2:9404", "b3:9404")
CONTROLLER = "c1:9404"
USUAL = {
    "up": 1.0,
    "process_start_time_seconds": float(BEGIN - 100_000),
    "kafka_server_replicamanager_underreplicatedpartitions": 0.0,
    "kafka_server_replicamanager_underminisrpartitioncount": 0.0,
    "kafka_server_replicamanager_leadercount": 40.0,
}
OF_CONTROLLERS = {
    "up": 1.0,
    "kafka_controller_kafkacontroller_offlinepartitionscount": 0.0,
    "kafka_controller_kafkacontroller_globalpartitioncount": 120.0,
    "kafka_controller_kafkacontroller_lastappliedrecordlagms": 312.0,
}


class Sample(NamedTuple):
    """A sample; `ms` since 1970."""

    metric: str
    instance: str
    ms: int
    value: float


Rows = dict[tuple[str, str], np.ndarray]


def quiet() -> Rows:
    """What a healthy cluster reports at each scrape; NaN where a test takes it away."""
    rows = {(name, b): np.full(SCRAPES, value) for b in BROKERS for name, value in USUAL.items()}
    return rows | {(n, CONTROLLER): np.full(SCRAPES, v) for n, v in OF_CONTROLLERS.items()}


def restart(rows: Rows, target: str, first: int, last: int) -> None:
    """A broker is down from one scrape to another, and returns as a new process."""
    silence(rows, target, first, last)
    rows["process_start_time_seconds", target][last:] = BEGIN + STEP * last - 10.0


def silence(rows: Rows, target: str, first: int, last: int) -> None:
    """A target does not answer."""
    for (name, own), row in rows.items():
        if own == target:
            row[first:last] = 0.0 if name == "up" else np.nan


def samples_of(rows: Rows) -> list[Sample]:
    """Each target at a moment of its own, series by series."""
    return [sample for key, row in rows.items() for sample in _series(*key, row)]


def _series(name: str, target: str, row: np.ndarray) -> Iterator[Sample]:
    moment = 7_000 * (sum(map(ord, target)) % 4)
    for place in np.flatnonzero(~np.isnan(row)):
        # Scrapes are some milliseconds late.
        late = 13 * int(place) % 7
        ms = 1000 * (BEGIN + STEP * int(place)) + moment + late
        yield Sample(name, target, ms, float(row[place]))


LAYOUTS = ("columns", "map", "struct", "json", "prometheus", "seconds", "nanoseconds", "by time")


def write(path: Path, samples: Sequence[Sample], layout: str = "columns", job: str = "k") -> Path:
    """Write samples as Parquet."""
    if layout == "by time":
        samples = sorted(samples, key=lambda sample: sample.ms)
    labels = [{"__name__": s.metric, "instance": s.instance, "job": job} for s in samples]
    ms = pa.array([s.ms for s in samples], pa.int64())
    columns: dict[str, Any] = {
        "timestamp": ms.cast(pa.timestamp("ms", "UTC")),
        "value": pa.array([s.value for s in samples], pa.float64()),
    }
    if layout == "seconds":
        columns["timestamp"] = pa.array([s.ms / 1000.0 for s in samples], pa.float64())
    if layout == "nanoseconds":
        columns["timestamp"] = pa.array([s.ms * 1_000_000 for s in samples], pa.int64())
    if layout == "map":
        pairs = [list(row.items()) for row in labels]
        columns["labels"] = pa.array(pairs, pa.map_(pa.string(), pa.string()))
    elif layout == "struct":
        columns["labels"] = pa.array(labels)
    elif layout == "json":
        columns["labels"] = pa.array([json.dumps(row) for row in labels])
    elif layout == "prometheus":
        columns["labels"] = pa.array([_text(row) for row in labels])
    else:
        columns["metric"] = pa.array([s.metric for s in samples], pa.string())
        columns["instance"] = pa.array([s.instance for s in samples], pa.string())
        columns["job"] = pa.array([job] * len(samples), pa.string())
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.table(columns), path)
    return path


def _text(labels: dict[str, str]) -> str:
    inside = ", ".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{{{inside}}}"


def write_dump(path: Path, samples: Sequence[Sample]) -> Path:
    """Write samples as promtool dumps them."""
    lines = [
        f"{_text({'__name__': s.metric, 'instance': s.instance, 'job': 'k'})} {s.value:.17g} {s.ms}"
        for s in samples
    ]
    path.write_text("\n".join([*lines, ""]))
    return path


def write_answer(path: Path, samples: Sequence[Sample]) -> Path:
    """Write samples as the HTTP API answers."""
    series: dict[tuple[str, str], list[Any]] = {}
    for sample in samples:
        values = series.setdefault((sample.metric, sample.instance), [])
        values.append([sample.ms / 1000.0, repr(sample.value)])
    result = [
        {"metric": {"__name__": name, "instance": instance, "job": "k"}, "values": values}
        for (name, instance), values in series.items()
    ]
    data = {"resultType": "matrix", "result": result}
    path.write_text(json.dumps({"status": "success", "data": data}))
    return path


def contents(work: Path, *stages: str) -> dict[str, bytes]:
    """Return the bytes of all files of some stages, by their place; of all, if none is named."""
    return {
        str(path.relative_to(work)): path.read_bytes()
        for path in sorted(work.rglob("*.parquet"))
        if not stages or path.relative_to(work).parts[0] in stages
    }
