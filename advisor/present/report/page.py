"""`write_report`: the report as one HTML file without network, kernel or other files."""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from advisor import catalog
from advisor.advice import Audit, Finding, Recommendation, TopicAudit
from advisor.advice.audits.audit import WITHOUT_INTERVALS
from advisor.advice.audits.current_state import state_lines
from advisor.advice.candidate import Candidate
from advisor.advice.findings.catalogue import BROKEN, by_weight
from advisor.advice.findings.summary import shortened
from advisor.advice.goals import goal_words
from advisor.advice.migration.planned_changes import held_back_words
from advisor.advice.phrases import first_of
from advisor.decision import Verdict
from advisor.decision.rows import further
from advisor.decision.verdict import OK, SEVERITIES
from advisor.files import replace_file
from advisor.formatting import significant, span
from advisor.present import outcome as words_of
from advisor.present.card_text import card_in_words, learned_in_words
from advisor.present.figures import style
from advisor.present.figures.comparison import (
    compared,
    curve,
    has_interval,
    in_words,
    marks,
    plot_curves,
    plot_pareto,
)
from advisor.present.figures.tornado import largest_swings
from advisor.present.interactive.controls import MOST_TOPICS, NEW_TOPIC
from advisor.present.interactive.explorer_model import ExplorerModel, worst_first
from advisor.present.interactive.fragment import html_fragment
from advisor.present.interactive.switches import Elsewhere, switchable
from advisor.present.labels import (
    between,
    interval_label,
    once_in_years,
    per_year,
    time_per_year_label,
)
from advisor.present.outcome import (
    BETWEEN,
    GIVEN_UP,
    LOST,
    compared_measures,
    compared_outcomes,
    outcomes,
    rack_words,
    tolerance_words,
)
from advisor.present.second_process import SecondProcess
from advisor.present.verdict_page import first_screen, script
from advisor.present.verdict_page import style as style_of_verdict
from advisor.protocol.scenario.player import play
from advisor.reliability import measure_table
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.results.dependents import ClientUnavailability
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.rendering import Html, html, html_page, jinja_options, markup

_WIDE = {"width_inches": 8.6}
_NARROW = {"width_inches": 3.9}
_CURVES_CAPTION = (
    "The two curves are a trade-off: a larger min.insync.replicas loses less and "
    "refuses more. Ribbons are 95 % intervals from the ranges of the failure model. Grey dots: "
    "another setting is at least as good in both, with no more replicas."
)
_PARETO_CAPTION = (
    "Each dot is one setting. Up and to the right is better; a larger dot keeps more replicas. "
    "Crossed lines are 95 % intervals."
)
_TOO_LARGE = (
    "Which assumption moves these numbers most was not computed: with so many replicas or "
    "partitions it takes minutes. In Python, the result's tornado() computes it."
)
_WITHOUT_INTERVALS = {
    False: "Settings with other acks than the recommended one, or with more than three replicas, "
    "have none: it would take minutes.",
    True: "Only the recommended and the present setting have one: with so many partitions others "
    "would take minutes.",
}
# Longer scripts and files are shown in part; only the first `_MOST_FILES` files are shown.
_MOST_LINES, _MOST_CHARACTERS, _MOST_FILES = 400, 40_000, 16
_FIRST_LINES, _FIRST_CHARACTERS = 20, 4_000
_ELSEWHERE = "advisor recommend --files DIR writes all of it."


def write_report(
    recommendation: Recommendation,
    path: str | os.PathLike[str],
    audit: Audit | None = None,
    sampled: Sampled | Callable[[], Sampled] | None = None,
    cards: Sequence[str] | None = None,
    how_sure: bool = True,
) -> Path:
    """Write a recommendation as one HTML file, whole or not at all; equal inputs, equal bytes.

    An `audit` of the same cluster adds a table of its topics, a sample of the recommended setting a
    comparison; it may be a function, which a second process calls meanwhile. The page can switch to
    `cards`, the shipped ones unless given. `how_sure` takes draws of the card, for seconds.
    """
    target = Path(path)
    names = catalog.model_names() if cards is None else cards
    replace_file(target, _page(recommendation, how_sure, audit, sampled, names))
    return target


def render_report(
    recommendation: Recommendation,
    audit: Audit | None = None,
    sampled: Sampled | Callable[[], Sampled] | None = None,
    cards: Sequence[str] = (),
) -> str:
    """Return the HTML text of the report; parameters as for `write_report`, no other cards."""
    return _page(recommendation, False, audit, sampled, cards).text


