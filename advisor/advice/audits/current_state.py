"""The state of a cluster when it was described: what is missing, and what the next failure does.

Elections are those of `advisor.protocol.rules.controller`. `state_lines` says it in words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from advisor.advice.findings.checks import missing_words
from advisor.advice.migration.tools import Tools, tools_of
from advisor.advice.phrases import first_of, listed
from advisor.advice.situation import Situation
from advisor.cluster import Partition, Topic
from advisor.cluster.broker_presence import Presence
from advisor.protocol.rules.config import Config, effective_min_isr
from advisor.protocol.rules.controller import Policy, broker_gone
from advisor.protocol.rules.isr import refusal_before_append
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration

_REMEMBERED = 65_536


@dataclass(frozen=True)
class NextFailure:
    """Effect of the crash of one more broker, apart from present problems.

    unclean: partitions that would get a leader which may lack acknowledged records.
    refusing: other partitions that would begin to refuse acks=all.
    last_copies: partitions with min ISR 1 that have acknowledged records on this broker only: they
        go with its disk.
    """

    broker: int
    unclean: int = 0
    offline: int = 0
    refusing: int = 0
    last_copies: int = 0

    @property
    def harm(self) -> tuple[int, int, int, int]:
        """Larger is worse: records, then reads and writes, then writes."""
        return (self.unclean, self.offline, self.refusing, self.last_copies)


@dataclass(frozen=True)
class CurrentState:
    """Partitions that are not fully in sync, and the brokers that they lack.

    Partitions are named ``topic-number``. A partition may be in several of the lists.

    tools: with the addresses of a running cluster, not the variables that a plan's scripts set.
    out_of_sync: partitions that have a leader, and a replica that is out of sync.
    under_min_isr: partitions that refuse acks=all now.
    at_min_isr: partitions with a replica out of sync that refuse acks=all after one more failure.
    not_elected: brokers that are up and may lead a partition that has no leader.
    start_first: the broker whose return helps most: it brings back partitions that are offline,
        else writes, else in-sync replicas.
    worst_next: the broker whose crash would do most harm now; None if none would do any, or all is
        in sync.
    half_done: topics whose partitions differ in their number of replicas, though none is moved now.
    sole: whether every partition without a leader has a single replica: no other can be elected.
    """

    tools: Tools
    mode: str
    partitions: int
    presence: Presence = field(default_factory=Presence)
    out_of_sync: tuple[str, ...] = ()
    offline: tuple[str, ...] = ()
    under_min_isr: tuple[str, ...] = ()
    at_min_isr: tuple[str, ...] = ()
    one_left: tuple[str, ...] = ()
    not_elected: tuple[int, ...] = ()
    start_first: int | None = None
    worst_next: NextFailure | None = None
    half_done: tuple[str, ...] = ()
    sole: bool = False

    @property
    def missing(self) -> tuple[int, ...]:
        """Brokers with replicas that are in no ISR, or that the cluster reports as down."""
        return self.presence.missing

    @property
    def in_sync(self) -> bool:
        """Whether every replica of every partition is in sync."""
        return not (self.offline or self.out_of_sync or self.missing)

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON data."""
        worst = self.worst_next
        return {
            "in_sync": self.in_sync,
            "partitions": self.partitions,
            "brokers_missing": list(self.missing),
            "brokers_down": list(self.presence.down),
            "brokers_with_failed_directories": list(self.presence.failed_directories),
            "out_of_sync": list(self.out_of_sync),
            "offline": list(self.offline),
            "under_min_isr": list(self.under_min_isr),
            "at_min_isr": list(self.at_min_isr),
            "one_in_sync_replica_left": list(self.one_left),
            "start_first": self.start_first,
            "worst_next_failure": None if worst is None else vars(worst),
        }


class _Described(NamedTuple):
    """A partition with the settings that decide its elections."""

    topic: str
    partition: Partition
    policy: Policy

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition.index}"

    @property
    def out_of_sync(self) -> tuple[int, ...]:
        return tuple(b for b in self.partition.held if b not in self.partition.isr)


def current_state(situation: Situation) -> CurrentState:
    """Return the state of a cluster when it was described; without topics nothing is wrong."""
    cluster, observed = situation.cluster, situation.cluster.observed
    partitions = sum(len(topic.partitions) for topic in cluster.elected)
    half_done = tuple(topic.name for topic in cluster.topics if _is_half_done(topic))
    tools = tools_of(cluster, situation.version)
    if observed is not None and observed.bootstrap_servers:
        tools = replace(tools, by_hand=True)
    state = CurrentState(tools, situation.mode, partitions, half_done=half_done)
    reported = observed is not None and observed.down
    if not reported and all(p.healthy for t in cluster.elected for p in t.partitions):
        return state
    described = [
        row for topic in cluster.elected for row in _described(topic, situation.config_of(topic))
    ]
    broken = [d for d in described if not d.partition.healthy]
    up = situation.presence.in_sync
    offline = [d for d in described if d.partition.leader is None]
    led = [d for d in broken if d.partition.leader is not None]
    sizes = [(d, len(d.partition.isr), d.policy.min_isr) for d in led]
    under = [d for d, size, min_isr in sizes if size < min_isr]
    return replace(
        state,
        presence=situation.presence,
        out_of_sync=_names(led),
        offline=_names(offline),
        under_min_isr=_names(under),
        at_min_isr=_names([d for d, size, min_isr in sizes if size == min_isr]),
        one_left=_names([d for d, size, _ in sizes if size == 1]),
        not_elected=tuple(sorted({b for d in offline for b in _electable(d.partition)} & up)),
        start_first=_start_first(offline, under, led, up),
        worst_next=_worst_next(described, up),
        sole=bool(offline) and all(len(d.partition.held) == 1 for d in offline),
    )


