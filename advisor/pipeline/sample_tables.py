"""`write_samples`: results as Parquet, for SQL."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from advisor.arguments import names_checked
from advisor.errors import InputError, MissingExtraError, shown
from advisor.pipeline.sampled_grid import Key, SampledGrid, cluster_name, config_name
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.results.sampled import Sampled

_CELL = (
    ("cluster", "string"),
    ("config", "string"),
    ("model", "string"),
    ("replication_factor", "int64"),
    ("min_insync_replicas", "int64"),
    ("acks", "string"),
)
_COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "cells": (
        *_CELL,
        ("brokers", "int64"),
        ("partitions", "int64"),
        ("years", "int64"),
        ("seed", "string"),
        ("refused", "string"),
    ),
    "estimates": (
        *_CELL,
        ("value", "double"),
        ("low", "double"),
        ("high", "double"),
        ("seen", "bool"),
        ("unit", "string"),
        ("years", "int64"),
        ("method", "string"),
    ),
    "mechanisms": (
        *_CELL,
        ("racks", "int64"),
        ("mechanism", "string"),
        ("value", "double"),
        ("unit", "string"),
    ),
    "outages": (
        *_CELL,
        ("racks", "int64"),
        ("from_seconds", "double"),
        ("to_seconds", "double"),
        ("outages", "double"),
        ("outages_per_year", "double"),
    ),
    "replica_sets": (*_CELL, ("racks", "int64"), ("sets", "int64"), ("partitions", "int64")),
}
# Tables with a folder for each measure, so that a query of one reads no other.
_BY_MEASURE = ("estimates", "mechanisms")
_ROWS_AT_ONCE = 50_000


@names_checked
def write_samples(result: Sampled | SampledGrid, path: str | os.PathLike[str]) -> Path:
    """Write what was sampled as tables in Parquet, for Spark SQL and anything else that reads it.

    Each table is a folder. All have the columns "cluster", "config", "model" (names),
    "replication_factor", "min_insync_replicas" and "acks". Besides:

    - ``cells``: "brokers", "partitions", "years", "seed", "refused" (why Kafka cannot place it).
    - ``estimates``: "measure", "value", "low", "high" (95 % interval), "seen", "unit", "years",
      "method". Where nothing was seen, "value" is a bound: compare settings by "high".
    - ``mechanisms``: "measure", "mechanism", "value", "unit", "racks". The values of a measure sum
      up to the whole.
    - ``outages``: write outages of partitions by length: "from_seconds", "to_seconds", "outages",
      "outages_per_year", "racks".
    - ``replica_sets``: "racks" that a replica set spans, "sets" and "partitions" of this class.

    The column "racks" of ``mechanisms`` and ``outages`` is the class of the replica sets where all
    of a topic are of one; else it is null, since the sampler counts all sets of a topic together.

    Parameters
    ----------
    result : Sampled or SampledGrid
        What `simulate` or `simulate_grid` returned.
    path : str or path
        A new folder.

    Returns
    -------
    Path
        The folder, absolute.

    Raises
    ------
    InputError
        If the folder exists or cannot be written, or the result is not of a sample.
    MissingExtraError
        If pyarrow is not installed.

    See Also
    --------
    simulate_grid : Samples a fleet.

    Examples
    --------
    >>> import advisor, tempfile
    >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
    >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
    >>> folder = advisor.write_samples(sampled, tempfile.mkdtemp() + "/samples")
    >>> sorted(table.name for table in folder.iterdir())
    ['cells', 'estimates', 'mechanisms', 'outages', 'replica_sets']
    """
    if not isinstance(result, Sampled | SampledGrid):
        raise InputError(f"result={shown(result)}: give what simulate or simulate_grid returned")
    if not isinstance(path, str | os.PathLike) or not str(path).isprintable():
        raise InputError(f"path={shown(path)}: give the path of a new folder")
    # Absolute, so that Spark finds it from wherever its Java process was started.
    target = Path(path).absolute()
    if os.path.lexists(target):
        raise InputError(f"{target} is there already and is not overwritten; name a new folder")
    unfinished = target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}.part"
    try:
        with _Tables(unfinished) as tables:
            for table, row in _rows(result):
                tables.add(table, row)
        unfinished.rename(target)
    except OSError as error:
        why = error.strerror or "it cannot be used"
        raise InputError(f"{target}: this cannot be written ({why}); name another place") from None
    finally:
        with suppress(OSError):
            shutil.rmtree(unfinished)
    return target


class _Tables:
    """Files that rows are added to, some thousands at once; a folder for each table."""

    def __init__(self, folder: Path) -> None:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise MissingExtraError("write_samples", "spark") from None
        self._arrow, self._parquet, self._folder = pyarrow, parquet, folder
        self._writers: dict[Path, Any] = {}
        self._rows: dict[Path, list[dict[str, object]]] = {}

    def __enter__(self) -> _Tables:
        for table in _COLUMNS:
            (self._folder / table).mkdir(parents=True)
        return self

    def __exit__(self, *_error: object) -> None:
        for file in self._rows:
            self._flush(file)
        for writer in self._writers.values():
            writer.close()

    def add(self, table: str, row: dict[str, object]) -> None:
        """Add a row to a table, by column."""
        folder = self._folder / table
        if table in _BY_MEASURE:
            folder /= f"measure={row.pop('measure')}"
        file = folder / "part-00000.parquet"
        self._rows.setdefault(file, []).append(row)
        if len(self._rows[file]) >= _ROWS_AT_ONCE:
            self._flush(file)

    def _flush(self, file: Path) -> None:
        table = file.relative_to(self._folder).parts[0]
        columns = [(name, self._arrow.type_for_alias(kind)) for name, kind in _COLUMNS[table]]
        schema = self._arrow.schema(columns)
        if file not in self._writers:
            file.parent.mkdir(exist_ok=True)
            self._writers[file] = self._parquet.ParquetWriter(file, schema)
        rows = self._rows[file]
        self._writers[file].write_table(self._arrow.Table.from_pylist(rows, schema=schema))
        rows.clear()


def _rows(result: Sampled | SampledGrid) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the rows of all tables, each with its table."""
    if isinstance(result, Sampled):
        key = cluster_name(result.cluster), config_name(result.config), result.model.name
        yield from _rows_of(_named(key, result.config), result)
        return
    for key in result:
        cell = _named(key, result.configs[key[1]])
        if key in result.refused:
            brokers = len(result.clusters[key[0]].brokers)
            yield "cells", {**cell, "brokers": brokers, "refused": result.refused[key]}
        else:
            yield from _rows_of(cell, result[key])


