"""The replication schemes side by side: replicas that they need, and whom they wait for.

Source of the comparison: Kafka's documentation, "Replicated Logs: Quorums, ISRs, and State
Machines"; every number here is found by trying all cases of ``advisor.protocol.schemes.rules``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from advisor.errors import InputError
from advisor.protocol.schemes.rules import (
    ASYNCHRONOUS,
    ISR,
    LEADER,
    MAJORITY,
    MOST_REPLICAS,
    NAMES,
    SYNCHRONOUS,
    Scheme,
    after_crash,
    crash_sets,
    holders,
    may_acknowledge,
)

MOST_FAILURES = 2


def withstands(scheme: Scheme, failures: int, missing: Iterable[int] = (0,)) -> bool:
    """Whether no crash of so many replicas loses a record, or blocks a healthy partition.

    Parameters
    ----------
    scheme : Scheme
    failures : int
    missing : iterable of int
        The numbers of missing followers at the acknowledgement for which nothing may be lost.
    """
    crashes = list(crash_sets(scheme, failures))
    if any(fate.unwritable for fate in (after_crash(scheme, crashed) for crashed in crashes)):
        return False
    return not any(
        after_crash(scheme, crashed, absent).lost for absent in missing for crashed in crashes
    )


def replicas_needed(name: str, failures: int) -> int | None:
    """The fewest replicas that lose nothing and stay writable through so many crashes.

    All replicas take part when the record is acknowledged, and min ISR is 1: the usual comparison,
    f+1 for the ISR against 2f+1 for a majority.

    Returns
    -------
    int or None
        None where no number up to ``MOST_REPLICAS`` is enough.
    """
    _check_failures(failures)
    for count in range(failures + 1, MOST_REPLICAS + 1):
        if withstands(Scheme(name, count), failures):
            return count
    return None


def replicas_needed_at_any_time(name: str, failures: int) -> int | None:
    """The same for a record acknowledged at the worst moment that the scheme allows.

    The ISR may have shrunk to min.insync.replicas then. With the best min ISR for the purpose,
    f+1, it needs 2f+1 replicas, like a majority; a scheme without such a floor never has enough.
    """
    _check_failures(failures)
    for count in range(failures + 1, MOST_REPLICAS + 1):
        for min_isr in range(1, count + 1 if name == ISR else 2):
            scheme = Scheme(name, count, min_isr)
            moments = [n for n in range(count) if may_acknowledge(scheme, count - n)]
            if withstands(scheme, failures, moments):
                return count
    return None


def _check_failures(failures: int) -> None:
    if not 0 <= failures <= MOST_FAILURES:
        raise InputError(f"failures={failures} must lie between 0 and {MOST_FAILURES}")


def copies_waited_for(scheme: Scheme) -> int:
    """Replicas, the leader among them, that have a record when it is acknowledged in health."""
    everyone = frozenset(range(scheme.replicas))
    return min(len(held) for held in holders(scheme, everyone))


def acknowledgement_ms(
    scheme: Scheme,
    leader_ms: float,
    followers_ms: Sequence[float],
    in_sync: Collection[int] | None = None,
) -> float:
    """How long a record waits for its acknowledgement.

    Parameters
    ----------
    scheme : Scheme
    leader_ms : float
        Until the leader has written it.
    followers_ms : sequence of float
        Until the leader knows that follower 1, 2, ... has it; infinity for one that is down.
    in_sync : collection of int, optional
        The ISR; None is every replica. A synchronous scheme waits for all that are not down.

    Returns
    -------
    float
        Leader alone, fastest quorum, slowest of the ISR, or slowest of all; infinity where the
        scheme would not acknowledge.
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

    Attributes
    ----------
    name : str
    failures : int
    replicas : int or None
        Fewest that withstand so many crashes, starting in health.
    copies : int or None
        That a record has when it is acknowledged, with so many replicas.
    replicas_at_any_time : int or None
        Fewest if the record may also be acknowledged at the worst moment.
    waits_for : str
        Whose time the acknowledgement takes.
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
    """All schemes side by side, sized for so many failures (0 to 2)."""
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
