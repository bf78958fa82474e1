"""Network of a cluster's nodes, and network faults.

With root and Linux network namespaces every node is a host of its own: a broker can be isolated
from the other nodes but not from clients, and its fetch requests can be blocked. Otherwise all
nodes share the loopback address and network faults are not available.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Sequence

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError

BROKER_PORT = 9092
CLIENT_PORT = 9093
CONTROLLER_PORT = 9094
ZOOKEEPER_PORT = 2181
_SOURCE_OFFSET = 100  # Offset from a node's address to the source address of its requests.
_MAX_CLUSTERS = 200


def network_for(nodes: Sequence[int]) -> Network:
    """Return namespaces if this machine permits them, otherwise loopback."""
    able = os.name == "posix" and os.geteuid() == 0 and shutil.which("ip") is not None
    if able:
        try:
            return Namespaces(nodes)
        except OSError:
            pass  # No permission, as in an unprivileged container.
    return Loopback()


def can_partition() -> bool:
    """Return whether connections between nodes can be cut on this machine."""
    network = network_for(())
    network.close()
    return network.can_partition


class Loopback:
    """All nodes on 127.0.0.1, each on free ports."""

    can_partition = False

    def __init__(self) -> None:
        self._ports: dict[tuple[int, int], int] = {}

    def peer(self, node: int, port: int) -> tuple[str, int]:
        """See `Namespaces`."""
        if (node, port) not in self._ports:
            self._ports[node, port] = _free_port(set(self._ports.values()))
        return "127.0.0.1", self._ports[node, port]

    def client(self, node: int, port: int) -> tuple[str, int]:
        """See `Namespaces`."""
        return self.peer(node, port)

    def prefix(self, _node: int) -> Sequence[str]:
        """See `Namespaces`."""
        return ()

    def isolate(self, _node: int) -> None:
        """See `Namespaces`."""
        raise _not_supported()

    def heal(self, _node: int) -> None:
        """See `Namespaces`."""
        raise _not_supported()

    def block_requests(self, _node: int, to: Sequence[int]) -> None:
        """See `Namespaces`."""
        if to:
            raise _not_supported()

    def unblock_requests(self, _node: int, to: Sequence[int]) -> None:
        """See `Namespaces`."""
        if to:
            raise _not_supported()

    def close(self) -> None:
        """See `Namespaces`."""


class Namespaces:
    """A network namespace per node, with two interfaces: to the other nodes and to clients.

    The bridge between nodes is in a namespace of its own, the one to clients on this host. In the
    node network each node has two addresses: one to listen on and one as the source of its
    requests, so that its requests can be dropped while its responses pass.
    """

    can_partition = True

    def __init__(self, nodes: Sequence[int]) -> None:
        if not all(0 <= node < _SOURCE_OFFSET for node in nodes):
            raise OSError(f"nodes have numbers from 0 to {_SOURCE_OFFSET - 1}")
        self._nodes = tuple(nodes)
        self._number = _first_free_bridge()
        self._created: list[tuple[str, ...]] = [("link", "del", self._bridge)]
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
        return f"10.201.{self._number}.{node + 1 + _SOURCE_OFFSET}"

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
            self._connect(node, "peer", self._switch, "peers")
            self._connect(node, "client", None, self._bridge)
        for node in self._nodes:
            self.unblock_requests(node, self._nodes)

    def _namespace(self, name: str) -> None:
        _ip("netns", "add", name)
        self._created.append(("netns", "del", name))
        _ip("-n", name, "link", "set", "lo", "up")

    def _connect(self, node: int, device: str, switch: str | None, bridge: str) -> None:
        """Create a veth pair: ``device`` in the node, the other end on a bridge."""
        name = self._name(node)
        end = f"ka{device[0]}{self._number}-{node}"
        here = () if switch is None else ("-n", switch)
        peer = ("peer", "name", device, "netns", name)
        _ip(*here, "link", "add", end, "type", "veth", *peer)
        if switch is None:
            # Delete it explicitly: the kernel removes it, and frees its name, only later.
            self._created.append(("link", "del", end))
        _ip(*here, "link", "set", end, "master", bridge, "up")
        addresses = [self._client_address(node)]
        if switch is not None:
            addresses = [self._peer_address(node), self._source_address(node)]
        for address in addresses:
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", device)
        _ip("-n", name, "link", "set", device, "up")

    def peer(self, node: int, port: int) -> tuple[str, int]:
        """Return host and port of a node for the other nodes."""
        return self._peer_address(node), port

    def client(self, node: int, port: int) -> tuple[str, int]:
        """Return host and port of a node for clients."""
        return self._client_address(node), port

    def prefix(self, node: int) -> Sequence[str]:
        """Return the command prefix that runs a process in this node's namespace."""
        return ("ip", "netns", "exec", self._name(node))

    def isolate(self, node: int) -> None:
        """Disconnect a node from the other nodes, not from clients."""
        _ip("-n", self._switch, "link", "set", f"kap{self._number}-{node}", "down")

    def heal(self, node: int) -> None:
        """Reconnect a node."""
        _ip("-n", self._switch, "link", "set", f"kap{self._number}-{node}", "up")

    def block_requests(self, node: int, to: Sequence[int]) -> None:
        """Block requests of this node to others; it still answers theirs."""
        for other in to:
            if other != node:
                address = self._peer_address(other)
                _ip("-n", self._name(node), "route", "replace", "blackhole", f"{address}/32")

    def unblock_requests(self, node: int, to: Sequence[int]) -> None:
        """Unblock requests of this node."""
        for other in to:
            if other != node:
                address = f"{self._peer_address(other)}/32"
                source = ("src", self._source_address(node))
                # A blackhole route has another type, so `replace` would not remove it.
                _try_ip("-n", self._name(node), "route", "del", address)
                _ip("-n", self._name(node), "route", "add", address, "dev", "peer", *source)

    def close(self) -> None:
        """Remove all network devices."""
        while self._created:
            _try_ip(*self._created.pop())


Network = Loopback | Namespaces


def _not_supported() -> BrokersUnavailableError:
    return BrokersUnavailableError(
        "cutting connections needs network namespaces: Linux, root and the command ip"
    )


def _free_port(taken: set[int]) -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        if port not in taken:
            return port


def _first_free_bridge() -> int:
    """Reserve a cluster number on this machine by creating its bridge."""
    for number in range(_MAX_CLUSTERS):
        try:
            _ip("link", "add", f"kac{number}", "type", "bridge")
        except FileExistsError:
            continue
        return number
    raise OSError(f"{_MAX_CLUSTERS} clusters are on this machine; take their kac bridges down")


def _ip(*words: str) -> None:
    """Run ``ip``; raise OSError with its message on failure."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        message = done.stderr.strip() or "no reason given"
        kind = FileExistsError if "File exists" in message else OSError
        raise kind(f"ip {' '.join(words)}: {message}")


def _try_ip(*words: str) -> None:
    """Run ``ip`` and ignore errors, to delete something that may not exist."""
    subprocess.run(["ip", *words], capture_output=True, check=False)
