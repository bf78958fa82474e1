"""Put the questions to a running cluster, through kafka-python; none of them changes anything.

One connection to a broker that answers is enough for all but the brokers' own settings, which
each broker tells only of itself. So listeners that cannot be reached from here cost those and no
more. What a broker refuses, or cannot be asked, is written down and the rest is asked all the same.
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

from advisor.cluster.live.client_properties import ClientProperties
from advisor.cluster.live.reachability import Address
from advisor.cluster.live.sasl import login_options
from advisor.cluster.observed import SOURCES, Quorum, Setting
from advisor.errors import InputError

TOPIC, BROKER = 2, 4
TOPICS_AT_ONCE, PARTITIONS_AT_ONCE = 250, 2000
_LARGEST_ANSWER_BYTES = 100_000_000
_GRACE_MS = 1_000
_BOOTSTRAP = "bootstrap-0"
# These write what they send, passwords included, where somebody has turned on their debugging.
_TALKATIVE = ("kafka.net.connection", "kafka.protocol.parser")
# Without a handler of the application's own, Python would print kafka-python's log on stderr.
logging.getLogger("kafka").addHandler(logging.NullHandler())


@dataclass
class Answers:
    """What a cluster answered, as it came over the wire, and what it did not.

    Attributes
    ----------
    topics : list of dict
        As in the response to DescribeTopicPartitions or, where `elr_told` is False, Metadata.
    racks : dict of int to (str or None)
        Of every broker that is registered and told of.
    fenced : set of int
        Brokers that are registered and not running.
    settings : dict
        (TOPIC or BROKER, name) to its settings by name.
    refused : dict
        (TOPIC or BROKER, name) to why its settings are not known.
    missing : dict of str to str
        What else could not be asked, and why, in Kafka's words.
    """

    topics: list[dict[str, Any]] = field(default_factory=list)
    elr_told: bool = False
    cluster_id: str = ""
    kraft: bool = False
    racks: dict[int, str | None] = field(default_factory=dict)
    fenced: set[int] = field(default_factory=set)
    versions: dict[int, str] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    features_known: bool = False
    quorum: Quorum | None = None
    moves: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] = field(
        default_factory=dict
    )
    settings: dict[tuple[int, str], dict[str, Setting]] = field(default_factory=dict)
    refused: dict[tuple[int, str], str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


def ask_cluster(
    address: Address,
    properties: ClientProperties,
    context: ssl.SSLContext | None,
    deadline: float,
) -> Answers:
    """Return what the cluster behind a broker's address answers.

    Parameters
    ----------
    address : Address
        Where a broker answers.
    properties : ClientProperties
    context : ssl.SSLContext or None
        To speak TLS with.
    deadline : float
        When it must be over, by `time.monotonic`, in seconds.

    Raises
    ------
    InputError
        If the broker refuses the login, or stops answering before it has told of topics.
    """
    config = {
        "bootstrap_servers": [str(address)],
        "client_id": properties.client_id,
        "security_protocol": properties.security_protocol,
        "ssl_context": context,
        "request_timeout_ms": properties.request_timeout_ms,
        "socket_connection_setup_timeout_ms": properties.connection_setup_timeout_ms,
        "receive_message_max_bytes": _LARGEST_ANSWER_BYTES,
        **login_options(properties, deadline),
    }
    with _discreet(f"kafka-io-{properties.client_id}"):
        net = NetworkSelector(client_id=properties.client_id)
        manager = KafkaConnectionManager(net, **config)
        net.start()
        conversation = _Conversation(manager, deadline)
        try:
            answers: Answers = manager.run(conversation.held)
        except errors.KafkaError as error:
            reason = _failure(error, properties, conversation.connected)
            raise InputError(f"{address} {reason}") from None
        finally:
            manager.call_soon(manager.close)
            net.stop(timeout_ms=_GRACE_MS)
    return answers


class _Conversation:
    """All questions to one cluster, in the thread of kafka-python's event loop."""

    def __init__(self, manager: Any, deadline: float) -> None:
        self.manager = manager
        self.deadline = deadline
        self.first: Any = None
        self.connected = False
        self.answers = Answers()

    async def held(self) -> Answers:
        self.first = self.manager.get_connection(
            _BOOTSTRAP, pop_on_close=False, refresh_metadata_on_err=False
        )
        await self._within(self.first.init_future)
        self.connected = True
        # Else every broker would be taken to be no newer than the first.
        self.manager.broker_version_data = None
        await self._brokers_and_topics()
        await self._or_missing("the features", self._features())
        await self._or_missing("fenced brokers", self._fenced())
        await self._or_missing("the controllers' quorum", self._quorum())
        await self._or_missing("running reassignments", self._moves())
        names = [topic["name"] for topic in self.answers.topics if not topic["error_code"]]
        for start in range(0, len(names), TOPICS_AT_ONCE):
            await self._settings(TOPIC, names[start : start + TOPICS_AT_ONCE], self.first)
        await self._ask_every_broker()
        return self.answers

    async def _within(self, future: Any) -> Any:
        left_ms = (self.deadline - time.monotonic()) * 1000
        return await self.manager.wait_for(future, max(1.0, left_ms))

    async def _ask(self, request: Any, connection: Any = None) -> Any:
        return await self._within((connection or self.first).send_request(request))

    async def _or_missing(self, what: str, asking: Awaitable[None]) -> None:
        try:
            await asking
        except errors.IncompatibleBrokerVersion:
            pass  # this version has no such thing
        except errors.KafkaError as error:
            self.answers.missing[what] = name_of(error)

    def _knows(self, request: type) -> bool:
        try:
            self.first.broker_version_data.api_version(request)
        except errors.IncompatibleBrokerVersion:
            return False
        return True

    async def _brokers_and_topics(self) -> None:
        answers = self.answers
        answers.elr_told = self._knows(DescribeTopicPartitionsRequest)
        # A question for all topics, or for none, creates none, in any version.
        asked: list[str] | None = [] if answers.elr_told else None
        metadata = await self._ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False))
        self.manager.cluster.update_metadata(metadata)
        answers.cluster_id = metadata.cluster_id or ""
        answers.racks = {broker.node_id: broker.rack or None for broker in metadata.brokers}
        answers.kraft = self._knows(DescribeQuorumRequest)
        if not answers.elr_told:
            answers.topics = [topic.to_dict() for topic in metadata.topics]
            return
        cursor = None
        while True:
            page = await self._ask(
                DescribeTopicPartitionsRequest(
                    topics=[], response_partition_limit=PARTITIONS_AT_ONCE, cursor=cursor
                )
            )
            _append(answers.topics, [topic.to_dict() for topic in page.topics])
            if page.next_cursor is None:
                return
            cursor = page.next_cursor

    async def _features(self) -> None:
        told = await self._ask(
            ApiVersionsRequest(
                client_software_name="advisor", client_software_version="1", min_version=3
            )
        )
        _raise_for(told.error_code)
        self.answers.features = {
            feature.name: feature.max_version_level for feature in told.finalized_features or []
        }
        epoch = told.finalized_features_epoch
        self.answers.features_known = epoch is not None and epoch >= 0

    async def _fenced(self) -> None:
        told = await self._ask(DescribeClusterRequest(include_fenced_brokers=True, min_version=2))
        _raise_for(told.error_code)
        for broker in told.brokers:
            self.answers.racks.setdefault(broker.broker_id, broker.rack or None)
            if broker.is_fenced:
                self.answers.fenced.add(broker.broker_id)

    async def _quorum(self) -> None:
        kind = DescribeQuorumRequest.TopicData
        asked = kind(
            topic_name="__cluster_metadata", partitions=[kind.PartitionData(partition_index=0)]
        )
        told = await self._ask(DescribeQuorumRequest(topics=[asked]))
        _raise_for(told.error_code)
        log = told.topics[0].partitions[0]
        _raise_for(log.error_code)
        self.answers.quorum = Quorum(
            leader=log.leader_id if log.leader_id >= 0 else None,
            leader_epoch=log.leader_epoch,
            voters=tuple(sorted(voter.replica_id for voter in log.current_voters)),
            observers=tuple(sorted(observer.replica_id for observer in log.observers)),
        )

    async def _moves(self) -> None:
        request = ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None)
        told = await self._ask(request)
        if told.error_code == errors.NotControllerError.errno:  # under ZooKeeper only it knows
            controller = self.manager.cluster.controller
            connection = self.manager.get_connection(controller.node_id)
            await self._within(connection.init_future)
            told = await self._ask(
                ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None), connection
            )
        _raise_for(told.error_code)
        for topic in told.topics:
            for moving in topic.partitions:
                self.answers.moves[topic.name, moving.partition_index] = (
                    tuple(moving.adding_replicas),
                    tuple(moving.removing_replicas),
                )

    async def _ask_every_broker(self) -> None:
        running = sorted(self.answers.racks.keys() - self.answers.fenced)
        # All connections are begun before the first is waited for.
        begun = {broker: self.manager.get_connection(broker) for broker in running}
        for broker, connection in begun.items():
            try:
                await self._within(connection.init_future)
                version = connection.broker_version_data.broker_version_str
                self.answers.versions[broker] = version
                await self._settings(BROKER, [str(broker)], connection)
            except errors.KafkaError as error:
                self.answers.refused[BROKER, str(broker)] = name_of(error)

    async def _settings(self, kind: int, names: Sequence[str], connection: Any) -> None:
        if not names:
            return
        try:
            told = await self._ask(
                DescribeConfigsRequest(resources=[(kind, name, None) for name in names]), connection
            )
        except errors.KafkaError as error:
            self.answers.refused.update({(kind, name): name_of(error) for name in names})
            return
        for result in told.results:
            key = (kind, result.resource_name)
            if result.error_code:
                self.answers.refused[key] = name_of(errors.for_code(result.error_code)())
            else:
                rows = [row.to_dict() for row in result.configs]
                self.answers.settings[key] = {row["name"]: setting_of(row, kind) for row in rows}


