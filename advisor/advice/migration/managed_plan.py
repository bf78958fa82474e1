"""Plans for managed services on which Kafka's own tools change nothing: the service's commands.

What each service lets a user set is in `advisor.cluster.managed_services`, with its sources. Where
nothing can be set, or what a topic lacks cannot, the plan has comments only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from advisor.advice.migration.planned_changes import MIN_ISR, PlannedChanges, replicas_needed
from advisor.cluster import Topic
from advisor.cluster.managed_services import AIVEN, CONFLUENT_CLOUD, MSK_SERVERLESS
from advisor.formatting import counted
from advisor.rendering import ShellLine, ShellWord, shell, shell_comment, shell_word

Setting = tuple[int, int]
"""Replicas and min ISR."""


@dataclass(frozen=True)
class ServiceCommands:
    """How a service changes and creates topics.

    change: gives a topic its replicas and min ISR, as far as they can be set; None if neither can.
    create: creates a topic with so many partitions; None if no command does.
    """

    change: Callable[[str, Setting], ShellLine] | None = None
    create: Callable[[str, int, Setting], ShellLine] | None = None
    variables: tuple[ShellLine, ...] = ()
    changes_replicas: bool = False


def _min_isr_of_confluent(setting: Setting) -> ShellWord:
    return shell_word(f"{MIN_ISR}={min(setting[1], 2)}")


COMMANDS: Mapping[str, ServiceCommands] = {
    MSK_SERVERLESS: ServiceCommands(),
    CONFLUENT_CLOUD: ServiceCommands(
        change=lambda topic, setting: shell(
            "confluent kafka topic update {} --config {}",
            *(shell_word(topic), _min_isr_of_confluent(setting)),
        ),
        create=lambda topic, partitions, setting: shell(
            "confluent kafka topic create {} --partitions {} --config {}",
            *(shell_word(topic), partitions, _min_isr_of_confluent(setting)),
        ),
        variables=(
            shell_comment("First: confluent login, and confluent kafka cluster use lkc-..."),
        ),
    ),
    AIVEN: ServiceCommands(
        change=lambda topic, setting: shell(
            'avn service topic-update "$SERVICE" {} --replication {} --min-insync-replicas {}',
            *(shell_word(topic), *setting),
        ),
        create=lambda topic, partitions, setting: shell(
            'avn service topic-create "$SERVICE" {} --partitions {} --replication {} '
            "--min-insync-replicas {}",
            *(shell_word(topic), partitions, *setting),
        ),
        variables=(shell("SERVICE=${SERVICE:?say the name of your Aiven service}"),),
        changes_replicas=True,
    ),
}
"""By name of the service: those that do not take Kafka's tools."""


def steps_there(commands: ServiceCommands, planned: PlannedChanges) -> Iterator[ShellLine]:
    """Yield the commands that change the planned topics, as far as the service can."""
    for topic in _changing(planned):
        factor = planned.targets[topic.name].replication_factor or 1
        if not commands.changes_replicas and factor != replicas_needed(topic):
            yield shell_comment(
                f"{topic.name} keeps its {counted(replicas_needed(topic), 'replica')}: the service "
                "decides on them."
            )
        if commands.change is not None and _can_change(commands, planned, topic):
            least = planned.targets[topic.name].min_insync_replicas or 1
            yield commands.change(topic.name, (factor, least))


def rollback_there(commands: ServiceCommands, planned: PlannedChanges) -> Iterator[ShellLine]:
    """Yield the commands that give the planned topics back what they had."""
    yield shell_comment("Rollback of the settings, with all replicas in sync:")
    for topic in _changing(planned):
        if commands.change is not None and _can_change(commands, planned, topic):
            least = topic.min_insync_replicas or 1
            yield commands.change(topic.name, (replicas_needed(topic), least))


def _can_change(commands: ServiceCommands, planned: PlannedChanges, topic: Topic) -> bool:
    least = planned.targets[topic.name].min_insync_replicas or 1
    return commands.changes_replicas or least != (topic.min_insync_replicas or 1)


def _changing(planned: PlannedChanges) -> list[Topic]:
    names = {change.topic.name for change in planned.changes}
    names |= {move.topic for move in planned.moves}
    return [topic for topic in planned.topics if topic.name in names]
