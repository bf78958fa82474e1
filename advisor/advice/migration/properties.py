"""Properties files of producers and brokers, and Strimzi resources of topics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from advisor.formatting import as_given
from advisor.parsing import whole_number
from advisor.protocol.rules.config import Config, outlasts_default
from advisor.protocol.rules.versions import parse_version
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.workload import Workload
from advisor.rendering import (
    FileText,
    Properties,
    Yaml,
    joined,
    properties,
    property_comments,
    yaml_comments,
    yaml_document,
)

SERVER_PROPERTIES = "server.properties"
_BUFFER_MEMORY = 33_554_432
IDEMPOTENCE = (0, 11)
"""First version with idempotent producers."""
_RFC_1123 = "abcdefghijklmnopqrstuvwxyz0123456789-."


def producer_files(config: Config, load: Workload) -> dict[str, FileText]:
    """Return `producer.properties` (Java) and `librdkafka.properties` by name."""
    return {
        "producer.properties": joined(java_producer(config), _memory(config, load)),
        "librdkafka.properties": librdkafka_producer(config),
    }


def _memory(config: Config, load: Workload) -> Properties:
    """Return as comments the memory that a timeout above the default needs, if any."""
    waits = (config.delivery_timeout_ms or 0) / 1000.0
    size = math.ceil(load.records_per_second * load.record_bytes * waits)
    if not outlasts_default(config) or size <= _BUFFER_MEMORY:
        return property_comments([])
    return property_comments(
        [
            f"What is written in {as_given(waits)} s must fit into the producer's memory, or "
            "send() blocks for",
            "max.block.ms (60 s by default) and fails. One producer that writes the whole load "
            "needs",
            f"buffer.memory={size} ({in_bytes(size)}), and a heap for it; n producers an n-th "
            "each.",
            f"The default is {_BUFFER_MEMORY}.",
        ]
    )


def java_producer(config: Config) -> Properties:
    """Return a Java producer's properties."""
    head = [f"Java producer, Kafka {config.kafka_version}"]
    if parse_version(config.kafka_version) < IDEMPOTENCE and in_flight(config) == 1:
        head += _ONE_IN_FLIGHT
    return joined(property_comments(head), properties(java_settings(config)))


def java_settings(config: Config) -> dict[str, str]:
    """Return a Java producer's settings by name.

    `enable.idempotence=true` is explicit where possible: a conflicting setting is then an error,
    while the default is silently switched off (KIP-679, KAFKA-13598).
    """
    settings: dict[str, object] = {"acks": config.acks}
    if config.retries is not None:
        settings["retries"] = config.retries
    if config.delivery_timeout_ms is not None:
        settings["delivery.timeout.ms"] = config.delivery_timeout_ms
        settings["request.timeout.ms"] = config.request_timeout_ms
        settings["linger.ms"] = config.linger_ms
    for name in ("retry_backoff_ms", "retry_backoff_max_ms"):
        if name in config.explicit:
            settings[name.replace("_", ".")] = getattr(config, name)
    explicit = "enable_idempotence" in config.explicit
    if idempotent(config):
        settings["enable.idempotence"] = "true"
    elif explicit and parse_version(config.kafka_version) >= IDEMPOTENCE:
        settings["enable.idempotence"] = "false"
    settings["max.in.flight.requests.per.connection"] = in_flight(config)
    return {name: str(value) for name, value in settings.items()}


def librdkafka_producer(config: Config) -> Properties:
    """Return the properties for librdkafka and clients built on it (Python, Go, .NET).

    Its defaults and ranges differ from the Java producer's (CONFIGURATION.md of 2.16).
    """
    settings: dict[str, object] = {"acks": config.acks}
    safe = idempotent(config)
    if safe:
        settings["enable.idempotence"] = "true"
    most_in_flight = 5 if safe else 1_000_000
    settings["max.in.flight.requests.per.connection"] = min(in_flight(config), most_in_flight)
    if config.delivery_timeout_ms is not None:
        settings["delivery.timeout.ms"] = max(1, config.delivery_timeout_ms)
    if config.retries is not None:
        settings["retries"] = config.retries
    for name in ("retry_backoff_ms", "retry_backoff_max_ms"):
        if name in config.explicit:
            value = min(max(1, getattr(config, name)), 300_000)
            settings[name.replace("_", ".")] = value
    head = "librdkafka (confluent-kafka for Python, Go and .NET)"
    return joined(property_comments([head]), properties(settings))


def idempotent(config: Config) -> bool:
    """Whether idempotence is possible and not explicitly disabled."""
    if "enable_idempotence" in config.explicit:
        return bool(config.enable_idempotence)
    possible = config.acks == "all" and config.retries != 0
    return possible and parse_version(config.kafka_version) >= IDEMPOTENCE


def in_flight(config: Config) -> int:
    """Return max.in.flight within what idempotence allows (1 in 0.11, then 5).

    Before 0.11 there is no idempotence (KIP-98): with several requests in flight a retry can
    overtake a later batch, so that one is the answer unless another number is stated.
    """
    configured = config.max_in_flight_requests_per_connection
    version = parse_version(config.kafka_version)
    if idempotent(config):
        return min(configured or 5, 5 if version >= (1, 0) else 1)
    is_set = "max_in_flight_requests_per_connection" in config.explicit
    if version < IDEMPOTENCE and config.retries != 0 and not is_set:
        return 1
    return configured or 5


_ONE_IN_FLIGHT = (
    "Without idempotence (0.11 and newer) a retry keeps the order of records only with one",
    "request in flight, and it can write a record twice.",
)