def setting_of(row: Mapping[str, Any], kind: int) -> Setting:
    """Return a setting from its row in a response; before 1.1 the source is told only roughly."""
    source = row.get("config_source")
    if source is None or source not in SOURCES:
        dynamic = 1 if kind == TOPIC else 4
        source = 5 if row.get("is_default") else dynamic
    return Setting(row["value"], SOURCES[source])


def _append(topics: list[dict[str, Any]], page: list[dict[str, Any]]) -> None:
    """Add a page; a topic that it goes on with is the last of the page before."""
    for topic in page:
        if topics and topics[-1]["name"] == topic["name"]:
            topics[-1]["partitions"].extend(topic["partitions"])
        else:
            topics.append(topic)


def _raise_for(code: int) -> None:
    if code:
        raise errors.for_code(code)()


def name_of(error: Exception) -> str:
    """Return Kafka's own name of an error, or a few words where it is the connection's."""
    if isinstance(error, errors.BrokerResponseError) and isinstance(error.message, str):
        return error.message
    if isinstance(error, errors.KafkaTimeoutError):
        return "no answer in time"
    if isinstance(error, errors.KafkaConnectionError | errors.NodeNotReadyError):
        return "no connection"
    return type(error).__name__


def _failure(error: Exception, properties: ClientProperties, connected: bool) -> str:
    """Return what went wrong with the first broker, to stand behind its address."""
    if isinstance(error, errors.IncompatibleBrokerVersion | errors.UnsupportedVersionError):
        return "does not tell of brokers and topics; it may be a controller's port: give a broker's"
    if isinstance(error, errors.KafkaTimeoutError | errors.RequestTimedOutError):
        return "accepts connections and does not answer in time"
    if isinstance(error, errors.KafkaProtocolError):
        return "answers, but not as a Kafka broker does"
    if properties.sasl and not connected:
        # kafka-python loses the reason where the broker closes the connection right behind it.
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
    return f"cannot be asked ({name_of(error)})"


@contextmanager
def _discreet(thread: str) -> Iterator[None]:
    """Keep what kafka-python sends for us out of its debug log, which would show the password."""

    def shown(record: logging.LogRecord) -> bool:
        return record.levelno > logging.DEBUG or record.threadName != thread

    loggers = [logging.getLogger(name) for name in _TALKATIVE]
    for logger in loggers:
        logger.addFilter(shown)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(shown)
