"""Admin and record requests to real brokers."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kafka import errors
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.broker_version_data import BrokerVersionData
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.protocol.rules.partition_registration import Replicas

NETWORK_EXCEPTION = "NETWORK_EXCEPTION"
_SIZE = struct.Struct(">i")
_CONNECT_TIMEOUT_S = 3.0


class NoResponseError(Exception):
    """A broker cannot be reached or does not respond in time; callers retry."""


def send_request(address: tuple[str, int], request: Any, release: str, timeout_s: float) -> Any:
    """Send a request on a new connection and wait for the response; None if it has none (acks=0).

    release: release of the broker, such as ``3.9.2``; selects the API version.
    """
    line = tuple(int(part) for part in release.split(".")[:2])
    request.API_VERSION = BrokerVersionData(line).api_version(request)
    request.with_header(correlation_id=1, client_id="advisor")
    framed = request.encode(header=True, framed=True)
    try:
        with socket.create_connection(address, min(timeout_s, _CONNECT_TIMEOUT_S)) as connection:
            connection.settimeout(timeout_s)
            connection.sendall(framed)
            if not request.expect_response():
                # The broker has read the request when it closes its side too.
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)
                return None
            (size,) = _SIZE.unpack(_receive(connection, _SIZE.size))
            data = _receive(connection, size)
    except OSError as error:
        raise NoResponseError(f"{address[0]}:{address[1]}: {error}") from None
    response = request.header.get_response_class()
    return response.decode(data, header=True)


def error_name(code: int) -> str | None:
    """Return Kafka's name of an error code; None for no error."""
    return None if code == 0 else str(errors.for_code(code).message)


def _receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        received = connection.recv(size - len(data))
        if not received:
            raise ConnectionError("the broker closed the connection")
        data += received
    return bytes(data)


LEADER_NOT_AVAILABLE = "LEADER_NOT_AVAILABLE"
_RESPONSE_TIMEOUT_S = 20.0
_RETRY_FOR_S = 30.0
# NodeToControllerChannelManager gives up a request after 60 s.
_FORWARDING_TIMEOUT_S = 75.0
_TIMED_OUT = "REQUEST_TIMED_OUT"
_RETRY_BACKOFF_S = 0.2
_NOT_CONTROLLER = "NOT_CONTROLLER"
_OFFSET_NOT_AVAILABLE = "OFFSET_NOT_AVAILABLE"
_RETRIABLE = frozenset({_NOT_CONTROLLER, _TIMED_OUT, "BROKER_NOT_AVAILABLE"})
_TOPIC, _SET = 2, 0  # Resource type and config operation.
_LATEST, _CONSUMER = -1, -1
_MAX_BYTES = 50_000_000
# Later versions of the requests use topic ids instead of names.
_LAST_VERSION_WITH_NAMES = 12

Producer = tuple[int, int]


