"""The settings that a recommendation compared, as points and in charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from advisor.advice.candidate import Candidate
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.advice.situation import usual_share
from advisor.present.figures import style
from advisor.present.figures.chart import shown_figure
from advisor.present.labels import bracketed_interval, per_year, time_per_year_label
from advisor.present.nines_axis import NinesAxis, loss_label, nines_axis, refused_label
from advisor.present.outcome import point_of
from advisor.present.points import Estimated, Point, by_replication_factor, dominated, slots
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS
from advisor.reliability.results.sensitivity import compute_intervals

MOST_REPLICAS_WITH_INTERVALS = 3
_MAJORITY = 0.5


def has_interval(recommendation: Recommendation, choice: Candidate) -> bool:
    """Return whether a candidate is shown with intervals, which take dozens of evaluations."""
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
    sentences = []
    for point in points:
        names = [mark.word for mark, other in marked if other == point]
        loss, refused = point.loss, point.refused
        values = (
            f"data loss {per_year(loss.value)}{_ends(loss, per_year)}, writes refused "
            f"{time_per_year_label(refused.value)}{_ends(refused, time_per_year_label)}"
        )
        marks_said = f" ({', '.join(names)})" if names else ""
        sentences.append(f"{point.name}{marks_said}: {values}.")
    return " ".join(sentences)


def _ends(value: Estimated, say: Callable[[float], str]) -> str:
    return bracketed_interval(value.low, value.high, say)


def _point(recommendation: Recommendation, choice: Candidate) -> Point:
    return point_of(choice.reliability, has_interval(recommendation, choice))


def plot_recommendation(recommendation: Recommendation, ax: Axes | None = None) -> Any:
    """Draw the candidates of a recommendation, with the recommended and present one marked."""
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


_EDGE = 0.3  # how far a ribbon extends beyond its outermost points, in slots

Marks = Sequence[tuple[style.Mark, Point]]
_Places = Mapping[tuple[int, int], float]


def plot_curves(
    points: Sequence[Point],
    marks: Marks = (),
    *,
    width_inches: float = 7.2,
    height_inches: float = 5.4,
) -> Figure:
    """Draw durability above write availability, over replication factor and min ISR."""
    narrow = width_inches < style.NARROW_INCHES
    with style.look(narrow):
        figure = Figure(figsize=(width_inches, height_inches))
        entries = keys(marks)
        left, foot = style.left(width_inches), 0.62 / height_inches
        upper, lower = figure.subplots(
            2,
            1,
            sharex=True,
            gridspec_kw={
                "left": left,
                "right": 1 - 0.08 / width_inches,
                "top": 1 - style.head_inches(len(entries)) / height_inches,
                "bottom": foot,
                "hspace": 0.17,
            },
        )
        draw_curves((upper, lower), points, marks)
        style.key(figure, 0.02 if narrow else left, entries)
    return figure


def draw_curves(axes: tuple[Axes, Axes], points: Sequence[Point], marks: Marks = ()) -> None:
    """Draw the two curves of `plot_curves` on axes, durability on the first."""
    every_point = [*points, *(point for _, point in marks)]
    places = slots(every_point)
    greyed = dominated(points)
    for ax, measure, label, colour, title in (
        (axes[0], "loss", loss_label, style.DURABILITY, "Durability: records lost"),
        (axes[1], "refused", refused_label, style.AVAILABILITY, "Availability: writes refused"),
    ):
        scale = nines_axis([getattr(p, measure) for p in every_point], label, _most_ticks(ax))
        _dress_curves(ax, scale, places)
        _curves(ax, scale, places, points, measure, colour)
        _dots(ax, scale, places, points, measure, colour, greyed)
        for mark, point in marks:
            x = places[point.place]
            ax.axvline(x, color=mark.colour, linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
            mark.draw(ax, x, scale.at(getattr(point, measure).value))
        ax.set_title(title, pad=5)
    axes[0].tick_params(labelbottom=False)
    _name_slots(axes[1], places)


def _most_ticks(ax: Axes) -> int:
    """Return how many two-line labels fit without overlap, at three font sizes each."""
    figure = ax.get_figure()
    assert figure is not None
    points_high = ax.bbox.height * 72 / figure.dpi
    lettering = FontProperties(size=mpl.rcParams["ytick.labelsize"]).get_size_in_points()
    return int(points_high / (3 * lettering))


def keys(marks: Marks) -> list[style.Entry]:
    """Return the legend entries of the marks, one per setting."""
    names = dict.fromkeys(point.name for _, point in marks)
    entries = []
    for name in names:
        marks_here = [mark for mark, point in marks if point.name == name]
        words = " and ".join(mark.word for mark in marks_here)
        entries.append((marks_here[0].shape, marks_here[0].colour, f"{words}: {name}"))
    return entries


def _dress_curves(ax: Axes, scale: NinesAxis, places: _Places) -> None:
    ax.set_ylim(scale.bottom, scale.top)
    ax.set_xlim(min(places.values()) - 0.8, max(places.values()) + 0.8)
    ax.set_yticks([at for at, _ in scale.ticks], [label for _, label in scale.ticks])
    ax.grid(axis="y", color=style.FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    if scale.border is not None:
        ax.axhline(scale.border, color=style.MUTED, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    ax.tick_params(axis="both", length=0)


def _curves(
    ax: Axes, scale: NinesAxis, places: _Places, points: Sequence[Point], measure: str, colour: str
) -> None:
    lines, ribbons = [], []
    for group in by_replication_factor(points).values():
        xs = [places[p.place] for p in group]
        estimates: list[Estimated] = [getattr(p, measure) for p in group]
        lines.append([(x, scale.at(e.value)) for x, e in zip(xs, estimates, strict=True)])
        # No ribbon where no interval was computed, rather than one of zero width.
        runs = groupby(zip(xs, estimates, strict=True), lambda at: at[1].low < at[1].high)
        ribbons += [_ribbon(scale, list(run)) for has_interval, run in runs if has_interval]
    ax.add_collection(
        PolyCollection(ribbons, facecolor=colour, alpha=0.22, linewidth=0, zorder=2),
        autolim=False,
    )
    ax.add_collection(LineCollection(lines, colors=colour, linewidths=1.6, zorder=3), autolim=False)


def _ribbon(scale: NinesAxis, run: Sequence[tuple[float, Estimated]]) -> list[tuple[float, float]]:
    """Return the outline of adjacent intervals, a little wider than the outermost points."""
    (first, at_first), (last, at_last) = run[0], run[-1]
    wide = [(first - _EDGE, at_first), *run, (last + _EDGE, at_last)]
    lows = [(x, scale.at(e.low)) for x, e in wide]
    return lows + [(x, scale.at(e.high)) for x, e in reversed(wide)]


def _dots(
    ax: Axes,
    scale: NinesAxis,
    places: _Places,
    points: Sequence[Point],
    measure: str,
    colour: str,
    greyed: frozenset[Point],
) -> None:
    for chosen, face, size in (
        ([p for p in points if p in greyed], style.GREY, 4.5),
        ([p for p in points if p not in greyed], colour, 6.0),
    ):
        ax.plot(
            [places[p.place] for p in chosen],
            [scale.at(getattr(p, measure).value) for p in chosen],
            linestyle="none",
            marker="o",
            markersize=size,
            color=face,
            markeredgecolor=style.PAPER,
            markeredgewidth=0.8,
            zorder=4,
        )


def _name_slots(ax: Axes, places: _Places) -> None:
    ax.set_xticks(list(places.values()), [str(min_isr) for _, min_isr in places])
    for factor in sorted({rf for rf, _ in places}):
        xs = [x for (rf, _), x in places.items() if rf == factor]
        ax.annotate(
            f"RF {factor}",
            ((min(xs) + max(xs)) / 2, 0),
            xycoords=("data", "axes fraction"),
            xytext=(0, -17),
            textcoords="offset points",
            ha="center",
            va="top",
            fontsize=7 if style.is_narrow(ax) else 8,
            fontweight="bold",
            annotation_clip=False,
        )
    ax.set_xlabel("min.insync.replicas, by replication factor (RF)", labelpad=17)


_SAME_PLACE_PIXELS = 3.0
_SHAPES: dict[str | int, str] = {"all": "o", 1: "^", 0: "v"}
# Label offsets from the point, in typographic points; those clear of the interval lines first.
_OFFSETS = (
    (7, 9, "left"),
    (7, -9, "left"),
    (-7, 9, "right"),
    (-7, -9, "right"),
    (9, 0, "left"),
    (-9, 0, "right"),
    (0, 13, "center"),
    (0, -13, "center"),
)


def plot_pareto(
    points: Sequence[Point],
    marks: Marks = (),
    *,
    width_inches: float = 7.2,
    height_inches: float = 4.8,
) -> Figure:
    """Draw every setting by durability (upwards) and write availability (to the right)."""
    narrow = width_inches < style.NARROW_INCHES
    with style.look(narrow):
        figure = Figure(figsize=(width_inches, height_inches))
        entries = [*keys(marks), *shape_keys(points)]
        left, foot = style.left(width_inches), 0.62 / height_inches
        head = style.head_inches(len(entries)) / height_inches
        ax = figure.add_axes((left, foot, 1 - left - 0.3 / width_inches, 1 - foot - head))
        draw_pareto(ax, points, marks)
        style.key(figure, 0.02 if narrow else left, entries)
    return figure


def draw_pareto(ax: Axes, points: Sequence[Point], marks: Marks = ()) -> None:
    """Draw the chart of `plot_pareto` on axes."""
    marked = [point for _, point in marks]
    every_point = list(dict.fromkeys([*marked, *points]))
    greyed = dominated(every_point)
    ticks = 3 if style.is_narrow(ax) else 4
    across = nines_axis([p.refused for p in every_point], refused_label, most_ticks=ticks)
    upwards = nines_axis([p.loss for p in every_point], loss_label)
    _dress_pareto(ax, across, upwards)
    for point in sorted(every_point, key=lambda p: (p not in greyed, -p.replication_factor)):
        _draw_point(ax, across, upwards, point, point in greyed)
    for mark, point in marks:
        mark.draw(ax, across.at(point.refused.value), upwards.at(point.loss.value))
    labelled = [*marked, *(p for p in every_point if p not in greyed and p not in marked)]
    _label_points(ax, across, upwards, labelled, every_point)


def _dress_pareto(ax: Axes, across: NinesAxis, upwards: NinesAxis) -> None:
    ax.set_xlim(across.bottom, across.top)
    ax.set_ylim(upwards.bottom, upwards.top)
    ax.set_xticks([at for at, _ in across.ticks], [label for _, label in across.ticks])
    ax.set_yticks([at for at, _ in upwards.ticks], [label for _, label in upwards.ticks])
    ax.grid(color=style.FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    dashes: dict[str, Any] = {
        "color": style.MUTED,
        "linewidth": 0.8,
        "linestyle": (0, (4, 3)),
        "zorder": 1,
    }
    if across.border is not None:
        ax.axvline(across.border, **dashes)
    if upwards.border is not None:
        ax.axhline(upwards.border, **dashes)
    ax.tick_params(axis="both", length=0)
    ax.set_title("Durability against write availability", pad=5)
    ax.set_xlabel("write availability, better to the right", labelpad=3)


def _draw_point(ax: Axes, across: NinesAxis, upwards: NinesAxis, point: Point, grey: bool) -> None:
    x, y = across.at(point.refused.value), upwards.at(point.loss.value)
    colour = style.GREY if grey else style.DURABILITY
    if not grey:
        reach: dict[str, Any] = {"color": colour, "alpha": 0.35, "linewidth": 1.4, "zorder": 2}
        ends = [across.at(point.refused.high), across.at(point.refused.low)]
        ax.plot(ends, [y, y], **reach)
        ax.plot([x, x], [upwards.at(point.loss.high), upwards.at(point.loss.low)], **reach)
    ax.plot(
        [x],
        [y],
        linestyle="none",
        marker=_SHAPES[point.acks],
        markersize=3.0 + 1.3 * point.replication_factor,
        color=colour,
        alpha=0.7 if grey else 1.0,
        markeredgecolor=style.PAPER,
        markeredgewidth=0.8,
        zorder=3 if grey else 4,
    )


def _label_points(
    ax: Axes,
    across: NinesAxis,
    upwards: NinesAxis,
    labelled: Sequence[Point],
    every_point: Sequence[Point],
) -> None:
    """Label points with RF/min ISR, in order, where there is room without overlap."""
    data = {p: (across.at(p.refused.value), upwards.at(p.loss.value)) for p in every_point}
    place = {p: style.pixels(ax, at) for p, at in data.items()}
    occupied = style.boxes_around(ax, data.values(), 5)
    for words, point in _by_place(labelled, place):
        occupied += style.label(ax, words, data[point], _OFFSETS, [occupied], (5.0, 8.0))


def _by_place(
    labelled: Sequence[Point], place: Mapping[Point, tuple[float, float]]
) -> list[tuple[str, Point]]:
    """Join the labels of points at the same place: "3/2, 4/2"."""
    groups: list[tuple[list[str], Point]] = []
    for point in labelled:
        name = f"{point.replication_factor}/{point.min_insync_replicas}"
        for names, other in groups:
            if math.dist(place[point], place[other]) < _SAME_PLACE_PIXELS:
                if name not in names:
                    names.append(name)
                break
        else:
            groups.append(([name], point))
    return [(_joined(names), point) for names, point in groups]


def _joined(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 3 else ", ".join([*names[:3], "…"])


def shape_keys(points: Sequence[Point]) -> list[style.Entry]:
    """Return the legend entries of the shapes in the Pareto chart."""
    keys = [
        ("o", style.DURABILITY, "acks=all, named RF/min ISR; larger: more replicas"),
        ("^", style.DURABILITY, "acks=1"),
        ("v", style.DURABILITY, "acks=0"),
    ]
    used = {_SHAPES[p.acks] for p in points}
    keys = [entry for entry in keys if entry[0] in used]
    keys.append(("o", style.MUTED, "grey: another setting is at least as good"))
    return keys
