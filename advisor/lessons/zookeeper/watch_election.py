"""Partition leader election by watches alone, compared with Kafka's controller.

The watch scheme: the leader of each partition is an ephemeral node that every follower watches;
when it is deleted, every follower tries to create it. It has three problems: two leaders while the
old one has not learned that its session expired (split brain), a notification for every follower of
every partition of a broker that fails (herd effect), and a watch for each of them (load). Kafka
elects one controller in this way, which then elects all partition leaders (0.8 to 3.9).

Sources: ``KafkaController`` (``onControllerFailover``, ``onBrokerFailure``, ``elect``),
``ReplicaStateMachine``, ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.lessons.zookeeper import locks, service
from advisor.lessons.zookeeper.locks import World
from advisor.lessons.zookeeper.service import (
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
from advisor.protocol.rules.assignment import assign
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

    woken: clients that receive at least one notification.
    refused_creates: attempts to create a node that exists.
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
    """Load of both schemes when a broker fails, which is the controller or is not."""

    every_follower_watches: Load
    controller: Load
    controller_died: Load


def compare(partitions: int, replication_factor: int, brokers: int) -> Comparison:
    """Simulate both schemes, for replicas assigned by ``(i + j) mod brokers``."""
    names = dict.fromkeys(range(brokers))
    placed = assign(names, partitions, replication_factor, algorithm="modulo")
    rows = {partition: tuple(replicas) for partition, replicas in placed.items()}
    # Broker 0 is the controller; by rotation broker 1 has what broker 0 had.
    turned = {p: tuple((broker + 1) % brokers for broker in r) for p, r in rows.items()}
    return Comparison(
        every_follower_watches=watch_scheme_load(rows, 0),
        controller=controller_scheme_load(turned, 1),
        controller_died=controller_scheme_load(rows, 0),
    )


def split_brain_ms(isolated_ms: int, timeout_ms: int) -> int:
    """Time with two leaders when a leader is disconnected from ZooKeeper but not from clients.

    Its last heartbeat was on a tick. Two brokers lead from the expiry of the session until the old
    leader reconnects; the time has no upper bound.
    """
    granted = service.negotiated_timeout_ms(timeout_ms)
    return max(0, isolated_ms - service.expiry_ms(0, granted))


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
    """Load of the failure of a broker under the watch scheme."""
    world = watch_scheme(assignment)
    watches = service.watch_count(world.server)
    world, immediate = locks.step(world, Expire(dead + 1))
    _, later = locks.settle(world)
    return _tally(watches, immediate + later)


@dataclass(frozen=True, slots=True)
class ControllerScheme:
    """The lock on ``/controller``, where broker b has session b + 1, and the registrations."""

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
    """Load of the failure of a broker under the controller scheme; broker 0 is the controller."""
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
