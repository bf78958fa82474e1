"""Acknowledgement and election rules of four replication schemes, Kafka's ISR among them.

- synchronous: all live replicas have the record; any of them may lead.
- asynchronous: the leader has it; the replica with the longest remaining log leads.
- majority: f+1 of 2f+1 replicas have it; the longest log among any f+1 responding ones leads.
- isr: all in-sync replicas have it, at least min.insync.replicas; an in-sync replica leads.

A crash is permanent: records held only by crashed replicas are gone. All cases are tried. Sources:
Kafka's documentation, "Replicated Logs: Quorums, ISRs, and State Machines"; for the ISR
``advisor.protocol.rules.election``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, combinations

from advisor.errors import InputError
from advisor.protocol.log import leader_epoch_cache as epoch_cache
from advisor.protocol.log.replica_log import EMPTY, Log, Run, append, holds
from advisor.protocol.rules.election import zookeeper_offline
from advisor.protocol.rules.partition_registration import Registration
from advisor.protocol.rules.versions import rules_for

SYNCHRONOUS = "synchronous"
ASYNCHRONOUS = "asynchronous"
MAJORITY = "majority"
ISR = "isr"

NAMES = (SYNCHRONOUS, ASYNCHRONOUS, MAJORITY, ISR)

LEADER = 0
MAX_REPLICAS = 7
MAX_FAILURES = 2

_RULES = rules_for("3.9", "zookeeper")
_BEFORE = append(EMPTY, [Run(0, 0, 1)], with_epochs=True)
_RECORD = (1, 2)
_AFTER = append(_BEFORE, [Run(0, 1, 1)], with_epochs=True)

Replicas = frozenset[int]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A replication scheme and its number of replicas, of which replica 0 leads.

    min_isr, unclean: as Kafka's settings; for "isr" only.
    """

    name: str
    replicas: int
    min_isr: int = 1
    unclean: bool = False

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InputError(f"scheme {self.name!r} is not known; write one of {', '.join(NAMES)}")
        if not 1 <= self.replicas <= MAX_REPLICAS:
            raise InputError(
                f"{self.replicas} replicas: every case is tried, so 1 to {MAX_REPLICAS} only"
            )
        if not 1 <= self.min_isr <= self.replicas:
            raise InputError(f"min_isr={self.min_isr} must lie between 1 and {self.replicas}")

    @property
    def quorum(self) -> int:
        """Size of a majority of the replicas."""
        return self.replicas // 2 + 1


@dataclass(frozen=True, slots=True)
class CrashOutcome:
    """Worst case of a crash for an acknowledged record and its partition."""

    lost: bool
    unreadable: bool
    unwritable: bool


def _subsets(items: Iterable[int], least: int = 0) -> Iterator[Replicas]:
    pool = sorted(items)
    sizes = range(least, len(pool) + 1)
    return map(frozenset, chain.from_iterable(combinations(pool, size) for size in sizes))


def members_at(scheme: Scheme, missing: int) -> Iterator[Replicas]:
    """Sets of in-sync replicas with ``missing`` followers down, where records are acknowledged."""
    followers = range(1, scheme.replicas)
    for absent in combinations(followers, missing):
        members = frozenset(range(scheme.replicas)) - set(absent)
        if may_acknowledge(scheme, len(members)):
            yield members


def may_acknowledge(scheme: Scheme, members: int) -> bool:
    """Whether records are acknowledged with this number of replicas in sync."""
    if scheme.name == MAJORITY:
        return members >= scheme.quorum
    return members >= (scheme.min_isr if scheme.name == ISR else 1)


def holders(scheme: Scheme, members: Replicas) -> Iterator[Replicas]:
    """Every possible set of replicas that hold a record when it is acknowledged."""
    if scheme.name in (SYNCHRONOUS, ISR):
        yield members
        return
    least = scheme.quorum if scheme.name == MAJORITY else 1
    yield from (held for held in _subsets(members, least) if LEADER in held)


def leaders(
    scheme: Scheme, logs: Mapping[int, Log], members: Replicas, live: Replicas
) -> frozenset[int | None]:
    """Replicas that may become leader after a crash; None stands for no leader.

    A majority election may end with different leaders, depending on the quorum that responds.
    """
    if scheme.name == MAJORITY:
        quorums = combinations(sorted(live), scheme.quorum)
        return frozenset(_longest(logs, quorum) for quorum in quorums) or frozenset({None})
    if scheme.name == ASYNCHRONOUS:
        return frozenset({_longest(logs, live)}) if live else frozenset({None})
    registration = Registration(tuple(range(scheme.replicas)), tuple(sorted(members)), LEADER)
    elected = zookeeper_offline(registration, live, scheme.unclean, _RULES)
    return frozenset({elected[0] if elected else None})


