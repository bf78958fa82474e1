"""Topics that Kafka and its frameworks create: each is known, and its option is named."""

import pytest

from advisor.advice.audits.audit import audit
from advisor.advice.findings.owners import MIRRORED, OWNERS, owner_of
from advisor.cluster import Cluster, load_cluster
from advisor.reliability.workload import Workload
from checked_topics import ONE, SIX, with_min_isr
from read_cluster import findings_of, findings_of_topic

MIRROR = {"west.checkpoints.internal"}
KNOWN = [
    ("__consumer_offsets", "offsets.topic.replication.factor"),
    ("__transaction_state", "transaction.state.log.replication.factor"),
    ("__share_group_state", "share.coordinator.state.topic.replication.factor"),
    ("__remote_log_metadata", "rlmm.config.remote.log.metadata.topic.replication.factor"),
    ("heartbeats", "heartbeats.topic.replication.factor"),
    ("west.checkpoints.internal", "checkpoints.topic.replication.factor"),
    ("mm2-offset-syncs.east.internal", "offset-syncs.topic.replication.factor"),
    ("mm2-offsets.west.internal", "{config,offset,status}.storage.replication.factor"),
    ("mirrormaker2-cluster-configs", "{config,offset,status}.storage.replication.factor"),
    ("west.orders", "replication.factor"),
    ("west.heartbeats", "replication.factor"),
    ("__CruiseControlMetrics", "cruise.control.metrics.topic.replication.factor"),
    ("strimzi.cruisecontrol.metrics", "cruise.control.metrics.topic.replication.factor"),
    ("__KafkaCruiseControlPartitionMetricSamples", "sample.store.topic.replication.factor"),
    ("__KafkaCruiseControlModelTrainingSamples", "sample.store.topic.replication.factor"),
    ("strimzi.cruisecontrol.modeltrainingsamples", "sample.store.topic.replication.factor"),
    ("_confluent-ksql-default__command_topic", "ksql.internal.topic.replicas"),
    ("default_ksql_processing_log", "ksql.logging.processing.topic.replication.factor"),
    (
        "_confluent-ksql-default_query_CTAS_SUMS_3-Aggregate-changelog",
        "ksql.streams.replication.factor",
    ),
    ("shop-totals-changelog", "replication.factor"),
    ("shop-KSTREAM-KEY-SELECT-0000000002-repartition", "replication.factor"),
    ("shop-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic", "replication.factor"),
    ("_schemas", "kafkastore.topic.replication.factor"),
    ("docker-connect-status", "{config,offset,status}.storage.replication.factor"),
    ("debezium_offsets", "{config,offset,status}.storage.replication.factor"),
    ("__debezium-heartbeat.shop", "topic.creation.default.replication.factor"),
    ("schema-changes.inventory", "default.replication.factor"),
    ("_confluent-metrics", "confluent.metrics.reporter.topic.replicas"),
    ("_confluent-balancer_api_state", "the component's own topic.replication.factor"),
]
USERS_OWN = [
    "orders",
    "device-connect-user-status",
    "connection-status",
    "schemas",
    "cruisecontrol.metrics",
    "east.orders",
    "westward.orders",
    "changelog",
]


@pytest.mark.parametrize(("topic", "option"), KNOWN)
def test_a_topic_is_known_by_its_name(topic: str, option: str) -> None:
    """The option that gives such topics their replicas is in the advice."""
    owner = owner_of(topic, {topic, *MIRROR})
    assert owner is not None
    assert owner.option.startswith(option)
    assert option in owner.advice


def test_every_row_is_met() -> None:
    """Each row of the table has an example here, its source, and a name of its own."""
    met = {owner_of(topic, {topic, *MIRROR}) for topic, _ in KNOWN}
    assert met == {*OWNERS, MIRRORED}
    assert all(owner.source.startswith("https://") for owner in met if owner)


@pytest.mark.parametrize("topic", USERS_OWN)
def test_other_names_are_users_own(topic: str) -> None:
    """No row takes a name that anyone may give; beside MirrorMaker only its alias counts."""
    assert owner_of(topic, {topic, *MIRROR}) is None
    assert owner_of("heartbeats", {"heartbeats", "orders"}) is None


@pytest.mark.parametrize("topic", ["connect-offsets", "_schemas", "__share_group_state"])
def test_the_remedy_names_the_option(topic: str) -> None:
    """Of one replica, and of as many as the min ISR; a user's topic gets no such advice."""
    owner = owner_of(topic)
    assert owner is not None
    for checked in (with_min_isr(1, ONE, name=topic), with_min_isr(3, name=topic)):
        (told,) = findings_of_topic(checked, Cluster(SIX, (checked,)), "4.2")
        assert told.remedy == f"{told.rule.remedy} {owner.advice}"
        assert told.to_dict()["remedy"] == told.remedy
    other = with_min_isr(3)
    (told,) = findings_of_topic(other, Cluster(SIX, (other,)), "4.2")
    assert told.remedy == told.rule.remedy


