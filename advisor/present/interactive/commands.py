"""The commands and files that bring one topic and its producers to a setting."""

from __future__ import annotations

from dataclasses import replace

from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.planned_changes import refusal, replicas_needed
from advisor.advice.migration.properties import java_producer
from advisor.cluster.model import Cluster
from advisor.present.interactive.controls import NEW_TOPIC
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload

# A longer file is left to `advisor recommend --files`.
_MOST_CHARACTERS = 6_000
_ELSEWHERE = "# Too long to show here: advisor recommend --files DIR writes it.\n"
_FEWER = (
    "{topic} has {today} replicas today, more than this setting. The advisor writes no commands "
    "that take replicas away."
)


def blocks(
    cluster: Cluster, config: Config, load: Workload, topic: str = NEW_TOPIC
) -> list[tuple[str, str, bool]]:
    """Return titles and texts: the shell lines, the files they read, the producer's properties.

    The third says whether the text is there to be copied; why there are no commands is not.

    config: target settings.
    load: partitions of a topic to create; retained bytes of one to copy.
    topic: a topic of the cluster; `NEW_TOPIC` creates one.
    """
    producer = ("producer.properties", java_producer(config).text, True)
    if topic == NEW_TOPIC:
        plan = make_plan(replace(cluster, topics=()), config, load)
    else:
        today = replicas_needed(cluster.topic(topic))
        if today > (config.replication_factor or 1):
            return [("No commands", _FEWER.format(topic=topic, today=today), False), producer]
        plan = make_plan(cluster, config, load, topics=[topic])
    if plan.lowered:
        return [("No commands", refusal(plan.lowered), False), producer]
    files = [
        (name, text if len(text) <= _MOST_CHARACTERS else _ELSEWHERE, True)
        for name, text in plan.files.items()
        if name.endswith(".json") and not name.startswith("rollback")
    ]
    return [("Commands", "\n".join(plan.lines), True), *files, producer]
