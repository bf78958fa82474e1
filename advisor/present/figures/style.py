"""Style of the charts, and deterministic SVG output.

The colours are Okabe and Ito's, distinguishable for colour-blind readers and in grey print. Shapes
and words repeat whatever a colour means.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from matplotlib.transforms import Bbox

from advisor.rendering import Html, html, html_figure, html_joined, markup

INK = "#222222"
MUTED = "#6b6b6b"
FAINT = "#d9d9d9"
PAPER = "#fefefe"
NARROW_INCHES = 5.0
GREY = "#a8a8a8"
DURABILITY = "#0072b2"
AVAILABILITY = "#009e73"
TODAY = "#8a3ba5"
BEST = "#c44e00"

Entry = tuple[str, str, str]
"""A legend line: marker, colour, words."""

# In an HTML page, these follow the colours of the page, light or dark.
_VARIABLES = {
    INK: "--advisor-ink",
    MUTED: "--advisor-muted",
    FAINT: "--advisor-faint",
    PAPER: "--advisor-paper",
    DURABILITY: "--advisor-loss",
    AVAILABILITY: "--advisor-refused",
    TODAY: "--advisor-today",
    BEST: "--advisor-best",
}
ON_DARK = {
    "--advisor-loss": "#56b4e9",
    "--advisor-refused": "#4fc8a3",
    "--advisor-today": "#d59be8",
    "--advisor-best": "#ff9a66",
}
"""The colours that stand out too little on a dark page, and what they are there."""

_FAMILIES = {
    "axes",
    "figure",
    "font",
    "grid",
    "legend",
    "lines",
    "markers",
    "mathtext",
    "patch",
    "path",
    "svg",
    "text",
    "xtick",
    "ytick",
}  # rcParams that affect a drawing
_LOOK = {
    "axes.edgecolor": MUTED,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "figure.facecolor": "none",
    "svg.fonttype": "none",
    "text.color": INK,
    # A name with two dollar signs is no formula.
    "text.parse_math": False,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "xtick.labelsize": 8,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
    "ytick.labelsize": 8,
}


_SETTABLE = [name for name in mpl.rcParamsDefault if name.split(".")[0] in _FAMILIES]
_NARROW_LOOK = {
    "axes.labelsize": 7.5,
    "axes.titlesize": 8.5,
    "font.size": 8,
    "xtick.labelsize": 7.5,
    "ytick.labelsize": 7.5,
}


@dataclass(frozen=True)
class Mark:
    """A hollow marker for one setting, identified by word, shape and colour."""

    word: str
    shape: str
    colour: str
    points: float

    def draw(self, ax: Axes, x: float, y: float) -> None:
        """Draw the marker around a point given in data coordinates."""
        ax.plot(
            [x],
            [y],
            marker=self.shape,
            markersize=self.points,
            markerfacecolor="none",
            markeredgecolor=self.colour,
            markeredgewidth=1.8,
            clip_on=False,
            zorder=5,
        )


CURRENT = Mark("today", "s", TODAY, 11.5)
RECOMMENDED = Mark("recommended", "D", BEST, 8.5)


@contextmanager
def look(narrow: bool = False) -> Iterator[None]:
    """Draw and save with this style, independent of the user's rcParams."""
    with mpl.rc_context():
        # Matplotlib's defaults instead of the user's, for equal bytes; the backend stays theirs.
        defaults: dict[Any, Any] = {k: mpl.rcParamsDefault[k] for k in _SETTABLE}
        mpl.rcParams.update(defaults | _LOOK | (_NARROW_LOOK if narrow else {}))
        yield


def is_narrow(ax: Axes) -> bool:
    """Return whether the figure of the axes is too narrow for the full font size."""
    figure = ax.get_figure()
    assert figure is not None
    return bool(figure.bbox.width / figure.dpi < NARROW_INCHES)


def left(width_inches: float) -> float:
    """Return the left edge of axes as a fraction of the width, with room for tick labels."""
    return (1.32 if width_inches < NARROW_INCHES else 1.62) / width_inches


def head_inches(lines: int) -> float:
    """Return the height of a legend with this many lines and the title below it, in inches."""
    return 0.34 + lines / 6


