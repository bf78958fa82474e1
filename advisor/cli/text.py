"""Results as text for the terminal."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from advisor.cli.verdict_text import MOST_COLUMNS, aligned, verdict_blocks
from advisor.rendering import (
    Terminal,
    json_text,
    terminal_blocks,
    terminal_json,
    terminal_lines,
)

if TYPE_CHECKING:
    from pathlib import Path

    from advisor.advice import Audit, Finding, Recommendation
    from advisor.advice.audits.sarif import Changes
    from advisor.advice.migration.other_clients import ClientDefaults
    from advisor.decision import Verdict
    from advisor.reliability.failures.failure_model import FailureModel
    from advisor.reliability.results.reliability import Reliability
    from advisor.reliability.results.sampled import Sampled

_ASSUMPTION_PREFIX = "Assumed: "
# Those in trouble come first.
_MOST_TOPICS = 30
# Scripts longer than this are shown in part.
_MOST_LINES, _FIRST_LINES = 200, 20
_REST_OF_PLAN = ("Commands: --commands, --files DIR. Why: --explain.",)
_REST_OF_AUDIT = ("Commands: advisor recommend. Why: --explain.",)


def verdict_of(result: Reliability) -> Verdict:
    """The verdict on an evaluated setting at the middle values of its card."""
    from advisor.decision import Depth, verdict_of_reliability

    quick = Depth(draws=False, sensitivity=False, others=False)
    return verdict_of_reliability(result, draws=0, depth=quick)


def evaluation(
    result: Reliability, notes: Sequence[str] = (), columns: int = MOST_COLUMNS
) -> Terminal:
    """Format an evaluation: verdict, explanation, dependents on internal topics, assumptions."""
    verdict = verdict_of(result)
    main, dependents = result.explain().split("\n"), result.dependents().explain().split("\n")
    lines = [*main, "", *dependents, _failed_sends(result)]
    assumed = [line for line in lines if line.startswith(_ASSUMPTION_PREFIX)]
    assumed += [f"{_ASSUMPTION_PREFIX}{note}" for note in notes]
    return terminal_blocks(
        [
            *verdict_blocks(verdict, (), columns),
            [line for line in lines if not line.startswith(_ASSUMPTION_PREFIX)],
            [*_learned(result.model), *assumed],
        ]
    )


def sample(result: Sampled, notes: Sequence[str] = ()) -> Terminal:
    """Format a sampled result and what was assumed for it."""
    assumed = [*(f"{words}." for words in result.assumptions), *notes]
    lines = (f"{_ASSUMPTION_PREFIX}{note}" for note in assumed)
    return terminal_lines([*repr(result).split("\n"), *_learned(result.model), *lines])


def _learned(model: FailureModel) -> list[str]:
    """Say what card a cluster's history has narrowed; nothing of a card without one."""
    from advisor.learning.fit import learned_numbers

    numbers = learned_numbers(model)
    said = "Card {}: {} with what this cluster has seen."
    return [said.format(model.name, numbers[0].card)] if numbers else []


def _failed_sends(result: Reliability) -> str:
    """Format the failed sends a year, with `delivery.timeout.ms`."""
    from advisor.formatting import interval, significant

    low, high = map(significant, result.interval("records_refused_per_year"))
    timeout_ms = result.config.delivery_timeout_ms
    setting = "" if timeout_ms is None else f" with delivery.timeout.ms={timeout_ms}"
    number = significant(result.records_refused_per_year)
    return f"Failed sends: {number} a year{interval(low, high)}{setting}."


def recommendation(
    result: Recommendation,
    verdict: Verdict,
    columns: int = MOST_COLUMNS,
    explained: bool = False,
    with_commands: bool = False,
) -> Terminal:
    """Format a recommendation: its verdict, and on demand reasons and commands."""
    from advisor.advice.audits.current_state import state_lines

    rest = () if explained else (*_remarks(result), *_learned(result.model), *_REST_OF_PLAN)
    blocks = verdict_blocks(verdict, rest, columns, state_lines(result.now, brief=not explained))
    if explained:
        blocks += _reasons(result, verdict)
    if explained or with_commands:
        blocks += _instructions(result)
    return terminal_blocks(blocks)


def _remarks(result: Audit | Recommendation) -> tuple[str, ...]:
    """What the description was taken for, briefly if not all is in sync, and what is not judged."""
    cluster = result.cluster
    if result.now.in_sync or not cluster.taken_for:
        return cluster.remarks
    named = re.split(r" of Kafka \d| \(|, which has ", cluster.taken_for)[0]
    source = re.sub("^Taken for (the output of )?", "", named).removesuffix(".")
    return (f"Source: {source}.", *cluster.remarks[1:])


def _reasons(result: Recommendation, verdict: Verdict) -> list[list[str]]:
    """Format what stands behind a recommendation."""
    from advisor.decision.rows import further

    return [
        [*further(verdict), *result.remedies, result.tolerances, result.rack_rule],
        [result.goals.sentence],
        ["Why:", *(f"  {reason}" for reason in result.why)],
        _likeliest(result),
        findings(result.findings),
        [*_learned(result.model), *_assumed(result.notes)],
    ]


def _assumed(notes: Sequence[str]) -> list[str]:
    return ["Assumed:", *(f"  {note}" for note in notes)] if notes else []


def reported(
    result: Recommendation, verdict: Verdict, path: Path | str, columns: int = MOST_COLUMNS
) -> Terminal:
    """Format what a written report says first, and where it is."""
    from advisor.advice.audits.current_state import state_lines

    state = state_lines(result.now, brief=True)
    rest = (*result.cluster.remarks, *_learned(result.model))
    blocks = verdict_blocks(verdict, rest, columns, state)
    return terminal_blocks([*blocks, [f"Report: {path}"]])