def _is_half_done(topic: Topic) -> bool:
    """Whether a reassignment ended with some partitions on more replicas than others."""
    differ = len(topic.by_replication_factor) > 1
    return differ and not any(partition.reassigning for partition in topic.partitions)


def _described(topic: Topic, config: Config) -> Iterator[_Described]:
    policies = {}
    for partition in topic.partitions:
        factor = partition.replication_factor
        if factor not in policies:
            min_isr = effective_min_isr(config.min_insync_replicas or 1, factor, config.rules)
            unclean = bool(config.unclean_leader_election_enable)
            policies[factor] = Policy(min_isr, unclean, config.rules)
        yield _Described(topic.name, partition, policies[factor])


def _names(partitions: list[_Described]) -> tuple[str, ...]:
    return tuple(d.name for d in partitions)


def _electable(partition: Partition) -> tuple[int, ...]:
    """Replicas that lead a partition without a leader as soon as they are up."""
    clean = partition.isr or partition.elr or ()
    return clean or partition.last_known_elr or ()


def _start_first(
    offline: list[_Described], under: list[_Described], led: list[_Described], up: frozenset[int]
) -> int | None:
    """The broker that is not up and helps the most partitions of the worst kind there is."""
    helps = Counter(b for d in offline for b in _electable(d.partition) if b not in up)
    for partitions in (under, led):
        if not helps:
            helps = Counter(b for d in partitions for b in d.out_of_sync)
    # Of equal ones, one that is down before one that is behind, then the lowest id.
    return min(helps, key=lambda b: (-helps[b], b in up, b), default=None)


def _worst_next(all_described: list[_Described], up: frozenset[int]) -> NextFailure | None:
    failures = {broker: Counter[str]() for broker in up}
    for described in all_described:
        partition = described.partition
        if partition.leader is None:
            continue
        if len(partition.isr) > max(described.policy.min_isr, 1) and up.issuperset(partition.isr):
            # Another in-sync replica leads, and enough of them are left.
            continue
        place = {b: i for i, b in enumerate(_brokers_of(partition))}
        record = _record(partition, place)
        active = frozenset(i for b, i in place.items() if b in up)
        # A leader stays in the ISR; followers outside it change nothing when they fail.
        for broker in up.intersection(partition.isr):
            lost = place[broker]
            failures[broker].update(_effect(record, lost, active - {lost}, described.policy))
    worst = max(
        (NextFailure(broker, **counts) for broker, counts in failures.items()),
        key=lambda failure: (failure.harm, -failure.broker),
        default=None,
    )
    return worst if worst is not None and any(worst.harm) else None


def _brokers_of(partition: Partition) -> tuple[int, ...]:
    """Return the replicas in order, then a last known leader outside them."""
    return tuple(dict.fromkeys((*partition.replicas, *(partition.last_known_elr or ()))))


def _record(partition: Partition, place: dict[int, int]) -> Registration:
    """The controller's record with places in the list of replicas instead of ids."""

    def places(brokers: tuple[int, ...] | None) -> tuple[int, ...]:
        return tuple(place[b] for b in brokers or () if b in place)

    leader = partition.leader
    return Registration(
        replicas=places(partition.replicas),
        isr=places(partition.isr),
        leader=NO_LEADER if leader is None else place[leader],
        elr=places(partition.elr),
        last_known_elr=places(partition.last_known_elr),
        adding=places(partition.adding),
        removing=places(partition.removing),
    )


@lru_cache(maxsize=_REMEMBERED)
def _effect(
    record: Registration, broker: int, active: frozenset[int], policy: Policy
) -> tuple[str, ...]:
    """Fields of `NextFailure` that count a partition if a broker crashes."""
    registration = broker_gone(record, broker, active, policy)
    effects = []
    if registration.leader == NO_LEADER:
        effects.append("offline")
    elif registration.leader not in (*record.isr, *record.elr):
        effects.append("unclean")
    elif _refuses(registration, policy) and not _refuses(record, policy):
        effects.append("refusing")
    if record.isr == (broker,) and not record.elr and policy.min_isr == 1:
        effects.append("last_copies")
    return tuple(effects)


def _refuses(record: Registration, policy: Policy) -> bool:
    return refusal_before_append("all", len(record.isr), policy.min_isr) is not None


