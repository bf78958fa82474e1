"""An audit as a SARIF 2.1.0 log (OASIS) for code scanning, and what changed since an accepted one.

Source: sarif-v2.1.0-os, sections 3.13 (log), 3.14 (run), 3.27 (result) and 3.49 (rule). A result is
known again by its code and topic, whatever the numbers in its message; one that is about partitions
is new again for a partition that was not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from advisor.advice.audits.topic_audit import TopicAudit
from advisor.advice.findings.catalogue import (
    BROKEN,
    FACTOR,
    MIN_ISR,
    NOTE,
    RISK,
    UNCLEAN,
    Finding,
    Rule,
)
from advisor.decision.verdict import CRITICAL, WARNING
from advisor.errors import InputError
from advisor.formatting import capital
from advisor.parsing import read_json
from advisor.rendering import sarif_message

VERSION = "2.1.0"
DRIVER = "kafka-replication-advisor"
"""Name of this tool in its logs."""
MISSED_GOAL = Rule(
    "KRA001",
    BROKEN,
    "A topic misses its goals",
    "The probability of a loss, the time without writes or another measure is above a limit of the "
    "goals.",
    "Run advisor recommend on the same description: it says which settings meet the goals.",
)
"""Stands for a missed goal; see also `SETTINGS`."""
SETTINGS = {
    CRITICAL: Rule(
        "KRA002",
        BROKEN,
        "A topic's settings are critical",
        "It loses records more than ten times as often as it has to, or the restart of one broker "
        "stops its writes or reads.",
        "Run advisor recommend on the same description: it writes the commands.",
    ),
    WARNING: Rule(
        "KRA003",
        RISK,
        "Other settings cost less",
        "Losses and time without writes together cost least with other settings.",
        "Run advisor recommend on the same description: it writes the commands.",
    ),
}
"""By severity; the other codes are those of the catalogue of findings."""

FINGERPRINT = "codeAndTopic/v1"
"""Name of what a result is known by."""

_LEVELS = {BROKEN: "error", RISK: "warning", NOTE: "note"}

_SETTINGS = {
    MIN_ISR: re.compile(r"min[._-]?in[._-]?sync[._-]?replicas", re.IGNORECASE),
    FACTOR: re.compile(r"^\W*(replication([._-]?factor)?|replicas)\W*[:=]", re.IGNORECASE),
    UNCLEAN: re.compile(r"unclean[._-]?leader[._-]?election", re.IGNORECASE),
}
_NAME = re.compile(r"[\w.-]+")
_RESOURCE = re.compile(r"\s*resource\b")
_ITEM = re.compile(r"( *)- ")
_DOCUMENT = "---"


def results_of(topics: Sequence[TopicAudit], findings: Iterable[Finding]) -> list[Finding]:
    """List the results of an audit: missed goals, settings to change, and findings."""
    missed = [Finding(MISSED_GOAL, t.topic.name, t.sentence) for t in topics if t.choice.unmet]
    settings = [
        Finding(SETTINGS[t.severity], t.topic.name, f"{capital(t.advice)}: {t.action.why}")
        for t in topics
        if t.severity in SETTINGS
    ]
    return list(dict.fromkeys([*missed, *settings, *findings]))


def sarif_log(
    topics: Sequence[TopicAudit],
    findings: Iterable[Finding],
    source: str,
    text: str = "",
    new: Collection[Finding] | None = None,
) -> dict[str, Any]:
    """Return a SARIF log: a result for each missed goal, setting to change, and finding.

    text: content of that file, for the lines of the topics.
    new: results that no accepted audit had; the others are unchanged. Default: no audit was.
    """
    results = results_of(topics, findings)
    severities = {audited.topic.name: audited.severity for audited in topics}
    rules = list(dict.fromkeys(result.rule for result in results))
    lines = Lines.read(text, {result.topic for result in results if result.topic})
    changed_keys = {audited.topic.name: _changed(audited) for audited in topics}
    index = {rule: number for number, rule in enumerate(rules)}
    return {
        "version": VERSION,
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": DRIVER,
                        "rules": [_described(rule) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    {
                        **_result(
                            result, index[result.rule], source, _line(result, lines, changed_keys)
                        ),
                        **_baseline_state(result, new),
                        "properties": _properties(result, severities),
                    }
                    for result in results
                ],
            }
        ],
    }


def is_own_log(text: str) -> bool:
    """Return whether a text is a SARIF log in which every run is of this tool."""
    try:
        runs = read_json(text)["runs"]
        drivers = {run["tool"]["driver"]["name"] for run in runs}
    except (ValueError, LookupError, TypeError):
        return False
    return drivers == {DRIVER}


def _described(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(word.capitalize() for word in re.findall(r"\w+", rule.title)),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": f"{rule.why} {rule.remedy}"},
        "defaultConfiguration": {"level": _LEVELS[rule.weight]},
    }


def _changed(audited: TopicAudit) -> str:
    """The setting of a topic that is to change."""
    action = audited.action
    if action.set_to is None:
        return ""
    grows = action.set_to.replication_factor != action.today.replication_factor
    return FACTOR if grows else MIN_ISR


def _line(result: Finding, lines: Lines, changed_keys: Mapping[str, str]) -> int:
    """The line of the setting that a result is about, else of its topic."""
    setting = result.rule.setting
    if result.rule in SETTINGS.values():
        setting = changed_keys.get(result.topic, "")
    return lines.of(result.topic, setting)


def _result(finding: Finding, rule: int, source: str, line: int) -> dict[str, Any]:
    about = (
        f"{finding.topic}: "
        if finding.topic and not finding.detail.startswith(finding.topic)
        else ""
    )
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(source)},
            "region": {"startLine": line},
        }
    }
    if finding.topic:
        location["logicalLocations"] = [{"name": finding.topic, "kind": "resource"}]
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVELS[finding.rule.weight],
        "message": {
            "text": sarif_message(f"{about}{finding.detail} {finding.own_remedy}".rstrip())
        },
        "locations": [location],
        "partialFingerprints": {FINGERPRINT: fingerprint(finding)},
    }


def fingerprint(result: Finding) -> str:
    """What a result is known by when numbers in its message change."""
    return f"{result.code}/{result.topic}"


def _baseline_state(result: Finding, new: Collection[Finding] | None) -> dict[str, str]:
    if new is None:
        return {}
    return {"baselineState": "new" if result in new else "unchanged"}


def _properties(result: Finding, severities: Mapping[str, str]) -> dict[str, Any]:
    """The severity of the topic's settings, where it is about one, and the partitions."""
    properties: dict[str, Any] = {}
    if result.topic in severities:
        properties["severity"] = severities[result.topic]
    if result.partitions:
        properties["partitions"] = list(result.partitions)
    return properties


