"""Leader election without a controller, and what it would cost beside Kafka's.

The plain scheme: the leader of each partition is an ephemeral node, every follower watches it, and
when it goes every follower tries to create it. It has three troubles. A leader that has not heard
that its session ended goes on leading beside the new one (split brain); the death of one broker
wakes every follower of every partition it led (herd); and every follower costs ZooKeeper a watch
(load). Kafka elects one controller in that way and lets it decide for all partitions (0.8 to 3.9).

Loads are of the schemes themselves. What else Kafka's controller watched is in
``kafka_controller_watches``.

Sources: ``KafkaController`` (``onControllerFailover``, ``onBrokerFailure``, ``elect``),
``ReplicaStateMachine``, ``KafkaZkClient.registerControllerAndIncrementControllerEpoch``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from advisor.protocol.rules import controller
from advisor.protocol.rules.controller import Policy
from advisor.protocol.rules.partition_registration import Registration, Replicas
from advisor.protocol.rules.versions import rules_for
from advisor.protocol.zookeeper import locks, service
from advisor.protocol.zookeeper.locks import World
from advisor.protocol.zookeeper.requests import (
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

CONTROLLER = "/controller"
BROKER_IDS = "/brokers/ids"
ELECTION = "/election"

_READS = (Exists, GetChildren, GetData)


@dataclass(frozen=True, slots=True)
class Load:
    """What one death costs.

    Attributes
    ----------
    watches : int
        Standing before the death.
    notifications : int
        Sent by ZooKeeper because of it.
    woken : int
        Clients that got at least one.
    creates, refused_creates : int
        Attempts to create a node; those that came too late.
    reads : int
        Looks at a node or at children, most of which set a watch again.
    writes : int
        Partition states written.
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
    """Both schemes when broker 0 dies, and the second when it was also the controller."""

    every_follower_watches: Load
    controller: Load
    controller_died: Load


def compare(partitions: int, replication_factor: int, brokers: int) -> Comparison:
    """The loads by formula, for replicas placed by ``(i + j) mod brokers``.

    Parameters
    ----------
    partitions : int
        P, at least 1.
    replication_factor : int
        R, from 1 to ``brokers``.
    brokers : int
        B, at least 2.

    Notes
    -----
    With L partitions led by broker 0 and F followed: every follower watching costs P (R-1)
    watches and L (R-1) notifications, each followed by an attempt to create and, but for one a
    partition, by a look that sets the watch again. With R = 1 nobody follows, nobody takes over.
    The controller costs B watches, one notification and one look at the list of brokers, and
    writes each partition of broker 0 once. If the controller died, the B-1 others all try to
    follow it; the winner reads every partition, and writes those that broker 0 led twice (see
    ``controller.controller_started``).
    """
    followers = replication_factor - 1
    led = _count(partitions, brokers, 0)
    followed = sum(
        _count(partitions, brokers, (brokers - j) % brokers) for j in range(1, replication_factor)
    )
    woken = led * followers
    writes = led + followed
    # Followers of broker 0's partitions stand on the next brokers round the ring.
    crowd = followers if led else 0
    lost = led if followers else 0
    plain = Load(partitions * followers, woken, crowd, woken, woken - lost, woken - lost, 0)
    others = brokers - 1
    watches = others + 1
    alive = Load(watches, 1, 1, 0, 0, 1, writes)
    again = led if followers else 0
    died = Load(watches, others, others, others, others - 1, others + partitions, writes + again)
    return Comparison(plain, alive, died)


def kafka_controller_watches(brokers: int, topics: int) -> int:
    """Watches that Kafka's controller code sets (1.1 to 3.9), outside of reassignments.

    Every broker watches ``/controller``. The controller watches five lists (brokers, topics,
    deletions, ISR changes, log directory events), two nodes (preferred election, reassignment),
    each broker's node and each topic's. Partitions and replicas do not count.
    """
    return brokers + 5 + 2 + brokers + topics


def split_brain_ms(
    isolated_ms: int, timeout_ms: int, tick_ms: int = service.DEFAULT_TICK_MS
) -> int:
    """How long two brokers lead a partition whose leader loses touch with ZooKeeper alone.

    Its clients still reach it, its last heartbeat fell on a tick, and the followers act at once.
    From the end of the session, at most one tick after the timeout, until the leader hears
    of it: the longer it is cut off, the longer there are two, without bound.

    Parameters
    ----------
    isolated_ms : int
        How long it is cut off.
    timeout_ms : int
        What it asked for, such as ``zookeeper_session_timeout_ms``.
    tick_ms : int
    """
    granted = service.negotiated_timeout_ms(timeout_ms, tick_ms)
    return max(0, isolated_ms - service.expiry_ms(0, granted, tick_ms))


