"""Run the blocks of a sampling plan, on Spark or in this process, with checkpoints.

The row of a block depends only on plan and block: both engines, any partitioning and any
interruption give the same rows.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advisor.errors import AdvisorError, InputError, MissingExtraError
from advisor.reliability.sampler.block import Row, mark, run_block
from advisor.reliability.sampler.plan import Block, Plan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Advance = Callable[[int], Any]
Runner = Callable[[Plan, Block], Row]

_ROW_SCHEMA = (
    "block long, years long, plan string, lost_years long, hours double, at_risk_hours double, "
    "first_losses long, loss_moments long, events long, causes array<double>"
)
# Progress is reported per wave; enough blocks to keep every core busy.
_BLOCKS_PER_CORE_IN_WAVE = 8


def sample_locally(
    plan: Plan, blocks: Sequence[Block], checkpoint: str | None, advance: Advance
) -> list[Row]:
    """Run the blocks in this process, one after the other."""
    done = _read_checkpoint(checkpoint, plan, blocks) if checkpoint else {}
    for block in blocks:
        if block.index not in done:
            row = done[block.index] = run_block(plan, block)
            if checkpoint:
                _write_row(checkpoint, row)
        advance(block.years)
    return [done[block.index] for block in blocks]


def sample_on_spark(
    plan: Plan, blocks: Sequence[Block], checkpoint: str | None, advance: Advance
) -> list[Row]:
    """Run the blocks on this process's Spark session."""
    from advisor.pipeline.session import spark_session

    return sample_in_session(spark_session(), plan, blocks, checkpoint, advance)


def sample_in_session(
    session: SparkSession,
    plan: Plan,
    blocks: Sequence[Block],
    checkpoint: str | None,
    advance: Advance,
    *,
    partitions: int | None = None,
    runner: Runner = run_block,
) -> list[Row]:
    """Run the blocks on a Spark session, in waves.

    Parameters
    ----------
    session : SparkSession
        The session to use.
    plan : Plan
        What to sample.
    blocks : sequence of Block
        Blocks of the plan.
    checkpoint : str or None
        Directory of finished blocks, which are not run again.
    advance : callable
        Called with the number of years just completed.
    partitions : int, optional
        Partitions of each wave; default: one per block.
    runner : callable
        Runs one block.
    """
    done = _read_checkpoint_with_spark(session, checkpoint, plan, blocks) if checkpoint else {}
    advance(sum(block.years for block in blocks if block.index in done))
    remaining = [block for block in blocks if block.index not in done]
    size = _BLOCKS_PER_CORE_IN_WAVE * session.sparkContext.defaultParallelism
    for wave in (remaining[start : start + size] for start in range(0, len(remaining), size)):
        rows = _wave(session, plan, wave, checkpoint, partitions or len(wave), runner)
        done |= {row.block: row for row in rows}
        advance(sum(block.years for block in wave))
    return [done[block.index] for block in blocks]


def _wave(
    session: SparkSession,
    plan: Plan,
    wave: Sequence[Block],
    checkpoint: str | None,
    partitions: int,
    runner: Runner,
) -> list[Row]:
    from pyspark.errors import PySparkException

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as arrow

        for batch in batches:
            for index in batch.column(0).to_pylist():
                row = runner(plan, wave[index])._asdict()
                yield arrow.RecordBatch.from_pylist([row])

    frame = session.range(0, len(wave), 1, partitions).mapInArrow(work, _ROW_SCHEMA)
    try:
        if checkpoint is None:
            return [_row(row.asDict()) for row in frame.collect()]
        frame.write.mode("append").parquet(checkpoint)
    except PySparkException as error:
        message = re.search(r"advisor\.errors\.\w+: (.+)", str(error))
        if message is None:
            raise
        raise AdvisorError(message[1]) from error
    written = _read_checkpoint_with_spark(session, checkpoint, plan, wave)
    return list(written.values())


def _read_checkpoint_with_spark(
    session: SparkSession, checkpoint: str, plan: Plan, blocks: Sequence[Block]
) -> dict[int, Row]:
    """Read the rows of a checkpoint with Spark, from any file system."""
    from pyspark.errors import PySparkException

    if "://" not in checkpoint and not Path(checkpoint).is_dir():
        _check_not_a_file(checkpoint)
        return {}
    try:
        rows = session.read.schema(_ROW_SCHEMA).parquet(checkpoint).collect()
    except PySparkException as error:
        if "PATH_NOT_FOUND" in str(error):
            return {}
        raise InputError(_NOT_A_CHECKPOINT.format(checkpoint)) from error
    return _rows_of_run([row.asDict() for row in rows], checkpoint, plan, blocks)


def _read_checkpoint(checkpoint: str, plan: Plan, blocks: Sequence[Block]) -> dict[int, Row]:
    """Read the rows of a checkpoint without Spark."""
    parquet = _parquet()
    if not Path(checkpoint).is_dir():
        _check_not_a_file(checkpoint)
        return {}
    rows: list[dict[str, Any]] = []
    for path in sorted(Path(checkpoint).glob("[!._]*.parquet")):
        try:
            rows += parquet.read_table(path).to_pylist()
        except (OSError, ValueError) as error:
            raise InputError(_NOT_A_CHECKPOINT.format(checkpoint)) from error
    return _rows_of_run(rows, checkpoint, plan, blocks)


def _write_row(checkpoint: str, row: Row) -> None:
    """Write one row to a checkpoint, atomically."""
    import pyarrow as arrow

    directory = Path(checkpoint)
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / f".block-{row.block:08d}.{os.getpid()}"
    _parquet().write_table(arrow.Table.from_pylist([row._asdict()]), draft)
    draft.replace(directory / f"block-{row.block:08d}.parquet")


_NOT_A_CHECKPOINT = (
    "{} is not a directory of finished blocks; name an empty or new one as checkpoint"
)


def _rows_of_run(
    records: Sequence[dict[str, Any]], checkpoint: str, plan: Plan, blocks: Sequence[Block]
) -> dict[int, Row]:
    """Return the rows of these blocks; reject a checkpoint of another run."""
    wanted = {block.index: (block.years, mark(plan, block.seed)) for block in blocks}
    run = mark(plan, blocks[0].seed)
    rows = {}
    for fields in records:
        if fields.keys() != set(Row._fields) or None in fields.values():
            raise InputError(_NOT_A_CHECKPOINT.format(checkpoint))
        row = _row(fields)
        if row.plan != run or wanted.get(row.block, (row.years, run)) != (row.years, run):
            raise InputError(
                f"{checkpoint} keeps blocks of other inputs, years or another seed; give those, "
                "or name another directory as checkpoint"
            )
        if row.block in wanted:
            rows[row.block] = row
    return rows


def _row(fields: dict[str, Any]) -> Row:
    return Row(**{**fields, "causes": tuple(fields["causes"])})


def _check_not_a_file(checkpoint: str) -> None:
    if Path(checkpoint).exists():
        raise InputError(_NOT_A_CHECKPOINT.format(checkpoint))


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError("a checkpoint", "spark") from None
    return parquet
