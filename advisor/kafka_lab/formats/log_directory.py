"""One replica's log on a broker's disk: read, and cut as a power failure cuts it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor.kafka_lab.formats.record_batches import Batch, batches, segments

_EPOCHS = "leader-epoch-checkpoint"


@dataclass(frozen=True)
class DiskLog:
    """What a broker's disk holds of a partition.

    Attributes
    ----------
    leo : int
        Log end offset.
    epochs : tuple of (int, int)
        Leader epochs and their start offsets, as the broker keeps them.
    values : tuple of bytes
        The records' values, in order.
    """

    leo: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    values: tuple[bytes, ...] = ()


def replica_folder(data: Path, topic: str, partition: int) -> Path:
    """Where a broker keeps its copy of a partition."""
    return data / f"{topic}-{partition}"


def read(folder: Path) -> DiskLog:
    """A replica's log, of a broker that runs or not; an empty one if there is none.

    What a broker has appended is seen at once: it writes to the file, and the file is in the page
    cache that both share.
    """
    found = [batch for segment in segments(folder) for batch in batches(segment)]
    if found:
        leo = found[-1].last_offset + 1
    else:
        # A log that was rolled or cut to nothing goes on at its segment's first offset.
        names = segments(folder)
        leo = int(names[-1].stem) if names else 0
    return DiskLog(leo, _epochs(folder), tuple(v for batch in found for v in batch.values))


def cut(folder: Path, records: int) -> None:
    """Leave the first records of a stopped broker's log, as if the rest had never reached the disk.

    Whole batches go, and a batch that is cut in the middle is torn: the broker's recovery then
    drops it, as it does after a real power failure.

    Parameters
    ----------
    folder : Path
        The replica's folder.
    records : int
        The offset of the first record that is lost.
    """
    for number, segment in enumerate(segments(folder)):
        if number > 0 and int(segment.stem) >= records:
            _remove(segment)
            continue
        lost = next((b for b in batches(segment) if b.last_offset >= records), None)
        if lost is not None:
            _shorten(segment, lost, records)
    _forget_epochs(folder, records)


def _remove(segment: Path) -> None:
    for path in segment.parent.glob(f"{segment.stem}.*"):
        path.unlink()


def _shorten(segment: Path, lost: Batch, records: int) -> None:
    """Cut before a batch, or inside it; the indexes are built anew when the broker starts."""
    torn = 1 if lost.base_offset < records else 0
    with segment.open("r+b") as file:
        file.truncate(lost.at_byte + torn * (lost.size_bytes // 2))
    for suffix in (".index", ".timeindex", ".txnindex"):
        segment.with_suffix(suffix).unlink(missing_ok=True)
    for snapshot in segment.parent.glob("*.snapshot"):
        if int(snapshot.stem) > records:
            snapshot.unlink()


def _epochs(folder: Path) -> tuple[tuple[int, int], ...]:
    """``version``, ``count``, then ``epoch start`` a line."""
    path = folder / _EPOCHS
    lines = path.read_text().split("\n")[2:] if path.is_file() else []
    pairs = (line.split() for line in lines if line.strip())
    return tuple((int(epoch), int(start)) for epoch, start in pairs)


def _forget_epochs(folder: Path, records: int) -> None:
    """Epochs that began where nothing is left any more.

    The broker itself drops them when it recovers the log.
    """
    kept = [(epoch, start) for epoch, start in _epochs(folder) if start <= records]
    path = folder / _EPOCHS
    if path.is_file():
        body = "".join(f"{epoch} {start}\n" for epoch, start in kept)
        path.write_text(f"0\n{len(kept)}\n{body}")