def _named(key: Key, config: Config) -> dict[str, object]:
    settings = config.replication_factor, config.min_insync_replicas, str(config.acks)
    return dict(zip((name for name, _ in _CELL), (*key, *settings), strict=True))


def _rows_of(cell: dict[str, object], sampled: Sampled) -> Iterator[tuple[str, dict[str, object]]]:
    split = sampled.breakdown
    assert split is not None
    yield (
        "cells",
        {
            **cell,
            "brokers": len(sampled.cluster.brokers),
            "partitions": sampled.load.partitions,
            "years": sampled.years,
            # Seeds go up to 2**64 - 1, which few engines of SQL have a number for.
            "seed": str(sampled.seed),
        },
    )
    for entry in measure_table.entries():
        estimate = sampled.estimate(entry.name)
        numbers = {"value": estimate.value, "low": estimate.low, "high": estimate.high}
        about = {"unit": entry.unit, "years": estimate.n, "method": estimate.method}
        row = {**cell, "measure": entry.name, **numbers, "seen": estimate.seen, **about}
        yield "estimates", row
    for share in split.shares:
        about = {"racks": split.racks, "unit": measure_table.measure(share.measure).unit}
        yield "mechanisms", {**cell, **about, **share._asdict()}
    for start, end, number in sampled.outages:
        lengths = {"from_seconds": start, "to_seconds": end}
        counts = {"outages": number, "outages_per_year": number / split.span_years}
        yield "outages", {**cell, "racks": split.racks, **lengths, **counts}
    for racks, sets, partitions in split.replica_sets:
        yield "replica_sets", {**cell, "racks": racks, "sets": sets, "partitions": partitions}