def _uri(source: str) -> str:
    """Return the source as a relative or file URI."""
    path = PurePath("stdin" if source == "-" else source or "cluster")
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


@dataclass(frozen=True)
class Lines:
    """Where topics and their settings stand in a text, counted from 1.

    named: first line that names each topic.
    """

    text: tuple[str, ...]
    named: Mapping[str, int]

    @classmethod
    def read(cls, text: str, topics: Collection[str]) -> Lines:
        """Find the topics in a text."""
        lines = tuple(text.splitlines())
        first: dict[str, int] = {}
        names = set(topics)
        for number, line in enumerate(lines, 1):
            for name in names.intersection(_NAME.findall(line)):
                first.setdefault(name, number)
        for name in names - first.keys():
            number = _composed(name, lines)
            if number:
                first[name] = number
        return cls(lines, first)

    def of(self, topic: str, setting: str) -> int:
        """Return the line of a topic's setting; of its name, or 1, where it does not stand."""
        named = self.named.get(topic, 1)
        if setting not in _SETTINGS or topic not in self.named:
            return named
        start, end = self._block(named - 1)
        for number in range(start, end):
            if _SETTINGS[setting].search(self.text[number]):
                return number + 1
        return named

    def _block(self, name_line: int) -> tuple[int, int]:
        """Return the lines, counted from 0, of the block of a topic."""
        line = self.text[name_line]
        depth = _depth(line)
        if line.rstrip().endswith(":"):  # a table of topics: what follows is deeper
            return name_line, self._end(name_line, depth)
        for number in range(name_line, -1, -1):
            above = self.text[number]
            if _RESOURCE.match(above):
                return number, self._next(number, _RESOURCE.match)
            item = _ITEM.match(above)
            if item is not None and (number == name_line or len(item[1]) < depth):
                return number, self._end(number, len(item[1]))
            if above.rstrip() == _DOCUMENT or number == 0:
                return number, self._next(number, lambda following: following.rstrip() == _DOCUMENT)
        return name_line, name_line + 1

    def _end(self, start: int, depth: int) -> int:
        """The first line after a start that is not deeper."""
        return self._next(
            start, lambda following: bool(following.strip()) and _depth(following) <= depth
        )

    def _next(self, start: int, ends: Callable[[str], object]) -> int:
        for number in range(start + 1, len(self.text)):
            if ends(self.text[number]):
                return number
        return len(self.text)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _composed(name: str, lines: tuple[str, ...]) -> int:
    """The line that gives a name its last part, where a tool puts it together from several."""
    labels = name.split(".")
    for length in range(len(labels) - 1, 0, -1):
        for start in range(len(labels) - length, -1, -1):
            key = re.escape(".".join(labels[start : start + length]))
            pattern = re.compile(rf"[\W]*name\W+{key}\W*", re.IGNORECASE)
            matches = [number for number, line in enumerate(lines, 1) if pattern.fullmatch(line)]
            if matches:
                return matches[-1]
    return 0


