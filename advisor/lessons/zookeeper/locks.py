"""Two lock recipes on ZooKeeper: cost, mutual exclusion, split brain and fencing.

* ``NAME``: all clients create the same ephemeral node. The one that succeeds holds the lock, the
  others watch the node; its deletion wakes all of them (herd effect).
* ``SEQUENCE``: each client creates an ephemeral sequential node. The lowest number holds the lock,
  every other client watches the next lower node; a deletion wakes one client.

With both, one client at most holds the lock *on the server*; one that has not yet read that its
session expired believes that it holds it, too (split brain). Fencing rejects its writes: Kafka's
leader epoch and controller epoch are such tokens. Messages wait in each client's inbox until
``Deliver``, so the caller controls the interleaving.
Source: ZooKeeper's recipes for locks and leader election.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from advisor.lessons.zookeeper import service
from advisor.lessons.zookeeper.service import (
    Connect,
    Create,
    Delete,
    Effect,
    Elapse,
    Exists,
    Expire,
    GetChildren,
    Heartbeat,
    Notification,
    Reply,
    Request,
    SessionExpired,
    ZooKeeper,
    parent_of,
)

NAME = "name"
SEQUENCE = "sequence"

IDLE = "idle"
ACQUIRING = "acquiring"
WAITING = "waiting"
HOLDING = "holding"

TIMEOUT_MS = 18_000  # Kafka's zookeeper.session.timeout.ms from 2.5 on (KIP-537)


@dataclass(frozen=True, slots=True)
class Contender:
    """One client's view of one lock.

    token: fencing token: transaction id or sequence number of its node.
    """

    belief: str = IDLE
    node: str | None = None
    token: int = 0


@dataclass(frozen=True, slots=True)
class Acquire:
    """A client starts to acquire a lock."""

    session: int
    lock: str


@dataclass(frozen=True, slots=True)
class Release:
    """A holder releases a lock."""

    session: int
    lock: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """A client reads the next message of its inbox."""

    session: int


Event = Acquire | Release | Deliver | Expire | Elapse | Heartbeat
Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class World:
    """A ZooKeeper service, its clients' views of the locks, and their unread messages."""

    recipe: str
    server: ZooKeeper
    contenders: Mapping[Key, Contender] = field(default_factory=dict)
    inboxes: Mapping[int, tuple[Effect, ...]] = field(default_factory=dict)


Step = tuple[World, tuple[Effect, ...]]


def new_world(
    recipe: str, sessions: int, locks: Iterable[str], timeout_ms: int = TIMEOUT_MS
) -> World:
    """Clients 1 to ``sessions``, all idle."""
    paths = list(locks)
    above = [parent_of(path) for path in paths] if recipe == NAME else paths
    server = service.with_paths(path for path in above if path != "/")
    for session in range(1, sessions + 1):
        server, _ = service.step(server, Connect(timeout_ms, session))
    return World(recipe, server)


def step(world: World, event: Event) -> Step:
    """Process one event; returns the next world and the messages that the server sent."""
    if isinstance(event, Expire | Elapse | Heartbeat):
        server, effects = service.step(world.server, event)
        return _enqueue(replace(world, server=server), effects), effects
    if isinstance(event, Acquire):
        return _acquire(world, (event.session, event.lock))
    if isinstance(event, Release):
        return _release(world, (event.session, event.lock))
    waiting = world.inboxes.get(event.session, ())
    if not waiting:
        return world, ()
    left = {**world.inboxes, event.session: waiting[1:]}
    return _read(replace(world, inboxes=left), waiting[0])


def settle(world: World) -> Step:
    """Deliver all messages, lowest session first, until no inbox has any."""
    effects: list[Effect] = []
    while ready := [session for session, inbox in world.inboxes.items() if inbox]:
        for session in sorted(ready):
            while world.inboxes[session]:
                world, sent = step(world, Deliver(session))
                effects += sent
    return world, tuple(effects)


def presumed_holders(world: World, lock: str) -> tuple[int, ...]:
    """Clients that believe they hold the lock; two or more are a split brain."""
    return tuple(
        session
        for (session, path), contender in sorted(world.contenders.items())
        if path == lock and contender.belief == HOLDING
    )


def holders(world: World, lock: str) -> tuple[int, ...]:
    """Presumed holders with a live session on the server: never more than one."""
    return tuple(s for s in presumed_holders(world, lock) if s in world.server.sessions)


