"""The audit in a report has the producers and the load of the recommendation beside it."""

from pathlib import Path
from typing import Any

import pytest

from advisor.__main__ import main
from advisor.cli import commands

HELD = "Replicas: 1,2\tIsr: 1,2\n"
LINES = "".join(
    f"Topic: {name}\tPartitionCount: {n}\tReplicationFactor: 2\tConfigs: {retention}\n"
    + "".join(f"\tTopic: {name}\tPartition: {p}\tLeader: 1\t{HELD}" for p in range(n))
    for name, n, retention in (
        ("orders", 1, "retention.ms=86400000"),
        ("clicks", 3, ""),
        ("__consumer_offsets", 2, ""),
    )
)


def test_the_audit_of_a_report_takes_its_options(
    tmp_path: Path, card: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Acks as given, and each topic its share of the load, not all of it."""
    made: list[Any] = []
    monkeypatch.setattr(commands, "_write_report", lambda *asked: made.extend(asked))
    file = tmp_path / "describe.txt"
    file.write_text(LINES)
    line = ["report", str(file), "--model", card, "--output", str(tmp_path / "r.html")]
    assert main([*line, "--acks", "1", "--records-per-second", "400", "--rf", "2"]) == 0
    recommendation, _, audited, *_ = made
    found = {t.topic.name: t.choice.reliability for t in audited.topics}
    today = {q.topic: q for q in recommendation.decision.questions}
    assert {name: result.config.acks for name, result in found.items()} == dict.fromkeys(found, 1)
    rates = {name: result.load.records_per_second for name, result in found.items()}
    assert rates == {"orders": 100.0, "clicks": 300.0, "__consumer_offsets": 200.0}
    assert {name: question.load for name, question in today.items()} == {
        name: result.load for name, result in found.items()
    }
    made.clear()
    assert main(line) == 0
    rates = {t.topic.name: t.choice.reliability.load.records_per_second for t in made[2].topics}
    assert set(rates.values()) == {1000.0}
