"""A rolling restart that waits for all replicas, and Kubernetes' budget for drains."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from advisor.advice.migration.maintenance import (
    kubernetes,
    max_unavailable,
    rolling_restart,
    spare_brokers,
)
from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.tools import Tools
from advisor.cluster import Cluster, load_cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload
from patience import PATIENCE_S

ZONES = {1: "b", 2: "a", 3: "c", 4: "a"}
RF3 = Config(replication_factor=3, min_insync_replicas=2)


@pytest.mark.parametrize(
    ("factor", "min_isr", "spare", "at_once"),
    [
        (3, 2, 1, 1),
        (3, 3, 0, 1),
        (3, 1, 2, 1),
        (5, 3, 2, 1),
        (5, 2, 3, 2),
        (1, 1, 0, 1),
        (2, 3, 0, 1),
    ],
)
def test_one_broker_is_left_for_a_failure(
    factor: int, min_isr: int, spare: int, at_once: int
) -> None:
    """RF minus min ISR may be down; planned work takes one fewer, and at least one."""
    config = Config(replication_factor=factor, min_insync_replicas=min_isr)
    assert spare_brokers(config) == spare
    assert max_unavailable(config) == at_once


def test_the_budget_is_a_resource_of_kubernetes() -> None:
    """The file is one PodDisruptionBudget; Strimzi's part is a comment that is YAML too."""
    text = kubernetes(RF3, ZONES, Tools("4.1")).text
    budget = yaml.safe_load(text)
    assert (budget["apiVersion"], budget["kind"]) == ("policy/v1", "PodDisruptionBudget")
    assert budget["spec"]["maxUnavailable"] == 1
    part = "".join(line[4:] + "\n" for line in text.splitlines() if line.startswith("#   "))
    kafka = yaml.safe_load(part)["spec"]["kafka"]
    assert kafka["template"]["podDisruptionBudget"]["maxUnavailable"] == 1
    assert kafka["rack"]["topologyKey"] == "topology.kubernetes.io/zone"
    (window,) = yaml.safe_load(part)["spec"]["maintenanceTimeWindows"]
    assert re.fullmatch(r"\* \* (\d+)-(\d+) \? \* SUN \*", window)
    assert "topologyKey" not in kubernetes(RF3, {1: None, 2: None}, Tools("4.1")).text
    assert (
        "every broker that is down stops acks=all writes"
        in kubernetes(RF3.changed(min_insync_replicas=3), ZONES, Tools("4.1")).text
    )


def test_the_budget_is_said_to_count_pods_and_not_replicas() -> None:
    """A ready pod may be out of sync; what to look at, and what Strimzi has for that, is said."""
    text = kubernetes(RF3, ZONES, Tools("4.1")).text
    assert "counts ready pods, not replicas in sync" in text
    assert "--under-replicated-partitions\n# prints nothing" in text
    assert "Strimzi's Drain Cleaner" in text
    one_fewer = "The budget is one fewer"
    assert one_fewer not in text
    five = Config(replication_factor=5, min_insync_replicas=3)
    assert one_fewer in kubernetes(five, ZONES, Tools("4.1")).text
    assert (
        one_fewer not in kubernetes(five.changed(min_insync_replicas=5), ZONES, Tools("4.1")).text
    )


@pytest.mark.parametrize("kind", ["under-replicated", "unavailable"])
@pytest.mark.parametrize("trouble", ["echo t-0", "exit 1"])
def test_the_restart_waits_until_replicas_are_in_sync(
    tmp_path: Path, trouble: str, kind: str
) -> None:
    """Run with stand-ins: rack by rack, a broker only once both looks succeed and find nothing."""
    log, tool, script = tmp_path / "log", tmp_path / "kafka-topics.sh", tmp_path / "roll.sh"
    # The second look of this kind finds a partition, or fails.
    look = f'case "$*" in *--{kind}-partitions) echo look >> {log};; *) exit 0;; esac'
    second = f"[ $(grep -c look {log}) = 2 ] && {trouble}"
    tool.write_text(f"#!/bin/sh\n{look}\n{second}\n:\n")
    restart = tmp_path / "restart"
    restart.write_text(f'#!/bin/sh\necho "restart $1" >> {log}\n')
    sleep = tmp_path / "sleep"
    sleep.write_text(f'#!/bin/sh\necho "sleep $1" >> {log}\n')
    for file in (tool, restart, sleep):
        file.chmod(0o755)
    script.write_text(rolling_restart(RF3, {1: "b", 2: "a"}, Tools("4.1")).text)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "RESTART": str(restart)}
    subprocess.run(["sh", str(script)], env=environment, check=True, timeout=PATIENCE_S)
    assert log.read_text().split("\n")[:-1] == [
        *("look", "restart 2", "sleep 30"),
        *("look", "sleep 10", "look", "restart 1", "sleep 30"),
        "look",
    ]
    del environment["RESTART"]
    refused = subprocess.run(
        ["sh", str(script)], env=environment, capture_output=True, timeout=PATIENCE_S
    )
    assert refused.returncode != 0
    assert b"RESTART" in refused.stderr


def test_the_restart_says_how_to_look_at_the_controllers() -> None:
    """Under KRaft the quorum is restarted separately, the active controller last."""
    said = "describe --replication"
    assert said in rolling_restart(RF3, ZONES, Tools("4.1")).text
    old = RF3.changed(kafka_version="3.5", mode="zookeeper")
    assert said not in rolling_restart(old, ZONES, Tools("3.5")).text


@pytest.mark.parametrize(
    ("version", "elr", "said"),
    [
        ("4.0", None, True),
        ("4.1", None, True),
        ("4.1", True, False),
        ("4.1", False, True),
        ("3.9", None, False),
    ],
)
def test_elr_is_offered_where_it_is_off_or_only_assumed(
    version: str, elr: bool | None, said: bool
) -> None:
    """The command that enables it is a comment, for clusters from 4.0 that may lack it."""
    config = Config(kafka_version=version, eligible_leader_replicas=elr, replication_factor=2)
    topic = 'brokers = 2\n[[topic]]\nname = "t"\nreplicas = [[1, 2]]'
    plan = make_plan(load_cluster(topic), config, Workload(partitions=1))
    line = "upgrade --feature eligible.leader.replicas.version=1"
    assert any(line in each and each.startswith("#") for each in plan.lines) == said
    assert {"kubernetes.yaml", "rolling-restart.sh"} <= set(plan.files)
    assert "kubernetes.yaml" in make_plan(Cluster({1: None}), config, Workload()).files
