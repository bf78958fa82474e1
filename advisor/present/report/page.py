"""`write_report`: the report as one HTML file without network, kernel or other files."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from advisor import catalog
from advisor.advice import Audit, Finding, Recommendation
from advisor.advice.audits.current_state import state_lines
from advisor.advice.candidate import Candidate
from advisor.advice.findings.catalogue import by_weight
from advisor.advice.findings.summary import shortened
from advisor.advice.goals import goal_words
from advisor.advice.migration.planned_changes import held_back_words
from advisor.advice.phrases import first_of
from advisor.decision import Verdict
from advisor.decision.rows import further
from advisor.files import replace_file
from advisor.formatting import significant
from advisor.present import outcome as words_of
from advisor.present.card_text import card_in_words, learned_in_words
from advisor.present.figures import style
from advisor.present.figures.comparison import compared, curve, has_interval, in_words, marks
from advisor.present.figures.curves import plot_curves
from advisor.present.figures.pareto import plot_pareto
from advisor.present.figures.tornado import largest_swings
from advisor.present.interactive.fragment import html_fragment
from advisor.present.interactive.switches import Elsewhere
from advisor.present.outcome import GIVEN_UP, compared_measures, compared_outcomes, outcomes
from advisor.present.report.dependents import dependents_in_words
from advisor.present.report.grid import elsewhere, grid
from advisor.present.report.loss_stories import loss_stories
from advisor.present.report.origin import made_by
from advisor.present.report.sampled_check import sampled_check
from advisor.present.report.topics import audited
from advisor.present.second_process import SecondProcess
from advisor.present.setting_text import rack_words, tolerance_words
from advisor.present.verdict_page import first_screen, script
from advisor.present.verdict_page import style as style_of_verdict
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS
from advisor.reliability.results.cost import in_bytes
from advisor.reliability.results.sampled import Sampled
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
    """Write a recommendation as one HTML file; the same inputs give the same bytes.

    recommendation: what `advisor.recommend` returned.
    path: file to write, a regular or a new one; a symbolic link is followed. It is written
        completely or not at all; an existing file is replaced.
    audit: what `advisor.audit` returned for the same cluster, to add a table of its topics.
    sampled: what `advisor.simulate` returned for the recommended setting, to compare it with the
        exact result; or a function that returns it, which a second process calls meanwhile.
    cards: names of other failure models that the page can switch to. Default: the shipped ones.
    how_sure: whether the page says how sure the choice is, from draws of the card; they take
        seconds.
    Raises InputError if the file cannot be written.

    >>> import advisor, pathlib, tempfile
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> cluster = advisor.Cluster.uniform(brokers=1, racks=None)
    >>> advice = advisor.recommend(cluster, model, advisor.Workload(partitions=1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = advisor.present.write_report(advice, pathlib.Path(folder, "report.html"))
    ...     page = file.read_text()
    >>> "Replication advice for 1 broker" in page
    True
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
    others = elsewhere(recommendation, cards)
    sampling = SecondProcess([sampled] if callable(sampled) else [])
    try:
        # While a second process computes other cards.
        verdict = recommendation.verdict if how_sure else recommendation.quick_verdict
        context = _context(recommendation, verdict, audit, others)
        samples = [sampled] if isinstance(sampled, Sampled) else sampling.results()
        checks = [sampled_check(recommendation.best.reliability, sample) for sample in samples]
        return html_page(template, {**context, "checks": checks})
    finally:
        others.stop()
        sampling.stop()


def _context(
    recommendation: Recommendation,
    verdict: Verdict,
    audit: Audit | None,
    others: Elsewhere,
) -> dict[str, Any]:
    best = recommendation.best
    figures = _figures(recommendation)
    ordered = sorted(recommendation.choices, key=_as_listed)
    many = recommendation.load.partitions > MANY_PARTITIONS
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
        "without_intervals": _WITHOUT_INTERVALS[many],
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
        "explorer": html_fragment(grid(others)),
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
    shown = [_block(name, "", text, name) for name, text in files[:_MOST_FILES]]
    others = [name for name, _ in files[_MOST_FILES:]]
    if others:
        shown.append(_block(f"{len(others)} more files", _ELSEWHERE, first_of(others)))
    return shown


def _block(title: str, note: str, text: str, name: str = "") -> dict[str, str]:
    """A script or file; of a long one the first lines, with how many there are.

    `name` is that of a file to download; what is shown in part has none.
    """
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
    listed: Sequence[Finding] = recommendation.findings
    if audit is not None:
        listed = by_weight([*recommendation.risks_taken, *audit.findings])
    return [
        {
            "code": finding.code,
            "topic": topics or _subject_of(finding),
            "what": " ".join(filter(None, [finding.detail, more])),
            "why": f"{finding.rule.why} {finding.remedy}",
        }
        for finding, topics, more in shortened(listed)
    ]


def _subject_of(finding: Finding) -> str:
    """Return the subject of a finding without a topic; KRA4xx are about producers."""
    return "the producers" if finding.code.startswith("KRA4") else "the cluster"


def _rack_table(recommendation: Recommendation) -> list[dict[str, Any]]:
    """Return the effect of losing one rack: a row per RF, a cell per min ISR."""
    rows: dict[int, list[dict[str, Any]]] = {}
    for row in recommendation.tolerance_table():
        after = row.survival
        cells = rows.setdefault(row.replication_factor, [])
        cells.append({"kept": after.without_loss, "writes": after.writable, "share": after.share})
    return [
        {"factor": factor, "share": cells[0]["share"], "cells": cells}
        for factor, cells in rows.items()
    ]
