"""The KafkaTopic resources, validated against Strimzi's schema."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.properties import strimzi_topics
from advisor.cluster import Cluster, Partition, Topic
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload

SCHEMA = json.loads((Path(__file__).parent / "strimzi-fields.json").read_text())
WANTED = Config(replication_factor=3, min_insync_replicas=2)
BROKERS = {1: "a", 2: "b", 3: "c"}
TOPIC_NAMES = st.text("abzABZ019._-", min_size=1, max_size=249).filter(
    lambda name: name not in (".", "..")
)


def checked(text: str) -> list[dict[str, Any]]:
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    return documents


def test_the_resources_of_plans_are_accepted() -> None:
    """Resources for new and existing topics are valid."""
    configs = {"cleanup.policy": "compact,delete", "retention.ms": "-1", "preallocate": "true"}
    topic = Topic("__old_One", (Partition(0, 1, (1,), (1,)),), configs)
    (made,) = checked(
        make_plan(Cluster(BROKERS, (topic,)), WANTED, Workload()).files["kafka-topics.yaml"]
    )
    assert made["spec"]["topicName"] == "__old_One"
    assert made["spec"]["config"] == {
        "cleanup.policy": "compact,delete",
        "retention.ms": "-1",
        "preallocate": True,
        "min.insync.replicas": 2,
    }
    assert checked(make_plan(Cluster(BROKERS), WANTED, Workload()).files["kafka-topics.yaml"])


@given(st.lists(TOPIC_NAMES, min_size=1, max_size=6, unique=True))
def test_every_topic_name_gives_a_valid_resource_name(names: list[str]) -> None:
    """Every topic name gives a valid, distinct resource name, and topicName has the topic."""
    documents = checked(strimzi_topics([(name, 1) for name in names], WANTED).text)
    assert len({document["metadata"]["name"] for document in documents}) == len(names)
    meant = [d["spec"].get("topicName", d["metadata"]["name"]) for d in documents]
    assert meant == names


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("replicas: 3", "replicas: '3'"),
        ("partitions:", "partition:"),
        ("name: my-topic", "name: my_topic"),
        ("/v1\n", "/v1beta2\n"),
    ],
)
def test_invalid_resources_are_rejected(old: str, new: str) -> None:
    """Wrong types, unknown fields, invalid names and other versions are rejected."""
    text = strimzi_topics([("my-topic", 1)], WANTED).text
    assert old in text
    with pytest.raises(jsonschema.ValidationError):
        checked(text.replace(old, new, 1 if old != "/v1\n" else -1))
