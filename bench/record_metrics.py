"""Record `tests/learning/recordings/`: what Prometheus saw of real brokers during known faults.

``python bench/record_metrics.py [--story NAME] [VERSION ...]`` starts five brokers and three
controllers with the JMX exporter, and a Prometheus that scrapes them every five seconds; injects
the faults of a story (``faults``, each kind once; ``bursts``, short refusals, and brokers that are
frozen or cut off); and keeps the series as ``VERSION.dump.gz`` (``VERSION-bursts.dump.gz``), with a
JSON file beside them: what really happened. That comes from the injected faults and the
controller's records, never from the metrics.

It needs root, Java, Maven, and Debian's package prometheus. A story takes a quarter of an hour, of
bursts twenty minutes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread
from typing import Any

from controller_history import BrokerChange, ControllerChange, History, PartitionChange

from advisor.kafka_lab.nodes import node_properties
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, run_maven
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.network import CONTROLLER_PORT
from advisor.kafka_lab.nodes.node_properties import (
    CLUSTER_ID,
    CONTROLLER,
    ClusterSpec,
    ClusterTimeouts,
)
from advisor.kafka_lab.nodes.processes import JavaProcess

RECORDINGS = Path(__file__).resolve().parent.parent / "tests" / "learning" / "recordings"
RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b"}
MORE_CONTROLLERS = (97, 98)
CONTROLLERS = (*MORE_CONTROLLERS, CONTROLLER)
EXPORTERS = {"3.9": "0.20.0", "4.3": "1.0.1"}
PARTITIONS, MIN_ISR = 20, 2
EXPORTER_PORT, SCRAPE_S = 7071, 5
REST_S, DONE_WITHIN_S, LOOK_EVERY_S = 65.0, 240.0, 0.1
TIMEOUTS = ClusterTimeouts(session_timeout_ms=9_000, replica_lag_time_max_ms=15_000)
SETTINGS = {
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.check.interval.seconds": "20",
    "leader.imbalance.per.broker.percentage": "0",
    "controller.quorum.election.timeout.ms": "2000",
    "controller.quorum.fetch.timeout.ms": "4000",
    "controller.quorum.request.timeout.ms": "4000",
    "replica.socket.timeout.ms": "5000",
}
# Of the exporter's example for Kafka 2.0; Strimzi's has the same three.
RULES = r"""
lowercaseOutputName: true
rules:
- pattern: kafka.(\w+)<type=(.+), name=(.+)PerSec\w*><>Count
  name: kafka_$1_$2_$3_total
  type: COUNTER
- pattern: kafka.(\w+)<type=(.+), name=(.+), (.+)=(.+)><>Value
  name: kafka_$1_$2_$3
  type: GAUGE
  labels:
    "$4": "$5"
- pattern: kafka.(\w+)<type=(.+), name=(.+)><>Value
  name: kafka_$1_$2_$3
  type: GAUGE
"""
BEANS = """
includeObjectNames:
- kafka.server:type=ReplicaManager,*
- kafka.server:type=KafkaServer,name=BrokerState
- kafka.server:type=BrokerTopicMetrics,name=FailedProduceRequestsPerSec
- kafka.controller:type=KafkaController,*
"""
KEPT = (
    "up|process_start_time_seconds|kafka_server_kafkaserver_brokerstate|"
    "kafka_server_replicamanager_(leadercount|partitioncount|underreplicatedpartitions|"
    "underminisrpartitioncount|atminisrpartitioncount|isrshrinks_total|isrexpands_total)|"
    "kafka_server_brokertopicmetrics_failedproducerequests_total|"
    "kafka_controller_kafkacontroller_(activecontrollercount|activebrokercount|fencedbrokercount|"
    "offlinepartitionscount|globalpartitioncount|lastappliedrecordlagms|"
    "controlledshutdownbrokercount|brokerregistrationstate)"
)


def exporter_jar(version: str) -> Path:
    """Return the JMX exporter's jar, which Maven brings."""
    group, name = "io.prometheus.jmx", "jmx_prometheus_javaagent"
    home = Path.home() / ".m2" / "repository" / group.replace(".", "/") / name / version
    jar = home / f"{name}-{version}.jar"
    if not jar.is_file():
        from advisor.catalog import kafka_pom

        options = [f"-Dartifact={group}:{name}:{version}", "-Dtransitive=false"]
        run_maven("the JMX exporter", kafka_pom(), "get", options)
    return jar