def state_lines(state: CurrentState, brief: bool = False) -> tuple[str, ...]:
    """Return the state in up to four lines: now, next, first, half done; none if all is well.

    In brief without what the next failure would do, and without what the verdict's text names.
    """
    lines = []
    if not state.in_sync:
        all_offline = len(state.offline) == state.partitions
        worst = "" if brief or all_offline else _next(state.worst_next)
        lines = [_now(state, brief), worst, _first(state)]
    if state.half_done:
        lines.append(
            f"Half done: partitions of {first_of(state.half_done)} differ in their number of "
            "replicas; finish or undo the reassignment."
        )
    return tuple(line for line in lines if line)


def _now(state: CurrentState, brief: bool) -> str:
    if brief and state.missing and (state.offline or state.under_min_isr or state.one_left):
        cause_is_named = state.missing == (state.start_first,)
        return "" if cause_is_named else f"Now: {_missing(state).removesuffix('; ')}."
    wrong = []
    if state.offline:
        is_single = len(state.offline) == 1
        wrong.append(f"{len(state.offline):,} {'is' if is_single else 'are'} offline")
    if state.under_min_isr:
        refuse = "refuses" if len(state.under_min_isr) == 1 else "refuse"
        wrong.append(f"{len(state.under_min_isr):,} {refuse} acks=all (below min ISR)")
    if state.one_left:
        have = "has" if len(state.one_left) == 1 else "have"
        wrong.append(f"{len(state.one_left):,} {have} one in-sync replica left")
    at_min = len(set(state.at_min_isr) - set(state.one_left))
    if at_min:
        wrong.append(f"{at_min:,} will refuse acks=all after one more failure (at min ISR)")
    if state.out_of_sync and not wrong:
        have = "has" if len(state.out_of_sync) == 1 else "have"
        wrong.append(f"{len(state.out_of_sync):,} {have} replicas out of sync")
    if not wrong:
        wrong.append("all have every replica in sync")
    return f"Now: {_missing(state)}of {_partitions(state.partitions)} {listed(wrong)}."


def _missing(state: CurrentState) -> str:
    failed = state.presence.failed_directories
    words = missing_words(state.presence) if state.missing else ["no broker is missing"]
    if failed:
        names = first_of([str(broker) for broker in failed])
        running = f"brokers {names} run" if len(failed) > 1 else f"broker {names} runs"
        words.append(f"{running}, but not all of its log directories work")
    return "".join(f"{text}; " for text in words)


def _partitions(number: int) -> str:
    return f"{number:,} partition{'' if number == 1 else 's'}"


def _next(worst: NextFailure | None) -> str:
    if worst is None:
        return "Next: if any one more broker crashes, no further partition stops."
    harm = []
    if worst.unclean:
        harm.append(f"{_partitions(worst.unclean)} may lose acknowledged records")
    if worst.offline:
        goes = "goes" if worst.offline == 1 else "go"
        harm.append(f"{_partitions(worst.offline)} {goes} offline")
    if worst.refusing:
        refuses = "refuses" if worst.refusing == 1 else "refuse"
        refusing = f"{worst.refusing:,} more" if harm else _partitions(worst.refusing)
        harm.append(f"{refusing} {refuses} acks=all")
    text = f"Next: the worst broker to lose now is {worst.broker}: {listed(harm)}"
    if worst.last_copies:
        partitions = _partitions(worst.last_copies)
        text += f", and no other disk has the newest acknowledged records of {partitions}"
    return f"{text}."


def _first(state: CurrentState) -> str:
    tools = state.tools
    if state.not_elected:
        names = first_of([str(broker) for broker in state.not_elected])
        brokers = f"brokers {names} were" if len(state.not_elected) > 1 else f"broker {names} was"
        return (
            f"First: find out why {brokers} not elected, though up and allowed to lead. Often it "
            "is a failed log directory, which the broker's own log names. If no partition gets a "
            "leader, look at the controllers. "
            f"Check: {tools.controller_status(state.mode).text}"
        )
    broker = state.start_first
    if broker is None:
        return ""
    task = f"find out why broker {broker} is behind"
    if broker in state.presence.down:
        task = f"bring back broker {broker}"
    elif broker in state.presence.failed_directories:
        task = f"repair the failed log directory of broker {broker}"
    elif broker in state.presence.unknown and state.presence.part:
        task = f"see whether broker {broker} runs, and why it is behind"
    elif broker in (*state.presence.unknown, *state.presence.offline):
        task = f"bring back broker {broker} (if it is up, see its log)"
    if state.offline:
        warning = "elect no other replica unless its disk is lost"
        if state.sole:
            warning = "there is no other replica to elect: if its disk is lost, so are the records"
        return (
            f"First: {task}, which offline partitions wait for; {warning}. "
            f"Check: {tools.unhealthy('unavailable').text}"
        )
    if state.under_min_isr:
        return (
            f"First: {task}; leave min.insync.replicas as it is. "
            f"Check: {tools.unhealthy('under-min-isr').text}"
        )
    return (
        f"First: {task}; restart no other broker until this prints {tools.nothing}: "
        f"{tools.unhealthy('under-replicated').text}"
    )
