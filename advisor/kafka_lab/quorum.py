"""The controller quorum of a real cluster: reads its record, stops it and starts it again."""

from __future__ import annotations

import time

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.observation.controller_state import ControllerState, open_controller_reader

_SESSION_TIMEOUT_S, _POLL_INTERVAL_S = 60.0, 0.1


class Quorum:
    """A quorum of one: the KRaft controller, or ZooKeeper.

    cluster: a running cluster.
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
            known = self._reader.fencings()
            self._fenced_before = {broker: known.count(broker) for broker in waiting}
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
        known = self._reader.fencings() if self._fenced_before and self.running else ()
        for broker, times in list(self._fenced_before.items()):
            if known.count(broker) > times:
                del self._fenced_before[broker]
        return frozenset(self._fenced_before)

    def wait_for_session_end(self, broker: int) -> None:
        """Wait until a broker may start: it exits while its previous ZooKeeper session exists."""
        if self._is_kraft:
            return
        deadline = time.monotonic() + _SESSION_TIMEOUT_S
        while broker in self.read().serving and time.monotonic() < deadline:
            time.sleep(_POLL_INTERVAL_S)