class MeteredCluster(RealCluster):
    """Brokers and three controllers, each with the JMX exporter."""

    def __init__(self, version: str, folder: Path) -> None:
        self._agent = exporter_jar(EXPORTERS[version])
        self._rules = folder / "exporter.yaml"
        self._rules.write_text(BEANS + RULES)
        racks = {**RACKS, **dict.fromkeys(MORE_CONTROLLERS)}
        spec = ClusterSpec(version, racks=racks, timeouts=TIMEOUTS, brokers_configs=SETTINGS)
        super().__init__(spec, folder, tuple(RACKS))

    def start_controller(self) -> None:
        """Start all controllers that do not run, and wait until they are up."""
        missing = [node for node in CONTROLLERS if not self.running(node)]
        for node in missing:
            self.launch_controller(node)
        for node in missing:
            self.process(node).wait_for("Kafka Server started", DONE_WITHIN_S)

    def launch_controller(self, node: int) -> None:
        """Start a controller without waiting."""
        folder = self.node_folder(node)
        folder.mkdir(parents=True, exist_ok=True)
        address = self.network.peer(node, CONTROLLER_PORT)
        settings = node_properties.controller(self.spec, address, self._quorum())
        self._write(node, {**settings, "node.id": str(node)})
        if not self.data(node).is_dir():
            self._format_node(node)
        self._run(node, "kafka.Kafka")

    def _format_node(self, node: int) -> None:
        settings = str(self.node_folder(node) / "node.properties")
        log = self.node_folder(node) / "format.log"
        command = ["kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", settings]
        formatting = JavaProcess(self.jars, command, log)
        formatting.wait_until_ended(DONE_WITHIN_S)
        if not (self.data(node) / "meta.properties").is_file():
            raise BrokersUnavailableError(f"{node} was not formatted: {formatting.output()}")

    def _quorum(self) -> str:
        peers = ((node, *self.network.peer(node, CONTROLLER_PORT)) for node in CONTROLLERS)
        return ",".join(f"{node}@{host}:{port}" for node, host, port in peers)

    def _archive(self, main: str) -> Sequence[str]:
        # Kafka's own archive, but none is recorded of brokers with an agent.
        del main
        agent = f"-javaagent:{self._agent}={EXPORTER_PORT}:{self._rules}"
        kept = (
            (f"-XX:SharedArchiveFile={self.jars.archive}",) if self.jars.archive.is_file() else ()
        )
        return (agent, *kept)

    def choke(self, broker: int, others: Sequence[int]) -> None:
        """Block what others ask of a broker; it still serves clients and follows the others."""
        for other in others:
            self.lag(other, exempt=[b for b in self.brokers if b != broker])

    def release(self, others: Sequence[int]) -> None:
        """Unblock it."""
        for other in others:
            self.catch_up(other)


