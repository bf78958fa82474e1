"""`RealSimulation`: the interface of the protocol simulation, backed by real brokers.

The same scenario runner drives both. Events act on processes, disks and connections instead of a
state, and the state is read from the cluster instead of computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.kafka_lab.client import (
    LEADER_NOT_AVAILABLE,
    NETWORK_EXCEPTION,
    Client,
    NoResponseError,
    Producer,
)
from advisor.kafka_lab.fault_injection import FAULTS, FaultInjector
from advisor.kafka_lab.formats import log_directory
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError
from advisor.kafka_lab.observation.controller_state import move_controller
from advisor.kafka_lab.observation.quiescence import pending_work, wait_until_quiescent
from advisor.kafka_lab.observation.snapshot import (
    ReplicaKey,
    Snapshot,
    read_replica_log,
    state_from_snapshot,
)
from advisor.kafka_lab.time_scaling import TimeScale
from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import Log, Span
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.simulation import admin_requests
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.events import Effect, Refused
from advisor.protocol.simulation.state import position_of, with_partition

_ACKS = {"all": -1, 1: 1, 0: 0}
_DUPLICATE = "DUPLICATE_SEQUENCE_NUMBER"
_RETRY_BACKOFF_S = 0.1
_METADATA_DELAY_S = 1.5
_FINAL = frozenset({"INVALID_REQUIRED_ACKS", "MESSAGE_TOO_LARGE", "INVALID_RECORD"})


class TooBusyError(BrokersUnavailableError):
    """A healthy broker was fenced; the run is invalid and can be repeated."""


def too_busy(sign: str) -> TooBusyError:
    """Return the error, which begins with what shows it."""
    return TooBusyError(
        f"{sign}: this machine is too busy for sessions this short; run again when it is not"
    )


class ExpectedSessions:
    """Sessions that must go on: no fault was injected since their brokers were seen serving."""

    def __init__(self) -> None:
        self._sessions: dict[int, int] = {}

    def disturb(self, broker: int) -> None:
        """Stop expecting a broker's session to go on; a fault is injected."""
        self._sessions.pop(broker, None)

    def check(self, sessions: Mapping[int, int], live: Collection[int]) -> None:
        """Compare with the sessions of brokers now; those that run and are reached are ``live``.

        A broker that lost its session and has another has left its ISRs in between.
        """
        lost = [b for b, number in self._sessions.items() if sessions.get(b) != number]
        if lost:
            names = ", ".join(map(str, sorted(lost)))
            raise too_busy(f"broker {names} was fenced and nothing had been done to it")
        self._sessions |= {b: number for b, number in sessions.items() if b in live}


