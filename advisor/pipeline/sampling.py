"""Run the blocks of a sampling plan, on Spark or in this process, with checkpoints.

The row of a block depends only on plan and block: both engines, any partitioning and any
interruption give the same rows.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from advisor.errors import AdvisorError
from advisor.pipeline import checkpoints
from advisor.progress import Notify, ignore, warn
from advisor.reliability.sampler.block import Row, compile_kernel, run_block
from advisor.reliability.sampler.plan import Block, Plan

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

OnRows = Callable[[Sequence[Row]], Any]
"""Takes the rows of finished blocks: those in the checkpoint first, then those just run."""
ShouldStop = Callable[[int], bool]
"""Whether to stop, given the number of finished blocks before the first gap."""
Runner = Callable[[Plan, Block], Row]

_TRIES = 3
_TAG = "kafka-replication-advisor"
# Progress is reported per wave; enough blocks to keep every core busy, and fewer if the time may
# be up after each.
_BLOCKS_PER_CORE_IN_WAVE = 8
_BLOCKS_PER_CORE_IN_SHORT_WAVE = 2
_MOST_TIMES_LONGER = 8
# A task costs a Python worker about 20 ms, and the end of a wave waits for the last one.
_MOST_TASKS_PER_CORE = 8


def never(_done: int) -> bool:
    """Run all blocks; the default for `should_stop`."""
    return False


def sample_locally(
    plan: Plan,
    blocks: Sequence[Block],
    checkpoint: str | None,
    on_rows: OnRows,
    notify: Notify = warn,
    should_stop: ShouldStop = never,
) -> list[Row]:
    """Run the blocks in this process, one after the other, until `should_stop`."""
    done: dict[int, Row] = {}
    if checkpoint is not None:
        checkpoints.prepare(checkpoint)
        done = checkpoints.read_rows(checkpoint, plan, blocks, notify)
        on_rows([*done.values()])
    for number, block in enumerate(blocks):
        if block.index in done:
            continue
        if should_stop(number):
            break
        row = done[block.index] = run_block(plan, block)
        if checkpoint is not None:
            checkpoints.write_row(checkpoint, row)
        on_rows([row])
    return _unbroken(done, blocks)


def _unbroken(done: Mapping[int, Row], blocks: Sequence[Block]) -> list[Row]:
    """Return the rows of the blocks before the first that is not done."""
    return [done[block.index] for block in takewhile(lambda each: each.index in done, blocks)]


def sample_on_spark(
    plan: Plan,
    blocks: Sequence[Block],
    checkpoint: str | None,
    on_rows: OnRows,
    notify: Notify = warn,
    should_stop: ShouldStop = never,
) -> list[Row]:
    """Run the blocks on this process's Spark session, until `should_stop`."""
    from advisor.pipeline.session import spark_session

    session = spark_session(notify=notify)
    if _is_on_one_machine(session.sparkContext):
        compile_kernel(plan)  # else each worker does, all at the same time
    return sample_in_session(
        session, plan, blocks, checkpoint, on_rows, notify=notify, should_stop=should_stop
    )


def sample_in_session(
    session: SparkSession,
    plan: Plan,
    blocks: Sequence[Block],
    checkpoint: str | None,
    on_rows: OnRows,
    *,
    notify: Notify = warn,
    should_stop: ShouldStop = never,
    partitions: int | None = None,
    runner: Runner = run_block,
) -> list[Row]:
    """Run the blocks on a Spark session, in waves, until `should_stop`.

    session: the session to use.
    blocks: blocks of the plan.
    checkpoint: directory of finished blocks, which are not run again; None to keep nothing.
    on_rows: called with the rows of finished blocks.
    notify: called with a warning about damaged files of the checkpoint.
    should_stop: called before each wave; if it returns True, no more blocks are run.
    partitions: partitions of each wave; default: one per block, at most `_MOST_TASKS_PER_CORE` per
        core.
    Raises AdvisorError if Spark's Java process ends during the run.
    """
    context = session.sparkContext
    here = writes_files_itself(context, checkpoint)
    done: dict[int, Row] = {}
    if checkpoint is not None and here:
        checkpoints.prepare(checkpoint)
        done = checkpoints.read_rows(checkpoint, plan, blocks, notify)
    elif checkpoint is not None:
        done = checkpoints.read_rows_with_spark(session, checkpoint, plan, blocks, notify)
    on_rows([*done.values()])
    remaining = [block for block in blocks if block.index not in done]
    per_core = _BLOCKS_PER_CORE_IN_WAVE if should_stop is never else _BLOCKS_PER_CORE_IN_SHORT_WAVE
    size = per_core * context.defaultParallelism
    most_tasks = _MOST_TASKS_PER_CORE * context.defaultParallelism
    run = _collected if here or checkpoint is None else _through_spark
    longest = size if should_stop is not never else _MOST_TIMES_LONGER * size
    for wave in _waves(remaining, size, longest):
        if should_stop(len(_unbroken(done, blocks))):
            break
        with in_one_sentence(session, checkpoint), cancelled_if_interrupted(context):
            tasks = partitions or min(len(wave), most_tasks)
            found = run(session, plan, wave, checkpoint, tasks, runner)
        done |= found
        on_rows([*found.values()])
    return _unbroken(done, blocks)


