"""JSON that Kafka writes to ZooKeeper, byte for byte, by version.

The format is that of ``kafka.zk.ZkData`` (1.1 to 3.9) and ``kafka.utils.ZkUtils`` (before); the
order of fields is the iteration order of Scala's maps (``scala_hash_order``). JSON versions:

* ``/brokers/ids/N``: 1; 2 with endpoints (0.9); 3 with rack (0.10.0, KIP-36); 4 with the listener
  security protocol map (0.10.2, KIP-103); 5 with features (2.7, KIP-584).
* ``/brokers/topics/T``: 1; 2 with adding and removing replicas (2.4, KIP-455); 3 with the topic
  id (2.8, KIP-516).
* ``/brokers/topics/T/partitions/P/state``: 1, with ``leader_recovery_state`` while recovering
  (3.2, KIP-704).
* ``/controller``: 1; 2 with the KRaft controller's epoch (3.4, KIP-866).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from advisor.errors import ConfigError
from advisor.lessons.zookeeper.scala_hash_order import (
    SCALA_2_12,
    SCALA_2_13,
    immutable_order,
    mutable_order,
)
from advisor.protocol.rules.partition_registration import Registration, Replicas
from advisor.protocol.rules.versions import Version, parse_version

_EMPTY: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """Registration of a broker.

    host: host of the plaintext listener; None, with port -1, if there is none.
    endpoints: such as ``"PLAINTEXT://host:9092"``. Empty: one plaintext listener on host and port.
    security: listener name -> security protocol. Empty: listeners are named after their protocol.
    jmx_port: -1 without JMX.
    """

    id: int
    host: str | None
    port: int
    timestamp_ms: int
    endpoints: tuple[str, ...] = ()
    security: Mapping[str, str] = field(default_factory=lambda: _EMPTY)
    jmx_port: int = -1
    rack: str | None = None


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """Partition registrations of a topic, and its id since 2.8 (22 base64 characters)."""

    name: str
    partitions: Mapping[int, Registration]
    topic_id: str | None = None


def broker_json(broker: BrokerInfo, kafka_version: str, scala: str | None = None) -> str:
    """Data of ``/brokers/ids/N``.

    kafka_version: 0.8 to 3.9.
    scala (one of "2.12", "2.13"): scala version of the broker's build. Default: that of Kafka's
        download (2.13 since 2.6).
    Raises ConfigError if the version has no ZooKeeper mode, or the broker has no listener.
    """
    version, scala = _era(kafka_version, scala)
    if broker.host is None and not broker.endpoints:
        raise ConfigError(f"broker {broker.id} has no listener; give host and port, or endpoints")
    fields: dict[str, object] = {
        "version": _broker_version(version),
        "host": broker.host,
        "port": broker.port,
    }
    if version >= (0, 9):
        fields["endpoints"] = list(
            broker.endpoints or (f"PLAINTEXT://{broker.host}:{broker.port}",)
        )
    fields |= {"jmx_port": broker.jmx_port, "timestamp": str(broker.timestamp_ms)}
    inserted = len(fields)
    if broker.rack is not None and version >= (0, 10):
        fields["rack"] = broker.rack
    if version >= (0, 10, 2):
        fields["listener_security_protocol_map"] = _security(broker)
    if version >= (2, 7):
        fields["features"] = {}
    if version >= (0, 10, 2):
        return _compact(fields, mutable_order(list(fields), scala, inserted))
    return _encoded(fields, version, scala)


def state_json(
    registration: Registration,
    controller_epoch: int,
    kafka_version: str,
    scala: str | None = None,
) -> str:
    """Data of ``/brokers/topics/T/partitions/P/state``."""
    version, scala = _era(kafka_version, scala)
    fields: dict[str, object] = {
        "version": 1,
        "leader": registration.leader,
        "leader_epoch": registration.leader_epoch,
        "controller_epoch": controller_epoch,
        "isr": list(registration.isr),
    }
    if registration.recovering and version >= (3, 2):
        fields["leader_recovery_state"] = 1
    return _encoded(fields, version, scala)


def topic_json(topic: TopicInfo, kafka_version: str, scala: str | None = None) -> str:
    """Data of ``/brokers/topics/T``: the replica assignment.

    Partitions in the same hash bucket keep the iteration order of the map they were inserted from.
    This function inserts partitions in ascending order (before 2.4: in the order of the map that
    Kafka's assignment returns). For a new topic this agrees with Kafka up to twelve partitions.
    """
    version, scala = _era(kafka_version, scala)
    rows = {str(p): topic.partitions[p] for p in sorted(topic.partitions)}
    if version < (2, 4):
        return _topic_before_reassignment_fields(rows, version, scala)

    def column(of: Mapping[str, Replicas]) -> dict[str, object]:
        filled = {key: list(replicas) for key, replicas in of.items() if replicas}
        return {key: filled[key] for key in mutable_order(list(filled), scala)}

    fields: dict[str, object] = {
        "version": 2 if version < (2, 8) else 3,
        "partitions": column({key: row.replicas for key, row in rows.items()}),
        "adding_replicas": column({key: row.adding for key, row in rows.items()}),
        "removing_replicas": column({key: row.removing for key, row in rows.items()}),
    }
    if version < (2, 8):
        return _compact(fields, list(fields))
    inserted = len(fields)
    if topic.topic_id is not None:
        fields["topic_id"] = topic.topic_id
    return _compact(fields, mutable_order(list(fields), scala, inserted))


def controller_json(
    broker: int, timestamp_ms: int, kafka_version: str, kraft_controller_epoch: int = -1
) -> str:
    """Data of ``/controller``; a KRaft controller epoch of -1 means no migration to KRaft."""
    version, scala = _era(kafka_version, None)
    fields: dict[str, object] = {
        "version": 1 if version < (3, 4) else 2,
        "brokerid": broker,
        "timestamp": str(timestamp_ms),
    }
    if version >= (3, 4):
        fields["kraftControllerEpoch"] = kraft_controller_epoch
    return _encoded(fields, version, scala)


def cluster_znodes(
    brokers: Sequence[BrokerInfo],
    topics: Sequence[TopicInfo],
    *,
    controller: BrokerInfo,
    controller_epoch: int,
    kafka_version: str,
    scala: str | None = None,
) -> dict[str, str]:
    """Return the data of a cluster's znodes by path: controller, brokers, topics, partitions."""
    znodes = {
        "/controller": controller_json(controller.id, controller.timestamp_ms, kafka_version),
        "/controller_epoch": str(controller_epoch),
    }
    for broker in brokers:
        znodes[f"/brokers/ids/{broker.id}"] = broker_json(broker, kafka_version, scala)
    for topic in topics:
        path = f"/brokers/topics/{topic.name}"
        znodes[path] = topic_json(topic, kafka_version, scala)
        for partition, registration in sorted(topic.partitions.items()):
            znodes[f"{path}/partitions/{partition}/state"] = state_json(
                registration, controller_epoch, kafka_version, scala
            )
    return znodes


def _era(kafka_version: str, scala: str | None) -> tuple[Version, str]:
    version = parse_version(kafka_version)
    if version >= (4, 0):
        raise ConfigError(f"Kafka {kafka_version} has no ZooKeeper mode; it ended with 3.9")
    chosen = scala or (SCALA_2_13 if version >= (2, 6) else SCALA_2_12)
    if chosen not in (SCALA_2_12, SCALA_2_13):
        raise ConfigError(f"scala={scala!r} is not known here; write '2.12' or '2.13'")
    return version, chosen


def _broker_version(version: Version) -> int:
    since = (((2, 7), 5), ((0, 10, 2), 4), ((0, 10), 3), ((0, 9), 2))
    return next((number for first, number in since if version >= first), 1)


def _security(broker: BrokerInfo) -> dict[str, str]:
    if broker.security:
        return {name: broker.security[name] for name in immutable_order(list(broker.security))}
    names = [endpoint.partition("://")[0] for endpoint in broker.endpoints] or ["PLAINTEXT"]
    return {name: name for name in immutable_order(names)}


def _topic_before_reassignment_fields(
    rows: Mapping[str, Registration], version: Version, scala: str
) -> str:
    """Up to four partitions keep the order of the assignment's map."""
    order = mutable_order(list(rows), SCALA_2_12, hash_code=int)
    order = immutable_order(order, scala)
    partitions = {key: list(rows[key].replicas) for key in order}
    return _encoded({"version": 1, "partitions": partitions}, version, scala)


def _encoded(fields: Mapping[str, object], version: Version, scala: str) -> str:
    if version < (0, 8, 1):
        return _spaced(fields)
    return _compact(fields, immutable_order(list(fields), scala))


def _compact(fields: Mapping[str, object], order: Sequence[str]) -> str:
    ordered = {key: fields[key] for key in order}
    return json.dumps(ordered, separators=(",", ":"), ensure_ascii=False)


def _spaced(value: object) -> str:
    """JSON of Kafka 0.8.0: sorted, with spaces inside the brackets."""
    if isinstance(value, Mapping):
        fields = sorted(f'"{key}":{_spaced(item)}' for key, item in value.items())
        return "{ " + ", ".join(fields) + " }"
    if isinstance(value, list):
        return "[ " + ", ".join(map(str, value)) + " ]"
    return json.dumps(value, ensure_ascii=False)
