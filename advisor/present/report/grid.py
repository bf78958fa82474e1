"""All compared settings as JSON, for the lists of the report, which has no kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from advisor.advice.choice import Choice
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.present.figures.comparison import has_interval
from advisor.present.outcome import Outcome, outcomes
from advisor.present.points import Point, slots
from advisor.present.setting_text import tolerance_words
from advisor.protocol.rules.config import Config

_MISSING = "This combination was not compared: min.insync.replicas above the replication factor."
# Option and label of each list, in order.
_OPTIONS = (
    ("replication_factor", "Replication factor"),
    ("min_insync_replicas", "min.insync.replicas"),
    ("acks", "acks"),
    ("retries", "retries"),
    ("delivery_timeout_ms", "delivery.timeout.ms"),
)


def grid(recommendation: Recommendation, charts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the settings, their texts and the lists to choose them from, as plain JSON data.

    Parameters
    ----------
    recommendation : Recommendation
    charts : sequence of dict
        Position of each setting in each chart; see `chart_places`.
    """
    choices = recommendation.choices
    shown = [name for name, _ in _OPTIONS if len(_values(choices, name)) > 1]
    settings = {
        _key(choice.config, shown): _setting(choice, shown, has_interval(recommendation, choice))
        for choice in choices
    }
    best = recommendation.best.config
    controls = [
        {
            "key": name,
            "label": label,
            "options": [str(value) for value in _values(choices, name)],
            "value": str(getattr(best, name)),
        }
        for name, label in _OPTIONS
        if name in shown
    ]
    return {
        "controls": controls,
        "settings": list(settings.values()),
        "charts": list(charts),
        "missing": _MISSING,
    }


def chart_places(name: str, figure: Figure, points: Sequence[Point]) -> dict[str, Any]:
    """Return the x positions of the settings in the SVG of the curves, in SVG units.

    Parameters
    ----------
    name : str
        Id of the `<svg>` element.
    figure : matplotlib.figure.Figure
        Drawn by `plot_curves`.
    points : sequence of Point
        All points drawn, the marked ones included.
    """
    upper, lower = figure.axes[:2]
    per_dot = 72.0 / figure.dpi
    high = figure.get_figheight() * 72
    places = {
        f"{rf}/{least}": round(float(upper.transData.transform((x, 0.0))[0]) * per_dot, 2)
        for (rf, least), x in slots(points).items()
    }
    return {
        "id": name,
        "places": places,
        "top": round(high - upper.bbox.y1 * per_dot, 2),
        "bottom": round(high - lower.bbox.y0 * per_dot, 2),
    }


def _values(choices: Sequence[Choice], name: str) -> list[Any]:
    values = {getattr(choice.config, name) for choice in choices}
    return sorted(values, key=lambda value: (isinstance(value, int), value != "all", value))


def _key(config: Config, shown: Sequence[str]) -> str:
    return "|".join(str(getattr(config, name)) for name in shown)


def _decided(outcome: Outcome) -> str:
    """Return what settings decide of a measure, and the rest; "" where they decide all."""
    by, rest = outcome.parts
    return f". Settings decide: {by}; no setting changes: {rest}" if rest else ""


def _setting(choice: Choice, shown: Sequence[str], intervals: bool) -> dict[str, Any]:
    config = choice.config
    tolerated = "; ".join(
        f"{number} {words}" for words, number in tolerance_words(choice.reliability)
    )
    goals = "meets every goal" if choice.meets_all else "does not meet every goal"
    return {
        "key": _key(config, shown),
        "place": f"{config.replication_factor}/{config.min_insync_replicas}",
        "lines": [
            f"{choice.name}: {goals}",
            *(
                f"{outcome.title}: {outcome.said}{_decided(outcome)}"
                for outcome in outcomes(choice.reliability, intervals)
            ),
            f"Brokers you can lose: {tolerated}.",
        ],
    }
