"""What changed since an accepted audit: results, partitions, exit codes, the hook in the docs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

import advisor
from advisor.__main__ import main
from advisor.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "pipelines.md").read_text(encoding="utf-8")
CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
LINE = "\tTopic: {name}\tPartition: {number}\tLeader: {leader}\tReplicas: 1,2,3\tIsr: {isr}\n"


def described(name: str, min_isr: int = 2, leaders: tuple[str, ...] = ("1", "1")) -> str:
    """One topic of three replicas; a partition without a leader has an ISR of one."""
    head = f"Topic: {name}\tPartitionCount: {len(leaders)}\tReplicationFactor: 3\t"
    lines = [
        LINE.format(name=name, number=n, leader=leader, isr="1" if leader == "none" else "1,2,3")
        for n, leader in enumerate(leaders)
    ]
    return f"{head}Configs: min.insync.replicas={min_isr}\n{''.join(lines)}"


def log(text: str) -> str:
    """The SARIF file of an audit."""
    return json.dumps(advisor.audit(text, CARD).to_sarif(text))


def since(before: str, now: str) -> Any:
    return advisor.audit(now, CARD).since(log(before))


def test_nothing_new_in_the_same_audit() -> None:
    """Every result of a cluster with findings is as accepted."""
    changes = since(described("t", 1), described("t", 1))
    assert (changes.new, changes.gone) == ((), ())
    assert changes.accepted >= 2
    assert not changes.fails("warning")


def test_what_is_new_and_what_is_gone() -> None:
    """Another topic's finding is new; of the topic that was mended it is gone."""
    changes = since(described("old", 1), described("new", 1))
    assert ("KRA101", "new") in {(f.code, f.topic) for f in changes.new}
    assert "KRA101 old" in changes.gone
    assert changes.to_dict()["gone"] == list(changes.gone)


def test_a_partition_that_was_not_accepted_is_new() -> None:
    """One more without a leader is new, one fewer is not."""
    one, both = ("none", "1"), ("none", "none")
    more = since(described("t", 2, one), described("t", 2, both))
    (offline,) = [f for f in more.new if f.code == "KRA104"]
    assert offline.partitions == (0, 1)
    assert more.fails("critical")
    fewer = since(described("t", 2, both), described("t", 2, one))
    assert "KRA104" not in {f.code for f in fewer.new}


def test_only_critical_news_fails_unless_asked_for() -> None:
    """A setting that costs more is a warning, one whose restart stops writes is critical."""
    sound = described("sound")
    assert since(sound, sound + described("t", 3)).fails("critical")
    changes = since(sound, sound)
    assert not changes.fails("warning")


def test_a_log_says_what_is_new_and_how_severe() -> None:
    """Each result has its state and the severity of its topic; without a baseline no state."""
    # Of two topics: one alone would be taken for a part of the cluster.
    before = described("old", 1) + described("sound")
    now = before + described("new", 3)
    audit = advisor.audit(now, CARD)
    results = audit.to_sarif(now, log(before))["runs"][0]["results"]
    about_topics = [
        (place["logicalLocations"][0]["name"], result)
        for result in results
        for place in result["locations"]
        if "logicalLocations" in place
    ]
    states = {(name, result["baselineState"]) for name, result in about_topics}
    assert ("new", "new") in states
    assert ("old", "unchanged") in states
    assert ("old", "new") not in states
    severities = {topic.topic.name: topic.severity for topic in audit.topics}
    assert all(r["properties"]["severity"] == severities[name] for name, r in about_topics)
    assert not any("baselineState" in r for r in audit.to_sarif(now)["runs"][0]["results"])


@pytest.mark.parametrize("text", ["", "{}", "no JSON", json.dumps({"runs": [{"tool": 1}]})])
def test_another_file_is_refused(text: str) -> None:
    """What is no log of this advisor, or one without what results are known by."""
    audit = advisor.audit(described("t"), CARD)
    with pytest.raises(InputError, match=r"accepted\.txt is not a SARIF file"):
        audit.since(text, "accepted.txt")
    damaged = json.loads(log(described("t", 1)))
    del damaged["runs"][0]["results"][0]["partialFingerprints"]
    with pytest.raises(InputError, match="not a SARIF file"):
        audit.since(json.dumps(damaged))


def test_the_command_reports_only_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Accepted once, the same audit is 0; a new critical topic is 1; a missing file is 2."""
    text, accepted = tmp_path / "describe.txt", tmp_path / "accepted.sarif"
    before = described("old", 3) + described("sound")
    text.write_text(before, encoding="utf-8")
    command = ["audit", str(text), "--model", "single_rack"]
    assert main([*command, "--sarif", str(accepted)]) == 1
    assert main([*command, "--baseline", str(accepted)]) == 0
    assert "0 new, 0 gone" in capsys.readouterr().out
    text.write_text(before + described("other", 3), encoding="utf-8")
    assert main([*command, "--baseline", str(accepted), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert {finding["topic"] for finding in told["new"]} == {"other"}
    assert main([*command, "--baseline", str(tmp_path / "none.sarif")]) == 2


def blocks(language: str) -> list[str]:
    """The blocks of the page in a language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.S)


def test_the_hook_of_the_page_works(tmp_path: Path) -> None:
    """In a fresh repository: it accepts what was accepted, and stops a new critical topic."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(tmp_path)]
    command = tmp_path / "bin" / "advisor"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m advisor "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}

    def run(*words: str) -> int:
        return subprocess.run(
            words, cwd=tmp_path, env=environ, capture_output=True, check=False
        ).returncode

    assert run(*git, "init", "-q") == 0
    (script,) = blocks("sh")
    hook = tmp_path / ".git" / "hooks" / "pre-commit"
    hook.write_text(script)
    (tmp_path / "racks.toml").write_text('[racks]\n1 = "a"\n2 = "b"\n3 = "c"\n')
    text = tmp_path / "describe.txt"
    text.write_text(described("old", 3))
    options = ["--racks", "racks.toml", "--model", "three_az_cloud"]
    audit = [str(command), "audit", "describe.txt", *options]
    assert run(*audit, "--sarif", "accepted.sarif") == 1
    hook.chmod(0o755)
    assert run(*git, "add", ".") == 0
    assert run(*git, "commit", "-qm", "accepted") == 0
    text.write_text(described("old", 3) + described("other", 3))
    assert run(*git, "commit", "-qam", "a new critical topic") == 1
    assert run(*git, "checkout", "-q", "describe.txt") == 0
    (tmp_path / "other.txt").write_text("no description")
    assert run(*git, "add", "other.txt") == 0
    assert run(*git, "commit", "-qm", "something else") == 0


def test_the_blocks_of_the_page_are_yaml_with_options_that_exist() -> None:
    """Hook and action read as YAML, and every option in the page is one of the command."""
    hook, action = map(yaml.safe_load, blocks("yaml"))
    assert hook["repos"][0]["hooks"][0]["entry"].startswith("advisor audit describe.txt")
    steps = action["jobs"]["audit"]["steps"]
    assert any(step.get("run", "").startswith("advisor audit") for step in steps)
    from advisor.cli.commands import audit

    known = {option for parameter in audit.params for option in parameter.opts}
    of_git = {"--cached", "--quiet"}
    of_kafka = {"--all", "--bootstrap-server", "--describe", "--list", "--status"}
    assert set(re.findall(r"(?<![\w-])--[a-z-]+", PAGE)) - of_git - of_kafka <= known
