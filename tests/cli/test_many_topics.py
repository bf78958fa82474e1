"""What the command line prints of many topics: the worst, and how many there are."""

import json
import re
from pathlib import Path

import pytest

from advisor.__main__ import main

CARD = """
[broker.destroyed]
per_year = { value = 1, low = 0.5, high = 2, evidence = "broker-destroyed-cloud" }
hours = { value = 12, low = 6, high = 24, evidence = "broker-destroyed-cloud-hours" }
"""
TOPICS = 70


@pytest.fixture
def arguments(tmp_path: Path) -> list[str]:
    """Seventy topics, of which the last forty have one replica."""
    lines = []
    for t in range(TOPICS):
        ids = "1,2,3" if t < 30 else "1"
        factor = ids.count(",") + 1
        lines.append(
            f"Topic: topic-{t:02d}\tPartitionCount: 3\tReplicationFactor: {factor}\t"
            "Configs: min.insync.replicas=1"
        )
        lines += [
            f"\tTopic: topic-{t:02d}\tPartition: {p}\tLeader: 1\tReplicas: {ids}\tIsr: {ids}"
            for p in range(3)
        ]
    described, card = tmp_path / "described.txt", tmp_path / "card.toml"
    described.write_text("\n".join(lines) + "\n")
    card.write_text(CARD)
    return [str(described), "--model", str(card), "--kafka-version", "4.1"]


def test_the_audit_prints_the_worst_thirty(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Thirty that should change and the number of the others; all of them are in --json."""
    assert main(["audit", *arguments]) == 1
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if "topic-" in line and "min ISR" in line]
    assert len([row for row in rows if row.startswith(("critical", "warning"))]) == 30
    assert "10 more topics to change are not shown; --json lists every topic." in printed
    assert main(["audit", *arguments, "--explain"]) == 1
    explained = capsys.readouterr().out
    goals = re.findall(r"^topic-\d\d +3 +RF", explained, re.MULTILINE)
    assert len(goals) == 30
    assert "40 more topics are not shown; " in explained
    assert main(["audit", *arguments, "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["topics"]) == TOPICS


def test_recommend_prints_the_worst_thirty_and_the_start_of_long_scripts(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics are counted; a script of hundreds of lines is named with the way to get it."""
    monkeypatch.setattr("advisor.cli.text._MOST_LINES", 5)
    monkeypatch.setattr("advisor.cli.text._FIRST_LINES", 3)
    assert main(["recommend", *arguments, "--commands"]) == 0
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if line.startswith(("critical", "warning"))]
    assert len(rows) == 30
    assert "10 more topics to change are not shown; " in printed
    assert "more lines: advisor recommend --files DIR writes commands.sh with all." in printed
    start = printed.index("\nCommands (")
    assert len(printed[start : printed.index("\nRollback:")].strip().splitlines()) == 5