def _page(
    recommendation: Recommendation,
    how_sure: bool,
    audit: Audit | None,
    sampled: Sampled | Callable[[], Sampled] | None,
    cards: Sequence[str],
) -> Html:
    environment = Environment(
        loader=PackageLoader("advisor.present.report", "."),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        **jinja_options(),
    )
    template = environment.get_template("report.html.jinja")
    other_curves = elsewhere(recommendation, cards)
    sampling = SecondProcess([sampled] if callable(sampled) else [])
    try:
        # While a second process computes other cards.
        verdict = recommendation.verdict if how_sure else recommendation.quick_verdict
        context = _context(recommendation, verdict, audit, other_curves)
        samples = [sampled] if isinstance(sampled, Sampled) else sampling.results()
        checks = [sampled_check(recommendation.best.reliability, sample) for sample in samples]
        return html_page(template, {**context, "checks": checks})
    finally:
        other_curves.stop()
        sampling.stop()


def _context(
    recommendation: Recommendation,
    verdict: Verdict,
    audit: Audit | None,
    other_curves: Elsewhere,
) -> dict[str, Any]:
    best = recommendation.best
    figures = _figures(recommendation)
    ordered = sorted(recommendation.choices, key=_as_listed)
    many_partitions = recommendation.load.partitions > MANY_PARTITIONS
    findings = _findings(recommendation, audit)
    learned = learned_in_words(recommendation.model)
    return {
        "contents": _contents(audit is not None, bool(findings), bool(learned["card"])),
        "title": f"Replication advice for {_subject(recommendation)}",
        "assumed": _assumed(recommendation),
        "style": style_of_verdict(),
        "first_screen": first_screen(
            verdict,
            _commands(recommendation),
            title=True,
            state=state_lines(recommendation.now),
        ),
        "copying": script(),
        "further": further(verdict),
        "remedies": (*recommendation.remedies, *recommendation.what_helps),
        "goals": recommendation.goals.sentence,
        "tolerances": tolerance_words(best.reliability),
        "worst_event": rack_words(recommendation.cluster, best.config),
        "figures": figures,
        "without_intervals": _WITHOUT_INTERVALS[many_partitions],
        "candidates": [_candidate(recommendation, choice) for choice in ordered],
        "why": recommendation.why,
        "stories": loss_stories(recommendation),
        "outcomes": [
            {
                "title": outcome.title,
                "said": outcome.said,
                "shares": words_of.in_percent(outcome.shares),
            }
            for outcome in outcomes(best.reliability)
        ],
        "dependents": dependents_in_words(best.reliability),
        "rule": recommendation.rack_rule,
        "rack_table": _rack_table(recommendation),
        "blocks": _blocks(recommendation),
        "files": _files(recommendation),
        "sure": _sure(recommendation),
        "swings": largest_swings(best.reliability),
        "too_large": "" if best.reliability.swings_are_quick else _TOO_LARGE,
        "notes": recommendation.notes,
        "card": card_in_words(recommendation.model),
        "learned": learned,
        "made_by": made_by(recommendation),
        "audit": None if audit is None else audited(audit, recommendation),
        "findings": findings,
        # Last, because a second process computes other cards meanwhile.
        "explorer": html_fragment(grid(other_curves)),
    }


def _contents(has_audit: bool, has_findings: bool, learned: bool) -> list[tuple[str, str]]:
    """Return the sections of the page: id and words."""
    return [
        ("tolerance", "Goals and failures"),
        *([("audit", "Topics")] if has_audit else []),
        *([("findings", "Findings")] if has_findings else []),
        *([("learned", "What was learned")] if learned else []),
        ("do", "Plan"),
        ("choice", "Settings compared"),
        ("why", "Reasons"),
        ("stories", "How a loss would happen"),
        ("sure", "Evidence"),
    ]


