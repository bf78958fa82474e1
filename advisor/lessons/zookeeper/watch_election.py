"""Partition leader election by watches alone, compared with Kafka's controller.

The watch scheme: the leader of each partition is an ephemeral node that every follower watches;
when it is deleted, every follower tries to create it. It has three problems. A leader that has not
yet learned that its session expired keeps leading beside the new one (split brain). The failure of
one broker notifies every follower of every partition it led (herd effect). Every follower needs a
watch (load). Kafka elects one controller in this way, which then elects all partition leaders (0.8
to 3.9).

Loads are those of the schemes themselves. ``kafka_controller_watches`` counts all watches that
Kafka's controller sets.

Sources: ``KafkaController`` (``onControllerFailover``, ``onBrokerFailure``, ``elect``),
``ReplicaStateMachine``, ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.lessons.zookeeper import locks, service
from advisor.lessons.zookeeper.locks import World
from advisor.lessons.zookeeper.requests import (
    Create,
    Effect,
    Exists,
    Expire,
    GetChildren,
    GetData,
    Notification,
    Reply,
    SetData,
)
from advisor.protocol.rules import controller
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import Registration, Replicas
from advisor.protocol.rules.versions import rules_for

CONTROLLER = "/controller"
BROKER_IDS = "/brokers/ids"
ELECTION = "/election"

_READS = (Exists, GetChildren, GetData)


@dataclass(frozen=True, slots=True)
class Load:
    """Load on ZooKeeper of one broker failure.

    notifications: watch notifications sent.
    woken: clients that receive at least one.
    creates, refused_creates: attempts to create a node, and those that fail because it exists.
    reads: reads of nodes or children, most of which set a watch again.
    writes: partition states written.
    """

    watches: int
    notifications: int
    woken: int
    creates: int
    refused_creates: int
    reads: int
    writes: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Load of both schemes when broker 0 fails.

    every_follower_watches: without a controller.
    controller_died: with the controller on broker 0.
    """

    every_follower_watches: Load
    controller: Load
    controller_died: Load


def compare(partitions: int, replication_factor: int, brokers: int) -> Comparison:
    """Loads in closed form, for replicas assigned by ``(i + j) mod brokers``.

    partitions: p, at least 1.
    replication_factor: r, from 1 to ``brokers``.

    Let broker 0 lead L partitions and follow F. The watch scheme needs P (R-1) watches and
    L (R-1) notifications, each followed by an attempt to create the node and, except for one per
    partition, by a read that sets the watch again. With R = 1 there is no follower to take over.
    The controller scheme needs B watches, one notification and one read of the broker list, and
    writes each partition of broker 0 once. If the controller fails, the B-1 other brokers all try
    to become controller; the new one reads every partition, and writes those led by broker 0 twice
    (see ``controller.controller_started``).
    """
    followers = replication_factor - 1
    led = _count(partitions, brokers, 0)
    followed = sum(
        _count(partitions, brokers, (brokers - j) % brokers) for j in range(1, replication_factor)
    )
    woken = led * followers
    writes = led + followed
    # Followers of broker 0's partitions are on the next brokers, modulo the number of brokers.
    notified = followers if led else 0
    lost = led if followers else 0
    plain = Load(partitions * followers, woken, notified, woken, woken - lost, woken - lost, 0)
    others = brokers - 1
    watches = others + 1
    alive = Load(watches, 1, 1, 0, 0, 1, writes)
    again = led if followers else 0
    died = Load(watches, others, others, others, others - 1, others + partitions, writes + again)
    return Comparison(plain, alive, died)


def kafka_controller_watches(brokers: int, topics: int) -> int:
    """Watches that Kafka's controller sets (1.1 to 3.9), without reassignments.

    Every broker watches ``/controller``. The controller watches five lists (brokers, topics,
    deletions, ISR changes, log directory events), two nodes (preferred election, reassignment),
    each broker's node and each topic's. The number does not depend on partitions or replicas.
    """
    return brokers + 5 + 2 + brokers + topics


def split_brain_ms(
    isolated_ms: int, timeout_ms: int, tick_ms: int = service.DEFAULT_TICK_MS
) -> int:
    """Time with two leaders when a leader is disconnected from ZooKeeper but not from clients.

    Its last heartbeat was on a tick, and the followers act immediately. Two brokers lead from the
    expiry of the session, at most one tick after the timeout, until the old leader reconnects; the
    time has no upper bound.

    isolated_ms: duration of the disconnection.
    timeout_ms: requested session timeout, such as ``zookeeper_session_timeout_ms``.
    """
    granted = service.negotiated_timeout_ms(timeout_ms, tick_ms)
    return max(0, isolated_ms - service.expiry_ms(0, granted, tick_ms))


def watch_scheme(assignment: Mapping[int, Replicas], timeout_ms: int = locks.TIMEOUT_MS) -> World:
    """Watch scheme in steady state: the first replica of each partition leads, the others watch.

    Broker b has session b + 1, since ZooKeeper has no session 0.
    """
    brokers = 1 + max(broker for replicas in assignment.values() for broker in replicas)
    paths = map(_election_path, assignment)
    world = locks.new_world(locks.NAME, brokers, paths, timeout_ms)
    for place in range(max(map(len, assignment.values()))):
        for partition, replicas in sorted(assignment.items()):
            if place < len(replicas):
                acquire = locks.Acquire(replicas[place] + 1, _election_path(partition))
                world, _ = locks.step(world, acquire)
        world, _ = locks.settle(world)
    return world


