"""A cluster of real brokers in the place of a simulated one: the same events are put to it.

Scenarios are run by the protocol's own runner. What an event does there to a state it does here to
processes, disks and connections; and the state is read, not computed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advisor.errors import InputError
from advisor.kafka_lab.client import Client
from advisor.kafka_lab.formats import log_directory
from advisor.kafka_lab.machine_load import Steady
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.zookeeper_controller import lead
from advisor.kafka_lab.observation.controller_state import controller_of
from advisor.kafka_lab.observation.flushed_offsets import Flushed
from advisor.kafka_lab.observation.quiescence import Links, pending_work, wait_until_quiet
from advisor.kafka_lab.observation.snapshot import CopyName, Reading, copy_on_disk, state_of
from advisor.kafka_lab.producer_retries import Sending
from advisor.kafka_lab.time_scaling import Timing
from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.replica_log import Log, Span
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.simulation import admin_requests
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.events import Effect, Refused
from advisor.protocol.simulation.state import position_of, with_partition

# A pending fetch is answered after replica.fetch.wait.max.ms; then the next one is held.
_FETCH_ANSWERED_S = 0.6
_SESSION_ENDS_WITHIN_S, _LOOK_EVERY_S = 60.0, 0.1


class RealSimulation(Simulation):
    """What a scenario acts on, with real brokers behind it.

    Parameters
    ----------
    model : Simulation
        What the scenario asked for: its brokers and settings.
    cluster : RealCluster
        Running, whole, and without topics.
    timing : Timing
        How the scenario's milliseconds become this cluster's.

    Attributes
    ----------
    hurried : bool
        The next act is not waited for, and meets the cluster in the midst of things.
    record_by_record : bool
        Each record is a batch of its own, so that a power failure may come between any two.
    topic_configs : mapping of str to str
        What the next new topic sets, in Kafka's spelling.
    """

    def __init__(self, model: Simulation, cluster: RealCluster, timing: Timing) -> None:
        super().__init__(tuple(model.state.brokers), model.settings)
        self.cluster = cluster
        self.client = Client(self)
        self.hurried = False
        self.record_by_record = False
        self.topic_configs: Mapping[str, str] = {}
        self._links = Links()
        self._timing = timing
        self._controller = controller_of(cluster)
        self._flushed = Flushed()
        self._held: frozenset[int] = frozenset()
        self._quiet = False
        self._next_value = 0
        self._silenced_at = 0.0
        self._steady = Steady()

    def close(self) -> None:
        """Let go of connections; the brokers are left as they are."""
        self._release()
        self._controller.close()

    def reachable(self) -> Sequence[int]:
        """The running brokers that are connected to the others, those that serve first."""
        isolated, serving = self._links.isolated, self._controller.read().serving
        live = [b for b in self.cluster.brokers if self.cluster.running(b) and b not in isolated]
        return sorted(live, key=lambda broker: broker not in serving)

    def read(self) -> Reading:
        """Look at the cluster as it is."""
        truth = self._controller.read()
        running = frozenset(b for b in self.cluster.brokers if self.cluster.running(b))
        self._steady.check(truth.serving, running - self._links.isolated)
        ours = [(p.topic, p.number) for p in self.state.partitions]
        told = {name: truth.registrations[name] for name in ours if name in truth.registrations}
        hws: dict[tuple[str, int], int | None] = {}
        for name, record in told.items():
            leads = record.leader in running
            hws[name] = self.client.high_watermark(record.leader, *name) if leads else None
        return Reading(replace(truth, registrations=told), self._copies(), hws, running)

    def look(self) -> None:
        """Let the state be what the cluster is now."""
        self._take(self.read())

    def settle(self, rest_ms: int = 0) -> None:
        """Wait until the cluster is quiet; only look if nothing was done since it was."""
        del rest_ms  # The model's; a real cluster is read more than once anyway.
        if self._quiet:
            self.look()
            return
        self._release()
        self._take(wait_until_quiet(self.read, self._links, self._timing.clocks))
        self._quiet = True

    def apply(self, event: Any) -> tuple[Effect, ...]:
        """Do what an event says; what it was refused with."""
        handler = _HANDLERS.get(type(event))
        if handler is None:
            raise InputError(f"real brokers cannot be told to {type(event).__name__}")
        self._quiet = False
        silencing = isinstance(event, _SILENCING)
        if silencing:
            # Sessions end in the order in which brokers fell silent: not within one heartbeat.
            apart_s = 1.5 * self._timing.heartbeat_ms / 1000
            time.sleep(max(0.0, self._silenced_at + apart_s - time.monotonic()))
        for broker in self.cluster.brokers if isinstance(event, ev.KillController) else ():
            self._steady.disturb(broker)
        self._steady.disturb(getattr(event, "broker", NO_LEADER))
        error = handler(self, event)
        self._release()
        if silencing:
            self._silenced_at = time.monotonic()
        self._note_who_runs()
        return () if error is None else (Refused(error),)

    def _note_who_runs(self) -> None:
        """The next act may ask, before anybody has looked."""
        brokers = [b._replace(running=self.cluster.running(b.id)) for b in self.state.brokers]
        self.state = self.state._replace(brokers=tuple(brokers))

    def pass_time(self, milliseconds: int) -> None:
        """Wait, as long as it takes on these clocks."""
        self._release()
        self._quiet = False
        time.sleep(self._timing.wait_s(milliseconds))

    def produce(
        self, topic: str, index: int, count: int, config: Config, via: int | None = None
    ) -> str | None:
        """See `Simulation`; with ``hurried`` and acks=0 or 1 nobody copies before the next act."""
        self._quiet = False
        if self.hurried and config.acks != "all":
            self._hold()
        else:
            self._release()
        span = (self._next_value, self._next_value + count)
        self._next_value += count
        size = 1 if self.record_by_record else count
        error = None
        for first in range(*span, size):
            part = (first, first + size)
            error = self._send(topic, index, part, config, via)
            if error is not None:
                break
            self._acknowledged(topic, index, part, config.acks == "all")
        return error

    def _send(
        self, topic: str, index: int, span: Span, config: Config, via: int | None
    ) -> str | None:
        values = tuple(str(value).encode() for value in range(*span))
        sending = Sending(
            self.client, topic, index, values, config, self._timing, self.reachable,
            self._settled, via,
        )  # fmt: skip
        return sending.run()

    def _settled(self) -> bool:
        return not pending_work(self.read(), self._links)

    def _acknowledged(self, topic: str, index: int, span: Span, by_all: bool) -> None:
        """An acks=all success says that the records were below the high watermark."""
        position = position_of(self.state, topic, index)
        partition = self.state.partitions[position]
        partition = partition._replace(acked=logs.merged((*partition.acked, span)))
        if by_all:
            partition = partition._replace(committed=logs.merged((*partition.committed, span)))
        self.state = with_partition(self.state, position, partition)

    def _copies(self) -> dict[CopyName, Log]:
        found = {}
        for partition in self.state.partitions:
            for broker in self.cluster.brokers:
                name = partition.topic, partition.number
                folder = log_directory.replica_folder(self.cluster.data(broker), *name)
                if folder.is_dir():
                    found[(broker, *name)] = copy_on_disk(folder)
        return found

    def _take(self, reading: Reading) -> None:
        self.state = state_of(reading, self.state)
        self._flushed.clamp(reading.logs)
        if not self.settings.kraft:
            self._place_controller(reading.truth.serving)

    def _place_controller(self, serving: frozenset[int]) -> None:
        """Which broker succeeds a ZooKeeper controller is a race; let it be the model's winner."""
        if self.state.controller_broker not in serving and serving:
            self.state = self.state._replace(controller_broker=min(serving))
            lead(self.cluster, min(serving))

    def _only_controllers(self) -> list[int]:
        """A ZooKeeper controller is asked for more than copies; one without any is not cut off."""
        holders = {b for p in self.state.partitions for b in p.registration.replicas}
        return [b for b in (self.state.controller_broker,) if b not in holders]

    def _hold(self) -> None:
        others = frozenset(self.cluster.brokers) - self._links.lagging - self._held
        for broker in others:
            self.cluster.lag(broker)
        if others:
            time.sleep(_FETCH_ANSWERED_S)
        self._held |= others

    def _release(self) -> None:
        for broker in self._held - self._links.lagging:
            self.cluster.catch_up(broker)
        self._held = frozenset()

    def _kill(self, event: ev.Kill) -> None:
        self.cluster.kill(event.broker)

    def _stop(self, event: ev.Stop) -> None:
        self.cluster.stop(event.broker)
        self._flushed.note(event.broker, self._copies())

    def _power_off(self, event: ev.PowerOff) -> None:
        if self.cluster.running(event.broker):
            self.cluster.kill(event.broker)
        self.cluster.forget_clean_shutdown(event.broker)
        copies = self._copies()
        self._flushed.clamp(copies)
        for broker, topic, number in copies:
            if broker == event.broker:
                name = (broker, topic, number)
                left = self._flushed.records(name) if event.keep is None else event.keep
                folder = log_directory.replica_folder(self.cluster.data(broker), topic, number)
                log_directory.cut(folder, left)
        self._flushed.clamp(self._copies())

    def _destroy(self, event: ev.Destroy) -> None:
        self.cluster.destroy(event.broker)
        self._flushed.clamp(self._copies())

    def _start(self, event: ev.Start) -> None:
        if not self.settings.kraft:
            self._await_end_of_session(event.broker)
        if self.hurried or event.broker in self._links.isolated:
            self.cluster.launch(event.broker)
        else:
            self.cluster.start(event.broker)

    def _await_end_of_session(self, broker: int) -> None:
        """Under ZooKeeper a broker gives up where its last life still has a session.

        Whoever starts it then starts it again (``KafkaZkClient.registerBroker``).
        """
        until = time.monotonic() + _SESSION_ENDS_WITHIN_S
        while broker in self._controller.read().serving and time.monotonic() < until:
            time.sleep(_LOOK_EVERY_S)

    def _isolate(self, event: ev.Isolate) -> None:
        self.cluster.network.isolate(event.broker)
        self._links = replace(self._links, isolated=self._links.isolated | {event.broker})

    def _heal(self, event: ev.Heal) -> None:
        self.cluster.network.heal(event.broker)
        self._links = replace(self._links, isolated=self._links.isolated - {event.broker})

    def _lag(self, event: ev.Lag) -> None:
        self.cluster.lag(event.broker, but=self._only_controllers())
        time.sleep(_FETCH_ANSWERED_S)
        self._links = replace(self._links, lagging=self._links.lagging | {event.broker})

    def _catch_up(self, event: ev.CatchUp) -> None:
        self.cluster.catch_up(event.broker)
        self._links = replace(self._links, lagging=self._links.lagging - {event.broker})

    def _kill_controller(self, _event: ev.KillController) -> None:
        self.cluster.kill_controller()

    def _flush(self, event: ev.Flush) -> None:
        self._flushed.note(event.broker, self._copies())

    def _create(self, event: ev.CreateTopic) -> str | None:
        error = self.client.create_topic(event.topic, event.assignment, self.topic_configs)
        if error is None:
            self.state, _ = admin_requests.create_topic(self.state, event)
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
            # Kafka (4.0 to 4.3 at least) clears the ELR and keeps who was in it in an index; once
            # the topic is gone, such a broker cannot register after an unclean end. Source:
            # ReplicationControlManager.removeTopicElrs, which leaves brokersToElrs as it was.
            self.cluster.spent |= eligible and event.min_insync_replicas is not None
            self.state, _ = admin_requests.alter_topic(self.state, event, self.settings)
        return error

    def _elect(self, event: ev.Elect) -> str | None:
        return self.client.elect(event.topic, event.partition, event.kind == "unclean")

    def _reassign(self, event: ev.Reassign) -> str | None:
        return self.client.reassign(event.topic, event.partition, event.replicas)


_SILENCING = (ev.Kill, ev.PowerOff, ev.Destroy, ev.Isolate)
_HANDLERS: dict[type, Callable[[RealSimulation, Any], str | None]] = {
    ev.Kill: RealSimulation._kill,
    ev.PowerOff: RealSimulation._power_off,
    ev.Destroy: RealSimulation._destroy,
    ev.Stop: RealSimulation._stop,
    ev.Start: RealSimulation._start,
    ev.Isolate: RealSimulation._isolate,
    ev.Heal: RealSimulation._heal,
    ev.Lag: RealSimulation._lag,
    ev.CatchUp: RealSimulation._catch_up,
    ev.KillController: RealSimulation._kill_controller,
    ev.Flush: RealSimulation._flush,
    ev.CreateTopic: RealSimulation._create,
    ev.GrowTopic: RealSimulation._grow,
    ev.DeleteTopic: RealSimulation._delete,
    ev.AlterTopic: RealSimulation._alter,
    ev.Elect: RealSimulation._elect,
    ev.Reassign: RealSimulation._reassign,
}
