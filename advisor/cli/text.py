"""What the command line prints of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from advisor.errors import AdvisorError

if TYPE_CHECKING:
    from advisor.advice import Audit, Finding, Recommendation
    from advisor.reliability.results.reliability import Reliability

_ASSUMED = "Assumed: "


def evaluation(result: Reliability, notes: Sequence[str] = ()) -> str:
    """Return what a configuration does, who else stops with Kafka's own topics, and the notes."""
    told, others = result.explain().splitlines(), result.dependents().explain().splitlines()
    lines = [*told, "", *others, _given_up(result)]
    assumed = [line for line in lines if line.startswith(_ASSUMED)]
    assumed += [f"{_ASSUMED}{note}" for note in notes]
    return _joined([[line for line in lines if not line.startswith(_ASSUMED)], assumed])


def _given_up(result: Reliability) -> str:
    """Return how many records producers give up, which is what their patience decides."""
    from advisor.formatting import interval, significant

    low, high = map(significant, result.interval("records_refused_per_year"))
    patience = result.config.delivery_timeout_ms
    waiting = "" if patience is None else f" with delivery.timeout.ms={patience}"
    number = significant(result.records_refused_per_year)
    return f"Producers give up {number} records a year{interval(low, high)}{waiting}."


def recommendation(answer: Recommendation) -> str:
    """Return the verdict, the reasons, the commands and the way back."""
    blocks = [
        [answer.verdict, answer.tolerances],
        [] if answer.rack_rule in answer.verdict else [answer.rack_rule],
        [answer.goals.sentence],
        ["Why:", *(f"  {reason}" for reason in answer.why)],
        findings(answer.findings),
        ["Assumed:", *(f"  {note}" for note in answer.notes)] if answer.notes else [],
        [
            "Commands (advisor recommend --files DIR writes the files they name):",
            *(f"  {line}" for line in answer.commands()),
        ],
        ["Way back:", *(f"  {line}" for line in answer.plan.rollback)],
        [
            "producer.properties:",
            *(f"  {line}" for line in answer.files()["producer.properties"].splitlines()),
        ],
    ]
    return _joined(blocks)


def audit(found: Audit) -> str:
    """Return the verdict, a table of the topics, worst first, and the findings."""
    from advisor.advice.audits.audit import WITHOUT_INTERVALS
    from advisor.advice.phrases import every
    from advisor.formatting import time_per_year

    header = ("topic", "partitions", "RF", "min ISR", "a record is lost", "writes refused", "goals")
    rows = [header]
    for topic in found.topics:
        config, r = topic.choice.config, topic.choice.reliability
        rows.append(
            (
                topic.topic.name,
                str(len(topic.partitions)),
                str(config.replication_factor),
                str(config.min_insync_replicas),
                every(r.mean_years_to_loss),
                time_per_year(r.write_unavailability),
                "met" if topic.ok else f"missed: {topic.missed}",
            )
        )
    notes = ["Assumed:", *(f"  {note}" for note in found.notes)] if found.notes else []
    goals = [WITHOUT_INTERVALS, found.goals.sentence]
    told = findings(found.findings)
    blocks = [[found.verdict], table(rows), goals, [found.spread], told, notes]
    return _joined(blocks)


def findings(found: Sequence[Finding]) -> list[str]:
    """Return each finding, and below the last of a code what to do."""
    from advisor.advice.findings.catalogue import grouped

    lines = ["Findings:"] if found else []
    for rule in dict.fromkeys(finding.rule for finding in found):
        same = [finding for finding in found if finding.rule is rule]
        for first, topics in grouped(same):
            lines.append(f"  {rule.code} {topics + ': ' if topics else ''}{first.detail}")
        lines.append(f"         {rule.remedy}")
    return lines


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return rows of text in aligned columns, two spaces between them."""
    if len({len(row) for row in rows}) != 1:
        raise AdvisorError("a table needs rows of one length")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _joined(blocks: Sequence[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block)
