"""A measure over one number that varies: a curve for each setting, with its 95 % interval."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from advisor.errors import InputError
from advisor.formatting import years
from advisor.present.figures import style
from advisor.present.figures.chart import Chart
from advisor.present.labels import (
    bracketed_interval,
    once_in_years,
    per_year,
    short,
    time_per_year_label,
)
from advisor.reliability import measure_table
from advisor.reliability.measure_table import FRACTION, PROBABILITY, YEARS, Measure
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.sensitivity import compute_intervals

_COLOURS = (style.DURABILITY, style.BEST, style.AVAILABILITY, style.TODAY, style.INK)
_MARKERS = "osD^v"
_TITLES = {FRACTION: "{}, time a year", PROBABILITY: "{}, chance a year", YEARS: "{}"}
"""By unit; of numbers "{} a year"."""


def plot_sweep(
    number: str,
    values: Mapping[str, float],
    lines: Mapping[str, Sequence[Reliability]],
    measure: str,
) -> Chart:
    """Draw a measure over one number that varies, a curve with 95 % intervals for each setting.

    number: what varies, with its unit: the label of the horizontal axis.
    values: its values, ascending and positive, each by the words that stand below it. The axis is
        logarithmic.
    lines: for each curve its name and a result for each value.
    measure: its name, such as ``mean_years_to_loss``.
    The chart's alternative text lists every value.
    Raises InputError if there is no such measure, or a curve does not have a result for each value.

    >>> import advisor
    >>> from advisor.present import plot_sweep
    >>> cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    >>> hours = {"6 h": 6.0, "12 h": 12.0}
    >>> def found(each):
    ...     card = {"broker": {"destroyed": {"per_year": 1.0, "hours": each}}}
    ...     config = advisor.Config(replication_factor=2, min_insync_replicas=1, acks="all")
    ...     return advisor.evaluate(cluster, config, advisor.FailureModel.from_dict(card))
    >>> results = [found(each) for each in hours.values()]
    >>> plot_sweep("replacement", hours, {"RF 2": results}, "mean_years_to_loss").name
    'mean-years-to-loss-replacement'
    """
    entry = measure_table.measure(measure)
    for name, results in lines.items():
        if len(results) != len(values):
            raise InputError(
                f"the curve {name!r} has {len(results)} results for {len(values)} values"
            )
    say = _say(entry)
    compute_intervals(result for results in lines.values() for result in results)
    with style.look():
        figure = Figure(figsize=(6.8, 3.1 + 0.17 * len(lines)))
        head = style.head_inches(len(lines)) / figure.get_figheight()
        ax = figure.add_axes((0.23, 0.17, 0.74, 1 - 0.17 - head))
        title = _TITLES.get(entry.unit, "{} a year").format(entry.title)
        sentences = [f"{title}, by {number}."]
        for index, (name, results) in enumerate(lines.items()):
            drawn = [(float(entry.of(r)), *r.interval(entry.name)) for r in results]
            _curve(ax, index, list(values.values()), drawn)
            sentences.append(_in_words(name, values, drawn, say))
        ax.set_title(title, pad=6)
        _dress(ax, number, values, years if entry.unit == YEARS else say)
        entries = [(_MARKERS[index], _COLOURS[index], name) for index, name in enumerate(lines)]
        style.key(figure, 0.23, entries)
    words = " ".join(sentences)
    return Chart(figure, re.sub(r"[^a-z0-9]+", "-", f"{measure}-{number}".lower()), words)


Drawn = list[tuple[float, float, float]]


def _curve(ax: Axes, index: int, values: Sequence[float], drawn: Drawn) -> None:
    middle, low, high = (list(column) for column in zip(*drawn, strict=True))
    colour = _COLOURS[index]
    ax.fill_between(values, low, high, color=colour, alpha=0.12, linewidth=0)
    ax.plot(values, middle, color=colour, marker=_MARKERS[index], markersize=5, linewidth=1.6)


def _dress(
    ax: Axes, number: str, values: Mapping[str, float], tick: Callable[[float], str]
) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(list(values.values())))
    ax.xaxis.set_minor_locator(NullLocator())
    names = list(values)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda _value, place: names[place or 0]))
    style.log_scale(ax, tick)
    ax.set_xlabel(number)


def _say(entry: Measure) -> Callable[[float], str]:
    if entry.unit == FRACTION:
        return time_per_year_label
    if entry.unit == YEARS:
        return once_in_years
    return per_year if entry.unit == PROBABILITY else short


def _in_words(
    name: str, values: Mapping[str, float], drawn: Drawn, say: Callable[[float], str]
) -> str:
    points = (
        f"{value}: {say(middle)}{bracketed_interval(low, high, say)}"
        for value, (middle, low, high) in zip(values, drawn, strict=True)
    )
    return f"{name}: {'; '.join(points)}."
