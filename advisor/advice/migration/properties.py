"""Properties files of producers and brokers, and Strimzi resources of topics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import yaml

from advisor.formatting import as_given
from advisor.parsing import whole_number
from advisor.protocol.rules.config import Config, outlasts_default
from advisor.protocol.rules.versions import parse_version
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.workload import Workload

# That of libyaml is ten times as fast, and writes the same but for folded lines.
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_ANY_WIDTH = 1_000_000
SERVER_PROPERTIES = "server.properties"
_BUFFER_MEMORY = 33_554_432
IDEMPOTENCE = (0, 11)
"""First version with idempotent producers."""
_RFC_1123 = "abcdefghijklmnopqrstuvwxyz0123456789-."


def producer_files(config: Config, load: Workload) -> dict[str, str]:
    """Return `producer.properties` (Java) and `librdkafka.properties` by name."""
    return {
        "producer.properties": java_producer(config) + _memory(config, load),
        "librdkafka.properties": librdkafka_producer(config),
    }


def _memory(config: Config, load: Workload) -> str:
    """Return as a comment the memory that a timeout above the default needs; "" for none."""
    waits = (config.delivery_timeout_ms or 0) / 1000.0
    needed = math.ceil(load.records_per_second * load.record_bytes * waits)
    if not outlasts_default(config) or needed <= _BUFFER_MEMORY:
        return ""
    return (
        f"# What is written in {as_given(waits)} s must fit into the producer's memory, or send() "
        "blocks for\n"
        "# max.block.ms (60 s by default) and fails. One producer that writes the whole load "
        "needs\n"
        f"# buffer.memory={needed} ({in_bytes(needed)}), and a heap for it; n producers an n-th "
        "each.\n"
        f"# The default is {_BUFFER_MEMORY}.\n"
    )


def java_producer(config: Config) -> str:
    """Return a Java producer's properties.

    `enable.idempotence=true` is explicit where possible: a conflicting setting is then an error,
    while the default is silently switched off (KIP-679, KAFKA-13598).
    """
    version = parse_version(config.kafka_version)
    lines = [f"acks={config.acks}"]
    if config.retries is not None:
        lines.append(f"retries={config.retries}")
    if config.delivery_timeout_ms is not None:
        lines.append(f"delivery.timeout.ms={config.delivery_timeout_ms}")
        lines.append(f"request.timeout.ms={config.request_timeout_ms}")
        lines.append(f"linger.ms={config.linger_ms}")
    for name in ("retry_backoff_ms", "retry_backoff_max_ms"):
        if name in config.explicit:
            lines.append(f"{name.replace('_', '.')}={getattr(config, name)}")
    if idempotent(config):
        lines.append("enable.idempotence=true")
    elif "enable_idempotence" in config.explicit and version >= IDEMPOTENCE:
        lines.append("enable.idempotence=false")
    lines.append(f"max.in.flight.requests.per.connection={in_flight(config)}")
    head = f"# Java producer, Kafka {config.kafka_version}\n"
    if version < IDEMPOTENCE and in_flight(config) == 1:
        head += _ONE_IN_FLIGHT
    return head + "".join(f"{x}\n" for x in lines)


def librdkafka_producer(config: Config) -> str:
    """Return the properties for librdkafka and clients built on it (Python, Go, .NET).

    Its defaults differ from the Java producer's: no idempotence, a million requests in flight,
    300 s to deliver, unlimited retries. delivery.timeout.ms 0 means no limit, and its ranges are
    narrower (CONFIGURATION.md of 2.16).
    """
    lines = [f"acks={config.acks}"]
    safe = idempotent(config)
    if safe:
        lines.append("enable.idempotence=true")
    most = 5 if safe else 1_000_000
    lines.append(f"max.in.flight.requests.per.connection={min(in_flight(config), most)}")
    if config.delivery_timeout_ms is not None:
        lines.append(f"delivery.timeout.ms={max(1, config.delivery_timeout_ms)}")
    if config.retries is not None:
        lines.append(f"retries={config.retries}")
    for name in ("retry_backoff_ms", "retry_backoff_max_ms"):
        if name in config.explicit:
            value = min(max(1, getattr(config, name)), 300_000)
            lines.append(f"{name.replace('_', '.')}={value}")
    return "# librdkafka (confluent-kafka for Python, Go and .NET)\n" + "".join(
        f"{x}\n" for x in lines
    )


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
    stated = "max_in_flight_requests_per_connection" in config.explicit
    if version < IDEMPOTENCE and config.retries != 0 and not stated:
        return 1
    return configured or 5


_ONE_IN_FLIGHT = (
    "# Without idempotence (0.11 and newer) a retry keeps the order of records only with one\n"
    "# request in flight, and it can write a record twice.\n"
)


def broker_properties(config: Config, racks: bool = False) -> str:
    """Return the lines of `server.properties` that future topics need, for every broker.

    With eligible leader replicas, Kafka ignores `min.insync.replicas` in this file (KIP-966). With
    several racks a comment says how consumers fetch from their own (KIP-392).
    """
    version = parse_version(config.kafka_version)
    factor, min_isr = config.replication_factor, config.min_insync_replicas
    lines = [f"default.replication.factor={factor}", f"offsets.topic.replication.factor={factor}"]
    if version >= (0, 11):
        lines += [
            f"transaction.state.log.replication.factor={factor}",
            f"transaction.state.log.min.isr={min_isr}",
        ]
    if version >= (4, 1):
        lines += [
            f"share.coordinator.state.topic.replication.factor={factor}",
            f"share.coordinator.state.topic.min.isr={min_isr}",
        ]
    lines += _NO_TOPICS_BY_MISTAKE
    if racks and version >= (2, 4):
        lines += _FETCH_FROM_OWN_RACK
    head = f"# For server.properties of every broker, Kafka {config.kafka_version}.\n"
    head += "# It holds for topics made after their restart and changes none that exists.\n"
    return head + "".join(f"{line}\n" for line in lines)


_NO_TOPICS_BY_MISTAKE = (
    "# With this, a client that names a topic that does not exist no longer creates it. Leave it",
    "# out where topics are meant to be created that way:",
    "# auto.create.topics.enable=false",
)
_FETCH_FROM_OWN_RACK = (
    "# With this, consumers with client.rack fetch from a replica in their own rack (KIP-392).",
    "# It saves traffic between racks, and changes neither what is lost nor what is refused:",
    "# replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector",
)


FLUSH_EVERY_SECOND = (
    "# To flush every second, which costs throughput, put this into server.properties of every",
    "# broker and restart one broker after another; kafka-configs.sh cannot set it:",
    "#   log.flush.scheduler.interval.ms=1000",
    "# It holds for every topic, unless log.flush.interval.ms is set. To flush some topics only,",
    "# also put this there, and set flush.ms=1000 on each of them; alone flush.ms does nothing:",
    "#   log.flush.interval.ms=9223372036854775807",
)
"""How to flush every second, as comments.