class Prometheus:
    """A Prometheus that scrapes all nodes and keeps its data when it is killed."""

    def __init__(self, cluster: MeteredCluster, folder: Path) -> None:
        binary = shutil.which("prometheus")
        if binary is None:
            raise BrokersUnavailableError("no prometheus was found: install Debian's package")
        self._command = [binary, f"--config.file={folder / 'prometheus.yaml'}"]
        self._command += [f"--storage.tsdb.path={folder / 'tsdb'}"]
        self._command += [f"--web.listen-address=127.0.0.1:{_free_port()}", "--log.level=error"]
        self.data = folder / "tsdb"
        self._log = folder / "prometheus.log"
        jobs = {"kafka": [*RACKS], "kafka-controller": [*CONTROLLERS]}
        scrapes = [_job(cluster, job, nodes) for job, nodes in jobs.items()]
        settings = {"global": {"scrape_interval": f"{SCRAPE_S}s"}, "scrape_configs": scrapes}
        # JSON is YAML, too.
        (folder / "prometheus.yaml").write_text(json.dumps(settings))
        self.start()

    def start(self) -> None:
        """Start it, on the data that it had."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        time.sleep(2.0)
        if self._process.poll() is not None:
            raise BrokersUnavailableError(f"prometheus ended: {self._log.read_text()[-500:]}")

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """End it in order."""
        self._process.terminate()
        self._process.wait()

    def dump(self, target: Path) -> None:
        """Keep the series that are read, compressed."""
        match = '{__name__=~"' + KEPT + '"}'
        command = ["promtool", "tsdb", "dump", f"--match={match}", str(self.data)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        # Without a timestamp in the archive, the same dump gives the same bytes.
        target.write_bytes(gzip.compress(done.stdout.encode(), 9, mtime=0))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _job(cluster: MeteredCluster, job: str, nodes: Sequence[int]) -> dict[str, Any]:
    kind = "broker" if job == "kafka" else "controller"
    targets = [
        {
            "targets": [f"{cluster.network.client(node, EXPORTER_PORT)[0]}:{EXPORTER_PORT}"],
            "labels": {"instance": f"{kind}-{node}:{EXPORTER_PORT}"},
        }
        for node in nodes
    ]
    return {"job_name": job, "static_configs": targets}


@dataclass
class Recording:
    """A cluster under observation."""

    cluster: MeteredCluster
    prometheus: Prometheus
    history: History
    acts: list[dict[str, Any]] = field(default_factory=list)

    def act(self, what: str, nodes: Sequence[int], do: Callable[[], object]) -> None:
        """Do something, and record when it began."""
        print(time.strftime("%H:%M:%S"), what, *nodes, file=sys.stderr, flush=True)
        self.acts.append({"at": time.time(), "act": what, "nodes": list(nodes)})
        do()

    def until(self, done: Callable[[], bool]) -> None:
        """Wait until the controller has recorded it."""
        deadline = time.monotonic() + DONE_WITHIN_S
        self.history.read()
        while not done():
            if time.monotonic() > deadline:
                raise RuntimeError(f"after {self.acts[-1]} the cluster did not come to rest")
            time.sleep(LOOK_EVERY_S)
            self.history.read()

    def rest(self) -> None:
        """Wait until every replica is in sync, and long enough to tell events apart."""
        self.until(self.whole)
        time.sleep(REST_S)
        self.until(self.whole)

    def whole(self) -> bool:
        """Whether all brokers serve, and every partition all its replicas and a leader."""
        registrations = self.history.registrations.values()
        if len(registrations) < PARTITIONS or not self.history.serving >= set(RACKS):
            return False
        return all(len(r.isr) == 3 and r.leader >= 0 for r in registrations)

    def gone(self, broker: int) -> bool:
        """Whether a broker leads nothing, and is in no ISR that has another member."""
        registrations = self.history.registrations.values()
        return not any(
            r.leader == broker or (broker in r.isr and len(r.isr) > 1) for r in registrations
        )

    def start(self, *brokers: int) -> None:
        """Start brokers, without waiting."""
        for broker in brokers:
            self.act("start", [broker], partial(self.cluster.launch, broker))


def _story(run: Recording) -> None:
    """Inject the faults and repairs, one after another."""
    cluster = run.cluster
    run.rest()
    run.act("stop", [2], lambda: cluster.stop(2))
    time.sleep(10.0)
    run.start(2)
    run.rest()
    run.act("kill", [3], lambda: cluster.kill(3))
    time.sleep(25.0)
    run.start(3)
    run.rest()
    run.act("stop", [1], lambda: cluster.stop(1))
    time.sleep(4.0)
    run.act("stop", [5], lambda: cluster.stop(5))
    time.sleep(15.0)
    run.start(1, 5)
    run.rest()
    run.act("stop", [4], lambda: cluster.begin_to_stop(4))
    run.until(lambda: run.gone(4))
    run.act("kill while it stops", [4], lambda: cluster.kill(4))
    time.sleep(25.0)
    run.start(4)
    run.rest()
    for brokers in ((2, 3), (1, 4)):
        run.act("kill", brokers, partial(_kill, cluster, brokers))
        time.sleep(30.0)
        run.start(*brokers)
        run.rest()
    others = [broker for broker in RACKS if broker != 5]
    run.act("choke", [5], lambda: cluster.choke(5, others))
    time.sleep(100.0)
    run.act("release", [5], lambda: cluster.release(others))
    run.rest()
    pair = MORE_CONTROLLERS
    run.act("kill", pair, partial(_kill, cluster, pair))
    time.sleep(120.0)
    run.act("start", pair, partial(_launch, cluster, pair))
    time.sleep(REST_S)
    run.act("prometheus down", [], run.prometheus.kill)
    time.sleep(100.0)
    run.act("prometheus up", [], run.prometheus.start)
    time.sleep(REST_S)
    run.act("target missing", [3], lambda: _silence(cluster, 3, "add"))
    time.sleep(60.0)
    run.act("target back", [3], lambda: _silence(cluster, 3, "del"))
    time.sleep(REST_S)
    run.act("end", [], run.history.read)


def _bursts(run: Recording) -> None:
    """Let writes be refused for seconds, and freeze brokers and cut them off."""
    cluster = run.cluster
    run.rest()
    for brokers, seconds in (((1, 2), 11.0), ((3, 4), 13.0), ((2, 3, 4), 12.0)):
        run.act("kill", brokers, partial(_kill, cluster, brokers))
        time.sleep(seconds)
        run.start(*brokers)
        run.rest()
    for first, second in ((2, 3), (4, 5)):
        run.act("stop", [first], partial(cluster.stop, first))
        run.act("stop", [second], partial(cluster.stop, second))
        run.start(first, second)
        run.rest()
    for broker, down, seconds in ((2, None, 25.0), (4, None, 38.0), (5, 1, 25.0)):
        _while_down(run, down, partial(_frozen, run, broker, seconds))
    for broker, down, whole in ((3, None, False), (1, None, True), (2, 3, False)):
        _while_down(run, down, partial(_cut_off, run, broker, whole, 30.0))
    run.act("end", [], run.history.read)


def _while_down(run: Recording, down: int | None, do: Callable[[], None]) -> None:
    """Do something while another broker is down, or none is; and wait until all is well."""
    if down is not None:
        run.act("kill", [down], lambda: run.cluster.kill(down))
        run.until(lambda: run.gone(down))
        time.sleep(REST_S)
    do()
    if down is not None:
        time.sleep(REST_S)
        run.start(down)
    run.rest()


def _frozen(run: Recording, broker: int, seconds: float) -> None:
    """Freeze a broker's process for a time, as a long pause of its machine does."""
    pid = run.cluster.process(broker).pid
    run.act("freeze", [broker], lambda: os.kill(pid, signal.SIGSTOP))
    time.sleep(seconds)
    run.act("thaw", [broker], lambda: os.kill(pid, signal.SIGCONT))


