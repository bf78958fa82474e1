"""Put topics of which only counts are known onto brokers, as Kafka would."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.cluster.model import Partition, Topic
from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign

MAX_PARTITIONS = 200_000
"""More partitions than Kafka serves in one cluster; a larger count is a slip of the finger."""

PLACED = "Replicas were placed as Kafka would on an empty cluster for {}: only counts are given."


@dataclass(frozen=True)
class CountedTopic:
    """A topic of which only the counts are known."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


def place(topic: CountedTopic, brokers: Mapping[int, str | None], order: int = 0) -> Topic:
    """Return the topic with replicas on the brokers, every replica in sync.

    Parameters
    ----------
    topic : CountedTopic
        Its name and counts.
    brokers : mapping of int to (str or None)
        Broker id to rack.
    order : int
        The topic's number: each is placed from another start, so that leaders spread.

    Raises
    ------
    InputError
        If a count is below 1, above Kafka's reach, or there are more replicas than brokers.
    """
    if not 1 <= topic.partitions <= MAX_PARTITIONS:
        raise InputError(
            f"topic {topic.name} has partitions {topic.partitions}; give 1 to {MAX_PARTITIONS}"
        )
    if topic.replication_factor < 1:
        raise InputError(
            f"topic {topic.name} has replication_factor {topic.replication_factor}; it starts at 1"
        )
    if topic.replication_factor > len(brokers):
        raise InputError(
            f"topic {topic.name} has replication_factor {topic.replication_factor} "
            f"but there are only {len(brokers)} brokers"
        )
    # Striped is how a KRaft controller places; it takes any mix of known and unknown racks.
    replicas = assign(
        brokers, topic.partitions, topic.replication_factor, algorithm="striped", seed=order
    )
    return Topic(
        name=topic.name,
        partitions=tuple(in_sync(index, tuple(ids)) for index, ids in replicas.items()),
        configs=topic.configs,
    )


def in_sync(index: int, replicas: tuple[int, ...]) -> Partition:
    """Return a healthy partition: the first replica leads and all are in sync."""
    leader = replicas[0] if replicas else None
    return Partition(index=index, leader=leader, replicas=replicas, isr=replicas)
