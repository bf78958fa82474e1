"""Record `data/logs/`: the logs of brokers and controllers during known faults, and true counts.

``python bench/record_logs.py [NAME ...]`` starts a cluster of three brokers, injects the faults and
repairs of `_story`, and keeps the logs that Kafka's default settings write, with ``counts.toml``
beside them. The counts come from the injected faults and the controller's records
(`controller_history`), never from the logs that are kept.
"""

from __future__ import annotations

import gzip
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

from controller_history import BrokerChange, ControllerChange, History, PartitionChange

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.node_properties import CONTROLLER, ClusterSpec, ClusterTimeouts

LOGS = Path(__file__).resolve().parent.parent / "data" / "logs"
TIMEOUTS = ClusterTimeouts(session_timeout_ms=6_000, replica_lag_time_max_ms=8_000)
SPECS = {
    "kraft-3.9": ClusterSpec("3.9", timeouts=TIMEOUTS, log_files=True),
    "zookeeper-3.9": ClusterSpec("3.9", mode="zookeeper", timeouts=TIMEOUTS, log_files=True),
    "kraft-4.3-elr": ClusterSpec("4.3", timeouts=TIMEOUTS, log_files=True),
}
TOPICS = {
    "orders": ("1:2:3,2:3:1,3:1:2,1:3:2,2:1:3,3:2:1", 2),
    "clicks": ("1:2,2:3,3:1", 1),
}
_LOOK_EVERY_S, _DONE_WITHIN_S, _QUIET_S = 0.2, 300.0, 3.0
_DATA, _FILES = "/var/lib/kafka", "/var/log/kafka"
_ENVIRONMENT = re.compile(r"(environment:[\w.]+=).*?( \([\w.]+\))?$", re.MULTILINE)


