"""Scenarios on real brokers: the clusters they need, and what their commands print there."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from advisor.errors import InputError
from advisor.kafka_lab.cleanup import mend
from advisor.kafka_lab.client import LEADER_NOT_AVAILABLE
from advisor.kafka_lab.machine_load import TooBusyError
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, release_of
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.kafka_lab.real_simulation import RealSimulation
from advisor.kafka_lab.time_scaling import timing_of
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.rules.versions import parse_version
from advisor.protocol.scenario import options, rendering
from advisor.protocol.scenario.commands import Runner
from advisor.protocol.scenario.language import Command, Scenario, bad, parse
from advisor.protocol.scenario.player import Play, played, text_of
from advisor.protocol.simulation.cluster import Simulation

_ATTEMPTS = 3
_TOPIC_ID = "TopicId: "
_LOOKS = frozenset({"state", "registration", "log", "describe", "consume", "check"})


class RealRunner(Runner):
    """Runs the commands of one scenario on a running cluster.

    Parameters
    ----------
    cluster : RealCluster
        As `wish_of` wants it for the scenario.
    scenario : Scenario
    told : callable
        Is handed each command's line before it runs.
    """

    def __init__(
        self, cluster: RealCluster, scenario: Scenario, told: Callable[[str], None]
    ) -> None:
        super().__init__(self._behind)
        self._real = cluster
        self._scenario = scenario
        self._told = told
        self.simulation: RealSimulation | None = None

    def one(self, command: Command) -> list[str]:
        """See `Runner`."""
        self._told(f"line {command.line}: {self._scenario.lines[command.line - 1]}")
        try:
            return super().one(command)
        except InputError as error:
            # It is no fault of the line.
            if isinstance(error.__cause__, TooBusyError):
                raise error.__cause__ from None
            raise

    def act(self, cluster: Simulation, command: Command) -> list[str]:
        """See `Runner`; every look is a fresh one."""
        real = self.simulation
        assert real is not None
        real.hurried = not command.waits
        if command.verb in _LOOKS:
            real.look()
        if command.verb == "topic":
            given = {key.replace("_", "."): value for key, value in command.options.items()}
            settings = ("min.insync.replicas", "unclean.leader.election.enable")
            real.topic_configs = {key: given[key] for key in settings if key in given}
        if command.verb == "describe":
            return self._describe(real, command)
        if command.verb == "consume":
            return self._consume(real, command)
        return super().act(cluster, command)

    def _behind(self, asked: Simulation) -> Simulation:
        mend(self._real, asked.state.controller_broker)
        timing = replace(timing_of(self._scenario, asked.settings), clocks=self._real.wish.clocks)
        self.simulation = RealSimulation(asked, self._real, timing)
        self.simulation.record_by_record = any("keep" in c.options for c in self._scenario.commands)
        return self.simulation

    def _describe(self, real: RealSimulation, command: Command) -> list[str]:
        """What Kafka's own tool prints, with the model's id of the topic for the random one."""
        name = self.topic(command.words[0])
        asked = [":".join(map(str, self._real.address(b))) for b in real.reachable()]
        if not asked:
            raise BrokersUnavailableError("no broker runs that could describe a topic; start one")
        arguments = ["--bootstrap-server", ",".join(asked), "--describe", "--topic", name]
        answer = run_tool(self._real.jars, "kafka-topics.sh", arguments)
        if answer.code:
            raise BrokersUnavailableError(f"kafka-topics.sh failed: {answer.errors.strip()}")
        ours = rendering.topic_id(name, list(self.topics).index(name))
        lines = answer.output.rstrip("\n").split("\n")
        head, found, rest = lines[0].partition(_TOPIC_ID)
        if found:
            lines[0] = head + found + ours + rest[len(ours) :]
        return lines

    def _consume(self, real: RealSimulation, command: Command) -> list[str]:
        partition = self.partition(real, command.words[0])
        leader = partition.registration.leader
        told: list[bytes] | str = LEADER_NOT_AVAILABLE
        if leader != NO_LEADER and self._real.running(leader):
            told = real.client.read(leader, partition.topic, partition.number)
        return [f"read 0 {told}" if isinstance(told, str) else f"read {len(told)}"]


def wish_of(scenario: Scenario, version: str | None = None) -> ClusterSpec:
    """The cluster that a scenario needs.

    Parameters
    ----------
    scenario : Scenario
    version : str, optional
        To run instead of the scenario's own.

    Raises
    ------
    InputError
        If no real cluster can do what the scenario asks for.
    BrokersUnavailableError
        If its version is none of those that are run here.
    """
    model = options.cluster_of(scenario.commands[0])
    config = model.settings.config
    _check_possible(scenario, model)
    chosen = version or config.kafka_version
    release_of(chosen)
    with_elr = config.eligible_leader_replicas if parse_version(chosen) >= (4, 0) else None
    brokers_configs = {
        key.replace("_", "."): value
        for key, value in scenario.commands[0].options.items()
        if key in ("min_insync_replicas", "unclean_leader_election_enable")
    }
    timing = timing_of(scenario, model.settings)
    if timing.sweep_ms is not None:
        brokers_configs["unclean.leader.election.interval.ms"] = str(timing.sweep_ms)
    racks = {broker.id: broker.rack for broker in model.state.brokers}
    return ClusterSpec(chosen, str(config.mode), racks, with_elr, brokers_configs, timing.clocks)


def _check_possible(scenario: Scenario, model: Simulation) -> None:
    """Refuse what only the model can do."""
    if model.settings.only_controller:
        raise InputError(
            "only=controller drives the controller by hand, which real brokers do not let happen"
        )
    for command in scenario.commands:
        if command.verb == "kill-controller" and not model.settings.kraft:
            raise bad(
                command.line,
                "under ZooKeeper the controller is one of the brokers; kill that broker",
            )
        if "throttle" in command.options:
            raise bad(command.line, "real brokers are throttled in bytes a second, not in records")


def printed_by(
    scenario: Scenario, cluster: RealCluster, told: Callable[[str], None] = lambda _: None
) -> list[list[str]]:
    """What every command of a scenario prints on a running cluster.

    The cluster is mended first: every broker runs and is connected, no topic is left. So one
    cluster may play many scenarios that want the same one (`wish_of`).

    Parameters
    ----------
    scenario : Scenario
    cluster : RealCluster
    told : callable, optional
        Is handed each command's line before it runs.

    Raises
    ------
    TooBusyError
        If a healthy broker was taken for dead in each of three runs.
    """
    attempts = 0
    while True:
        attempts += 1
        runner = RealRunner(cluster, scenario, told)
        try:
            return runner.run(scenario)
        except TooBusyError as busy:
            if attempts == _ATTEMPTS:
                raise
            told(f"again: {busy}")
        finally:
            if runner.simulation is not None:
                runner.simulation.close()


def play(source: str | Path, told: Callable[[str], None] = lambda _: None) -> Play:
    """Run a scenario on brokers started for it.

    Parameters
    ----------
    source : str or Path
        The text of a scenario, or the path of its file.
    told : callable, optional
        Is handed what happens, a line at a time: it takes a minute.

    Raises
    ------
    InputError
        If the scenario is wrong, or is not one for real brokers.
    BrokersUnavailableError
        If real brokers cannot be run here.
    """
    scenario = parse(text_of(source))
    wish = wish_of(scenario)
    began = time.monotonic()
    with RealCluster(wish) as cluster:
        took_s = time.monotonic() - began
        told(f"{len(wish.racks)} brokers of Kafka {cluster.jars.release} run, after {took_s:.0f} s")
        return played(scenario, printed_by(scenario, cluster, told))
