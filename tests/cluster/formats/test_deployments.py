"""How brokers are deployed: docker compose and values of Helm charts, alone and beside topics."""

import pytest

from advisor.__main__ import main
from advisor.advice import recommend
from advisor.cluster import load_cluster
from advisor.errors import InputError
from advisor.reliability.failures.failure_model import FailureModel

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1e-3, "hours": 12}}})
# Anchors, merged keys and defaults as in https://docs.docker.com/reference/compose-file/fragments/
# and in many a lesson on three brokers; image and variables: https://hub.docker.com/r/apache/kafka.
COMPOSE = """\
x-broker: &broker
  image: apache/kafka:3.8.1
services:
  kafka1:
    <<: *broker
    environment: &env
      KAFKA_NODE_ID: 1
      KAFKA_PROCESS_ROLES: broker,controller
      KAFKA_CONTROLLER_QUORUM_VOTERS: 1@kafka1:9093,2@kafka2:9093,3@kafka3:9093
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: ${RF:-1}
      KAFKA_MIN_INSYNC_REPLICAS: 2
      KAFKA_NUM_PARTITIONS: 1
      KAFKA_BROKER_RACK: a
  kafka2:
    <<: *broker
    environment:
      <<: *env
      KAFKA_NODE_ID: 2
      KAFKA_BROKER_RACK: b
      KAFKA_NUM_PARTITIONS: 3
  kafka3:
    <<: *broker
    env_file: more.env
    environment:
      <<: *env
      KAFKA_NODE_ID: 3
      KAFKA_BROKER_RACK: c
  ui:
    image: provectuslabs/kafka-ui:latest
    environment:
      KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS: kafka1:9092
"""
# https://github.com/bitnami/containers, bitnami/kafka, docker-compose-cluster.yml
BITNAMI = """\
services:
  kafka-0:
    image: docker.io/bitnami/kafka:3.7
    environment:
      - KAFKA_CFG_NODE_ID=0
      - KAFKA_CFG_PROCESS_ROLES=controller,broker
      - KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka-0:9093,1@kafka-1:9093
      - KAFKA_CFG_TRANSACTION_STATE_LOG_MIN_ISR=2
  kafka-1:
    image: docker.io/bitnami/kafka:3.7
    environment:
      - KAFKA_CFG_NODE_ID=1
      - KAFKA_CFG_PROCESS_ROLES=broker
      - KAFKA_CFG_CONTROLLER_QUORUM_VOTERS=0@kafka-0:9093,1@kafka-1:9093
      - KAFKA_CFG_TRANSACTION_STATE_LOG_MIN_ISR=2
  kafka-2:
    image: docker.io/bitnami/kafka:3.7
    environment: [KAFKA_CFG_NODE_ID=2, KAFKA_CFG_PROCESS_ROLES=controller]
"""
# https://github.com/confluentinc/cp-all-in-one
CONFLUENT = """\
services:
  zookeeper:
    image: confluentinc/cp-zookeeper:7.3.0
  broker:
    image: confluentinc/cp-kafka:7.3.0
    environment:
      KAFKA_BROKER_ID: 1
      KAFKA_ZOOKEEPER_CONNECT: 'zookeeper:2181'
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1
  schema-registry:
    image: confluentinc/cp-schema-registry:7.3.0
"""
# https://github.com/bitnami/charts, bitnami/kafka, values.yaml
HELM = """\
image:
  tag: 3.9.0-debian-12-r1
controller:
  replicaCount: 3
broker:
  replicaCount: 2
offsetsTopicReplicationFactor: 3
extraConfig: |
  # of every broker
  min.insync.replicas=2
provisioning:
  enabled: true
  numPartitions: 2
  replicationFactor: 3
  topics:
    - name: orders
      partitions: 6
      config:
        retention.ms: 1000
    - name: bills
      replicationFactor: 1
      config: {min.insync.replicas: 1}
"""


def test_compose_has_brokers_racks_controllers_and_what_all_brokers_set():
    """Merged keys, defaults of variables; a setting of one broker is none of the cluster's."""
    cluster = load_cluster(COMPOSE)
    assert cluster.brokers == {1: "a", 2: "b", 3: "c"}
    assert cluster.controllers == {1: "a", 2: "b", 3: "c"}
    assert (cluster.kafka_version, cluster.mode) == ("3.8", "kraft")
    assert cluster.broker_settings == {
        "process.roles": "broker,controller",
        "controller.quorum.voters": "1@kafka1:9093,2@kafka2:9093,3@kafka3:9093",
        "offsets.topic.replication.factor": "1",
        "min.insync.replicas": "2",
    }
    assert "kafka3 has an env_file" in " ".join(cluster.notes)


