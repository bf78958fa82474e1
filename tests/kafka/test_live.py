"""Reading running clusters of three kinds agrees with Kafka's tools."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from kafka import KafkaAdminClient, TopicPartition

from advisor import FailureModel, load_cluster, recommend
from advisor.cluster import Cluster, Topic
from advisor.cluster.live import client
from advisor.cluster.observed import Setting
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from awaited import awaited, steady
from patience import patient_properties

RACKS = {1: "a", 2: "b", 3: "c"}
STATIC = {"min.insync.replicas": "2", "auto.create.topics.enable": "true"}
SPECS = {
    "kraft 3.9": ClusterSpec("3.9", racks=RACKS, brokers_configs=STATIC),
    "zookeeper 3.9": ClusterSpec("3.9", mode="zookeeper", racks=RACKS, brokers_configs=STATIC),
    # With KIP-966 min.insync.replicas cannot stand in a broker's own file.
    "kraft 4.3": ClusterSpec(
        "4.3",
        racks=RACKS,
        eligible_leader_replicas=True,
        brokers_configs={"auto.create.topics.enable": "true"},
    ),
}
Clusters = Callable[[ClusterSpec], RealCluster]


def tool(running: RealCluster, script: str, *arguments: str) -> str:
    result = run_tool(running.jars, script, ["--bootstrap-server", running.bootstrap, *arguments])
    assert result.code == 0, result.output + result.errors
    return result.output


@cache
def create(running: RealCluster, topic: str, replicas: str, *configs: str) -> None:
    """Create a topic, once on each cluster."""
    options = [option for config in configs for option in ("--config", config)]
    assign = ["--create", "--topic", topic, "--replica-assignment", replicas]
    tool(running, "kafka-topics.sh", *assign, *options)


def read(running: RealCluster) -> Cluster:
    """Read the cluster, however late it answers."""
    return load_cluster(running.bootstrap, client_properties=patient_properties(running.folder))


def described(running: RealCluster) -> str:
    return tool(running, "kafka-topics.sh", "--describe")


def read_with_the_tool(running: RealCluster) -> tuple[Cluster, tuple[Topic, ...]]:
    """Read the cluster, and by Kafka's tool at the same time."""
    text, found = steady(lambda: described(running), lambda: read(running))
    return found, tuple(sorted(load_cluster(text).topics, key=lambda topic: topic.name))


def without_epochs(cluster: Cluster) -> tuple[Topic, ...]:
    """Return the topics without leader epochs and offline replicas, as in a describe output."""
    return tuple(
        replace(
            topic,
            partitions=tuple(replace(p, leader_epoch=None, offline=()) for p in topic.partitions),
        )
        for topic in cluster.topics
    )


def read_when(running: RealCluster, noticed: Callable[[Cluster], bool]) -> Cluster:
    """Read the cluster until a condition holds."""
    return awaited(lambda: read(running), noticed)


@pytest.fixture(scope="module", params=SPECS)
def spec(request: pytest.FixtureRequest) -> ClusterSpec:
    """Each kind of cluster in turn, so that its tests share one."""
    return SPECS[request.param]


@pytest.fixture
def running(spec: ClusterSpec, real_cluster: Clusters) -> RealCluster:
    """A healthy cluster of that kind with two topics."""
    cluster = real_cluster(spec)
    create(cluster, "orders", "1:2:3,2:3:1", "min.insync.replicas=3", "retention.ms=86400000")
    create(cluster, "clicks", "2:1", "cleanup.policy=compact,delete")
    read_when(cluster, lambda found: is_healthy(found, cluster))
    return cluster


def is_healthy(found: Cluster, running: RealCluster) -> bool:
    """Whether every broker answers, and both topics are there with all their replicas."""
    return (
        found.observed is not None
        and set(found.observed.versions) == set(running.brokers)
        and {"orders", "clicks"} <= {topic.name for topic in found.topics}
        and all(map(whole, found.topics))
    )


def whole(topic: Topic) -> bool:
    return all(
        p.leader is not None and set(p.isr) == set(p.replicas) and not p.elr
        for p in topic.partitions
    )


def test_live_reading_equals_the_tools_output(running: RealCluster) -> None:
    """Topics, ids, replicas, ISR, ELR and settings equal those of kafka-topics.sh."""
    found, result = read_with_the_tool(running)
    assert {topic.name for topic in result} >= {"orders", "clicks"}
    assert without_epochs(found) == result
    assert dict(found.brokers) == RACKS
    assert found.kafka_version == running.spec.version
    assert found.notes == ()


