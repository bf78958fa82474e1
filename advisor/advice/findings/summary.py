"""Findings for a screen: as one what follows from a missing broker, or differs only in its topic.

Of many, the first are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from advisor.advice.findings.catalogue import Finding
from advisor.advice.phrases import first_of, listed

MOST_OF_A_RULE = 10
MISSING = "KRA318"
_CONSEQUENCES = {
    "KRA104": "without a leader",
    "KRA106": "below min ISR, so that writes are refused",
    "KRA110": "with one in-sync replica left",
    "KRA105": "with replicas out of sync",
}
"""Rules that a missing broker makes true, the worst first."""


def folded(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings with those whose brokers are all missing as one, where the first stood."""
    missing = next((finding for finding in findings if finding.code == MISSING), None)
    if missing is None:
        return list(findings)
    down = set(missing.brokers)
    follow = {
        place: finding
        for place, finding in enumerate(findings)
        if finding.code in _CONSEQUENCES and finding.brokers and down.issuperset(finding.brokers)
    }
    detail = f"{missing.detail}{_consequences([*follow.values()])}"
    with_consequences = replace(missing, detail=detail)
    first = min([findings.index(missing), *follow])
    remaining = [
        finding
        for place, finding in enumerate(findings)
        if place not in follow and finding.code != MISSING
    ]
    position = sum(place not in follow for place in range(first))
    return [*remaining[:position], with_consequences, *remaining[position:]]


def _consequences(follow: Sequence[Finding]) -> str:
    """What missing brokers do to partitions: " That leaves 2 partitions without a leader (t)."""
    consequences: list[str] = []
    for code, trouble in _CONSEQUENCES.items():
        of_code = [finding for finding in follow if finding.code == code]
        if of_code:
            number = sum(len(finding.partitions) for finding in of_code)
            noun = "" if consequences else f" partition{'' if number == 1 else 's'}"
            consequences.append(
                f"{number:,}{noun} {trouble} ({first_of([finding.topic for finding in of_code])})"
            )
    return f" That leaves {listed(consequences)}." if consequences else ""


def grouped(findings: Sequence[Finding]) -> list[tuple[Finding, str]]:
    """Merge findings that differ only in their topic: the first of each, with its topics."""
    topics: dict[tuple[str, str, str], list[str]] = {}
    firsts: dict[tuple[str, str, str], Finding] = {}
    for finding in findings:
        firsts.setdefault((finding.code, finding.detail, finding.remedy), finding)
        topics.setdefault((finding.code, finding.detail, finding.remedy), []).append(finding.topic)
    return [(first, first_of(topics[key])) for key, first in firsts.items()]


def shortened(findings: Sequence[Finding]) -> list[tuple[Finding, str, str]]:
    """Return the first ten groups of each rule, with how many more there are beside the last."""
    groups = grouped(folded(findings))
    number = Counter(finding.code for finding, _ in groups)
    shown_of_rule: Counter[str] = Counter()
    first_groups = []
    for finding, topics in groups:
        shown_of_rule[finding.code] += 1
        if shown_of_rule[finding.code] <= MOST_OF_A_RULE:
            hidden = number[finding.code] - MOST_OF_A_RULE
            is_last = shown_of_rule[finding.code] == MOST_OF_A_RULE and hidden > 0
            words = f"And {hidden:,} more with other details, all in advisor audit --json."
            first_groups.append((finding, topics, words if is_last else ""))
    return first_groups