def _waves(blocks: Sequence[Block], size: int, longest: int) -> Iterator[Sequence[Block]]:
    """Cut blocks into waves, each twice as long as the last up to the longest.

    Some cores have nothing to do at the end of a wave; a short first one shows progress soon.
    """
    start = 0
    while start < len(blocks):
        yield blocks[start : start + size]
        start, size = start + size, min(2 * size, longest)


def writes_files_itself(context: SparkContext, checkpoint: str | None) -> bool:
    """Whether workers write their files: on one machine; elsewhere Spark knows the file system."""
    return _is_on_one_machine(context) and "://" not in (checkpoint or "")


def _is_on_one_machine(context: SparkContext) -> bool:
    return (context.master or "").startswith("local")


@contextmanager
def cancelled_if_interrupted(context: SparkContext) -> Iterator[None]:
    """Cancel the jobs of a wave when it is interrupted, and no others of the session.

    Spark does so itself where it handles the signal, which a notebook's kernel takes from it.
    """
    context.addJobTag(_TAG)
    try:
        yield
    except BaseException as error:
        if not _is_interrupt(error):
            raise
        for _ in range(_TRIES):
            # The connection that was interrupted answers nothing; the next one is new.
            with suppress(Exception):
                context.cancelJobsWithTag(_TAG)
                break
        raise KeyboardInterrupt from None
    finally:
        with suppress(Exception):
            context.removeJobTag(_TAG)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is an interrupt, or arose while Spark's client dealt with one."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextmanager
def in_one_sentence(session: SparkSession, checkpoint: str | None) -> Iterator[None]:
    """Raise errors of workers as such, and the end of Spark's Java process in one sentence."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    from advisor.pipeline.session import has_ended, log_words

    try:
        yield
    except (PySparkException, Py4JError, OSError, EOFError) as error:
        message = re.search(r"advisor\.errors\.\w+: (.+)", str(error))
        if message is not None:
            raise AdvisorError(message[1]) from error
        if not has_ended(session.sparkContext):
            raise
        kept = "" if checkpoint is None else f", and {checkpoint} keeps the finished blocks"
        raise AdvisorError(
            f"Spark's Java process ended while it sampled{log_words()}; repeat the call: it starts "
            f"a new one{kept}"
        ) from error


def freeze_imports() -> None:
    """Leave all that this worker has imported out of its garbage collections.

    Spark's workers collect garbage after each task (``pyspark/daemon.py``). With numba and its
    compiled functions in memory that takes 0.1 s each time.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()


def _collected(
    session: SparkSession,
    plan: Plan,
    wave: Sequence[Block],
    checkpoint: str | None,
    partitions: int,
    runner: Runner,
) -> dict[int, Row]:
    """Run a wave; the workers write its blocks to the checkpoint, one by one."""
    frame = _frame(session, plan, wave, checkpoint, partitions, runner)
    rows = (checkpoints.row_of(row.asDict()) for row in frame.collect())
    return {row.block: row for row in rows}


def _through_spark(
    session: SparkSession,
    plan: Plan,
    wave: Sequence[Block],
    checkpoint: str | None,
    partitions: int,
    runner: Runner,
) -> dict[int, Row]:
    """Run a wave; Spark writes its blocks to the checkpoint, one by one."""
    assert checkpoint is not None
    frame = _frame(session, plan, wave, None, partitions, runner)
    checkpoints.append_with_spark(frame, checkpoint)
    rows = checkpoints.read_rows_with_spark(session, checkpoint, plan, wave, ignore)
    if len(rows) < len(wave):
        raise AdvisorError(f"blocks written to {checkpoint} cannot be read; name another place")
    return rows


def _frame(
    session: SparkSession,
    plan: Plan,
    wave: Sequence[Block],
    folder: str | None,
    partitions: int,
    runner: Runner,
) -> DataFrame:
    """Return the rows of a wave as a lazy frame; each is also written to the folder, if any."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as arrow

        for batch in batches:
            for index in batch.column(0).to_pylist():
                row = runner(plan, wave[index])
                if folder is not None:
                    checkpoints.write_row(folder, row)
                yield arrow.RecordBatch.from_pylist([checkpoints.with_digest(row)])
        freeze_imports()

    frame = session.range(0, len(wave), 1, partitions)
    return frame.mapInArrow(work, checkpoints.ROW_SCHEMA)
