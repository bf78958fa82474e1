"""Write topics in the columns of `kafka-topics.sh --describe`, per Kafka version.

Sources: `kafka/admin/ListTopicCommand.scala` (0.8.0),
`kafka/admin/TopicCommand.scala` (0.8.1 to 3.6), `org/apache/kafka/tools/TopicCommand.java` (3.7+).
"""

from __future__ import annotations

import re

from advisor.cluster.model import Cluster
from advisor.cluster.topic import Partition, Topic
from advisor.errors import InputError, shown


def format_describe(described: Cluster | Topic, version: str = "4.1") -> str:
    """Return the output of `kafka-topics.sh --describe` of a Kafka version.

    version: such as "0.8.0", "2.1" or "4.1". Columns that the version lacks are left out: 0.8.0 has
        no header line; reassignments were added in 2.6, topic ids in 2.8, the ELR in 3.8.

    >>> topic = Topic("t", (Partition(0, 1, (1, 2), (1, 2)),))
    >>> print(format_describe(topic, "0.8.0").expandtabs(1), end="")
    topic: t partition: 0 leader: 1 replicas: 1,2 isr: 1,2
    """
    numbers = version_numbers(version)
    topics = described.topics if isinstance(described, Cluster) else (described,)
    lines: list[str] = []
    for topic in topics:
        if numbers < (0, 8, 1):
            lines.extend(
                f"topic: {topic.name}\tpartition: {p.index}\tleader: {_leader(p)}"
                f"\treplicas: {_ids(p.replicas)}\tisr: {_ids(p.isr)}"
                for p in topic.partitions
            )
        else:
            lines.append(_header(topic, numbers))
            lines.extend(_line(topic, partition, numbers) for partition in topic.partitions)
    return "".join(f"{line}\n" for line in lines)


def version_numbers(version: str) -> tuple[int, ...]:
    """Convert "4.1" to (4, 1)."""
    if not isinstance(version, str) or not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3}){1,3}", version):
        raise InputError(
            f'{shown(version)} is not a Kafka version (kafka_version); write it like "4.1"'
        )
    return tuple(map(int, version.split(".")))


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


def _leader(partition: Partition) -> str:
    return "none" if partition.leader is None else str(partition.leader)


def _header(topic: Topic, numbers: tuple[int, ...]) -> str:
    fields = [("Topic", topic.name)]
    if numbers >= (2, 8) and topic.topic_id:
        fields.append(("TopicId", topic.topic_id))
    # Before 2.5 the tool also counted the replicas being added.
    first = topic.partitions[0]
    factor = topic.replication_factor if numbers >= (2, 5) else len(first.replicas)
    factor += len(first.observers)
    partitions = topic.stated_partitions or len(topic.partitions)
    fields.append(("PartitionCount", str(partitions)))
    fields.append(("ReplicationFactor", str(factor)))
    fields.append(("Configs", ",".join(f"{key}={value}" for key, value in topic.configs.items())))
    if topic.marked_for_deletion and numbers >= (0, 11):
        fields.append(("MarkedForDeletion", "true"))
    colon = ": " if numbers >= (2, 4) else ":"
    return "\t".join(f"{label}{colon}{value}" for label, value in fields)


def _line(topic: Topic, partition: Partition, numbers: tuple[int, ...]) -> str:
    fields = [
        ("Topic", topic.name),
        ("Partition", str(partition.index)),
        ("Leader", _leader(partition)),
        ("Replicas", _ids((*partition.replicas, *partition.observers))),
        ("Isr", _ids(partition.isr)),
    ]
    if numbers >= (2, 6) and (partition.adding or partition.removing):
        fields.append(("Adding Replicas", _ids(partition.adding)))
        fields.append(("Removing Replicas", _ids(partition.removing)))
    if numbers >= (3, 8):
        for label, ids in (("Elr", partition.elr), ("LastKnownElr", partition.last_known_elr)):
            fields.append((label, "N/A" if ids is None else _ids(ids)))
    if partition.observers or partition.offline:
        # As Confluent's tool prints them.
        fields.append(("Offline", _ids(partition.offline)))
        fields.append(("Observers", _ids(partition.observers)))
    return "".join(f"\t{label}: {value}" for label, value in fields)
