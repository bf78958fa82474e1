"""Checkpoints: a directory of finished blocks, one Parquet file for each.

Each file is written whole, by the process that sampled the block, as soon as the block is finished.
Each row has a digest of its values. A file that is torn or corrupt, or has no digest that matches,
is named in a warning and its block is sampled again.

A fleet keeps records, each of some blocks of one run: one file for each parcel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import InputError, MissingExtraError
from advisor.files import read_input, replace_file
from advisor.pipeline.parcels import Job, Record, blocks_and_years
from advisor.progress import Notify
from advisor.reliability.sampler.block import Row, mark
from advisor.reliability.sampler.plan import Block, Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROW_SCHEMA = (
    "block long, years long, plan string, lost_years long, hours double, at_risk_hours double, "
    "first_losses long, loss_moments long, events long, causes array<double>, "
    "outages array<double>, cycles array<double>, digest string"
)
RECORD_SCHEMA = "run string, first long, blocks long, rows binary, digest string"
MOST_FILE_BYTES = 64_000_000
"""Of a file of finished blocks; one block takes a few thousand."""

_NAMED = 3
# Of a record's fields, as Arrow and Spark give them.
_KINDS = [
    {"run": str, "first": int, "blocks": int, "rows": binary} for binary in (bytes, bytearray)
]
# Files of this module, and those that Spark writes.
_OURS = re.compile(r"(block-\d{8,}|blocks-[0-9a-f]+-\d+-\d{8,}|part-\d{5,}-.+)\.parquet")
_OF_A_ROW = re.compile(r"block-\d{8,}\.parquet")
_FILES = "[!._]*.parquet"
_OF_ANOTHER_RUN = (
    "{} keeps blocks of other inputs, years or another seed; give those, or name another directory "
    "as checkpoint"
)
_NOT_A_CHECKPOINT = (
    "{} is not a directory of finished blocks; name an empty or new one as checkpoint"
)


def prepare(directory: str) -> None:
    """Make the directory, unless it exists.

    Raises InputError if it is a file.
    Raises MissingExtraError if pyarrow is not installed.
    """
    _parquet()
    if Path(directory).exists() and not Path(directory).is_dir():
        raise InputError(_NOT_A_CHECKPOINT.format(directory))
    Path(directory).mkdir(parents=True, exist_ok=True)


def write_row(directory: str, row: Row) -> None:
    """Write one finished block, completely or not at all, with a digest of its values."""
    _write(Path(directory) / f"block-{row.block:08d}.parquet", [row])


def write_records(directory: str, records: Sequence[Record]) -> None:
    """Write the records of a parcel to one file, completely or not at all."""
    name = f"blocks-{records[0].run}-{records[0].first:08d}.parquet"
    _write(Path(directory) / name, records)


def with_digest(row: Row | Record) -> dict[str, Any]:
    """Return the fields of a row or record for a checkpoint, with a digest of their values."""
    return {**row._asdict(), "digest": _digest(row)}


def _write(path: Path, rows: Sequence[Row | Record]) -> None:
    import pyarrow as arrow

    content = BytesIO()
    table = arrow.Table.from_pylist([with_digest(row) for row in rows])
    _parquet().write_table(table, content)
    replace_file(path, content.getvalue())


def read_rows(
    directory: str, plan: Plan, blocks: Sequence[Block], notify: Notify
) -> dict[int, Row]:
    """Return the rows of the finished blocks among these, by block number.

    notify: called with a warning that names the torn or corrupt files.
    Raises InputError if the directory has blocks of another run, or other files.
    """
    read: list[tuple[object, dict[str, Any]]] = []
    unread: list[object] = []
    for path in sorted(Path(directory).glob(_FILES)):
        table = _table(read_input(path, MOST_FILE_BYTES))
        if table is not None:
            read += ((path, fields) for fields in table.to_pylist())
        elif _OURS.fullmatch(path.name):
            unread.append(path)
        else:
            raise InputError(_NOT_A_CHECKPOINT.format(directory))
    rows, damaged = _rows_of_run(read, directory, plan, blocks)
    _report_damaged([*unread, *damaged], notify)
    return rows


def _table(content: bytes) -> Any:
    """Return the table of a file; None if it cannot be read."""
    import pyarrow as arrow

    try:
        table = _parquet().read_table(BytesIO(content))
        table.validate(full=True)
    except (OSError, ValueError, KeyError, arrow.ArrowException):
        return None
    return table


def _is_whole(fields: dict[str, Any]) -> bool:
    return fields.keys() == set(Row._fields) and None not in fields.values()


def _digest(row: Row | Record) -> str:
    return sha256(repr(tuple(row)).encode()).hexdigest()


def _report_damaged(paths: Iterable[object], notify: Notify) -> None:
    names = sorted({str(path) for path in paths})
    if not names:
        return
    more = len(names) - _NAMED
    listed = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    what = "are damaged; their blocks are" if len(names) > 1 else "is damaged; its block is"
    notify(f"{listed} {what} sampled again.")


def read_rows_with_spark(
    session: SparkSession, directory: str, plan: Plan, blocks: Sequence[Block], notify: Notify
) -> dict[int, Row]:
    """Read a checkpoint as `read_rows`, through Spark, from any of its file systems."""
    records, unread = _read_with_spark(session, directory, ROW_SCHEMA)
    read = [(fields.pop("file_path"), fields) for fields in records]
    rows, damaged = _rows_of_run(read, directory, plan, blocks)
    _report_damaged([*unread, *damaged], notify)
    return rows


def _read_with_spark(
    session: SparkSession, directory: str, schema: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of all files, each with its ``file_path``, and the files without any."""
    from pyspark.errors import PySparkException

    try:
        files = session.read.format("binaryFile").option("pathGlobFilter", _FILES).load(directory)
        names = {row.path for row in files.select("path").collect()}
        reader = session.read.schema(schema).option("ignoreCorruptFiles", "true")
        frame = reader.option("pathGlobFilter", _FILES).parquet(directory)
        found = [row.asDict() for row in frame.select("*", "_metadata.file_path").collect()]
    except PySparkException as error:
        if "PATH_NOT_FOUND" in str(error):
            return [], []
        raise InputError(_NOT_A_CHECKPOINT.format(directory)) from error
    damaged = sorted(names - {row["file_path"] for row in found})
    if not all(_OURS.fullmatch(name.rsplit("/", 1)[-1]) for name in damaged):
        raise InputError(_NOT_A_CHECKPOINT.format(directory))
    return found, damaged


