"""Runbooks: restarting brokers one by one, what Kubernetes may drain at once, and a lost rack.

Sources: Kubernetes' `policy/v1` PodDisruptionBudget; Strimzi's `Kafka` resource (`spec.kafka.rack`,
`spec.kafka.template.podDisruptionBudget`, `spec.maintenanceTimeWindows`: cron expressions in UTC,
longer than the two minutes between reconciliations); Strimzi makes a budget of 1 itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.advice.migration.planned_changes import MIN_ISR
from advisor.advice.migration.tools import Tools
from advisor.advice.tolerance import largest_share, survival
from advisor.cluster import Topic
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import parse_version
from advisor.rendering import (
    FileText,
    ShellLine,
    ShellScript,
    Yaml,
    joined,
    shell,
    shell_comment,
    shell_commented,
    shell_joined,
    shell_lines,
    shell_quoted,
    shell_script,
    yaml_commented,
    yaml_comments,
    yaml_document,
)

ZONE = "topology.kubernetes.io/zone"
_NIGHTS = "* * 2-4 ? * SUN *"


def maintenance_files(
    config: Config, brokers: Mapping[int, str | None], tools: Tools
) -> dict[str, FileText]:
    """Return `rolling-restart.sh` and `kubernetes.yaml` for a cluster with this configuration."""
    return {
        "rolling-restart.sh": rolling_restart(config, brokers, tools),
        "kubernetes.yaml": kubernetes(config, brokers, tools),
    }


def spare_brokers(config: Config) -> int:
    """Return how many brokers may be down while acks=all writes go on, with all in sync before."""
    assert config.replication_factor is not None
    return max(0, config.replication_factor - config.effective_min_insync_replicas)


def max_unavailable(config: Config) -> int:
    """Return how many brokers planned work may take: one fewer than can be spared, at least one."""
    return max(1, spare_brokers(config) - 1)


def rolling_restart(config: Config, brokers: Mapping[int, str | None], tools: Tools) -> ShellScript:
    """Return a script that runs $RESTART for broker after broker, when all replicas are in sync."""
    by_rack = sorted(brokers, key=lambda broker: (brokers[broker] or "", broker))
    lines = [
        shell("#!/bin/sh"),
        shell_comment(f"Maintenance window: one broker at a time. {_effect(config)}"),
        *shell_lines(_YOUR_RESTART),
        *(_controllers(tools) if config.mode == "kraft" else ()),
        shell("set -e"),
        *tools.variables,
        *shell_lines(_IN_SYNC, tools.out_of_sync(), tools.unhealthy("unavailable")),
        *shell_lines(_RESTARTS, shell_joined(shell("{}", broker) for broker in by_rack)),
    ]
    return shell_script(lines)


_YOUR_RESTART = """\
# RESTART is your command for one broker; it is given its id, and returns when it runs.
"""
_IN_SYNC = """\
# Neither out of sync nor out of reach: a tool that fails says nothing about replicas.
# A partition of one replica whose broker is down is unavailable, not out of sync.
in_sync() {{
  lagging=$({}) &&
  offline=$({}) &&
  [ -z "$lagging$offline" ]
}}
"""
_RESTARTS = """\
RESTART=${{RESTART:?say how, for example RESTART='./restart-broker.sh'}}
for broker in {}; do
  # A broker that is taken while another is out of sync stops writes, or worse.
  until in_sync; do sleep 10; done
  $RESTART "$broker"
  sleep 30
done
until in_sync; do sleep 10; done
"""


def _controllers(tools: Tools) -> tuple[ShellLine, ...]:
    return (
        *shell_lines(_DEDICATED_CONTROLLERS),
        shell_commented(tools.controller_status("kraft")),
        shell_commented(tools.controller_replication()),
    )


_DEDICATED_CONTROLLERS = """\
# This looks at partitions only. Restart dedicated controllers separately: one at a time,
# the active one last, each when no voter lags. In combined mode let RESTART wait for it:
"""


def kubernetes(config: Config, brokers: Mapping[int, str | None], tools: Tools) -> Yaml:
    """Return a PodDisruptionBudget, and the same for Strimzi's `Kafka` resource, as YAML."""
    unavailable = max_unavailable(config)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kafka-brokers"},
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": "kafka"}}},
    }
    kafka: dict[str, object] = {
        "template": {"podDisruptionBudget": {"maxUnavailable": unavailable}}
    }
    if len({rack for rack in brokers.values() if rack is not None}) > 1:
        kafka = {"rack": {"topologyKey": ZONE}, **kafka}
    spec = {"kafka": kafka, "maintenanceTimeWindows": [_NIGHTS]}
    one_left = ["The budget is one fewer, to leave one for a failure meanwhile."]
    head = [
        f"How many broker pods drains and node upgrades may take at once. {_effect(config)}",
        *(one_left if unavailable < spare_brokers(config) else ()),
        "The budget counts ready pods, not replicas in sync: a broker is ready long before it",
        "is in sync, so two drains in a row can still stop writes. Before the next node wait",
        f"until {tools.unhealthy('under-replicated').text}",
        f"prints {tools.nothing}, or make a pod ready only once its own replicas are in sync.",
        "Put the labels of your broker pods in place of app: kafka. A drain waits for the",
        "budget, but some providers delete the pod after an hour: watch long drains.",
    ]
    return joined(
        yaml_comments(head),
        yaml_document(budget),
        yaml_comments(_WITH_STRIMZI),
        yaml_commented(yaml_document({"spec": spec})),
    )


