"""`RealCluster`: node processes, their directories, and fault injection."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from advisor.files import write_file
from advisor.kafka_lab.nodes import node_properties
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, Jars, jars_for
from advisor.kafka_lab.nodes.network import (
    BROKER_PORT,
    CLIENT_PORT,
    CONTROLLER_PORT,
    ZOOKEEPER_PORT,
    Network,
    network_for,
)
from advisor.kafka_lab.nodes.node_properties import (
    CLUSTER_ID,
    CONTROLLER,
    ClusterSpec,
    LogSettings,
    log_settings,
)
from advisor.kafka_lab.nodes.processes import JavaProcess
from advisor.rendering import properties

_START_TIMEOUT_S = 300.0  # Enough for 10,000 partitions after a kill on a loaded machine.
_CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
# A broker whose requests are blocked, and the others that this does not concern.
Exemptions = Mapping[int, frozenset[int]]


class RealCluster:
    """Brokers and a KRaft controller or ZooKeeper; a context manager that starts and stops them.

    folder: directory for the node directories. Default: a temporary one, deleted on close.
    brokers: ids of the brokers in use, ascending; by default all of the specification.
    not_reusable: whether deleting all topics does not restore the initial state; see `recreate`.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        folder: Path | None = None,
        brokers: Collection[int] | None = None,
    ) -> None:
        self.spec = spec
        self.jars: Jars = jars_for(spec.version)
        if spec.mode == "zookeeper" and self.jars.major >= 4:
            raise BrokersUnavailableError(f"Kafka {spec.version} has no ZooKeeper mode")
        self.brokers = tuple(sorted(spec.racks if brokers is None else brokers))
        self.not_reusable = False
        self._own_folder = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="kafka-")) if folder is None else folder
        self.network: Network = network_for([*spec.racks, CONTROLLER])
        self._processes: dict[int, JavaProcess] = {}
        self._archiving_process: JavaProcess | None = None
        self._lagging: Exemptions = {}
        self._limping: Exemptions = {}
        self._blocked: set[tuple[int, int]] = set()

    def __enter__(self) -> RealCluster:
        try:
            self._start_all()
        except BaseException:
            self.close()
            raise
        return self

    def _start_all(self) -> None:
        self.start_controller()
        for broker in self.brokers:
            self.launch(broker)
            # The first broker to register becomes the ZooKeeper controller: make it the lowest.
            if self.spec.mode == "zookeeper":
                self._wait_until_started(broker)
        for broker in self.brokers:
            self._wait_until_started(broker)

    def widen(self, brokers: Collection[int]) -> None:
        """Take more brokers of the specification into use; `start_missing` starts them."""
        self.brokers = tuple(sorted({*self.brokers, *brokers}))

    def start_missing(self) -> None:
        """Start all brokers that do not run, and wait until they are up."""
        missing = [broker for broker in self.brokers if not self.running(broker)]
        for broker in missing:
            self.launch(broker)
        for broker in missing:
            self._wait_until_started(broker)

    def recreate(self) -> None:
        """Kill all processes, delete all data, and start again on the same network."""
        for node, process in self._processes.items():
            process.kill()
            shutil.rmtree(self.data(node), ignore_errors=True)
        self.not_reusable = False
        self._start_all()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop all processes, and remove the network and a temporary directory."""
        self._save_archive()
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        self.network.close()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def bootstrap(self) -> str:
        """Bootstrap addresses for clients, running brokers first."""
        order = sorted(self.brokers, key=lambda b: (not self.running(b), b))
        return ",".join(":".join(map(str, self.address(b))) for b in order)

    def address(self, broker: int) -> tuple[str, int]:
        """Host and port of a broker for clients."""
        return self.network.client(broker, CLIENT_PORT)

    @property
    def zookeeper_address(self) -> str:
        """Host and port of ZooKeeper for clients."""
        return ":".join(map(str, self.network.client(CONTROLLER, ZOOKEEPER_PORT)))

    def running(self, node: int) -> bool:
        """Whether the process of a node is running."""
        return node in self._processes and self._processes[node].running

    def process(self, node: int) -> JavaProcess:
        """Return the current or last process of a node."""
        return self._processes[node]

    def node_folder(self, node: int) -> Path:
        """Return the directory of a node: properties, output and data."""
        return self.folder / str(node)

    def data(self, node: int) -> Path:
        """Return the log directory (``log.dirs``) of a node."""
        return self.node_folder(node) / "data"

    def output(self, node: int) -> str:
        """Return the console output of a node, over all its restarts."""
        log = self.node_folder(node) / "output.log"
        return log.read_text(errors="replace") if log.is_file() else ""

    def start(self, broker: int) -> None:
        """Start a stopped broker and wait until it is up."""
        self.launch(broker)
        self._wait_until_started(broker)

    def kill(self, broker: int) -> None:
        """Kill a broker with SIGKILL: disk and page cache survive."""
        self._processes[broker].kill()

    def stop(self, broker: int) -> None:
        """Stop a broker by controlled shutdown, and wait until it has ended."""
        self._processes[broker].stop()

    def begin_to_stop(self, broker: int) -> None:
        """Tell a broker to stop, without waiting."""
        self._processes[broker].terminate()

    def destroy(self, broker: int) -> None:
        """Kill a broker if it is running, and delete its data."""
        if self.running(broker):
            self.kill(broker)
        shutil.rmtree(self.data(broker), ignore_errors=True)

    def forget_clean_shutdown(self, broker: int) -> None:
        """Delete the clean-shutdown marker of a stopped broker, as if power had failed."""
        (self.data(broker) / _CLEAN_SHUTDOWN).unlink(missing_ok=True)

    def lag(self, broker: int, exempt: Collection[int] = ()) -> None:
        """Block requests of a broker to the other brokers, with exceptions; it still serves."""
        self._block({**self._lagging, broker: frozenset(exempt)}, self._limping)

    def catch_up(self, broker: int) -> None:
        """Unblock requests of a broker to the others."""
        lagging = {b: exempt for b, exempt in self._lagging.items() if b != broker}
        self._block(lagging, self._limping)

    def limp(self, broker: int, exempt: Collection[int] = ()) -> None:
        """Block requests between a broker and the others, both ways; it still serves clients."""
        self._block(self._lagging, {**self._limping, broker: frozenset(exempt)})

    def recover(self, broker: int) -> None:
        """Unblock requests between a broker and the others."""
        limping = {b: exempt for b, exempt in self._limping.items() if b != broker}
        self._block(self._lagging, limping)

    def _block(self, lagging: Exemptions, limping: Exemptions) -> None:
        blocked = blocked_requests(self.brokers, lagging, limping)
        for one in self.brokers:
            self.network.block_requests(one, _targets(one, blocked - self._blocked))
            self.network.unblock_requests(one, _targets(one, self._blocked - blocked))
        self._lagging, self._limping, self._blocked = lagging, limping, blocked

    def start_controller(self) -> None:
        """Start the KRaft controller or ZooKeeper, and wait until it is up."""
        folder = self.node_folder(CONTROLLER)
        folder.mkdir(parents=True, exist_ok=True)
        if self.spec.mode == "zookeeper":
            settings = node_properties.zookeeper(self.spec, self._zookeeper())
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            ready = "(?i)binding to port|started"
        else:
            settings = node_properties.controller(self.spec, self._controller(), self._quorum())
            main, ready = "kafka.Kafka", "Kafka Server started"
        self._write(CONTROLLER, settings)
        if self.spec.mode == "kraft" and not self.data(CONTROLLER).is_dir():
            self._format()
        self._run(CONTROLLER, main)
        self._processes[CONTROLLER].wait_for(ready, _START_TIMEOUT_S)

    def kill_controller(self) -> None:
        """Kill and restart the KRaft controller, which keeps its log."""
        self.stop_quorum()
        self.start_controller()

    def stop_quorum(self) -> None:
        """Kill the KRaft controller or ZooKeeper, which keeps its data: a quorum of one."""
        self._processes[CONTROLLER].kill()

    def _controller(self) -> tuple[str, int]:
        return self.network.peer(CONTROLLER, CONTROLLER_PORT)

    def _zookeeper(self) -> tuple[str, int]:
        return self.network.peer(CONTROLLER, ZOOKEEPER_PORT)

    def _quorum(self) -> str:
        if self.spec.mode == "zookeeper":
            return ":".join(map(str, self._zookeeper()))
        host, port = self._controller()
        return f"{CONTROLLER}@{host}:{port}"

    def launch(self, broker: int) -> None:
        """Start a stopped broker without waiting."""
        peer = self.network.peer(broker, BROKER_PORT)
        client = self.network.client(broker, CLIENT_PORT)
        settings = node_properties.broker(self.spec, broker, peer, client, self._quorum())
        self._write(broker, settings)
        if not self.data(broker).is_dir():
            self.data(broker).mkdir(parents=True)
            meta = {"version": "1", "cluster.id": CLUSTER_ID, "node.id": str(broker)}
            if self.spec.mode == "kraft":
                write_file(self.data(broker) / "meta.properties", properties(meta))
        self._run(broker, "kafka.Kafka")

    def _wait_until_started(self, broker: int) -> None:
        self._processes[broker].wait_for(
            r"Kafka Server started|\[KafkaServer id=\d+\] started", _START_TIMEOUT_S
        )

    def _write(self, node: int, settings: dict[str, str]) -> None:
        folder = self.node_folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        for key in {"log.dirs", "dataDir"} & settings.keys():
            settings[key] = str(self.data(node))
        write_file(folder / "node.properties", properties(settings))
        logging = self._logging(node)
        write_file(folder / logging.name, logging.lines)

    def _logging(self, node: int) -> LogSettings:
        files = self.node_folder(node) / "logs" if self.spec.log_files else None
        return log_settings(self.jars.major, files)

    def _run(self, node: int, main: str) -> None:
        folder = self.node_folder(node)
        logging = self._logging(node)
        archive = self._archive(main)
        process = JavaProcess(
            self.jars,
            [main, str(folder / "node.properties")],
            folder / "output.log",
            self.network.prefix(node),
            [f"{logging.option}{folder / logging.name}", *self.spec.java_options, *archive],
        )
        self._processes[node] = process
        if any("ArchiveClassesAtExit" in option for option in archive):
            self._archiving_process = process

    def _archive(self, main: str) -> Sequence[str]:
        """Return JVM options to use a class-data-sharing archive, or to record one."""
        if main != "kafka.Kafka":
            return ()
        if self.jars.archive.is_file():
            return (f"-XX:SharedArchiveFile={self.jars.archive}",)
        if self._archiving_process is None and self._processes:
            return (f"-XX:ArchiveClassesAtExit={self.folder / 'broker.jsa'}",)
        return ()

    def _save_archive(self) -> None:
        """Stop the recording broker, which writes the archive, and move it to the cache."""
        if self._archiving_process is None or not self._archiving_process.running:
            return
        self._archiving_process.stop()
        written = self.folder / "broker.jsa"
        if written.is_file():
            partial = self.jars.archive.with_suffix(f".{self._archiving_process.pid}")
            shutil.move(written, partial)
            partial.replace(self.jars.archive)

    def _format(self) -> None:
        arguments = ["format", "-t", CLUSTER_ID, "-c"]
        arguments.append(str(self.node_folder(CONTROLLER) / "node.properties"))
        if self.spec.eligible_leader_replicas is not None and self.jars.major >= 4:
            level = int(self.spec.eligible_leader_replicas)
            arguments += ["--feature", f"eligible.leader.replicas.version={level}"]
        log = self.node_folder(CONTROLLER) / "format.log"
        formatting = JavaProcess(self.jars, ["kafka.tools.StorageTool", *arguments], log)
        formatting.wait_until_ended(_START_TIMEOUT_S)
        if not (self.data(CONTROLLER) / "meta.properties").is_file():
            raise BrokersUnavailableError(
                f"the controller was not formatted: {formatting.output()}"
            )


def blocked_requests(
    brokers: Sequence[int], lagging: Exemptions, limping: Exemptions
) -> set[tuple[int, int]]:
    """Return whose requests to whom are blocked: those of these brokers, and to limping ones.

    lagging, limping: brokers whose requests are blocked, and the others that this does not concern.
    """
    pairs = [(one, to) for one in brokers for to in brokers if one != to]
    return {
        (one, to)
        for one, to in pairs
        if any(one in cut and to not in cut[one] for cut in (lagging, limping))
        or (to in limping and one not in limping[to])
    }


def _targets(one: int, pairs: Iterable[tuple[int, int]]) -> list[int]:
    return sorted(to for source, to in pairs if source == one)
