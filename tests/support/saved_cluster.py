"""A saved cluster that uses every field, and stand-ins for the tools that emitted scripts call."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from advisor.cluster import Cluster, Partition, Topic
from advisor.cluster.observed import Observed, Quorum, Setting

# Stand-ins for Kafka's tools and sleep: they report every move as complete.
TOOL = """#!/bin/sh
case "$*" in *--verify*) grep -o '"partition"' reassign.json | sed 's/.*/x is complete/';; esac
"""
TOOLS = (
    "kafka-topics.sh",
    "kafka-configs.sh",
    "kafka-reassign-partitions.sh",
    "kafka-leader-election.sh",
    "kafka-preferred-replica-election.sh",
    "kafka-features.sh",
    "kafka-metadata-quorum.sh",
    "sleep",
)


def write_tools(folder: Path) -> Path:
    """Write the stand-ins to a new folder, and return it."""
    folder.mkdir()
    for name in TOOLS:
        (folder / name).write_text(TOOL)
        (folder / name).chmod(0o755)
    return folder


def saved() -> dict[str, Any]:
    """Return a saved live cluster that uses every field."""
    setting = Setting("1", "DYNAMIC_TOPIC_CONFIG")
    configs = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    return Cluster(
        {1: "a", 2: "b", 3: "c"},
        (Topic("orders", (Partition(0, 1, (1, 2), (1, 2)),), configs, "id"),),
        kafka_version="4.1",
        source="live",
        notes=("a note",),
        observed=Observed(
            mode="kraft",
            cluster_id="c",
            quorum=Quorum(1, 1, (1, 2, 3), ()),
            features={"metadata.version": 1},
            features_known=True,
            versions={1: "4.1"},
            broker_settings={1: {"min.insync.replicas": setting}},
            topic_settings={
                "orders": {
                    "min.insync.replicas": setting,
                    "unclean.leader.election.enable": setting,
                }
            },
            bootstrap_servers="b1:9092",
            command_config="client.properties",
        ),
        controllers={1: "a", 2: "b", 3: "c"},
    ).to_dict()


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value that is not a mapping or list."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)
