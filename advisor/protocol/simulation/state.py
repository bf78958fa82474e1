"""What the reference knows of a cluster at one moment: immutable, hashable, small.

A state holds the controller's records, what each broker believes of each partition, the logs, and
(for the checks) which values were acknowledged and which were committed.
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


class Broker(NamedTuple):
    """A broker, its process and its session with the controller.

    Attributes
    ----------
    id : int
    rack : str or None
    session : {"active", "fenced", "stopping"}
        What the controller believes; "stopping" is a controlled shutdown under way.
    running : bool
        The process is up.
    connected : bool
        Other brokers and the controller can reach it.
    fetching : bool
        Its followers copy; False while it lags.
    registered : bool
        The controller has accepted this life of the process.
    clean : bool
        How the last life ended, as the broker itself will report it.
    epoch : int
        Broker epoch of the accepted registration.
    silent_since_ms : int or None
        Since when the controller has heard nothing, while the session lasts.
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


class Follower(NamedTuple):
    """What a leader remembers of a follower (``Replica.ReplicaState``); offsets -1: unknown."""

    broker: int
    leo: int = -1
    caught_up_ms: int = NEVER_MS
    fetch_ms: int = NEVER_MS
    leader_leo: int = -1
    broker_epoch: int = -1


class Proposal(NamedTuple):
    """An ISR change on its way to the controller, with the broker epochs that it relies on."""

    isr: Replicas
    broker_epochs: tuple[int, ...]
    refused: bool = False


class DelayedProduce(NamedTuple):
    """An acks=all request that is appended and not yet answered."""

    span: Span
    end: int
    deadline_ms: int


class Replica(NamedTuple):
    """One broker's copy of a partition and what that broker believes of it.

    ``isr``, ``proposal``, ``followers``, ``waiting`` and ``epoch_start`` matter to a leader,
    ``truncating`` (it must ask where to cut before it copies) to a follower.
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
    """A partition: its settings, the controller's record, its copies, and the books of the checks.

    ``acked`` are the values whose producer got its success, ``committed`` those that were below
    the high watermark of the leader that the controller knew. ``throttle`` holds back the copying
    of a reassignment, in records a second for each new replica (0: not).
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
    """A cluster at one moment.

    ``controller_from_ms`` is -1 while a controller acts, otherwise when the next one takes over.
    ``controller_broker`` is the broker that is the ZooKeeper controller, or was the last; -1 for a
    controller apart from the brokers.
    """

    brokers: tuple[Broker, ...]
    partitions: tuple[Partition, ...] = ()
    now_ms: int = 0
    controller_epoch: int = 1
    controller_from_ms: int = -1
    controller_broker: int = -1
    next_value: int = 0
    next_broker_epoch: int = 1


@dataclass(frozen=True, eq=False)
class Settings:
    """What does not change while a cluster runs.

    Attributes
    ----------
    config : Config
        Version, controller, topic defaults and the replica lag time.
    session_timeout_ms : int
        After how long a silent broker is taken for dead.
    only_controller : bool
        No broker fetches, dies or proposes by itself: the controller is driven by hand.
    preview_elr : bool
        Eligible leader replicas on in a version that had them only in its own tests (3.7 to 3.9).
    """

    config: Config
    session_timeout_ms: int
    only_controller: bool = False
    preview_elr: bool = False

    @classmethod
    def of(
        cls,
        config: Config,
        *,
        session_timeout_ms: int | None = None,
        only_controller: bool = False,
        preview_elr: bool = False,
    ) -> Settings:
        """Settings with Kafka's session timeout for the version and controller."""
        if session_timeout_ms is None:
            kraft = config.mode == "kraft"
            option = "broker_session_timeout_ms" if kraft else "zookeeper_session_timeout_ms"
            session_timeout_ms = int(str(default(option, config.kafka_version)))
        return cls(config, session_timeout_ms, only_controller, preview_elr)

    @cached_property
    def rules(self) -> Rules:
        """The replication rules."""
        rules = self.config.rules
        return replace(rules, eligible_leader_replicas=True) if self.preview_elr else rules

    @cached_property
    def kraft(self) -> bool:
        """True under KRaft."""
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
        """``request.timeout.ms`` of the producer: how long an acks=all request may wait."""
        assert self.config.request_timeout_ms is not None
        return self.config.request_timeout_ms

    @cached_property
    def with_epochs(self) -> bool:
        """Logs know leader epochs (0.11)."""
        return self.rules.truncation != "high_watermark"

    @cached_property
    def failover_ms(self) -> int:
        """How long the cluster is without a controller after its death."""
        return KRAFT_FAILOVER_MS if self.kraft else self.session_timeout_ms

    @cached_property
    def _policies(self) -> dict[tuple[int, bool], Policy]:
        return {}

    @cached_property
    def _min_isrs(self) -> dict[tuple[int, int], int]:
        return {}

    def policy(self, partition: Partition) -> Policy:
        """What the controller looks at when it decides about a partition."""
        key = (self.min_isr(partition), partition.unclean)
        policy = self._policies.get(key)
        if policy is None:
            policy = self._policies[key] = Policy(key[0], key[1], self.rules)
        return policy

    def min_isr(self, partition: Partition) -> int:
        """The effective min.insync.replicas of a partition."""
        key = (partition.min_insync_replicas, len(partition.registration.replicas))
        effective = self._min_isrs.get(key)
        if effective is None:
            effective = self._min_isrs[key] = effective_min_isr(*key, self.rules)
        return effective


