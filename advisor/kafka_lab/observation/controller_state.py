"""Partition registrations and unfenced brokers, from the KRaft metadata log or ZooKeeper.

Both can be read while no broker is up, and unlike broker metadata they are never stale.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from advisor.errors import MissingExtraError
from advisor.kafka_lab.formats.log_directory import batches, segments
from advisor.kafka_lab.formats.metadata_records import (
    BrokerFencing,
    ElrClear,
    PartitionChange,
    PartitionRecord,
    Record,
    Topic,
    TopicRemoval,
    decode,
)
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.node_properties import CONTROLLER
from advisor.protocol.rules.partition_registration import Registration

PartitionKey = tuple[str, int]
_METADATA = "__cluster_metadata-0"
_RESPONSE_TIMEOUT_S = 15.0
_CONNECTION_ATTEMPTS = 3


@dataclass(frozen=True)
class ControllerState:
    """Registrations of all partitions, and the brokers that are unfenced or have a session.

    sessions: number of the session of each broker that has one; each of a broker has another.
    """

    registrations: Mapping[PartitionKey, Registration]
    sessions: Mapping[int, int]

    @property
    def serving(self) -> frozenset[int]:
        """The brokers that are unfenced or have a session."""
        return frozenset(self.sessions)


class MetadataLog:
    """Incremental reader of a KRaft controller's metadata log.

    For a quorum of one, in which everything appended is committed. Snapshots are not read; a
    controller writes none in its first hour.

    history: every record read so far, with its timestamp in milliseconds since 1970.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next_byte: dict[Path, int] = {}
        self._names: dict[bytes, str] = {}
        self._partitions: dict[PartitionKey, Registration] = {}
        self._sessions: dict[int, int] = {}
        self.history: list[tuple[int, Record]] = []

    def read(self) -> ControllerState:
        """Return the current state."""
        for segment in segments(self._folder):
            for batch in batches(segment, self._next_byte.get(segment, 0)):
                self._next_byte[segment] = batch.at_byte + batch.size_bytes
                for value in batch.values:
                    record = decode(value)
                    if record is not None:
                        self.history.append((batch.timestamp_ms, record))
                        self._apply(record)
        return ControllerState(dict(self._partitions), dict(self._sessions))

    def fencings(self) -> Sequence[int]:
        """Return every broker that was fenced, in order."""
        changes = [record for _, record in self.history if isinstance(record, BrokerFencing)]
        return [change.broker for change in changes if change.fenced]

    def close(self) -> None:
        """No connection is open."""

    def name_of(self, topic_id: bytes) -> str:
        """Return the name of a topic by its id."""
        return self._names[topic_id]

    def _apply(self, record: Record) -> None:
        if isinstance(record, Topic):
            self._names[record.topic_id] = record.name
        elif isinstance(record, TopicRemoval):
            gone = self._names[record.topic_id]
            for key in [key for key in self._partitions if key[0] == gone]:
                del self._partitions[key]
        elif isinstance(record, PartitionRecord):
            key = self._names[record.topic_id], record.partition
            self._partitions[key] = record.registration
        elif isinstance(record, PartitionChange):
            key = self._names[record.topic_id], record.partition
            self._partitions[key] = record.applied(self._partitions[key])
        elif isinstance(record, ElrClear):
            self._clear_elr(record.name)
        elif record.fenced:
            self._sessions.pop(record.broker, None)
        else:
            self._sessions.setdefault(record.broker, len(self.history))

    def _clear_elr(self, name: str) -> None:
        """Apply ``ReplicationControlManager.removeTopicElrs``: partitions with an ELR only."""
        for key, registration in self._partitions.items():
            if name in ("", key[0]) and (registration.elr or registration.last_known_elr):
                epoch = registration.partition_epoch + 1
                self._partitions[key] = replace(
                    registration, elr=(), last_known_elr=(), partition_epoch=epoch
                )


