"""The settings that a recommendation compared, as points and in charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes

from advisor.advice.candidate import Candidate
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.situation import usual_share
from advisor.present.figures import style
from advisor.present.figures.chart import shown_figure
from advisor.present.figures.curves import Marks, draw_curves, keys
from advisor.present.figures.pareto import draw_pareto, shape_keys
from advisor.present.labels import bracketed_interval, per_year, time_per_year_label
from advisor.present.outcome import point_of
from advisor.present.points import Estimated, Point
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS
from advisor.reliability.results.sensitivity import compute_intervals

MOST_REPLICAS_WITH_INTERVALS = 3
_MAJORITY = 0.5


def has_interval(recommendation: Recommendation, choice: Candidate) -> bool:
    """Return whether a candidate is shown with intervals.

    Intervals take dozens of evaluations. Only the recommended and the present setting have them,
    and those with the recommended acks whose Markov chains are small and few.
    """
    config, best = choice.config, recommendation.best
    if choice in (best, recommendation.current):
        return True
    if recommendation.load.partitions > MANY_PARTITIONS:
        return False
    factor = config.replication_factor or 1
    return config.acks == best.config.acks and factor <= MOST_REPLICAS_WITH_INTERVALS


def compared(recommendation: Recommendation) -> tuple[Point, ...]:
    """Return the candidates as points; those that differ only in delivery timeout are one."""
    choices = (recommendation.best, recommendation.current, *recommendation.choices)
    compute_intervals(
        choice.reliability
        for choice in choices
        if choice is not None and has_interval(recommendation, choice)
    )
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
    """Return the recommended setting and, if known, the present one, with their markers."""
    marked = [(style.RECOMMENDED, _point(recommendation, recommendation.best))]
    if recommendation.current is not None:
        today = replace(style.CURRENT, word=today_words(recommendation))
        marked.append((today, _point(recommendation, recommendation.current)))
    return marked


def today_words(recommendation: Recommendation) -> str:
    """Return how many partitions have the present setting: not "most" where a minority has it."""
    share = usual_share(recommendation.situation.topics)
    if share == 1.0:
        return style.CURRENT.word
    return "most partitions today" if share > _MAJORITY else "the most frequent today"


def in_words(points: Sequence[Point], marked: Marks) -> str:
    """Return every point with its values and intervals, for screen readers."""
    said = []
    for point in points:
        names = [mark.word for mark, other in marked if other == point]
        loss, refused = point.loss, point.refused
        values = (
            f"data loss {per_year(loss.value)}{_ends(loss, per_year)}, writes refused "
            f"{time_per_year_label(refused.value)}{_ends(refused, time_per_year_label)}"
        )
        marks_said = f" ({', '.join(names)})" if names else ""
        said.append(f"{point.name}{marks_said}: {values}.")
    return " ".join(said)


def _ends(value: Estimated, say: Callable[[float], str]) -> str:
    return bracketed_interval(value.low, value.high, say)


def _point(recommendation: Recommendation, choice: Candidate) -> Point:
    return point_of(choice.reliability, has_interval(recommendation, choice))


def plot_recommendation(recommendation: Recommendation, ax: Axes | None = None) -> Any:
    """Draw the candidates of a recommendation, with the recommended and present one marked.

    recommendation: what `advisor.recommend` returned.
    ax: axes for durability against write availability. Default: a new figure, which also has the
        curves over replication factor and min ISR.
    Returns the axes drawn on.
    """
    points, marked = compared(recommendation), marks(recommendation)
    if ax is not None:
        with style.look():
            draw_pareto(ax, points, marked)
        return ax
    width, height = 12.0, 5.4
    figure = shown_figure(width, height)
    figure.describe(
        "Durability and write availability by RF and min ISR.", in_words(points, marked)
    )
    with style.look():
        entries = keys(marked)
        shapes = shape_keys(points)
        top = 1 - style.head_inches(max(len(entries), len(shapes))) / height
        grid = {"left": 0.13, "right": 0.53, "top": top, "bottom": 0.13, "hspace": 0.17}
        upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw=grid)
        draw_curves((upper, lower), curve(recommendation), marked)
        pareto = figure.add_axes((0.68, 0.13, 0.3, top - 0.13))
        draw_pareto(pareto, points, marked)
        style.key(figure, 0.13, entries)
        style.key(figure, 0.68, shapes)
    return [upper, lower, pareto]


def _as_listed(choice: Candidate) -> tuple[int, int, bool, bool]:
    config = choice.config
    return (
        config.replication_factor or 0,
        config.min_insync_replicas or 0,
        config.acks != "all",
        "delivery_timeout_ms" in config.explicit,
    )
