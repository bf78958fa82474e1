"""What clients ask of ZooKeeper, and what it sends them."""

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
    """A new session; ``session`` 0 lets the server choose its id."""

    timeout_ms: int
    session: int = 0


@dataclass(frozen=True, slots=True)
class Elapse:
    """Time goes by; sessions that nobody was heard from for their timeout end."""

    ms: int


@dataclass(frozen=True, slots=True)
class Expire:
    """The server gives up on a session at once; its client has yet to learn of it."""

    session: int


@dataclass(frozen=True, slots=True)
class Close:
    """The client ends its own session."""

    session: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The client says that it is alive."""

    session: int


@dataclass(frozen=True, slots=True)
class Create:
    """A new znode; a sequential one gets ten digits appended to its path."""

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
    """Succeed only if a znode's data version is ``version``; for use in a Multi."""

    session: int
    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Multi:
    """Several writes in one transaction: all, or none."""

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
    """Look for a znode that may be missing; a watch fires also when it is created."""

    session: int
    path: str
    watch: bool = False


@dataclass(frozen=True, slots=True)
class GetChildren:
    """List a znode's children; a watch fires when one comes or goes, or the node itself goes."""

    session: int
    path: str
    watch: bool = False


Write = Create | Delete | SetData | Check | Multi
Request = Write | GetData | Exists | GetChildren
Event = Request | Connect | Elapse | Expire | Close | Heartbeat


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to a request: an error in ZooKeeper's name, or a value.

    The value is the path for Create, the Znode for SetData, GetData and Exists (None: no such
    node), the names for GetChildren, the parts' values for Multi, the session id for Connect.
    ``zxid`` is the last transaction that the server knew when it answered.
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
    """What the client of an ended session is told when it comes back."""

    session: int


Effect = Reply | Notification | SessionExpired


class RequestError(AdvisorError):
    """A request that the service answers with an error; never leaves the service."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code
