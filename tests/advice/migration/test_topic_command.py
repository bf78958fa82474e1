"""The command of one topic: it makes that topic's change and no other, files included."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import advisor
from advisor.advice.audits.audit import Audit
from advisor.decision import Action
from patience import PATIENCE_S

SAMPLE = Path(__file__).parents[3] / "data" / "clusters" / "three-az-six-brokers"
PARTITIONS = 24


@pytest.fixture(scope="module")
def audit() -> Audit:
    return advisor.audit(
        advisor.load_cluster(f"{SAMPLE}.txt", racks=f"{SAMPLE}.racks.toml"), "three_az_cloud"
    )


def action_of(audit: Audit, topic: str) -> Action:
    return audit.decision.action(topic)


def command_of(audit: Audit, topic: str) -> str:
    verdict = audit.quick_verdict
    assert verdict.command_of is not None
    return verdict.command_of(action_of(audit, topic))


def run(command: str, folder: Path) -> list[str]:
    """Run a command with tools that only say how they were called; return that."""
    for tool in ("kafka-configs.sh", "kafka-reassign-partitions.sh", "kafka-leader-election.sh"):
        path = folder / tool
        said = f'echo "{tool} $*" >> calls\nseq {PARTITIONS} | sed "s/$/ is complete/"\n'
        path.write_text(f"#!/bin/sh\n{said}")
        path.chmod(0o755)
    environment = {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"}
    subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, check=True, timeout=PATIENCE_S
    )
    return (folder / "calls").read_text().splitlines()


def test_a_setting_is_changed_by_one_call(audit: Audit, tmp_path: Path) -> None:
    """The topic and its new min ISR, and nothing else."""
    (call,) = run(command_of(audit, "payments"), tmp_path)
    assert "--entity-name payments" in call
    assert call.endswith("min.insync.replicas=2")


def test_replicas_are_added_from_a_file_that_the_command_writes(
    audit: Audit, tmp_path: Path
) -> None:
    """Every partition of the topic gets the replicas that the decision counted."""
    run(command_of(audit, "clickstream"), tmp_path)
    moved = json.loads((tmp_path / "reassign.json").read_text())["partitions"]
    expected = audit.decision.moves(action_of(audit, "clickstream"))
    assert {row["partition"]: row["replicas"] for row in moved} == {
        move.partition: list(move.after) for move in expected
    }
    assert {row["topic"] for row in moved} == {"clickstream"}


@pytest.mark.parametrize("topic", ["orders", "audit"])
def test_what_stays_or_is_held_back_has_no_command(audit: Audit, topic: str) -> None:
    """A topic that is kept, and one whose min ISR would be lowered without consent."""
    assert action_of(audit, topic).held_back is (topic == "audit")
    assert command_of(audit, topic) == ""


def test_consent_gives_the_command() -> None:
    """What was held back is there once it is allowed."""
    cluster = advisor.load_cluster(f"{SAMPLE}.txt", racks=f"{SAMPLE}.racks.toml")
    advice = advisor.recommend(cluster, "three_az_cloud", allow_lower_durability=True)
    verdict = advice.quick_verdict
    assert verdict.command_of is not None
    (action,) = [action for action in verdict.actions if action.topic == "audit"]
    assert "min.insync.replicas=2" in verdict.command_of(action)