def _figures(recommendation: Recommendation) -> list[dict[str, Any]]:
    every_point, line, marked = (
        compared(recommendation),
        curve(recommendation),
        marks(recommendation),
    )
    described = in_words(every_point, marked)
    pareto: dict[str, Any] = {"caption": _PARETO_CAPTION}
    curves: dict[str, Any] = {"caption": _CURVES_CAPTION}
    for size, inches in (("wide", _WIDE), ("narrow", _NARROW)):
        figure = plot_pareto(every_point, marked, **inches)
        words = f"Durability against write availability. {described}"
        pareto[size] = style.svg(figure, f"pareto-{size}", words)
        figure = plot_curves(line, marked, **inches)
        words = f"Durability and write availability by RF and min ISR. {described}"
        curves[size] = style.svg(figure, f"curves-{size}", words)
    return [pareto, curves]


def _subject(recommendation: Recommendation) -> str:
    cluster = recommendation.cluster
    brokers, racks = len(cluster.brokers), len(cluster.racks)
    where = f" in {racks} racks" if racks > 1 else (" in one rack" if racks else "")
    return f"{brokers} broker{'s' if brokers > 1 else ''}{where} ({Path(cluster.source).name})"


def _assumed(recommendation: Recommendation) -> str:
    """The card, which says what breaks and how often, and the version of Kafka."""
    situation = recommendation.situation
    version = f"Kafka {situation.version}{'' if situation.stated_version else ' (assumed)'}"
    card = recommendation.model.name
    learned = learned_in_words(recommendation.model)
    if learned["card"]:
        card += f", which is {learned['card']} with what this cluster has seen"
    return f"What breaks and how often: card {card}. {version}."


def _candidate(recommendation: Recommendation, choice: Candidate) -> dict[str, Any]:
    intervals = has_interval(recommendation, choice)
    # The delivery timeout changes only the number of failed sends.
    measures = compared_outcomes(choice.reliability, intervals, (*compared_measures(), GIVEN_UP))
    c = choice.config
    name = f"RF {c.replication_factor}, min ISR {c.min_insync_replicas}, acks={c.acks}"
    if "delivery_timeout_ms" in choice.config.explicit:
        name += f", delivery.timeout.ms {choice.config.delivery_timeout_ms}"
    return {
        "name": name,
        "best": choice is recommendation.best,
        "measures": [(outcome.brief, outcome.interval) for outcome in measures],
        "cost": _cost(choice),
        "judged": bool(choice.meets),
        "unmet": _unmet(choice),
    }


def _cost(choice: Candidate) -> list[str]:
    cost = choice.reliability.cost
    between_racks = cost.bytes_per_second_between_racks
    return [
        in_bytes(choice.bytes_stored),
        "racks unknown" if between_racks is None else f"{in_bytes(between_racks)}/s",
        f"{significant(cost.acknowledgement_ms)} ms",
    ]


def _unmet(choice: Candidate) -> str:
    return "; ".join(goal_words(goal) for goal in choice.unmet)


def _as_listed(choice: Candidate) -> tuple[int, int, str, int]:
    config = choice.config
    return (
        config.replication_factor or 0,
        config.min_insync_replicas or 0,
        "" if config.acks == "all" else str(config.acks),
        config.delivery_timeout_ms or 0,
    )


def _commands(recommendation: Recommendation) -> Html:
    """The commands of the plan, folded, with a way to the whole of it."""
    steps = _block("commands", "", "\n".join(recommendation.plan.steps))
    if not steps["text"]:
        return markup("")
    return markup(
        '<div class="file"><div class="tools" hidden></div><details><summary>Commands</summary>'
        '<pre tabindex="0" aria-label="{}">{}</pre></details>'
        '<a href="#do">Checks, rollback and files</a></div>',
        html(steps["title"]),
        html(steps["text"]),
    )


def _blocks(recommendation: Recommendation) -> list[dict[str, str]]:
    plan = recommendation.plan
    blocks = [
        ("Before you begin", "Run these checks first.", plan.preflight),
        ("Make the change", held_back_words(plan.held_back), plan.steps),
        ("Check the result", "", plan.verify),
        ("Rollback", "Undoes the change.", plan.rollback),
    ]
    texts = [(title, note, "\n".join(lines)) for title, note, lines in blocks if lines]
    return [_block(*text) for text in texts]


def _files(recommendation: Recommendation) -> list[dict[str, str]]:
    """Return the scripts and files of the plan."""
    plan = recommendation.plan
    files = [*plan.scripts.items(), *plan.files.items()]
    blocks = [_block(name, "", text, name) for name, text in files[:_MOST_FILES]]
    unshown = [name for name, _ in files[_MOST_FILES:]]
    if unshown:
        blocks.append(_block(f"{len(unshown)} more files", _ELSEWHERE, first_of(unshown)))
    return blocks


