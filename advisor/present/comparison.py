"""A recommendation's candidates in charts."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from advisor.advice.choice import Choice
from advisor.advice.recommendation import Recommendation
from advisor.errors import NotComputedError
from advisor.present import style
from advisor.present.labels import interval
from advisor.present.outcome import (
    BETWEEN,
    COMPARED,
    brief_in_words,
    draw_outcomes,
    given_up_in_words,
    outcomes,
    point_of,
)
from advisor.present.pareto import draw_pareto, shape_keys
from advisor.present.plots import Marks, draw_curves, keys
from advisor.present.points import Point
from advisor.protocol.schemes.rules import ASYNCHRONOUS, MAJORITY, SYNCHRONOUS
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.schemes.comparison import (
    FLUSHED_MAJORITY,
    KAFKA,
    SchemeRow,
    rows_beside,
    scheme_intervals,
)

MOST_REPLICAS_WITH_INTERVALS = 3
RECORDS_LOST = "acked_records_lost_per_year"
SCHEMES_COMPARED_BY = (COMPARED[0], RECORDS_LOST, *COMPARED[1:])
"""Columns of the table of schemes: how often records are lost, how many, and the time without."""

_SCHEME_WORDS = {
    KAFKA: "Kafka, as recommended",
    SYNCHRONOUS: "Synchronous",
    MAJORITY: "Majority vote",
    FLUSHED_MAJORITY: "Majority vote, flushed",
    ASYNCHRONOUS: "Asynchronous",
}


def has_interval(recommendation: Recommendation, choice: Choice) -> bool:
    """Return whether a candidate is shown with intervals.

    An interval takes 64 evaluations. They are spent on the recommended and the current setting
    and on their neighbours with the same acks, as long as the chains are small.
    """
    config, best = choice.config, recommendation.best
    if choice in (best, recommendation.current):
        return True
    factor = config.replication_factor or 1
    return config.acks == best.config.acks and factor <= MOST_REPLICAS_WITH_INTERVALS


def compared(recommendation: Recommendation) -> tuple[Point, ...]:
    """Return every candidate as a point; those that differ only in patience are one."""
    points: dict[tuple[int, int, str | int], Point] = {}
    for choice in sorted(recommendation.choices, key=_as_listed):
        point = _point(recommendation, choice)
        points.setdefault((*point.place, point.acks), point)
    return tuple(points.values())


def curve(recommendation: Recommendation) -> tuple[Point, ...]:
    """Return the candidates with the recommended acks, one per replication factor and min ISR."""
    acks = recommendation.best.config.acks
    return tuple(point for point in compared(recommendation) if point.acks == acks)


def marks(recommendation: Recommendation) -> Marks:
    """Return the recommended setting and the current one, where it is known."""
    marked = [(style.RECOMMENDED, _point(recommendation, recommendation.best))]
    if recommendation.current is not None:
        marked.append((style.CURRENT, _point(recommendation, recommendation.current)))
    return marked


def _point(recommendation: Recommendation, choice: Choice) -> Point:
    return point_of(choice.reliability, has_interval(recommendation, choice))


def schemes_compared(result: Reliability) -> list[dict[str, Any]]:
    """Return a setting beside other ways to replicate, each a row in words.

    Returns
    -------
    list of dict
        "name", "rule", "note" and "measures": value and interval of each of
        `SCHEMES_COMPARED_BY`; empty for more replicas than are compared.
    """
    try:
        rows = rows_beside(result)
    except NotComputedError:
        return []
    return [_scheme_in_words(row, result) for row in rows]


def _scheme_in_words(row: SchemeRow, result: Reliability) -> dict[str, Any]:
    ranges = scheme_intervals(row, result)
    return {
        "name": _SCHEME_WORDS[row.name],
        "rule": row.rule,
        "note": row.note,
        "measures": [
            records_in_words(row, *ranges[measure])
            if measure == RECORDS_LOST
            else brief_in_words(measure, getattr(row, measure), *ranges[measure])
            for measure in (BETWEEN, *SCHEMES_COMPARED_BY[1:])
        ],
    }


def records_in_words(row: SchemeRow, low: float, high: float) -> tuple[str, str]:
    """Return how many records a scheme loses in a mean year, and the interval of that mean."""
    if row.records_dropped_per_year:
        return "none is acknowledged", ""
    mean = row.acked_records_lost_per_year
    if mean == 0:
        return given_up_in_words(mean), ""
    ends = interval(low, high, given_up_in_words) if low < high else ""
    return given_up_in_words(mean), ends


def plot_recommendation(recommendation: Recommendation, ax: Axes | None = None) -> Any:
    """Draw the candidates of a recommendation, the recommended and the current one marked.

    Parameters
    ----------
    recommendation
        What `advisor.recommend` returned.
    ax
        Where to draw durability against write availability. Without it a new figure also gets
        the curves over replication factor and min ISR.

    Returns
    -------
    matplotlib.axes.Axes or list of them
        What was drawn into.
    """
    points, marked = compared(recommendation), marks(recommendation)
    if ax is not None:
        with style.look():
            draw_pareto(ax, points, marked)
        return ax
    width, height = 12.0, 5.4
    figure = shown_figure(width, height)
    with style.look():
        entries, shapes = keys(marked), shape_keys(points)
        top = 1 - style.head_inches(max(len(entries), len(shapes))) / height
        grid = {"left": 0.13, "right": 0.53, "top": top, "bottom": 0.13, "hspace": 0.17}
        upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw=grid)
        draw_curves((upper, lower), curve(recommendation), marked)
        pareto = figure.add_axes((0.68, 0.13, 0.3, top - 0.13))
        draw_pareto(pareto, points, marked)
        style.key(figure, 0.13, entries)
        style.key(figure, 0.68, shapes)
    return [upper, lower, pareto]


def plot_reliability(result: Reliability | Sampled, ax: Axes | None = None) -> Axes:
    """Draw the measures of one result in words, and what each comes from as bars.

    Parameters
    ----------
    result
        What `advisor.evaluate` or `advisor.simulate` returned.
    ax
        Where to draw; a new figure without it.
    """
    told = outcomes(result)
    if ax is None:
        lines = sum(2.4 + len(outcome.shares) for outcome in told)
        ax = shown_figure(7.2, 0.24 * lines + 0.3).add_axes((0.02, 0.02, 0.96, 0.96))
    with style.look():
        draw_outcomes(ax, told)
    return ax


def shown_figure(width_inches: float, height_inches: float) -> Figure:
    """Return a figure of the user's own pyplot, so that it shows where theirs do.

    To be called outside `style.look`: with its first figure pyplot becomes interactive in a
    notebook, and must stay so.
    """
    from matplotlib import pyplot

    return pyplot.figure(figsize=(width_inches, height_inches), facecolor="white")


def _as_listed(choice: Choice) -> tuple[int, int, bool, bool]:
    config = choice.config
    return (
        config.replication_factor or 0,
        config.min_insync_replicas or 0,
        config.acks != "all",
        "delivery_timeout_ms" in config.explicit,
    )
