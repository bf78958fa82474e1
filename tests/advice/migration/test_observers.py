"""Checks of a plan where observers stand outside of the ISR by design."""

import subprocess
from pathlib import Path

import pytest

from advisor.advice import recommend
from advisor.advice.audits.audit import audit
from advisor.advice.audits.current_state import state_lines
from advisor.cluster import load_cluster
from advisor.reliability.failures.failure_model import FailureModel

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1e-3, "hours": 12}}})
ROW = (
    "\tTopic: async\tPartition: 0\tLeader: 1\tReplicas: 1,2,13,4\tIsr: {}\tOffline: \t"
    "Observers: {}\n"
)
DESCRIBED = (
    "Topic: async\tPartitionCount: 1\tReplicationFactor: 4\tConfigs: min.insync.replicas=2\n"
    + ROW.format("1,2", "13,4")
    + "Topic: orders\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=1\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,4\tIsr: 1,2,4\tOffline: \n"
)


def exit_code(lines: list[str], printed: str, status: int, folder: Path) -> int:
    """Run lines of a plan with a kafka-topics.sh that prints under-replicated partitions."""
    (folder / "printed").write_text(printed)
    tool = folder / "kafka-topics.sh"
    tool.write_text(
        f'#!/bin/sh\ncase "$*" in *under-rep*) cat {folder}/printed; exit {status};; esac\n'
    )
    tool.chmod(0o755)
    script = "\n".join([f"PATH={folder}:$PATH", "set -e", *lines])
    return subprocess.run(["sh", "-c", script], capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    ("printed", "status", "passes"),
    [
        ("", 0, True),
        (ROW.format("1,2", "13,4"), 0, True),
        (ROW.format("1,2,13", "13,4"), 0, True),  # an observer was promoted
        (ROW.format("1,2", "13,4").replace("Observers", "LiveObservers"), 0, True),
        (ROW.format("1,2", "13,4").replace("\t", "    "), 0, True),
        (ROW.format("1", "13,4"), 0, False),
        (ROW.format("1,4", "4"), 0, False),
        (ROW.format("1,2,1", "3,4"), 0, False),
        (ROW.format("1,2", "13,4") + ROW.format("1", "13,4"), 0, False),
        (ROW.format("1,2", "").replace(",13,4", ",13"), 0, False),
        ("Error while executing topic command\n", 0, False),
        ("", 1, True),  # as without observers, a pipe hides the tool's own failure
    ],
)
def test_only_replicas_out_of_sync_stop_a_plan(printed, status, passes, tmp_path):
    """A healthy cluster with observers is not waited for; a replica that lacks is."""
    plan = recommend(load_cluster(DESCRIBED), CARD).plan
    assert (exit_code(list(plan.preflight), printed, status, tmp_path) == 0) == passes


@pytest.mark.parametrize(("status", "waits"), [(0, False), (1, True)])
def test_a_tool_that_fails_is_no_sign_of_replicas_in_sync(status, waits, tmp_path):
    """The rolling restart goes on only where the tool answers."""
    script = recommend(load_cluster(DESCRIBED), CARD).files()["rolling-restart.sh"]
    lines = script[: script.index("RESTART=${RESTART")].splitlines()
    printed = ROW.format("1,2", "13,4")
    assert (exit_code([*lines, "in_sync"], printed, status, tmp_path) != 0) == waits


def test_without_observers_nothing_is_filtered():
    """The lines are those of every other plan."""
    text = DESCRIBED.replace("Observers: 13,4", "").replace("1,2,13,4", "1,2")
    plain = load_cluster(text.replace("Factor: 4", "Factor: 2"))
    script = recommend(plain, CARD).files()["commands.sh"]
    assert "out_of_sync" not in script
    assert "--under-replicated-partitions | (! grep .)" in script


def test_the_state_waits_for_nothing_but_missing_observers():
    """What is typed by hand lists them, and nobody waits until they are gone."""
    behind = load_cluster(DESCRIBED.replace("Isr: 1,2,4", "Isr: 1,2"))
    said = " ".join(state_lines(audit(behind, CARD).now))
    assert "prints nothing but missing observers: kafka-topics.sh" in said


def test_a_sole_replica_that_is_gone_has_no_other_to_elect():
    """Nothing is said to be elected, and the plan says that its broker must be back."""
    text = (
        "Topic: t\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\n"
        "\tTopic: t\tPartition: 1\tLeader: none\tReplicas: 100\tIsr: 100\n"
    )
    cluster = load_cluster(text)
    said = " ".join(state_lines(audit(cluster, CARD).now))
    assert "there is no other replica to elect: if its disk is lost, so are the records" in said
    assert "are to be copied to broker 100 too" in " ".join(recommend(cluster, CARD).commands())
    other = cluster.with_racks({101: None, 102: None})
    assert "are to be copied to broker 100" not in " ".join(recommend(other, CARD).commands())
