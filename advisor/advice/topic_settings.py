"""From a described topic to the `Config` and `Workload` that are evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from advisor.cluster import Topic
from advisor.formatting import as_given
from advisor.protocol.rules.config import Config
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.workload import Workload

MILLISECONDS_PER_HOUR = 3_600_000.0
# Some set retention.ms to the largest long where they mean -1.
_ENDLESS_MS = 100.0 * HOURS_PER_YEAR * MILLISECONDS_PER_HOUR
_UNLIMITED = "-1"


def config_of(topic: Topic, kafka_version: str, producer: Mapping[str, Any]) -> Config:
    """Return a topic's settings, with Kafka's defaults where the description states none."""
    stated: dict[str, Any] = {}
    unclean = topic.configs.get("unclean.leader.election.enable")
    if unclean is not None:
        stated["unclean_leader_election_enable"] = unclean.strip().lower() == "true"
    return Config(
        kafka_version=kafka_version,
        replication_factor=topic.replication_factor,
        min_insync_replicas=topic.min_insync_replicas,
        **stated,
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
    written = load.records_per_hour_per_partition * load.record_bytes
    bytes_by_topic = {
        topic.name: written * load_of(topic, load).retention_hours for topic in topics
    }
    return {name: measured.get(name, size) for name, size in bytes_by_topic.items()}


def retained_bytes(topics: Sequence[Topic], load: Workload, measured: Mapping[str, float]) -> float:
    """Return the bytes of one copy of everything: partitions keep what these do on average.

    Kafka's own topics carry none of the load.
    """
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
