"""The state of a simulated cluster: immutable, hashable, small.

It holds the controller's records, each broker's view of each partition, the logs, and (for the
invariants) which values were acknowledged and committed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from advisor.protocol.log.replica_log import EMPTY, Log, Span, Spans
from advisor.protocol.rules.config import Config, effective_min_isr
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration, Replicas
from advisor.protocol.rules.versions import Rules, default

ACTIVE = "active"
FENCED = "fenced"
STOPPING = "stopping"

OFFLINE = "offline"
FOLLOWER = "follower"
LEADER = "leader"

NEVER_MS = -(10**12)

# KRaft: controller.quorum.fetch.timeout.ms; a ZooKeeper controller's own session must expire.
KRAFT_FAILOVER_MS = 2_000

# How long a broker that is told to stop waits for a controller (BrokerServer.shutdown).
KRAFT_SHUTDOWN_MS = 300_000
# ZooKeeper: three requests of request.timeout.ms, two waits of controlled.shutdown.retry.backoff.ms
# (KafkaServer.doControlledShutdown).
ZOOKEEPER_SHUTDOWN_MS = 100_000


class Broker(NamedTuple):
    """A broker: its process and its session with the controller.

    connected: other brokers and the controller can reach it.
    fetching: its replica fetchers run; False while it lags.
    registered: the controller has accepted this incarnation of the process.
    clean: whether the last shutdown was clean, as the broker will report it.
    silent_since_ms: time since which the controller gets no heartbeats, while the session lasts.
    limping: it neither fetches nor answers fetches; all else goes on.
    stops_by_ms: when it stops whatever the controller says, during a controlled shutdown.
    """

    id: int
    rack: str | None = None
    session: str = ACTIVE
    running: bool = True
    connected: bool = True
    fetching: bool = True
    registered: bool = True
    clean: bool = True
    epoch: int = 0
    silent_since_ms: int | None = None
    limping: bool = False
    stops_by_ms: int | None = None


class Follower(NamedTuple):
    """A leader's state of a follower (``Replica.ReplicaState``); -1 if unknown."""

    broker: int
    leo: int = -1
    caught_up_ms: int = NEVER_MS
    fetch_ms: int = NEVER_MS
    leader_leo: int = -1
    broker_epoch: int = -1


class Proposal(NamedTuple):
    """An ISR change sent to the controller, with the broker epochs that it is based on."""

    isr: Replicas
    broker_epochs: tuple[int, ...]
    refused: bool = False


class DelayedProduce(NamedTuple):
    """An acks=all request that is appended and not yet answered."""

    span: Span
    end: int
    deadline_ms: int


class Replica(NamedTuple):
    """One replica of a partition and its broker's view of it.

    ``isr``, ``proposal``, ``followers``, ``waiting`` and ``epoch_start`` apply to a leader,
    ``truncating`` (it must ask for its truncation offset before it fetches) to a follower.
    """

    broker: int
    log: Log = EMPTY
    hw: int = 0
    role: str = OFFLINE
    leader: int = NO_LEADER
    leader_epoch: int = -1
    partition_epoch: int = -1
    truncating: bool = False
    epoch_start: int = 0
    isr: Replicas = ()
    proposal: Proposal | None = None
    followers: tuple[Follower, ...] = ()
    waiting: tuple[DelayedProduce, ...] = ()


class Partition(NamedTuple):
    """A partition: topic settings, the controller's record, replicas, data for the invariants.

    ``acked`` holds the values whose producer got a success, ``committed`` those that were below the
    high watermark of the leader on record. ``throttle`` limits the copying of a reassignment, in
    records per second for each new replica (0: no limit).
    """

    topic: str
    number: int
    min_insync_replicas: int
    unclean: bool
    registration: Registration
    replicas: tuple[Replica, ...]
    acked: Spans = ()
    committed: Spans = ()
    throttle: int = 0


class State(NamedTuple):
    """A cluster at one moment, in virtual time.

    controller_from_ms: when the next controller takes over; -1 while one is active.
    controller_broker: the broker that is, or last was, the ZooKeeper controller; -1 for a separate
        controller.
    next_value: value of the next record produced.
    has_quorum: whether the KRaft quorum, or ZooKeeper, is there: without it nothing is recorded.
    """

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...] = ()
    now_ms: int = 0
    controller_epoch: int = 1
    controller_from_ms: int = -1
    controller_broker: int = -1
    next_value: int = 0
    next_broker_epoch: int = 1
    has_quorum: bool = True