class RealSimulation(Simulation):
    """A simulation whose events act on real brokers, which are all up and have no topics.

    no_wait: whether the next command follows without waiting for quiescence.
    record_by_record: whether each record is a batch of its own, so that a power failure can cut
        between any two.
    topic_configs: settings of the next new topic, by Kafka's names.
    """

    def __init__(self, model: Simulation, cluster: RealCluster, time_scale: TimeScale) -> None:
        super().__init__(tuple(model.state.brokers), model.settings)
        self.cluster = cluster
        self.client = Client(cluster, self.reachable, lambda: self.has_controller)
        self.no_wait = False
        self.record_by_record = False
        self.topic_configs: Mapping[str, str] = {}
        self._time_scale = time_scale
        self._faults = FaultInjector(cluster, time_scale, self._replica_logs)
        self._quiescent = False
        self._next_value = 0
        self._expected_sessions = ExpectedSessions()

    def close(self) -> None:
        """Close connections; the brokers keep running."""
        self._faults.resume_followers()
        self._faults.quorum.close()

    @property
    def has_controller(self) -> bool:
        """Whether the controller quorum runs."""
        return self._faults.quorum.running

    def reachable(self) -> Sequence[int]:
        """Return the running brokers that serve and are not isolated, unfenced ones first."""
        quorum = self._faults.quorum
        away = self._faults.open_faults().isolated | quorum.waiting
        serving = quorum.read().serving
        live = [b for b in self.cluster.brokers if self.cluster.running(b) and b not in away]
        return sorted(live, key=lambda broker: broker not in serving)

    def read(self) -> Snapshot:
        """Take a snapshot of the cluster."""
        controller = self._faults.quorum.read()
        running = frozenset(b for b in self.cluster.brokers if self.cluster.running(b))
        faults = self._faults.open_faults()
        healthy = running - faults.isolated - faults.waiting - faults.stopping
        self._expected_sessions.check(controller.sessions, healthy)
        names = [(p.topic, p.number) for p in self.state.partitions]
        registrations = {
            name: controller.registrations[name]
            for name in names
            if name in controller.registrations
        }
        hws: dict[tuple[str, int], int | None] = {}
        for name, record in registrations.items():
            leads = record.leader in running
            hws[name] = self.client.high_watermark(record.leader, *name) if leads else None
        return Snapshot(
            replace(controller, registrations=registrations), self._replica_logs(), hws, running
        )

    def look(self) -> None:
        """Update the state from the cluster."""
        self._set_state(self.read())

    def settle(self, rest_ms: int = 0) -> None:
        """Wait until the cluster is quiescent; only refresh if it already was."""
        del rest_ms  # For the model only.
        if self._quiescent:
            self.look()
            return
        self._faults.resume_followers()
        self._set_state(
            wait_until_quiescent(self.read, self._faults.open_faults, self._time_scale.timeouts)
        )
        self._quiescent = True

    def apply(self, event: Any) -> tuple[Effect, ...]:
        """Apply an event; return the error as an effect if it was rejected."""
        handler = _HANDLERS.get(type(event))
        if handler is None and type(event) not in FAULTS:
            raise InputError(f"real brokers cannot be told to {type(event).__name__}")
        self._quiescent = False
        for broker in self._struck(event):
            self._expected_sessions.disturb(broker)
        error = None
        if handler is None:
            self._inject(event)
        else:
            error = handler(self, event)
        self._faults.resume_followers()
        self._update_running()
        return () if error is None else (Refused(error),)

    def _inject(self, event: Any) -> None:
        if isinstance(event, ev.StopQuorum):
            # Producers that are at work have their ids from the controller already.
            for broker in self.reachable():
                self.client.new_producer(broker)
        self._faults.no_wait = self.no_wait
        self._faults.exempt = self._controller_without_replicas()
        self._faults.apply(event)

    def _struck(self, event: Any) -> Sequence[int]:
        """Return the brokers whose sessions an event may end."""
        if isinstance(event, ev.StopQuorum | ev.StartQuorum) and not self.settings.kraft:
            return ()  # ZooKeeper gives every session its full time when it starts.
        if isinstance(event, ev.KillController | ev.StopQuorum | ev.StartQuorum):
            return self.cluster.brokers
        if isinstance(event, ev.Wipe):
            return event.brokers
        return (getattr(event, "broker", NO_LEADER),)

    def _update_running(self) -> None:
        """Update the running flags, which the next command may read before a snapshot."""
        brokers = [b._replace(running=self.cluster.running(b.id)) for b in self.state.brokers]
        self.state = self.state._replace(
            brokers=tuple(brokers), has_quorum=self._faults.quorum.running
        )

    def pass_time(self, milliseconds: int) -> None:
        """Wait for a time of the scenario, scaled to this cluster."""
        self._faults.resume_followers()
        self._quiescent = False
        time.sleep(self._time_scale.wait_s(milliseconds))

    def produce(
        self, topic: str, index: int, count: int, config: Config, via: int | None = None
    ) -> str | None:
        """See `Simulation`; with ``no_wait`` and acks=0 or 1 followers are paused meanwhile."""
        self._quiescent = False
        if self.no_wait and config.acks != "all":
            self._faults.pause_followers()
        else:
            self._faults.resume_followers()
        span = (self._next_value, self._next_value + count)
        self._next_value += count
        size = 1 if self.record_by_record else count
        error = None
        for first in range(*span, size):
            values = (first, first + size)
            error = self._send(topic, index, values, config, via)
            if error is not None:
                break
            self._record_acknowledged(topic, index, values, config.acks == "all")
        return error

    def _send(
        self, topic: str, index: int, span: Span, config: Config, via: int | None
    ) -> str | None:
        """Send a batch until acknowledged, or retries or time run out; return the last error.

        In a quiescent cluster every further attempt would fail the same way, so retrying stops
        early, though not before brokers have received new metadata from the controller.
        """
        assert config.retries is not None
        deadline = time.monotonic() + self._time_scale.delivery_s(config)
        producer: Producer | None = None
        sent = 0
        settled_at: float | None = None
        while True:
            if not self._settled():
                settled_at = None
            elif settled_at is None:
                settled_at = time.monotonic()
            leader = via
            if via is None and self.reachable():
                leader = self.client.leader(topic, index)
            error: str | None = LEADER_NOT_AVAILABLE
            if leader is not None:
                if producer is None and config.enable_idempotence:
                    producer = self.client.new_producer()
                # `via` is reached even if isolated: its client is on the same side.
                error = NETWORK_EXCEPTION
                if leader == via or leader in self.reachable():
                    target = leader, topic, index
                    error = self._attempt(target, span, config, producer, deadline)
                # acks=0 has no response: the producer assumes success.
                error = None if config.acks == 0 else error
                sent += 1
            if error in (None, _DUPLICATE):
                return None
            now = time.monotonic()
            out_of_time = now + _RETRY_BACKOFF_S >= deadline
            unchanging = settled_at is not None and now > settled_at + _METADATA_DELAY_S
            if error in _FINAL or sent > config.retries or out_of_time or unchanging:
                return error
            time.sleep(_RETRY_BACKOFF_S)

    def _attempt(
        self,
        target: tuple[int, str, int],
        span: Span,
        config: Config,
        producer: Producer | None,
        deadline: float,
    ) -> str | None:
        assert config.acks is not None
        values = tuple(str(value).encode() for value in range(*span))
        left_ms = max(1, round((deadline - time.monotonic()) * 1000))
        timeout_ms = min(left_ms, self._time_scale.request_ms(config))
        try:
            return self.client.produce(*target, values, _ACKS[config.acks], timeout_ms, producer)
        except NoResponseError:
            return NETWORK_EXCEPTION

    def _settled(self) -> bool:
        return not pending_work(self.read(), self._faults.open_faults())

    def _record_acknowledged(self, topic: str, index: int, span: Span, by_all: bool) -> None:
        """Record acknowledged records; with acks=all they are committed too."""
        position = position_of(self.state, topic, index)
        partition = self.state.partitions[position]
        partition = partition._replace(acked=logs.merged((*partition.acked, span)))
        if by_all:
            partition = partition._replace(committed=logs.merged((*partition.committed, span)))
        self.state = with_partition(self.state, position, partition)

    def _replica_logs(self) -> dict[ReplicaKey, Log]:
        logs_by_replica = {}
        for partition in self.state.partitions:
            for broker in self.cluster.brokers:
                name = partition.topic, partition.number
                folder = log_directory.replica_folder(self.cluster.data(broker), *name)
                log = _log_on_disk(folder)
                if log is not None:
                    logs_by_replica[(broker, *name)] = log
        return logs_by_replica

    def _set_state(self, snapshot: Snapshot) -> None:
        self.state = state_from_snapshot(snapshot, self.state)
        self._faults.note(snapshot)
        if not self.settings.kraft and self._faults.quorum.running:
            self._place_controller(snapshot.controller.serving)

    def _place_controller(self, serving: frozenset[int]) -> None:
        """Make the model's choice the ZooKeeper controller; its election is a race."""
        if self.state.controller_broker not in serving and serving:
            self.state = self.state._replace(controller_broker=min(serving))
            move_controller(self.cluster, min(serving))

    def _controller_without_replicas(self) -> list[int]:
        """Return the ZooKeeper controller if it has no replicas: other requests to it must pass."""
        holders = {b for p in self.state.partitions for b in p.registration.replicas}
        return [b for b in (self.state.controller_broker,) if b not in holders]

    def _create(self, event: ev.CreateTopic) -> str | None:
        error = self.client.create_topic(event.topic, event.assignment, self.topic_configs)
        state, effects = admin_requests.create_topic(self.state, event)
        if error is None:
            self.state = state
        elif self.has_controller and not any(isinstance(effect, Refused) for effect in effects):
            # Its brokers were fenced, or a request that timed out was carried out all the same.
            raise too_busy(f"topic {event.topic} was refused ({error}) while its brokers ran")
        return error

    def _grow(self, event: ev.GrowTopic) -> str | None:
        before = sum(p.topic == event.topic for p in self.state.partitions)
        count = before + len(event.assignment)
        error = self.client.grow_topic(event.topic, count, event.assignment)
        if error is None:
            self.state, _ = admin_requests.grow_topic(self.state, event)
        return error

    def _delete(self, event: ev.DeleteTopic) -> str | None:
        error = self.client.delete_topic(event.topic)
        if error is None:
            self.state, _ = admin_requests.delete_topic(self.state, event)
        return error

    def _alter(self, event: ev.AlterTopic) -> str | None:
        configs = {}
        if event.min_insync_replicas is not None:
            configs["min.insync.replicas"] = str(event.min_insync_replicas)
        if event.unclean is not None:
            configs["unclean.leader.election.enable"] = str(event.unclean).lower()
        error = self.client.alter_topic(event.topic, configs)
        if error is None:
            eligible = any(p.registration.elr for p in self.state.partitions)
            # Kafka (at least 4.0 to 4.3) clears the ELR but not the index brokersToElrs
            # (ReplicationControlManager.removeTopicElrs): once the topic is deleted, a former ELR
            # member cannot register after an unclean shutdown.
            self.cluster.not_reusable |= eligible and event.min_insync_replicas is not None
            self.state, _ = admin_requests.alter_topic(self.state, event, self.settings)
        return error

    def _elect(self, event: ev.Elect) -> str | None:
        return self.client.elect(event.topic, event.partition, event.kind == "unclean")

    def _reassign(self, event: ev.Reassign) -> str | None:
        return self.client.reassign(event.topic, event.partition, event.replicas)


def _log_on_disk(folder: Path) -> Log | None:
    """Read a replica's log, again if its broker deletes a file of it; None if it has none."""
    while folder.is_dir():
        with suppress(FileNotFoundError):
            return read_replica_log(folder)
    return None


_HANDLERS: dict[type, Callable[[RealSimulation, Any], str | None]] = {
    ev.CreateTopic: RealSimulation._create,
    ev.GrowTopic: RealSimulation._grow,
    ev.DeleteTopic: RealSimulation._delete,
    ev.AlterTopic: RealSimulation._alter,
    ev.Elect: RealSimulation._elect,
    ev.Reassign: RealSimulation._reassign,
}
