"""The runbook of a lost rack: only where it helps, and it runs."""

import subprocess
from pathlib import Path

import pytest

from advisor.advice.migration.plan import make_plan
from advisor.cluster import Cluster, load_cluster
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload
from patience import PATIENCE_S

TWO = {1: "a", 2: "a", 3: "b", 4: "b"}
SAFE = Config(replication_factor=4, min_insync_replicas=3)


def plan_files(racks: dict[int, str], config: Config, *names: str) -> dict[str, str]:
    lines = [
        f"Topic: {name}\tPartitionCount: 1\tReplicationFactor: 4\tConfigs: \n"
        f"\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1,2,3,4\tIsr: 1,2,3,4\n"
        for name in names
    ]
    cluster = load_cluster("".join(lines)).with_racks(racks) if names else Cluster(racks)
    return dict(make_plan(cluster, config, Workload()).files)


@pytest.mark.parametrize(
    ("racks", "factor", "least", "there"),
    [
        (TWO, 4, 3, True),
        (TWO, 4, 2, False),  # loses records
        ({1: "a", 2: "b", 3: "c"}, 3, 2, False),  # writes go on
        ({1: "a", 2: "b"}, 2, 2, True),
        ({1: "a", 2: "a"}, 2, 2, False),  # nothing is left
    ],
)
def test_it_is_written_where_writes_stop_and_records_stay(
    racks: dict[int, str], factor: int, least: int, there: bool
) -> None:
    """Where writes go on it is not needed, where records are lost it does not help."""
    config = SAFE.changed(replication_factor=factor, min_insync_replicas=least)
    assert ("rack-loss.sh" in plan_files(racks, config)) == there


def test_it_lowers_and_restores_every_topic(tmp_path: Path) -> None:
    """Run with stand-ins for Kafka's tools: writes go on with what is left, then as before."""
    script, log = tmp_path / "rack-loss.sh", tmp_path / "log"
    script.write_text(plan_files(TWO, SAFE, "orders", "a.b_c-1")["rack-loss.sh"])
    for name, act in (("kafka-configs.sh", f'echo "$@" >> {log}'), ("kafka-topics.sh", ":")):
        tool = tmp_path / name
        tool.write_text(f"#!/bin/sh\n{act}\n")
        tool.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    for word, value in (("lower", 2), ("restore", 3)):
        log.write_text("")
        subprocess.run(["sh", str(script), word], env=environment, check=True, timeout=PATIENCE_S)
        lines = log.read_text().splitlines()
        assert [
            f"--entity-name {name} " in line
            for name, line in zip(("a.b_c-1", "orders"), sorted(lines), strict=True)
        ] == [True, True]
        assert all(line.endswith(f"--add-config min.insync.replicas={value}") for line in lines)
    wrong = subprocess.run(
        ["sh", str(script)], env=environment, capture_output=True, timeout=PATIENCE_S
    )
    assert wrong.returncode == 2