@dataclass
class Recording:
    """A cluster under observation."""

    cluster: RealCluster
    history: History
    acts: list[tuple[int, str, int]] = field(default_factory=list)

    def act(self, name: str, node: int, do: Callable[[], None]) -> None:
        """Apply a fault or repair to a node, and record when it began."""
        self.acts.append((time.time_ns() // 1_000_000, name, node))
        do()

    def until(self, done: Callable[[], bool]) -> None:
        """Wait until the controller has recorded it, and a little longer."""
        deadline = time.monotonic() + _DONE_WITHIN_S
        self.history.read()
        while not done():
            if time.monotonic() > deadline:
                raise RuntimeError(f"after {self.acts[-1]} the cluster did not come to rest")
            time.sleep(_LOOK_EVERY_S)
            self.history.read()
        time.sleep(_QUIET_S)

    def kill(self, broker: int) -> None:
        """SIGKILL a broker, and wait until it is fenced."""
        self.act("kill", broker, lambda: self.cluster.kill(broker))
        self.until(lambda: broker not in self.history.serving)

    def start(self, broker: int) -> None:
        """Start a broker, again if it exits, and wait until it serves."""
        while not self.cluster.running(broker):
            # Under ZooKeeper a broker exits at once if its previous session has not expired.
            with suppress(BrokersUnavailableError):
                self.act("start", broker, lambda: self.cluster.start(broker))
        self.until(lambda: broker in self.history.serving)

    def restart(self, broker: int) -> None:
        """Shut a broker down in order, start it, and wait until it is in every ISR."""
        self.act("stop", broker, lambda: self.cluster.stop(broker))
        self.until(lambda: broker not in self.history.serving)
        self.start(broker)
        self.until(self.whole)

    def whole(self) -> bool:
        """Whether every replica is in sync and every partition has a leader."""
        registrations = self.history.registrations
        return all(
            len(found.isr) == _replicas(name) and found.leader >= 0
            for name, found in registrations.items()
            if name[0] in TOPICS
        )

    def out_everywhere(self, broker: int) -> bool:
        """Whether a broker is in no ISR that has another member."""
        return not any(
            broker in found.isr and found.leader != broker
            for found in self.history.registrations.values()
        )

    @property
    def controller(self) -> int:
        """The node of the controller."""
        changes = [d for d in self.history.decisions if isinstance(d, ControllerChange)]
        return changes[-1].controller


def _replicas(name: tuple[str, int]) -> int:
    return len(TOPICS[name[0]][0].split(",")[name[1]].split(":"))


def _story(run: Recording) -> None:
    """Inject the faults and repairs, one after another."""
    cluster = run.cluster
    run.restart(2)
    run.kill(3)
    run.start(3)
    run.until(run.whole)
    run.act("lag", 2, lambda: cluster.lag(2))
    run.until(lambda: run.out_everywhere(2))
    run.act("catch-up", 2, lambda: cluster.catch_up(2))
    run.until(run.whole)
    # Back before its session expires: the controller sees the new process before the old one ends.
    run.act("kill", 1, lambda: cluster.kill(1))
    run.start(1)
    run.until(run.whole)
    run.act("isolate", 3, lambda: cluster.network.isolate(3))
    run.until(lambda: 3 not in run.history.serving)
    run.act("heal", 3, lambda: cluster.network.heal(3))
    run.until(run.whole)
    _controller_dies(run)
    for broker in (2, 3, 1):  # The last replica of each partition stops, too.
        run.kill(broker)
    for broker in (3, 2, 1):
        run.start(broker)
    run.until(run.whole)
    for broker in (1, 2, 3):
        run.restart(broker)


def _controller_dies(run: Recording) -> None:
    node, known = run.controller, len(run.history.decisions)
    if node == CONTROLLER:
        run.act("kill-controller", node, run.cluster.kill_controller)
    else:
        run.act("kill", node, lambda: run.cluster.kill(node))
    run.until(lambda: any(isinstance(d, ControllerChange) for d in run.history.decisions[known:]))
    if node != CONTROLLER:
        run.start(node)
    run.until(run.whole)


def _write(bootstrap: str, done: Event) -> None:
    """Produce to each partition, five times a second, ignoring refusals."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), acks=1, max_block_ms=100)
    while not done.wait(0.2):
        for topic, (replicas, _) in TOPICS.items():
            for partition in range(replicas.count(",") + 1):
                try:
                    producer.send(topic, b"x" * 100, partition=partition)
                except KafkaError:
                    continue
    producer.close(timeout=5)


def record(name: str, wish: ClusterSpec) -> None:
    """Run the faults on a cluster and keep its logs and counts."""
    folder = Path(tempfile.mkdtemp(prefix="record-logs-"))
    try:
        with RealCluster(wish, folder) as cluster:
            run = Recording(cluster, History(cluster))
            for topic, (replicas, least) in TOPICS.items():
                arguments = ["--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic]
                arguments += ["--replica-assignment", replicas]
                arguments += ["--config", f"min.insync.replicas={least}"]
                run_tool(cluster.jars, "kafka-topics.sh", arguments)
            run.until(lambda: len(run.history.registrations) == 9 and run.whole())
            done = Event()
            writer = Thread(target=_write, args=(cluster.bootstrap, done))
            writer.start()
            try:
                _story(run)
            finally:
                done.set()
                writer.join()
            counts = "\n".join(_counts(run)) + "\n"
        target = LOGS / name
        shutil.rmtree(target, ignore_errors=True)
        _keep_logs(folder, target, wish)
        (target / "counts.toml").write_text(counts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_logs(folder: Path, target: Path, wish: ClusterSpec) -> None:
    for node in (*sorted(wish.racks), CONTROLLER):
        called = f"broker-{node}" if node != CONTROLLER else "controller"
        if node == CONTROLLER and wish.mode == "zookeeper":
            called = "zookeeper"
        for log in sorted((folder / str(node) / "logs").glob("*.log")):
            text = _neutral(log.read_text(errors="replace"), folder / str(node))
            if text:
                kept = target / called / f"{log.name}.gz"
                kept.parent.mkdir(parents=True, exist_ok=True)
                # Without a timestamp in the archive, the same log gives the same bytes.
                kept.write_bytes(gzip.compress(text.encode(), mtime=0))


def _neutral(text: str, node: Path) -> str:
    """Return the log without the host's paths and environment."""
    for folder, name in ((node / "data", _DATA), (node / "logs", _FILES), (node, "/etc/kafka")):
        text = text.replace(str(folder), name)
    return _ENVIRONMENT.sub(r"\1-\2", text)


def _counts(run: Recording) -> Iterator[str]:
    """Return the counts as TOML."""
    wish, history = run.cluster.spec, run.history
    changes = [d for d in history.decisions if isinstance(d, PartitionChange)]
    brokers = [d for d in history.decisions if isinstance(d, BrokerChange)]
    controllers = [d for d in history.decisions if isinstance(d, ControllerChange)]
    acts = Counter((name, node) for _, name, node in run.acts)
    yield f'release = "{run.cluster.jars.release}"'
    yield f'mode = "{wish.mode}"'
    yield f"brokers = {list(run.cluster.brokers)}"
    yield f"session_timeout_ms = {wish.timeouts.session_timeout_ms}"
    yield f"replica_lag_time_max_ms = {wish.timeouts.replica_lag_time_max_ms}"
    yield f"began = {_at(history.decisions[0].at_ms)}"
    yield f"ended = {_at(history.decisions[-1].at_ms)}"
    yield f"controller_changes = {len(controllers) - 1}"
    for broker in run.cluster.brokers:
        own = [d for d in brokers if d.broker == broker]
        yield f"\n[broker.{broker}]"
        yield f"fenced = {sum(not d.serves for d in own)}"
        yield f"unfenced = {sum(d.serves for d in own)}"
        yield f"clean_stops = {acts['stop', broker]}"
        yield f"kills = {acts['kill', broker]}"
        yield f"starts = {1 + acts['start', broker]}"
        yield f"isolations = {acts['isolate', broker]}"
        yield f"lags = {acts['lag', broker]}"
    for name, found in sorted(history.registrations.items()):
        moved = [d for d in changes if d.partition == name]
        yield f'\n[partition."{name[0]}-{name[1]}"]'
        yield f"replicas = {_replicas(name)}"
        yield f"isr_shrinks = {sum(bool(d.left) for d in moved)}"
        yield f"isr_shrinks_by_leader = {sum(_by_leader(d, run) for d in moved)}"
        yield f"isr_expansions = {sum(bool(d.joined) for d in moved)}"
        yield f"members_left = {sum(len(d.left) for d in moved)}"
        yield f"members_joined = {sum(len(d.joined) for d in moved)}"
        yield f"elections = {sum(bool(d.elected) for d in moved)}"
        yield f"leaderless = {sum(_lost_leader(d) for d in moved)}"
        yield f"final_leader_epoch = {found.leader_epoch}"
        yield f"final_isr = {sorted(found.isr)}"
    for at_ms, act, node in run.acts:
        yield f'\n[[acts]]\nat = {_at(at_ms)}\nact = "{act}"\nnode = {node}'


def _by_leader(change: PartitionChange, run: Recording) -> bool:
    """Whether the leader requested it: only its follower's fetching had been stopped."""
    held = {node: at for at, name, node in run.acts if name == "lag" and at <= change.at_ms}
    freed = {node: at for at, name, node in run.acts if name == "catch-up" and at <= change.at_ms}
    return any(node in held and node not in freed for node in change.left)


def _lost_leader(change: PartitionChange) -> bool:
    return change.before is not None and change.before.leader >= 0 > change.after.leader


def _at(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")


def main() -> None:
    """Record the named runs, by default all."""
    for name, wish in SPECS.items():
        if len(sys.argv) == 1 or name in sys.argv[1:]:
            print(time.strftime("%H:%M:%S"), name, file=sys.stderr, flush=True)
            record(name, wish)


if __name__ == "__main__":
    main()
