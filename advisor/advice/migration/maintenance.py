"""Planned work: restarting one broker after another, and what Kubernetes may drain at once.

Sources: Kubernetes' `policy/v1` PodDisruptionBudget; Strimzi's `Kafka` resource (`spec.kafka.rack`,
`spec.kafka.template.podDisruptionBudget`, `spec.maintenanceTimeWindows`: cron expressions in UTC,
longer than the two minutes between reconciliations); Strimzi makes a budget of 1 itself.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.advice.migration.properties import yaml_text
from advisor.advice.migration.tools import Tools
from advisor.protocol.rules.config import Config

ZONE = "topology.kubernetes.io/zone"
_NIGHTS = "* * 2-4 ? * SUN *"


def maintenance_files(
    config: Config, brokers: Mapping[int, str | None], tools: Tools
) -> dict[str, str]:
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
    """Return how many brokers planned work may take at once: one fewer than can be spared.

    The one left is for a failure meanwhile. Never below one, or nothing could be drained.
    """
    return max(1, spare_brokers(config) - 1)


def rolling_restart(config: Config, brokers: Mapping[int, str | None], tools: Tools) -> str:
    """Return a script that restarts the brokers rack by rack, each when all replicas are in sync.

    The restart itself is the shell variable RESTART: a command that is given a broker id.
    """
    by_rack = sorted(brokers, key=lambda broker: (brokers[broker] or "", broker))
    lines = [
        "#!/bin/sh",
        f"# Maintenance window: one broker at a time. {_effect(config)}",
        "# RESTART is your command for one broker; it is given its id, and returns when it runs.",
        *(_controllers(tools) if config.mode == "kraft" else ()),
        "set -e",
        *tools.variables,
        "# Neither out of sync nor out of reach: a tool that fails says nothing about replicas.",
        "# A partition of one replica whose broker is down is unavailable, not out of sync.",
        "in_sync() {",
        f"  lagging=$({tools.unhealthy('under-replicated')}) &&",
        f"  offline=$({tools.unhealthy('unavailable')}) &&",
        '  [ -z "$lagging$offline" ]',
        "}",
        "RESTART=${RESTART:?say how, for example RESTART='./restart-broker.sh'}",
        f"for broker in {' '.join(map(str, by_rack))}; do",
        "  # A broker that is taken while another is out of sync stops writes, or worse.",
        "  until in_sync; do sleep 10; done",
        '  $RESTART "$broker"',
        "  sleep 30",
        "done",
        "until in_sync; do sleep 10; done",
    ]
    return "".join(f"{line}\n" for line in lines)


def _controllers(tools: Tools) -> tuple[str, ...]:
    status = tools.controller_status("kraft")
    return (
        "# This looks at partitions only. Restart dedicated controllers separately: one at a time,",
        "# the active one last, each when no voter lags. In combined mode let RESTART wait for it:",
        f"#   {status}",
        f"#   {status.replace('--status', '--replication')}",
    )


def kubernetes(config: Config, brokers: Mapping[int, str | None], tools: Tools) -> str:
    """Return a PodDisruptionBudget, and the same for Strimzi's `Kafka` resource, as YAML."""
    most = max_unavailable(config)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kafka-brokers"},
        "spec": {"maxUnavailable": most, "selector": {"matchLabels": {"app": "kafka"}}},
    }
    kafka: dict[str, object] = {"template": {"podDisruptionBudget": {"maxUnavailable": most}}}
    if len({rack for rack in brokers.values() if rack is not None}) > 1:
        kafka = {"rack": {"topologyKey": ZONE}, **kafka}
    spec = {"kafka": kafka, "maintenanceTimeWindows": [_NIGHTS]}
    strimzi = yaml_text({"spec": spec})
    one_left = ""
    if most < spare_brokers(config):
        one_left = "# The budget is one fewer, to leave one for a failure meanwhile.\n"
    head = (
        f"# How many broker pods drains and node upgrades may take at once. {_effect(config)}\n"
        f"{one_left}"
        "# The budget counts ready pods, not replicas in sync: a broker is ready long before it\n"
        "# is in sync, so two drains in a row can still stop writes. Before the next node wait\n"
        f"# until {tools.unhealthy('under-replicated')}\n"
        "# prints nothing, or make a pod ready only once its own replicas are in sync.\n"
        "# Put the labels of your broker pods in place of app: kafka. A drain waits for the\n"
        "# budget, but some providers delete the pod after an hour: watch long drains.\n"
    )
    comment = (
        "# With Strimzi, make no budget; merge this into your Kafka resource instead. In the\n"
        "# windows, here Sundays from 2:00 to 4:59 UTC, it restarts brokers by itself to renew\n"
        "# certificates; changes of the resource are rolled out at once, at any time. For drains\n"
        "# install Strimzi's Drain Cleaner: the operator then restarts the pods, and waits where\n"
        "# a partition would fall below min ISR. In its legacy mode (STRIMZI_DENY_EVICTION=false)\n"
        "# set maxUnavailable: 0.\n"
    )
    merged = "".join(f"#   {line}\n" for line in strimzi.splitlines())
    return f"{head}{yaml_text(budget)}{comment}{merged}"


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
