"""What changed between Kafka versions: the defaults and the replication rules, in one place.

Facts were read in the ``ConfigDef``s and sources of apache/kafka at the tags 0.8.0 to 4.3.1; the
table names the KIP or ticket of each change. 4.4.0 came without sources: its class files were
compared with those of 4.3.1 (controller, placement, ``Partition``, fetcher, epoch cache, producer)
and its controller driven through the same walks. After 4.2 one rule changes, the end of a
reassignment (4.3); 4.4 changes none, and neither changes a default.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

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


def parse_version(text: str) -> Version:
    """Read a Kafka version such as ``"4.4"``, ``"3.9.1"`` or ``"0.8.2"``.

    Raises
    ------
    ConfigError
        If the text is no version, or older than 0.8.0, where replication began.
    """
    text = text if isinstance(text, str) else shown(text)
    match = re.fullmatch(r"\s*v?(\d+)\.(\d+)(?:\.(\d+))?(?:\.(\d+))?[\w.-]*\s*", text)
    if match is None:
        raise ConfigError(
            f"kafka_version={shown(text)} is no Kafka version; write it like '3.9' or '4.4'"
        )
    version = tuple(int(part) for part in match.groups(default="0"))
    if version < OLDEST:
        raise ConfigError(f"kafka_version={shown(text)} has no replication; it began with 0.8.0")
    return version


def default(option: str, kafka_version: str) -> object:
    """Kafka's own default of an option at a version; None where the option does not exist."""
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
    """Every difference between versions that replication depends on.

    Attributes
    ----------
    mode : {"kraft", "zookeeper"}
        Which controller decides.
    eligible_leader_replicas : bool
        KIP-966 is on (KRaft, 4.0 and newer).
    unclean_only : bool
        0.8.0 and 0.8.1 knew no clean-only election: any live replica may lead.
    elect_in_isr_order : bool
        0.8.0 took the first live member of the ISR, not of the assignment.
    min_isr_supported : bool
        ``min.insync.replicas`` exists (0.8.2).
    min_isr_capped : bool
        The effective value is min(min.insync.replicas, replication factor) (KAFKA-15583, 3.7).
    strict_min_isr : bool
        The high watermark stands still while the ISR is below min ISR (KAFKA-15583, 3.7).
    last_known_leader_must_be_active : bool
        KAFKA-19522 (4.1).
    epoch_bump_on_isr_shrink : bool
        The controller raises the leader epoch when the ISR shrinks (ZooKeeper; KRaft before
        metadata version 3.6-IV0, KAFKA-15021).
    leader_recovery_state : bool
        KIP-704 (3.2).
    lag_max_messages : bool
        ``replica.lag.max.messages`` exists (before 0.9, KAFKA-1546).
    join_needs_epoch_start : bool
        A follower joins the ISR only at or past the leader's epoch start (KAFKA-7128, 2.1).
    maximal_isr : bool
        The high watermark waits for replicas whose ISR change is still pending (KIP-497, 2.7).
    join_refuses_fenced : bool
        KIP-841 (3.3, KRaft).
    broker_epoch_in_alter_partition : bool
        KIP-903 (3.5).
    truncation : {"high_watermark", "epoch", "epoch_divergence"}
        How a follower truncates: to its high watermark (before 0.11), by one epoch answer
        (KIP-101), to the largest common epoch (KIP-279, 2.0).
    truncate_on_fetch : bool
        The divergence comes with the fetch answer (KIP-595 style fetch, 2.7).
    fence_fetch_by_epoch : bool
        KIP-320 (2.1).
    epoch_at_become_leader : bool
        A leader writes its epoch's start at once, not with its first record (KAFKA-7415, 2.1).
    reassignment_waits_for : {"added", "target", "added_unless_fewer"}
        Who must be in the ISR before the old replicas go: those that are added (before 3.8), the
        whole target (KAFKA-15665, 3.8), or those that are added and, where the target is smaller
        than what it replaces, the whole target (KAFKA-19975, 4.3).
    high_watermark_waits_for_caught_up : bool
        The high watermark also waits for caught-up followers outside the ISR (KAFKA-4485, 0.10.2).
    high_watermark_ignores_dead : bool
        ... unless the broker is fenced or dead (KIP-841, 3.3).
    truncate_on_every_epoch : bool
        A follower also truncates when only the epoch is new, not the leader (KAFKA-7164, 2.0.1).
    registration_fences : bool
        A registration is handled as if the broker had just been fenced (KRaft, 4.0).
    sweeps_for_unclean_election : bool
        Leaderless partitions are looked at every ``unclean.leader.election.interval.ms`` (KRaft,
        3.9).
    isr_by_bucket : bool
        A leader proposes an ISR in the order of a hash set, not of joining (4.2).
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
        # A few fields tell most versions apart; to hash all takes longer than what is looked up.
        few = (self.mode, self.eligible_leader_replicas, self.strict_min_isr, self.isr_by_bucket)
        return hash(few)


@cache
def rules_for(
    kafka_version: str, mode: str | None = None, eligible_leader_replicas: bool | None = None
) -> Rules:
    """The rules of one Kafka version under one controller.

    Raises
    ------
    ConfigError
        If that version has no such controller, or no eligible leader replicas.
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
        raise ConfigError(f"mode={mode!r} is no controller; write 'kraft' or 'zookeeper'")
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
