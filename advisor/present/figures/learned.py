"""What a cluster's history did to a card: the range of each number before, and now."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from advisor.formatting import significant
from advisor.learning import Learned
from advisor.learning.fit import NumberRow
from advisor.present.card_text import range_in_words
from advisor.present.figures import style
from advisor.present.figures.chart import shown_figure

MOST_NUMBERS = 12


def plot_learned(learned: Learned, ax: Axes | None = None) -> Axes:
    """Draw the range of each number that was learned, before and now; those that moved most.

    All of them on one logarithmic axis, as multiples of what the card said before.

    learned: with at least one number that was learned.
    ax: axes to draw on. Default: those of a new figure.
    Returns the axes drawn on.
    Raises MissingExtraError if, on import, matplotlib (extra "report") is not installed.

    >>> import advisor
    >>> learned = advisor.learn(
    ...     {"brokers": 12, "years": 3, "events": {"broker.power": 4}}, prior="three_az_cloud"
    ... )
    >>> advisor.present.plot_learned(learned).get_yticklabels()[0].get_text()
    'broker.power.per_year'
    """
    rows = sorted(learned.numbers, key=lambda row: -row.moved)[:MOST_NUMBERS]
    figure, height = None, 0.42 * len(rows) + 1.1
    if ax is None:
        figure = shown_figure(7.6, height)
        figure.describe("What was learned.", *map(_in_words, rows))
    with style.look():
        if figure is not None:
            ax = figure.add_axes((0.3, 0.62 / height, 0.66, 1 - 1.0 / height))
        assert ax is not None
        _draw(ax, rows)
    return ax


def _in_words(row: NumberRow) -> str:
    before, now = (range_in_words(row.number, r.low, r.high) for r in (row.prior, row.posterior))
    return f"{row.number}: {before} before, {now} with {row.evidence}."


def _draw(ax: Axes, rows: list[NumberRow]) -> None:
    for place, row in enumerate(rows):
        said = row.prior.value
        for shift, interval, colour, label in (
            (-0.14, row.prior, style.MUTED, "the card"),
            (0.14, row.posterior, style.DURABILITY, "with what was counted"),
        ):
            low, value, high = (end / said for end in (interval.low, interval.value, interval.high))
            y = place + shift
            ax.plot([low, high], [y, y], color=colour, lw=2.2, label="" if place else label)
            ax.plot([value], [y], "o", color=colour, ms=5)
    ax.axvline(1.0, color=style.FAINT, lw=1.0, zorder=0)
    ax.set_xscale("log")
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), [row.number for row in rows])
    ax.xaxis.set_major_locator(LogLocator(10.0, (1.0,)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda times, _: f"{significant(times)}x"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("times what the card said before (value, 95 % range)", fontsize=8)
    ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=8)
