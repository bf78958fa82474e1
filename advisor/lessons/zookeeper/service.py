"""ZooKeeper service as used by Kafka up to 3.9: sessions, znodes, versions, one-shot watches.

``step(state, event) -> (state, effects)``: a single history of writes stands for the ensemble. Each
client receives its effects in their order, and a watch notification before any reply that shows the
change; when it reads them decides the caller.
Sources: ZooKeeper's ``DataTree``, ``PrepRequestProcessor``, ``WatchManager``, ``SessionTracker``
and ``ExpiryQueue``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from advisor.errors import AdvisorError


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a session with this id."""

    timeout_ms: int
    session: int


@dataclass(frozen=True, slots=True)
class Elapse:
    """Time elapses; sessions that sent nothing for their timeout expire."""

    ms: int


@dataclass(frozen=True, slots=True)
class Expire:
    """The server expires a session immediately; its client does not know yet."""

    session: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Keep a session alive (ping)."""

    session: int


@dataclass(frozen=True, slots=True)
class Create:
    """Create a znode; a sequential one gets ten digits appended to its path."""

    session: int
    path: str
    data: str = ""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a znode without children, if its data version is ``version`` (-1: any)."""

    session: int
    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class SetData:
    """Write a znode's data, if its data version is ``version`` (-1: any)."""

    session: int
    path: str
    data: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class GetData:
    """Read a znode; a watch fires when its data changes or it is deleted."""

    session: int
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class Exists:
    """Check whether a znode exists; a watch also fires when it is created."""

    session: int
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren:
    """List a znode's children; a watch fires when they change or the znode is deleted."""

    session: int
    path: str
    watch: bool = False


