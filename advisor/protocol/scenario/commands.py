"""What each verb of a scenario does to a running cluster, and what it prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from advisor.errors import AdvisorError, InputError
from advisor.protocol.rules.partition_registration import Replicas
from advisor.protocol.scenario import options, rendering
from advisor.protocol.scenario.language import Command, Scenario, bad, suggestion
from advisor.protocol.simulation import events as ev
from advisor.protocol.simulation.cluster import Simulation
from advisor.protocol.simulation.invariants import check
from advisor.protocol.simulation.state import Broker, Partition, broker_of

_CONTROLLER_ONLY = {"fence", "unfence", "register", "alter-isr"}
_NEEDS_BROKERS = {
    "produce", "consume", "kill", "start", "power-off", "destroy", "isolate", "heal", "lag",
    "catch-up", "kill-controller", "flush", "log",
}  # fmt: skip
_LOOKS = {"state", "log", "describe", "check", "registration", "consume"}


class Runner:
    """Runs the commands of one scenario in order.

    Parameters
    ----------
    cluster_for : callable
        From the cluster that the first command describes to the one that the others act on;
        by default the same.

    Attributes
    ----------
    cluster : Simulation
        Set by the scenario's first command.
    """

    def __init__(self, cluster_for: Callable[[Simulation], Simulation] | None = None) -> None:
        self.cluster: Simulation | None = None
        self._cluster_for = cluster_for
        self.topics: dict[str, dict[str, str]] = {}

    def run(self, scenario: Scenario) -> list[list[str]]:
        """What every command prints."""
        return [self.one(command) for command in scenario.commands]

    def one(self, command: Command) -> list[str]:
        """Run one command, and until quiet if it waits.

        Raises
        ------
        InputError
            With the line of the command.
        """
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
            asked = options.cluster_of(command)
            self.cluster = asked if self._cluster_for is None else self._cluster_for(asked)
            return []
        cluster = self.cluster
        assert cluster is not None
        self._check_kind(cluster, command.verb)
        looks_only = command.verb in _LOOKS
        if command.waits and looks_only:
            cluster.settle(0)
        printed = self.act(cluster, command)
        if command.waits and not looks_only:
            cluster.settle()
        return printed

    def act(self, cluster: Simulation, command: Command) -> list[str]:
        """Do what a command says, without waiting; what it prints."""
        return _VERBS[command.verb](self, cluster, command)

    @staticmethod
    def _check_kind(cluster: Simulation, verb: str) -> None:
        alone = cluster.settings.only_controller
        if alone and verb in _NEEDS_BROKERS:
            raise InputError(f"'{verb}' needs brokers, and this cluster has only=controller")
        if not alone and verb in _CONTROLLER_ONLY:
            raise InputError(f"'{verb}' needs a cluster with only=controller")

    def broker(self, cluster: Simulation, text: str) -> Broker:
        """The broker that a word names."""
        known = [str(b.id) for b in cluster.state.brokers]
        if text not in known:
            raise InputError(f"unknown broker '{text}'; brokers are {', '.join(known)}")
        return broker_of(cluster.state, int(text))

    def brokers(self, cluster: Simulation, text: str) -> Replicas:
        """The brokers that a list such as ``1,2,3`` names."""
        found = tuple(self.broker(cluster, part).id for part in text.split(","))
        if len(set(found)) < len(found):
            raise InputError(f"a broker is named twice in '{text}'")
        return found

    def topic(self, text: str) -> str:
        """The topic that a word names."""
        if text not in self.topics:
            raise InputError(f"unknown topic '{text}'{suggestion(text, list(self.topics))}")
        return text

    def partition(self, cluster: Simulation, text: str) -> Partition:
        """The partition that a word such as ``t1-0`` names."""
        match = re.fullmatch(r"(.+)-(\d+)", text)
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


def _topic(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    name = command.words[0]
    asked, configs = options.topic_of(command, cluster, run)
    printed = _refusals(cluster.apply(asked))
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
    printed: list[str] = []
    for event in options.alterations_of(name, command, cluster, run.topics[name]):
        printed += _refusals(cluster.apply(event))
    return printed


def _produce(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    partition = run.partition(cluster, command.words[0])
    count = options.whole_number(command.words[1], "a number of records", 1)
    config, via = options.producer_of(command, cluster, run)
    error = cluster.produce(partition.topic, partition.number, count, config, via)
    return [f"acked {count}"] if error is None else [f"acked 0 {error}"]


def _end(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    """Kill and stop: of a broker that runs."""
    body = run.broker(cluster, command.words[0])
    if not body.running:
        raise InputError(f"broker {body.id} is not running")
    kind = ev.Kill if command.verb == "kill" else ev.Stop
    cluster.apply(kind(body.id))
    return []


def _start(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    body = run.broker(cluster, command.words[0])
    if body.running:
        raise InputError(f"broker {body.id} is already running")
    cluster.apply(ev.Start(body.id))
    return []


def _power_off(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    body = run.broker(cluster, command.words[0])
    keep = command.options.get("keep")
    records = None if keep is None else options.whole_number(keep, "keep= a number of records", 0)
    cluster.apply(ev.PowerOff(body.id, records))
    return []


def _fault(kind: Callable[[int], Any]) -> Callable[[Runner, Simulation, Command], list[str]]:
    """A verb that is one event about one broker."""

    def apply(run: Runner, cluster: Simulation, command: Command) -> list[str]:
        cluster.apply(kind(run.broker(cluster, command.words[0]).id))
        return []

    return apply


def _kill_controller(_run: Runner, cluster: Simulation, _command: Command) -> list[str]:
    cluster.apply(ev.KillController())
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
    replicas = None if target == "cancel" else run.brokers(cluster, target)
    given = command.options.get("throttle", "0")
    throttle = options.whole_number(given, "throttle= records a second", 0)
    asked = ev.Reassign(partition.topic, partition.number, replicas, throttle)
    return _refusals(cluster.apply(asked))


def _wait(_run: Runner, cluster: Simulation, command: Command) -> list[str]:
    cluster.pass_time(options.duration_ms(command.words[0]))
    return []


def _state(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    return [rendering.state_line(cluster.state, run.partition(cluster, command.words[0]))]


def _registration(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    partition = run.partition(cluster, command.words[0])
    return [rendering.registration_line(partition.registration)]


def _log(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    body = run.broker(cluster, command.words[0])
    return [rendering.log_line(run.partition(cluster, command.words[1]), body.id)]


def _describe(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    name = run.topic(command.words[0])
    number = list(run.topics).index(name)
    return rendering.describe_lines(cluster, name, run.topics[name], number)


def _consume(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    return [rendering.consume_line(cluster.state, run.partition(cluster, command.words[0]))]


def _check(_run: Runner, cluster: Simulation, _command: Command) -> list[str]:
    violations = check(cluster.state)
    return [str(v) for v in violations] or ["ok"]


def _fence(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    body = run.broker(cluster, command.words[0])
    cluster.apply(ev.Expire(body.id))
    return []


def _register(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    body = run.broker(cluster, command.words[0])
    how = command.words[1]
    if how not in ("clean", "unclean"):
        raise InputError(f"expected 'register BROKER clean|unclean', found '{how}'")
    cluster.apply(ev.ReportLastLife(body.id, how == "clean"))
    return []


def _alter_isr(run: Runner, cluster: Simulation, command: Command) -> list[str]:
    partition = run.partition(cluster, command.words[0])
    isr = run.brokers(cluster, command.words[1])
    return _refusals(cluster.apply(ev.AlterIsr(partition.topic, partition.number, isr)))


_VERBS: dict[str, Callable[[Runner, Simulation, Command], list[str]]] = {
    "topic": _topic,
    "delete": _delete,
    "alter": _alter,
    "produce": _produce,
    "consume": _consume,
    "kill": _end,
    "stop": _end,
    "start": _start,
    "power-off": _power_off,
    "destroy": _fault(ev.Destroy),
    "isolate": _fault(ev.Isolate),
    "heal": _fault(ev.Heal),
    "lag": _fault(ev.Lag),
    "catch-up": _fault(ev.CatchUp),
    "kill-controller": _kill_controller,
    "flush": _fault(ev.Flush),
    "elect": _elect,
    "reassign": _reassign,
    "wait": _wait,
    "state": _state,
    "log": _log,
    "describe": _describe,
    "check": _check,
    "fence": _fence,
    "unfence": _fault(ev.Unfence),
    "register": _register,
    "alter-isr": _alter_isr,
    "registration": _registration,
}