def _block(title: str, note: str, text: str, name: str = "") -> dict[str, str]:
    """A script or file; of a long one the first lines. Only a whole one has the name of a file."""
    lines = text.splitlines()
    if len(lines) <= _MOST_LINES and len(text) <= _MOST_CHARACTERS:
        return {"title": title, "note": note, "text": text, "name": name}
    first = lines[:1]
    for line in lines[1:_FIRST_LINES]:
        if sum(map(len, first)) + len(line) > _FIRST_CHARACTERS:
            break
        first.append(line)
    number = f"{len(first)} lines" if len(first) > 1 else "line"
    note = f"Only the first {number} of {len(lines):,} are shown: do not use them alone. "
    return {"title": title, "note": note + _ELSEWHERE, "text": "\n".join(first), "name": ""}


def _sure(recommendation: Recommendation) -> str:
    model = recommendation.model
    if not model.uncertain:
        return "The failure model gives no ranges, so that there are no intervals."
    return (
        f"The intervals come from the {len(model.uncertain)} numbers of the failure model that "
        "are known only as a range: each is drawn from its range, independently, and 95 % of the "
        "results lie in the interval. What the model leaves out is not in it."
    )


def _findings(recommendation: Recommendation, audit: Audit | None) -> list[dict[str, str]]:
    findings: Sequence[Finding] = recommendation.findings
    if audit is not None:
        findings = by_weight([*recommendation.risks_taken, *audit.findings])
    return [
        {
            "code": finding.code,
            "topic": topics or _subject_of(finding),
            "what": " ".join(filter(None, [finding.detail, how_many_more])),
            "why": f"{finding.rule.why} {finding.remedy}",
        }
        for finding, topics, how_many_more in shortened(findings)
    ]


def _subject_of(finding: Finding) -> str:
    """Return the subject of a finding without a topic; KRA4xx are about producers."""
    return "the producers" if finding.code.startswith("KRA4") else "the cluster"


def _rack_table(recommendation: Recommendation) -> list[dict[str, Any]]:
    """Return the effect of losing one rack: a row per RF, a cell per min ISR."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in recommendation.tolerance_table():
        effect = row.survival
        cells = rows.setdefault(row.replication_factor, [])
        cells.append(
            {"kept": effect.without_loss, "writes": effect.writable, "share": effect.share}
        )
    return [
        {"factor": factor, "share": cells[0]["share"], "cells": cells}
        for factor, cells in rows.items()
    ]


_PACKAGES = ("numpy", "scipy")
_DIGITS = 16
_MOST_SECONDS_DIGITS = 11


def made_by(recommendation: Recommendation) -> str:
    """Return the day, or that of ``SOURCE_DATE_EPOCH``, the versions, and hashes of the inputs."""
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    return (
        f"Made on {_today()} by kafka-replication-advisor "
        f"{_version('kafka-replication-advisor')} with Python "
        f"{platform.python_version()}, {packages}. All numbers are exact solutions except the 95 % "
        "intervals and what is marked as sampled; their seeds are fixed. SHA-256 of the cluster "
        f"{hashed(recommendation.cluster.to_dict())}, of the failure model "
        f"{hashed(recommendation.model.to_dict())} (of to_dict() as JSON with sorted keys, the "
        f"first {_DIGITS} digits)."
    )


def hashed(data: Mapping[str, Any]) -> str:
    """Return the first digits of the SHA-256 of plain data as JSON with sorted keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _today() -> str:
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    utc = datetime.UTC
    if seconds.isascii() and seconds.isdigit() and len(seconds) <= _MOST_SECONDS_DIGITS:
        return datetime.datetime.fromtimestamp(int(seconds), utc).date().isoformat()
    return datetime.datetime.now(utc).date().isoformat()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "(not installed)"


def dependents_in_words(result: Reliability) -> dict[str, Any]:
    """Return how long clients stop that also need Kafka's internal topics; no rows before 0.8.2."""
    dependents = result.dependents()
    clients = (
        ("A consumer group", dependents.consumer_group),
        ("A transactional producer", dependents.transaction),
    )
    return {
        "rows": [_client(title, stopped) for title, stopped in clients if stopped is not None],
        "assumptions": [f"{text}." for text in dependents.assumptions],
    }