def test_pages_are_combined(running: RealCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one partition and one topic per request, the result is the same."""

    def read_twice() -> tuple[Cluster, Cluster]:
        at_once = read(running)
        with monkeypatch.context() as patch:
            patch.setattr(client, "PARTITIONS_AT_ONCE", 1)
            patch.setattr(client, "TOPICS_AT_ONCE", 1)
            return at_once, read(running)

    _, (at_once, by_pages) = steady(lambda: described(running), read_twice)
    assert by_pages == at_once


def test_live_reading_has_what_describe_output_lacks(running: RealCluster) -> None:
    """Controller, ELR, epochs and config sources are read too."""
    found = read(running)
    seen = found.observed
    assert seen is not None
    assert seen.mode == running.spec.mode
    assert seen.eligible_leader_replicas is (running.spec.version == "4.3")
    assert (seen.quorum is not None) == (seen.mode == "kraft")
    if seen.quorum is not None:
        assert seen.quorum.leader in seen.quorum.voters
        assert seen.quorum.observers == (1, 2, 3)
        assert found.controllers == dict.fromkeys(seen.quorum.voters)
        assert seen.features["metadata.version"] >= 21
    assert seen.versions == dict.fromkeys(RACKS, running.spec.version)
    assert all(p.leader_epoch is not None for t in found.topics for p in t.partitions)
    lag_ms = str(running.spec.timeouts.replica_lag_time_max_ms)
    assert seen.broker_values("replica.lag.time.max.ms") == dict.fromkeys(RACKS, lag_ms)
    orders = seen.topic_settings["orders"]
    assert orders["min.insync.replicas"] == Setting("3", "DYNAMIC_TOPIC_CONFIG")
    assert orders["flush.ms"].is_default
    static = running.spec.version == "3.9"
    inherited = seen.topic_settings["clicks"]["min.insync.replicas"]
    source = "STATIC_BROKER_CONFIG" if static else "DYNAMIC_DEFAULT_BROKER_CONFIG"
    assert inherited == Setting("2" if static else "1", source)


def test_live_reading_survives_json(running: RealCluster) -> None:
    """A round trip through JSON loses nothing."""
    found = read(running)
    assert load_cluster(json.dumps(found.to_dict(), indent=1)).to_dict() == {
        **found.to_dict(),
        "source": "the text",
    }


def test_reading_changes_nothing(running: RealCluster) -> None:
    """Reading creates no topic, even with auto.create.topics.enable."""
    names = {topic.name for topic in load_cluster(described(running)).topics}
    after, _ = steady(lambda: described(running), lambda: [read(running) for _ in range(2)])
    assert {topic.name for topic in load_cluster(after).topics} == names


def test_a_dead_broker_is_noted_and_the_rest_is_read(running: RealCluster) -> None:
    """With one of three brokers dead its settings are missing, with a note.

    A reassignment to the dead broker stays in progress meanwhile.
    """
    running.kill(3)
    try:
        read_when(
            running,
            lambda found: (
                found.observed is not None
                and set(found.observed.versions) == {1, 2}
                and all(3 not in p.isr for t in found.topics for p in t.partitions)
            ),
        )
        found, result = read_with_the_tool(running)
        assert without_epochs(found) == result
        for partition in found.topic("clicks").partitions:
            assert partition.offline == ((3,) if 3 in partition.replicas else ())
        assert any(note.startswith("Brokers that do not run now: 3") for note in found.notes)
        assert set(found.brokers) == {1, 2, 3}
        assert found.observed is not None
        assert set(found.observed.broker_settings) == {1, 2}
        if running.spec.mode == "kraft":  # ZooKeeper's controller refuses brokers that are down
            move(running, [2, 3])
            found, result = read_with_the_tool(running)
            assert found.topic("clicks").partitions[0].reassigning
            assert without_epochs(found) == result
            move(running, None)
    finally:
        running.start(3)


def move(running: RealCluster, replicas: list[int] | None) -> None:
    """Start or cancel a reassignment; Kafka's tool rejects a broker that is down."""
    with KafkaAdminClient(bootstrap_servers=running.bootstrap.split(",")[0]) as admin:
        asked = TopicPartition("clicks", 0)
        assert admin.alter_partition_reassignments({asked: replicas}) == {asked: None}
    wanted = replicas is not None
    read_when(running, lambda found: found.topic("clicks").partitions[0].reassigning is wanted)


def test_eligible_leader_replicas_are_read(real_cluster: Clusters) -> None:
    """The ELR is read as the tool prints it."""
    running = real_cluster(SPECS["kraft 4.3"])
    create(running, "narrow", "1:2:3", "min.insync.replicas=3")
    read_when(running, lambda found: whole(found.topic("narrow")))
    running.kill(2)
    running.kill(3)
    try:
        # Followers leave the ISR before the controller fences the brokers, which still lead others.
        read_when(
            running, lambda found: all(p.isr == (1,) for t in found.topics for p in t.partitions)
        )
        found, result = read_with_the_tool(running)
        assert found.topic("narrow").partitions[0].elr == (2, 3)
        assert without_epochs(found) == result
        assert dict(found.brokers) == RACKS, "a broker that is down keeps its rack under KRaft"
    finally:
        running.start(2)
        running.start(3)


def test_recommendation_uses_the_live_controller(running: RealCluster) -> None:
    """Recommendations for a running cluster use its own mode and ELR setting."""
    found = read(running)
    card = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}})
    config = recommend(found, card, topics=["orders"]).best.config
    assert found.observed is not None
    assert config.mode == found.observed.mode
    assert config.eligible_leader_replicas is found.observed.eligible_leader_replicas
