"""To be described."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from advisor.formatting import percent
from advisor.present.figures import style
from advisor.present.outcome import GIVEN_UP, LOST, STALLED, Outcome, outcomes
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Sampled

_COLOURS = {
    LOST: style.DURABILITY,
    "write_unavailability": style.AVAILABILITY,
    "read_unavailability": style.GREY,
    STALLED: style.AVAILABILITY,
    GIVEN_UP: style.AVAILABILITY,
}


def draw_outcomes(ax: Axes, told: Sequence[Outcome]) -> None:
    """Draw the measures below each other: a line of words, then a bar for each cause."""
    y = 0.0
    for outcome in told:
        colour = _COLOURS[outcome.measure]
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
