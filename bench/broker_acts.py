"""Single faults on a real cluster, and how long each of their consequences took.

Times come from timestamps: those of the controller's records (`controller_history`) and of the
brokers' own logs. Brokers are polled only to decide when the next fault may come, never for a time.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Event, Thread

from controller_history import BrokerChange, ControllerChange, History, PartitionChange

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.node_properties import CONTROLLER

VICTIM = 3  # Leads every partition that is counted. Under ZooKeeper the controller is broker 1.
_PER_TOPIC = 1_000
_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]")
_LOOK_EVERY_S = 0.25
_DONE_WITHIN_S = 600.0
_SETTLED_S = 3.0
# Exactly 10,000 changes in one request make a KRaft controller resign: its last batch is empty.
_ELECTED_AT_ONCE = 4_999

Times = dict[str, int]


class Bench:
    """A running cluster with its topics, ready for faults.

    Parameters
    ----------
    cluster : RealCluster
        Of brokers 1, 2 and 3.
    partitions : int
        How many partitions broker 3 leads; brokers 1 and 2 follow first equally often.
    lag_topic : bool
        Whether to create two more partitions, led by 1 and by 2, for `lag`.
    """

    def __init__(self, cluster: RealCluster, partitions: int, *, lag_topic: bool) -> None:
        self.cluster = cluster
        self.partitions = partitions
        self.history = History(cluster)
        orders = ("3:1:2", "3:2:1")
        for first in range(0, partitions, _PER_TOPIC):
            count = min(_PER_TOPIC, partitions - first)
            replicas = ",".join(orders[n % 2] for n in range(count))
            self._create(f"timing-{first // _PER_TOPIC}", replicas)
        if lag_topic:
            self._create("lag", "1:3:2,2:3:1")
        self._wait(self._whole)
        self._settle()

    def kill(self, *, at_once: bool = False) -> Times:
        """SIGKILL broker 3, restart it, and move its leaders back.

        Parameters
        ----------
        at_once : bool
            Start it again, and again if it gives up, without waiting until it is fenced.

        Returns
        -------
        dict of str to int
            Milliseconds.
        """
        seen, marks, spent = self.history.read(), self._marks(), self._cpu_ms()
        killed = _now_ms()
        self.cluster.kill(VICTIM)
        if at_once:
            while not self.cluster.running(VICTIM):
                # Under ZooKeeper it exits if its previous session has not expired.
                with suppress(BrokersUnavailableError):
                    self.cluster.start(VICTIM)
            full = self._last_joined(seen)
            self._preferred()
            return {"killed_and_started_at_once_to_full_isr": full - killed}
        self._wait(lambda: VICTIM not in self.history.serving and not self._led())
        self._settle()
        # The log line precedes the election; the record is written with it.
        expired = self._expired_at(marks)
        times = {
            "detection": self._fenced_at(seen) - killed,
            "detection_by_log": expired - killed,
            "election_recorded": self._last_elected(seen) - expired,
            "election_serving": self._last_started(marks) - expired,
            "kill_cpu": self._cpu_ms() - spent,
        }
        return times | self._start()

    def stop(self) -> Times:
        """Shut broker 3 down in order, and start it again."""
        seen, marks, spent = self.history.read(), self._marks(), self._cpu_ms()
        asked = _now_ms()
        self.cluster.stop(VICTIM)
        ended = _now_ms()
        self._wait(lambda: VICTIM not in self.history.serving and not self._led())
        self._settle()
        times = {
            "handover_recorded": self._last_elected(seen) - asked,
            "handover_serving": self._last_started(marks) - asked,
            "stopped": ended - asked,
            "stop_cpu": self._cpu_ms() - spent,
        }
        started = self._start()
        return times | {f"{name}_after_stop": value for name, value in started.items()}

    def lag(self) -> Times:
        """Stop broker 3's fetching while records are produced; then let it catch up."""
        done = Event()
        writer = Thread(target=_write_until, args=(self.cluster.bootstrap, done))
        writer.start()
        try:
            time.sleep(1.0)
            seen, marks = self.history.read(), self._marks()
            held = _now_ms()
            self.cluster.lag(VICTIM)
            self._wait(lambda: len(self._shrunk(seen)) == 2)
            logged = self._stamps((1, 2), marks, r"Partition lag-\d .*Shrinking ISR")
            released = _now_ms()
            self.cluster.catch_up(VICTIM)
            back = self._last_joined(seen)
        finally:
            done.set()
            writer.join()
        first, second = sorted(self._shrunk(seen))
        return {
            "isr_shrink": first - held,
            "isr_shrink_of_the_other_leader": second - held,
            "isr_shrink_by_log": min(logged) - held,
            "isr_expand_after_lag": back - released,
        }

    def kill_zookeeper_controller(self) -> Times:
        """SIGKILL broker 1, the controller under ZooKeeper, which leads none of the partitions."""
        seen, marks = self.history.read(), self._marks()
        self.cluster.kill(1)
        self._wait(lambda: any(isinstance(d, ControllerChange) for d in self._since(seen)))
        self._settle()
        ended = next(d.at_ms for d in self._since(seen) if isinstance(d, BrokerChange))
        ready = self._stamps((2, 3), marks, "Ready to serve as the new controller")
        return {"controller_failover": max(ready) - ended}

    def _create(self, topic: str, replicas: str) -> None:
        arguments = ["--bootstrap-server", self.cluster.bootstrap, "--create", "--topic", topic]
        answer = run_tool(
            self.cluster.jars, "kafka-topics.sh", [*arguments, "--replica-assignment", replicas]
        )
        # On a busy host the tool times out first; the controller continues.
        if not re.search("Created topic|timed out", answer.output):
            raise RuntimeError(f"{topic} was not made: {answer.output}{answer.errors}")

    def _start(self) -> Times:
        seen, marks = self.history.read(), self._marks()
        began = _now_ms()
        self.cluster.start(VICTIM)
        full = self._last_joined(seen)
        serving = next(
            d.at_ms for d in self._since(seen) if isinstance(d, BrokerChange) and d.serves
        )
        # A leader that learns the new ISR from the metadata log first writes no such line.
        logged = self._stamps((1, 2), marks, "ISR updated to")
        self._preferred()
        times = {"restart_to_serving": serving - began, "restart_to_full_isr": full - began}
        return times | ({"restart_to_full_isr_by_log": max(logged) - began} if logged else {})

    def _preferred(self) -> None:
        led = sorted(self.history.registrations)
        for first in range(0, len(led), _ELECTED_AT_ONCE):
            rows = [{"topic": t, "partition": p} for t, p in led[first : first + _ELECTED_AT_ONCE]]
            file = self.cluster.node_folder(CONTROLLER) / "election.json"
            file.write_text(json.dumps({"partitions": rows}))
            arguments = ["--bootstrap-server", self.cluster.bootstrap]
            arguments += ["--election-type", "preferred", "--path-to-json-file", str(file)]
            run_tool(self.cluster.jars, "kafka-leader-election.sh", arguments)
        self._wait(lambda: self._led() == self.partitions)
        self._settle()

    def _wait(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _DONE_WITHIN_S
        while True:
            self.history.read()
            if done():
                return
            if time.monotonic() > deadline:
                raise RuntimeError("the cluster did not get where it was expected to")
            time.sleep(_LOOK_EVERY_S)

    def _settle(self) -> None:
        """Wait until the brokers have applied what the controller decided."""
        size = -1
        while size != (size := sum(self._marks().values())):
            time.sleep(_SETTLED_S)

    def _whole(self) -> bool:
        found = self.history.registrations
        made = len(found) >= self.partitions
        return made and all(len(registration.isr) == 3 for registration in found.values())

    def _led(self) -> int:
        return sum(found.leader == VICTIM for found in self.history.registrations.values())

    def _since(self, seen: int) -> list[object]:
        self.history.read()
        return list(self.history.decisions[seen:])

    def _changes(self, seen: int) -> list[PartitionChange]:
        return [d for d in self._since(seen) if isinstance(d, PartitionChange)]

    def _shrunk(self, seen: int) -> list[int]:
        return [d.at_ms for d in self._changes(seen) if VICTIM in d.left]

    def _last_elected(self, seen: int) -> int:
        elected = [d.at_ms for d in self._changes(seen) if d.elected]
        if len(elected) != self.partitions:
            raise RuntimeError(f"{len(elected)} leaders moved, not {self.partitions}")
        return max(elected)

    def _last_joined(self, seen: int) -> int:
        self._wait(lambda: self._whole() and any(d.joined for d in self._changes(seen)))
        self._settle()
        return max(d.at_ms for d in self._changes(seen) if d.joined)

    def _fenced_at(self, seen: int) -> int:
        gone = (d for d in self._since(seen) if isinstance(d, BrokerChange) and not d.serves)
        return next(d.at_ms for d in gone if d.broker == VICTIM)

    def _marks(self) -> dict[int, int]:
        nodes = (*self.cluster.brokers, CONTROLLER)
        return {n: (self.cluster.node_folder(n) / "output.log").stat().st_size for n in nodes}

    def _cpu_ms(self) -> int:
        """Return the CPU time so far of the controller and of brokers 1 and 2."""
        ticks = 0
        for node in (CONTROLLER, 1, 2):
            stat = Path(f"/proc/{self.cluster.process(node).pid}/stat").read_text()
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
        return ticks * 1000 // os.sysconf("SC_CLK_TCK")

    def _expired_at(self, marks: dict[int, int]) -> int:
        said = "Expiring session" if self.cluster.spec.mode == "zookeeper" else "Fencing broker 3"
        return max(self._stamps((CONTROLLER,), marks, said))

    def _last_started(self, marks: dict[int, int]) -> int:
        return max(self._stamps((1, 2), marks, r"Leader timing-\d+-\d+ .*starts at"))

    def _stamps(self, nodes: Iterable[int], marks: dict[int, int], pattern: str) -> list[int]:
        """Return when each node last wrote such a line since its mark, for nodes that did."""
        found = []
        for node in nodes:
            with (self.cluster.node_folder(node) / "output.log").open("rb") as log:
                log.seek(marks[node])
                lines = log.read().decode(errors="replace").splitlines()
            stamps = [_stamp_ms(line) for line in lines if re.search(pattern, line)]
            found += [at for at in stamps[-1:] if at is not None]
        return found


def _stamp_ms(line: str) -> int | None:
    found = _STAMP.match(line)
    if found is None:
        return None
    second = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S").timestamp()
    return int(second) * 1000 + int(found[2])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _write_until(bootstrap: str, done: Event) -> None:
    """Produce to both partitions of the lag topic, ten times a second."""
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","), acks=1, linger_ms=0)
    while not done.wait(0.1):
        for partition in (0, 1):
            producer.send("lag", b"x" * 100, partition=partition)
    producer.close(timeout=5)