def broker_properties(config: Config, racks: bool = False) -> Properties:
    """Return the lines of `server.properties` that future topics need, for every broker.

    With eligible leader replicas, Kafka ignores `min.insync.replicas` in this file (KIP-966). With
    several racks a comment says how consumers fetch from their own (KIP-392).
    """
    version = parse_version(config.kafka_version)
    factor, min_isr = config.replication_factor, config.min_insync_replicas
    settings = {"default.replication.factor": factor, "offsets.topic.replication.factor": factor}
    if version >= (0, 11):
        settings["transaction.state.log.replication.factor"] = factor
        settings["transaction.state.log.min.isr"] = min_isr
    if version >= (4, 1):
        settings["share.coordinator.state.topic.replication.factor"] = factor
        settings["share.coordinator.state.topic.min.isr"] = min_isr
    below = [*_NO_TOPICS_BY_MISTAKE]
    if racks and version >= (2, 4):
        below += _FETCH_FROM_OWN_RACK
    head = (
        f"For server.properties of every broker, Kafka {config.kafka_version}.",
        "It holds for topics made after their restart and changes none that exists.",
    )
    return joined(property_comments(head), properties(settings), property_comments(below))


_NO_TOPICS_BY_MISTAKE = (
    "With this, a client that names a topic that does not exist no longer creates it. Leave it",
    "out where topics are meant to be created that way:",
    "auto.create.topics.enable=false",
)
_FETCH_FROM_OWN_RACK = (
    "With this, consumers with client.rack fetch from a replica in their own rack (KIP-392).",
    "It saves traffic between racks, and changes neither what is lost nor what is refused:",
    "replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
)


FLUSH_EVERY_SECOND = (
    "To flush every second, which costs throughput, put this into server.properties of every",
    "broker and restart one broker after another; kafka-configs.sh cannot set it:",
    "  log.flush.scheduler.interval.ms=1000",
    "It holds for every topic, unless log.flush.interval.ms is set. To flush some topics only,",
    "also put this there, and set flush.ms=1000 on each of them; alone flush.ms does nothing:",
    "  log.flush.interval.ms=9223372036854775807",
)
"""How to flush every second, for comments.

The task that flushes runs every `log.flush.scheduler.interval.ms`, by default never, and flushes
what is older than `flush.ms`. The brokers' default for that is `log.flush.interval.ms`, which is
that of the scheduler where it is not set (`LogManager.flushDirtyLogs`, 0.8.1 to 4.x).
"""


def strimzi_topics(
    topics: Sequence[tuple[str, int]],
    config: Config | Mapping[str, Config],
    settings: Mapping[str, Mapping[str, str]] | None = None,
) -> Yaml:
    """Return Strimzi `KafkaTopic` resources for (name, partitions).

    A name that Kubernetes refuses goes into `spec.topicName`. Strimzi changes `replicas` of an
    existing topic only through Cruise Control.

    settings: topic name to its options other than `min.insync.replicas`. Strimzi's topic operator
        removes options that a resource does not name (`BatchingTopicController`, 2026).
    """
    documents = []
    used_names: dict[str, int] = {}
    for name, partitions in topics:
        resource = _resource_name(name, used_names)
        options: dict[str, object] = {
            key: _scalar(text) for key, text in (settings or {}).get(name, {}).items()
        }
        target = config if isinstance(config, Config) else config[name]
        options["min.insync.replicas"] = target.min_insync_replicas
        documents.append(_strimzi_topic(resource, name, partitions, target, options))
    resources = (yaml_document(document, begins=True) for document in documents)
    return joined(yaml_comments(_STRIMZI_HEAD), *resources)


_STRIMZI_HEAD = (
    "Set strimzi.io/cluster to the name of your Kafka resource. An older Strimzi wants",
    "apiVersion: kafka.strimzi.io/v1beta2. The operator takes settings away that are not",
    "here: add those of your topics that the description did not show. It also takes back",
    "what kafka-configs.sh sets on a topic that it manages, and changes replicas of a topic",
    "that exists only with Cruise Control. So first move replicas with commands.sh, then",
    "apply this in place of its kafka-configs.sh lines. Kafka's internal topics are not",
    "here: deleting their resource would delete the topic.",
)


def _scalar(text: str) -> str | int | bool:
    """Return a setting as a YAML scalar: numbers and booleans unquoted."""
    if text in ("true", "false"):
        return text == "true"
    number = whole_number(text)
    return text if number is None else number


def _resource_name(topic: str, used_names: dict[str, int]) -> str:
    """Return a valid Kubernetes name for the topic that is not in `used_names`, and add it."""
    plain = "".join(c if c in _RFC_1123 else "-" for c in topic.lower())
    # Each label between dots must begin and end with a letter or digit.
    labels = (label.strip("-") for label in plain.split("."))
    plain = ".".join(label for label in labels if label) or "topic"
    name = plain
    while name in used_names:
        # The last number that was tried.
        used_names[plain] += 1
        name = f"{plain}-{used_names[plain]}"
    used_names[name] = 1
    return name


def _strimzi_topic(
    resource: str, name: str, partitions: int, config: Config, settings: Mapping[str, object]
) -> dict[str, object]:
    spec: dict[str, object] = {} if resource == name else {"topicName": name}
    spec["partitions"] = partitions
    spec["replicas"] = config.replication_factor
    spec["config"] = dict(settings)
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaTopic",
        "metadata": {"name": resource, "labels": {"strimzi.io/cluster": "my-cluster"}},
        "spec": spec,
    }