def append_with_spark(frame: DataFrame, directory: str) -> None:
    """Run a job of Spark that keeps each finished task, also if the job is interrupted."""
    # Version 2 moves the files of a task when the task ends, not when the job does.
    committer = "mapreduce.fileoutputcommitter.algorithm.version"
    frame.write.mode("append").option(committer, "2").parquet(directory)


def read_records(directory: str, jobs: Sequence[Job], notify: Notify) -> list[Record]:
    """Return the records of finished blocks of these jobs; see `read_rows`.

    Raises InputError if the directory has blocks of another fleet, or other files.
    """
    found: list[Record] = []
    damaged: list[Path] = []
    for path in sorted(Path(directory).glob(_FILES)):
        table = _table(read_input(path, MOST_FILE_BYTES))
        records = None if table is None else _sound_records(table.to_pylist(), directory, jobs)
        if records is not None:
            found += records
        elif _OURS.fullmatch(path.name):
            damaged.append(path)
        else:
            raise InputError(_NOT_A_CHECKPOINT.format(directory))
    _report_damaged(damaged, notify)
    return found


def read_records_with_spark(
    session: SparkSession, directory: str, jobs: Sequence[Job], notify: Notify
) -> list[Record]:
    """Read a checkpoint as `read_records`, through Spark, from any of its file systems."""
    fields, unread = _read_with_spark(session, directory, RECORD_SCHEMA)
    found, damaged = [], list(unread)
    for one in fields:
        name = one.pop("file_path")
        records = _sound_records([one], directory, jobs)
        if records is None:
            damaged.append(name)
        else:
            found += records
    _report_damaged(damaged, notify)
    return found


def _sound_records(
    fields: Sequence[dict[str, Any]], directory: str, jobs: Sequence[Job]
) -> list[Record] | None:
    """Return records with all of their rows; None if one is damaged or has no digest.

    Raises InputError if one is not a record, or belongs to another fleet.
    """
    blocks = {job.run: job.blocks for job in jobs}
    found = []
    whole = True
    for one in fields:
        digest = one.pop("digest", None)
        kinds = {name: type(value) for name, value in one.items()}
        if kinds not in _KINDS:
            raise InputError(_NOT_A_CHECKPOINT.format(directory))
        record = Record(**{**one, "rows": bytes(one["rows"])})
        if digest not in (None, _digest(record)):
            return None
        try:
            kept = blocks_and_years(record)
        except InputError:
            return None
        wanted = blocks.get(record.run, ())[record.first : record.first + record.blocks]
        if kept != [(block.index, block.years) for block in wanted]:
            raise InputError(_OF_ANOTHER_RUN.format(directory))
        whole &= digest is not None
        found.append(record)
    return found if whole else None


def _rows_of_run(
    read: Iterable[tuple[object, dict[str, Any]]],
    directory: str,
    plan: Plan,
    blocks: Sequence[Block],
) -> tuple[dict[int, Row], list[object]]:
    """Return the rows of these blocks, and the files of damaged ones; reject those of another run.

    A row without a digest is damaged if it is of this run.
    """
    wanted = {block.index: (block.years, mark(plan, block.seed)) for block in blocks}
    run = mark(plan, blocks[0].seed)
    rows, damaged = {}, []
    for path, fields in read:
        digest = fields.pop("digest", None)
        if not _is_whole(fields):
            if digest is None or not _OF_A_ROW.fullmatch(Path(str(path)).name):
                raise InputError(_NOT_A_CHECKPOINT.format(directory))
            damaged.append(path)
            continue
        row = row_of(fields)
        if digest not in (None, _digest(row)):
            damaged.append(path)
            continue
        if row.plan != run or wanted.get(row.block, (row.years, run)) != (row.years, run):
            raise InputError(_OF_ANOTHER_RUN.format(directory))
        if digest is None:
            damaged.append(path)
        elif row.block in wanted:
            rows[row.block] = row
    return rows, damaged


def row_of(fields: dict[str, Any]) -> Row:
    """Return the row with these fields, as Parquet and Spark give them."""
    lists = {name: tuple(fields[name]) for name in ("causes", "outages", "cycles")}
    return Row(**{**{name: fields[name] for name in Row._fields}, **lists})


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("a checkpoint", "spark") from None
    return parquet
