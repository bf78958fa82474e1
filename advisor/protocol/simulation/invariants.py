"""Safety properties of a replicated log, with the names of the public TLA+ specifications.

Each says when it may fail by design. Names: hachikuji/kafka-specification (TypeOk, LeaderInIsr,
WeakIsr, StrongIsr) and Vanlightly/kafka-tlaplus (LeaderCompleteness, LogMatching, ConsistentRead,
NoCommittedRecordLost); OneLeaderAnEpoch and NoAcknowledgedRecordLost are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import NamedTuple

from advisor.protocol.log import replica_log
from advisor.protocol.log.replica_log import Spans
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.simulation.state import (
    LEADER,
    Partition,
    Replica,
    State,
    broker_of,
    current_leader,
    replica_of,
)


class Violation(NamedTuple):
    """A violated invariant, with the partition and the details."""

    name: str
    topic: str
    partition: int
    detail: str

    def __str__(self) -> str:
        return f"{self.name} {self.topic}-{self.partition}: {self.detail}"


def _presumed_leaders(state: State, partition: Partition) -> list[Replica]:
    """Return replicas that act as leader on running brokers, deposed ones included."""
    return [
        r for r in partition.replicas if r.role == LEADER and broker_of(state, r.broker).running
    ]


def type_ok(_state: State, partition: Partition) -> Iterator[str]:
    """Offsets, epochs and sets are well-formed. Never fails."""
    registration = partition.registration
    if not set(registration.isr) <= set(registration.replicas):
        yield f"isr {registration.isr} is not among replicas {registration.replicas}"
    if set(registration.isr) & set(registration.elr):
        yield f"isr {registration.isr} and elr {registration.elr} overlap"
    for r in partition.replicas:
        log = r.log
        if not 0 <= r.hw <= log.leo or not log.flushed <= log.leo or log.checkpoint > log.leo:
            yield f"broker {r.broker}: hw={r.hw} flushed={log.flushed} leo={log.leo}"
        starts = list(log.epochs)
        if any(a.epoch >= b.epoch or a.start >= b.start for a, b in pairwise(starts)):
            yield f"broker {r.broker}: epochs {log.epochs} do not rise"


def leader_in_isr(_state: State, partition: Partition) -> Iterator[str]:
    """The leader is in the ISR. Never fails."""
    registration = partition.registration
    if registration.leader != NO_LEADER and registration.leader not in registration.isr:
        yield f"leader {registration.leader} is not in isr {registration.isr}"


def one_leader_an_epoch(state: State, partition: Partition) -> Iterator[str]:
    """No two brokers lead in the same epoch. Never fails."""
    leader_of_epoch: dict[int, int] = {}
    for r in _presumed_leaders(state, partition):
        if r.leader_epoch in leader_of_epoch:
            other = leader_of_epoch[r.leader_epoch]
            yield f"brokers {other} and {r.broker} lead in epoch {r.leader_epoch}"
        leader_of_epoch[r.leader_epoch] = r.broker


def _same_below(leader: Replica, other: Replica) -> bool:
    high = leader.hw
    return replica_log.records(leader.log, 0, high) == replica_log.records(other.log, 0, high)


def _lacking(partition: Partition, leader: Replica, members: tuple[int, ...]) -> Iterator[str]:
    for broker in members:
        other = replica_of(partition, broker)
        if other is not None and not _same_below(leader, other):
            yield f"broker {broker} lacks records below hw={leader.hw} of leader {leader.broker}"


def weak_isr(state: State, partition: Partition) -> Iterator[str]:
    """Every member of a presumed leader's own ISR has the records below that leader's HW.

    May fail after a loss of page cache or disk, and before 0.11 (truncation to the HW).
    """
    for leader in _presumed_leaders(state, partition):
        yield from _lacking(partition, leader, leader.isr)


def strong_isr(state: State, partition: Partition) -> Iterator[str]:
    """Every member of the controller's ISR has the records below a presumed leader's HW.

    May fail as WeakIsr may, and while a leader deposed by an unclean election does not know it.
    """
    for leader in _presumed_leaders(state, partition):
        yield from _lacking(partition, leader, partition.registration.isr)


def leader_completeness(state: State, partition: Partition) -> Iterator[str]:
    """The leader has every committed record.

    May fail after an unclean election, after a loss of page cache or disk on every ISR member, and
    before 0.11.
    """
    leader = current_leader(state, partition)
    if leader is not None:
        missing = replica_log.without(partition.committed, replica_log.spans(leader.log.runs))
        if missing:
            yield f"leader {leader.broker} lacks {replica_log.size(missing)} committed records"


def log_matching(_state: State, partition: Partition) -> Iterator[str]:
    """Two logs with the same epoch at an offset are equal up to that offset.

    May fail before 2.1: by truncation to the HW, the gap in KIP-101 that KIP-279 closed, and
    fetches not fenced by epoch (KIP-320).
    """
    for a, b in combinations(partition.replicas, 2):
        end = _last_common_epoch(a, b)
        if replica_log.records(a.log, 0, end) != replica_log.records(b.log, 0, end):
            yield f"brokers {a.broker} and {b.broker} differ below offset {end}"


def _last_common_epoch(a: Replica, b: Replica) -> int:
    """Return one past the highest offset at which both logs have the same epoch; 0 if none."""
    common_end = 0
    start = 0
    for run in a.log.runs:
        end = start + run.length
        other = 0
        for match in b.log.runs:
            low, high = max(start, other), min(end, other + match.length)
            if low < high and match.epoch == run.epoch:
                common_end = max(common_end, high)
            other += match.length
        start = end
    return common_end


def consistent_read(state: State, partition: Partition) -> Iterator[str]:
    """Two presumed leaders show consumers the same records, as far as both show them.

    May fail as LeaderCompleteness may.
    """
    for a, b in combinations(_presumed_leaders(state, partition), 2):
        high = min(a.hw, b.hw)
        if replica_log.records(a.log, 0, high) != replica_log.records(b.log, 0, high):
            yield f"leaders {a.broker} and {b.broker} show different records below {high}"


def no_committed_record_lost(_state: State, partition: Partition) -> Iterator[str]:
    """Every committed record is on some broker. May fail after a loss of disks."""
    missing = replica_log.without(partition.committed, _values_on_any_broker(partition))
    if missing:
        yield f"{replica_log.size(missing)} committed records are on no broker"


def no_acknowledged_record_lost(state: State, partition: Partition) -> Iterator[str]:
    """No acknowledged record is lost.

    May fail with acks=1 and acks=0, with unclean elections, when every ISR member loses its page
    cache or disk, and before 0.11.
    """
    missing = lost(state, partition)
    if missing:
        acknowledged = replica_log.size(partition.acked)
        yield f"lost {replica_log.size(missing)} of {acknowledged} acknowledged records"


def _values_on_any_broker(partition: Partition) -> Spans:
    return replica_log.merged(
        span for r in partition.replicas for span in replica_log.spans(r.log.runs)
    )


def lost(state: State, partition: Partition) -> Spans:
    """Return the acknowledged values that no consumer will read again.

    With a leader: those it lacks, since the other replicas truncate to it. Without a leader: those
    on no broker, since any replica may become leader.
    """
    leader = current_leader(state, partition)
    present = (
        _values_on_any_broker(partition) if leader is None else replica_log.spans(leader.log.runs)
    )
    return replica_log.without(partition.acked, present)


Invariant = Callable[[State, Partition], Iterator[str]]

INVARIANTS: dict[str, Invariant] = {
    "TypeOk": type_ok,
    "LeaderInIsr": leader_in_isr,
    "OneLeaderAnEpoch": one_leader_an_epoch,
    "WeakIsr": weak_isr,
    "StrongIsr": strong_isr,
    "LeaderCompleteness": leader_completeness,
    "LogMatching": log_matching,
    "ConsistentRead": consistent_read,
    "NoCommittedRecordLost": no_committed_record_lost,
    "NoAcknowledgedRecordLost": no_acknowledged_record_lost,
}

ALWAYS = ("TypeOk", "LeaderInIsr", "OneLeaderAnEpoch")


def check(state: State, names: tuple[str, ...] | None = None) -> tuple[Violation, ...]:
    """Return every violation of the named invariants (by default of all), in a fixed order."""
    chosen = INVARIANTS if names is None else {name: INVARIANTS[name] for name in names}
    return tuple(
        Violation(name, partition.topic, partition.number, detail)
        for partition in state.partitions
        for name, invariant in chosen.items()
        for detail in invariant(state, partition)
    )
