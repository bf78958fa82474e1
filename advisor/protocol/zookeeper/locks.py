"""Two locks on ZooKeeper, and what each costs and promises.

* ``NAME``: everybody creates the same ephemeral node; whoever succeeds holds the lock, the others
  watch the node. When it goes, all of them wake: a herd.
* ``SEQUENCE``: everybody creates an ephemeral sequential node; the lowest number holds the lock,
  every other watches the one before it. When one goes, one wakes.

Either way at most one client holds the lock *on the server*. A client that has not yet read that
its session ended still believes that it holds it: a split brain, and no lock can prevent it. What
does is a fence: whatever the lock protects remembers the highest token it has seen and refuses a
lower one. Kafka's leader epoch and controller epoch are such tokens.

Every message waits in its client's inbox until ``Deliver``; the caller decides whose turn it is.

Source: ZooKeeper's recipes for locks and leader election.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from advisor.protocol.zookeeper import service
from advisor.protocol.zookeeper.requests import (
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
)
from advisor.protocol.zookeeper.service import ZooKeeper, parent_of

NAME = "name"
SEQUENCE = "sequence"

IDLE = "idle"
ASKING = "asking"
WAITING = "waiting"
HOLDING = "holding"

TIMEOUT_MS = 18_000  # Kafka's zookeeper.session.timeout.ms from 2.5 on (KIP-537)


@dataclass(frozen=True, slots=True)
class Contender:
    """What one client believes about one lock.

    Attributes
    ----------
    belief : {"idle", "asking", "waiting", "holding"}
        Waiting: a watch stands, nothing to do until it fires.
    node : str or None
        Its own node.
    token : int
        The transaction that gave it the lock's node; later holders have higher ones.
    """

    belief: str = IDLE
    node: str | None = None
    token: int = 0


@dataclass(frozen=True, slots=True)
class Want:
    """A client starts to ask for a lock."""

    session: int
    lock: str


@dataclass(frozen=True, slots=True)
class Release:
    """A holder gives a lock back."""

    session: int
    lock: str


@dataclass(frozen=True, slots=True)
class Deliver:
    """A client reads the next message of its inbox."""

    session: int


Event = Want | Release | Deliver | Expire | Elapse | Heartbeat
Key = tuple[int, str]


@dataclass(frozen=True, slots=True)
class World:
    """A ZooKeeper, its clients' beliefs, and the messages that they have not read yet."""

    recipe: str
    server: ZooKeeper
    contenders: Mapping[Key, Contender] = field(default_factory=dict)
    inboxes: Mapping[int, tuple[Effect, ...]] = field(default_factory=dict)


Step = tuple[World, tuple[Effect, ...]]


def new_world(
    recipe: str, sessions: int, locks: Iterable[str], timeout_ms: int = TIMEOUT_MS
) -> World:
    """Clients 1 to ``sessions``, none of which wants any of the locks yet.

    A lock by name needs its parent to exist, one by sequence itself.
    """
    paths = list(locks)
    above = [parent_of(path) for path in paths] if recipe == NAME else paths
    server = service.prepared(path for path in above if path != "/")
    for session in range(1, sessions + 1):
        server, _ = service.step(server, Connect(timeout_ms, session))
    return World(recipe, server)


def step(world: World, event: Event) -> Step:
    """One event: the next world, and what the server sent because of it."""
    if isinstance(event, Expire | Elapse | Heartbeat):
        server, effects = service.step(world.server, event)
        return _posted(replace(world, server=server), effects), effects
    if isinstance(event, Want):
        return _ask(world, (event.session, event.lock))
    if isinstance(event, Release):
        return _release(world, (event.session, event.lock))
    waiting = world.inboxes.get(event.session, ())
    if not waiting:
        return world, ()
    left = {**world.inboxes, event.session: waiting[1:]}
    return _read(replace(world, inboxes=left), waiting[0])


def settle(world: World) -> Step:
    """Every client reads whatever it gets, the lowest session first, until nothing is left."""
    effects: list[Effect] = []
    while ready := [session for session, inbox in world.inboxes.items() if inbox]:
        for session in sorted(ready):
            while world.inboxes[session]:
                world, sent = step(world, Deliver(session))
                effects += sent
    return world, tuple(effects)


