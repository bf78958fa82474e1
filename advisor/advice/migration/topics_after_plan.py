"""The topics after a plan was carried out, and brokers that then hold every partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from advisor.advice.migration.moves import Move
from advisor.cluster import Cluster, Partition, Topic
from advisor.protocol.rules.config import Config


def topics_after(
    topics: Sequence[Topic], moves: Iterable[Move], settings: Mapping[str, Mapping[str, str]]
) -> tuple[Topic, ...]:
    """Return the topics with the replicas that the moves give them, all in sync, and new options.

    settings: topic name to all of its options; topics that are not named keep theirs.
    """
    replicas = {(move.topic, move.partition): move.after for move in moves}
    return tuple(
        replace(
            topic,
            partitions=tuple(
                _held_by(p, replicas.get((topic.name, p.index), p.held)) for p in topic.partitions
            ),
            configs=settings.get(topic.name, topic.configs),
        )
        for topic in topics
    )


def _held_by(partition: Partition, replicas: tuple[int, ...]) -> Partition:
    return Partition(partition.index, replicas[0], replicas, replicas)


def crowded_broker_words(topics: Sequence[Topic], cluster: Cluster, config: Config) -> str:
    """Return in words which broker holds a replica of every partition; "" if none does.

    This happens at the third site of "two and a half" data centres: its only broker, often meant as
    an arbiter without load, gets a copy of everything.

    topics: as they are after the change; none for a topic that Kafka places.
    config: settings of a topic that Kafka places.
    """
    sizes = Counter(cluster.brokers.values())
    if None in sizes or len(sizes) < 2 or max(sizes.values()) == 1:
        return ""
    alone = [broker for broker, rack in cluster.brokers.items() if sizes[rack] == 1]
    if topics:
        held = [set(p.held) for topic in topics for p in topic.partitions if len(p.held) > 1]
        full = [broker for broker in alone if held and all(broker in replicas for replicas in held)]
    else:
        full = alone if (config.replication_factor or 1) >= len(sizes) else []
    if not full:
        return ""
    broker = full[0]
    return (
        f"Every partition then has a replica on broker {broker}, the only one of rack "
        f"{cluster.brokers[broker]}: it stores and receives a copy of everything and can become "
        "the leader of anything, so it needs the disk and network for that; an arbiter without "
        "them is not enough."
    )
