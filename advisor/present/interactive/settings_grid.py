"""Settings as plain JSON for the explorer: numbers, words, refusals and commands.

`explorer.js` draws from this, in a notebook, an exported page and the report.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor.advice.goals import Goals, limit_words
from advisor.decision import Verdict
from advisor.decision.comparison import OUT_OF_REACH
from advisor.decision.evaluator import LOSS_PROBABILITY, WRITES
from advisor.decision.rows import around
from advisor.decision.verdict import plain
from advisor.formatting import one_in
from advisor.present.interactive import seen
from advisor.present.interactive.controls import CONTEXT, MOST_REPLICAS, PRICE, STILL
from advisor.present.labels import per_year, time_per_year_label
from advisor.present.outcome import notes, outcomes, point_of, rack_words, tolerance_words
from advisor.present.points import Estimated, Point
from advisor.reliability.results.reliability import Reliability

_MISSING = "This page has no answer for this combination. Run the notebook to compute it."
_MARKED = {"chosen": "shown", "today": "today", "best": "better"}
_CONFIDENCE = {"sure": "sure", "likely": "likely", "depends": "it depends"}
_DIGITS = 5
_DECADES = 25
_PERCENTS = 3  # decades of percents: below 0.1 % they have too many zeros
_BRIEFLY = {" million": "M", " billion": "B", " trillion": "T"}
_LEGEND = (("goal", "your goal"), ("interval", "95 % interval"))
_WORDS = (
    *("name", "said", "lines", "notes", "commands", "refusal"),
    *("headline", "floor", "sure", "goals"),
)
"""Fields whose texts are stored once."""
_CLAUSE = re.compile(r"(?<=;) ")
"""Where a verdict's text is cut: what a setting does today, and after the change."""