class _ZooKeeperReader:
    """Reads the znodes written by the ZooKeeper controller."""

    def __init__(self, address: str) -> None:
        try:
            from kazoo.client import KazooClient
        except ImportError:
            raise MissingExtraError("reading ZooKeeper", "dev") from None
        # Of a ZooKeeper that has just started a first connection may get no answer.
        for attempt in range(_CONNECTION_ATTEMPTS):
            self._client: Any = KazooClient(
                hosts=address, timeout=_RESPONSE_TIMEOUT_S, read_only=True
            )
            try:
                self._client.start(timeout=_RESPONSE_TIMEOUT_S / _CONNECTION_ATTEMPTS)
            except self._client.handler.timeout_exception:
                if attempt + 1 == _CONNECTION_ATTEMPTS:
                    raise
            else:
                return

    def read(self) -> ControllerState:
        """Return the current state."""
        registrations = {}
        for topic in self._children("/brokers/topics"):
            registrations.update(self._topic(topic))
        return ControllerState(registrations, self._sessions())

    def fencings(self) -> Sequence[int]:
        """ZooKeeper does not record them."""
        return ()

    def close(self) -> None:
        """Close the connection."""
        self._client.stop()
        self._client.close()

    def _sessions(self) -> dict[int, int]:
        brokers = self._children("/brokers/ids")
        stats = {broker: self._client.exists(f"/brokers/ids/{broker}") for broker in brokers}
        return {int(broker): stat.czxid for broker, stat in stats.items() if stat is not None}

    def _topic(self, topic: str) -> dict[PartitionKey, Registration]:
        assigned, _ = self._read(f"/brokers/topics/{topic}")
        if assigned is None:
            return {}
        adding = assigned.get("adding_replicas", {})
        removing = assigned.get("removing_replicas", {})
        registrations = {}
        for number, replicas in assigned["partitions"].items():
            state, writes = self._read(f"/brokers/topics/{topic}/partitions/{number}/state")
            if state is not None:
                registrations[topic, int(number)] = Registration(
                    replicas=tuple(replicas),
                    isr=tuple(state["isr"]),
                    leader=state["leader"],
                    leader_epoch=state["leader_epoch"],
                    partition_epoch=writes,
                    adding=tuple(adding.get(number, ())),
                    removing=tuple(removing.get(number, ())),
                )
        return registrations

    def _children(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            return sorted(self._client.get_children(path))
        except NoNodeError:
            return []

    def _read(self, path: str) -> tuple[Any, int]:
        """Return the JSON of a znode (None if absent) and its version."""
        from kazoo.exceptions import NoNodeError

        try:
            data, stat = self._client.get(path)
        except NoNodeError:
            return None, 0
        return json.loads(data), int(stat.version)


ControllerReader = MetadataLog | _ZooKeeperReader


def open_controller_reader(cluster: RealCluster) -> ControllerReader:
    """Return a reader for a running cluster."""
    if cluster.spec.mode == "zookeeper":
        return _ZooKeeperReader(cluster.zookeeper_address)
    return MetadataLog(cluster.data(CONTROLLER) / _METADATA)


_CONTROLLER = "/controller"
_RETRY_FOR_S = 60.0
_ELECTION_DELAY_S = 0.3


def move_controller(cluster: RealCluster, broker: int) -> None:
    """Make a broker the controller, by deleting the znode until it wins the election."""
    try:
        from kazoo.client import KazooClient
    except ImportError:
        raise MissingExtraError("moving the controller", "dev") from None
    client: Any = KazooClient(hosts=cluster.zookeeper_address, timeout=_RESPONSE_TIMEOUT_S)
    client.start(timeout=_RESPONSE_TIMEOUT_S)
    deadline = time.monotonic() + _RETRY_FOR_S
    try:
        while (now := _controller(client)) != broker:
            if time.monotonic() > deadline:
                raise BrokersUnavailableError(f"broker {broker} did not become the controller")
            if now is not None:
                _resign(client)
            time.sleep(_ELECTION_DELAY_S)
    finally:
        client.stop()
        client.close()


def _controller(client: Any) -> int | None:
    from kazoo.exceptions import NoNodeError

    try:
        data, _ = client.get(_CONTROLLER)
    except NoNodeError:
        return None
    return int(json.loads(data)["brokerid"])


def _resign(client: Any) -> None:
    from kazoo.exceptions import NoNodeError

    with contextlib.suppress(NoNodeError):
        client.delete(_CONTROLLER)
