"""Place the replicas of topics that are described by counts only, as Kafka would."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from advisor.cluster.topic import Partition, Topic, check_partitions
from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign

MAX_PARTITIONS = 200_000
"""More than one Kafka cluster serves; a larger count is taken for a typo."""
MAX_REPLICAS = 10 * MAX_PARTITIONS

PLACEMENT_NOTE = (
    "Replicas were placed as Kafka would on an empty cluster for {}: only counts are given."
)


@dataclass(frozen=True)
class CountedTopic:
    """A topic described by partition count and replication factor only."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


def place(topic: CountedTopic, brokers: Mapping[int, str | None], order: int = 0) -> Topic:
    """Return the topic placed on brokers, all in sync; `order` is the seed: leaders spread."""
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
    if topic.partitions * topic.replication_factor > MAX_REPLICAS:
        raise InputError(
            f"topic {topic.name} has {topic.partitions} partitions of {topic.replication_factor} "
            f"replicas; give at most {MAX_REPLICAS:,} replicas"
        )
    # The KRaft controller's algorithm; it accepts a mix of known and unknown racks.
    replicas = assign(
        brokers, topic.partitions, topic.replication_factor, algorithm="striped", seed=order
    )
    return Topic(
        name=topic.name,
        partitions=tuple(healthy_partition(index, tuple(ids)) for index, ids in replicas.items()),
        configs=topic.configs,
    )


def place_all(
    topics: Iterable[CountedTopic], brokers: Mapping[int, str | None]
) -> tuple[tuple[Topic, ...], tuple[str, ...]]:
    """Return the topics placed one after another, and the note on that; neither without any."""
    placed: list[Topic] = []
    partitions = 0
    for order, topic in enumerate(topics):
        placed.append(place(topic, brokers, order))
        partitions += topic.partitions
        check_partitions(partitions)
    names = ", ".join(topic.name for topic in placed)
    return tuple(placed), (PLACEMENT_NOTE.format(names),) if placed else ()


def healthy_partition(index: int, replicas: tuple[int, ...]) -> Partition:
    """Return a partition whose first replica leads and whose replicas are all in sync."""
    leader = replicas[0] if replicas else None
    return Partition(index=index, leader=leader, replicas=replicas, isr=replicas)
