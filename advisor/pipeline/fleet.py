"""Run parcels of blocks, on Spark or in this process, with checkpoints.

A wave of parcels is one job of Spark. Its plans go to each executor once, however many blocks they
have. A fleet of some minutes is one wave; a longer one has a few, so that progress is seen and the
driver does not wait for everything. A single run has a parcel for each block, and short waves.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from advisor.errors import AdvisorError
from advisor.pipeline import checkpoints
from advisor.pipeline.parcels import (
    Job,
    Parcel,
    Record,
    Runner,
    cut_into_parcels,
    packed_plan,
    run_parcel,
)
from advisor.progress import Notify, ignore, warn
from advisor.reliability.sampler.block import run_block

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast, SparkContext
    from pyspark.sql import DataFrame, SparkSession

OnRecords = Callable[[Sequence[Record], float], object]
"""Takes the records of finished blocks, and the expected core-seconds of the remaining ones."""

_TRIES = 3
_TAG = "kafka-replication-advisor"
# A wave of a fleet takes about a minute, and there are few of them.
_PARCELS_PER_CORE_IN_WAVE = 64
_MOST_WAVES = 16
# A single run reports its progress per wave; enough blocks to keep every core busy, and fewer if
# the time may be up after each.
_BLOCKS_PER_CORE_IN_WAVE = 8
_BLOCKS_PER_CORE_IN_SHORT_WAVE = 2
_MOST_TIMES_LONGER = 8
# A task costs a Python worker about 20 ms, and the end of a wave waits for the last one.
_MOST_TASKS_PER_CORE = 8


def run_locally(
    jobs: Sequence[Job],
    checkpoint: str | None,
    on_records: OnRecords,
    notify: Notify = warn,
    runner: Runner = run_block,
    *,
    by_block: bool = False,
    should_stop: Callable[[], bool] | None = None,
) -> list[Record]:
    """Run the jobs in this process, parcel by parcel; see `run_in_session`."""
    done: list[Record] = []
    if checkpoint is not None:
        checkpoints.prepare(checkpoint)
        done = checkpoints.read_records(checkpoint, jobs, notify)
    parcels = _parcels(jobs, done, by_block)
    left = sum(parcel.seconds for parcel in parcels)
    on_records(done, left)
    plans = {job.run: packed_plan(job.plan) for job in jobs}
    for parcel in parcels:
        if should_stop is not None and should_stop():
            break
        sampled = run_parcel(parcel, plans, runner)
        if checkpoint is not None:
            checkpoints.write_records(checkpoint, sampled, by_block)
        done += sampled
        left -= parcel.seconds
        on_records(sampled, left)
    return done


def run_on_spark(
    jobs: Sequence[Job], checkpoint: str | None, on_records: OnRecords, notify: Notify = warn
) -> list[Record]:
    """Run the jobs on this process's Spark session."""
    from advisor.pipeline.session import spark_session

    return run_in_session(spark_session(notify=notify), jobs, checkpoint, on_records, notify=notify)