def watch_scheme(assignment: Mapping[int, Replicas], timeout_ms: int = locks.TIMEOUT_MS) -> World:
    """The plain scheme at rest: the first replica of each partition leads, the others watch.

    Clients are sessions; broker b is session b + 1, since ZooKeeper has no session 0.
    """
    brokers = 1 + max(broker for replicas in assignment.values() for broker in replicas)
    paths = map(_election_path, assignment)
    world = locks.new_world(locks.NAME, brokers, paths, timeout_ms)
    for place in range(max(map(len, assignment.values()))):
        for partition, replicas in sorted(assignment.items()):
            if place < len(replicas):
                want = locks.Want(replicas[place] + 1, _election_path(partition))
                world, _ = locks.step(world, want)
        world, _ = locks.settle(world)
    return world


def leaders(world: World, partition: int) -> Replicas:
    """The brokers that believe they lead the partition: two or more are a split brain."""
    return tuple(session - 1 for session in locks.believers(world, _election_path(partition)))


def watch_scheme_load(assignment: Mapping[int, Replicas], dead: int) -> Load:
    """Simulate the death of a broker under the plain scheme, and count."""
    world = watch_scheme(assignment)
    watches = service.watch_count(world.server)
    world, at_once = locks.step(world, Expire(dead + 1))
    _, later = locks.settle(world)
    return _tally(watches, at_once + later)


@dataclass(frozen=True, slots=True)
class Controlled:
    """A cluster whose controller elects: the lock on ``/controller`` and the partitions' states.

    Attributes
    ----------
    world : World
        Broker b is session b + 1.
    registrations : mapping of int to Registration
    """

    world: World
    registrations: Mapping[int, Registration]


def controller_scheme(assignment: Mapping[int, Replicas]) -> Controlled:
    """The controller's scheme at rest: broker 0 is the controller, all brokers registered."""
    brokers = 1 + max(broker for replicas in assignment.values() for broker in replicas)
    world = locks.new_world(locks.NAME, brokers, [CONTROLLER])
    states = [f"{ELECTION}/{partition}" for partition in assignment]
    world = replace(world, server=service.prepared([BROKER_IDS, *states], world.server))
    for broker in range(brokers):
        registered = Create(broker + 1, f"{BROKER_IDS}/{broker}", ephemeral=True)
        server, _ = service.step(world.server, registered)
        world, _ = locks.step(replace(world, server=server), locks.Want(broker + 1, CONTROLLER))
        world, _ = locks.settle(world)
    server, _ = service.step(world.server, GetChildren(1, BROKER_IDS, watch=True))
    registrations = {p: Registration(r, r, r[0]) for p, r in assignment.items()}
    return Controlled(replace(world, server=server), registrations)


def controller_scheme_load(assignment: Mapping[int, Replicas], dead: int) -> Load:
    """Simulate the death of a broker under the controller's scheme, and count.

    Broker 0 is the controller; if it is the dead one, the others elect the next first.
    """
    cluster = controller_scheme(assignment)
    watches = service.watch_count(cluster.world.server)
    world, at_once = locks.step(cluster.world, Expire(dead + 1))
    world, later = locks.settle(world)
    _, acted = controller_acts(replace(cluster, world=world), dead, took_over=dead == 0)
    return _tally(watches, at_once + later + acted)


def controller_acts(
    cluster: Controlled, dead: int, took_over: bool
) -> tuple[Controlled, tuple[Effect, ...]]:
    """The controller lists the brokers anew and decides for every partition of the dead one.

    A new controller reads every partition's state first. Each write of a state is one request.
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
    # The era's rules; the version matters only in that a ZooKeeper controller decides.
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
    return Controlled(replace(cluster.world, server=server), registrations), effects


def _election_path(partition: int) -> str:
    return f"{ELECTION}/{partition}"


def _count(partitions: int, brokers: int, remainder: int) -> int:
    """How many of 0 .. partitions-1 leave this remainder."""
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
