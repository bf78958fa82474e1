"""Inputs of the command line, and what it prints of errors."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLUSTERS = ROOT / "data" / "clusters"
SAMPLE = str(CLUSTERS / "testp3-1-created.txt")
CARD = """
[broker.destroyed]
per_year = { value = 1, low = 0.5, high = 2, evidence = "broker-destroyed-cloud" }
hours = { value = 12, low = 6, high = 24, evidence = "broker-destroyed-cloud-hours" }
"""
PLANNED = """
[broker.restart]
per_year = { value = 12, low = 4, high = 52, evidence = "broker-restart" }
minutes = { value = 8, low = 1, high = 20, evidence = "broker-restart-minutes" }
"""
TOPIC = "Topic: t\tPartitionCount: {n}\tReplicationFactor: {rf}\tConfigs: min.insync.replicas={m}\n"
LINE = "\tTopic: t\tPartition: 0\tLeader: {leader}\tReplicas: {replicas}\tIsr: {isr}\n"


def describe(tmp_path: Path, text: str) -> str:
    path = tmp_path / "describe.txt"
    path.write_text(text)
    return str(path)


def good(tmp_path: Path, **changes: object) -> str:
    values = {"n": 1, "rf": 3, "m": 2, "leader": 1, "replicas": "1,2,3", "isr": "1,2,3", **changes}
    return describe(tmp_path, TOPIC.format(**values) + LINE.format(**values))


def one_sentence(capsys: pytest.CaptureFixture[str]) -> str:
    """Return the output after checking that it is one line on stderr."""
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("advisor: ")
    assert said.err.count("\n") == 1
    assert said.err.endswith((".\n", "?\n"))
    assert not said.err.endswith("?.\n")
    assert "Traceback" not in said.err
    assert "mistake in advisor itself" not in said.err
    return said.err
