"""Requests to ZooKeeper, and its replies and notifications."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.errors import AdvisorError

NO_NODE = "NONODE"
NODE_EXISTS = "NODEEXISTS"
BAD_VERSION = "BADVERSION"
NOT_EMPTY = "NOTEMPTY"
NO_CHILDREN_FOR_EPHEMERALS = "NOCHILDRENFOREPHEMERALS"


@dataclass(frozen=True, slots=True)
class Connect:
    """Open a session; with ``session`` 0 the server chooses its id."""

    timeout_ms: int
    session: int = 0


@dataclass(frozen=True, slots=True)
class Elapse:
    """Time elapses; sessions without a request for their timeout expire."""

    ms: int


@dataclass(frozen=True, slots=True)
class Expire:
    """The server expires a session immediately; its client does not know yet."""

    session: int


@dataclass(frozen=True, slots=True)
class Close:
    """The client closes its session."""

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
class Check:
    """Succeed only if a znode's data version is ``version``; used in a Multi."""

    session: int
    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Multi:
    """Several writes in one transaction, all or nothing."""

    session: int
    writes: tuple[Create | Delete | SetData | Check, ...]


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


Write = Create | Delete | SetData | Check | Multi
Request = Write | GetData | Exists | GetChildren
Event = Request | Connect | Elapse | Expire | Close | Heartbeat


@dataclass(frozen=True, slots=True)
class Reply:
    """Reply to a request.

    error: ZooKeeper's name of the error; None for success.
    value: path for Create; Znode for SetData, GetData and Exists (None if there is none); names for
        GetChildren; values of the parts for Multi; session id for Connect.
    zxid: last transaction of the server at the time of the reply.
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
    """A request failed; internal to the service, which replies with the error code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
