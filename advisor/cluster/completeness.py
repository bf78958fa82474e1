"""Whether a description shows a whole cluster, as far as one sees, or a part of it."""

from __future__ import annotations

from collections.abc import Sequence

from advisor.cluster.topic import Topic
from advisor.formatting import counted

DESCRIBE = "kafka-topics.sh --bootstrap-server HOST:9092 --describe"
"""What shows all of a cluster, and what to run in place of a text that has no replicas."""


def part_shown(
    topics: Sequence[Topic],
    with_headers: bool,
    empty: Sequence[str] = (),
    brokers_listed: bool = False,
) -> str:
    """Say which part of a cluster is shown, `empty` topics without a partition; "" for all."""
    hidden = _not_shown(topics, with_headers, empty)
    if hidden:
        return (
            f"This is a part of the cluster ({hidden}): nothing is concluded about what does not "
            f"occur in it; give the output of {DESCRIBE}."
        )
    if len(topics) > 1:
        return ""
    if brokers_listed:
        return "One topic is shown: a broker that is in no ISR of it may be in sync elsewhere."
    return (
        "One topic is shown: brokers without a replica of it are not judged, unless --racks names "
        "them."
    )


def _not_shown(topics: Sequence[Topic], with_headers: bool, empty: Sequence[str]) -> str:
    incomplete = [(topic, partitions) for topic in topics if (partitions := _missing(topic))]
    healthy = any(partition.healthy for topic in topics for partition in topic.partitions)
    if not with_headers and not healthy:
        return "only partitions that are not in sync, as with --under-replicated-partitions"
    if incomplete:
        topic, partitions = incomplete[0]
        whole_topic = counted(len(topic.partitions) + len(topic.broken) + partitions, "partition")
        more = f" and so with {len(incomplete) - 1:,} more" if len(incomplete) > 1 else ""
        return f"{partitions:,} of {whole_topic} of {topic.name} not shown{more}"
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        return f"no partition of {empty[0]}{more}"
    return ""


def _missing(topic: Topic) -> int:
    """How many partitions are not shown, by the topic's stated size or gaps in their numbers."""
    numbers = {*topic.broken, *(partition.index for partition in topic.partitions)}
    return max(topic.stated_partitions or 0, max(numbers) + 1) - len(numbers)
