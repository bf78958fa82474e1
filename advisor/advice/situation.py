"""`Situation`: a cluster, its version and controller, and its traffic, read once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.advice.kafka_version import controller_note, controller_of, version_of
from advisor.advice.phrases import first_of
from advisor.advice.topic_settings import (
    amount_of,
    config_of,
    kept_for_ever,
    load_of,
    topics_under_load,
)
from advisor.cluster import Cluster, Topic
from advisor.formatting import as_given
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import default
from advisor.reliability.workload import Workload


@dataclass(frozen=True)
class Situation:
    """What `decide`, `recommend` and `audit` read of a cluster.

    version: Kafka version: stated, or the newest that fits the description.
    mode (one of "kraft", "zookeeper").
    controllers: voter to rack; None if not known.
    load: traffic of all topics in question together.
    topics: the topics in question.
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
        kafka_version: by default the cluster's, or the newest that fits its description.
        producer: producer settings. Default: acks="all" and Kafka's defaults.
        topics: names of the topics in question. Default: all.
        shared: whether a given load is that of all topics together, which all but Kafka's own share
            by their partitions, or that of each.
        """
        version, version_note = version_of(cluster, kafka_version)
        chosen = tuple(cluster.topics) if topics is None else tuple(map(cluster.topic, topics))
        controller = controller_of(cluster, version)
        notes = [*cluster.remarks, version_note, controller_note(cluster, version)]
        of_each = None
        load_is_given = load is not None
        if load is None:
            of_each = Workload()
            load, load_note = assumed_load(chosen)
            notes.append(load_note)
        elif not shared:
            of_each = load
        if chosen and "acks" not in (producer or {}):
            notes.append("Producers were assumed to use acks=all.")
        endless = [topic.name for topic in chosen if kept_for_ever(topic)]
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
            topics=chosen,
            of_each=of_each,
            controller=controller,
            producer=producer or {},
            stated_version=kafka_version or cluster.kafka_version or "",
            notes=tuple(filter(None, notes)),
            load_is_given=load_is_given,
        )

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
        sharing = sum(len(other.partitions) for other in topics_under_load(self.topics))
        share = self.load.records_per_second * len(topic.partitions) / sharing
        return replace(load_of(topic, self.load), records_per_second=share)


def assumed_load(topics: Sequence[Topic]) -> tuple[Workload, str]:
    """Return the default load times the number of non-internal topics, and a note on it."""
    user_topics = [topic for topic in topics if not topic.internal]
    partitions = sum(len(topic.partitions) for topic in user_topics) or 1
    usual, number = Workload(), len(user_topics) or 1
    rate = usual.records_per_second * number
    load = replace(usual, records_per_second=rate, partitions=partitions)
    if topics:
        return load, f"No load was given: {amount_of(usual)} to each topic were assumed."
    return load, f"No load was given: {amount_of(load)} over one partition were assumed."


def usual_config(topics: Sequence[Topic], kafka_version: str) -> Config | None:
    """Return the settings of most partitions, with acks=all; None without topics.

    Internal topics do not count.
    """
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
    whose = [t.name for t in topics if not t.internal and _setting(t) == setting]
    users = len([t for t in topics if not t.internal])
    names = f"topic{'s' if len(whose) > 1 else ''} {first_of(whose)}"
    if len(whose) == users:
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
