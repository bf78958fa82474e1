"""`Situation`: a cluster, its version and controller, its settings and traffic, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from advisor.advice.goals import Goals
from advisor.advice.phrases import first_of
from advisor.cluster import Cluster, Topic
from advisor.cluster.broker_presence import Presence, presence_of
from advisor.cluster.describe_layouts import LAYOUTS, Layout
from advisor.cluster.observed import Observed
from advisor.errors import InputError, expect, shown
from advisor.formatting import as_given
from advisor.parsing import whole_number
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import NEWEST_KNOWN, OLDEST, default, parse_version
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.times.exactness import check_exact
from advisor.reliability.workload import Workload

MILLISECONDS_PER_HOUR = 3_600_000.0
# Some set retention.ms to the largest long where they mean -1.
_ENDLESS_MS = 100.0 * HOURS_PER_YEAR * MILLISECONDS_PER_HOUR
_UNLIMITED = "-1"
NEWEST_WITH_ZOOKEEPER = "3.9"
# From 3.7 on the ISR is compared with min(min.insync.replicas, replicas): `effectiveMinIsr` in
# `kafka/cluster/Partition.scala`, absent in 3.6.2 (KAFKA-15583). No feature level switches it.
NEWEST_REFUSING = "3.6"
_ASK = "say --kafka-version if it is another."


def check_arguments(
    cluster: object,
    model: object,
    load: object,
    goals: object,
    kafka_version: object,
    producer: object = None,
) -> None:
    """Check the types of the arguments of `recommend` and `audit`, and that the card is exact."""
    expect("cluster", cluster, Cluster, "a Cluster, as load_cluster returns it")
    expect("model", model, FailureModel, "a FailureModel, as load_model returns it")
    expect("load", load, Workload | None, "a Workload, or None")
    expect("goals", goals, Goals | None, "Goals, or None")
    expect("kafka_version", kafka_version, str | None, 'a text such as "4.1", or None')
    assert isinstance(model, FailureModel)
    check_exact(model)
    expect("producer", producer, Mapping | None, "settings by name, or None")
    options = {field.name for field in fields(Config) if field.init}
    for name in producer if isinstance(producer, Mapping) else ():
        if not isinstance(name, str) or name not in options:
            raise InputError(f"producer={shown(name)}: give names of options of Config")


@dataclass(frozen=True)
class Situation:
    """What `decide`, `recommend` and `audit` read of a cluster.

    version: Kafka version: stated, or the newest that fits the description.
    load: traffic of all topics in question together.
    of_each: traffic that each topic has for itself; None: they share `load`.
    controller: options of `Config` that the controller decides, as far as they are known.
    producer: options of `Config` that the producers set; else acks="all".
    stated_version: the version that the user or the cluster states; "" if it was assumed.
    notes: what was assumed, a sentence each.
    load_is_given: else nothing that counts records is said.
    """

    cluster: Cluster
    version: str
    mode: str
    controllers: Mapping[int, str | None] | None
    load: Workload
    topics: tuple[Topic, ...] = ()
    of_each: Workload | None = None
    controller: Mapping[str, Any] = field(default_factory=dict)
    producer: Mapping[str, Any] = field(default_factory=dict)
    stated_version: str = ""
    notes: tuple[str, ...] = ()
    load_is_given: bool = True

    @classmethod
    def read(
        cls,
        cluster: Cluster,
        load: Workload | None = None,
        kafka_version: str | None = None,
        producer: Mapping[str, Any] | None = None,
        topics: Sequence[str] | None = None,
        shared: bool = True,
    ) -> Situation:
        """Read a cluster.

        load: by default 1,000 records a second for each topic.
        shared: whether a given load is that of all topics together, which all but Kafka's own share
            by their partitions, or that of each.
        """
        version, version_note = version_of(cluster, kafka_version)
        selected = tuple(cluster.topics) if topics is None else tuple(map(cluster.topic, topics))
        controller = controller_of(cluster, version)
        notes = [*cluster.remarks, version_note, controller_note(cluster, version)]
        of_each = None
        load_is_given = load is not None
        if load is None:
            of_each = Workload()
            load, load_note = assumed_load(selected)
            notes.append(load_note)
        elif not shared:
            of_each = load
        if selected and "acks" not in (producer or {}):
            notes.append("Producers were assumed to use acks=all.")
        endless = [topic.name for topic in selected if kept_for_ever(topic)]
        if endless:
            notes.append(
                "Records that retention.ms keeps forever were assumed to be kept "
                f"{as_given(load.retention_hours)} hours: {first_of(endless)}."
            )
        return cls(
            cluster=cluster,
            version=version,
            mode=str(Config(kafka_version=version, **controller).mode),
            controllers=cluster.controllers,
            load=load,
            topics=selected,
            of_each=of_each,
            controller=controller,
            producer=producer or {},
            stated_version=kafka_version or cluster.kafka_version or "",
            notes=tuple(filter(None, notes)),
            load_is_given=load_is_given,
        )

    @cached_property
    def presence(self) -> Presence:
        """Which brokers are in sync somewhere, and what is known of the others."""
        return presence_of(self.cluster)

    @property
    def settings(self) -> dict[str, Any]:
        """Options of `Config` that hold for every topic: of the controller and the producers."""
        return {"acks": "all", **self.controller, **self.producer}

    def config_of(self, topic: Topic) -> Config:
        """Return a topic's settings, with those of its controller and producers."""
        return config_of(topic, self.version, self.settings)

    def load_of(self, topic: Topic) -> Workload:
        """Return a topic's traffic, its partitions and its retention."""
        if self.of_each is not None:
            return load_of(topic, self.of_each)
        sharing = sum(
            len(topic_of_load.partitions) for topic_of_load in topics_under_load(self.topics)
        )
        share = self.load.records_per_second * len(topic.partitions) / sharing
        return replace(load_of(topic, self.load), records_per_second=share)


