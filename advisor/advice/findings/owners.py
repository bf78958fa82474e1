"""Who creates topics of some name, and the option that says with how many replicas.

One table for Kafka's internal topics and for those of the frameworks around it. Names and options
are those of the sources that each row names. Users may rename most topics; a topic that no row
knows is taken for a user's own.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property

_KAFKA_DOCS = "https://kafka.apache.org/documentation/"
_KAFKA = "https://github.com/apache/kafka/blob/trunk/"
_MIRROR = f"{_KAFKA}connect/mirror/src/main/java/org/apache/kafka/connect/mirror/"
_CRUISE_CONTROL = "https://github.com/linkedin/cruise-control/blob/main/"
_KSQL_DOCS = "https://docs.ksqldb.io/en/latest/reference/server-configuration/"
_SERVER = "server.properties of every broker (with Strimzi spec.kafka.config)"
_MIRROR_MAKER = "MirrorMaker 2"


@dataclass(frozen=True)
class Owner:
    """Who creates topics of some name, and where the replicas of new ones are set.

    topics: pattern of the names of its topics, matched as a whole.
    option: sets the replication factor of topics to come; no topic that exists follows it.
    usual: what it is unless set: a number, or what it is taken from.
    min_isr_option: sets the min ISR of topics to come; "" if nothing but the brokers' default does.
    beside: for names that anyone may use: pattern of another topic that must exist; "" for none.
    """

    name: str
    topics: str
    option: str
    where: str
    usual: str
    source: str
    min_isr_option: str = ""
    note: str = ""
    beside: str = ""

    def knows(self, topic: str, topics: Iterable[str]) -> bool:
        """Whether a topic of a cluster with these topics is one of its own, by its name."""
        if not self.pattern.fullmatch(topic):
            return False
        return not self.beside or any(re.fullmatch(self.beside, name) for name in topics)

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.topics)

    @property
    def advice(self) -> str:
        """Where to set the replicas of topics to come, in a few sentences."""
        min_isr = f", its min ISR from {self.min_isr_option}" if self.min_isr_option else ""
        replicas = (
            f"{self.name}: a new topic of this kind takes its replicas from {self.option}{min_isr}"
            f", in {self.where}. Set 3 replicas there (default: {self.usual}); an existing topic "
            "does not follow."
        )
        return " ".join(filter(None, [replicas, self.note]))


OWNERS = (
    Owner(
        "Kafka's consumer groups",
        "__consumer_offsets",
        "offsets.topic.replication.factor",
        _SERVER,
        "3",
        f"{_KAFKA_DOCS}#brokerconfigs_offsets.topic.replication.factor",
    ),
    Owner(
        "Kafka's transactions",
        "__transaction_state",
        "transaction.state.log.replication.factor",
        _SERVER,
        "3",
        f"{_KAFKA_DOCS}#brokerconfigs_transaction.state.log.replication.factor",
        min_isr_option="transaction.state.log.min.isr",
    ),
    Owner(
        "Kafka's share groups",
        "__share_group_state",
        "share.coordinator.state.topic.replication.factor",
        _SERVER,
        "3",
        f"{_KAFKA_DOCS}#brokerconfigs_share.coordinator.state.topic.replication.factor",
        min_isr_option="share.coordinator.state.topic.min.isr",
        note="It holds what share groups (4.2) have delivered and not yet seen acknowledged.",
    ),
    Owner(
        "Kafka's tiered storage",
        "__remote_log_metadata",
        "rlmm.config.remote.log.metadata.topic.replication.factor",
        _SERVER,
        "3",
        f"{_KAFKA}storage/src/main/java/org/apache/kafka/server/log/remote/metadata/storage/"
        "TopicBasedRemoteLogMetadataManagerConfig.java",
        min_isr_option="rlmm.config.remote.log.metadata.topic.min.isr, 4.3 and newer: KIP-1235",
        note="It is kept forever: what it loses is uploaded and can no longer be found. Before 4.3 "
        "it gets the brokers' min.insync.replicas; set 2 on the topic.",
    ),
    Owner(
        _MIRROR_MAKER,
        "heartbeats",
        "heartbeats.topic.replication.factor",
        "the heartbeat connector's settings (with Strimzi heartbeatConnector.config)",
        "3",
        f"{_MIRROR}MirrorHeartbeatConfig.java",
        beside=r".+\.checkpoints\.internal|mm2-.+\.internal|mirrormaker2-cluster-.+|.+\.heartbeats",
    ),
    Owner(
        _MIRROR_MAKER,
        r".+\.checkpoints\.internal",
        "checkpoints.topic.replication.factor",
        "the checkpoint connector's settings (with Strimzi checkpointConnector.config)",
        "3",
        f"{_MIRROR}MirrorCheckpointConfig.java",
    ),
    Owner(
        _MIRROR_MAKER,
        r"mm2-offset-syncs\..+\.internal",
        "offset-syncs.topic.replication.factor",
        "the source connector's settings (with Strimzi sourceConnector.config)",
        "3",
        f"{_MIRROR}MirrorSourceConfig.java",
    ),
    Owner(
        _MIRROR_MAKER,
        r"mm2-(configs|offsets|status)\..+\.internal"
        r"|mirrormaker2-cluster-(configs|offsets|status)",
        "{config,offset,status}.storage.replication.factor",
        "the settings of its Connect workers (with Strimzi the target cluster's config)",
        "3",
        f"{_KAFKA_DOCS}#connectconfigs_config.storage.replication.factor",
    ),
    Owner(
        "Cruise Control's metrics reporter",
        r"__CruiseControlMetrics|strimzi\.cruisecontrol\.metrics",
        "cruise.control.metrics.topic.replication.factor",
        _SERVER,
        "the brokers' default",
        f"{_CRUISE_CONTROL}cruise-control-metrics-reporter/src/main/java/com/linkedin/kafka/"
        "cruisecontrol/metricsreporter/CruiseControlMetricsReporterConfig.java",
        min_isr_option="cruise.control.metrics.topic.min.insync.replicas",
    ),
    Owner(
        "Cruise Control's sample store",
        r"__KafkaCruiseControl.+"
        r"|strimzi\.cruisecontrol\.(partitionmetricsamples|modeltrainingsamples)",
        "sample.store.topic.replication.factor",
        "cruisecontrol.properties (with Strimzi spec.cruiseControl.config)",
        "2",
        f"{_CRUISE_CONTROL}cruise-control/src/main/java/com/linkedin/kafka/cruisecontrol/monitor/"
        "sampling/KafkaSampleStore.java",
    ),
    Owner(
        "ksqlDB",
        r"_confluent-ksql-.+__command_topic",
        "ksql.internal.topic.replicas",
        "ksql-server.properties",
        "1",
        f"{_KSQL_DOCS}#ksqlinternaltopicreplicas",
        min_isr_option="ksql.internal.topic.min.insync.replicas",
        note="It holds every statement: without it no stream or table comes back.",
    ),
    Owner(
        "ksqlDB",
        r".*ksql_processing_log",
        "ksql.logging.processing.topic.replication.factor",
        "ksql-server.properties",
        "1",
        f"{_KSQL_DOCS}#ksqlloggingprocessingtopicreplicationfactor",
    ),
    Owner(
        "ksqlDB",
        r"_confluent-ksql-.+",
        "ksql.streams.replication.factor",
        "ksql-server.properties",
        "what Kafka Streams uses",
        f"{_KSQL_DOCS}#ksqlstreamsreplicationfactor",
        min_isr_option="ksql.streams.topic.min.insync.replicas",
    ),
    Owner(
        "Kafka Streams",
        r".+-(changelog|repartition)|.+-subscription-(registration|response)-topic"
        r"|.+-KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-\d+-topic",
        "replication.factor",
        "the application's StreamsConfig",
        "the brokers' default (-1; before 3.0: 1)",
        f"{_KAFKA_DOCS}#streamsconfigs_replication.factor",
        min_isr_option="topic.min.insync.replicas",
    ),
    Owner(
        "Schema Registry",
        r"_schemas|_schema_encoders",
        "kafkastore.topic.replication.factor",
        "schema-registry.properties",
        "3",
        "https://docs.confluent.io/platform/current/schema-registry/installation/config.html",
        note="It holds every schema: without it consumers cannot read what was written with one.",
    ),
    Owner(
        "Kafka Connect",
        r"((.+[-._])?connect([-._]cluster([-._]\d+)?)?|(.+[-._])?debezium)"
        r"[-._](configs?|offsets?|status(es)?)",
        "{config,offset,status}.storage.replication.factor",
        "connect-distributed.properties (with Strimzi spec.config of KafkaConnect)",
        "3",
        f"{_KAFKA_DOCS}#connectconfigs_config.storage.replication.factor",
    ),
    Owner(
        "Debezium",
        r"__debezium-heartbeat\..+",
        "topic.creation.default.replication.factor",
        "the connector's settings (Connect 2.6 and newer)",
        "the brokers' default.replication.factor",
        "https://debezium.io/documentation/reference/stable/configuration/"
        "topic-auto-create-config.html",
    ),
    Owner(
        "Debezium",
        r"(schema-?changes|schema-?history|db-?history)[-._].+",
        "default.replication.factor",
        _SERVER,
        "1",
        "https://github.com/debezium/debezium/blob/main/debezium-storage/debezium-storage-kafka/"
        "src/main/java/io/debezium/storage/kafka/history/KafkaSchemaHistory.java",
        note="Without its history a connector cannot restart.",
    ),
    Owner(
        "Confluent's metrics reporter",
        "_confluent-metrics",
        "confluent.metrics.reporter.topic.replicas",
        _SERVER,
        "3",
        "https://docs.confluent.io/platform/current/monitor/metrics-reporter.html",
    ),
    Owner(
        "Confluent Platform",
        r"_confluent-.+",
        "the component's own topic.replication.factor (or topic.replicas)",
        "the properties of the component that its name names",
        "3",
        "https://docs.confluent.io/platform/current/installation/configuration/broker-configs.html",
    ),
)
"""Who creates which topics; of two rows that know a name the first counts."""

MIRRORED = Owner(
    _MIRROR_MAKER,
    # Its topics have the names of another cluster's, after that cluster's alias.
    "",
    "replication.factor",
    "the source connector's settings (with Strimzi sourceConnector.config)",
    "2; -1 takes the brokers' own",
    f"{_MIRROR}MirrorSourceConfig.java",
)
"""Copies of another cluster's topics, known by the alias that MirrorMaker's own topics name."""

_OWN_OF_ALIAS = ("{}.checkpoints.internal", "mm2-configs.{}.internal", "{}.heartbeats")


def owner_of(topic: str, topics: Collection[str] = ()) -> Owner | None:
    """Return who creates a topic; None for a user's own."""
    for owner in OWNERS:
        if owner.knows(topic, topics):
            return owner
    dots = [place for place, letter in enumerate(topic) if letter == "."]
    for alias in (topic[:place] for place in dots):
        if any(form.format(alias) in topics for form in _OWN_OF_ALIAS):
            return MIRRORED
    return None
