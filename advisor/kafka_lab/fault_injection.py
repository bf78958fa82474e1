"""Inject faults into real brokers and repair them, and keep account of what is not repaired."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advisor.kafka_lab.formats import log_directory
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.observation.controller_state import ControllerState, open_controller_reader
from advisor.kafka_lab.observation.quiescence import OpenFaults
from advisor.kafka_lab.observation.snapshot import ReplicaKey, Snapshot
from advisor.kafka_lab.time_scaling import TimeScale
from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import EMPTY, Log, Runs
from advisor.protocol.simulation import events as ev

_SESSION_TIMEOUT_S, _POLL_INTERVAL_S = 60.0, 0.1


class Quorum:
    """A quorum of one: the KRaft controller, or ZooKeeper.

    running: False between `stop` and `start`; `read` then returns what was recorded last.
    waiting: brokers started while the quorum was stopped, which cannot register.
    """

    def __init__(self, cluster: RealCluster) -> None:
        self._cluster = cluster
        self._is_kraft = cluster.spec.mode != "zookeeper"
        self._reader = open_controller_reader(cluster)
        self._last = self._reader.read()
        self._fenced_before: dict[int, int] = {}
        self.running = True
        self.waiting: frozenset[int] = frozenset()

    def read(self) -> ControllerState:
        """Return what is on record."""
        if self.running:
            self._last = self._reader.read()
        return self._last

    def close(self) -> None:
        """Close connections."""
        if self.running:
            self._reader.close()

    def stop(self) -> None:
        """Kill the quorum."""
        self.read()
        if not self._is_kraft:
            self._reader.close()
        self._cluster.stop_quorum()
        if self._is_kraft:
            self.read()
        self.running = False

    def launch(self, broker: int) -> None:
        """Start a broker that cannot register yet."""
        self._cluster.launch(broker)
        self.waiting |= {broker}

    def forget(self, broker: int) -> None:
        """Take back a `launch`: the broker has been ended."""
        self.waiting -= {broker}

    def start(self) -> None:
        """Start the quorum with what it had recorded, and let the waiting brokers register.

        A broker exits if the ZooKeeper session of its last life is still open
        (``KafkaZkClient.registerBroker``); a supervisor would start it again until it is not.
        """
        waiting, self.waiting = self.waiting, frozenset()
        if self._is_kraft:
            fencings = self._reader.fencings()
            self._fenced_before = {broker: fencings.count(broker) for broker in waiting}
        else:
            for broker in waiting:
                self._cluster.kill(broker)
        self._cluster.start_controller()
        if not self._is_kraft:
            self._reader = open_controller_reader(self._cluster)
        self.running = True
        for broker in () if self._is_kraft else sorted(waiting):
            self.wait_for_session_end(broker)
            self._cluster.launch(broker)

    def rejoining(self) -> frozenset[int]:
        """Return brokers of KRaft whose last life the controller has not fenced yet."""
        fencings = self._reader.fencings() if self._fenced_before and self.running else ()
        for broker, times in list(self._fenced_before.items()):
            if fencings.count(broker) > times:
                del self._fenced_before[broker]
        return frozenset(self._fenced_before)

    def wait_for_session_end(self, broker: int) -> None:
        """Wait until a broker may start: it exits while its previous ZooKeeper session exists."""
        if self._is_kraft:
            return
        deadline = time.monotonic() + _SESSION_TIMEOUT_S
        while broker in self.read().serving and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)


class FlushedOffsets:
    """The flushed prefix of every replica log."""

    def __init__(self) -> None:
        self._parts: dict[ReplicaKey, Runs] = {}

    def note(self, broker: int, copies: Mapping[ReplicaKey, Log]) -> None:
        """Record all logs of a broker as flushed."""
        self._parts.update({name: log.runs for name, log in copies.items() if name[0] == broker})

    def clamp(self, copies: Mapping[ReplicaKey, Log]) -> None:
        """Drop records truncated since; if rewritten, they are unflushed."""
        for name, runs in self._parts.items():
            length = common_prefix_length(runs, copies.get(name, EMPTY).runs)
            self._parts[name] = logs.records(Log(runs), 0, length)

    def records(self, name: ReplicaKey) -> int:
        """Return the number of records of a replica that a power failure preserves."""
        return sum(run.length for run in self._parts.get(name, ()))


def common_prefix_length(one: Runs, two: Runs) -> int:
    """Return the length of the common prefix of two logs, in records."""
    offset = 0
    left, right = list(one), list(two)
    while left and right:
        a, b = left.pop(0), right.pop(0)
        if (a.epoch, a.first) != (b.epoch, b.first):
            break
        length = min(a.length, b.length)
        offset += length
        for runs, run in ((left, a), (right, b)):
            if run.length > length:
                runs.insert(0, run._replace(first=run.first + length, length=run.length - length))
    return offset


# A pending fetch returns after replica.fetch.wait.max.ms; only the next one is blocked.
_FETCH_WAIT_S = 0.6


class FaultInjector:
    """Carries out the faults and repairs of a scenario.

    copies: reads the replica logs from the disks.
    flushed: what a power failure leaves of the logs.
    no_wait: whether the next command follows without waiting for quiescence.
    exempt: the ZooKeeper controller if it has no replicas: other requests to and from it must pass.
    """

    def __init__(
        self,
        cluster: RealCluster,
        time_scale: TimeScale,
        copies: Callable[[], Mapping[ReplicaKey, Log]],
    ) -> None:
        self.quorum = Quorum(cluster)
        self.flushed = FlushedOffsets()
        self.no_wait = False
        self.exempt: Sequence[int] = ()
        self._cluster = cluster
        self._time_scale = time_scale
        self._copies = copies
        self._faults = OpenFaults()
        self._paused: frozenset[int] = frozenset()
        self._last_silenced_s = 0.0

    def open_faults(self) -> OpenFaults:
        """Return the faults injected and not repaired yet."""
        return replace(
            self._faults,
            has_quorum=self.quorum.running,
            waiting=self.quorum.waiting | self.quorum.rejoining(),
        )

    def apply(self, event: Any) -> None:
        """Carry out a fault or repair of `FAULTS`."""
        ends_session = isinstance(event, _SESSION_ENDING_EVENTS)
        if ends_session:
            self._wait_for_next_heartbeat()
        FAULTS[type(event)](self, event)
        if ends_session:
            self._last_silenced_s = time.monotonic()

    def note(self, snapshot: Snapshot) -> None:
        """Record changes that happened without a command."""
        self.flushed.clamp(snapshot.logs)
        for broker in self._faults.stopping - snapshot.running:
            self.flushed.note(broker, snapshot.logs)
        stopping = self._faults.stopping & snapshot.running
        self._faults = replace(self._faults, stopping=stopping)

    def _wait_for_next_heartbeat(self) -> None:
        """Keep faults more than a heartbeat apart, so that sessions expire in their order."""
        apart_s = 1.5 * self._time_scale.heartbeat_ms / 1000
        time.sleep(max(0.0, self._last_silenced_s + apart_s - time.monotonic()))

    def pause_followers(self) -> None:
        """Stop all replica fetchers for a moment."""
        others = frozenset(self._cluster.brokers) - self._faults.lagging - self._paused
        for broker in others:
            self._cluster.lag(broker)
        if others:
            time.sleep(_FETCH_WAIT_S)
        self._paused |= others

    def resume_followers(self) -> None:
        """Let the paused fetchers run again."""
        for broker in self._paused - self._faults.lagging:
            self._cluster.catch_up(broker)
        self._paused = frozenset()

    def _kill(self, event: ev.Kill) -> None:
        self._cluster.kill(event.broker)
        self.quorum.forget(event.broker)

    def _stop(self, event: ev.Stop) -> None:
        if self.no_wait and not self.quorum.running:
            self._cluster.begin_to_stop(event.broker)
            stopping = self._faults.stopping | {event.broker}
            self._faults = replace(self._faults, stopping=stopping)
            return
        self._cluster.stop(event.broker)
        self.quorum.forget(event.broker)
        self.flushed.note(event.broker, self._copies())

    def _power_off(self, event: ev.PowerOff) -> None:
        if self._cluster.running(event.broker):
            self._cluster.kill(event.broker)
        self.quorum.forget(event.broker)
        self._cluster.forget_clean_shutdown(event.broker)
        copies = self._copies()
        self.flushed.clamp(copies)
        for broker, topic, number in copies:
            if broker == event.broker:
                name = (broker, topic, number)
                left = self.flushed.records(name) if event.keep is None else event.keep
                folder = log_directory.replica_folder(self._cluster.data(broker), topic, number)
                log_directory.drop_unflushed(folder, left)
        self.flushed.clamp(self._copies())

    def _destroy(self, event: ev.Destroy) -> None:
        self._cluster.destroy(event.broker)
        self.quorum.forget(event.broker)
        self.flushed.clamp(self._copies())

    def _wipe(self, event: ev.Wipe) -> None:
        """Kill all, a heartbeat apart and within one session, and then delete their logs."""
        for broker in sorted(event.brokers):
            if self._cluster.running(broker):
                self._wait_for_next_heartbeat()
                self._cluster.kill(broker)
                self._last_silenced_s = time.monotonic()
        for broker in event.brokers:
            self._cluster.destroy(broker)
            self.quorum.forget(broker)
        self.flushed.clamp(self._copies())

    def _start(self, event: ev.Start) -> None:
        if not self.quorum.running:
            self.quorum.launch(event.broker)
            return
        self.quorum.wait_for_session_end(event.broker)
        if self.no_wait or event.broker in self._faults.isolated:
            self._cluster.launch(event.broker)
        else:
            self._cluster.start(event.broker)

    def _isolate(self, event: ev.Isolate) -> None:
        self._cluster.network.isolate(event.broker)
        self._faults = replace(self._faults, isolated=self._faults.isolated | {event.broker})

    def _heal(self, event: ev.Heal) -> None:
        self._cluster.network.heal(event.broker)
        self._faults = replace(self._faults, isolated=self._faults.isolated - {event.broker})

    def _lag(self, event: ev.Lag) -> None:
        self._cluster.lag(event.broker, self.exempt)
        time.sleep(_FETCH_WAIT_S)
        self._faults = replace(self._faults, lagging=self._faults.lagging | {event.broker})

    def _catch_up(self, event: ev.CatchUp) -> None:
        self._cluster.catch_up(event.broker)
        self._faults = replace(self._faults, lagging=self._faults.lagging - {event.broker})

    def _limp(self, event: ev.Limp) -> None:
        self._cluster.limp(event.broker, self.exempt)
        time.sleep(_FETCH_WAIT_S)
        self._faults = replace(self._faults, limping=self._faults.limping | {event.broker})

    def _recover(self, event: ev.Recover) -> None:
        self._cluster.recover(event.broker)
        self._faults = replace(self._faults, limping=self._faults.limping - {event.broker})


_SESSION_ENDING_EVENTS = (ev.Kill, ev.PowerOff, ev.Destroy, ev.Isolate)
FAULTS: Mapping[type, Callable[[FaultInjector, Any], None]] = {
    ev.Kill: FaultInjector._kill,
    ev.PowerOff: FaultInjector._power_off,
    ev.Destroy: FaultInjector._destroy,
    ev.Stop: FaultInjector._stop,
    ev.Start: FaultInjector._start,
    ev.Wipe: FaultInjector._wipe,
    ev.Isolate: FaultInjector._isolate,
    ev.Heal: FaultInjector._heal,
    ev.Lag: FaultInjector._lag,
    ev.CatchUp: FaultInjector._catch_up,
    ev.Limp: FaultInjector._limp,
    ev.Recover: FaultInjector._recover,
    ev.StopQuorum: lambda injector, _: injector.quorum.stop(),
    ev.StartQuorum: lambda injector, _: injector.quorum.start(),
    ev.KillController: lambda injector, _: injector._cluster.kill_controller(),
    ev.Flush: lambda injector, event: injector.flushed.note(event.broker, injector._copies()),
}
