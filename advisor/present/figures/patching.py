"""The chart of rolling restarts: refused writes by how many brokers at once, waiting or not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from advisor.formatting import significant
from advisor.present.figures import style
from advisor.present.figures.chart import shown_figure
from advisor.reliability.patching_choices import Patching, PatchingChoice
from advisor.reliability.results.units import Estimate

_MARKERS = {True: "o", False: "D"}
_COLOURS = {True: style.AVAILABILITY, False: "#c44e00"}
_WORDS = {True: "waits for the ISR", False: "does not wait"}
_TIMES = (
    *((10.0**power / 60.0, f"{10.0**power:g} s") for power in range(-5, 2)),
    *((float(minutes), f"{minutes:,} min") for minutes in (1, 10, 100, 1_000, 10_000)),
)
_SHIFT = 0.16


def plot_patching(result: Patching, ax: Axes | None = None) -> Axes:
    """Draw for how long a partition refuses writes in a rolling restart, by how it is done."""
    groups = _groups(result.choices)
    with style.look():
        if ax is None:
            figure = shown_figure(7.2, 1.5 + 0.46 * len(groups))
            figure.describe(*_in_words(result))
            ax = figure.subplots()
            figure.subplots_adjust(left=0.25, right=0.97, top=1 - 0.34 / figure.get_figheight())
            figure.subplots_adjust(bottom=0.82 / figure.get_figheight())
        _draw(ax, groups)
    return ax


def _groups(choices: Sequence[PatchingChoice]) -> dict[str, list[PatchingChoice]]:
    """Group choices that differ only in whether they wait; keys are their common properties."""
    several = {name: len({getattr(c, name) for c in choices}) > 1 for name in ("order", "hour")}
    groups: dict[str, list[PatchingChoice]] = {}
    for choice in choices:
        words = f"{choice.at_once} at once"
        words += {"rack": ", rack by rack", "id": ", by id"}[choice.order] * several["order"]
        words += f", from {significant(choice.hour)}:00" * several["hour"]
        groups.setdefault(words, []).append(choice)
    return groups


def _draw(ax: Axes, groups: dict[str, list[PatchingChoice]]) -> None:
    ends: list[float] = []
    for place, group in enumerate(groups.values()):
        for choice in group:
            minutes, waits = choice.refused_minutes, choice.wait_for_isr
            ends += [end for end in (minutes.low, minutes.high) if end > 0.0]
            height = place + (-_SHIFT if waits else _SHIFT) * (len(group) > 1)
            _point(ax, minutes, height, waits)
    ax.set_xscale("log")
    shortest, longest = min(ends, default=0.1), max(ends, default=10.0)
    ax.set_xlim(shortest / 3.0, longest * 6.0)
    ticks = [(at, words) for at, words in _TIMES if shortest / 3.0 <= at <= longest * 6.0]
    ax.xaxis.set_major_locator(FixedLocator([at for at, _ in ticks]))
    ax.xaxis.set_major_formatter(FixedFormatter([words for _, words in ticks]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(FixedLocator(list(range(len(groups)))))
    ax.yaxis.set_major_formatter(FixedFormatter(list(groups)))
    ax.set_ylim(len(groups) - 0.5, -0.5)
    ax.set_title("How long a partition refuses writes in one rolling restart", loc="left", pad=6)
    ax.grid(axis="x", color=style.FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)
    if ax.get_legend_handles_labels()[0]:
        inches = ax.get_window_extent().height / ax.figure.dpi
        below = (0.0, -0.42 / inches)
        ax.legend(loc="upper left", bbox_to_anchor=below, ncols=2, frameon=False, fontsize=8)


def _point(ax: Axes, minutes: Estimate, height: float, waits: bool) -> None:
    colour, marker = _COLOURS[waits], _MARKERS[waits]
    drawn = {line.get_label() for line in ax.lines}
    label = _WORDS[waits] if _WORDS[waits] not in drawn else "_"
    if minutes.high == 0.0:
        ax.text(0.01, height, "none", transform=ax.get_yaxis_transform(), color=colour)
        return
    if minutes.seen:
        ax.plot([minutes.low, minutes.high], [height, height], color=colour, linewidth=1.4)
    ax.plot(
        minutes.value,
        height,
        marker=marker if minutes.seen else "<",
        color=colour,
        markersize=6,
        linestyle="none",
        label=label,
    )
    words = _short(minutes.value) if minutes.seen else f"under {_short(minutes.high)}"
    ax.annotate(
        words,
        (minutes.high if minutes.seen else minutes.value, height),
        xytext=(7, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=style.INK,
    )


def _short(minutes: float) -> str:
    return f"{significant(minutes)} min" if minutes >= 1.0 else f"{significant(60 * minutes)} s"


def _in_words(result: Patching) -> list[str]:
    sentences = ["How long a partition refuses writes in one rolling restart:"]
    for words, group in _groups(result.choices).items():
        choices = []
        for choice in group:
            minutes = choice.refused_minutes
            value = _short(minutes.value) if minutes.seen else f"under {_short(minutes.high)}"
            ends = (
                f" (95 %: {_short(minutes.low)} to {_short(minutes.high)})" if minutes.seen else ""
            )
            choices.append(f"{value}{ends} if it {_WORDS[choice.wait_for_isr]}")
        sentences.append(re.sub(r"\s+", " ", f"{words}: {', '.join(choices)}."))
    return sentences
