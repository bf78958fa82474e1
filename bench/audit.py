"""Time to read and audit 100,000 partitions and a million, compared with evaluating one topic.

Part of ``make bench``; run this file for the seconds of each part.
"""

from __future__ import annotations

import random
import resource
import time
from typing import NamedTuple

from advisor import Cluster, audit, evaluate, load_cluster, load_model
from advisor.advice.situation import config_of, load_of
from advisor.cluster import Partition, Topic
from advisor.cluster.formats.describe_format import format_describe
from advisor.protocol.rules.assignment import assign
from advisor.reliability.workload import Workload

CONFIGS = {"min.insync.replicas": "2"}
VERSION = "4.1"


class Size(NamedTuple):
    """A cluster of RF 3 topics, placed at random or as Kafka would place them."""

    topics: int
    partitions: int
    brokers: int
    racks: int
    at_random: bool = True

    @property
    def rack_of(self) -> dict[int, str | None]:
        """The rack of each broker."""
        return {broker: f"rack {broker % self.racks}" for broker in range(self.brokers)}

    def __str__(self) -> str:
        """Return what is audited, in words."""
        how = "at random" if self.at_random else "by Kafka"
        return (
            f"{self.topics * self.partitions:,} partitions of {self.topics:,} topics placed {how} "
            f"on {self.brokers:,} brokers in {self.racks} racks"
        )


AT_RANDOM = Size(1_000, 100, 60, 3)
A_MILLION = Size(1_000, 1_000, 300, 20)
SIZES = (
    AT_RANDOM._replace(at_random=False),
    AT_RANDOM,
    Size(1_000, 100, 1_000, 20),
    A_MILLION,
    Size(10, 100_000, 300, 20),
)


def described(size: Size) -> Cluster:
    """Return the cluster with its topics."""
    rng = random.Random(1)
    topics = []
    for number in range(size.topics):
        if size.at_random:
            lists = [rng.sample(range(size.brokers), 3) for _ in range(size.partitions)]
        else:
            placed = assign(size.rack_of, size.partitions, 3, algorithm="striped", seed=number)
            lists = list(placed.values())
        partitions = tuple(Partition(i, r[0], tuple(r), tuple(r)) for i, r in enumerate(lists))
        topics.append(Topic(f"t{number}", partitions, CONFIGS))
    return Cluster(size.rack_of, tuple(topics))


def cpu_seconds(size: Size) -> tuple[float, float, float]:
    """Return the CPU seconds to read the description, to audit it, and to evaluate one topic."""
    text = format_describe(described(size))
    model = load_model("three_az_cloud")
    start = time.process_time()
    cluster = load_cluster(text, racks=size.rack_of)
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


def judged(size: Size = AT_RANDOM) -> tuple[str, float, str, float]:
    """Compare reading and auditing all partitions with evaluating the first topic."""
    read, whole, first = cpu_seconds(size)
    return (
        f"{size.topics * size.partitions:,} partitions at random, read and judged",
        read + whole,
        "the first topic, its chains built",
        first,
    )


def judged_million() -> tuple[str, float, str, float]:
    """The same for a million partitions."""
    return judged(A_MILLION)


COMPARED = (judged, judged_million)


def main() -> None:
    """Print the seconds of each part, and the memory at its peak so far."""
    for size in SIZES:
        read, whole, first = cpu_seconds(size)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(
            f"{size}: read in {read:.1f} s, first topic {first:.1f} s, all topics {whole:.1f} s, "
            f"at most {peak:.1f} GB"
        )


if __name__ == "__main__":
    main()
