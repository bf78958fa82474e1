"""The records in a Kafka log's segment files, as they lie on disk."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import MissingExtraError

_LENGTH_AT, _HEADER = 8, 12  # A batch: its first offset, its length, and so many bytes.


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch of records.

    Attributes
    ----------
    at_byte, size_bytes : int
        Its place in the segment file.
    base_offset, last_offset : int
    leader_epoch : int
    timestamp_ms : int
        The latest of its records.
    control : bool
        Whether it holds markers instead of records.
    values : tuple of bytes
        Of its records; empty for a control batch.
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
    """The segment files of a replica's folder, the oldest first."""
    return sorted(folder.glob("*.log"))


def batches(segment: Path, from_byte: int = 0) -> Iterator[Batch]:
    """The whole batches of a segment file; one that is still being written is left out.

    Raises
    ------
    MissingExtraError
        Without kafka-python, which knows the format.
    """
    try:
        from kafka.record.default_records import DefaultRecordBatch
    except ImportError:
        raise MissingExtraError("reading the logs of a broker", "live") from None
    with segment.open("rb") as file:
        file.seek(from_byte)
        data = file.read()
    at = 0
    while at + _HEADER <= len(data):
        (length,) = struct.unpack_from(">i", data, at + _LENGTH_AT)
        size = _HEADER + length
        # A segment of a live broker may end in zeros, which it has reserved.
        if length <= 0 or at + size > len(data):
            return
        found = DefaultRecordBatch(data[at : at + size])
        control = bool(found.is_control_batch)
        yield Batch(
            from_byte + at,
            size,
            found.base_offset,
            found.last_offset,
            found.leader_epoch,
            found.max_timestamp,
            control,
            () if control else tuple(bytes(record.value or b"") for record in found),
        )
        at += size