def _likeliest(result: Recommendation) -> list[str]:
    """Format the most likely loss with the recommended setting, a scenario for `advisor play`."""
    for config, story in result.likeliest_losses:
        if config == result.best.config:
            return ["Most likely loss (advisor report shows it as a scenario):", f"  {story.said}"]
    return []


def _more_topics(number: int, critical: int) -> list[str]:
    """Format the number of topics not shown; nothing for 0."""
    if not number:
        return []
    worst = f"{critical:,} of them are critical" if critical else "none of them is critical"
    return [f"{number:,} more topics are not shown; {worst}. --json lists every topic."]


def _instructions(result: Recommendation) -> list[list[str]]:
    """Format commands, rollback and producer settings."""
    return [
        [
            "Commands (advisor recommend --files DIR writes the files they name):",
            *_first_lines(result.commands(), "commands.sh"),
        ],
        ["Rollback:", *_first_lines(result.plan.rollback, "rollback.sh")],
        [
            "producer.properties:",
            *(f"  {line}" for line in result.files()["producer.properties"].splitlines()),
        ],
    ]


def _first_lines(lines: Sequence[str], file: str) -> list[str]:
    """Format a script; of a long one its first lines, and how to get the file with all."""
    if len(lines) <= _MOST_LINES:
        return [f"  {line}" for line in lines]
    more = len(lines) - _FIRST_LINES
    return [
        *(f"  {line}" for line in lines[:_FIRST_LINES]),
        f"  ... and {more:,} more lines: advisor recommend --files DIR writes {file} with all.",
    ]


def audit(
    result: Audit, verdict: Verdict, columns: int = MOST_COLUMNS, explained: bool = False
) -> Terminal:
    """Format an audit: its verdict, and on demand every topic with its goals, and the findings."""
    from advisor.advice.audits.current_state import state_lines

    rest = () if explained else (*_remarks(result), *_learned(result.model), *_REST_OF_AUDIT)
    blocks = verdict_blocks(verdict, rest, columns, state_lines(result.now, brief=not explained))
    return terminal_blocks([*blocks, *_behind_audit(result, verdict)] if explained else blocks)


def changes(since: Changes, baseline: str) -> Terminal:
    """Format what changed since an accepted audit."""
    counts = f"{len(since.new)} new, {len(since.gone)} gone, {since.accepted} as accepted."
    new, gone = findings(since.new), [f"  {result}" for result in since.gone]
    return terminal_blocks(
        [
            [f"Since {baseline}: {counts}"],
            ["New:", *new[1:]] if new else [],
            ["Gone:", *gone] if gone else [],
        ]
    )


def _behind_audit(result: Audit, verdict: Verdict) -> list[list[str]]:
    """Format the topics with their goals (worst first), findings and assumptions."""
    from advisor.advice.audits.audit import WITHOUT_INTERVALS
    from advisor.advice.candidate import goals_words, lost_words
    from advisor.decision.rows import further
    from advisor.formatting import time_per_year

    rows = [("topic", "partitions", "today", "a record is lost", "writes refused", "goals")]
    for topic in result.topics[:_MOST_TOPICS]:
        r = topic.choice.reliability
        rows.append(
            (
                topic.topic.name,
                str(len(topic.partitions)),
                topic.choice.name,
                lost_words(r),
                time_per_year(r.write_unavailability),
                goals_words(topic.choice),
            )
        )
    rest = result.topics[_MOST_TOPICS:]
    critical = sum(topic.severity == "critical" for topic in rest)
    return [
        list(further(verdict)),
        [*aligned(rows), *_more_topics(len(rest), critical)],
        [WITHOUT_INTERVALS, result.goals.sentence],
        [result.spread],
        findings(result.findings),
        [*_learned(result.model), *_assumed(result.notes)],
    ]


def clients(rows: Sequence[ClientDefaults]) -> Terminal:
    """Format the defaults of client libraries, and the settings that each still needs."""
    header = ("client", "acks", "idempotence", "retries", "time to deliver", "to be set")
    lines = [header]
    for row in rows:
        limit = row.delivery_timeout_ms
        lines.append(
            (
                row.name,
                row.acks,
                "on" if row.enable_idempotence else "off",
                "unlimited" if row.retries == "2147483647" else row.retries,
                "no limit" if limit is None else f"{limit // 1000} s",
                ", ".join(row.gaps) or "nothing",
            )
        )
    notes = [f"{row.name}: {row.note}." for row in rows if row.note]
    source = f"From the libraries' sources, read {max(row.retrieved for row in rows)}."
    return terminal_blocks([aligned(lines), notes, [source]])


def findings(items: Sequence[Finding]) -> list[str]:
    """Format findings grouped by rule, each group followed by its remedy."""
    from advisor.advice.findings.summary import folded, shortened

    lines = ["Findings:"] if items else []
    shown = folded(items)
    for rule, remedy in dict.fromkeys((finding.rule, finding.remedy) for finding in shown):
        same = [finding for finding in shown if (finding.rule, finding.remedy) == (rule, remedy)]
        for first, topics, more in shortened(same):
            lines.append(f"  {rule.code} {topics + ': ' if topics else ''}{first.detail}")
            lines += [f"         {more}"] if more else []
        lines.append(f"         {remedy}")
    return lines


def json(data: object) -> Terminal:
    """Format data as JSON, with null for infinities and NaN, which JSON cannot represent."""
    return terminal_json(json_text(_without_infinities(data), indent=2))


def _without_infinities(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _without_infinities(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_without_infinities(value) for value in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None
    return data
