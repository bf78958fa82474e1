"""Time to read and audit 100,000 partitions, compared with evaluating one topic.

Part of ``make bench``; run this file for the seconds of each part.
"""

from __future__ import annotations

import random
import time

from advisor import Cluster, audit, evaluate, load_cluster, load_model
from advisor.advice.topic_settings import config_of, load_of
from advisor.cluster import Partition, Topic
from advisor.cluster.formats.describe_format import format_describe
from advisor.protocol.rules.assignment import assign
from advisor.reliability.workload import Workload

TOPICS, PARTITIONS, BROKERS = 1_000, 100, 60
RACKS: dict[int, str | None] = {broker: "abc"[broker % 3] for broker in range(BROKERS)}
CONFIGS = {"min.insync.replicas": "2"}
VERSION = "4.1"


def described(at_random: bool) -> Cluster:
    """Return a cluster of RF 3 topics, placed as Kafka would place them or at random."""
    rng = random.Random(1)
    topics = []
    for number in range(TOPICS):
        if at_random:
            lists = [rng.sample(range(BROKERS), 3) for _ in range(PARTITIONS)]
        else:
            placed = assign(RACKS, PARTITIONS, 3, algorithm="striped", seed=number)
            lists = list(placed.values())
        partitions = tuple(Partition(i, r[0], tuple(r), tuple(r)) for i, r in enumerate(lists))
        topics.append(Topic(f"t{number}", partitions, CONFIGS))
    return Cluster(RACKS, tuple(topics))


def cpu_seconds(at_random: bool) -> tuple[float, float, float]:
    """Return the CPU seconds to read the description, to audit it, and to evaluate one topic."""
    text = format_describe(described(at_random))
    model = load_model("three_az_cloud")
    start = time.process_time()
    cluster = load_cluster(text, racks=RACKS)
    read = time.process_time()
    topic = cluster.topics[0]
    evaluate(
        cluster,
        config_of(topic, VERSION, {"acks": "all"}),
        model,
        load_of(topic, Workload()),
        placement=tuple(partition.held for partition in topic.partitions),
    )
    once = time.process_time()
    audit(cluster, model, kafka_version=VERSION).explain()
    return read - start, time.process_time() - once, once - read


def judged() -> tuple[str, float, str, float]:
    """Compare reading and auditing all partitions with evaluating the first topic."""
    read, whole, first = cpu_seconds(at_random=True)
    return (
        f"{TOPICS * PARTITIONS:,} partitions at random, read and judged",
        read + whole,
        "the first topic, its chains built",
        first,
    )


def main() -> None:
    """Print the seconds of each part."""
    for at_random in (False, True):
        read, whole, first = cpu_seconds(at_random)
        print(
            f"{TOPICS * PARTITIONS:,} partitions placed {'at random' if at_random else 'by Kafka'}:"
            f" read in {read:.1f} s, first topic {first:.1f} s, all topics {whole:.1f} s"
        )


if __name__ == "__main__":
    main()
