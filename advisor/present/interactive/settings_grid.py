"""Settings as plain JSON for the explorer: numbers, words, refusals and commands.

`explorer.js` draws from this, in a notebook, an exported page and the report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from advisor.advice.candidate import GOAL_WORDS, Candidate, draws_met
from advisor.advice.goals import Goals, limit_words
from advisor.advice.phrases import listed
from advisor.formatting import one_in
from advisor.present.interactive.controls import MOST_REPLICAS, SMALL_REPLICAS, STILL
from advisor.present.labels import per_year, time_per_year_label
from advisor.present.outcome import outcomes, point_of
from advisor.present.points import Estimated, Point
from advisor.present.setting_text import notes, rack_words, tolerance_words

_MISSING = "This page has no answer for this combination. Run the notebook to compute it."
_MET, _MET_AT_MIDDLE = "Meets your goals", "Meets your goals at the card's middle values"
_MARKED = {"chosen": "chosen", "today": "today", "best": "recommended"}
_UNMARKED = f"none with up to {SMALL_REPLICAS} replicas meets your goals"
_DIGITS = 5
_DECADES = 25
_PERCENTS = 3  # decades of percents: below 0.1 % they have too many zeros
_BRIEFLY = {" million": "M", " billion": "B", " trillion": "T"}
_LEGEND = (("goal", "your goal"), ("interval", "95 % interval"))


def setting_json(
    choice: Candidate,
    goals: Goals,
    commands: Sequence[tuple[str, str]] = (),
    intervals: bool = False,
) -> dict[str, Any]:
    """Return one setting as JSON data.

    Parameters
    ----------
    choice : Candidate
    goals : Goals
        Those that it was compared with.
    commands : sequence of (str, str)
        Titles and texts of what brings the topic there.
    intervals : bool
        Whether to compute 95 % intervals that are not cached.
    """
    result, config = choice.reliability, choice.config
    point = point_of(result, intervals=intervals)
    said = outcomes(result, intervals)
    tolerated = "; ".join(f"{number} {words}" for words, number in tolerance_words(result))
    lines = [f"{outcome.title}: {outcome.said}" for outcome in said]
    lines += [f"Brokers you can lose: {tolerated}.", rack_words(result.cluster, config)]
    met, draws = draws_met(choice, goals) if intervals and choice.meets_all else (0, 0)
    unsure = met < draws / 2
    return {
        **mark_json(point),
        "at": [config.replication_factor, config.effective_min_insync_replicas],
        "met": choice.meets_all if choice.meets else None,
        "unsure": unsure,
        "badge": _unsure(met, draws) if unsure else badge(choice, intervals),
        "verdict": result.summary,
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


def badge(choice: Candidate, counted: bool) -> str:
    """Return whether a setting meets the goals, and which it misses.

    Parameters
    ----------
    choice : Candidate
    counted : bool
        Whether random draws of the card were compared with the goals, too.
    """
    if not choice.meets:
        return "No goals set"
    if choice.meets_all:
        uncounted = not counted and choice.reliability.model.uncertain
        return _MET_AT_MIDDLE if uncounted else _MET
    return f"Misses your goals: {listed([GOAL_WORDS[goal] for goal in choice.unmet])}"


def _unsure(met: int, draws: int) -> str:
    return f"{_MET_AT_MIDDLE}, but in only {met} of {draws} random draws"


def page_json(
    controls: Sequence[Mapping[str, Any]],
    chosen: Mapping[str, str],
    settings: Iterable[tuple[Mapping[str, str], Mapping[str, Any]]],
    marks: Mapping[str, Sequence[Mapping[str, Any]]],
    goals: Goals,
    context: Sequence[str],
    missing: str = _MISSING,
    note: str = "",
    capped: str = "",
) -> dict[str, Any]:
    """Return everything that `explorer.js` needs; equal texts are stored once.

    Parameters
    ----------
    controls : sequence of dict
        See `controls.controls`.
    chosen : mapping of str to str
        Initial value of each control.
    settings : iterable of (values, setting)
        Values of the controls, and the setting or its refusal.
    marks : mapping of str to sequence of dict
        Present and recommended settings, by the values of the controls in `context`.
    goals : Goals
    context : sequence of str
        Controls that decide what is marked.
    missing : str
        Text for a combination without a setting on a page without a kernel.
    note : str
        Text below the controls: what a page without a kernel leaves out.
    capped : str
        What Kafka makes of a min ISR above the replication factor, if that is the same setting as
        one with a min ISR equal to it.
    """
    texts: dict[str, int] = {}
    keys = [control["key"] for control in controls]
    packed = {setting_key(keys, values): _packed(setting, texts) for values, setting in settings}
    places = {tuple(setting["at"]) for setting in packed.values() if "at" in setting}
    return {
        "controls": list(controls),
        "chosen": dict(chosen),
        "context": list(context),
        "still": [key for key in keys if key in STILL],
        "sends": goals.records_refused_per_year is not None,
        "settings": packed,
        "texts": list(texts),
        "marks": {name: list(each) for name, each in marks.items()},
        "marked": _MARKED,
        "unmarked": _UNMARKED,
        "places": sorted(map(list, places)),
        "most": max(MOST_REPLICAS, *(rf for rf, _ in places), 0),
        "missing": missing,
        "note": note,
        "capped": capped,
        "goals": _limits(goals),
        "axes": _axes(goals),
        "legend": [list(entry) for entry in _LEGEND],
    }


def setting_key(keys: Sequence[str], values: Mapping[str, str]) -> str:
    """Return the name under which `explorer.js` finds a setting."""
    return "|".join(values[key] for key in keys)


def _packed(setting: Mapping[str, Any], texts: dict[str, int]) -> dict[str, Any]:
    def stored(value: Any) -> Any:
        if isinstance(value, str):
            return texts.setdefault(value, len(texts))
        return [stored(each) for each in value] if isinstance(value, list) else value

    words = ("name", "said", "badge", "verdict", "lines", "notes", "commands", "refusal")
    return {name: stored(value) if name in words else value for name, value in setting.items()}


def _numbers(estimate: Estimated) -> list[float]:
    """Value, low, high."""
    return [float(f"{q:.{_DIGITS}g}") for q in (estimate.value, estimate.low, estimate.high)]


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