def _client(title: str, stopped: ClientUnavailability) -> dict[str, Any]:
    low, high = map(time_per_year_label, stopped.bounds)
    return {
        "title": title,
        "stopped": time_per_year_label(stopped.unavailability),
        "bounds": low if low == high else span(low, high),
        "parts": [(name, time_per_year_label(share)) for name, share in stopped.parts],
    }


def loss_stories(recommendation: Recommendation) -> list[dict[str, Any]]:
    """The most likely loss and the one of fewest faults of each setting, side by side."""
    likeliest = dict(recommendation.likeliest_losses)
    columns: list[dict[str, Any]] = []
    for config, fewest in recommendation.stories:
        c = config
        name = f"RF {c.replication_factor}, min.insync.replicas {c.min_insync_replicas}"
        for kind, story in (("most likely", likeliest.get(config)), ("fewest faults", fewest)):
            if story is not None:
                title = f"{name}, acks={c.acks}: {kind}"
                drawn = _drawn(story.scenario, title) if kind == "most likely" else None
                columns.append(
                    {"title": title, "said": story.said, "scenario": story.scenario, "drawn": drawn}
                )
    return columns


def _drawn(scenario: str, title: str) -> Html | None:
    """The logs after each step; None where the loss could not be replayed."""
    if not scenario:
        return None
    drawn: Html = play(scenario).story(title=f"{title}, step by step").at_loss.rendered
    return drawn


def sampled_check(exact: Reliability, sampled: Sampled) -> dict[str, Any]:
    """Return the table that compares a sampled run of a setting with the exact result."""
    rows = []
    for measure in compared_measures():
        entry = measure_table.measure(measure)
        value, estimate = float(entry.of(exact)), sampled.estimate(measure)
        say, say_end = _words(measure, estimate)
        if estimate.seen:
            ends = estimate if measure != LOST else sampled.estimate(BETWEEN)
            text = f"{say(estimate.value)} ({interval_label(ends.low, ends.high, say_end)})"
        else:
            text = f"not seen; at most {say(estimate.high)}"
        agrees = estimate.low <= value <= estimate.high
        rows.append(
            {
                "title": entry.title,
                "exact": say(value),
                "sampled": text,
                "agrees": agrees,
                "words": "yes" if agrees else _how_far(value, estimate),
            }
        )
    caption = (
        f"The same setting sampled: {sampled.years:,} years of faults on the whole cluster, seed "
        f"{sampled.seed}, replayed through the same rules. One interval in twenty misses by chance."
    )
    return {"caption": caption, "rows": rows}


def _words(
    measure: str, estimate: Estimate
) -> tuple[Callable[[float], str], Callable[[float], str]]:
    """Return the wording of a value and of its interval ends, with digits enough to differ."""
    if measure == LOST:
        return per_year, once_in_years
    width = estimate.high / estimate.low - 1.0 if estimate.seen else 1.0
    digits = max(2, 1 + math.ceil(-math.log10(width))) if width > 0 else 2
    say = partial(time_per_year_label, digits=digits)
    return say, say


def _how_far(value: float, estimate: Estimate) -> str:
    """Return how far a value is outside the interval of a sample.

    Half an interval is about two standard errors of the logarithm: chance explains up to four.
    """
    if not estimate.seen or value <= 0:
        return "no"
    end = estimate.low if value < estimate.value else estimate.high
    half_widths = abs(math.log(value / estimate.value)) / abs(math.log(end / estimate.value))
    share = abs(estimate.value / value - 1.0)
    direction = "more" if estimate.value > value else "less"
    off = f"the sample has {significant(100 * share)} % {direction}"
    return f"just outside: {off}" if half_widths <= 2.0 else f"no: {off}"


# Controls that the report does not offer for the first topic: its plan has what matters of them.
_AS_TODAY = ("unclean_leader_election_enable", "eligible_leader_replicas")


def elsewhere(recommendation: Recommendation, cards: Sequence[str]) -> Elsewhere:
    """Begin to compute the curves of other topics and cards."""
    situation = recommendation.situation
    topics = worst_first(recommendation.decision)
    users = [name for name in topics if not situation.cluster.topic(name).internal]
    first = (*users, *topics, NEW_TOPIC)[0]
    explorer_model = ExplorerModel(
        recommendation.cluster,
        recommendation.model,
        recommendation.load,
        recommendation.goals,
        recommendation.best.config,
        first,
        situation,
        topics[:MOST_TOPICS],
    )
    if explorer_model.load_of_topic(explorer_model.chosen).partitions > MANY_PARTITIONS:
        return Elsewhere(explorer_model, (), ())
    names = [name for name in switchable(recommendation.cluster, topics) if name in topics]
    return Elsewhere(explorer_model, names, cards)


