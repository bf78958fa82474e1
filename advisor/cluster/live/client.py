"""Read-only requests to a running cluster, through kafka-python.

One bootstrap connection answers everything except broker settings, which each broker reports only
for itself. An unreachable broker costs only its own settings. Failed requests are recorded, and
the others are sent regardless.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kafka import errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from advisor.cluster.addresses import Address
from advisor.cluster.live.client_properties import ClientProperties
from advisor.cluster.live.sasl import login_options
from advisor.cluster.observed import SOURCES, Quorum, Setting
from advisor.errors import InputError

TOPIC, BROKER = 2, 4
TOPICS_AT_ONCE, PARTITIONS_AT_ONCE = 250, 2000
_MAX_RESPONSE_BYTES = 100_000_000
_CLOSE_TIMEOUT_MS = 500
_BOOTSTRAP = "bootstrap-0"
# At level DEBUG these log the requests they send, passwords included.
_LOGGERS_WITH_SECRETS = ("kafka.net.connection", "kafka.protocol.parser")
# Without a handler Python prints kafka-python's warnings on stderr.
logging.getLogger("kafka").addHandler(logging.NullHandler())


@dataclass
class Answers:
    """Responses of a cluster, and the requests that failed.

    topics: from DescribeTopicPartitions responses or, if `elr_reported` is False, Metadata.
    settings: (TOPIC or BROKER, name) to settings by name.
    settings_errors: (TOPIC or BROKER, name) to the reason why its settings are unknown.
    """

    topics: list[dict[str, Any]] = field(default_factory=list)
    elr_reported: bool = False
    cluster_id: str = ""
    kraft: bool = False
    racks: dict[int, str | None] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)
    versions: dict[int, str] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    features_known: bool = False
    quorum: Quorum | None = None
    reassignments: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = field(
        default_factory=dict
    )
    settings: dict[tuple[int, str], dict[str, Setting]] = field(default_factory=dict)
    settings_errors: dict[tuple[int, str], str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def query_cluster(
    address: Address,
    properties: ClientProperties,
    context: ssl.SSLContext | None,
    deadline: float,
) -> Answers:
    """Send all requests and return the responses; `deadline` in seconds of `time.monotonic`."""
    config = {
        "bootstrap_servers": [str(address)],
        "client_id": properties.client_id,
        "security_protocol": properties.security_protocol,
        "ssl_context": context,
        "request_timeout_ms": properties.request_timeout_ms,
        "socket_connection_setup_timeout_ms": properties.connection_setup_timeout_ms,
        "receive_message_max_bytes": _MAX_RESPONSE_BYTES,
        **login_options(properties, deadline),
    }
    with _without_debug_records(f"kafka-io-{properties.client_id}"):
        net = NetworkSelector(client_id=properties.client_id)
        manager = KafkaConnectionManager(net, **config)
        net.start()
        query = _ClusterQuery(manager, deadline)
        try:
            answers: Answers = manager.run(query.run)
        except errors.KafkaError as error:
            reason = _failure_reason(error, properties, query.connected)
            raise InputError(f"{address} {reason}") from None
        finally:
            manager.call_soon(manager.close)
            net.stop(timeout_ms=_CLOSE_TIMEOUT_MS)
    return answers


class _ClusterQuery:
    """All requests to one cluster, in the thread of kafka-python's event loop."""

    def __init__(self, manager: Any, deadline: float) -> None:
        self.manager = manager
        self.deadline = deadline
        self.bootstrap: Any = None
        self.connected = False
        self.answers = Answers()

    async def run(self) -> Answers:
        self.bootstrap = self.manager.get_connection(
            _BOOTSTRAP, pop_on_close=False, refresh_metadata_on_err=False
        )
        await self._before_deadline(self.bootstrap.init_future)
        self.connected = True
        # Otherwise kafka-python takes every broker for no newer than the first one.
        self.manager.broker_version_data = None
        await self._brokers_and_topics()
        await self._note_failure("the features", self._features())
        await self._note_failure("fenced brokers", self._fenced())
        await self._note_failure("the controllers' quorum", self._quorum())
        await self._note_failure("running reassignments", self._reassignments())
        # A broker may leave a name out; `cluster_from_answers` says so.
        names = [t["name"] for t in self.answers.topics if t["name"] and not t["error_code"]]
        for start in range(0, len(names), TOPICS_AT_ONCE):
            await self._settings(TOPIC, names[start : start + TOPICS_AT_ONCE], self.bootstrap)
        await self._broker_settings()
        return self.answers

    async def _before_deadline(self, future: Any) -> Any:
        left_ms = (self.deadline - time.monotonic()) * 1000
        return await self.manager.wait_for(future, max(1.0, left_ms))

    async def _send(self, request: Any, connection: Any = None) -> Any:
        return await self._before_deadline((connection or self.bootstrap).send_request(request))

    async def _note_failure(self, answer: str, request: Awaitable[None]) -> None:
        try:
            await request
        except errors.IncompatibleBrokerVersion:
            pass  # not supported by this version
        except errors.KafkaError as error:
            self.answers.missing[answer] = error_name(error)

    def _knows(self, request: type) -> bool:
        try:
            self.bootstrap.broker_version_data.api_version(request)
        except errors.IncompatibleBrokerVersion:
            return False
        return True

    async def _brokers_and_topics(self) -> None:
        answers = self.answers
        answers.elr_reported = self._knows(DescribeTopicPartitionsRequest)
        # A request for all topics or for none never creates a topic, in any version.
        topics: list[str] | None = [] if answers.elr_reported else None
        metadata = await self._send(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        self.manager.cluster.update_metadata(metadata)
        answers.cluster_id = metadata.cluster_id or ""
        answers.racks = {broker.node_id: broker.rack or None for broker in metadata.brokers}
        answers.kraft = self._knows(DescribeQuorumRequest)
        if not answers.elr_reported:
            answers.topics = [topic.to_dict() for topic in metadata.topics]
            return
        cursor = None
        while True:
            page = await self._send(
                DescribeTopicPartitionsRequest(
                    topics=[], response_partition_limit=PARTITIONS_AT_ONCE, cursor=cursor
                )
            )
            _append_page(answers.topics, [topic.to_dict() for topic in page.topics])
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    async def _features(self) -> None:
        response = await self._send(
            ApiVersionsRequest(
                client_software_name="advisor", client_software_version="1", min_version=3
            )
        )
        _raise_for_code(response.error_code)
        self.answers.features = {
            feature.name: feature.max_version_level for feature in response.finalized_features or []
        }
        epoch = response.finalized_features_epoch
        self.answers.features_known = epoch is not None and epoch >= 0

    async def _fenced(self) -> None:
        response = await self._send(
            DescribeClusterRequest(include_fenced_brokers=True, min_version=2)
        )
        _raise_for_code(response.error_code)
        for broker in response.brokers:
            self.answers.racks.setdefault(broker.broker_id, broker.rack or None)
            if broker.is_fenced:
                self.answers.fenced.add(broker.broker_id)

    async def _quorum(self) -> None:
        kind = DescribeQuorumRequest.TopicData
        topic = kind(
            topic_name="__cluster_metadata", partitions=[kind.PartitionData(partition_index=0)]
        )
        response = await self._send(DescribeQuorumRequest(topics=[topic]))
        _raise_for_code(response.error_code)
        logs = [log for topic in response.topics for log in topic.partitions]
        if not logs:
            raise errors.UnknownTopicOrPartitionError
        log = logs[0]
        _raise_for_code(log.error_code)
        self.answers.quorum = Quorum(
            leader=log.leader_id if log.leader_id >= 0 else None,
            leader_epoch=log.leader_epoch,
            voters=tuple(sorted(voter.replica_id for voter in log.current_voters)),
            observers=tuple(sorted(observer.replica_id for observer in log.observers)),
        )

    async def _reassignments(self) -> None:
        request = ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None)
        response = await self._send(request)
        if response.error_code == errors.NotControllerError.errno:  # ZooKeeper: only the controller
            controller = self.manager.cluster.controller
            if controller is None:
                raise errors.NotControllerError
            connection = self.manager.get_connection(controller.node_id)
            await self._before_deadline(connection.init_future)
            response = await self._send(
                ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None), connection
            )
        _raise_for_code(response.error_code)
        for topic in response.topics:
            for moving in topic.partitions:
                self.answers.reassignments[topic.name, moving.partition_index] = (
                    tuple(moving.adding_replicas),
                    tuple(moving.removing_replicas),
                )

    async def _broker_settings(self) -> None:
        running = sorted(self.answers.racks.keys() - self.answers.fenced)
        # Open all connections before waiting for the first.
        connections = {broker: self.manager.get_connection(broker) for broker in running}
        for broker, connection in connections.items():
            try:
                await self._before_deadline(connection.init_future)
                version = connection.broker_version_data.broker_version_str
                self.answers.versions[broker] = version
                await self._settings(BROKER, [str(broker)], connection)
            except errors.KafkaError as error:
                self.answers.settings_errors[BROKER, str(broker)] = error_name(error)

    async def _settings(self, kind: int, names: Sequence[str], connection: Any) -> None:
        if not names:
            return
        try:
            response = await self._send(
                DescribeConfigsRequest(resources=[(kind, name, None) for name in names]), connection
            )
        except errors.KafkaError as error:
            self.answers.settings_errors.update({(kind, name): error_name(error) for name in names})
            return
        for result in response.results:
            key = (kind, result.resource_name)
            if result.error_code:
                self.answers.settings_errors[key] = error_name(errors.for_code(result.error_code)())
            else:
                rows = [row.to_dict() for row in result.configs]
                self.answers.settings[key] = {row["name"]: parse_setting(row, kind) for row in rows}


