"""What a cluster's history did to a card: the range of each number before, and now."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.ticker import FixedFormatter, FixedLocator, FuncFormatter, LogLocator, NullFormatter

from advisor.formatting import counted, significant
from advisor.learning import Learned
from advisor.learning.evidence import ClusterHistory, Outage
from advisor.learning.fit import NumberRow
from advisor.learning.metric_causes import OF_BROKERS
from advisor.present.card_text import range_in_words
from advisor.present.figures import style
from advisor.present.figures.chart import ShownFigure, axes_of_new_figure, shown_figure
from advisor.reliability.failures.mechanisms import Scope, table, words

MOST_NUMBERS = 12


def plot_learned(learned: Learned, ax: Axes | None = None) -> Axes:
    """Draw the range of each number that was learned, before and now, on one logarithmic axis."""
    rows = sorted(learned.numbers, key=lambda row: -row.moved)[:MOST_NUMBERS]
    if ax is None:
        height, sentences = 0.42 * len(rows) + 1.1, ["What was learned.", *map(_in_words, rows)]
        area = (0.3, 0.62 / height, 0.66, 1 - 1.0 / height)
        ax = axes_of_new_figure((7.6, height), area, sentences)
    with style.look():
        _draw_ranges(ax, rows)
    return ax


def _in_words(row: NumberRow) -> str:
    before, now = (range_in_words(row.number, r.low, r.high) for r in (row.prior, row.posterior))
    return f"{row.number}: {before} before, {now} with {row.evidence}."


def _draw_ranges(ax: Axes, rows: list[NumberRow]) -> None:
    for place, row in enumerate(rows):
        prior = row.prior.value
        for shift, interval, colour, label in (
            (-0.14, row.prior, style.MUTED, "the card"),
            (0.14, row.posterior, style.DURABILITY, "with what was counted"),
        ):
            low, value, high = (
                end / prior for end in (interval.low, interval.value, interval.high)
            )
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


_MARKERS = "osD^vP*Xhdp<>"
_COLOURS = (style.DURABILITY, style.BEST, style.AVAILABILITY, style.TODAY, style.INK)
_ANY = "a broker"
_MOST_ROWS = 40
_ROW_INCHES, _ROOM_INCHES = 0.24, 1.5


def plot_timeline(learned: Learned) -> ShownFigure:
    """Draw the outages of each broker over time; grey is what was not watched."""
    histories = [history for history in learned.histories if history.outages]
    rows = [_broker_rows(history.outages) for history in histories]
    mechanisms = list(dict.fromkeys(outage.mechanism for outage in learned.outages))
    inches = [_ROOM_INCHES + _ROW_INCHES * len(names) for names in rows]
    figure = shown_figure(7.6, sum(inches))
    with style.look():
        grid = figure.subplots(
            len(histories), 1, squeeze=False, gridspec_kw={"height_ratios": inches}
        )
        for ax, history, names in zip(grid[:, 0], histories, rows, strict=True):
            _draw_outages(ax, history, names, mechanisms)
            if len(histories) > 1:
                ax.set_title(history.name, loc="left")
        figure.subplots_adjust(left=0.12, right=0.97, top=1 - 0.35 / figure.get_figheight())
        figure.subplots_adjust(bottom=0.75 / figure.get_figheight(), hspace=0.5)
        handles, labels = _outage_key(grid[-1, 0], mechanisms)
        figure.legend(handles, labels, loc="lower left", ncols=3, frameon=False, fontsize=8)
    figure.describe(*_outages_in_words(learned, mechanisms))
    return figure


def _broker_rows(outages: Sequence[Outage]) -> list[str]:
    """Brokers that have a row: those that were struck, and one for unknown ones."""
    struck = {broker for outage in outages for broker in outage.brokers}
    brokers = sorted(struck, key=lambda broker: (isinstance(broker, str), broker))
    of_unknown = any(_is_of_broker(outage) and not outage.brokers for outage in outages)
    names = [*map(str, brokers[:_MOST_ROWS]), *([_ANY] if of_unknown else [])]
    return names or [_ANY]


def _is_of_broker(outage: Outage) -> bool:
    if outage.mechanism not in table():
        return outage.mechanism in OF_BROKERS
    return table()[outage.mechanism].scope is Scope.BROKER


def _draw_outages(
    ax: Axes, history: ClusterHistory, names: Sequence[str], mechanisms: Sequence[str]
) -> None:
    for gap in history.gaps:
        if gap.broker in names:
            place = names.index(gap.broker)
            ends = [_number(gap.start), _number(gap.end)]
            ax.plot(ends, [place, place], color=style.FAINT, linewidth=7.0, solid_capstyle="butt")
    last = history.until or max(outage.end or outage.start for outage in history.outages)
    for outage in history.outages:
        marker, colour = _look(mechanisms, outage.mechanism)
        start, end = _number(outage.start), _number(outage.end or last)
        if not _is_of_broker(outage):
            ax.axvspan(start, end, color=colour, alpha=0.25, linewidth=1.5)
        struck = [str(broker) for broker in outage.brokers] or [_ANY]
        for name in struck:
            if name in names:
                place = names.index(name)
                ax.plot([start, end], [place, place], color=colour, linewidth=3.0)
                ax.plot(start, place, marker=marker, color=colour, markersize=6)
    since = history.since or min(outage.start for outage in history.outages)
    ax.set_xlim(_number(since), max(_number(last), _number(since) + 1e-3))
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.yaxis.set_major_locator(FixedLocator(list(range(len(names)))))
    ax.yaxis.set_major_formatter(FixedFormatter(list(names)))
    ax.set_ylabel("broker")
    locator = AutoDateLocator()  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    ax.grid(axis="y", color=style.FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(axis="y", length=0)


def _number(moment: datetime) -> float:
    # matplotlib has no types for its dates.
    return float(date2num(moment))  # type: ignore[no-untyped-call]


def _look(mechanisms: Sequence[str], name: str) -> tuple[str, str]:
    place = mechanisms.index(name)
    return _MARKERS[place % len(_MARKERS)], _COLOURS[place % len(_COLOURS)]


def _outage_key(ax: Axes, mechanisms: Sequence[str]) -> tuple[list[Artist], list[str]]:
    handles: list[Artist] = []
    for name in mechanisms:
        marker, colour = _look(mechanisms, name)
        handles += ax.plot([], [], marker=marker, color=colour, linestyle="none")
    return handles, [*map(words, mechanisms)]


def _outages_in_words(learned: Learned, mechanisms: Sequence[str]) -> list[str]:
    counts = dict.fromkeys(mechanisms, 0)
    for outage in learned.outages:
        counts[outage.mechanism] += 1
    counts_in_words = [f"{words(name)} {number}" for name, number in counts.items()]
    return [f"{counted(len(learned.outages), 'outage')} over time: {', '.join(counts_in_words)}."]
