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
    """Seventy topics, of which the last twenty have one replica and miss a goal."""
    lines = []
    for t in range(TOPICS):
        ids = "1,2,3" if t < 50 else "1"
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
    """The twenty that are critical come first; the others are counted, and in --json."""
    assert main(["audit", *arguments]) == 1
    printed = capsys.readouterr().out
    rows = [line for line in printed.splitlines() if re.match(r"topic-\d+  ", line)]
    assert len(rows) == 30
    assert [" critical " in row for row in rows] == [True] * 20 + [False] * 10
    assert "40 more topics are not shown; none of them is critical. --json lists" in printed
    assert main(["audit", *arguments, "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["topics"]) == TOPICS


def test_recommend_prints_the_worst_thirty_and_the_start_of_long_scripts(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Topics are counted; a script of hundreds of lines is named with the way to get it."""
    monkeypatch.setattr("advisor.cli.text._MOST_LINES", 10)
    assert main(["recommend", *arguments]) == 0
    printed = capsys.readouterr().out
    assert len(re.findall(r"^topic-\d+  ", printed, re.MULTILINE)) == 30
    assert "40 more topics are not shown; " in printed
    assert "more lines: advisor recommend --files DIR writes commands.sh with all." in printed
    assert printed.count("kafka-configs.sh") < 50
