"""What the nodes of a cluster are connected by, and how it is broken.

With root and Linux's network namespaces every node is a host of its own: a broker can be cut off
from the others while its clients still reach it, and its fetching can be stopped while all else
goes on. Elsewhere all nodes share the loopback address, and nothing can be cut.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence
from typing import Protocol

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError

BROKER_PORT = 9092
CLIENT_PORT = 9093
CONTROLLER_PORT = 9094
ZOOKEEPER_PORT = 2181
_SOURCE = 100  # A node's requests come from its own address plus this.
_MOST_CLUSTERS = 200


class Network(Protocol):
    """Addresses of a cluster's nodes, and the faults between them.

    Attributes
    ----------
    breakable : bool
        Whether connections can be cut.
    """

    breakable: bool

    def peer(self, node: int, port: int, /) -> tuple[str, int]:
        """Host and port where the other nodes reach a port of this one."""

    def client(self, node: int, port: int, /) -> tuple[str, int]:
        """Host and port where clients reach a port of this one."""

    def prefix(self, node: int, /) -> Sequence[str]:
        """What a command of this node is run through."""

    def isolate(self, node: int, /) -> None:
        """Cut a node off from all others, not from clients."""

    def heal(self, node: int, /) -> None:
        """Connect it again."""

    def hold_requests(self, node: int, to: Sequence[int], /) -> None:
        """Stop what this node asks of others; what they ask of it is still answered."""

    def release_requests(self, node: int, to: Sequence[int], /) -> None:
        """Let it ask again."""

    def close(self) -> None:
        """Take everything down."""


def network_for(nodes: Sequence[int]) -> Network:
    """The best network that this machine can give these nodes."""
    able = os.name == "posix" and os.geteuid() == 0 and shutil.which("ip") is not None
    if able:
        try:
            return Namespaces(nodes)
        except OSError:
            pass  # A container that may not: root in it is not root outside.
    return Loopback()


class Loopback:
    """All nodes on 127.0.0.1, a port each, found free."""

    breakable = False

    def __init__(self) -> None:
        self._ports: dict[tuple[int, int], int] = {}

    def peer(self, node: int, port: int, /) -> tuple[str, int]:
        """See `Network`."""
        if (node, port) not in self._ports:
            self._ports[node, port] = _free_port(set(self._ports.values()))
        return "127.0.0.1", self._ports[node, port]

    def client(self, node: int, port: int, /) -> tuple[str, int]:
        """See `Network`."""
        return self.peer(node, port)

    def prefix(self, _node: int, /) -> Sequence[str]:
        """See `Network`."""
        return ()

    def isolate(self, _node: int, /) -> None:
        """See `Network`."""
        raise _uncuttable()

    def heal(self, _node: int, /) -> None:
        """See `Network`."""
        raise _uncuttable()

    def hold_requests(self, _node: int, _to: Sequence[int], /) -> None:
        """See `Network`."""
        raise _uncuttable()

    def release_requests(self, _node: int, _to: Sequence[int], /) -> None:
        """See `Network`."""
        raise _uncuttable()

    def close(self) -> None:
        """See `Network`."""


class Namespaces:
    """A host for every node, with two wires: one to the other nodes, one to clients.

    The nodes' switch stands in a namespace of its own; the clients' is a bridge of this host. Each
    node has two addresses among the nodes: the one it is asked at, and the one it asks from, so
    that its own questions can be dropped while its answers go through.

    Parameters
    ----------
    nodes : sequence of int
        Numbers from 0 to 99.

    Raises
    ------
    OSError
        If the system does not allow it.
    """

    breakable = True

    def __init__(self, nodes: Sequence[int]) -> None:
        if not all(0 <= node < _SOURCE for node in nodes):
            raise OSError(f"nodes have numbers from 0 to {_SOURCE - 1}")
        self._nodes = tuple(nodes)
        self._number = _first_free_bridge()
        self._made: list[tuple[str, ...]] = [("link", "del", self._bridge)]
        try:
            self._build()
        except OSError:
            self.close()
            raise

    @property
    def _bridge(self) -> str:
        return f"kac{self._number}"

    @property
    def _switch(self) -> str:
        return f"kas{self._number}"

    def _name(self, node: int) -> str:
        return f"kan{self._number}-{node}"

    def _peer_address(self, node: int) -> str:
        return f"10.201.{self._number}.{node + 1}"

    def _source_address(self, node: int) -> str:
        return f"10.201.{self._number}.{node + 1 + _SOURCE}"

    def _client_address(self, node: int) -> str:
        return f"10.202.{self._number}.{node + 1}"

    def _build(self) -> None:
        _ip("addr", "add", f"10.202.{self._number}.254/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")
        self._namespace(self._switch)
        _ip("-n", self._switch, "link", "add", "peers", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "peers", "up")
        for node in self._nodes:
            self._namespace(self._name(node))
            self._wire(node, "peer", self._switch, "peers")
            self._wire(node, "client", None, self._bridge)
        for node in self._nodes:
            self.release_requests(node, self._nodes)

    def _namespace(self, name: str) -> None:
        _ip("netns", "add", name)
        self._made.append(("netns", "del", name))
        _ip("-n", name, "link", "set", "lo", "up")

    def _wire(self, node: int, device: str, switch: str | None, bridge: str) -> None:
        """A pair of devices: ``device`` in the node, the other end on a bridge."""
        name = self._name(node)
        end = f"ka{device[0]}{self._number}-{node}"
        here = () if switch is None else ("-n", switch)
        peer = ("peer", "name", device, "netns", name)
        _ip(*here, "link", "add", end, "type", "veth", *peer)
        if switch is None:
            # Without this it goes some time after its node, and its name is taken until then.
            self._made.append(("link", "del", end))
        _ip(*here, "link", "set", end, "master", bridge, "up")
        addresses = [self._client_address(node)]
        if switch is not None:
            addresses = [self._peer_address(node), self._source_address(node)]
        for address in addresses:
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
        _ip("-n", name, "link", "set", device, "up")

    def peer(self, node: int, port: int, /) -> tuple[str, int]:
        """See `Network`."""
        return self._peer_address(node), port

    def client(self, node: int, port: int, /) -> tuple[str, int]:
        """See `Network`."""
        return self._client_address(node), port

    def prefix(self, node: int, /) -> Sequence[str]:
        """See `Network`."""
        return ("ip", "netns", "exec", self._name(node))

    def isolate(self, node: int, /) -> None:
        """See `Network`."""
        _ip("-n", self._switch, "link", "set", f"kap{self._number}-{node}", "down")

    def heal(self, node: int, /) -> None:
        """See `Network`."""
        _ip("-n", self._switch, "link", "set", f"kap{self._number}-{node}", "up")

    def hold_requests(self, node: int, to: Sequence[int], /) -> None:
        """See `Network`."""
        for other in to:
            if other != node:
                address = self._peer_address(other)
                _ip("-n", self._name(node), "route", "replace", "blackhole", f"{address}/32")

    def release_requests(self, node: int, to: Sequence[int], /) -> None:
        """See `Network`."""
        for other in to:
            if other != node:
                address = f"{self._peer_address(other)}/32"
                source = ("src", self._source_address(node))
                # A blackhole is a route of another type: it is not replaced but taken away.
                _ip_if_there("-n", self._name(node), "route", "del", address)
                _ip("-n", self._name(node), "route", "add", address, "dev", "peer", *source)

    def close(self) -> None:
        """See `Network`."""
        while self._made:
            _ip_if_there(*self._made.pop())


def _uncuttable() -> BrokersUnavailableError:
    return BrokersUnavailableError(
        "cutting connections needs network namespaces: Linux, root and the command ip"
    )


def _free_port(taken: set[int]) -> int:
    while True:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = int(found.getsockname()[1])
        if port not in taken:
            return port


def _first_free_bridge() -> int:
    """The number of a cluster that no other on this machine has: its bridge is made at once."""
    for number in range(_MOST_CLUSTERS):
        try:
            _ip("link", "add", f"kac{number}", "type", "bridge")
        except FileExistsError:
            continue
        return number
    raise OSError(f"{_MOST_CLUSTERS} clusters are on this machine; take their kac bridges down")


def _ip(*words: str) -> None:
    """Run ``ip``; OSError with what it said."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip() or "no reason given"
        kind = FileExistsError if "File exists" in said else OSError
        raise kind(f"ip {' '.join(words)}: {said}")


def _ip_if_there(*words: str) -> None:
    """Run ``ip`` to take something away that may be gone already."""
    subprocess.run(["ip", *words], capture_output=True, check=False)
