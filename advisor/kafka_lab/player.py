"""Run scenarios on real brokers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from advisor.errors import InputError
from advisor.kafka_lab.client import LEADER_NOT_AVAILABLE, Client
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, release_of
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.node_properties import CONTROLLER, ClusterSpec
from advisor.kafka_lab.observation.controller_state import (
    ControllerReader,
    move_controller,
    open_controller_reader,
)
from advisor.kafka_lab.real_simulation import RealSimulation, TooBusyError
from advisor.kafka_lab.time_scaling import time_scale_for
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.rules.versions import parse_version
from advisor.protocol.scenario import options, rendering
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import Command, Scenario, bad, parse
from advisor.protocol.scenario.player import Play, played, text_of
from advisor.protocol.simulation.cluster import Simulation

_RESET_TIMEOUT_S = 120.0
_POLL_INTERVAL_S = 0.2


def reset_cluster(cluster: RealCluster, controller: int) -> None:
    """Reconnect and start all brokers, delete all topics, and wait for completion.

    controller: broker that becomes the controller under ZooKeeper.
    """
    if cluster.not_reusable:
        cluster.recreate()
    if cluster.network.can_partition:
        for broker in cluster.brokers:
            cluster.network.heal(broker)
            cluster.catch_up(broker)
            cluster.recover(broker)
    if not cluster.running(CONTROLLER):
        cluster.start_controller()
    reader = open_controller_reader(cluster)
    client = Client(cluster, lambda: cluster.brokers)
    deadline = time.monotonic() + _RESET_TIMEOUT_S
    deleted: set[str] = set()
    try:
        _wait_for_session_ends(cluster, reader, deadline)
        cluster.start_missing()
        while True:
            state = reader.read()
            topics = {topic for topic, _ in state.registrations}
            all_serving = state.serving == frozenset(cluster.brokers)
            if all_serving and not topics and not _replica_folders(cluster):
                break
            for topic in topics - deleted:
                client.delete_topic(topic)
                deleted.add(topic)
            if time.monotonic() > deadline:
                raise BrokersUnavailableError(
                    f"the cluster did not get whole again: serving {sorted(state.serving)}, "
                    f"topics {sorted(topics)}"
                )
            time.sleep(_POLL_INTERVAL_S)
    finally:
        reader.close()
    if cluster.spec.mode == "zookeeper":
        move_controller(cluster, controller)


def _wait_for_session_ends(cluster: RealCluster, reader: ControllerReader, deadline: float) -> None:
    """Wait until brokers may start: under ZooKeeper one exits if its last session is still open."""
    if cluster.spec.mode != "zookeeper":
        return
    missing = {broker for broker in cluster.brokers if not cluster.running(broker)}
    while missing & reader.read().serving and time.monotonic() < deadline:
        time.sleep(_POLL_INTERVAL_S)


def _replica_folders(cluster: RealCluster) -> list[str]:
    """Replica directories that brokers have not deleted yet."""
    return [
        path.name
        for broker in cluster.brokers
        for path in cluster.data(broker).glob("*-*")
        if path.is_dir() and not path.name.startswith("__") and not path.name.endswith("-delete")
    ]


_ATTEMPTS = 3
_TOPIC_ID = "TopicId: "
_ADMIN_VERBS = frozenset({"topic", "delete", "alter", "elect", "reassign"})
_READ_ONLY_VERBS = frozenset({"state", "registration", "log", "describe", "consume", "check"})


class RealRunner(Runner):
    """Runs the commands of one scenario on a cluster of its `spec_for`."""

    def __init__(
        self, cluster: RealCluster, scenario: Scenario, progress: Callable[[str], None]
    ) -> None:
        super().__init__(self._attach_brokers)
        self._real = cluster
        self._scenario = scenario
        self._progress = progress
        self.simulation: RealSimulation | None = None

    def one(self, command: Command) -> list[str]:
        """See `Runner`."""
        self._progress(f"line {command.line}: {self._scenario.lines[command.line - 1]}")
        try:
            return super().one(command)
        except InputError as error:
            # Not an error of the scenario line.
            if isinstance(error.__cause__, TooBusyError):
                raise error.__cause__ from None
            raise

    def act(self, cluster: Simulation, command: Command) -> list[str]:
        """See `Runner`; commands that only read refresh the state first."""
        real = self.simulation
        assert real is not None
        real.no_wait = not command.waits
        if command.verb in _READ_ONLY_VERBS:
            real.look()
        if command.verb == "topic":
            options_by_key = {
                key.replace("_", "."): value for key, value in command.options.items()
            }
            settings = ("min.insync.replicas", "unclean.leader.election.enable")
            real.topic_configs = {
                key: options_by_key[key] for key in settings if key in options_by_key
            }
        if command.verb == "describe":
            return self._describe(real, command)
        if command.verb == "consume":
            return self._consume(real, command)
        return super().act(cluster, command)

    def _attach_brokers(self, model: Simulation) -> Simulation:
        reset_cluster(self._real, model.state.controller_broker)
        time_scale = replace(
            time_scale_for(self._scenario, model.settings), timeouts=self._real.spec.timeouts
        )
        self.simulation = RealSimulation(model, self._real, time_scale)
        self.simulation.record_by_record = any("keep" in c.options for c in self._scenario.commands)
        return self.simulation

    def _describe(self, real: RealSimulation, command: Command) -> list[str]:
        """Output of kafka-topics.sh, with the random topic id replaced by the model's."""
        name = self.topic(command.words[0])
        bootstrap = [":".join(map(str, self._real.address(b))) for b in real.reachable()]
        if not bootstrap:
            raise BrokersUnavailableError("no broker runs that could describe a topic; start one")
        arguments = ["--bootstrap-server", ",".join(bootstrap), "--describe", "--topic", name]
        result = run_tool(self._real.jars, "kafka-topics.sh", arguments)
        if result.code:
            raise BrokersUnavailableError(f"kafka-topics.sh failed: {result.errors.strip()}")
        model_id = rendering.topic_id(name, list(self.topics).index(name))
        lines = result.output.rstrip("\n").split("\n")
        head, label, rest = lines[0].partition(_TOPIC_ID)
        if label:
            lines[0] = head + label + model_id + rest[len(model_id) :]
        return lines

    def _consume(self, real: RealSimulation, command: Command) -> list[str]:
        partition = self.partition(real, command.words[0])
        leader = partition.registration.leader
        values: list[bytes] | str = LEADER_NOT_AVAILABLE
        if leader != NO_LEADER and self._real.running(leader):
            values = real.client.read(leader, partition.topic, partition.number)
        return [f"read 0 {values}" if isinstance(values, str) else f"read {len(values)}"]