@dataclass(frozen=True)
class Changes:
    """What changed since an accepted audit.

    new: what was not accepted, heaviest first; missed goals and settings to change included.
    gone: what was accepted and is no more, such as "KRA102 audit".
    """

    new: tuple[Finding, ...]
    gone: tuple[str, ...]
    accepted: int

    def fails(self, severity: str) -> bool:
        """Whether something new is broken, critical or misses a goal; for "warning" also less."""
        warning = severity == WARNING
        return any(
            f.rule.weight == BROKEN or (warning and f.rule is SETTINGS[WARNING]) for f in self.new
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the changes as plain JSON data."""
        return {
            "new": [finding.to_dict() for finding in self.new],
            "gone": list(self.gone),
            "accepted": self.accepted,
        }


def changes_since(accepted: str, results: Sequence[Finding], source: str = "") -> Changes:
    """Compare the results of an audit with those of an accepted one."""
    accepted_marks = _accepted_partitions(accepted, source)
    new = [result for result in results if _is_new(result, accepted_marks)]
    fingerprints = {fingerprint(result) for result in results}
    resolved = tuple(
        " ".join(mark.split("/", 1)).strip() for mark in accepted_marks if mark not in fingerprints
    )
    return Changes(tuple(new), resolved, len(results) - len(new))


def _is_new(result: Finding, accepted: dict[str, set[int]]) -> bool:
    mark = fingerprint(result)
    return mark not in accepted or not accepted[mark].issuperset(result.partitions)


def _accepted_partitions(accepted: str, source: str) -> dict[str, set[int]]:
    """The partitions of each accepted result, by its fingerprint."""
    refused = InputError(
        f"{source or 'the baseline'} is not a SARIF file of this advisor; write one with advisor "
        "audit --sarif, and accept what it says."
    )
    if not is_own_log(accepted):
        raise refused
    partitions: dict[str, set[int]] = {}
    try:
        for run in read_json(accepted)["runs"]:
            for result in run["results"]:
                mark = str(result["partialFingerprints"][FINGERPRINT])
                indexes = result["properties"].get("partitions", ())
                partitions.setdefault(mark, set()).update(map(int, indexes))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise refused from None
    return partitions