def run_in_session(
    session: SparkSession,
    jobs: Sequence[Job],
    checkpoint: str | None,
    on_records: OnRecords,
    *,
    notify: Notify = warn,
    partitions: int | None = None,
    runner: Runner = run_block,
    by_block: bool = False,
    should_stop: Callable[[], bool] | None = None,
) -> list[Record]:
    """Run jobs of different runs on a Spark session, in waves.

    checkpoint: directory of finished blocks, which are not run again; None to keep nothing.
    partitions: partitions of each wave.
    by_block: of a single run: each block is a parcel.
    should_stop: called before each wave; if it returns True, no more blocks are run.
    """
    context = session.sparkContext
    here = writes_files_itself(context, checkpoint)
    done: list[Record] = []
    if checkpoint is not None and here:
        checkpoints.prepare(checkpoint)
        done = checkpoints.read_records(checkpoint, jobs, notify)
    elif checkpoint is not None:
        done = checkpoints.read_records_with_spark(session, checkpoint, jobs, notify)
    parcels = _parcels(jobs, done, by_block)
    left = sum(parcel.seconds for parcel in parcels)
    on_records(done, left)
    cores = context.defaultParallelism
    if not by_block:
        size = longest = max(_PARCELS_PER_CORE_IN_WAVE * cores, -(-len(parcels) // _MOST_WAVES))
    elif should_stop is None:
        size, longest = (n * _BLOCKS_PER_CORE_IN_WAVE * cores for n in (1, _MOST_TIMES_LONGER))
    else:
        size = longest = _BLOCKS_PER_CORE_IN_SHORT_WAVE * cores
    for wave in _waves(parcels, size, longest):
        if should_stop is not None and should_stop():
            break
        most_tasks = _MOST_TASKS_PER_CORE * cores if by_block else len(wave)
        tasks = partitions or min(len(wave), most_tasks)
        with in_one_sentence(session, checkpoint), cancelled_if_interrupted(context):
            records = _run_wave(session, jobs, wave, checkpoint, tasks, runner, by_block)
        done += records
        left -= sum(parcel.seconds for parcel in wave)
        on_records(records, left)
    return done


def _parcels(jobs: Sequence[Job], done: Sequence[Record], by_block: bool) -> list[Parcel]:
    finished: dict[str, set[int]] = {}
    for record in done:
        finished.setdefault(record.run, set()).update(block for _, block in _named(record))
    return cut_into_parcels(jobs, finished, 0.0) if by_block else cut_into_parcels(jobs, finished)


def _waves(parcels: Sequence[Parcel], size: int, longest: int) -> Iterator[list[Parcel]]:
    """Cut parcels into waves, each twice as long as the last up to the longest.

    Some cores have nothing to do at the end of a wave; a short first one shows progress soon.
    """
    start = 0
    while start < len(parcels):
        yield [*parcels[start : start + size]]
        start, size = start + size, min(2 * size, longest)


def _run_wave(
    session: SparkSession,
    jobs: Sequence[Job],
    wave: list[Parcel],
    checkpoint: str | None,
    tasks: int,
    runner: Runner,
    by_block: bool,
) -> list[Record]:
    """Run a wave; the workers write its files themselves, or Spark does, task by task."""
    context = session.sparkContext
    here = writes_files_itself(context, checkpoint)
    runs = {span.run for parcel in wave for span in parcel.spans}
    jobs_of_wave = [job for job in jobs if job.run in runs]
    shared = context.broadcast(({job.run: packed_plan(job.plan) for job in jobs_of_wave}, wave))
    frame = _frame(session, shared, checkpoint if here else None, tasks, runner, by_block)
    if here or checkpoint is None:
        rows = frame.collect()
        records = [
            Record(run, first, count, bytes(packed)) for run, first, count, packed, _ in rows
        ]
    else:
        records = _through_spark(session, frame, checkpoint, jobs_of_wave, wave)
    shared.destroy()
    return records


def _through_spark(
    session: SparkSession,
    frame: DataFrame,
    checkpoint: str,
    jobs: Sequence[Job],
    wave: Sequence[Parcel],
) -> list[Record]:
    checkpoints.append_with_spark(frame, checkpoint)
    records = checkpoints.read_records_with_spark(session, checkpoint, jobs, ignore)
    wanted = {
        (span.run, block.index) for parcel in wave for span in parcel.spans for block in span.blocks
    }
    of_wave = [record for record in records if not wanted.isdisjoint(_named(record))]
    if not wanted.issubset(block for record in of_wave for block in _named(record)):
        raise AdvisorError(f"blocks written to {checkpoint} cannot be read; name another place")
    return of_wave


def _named(record: Record) -> list[tuple[str, int]]:
    """Return the blocks of a record, each with its run."""
    return [(record.run, record.first + number) for number in range(record.blocks)]


def _frame(
    session: SparkSession,
    shared: Broadcast[tuple[dict[str, bytes], list[Parcel]]],
    folder: str | None,
    partitions: int,
    runner: Runner,
    by_block: bool,
) -> DataFrame:
    """Return the records of a wave as a lazy frame; each is also written to the folder, if any."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as arrow

        plans, wave = shared.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                sampled = run_parcel(wave[number], plans, runner)
                if folder is not None:
                    checkpoints.write_records(folder, sampled, by_block)
                yield arrow.RecordBatch.from_pylist([checkpoints.with_digest(r) for r in sampled])
        freeze_imports()

    parcels = len(shared.value[1])
    return session.range(0, parcels, 1, partitions).mapInArrow(work, checkpoints.RECORD_SCHEMA)


def writes_files_itself(context: SparkContext, checkpoint: str | None) -> bool:
    """Whether workers write their files: on one machine; elsewhere Spark knows the file system."""
    return is_on_one_machine(context) and "://" not in (checkpoint or "")


def is_on_one_machine(context: SparkContext) -> bool:
    """Whether Spark runs on this machine."""
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
        keeps = "" if checkpoint is None else f", and {checkpoint} keeps the finished blocks"
        raise AdvisorError(
            f"Spark's Java process ended while it sampled{log_words()}; repeat the call: it starts "
            f"a new one{keeps}"
        ) from error


def freeze_imports() -> None:
    """Leave all that this worker has imported out of its garbage collections.

    Spark's workers collect garbage after each task (``pyspark/daemon.py``). With numba and its
    compiled functions in memory that takes 0.1 s each time.
    """
    if gc.get_freeze_count() == 0:
        gc.freeze()
