"""An audit as SARIF 2.1.0: what the schema requires, levels, help and places."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import advisor
from advisor.advice.audits.sarif import MISSED_GOAL, SETTINGS, sarif_log
from advisor.advice.findings.catalogue import RULES
from advisor.cli import commands

TEXT = (
    "Topic: whole\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    "\tTopic: whole\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
    "Topic: logs.eu\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: logs.eu\tPartition: 0\tLeader: none\tReplicas: 1,2\tIsr: 1\n"
)
SIX_TOPICS = Path(__file__).resolve().parents[3] / "data" / "clusters" / "three-az-six-brokers.txt"
CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})

MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"minLength": 1}}}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
# What sarif-schema-2.1.0.json requires of the parts that are written here.
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["tool"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "required": ["name"],
                                "properties": {
                                    "rules": {
                                        "uniqueItems": True,
                                        "items": {
                                            "required": ["id", "help", "shortDescription"],
                                            "properties": {
                                                "help": MESSAGE,
                                                "shortDescription": MESSAGE,
                                                "fullDescription": MESSAGE,
                                                "defaultConfiguration": {
                                                    "properties": {"level": LEVEL}
                                                },
                                            },
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "results": {
                        "items": {
                            "required": ["message", "ruleId", "locations"],
                            "properties": {
                                "message": MESSAGE,
                                "level": LEVEL,
                                "ruleIndex": {"type": "integer", "minimum": -1},
                                "locations": {
                                    "minItems": 1,
                                    "items": {
                                        "required": ["physicalLocation"],
                                        "properties": {
                                            "physicalLocation": {
                                                "required": ["artifactLocation", "region"],
                                                "properties": {
                                                    "artifactLocation": {"required": ["uri"]},
                                                    "region": {
                                                        "properties": {"startLine": {"minimum": 1}}
                                                    },
                                                },
                                            }
                                        },
                                    },
                                },
                                "partialFingerprints": {"additionalProperties": {"type": "string"}},
                            },
                        }
                    },
                },
            },
        },
    },
}


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a description of two topics, one of them without a leader."""
    path = tmp_path_factory.mktemp("sarif") / "two topics.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture(scope="module")
def log(described: Path) -> dict[str, Any]:
    """Return the log of its audit."""
    goals = advisor.Goals(loss_probability_per_year=1e-6, write_unavailability=1e-2)
    audited = advisor.audit(described, CARD, goals=goals)
    return json.loads(json.dumps(audited.to_sarif(TEXT)))


def test_a_log_has_what_the_schema_requires(log: dict[str, Any]) -> None:
    """Version, tool, rules with help, results with messages, levels and places."""
    jsonschema.validate(log, SCHEMA)
    del log["runs"][0]["tool"]["driver"]["name"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(log, SCHEMA)


def test_results_point_to_their_rules_and_lines(log: dict[str, Any], described: Path) -> None:
    """Each result has its rule's index and level, the file, and the first line with its topic."""
    run = log["runs"][0]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules) > 2
    for result in run["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert rule["defaultConfiguration"]["level"] == result["level"]
        where = result["locations"][0]["physicalLocation"]
        assert where["artifactLocation"]["uri"] == described.as_uri()
        topics = [each["name"] for each in result["locations"][0].get("logicalLocations", [])]
        assert where["region"]["startLine"] == (3 if topics == ["logs.eu"] else 1)
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels["KRA001"] == levels["KRA002"] == levels["KRA104"] == "error"
    assert levels["KRA101"] == "warning"
    messages = [result["message"]["text"] for result in run["results"]]
    assert sum(message.startswith("logs.eu") for message in messages) > 2
    assert [
        m[:7] for m, r in zip(messages, run["results"], strict=True) if r["ruleIndex"] == 0
    ] == ["logs.eu"]
    prints = [result["partialFingerprints"]["codeAndTopic/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def test_what_meets_the_goals_has_no_result() -> None:
    """Without findings there are no results and no rules, and the log is still one."""
    log = sarif_log((), (), "describe.txt")
    jsonschema.validate(log, SCHEMA)
    assert log["runs"][0]["results"] == log["runs"][0]["tool"]["driver"]["rules"] == []


def test_the_codes_of_goals_and_settings_are_their_own() -> None:
    """No finding of the catalogue has the code of a missed goal, or of settings to change."""
    assert not {MISSED_GOAL.code, *(rule.code for rule in SETTINGS.values())} & RULES.keys()


def test_levels_are_the_severities() -> None:
    """Critical settings are errors, other settings to change warnings, the rest has no result."""
    audited = advisor.audit(SIX_TOPICS, "three_az_cloud")
    results = audited.to_sarif()["runs"][0]["results"]
    levels = {
        result["locations"][0]["logicalLocations"][0]["name"]: result["level"]
        for result in results
        if result["ruleId"] in ("KRA002", "KRA003")
    }
    words = {"critical": "error", "warning": "warning"}
    actions = audited.quick_verdict.actions
    assert levels == {a.topic: words[a.severity] for a in actions if a.severity in words}
    assert {"error", "warning"} == set(levels.values())


def test_the_command_writes_the_log(
    described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`audit --sarif FILE` writes it with a relative place, and overwrites nothing else."""
    monkeypatch.chdir(described.parent)
    target = tmp_path / "found.sarif"
    arguments = ["audit", described.name, "--model", "three_az_cloud", "--sarif", str(target)]
    code = commands.advisor.main(arguments, standalone_mode=False)
    written = json.loads(target.read_text())
    jsonschema.validate(written, SCHEMA)
    places = [r["locations"][0]["physicalLocation"] for r in written["runs"][0]["results"]]
    assert {place["artifactLocation"]["uri"] for place in places} == {"two%20topics.txt"}
    assert {place["region"]["startLine"] for place in places} == {1, 3}
    assert code == 1
    commands.advisor.main(arguments, standalone_mode=False)  # its own file is written again
    target.write_text("")  # as `mktemp` leaves it
    commands.advisor.main(arguments, standalone_mode=False)
    assert json.loads(target.read_text()) == written


OTHER_RUN = {"tool": {"driver": {"name": "another-linter"}}, "results": []}


@pytest.mark.parametrize(
    "content",
    [
        "precious",
        '{"runs": 3}',
        '{"runs": []}',
        '[{"runs": "of a marathon"}]',
        json.dumps({"version": "2.1.0", "runs": [OTHER_RUN]}),
        json.dumps({"version": "2.1.0", "runs": [*sarif_log((), (), "")["runs"], OTHER_RUN]}),
    ],
)
def test_no_other_file_is_overwritten(
    described: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    """Neither a text, nor data with runs of its own, nor the log of another tool."""
    monkeypatch.chdir(described.parent)
    target = tmp_path / "found.sarif"
    target.write_text(content)
    arguments = ["audit", described.name, "--model", "three_az_cloud", "--sarif", str(target)]
    with pytest.raises(advisor.AdvisorError, match=r"is not a SARIF file of this advisor"):
        commands.advisor.main(arguments, standalone_mode=False)
    assert target.read_text() == content
