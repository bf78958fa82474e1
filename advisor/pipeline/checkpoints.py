"""Checkpoints: a directory of finished blocks, one Parquet file for each parcel.

Each file is written whole, by the process that sampled the blocks, as soon as they are finished.
A file that is torn or corrupt, or has a record without its digest, is named in a warning and its
blocks are sampled again.
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
_FILES = "[!._]*.parquet"
_OF_ANOTHER_RUN = (
    "{} keeps blocks of other inputs, years or another seed; give those, or name another directory "
    "as checkpoint"
)
_NOT_A_CHECKPOINT = (
    "{} is not a directory of finished blocks; name an empty or new one as checkpoint"
)


def prepare(directory: str) -> None:
    """Make the directory, unless it exists."""
    _parquet()
    if Path(directory).exists() and not Path(directory).is_dir():
        raise InputError(_NOT_A_CHECKPOINT.format(directory))
    Path(directory).mkdir(parents=True, exist_ok=True)


def write_records(directory: str, records: Sequence[Record], by_block: bool) -> None:
    """Write the records of a parcel to one file, completely or not at all.

    by_block: of a directory of one run, whose files are named by their one block.
    """
    import pyarrow as arrow

    first = f"{records[0].first:08d}"
    name = f"block-{first}.parquet" if by_block else f"blocks-{records[0].run}-{first}.parquet"
    content = BytesIO()
    table = arrow.Table.from_pylist([with_digest(record) for record in records])
    _parquet().write_table(table, content)
    replace_file(Path(directory) / name, content.getvalue())


def with_digest(record: Record) -> dict[str, Any]:
    """Return the fields of a record for a checkpoint, with a digest of their values."""
    return {**record._asdict(), "digest": _digest(record)}


def _table(content: bytes) -> Any:
    """Return the table of a file; None if it cannot be read."""
    import pyarrow as arrow

    try:
        table = _parquet().read_table(BytesIO(content))
        table.validate(full=True)
    except (OSError, ValueError, KeyError, arrow.ArrowException):
        return None
    return table


def _digest(record: Record) -> str:
    return sha256(repr(tuple(record)).encode()).hexdigest()


def _report_damaged(paths: Iterable[object], notify: Notify) -> None:
    names = sorted({str(path) for path in paths})
    if not names:
        return
    more = len(names) - _NAMED
    listed = ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    what = "are damaged; their blocks are" if len(names) > 1 else "is damaged; its block is"
    notify(f"{listed} {what} sampled again.")


def _read_with_spark(
    session: SparkSession, directory: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rows of all files, each with its ``file_path``, and the files without any."""
    from pyspark.errors import PySparkException

    try:
        files = session.read.format("binaryFile").option("pathGlobFilter", _FILES).load(directory)
        names = {row.path for row in files.select("path").collect()}
        reader = session.read.schema(RECORD_SCHEMA).option("ignoreCorruptFiles", "true")
        frame = reader.option("pathGlobFilter", _FILES).parquet(directory)
        rows = [row.asDict() for row in frame.select("*", "_metadata.file_path").collect()]
    except PySparkException as error:
        if "PATH_NOT_FOUND" in str(error):
            return [], []
        raise InputError(_NOT_A_CHECKPOINT.format(directory)) from error
    damaged = sorted(names - {row["file_path"] for row in rows})
    if not all(_OURS.fullmatch(name.rsplit("/", 1)[-1]) for name in damaged):
        raise InputError(_NOT_A_CHECKPOINT.format(directory))
    return rows, damaged


def append_with_spark(frame: DataFrame, directory: str) -> None:
    """Run a job of Spark that keeps each finished task, also if the job is interrupted."""
    # Version 2 moves the files of a task when the task ends, not when the job does.
    committer = "mapreduce.fileoutputcommitter.algorithm.version"
    frame.write.mode("append").option(committer, "2").parquet(directory)


def read_records(directory: str, jobs: Sequence[Job], notify: Notify) -> list[Record]:
    """Return the records of finished blocks of these jobs, perhaps with others of their runs.

    notify: called with a warning that names the torn or corrupt files.
    """
    sound: list[Record] = []
    damaged: list[Path] = []
    for path in sorted(Path(directory).glob(_FILES)):
        table = _table(read_input(path, MOST_FILE_BYTES))
        records = None if table is None else _sound_records(table.to_pylist(), directory, jobs)
        if records is not None:
            sound += records
        elif _OURS.fullmatch(path.name):
            damaged.append(path)
        else:
            raise InputError(_NOT_A_CHECKPOINT.format(directory))
    _report_damaged(damaged, notify)
    return sound


def read_records_with_spark(
    session: SparkSession, directory: str, jobs: Sequence[Job], notify: Notify
) -> list[Record]:
    """Read a checkpoint as `read_records`, through Spark, from any of its file systems."""
    fields, unread = _read_with_spark(session, directory)
    sound, damaged = [], list(unread)
    for one in fields:
        name = one.pop("file_path")
        records = _sound_records([one], directory, jobs)
        if records is None:
            damaged.append(name)
        else:
            sound += records
    _report_damaged(damaged, notify)
    return sound


def _sound_records(
    fields: Sequence[dict[str, Any]], directory: str, jobs: Sequence[Job]
) -> list[Record] | None:
    """Return records with all of their rows; None if one is damaged or has no digest."""
    years_of = {job.run: {block.index: block.years for block in job.blocks} for job in jobs}
    sound = []
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
            blocks = blocks_and_years(record)
        except InputError:
            return None
        wanted = years_of.get(record.run)
        numbered = [index for index, _ in blocks] == [
            *range(record.first, record.first + len(blocks))
        ]
        if (
            wanted is None
            or not numbered
            or any(wanted.get(index, years) != years for index, years in blocks)
        ):
            raise InputError(_OF_ANOTHER_RUN.format(directory))
        whole &= digest is not None
        sound.append(record)
    return sound if whole else None


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("a checkpoint", "spark") from None
    return parquet
