"""The topics of an audit in a table: the worst in a row each, the others summed up by kind."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from advisor.advice import Audit, Recommendation, TopicAudit
from advisor.advice.audits.audit import WITHOUT_INTERVALS
from advisor.advice.findings.catalogue import BROKEN
from advisor.advice.goals import goal_words
from advisor.advice.phrases import first_of
from advisor.decision.verdict import OK, SEVERITIES
from advisor.present.labels import between
from advisor.present.outcome import BETWEEN, LOST, compared_measures, compared_outcomes
from advisor.reliability import measure_table

MOST_TOPICS, MOST_KINDS = 50, 50
"""Topics with a row each, and rows for all others."""

NO_CHANGE = "no change"
_EXAMPLES = 3


def audited(audit: Audit, recommendation: Recommendation) -> dict[str, Any]:
    """Return the topics in words, worst first.

    Returns "caption", "rows" and "hidden": how many topics have no row of their own; "" for none.
    """
    planned = {
        action.topic: str(action.set_to) if action.set_to is not None else NO_CHANGE
        for action in recommendation.quick_verdict.actions
    }
    worst, rest = audit.topics[:MOST_TOPICS], audit.topics[MOST_TOPICS:]
    kinds: dict[tuple[object, ...], list[TopicAudit]] = {}
    for topic in rest:
        kinds.setdefault(_kind(topic, planned), []).append(topic)
    groups = list(kinds.values())
    if len(groups) > MOST_KINDS:
        others = [topic for kind in groups[MOST_KINDS - 1 :] for topic in kind]
        groups[MOST_KINDS - 1 :] = [others]
    rows = [_row([topic], planned) for topic in worst] + [_row(kind, planned) for kind in groups]
    return {
        "caption": f"{audit.quick_verdict.headline} Order: topics that do not work now, then "
        "those with critical settings, then the rest by what losses and time without writes cost "
        f"(listed by advisor audit --json). {WITHOUT_INTERVALS}",
        "rows": rows,
        "hidden": _hidden(audit, rest),
    }


def _hidden(audit: Audit, rest: Sequence[TopicAudit]) -> str:
    if not rest:
        return ""
    return (
        f"Each of the {MOST_TOPICS} worst has a row of its own. The other {len(rest):,} of "
        f"{len(audit.topics):,} are not shown one by one: the rows below them sum up those with "
        "the same settings, plan, goals and findings, each value from its smallest to its largest. "
        "advisor audit --json lists every topic."
    )


def _kind(topic: TopicAudit, planned: Mapping[str, str]) -> tuple[object, ...]:
    setting = topic.choice.name, planned.get(topic.topic.name, NO_CHANGE)
    return (*setting, topic.severity, topic.choice.unmet, _codes([topic]))


def _row(topics: Sequence[TopicAudit], planned: Mapping[str, str]) -> dict[str, Any]:
    names = list(dict.fromkeys(topic.topic.name for topic in topics))
    return {
        "topic": names[0] if len(names) == 1 else f"{len(names):,} topics",
        "worst": "" if len(names) == 1 else names[0],
        "name": first_of(_distinct(map(setting_today, topics)), _EXAMPLES),
        "planned": first_of(
            _distinct(planned.get(topic.topic.name, NO_CHANGE) for topic in topics), _EXAMPLES
        ),
        "measures": [_range(topics, measure) for measure in compared_measures()],
        "severity": min((topic.severity for topic in topics), key=SEVERITIES.index),
        "trouble": any(not topic.ok or topic.severity != OK for topic in topics),
        "unmet": _missed(topics),
        "codes": _codes(topics),
    }


def setting_today(topic: TopicAudit) -> str:
    """Return the settings of a topic, spelled as in a plan: "RF 3, min ISR 2, acks=1"."""
    config = topic.choice.config
    words = f"RF {config.replication_factor}, min ISR {config.min_insync_replicas}"
    return f"{words}, acks={config.acks}"


def _distinct(items: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _missed(topics: Sequence[TopicAudit]) -> str:
    """Return what is broken and which goals are missed; with the number of topics if not all."""
    if len(topics) == 1:
        broken = topics[0].broken
    else:
        broken_findings = (f for topic in topics for f in topic.findings if f.rule.weight == BROKEN)
        broken = tuple(_distinct(f.rule.title for f in broken_findings))
    goals = _distinct(goal_words(goal) for topic in topics for goal in topic.choice.unmet)
    missed = "; ".join([*broken, *goals])
    missing = sum(bool(topic.broken or topic.choice.unmet) for topic in topics)
    return missed if missing == len(topics) or not missed else f"{missing:,} of them: {missed}"


def _codes(topics: Sequence[TopicAudit]) -> str:
    return " ".join(_distinct(f.code for topic in topics for f in topic.findings))


def _range(topics: Sequence[TopicAudit], measure: str) -> tuple[str, float]:
    """Return a measure in words, and a value to sort by.

    For several topics the words are a range, and the smallest value sorts them.
    """
    entry = measure_table.measure(BETWEEN if measure == LOST else measure)
    by_value = sorted(topics, key=lambda topic: float(entry.of(topic.choice.reliability)))
    # A cluster has hundreds of topics, whose intervals would take hours.
    low, high = (
        compared_outcomes(topic.choice.reliability, intervals=False, measures=(measure,))[0].brief
        for topic in (by_value[0], by_value[-1])
    )
    least = float(entry.of(by_value[0].choice.reliability))
    return between(low, high), min(least, sys.float_info.max)
