"""The chart of one result: each measure in words, and bars for its causes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter

from advisor.formatting import percent, significant
from advisor.present.figures import style
from advisor.present.figures.chart import axes_of_new_figure, shown_figure
from advisor.present.labels import on_axis, short
from advisor.present.outcome import LOST, Outcome, outcomes
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.sampler.intervals import loss_chance

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
    """Draw the measures of one result as text, and their causes as bars."""
    measures = outcomes(result)
    if ax is None:
        height = 0.24 * sum(2.4 + len(o.shares) for o in measures) + 0.3
        ax = axes_of_new_figure((7.2, height), (0.02, 0.02, 0.96, 0.96), map(_in_words, measures))
    with style.look():
        draw_outcomes(ax, measures)
    return ax


def _in_words(outcome: Outcome) -> str:
    shares = ", ".join(f"{percent(share)} {words}" for words, share in outcome.shares)
    causes = f" Causes: {shares}." if shares else ""
    return f"{outcome.title}: {outcome.said}.{causes}"


# The interval is drawn at no more points than this, evenly on a logarithmic scale.
_MOST_POINTS = 120
_TIMES = (
    (1e-3, "1 ms"),
    (1e-2, "10 ms"),
    (0.1, "0.1 s"),
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (3_600.0, "1 h"),
    (36_000.0, "10 h"),
    (360_000.0, "4 days"),
    (3_600_000.0, "42 days"),
    (31_536_000.0, "1 year"),
)


def plot_sampled(
    result: Sampled, ax: Axes | Sequence[Axes] | None = None, exact: Reliability | None = None
) -> Axes | tuple[Axes, Axes]:
    """Draw how the loss interval narrows with the years, and how long write outages last.

    On one given axes it draws the measures and their causes instead.
    """
    if isinstance(ax, Axes):
        return plot_reliability(result, ax)
    left, right = _two_axes(result, exact) if ax is None else ax
    with style.look():
        _draw_narrowing(left, result, exact)
        _draw_outages(right, result)
    return left, right


def _two_axes(result: Sampled, exact: Reliability | None) -> tuple[Axes, Axes]:
    """Return the axes of a new figure with its alternative text."""
    figure = shown_figure(9.0, 3.4)
    figure.describe(*_loss_in_words(result, exact), *_outages_in_words(result))
    with style.look():
        left, right = figure.subplots(1, 2)
    figure.subplots_adjust(left=0.13, right=0.985, top=0.9, bottom=0.15, wspace=0.2)
    return left, right


def narrowing(result: Sampled) -> list[Estimate]:
    """Return the loss probability after more and more of the blocks, in their order."""
    last = len(result.history) - 1
    places = {
        round(math.exp(math.log(last + 1) * i / _MOST_POINTS)) - 1 for i in range(_MOST_POINTS)
    }
    per_block = result.years / len(result.history)
    weighting = result.clumping, result.largest_weight, result.failure_rates
    return [
        loss_chance(result.history[: place + 1], round((place + 1) * per_block), *weighting)
        for place in sorted({*places, last})
    ]


def longer_than(result: Sampled, seconds: float) -> float:
    """Return the share of write outages that last longer; even within a bin, on a log scale."""
    total, longer = math.fsum(number for *_, number in result.outages), 0.0
    for low, high, number in result.outages:
        share_of_bin = math.log(high / seconds) / math.log(high / low)
        longer += number * min(max(share_of_bin, 0.0), 1.0)
    return longer / total


def _draw_narrowing(ax: Axes, result: Sampled, exact: Reliability | None) -> None:
    estimates = narrowing(result)
    years = [estimate.n for estimate in estimates]
    seen = [estimate for estimate in estimates if estimate.seen]
    truth = exact.loss_probability_per_year if exact is not None else 0.0
    ends = [estimate.high for estimate in estimates] + [estimate.low for estimate in seen]
    ends += [truth] if truth > 0.0 else []
    ax.set_xscale("log")
    ax.set_title("Data loss: 95 % interval", pad=5)
    ax.set_xlabel("years simulated")
    if max(ends) > 0.0:
        ax.set_ylim(min(ends) / 1.3, min(max(ends) * 1.3, 1.0))
        style.log_scale(ax, on_axis)
        bottom = ax.get_ylim()[0]
        lows = [estimate.low if estimate.seen else bottom for estimate in estimates]
        highs = [estimate.high for estimate in estimates]
        ax.fill_between(years, lows, highs, color=style.DURABILITY, alpha=0.2, linewidth=0)
        ax.plot(years, highs, color=style.DURABILITY, linewidth=0.8)
        ax.plot([e.n for e in seen], [e.low for e in seen], color=style.DURABILITY, linewidth=0.8)
        ax.plot([e.n for e in seen], [e.value for e in seen], color=style.DURABILITY, linewidth=1.6)
    words = "sampled" if seen else "no loss seen: at most this"
    _say(ax, 0.98, 0.93, words, style.DURABILITY)
    if truth > 0.0:
        ax.axhline(truth, color=style.INK, linewidth=1.2, linestyle=(0, (4, 2)))
        _say(ax, 0.98, 0.86, f"dashed: exact, {on_axis(truth)}", style.INK)
    subs = (1.0, 2.0, 5.0) if years[-1] < 100 * years[0] else (1.0,)
    ax.xaxis.set_major_locator(LogLocator(subs=subs, numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: short(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlim(years[0] / 1.05 if len(years) > 1 else years[0] / 2, years[-1] * 1.05)


def _draw_outages(ax: Axes, result: Sampled) -> None:
    ax.set_title("Share of write outages that last longer", pad=5)
    if not result.outages:
        ax.axis("off")
        ax.text(0.02, 0.5, "no write outage seen", transform=ax.transAxes, color=style.INK)
        return
    ends = sorted({end for low, high, _ in result.outages for end in (low, high)})
    shares = [longer_than(result, end) for end in ends]
    timeout = result.config.delivery_timeout_ms
    ax.set_xscale("log")
    ax.set_yscale("log")
    points = [(end, share) for end, share in zip(ends, shares, strict=True) if share > 0.0]
    ax.plot(*zip(*points, strict=True), color=style.AVAILABILITY, linewidth=1.6)
    shortest, longest = points[0][0] / 1.5, ends[-1] * 1.5
    bottom = points[-1][1] / 2
    ax.set_ylim(bottom, 1.6)
    if timeout:
        limit = timeout / 1000.0
        shortest, longest = min(shortest, limit / 2), max(longest, limit * 2)
        ax.axvline(limit, color=style.MUTED, linewidth=1.2, linestyle=(0, (4, 2)))
        middle = math.sqrt(shortest * longest)
        side, gap = ("left", 1.08) if limit < middle else ("right", 1 / 1.08)
        words = f"delivery.timeout.ms={timeout}\n{_percent(longer_than(result, limit))} last longer"
        ax.text(limit * gap, 1.35, words, ha=side, va="top", fontsize=8, color=style.INK)
    ax.set_xlim(shortest, longest)
    ticks = [(at, words) for at, words in _TIMES if shortest <= at <= longest]
    ax.xaxis.set_major_locator(FixedLocator([at for at, _ in ticks]))
    ax.xaxis.set_major_formatter(FixedFormatter([words for _, words in ticks]))
    ax.xaxis.set_minor_locator(FixedLocator([]))
    ax.yaxis.set_major_locator(LogLocator(numticks=6))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: _percent(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel("length of the outage")
    ax.grid(axis="y", color=style.FAINT, linewidth=0.6)
    ax.set_axisbelow(True)


def _say(ax: Axes, x: float, y: float, words: str, colour: str) -> None:
    ax.text(x, y, words, ha="right", color=colour, fontsize=8, transform=ax.transAxes)


def _percent(share: float) -> str:
    return f"{significant(100 * share)} %"


def _loss_in_words(result: Sampled, exact: Reliability | None) -> list[str]:
    first, last = narrowing(result)[0], narrowing(result)[-1]
    sentences = [
        f"Chance of data loss in a year, 95 % interval: {_interval(first)} after {first.n:,} years "
        f"simulated, {_interval(last)} after {last.n:,}."
    ]
    if exact is not None:
        sentences.append(f"Exact: {on_axis(exact.loss_probability_per_year)}.")
    return sentences


def _interval(estimate: Estimate) -> str:
    if estimate.seen:
        return f"{on_axis(estimate.low)} to {on_axis(estimate.high)}"
    return f"at most {on_axis(estimate.high)}"


def _outages_in_words(result: Sampled) -> list[str]:
    if not result.outages:
        return ["No write outage was seen."]
    number = math.fsum(number for *_, number in result.outages)
    shares = ", ".join(
        f"{_percent(longer_than(result, seconds))} longer than {words}"
        for seconds, words in _TIMES
        if 0.0 < longer_than(result, seconds) < 1.0
    )
    timeout = result.config.delivery_timeout_ms
    limit = f", {_percent(longer_than(result, timeout / 1000.0))} longer than " if timeout else ""
    limit += f"delivery.timeout.ms={timeout}" if timeout else ""
    return [f"Of {number:,.0f} write outages of partitions: {shares}{limit}."]