Write = Create | Delete | SetData
Request = Write | GetData | Exists | GetChildren
Event = Request | Connect | Elapse | Expire | Heartbeat


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a request.

    error: ZooKeeper's name of the error; None for success.
    value: path for Create; Znode for SetData, GetData and Exists (None if there is none); names for
        GetChildren; session id for Connect.
    """

    session: int
    request: Event
    error: str | None
    value: object
    zxid: int


@dataclass(frozen=True, slots=True)
class Notification:
    """A watch fired."""

    session: int
    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """Sent to the client of an expired session when it reconnects."""

    session: int


Effect = Reply | Notification | SessionExpired


class RequestError(AdvisorError):
    """A request failed; the service replies with the error code."""


TICK_MS = 3_000  # ZooKeeper's default, and that of Kafka's sample zookeeper.properties
ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class Znode:
    """A znode with its stat.

    czxid, mzxid, pzxid: transaction that created it, last set its data, last changed its children.
    children: names, in order of creation.
    creates, deletes: children ever created and deleted. ``creates`` numbers sequential nodes;
        ``cversion`` is the sum.
    ephemeral_owner: owning session of an ephemeral node; 0 for a persistent one.
    """

    data: str = ""
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime_ms: int = 0
    mtime_ms: int = 0
    data_version: int = 0
    children: tuple[str, ...] = ()
    creates: int = 0
    deletes: int = 0
    ephemeral_owner: int = 0

    @property
    def cversion(self) -> int:
        """Number of changes to the children."""
        return self.creates + self.deletes


class Session(NamedTuple):
    """A session: its negotiated timeout, and when it expires without further requests."""

    timeout_ms: int
    expires_ms: int


Watches = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ZooKeeper:
    """State of the service.

    nodes: by absolute path; the root is ``/``.
    data_watches, child_watches: sessions watching a path, oldest watch first.
    zxid: last transaction: leader epoch in the upper 32 bits, counter in the lower.
    """

    nodes: Mapping[str, Znode] = field(default_factory=lambda: {"/": Znode()})
    sessions: Mapping[int, Session] = field(default_factory=dict)
    data_watches: Watches = field(default_factory=dict)
    child_watches: Watches = field(default_factory=dict)
    zxid: int = 1 << 32
    now_ms: int = 0


Step = tuple[ZooKeeper, tuple[Effect, ...]]
_Applied = tuple[ZooKeeper, object, tuple[Notification, ...]]


def negotiated_timeout_ms(requested_ms: int) -> int:
    """Session timeout that the server grants: between 2 and 20 ticks."""
    return min(max(requested_ms, 2 * TICK_MS), 20 * TICK_MS)


def expiry_ms(last_request_ms: int, timeout_ms: int) -> int:
    """Time at which a session expires: the first tick after its timeout since the last request."""
    return ((last_request_ms + timeout_ms) // TICK_MS + 1) * TICK_MS


def watch_count(state: ZooKeeper) -> int:
    """Number of watches set on the service."""
    watches = (*state.data_watches.values(), *state.child_watches.values())
    return sum(len(watchers) for watchers in watches)


def parent_of(path: str) -> str:
    """Parent path; ``/`` for ``/a``."""
    return path.rpartition("/")[0] or "/"


def with_paths(paths: Iterable[str], state: ZooKeeper | None = None) -> ZooKeeper:
    """Service with these persistent paths and their parents."""
    nodes = dict((state or ZooKeeper()).nodes)
    for path in paths:
        above = ""
        for name in path.strip("/").split("/"):
            parent, above = above or "/", f"{above}/{name}"
            if above not in nodes:
                nodes[above] = Znode()
                nodes[parent] = replace(
                    nodes[parent],
                    children=(*nodes[parent].children, name),
                    creates=nodes[parent].creates + 1,
                )
    return replace(state or ZooKeeper(), nodes=nodes)


def step(state: ZooKeeper, event: Event) -> Step:
    """Process one event; returns the next state and the messages sent, in order."""
    if isinstance(event, Elapse):
        return _elapse(state, event.ms)
    if isinstance(event, Connect):
        return _connect(state, event)
    if event.session not in state.sessions:
        return state, (SessionExpired(event.session),)
    if isinstance(event, Expire):
        return _end_session(state, event.session)
    state = _touch(state, event.session)
    if isinstance(event, Heartbeat):
        return state, (Reply(event.session, event, None, None, state.zxid),)
    return _request(state, event)


def _connect(state: ZooKeeper, event: Connect) -> Step:
    timeout = negotiated_timeout_ms(event.timeout_ms)
    granted = Session(timeout, expiry_ms(state.now_ms, timeout))
    state = replace(state, sessions={**state.sessions, event.session: granted})
    return state, (Reply(event.session, event, None, event.session, state.zxid),)


def _touch(state: ZooKeeper, session: int) -> ZooKeeper:
    timeout = state.sessions[session].timeout_ms
    expires = expiry_ms(state.now_ms, timeout)
    if state.sessions[session].expires_ms == expires:
        return state
    return replace(state, sessions={**state.sessions, session: Session(timeout, expires)})


def _elapse(state: ZooKeeper, ms: int) -> Step:
    until = state.now_ms + ms
    effects: tuple[Effect, ...] = ()
    while due := [(s.expires_ms, i) for i, s in state.sessions.items() if s.expires_ms <= until]:
        at, session = min(due)
        state = replace(state, now_ms=at)
        state, sent = _end_session(state, session)
        effects += sent
    return replace(state, now_ms=until), effects


def _end_session(state: ZooKeeper, session: int) -> Step:
    """Delete the session's ephemeral nodes in one transaction, and remove its watches."""
    kept = {i: s for i, s in state.sessions.items() if i != session}
    state = replace(
        state,
        sessions=kept,
        zxid=state.zxid + 1,
        data_watches=_without(state.data_watches, session),
        child_watches=_without(state.child_watches, session),
    )
    effects: tuple[Effect, ...] = ()
    for path in sorted(p for p, node in state.nodes.items() if node.ephemeral_owner == session):
        state, _, fired = _delete(state, Delete(session, path))
        effects += fired
    return state, (*effects, SessionExpired(session))


def _without(watches: Watches, session: int) -> Watches:
    kept = {path: tuple(s for s in watchers if s != session) for path, watchers in watches.items()}
    return {path: watchers for path, watchers in kept.items() if watchers}


def _request(state: ZooKeeper, request: Request) -> Step:
    try:
        if isinstance(request, GetData | Exists | GetChildren):
            return _read(state, request)
        after, value, fired = _write(replace(state, zxid=state.zxid + 1), request)
    except RequestError as refusal:
        return state, (Reply(request.session, request, str(refusal), None, state.zxid),)
    return after, (*fired, Reply(request.session, request, None, value, after.zxid))


