"""Replication schemes side by side: replicas needed, and acknowledgement latency.

Source of the comparison: Kafka's documentation, "Replicated Logs: Quorums, ISRs, and State
Machines". All numbers come from exhaustive enumeration with ``advisor.lessons.schemes.rules``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from advisor.errors import InputError
from advisor.lessons.schemes.rules import (
    ASYNCHRONOUS,
    ISR,
    LEADER,
    MAJORITY,
    MAX_REPLICAS,
    NAMES,
    SYNCHRONOUS,
    Scheme,
    after_crash,
    crash_sets,
    holders,
    may_acknowledge,
)

MAX_FAILURES = 2


def withstands(scheme: Scheme, failures: int, missing: Iterable[int] = (0,)) -> bool:
    """Whether no crash of up to ``failures`` replicas loses a record or blocks writes.

    failures: replicas that crash together, at most.
    missing: numbers of followers absent at the acknowledgement for which no record may be lost.
        Writes are checked with no follower absent.
    """
    crashes = list(crash_sets(scheme, failures))
    if any(after_crash(scheme, crashed).unwritable for crashed in crashes):
        return False
    return not any(
        after_crash(scheme, crashed, absent).lost for absent in missing for crashed in crashes
    )


def replicas_needed(name: str, failures: int) -> int | None:
    """Fewest replicas that lose nothing and stay writable with this number of crashes.

    All replicas are in sync when the record is acknowledged, and min ISR is 1: the usual
    comparison, f+1 replicas for the ISR and 2f+1 for a majority.

    name (one of "synchronous", "asynchronous", "majority", "isr").
    failures: replicas that crash, 0 to ``MAX_FAILURES``.
    Returns None if no number up to ``MAX_REPLICAS`` is enough.
    """
    _check_failures(failures)
    for count in range(failures + 1, MAX_REPLICAS + 1):
        if withstands(Scheme(name, count), failures):
            return count
    return None


def replicas_needed_at_any_time(name: str, failures: int) -> int | None:
    """The same for a record acknowledged with as many followers absent as the scheme allows.

    The ISR may have shrunk to min.insync.replicas. With the best min ISR, f+1, it needs 2f+1
    replicas, like a majority; without such a floor no number is enough.
    """
    _check_failures(failures)
    for count in range(failures + 1, MAX_REPLICAS + 1):
        for min_isr in range(1, count + 1 if name == ISR else 2):
            scheme = Scheme(name, count, min_isr)
            missing = [n for n in range(count) if may_acknowledge(scheme, count - n)]
            if withstands(scheme, failures, missing):
                return count
    return None


def _check_failures(failures: int) -> None:
    if not 0 <= failures <= MAX_FAILURES:
        raise InputError(f"failures={failures} must lie between 0 and {MAX_FAILURES}")


def copies_waited_for(scheme: Scheme) -> int:
    """Replicas, including the leader, that hold an acknowledged record if all are in sync."""
    replicas = frozenset(range(scheme.replicas))
    return min(len(held) for held in holders(scheme, replicas))


def acknowledgement_ms(
    scheme: Scheme,
    leader_ms: float,
    followers_ms: Sequence[float],
    in_sync: Collection[int] | None = None,
) -> float:
    """Acknowledgement latency of a record.

    leader_ms: time until the leader has written it.
    followers_ms: time until the leader knows that follower 1, 2, ... has it; infinity for one that
        is down.
    in_sync: the ISR. Default: every replica. A synchronous scheme waits for all that are not down.
    Returns milliseconds: of the leader alone, the fastest quorum, the slowest of the ISR, or the
        slowest of all; infinity if the scheme does not acknowledge.
    Raises InputError: for a wrong number of latencies, a negative one, or an ISR with unknown
        replicas.
    """
    if len(followers_ms) != scheme.replicas - 1:
        raise InputError(
            f"{len(followers_ms)} follower latencies for {scheme.replicas} replicas: "
            f"{scheme.replicas - 1} are needed"
        )
    times = [leader_ms, *followers_ms]
    if not all(time >= 0.0 for time in times):
        raise InputError(f"latencies must be numbers that are not negative: {times}")
    if scheme.name == ASYNCHRONOUS:
        return leader_ms
    if scheme.name == MAJORITY:
        return (
            max(leader_ms, sorted(followers_ms)[scheme.quorum - 2]) if followers_ms else leader_ms
        )
    if scheme.name == SYNCHRONOUS:
        return max(time for time in times if time < math.inf or time == leader_ms)
    members = set(range(scheme.replicas) if in_sync is None else in_sync) | {LEADER}
    if not members <= set(range(scheme.replicas)):
        raise InputError(f"in_sync={sorted(members)} names replicas that do not exist")
    if not may_acknowledge(scheme, len(members)):
        return math.inf
    return max(times[member] for member in members)


@dataclass(frozen=True, slots=True)
class Comparison:
    """One scheme, sized for a number of failures.

    replicas: fewest replicas that withstand the failures if all are in sync at the acknowledgement.
    copies: copies of a record at its acknowledgement, with this number of replicas.
    replicas_at_any_time: fewest replicas if the record may be acknowledged with followers absent.
    waits_for: the replicas that determine the acknowledgement latency.
    """

    name: str
    failures: int
    replicas: int | None
    copies: int | None
    replicas_at_any_time: int | None
    waits_for: str


_WAITS_FOR = {
    SYNCHRONOUS: "the slowest of all working replicas",
    ASYNCHRONOUS: "the leader alone",
    MAJORITY: "the fastest f+1, the leader among them",
    ISR: "the slowest in-sync replica",
}


def compare(failures: int) -> tuple[Comparison, ...]:
    """Compare all schemes, each sized for a number of failures.

    failures: replicas that crash, 0 to ``MAX_FAILURES``.
    Returns one row for each scheme.

    >>> [(row.name, row.replicas, row.replicas_at_any_time) for row in compare(1)]
    [('synchronous', 2, None), ('asynchronous', None, None), ('majority', 3, 3), ('isr', 2, 3)]
    """
    rows = []
    for name in NAMES:
        count = replicas_needed(name, failures)
        rows.append(
            Comparison(
                name,
                failures,
                count,
                None if count is None else copies_waited_for(Scheme(name, count)),
                replicas_needed_at_any_time(name, failures),
                _WAITS_FOR[name],
            )
        )
    return tuple(rows)