def broker_of(state: State, broker: int) -> Broker:
    """The broker with an id; KeyError if there is none."""
    for candidate in state.brokers:
        if candidate.id == broker:
            return candidate
    raise KeyError(broker)


def with_broker(state: State, changed: Broker) -> State:
    """The state with one broker changed."""
    brokers = tuple([changed if b.id == changed.id else b for b in state.brokers])
    return State(brokers, *state[1:])


def active_brokers(state: State) -> frozenset[int]:
    """Brokers that the controller lets lead."""
    return frozenset([b.id for b in state.brokers if b.session == ACTIVE])


def position_of(state: State, topic: str, number: int) -> int:
    """Where a partition stands in ``state.partitions``; KeyError if there is none."""
    for position, partition in enumerate(state.partitions):
        if partition.number == number and partition.topic == topic:
            return position
    raise KeyError((topic, number))


def with_partition(state: State, position: int, changed: Partition) -> State:
    """The state with the partition at a position changed."""
    old = state.partitions
    if old[position] is changed:
        return state
    return with_partitions(state, (*old[:position], changed, *old[position + 1 :]))


def with_partitions(state: State, changed: tuple[Partition, ...]) -> State:
    """The state with other partitions; built whole, as this is what most steps do."""
    return State(state.brokers, changed, *state[2:])


def replica_of(partition: Partition, broker: int) -> Replica | None:
    """A broker's copy of a partition, None if it has none."""
    for replica in partition.replicas:
        if replica.broker == broker:
            return replica
    return None


def with_replica(partition: Partition, changed: Replica) -> Partition:
    """The partition with one copy changed, or added in the order of broker ids."""
    old = partition.replicas
    for place, replica in enumerate(old):
        if replica.broker == changed.broker:
            replicas = (*old[:place], changed, *old[place + 1 :])
            return Partition(*partition[:5], replicas, *partition[6:])
    return partition._replace(replicas=tuple(sorted([*old, changed], key=_by_broker)))


def _by_broker(replica: Replica) -> int:
    return replica.broker


def has_controller(state: State) -> bool:
    """Whether a controller acts now; under ZooKeeper it is a broker, and may be down."""
    if state.controller_from_ms >= 0:
        return False
    if state.controller_broker < 0:
        return True
    node = broker_of(state, state.controller_broker)
    return node.running and node.connected and node.registered and node.session != FENCED


def current_leader(state: State, partition: Partition) -> Replica | None:
    """The copy of the leader that the controller knows, if that broker lives and leads."""
    leader = partition.registration.leader
    if leader == NO_LEADER:
        return None
    replica = replica_of(partition, leader)
    if replica is None or replica.role != LEADER or not broker_of(state, leader).running:
        return None
    return replica


def maximal_isr(replica: Replica) -> Replicas:
    """A leader's ISR together with the members that it has asked to add (KIP-497)."""
    if replica.proposal is None:
        return replica.isr
    return (*replica.isr, *(b for b in replica.proposal.isr if b not in replica.isr))