def setting_json(
    result: Reliability,
    intervals: bool = False,
    commands: Sequence[tuple[str, str, bool]] = (),
    verdicts: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return one setting as JSON data."""
    config, point = result.config, point_of(result, intervals=intervals)
    tolerated = "; ".join(f"{number} {words}" for words, number in tolerance_words(result))
    lines = [f"{outcome.title}: {outcome.said}" for outcome in outcomes(result, intervals)]
    lines += [f"Brokers you can lose: {tolerated}.", rack_words(result.cluster, config)]
    return {
        **mark_json(point),
        "at": [config.replication_factor, config.effective_min_insync_replicas],
        "complete": intervals,
        "verdicts": {price: dict(verdict) for price, verdict in (verdicts or {}).items()},
        "lines": lines,
        "notes": [list(note) for note in notes(config)],
        "commands": [list(block) for block in commands],
    }


def mark_json(point: Point) -> dict[str, Any]:
    """Return what is drawn of a setting: place, name, both measures as numbers and in words."""
    loss, refused = point.loss, point.refused
    return {
        "at": list(point.place),
        "name": point.name,
        "loss": _numbers(loss),
        "refused": _numbers(refused),
        "said": [_in_words(loss, per_year), _in_words(refused, time_per_year_label)],
    }


def page_json(
    controls: Sequence[Mapping[str, Any]],
    chosen: Mapping[str, str],
    settings: Iterable[tuple[Mapping[str, str], Mapping[str, Any]]],
    marks: Mapping[str, Sequence[Mapping[str, Any]]],
    goals: Goals,
    today: Mapping[str, Mapping[str, str]],
    note: str = "",
    capped: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return everything that `explorer.js` needs; equal texts and verdicts are stored once.

    `marks` are today's settings, by the controls in `CONTEXT`. `capped` says what Kafka makes of a
    min ISR above the replication factor, by the versions for which a page holds only one of them.
    """
    keys = [control["key"] for control in controls]
    context = [key for key in CONTEXT if key in keys]
    tables = _Tables()
    packed = {setting_key(keys, values): tables.packed(setting) for values, setting in settings}
    places = {tuple(setting["at"]) for setting in packed.values() if "at" in setting}
    return {
        "controls": list(controls),
        "chosen": dict(chosen),
        "context": context,
        "still": [key for key in keys if key in STILL],
        "price": PRICE,
        "seen": seen.PREFIX,
        "today": {topic: dict(values) for topic, values in today.items()},
        "settings": packed,
        "texts": list(tables.texts),
        "judged": tables.judged(),
        "marks": {name: list(todays) for name, todays in marks.items()},
        "marked": _MARKED,
        "confidence": _CONFIDENCE,
        "places": sorted(map(list, places)),
        "most": max(MOST_REPLICAS, *(rf for rf, _ in places), 0),
        "missing": _MISSING,
        "note": note,
        "capped": dict(capped or {}),
        "version": chosen.get("kafka_version", next(iter(capped or {}), "")),
        "goals": _limits(goals),
        "axes": _axes(goals),
        "legend": [list(entry) for entry in _LEGEND],
    }


def setting_key(keys: Sequence[str], values: Mapping[str, str]) -> str:
    """Return the name under which `explorer.js` finds a setting; a price changes no number."""
    choices = [values[key] for key in keys if key != PRICE and not key.startswith(seen.PREFIX)]
    typed = [key for key in keys if key.startswith(seen.PREFIX) and values[key]]
    counts = [f"{key}={json.dumps(values[key], ensure_ascii=False)}" for key in typed]
    return "|".join([*choices, *counts])


def verdict_at(page: Mapping[str, Any], setting: Mapping[str, Any], price: str) -> dict[str, Any]:
    """Return the verdict on a setting of a page at a price of a loss, as `explorer.js` finds it."""
    judged = page["judged"]
    row = judged["rows"][setting["verdicts"][judged["prices"].index(price)]]
    verdict = dict(zip(judged["fields"], row, strict=True))
    place = verdict["better"]
    return verdict | {"better": None if place is None else judged["better"][place]}


@dataclass
class _Tables:
    """Texts, verdicts and better settings of a page, each stored once: their places in it."""

    texts: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    better: dict[str, int] = field(default_factory=dict)
    fields: list[str] = field(default_factory=list)
    prices: list[str] = field(default_factory=list)

    def packed(self, setting: Mapping[str, Any]) -> dict[str, Any]:
        """Return a setting with places for its texts, and a list of them for its verdicts."""
        packed = self._worded(setting)
        if verdicts := setting.get("verdicts"):
            self.prices = list(verdicts)
            packed["verdicts"] = [self._row(verdict) for verdict in verdicts.values()]
        return packed

    def judged(self) -> dict[str, Any]:
        """Return the verdicts as rows without names, and what they refer to."""
        return {
            "prices": self.prices,
            "fields": self.fields,
            "rows": [json.loads(row) for row in self.rows],
            "better": [json.loads(better) for better in self.better],
        }

    def _row(self, verdict: Mapping[str, Any]) -> int:
        row = self._worded(verdict)
        row["text"] = [self._stored(clause) for clause in _CLAUSE.split(verdict["text"])]
        if verdict["better"] is not None:
            row["better"] = _place(self.better, json.dumps(self._worded(verdict["better"])))
        self.fields = list(row)
        return _place(self.rows, json.dumps(list(row.values())))

    def _worded(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        return {n: self._stored(value) if n in _WORDS else value for n, value in fields.items()}

    def _stored(self, value: Any) -> Any:
        if isinstance(value, str):
            return _place(self.texts, value)
        return [self._stored(inner) for inner in value] if isinstance(value, list) else value


def _place(table: dict[str, int], value: str) -> int:
    return table.setdefault(value, len(table))


def _numbers(estimate: Estimated) -> list[float]:
    """Value, low, high; the value alone where it has no interval."""
    ends = (estimate.low, estimate.high) if estimate.low < estimate.high else ()
    return [rounded(q) for q in (estimate.value, *ends)]


def rounded(value: float) -> float:
    """Return the digits that a page stores."""
    return float(f"{value:.{_DIGITS}g}")


def _in_words(estimate: Estimated, say: Callable[[float], str]) -> str:
    words = say(estimate.value)
    if estimate.low < estimate.high:
        words += f" (95 %: {say(estimate.low)} to {say(estimate.high)})"
    return words


def _limits(goals: Goals) -> dict[str, float]:
    limits = {"loss": goals.loss_probability_per_year, "refused": goals.write_unavailability}
    return {name: limit for name, limit in limits.items() if limit}


def _axes(goals: Goals) -> dict[str, Any]:
    titles: dict[str, tuple[str, str, Callable[[float], str]]] = {
        "loss": ("Durability: chance of a loss in a year", per_year(0.0), limit_words),
        "refused": (
            "Availability: time without writes",
            time_per_year_label(0.0),
            time_per_year_label,
        ),
    }
    limits = _limits(goals)
    decades = {
        "loss": [_decade(n) for n in range(_DECADES)],
        "refused": [time_per_year_label(10.0**-n) for n in range(_DECADES)],
    }
    return {
        name: {
            "title": title,
            "ticks": [[10.0**-n, words] for n, words in enumerate(decades[name])],
            "zero": zero,
            "goal": f"Your goal: at most {say(limits[name])}" if name in limits else "",
        }
        for name, (title, zero, say) in titles.items()
    }


def _decade(nines: int) -> str:
    """Return a power of ten as the label of an axis: "1 %", "1 in 10,000", "1 in 1M"."""
    if nines <= _PERCENTS:
        return f"{100.0 / 10**nines:g} %"
    words = one_in(10.0**-nines)
    for long, brief in _BRIEFLY.items():
        words = words.replace(long, brief)
    return words


_DRAWN = {LOSS_PROBABILITY: "loss", WRITES: "refused"}
"""Measures that the pictures draw."""


def verdict_json(
    verdict: Verdict, better: Mapping[str, Any] | None, has_ranges: bool
) -> dict[str, Any]:
    """Return a verdict on one topic as JSON data; `better` is the setting after the change."""
    (action,) = verdict.actions
    sentences, choice = around(verdict), action.choice
    return {
        "severity": verdict.severity,
        "known": choice.draws > 0 or not has_ranges,
        "confidence": verdict.confidence,
        "headline": verdict.headline,
        "text": verdict.text,
        "floor": sentences.floor,
        "sure": sentences.sure,
        "goals": [*sentences.goals],
        "unreached": sorted(
            _DRAWN[goal.goal]
            for goal in action.goals
            if goal.goal in _DRAWN and goal.state == OUT_OF_REACH
        ),
        "pays": [_end(choice.pays_from_minutes), _end(choice.pays_to_minutes)],
        "better": None if better is None else dict(better),
    }


def _end(minutes: float | None) -> Any:
    return None if minutes is None else plain(rounded(minutes))