def parse_setting(row: Mapping[str, Any], kind: int) -> Setting:
    """Return a setting from a response row; before 1.1 only `is_default` gives its source."""
    source = row.get("config_source")
    if source is None or source not in SOURCES:
        dynamic = 1 if kind == TOPIC else 4
        source = 5 if row.get("is_default") else dynamic
    return Setting(row["value"], SOURCES[source])


def _append_page(topics: list[dict[str, Any]], page: list[dict[str, Any]]) -> None:
    """Append a page; its first topic may continue the last one of the page before."""
    for topic in page:
        if topics and topics[-1]["name"] == topic["name"]:
            topics[-1]["partitions"].extend(topic["partitions"])
        else:
            topics.append(topic)


def _raise_for_code(code: int) -> None:
    if code:
        raise errors.for_code(code)()


def error_name(error: Exception) -> str:
    """Return Kafka's name of an error, or a few words for a connection error."""
    if isinstance(error, errors.BrokerResponseError) and isinstance(error.message, str):
        return error.message
    if isinstance(error, errors.KafkaTimeoutError):
        return "no answer in time"
    if isinstance(error, errors.KafkaConnectionError | errors.NodeNotReadyError):
        return "no connection"
    return type(error).__name__


def _failure_reason(error: Exception, properties: ClientProperties, connected: bool) -> str:
    """Return why the bootstrap broker failed, as the predicate of a sentence."""
    if isinstance(error, errors.IncompatibleBrokerVersion | errors.UnsupportedVersionError):
        return "does not tell of brokers and topics; it may be a controller's port: give a broker's"
    if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError):
        return "accepts connections and does not answer in time"
    if isinstance(error, errors.KafkaProtocolError):
        return "answers, but not as a Kafka broker does"
    if properties.sasl and not connected:
        # kafka-python loses the error if the broker closes the connection right after it.
        return f"refuses the login; see sasl.jaas.config in {properties.source}"
    if isinstance(error, errors.KafkaConnectionError):
        login = (
            ""
            if properties.sasl
            else (
                "; it may want a login: give client properties with security.protocol=SASL_SSL or "
                "SASL_PLAINTEXT"
            )
        )
        return f"breaks the connection off when asked{login}"
    return f"cannot be asked ({error_name(error)})"


@contextmanager
def _without_debug_records(thread: str) -> Iterator[None]:
    """Suppress kafka-python's debug records of our requests, which contain the password."""

    def allowed(record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG or record.threadName != thread

    loggers = [logging.getLogger(name) for name in _LOGGERS_WITH_SECRETS]
    for logger in loggers:
        logger.addFilter(allowed)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(allowed)
