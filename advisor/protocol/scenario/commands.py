"""Applies scenario commands to a simulated cluster and collects their output."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from advisor.errors import AdvisorError, InputError
from advisor.protocol.scenario import options, rendering
from advisor.protocol.scenario.language import Command, Scenario, bad, suggestion
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.invariants import check
from advisor.protocol.simulation.state import Partition, active_brokers

_CONTROLLER_ONLY = {"fence", "unfence", "register", "alter-isr"}
_NEEDS_BROKERS = {
    "produce", "consume", "kill", "start", "power-off", "destroy", "isolate", "heal", "lag",
    "catch-up", "limp", "recover", "wipe", "kill-controller", "stop-quorum", "start-quorum",
    "flush", "log",
}  # fmt: skip
_NO_PLACE = "INVALID_REPLICATION_FACTOR"
_QUERIES = {"state", "log", "describe", "check", "registration", "consume"}


class Runner:
    """Runs the commands of one scenario in order.

    cluster_for: maps the simulation described by the ``cluster`` command to the one that later
        commands act on. Default: the same simulation.
    topics: configs set on each existing topic, by topic name, in order of creation.
    """

    def __init__(self, cluster_for: Callable[[Simulation], Simulation] | None = None) -> None:
        self.cluster: Simulation | None = None
        self._cluster_for = cluster_for
        self.topics: dict[str, dict[str, str]] = {}

    def run(self, scenario: Scenario) -> list[list[str]]:
        """Run every command; one list of output lines for each."""
        return [self.one(command) for command in scenario.commands]

    def one(self, command: Command) -> list[str]:
        """Run one command, and let the cluster settle unless the command starts with ``!``."""
        try:
            return self._one(command)
        except AdvisorError as error:
            text = str(error)
            if text.startswith("line "):
                raise
            raise bad(command.line, text) from error

    def _one(self, command: Command) -> list[str]:
        if command.verb == "cluster":
            if self.cluster is not None:
                raise InputError("expected one 'cluster' command, found a second")
            simulation = options.cluster_of(command)
            cluster_for = self._cluster_for
            self.cluster = simulation if cluster_for is None else cluster_for(simulation)
            return []
        cluster = self.cluster
        assert cluster is not None
        self._check_kind(cluster, command.verb)
        is_query = command.verb in _QUERIES
        if command.waits and is_query:
            cluster.settle(0)
        printed = self.act(cluster, command)
        if command.waits and not is_query:
            cluster.settle()
        return printed

    def act(self, cluster: Simulation, command: Command) -> list[str]:
        """Apply a command without waiting; returns its output lines."""
        return _VERBS[command.verb](self, cluster, command)

    @staticmethod
    def _check_kind(cluster: Simulation, verb: str) -> None:
        controller_only = cluster.settings.only_controller
        if controller_only and verb in _NEEDS_BROKERS:
            raise InputError(f"'{verb}' needs brokers, and this cluster has only=controller")
        if not controller_only and verb in _CONTROLLER_ONLY:
            raise InputError(f"'{verb}' needs a cluster with only=controller")

    def topic(self, text: str) -> str:
        """Name of an existing topic, checked."""
        if text not in self.topics:
            raise InputError(f"unknown topic '{text}'{suggestion(text, list(self.topics))}")
        return text

    def partition(self, cluster: Simulation, text: str) -> Partition:
        """Partition written as ``topic-number``, such as ``t1-0``."""
        match = re.fullmatch(r"(.+)-([0-9]{1,9})", text)
        if match is None:
            raise InputError(f"expected a partition such as 't1-0', found '{text}'")
        topic = self.topic(match[1])
        count = sum(p.topic == topic for p in cluster.state.partitions)
        if int(match[2]) >= count:
            raise InputError(
                f"unknown partition '{text}'; topic '{topic}' has partitions 0 to {count - 1}"
            )
        return cluster.partition(topic, int(match[2]))


def _refusals(effects: tuple[Any, ...]) -> list[str]:
    return [effect.error for effect in effects if isinstance(effect, ev.Refused)]


def _has_no_place(cluster: Simulation) -> bool:
    """Return whether a KRaft controller can place no replicas: no broker could lead."""
    return cluster.settings.kraft and not active_brokers(cluster.state)


def _topic(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    name = command.words[0]
    if "replicas" not in command.options and _has_no_place(cluster):
        return [_NO_PLACE]
    create_topic, configs = options.topic_of(command, cluster)
    printed = _refusals(cluster.apply(create_topic))
    if not printed:
        run.topics[name] = configs
    return printed


def _delete(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    name = run.topic(command.words[0])
    printed = _refusals(cluster.apply(ev.DeleteTopic(name)))
    del run.topics[name]
    return printed


def _alter(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    name = run.topic(command.words[0])
    if "partitions" in command.options and _has_no_place(cluster):
        return [_NO_PLACE]
    printed: list[str] = []
    configs = dict(run.topics[name])
    for event in options.alterations_of(name, command, cluster, configs):
        printed += _refusals(cluster.apply(event))
    if not printed:
        run.topics[name] = configs
    return printed


def _produce(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    partition = run.partition(cluster, command.words[0])
    count = options.whole_number(command.words[1], "a number of records", 1)
    config, via = options.producer_of(command, cluster)
    error = cluster.produce(partition.topic, partition.number, count, config, via)
    return [f"acked {count}"] if error is None else [f"acked 0 {error}"]


def _shut_down(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    """``kill`` and ``stop``."""
    broker = options.broker_named(cluster, command.words[0])
    if not broker.running:
        raise InputError(f"broker {broker.id} is not running")
    event = ev.Kill if command.verb == "kill" else ev.Stop
    cluster.apply(event(broker.id))
    return []


def _start(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    broker = options.broker_named(cluster, command.words[0])
    if broker.running:
        raise InputError(f"broker {broker.id} is already running")
    cluster.apply(ev.Start(broker.id))
    return []


def _power_off(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    broker = options.broker_named(cluster, command.words[0])
    keep = command.options.get("keep")
    records = None if keep is None else options.whole_number(keep, "keep= a number of records", 0)
    cluster.apply(ev.PowerOff(broker.id, records))
    return []


def _broker_event(
    event: Callable[[int], Any],
) -> Callable[[Runner, Simulation, Command], list[str]]:
    """A verb that applies one event to one broker."""

    def apply(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
        cluster.apply(event(options.broker_named(cluster, command.words[0]).id))
        return []

    return apply


def _wipe(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    cluster.apply(ev.Wipe(options.brokers_named(cluster, command.words[0])))
    return []


# verb -> (event, whether it needs a quorum, the error without)
_QUORUM: dict[str, tuple[Callable[[], Any], bool, str]] = {
    "kill-controller": (ev.KillController, True, "is stopped; start it first"),
    "stop-quorum": (ev.StopQuorum, True, "is already stopped"),
    "start-quorum": (ev.StartQuorum, False, "is already running"),
}


def _quorum(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    event, needs_quorum, error = _QUORUM[command.verb]
    if cluster.state.has_quorum != needs_quorum:
        raise InputError(f"the controller quorum {error}")
    cluster.apply(event())
    return []


def _elect(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    kind = command.words[0]
    if kind not in ("preferred", "unclean"):
        raise InputError(f"expected 'elect preferred|unclean TOPIC-PARTITION', found '{kind}'")
    partition = run.partition(cluster, command.words[1])
    return _refusals(cluster.apply(ev.Elect(partition.topic, partition.number, kind)))


def _reassign(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    partition = run.partition(cluster, command.words[0])
    target = command.words[1]
    replicas = None if target == "cancel" else options.brokers_named(cluster, target)
    rate = command.options.get("throttle", "0")
    throttle = options.whole_number(rate, "throttle= records a second", 0)
    event = ev.Reassign(partition.topic, partition.number, replicas, throttle)
    return _refusals(cluster.apply(event))


def _wait(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    cluster.pass_time(options.duration_ms(command.words[0]))
    return []


def _state(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    return [rendering.state_line(cluster.state, run.partition(cluster, command.words[0]))]


def _registration(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    partition = run.partition(cluster, command.words[0])
    return [rendering.registration_line(partition.registration)]


def _log(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    broker = options.broker_named(cluster, command.words[0])
    return [rendering.log_line(run.partition(cluster, command.words[1]), broker.id)]


def _describe(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    name = run.topic(command.words[0])
    number = list(run.topics).index(name)
    return rendering.describe_lines(cluster, name, run.topics[name], number)


def _consume(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    return [rendering.consume_line(cluster.state, run.partition(cluster, command.words[0]))]


def _check(_run: Runner, cluster: Simulation, _command: Command) -> list[str]:
    violations = check(cluster.state)
    return [str(v) for v in violations] or ["ok"]


def _register(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    broker = options.broker_named(cluster, command.words[0])
    shutdown = command.words[1]
    if shutdown not in ("clean", "unclean"):
        raise InputError(f"expected 'register BROKER clean|unclean', found '{shutdown}'")
    cluster.apply(ev.ReportShutdown(broker.id, shutdown == "clean"))
    return []


def _alter_isr(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    partition = run.partition(cluster, command.words[0])
    isr = options.brokers_named(cluster, command.words[1])
    return _refusals(cluster.apply(ev.AlterIsr(partition.topic, partition.number, isr)))


_VERBS: dict[str, Callable[[Runner, Simulation, Command], list[str]]] = {
    "topic": _topic,
    "delete": _delete,
    "alter": _alter,
    "produce": _produce,
    "consume": _consume,
    "kill": _shut_down,
    "stop": _shut_down,
    "start": _start,
    "power-off": _power_off,
    "destroy": _broker_event(ev.Destroy),
    "isolate": _broker_event(ev.Isolate),
    "heal": _broker_event(ev.Heal),
    "lag": _broker_event(ev.Lag),
    "catch-up": _broker_event(ev.CatchUp),
    "limp": _broker_event(ev.Limp),
    "recover": _broker_event(ev.Recover),
    "wipe": _wipe,
    "kill-controller": _quorum,
    "stop-quorum": _quorum,
    "start-quorum": _quorum,
    "flush": _broker_event(ev.Flush),
    "elect": _elect,
    "reassign": _reassign,
    "wait": _wait,
    "state": _state,
    "log": _log,
    "describe": _describe,
    "check": _check,
    "fence": _broker_event(ev.Expire),
    "unfence": _broker_event(ev.Unfence),
    "register": _register,
    "alter-isr": _alter_isr,
    "registration": _registration,
}
