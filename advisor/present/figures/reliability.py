"""The chart of one result: each measure in words, and bars for its causes."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes

from advisor.formatting import percent
from advisor.present.figures import style
from advisor.present.figures.chart import shown_figure
from advisor.present.outcome import LOST, Outcome, outcomes
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled

_COLOURS = {LOST: style.DURABILITY, "read_unavailability": style.GREY}
"""Of all others: `style.AVAILABILITY`."""


def draw_outcomes(ax: Axes, measures: Sequence[Outcome]) -> None:
    """Draw the measures below each other: a line of text, then a bar for each cause."""
    y = 0.0
    for outcome in measures:
        colour = _COLOURS.get(outcome.measure, style.AVAILABILITY)
        ax.text(0, y, outcome.title, fontweight="bold", va="center", color=style.INK)
        ax.text(0, y + 0.85, outcome.said, va="center", color=style.INK, fontsize=8)
        y += 1.8
        for words, share in outcome.shares:
            ax.barh(y, share, left=0, height=0.62, color=colour, alpha=0.75)
            ax.text(share + 0.01, y, f"{percent(share)} {words}", va="center", fontsize=8)
            y += 0.85
        y += 0.75
    ax.set_xlim(0, 1.6)
    ax.set_ylim(y - 0.6, -0.7)
    ax.axis("off")


def plot_reliability(result: Reliability | Sampled, ax: Axes | None = None) -> Axes:
    """Draw the measures of one result as text, and their causes as bars.

    result: what `advisor.evaluate` or `advisor.simulate` returned.
    ax: axes to draw on. Default: those of a new figure.
    Returns the axes drawn on.
    Raises MissingExtraError if, on import, matplotlib (extra "report") is not installed.

    >>> import advisor
    >>> from matplotlib.figure import Figure
    >>> cluster = advisor.Cluster.uniform(brokers=2, racks=None)
    >>> config = advisor.Config(replication_factor=2, min_insync_replicas=1, acks="all")
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> result = advisor.evaluate(cluster, config, model)
    >>> axes = advisor.present.plot_reliability(result, Figure().add_subplot())
    >>> axes.texts[0].get_text()
    'Acknowledged records lost'
    """
    measures = outcomes(result)
    if ax is None:
        lines = sum(2.4 + len(o.shares) for o in measures)
        figure = shown_figure(7.2, 0.24 * lines + 0.3)
        figure.describe(*map(_in_words, measures))
        ax = figure.add_axes((0.02, 0.02, 0.96, 0.96))
    with style.look():
        draw_outcomes(ax, measures)
    return ax


def _in_words(outcome: Outcome) -> str:
    shares = ", ".join(f"{percent(share)} {words}" for words, share in outcome.shares)
    causes = f" Causes: {shares}." if shares else ""
    return f"{outcome.title}: {outcome.said}.{causes}"
