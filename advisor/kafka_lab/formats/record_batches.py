"""Read record batches from the segment files of a Kafka log."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import MissingExtraError

_LENGTH_AT, _HEADER = 8, 12  # baseOffset (8 bytes), batchLength (4 bytes), then batchLength bytes.


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of records.

    at_byte, size_bytes: position and size in the segment file.
    base_offset, last_offset: offsets of the first and last record.
    leader_epoch: epoch of the leader that appended it.
    timestamp_ms: latest timestamp of the records.
    control: whether it is a control batch (transaction markers).
    values: values of the records; empty for a control batch.
    """

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
    """Yield the complete batches of a segment file; a partly written one is skipped.

    Raises MissingExtraError if kafka-python is not installed.
    """
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
