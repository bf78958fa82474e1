"""The cost of nines: dollars a month against losses and refused writes, a dot per setting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from advisor.advice.prices import Prices, monthly_cost
from advisor.formatting import years
from advisor.present.figures import style
from advisor.present.figures.chart import Chart
from advisor.present.labels import bracketed_interval, once_in_years, short, time_per_year_label
from advisor.reliability import measure_table
from advisor.reliability.results.reliability import Reliability

_LOSS, _REFUSED = (entry.name for entry in measure_table.weighed_as_times())
# A tick says where it is, a value how often something happens.
_TICKS: dict[str, Callable[[float], str]] = {_LOSS: years, _REFUSED: time_per_year_label}
_PANELS: tuple[tuple[str, str, str, Callable[[float], str]], ...] = (
    (_LOSS, "Durability: time between lost records", style.DURABILITY, once_in_years),
    (_REFUSED, "Availability: writes refused", style.AVAILABILITY, time_per_year_label),
)
_SAME = 1.15  # values closer than this factor share a label
# A label nearer to the dashed line than this factor is moved up by this many points.
_NEAR, _ABOVE = 1.5, 7.0


def plot_cost(results: Sequence[Reliability], prices: Prices) -> Chart:
    """Draw losses and refused writes over their cost a month, a dot for each setting.

    Up is better in both panels. Settings of the same cost stand above one another. Lines are 95 %
    intervals. The dashed line is the best floor of the results (`beyond_settings`): no setting
    with as many replicas is better.

    results: settings of the same workload, on clusters with known racks.
    The chart's alternative text lists every value.

    >>> import advisor
    >>> from advisor.advice.prices import load_prices
    >>> from advisor.present import plot_cost
    >>> cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}}
    ... )
    >>> config = advisor.Config(replication_factor=2, min_insync_replicas=1, acks="all")
    >>> plot_cost([advisor.evaluate(cluster, config, model)], load_prices("gcp-us")).name
    'cost-a-month'
    """
    with style.look():
        figure = Figure(figsize=(6.8, 5.2))
        upper, lower = figure.subplots(
            2, 1, sharex=True,
            gridspec_kw={"left": 0.23, "right": 0.96, "top": 0.94, "bottom": 0.13, "hspace": 0.25},
        )  # fmt: skip
        dollars = [monthly_cost(setting, prices).total_usd for setting in results]
        for ax, panel in zip((upper, lower), _PANELS, strict=True):
            _draw(ax, panel, results, dollars)
        upper.tick_params(labelbottom=False)
        lower.set_xlabel(f"USD a month ({prices.source})", fontsize=8)
        lower.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: short(value)))
    return Chart(figure, "cost-a-month", _in_words(results, dollars))


def _draw(
    ax: Axes,
    panel: tuple[str, str, str, Callable[[float], str]],
    results: Sequence[Reliability],
    dollars: list[float],
) -> None:
    measure, title, colour, _ = panel
    labels: list[tuple[float, float, str]] = []
    floor = _floor(results, measure)
    for result, usd in zip(results, dollars, strict=True):
        value, low, high = _measured(result, measure)
        ax.plot([usd, usd], [low, high], color=colour, alpha=0.3, linewidth=3)
        ax.plot([usd], [value], "o", color=colour, markersize=6)
        name = f"{result.config.replication_factor}/{result.config.min_insync_replicas}"
        is_near_floor = max(value, floor) < _NEAR * min(value, floor)
        _add_label(labels, usd, floor if is_near_floor else value, name)
    # On a ground of their own, so that no line crosses a name.
    ground = {"facecolor": style.PAPER, "edgecolor": "none", "pad": 1.0}
    look: dict[str, Any] = {"textcoords": "offset points", "va": "center", "bbox": ground}
    for usd, value, names in labels:
        # On the free side of the dashed line, not across it.
        up = _ABOVE if value == floor else 0.0
        ax.annotate(names, (usd, value), xytext=(9, up), fontsize=8, **look)
    if 0.0 < floor < math.inf:
        ax.axhline(floor, color=style.MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    style.log_scale(ax, _TICKS[measure])
    if measure == _REFUSED:
        ax.invert_yaxis()
    ax.margins(x=0.25)
    ax.set_title(f"{title} (RF / min ISR)", pad=5)


def _add_label(labels: list[tuple[float, float, str]], usd: float, value: float, name: str) -> None:
    """Add a name to the label of a dot in the same place, or as a label of its own."""
    for place, (other_usd, other, names) in enumerate(labels):
        if usd == other_usd and max(value, other) < _SAME * min(value, other):
            labels[place] = (usd, other, f"{names}, {name}")
            return
    labels.append((usd, value, name))


def _measured(result: Reliability, measure: str) -> tuple[float, float, float]:
    return (float(getattr(result, measure)), *result.interval(measure))


def _floor(results: Sequence[Reliability], measure: str) -> float:
    """Return the best that any setting with as many replicas as one of the results can reach."""
    if measure == _LOSS:
        return max(result.beyond_settings(measure) for result in results)
    return min(result.beyond_settings(measure) for result in results)


def _in_words(results: Sequence[Reliability], dollars: Sequence[float]) -> str:
    sentences = []
    for result, usd in zip(results, dollars, strict=True):
        clauses = [f"{short(usd)} USD a month"]
        for measure, _, _, say in _PANELS:
            value, low, high = _measured(result, measure)
            measured = "a loss " if measure == _LOSS else "writes refused "
            clauses.append(f"{measured}{say(value)}{bracketed_interval(low, high, say)}")
        config = result.config
        name = f"RF {config.replication_factor}, min ISR {config.min_insync_replicas}"
        sentences.append(f"{name}: {', '.join(clauses)}.")
    return " ".join(["Cost a month against losses and refused writes.", *sentences])
