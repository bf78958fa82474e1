"""The property files of a cluster's nodes: Kafka's defaults but for clocks that run faster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CONTROLLER = 99
CLUSTER_ID = "YWR2aXNvci1vZi1rYWZrYQ"  # 16 bytes, as Kafka's own ids have.


@dataclass(frozen=True)
class Clocks:
    """How fast a cluster notices things, in milliseconds.

    Real clusters take seconds to minutes; the order of events is the same.

    Attributes
    ----------
    session_timeout_ms : int
        ``broker.session.timeout.ms``, or ``zookeeper.session.timeout.ms``.
    replica_lag_time_max_ms : int
    """

    session_timeout_ms: int = 2_500
    replica_lag_time_max_ms: int = 2_000

    @property
    def notices_within_ms(self) -> int:
        """Every clock has struck after this: the lag is looked at each half of its limit."""
        return max(self.session_timeout_ms + 500, self.replica_lag_time_max_ms * 3 // 2 + 300)


@dataclass(frozen=True)
class ClusterSpec:
    """What cluster is wanted.

    Attributes
    ----------
    version : str
        A line such as ``3.9``, or a release.
    mode : str
        ``kraft`` or ``zookeeper``.
    racks : mapping of int to str or None
        The brokers and their racks.
    eligible_leader_replicas : bool or None
        None: as the version comes.
    brokers_configs : mapping of str to str
        In every broker's and controller's file, such as ``min.insync.replicas``.
    clocks : Clocks
    java_options : tuple of str
        For every node's virtual machine, after our own: ``-Xmx1g`` for thousands of partitions.
    log_files : bool
        Whether nodes also write the log files that Kafka's own settings name, in ``logs``.
    """

    version: str
    mode: str = "kraft"
    racks: Mapping[int, str | None] = field(default_factory=lambda: {1: None, 2: None, 3: None})
    eligible_leader_replicas: bool | None = None
    brokers_configs: Mapping[str, str] = field(default_factory=dict)
    clocks: Clocks = Clocks()
    java_options: tuple[str, ...] = ()
    log_files: bool = False


def text_of(properties: Mapping[str, str]) -> str:
    """A property file."""
    return "".join(f"{key}={value}\n" for key, value in properties.items())


def broker(
    wish: ClusterSpec, node: int, peer: tuple[str, int], client: tuple[str, int], quorum: str
) -> dict[str, str]:
    """The properties of a broker.

    Parameters
    ----------
    wish : Wish
    node : int
    peer, client : (host, port)
        Where the other nodes, and where clients, reach it.
    quorum : str
        ``id@host:port`` of the KRaft controller, or ``host:port`` of ZooKeeper.
    """
    listeners = f"PEER://{peer[0]}:{peer[1]},CLIENT://{client[0]}:{client[1]}"
    found = {
        "log.dirs": "data",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PEER",
        **_common(wish),
        **_replication(wish.clocks),
    }
    rack = wish.racks[node]
    if rack is not None:
        found["broker.rack"] = rack
    if wish.mode == "zookeeper":
        found |= {
            "broker.id": str(node),
            "listener.security.protocol.map": "PEER:PLAINTEXT,CLIENT:PLAINTEXT",
            "zookeeper.connect": quorum,
            "zookeeper.session.timeout.ms": str(wish.clocks.session_timeout_ms),
            "zookeeper.connection.timeout.ms": "20000",
        }
    else:
        found |= {"process.roles": "broker", "node.id": str(node), **_kraft(wish, quorum)}
    return found | dict(wish.brokers_configs)


def controller(wish: ClusterSpec, address: tuple[str, int], quorum: str) -> dict[str, str]:
    """The properties of the KRaft controller: a process of its own."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER),
        "log.dirs": "data",
        "listeners": f"CONTROLLER://{address[0]}:{address[1]}",
        **_common(wish),
        **_kraft(wish, quorum),
        **wish.brokers_configs,
    }


def zookeeper(wish: ClusterSpec, address: tuple[str, int]) -> dict[str, str]:
    """The configuration of a single ZooKeeper server."""
    return {
        "dataDir": "data",
        "clientPort": str(address[1]),
        # A session may be as short as two ticks.
        "tickTime": str(min(1_000, wish.clocks.session_timeout_ms // 4)),
        "admin.enableServer": "false",
        "maxClientCnxns": "0",
        "4lw.commands.whitelist": "ruok",
    }


def _common(wish: ClusterSpec) -> dict[str, str]:
    return {
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "controlled.shutdown.retry.backoff.ms": "500",
        "log.cleaner.enable": "false",
        # A connection that was asked for while a broker was cut off is soon asked for anew.
        "socket.connection.setup.timeout.ms": "1000",
        "socket.connection.setup.timeout.max.ms": "2000",
        "num.network.threads": "1",
        "num.io.threads": "2",
        "offsets.topic.replication.factor": str(min(3, len(wish.racks))),
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def _replication(clocks: Clocks) -> dict[str, str]:
    return {
        "replica.lag.time.max.ms": str(clocks.replica_lag_time_max_ms),
        "replica.fetch.wait.max.ms": "200",
        "replica.fetch.backoff.ms": "200",
        "replica.socket.timeout.ms": "1500",
        "replica.high.watermark.checkpoint.interval.ms": "200",
    }


def _kraft(wish: ClusterSpec, quorum: str) -> dict[str, str]:
    return {
        "controller.quorum.voters": quorum,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ("CONTROLLER:PLAINTEXT,PEER:PLAINTEXT,CLIENT:PLAINTEXT"),
        "broker.session.timeout.ms": str(wish.clocks.session_timeout_ms),
        "broker.heartbeat.interval.ms": str(wish.clocks.session_timeout_ms // 6),
        "controller.quorum.election.timeout.ms": "500",
        "controller.quorum.fetch.timeout.ms": "1000",
        "controller.quorum.request.timeout.ms": "1000",
    }
