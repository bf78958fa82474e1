"""A replica's log directory: read it, or truncate it as a power failure would."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import MissingExtraError
from advisor.files import write_file
from advisor.rendering import file_lines

_LENGTH_AT, _HEADER = 8, 12  # baseOffset (8 bytes), batchLength (4 bytes), then batchLength bytes.


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of records, with its place in the segment file; a control batch has no values."""

    at_byte: int
    size_bytes: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    timestamp_ms: int
    control: bool
    values: tuple[bytes, ...]


def segments(folder: Path) -> list[Path]:
    """Return the segment files of a replica's directory, oldest first."""
    return sorted(folder.glob("*.log"))


def batches(segment: Path, from_byte: int = 0) -> Iterator[Batch]:
    """Yield the complete batches of a segment file; a partly written one is skipped."""
    try:
        from kafka.record.default_records import DefaultRecordBatch
    except ImportError:
        raise MissingExtraError("reading the logs of a broker", "live") from None
    with segment.open("rb") as file:
        file.seek(from_byte)
        data = file.read()
    position = 0
    while position + _HEADER <= len(data):
        (length,) = struct.unpack_from(">i", data, position + _LENGTH_AT)
        size = _HEADER + length
        # A segment of a running broker may end in preallocated zeros.
        if length <= 0 or position + size > len(data):
            return
        batch = DefaultRecordBatch(data[position : position + size])
        control = bool(batch.is_control_batch)
        yield Batch(
            from_byte + position,
            size,
            batch.base_offset,
            batch.last_offset,
            batch.leader_epoch,
            batch.max_timestamp,
            control,
            () if control else tuple(bytes(record.value or b"") for record in batch),
        )
        position += size


_EPOCHS = "leader-epoch-checkpoint"


@dataclass(frozen=True)
class DiskLog:
    """The log of one replica on disk, with each leader epoch and its start offset."""

    leo: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    values: tuple[bytes, ...] = ()


def replica_folder(data: Path, topic: str, partition: int) -> Path:
    """Return the directory of a replica."""
    return data / f"{topic}-{partition}"


def read_log(folder: Path) -> DiskLog:
    """Read the log of a running or stopped broker's replica; appends show at once."""
    all_batches = [batch for segment in segments(folder) for batch in batches(segment)]
    if all_batches:
        leo = all_batches[-1].last_offset + 1
    else:
        # An empty log continues at the base offset of its last segment.
        names = segments(folder)
        leo = int(names[-1].stem) if names else 0
    return DiskLog(leo, _epochs(folder), tuple(v for batch in all_batches for v in batch.values))


def drop_unflushed(folder: Path, records: int) -> None:
    """Truncate a stopped broker's log to some records, as if the tail had never reached the disk.

    A batch that contains the cut is left torn, and log recovery drops it as after a real power
    failure.
    """
    for number, segment in enumerate(segments(folder)):
        if number > 0 and int(segment.stem) >= records:
            _delete_segment(segment)
            continue
        lost = next((b for b in batches(segment) if b.last_offset >= records), None)
        if lost is not None:
            _truncate_segment(segment, lost, records)
    _drop_epochs(folder, records)


def _delete_segment(segment: Path) -> None:
    for path in segment.parent.glob(f"{segment.stem}.*"):
        path.unlink()


def _truncate_segment(segment: Path, lost: Batch, records: int) -> None:
    """Truncate before or inside a batch; the broker rebuilds the indexes at startup."""
    torn = 1 if lost.base_offset < records else 0
    with segment.open("r+b") as file:
        file.truncate(lost.at_byte + torn * (lost.size_bytes // 2))
    for suffix in (".index", ".timeindex", ".txnindex"):
        segment.with_suffix(suffix).unlink(missing_ok=True)
    for snapshot in segment.parent.glob("*.snapshot"):
        if int(snapshot.stem) > records:
            snapshot.unlink()


def _epochs(folder: Path) -> tuple[tuple[int, int], ...]:
    """Parse the checkpoint: ``version``, ``count``, then ``epoch start`` per line."""
    path = folder / _EPOCHS
    lines = path.read_text().split("\n")[2:] if path.is_file() else []
    pairs = (line.split() for line in lines if line.strip())
    return tuple((int(epoch), int(start)) for epoch, start in pairs)


def _drop_epochs(folder: Path, records: int) -> None:
    """Drop epochs that start after the end of the log, as log recovery does."""
    epochs = [(epoch, start) for epoch, start in _epochs(folder) if start <= records]
    path = folder / _EPOCHS
    if path.is_file():
        write_file(
            path, file_lines(["0", str(len(epochs)), *(f"{e} {start}" for e, start in epochs)])
        )
