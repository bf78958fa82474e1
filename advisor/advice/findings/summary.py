"""Findings for a screen: those that differ only in their topic as one, and of many the first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from advisor.advice.findings.catalogue import Finding
from advisor.advice.phrases import first_of

MOST_OF_A_RULE = 10


def grouped(findings: Sequence[Finding]) -> list[tuple[Finding, str]]:
    """Merge findings that differ only in their topic.

    Returns
    -------
    list of (Finding, str)
        First finding of each group, in order, and the topics of the group: five by name, then the
        number of the others; "" for a finding about no topic.
    """
    topics: dict[tuple[str, str, str], list[str]] = {}
    firsts: dict[tuple[str, str, str], Finding] = {}
    for each in findings:
        firsts.setdefault((each.code, each.detail, each.remedy), each)
        topics.setdefault((each.code, each.detail, each.remedy), []).append(each.topic)
    return [(first, first_of(topics[key])) for key, first in firsts.items()]


def shortened(findings: Sequence[Finding]) -> list[tuple[Finding, str, str]]:
    """Merge findings as `grouped` does, and keep the first ten groups of each rule.

    Returns
    -------
    list of (Finding, str, str)
        As `grouped`; and for the last group of a rule how many more there are, else "".
    """
    groups = grouped(findings)
    number = Counter(finding.code for finding, _ in groups)
    seen: Counter[str] = Counter()
    shown = []
    for finding, topics in groups:
        seen[finding.code] += 1
        if seen[finding.code] <= MOST_OF_A_RULE:
            more = number[finding.code] - MOST_OF_A_RULE
            is_last = seen[finding.code] == MOST_OF_A_RULE and more > 0
            words = f"And {more:,} more with other details, all in advisor audit --json."
            shown.append((finding, topics, words if is_last else ""))
    return shown