def fenced_write(highest: int, token: int) -> tuple[int, bool]:
    """Fencing of a write by the protected resource: (highest token seen, accepted)."""
    return max(highest, token), token >= highest


def herd_size(recipe: str, waiting: int) -> int:
    """Number of waiting clients that are notified when the holder's node is deleted."""
    return waiting if recipe == NAME else min(waiting, 1)


def _acquire(world: World, key: Key) -> Step:
    contender = world.contenders.get(key, Contender())
    if contender.belief != IDLE:
        return world, ()
    session, lock = key
    path, sequential = (lock, False) if world.recipe == NAME else (f"{lock}/n-", True)
    world = _with_contender(world, key, Contender(ACQUIRING))
    return _send(world, Create(session, path, str(session), True, sequential))


def _release(world: World, key: Key) -> Step:
    contender = world.contenders.get(key, Contender())
    if contender.belief != HOLDING or contender.node is None:
        return world, ()
    world = _with_contender(world, key, Contender())
    return _send(world, Delete(key[0], contender.node))


def _send(world: World, request: Request) -> Step:
    server, effects = service.step(world.server, request)
    return _enqueue(replace(world, server=server), effects), effects


def _enqueue(world: World, effects: tuple[Effect, ...]) -> World:
    if not effects:
        return world
    inboxes = dict(world.inboxes)
    for effect in effects:
        inboxes[effect.session] = (*inboxes.get(effect.session, ()), effect)
    return replace(world, inboxes=inboxes)


def _with_contender(world: World, key: Key, contender: Contender) -> World:
    return replace(world, contenders={**world.contenders, key: contender})


def _read(world: World, message: Effect) -> Step:
    if isinstance(message, SessionExpired):
        lost = {
            key: Contender() if key[0] == message.session else contender
            for key, contender in world.contenders.items()
        }
        return replace(world, contenders=lost), ()
    path = message.path if isinstance(message, Notification) else _path(message)
    key = (message.session, path)
    if key not in world.contenders:
        key = (message.session, parent_of(path))
    contender = world.contenders.get(key, Contender())
    if contender.belief in (IDLE, HOLDING):
        return world, ()
    if isinstance(message, Reply):
        return _on_reply(world, key, contender, message)
    # A client that called exists on a deleted node is also notified when the next holder creates
    # it.
    return _on_node_deleted(world, key, contender) if message.kind == "NodeDeleted" else (world, ())


def _path(reply: Reply) -> str:
    request = reply.request
    return request.path if isinstance(request, Create | Delete | Exists | GetChildren) else ""


def _on_node_deleted(world: World, key: Key, contender: Contender) -> Step:
    """The watched node was deleted: retry (by name), or list the queue again (by sequence)."""
    world = _with_contender(world, key, replace(contender, belief=ACQUIRING))
    session, lock = key
    if world.recipe == NAME:
        return _send(world, Create(session, lock, str(session), True))
    return _send(world, GetChildren(session, lock))


def _on_reply(world: World, key: Key, contender: Contender, reply: Reply) -> Step:
    session, lock = key
    request = reply.request
    if isinstance(request, Create) and reply.error is None:
        node = str(reply.value)
        if world.recipe == SEQUENCE:
            token = int(node[-10:]) + 1
            world = _with_contender(world, key, Contender(ACQUIRING, node, token))
            return _send(world, GetChildren(session, lock))
        return _with_contender(world, key, Contender(HOLDING, node, reply.zxid)), ()
    if isinstance(request, Create):
        return _send(world, Exists(session, request.path, watch=True))
    if isinstance(request, GetChildren) and isinstance(reply.value, tuple):
        return _take_or_watch(world, key, contender, reply.value)
    if isinstance(request, Exists) and reply.value is None:
        return _on_node_deleted(world, key, contender)
    if isinstance(request, Exists):
        return _with_contender(world, key, replace(contender, belief=WAITING)), ()
    return world, ()


def _take_or_watch(world: World, key: Key, contender: Contender, children: tuple[str, ...]) -> Step:
    """Hold the lock with the lowest number; otherwise watch the next lower node."""
    assert contender.node is not None
    session, lock = key
    own = contender.node.rpartition("/")[2]
    lower = sorted(child for child in children if child < own)
    if not lower:
        return _with_contender(world, key, replace(contender, belief=HOLDING)), ()
    return _send(world, Exists(session, f"{lock}/{lower[-1]}", watch=True))
