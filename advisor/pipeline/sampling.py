"""Run the blocks of one sampling plan, on Spark or in this process, until told to stop.

The row of a block depends only on plan and block: both engines, any partitioning and any
interruption give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from advisor.pipeline import fleet
from advisor.pipeline.parcels import Job, Record, Runner, rows_of
from advisor.progress import Notify, warn
from advisor.reliability.sampler.block import Row, compile_kernel, run_block
from advisor.reliability.sampler.plan import Block, Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnRows = Callable[[Sequence[Row]], Any]
"""Takes the rows of finished blocks: those in the checkpoint first, then those just run."""
ShouldStop = Callable[[int], bool]
"""Whether to stop, given the number of finished blocks before the first gap."""


def never(_done: int) -> bool:
    """Run all blocks; the default for `should_stop`."""
    return False


class _Run:
    """The rows of a run so far."""

    def __init__(
        self, plan: Plan, blocks: Sequence[Block], on_rows: OnRows, should_stop: ShouldStop
    ) -> None:
        self.job = Job.of(plan, blocks)
        self._on_rows, self._should_stop = on_rows, should_stop
        self._rows: dict[int, Row] = {}
        self.should_stop = None if should_stop is never else self._is_enough

    def add(self, records: Sequence[Record], _left: float) -> None:
        """Take the rows of finished blocks."""
        rows = rows_of(self.job, records)
        self._rows |= rows
        self._on_rows([*rows.values()])

    def _is_enough(self) -> bool:
        return self._should_stop(len(self.unbroken()))

    def unbroken(self) -> list[Row]:
        """Return the rows of the blocks before the first that is not done."""
        done: Mapping[int, Row] = self._rows
        finished = takewhile(lambda block: block.index in done, self.job.blocks)
        return [done[block.index] for block in finished]


def sample_locally(
    plan: Plan,
    blocks: Sequence[Block],
    checkpoint: str | None,
    on_rows: OnRows,
    notify: Notify = warn,
    should_stop: ShouldStop = never,
) -> list[Row]:
    """Run the blocks in this process, one after the other, until `should_stop`."""
    run = _Run(plan, blocks, on_rows, should_stop)
    fleet.run_locally(
        *([run.job], checkpoint, run.add, notify, run_block),
        by_block=True,
        should_stop=run.should_stop,
    )
    return run.unbroken()


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
    if fleet.is_on_one_machine(session.sparkContext):
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
    """Run the blocks on a Spark session, in waves, until `should_stop`."""
    run = _Run(plan, blocks, on_rows, should_stop)
    fleet.run_in_session(
        *(session, [run.job], checkpoint, run.add),
        notify=notify,
        partitions=partitions,
        runner=runner,
        by_block=True,
        should_stop=run.should_stop,
    )
    return run.unbroken()