SAMPLES = "strimzi.cruisecontrol.modeltrainingsamples"
CRUISE_CONTROL = """\
Topic: strimzi.cruisecontrol.metrics	TopicId: 6oLZ9y1xSfqF1z6Qv8E8Uw	PartitionCount: 1	\
ReplicationFactor: 3	Configs: min.insync.replicas=2,retention.ms=18000000
	Topic: strimzi.cruisecontrol.metrics	Partition: 0	Leader: 2	Replicas: 2,0,1	Isr: 2,0,1
Topic: strimzi.cruisecontrol.modeltrainingsamples	TopicId: sWkYd0u8Q6e3YwJr7n3m1A	\
PartitionCount: 1	ReplicationFactor: 2	Configs: min.insync.replicas=2,retention.ms=3600000
	Topic: strimzi.cruisecontrol.modeltrainingsamples	Partition: 0	Leader: 2	\
Replicas: 2,0	Isr: 2,0
"""


def test_cruise_controls_samples_are_not_a_users_topic() -> None:
    """RF 2 with min ISR 2 stops writes: its own option, and no number of an assumed load.

    As in strimzi/strimzi-kafka-operator#9469.
    """
    told = audit(load_cluster(CRUISE_CONTROL), "three_az_cloud")
    (equal,) = [found for found in told.findings if found.code == "KRA102"]
    assert equal.topic == SAMPLES
    assert "sample.store.topic.replication.factor, in cruisecontrol.properties" in equal.remedy
    assert "KRA402" not in {found.code for found in told.findings}


MIRRORING = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: target}
spec:
  kafka: {version: 3.5.0, replicas: 3, config: {min.insync.replicas: 2}}
  zookeeper: {replicas: 3}
"""
TOPIC = """\
---
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaTopic
metadata: {name: NAME}
spec: {partitions: 1, replicas: 1}
"""


def test_mirrored_topics_need_replicas_not_brokers() -> None:
    """RF 1 under min ISR 2 before 3.7: more replicas and MirrorMaker's options; no broker is out.

    As in strimzi/strimzi-kafka-operator#8696.
    """
    names = ("heartbeats", "west.checkpoints.internal", "west.orders")
    cluster = load_cluster(MIRRORING + "".join(TOPIC.replace("NAME", name) for name in names))
    told = audit(cluster, "three_az_cloud").findings
    remedies = {(found.code, found.topic): found.remedy for found in told}
    for name in names:
        assert "No broker has to come back" in remedies["KRA106", name]
        assert "rack" not in remedies["KRA106", name]
    assert " heartbeats.topic.replication.factor," in remedies["KRA205", "heartbeats"]
    assert " checkpoints.topic.replication.factor," in remedies["KRA205", names[1]]
    assert " replication.factor, in the source connector" in remedies["KRA204", "west.orders"]
    assert "auto.create.topics.enable" not in remedies["KRA204", "west.orders"]
    assert "KRA402" not in {found.code for found in told}


def test_a_number_of_records_needs_a_load() -> None:
    """Without one the share of failing sends is said, and the share of losses of whole logs."""
    topic = with_min_isr(3)
    cluster = Cluster(SIX, (topic,))
    assumed = audit(cluster, "three_az_cloud")
    given = audit(cluster, "three_az_cloud", Workload(records_per_second=1000.0))
    details = [
        next(found.detail for found in told.findings if found.code == "KRA402")
        for told in (assumed, given)
    ]
    assert "failed sends a year" not in details[0]
    assert "failed sends a year" in details[1]
    sizes = [told.quick_verdict.actions[0].loss_size for told in (assumed, given)]
    assert sizes[0].records_per_loss is None
    assert sizes[1].records_per_loss > 0
    assert sizes[0].share_of_whole_logs == pytest.approx(sizes[1].share_of_whole_logs)


@pytest.mark.parametrize(("version", "groups"), [("4.1", False), ("4.2", True), (None, False)])
def test_share_groups_need_brokers_too(version: str | None, groups: bool) -> None:
    """From 4.2 on their topic is created at first use, with three replicas."""
    topic = with_min_isr(1, ONE)
    cluster = Cluster({1: "a", 4: "b"}, (topic,), kafka_version=version)
    (told,) = [found for found in findings_of(cluster) if found.code == "KRA208"]
    assert ("__share_group_state" in told.detail) == groups


def test_unclean_election_may_leave_consumers_hanging() -> None:
    """What lacks the end of a transaction stops those who read committed records: KAFKA-20716."""
    topic = with_min_isr(1, ONE)
    told = findings_of_topic(topic, Cluster(SIX, (topic,)), "0.10.2")
    (unclean,) = [found for found in told if found.code == "KRA302"]
    assert "KAFKA-20716" in unclean.rule.why
    assert "kafka-transactions.sh" in unclean.remedy