def grid(other_curves: Elsewhere) -> dict[str, Any]:
    """Return the settings as `explorer.js` draws them, with the lists to choose from.

    With more than `MANY_PARTITIONS` partitions there is only the first curve.
    """
    explorer_model = other_curves.explorer_model
    start = explorer_model.chosen
    for values in explorer_model.looked_at_first():
        explorer_model.setting(values, intervals=True)
    for offered in explorer_model.offered() if other_curves.any else ():
        first = offered[0]
        if all(first[name] == start[name] for name in _AS_TODAY):
            for values in offered:
                explorer_model.setting(values)
    return explorer_model.page(other_curves.computed(), only_choices=True)


MOST_ROWS, MOST_KINDS = 50, 50
"""Topics with a row each, and rows for all others."""

NO_CHANGE = "no change"
_EXAMPLES = 3


def audited(audit: Audit, recommendation: Recommendation) -> dict[str, Any]:
    """Return the topics in words, worst first; "hidden" says how many have no row of their own."""
    planned = {
        action.topic: str(action.set_to) if action.set_to is not None else NO_CHANGE
        for action in recommendation.quick_verdict.actions
    }
    worst, further_topics = audit.topics[:MOST_ROWS], audit.topics[MOST_ROWS:]
    kinds: dict[tuple[object, ...], list[TopicAudit]] = {}
    for topic in further_topics:
        kinds.setdefault(_kind(topic, planned), []).append(topic)
    groups = list(kinds.values())
    if len(groups) > MOST_KINDS:
        last_kinds = [topic for kind in groups[MOST_KINDS - 1 :] for topic in kind]
        groups[MOST_KINDS - 1 :] = [last_kinds]
    rows = [_topic_row(topics, planned) for topics in (*([topic] for topic in worst), *groups)]
    return {
        "caption": f"{audit.quick_verdict.headline} Order: topics that do not work now, then "
        "those with critical settings, then the rest by what losses and time without writes cost "
        f"(listed by advisor audit --json). {WITHOUT_INTERVALS}",
        "rows": rows,
        "hidden": _hidden(audit, further_topics),
    }


def _hidden(audit: Audit, topics: Sequence[TopicAudit]) -> str:
    if not topics:
        return ""
    return (
        f"Each of the {MOST_ROWS} worst has a row of its own. The other {len(topics):,} of "
        f"{len(audit.topics):,} are not shown one by one: the rows below them sum up those with "
        "the same settings, plan, goals and findings, each value from its smallest to its largest. "
        "advisor audit --json lists every topic."
    )


def _kind(topic: TopicAudit, planned: Mapping[str, str]) -> tuple[object, ...]:
    setting = topic.choice.name, planned.get(topic.topic.name, NO_CHANGE)
    return (*setting, topic.severity, topic.choice.unmet, _codes([topic]))


def _topic_row(topics: Sequence[TopicAudit], planned: Mapping[str, str]) -> dict[str, Any]:
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
    number = sum(bool(topic.broken or topic.choice.unmet) for topic in topics)
    return missed if number == len(topics) or not missed else f"{number:,} of them: {missed}"


def _codes(topics: Sequence[TopicAudit]) -> str:
    return " ".join(_distinct(f.code for topic in topics for f in topic.findings))


def _range(topics: Sequence[TopicAudit], measure: str) -> tuple[str, float]:
    """Return a measure in words, of several topics a range, and its least value to sort by."""
    entry = measure_table.measure(BETWEEN if measure == LOST else measure)
    by_value = sorted(topics, key=lambda topic: float(entry.of(topic.choice.reliability)))
    # A cluster has hundreds of topics, whose intervals would take hours.
    low, high = (
        compared_outcomes(topic.choice.reliability, intervals=False, measures=(measure,))[0].brief
        for topic in (by_value[0], by_value[-1])
    )
    least_value = float(entry.of(by_value[0].choice.reliability))
    return between(low, high), min(least_value, sys.float_info.max)
