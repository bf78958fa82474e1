"""Layouts of `kafka-topics.sh --describe`, and the Kafka versions that print each of them.

Read at the tags 0.8.0 to 3.9.0 in `kafka/admin/ListTopicCommand.scala` (0.8.0),
`kafka/admin/TopicCommand.scala` (0.8.1 to 3.6) and `org/apache/kafka/tools/TopicCommand.java`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from advisor.cluster.topic import Topic

# Every line of an output has the same layout, so that its beginning is enough.
_ENOUGH = 100_000


@dataclass(frozen=True)
class Layout:
    """The columns of a describe output, and what they prove.

    name: the first version that prints them, and what differs ("3.8 without ELR").
    first: the first version of brokers described like this.
    last: the last one; None: today's.
    words: subject and verb of a sentence: "the columns are those of kafka-topics.sh 2.4 to 2.7".
    mode (one of "kraft", "zookeeper"): the controller of brokers from 3.8 on that are described
        like this; None: either.
    """

    name: str
    first: str
    last: str | None
    words: str
    mode: str | None = None

    @property
    def span(self) -> str:
        """Its versions: "2.4 to 2.7", "3.8 or newer"."""
        if self.last is None:
            return f"{self.first} or newer"
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


_LAYOUTS = (
    Layout("0.8.0", "0.8.0", "0.8.0", "the columns are those of kafka-list-topic.sh 0.8.0"),
    Layout(
        "0.8.1",
        "0.8.1",
        "2.3",
        "the columns are those of kafka-topics.sh 0.8.1 to 2.3 (before 0.11 unclean leader "
        "election is on by default and records are lost more easily)",
    ),
    Layout(
        "0.8.1 partitions",
        "0.8.1",
        "3.7",
        "the columns are those of kafka-topics.sh 0.8.1 to 3.7",
    ),
    Layout("2.4", "2.4", "2.7", "the columns are those of kafka-topics.sh 2.4 to 2.7"),
    Layout("2.8", "2.8", "3.7", "the columns are those of kafka-topics.sh 2.8 to 3.7"),
    # The ELR is answered by DescribeTopicPartitions, which only KRaft brokers from 3.8 on have
    # (`KafkaApis.describeTopicPartitionsRequestHandler`); the tool prints N/A for all others, and
    # with --topic-id. It prints a topic id if the broker has one: brokers from 2.8 on.
    Layout(
        "3.8 without ELR",
        "0.10.0",
        "3.9",
        'the columns are those of kafka-topics.sh 3.8 and newer, and "Elr: N/A" of brokers that '
        "use ZooKeeper or are older",
        "zookeeper",
    ),
    Layout(
        "3.8 without ELR, with topic ids",
        "2.8",
        "3.9",
        "the columns are those of kafka-topics.sh 3.8 and newer, with the topic ids of brokers "
        'from 2.8 on and "Elr: N/A" of brokers that use ZooKeeper or are older than 3.8 (or of '
        "--topic-id)",
        "zookeeper",
    ),
    Layout("3.8", "3.8", None, "the columns are those of kafka-topics.sh 3.8 and newer", "kraft"),
)

LAYOUTS: Mapping[str, Layout] = MappingProxyType({each.name: each for each in _LAYOUTS})
"""Every layout by its name."""

# A log or a container may have put something before every line.
_FIRST = re.compile(r"(?<!\S)[Tt]opic:")
_OLDEST = re.compile(r"(?<!\S)topic:\s+\S+\s+partition:\s+\d+\s+leader:")
_JOINED = re.compile(r"(?<!\S)Topic:[A-Za-z0-9._-]+\s+PartitionCount:")
_HEADER = re.compile(r"\bPartitionCount:")
_ELR = re.compile(r"(?<!\S)Elr:")


def layout_of(text: str, topics: Sequence[Topic]) -> str:
    r"""Return the name of the layout of a describe output.

    >>> layout_of("topic: t\tpartition: 0\tleader: 0\treplicas: 0,1\tisr: 0,1", ())
    '0.8.0'
    >>> layout_of("Topic:t\tPartitionCount:1\tReplicationFactor:3\tConfigs:", ())
    '0.8.1'
    """
    first = _FIRST.search(text)
    start = 0 if first is None else first.start()
    beginning = text[max(start - 1, 0) : start + _ENOUGH]
    if any(partition.elr is not None for topic in topics for partition in topic.partitions):
        return "3.8"
    with_ids = any(topic.topic_id is not None for topic in topics)
    if _ELR.search(beginning):
        return "3.8 without ELR, with topic ids" if with_ids else "3.8 without ELR"
    if with_ids:
        return "2.8"
    if _JOINED.search(beginning):
        return "0.8.1"
    if _HEADER.search(beginning):
        return "2.4"
    return "0.8.0" if _OLDEST.search(beginning) else "0.8.1 partitions"
