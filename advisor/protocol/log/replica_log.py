"""A replica's log: records by offset, the flushed part, and the leader epoch cache.

Records are stored as runs of consecutive value numbers written in one leader epoch, so ten thousand
records take as much space as one. Sources: ``UnifiedLog``, ``LogManager`` (checkpoints).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from advisor.errors import InputError
from advisor.protocol.log import leader_epoch_cache
from advisor.protocol.log.leader_epoch_cache import Epochs


class Run(NamedTuple):
    """Consecutive records of one epoch with the values ``first`` to ``first + length - 1``."""

    epoch: int
    first: int
    length: int


Runs = tuple[Run, ...]
Span = tuple[int, int]
Spans = tuple[Span, ...]


class Log(NamedTuple):
    """The log of one partition on one broker.

    flushed: records below this offset survive a power failure; the rest is in the page cache.
    checkpoint: high watermark in ``replication-offset-checkpoint``, which a restart begins with.
    epochs: leader epoch cache; empty before 0.11.
    """

    runs: Runs = ()
    leo: int = 0
    flushed: int = 0
    checkpoint: int = 0
    epochs: Epochs = ()


EMPTY = Log()


def append(log: Log, runs: Iterable[Run], with_epochs: bool) -> Log:
    """Return the log with records appended and new epochs cached."""
    all_runs = list(log.runs)
    leo = log.leo
    cache = log.epochs
    for run in runs:
        if run.length == 0:
            continue
        if with_epochs and (not cache or cache[-1].epoch != run.epoch):
            cache = leader_epoch_cache.assign(cache, run.epoch, leo)
        leo += run.length
        last = all_runs[-1] if all_runs else None
        if last and last.epoch == run.epoch and last.first + last.length == run.first:
            all_runs[-1] = Run(last.epoch, last.first, last.length + run.length)
        else:
            all_runs.append(run)
    return Log(tuple(all_runs), leo, log.flushed, log.checkpoint, cache)


def begin_epoch(log: Log, epoch: int) -> Log:
    """Cache a new leader's epoch at the log end, before its first record (KAFKA-7415, 2.1)."""
    return log._replace(epochs=leader_epoch_cache.assign(log.epochs, epoch, log.leo))


def truncate(log: Log, end: int) -> Log:
    """Truncate the log to offset `end`.

    A log that ends at or before `end` keeps its records, but drops an epoch that begins at its end
    without any record: another leader may have begun one there (``UnifiedLog.truncateTo``).
    """
    if end < 0:
        raise InputError(f"cannot truncate a log to a negative offset ({end})")
    if end >= log.leo:
        return drop_empty_epoch(log)
    return Log(
        runs=records(log, 0, end),
        leo=end,
        flushed=min(log.flushed, end),
        checkpoint=min(log.checkpoint, end),
        epochs=leader_epoch_cache.truncate_from_end(log.epochs, end),
    )


def drop_empty_epoch(log: Log) -> Log:
    """Return the log without a last epoch that has no records, as after loading from disk."""
    epochs = leader_epoch_cache.truncate_from_end(log.epochs, log.leo)
    return log if epochs == log.epochs else log._replace(epochs=epochs)


def records(log: Log, start: int, end: int) -> Runs:
    """Return the records from offset `start` up to, not including, `end`."""
    selected = []
    offset = 0
    for run in log.runs:
        low, high = max(start, offset), min(end, offset + run.length)
        if low < high:
            selected.append(Run(run.epoch, run.first + low - offset, high - low))
        offset += run.length
        if offset >= end:
            break
    return tuple(selected)


def flush(log: Log) -> Log:
    """Return the log with all records flushed to disk."""
    return log if log.flushed == log.leo else log._replace(flushed=log.leo)


def lose_power(log: Log, keep: int | None) -> Log:
    """Return the log after a power failure: its flushed part, or its first `keep` records."""
    return truncate(log, log.flushed if keep is None else keep)


def holds(log: Log, span: Span) -> bool:
    """Return whether every value of a span is in the log."""
    return not without(((span),), spans(log.runs))


def spans(runs: Iterable[Run]) -> Spans:
    """Return the values of some records as sorted spans [first, end)."""
    return merged((run.first, run.first + run.length) for run in runs)


def merged(parts: Iterable[Span]) -> Spans:
    """Return spans sorted, with adjacent and overlapping ones joined."""
    result: list[Span] = []
    for first, end in sorted(parts):
        if first >= end:
            continue
        if result and first <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((first, end))
    return tuple(result)


def without(wanted: Spans, present: Spans) -> Spans:
    """Return the part of `wanted` that is not in `present`, both sorted."""
    missing: list[Span] = []
    for first, end in wanted:
        start = first
        for low, high in present:
            if high <= start or low >= end:
                continue
            if low > start:
                missing.append((start, low))
            start = max(start, high)
        if start < end:
            missing.append((start, end))
    return tuple(missing)


def size(parts: Spans) -> int:
    """Return the number of values in the spans."""
    return sum(end - first for first, end in parts)
