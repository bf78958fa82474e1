"""A step of a story in words: the text alternative of its drawing, and the lines above it."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.present.stories.log_change import PartitionChange, ReplicaRow, spans_in_words
from advisor.protocol.log.replica_log import size, spans


def ids(brokers: Sequence[int]) -> str:
    """Broker ids, comma-separated; "none" for no broker."""
    return ", ".join(map(str, brokers)) or "none"


def headline(change: PartitionChange) -> str:
    """Leader, epoch, ISR and ELR of a partition."""
    leader = "no leader" if change.leader is None else f"leader {change.leader}"
    parts = [leader, f"leader epoch {change.leader_epoch}", f"ISR {ids(change.isr)}"]
    if change.elr:
        parts.append(f"ELR {ids(change.elr)}")
    return ", ".join(parts)


def loss(change: PartitionChange, letters: bool) -> str:
    """How many acknowledged records are lost, and which; "" if none."""
    if not change.lost:
        return ""
    count, total = size(change.lost), size(change.acked)
    which = spans_in_words(change.lost, letters)
    return f"Lost: {count} of {total} acknowledged records ({which})."


def description(change: PartitionChange, command: str, letters: bool) -> str:
    """What the drawing of a step shows, for screen readers."""
    after = f' after "{command}"' if command else ""
    rows = " ".join(_row(row, letters) for row in change.rows)
    said = f"Partition {change.name}{after}: {headline(change)}. {rows}"
    return " ".join(filter(None, [said, loss(change, letters)]))


def _row(row: ReplicaRow, letters: bool) -> str:
    held = spans(row.log.runs)
    parts = [f"records {spans_in_words(held, letters)}" if held else "no records"]
    if row.hw is not None:
        parts.append(f"HW {row.hw}")
    parts.append(f"LEO {row.log.leo}")
    if row.gone:
        parts.append(f"gone in this step: {spans_in_words(row.gone, letters)}")
    return f"Broker {row.broker} ({', '.join(row.words)}): {', '.join(parts)}."
