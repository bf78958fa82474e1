"""Run parcels of blocks, on Spark or in this process, with checkpoints.

A wave of parcels is one job of Spark, a task for each parcel. Its plans go to each executor once,
however many blocks they have. A fleet of some minutes is one wave; a longer one has a few, so that
progress is seen and the driver does not wait for everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from advisor.pipeline.sampling import (
    cancelled_if_interrupted,
    freeze_imports,
    in_one_sentence,
    writes_files_itself,
)
from advisor.progress import Notify, ignore, warn
from advisor.reliability.sampler.block import run_block

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession

OnRecords = Callable[[Sequence[Record], float], object]
"""Takes the records of finished blocks, and the expected core-seconds of the remaining ones."""

# A wave takes about a minute, and there are few of them.
_PARCELS_PER_CORE_IN_WAVE = 64
_MOST_WAVES = 16


def run_locally(
    jobs: Sequence[Job],
    checkpoint: str | None,
    on_records: OnRecords,
    notify: Notify = warn,
    runner: Runner = run_block,
) -> list[Record]:
    """Run the jobs in this process, parcel by parcel."""
    done: list[Record] = []
    if checkpoint is not None:
        checkpoints.prepare(checkpoint)
        done = checkpoints.read_records(checkpoint, jobs, notify)
    parcels = cut_into_parcels(jobs, _blocks_of(done))
    left = sum(parcel.seconds for parcel in parcels)
    on_records(done, left)
    plans = {job.run: packed_plan(job.plan) for job in jobs}
    for parcel in parcels:
        found = run_parcel(parcel, plans, runner)
        if checkpoint is not None:
            checkpoints.write_records(checkpoint, found)
        done += found
        left -= parcel.seconds
        on_records(found, left)
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
) -> list[Record]:
    """Run the jobs on a Spark session, in one wave or a few.

    jobs: jobs of different runs.
    checkpoint: directory of finished blocks, which are not run again; None to keep nothing.
    on_records: called with the records of finished blocks and the expected core-seconds that
        remain.
    notify: called with a warning about damaged files of the checkpoint.
    partitions: partitions of each wave; default: one per parcel.
    runner: runs one block.
    Raises AdvisorError if Spark's Java process ends during the run.
    """
    context = session.sparkContext
    here = writes_files_itself(context, checkpoint)
    done: list[Record] = []
    if checkpoint is not None and here:
        checkpoints.prepare(checkpoint)
        done = checkpoints.read_records(checkpoint, jobs, notify)
    elif checkpoint is not None:
        done = checkpoints.read_records_with_spark(session, checkpoint, jobs, notify)
    parcels = cut_into_parcels(jobs, _blocks_of(done))
    left = sum(parcel.seconds for parcel in parcels)
    on_records(done, left)
    plan_of = {job.run: job.plan for job in jobs}
    size = max(
        _PARCELS_PER_CORE_IN_WAVE * context.defaultParallelism, -(-len(parcels) // _MOST_WAVES)
    )
    for start in range(0, len(parcels), size):
        wave = parcels[start : start + size]
        runs = {span.run for parcel in wave for span in parcel.spans}
        shared = context.broadcast(({run: packed_plan(plan_of[run]) for run in runs}, wave))
        folder = checkpoint if here else None
        frame = _frame(session, shared, folder, partitions or len(wave), runner)
        with in_one_sentence(session, checkpoint), cancelled_if_interrupted(context):
            if here or checkpoint is None:
                found = [
                    Record(run, first, n, bytes(rows)) for run, first, n, rows, _ in frame.collect()
                ]
            else:
                some = [job for job in jobs if job.run in runs]
                found = _through_spark(session, frame, checkpoint, some, wave)
            shared.destroy()
        done += found
        left -= sum(parcel.seconds for parcel in wave)
        on_records(found, left)
    return done


def _through_spark(
    session: SparkSession,
    frame: DataFrame,
    checkpoint: str,
    jobs: Sequence[Job],
    wave: Sequence[Parcel],
) -> list[Record]:
    """Run a wave; Spark writes its records to the checkpoint, task by task."""
    checkpoints.append_with_spark(frame, checkpoint)
    found = checkpoints.read_records_with_spark(session, checkpoint, jobs, ignore)
    wanted = {
        (span.run, block.index) for parcel in wave for span in parcel.spans for block in span.blocks
    }
    kept = [record for record in found if not wanted.isdisjoint(_named(record))]
    if not wanted.issubset(block for record in kept for block in _named(record)):
        raise AdvisorError(f"blocks written to {checkpoint} cannot be read; name another place")
    return kept


def _named(record: Record) -> list[tuple[str, int]]:
    """Return the blocks of a record, each with its run."""
    return [(record.run, record.first + number) for number in range(record.blocks)]


def _blocks_of(records: Sequence[Record]) -> dict[str, set[int]]:
    done: dict[str, set[int]] = {}
    for record in records:
        done.setdefault(record.run, set()).update(block for _, block in _named(record))
    return done


def _frame(
    session: SparkSession,
    shared: Broadcast[tuple[dict[str, bytes], list[Parcel]]],
    folder: str | None,
    partitions: int,
    runner: Runner,
) -> DataFrame:
    """Return the records of a wave as a lazy frame; each is also written to the folder, if any."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as arrow

        plans, wave = shared.value
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found = run_parcel(wave[number], plans, runner)
                if folder is not None:
                    checkpoints.write_records(folder, found)
                yield arrow.RecordBatch.from_pylist([checkpoints.with_digest(r) for r in found])
        freeze_imports()

    parcels = len(shared.value[1])
    return session.range(0, parcels, 1, partitions).mapInArrow(work, checkpoints.RECORD_SCHEMA)