class Client:
    """Sends requests to the reachable brokers of a cluster.

    reachable: returns the running brokers that are not isolated.
    has_controller: returns whether the controller quorum runs.
    """

    def __init__(
        self,
        cluster: RealCluster,
        reachable: Callable[[], Sequence[int]],
        has_controller: Callable[[], bool] = lambda: True,
    ) -> None:
        self._cluster, self._reachable, self._has_controller = cluster, reachable, has_controller

    def send(self, broker: int, request: Any, timeout_s: float = _RESPONSE_TIMEOUT_S) -> Any:
        """Send one request to one broker; see `requests.send_request`."""
        cluster = self._cluster
        return send_request(cluster.address(broker), request, cluster.jars.release, timeout_s)

    def create_topic(
        self, name: str, assignment: Sequence[Replicas], configs: Mapping[str, str]
    ) -> str | None:
        """Create a topic with these replicas; return the error name, or None."""
        kind = CreateTopicsRequest.CreatableTopic
        topic = kind(
            name=name,
            num_partitions=-1,
            replication_factor=-1,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                for number, replicas in enumerate(assignment)
            ],
            configs=[kind.CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
        )
        return self._send_to_controller(
            lambda: CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False),
            lambda response: response.topics[0].error_code,
        )

    def delete_topic(self, name: str) -> str | None:
        """Delete a topic; return the error name, or None."""
        kind = DeleteTopicsRequest

        def request() -> Any:
            return kind(topic_names=[name], timeout_ms=10_000, max_version=5)

        return self._send_to_controller(request, lambda response: response.responses[0].error_code)

    def grow_topic(self, name: str, count: int, assignment: Sequence[Replicas]) -> str | None:
        """Increase the number of partitions to ``count``, with these replicas for the new ones."""
        kind = CreatePartitionsRequest.CreatePartitionsTopic
        placed = [kind.CreatePartitionsAssignment(broker_ids=list(r)) for r in assignment]
        topic = kind(name=name, count=count, assignments=placed)
        return self._send_to_controller(
            lambda: CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False),
            lambda response: response.results[0].error_code,
        )

    def alter_topic(self, name: str, configs: Mapping[str, str]) -> str | None:
        """Change settings of a topic."""
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        changes = [
            kind.AlterableConfig(name=key, config_operation=_SET, value=value)
            for key, value in configs.items()
        ]
        resource = kind(resource_type=_TOPIC, resource_name=name, configs=changes)
        return self._send_to_controller(
            lambda: IncrementalAlterConfigsRequest(resources=[resource], validate_only=False),
            lambda response: response.responses[0].error_code,
        )

    def elect(self, topic: str, partition: int, unclean: bool) -> str | None:
        """Elect the preferred leader, or uncleanly any live replica."""
        named = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])

        def code(response: Any) -> int:
            if response.error_code:
                return int(response.error_code)
            results = response.replica_election_results
            return int(results[0].partition_result[0].error_code)

        return self._send_to_controller(
            lambda: ElectLeadersRequest(
                election_type=int(unclean), topic_partitions=[named], timeout_ms=10_000
            ),
            code,
        )

    def reassign(self, topic: str, partition: int, replicas: Replicas | None) -> str | None:
        """Start a reassignment of a partition, or cancel it (replicas=None)."""
        kind = AlterPartitionReassignmentsRequest.ReassignableTopic
        target = None if replicas is None else list(replicas)
        moved = kind.ReassignablePartition(partition_index=partition, replicas=target)

        def code(response: Any) -> int:
            return int(response.error_code or response.responses[0].partitions[0].error_code)

        return self._send_to_controller(
            lambda: AlterPartitionReassignmentsRequest(
                topics=[kind(name=topic, partitions=[moved])], timeout_ms=10_000
            ),
            code,
        )

    def leader(self, topic: str, partition: int) -> int | None:
        """Return the leader according to broker metadata; None without a leader."""
        response = self._send_to_any(lambda: _metadata([topic]))
        for data in response.topics[0].partitions:
            if data.partition_index == partition and data.error_code == 0:
                return int(data.leader_id)
        return None

    def new_producer(self, broker: int | None = None) -> Producer:
        """Return id and epoch for a new idempotent producer, from one broker or any."""

        def request() -> Any:
            return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)

        while True:
            if broker is None:
                response = self._send_to_any(request)
            else:
                response = self.send(broker, request())
            if response.error_code == 0:
                return int(response.producer_id), int(response.producer_epoch)
            time.sleep(_RETRY_BACKOFF_S)

    def produce(
        self,
        broker: int,
        topic: str,
        partition: int,
        values: Sequence[bytes],
        acks: int,
        timeout_ms: int,
        producer: Producer | None = None,
        sequence: int = 0,
    ) -> str | None:
        """Send one batch to one broker, once; return the error's name, None if acknowledged.

        acks (one of -1, 0, 1): as in the produce request; -1 is "all", and 0 brings no error.
        timeout_ms: how long the broker may wait for the other replicas.
        producer, sequence: of an idempotent producer, and of its first record.
        """
        builder = MemoryRecordsBuilder(
            magic=2,
            compression_type=0,
            batch_size=_MAX_BYTES,
            producer_id=-1 if producer is None else producer[0],
            producer_epoch=-1 if producer is None else producer[1],
            base_sequence=-1 if producer is None else sequence,
        )
        now_ms = int(time.time() * 1000)
        for value in values:
            builder.append(now_ms, None, value)
        builder.close()
        kind = ProduceRequest.TopicProduceData
        data = kind.PartitionProduceData(index=partition, records=bytes(builder.buffer()))
        request = ProduceRequest(
            transactional_id=None,
            acks=acks,
            timeout_ms=timeout_ms,
            topic_data=[kind(name=topic, partition_data=[data])],
            max_version=_LAST_VERSION_WITH_NAMES,
        )
        response = self.send(broker, request, timeout_ms / 1000 + _RESPONSE_TIMEOUT_S)
        if response is None:
            return None
        return error_name(response.responses[0].partition_responses[0].error_code)

    def high_watermark(self, broker: int, topic: str, partition: int) -> int | None:
        """Return the high watermark from a leader; None if it is not leader or does not respond."""
        kind = ListOffsetsRequest.ListOffsetsTopic
        partition_request = kind.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=_LATEST
        )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=0,
            topics=[kind(name=topic, partitions=[partition_request])],
        )
        try:
            response = self.send(broker, request, 5.0)
        except NoResponseError:
            return None
        data = response.topics[0].partitions[0]
        if error_name(data.error_code) == _OFFSET_NOT_AVAILABLE:
            return self._high_watermark_by_fetch(broker, topic, partition)
        return None if data.error_code else int(data.offset)

    def _high_watermark_by_fetch(self, broker: int, topic: str, partition: int) -> int | None:
        """Read the high watermark from a fetch response.

        While it is below the start offset of the leader epoch, ListOffsets returns
        OFFSET_NOT_AVAILABLE, so that consumers never see offsets decrease (KIP-207).
        """
        try:
            response = self.send(broker, _fetch(topic, partition, 0))
        except NoResponseError:
            return None
        data = response.responses[0].partitions[0]
        return None if data.error_code else int(data.high_watermark)

    def read(self, broker: int, topic: str, partition: int) -> list[bytes] | str:
        """Consume all values from offset 0; return the error name if the fetch fails."""
        values: list[bytes] = []
        while True:
            try:
                response = self.send(broker, _fetch(topic, partition, len(values)))
            except NoResponseError:
                return LEADER_NOT_AVAILABLE
            data = response.responses[0].partitions[0]
            if data.error_code:
                return str(error_name(data.error_code))
            new_values = [
                value for offset, value in _records(data.records) if offset >= len(values)
            ]
            new_values = new_values[: data.high_watermark - len(values)]
            if not new_values:
                return values
            values += new_values

    def _send_to_any(self, request: Any) -> Any:
        """Send a request to one broker after the other until one responds."""
        deadline = time.monotonic() + _RETRY_FOR_S
        while True:
            for broker in self._reachable():
                try:
                    return self.send(broker, request())
                except NoResponseError:
                    continue
            if time.monotonic() > deadline:
                raise BrokersUnavailableError("no broker answered; start one, or heal it")
            time.sleep(_RETRY_BACKOFF_S)

    def _send_to_controller(self, request: Any, code: Any) -> str | None:
        """Send an admin request to the ZooKeeper controller or to any KRaft broker."""
        if not self._has_controller():
            return self._send_in_vain(request, code)
        deadline = time.monotonic() + _RETRY_FOR_S
        while True:
            error: str | None
            try:
                error = error_name(code(self.send(self._admin_broker(), request())))
            except NoResponseError as unanswered:
                error = f"{_NOT_CONTROLLER} ({unanswered})"
            if error is None or error.split()[0] not in _RETRIABLE:
                return error
            if time.monotonic() > deadline:
                raise BrokersUnavailableError(f"the controller did not take a change: {error}")
            time.sleep(_RETRY_BACKOFF_S)

    def _send_in_vain(self, request: Any, code: Any) -> str | None:
        """Send an admin request while there is no controller; a broker keeps it for a minute."""
        try:
            answer = self.send(self._admin_broker(), request(), _FORWARDING_TIMEOUT_S)
        except NoResponseError:
            return _TIMED_OUT
        return error_name(code(answer))

    def _admin_broker(self) -> int:
        if self._cluster.spec.mode == "zookeeper":
            return int(self._send_to_any(lambda: _metadata([])).controller_id)
        reachable = self._reachable()
        if not reachable:
            raise BrokersUnavailableError("no broker runs that could take a change; start one")
        return reachable[0]


def _metadata(topics: list[str]) -> Any:
    named = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False, max_version=8)


def _fetch(topic: str, partition: int, offset: int) -> Any:
    kind = FetchRequest.FetchTopic
    partition_request = kind.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        partition_max_bytes=_MAX_BYTES,
    )
    return FetchRequest(
        replica_id=_CONSUMER,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_MAX_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[kind(topic=topic, partitions=[partition_request])],
        max_version=_LAST_VERSION_WITH_NAMES,
    )


def _records(data: bytes | None) -> Iterator[tuple[int, bytes]]:
    batches = MemoryRecords(data or b"")
    while batches.has_next():
        for record in batches.next_batch():
            yield record.offset, bytes(record.value or b"")
