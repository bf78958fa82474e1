"""What clients and operators ask of real brokers: topics, elections, moves, records."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from advisor.kafka_lab.formats.requests import UnansweredError, ask, error_name
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.protocol.rules.partition_registration import Replicas

LEADER_NOT_AVAILABLE = "LEADER_NOT_AVAILABLE"
_ANSWER_WITHIN_S = 20.0
_TRIED_FOR_S = 30.0
_AGAIN_AFTER_S = 0.2
_NOT_CONTROLLER = "NOT_CONTROLLER"
_OFFSET_NOT_AVAILABLE = "OFFSET_NOT_AVAILABLE"
_PASSING = frozenset({_NOT_CONTROLLER, "REQUEST_TIMED_OUT", "BROKER_NOT_AVAILABLE"})
_TOPIC, _SET = 2, 0  # Of a resource, and of a change to its settings.
_LATEST, _CONSUMER = -1, -1
_LARGEST_BYTES = 50_000_000
# Messages from 13 on name topics by their ids, which would have to be looked up.
_BY_NAME = 12

Producer = tuple[int, int]


class Reach(Protocol):
    """Whom a client can ask.

    Attributes
    ----------
    cluster : RealCluster
    """

    cluster: RealCluster

    def reachable(self) -> Sequence[int]:
        """The running brokers that are connected to the others."""


class Client:
    """Asks the brokers of a cluster that are reachable.

    Parameters
    ----------
    reach : Reach
    """

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def ask(self, broker: int, request: Any, within_s: float = _ANSWER_WITHIN_S) -> Any:
        """One request to one broker; see `wire.ask`."""
        cluster = self._reach.cluster
        return ask(cluster.address(broker), request, cluster.jars.release, within_s)

    def create_topic(
        self, name: str, assignment: Sequence[Replicas], configs: Mapping[str, str]
    ) -> str | None:
        """Make a topic with these replicas; the error's name if it was refused."""
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
        return self._of_controller(
            lambda: CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=False),
            lambda response: response.topics[0].error_code,
        )

    def delete_topic(self, name: str) -> str | None:
        """Delete a topic."""
        kind = DeleteTopicsRequest

        def request() -> Any:
            return kind(topic_names=[name], timeout_ms=10_000, max_version=5)

        return self._of_controller(request, lambda response: response.responses[0].error_code)

    def grow_topic(self, name: str, count: int, assignment: Sequence[Replicas]) -> str | None:
        """Add partitions with these replicas, so that there are ``count``."""
        kind = CreatePartitionsRequest.CreatePartitionsTopic
        placed = [kind.CreatePartitionsAssignment(broker_ids=list(r)) for r in assignment]
        topic = kind(name=name, count=count, assignments=placed)
        return self._of_controller(
            lambda: CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False),
            lambda response: response.results[0].error_code,
        )

    def alter_topic(self, name: str, configs: Mapping[str, str]) -> str | None:
        """Set some of a topic's settings."""
        kind = IncrementalAlterConfigsRequest.AlterConfigsResource
        changes = [
            kind.AlterableConfig(name=key, config_operation=_SET, value=value)
            for key, value in configs.items()
        ]
        resource = kind(resource_type=_TOPIC, resource_name=name, configs=changes)
        return self._of_controller(
            lambda: IncrementalAlterConfigsRequest(resources=[resource], validate_only=False),
            lambda response: response.responses[0].error_code,
        )

    def elect(self, topic: str, partition: int, unclean: bool) -> str | None:
        """Let the controller elect the preferred leader, or any that lives."""
        named = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])

        def code(response: Any) -> int:
            if response.error_code:
                return int(response.error_code)
            results = response.replica_election_results
            return int(results[0].partition_result[0].error_code)

        return self._of_controller(
            lambda: ElectLeadersRequest(
                election_type=int(unclean), topic_partitions=[named], timeout_ms=10_000
            ),
            code,
        )

    def reassign(self, topic: str, partition: int, replicas: Replicas | None) -> str | None:
        """Begin to move a partition, or call it off."""
        kind = AlterPartitionReassignmentsRequest.ReassignableTopic
        wanted = None if replicas is None else list(replicas)
        moved = kind.ReassignablePartition(partition_index=partition, replicas=wanted)

        def code(response: Any) -> int:
            return int(response.error_code or response.responses[0].partitions[0].error_code)

        return self._of_controller(
            lambda: AlterPartitionReassignmentsRequest(
                topics=[kind(name=topic, partitions=[moved])], timeout_ms=10_000
            ),
            code,
        )

    def leader(self, topic: str, partition: int) -> int | None:
        """Whom the brokers tell producers to send to; None without one."""
        response = self._of_any(lambda: _metadata([topic]))
        for told in response.topics[0].partitions:
            if told.partition_index == partition and told.error_code == 0:
                return int(told.leader_id)
        return None

    def new_producer(self) -> Producer:
        """Id and epoch of a new idempotent producer."""
        while True:
            response = self._of_any(
                lambda: InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            )
            if response.error_code == 0:
                return int(response.producer_id), int(response.producer_epoch)
            time.sleep(_AGAIN_AFTER_S)

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
        """One attempt: one batch to one broker.

        Parameters
        ----------
        broker : int
        topic, partition : str, int
        values : sequence of bytes
        acks : {-1, 0, 1}
        timeout_ms : int
            How long the broker may wait for the other replicas.
        producer : (id, epoch), optional
            Of an idempotent producer.
        sequence : int
            Of the batch's first record.

        Returns
        -------
        str or None
            The error's name; None if it was acknowledged, or if acks=0 asked for no answer.

        Raises
        ------
        UnansweredError
        """
        builder = MemoryRecordsBuilder(
            magic=2,
            compression_type=0,
            batch_size=_LARGEST_BYTES,
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
            max_version=_BY_NAME,
        )
        response = self.ask(broker, request, timeout_ms / 1000 + _ANSWER_WITHIN_S)
        if response is None:
            return None
        return error_name(response.responses[0].partition_responses[0].error_code)

    def high_watermark(self, broker: int, topic: str, partition: int) -> int | None:
        """The high watermark, asked of a leader; None if it does not lead or does not answer."""
        kind = ListOffsetsRequest.ListOffsetsTopic
        asked = kind.ListOffsetsPartition(
            partition_index=partition, current_leader_epoch=-1, timestamp=_LATEST
        )
        request = ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=0,
            topics=[kind(name=topic, partitions=[asked])],
        )
        try:
            response = self.ask(broker, request, 5.0)
        except UnansweredError:
            return None
        told = response.topics[0].partitions[0]
        if error_name(told.error_code) == _OFFSET_NOT_AVAILABLE:
            return self._high_watermark_by_fetch(broker, topic, partition)
        return None if told.error_code else int(told.offset)

    def _high_watermark_by_fetch(self, broker: int, topic: str, partition: int) -> int | None:
        """A leader whose epoch begins above its high watermark tells it only with records.

        It names no offset until then, so that no consumer sees offsets go back (KIP-207).
        """
        try:
            response = self.ask(broker, _fetch(topic, partition, 0))
        except UnansweredError:
            return None
        told = response.responses[0].partitions[0]
        return None if told.error_code else int(told.high_watermark)

    def read(self, broker: int, topic: str, partition: int) -> list[bytes] | str:
        """The values that a consumer gets from offset 0 on; an error's name if it gets none."""
        found: list[bytes] = []
        while True:
            try:
                response = self.ask(broker, _fetch(topic, partition, len(found)))
            except UnansweredError:
                return LEADER_NOT_AVAILABLE
            told = response.responses[0].partitions[0]
            if told.error_code:
                return str(error_name(told.error_code))
            new = [value for offset, value in _records(told.records) if offset >= len(found)]
            new = new[: told.high_watermark - len(found)]
            if not new:
                return found
            found += new

    def _of_any(self, request: Any) -> Any:
        """Ask the brokers one after the other until one answers."""
        until = time.monotonic() + _TRIED_FOR_S
        while True:
            for broker in self._reach.reachable():
                try:
                    return self.ask(broker, request())
                except UnansweredError:
                    continue
            if time.monotonic() > until:
                raise BrokersUnavailableError("no broker answered; start one, or heal it")
            time.sleep(_AGAIN_AFTER_S)

    def _of_controller(self, request: Any, code: Any) -> str | None:
        """Ask for a change, of the ZooKeeper controller or of any KRaft broker."""
        until = time.monotonic() + _TRIED_FOR_S
        while True:
            error: str | None
            try:
                error = error_name(code(self.ask(self._administrator(), request())))
            except UnansweredError as unanswered:
                error = f"{_NOT_CONTROLLER} ({unanswered})"
            if error is None or error.split()[0] not in _PASSING:
                return error
            if time.monotonic() > until:
                raise BrokersUnavailableError(f"the controller did not take a change: {error}")
            time.sleep(_AGAIN_AFTER_S)

    def _administrator(self) -> int:
        if self._reach.cluster.wish.mode == "zookeeper":
            return int(self._of_any(lambda: _metadata([])).controller_id)
        reachable = self._reach.reachable()
        if not reachable:
            raise BrokersUnavailableError("no broker runs that could take a change; start one")
        return reachable[0]


def _metadata(topics: list[str]) -> Any:
    named = [MetadataRequest.MetadataRequestTopic(name=topic) for topic in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False, max_version=8)


def _fetch(topic: str, partition: int, offset: int) -> Any:
    kind = FetchRequest.FetchTopic
    asked = kind.FetchPartition(
        partition=partition,
        current_leader_epoch=-1,
        fetch_offset=offset,
        partition_max_bytes=_LARGEST_BYTES,
    )
    return FetchRequest(
        replica_id=_CONSUMER,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=_LARGEST_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[kind(topic=topic, partitions=[asked])],
        max_version=_BY_NAME,
    )


def _records(data: bytes | None) -> Iterator[tuple[int, bytes]]:
    batches = MemoryRecords(data or b"")
    while batches.has_next():
        for record in batches.next_batch():
            yield record.offset, bytes(record.value or b"")
