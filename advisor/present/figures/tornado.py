"""Tornado chart: a bar per number of the card, from the measure at its low to that at its high."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from advisor.formatting import one_in, significant
from advisor.present.card_text import range_in_words, value_and_range
from advisor.present.figures import style
from advisor.present.figures.chart import axes_of_new_figure
from advisor.present.labels import short, time_per_year_label
from advisor.present.outcome import in_brief
from advisor.reliability import measure_table
from advisor.reliability.failures.card import unit_of
from advisor.reliability.measure_table import (
    EVENTS,
    FRACTION,
    PROBABILITY,
    weighed,
    weighed_as_times,
)
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sensitivity import Swing, Tornado

MOST_BARS = 10
_MOST_IN_A_TABLE = 3
_LEAST_PERCENT = 0.999e-3
_CHANCES = (EVENTS, PROBABILITY)
"""Units that are shown as chances a year: rare enough that rate and probability are one."""


def largest_swings(result: Reliability) -> list[dict[str, str]]:
    """Return the few numbers of the card that move losses and refused writes most, in words.

    None for large chains without cached swings, which would take minutes.
    """
    if not result.swings_are_quick:
        return []
    numbers = result.model.quantities
    return [
        {
            "title": entry.title,
            "path": row.path,
            "range": f"{value_and_range(numbers[row.path])[1]} {unit_of(row.path)}".rstrip(),
            "low": in_brief(time, row.result_at_low),
            "high": in_brief(time, row.result_at_high),
        }
        for entry, time in zip(weighed(), weighed_as_times(), strict=True)
        for row in result.tornado(time.name).rows[:_MOST_IN_A_TABLE]
        if row.factor > 1.005
    ]


def plot_tornado(tornado: Tornado, ax: Axes | None = None) -> Axes:
    """Draw the numbers of a card that move a measure most, on a logarithmic axis.

    A filled dot is the measure at the number's high, a hollow one at its low; a triangle is 0 or
    infinite.
    """
    rows = [row for row in tornado.rows if row.factor > 1.005][:MOST_BARS]
    if ax is None:
        height = 0.3 * max(len(rows), 1) + 1.1
        sentences = [tornado.summary, *(_in_words(row, tornado) for row in rows)]
        area = (0.29, 0.55 / height, 0.67, 1 - 0.95 / height)
        ax = axes_of_new_figure((7.6, height), area, sentences)
    with style.look():
        ax.set_title(tornado.title.partition(", ")[0])
        if rows:
            _draw_rows(ax, rows, tornado.value, _say(tornado.measure))
            ends = "hollow: the assumption at its low, filled: at its high"
            ax.set_xlabel(f"{_axis(tornado)}; {ends}", fontsize=8)
        else:
            ax.text(0, 0.5, tornado.summary, va="center", color=style.INK)
            ax.axis("off")
    return ax


def _in_words(row: Swing, tornado: Tornado) -> str:
    say = _say(tornado.measure)
    low, high = say(row.result_at_low), say(row.result_at_high)
    unit = f" {tornado.unit}" if say is short else ""
    return f"{row.path}, {range_in_words(row.path, row.low, row.high)}: {low} to {high}{unit}."


def _say(measure: str) -> Callable[[float], str]:
    """Return how to word a measure: time a year, a chance a year, or a number."""
    unit = measure_table.measure(measure).unit
    if unit in _CHANCES:
        return _chance
    return time_per_year_label if unit == FRACTION else short


def _chance(rate: float) -> str:
    """Return how likely something is in a year, or how often it happens: "1 %", "3 times"."""
    if rate > 1.0:
        return f"{short(rate)} times"
    if rate >= _LEAST_PERCENT:
        return f"{significant(100.0 * rate)} %"
    return one_in(rate) if rate > 0 else "never"


def _axis(tornado: Tornado) -> str:
    if tornado.unit in _CHANCES:
        return "chance a year"
    return "time a year" if tornado.unit == FRACTION else tornado.unit


def _draw_rows(ax: Axes, rows: Sequence[Swing], middle: float, say: Callable[[float], str]) -> None:
    ends = [end for row in rows for end in (row.result_at_low, row.result_at_high)]
    finite = [end for end in (*ends, middle) if 0 < end < math.inf]
    left, right = min(finite, default=1.0) / 1.6, max(finite, default=1.0) * 1.6
    ax.set_xscale("log")
    ax.set_xlim(left, right)
    # Few labelled ticks for any span: decades, with 2 and 5 within two decades.
    decades = math.log10(right / left)
    ax.xaxis.set_major_locator(
        LogLocator(subs=(1.0,) if decades > 2 else (1.0, 2.0, 5.0), numticks=7)
    )
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: say(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    if 0 < middle < math.inf:
        ax.axvline(middle, color=style.MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    for y, row in enumerate(rows):
        low, high = (min(max(end, left), right) for end in (row.result_at_low, row.result_at_high))
        look: dict[str, Any] = {"color": style.DURABILITY, "alpha": 0.3, "linewidth": 0}
        ax.barh(y, abs(high - low), left=min(low, high), height=0.5, **look)
        for at, end, face in (
            (low, row.result_at_low, style.PAPER),
            (high, row.result_at_high, style.DURABILITY),
        ):
            mark = "<" if end <= left else (">" if end >= right else "o")
            ax.plot([at], [y], mark, color=face, markeredgecolor=style.DURABILITY, markersize=6,
                    clip_on=False)  # fmt: skip
    ax.set_yticks(
        range(len(rows)),
        [f"{row.path}\n{range_in_words(row.path, row.low, row.high)}" for row in rows],
    )
    ax.tick_params(axis="y", length=0, labelsize=7.5)
    ax.set_ylim(len(rows) - 0.4, -0.6)
