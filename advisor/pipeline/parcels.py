"""Parcels: blocks of many plans, cut into pieces of about a second's work.

A fleet has cells that cost a thousand times as much as others: a dear cell is spread over many
parcels, and many cheap ones share one. What comes back from a parcel is one packed record for each
run of blocks, since a fleet has millions of rows.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from advisor.errors import InputError
from advisor.reliability.sampler.block import Row, mark, run_block
from advisor.reliability.sampler.plan import Block, Plan, seconds_per_block

SECONDS_PER_PARCEL = 1.0
"""A parcel is full when its blocks take about so long; its last block may take it beyond."""

Runner = Callable[[Plan, Block], Row]

_KINDS = get_type_hints(Row)
_WHOLE = tuple(name for name, kind in _KINDS.items() if kind is int)
_REAL = tuple(name for name, kind in _KINDS.items() if kind is float)
_LISTS = tuple(name for name, kind in _KINDS.items() if kind == tuple[float, ...])


@dataclass(frozen=True)
class Job:
    """A plan and all of its blocks.

    run: identifies plan and seed in rows, records and checkpoints.
    """

    run: str
    plan: Plan
    blocks: tuple[Block, ...]

    @classmethod
    def of(cls, plan: Plan, blocks: Sequence[Block]) -> Job:
        """Return the job of a plan's blocks."""
        return cls(mark(plan, blocks[0].seed), plan, tuple(blocks))

    @property
    def seconds_per_block(self) -> float:
        """Expected run time of one of its blocks on one core; they are equally long."""
        return seconds_per_block(self.plan, self.blocks[0].years)


class Span(NamedTuple):
    """Blocks that follow each other."""

    run: str
    blocks: tuple[Block, ...]


class Parcel(NamedTuple):
    """Spans that one task runs, and their expected run time on one core."""

    seconds: float
    spans: tuple[Span, ...]


class Record(NamedTuple):
    """The rows of a span, as `packed` makes them.

    first, blocks: number of the first block, and how many there are.
    """

    run: str
    first: int
    blocks: int
    rows: bytes


def cut_into_parcels(
    jobs: Iterable[Job], done: Mapping[str, set[int]], seconds: float = SECONDS_PER_PARCEL
) -> list[Parcel]:
    """Pack the blocks that are not done into parcels of some seconds on one core.

    done: by run, the numbers of the blocks that are done.
    Returns those that take longer than two full ones first, the dearest at the front; the others in
        the order of their rules.
    """
    parcels: list[Parcel] = []
    # Plans of the same rules share a transition table, which each process fills once.
    in_order = sorted(jobs, key=lambda job: (job.plan.replicas, repr(job.plan.constants), job.run))
    for _, group in groupby(
        in_order, key=lambda job: (job.plan.replicas, repr(job.plan.constants))
    ):
        spans: list[Span] = []
        cost = 0.0
        for job in group:
            block_seconds, missing = job.seconds_per_block, done.get(job.run, set())
            span: list[Block] = []
            for block in job.blocks:
                if block.index in missing:
                    _add(spans, job, span)
                    continue
                span.append(block)
                cost += block_seconds
                if cost >= seconds:
                    _add(spans, job, span)
                    parcels.append(Parcel(cost, tuple(spans)))
                    spans, cost = [], 0.0
            _add(spans, job, span)
        if spans:
            parcels.append(Parcel(cost, tuple(spans)))
    return sorted(parcels, key=lambda parcel: -max(parcel.seconds, 2.0 * seconds))


def _add(spans: list[Span], job: Job, blocks: list[Block]) -> None:
    """Close a span of blocks, if there are any."""
    if blocks:
        spans.append(Span(job.run, tuple(blocks)))
        blocks.clear()


def run_parcel(
    parcel: Parcel, plans: Mapping[str, bytes], runner: Runner = run_block
) -> list[Record]:
    """Sample the blocks of a parcel, with plans as `packed_plan` makes them, by run."""
    records = []
    for run, blocks in parcel.spans:
        plan = _unpacked_plan(plans[run])
        rows = [runner(plan, block) for block in blocks]
        records.append(Record(run, blocks[0].index, len(blocks), packed(rows)))
    return records


def packed_plan(plan: Plan) -> bytes:
    """Pack a plan for its way to the workers."""
    return zlib.compress(pickle.dumps(plan), 1)


@lru_cache(maxsize=4)
def _unpacked_plan(content: bytes) -> Plan:
    plan: Plan = pickle.loads(zlib.decompress(content))
    return plan


def packed(rows: Sequence[Row]) -> bytes:
    """Pack rows of one run: whole numbers, then the others, every bit of them, compressed."""
    lengths = [len(getattr(rows[0], name)) for name in _LISTS]
    whole = [[getattr(row, name) for name in _WHOLE] for row in rows]
    real = [
        [
            *(getattr(row, name) for name in _REAL),
            *(number for name in _LISTS for number in getattr(row, name)),
        ]
        for row in rows
    ]
    head = np.array([len(rows), *lengths], dtype="<i8")
    content = (head, np.array(whole, dtype="<i8"), np.array(real, dtype="<f8"))
    return zlib.compress(b"".join(column.tobytes() for column in content), 6)


def unpacked(record: Record) -> list[Row]:
    """Return the rows of a record."""
    whole, real, lengths = _arrays(record)
    rows = []
    for numbers, others in zip(whole.tolist(), real.tolist(), strict=True):
        fields: dict[str, Any] = dict(zip(_WHOLE, numbers, strict=True))
        fields |= dict(zip(_REAL, others[: len(_REAL)], strict=True))
        start = len(_REAL)
        for name, length in zip(_LISTS, lengths, strict=True):
            fields[name] = tuple(others[start : start + length])
            start += length
        rows.append(Row(plan=record.run, **fields))
    return rows


def rows_of(job: Job, records: Iterable[Record]) -> dict[int, Row]:
    """Return the rows of a job, by block; one that was run twice counts once."""
    wanted = {block.index for block in job.blocks}
    rows = (row for record in records if record.run == job.run for row in unpacked(record))
    return {row.block: row for row in rows if row.block in wanted}


def blocks_and_years(record: Record) -> list[tuple[int, int]]:
    """Return number and years of the blocks of a record, quicker than `unpacked`."""
    whole = _arrays(record)[0]
    columns = [_WHOLE.index("block"), _WHOLE.index("years")]
    return [(block, years) for block, years in whole[:, columns].tolist()]


def _arrays(record: Record) -> tuple[Any, Any, list[int]]:
    damaged = InputError("a record of finished blocks is damaged")
    try:
        content = zlib.decompress(record.rows)
    except zlib.error:
        raise damaged from None
    head = 8 * (1 + len(_LISTS))
    if len(content) < head:
        raise damaged
    count, *lengths = np.frombuffer(content[:head], dtype="<i8").tolist()
    width = len(_REAL) + sum(lengths)
    middle = head + 8 * count * len(_WHOLE)
    if count != record.blocks or len(content) != middle + 8 * count * width:
        raise damaged
    whole = np.frombuffer(content[head:middle], dtype="<i8").reshape(count, len(_WHOLE))
    real = np.frombuffer(content[middle:], dtype="<f8").reshape(count, width)
    return whole, real, lengths
