"""What a plan copies, in words."""

import re

import advisor
from advisor.cluster import load_cluster
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.workload import Workload

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})


def topic(name: str, replicas: str) -> str:
    held = f"Leader: {replicas}\tReplicas: {replicas}\tIsr: {replicas}\n"
    line = f"\tTopic: {name}\tPartition: 0\t{held}"
    return f"Topic: {name}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: \n{line}"


def test_kafkas_own_topics_carry_no_load() -> None:
    """The reasons and the commands name the same bytes, those of the user's topics."""
    described = topic("orders", "1") + topic("__consumer_offsets", "2")
    cluster = load_cluster(described).with_racks({1: "a", 2: "b", 3: "c"})
    advice = advisor.recommend(cluster, CARD, Workload(partitions=1))
    told = re.search(
        r"the change copies (\d+|\w+) replicas, (.*) without Kafka's own", advice.why[-1]
    )
    commands = re.search(r"that is (.*), Kafka's own topics aside", "\n".join(advice.commands()))
    assert told
    assert commands
    assert told[2] == commands[1]


def test_topics_keep_what_their_own_retention_says() -> None:
    """Stored and copied bytes are those of a day where retention.ms is a day, not of the load."""
    day, hour = "retention.ms=86400000", 3600 * 1000.0
    described = topic("orders", "1").replace("Configs: ", f"Configs: {day}") + topic("logs", "1")
    cluster = load_cluster(described).with_racks({1: "a", 2: "b", 3: "c"})
    load = Workload(partitions=2, records_per_second=2.0, record_bytes=1000, retention_hours=168)
    for topics, hours in ((["orders"], 24), (["logs"], 168), (None, 24 + 168)):
        advice = advisor.recommend(cluster, CARD, load, topics=topics)
        factor = advice.best.config.replication_factor or 1
        partitions = 1 if topics else 2
        # The load is always that of two partitions.
        assert advice.best.bytes_stored == hours * hour * factor * 2 / partitions
        copied = in_bytes(hours * hour * (factor - 1))
        assert f", {copied}." in advice.why[-1]
        assert f"that is {copied}, Kafka's own" in "\n".join(advice.plan.lines)