def assumed_load(topics: Sequence[Topic]) -> tuple[Workload, str]:
    """Return the default load times the number of non-internal topics, and a note on it."""
    user_topics = [topic for topic in topics if not topic.internal]
    partitions = sum(len(topic.partitions) for topic in user_topics) or 1
    default_load, number = Workload(), len(user_topics) or 1
    rate = default_load.records_per_second * number
    load = replace(default_load, records_per_second=rate, partitions=partitions)
    if topics:
        return load, f"No load was given: {amount_of(default_load)} to each topic were assumed."
    return load, f"No load was given: {amount_of(load)} over one partition were assumed."


def usual_config(topics: Sequence[Topic], kafka_version: str) -> Config | None:
    """Return the settings of most partitions, internal topics aside; None without topics."""
    settings = _partitions_by_setting(topics)
    if not settings:
        return None
    factor, min_isr = _most_frequent(settings)
    fallback = default("min_insync_replicas", kafka_version)
    if min_isr is None and isinstance(fallback, int):
        min_isr = fallback
    return Config(
        kafka_version=kafka_version,
        replication_factor=factor,
        min_insync_replicas=min_isr,
        acks="all",
    )


def usual_setting_words(topics: Sequence[Topic]) -> str:
    """Return whose settings `usual_config` returns, in one sentence; "" without topics."""
    settings = _partitions_by_setting(topics)
    if not settings:
        return ""
    setting = _most_frequent(settings)
    partitions = settings[setting]
    names_of_setting = [t.name for t in topics if not t.internal and _setting(t) == setting]
    users = len([t for t in topics if not t.internal])
    names = f"topic{'s' if len(names_of_setting) > 1 else ''} {first_of(names_of_setting)}"
    if len(names_of_setting) == users:
        return f"The settings are those of {names}."
    return (
        f"The settings are those of {names}, the most frequent: {partitions:,} of "
        f"{settings.total():,} partitions have them."
    )


def usual_share(topics: Sequence[Topic]) -> float:
    """Return the share of partitions that have the settings of `usual_config`; 1 without topics."""
    settings = _partitions_by_setting(topics)
    return settings[_most_frequent(settings)] / settings.total() if settings else 1.0


def _most_frequent(settings: Counter[tuple[int, int | None]]) -> tuple[int, int | None]:
    """Return the most frequent setting; of those as frequent, the first with fewest replicas."""
    return max(settings, key=lambda setting: (settings[setting], -setting[0]))


def _setting(topic: Topic) -> tuple[int, int | None]:
    return (topic.replication_factor, topic.min_insync_replicas)


def _partitions_by_setting(topics: Sequence[Topic]) -> Counter[tuple[int, int | None]]:
    """Number of partitions with each replication factor and stated min ISR."""
    settings: Counter[tuple[int, int | None]] = Counter()
    for topic in topics:
        if not topic.internal:
            settings[_setting(topic)] += len(topic.partitions)
    return settings


