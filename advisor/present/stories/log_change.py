"""The records of a partition's replicas after a step, and those that the step removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import Log, Spans, size, spans
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.simulation.invariants import lost
from advisor.protocol.simulation.state import (
    ACTIVE,
    LEADER,
    STOPPING,
    Broker,
    Partition,
    State,
    position_of,
    replica_of,
)

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class ReplicaRow:
    """One replica after a step, its states in words, and what was gone from its log."""

    broker: int
    words: tuple[str, ...]
    up: bool
    log: Log
    hw: int | None
    before: Log
    gone: Spans


@dataclass(frozen=True)
class PartitionChange:
    """A partition after a step; ``lost`` is acknowledged and will never be read again."""

    name: str
    leader: int | None
    leader_epoch: int
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    min_isr: int
    rows: tuple[ReplicaRow, ...]
    acked: Spans
    lost: Spans


def change(before: State | None, after: State, topic: str, number: int) -> PartitionChange:
    """Compare a partition before and after a step; before may lack it."""
    partition = after.partitions[position_of(after, topic, number)]
    old = _partition(before, topic, number)
    registration = partition.registration
    leader = None if registration.leader == NO_LEADER else registration.leader
    ids = sorted({*registration.replicas, *(r.broker for r in partition.replicas)})
    brokers = {broker.id: broker for broker in after.brokers}
    return PartitionChange(
        f"{topic}-{number}",
        leader,
        registration.leader_epoch,
        tuple(sorted(registration.isr)),
        tuple(sorted(registration.elr)),
        partition.min_insync_replicas,
        tuple(_row(brokers[broker], partition, old) for broker in ids),
        partition.acked,
        lost(after, partition),
    )


def _partition(state: State | None, topic: str, number: int) -> Partition | None:
    if state is None:
        return None
    partitions = (p for p in state.partitions if (p.topic, p.number) == (topic, number))
    return next(partitions, None)


def _row(broker: Broker, partition: Partition, old: Partition | None) -> ReplicaRow:
    replica = replica_of(partition, broker.id)
    log = logs.EMPTY if replica is None else replica.log
    old_replica = None if old is None else replica_of(old, broker.id)
    old_log = logs.EMPTY if old_replica is None else old_replica.log
    gone = logs.without(logs.spans(old_log.runs), logs.spans(log.runs))
    hw = replica.hw if replica is not None and broker.running else None
    return ReplicaRow(broker.id, _words(broker, partition), broker.running, log, hw, old_log, gone)


def _words(broker: Broker, partition: Partition) -> tuple[str, ...]:
    """States of a broker and its replica, the most important first."""
    registration = partition.registration
    replica = replica_of(partition, broker.id)
    leads = replica is not None and replica.role == LEADER and broker.running
    words = []
    if registration.leader == broker.id:
        words.append("leader" if leads else "leader on record")
    elif leads:
        words.append("still acts as leader")
    words.append("in ISR" if broker.id in registration.isr else "out of ISR")
    if broker.id in registration.elr:
        words.append("in ELR")
    if not broker.running:
        words.append("down")
    if not broker.connected:
        words.append("cut off")
    if broker.limping:
        words.append("limping")
    if broker.running and not broker.fetching:
        words.append("not fetching")
    if broker.session == STOPPING:
        words.append("stopping")
    elif broker.session != ACTIVE:
        words.append("fenced")
    return tuple(words)


def label(value: int, letters: bool) -> str:
    """Name of a record: a letter in the order of sending, or its number."""
    return _LETTERS[value] if letters else str(value + 1)


def spans_in_words(spans: Spans, letters: bool) -> str:
    """``A to C, F`` for the values of some spans."""
    parts = []
    for first, end in spans:
        name = label(first, letters)
        parts.append(name if end - first == 1 else f"{name} to {label(end - 1, letters)}")
    return ", ".join(parts)


def few_enough_for_letters(last_value: int) -> bool:
    """Whether every record can have a letter of its own."""
    return last_value <= len(_LETTERS)


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
    records = spans_in_words(change.lost, letters)
    return f"Lost: {count} of {total} acknowledged records ({records})."


def description(change: PartitionChange, command: str, letters: bool) -> str:
    """What the drawing of a step shows, for screen readers."""
    after_command = f' after "{command}"' if command else ""
    rows = " ".join(_replica_in_words(row, letters) for row in change.rows)
    sentence = f"Partition {change.name}{after_command}: {headline(change)}. {rows}"
    return " ".join(filter(None, [sentence, loss(change, letters)]))


def _replica_in_words(row: ReplicaRow, letters: bool) -> str:
    held = spans(row.log.runs)
    parts = [f"records {spans_in_words(held, letters)}" if held else "no records"]
    if row.hw is not None:
        parts.append(f"HW {row.hw}")
    parts.append(f"LEO {row.log.leo}")
    if row.gone:
        parts.append(f"gone in this step: {spans_in_words(row.gone, letters)}")
    return f"Broker {row.broker} ({', '.join(row.words)}): {', '.join(parts)}."