def spec_for(scenario: Scenario, version: str | None = None) -> ClusterSpec:
    """Return the cluster that a scenario needs, of its version or another."""
    model = options.cluster_of(scenario.commands[0])
    config = model.settings.config
    _check_supported(scenario, model)
    chosen = version or config.kafka_version
    release_of(chosen)
    with_elr = config.eligible_leader_replicas if parse_version(chosen) >= (4, 0) else None
    brokers_configs = {
        key.replace("_", "."): value
        for key, value in scenario.commands[0].options.items()
        if key in ("min_insync_replicas", "unclean_leader_election_enable")
    }
    time_scale = time_scale_for(scenario, model.settings)
    if time_scale.unclean_interval_ms is not None:
        brokers_configs["unclean.leader.election.interval.ms"] = str(time_scale.unclean_interval_ms)
    racks = {broker.id: broker.rack for broker in model.state.brokers}
    return ClusterSpec(
        chosen, str(config.mode), racks, with_elr, brokers_configs, time_scale.timeouts
    )


def _check_supported(scenario: Scenario, model: Simulation) -> None:
    """Reject commands that only the model supports."""
    if model.settings.only_controller:
        raise InputError(
            "only=controller drives the controller by hand, which real brokers do not let happen"
        )
    without_quorum = False
    for command in scenario.commands:
        if command.verb in ("stop-quorum", "start-quorum"):
            without_quorum = command.verb == "stop-quorum"
        if without_quorum and command.verb in _ADMIN_VERBS and not model.settings.kraft:
            raise bad(
                command.line,
                "brokers hold a request until ZooKeeper is back and carry it out then; "
                "move it behind start-quorum",
            )
        if command.verb == "kill-controller" and not model.settings.kraft:
            raise bad(
                command.line,
                "under ZooKeeper the controller is one of the brokers; kill that broker",
            )
        if "throttle" in command.options:
            raise bad(command.line, "real brokers are throttled in bytes a second, not in records")


def outputs_on_brokers(
    scenario: Scenario, cluster: RealCluster, progress: Callable[[str], None] = lambda _: None
) -> list[list[str]]:
    """Run a scenario on a running cluster of its `spec_for` and return the output of every command.

    The cluster is reset first, so that it can run several scenarios.
    """
    attempts = 0
    while True:
        attempts += 1
        runner = RealRunner(cluster, scenario, progress)
        try:
            return runner.run(scenario)
        except TooBusyError as busy:
            if attempts == _ATTEMPTS:
                raise
            progress(f"again: {busy}")
        finally:
            if runner.simulation is not None:
                runner.simulation.close()


def play(source: str | Path, progress: Callable[[str], None] = lambda _: None) -> Play:
    """Start brokers and run a scenario on them.

    source: text of a scenario, or path of its file.
    progress: called with lines about the progress, which takes about a minute.
    Raises InputError if the scenario is invalid or not supported by real brokers.
    Raises BrokersUnavailableError if real brokers cannot run on this machine.
    """
    scenario = parse(text_of(source))
    spec = spec_for(scenario)
    began = time.monotonic()
    with RealCluster(spec) as cluster:
        took_s = time.monotonic() - began
        progress(
            f"{len(spec.racks)} brokers of Kafka {cluster.jars.release} run, after {took_s:.0f} s"
        )
        return played(scenario, outputs_on_brokers(scenario, cluster, progress))
