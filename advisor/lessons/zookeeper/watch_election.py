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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.lessons.zookeeper import locks, service
from advisor.lessons.zookeeper.locks import World
from advisor.lessons.zookeeper.service import (
    Connect,
    Create,
    Delete,
    Effect,
    Exists,
    Expire,
    GetChildren,
    GetData,
    Notification,
    Reply,
    SetData,
    ZooKeeper,
)
from advisor.protocol.rules import controller
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import Registration, Replicas
from advisor.protocol.rules.versions import rules_for

CONTROLLER = "/controller"
BROKER_IDS = "/brokers/ids"
ELECTION = "/election"

QUEUE = "/queue"

_READS = (Exists, GetChildren, GetData)
# Any version with a ZooKeeper controller elects the same.
_POLICY = Policy(min_isr=1, unclean=False, rules=rules_for("3.9", "zookeeper"))

Assignment = Mapping[int, Sequence[int]]


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
    registrations = {}
    for partition, registration in cluster.registrations.items():
        if took_over:
            changed = controller.controller_started(registration, live, _POLICY)
        else:
            changed = controller.broker_gone(registration, dead, live, _POLICY)
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


@dataclass(frozen=True, slots=True)
class NoticeLoad:
    """Requests to ZooKeeper or to brokers, those that write to ZooKeeper, and notifications."""

    requests: int
    writes: int
    notifications: int


def changed_by_broker(assignment: Assignment, dead: int) -> dict[int, list[int]]:
    """Partitions whose leader or ISR changes, by live broker with a replica of them."""
    live = frozenset({broker for replicas in assignment.values() for broker in replicas} - {dead})
    notices: dict[int, list[int]] = {}
    for partition, replicas in sorted(assignment.items()):
        record = Registration(tuple(replicas), tuple(replicas), replicas[0])
        if controller.broker_gone(record, dead, live, _POLICY) != record:
            for broker in live.intersection(replicas):
                notices.setdefault(broker, []).append(partition)
    return dict(sorted(notices.items()))


def rpc_load(assignment: Assignment, dead: int) -> NoticeLoad:
    """Load of Kafka's own way: at most four requests for each broker, whatever the partitions.

    Two batches, of new leaders and of the ISRs of what the dead broker followed; each is a
    LeaderAndIsr request to each broker with a replica of what changed, and an UpdateMetadata
    request to each live broker (``ControllerBrokerRequestBatch``).
    """
    brokers = {broker for replicas in assignment.values() for broker in replicas}
    requests = 0
    for leads in (True, False):
        batch = {p: r for p, r in assignment.items() if (r[0] == dead) == leads}
        told = changed_by_broker(batch, dead)
        requests += len(told) + len(brokers - {dead}) if told else 0
    return NoticeLoad(requests, 0, 0)


def queue_load(assignment: Assignment, dead: int) -> NoticeLoad:
    """Load of a queue for each broker: a node for each change, which it reads and deletes."""
    notices = changed_by_broker(assignment, dead)
    server = service.with_paths(f"{QUEUE}/{broker}" for broker in notices)
    session = {broker: place + 2 for place, broker in enumerate(notices)}
    for client in (1, *session.values()):
        server, _ = service.step(server, Connect(18_000, client))
    for broker, client in session.items():
        server, _ = service.step(server, GetChildren(client, f"{QUEUE}/{broker}", watch=True))
    sent: list[Effect] = []
    for broker, partitions in notices.items():
        for partition in partitions:
            path = f"{QUEUE}/{broker}/n"
            server, effects = service.step(server, Create(1, path, str(partition), sequential=True))
            sent += effects
    for broker, client in session.items():
        server, read = _drain(server, client, f"{QUEUE}/{broker}")
        sent += read
    replies = [effect for effect in sent if isinstance(effect, Reply)]
    writes = [reply for reply in replies if isinstance(reply.request, Create | Delete)]
    told = sum(isinstance(effect, Notification) for effect in sent)
    return NoticeLoad(len(replies), len(writes), told)


def _drain(server: ZooKeeper, client: int, path: str) -> tuple[ZooKeeper, list[Effect]]:
    """A broker lists its queue, watches it again, and reads and deletes every node."""
    server, effects = service.step(server, GetChildren(client, path, watch=True))
    sent = list(effects)
    listed = effects[-1]
    assert isinstance(listed, Reply)
    assert isinstance(listed.value, tuple)
    for child in listed.value:
        for request in (GetData(client, f"{path}/{child}"), Delete(client, f"{path}/{child}")):
            server, effects = service.step(server, request)
            sent += effects
    return server, sent