def config_of(topic: Topic, kafka_version: str, producer: Mapping[str, Any]) -> Config:
    """Return a topic's settings, with Kafka's defaults where the description states none."""
    options: dict[str, Any] = {}
    unclean = topic.configs.get("unclean.leader.election.enable")
    if unclean is not None:
        options["unclean_leader_election_enable"] = unclean.strip().lower() == "true"
    return Config(
        kafka_version=kafka_version,
        replication_factor=topic.replication_factor,
        min_insync_replicas=topic.min_insync_replicas,
        **options,
        **producer,
    )


def load_of(topic: Topic, load: Workload) -> Workload:
    """Return the load with the topic's number of partitions and, if stated, its retention."""
    retention, hours = topic.configs.get("retention.ms", ""), load.retention_hours
    if _is_digits(retention) and not _compacted(topic) and not kept_for_ever(topic):
        hours = float(retention) / MILLISECONDS_PER_HOUR
    return replace(load, partitions=len(topic.partitions), retention_hours=hours)


def topics_under_load(topics: Sequence[Topic]) -> Sequence[Topic]:
    """Return the topics that share a load: all but Kafka's own, or these if there are no others."""
    return [topic for topic in topics if not topic.internal] or topics


def partition_bytes(
    topics: Sequence[Topic], load: Workload, measured: Mapping[str, float]
) -> dict[str, float]:
    """Return the bytes that a replica of each topic keeps, by name, with the topic's retention.

    load: of all partitions together, which share it evenly.
    measured: bytes of topics that were measured; they count instead.
    """
    bytes_per_hour = load.records_per_hour_per_partition * load.record_bytes
    bytes_by_topic = {
        topic.name: bytes_per_hour * load_of(topic, load).retention_hours for topic in topics
    }
    return {name: measured.get(name, size) for name, size in bytes_by_topic.items()}


def retained_bytes(topics: Sequence[Topic], load: Workload, measured: Mapping[str, float]) -> float:
    """Return the bytes of one copy of everything, partitions keeping what users' do on average."""
    users = [topic for topic in topics if not topic.internal]
    if not users:
        return load.retained_bytes
    bytes_by_topic = partition_bytes(users, load, measured)
    total_bytes = sum(bytes_by_topic[topic.name] * len(topic.partitions) for topic in users)
    return load.partitions * total_bytes / sum(len(topic.partitions) for topic in users)


def kept_for_ever(topic: Topic) -> bool:
    """Return whether ``retention.ms`` is -1 or over a hundred years."""
    retention = topic.configs.get("retention.ms", "")
    # int() refuses very long digit strings; float() does not.
    endless = _is_digits(retention) and float(retention) > _ENDLESS_MS
    return not _compacted(topic) and (endless or retention == _UNLIMITED)


def amount_of(load: Workload) -> str:
    """Return the write rate: "1,000 records of 1,024 bytes a second"."""
    rate, size = as_given(load.records_per_second), as_given(load.record_bytes)
    return f"{rate} records of {size} bytes a second"