def leaders(world: World, partition: int) -> Replicas:
    """Brokers that believe they lead the partition; two or more are a split brain."""
    return tuple(
        session - 1 for session in locks.presumed_holders(world, _election_path(partition))
    )


def watch_scheme_load(assignment: Mapping[int, Replicas], dead: int) -> Load:
    """Load of the simulated failure of a broker under the watch scheme."""
    world = watch_scheme(assignment)
    watches = service.watch_count(world.server)
    world, immediate = locks.step(world, Expire(dead + 1))
    _, later = locks.settle(world)
    return _tally(watches, immediate + later)


@dataclass(frozen=True, slots=True)
class ControllerScheme:
    """A cluster with a controller: the lock on ``/controller``, and the partition registrations.

    world: broker b has session b + 1.
    """

    world: World
    registrations: Mapping[int, Registration]


def controller_scheme(assignment: Mapping[int, Replicas]) -> ControllerScheme:
    """Controller scheme in steady state: broker 0 is the controller, all brokers registered."""
    brokers = 1 + max(broker for replicas in assignment.values() for broker in replicas)
    world = locks.new_world(locks.NAME, brokers, [CONTROLLER])
    states = [f"{ELECTION}/{partition}" for partition in assignment]
    world = replace(world, server=service.with_paths([BROKER_IDS, *states], world.server))
    for broker in range(brokers):
        registered = Create(broker + 1, f"{BROKER_IDS}/{broker}", ephemeral=True)
        server, _ = service.step(world.server, registered)
        world, _ = locks.step(replace(world, server=server), locks.Acquire(broker + 1, CONTROLLER))
        world, _ = locks.settle(world)
    server, _ = service.step(world.server, GetChildren(1, BROKER_IDS, watch=True))
    registrations = {p: Registration(r, r, r[0]) for p, r in assignment.items()}
    return ControllerScheme(replace(world, server=server), registrations)


def controller_scheme_load(assignment: Mapping[int, Replicas], dead: int) -> Load:
    """Load of the simulated failure of a broker under the controller scheme.

    Broker 0 is the controller; if it fails, the others first elect a new one.
    """
    cluster = controller_scheme(assignment)
    watches = service.watch_count(cluster.world.server)
    world, immediate = locks.step(cluster.world, Expire(dead + 1))
    world, later = locks.settle(world)
    _, elections = run_controller(replace(cluster, world=world), dead, took_over=dead == 0)
    return _tally(watches, immediate + later + elections)


def run_controller(
    cluster: ControllerScheme, dead: int, took_over: bool
) -> tuple[ControllerScheme, tuple[Effect, ...]]:
    """The controller lists the brokers again and updates every partition of the dead broker.

    A new controller first reads every partition's state. Each state is written with one request.
    """
    (session,) = locks.holders(cluster.world, CONTROLLER)
    server = cluster.world.server
    server, effects = service.step(server, GetChildren(session, BROKER_IDS, watch=True))
    listed = effects[-1]
    assert isinstance(listed, Reply)
    assert isinstance(listed.value, tuple)
    if took_over:
        for partition in cluster.registrations:
            server, sent = service.step(server, GetData(session, f"{ELECTION}/{partition}"))
            effects += sent
    live = frozenset(int(name) for name in listed.value)
    # Any version with a ZooKeeper controller gives the same result.
    policy = Policy(min_isr=1, unclean=False, rules=rules_for("3.9", "zookeeper"))
    registrations = {}
    for partition, registration in cluster.registrations.items():
        if took_over:
            changed = controller.controller_started(registration, live, policy)
        else:
            changed = controller.broker_gone(registration, dead, live, policy)
        registrations[partition] = changed
        for _ in range(changed.partition_epoch - registration.partition_epoch):
            write = SetData(session, f"{ELECTION}/{partition}", str(changed.leader))
            server, sent = service.step(server, write)
            effects += sent
    return ControllerScheme(replace(cluster.world, server=server), registrations), effects


def _election_path(partition: int) -> str:
    return f"{ELECTION}/{partition}"


def _count(partitions: int, brokers: int, remainder: int) -> int:
    """Number of partitions, from 0, with this remainder modulo ``brokers``."""
    return (partitions - remainder + brokers - 1) // brokers if partitions > remainder else 0


def _tally(watches: int, effects: tuple[Effect, ...]) -> Load:
    notified = [effect for effect in effects if isinstance(effect, Notification)]
    replies = [effect for effect in effects if isinstance(effect, Reply)]
    kinds = Counter(type(reply.request) for reply in replies)
    refused = [r for r in replies if isinstance(r.request, Create) and r.error is not None]
    return Load(
        watches=watches,
        notifications=len(notified),
        woken=len({effect.session for effect in notified}),
        creates=kinds[Create],
        refused_creates=len(refused),
        reads=sum(kinds[kind] for kind in _READS),
        writes=kinds[SetData],
    )