def key(figure: Figure, left: float, entries: Sequence[Entry]) -> None:
    """Draw a legend at the top of a figure, outside all axes."""
    points_high = figure.get_figheight() * 72
    points_wide = figure.get_figwidth() * 72
    for line, (shape, colour, words) in enumerate(entries):
        y = 1 - (9 + 12 * line) / points_high
        figure.add_artist(
            Line2D(
                [left + 5 / points_wide],
                [y],
                marker=shape,
                markersize=6.5 if shape == "s" else 5.5,
                markerfacecolor="none",
                markeredgecolor=colour,
                markeredgewidth=1.5,
                linestyle="none",
            )
        )
        # Words in the colour of a mark would be hard to read.
        figure.text(left + 13 / points_wide, y, words, va="center_baseline", fontsize=8)


Place = tuple[float, float]


def pixels(ax: Axes, place: Place) -> Place:
    """Return where a place in data coordinates is in the picture."""
    across, upwards = ax.transData.transform(place)
    return float(across), float(upwards)


def _pixels_per_point(ax: Axes) -> float:
    figure = ax.get_figure()
    assert figure is not None
    return figure.dpi / 72


def boxes_around(ax: Axes, places: Iterable[Place], points: float) -> list[Bbox]:
    """Return what the markers at some places cover, in pixels."""
    radius = points * _pixels_per_point(ax)
    corners = ((x - radius, y - radius) for x, y in (pixels(ax, place) for place in places))
    return [Bbox.from_bounds(*corner, 2 * radius, 2 * radius) for corner in corners]


def label(
    ax: Axes,
    words: str,
    place: Place,
    offsets: Sequence[tuple[float, float, str]],
    avoided: Sequence[Sequence[Bbox]],
    letter: tuple[float, float],
) -> list[Bbox]:
    """Write words beside a place, at the first offset in points that is free, if there is one.

    What the first list of boxes to avoid leaves no room for may stand on what is only in it. Width
    and height of a letter are in points. Returns the box of the words.
    """
    scale = _pixels_per_point(ax)
    (x, y), (width, height) = pixels(ax, place), (len(words) * letter[0] * scale, letter[1] * scale)
    for boxes in avoided:
        for dx, dy, side in offsets:
            left = x + dx * scale - {"left": 0.0, "right": 1.0, "center": 0.5}[side] * width
            box = Bbox.from_bounds(left, y + dy * scale - height / 2, width, height)
            inside = ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1
            inside = inside and ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1
            if inside and not any(box.overlaps(taken) for taken in boxes):
                look: dict[str, Any] = {"ha": side, "va": "center_baseline", "fontsize": 7.5}
                ax.annotate(
                    words, place, xytext=(dx, dy), textcoords="offset points", zorder=6, **look
                )
                return [box]
    return []


def log_scale(ax: Axes, say: Callable[[float], str]) -> None:
    """Make the vertical axis logarithmic, with a few ticks in words whatever it spans."""
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    if high < 3 * low:
        low, high = low / 1.5, high * 1.5
        ax.set_ylim(low, high)
    decades = math.log10(high / low)
    ax.yaxis.set_major_locator(
        LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0), numticks=7)
    )
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: say(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(axis="y", color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)


def svg(figure: Figure, name: str, description: str) -> Html:
    """Return a figure as one `<svg>` element for an HTML page, deterministic.

    The name is the element's id and the prefix of all ids in it.
    """
    buffer = io.StringIO()
    with look(), mpl.rc_context({"svg.hashsalt": name}):
        # On the page's own ground, light or dark.
        metadata = {"Date": None, "Creator": None}
        figure.savefig(buffer, format="svg", facecolor="none", metadata=metadata)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', text)
    for colour, variable in _VARIABLES.items():
        text = text.replace(colour, f"var({variable}, {colour})")
    points = (72 * float(inches) for inches in figure.get_size_inches())
    width, height = (f"{size:g}" for size in points)
    head = markup(
        '<svg id="{}" class="advisor-chart" role="img" aria-label="{}" viewBox="0 0 {} {}" '
        'style="width: 100%; max-width: {}pt; height: auto">',
        *map(html, (name, description, width, height, width)),
    )
    return html_joined([head, html_figure(text[text.index(">") + 1 :].strip()), markup("\n")])
