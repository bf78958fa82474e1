"""Acknowledgement and election rules of four replication schemes, Kafka's ISR among them.

Each scheme is two rules: which replicas must have a record before it is acknowledged, and which
replica may lead after a crash. All results come from enumerating all cases.

- synchronous: all live replicas have the record; any of them may lead.
- asynchronous: the leader has it; the replica with the longest remaining log leads.
- majority: f+1 of 2f+1 replicas have it; the longest log among any f+1 responding ones leads.
- isr: all in-sync replicas have it, at least min.insync.replicas; an in-sync replica leads.

A crash is permanent: records held only by crashed replicas are gone. Sources: Kafka's
documentation, "Replicated Logs: Quorums, ISRs, and State Machines"; for the ISR
``advisor.protocol.rules.election``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
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

_RULES = rules_for("3.9", "zookeeper")
_BEFORE = append(EMPTY, [Run(0, 0, 1)], with_epochs=True)
_RECORD = (1, 2)
_AFTER = append(_BEFORE, [Run(0, 1, 1)], with_epochs=True)

Replicas = frozenset[int]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A replication scheme and its number of replicas.

    name (one of "synchronous", "asynchronous", "majority", "isr").
    replicas: number of replicas, 1 to ``MAX_REPLICAS``; replica 0 is the leader.
    unclean: unclean.leader.election.enable; for ``"isr"`` only.
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
    """Worst case of a crash for an acknowledged record and its partition.

    lost: the record can never be read again.
    unreadable: no replica may lead.
    """

    lost: bool
    unreadable: bool
    unwritable: bool


def _subsets(items: Iterable[int], least: int = 0) -> Iterator[Replicas]:
    pool = sorted(items)
    sizes = range(least, len(pool) + 1)
    return map(frozenset, chain.from_iterable(combinations(pool, size) for size in sizes))


def members_at(scheme: Scheme, missing: int) -> Iterator[Replicas]:
    """Sets of in-sync replicas with ``missing`` followers down or lagging.

    Empty if the scheme does not acknowledge records in that state.
    """
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

    crashed: replicas that crash together; replica 0 is the leader.
    missing: followers not in sync when the record was acknowledged; the worst choice of them
        counts.
    Raises InputError if no record is acknowledged with this number of followers missing.

    The leader and the only other in-sync replica crash:

    >>> after_crash(Scheme("isr", 3, min_isr=2), {0, 1}, missing=1)
    CrashOutcome(lost=True, unreadable=True, unwritable=True)
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


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Numbers of crashes tolerated, for any choice of the crashed replicas."""

    without_loss: int
    while_readable: int
    while_writable: int


def tolerance(scheme: Scheme, missing: int = 0) -> Tolerance:
    """Largest number of crashes without loss, while readable, and while writable."""
    outcomes = {crashed: after_crash(scheme, crashed, missing) for crashed in crash_sets(scheme)}

    def tolerated(effect: str) -> int:
        sizes = (len(crashed) for crashed, outcome in outcomes.items() if getattr(outcome, effect))
        return min(sizes, default=scheme.replicas + 1) - 1

    return Tolerance(tolerated("lost"), tolerated("unreadable"), tolerated("unwritable"))
