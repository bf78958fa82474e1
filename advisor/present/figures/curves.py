"""Durability and availability curves over replication factor and min ISR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from advisor.present.figures import style
from advisor.present.nines_axis import NinesAxis, loss_label, nines_axis, refused_label
from advisor.present.points import Estimated, Point, by_replication_factor, dominated, slots

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
    """Draw durability above write availability, over replication factor and min ISR.

    points: one per replication factor and min ISR.
    marks: settings to mark (`style.RECOMMENDED`, `style.CURRENT`). They may be absent from
        `points`, for instance with other acks.
    width_inches, height_inches: size of the figure; below 5 inches wide the font is smaller.
    Returns a figure outside pyplot.
    """
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
        _dress(ax, scale, places)
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
        here = [mark for mark, point in marks if point.name == name]
        words = " and ".join(mark.word for mark in here)
        entries.append((here[0].shape, here[0].colour, f"{words}: {name}"))
    return entries


def _dress(ax: Axes, scale: NinesAxis, places: _Places) -> None:
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
