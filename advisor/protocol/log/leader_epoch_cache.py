"""The leader-epoch cache: which epoch began at which offset of a log.

Sources: ``LeaderEpochFileCache`` and its tests (KIP-101 in 0.11, KIP-279 in 2.0).
"""

from __future__ import annotations

from typing import NamedTuple

UNDEFINED = -1


class EpochStart(NamedTuple):
    """One line of a replica's ``leader-epoch-checkpoint`` file."""

    epoch: int
    start: int


class EpochEnd(NamedTuple):
    """The answer to OffsetsForLeaderEpoch; (-1, -1) if the log cannot say."""

    epoch: int
    end: int


Epochs = tuple[EpochStart, ...]

UNKNOWN_END = EpochEnd(UNDEFINED, UNDEFINED)


def assign(epochs: Epochs, epoch: int, start: int) -> Epochs:
    """Note that ``epoch`` began at offset ``start``.

    A repetition of the latest epoch is ignored; entries that the new one contradicts (a higher or
    equal epoch, or a start at or past it) go.

    Examples
    --------
    >>> assign((EpochStart(0, 0),), 2, 10)
    (EpochStart(epoch=0, start=0), EpochStart(epoch=2, start=10))
    """
    if epochs and epoch == epochs[-1].epoch and start >= epochs[-1].start:
        return epochs
    kept = epochs
    while kept and (kept[-1].epoch >= epoch or kept[-1].start >= start):
        kept = kept[:-1]
    return (*kept, EpochStart(epoch, start))


def latest(epochs: Epochs) -> int:
    """The latest epoch of the cache, -1 if it is empty."""
    return epochs[-1].epoch if epochs else UNDEFINED


def end_offset_for(epochs: Epochs, requested: int, leo: int) -> EpochEnd:
    """Where the largest epoch not above ``requested`` ends in this log (KIP-279).

    Parameters
    ----------
    epochs : tuple of EpochStart
    requested : int
    leo : int
        Log end offset: where the latest epoch ends.
    """
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
    """The first answer to the question, as 0.11 to 1.1 gave it: an offset without its epoch.

    The start of the first epoch above ``requested``, -1 if ``requested`` is above the latest or
    below the first epoch of the log.
    """
    if requested == UNDEFINED or not epochs:
        return UNDEFINED
    if requested == epochs[-1].epoch:
        return leo
    if requested > epochs[-1].epoch or requested < epochs[0].epoch:
        return UNDEFINED
    return next(entry.start for entry in epochs if entry.epoch > requested)


def truncate_from_end(epochs: Epochs, end: int) -> Epochs:
    """Drop the epochs that began at or past ``end``."""
    if not epochs or epochs[-1].start < end:
        return epochs
    return tuple(entry for entry in epochs if entry.start < end)


def truncate_from_start(epochs: Epochs, start: int) -> Epochs:
    """Drop the epochs that ended before ``start``; the one that holds it now begins there."""
    before = [entry for entry in epochs if entry.start <= start]
    if not before:
        return epochs
    after = tuple(entry for entry in epochs if entry.start > start)
    return (EpochStart(before[-1].epoch, start), *after)