def _read(state: ZooKeeper, request: GetData | Exists | GetChildren) -> Step:
    node = state.nodes.get(request.path)
    if node is None and not isinstance(request, Exists):
        raise RequestError("NONODE")
    if request.watch and isinstance(request, GetChildren):
        watched = _with(state.child_watches, request.path, request.session)
        state = replace(state, child_watches=watched)
    elif request.watch:
        watched = _with(state.data_watches, request.path, request.session)
        state = replace(state, data_watches=watched)
    value: object = node
    if isinstance(request, GetChildren) and node is not None:
        value = node.children
    return state, (Reply(request.session, request, None, value, state.zxid),)


def _with(watches: Watches, path: str, session: int) -> Watches:
    """Add a watch; a session has at most one of a kind on a path."""
    watchers = watches.get(path, ())
    return watches if session in watchers else {**watches, path: (*watchers, session)}


def _write(state: ZooKeeper, request: Write) -> _Applied:
    if isinstance(request, Create):
        return _create(state, request)
    if isinstance(request, Delete):
        return _delete(state, request)
    return _set_data(state, request)


def _node(state: ZooKeeper, path: str, version: int) -> Znode:
    node = state.nodes.get(path)
    if node is None:
        raise RequestError("NONODE")
    if version not in (ANY_VERSION, node.data_version):
        raise RequestError("BADVERSION")
    return node


def _create(state: ZooKeeper, request: Create) -> _Applied:
    above = parent_of(request.path)
    parent = _node(state, above, ANY_VERSION)
    path = f"{request.path}{parent.creates:010}" if request.sequential else request.path
    if parent.ephemeral_owner:
        raise RequestError("NOCHILDRENFOREPHEMERALS")
    if path in state.nodes:
        raise RequestError("NODEEXISTS")
    zxid, now = state.zxid, state.now_ms
    owner = request.session if request.ephemeral else 0
    changed = replace(
        parent,
        children=(*parent.children, path.rpartition("/")[2]),
        creates=parent.creates + 1,
        pzxid=zxid,
    )
    created = Znode(request.data, zxid, zxid, zxid, now, now, ephemeral_owner=owner)
    state = replace(state, nodes={**state.nodes, above: changed, path: created})
    state, about = _fire(state, "data_watches", path, "NodeCreated")
    state, around = _fire(state, "child_watches", above, "NodeChildrenChanged")
    return state, path, about + around


def _delete(state: ZooKeeper, request: Delete) -> _Applied:
    node = _node(state, request.path, request.version)
    if node.children:
        raise RequestError("NOTEMPTY")
    above = parent_of(request.path)
    parent = state.nodes[above]
    name = request.path.rpartition("/")[2]
    nodes = {path: kept for path, kept in state.nodes.items() if path != request.path}
    nodes[above] = replace(
        parent,
        children=tuple(child for child in parent.children if child != name),
        deletes=parent.deletes + 1,
        pzxid=state.zxid,
    )
    state = replace(state, nodes=nodes)
    state, about = _fire(state, "data_watches", request.path, "NodeDeleted")
    state, below = _fire(state, "child_watches", request.path, "NodeDeleted")
    state, around = _fire(state, "child_watches", above, "NodeChildrenChanged")
    # A session with both kinds of watch on the node gets one NodeDeleted.
    return state, None, about + tuple(n for n in below if n not in about) + around


def _set_data(state: ZooKeeper, request: SetData) -> _Applied:
    node = _node(state, request.path, request.version)
    written = replace(
        node,
        data=request.data,
        mzxid=state.zxid,
        mtime_ms=state.now_ms,
        data_version=node.data_version + 1,
    )
    state = replace(state, nodes={**state.nodes, request.path: written})
    state, fired = _fire(state, "data_watches", request.path, "NodeDataChanged")
    return state, written, fired


def _fire(
    state: ZooKeeper, kind: str, path: str, event: str
) -> tuple[ZooKeeper, tuple[Notification, ...]]:
    """Fire and remove the watches on a path."""
    watches: Watches = getattr(state, kind)
    if path not in watches:
        return state, ()
    left = {other: watchers for other, watchers in watches.items() if other != path}
    fired = tuple(Notification(session, event, path) for session in watches[path])
    if kind == "data_watches":
        return replace(state, data_watches=left), fired
    return replace(state, child_watches=left), fired
