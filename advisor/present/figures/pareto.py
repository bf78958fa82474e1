"""Pareto chart: durability against write availability, replicas as marker size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from advisor.present.figures import style
from advisor.present.figures.curves import Marks, keys
from advisor.present.nines_axis import NinesAxis, loss_label, nines_axis, refused_label
from advisor.present.points import Point, dominated

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
    """Draw every setting by durability (upwards) and write availability (to the right).

    points: settings compared.
    marks: settings to mark (`style.RECOMMENDED`, `style.CURRENT`).
    width_inches, height_inches: size of the figure; below 5 inches wide the font is smaller.
    Returns a figure outside pyplot.
    """
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
    _dress(ax, across, upwards)
    for point in sorted(every_point, key=lambda p: (p not in greyed, -p.replication_factor)):
        _draw_point(ax, across, upwards, point, point in greyed)
    for mark, point in marks:
        mark.draw(ax, across.at(point.refused.value), upwards.at(point.loss.value))
    chosen = [*marked, *(p for p in every_point if p not in greyed and p not in marked)]
    _label(ax, across, upwards, chosen, every_point)


def _dress(ax: Axes, across: NinesAxis, upwards: NinesAxis) -> None:
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


def _label(
    ax: Axes,
    across: NinesAxis,
    upwards: NinesAxis,
    chosen: Sequence[Point],
    every_point: Sequence[Point],
) -> None:
    """Label points with RF/min ISR, in order, where there is room without overlap."""
    figure = ax.get_figure()
    assert figure is not None
    scale = figure.dpi / 72
    data = {p: (across.at(p.refused.value), upwards.at(p.loss.value)) for p in every_point}
    place = {p: _pixels(ax, *data[p]) for p in every_point}
    radius = 5 * scale
    taken = [
        Bbox.from_bounds(x - radius, y - radius, 2 * radius, 2 * radius) for x, y in place.values()
    ]
    frame = ax.bbox
    for words, point in _by_place(chosen, place):
        x, y = place[point]
        size = (len(words) * 5.0 * scale, 8 * scale)
        for dx, dy, align in _OFFSETS:
            shift = {"left": 0.0, "right": -size[0], "center": -size[0] / 2}[align]
            box = Bbox.from_bounds(x + dx * scale + shift, y + dy * scale - size[1] / 2, *size)
            inside = frame.containsx(box.x0) and frame.containsx(box.x1)
            inside = inside and frame.containsy(box.y0) and frame.containsy(box.y1)
            if inside and not any(box.overlaps(other) for other in taken):
                ax.annotate(
                    words,
                    data[point],
                    xytext=(dx, dy),
                    textcoords="offset points",
                    ha=align,
                    va="center_baseline",
                    fontsize=7.5,
                    zorder=6,
                )
                taken.append(box)
                break


def _pixels(ax: Axes, x: float, y: float) -> tuple[float, float]:
    across, upwards = ax.transData.transform((x, y))
    return float(across), float(upwards)


def _by_place(
    chosen: Sequence[Point], place: Mapping[Point, tuple[float, float]]
) -> list[tuple[str, Point]]:
    """Join the labels of points at the same place: "3/2, 4/2"."""
    groups: list[tuple[list[str], Point]] = []
    for point in chosen:
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