The task that flushes runs every `log.flush.scheduler.interval.ms`, by default never, and flushes
what is older than `flush.ms`. The brokers' default for that is `log.flush.interval.ms`, which is
that of the scheduler where it is not set (`LogManager.flushDirtyLogs`, 0.8.1 to 4.x).
"""


def strimzi_topics(
    topics: Sequence[tuple[str, int]],
    config: Config | Mapping[str, Config],
    settings: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """Return Strimzi `KafkaTopic` resources for (name, partitions).

    A name that Kubernetes refuses goes into `spec.topicName`. Strimzi changes `replicas` of an
    existing topic only through Cruise Control.

    Parameters
    ----------
    topics : sequence of (str, int)
        Name and number of partitions of each topic.
    config : Config or mapping of str to Config
        Of all topics, or by the topic's name.
    settings : mapping of str to mapping, optional
        Topic name to its options other than `min.insync.replicas`. Strimzi's topic operator removes
        options that a resource does not name (`BatchingTopicController`, 2026).
    """
    documents = []
    taken: dict[str, int] = {}
    for name, partitions in topics:
        resource = _resource_name(name, taken)
        stated: dict[str, object] = {
            key: _scalar(text) for key, text in (settings or {}).get(name, {}).items()
        }
        target = config if isinstance(config, Config) else config[name]
        stated["min.insync.replicas"] = target.min_insync_replicas
        documents.append(_strimzi_topic(resource, name, partitions, target, stated))
    head = (
        "# Set strimzi.io/cluster to the name of your Kafka resource. An older Strimzi wants\n"
        "# apiVersion: kafka.strimzi.io/v1beta2. The operator takes settings away that are not\n"
        "# here: add those of your topics that the description did not show. It also takes back\n"
        "# what kafka-configs.sh sets on a topic that it manages, and changes replicas of a topic\n"
        "# that exists only with Cruise Control. So first move replicas with commands.sh, then\n"
        "# apply this in place of its kafka-configs.sh lines. Kafka's internal topics are not\n"
        "# here: deleting their resource would delete the topic.\n"
    )
    return head + "".join(f"---\n{yaml_text(each)}" for each in documents)


def yaml_text(document: Mapping[str, object]) -> str:
    """Return a document as YAML, its keys in their order and no line folded."""
    text: str = yaml.dump(document, Dumper=_DUMPER, sort_keys=False, width=_ANY_WIDTH)
    return text


def _scalar(text: str) -> str | int | bool:
    """Return a setting as a YAML scalar: numbers and booleans unquoted."""
    if text in ("true", "false"):
        return text == "true"
    number = whole_number(text)
    return text if number is None else number


def _resource_name(topic: str, taken: dict[str, int]) -> str:
    """Return a valid Kubernetes name for the topic that is not in `taken`, and put it there."""
    plain = "".join(c if c in _RFC_1123 else "-" for c in topic.lower())
    # Each label between dots must begin and end with a letter or digit.
    labels = (label.strip("-") for label in plain.split("."))
    plain = ".".join(label for label in labels if label) or "topic"
    name = plain
    while name in taken:
        # The last number that was tried.
        taken[plain] += 1
        name = f"{plain}-{taken[plain]}"
    taken[name] = 1
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
