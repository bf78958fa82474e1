"""A cluster of real brokers: its nodes' folders, their processes, and the faults they suffer."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType

from advisor.kafka_lab.nodes import node_properties
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, Jars, jars_of
from advisor.kafka_lab.nodes.log4j_settings import LogSettings, log_settings
from advisor.kafka_lab.nodes.network import (
    BROKER_PORT,
    CLIENT_PORT,
    CONTROLLER_PORT,
    ZOOKEEPER_PORT,
    Network,
    network_for,
)
from advisor.kafka_lab.nodes.node_properties import CLUSTER_ID, CONTROLLER, ClusterSpec
from advisor.kafka_lab.nodes.processes import JavaProcess

_STARTED_WITHIN_S = 300.0  # Ten thousand partitions after a kill, on a busy machine.
_CLEAN_SHUTDOWN = ".kafka_cleanshutdown"


class RealCluster:
    """Brokers, and the controller or ZooKeeper beside them; a context manager.

    Parameters
    ----------
    wish : Wish
    folder : Path, optional
        Where the nodes' folders are made; a temporary one that goes with the cluster by default.

    Attributes
    ----------
    jars : Jars
    network : Network
    brokers : tuple of int
        Ascending.
    spent : bool
        Something was done to it that no deletion of topics undoes; see `renew`.
    """

    def __init__(self, wish: ClusterSpec, folder: Path | None = None) -> None:
        self.wish = wish
        self.jars: Jars = jars_of(wish.version)
        if wish.mode == "zookeeper" and self.jars.major >= 4:
            raise BrokersUnavailableError(f"Kafka {wish.version} has no ZooKeeper mode")
        self.brokers = tuple(sorted(wish.racks))
        self.spent = False
        self._own_folder = folder is None
        self.folder = Path(tempfile.mkdtemp(prefix="kafka-")) if folder is None else folder
        self.network: Network = network_for([*self.brokers, CONTROLLER])
        self._processes: dict[int, JavaProcess] = {}
        self._recorder: JavaProcess | None = None

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
            # ZooKeeper's controller is the first to ask: the lowest, so that it is known.
            if self.wish.mode == "zookeeper":
                self._started(broker)
        for broker in self.brokers:
            self._started(broker)

    def renew(self) -> None:
        """Kill every process, empty every disk, and start as at first, on the same network."""
        for node, process in self._processes.items():
            process.kill()
            shutil.rmtree(self.data(node), ignore_errors=True)
        self.spent = False
        self._start_all()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every process and take the network and a temporary folder away."""
        self._keep_archive()
        for process in self._processes.values():
            process.kill()
        self._processes.clear()
        self.network.close()
        if self._own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def bootstrap(self) -> str:
        """The brokers' addresses for clients, the running ones first."""
        order = sorted(self.brokers, key=lambda b: (not self.running(b), b))
        return ",".join(":".join(map(str, self.address(b))) for b in order)

    def address(self, broker: int) -> tuple[str, int]:
        """Host and port where clients reach a broker."""
        return self.network.client(broker, CLIENT_PORT)

    @property
    def zookeeper_address(self) -> str:
        """Host and port where clients reach ZooKeeper."""
        return ":".join(map(str, self.network.client(CONTROLLER, ZOOKEEPER_PORT)))

    def running(self, node: int) -> bool:
        """Whether a node's process runs."""
        return node in self._processes and self._processes[node].running

    def process(self, node: int) -> JavaProcess:
        """The process of a node, the last one if it has ended."""
        return self._processes[node]

    def node_folder(self, node: int) -> Path:
        """The folder of a node: its properties, its output, its data."""
        return self.folder / str(node)

    def data(self, node: int) -> Path:
        """The log directory of a node."""
        return self.node_folder(node) / "data"

    def output(self, node: int) -> str:
        """All that a node has written to its log, over all its lives."""
        log = self.node_folder(node) / "output.log"
        return log.read_text(errors="replace") if log.is_file() else ""

    def start(self, broker: int) -> None:
        """Start a broker that does not run, and wait until it serves."""
        self.launch(broker)
        self._started(broker)

    def kill(self, broker: int) -> None:
        """SIGKILL: disk and page cache survive."""
        self._processes[broker].kill()

    def stop(self, broker: int) -> None:
        """A controlled shutdown."""
        self._processes[broker].stop()

    def destroy(self, broker: int) -> None:
        """Kill a broker if it runs and empty its disk."""
        if self.running(broker):
            self.kill(broker)
        shutil.rmtree(self.data(broker), ignore_errors=True)

    def forget_clean_shutdown(self, broker: int) -> None:
        """Let a stopped broker's disk look as after a power failure."""
        (self.data(broker) / _CLEAN_SHUTDOWN).unlink(missing_ok=True)

    def lag(self, broker: int, but: Collection[int] = ()) -> None:
        """Stop a broker's requests to the others, but for some; all else goes on."""
        self.network.hold_requests(broker, [b for b in self.brokers if b not in but])

    def catch_up(self, broker: int) -> None:
        """Let it fetch again."""
        self.network.release_requests(broker, self.brokers)

    def start_controller(self) -> None:
        """Start the controller, or ZooKeeper, and wait until it serves."""
        folder = self.node_folder(CONTROLLER)
        folder.mkdir(parents=True, exist_ok=True)
        if self.wish.mode == "zookeeper":
            settings = node_properties.zookeeper(self.wish, self._zookeeper())
            main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
            ready = "(?i)binding to port|started"
        else:
            settings = node_properties.controller(self.wish, self._controller(), self._quorum())
            main, ready = "kafka.Kafka", "Kafka Server started"
        self._write(CONTROLLER, settings)
        if self.wish.mode == "kraft" and not self.data(CONTROLLER).is_dir():
            self._format()
        self._run(CONTROLLER, main)
        self._processes[CONTROLLER].wait_for(ready, _STARTED_WITHIN_S)

    def kill_controller(self) -> None:
        """Kill the KRaft controller, and start it again: another takes over, with the same log."""
        self._processes[CONTROLLER].kill()
        self.start_controller()

    def _controller(self) -> tuple[str, int]:
        return self.network.peer(CONTROLLER, CONTROLLER_PORT)

    def _zookeeper(self) -> tuple[str, int]:
        return self.network.peer(CONTROLLER, ZOOKEEPER_PORT)

    def _quorum(self) -> str:
        if self.wish.mode == "zookeeper":
            return ":".join(map(str, self._zookeeper()))
        host, port = self._controller()
        return f"{CONTROLLER}@{host}:{port}"

    def launch(self, broker: int) -> None:
        """Start a broker that does not run; it serves later, if it can."""
        peer = self.network.peer(broker, BROKER_PORT)
        client = self.network.client(broker, CLIENT_PORT)
        settings = node_properties.broker(self.wish, broker, peer, client, self._quorum())
        self._write(broker, settings)
        if not self.data(broker).is_dir():
            self.data(broker).mkdir(parents=True)
            meta = {"version": "1", "cluster.id": CLUSTER_ID, "node.id": str(broker)}
            if self.wish.mode == "kraft":
                (self.data(broker) / "meta.properties").write_text(node_properties.text_of(meta))
        self._run(broker, "kafka.Kafka")

    def _started(self, broker: int) -> None:
        self._processes[broker].wait_for(
            r"Kafka Server started|\[KafkaServer id=\d+\] started", _STARTED_WITHIN_S
        )

    def _write(self, node: int, settings: dict[str, str]) -> None:
        folder = self.node_folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        for key in {"log.dirs", "dataDir"} & settings.keys():
            settings[key] = str(self.data(node))
        (folder / "node.properties").write_text(node_properties.text_of(settings))
        logging = self._logging(node)
        (folder / logging.name).write_text(logging.text)

    def _logging(self, node: int) -> LogSettings:
        files = self.node_folder(node) / "logs" if self.wish.log_files else None
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
            [f"{logging.option}{folder / logging.name}", *self.wish.java_options, *archive],
        )
        self._processes[node] = process
        if any("ArchiveClassesAtExit" in option for option in archive):
            self._recorder = process

    def _archive(self, main: str) -> Sequence[str]:
        """Use the parsed classes of an earlier broker, or keep those of the first one here."""
        if main != "kafka.Kafka":
            return ()
        if self.jars.archive.is_file():
            return (f"-XX:SharedArchiveFile={self.jars.archive}",)
        if self._recorder is None and self._processes:
            return (f"-XX:ArchiveClassesAtExit={self.folder / 'broker.jsa'}",)
        return ()

    def _keep_archive(self) -> None:
        """Let the recording broker write its archive, and put it where the next cluster looks."""
        if self._recorder is None or not self._recorder.running:
            return
        self._recorder.stop()
        written = self.folder / "broker.jsa"
        if written.is_file():
            partial = self.jars.archive.with_suffix(f".{self._recorder.pid}")
            shutil.move(written, partial)
            partial.replace(self.jars.archive)

    def _format(self) -> None:
        arguments = ["format", "-t", CLUSTER_ID, "-c"]
        arguments.append(str(self.node_folder(CONTROLLER) / "node.properties"))
        if self.wish.eligible_leader_replicas is not None and self.jars.major >= 4:
            level = int(self.wish.eligible_leader_replicas)
            arguments += ["--feature", f"eligible.leader.replicas.version={level}"]
        log = self.node_folder(CONTROLLER) / "format.log"
        formatting = JavaProcess(self.jars, ["kafka.tools.StorageTool", *arguments], log)
        formatting.wait_until_ended(_STARTED_WITHIN_S)
        if not (self.data(CONTROLLER) / "meta.properties").is_file():
            raise BrokersUnavailableError(
                f"the controller was not formatted: {formatting.output()}"
            )
