"""Property files of the nodes: Kafka's defaults with short timeouts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from advisor.rendering import FileLines, file_lines

CONTROLLER = 99
_WAIT_FOR_QUORUM_MS = "3600000"
CLUSTER_ID = "YWR2aXNvci1vZi1rYWZrYQ"  # 16 bytes in base64, like Kafka's ids.


@dataclass(frozen=True)
class ClusterTimeouts:
    """Timeouts of a cluster, much shorter than Kafka's defaults."""

    session_timeout_ms: int = 2_500
    replica_lag_time_max_ms: int = 2_000

    @property
    def longest_timer_ms(self) -> int:
        """Time after which all timeouts have fired; lag is checked every half lag timeout."""
        return max(self.session_timeout_ms + 500, self.replica_lag_time_max_ms * 3 // 2 + 300)


@dataclass(frozen=True)
class ClusterSpec:
    """Specification of a cluster.

    eligible_leader_replicas: whether KIP-966 is enabled; None for the default of the version.
    brokers_configs: additional settings of all brokers and controllers.
    java_options: additional JVM options, such as ``-Xmx1g`` for thousands of partitions.
    log_files: whether nodes also write Kafka's usual log files, in ``logs``.
    """

    version: str
    mode: str = "kraft"
    racks: Mapping[int, str | None] = field(default_factory=lambda: {1: None, 2: None, 3: None})
    eligible_leader_replicas: bool | None = None
    brokers_configs: Mapping[str, str] = field(default_factory=dict)
    timeouts: ClusterTimeouts = ClusterTimeouts()
    java_options: tuple[str, ...] = ()
    log_files: bool = False


def broker(
    spec: ClusterSpec, node: int, peer: tuple[str, int], client: tuple[str, int], quorum: str
) -> dict[str, str]:
    """Return the properties of a broker.

    peer, client: its addresses for the other nodes and for clients.
    quorum: ``id@host:port`` of the KRaft controller, or ``host:port`` of ZooKeeper.
    """
    listeners = f"PEER://{peer[0]}:{peer[1]},CLIENT://{client[0]}:{client[1]}"
    properties = {
        "log.dirs": "data",
        "listeners": listeners,
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PEER",
        **_common(spec),
        **_replication(spec.timeouts),
    }
    rack = spec.racks[node]
    if rack is not None:
        properties["broker.rack"] = rack
    if spec.mode == "zookeeper":
        properties |= {
            "broker.id": str(node),
            "listener.security.protocol.map": "PEER:PLAINTEXT,CLIENT:PLAINTEXT",
            "zookeeper.connect": quorum,
            "zookeeper.session.timeout.ms": str(spec.timeouts.session_timeout_ms),
            # Wait for ZooKeeper where a supervisor would start the broker again.
            "zookeeper.connection.timeout.ms": _WAIT_FOR_QUORUM_MS,
        }
    else:
        properties |= {"process.roles": "broker", "node.id": str(node), **_kraft(spec, quorum)}
        # The default is a minute; a supervisor would then start the broker again.
        properties["initial.broker.registration.timeout.ms"] = _WAIT_FOR_QUORUM_MS
    return properties | dict(spec.brokers_configs)


def controller(spec: ClusterSpec, address: tuple[str, int], quorum: str) -> dict[str, str]:
    """Return the properties of the (dedicated) KRaft controller."""
    return {
        "process.roles": "controller",
        "node.id": str(CONTROLLER),
        "log.dirs": "data",
        "listeners": f"CONTROLLER://{address[0]}:{address[1]}",
        **_common(spec),
        **_kraft(spec, quorum),
        **spec.brokers_configs,
    }


def zookeeper(spec: ClusterSpec, address: tuple[str, int]) -> dict[str, str]:
    """Return the configuration of a single ZooKeeper server."""
    return {
        "dataDir": "data",
        "clientPort": str(address[1]),
        # The minimum session timeout is two ticks.
        "tickTime": str(min(1_000, spec.timeouts.session_timeout_ms // 4)),
        "admin.enableServer": "false",
        "maxClientCnxns": "0",
        "4lw.commands.whitelist": "ruok",
    }


def _common(spec: ClusterSpec) -> dict[str, str]:
    return {
        "auto.create.topics.enable": "false",
        "auto.leader.rebalance.enable": "false",
        "controlled.shutdown.retry.backoff.ms": "500",
        "log.cleaner.enable": "false",
        # Retry connections soon after a network partition ends.
        "socket.connection.setup.timeout.ms": "1000",
        "socket.connection.setup.timeout.max.ms": "2000",
        "num.network.threads": "1",
        "num.io.threads": "2",
        "offsets.topic.replication.factor": str(min(3, len(spec.racks))),
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def _replication(timeouts: ClusterTimeouts) -> dict[str, str]:
    return {
        "replica.lag.time.max.ms": str(timeouts.replica_lag_time_max_ms),
        "replica.fetch.wait.max.ms": "200",
        "replica.fetch.backoff.ms": "200",
        "replica.socket.timeout.ms": "1500",
        "replica.high.watermark.checkpoint.interval.ms": "200",
    }


def _kraft(spec: ClusterSpec, quorum: str) -> dict[str, str]:
    return {
        "controller.quorum.voters": quorum,
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": ("CONTROLLER:PLAINTEXT,PEER:PLAINTEXT,CLIENT:PLAINTEXT"),
        "broker.session.timeout.ms": str(spec.timeouts.session_timeout_ms),
        "broker.heartbeat.interval.ms": str(spec.timeouts.session_timeout_ms // 6),
        "controller.quorum.election.timeout.ms": "500",
        "controller.quorum.fetch.timeout.ms": "1000",
        "controller.quorum.request.timeout.ms": "1000",
    }


_PATTERN = "[%d] %p %m (%c)%n"
# Loggers with a file of their own in Kafka's defaults; the rest goes to server.log.
_LOG_FILES = {
    "controller": (("org.apache.kafka.controller", "INFO"), ("kafka.controller", "TRACE")),
    "state-change": (("state.change.logger", "INFO"),),
}


@dataclass(frozen=True)
class LogSettings:
    """A configuration file of reload4j or log4j 2, and the JVM option to prepend to its path."""

    name: str
    lines: FileLines
    option: str


def log_settings(major: int, files: Path | None) -> LogSettings:
    """Return the logging configuration for a release, with reload4j for 3 and log4j 2 for 4.

    files: directory for log files as in Kafka's own configuration. None: everything to stdout.
    """
    lines = _reload4j(files) if major == 3 else _log4j2(files)
    name = "log4j.properties" if major == 3 else "log4j2.properties"
    option = "-Dlog4j.configuration=file:" if major == 3 else "-Dlog4j2.configurationFile="
    return LogSettings(name, file_lines(lines), option)


def _reload4j(files: Path | None) -> list[str]:
    def appender(name: str, kind: str) -> list[str]:
        base = f"log4j.appender.{name}"
        layout = f"{base}.layout=org.apache.log4j.PatternLayout"
        return [f"{base}={kind}", layout, f"{base}.layout.ConversionPattern={_PATTERN}"]

    lines = appender("out", "org.apache.log4j.ConsoleAppender")
    if files is None:
        return ["log4j.rootLogger=INFO, out", *lines]
    for name in ("server", *_LOG_FILES):
        lines += appender(name, "org.apache.log4j.FileAppender")
        lines.append(f"log4j.appender.{name}.File={files / f'{name}.log'}")
    for name, loggers in _LOG_FILES.items():
        for logger, level in loggers:
            lines.append(f"log4j.logger.{logger}={level}, {name}")
            lines.append(f"log4j.additivity.{logger}=false")
    return ["log4j.rootLogger=INFO, out, server", *lines]


def _log4j2(files: Path | None) -> list[str]:
    def appender(name: str, kind: str) -> list[str]:
        base = f"appender.{name}"
        layout = [f"{base}.layout.type=PatternLayout", f"{base}.layout.pattern={_PATTERN}"]
        return [f"{base}.type={kind}", f"{base}.name={name}", *layout]

    lines = [*appender("out", "Console"), "rootLogger.level=INFO"]
    lines.append("rootLogger.appenderRef.out.ref=out")
    if files is None:
        return lines
    lines.append("rootLogger.appenderRef.server.ref=server")
    for name in ("server", *_LOG_FILES):
        lines += [*appender(name, "File"), f"appender.{name}.fileName={files / f'{name}.log'}"]
    number = 0
    for name, loggers in _LOG_FILES.items():
        for logger, level in loggers:
            base = f"logger.l{number}"
            number += 1
            lines += [f"{base}.name={logger}", f"{base}.level={level}", f"{base}.additivity=false"]
            lines.append(f"{base}.appenderRef.own.ref={name}")
    return lines