def _cut_off(run: Recording, broker: int, whole: bool, seconds: float) -> None:
    """Cut a broker off from the other nodes for a time; `whole`: from Prometheus, too."""
    network = run.cluster.network

    def cut() -> None:
        network.isolate(broker)
        if whole:
            _silence(run.cluster, broker, "add")

    def mend() -> None:
        network.heal(broker)
        if whole:
            _silence(run.cluster, broker, "del")

    run.act("cut off", [broker], cut)
    time.sleep(seconds)
    run.act("reconnect", [broker], mend)


def _kill(cluster: MeteredCluster, nodes: Sequence[int]) -> None:
    for node in nodes:
        cluster.process(node).kill()


def _launch(cluster: MeteredCluster, controllers: Sequence[int]) -> None:
    for node in controllers:
        cluster.launch_controller(node)


def _silence(cluster: MeteredCluster, broker: int, verb: str) -> None:
    """Let a broker not answer this host, where Prometheus runs; the others still hear it."""
    client = cluster.network.client(broker, 0)[0]
    host = client.rpartition(".")[0] + ".254"
    prefix = [*cluster.network.prefix(broker), "ip", "route", verb, "blackhole", f"{host}/32"]
    subprocess.run(prefix, check=True)


def _write(bootstrap: str, done: Event) -> None:
    """Produce to each partition, twice a second, ignoring refusals."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","), acks="all", max_block_ms=100, retries=0
    )
    while not done.wait(0.5):
        for partition in range(PARTITIONS):
            try:
                producer.send("orders", b"x" * 100, partition=partition)
            except KafkaError:
                continue
    producer.close(timeout=5)


STORIES = {"faults": _story, "bursts": _bursts}


def record(version: str, story: str) -> None:
    """Run a story on a cluster, and keep what Prometheus saw and what happened."""
    name = version if story == "faults" else f"{version}-{story}"
    folder = Path(tempfile.mkdtemp(prefix="record-metrics-"))
    try:
        cluster = MeteredCluster(version, folder)
        with cluster:
            _create_topic(cluster)
            run = Recording(cluster, Prometheus(cluster, folder), History(cluster))
            run.until(run.whole)
            done = Event()
            writer = Thread(target=_write, args=(cluster.bootstrap, done))
            writer.start()
            began = time.time()
            try:
                STORIES[story](run)
            finally:
                done.set()
                writer.join()
                run.prometheus.stop()
            RECORDINGS.mkdir(exist_ok=True)
            run.prometheus.dump(RECORDINGS / f"{name}.dump.gz")
            truth = json.dumps(_truth(run, began), indent=1)
            (RECORDINGS / f"{name}.json").write_text(truth + "\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _create_topic(cluster: MeteredCluster) -> None:
    brokers = list(RACKS)
    lists = [
        ":".join(str(brokers[(first + n) % len(brokers)]) for n in range(3))
        for first in range(PARTITIONS)
    ]
    arguments = ["--bootstrap-server", cluster.bootstrap, "--create", "--topic", "orders"]
    arguments += ["--replica-assignment", ",".join(lists)]
    arguments += ["--config", f"min.insync.replicas={MIN_ISR}"]
    run_tool(cluster.jars, "kafka-topics.sh", arguments)


def _truth(run: Recording, began: float) -> dict[str, Any]:
    """What was done, and what the controller recorded: fencings, elections, refused minutes."""
    ended = run.acts[-1]["at"]
    decisions = run.history.decisions
    fencings = [
        {"at": d.at_ms / 1e3, "broker": d.broker, "serves": d.serves}
        for d in decisions
        if isinstance(d, BrokerChange)
    ]
    elections = [d.at_ms / 1e3 for d in decisions if isinstance(d, ControllerChange)]
    changes = [d for d in decisions if isinstance(d, PartitionChange)]
    alone = [
        {"at": d.at_ms / 1e3, "leader": d.after.leader, "isr": len(d.after.isr)}
        for d in changes
        if d.before is not None and len(d.after.isr) != len(d.before.isr)
    ]
    refusals = _refusals(changes, began, ended)
    times, counts = zip(*refusals, (ended, 0), strict=True)
    spans = [b - a for a, b in pairwise(times)]
    partition_s = sum(count * span for count, span in zip(counts, spans, strict=False))
    any_s = sum(bool(count) * span for count, span in zip(counts, spans, strict=False))
    return {
        "release": run.cluster.jars.release,
        "racks": RACKS,
        "began": began,
        "ended": ended,
        "partitions": PARTITIONS,
        "refused_partition_minutes": partition_s / 60.0,
        "refused_minutes": any_s / 60.0,
        "refusals": [{"at": at, "partitions": count} for at, count in refusals],
        "acts": run.acts,
        "fencings": fencings,
        "controller_elections": elections,
        "isr_changes": alone,
    }


def _refusals(
    changes: Sequence[PartitionChange], began: float, ended: float
) -> list[tuple[float, int]]:
    """Since when how many partitions had no leader or were under min ISR."""
    refusing: set[Any] = set()
    steps = [(began, 0)]
    for change in changes:
        refuses = change.after.leader < 0 or len(change.after.isr) < MIN_ISR
        (refusing.add if refuses else refusing.discard)(change.partition)
        now = min(max(change.at_ms / 1e3, steps[-1][0]), ended)
        if len(refusing) != steps[-1][1]:
            steps.append((now, len(refusing)))
    return steps


def main() -> None:
    """Record the named versions, by default all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("versions", nargs="*", default=list(EXPORTERS))
    parser.add_argument("--story", choices=STORIES, default="faults")
    options = parser.parse_args()
    for version in options.versions:
        record(version, options.story)


if __name__ == "__main__":
    main()