def _longest(logs: Mapping[int, Log], among: Collection[int]) -> int:
    """Replica with the most complete log: highest last epoch, then longest, then lowest id."""

    def completeness(replica: int) -> tuple[int, int, int]:
        return epoch_cache.latest(logs[replica].epochs), logs[replica].leo, -replica

    return max(among, key=completeness)


def after_crash(scheme: Scheme, crashed: Collection[int], missing: int = 0) -> CrashOutcome:
    """Worst case of the permanent crash of these replicas.

    missing: number of followers not in sync when the record was acknowledged.
    """
    replicas = frozenset(range(scheme.replicas))
    live = replicas - set(crashed)
    outcomes = [
        _outcome(scheme, members, held, live)
        for members in members_at(scheme, missing)
        for held in holders(scheme, members)
    ]
    if not outcomes:
        raise InputError(
            f"{scheme.name} over {scheme.replicas} replicas acknowledges nothing while "
            f"{missing} followers are missing"
        )
    return CrashOutcome(
        any(outcome.lost for outcome in outcomes),
        any(outcome.unreadable for outcome in outcomes),
        any(outcome.unwritable for outcome in outcomes),
    )


def _outcome(scheme: Scheme, members: Replicas, held: Replicas, live: Replicas) -> CrashOutcome:
    logs = {r: _AFTER if r in held else _BEFORE for r in range(scheme.replicas)}
    next_leaders = leaders(scheme, logs, members, live)
    survives = any(holds(logs[replica], _RECORD) for replica in live)
    lost = not survives or any(
        leader is not None and not holds(logs[leader], _RECORD) for leader in next_leaders
    )
    unreadable = None in next_leaders
    counted = live & members if scheme.name in (SYNCHRONOUS, ISR) else live
    if scheme.unclean and scheme.name == ISR and not counted:
        counted = live
    return CrashOutcome(lost, unreadable, unreadable or not may_acknowledge(scheme, len(counted)))


def crash_sets(scheme: Scheme, most: int | None = None) -> Iterator[Replicas]:
    """Every set of replicas that may crash together, in order of size."""
    sets = _subsets(range(scheme.replicas))
    return (crashed for crashed in sets if most is None or len(crashed) <= most)


def withstands(scheme: Scheme, failures: int, missing: Iterable[int] = (0,)) -> bool:
    """Whether no crash of up to ``failures`` replicas loses a record or blocks writes.

    missing: numbers of followers absent at the acknowledgement for which no record may be lost.
    """
    crashes = list(crash_sets(scheme, failures))
    if any(after_crash(scheme, crashed).unwritable for crashed in crashes):
        return False
    return not any(
        after_crash(scheme, crashed, absent).lost for absent in missing for crashed in crashes
    )


def replicas_needed(name: str, failures: int) -> int | None:
    """Fewest replicas that lose nothing and stay writable; None if ``MAX_REPLICAS`` are not enough.

    All are in sync when the record is acknowledged, and min ISR is 1: the usual comparison, f+1
    replicas for the ISR and 2f+1 for a majority.
    """
    _check_failures(failures)
    for count in range(failures + 1, MAX_REPLICAS + 1):
        if withstands(Scheme(name, count), failures):
            return count
    return None


def replicas_needed_at_any_time(name: str, failures: int) -> int | None:
    """The same for a record acknowledged with as many followers absent as the scheme allows.

    With the best min ISR, f+1, an ISR needs 2f+1 replicas, like a majority.
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
    """Milliseconds until a record is acknowledged; infinity if it is not.

    leader_ms: time until the leader has written it.
    followers_ms: time until the leader knows that follower 1, 2, ... has it; infinity for one that
        is down.
    in_sync: the ISR; by default every replica.
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
    """

    name: str
    replicas: int | None
    copies: int | None
    replicas_at_any_time: int | None


def compare(failures: int) -> tuple[Comparison, ...]:
    """Compare all schemes, each sized for a number of failures, 0 to ``MAX_FAILURES``."""
    rows = []
    for name in NAMES:
        count = replicas_needed(name, failures)
        copies = None if count is None else copies_waited_for(Scheme(name, count))
        any_time = replicas_needed_at_any_time(name, failures)
        rows.append(Comparison(name, count, copies, any_time))
    return tuple(rows)