_WITH_STRIMZI = (
    "With Strimzi, make no budget; merge this into your Kafka resource instead. In the",
    "windows, here Sundays from 2:00 to 4:59 UTC, it restarts brokers by itself to renew",
    "certificates; changes of the resource are rolled out at once, at any time. For drains",
    "install Strimzi's Drain Cleaner: the operator then restarts the pods, and waits where",
    "a partition would fall below min ISR. In its legacy mode (STRIMZI_DENY_EVICTION=false)",
    "set maxUnavailable: 0.",
)


def _effect(config: Config) -> str:
    """Return in a sentence how one broker less affects writes."""
    spare = spare_brokers(config)
    setting = f"RF {config.replication_factor} and min ISR {config.effective_min_insync_replicas}"
    if config.acks != "all":
        return f"With {setting}, acks={config.acks} writes go on while their leader moves."
    if spare == 0:
        return f"With {setting}, every broker that is down stops acks=all writes to its partitions."
    if spare == 1:
        return f"With {setting}, writes go on with one broker down; a failure meanwhile stops them."
    return f"With {setting}, writes go on with {spare} brokers down."


FILE = "rack-loss.sh"


def rack_loss_files(
    config: Config,
    brokers: Mapping[int, str | None],
    tools: Tools,
    topics: Sequence[Topic],
) -> dict[str, FileText]:
    """Return `rack-loss.sh`, or nothing if losing a rack needs no command or none helps."""
    factor = config.replication_factor or 1
    if parse_version(config.kafka_version) < (0, 9):  # kafka-configs.sh came later
        return {}
    share = largest_share(brokers, factor, str(config.mode))
    if share is None or len(set(brokers.values())) < 2 or share >= factor:
        return {}
    effect = survival(share, config)
    if effect.writable or not effect.without_loss:
        return {}
    factor_and_min_isr = config.replication_factor, config.min_insync_replicas
    names = [
        t.name
        for t in topics
        if (t.replication_factor, t.min_insync_replicas) == factor_and_min_isr
    ]
    if topics and not names:
        return {}
    return {FILE: _rack_loss(config, factor - share, tools, names or ["my-topic"])}


def _rack_loss(config: Config, copies_left: int, tools: Tools, names: Sequence[str]) -> ShellScript:
    min_isr = str(config.effective_min_insync_replicas)
    lower = tools.alter_topic(shell('"$topic"'), {MIN_ISR: str(copies_left)})
    higher = tools.alter_topic(shell('"$topic"'), {MIN_ISR: min_isr})
    copies = "one copy" if copies_left == 1 else f"{copies_left} copies"
    cleared = (
        (
            f"Changing {MIN_ISR} clears the eligible leader replicas (KIP-966): do it only while",
            "the partitions have a leader.",
        )
        if config.eligible_leader_replicas
        else ()
    )
    comments = [
        f"Runbook: a rack is lost. With RF {config.replication_factor} and min ISR {min_isr} no "
        "acknowledged record is lost, but",
        "acks=all writes are refused until the rack is back.",
        f"  {FILE} lower    writes go on, acknowledged with {copies} instead of {min_isr}",
        f"  {FILE} restore  once the rack is back, and every replica is in sync",
        "Be sure that the rack is down, and not only cut off from you. The controllers that are",
        "left must be a majority.",
        *cleared,
    ]
    lines = [
        shell("#!/bin/sh"),
        *map(shell_comment, comments),
        shell("set -e"),
        *tools.variables,
        # Quoted whatever they are: a list of names is one word.
        shell("topics={}", shell_quoted(" ".join(names))),
        *shell_lines(_LOWER_OR_RESTORE, lower, tools.out_of_sync(), higher),
    ]
    return shell_script(lines)


_LOWER_OR_RESTORE = """\
case "${{1:-}}" in
  lower) for topic in $topics; do {}; done ;;
  restore)
    until lagging=$({}) && [ -z "$lagging" ]; do
      sleep 10
    done
    for topic in $topics; do {}; done ;;
  *) echo 'usage: rack-loss.sh lower, or rack-loss.sh restore' >&2; exit 2 ;;
esac
"""
