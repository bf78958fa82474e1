"""Defaults and replication rules of every Kafka version, in one place.

Read in the ``ConfigDef``s and sources of apache/kafka at the tags 0.8.0 to 4.3.1; the KIP or ticket
of each change is named. 4.4.0 was released without sources: its class files were compared with
those of 4.3.1 (controller, placement, ``Partition``, fetcher, epoch cache, producer) and its
controller was checked on the same recorded walks. After 4.2 one rule changes, the end of a
reassignment (4.3); 4.4 changes no rule, and neither changes a default.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from advisor.errors import ConfigError, shown

Version = tuple[int, ...]

MAX_INT = 2**31 - 1

OLDEST: Version = (0, 8, 0)
NEWEST_KNOWN = "4.4"

# option -> ((first version, default), ...), oldest first; None: the option does not exist.
DEFAULTS: dict[str, tuple[tuple[str, object], ...]] = {
    "acks": (("0.8.0", 1), ("3.0.0", "all")),
    "retries": (("0.8.0", 0), ("2.1.0", MAX_INT)),
    "delivery_timeout_ms": (("0.8.0", None), ("2.1.0", 120_000)),
    "request_timeout_ms": (("0.8.0", 30_000),),
    "retry_backoff_ms": (("0.8.0", 100),),
    "retry_backoff_max_ms": (("0.8.0", None), ("3.7.0", 1_000)),
    "linger_ms": (("0.8.0", 0), ("4.0.0", 5)),
    "max_in_flight_requests_per_connection": (("0.8.0", 5),),
    # 3.0.0 and 3.1.0 documented true but left it off unless set (KAFKA-13598).
    "enable_idempotence": (
        ("0.8.0", False),
        ("3.0.1", True),
        ("3.1.0", False),
        ("3.1.1", True),
    ),
    "replication_factor": (("0.8.0", 1),),
    "min_insync_replicas": (("0.8.0", 1),),
    "unclean_leader_election_enable": (("0.8.0", True), ("0.11.0", False)),
    "replica_lag_time_max_ms": (("0.8.0", 10_000), ("2.5.0", 30_000)),
    "replica_lag_max_messages": (("0.8.0", 4_000), ("0.9.0", None)),
    "zookeeper_session_timeout_ms": (("0.8.0", 6_000), ("2.5.0", 18_000), ("4.0.0", None)),
    "broker_session_timeout_ms": (("0.8.0", None), ("2.8.0", 9_000)),
    "eligible_leader_replicas": (("0.8.0", False), ("4.1.0", True)),
    "mode": (("0.8.0", "zookeeper"), ("3.3.0", "kraft")),
}


_VERSION = re.compile(
    r"v?([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?(?:\.([0-9]{1,4}))?(?:[A-Za-z.-][\w.-]{0,40})?",
    re.ASCII,
)


def parse_version(text: str) -> Version:
    """Parse a Kafka version such as ``"3.9"``, from 0.8.0, which introduced replication."""
    return _parsed(text if isinstance(text, str) else shown(text))


@lru_cache(maxsize=256)
def _parsed(text: str) -> Version:
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        raise ConfigError(
            f"kafka_version={shown(text)} is not a Kafka version; write it like '{NEWEST_KNOWN}'"
        )
    version = tuple(int(number) for number in match.groups(default="0"))
    if version < OLDEST:
        raise ConfigError(f"kafka_version={shown(text)} has no replication; it began with 0.8.0")
    return version


def default(option: str, kafka_version: str) -> object:
    """Return Kafka's default of an option at a version; None if the option does not exist."""
    return _default_at(option, parse_version(kafka_version))


@cache
def _default_at(option: str, version: Version) -> object:
    value: object = None
    for since, candidate in DEFAULTS[option]:
        if version >= parse_version(since):
            value = candidate
    return value