def believers(world: World, lock: str) -> tuple[int, ...]:
    """The clients that believe they hold the lock: two or more are a split brain."""
    return tuple(
        session
        for (session, path), contender in sorted(world.contenders.items())
        if path == lock and contender.belief == HOLDING
    )


def holders(world: World, lock: str) -> tuple[int, ...]:
    """The believers whose session the server still knows: never more than one."""
    return tuple(s for s in believers(world, lock) if s in world.server.sessions)


def fenced_write(highest: int, token: int) -> tuple[int, bool]:
    """What a protected resource does with a write: (highest token seen, was it accepted)."""
    return max(highest, token), token >= highest


def herd_size(recipe: str, waiting: int) -> int:
    """How many waiting clients wake when the holder goes."""
    return waiting if recipe == NAME else min(waiting, 1)


def _ask(world: World, key: Key) -> Step:
    known = world.contenders.get(key, Contender())
    if known.belief != IDLE:
        return world, ()
    session, lock = key
    path, sequential = (lock, False) if world.recipe == NAME else (f"{lock}/n-", True)
    world = _believing(world, key, Contender(ASKING))
    return _send(world, Create(session, path, str(session), True, sequential))


def _release(world: World, key: Key) -> Step:
    contender = world.contenders.get(key, Contender())
    if contender.belief != HOLDING or contender.node is None:
        return world, ()
    world = _believing(world, key, Contender())
    return _send(world, Delete(key[0], contender.node))


def _send(world: World, request: Request) -> Step:
    server, effects = service.step(world.server, request)
    return _posted(replace(world, server=server), effects), effects


def _posted(world: World, effects: tuple[Effect, ...]) -> World:
    if not effects:
        return world
    inboxes = dict(world.inboxes)
    for effect in effects:
        inboxes[effect.session] = (*inboxes.get(effect.session, ()), effect)
    return replace(world, inboxes=inboxes)


def _believing(world: World, key: Key, contender: Contender) -> World:
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
        return _answered(world, key, contender, message)
    # A client that looked for a node already gone also hears when the next holder creates it.
    return _awake(world, key, contender) if message.kind == "NodeDeleted" else (world, ())


def _path(reply: Reply) -> str:
    request = reply.request
    return request.path if isinstance(request, Create | Delete | Exists | GetChildren) else ""


def _awake(world: World, key: Key, contender: Contender) -> Step:
    """The watched node went: by name, try again; by sequence, look who is first now."""
    world = _believing(world, key, replace(contender, belief=ASKING))
    session, lock = key
    if world.recipe == NAME:
        return _send(world, Create(session, lock, str(session), True))
    return _send(world, GetChildren(session, lock))


def _answered(world: World, key: Key, contender: Contender, reply: Reply) -> Step:
    session, lock = key
    request = reply.request
    if isinstance(request, Create) and reply.error is None:
        node = str(reply.value)
        if world.recipe == SEQUENCE:
            token = int(node[-10:]) + 1
            world = _believing(world, key, Contender(ASKING, node, token))
            return _send(world, GetChildren(session, lock))
        return _believing(world, key, Contender(HOLDING, node, reply.zxid)), ()
    if isinstance(request, Create):
        return _send(world, Exists(session, request.path, watch=True))
    if isinstance(request, GetChildren) and isinstance(reply.value, tuple):
        return _ranked(world, key, contender, reply.value)
    if isinstance(request, Exists) and reply.value is None:
        return _awake(world, key, contender)
    if isinstance(request, Exists):
        return _believing(world, key, replace(contender, belief=WAITING)), ()
    return world, ()


def _ranked(world: World, key: Key, contender: Contender, children: tuple[str, ...]) -> Step:
    """The lowest number holds the lock; any other watches the next lower one."""
    assert contender.node is not None
    session, lock = key
    own = contender.node.rpartition("/")[2]
    lower = sorted(child for child in children if child < own)
    if not lower:
        return _believing(world, key, replace(contender, belief=HOLDING)), ()
    return _send(world, Exists(session, f"{lock}/{lower[-1]}", watch=True))
