"""Kafka's in-sync replicas beside the other ways to replicate a log.

Four schemes, each as two rules on the same logs: which replicas must have a record before it is
acknowledged, and who may lead after a crash. Everything else follows by trying all cases.

- synchronous: every working replica has it; any of them may lead.
- asynchronous: the leader has it; whoever is left with the longest log leads.
- majority: f+1 of 2f+1 replicas have it; the longest log among any f+1 that answer leads.
- isr: every in-sync replica has it, at least min.insync.replicas; an in-sync replica leads.

A crash is for good: what a crashed replica alone had is gone. Sources: Kafka's documentation,
"Replicated Logs: Quorums, ISRs, and State Machines"; ``advisor.protocol.rules.election`` for the ISR.
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
MOST_REPLICAS = 7

_RULES = rules_for("3.9", "zookeeper")
_BEFORE = append(EMPTY, [Run(0, 0, 1)], with_epochs=True)
_RECORD = (1, 2)
_AFTER = append(_BEFORE, [Run(0, 1, 1)], with_epochs=True)

Replicas = frozenset[int]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A way to replicate one log over so many replicas.

    Attributes
    ----------
    name : {"synchronous", "asynchronous", "majority", "isr"}
    replicas : int
        Numbered from 0; replica 0 leads.
    min_isr : int
        min.insync.replicas, of the ISR alone.
    unclean : bool
        unclean.leader.election.enable, of the ISR alone.
    """

    name: str
    replicas: int
    min_isr: int = 1
    unclean: bool = False

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise InputError(f"scheme {self.name!r} is not known; write one of {', '.join(NAMES)}")
        if not 1 <= self.replicas <= MOST_REPLICAS:
            raise InputError(
                f"{self.replicas} replicas: every case is tried, so 1 to {MOST_REPLICAS} only"
            )
        if not 1 <= self.min_isr <= self.replicas:
            raise InputError(f"min_isr={self.min_isr} must lie between 1 and {self.replicas}")

    @property
    def quorum(self) -> int:
        """A majority of the replicas."""
        return self.replicas // 2 + 1


@dataclass(frozen=True, slots=True)
class Fate:
    """What a crash can do to a record that had been acknowledged, at worst.

    Attributes
    ----------
    lost : bool
        Nobody will read the record again.
    unreadable : bool
        No replica may lead.
    unwritable : bool
        No further record would be acknowledged.
    """

    lost: bool
    unreadable: bool
    unwritable: bool


def _subsets(items: Iterable[int], least: int = 0) -> Iterator[Replicas]:
    pool = sorted(items)
    sizes = range(least, len(pool) + 1)
    return map(frozenset, chain.from_iterable(combinations(pool, size) for size in sizes))


def members_at(scheme: Scheme, missing: int) -> Iterator[Replicas]:
    """The replicas that take part when ``missing`` followers are down or lag too far behind.

    Nothing comes out where the scheme would not acknowledge a record then.
    """
    followers = range(1, scheme.replicas)
    for absent in combinations(followers, missing):
        members = frozenset(range(scheme.replicas)) - set(absent)
        if may_acknowledge(scheme, len(members)):
            yield members


def may_acknowledge(scheme: Scheme, members: int) -> bool:
    """Whether a record would be acknowledged with so many replicas taking part."""
    if scheme.name == MAJORITY:
        return members >= scheme.quorum
    return members >= (scheme.min_isr if scheme.name == ISR else 1)


def holders(scheme: Scheme, members: Replicas) -> Iterator[Replicas]:
    """Every set of replicas that may be all that have a record when it is acknowledged."""
    if scheme.name in (SYNCHRONOUS, ISR):
        yield members
        return
    least = scheme.quorum if scheme.name == MAJORITY else 1
    yield from (held for held in _subsets(members, least) if LEADER in held)


def leaders(
    scheme: Scheme, logs: Mapping[int, Log], members: Replicas, live: Replicas
) -> frozenset[int | None]:
    """Who may come to lead after a crash; None stands for nobody.

    More than one where the scheme leaves it open: a majority asks any quorum of those that live.
    """
    if scheme.name == MAJORITY:
        asked = [set(some) for some in combinations(sorted(live), scheme.quorum)]
        return frozenset(_longest(logs, some) for some in asked) or frozenset({None})
    if scheme.name == ASYNCHRONOUS:
        return frozenset({_longest(logs, live)}) if live else frozenset({None})
    registration = Registration(tuple(range(scheme.replicas)), tuple(sorted(members)), LEADER)
    elected = zookeeper_offline(registration, live, scheme.unclean, _RULES)
    return frozenset({elected[0] if elected else None})


def _longest(logs: Mapping[int, Log], among: Collection[int]) -> int:
    """The most complete log: highest last epoch, then longest, then lowest id."""

    def completeness(replica: int) -> tuple[int, int, int]:
        return epoch_cache.latest(logs[replica].epochs), logs[replica].leo, -replica

    return max(among, key=completeness)


def after_crash(scheme: Scheme, crashed: Collection[int], missing: int = 0) -> Fate:
    """The worst that the crash of these replicas can do to an acknowledged record.

    Parameters
    ----------
    scheme : Scheme
    crashed : collection of int
        Replicas that fail for good at once; replica 0 leads.
    missing : int
        Followers that did not take part when the record was acknowledged: the worst choice.

    Raises
    ------
    InputError
        If no record would be acknowledged with so many missing.
    """
    everyone = frozenset(range(scheme.replicas))
    live = everyone - set(crashed)
    fates = [
        _fate(scheme, members, held, live)
        for members in members_at(scheme, missing)
        for held in holders(scheme, members)
    ]
    if not fates:
        raise InputError(
            f"{scheme.name} over {scheme.replicas} replicas acknowledges nothing while "
            f"{missing} followers are missing"
        )
    return Fate(
        any(fate.lost for fate in fates),
        any(fate.unreadable for fate in fates),
        any(fate.unwritable for fate in fates),
    )


def _fate(scheme: Scheme, members: Replicas, held: Replicas, live: Replicas) -> Fate:
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
    return Fate(lost, unreadable, unreadable or not may_acknowledge(scheme, len(counted)))


def crash_sets(scheme: Scheme, most: int | None = None) -> Iterator[Replicas]:
    """Every set of replicas that may crash together, the small ones first."""
    sets = _subsets(range(scheme.replicas))
    return (crashed for crashed in sets if most is None or len(crashed) <= most)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How many replicas may crash, whichever they are."""

    without_loss: int
    while_readable: int
    while_writable: int


def tolerance(scheme: Scheme, missing: int = 0) -> Tolerance:
    """The largest number of crashes that never loses, never blocks reads, never blocks writes."""
    fates = {crashed: after_crash(scheme, crashed, missing) for crashed in crash_sets(scheme)}

    def most(bad: str) -> int:
        least = (len(crashed) for crashed, fate in fates.items() if getattr(fate, bad))
        return min(least, default=scheme.replicas + 1) - 1

    return Tolerance(most("lost"), most("unreadable"), most("unwritable"))