@dataclass(frozen=True, eq=False)
class Settings:
    """Settings that stay constant while a cluster runs.

    session_timeout_ms: by default that of the configuration.
    only_controller: brokers do not fetch, expire or propose on their own; tests drive the
        controller.
    preview_elr: eligible leader replicas in a version that has them only in its own tests (3.7 to
        3.9).
    """

    config: Config
    session_timeout_ms: int = 0
    only_controller: bool = False
    preview_elr: bool = False

    def __post_init__(self) -> None:
        if not self.session_timeout_ms:
            object.__setattr__(self, "session_timeout_ms", self.config.session_timeout_ms)

    @cached_property
    def rules(self) -> Rules:
        """Replication rules of the version."""
        rules = self.config.rules
        return replace(rules, eligible_leader_replicas=True) if self.preview_elr else rules

    @cached_property
    def kraft(self) -> bool:
        """Whether the controller is KRaft."""
        return self.config.mode == "kraft"

    @cached_property
    def lag_ms(self) -> int:
        """``replica.lag.time.max.ms``."""
        assert self.config.replica_lag_time_max_ms is not None
        return self.config.replica_lag_time_max_ms

    @cached_property
    def lag_messages(self) -> int | None:
        """``replica.lag.max.messages``; None since 0.9."""
        value = default("replica_lag_max_messages", self.config.kafka_version)
        return None if value is None else int(str(value))

    @cached_property
    def request_timeout_ms(self) -> int:
        """The producer's ``request.timeout.ms``: how long an acks=all request may wait."""
        assert self.config.request_timeout_ms is not None
        return self.config.request_timeout_ms

    @cached_property
    def with_epochs(self) -> bool:
        """Whether logs have leader epochs (0.11)."""
        return self.rules.truncation != "high_watermark"

    @cached_property
    def failover_ms(self) -> int:
        """Time from the controller's failure to the next controller."""
        return KRAFT_FAILOVER_MS if self.kraft else self.session_timeout_ms

    @cached_property
    def shutdown_ms(self) -> int:
        """How long a broker that is told to stop waits for the controller's consent."""
        return KRAFT_SHUTDOWN_MS if self.kraft else ZOOKEEPER_SHUTDOWN_MS

    @cached_property
    def _policies(self) -> dict[tuple[int, bool], Policy]:
        return {}

    @cached_property
    def _min_isrs(self) -> dict[tuple[int, int], int]:
        return {}

    def policy(self, partition: Partition) -> Policy:
        """Return the topic settings that the controller uses for a partition."""
        key = (self.min_isr(partition), partition.unclean)
        policy = self._policies.get(key)
        if policy is None:
            policy = self._policies[key] = Policy(key[0], key[1], self.rules)
        return policy

    def min_isr(self, partition: Partition) -> int:
        """Return a partition's effective min.insync.replicas."""
        key = (partition.min_insync_replicas, len(partition.registration.replicas))
        effective = self._min_isrs.get(key)
        if effective is None:
            effective = self._min_isrs[key] = effective_min_isr(*key, self.rules)
        return effective


def broker_of(state: State, broker: int) -> Broker:
    """Return the broker with an id; KeyError if there is none."""
    for candidate in state.brokers:
        if candidate.id == broker:
            return candidate
    raise KeyError(broker)


def with_broker(state: State, changed: Broker) -> State:
    """Return the state with one broker replaced."""
    brokers = tuple([changed if b.id == changed.id else b for b in state.brokers])
    return State(brokers, *state[1:])


def active_brokers(state: State) -> frozenset[int]:
    """Return the ids of brokers that may lead: neither fenced nor stopping."""
    return frozenset([b.id for b in state.brokers if b.session == ACTIVE])


def position_of(state: State, topic: str, number: int) -> int:
    """Return a partition's index in ``state.partitions``; KeyError if there is none."""
    for position, partition in enumerate(state.partitions):
        if partition.number == number and partition.topic == topic:
            return position
    raise KeyError((topic, number))


def with_partition(state: State, position: int, changed: Partition) -> State:
    """Return the state with the partition at an index replaced."""
    old = state.partitions
    if old[position] is changed:
        return state
    return with_partitions(state, (*old[:position], changed, *old[position + 1 :]))


def with_partitions(state: State, changed: tuple[Partition, ...]) -> State:
    """Return the state with new partitions; faster than ``_replace``, since most steps do this."""
    return State(state.brokers, changed, *state[2:])


def replica_of(partition: Partition, broker: int) -> Replica | None:
    """Return a broker's replica of a partition, None if it has none."""
    for replica in partition.replicas:
        if replica.broker == broker:
            return replica
    return None


def with_replica(partition: Partition, changed: Replica) -> Partition:
    """Return the partition with one replica replaced, or added in broker id order."""
    old = partition.replicas
    for place, replica in enumerate(old):
        if replica.broker == changed.broker:
            replicas = (*old[:place], changed, *old[place + 1 :])
            return Partition(*partition[:5], replicas, *partition[6:])
    return partition._replace(replicas=tuple(sorted([*old, changed], key=_by_broker)))


def _by_broker(replica: Replica) -> int:
    return replica.broker


def has_controller(state: State) -> bool:
    """Return whether a controller is active; a ZooKeeper controller is a broker and may be down."""
    if not state.has_quorum or state.controller_from_ms >= 0:
        return False
    if state.controller_broker < 0:
        return True
    node = broker_of(state, state.controller_broker)
    return node.running and node.connected and node.registered and node.session != FENCED


def current_leader(state: State, partition: Partition) -> Replica | None:
    """Return the replica of the leader on record, if its broker runs and acts as leader."""
    leader = partition.registration.leader
    if leader == NO_LEADER:
        return None
    replica = replica_of(partition, leader)
    if replica is None or replica.role != LEADER or not broker_of(state, leader).running:
        return None
    return replica


def maximal_isr(replica: Replica) -> Replicas:
    """Return a leader's ISR together with the members it has proposed to add (KIP-497)."""
    if replica.proposal is None:
        return replica.isr
    return (*replica.isr, *(b for b in replica.proposal.isr if b not in replica.isr))