@pytest.mark.parametrize(
    ("text", "brokers", "controllers", "version", "mode"),
    [
        (BITNAMI, [0, 1], [0, 1, 2], "3.7", "kraft"),
        (CONFLUENT, [1], None, "3.3", "zookeeper"),
        (CONFLUENT.replace("7.3.0", "latest"), [1], None, None, "zookeeper"),
    ],
)
def test_images_of_others_are_read_too(text, brokers, controllers, version, mode):
    """A node that is a controller alone is no broker; Confluent's versions are not Kafka's."""
    cluster = load_cluster(text)
    assert [*cluster.brokers] == brokers
    assert cluster.controllers == (None if controllers is None else dict.fromkeys(controllers))
    assert (cluster.kafka_version, cluster.mode) == (version, mode)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("services:\n  web:\n    image: nginx\n", "it starts no broker of Kafka"),
        (COMPOSE.replace("NODE_ID: 2", "NODE_ID: 1"), "has the id 1, which another broker has"),
        (COMPOSE.replace("*env", "*nothing"), "an alias"),
        ("services:\n  b:\n    image: confluentinc/cp-kafka:7.9.0\n", "b has no settings of Kafka"),
        ("services:\n  r:\n    image: docker.redpanda.com/redpandadata/redpanda:v24\n", "Raft"),
        (
            "a: &a [x, x]\n"
            + "".join(
                f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join(['*' + chr(97 + n)] * 9)}]\n"
                for n in range(9)
            )
            + "services:\n",
            "stand for too much text",
        ),
    ],
)
def test_what_is_no_cluster_of_kafka_is_refused(text, words):
    """Other services, ids twice, broken and exploding aliases, and Redpanda."""
    with pytest.raises(InputError, match=words):
        load_cluster(text)


def test_settings_of_internal_topics_are_judged_without_topics(tmp_path, capsys):
    """A recommendation says what they lack; an audit says what to give beside the file."""
    found = [finding.code for finding in recommend(load_cluster(COMPOSE), CARD).findings]
    assert "KRA207" in found
    (tmp_path / "compose.yml").write_text(COMPOSE)
    assert main(["audit", str(tmp_path / "compose.yml"), "--model", "three_az_cloud"]) == 2
    said = capsys.readouterr().err
    assert "Taken for a file of docker compose (3 brokers)" in said
    assert "kafka-topics.sh --bootstrap-server HOST:9092 --describe beside it" in said


def test_values_of_a_chart_have_nodes_settings_and_topics():
    """Ids as the chart numbers them; topics follow the counts and settings that hold for all."""
    cluster = load_cluster(HELM)
    assert [*cluster.brokers] == [0, 1, 2, 100, 101]
    assert [*cluster.controllers] == [0, 1, 2]
    assert cluster.kafka_version == "3.9"
    orders, bills = cluster.topics
    assert (len(orders.partitions), orders.replication_factor) == (6, 3)
    assert orders.configs == {"min.insync.replicas": "2", "retention.ms": "1000"}
    assert (len(bills.partitions), bills.replication_factor) == (2, 1)
    assert bills.min_insync_replicas == 1
    assert cluster.broker_settings["offsets.topic.replication.factor"] == "3"


@pytest.mark.parametrize(
    ("text", "brokers"),
    [
        (
            "kafka:\n  controller: {replicaCount: 3, controllerOnly: true}\n"
            "  broker: {replicaCount: 1}\n",
            [100],
        ),
        ("replicaCount: 2\nzookeeper:\n  replicaCount: 1\n", [0, 1]),
        (
            "cp-helm-charts:\n  cp-kafka:\n    brokers: 3\n    configurationOverrides:\n"
            "      min.insync.replicas: 2\nkafka-connect: {}\n",
            [0, 1, 2],
        ),
    ],
)
def test_other_charts_count_brokers_in_other_places(text, brokers):
    """Controllers alone, an older chart, and Confluent's among others."""
    assert [*load_cluster(text).brokers] == brokers


def test_values_without_a_count_are_refused():
    """The chart's own default is not in the file."""
    with pytest.raises(InputError, match="do not say how many brokers there are"):
        load_cluster("kraft:\n  enabled: true\nbroker:\n  heapOpts: -Xmx4g\n")


DESCRIBED = (
    "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
)
TOPICS = "topics:\n  orders:\n    partitions: 6\n    replication: 3\n"


def test_a_deployment_joins_a_description_and_gives_topics_their_brokers(tmp_path):
    """Racks, idle brokers, controllers and version; topics as code are placed on its brokers."""
    for name, text in (("c.yml", COMPOSE), ("d.txt", DESCRIBED), ("t.yaml", TOPICS)):
        (tmp_path / name).write_text(text)
    described = load_cluster([tmp_path / "d.txt", tmp_path / "c.yml"])
    assert described.brokers == {1: "a", 2: "b", 3: "c"}
    assert described.kafka_version == "3.8"
    assert described.topic("t").min_insync_replicas == 2
    planned = load_cluster([tmp_path / "t.yaml", tmp_path / "c.yml"])
    assert planned.brokers == {1: "a", 2: "b", 3: "c"}
    assert planned.topic("orders").replication_factor == 3
    assert planned.topic("orders").min_insync_replicas == 2
    (tmp_path / "v.yaml").write_text(HELM)
    beside = load_cluster([tmp_path / "d.txt", tmp_path / "v.yaml"])
    assert [*beside.brokers] == [1, 2]  # the chart does not state its ids