def _is_digits(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _compacted(topic: Topic) -> bool:
    return "compact" in topic.configs.get("cleanup.policy", "")


def version_of(cluster: Cluster, given: str | None = None) -> tuple[str, str]:
    """Return the Kafka version to assume, and a note about the assumption ("" if none was needed).

    The columns of a describe output bound the version (`advisor.cluster.describe_layouts`).
    Where that leaves versions on both sides of KAFKA-15583 (3.7) and a topic has a min ISR above
    its number of replicas, the older side is taken: it refuses acks=all.
    """
    stated = given or cluster.kafka_version
    if stated is not None:
        if parse_version(stated) > parse_version(NEWEST_KNOWN):
            return stated, (
                f"Kafka {stated} is newer than {NEWEST_KNOWN}, the newest known here; "
                "replication is assumed to be unchanged."
            )
        return stated, ""
    layout = LAYOUTS.get(cluster.layout or "")
    version, why = _newest(cluster, layout)
    topic = _above_factor(cluster)
    oldest = OLDEST if layout is None else parse_version(layout.first)
    refusing = parse_version(NEWEST_REFUSING)
    if topic and oldest <= refusing < parse_version(version):
        # Of what it may be, the worse: numbers, findings and state then agree with each other.
        why = "" if layout is None else f"{layout.words}, "
        why += (
            f"taken as {NEWEST_REFUSING}, the last that refuses every acks=all write where "
            f"min.insync.replicas is above the number of replicas, as in topic {topic}; 3.7 and "
            "newer count it as that number"
        )
        version = NEWEST_REFUSING
    return version, f"Kafka's version is not stated; {why}: {_ASK}"


def _newest(cluster: Cluster, layout: Layout | None) -> tuple[str, str]:
    """Return the newest version that the input allows, and from what that follows."""
    if cluster.mode == "zookeeper" and (layout is None or layout.last is None):
        return NEWEST_WITH_ZOOKEEPER, f"taken as {NEWEST_WITH_ZOOKEEPER}, the last with ZooKeeper"
    if layout is None:
        return NEWEST_KNOWN, f"taken as {NEWEST_KNOWN}"
    version = layout.last or NEWEST_KNOWN
    controller = " with ZooKeeper" if layout.mode == "zookeeper" and cluster.mode is None else ""
    return version, f"{layout.words}, so it is taken as {version}{controller}"


def _above_factor(cluster: Cluster) -> str | None:
    """Return the first topic whose min ISR is above its replicas; None if there is none."""
    if cluster.eligible_leader_replicas:
        return None
    for topic in cluster.topics:
        min_isr = topic.min_insync_replicas or 1
        if any(partition.replication_factor < min_isr for partition in topic.partitions):
            return topic.name
    return None


def controller_of(cluster: Cluster, version: str) -> dict[str, Any]:
    """Return mode, ELR and session timeout as `Config` options, as far as they are known.

    An upgraded cluster may lack what a new one of its version has, such as KIP-966. A live cluster
    says nothing about a version that it does not run.
    """
    observed, options = cluster.observed, dict[str, Any]()
    layout = LAYOUTS.get(cluster.layout or "")
    # Before 3.3 ZooKeeper is the usual controller, and from 4.0 on KRaft the only one.
    if layout is not None and layout.mode and (3, 3) <= parse_version(version) < (4, 0):
        options["mode"] = layout.mode
    elr_is_shown = any(partition.elr for topic in cluster.topics for partition in topic.partitions)
    if observed is None and elr_is_shown:
        options["eligible_leader_replicas"] = parse_version(version) >= (4, 0) or None
    if observed is not None and version in observed.versions.values():
        options["mode"] = observed.mode
        options["eligible_leader_replicas"] = observed.eligible_leader_replicas
        if cluster.mode in (None, observed.mode):
            options |= session_timeout(cluster, observed)
    of_cluster = {
        "mode": cluster.mode,
        "eligible_leader_replicas": cluster.eligible_leader_replicas,
    }
    options |= {name: value for name, value in of_cluster.items() if value is not None}
    return {name: value for name, value in options.items() if value is not None}


def controller_note(cluster: Cluster, version: str) -> str:
    """Return what is assumed of a described cluster's controller and ELR; "" if nothing is."""
    if not cluster.topics:
        return ""
    options = controller_of(cluster, version)
    config = Config(kafka_version=version, **options)
    # From 4.0 on there is no other mode, before 3.3 ZooKeeper is the usual one.
    if "mode" not in options and (3, 3) <= parse_version(version) < (4, 0):
        return (
            f"KRaft is assumed, as in a new cluster of {version}; this description does not show "
            "it: say --mode zookeeper if the brokers use ZooKeeper."
        )
    if "eligible_leader_replicas" in options or not config.eligible_leader_replicas:
        return ""
    return (
        "Eligible leader replicas (KIP-966) and KRaft are assumed, as in a new cluster of "
        f"{version}; one made before 4.1 has no eligible leader replicas unless they were enabled. "
        "This description does not show it: see kafka-features.sh --bootstrap-server $BS describe, "
        "and say --elr off if the level of eligible.leader.replicas.version is 0."
    )


def session_timeout(cluster: Cluster, observed: Observed) -> dict[str, int]:
    """Return the longest session timeout that applies to brokers; {} if not reported.

    Under KRaft the controllers' own: others report a value that is not used.
    """
    zookeeper = observed.mode == "zookeeper"
    key = "zookeeper.session.timeout.ms" if zookeeper else "broker.session.timeout.ms"
    values = [
        whole_number(value, 2**31 - 1) or 0
        for broker, value in observed.broker_values(key).items()
        if zookeeper or broker in (cluster.controllers or {})
    ]
    longest = max(values, default=0)
    return {key.replace(".", "_"): longest} if longest else {}
