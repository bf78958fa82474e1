"""What a plan copies, in words."""

import re

import advisor
from advisor.cluster import load_cluster
from advisor.reliability.failures.failure_model import FailureModel
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
