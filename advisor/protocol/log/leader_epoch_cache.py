"""The leader epoch cache: the start offset of each leader epoch in a log.

Sources: ``LeaderEpochFileCache`` and its tests (KIP-101 in 0.11, KIP-279 in 2.0).
"""

from __future__ import annotations

from typing import NamedTuple

UNDEFINED = -1


class EpochStart(NamedTuple):
    """One entry of a replica's ``leader-epoch-checkpoint`` file."""

    epoch: int
    start: int


class EpochEnd(NamedTuple):
    """Answer to OffsetsForLeaderEpoch; (-1, -1) if the log cannot tell."""

    epoch: int
    end: int


Epochs = tuple[EpochStart, ...]

UNKNOWN_END = EpochEnd(UNDEFINED, UNDEFINED)


def assign(epochs: Epochs, epoch: int, start: int) -> Epochs:
    """Record that `epoch` begins at offset `start`; entries at or past either are removed."""
    if epochs and epoch == epochs[-1].epoch and start >= epochs[-1].start:
        return epochs
    earlier = epochs
    while earlier and (earlier[-1].epoch >= epoch or earlier[-1].start >= start):
        earlier = earlier[:-1]
    return (*earlier, EpochStart(epoch, start))


def latest(epochs: Epochs) -> int:
    """Return the latest epoch of the cache, -1 if it is empty."""
    return epochs[-1].epoch if epochs else UNDEFINED


def end_offset_for(epochs: Epochs, requested: int, leo: int) -> EpochEnd:
    """Return the largest epoch not above `requested` and its end offset (KIP-279)."""
    if requested == UNDEFINED or not epochs:
        return UNKNOWN_END
    if requested == epochs[-1].epoch:
        return EpochEnd(requested, leo)
    if requested > epochs[-1].epoch:
        return UNKNOWN_END
    floor = None
    for entry in epochs:
        if entry.epoch > requested:
            return EpochEnd(requested if floor is None else floor, entry.start)
        floor = entry.epoch
    return UNKNOWN_END


def end_offset_for_kip101(epochs: Epochs, requested: int, leo: int) -> int:
    """Return the end offset of an epoch as 0.11 to 1.1 answered it, without naming the epoch.

    That is the start of the first epoch above `requested`; -1 if `requested` is above the latest
    epoch or below the first.
    """
    if requested == UNDEFINED or not epochs:
        return UNDEFINED
    if requested == epochs[-1].epoch:
        return leo
    if requested > epochs[-1].epoch or requested < epochs[0].epoch:
        return UNDEFINED
    return next(entry.start for entry in epochs if entry.epoch > requested)


def truncate_from_end(epochs: Epochs, end: int) -> Epochs:
    """Remove the epochs that begin at or past offset `end`; none if `end` is negative."""
    if end < 0 or not epochs or epochs[-1].start < end:
        return epochs
    return tuple(entry for entry in epochs if entry.start < end)