@dataclass(frozen=True)
class Rules:
    """The replication rules that differ between versions and controllers.

    mode (one of "kraft", "zookeeper").
    eligible_leader_replicas: KIP-966 is on (KRaft, 4.0 and newer).
    unclean_only: elections are always unclean: any live replica may lead (0.8.0 and 0.8.1).
    elect_in_isr_order: the first live ISR member leads, in ISR order instead of assignment order
        (0.8.0).
    min_isr_supported: ``min.insync.replicas`` exists (0.8.2).
    min_isr_capped: the effective value is min(min.insync.replicas, replication factor)
        (KAFKA-15583, 3.7).
    strict_min_isr: the high watermark does not advance while the ISR is below min ISR (KAFKA-15583,
        3.7).
    last_known_leader_must_be_active: the last known leader is elected only if active (KAFKA-19522,
        4.1).
    epoch_bump_on_isr_shrink: the controller raises the leader epoch when the ISR shrinks
        (ZooKeeper; KRaft before metadata version 3.6-IV0, KAFKA-15021).
    leader_recovery_state: an unclean leader is marked as recovering (KIP-704, 3.2).
    lag_max_messages: ``replica.lag.max.messages`` exists (before 0.9, KAFKA-1546).
    join_needs_epoch_start: a follower joins the ISR only at or past the leader's epoch start
        (KAFKA-7128, 2.1).
    maximal_isr: the high watermark waits for replicas whose ISR change is pending (KIP-497, 2.7).
    join_refuses_fenced: fenced or stopping brokers cannot join the ISR (KIP-841, KRaft, 3.3).
    broker_epoch_in_alter_partition: ISR proposals carry broker epochs (KIP-903, 3.5).
    truncation (one of "high_watermark", "epoch", "epoch_divergence"): how a follower truncates: to
        its high watermark (before 0.11), by one epoch answer (KIP-101), to the largest common epoch
        (KIP-279, 2.0).
    truncate_on_fetch: the fetch response carries the diverging epoch (as in KIP-595, 2.7).
    fence_fetch_by_epoch: a leader rejects fetches of another leader epoch (KIP-320, 2.1).
    epoch_at_become_leader: a leader caches its epoch's start at once, not with its first record
        (KAFKA-7415, 2.1).
    reassignment_waits_for (one of "added", "target", "added_unless_fewer"): replicas that must be
        in the ISR before the old ones are removed: the added ones (before 3.8), the whole target
        (KAFKA-15665, 3.8), or the added ones and, if more are removed than added, the whole target
        (KAFKA-19975, 4.3).
    high_watermark_waits_for_caught_up: the high watermark also waits for caught-up followers
        outside the ISR (KAFKA-4485, 0.10.2).
    high_watermark_ignores_dead: it does not wait for such a follower if its broker is fenced or
        stopping (KIP-841, 3.3).
    truncate_on_every_epoch: a follower also truncates when only the epoch changes, not the leader
        (KAFKA-7164, 2.0.1).
    registration_fences: a registration is handled as if the broker had just been fenced (KRaft,
        4.0).
    sweeps_for_unclean_election: the controller checks leaderless partitions every
        ``unclean.leader.election.interval.ms`` (KRaft, 3.9).
    isr_by_bucket: a leader proposes an ISR in hash-set order instead of joining order (4.2).
    """

    mode: str
    eligible_leader_replicas: bool
    unclean_only: bool
    elect_in_isr_order: bool
    min_isr_supported: bool
    min_isr_capped: bool
    strict_min_isr: bool
    last_known_leader_must_be_active: bool
    epoch_bump_on_isr_shrink: bool
    leader_recovery_state: bool
    lag_max_messages: bool
    join_needs_epoch_start: bool
    maximal_isr: bool
    join_refuses_fenced: bool
    broker_epoch_in_alter_partition: bool
    truncation: str
    truncate_on_fetch: bool
    fence_fetch_by_epoch: bool
    epoch_at_become_leader: bool
    reassignment_waits_for: str
    high_watermark_waits_for_caught_up: bool
    high_watermark_ignores_dead: bool
    truncate_on_every_epoch: bool
    registration_fences: bool
    sweeps_for_unclean_election: bool
    isr_by_bucket: bool

    def __hash__(self) -> int:
        # A few fields distinguish most versions; hashing all costs more than the lookup.
        few = (self.mode, self.eligible_leader_replicas, self.strict_min_isr, self.isr_by_bucket)
        return hash(few)


@cache
def rules_for(
    kafka_version: str, mode: str | None = None, eligible_leader_replicas: bool | None = None
) -> Rules:
    """Return the replication rules of a Kafka version; mode and ELR by default as in a new cluster.

    The same object for the same arguments.
    """
    version = parse_version(kafka_version)
    chosen = mode if mode is not None else str(_default_at("mode", version))
    _check_mode(kafka_version, version, chosen)
    elr = eligible_leader_replicas
    if elr is None:
        elr = chosen == "kraft" and bool(_default_at("eligible_leader_replicas", version))
    if elr and (chosen != "kraft" or version < (4, 0)):
        raise ConfigError(
            f"eligible_leader_replicas needs KRaft and Kafka 4.0 or newer, not {kafka_version}"
        )
    zookeeper = chosen == "zookeeper"
    return Rules(
        mode=chosen,
        eligible_leader_replicas=elr,
        unclean_only=version < (0, 8, 2),
        elect_in_isr_order=version < (0, 8, 1),
        min_isr_supported=version >= (0, 8, 2),
        min_isr_capped=version >= (3, 7),
        strict_min_isr=version >= (3, 7),
        last_known_leader_must_be_active=version >= (4, 1),
        epoch_bump_on_isr_shrink=zookeeper or version < (3, 6),
        leader_recovery_state=version >= (3, 2),
        lag_max_messages=version < (0, 9),
        join_needs_epoch_start=version >= (2, 1),
        maximal_isr=version >= (2, 7),
        join_refuses_fenced=not zookeeper and version >= (3, 3),
        broker_epoch_in_alter_partition=version >= (3, 5),
        truncation=_truncation(version),
        truncate_on_fetch=version >= (2, 7),
        fence_fetch_by_epoch=version >= (2, 1),
        epoch_at_become_leader=version >= (2, 1),
        reassignment_waits_for=_reassignment(version),
        high_watermark_waits_for_caught_up=version >= (0, 10, 2),
        high_watermark_ignores_dead=version >= (3, 3),
        truncate_on_every_epoch=version >= (2, 0, 1),
        registration_fences=not zookeeper and version >= (4, 0),
        sweeps_for_unclean_election=not zookeeper and version >= (3, 9),
        isr_by_bucket=version >= (4, 2),
    )


def _check_mode(kafka_version: str, version: Version, mode: str) -> None:
    if mode not in ("kraft", "zookeeper"):
        raise ConfigError(f"mode={mode!r} is not a controller mode; write 'kraft' or 'zookeeper'")
    if mode == "zookeeper" and version >= (4, 0):
        raise ConfigError(f"Kafka {kafka_version} has no ZooKeeper mode; it ended with 3.9")
    if mode == "kraft" and version < (2, 8):
        raise ConfigError(f"Kafka {kafka_version} has no KRaft mode; it began with 2.8")


def _truncation(version: Version) -> str:
    if version < (0, 11):
        return "high_watermark"
    return "epoch" if version < (2, 0) else "epoch_divergence"


def _reassignment(version: Version) -> str:
    if version < (3, 8):
        return "added"
    return "target" if version < (4, 3) else "added_unless_fewer"
