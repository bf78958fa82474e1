"""What nines cost: dollars a month against losses and refused writes, a dot for each setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from advisor.advice.prices import Prices, monthly_cost
from advisor.present.figures import style
from advisor.present.figures.chart import Chart
from advisor.present.labels import interval, once_in_years, short, time_per_year
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.settings_split import BY_SETTINGS

_PANELS: tuple[tuple[str, str, str, Callable[[float], str]], ...] = (
    ("mean_years_to_loss", "Durability: years between losses", style.DURABILITY, once_in_years),
    ("write_unavailability", "Availability: writes refused", style.AVAILABILITY, time_per_year),
)
_NOTE = "Lines: 95 % intervals of what settings decide."


def plot_cost(results: Sequence[Reliability], prices: Prices, *, consumers: float = 1.0) -> Chart:
    """Draw what settings decide of losses and refused writes over their cost a month.

    Parameters
    ----------
    results : sequence of Reliability
        Settings of the same workload, on clusters with known racks.
    prices : Prices
    consumers : float
        How often each record is read.

    Returns
    -------
    Chart
        Its alternative text lists every value.

    Examples
    --------
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
            gridspec_kw={"left": 0.2, "right": 0.96, "top": 0.94, "bottom": 0.13, "hspace": 0.25},
        )  # fmt: skip
        dollars = [monthly_cost(each, prices, consumers=consumers).total_usd for each in results]
        for ax, panel in zip((upper, lower), _PANELS, strict=True):
            _draw(ax, panel, results, dollars)
        upper.tick_params(labelbottom=False)
        lower.set_xlabel(f"USD a month ({prices.source}). {_NOTE}", fontsize=8)
        lower.xaxis.set_major_formatter(FuncFormatter(lambda value, _place: short(value)))
    return Chart(figure, "cost-a-month", _in_words(results, dollars))


def _draw(
    ax: Axes,
    panel: tuple[str, str, str, Callable[[float], str]],
    results: Sequence[Reliability],
    dollars: Sequence[float],
) -> None:
    measure, title, colour, say = panel
    ax.set_yscale("log")
    for result, usd in zip(results, dollars, strict=True):
        value, low, high = _decided(result, measure)
        ax.plot([usd, usd], [low, high], color=colour, alpha=0.35, linewidth=3)
        ax.plot([usd], [value], "o", color=colour, markersize=6)
        ax.annotate(
            f"{result.config.replication_factor}/{result.config.min_insync_replicas}",
            (usd, value), xytext=(7, 0), textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _place: say(value)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.grid(axis="y", color=style.FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.margins(x=0.08)
    ax.set_title(f"{title} (RF / min ISR)", pad=5)


def _decided(result: Reliability, measure: str) -> tuple[float, float, float]:
    """Return what settings decide of a measure, low and high."""
    if measure == "mean_years_to_loss":
        return (result.years_between(BY_SETTINGS), *result.years_between_interval(BY_SETTINGS))
    return (result.by_settings(measure), *result.interval(measure, BY_SETTINGS))


def _in_words(results: Sequence[Reliability], dollars: Sequence[float]) -> str:
    said = []
    for result, usd in zip(results, dollars, strict=True):
        parts = [f"{short(usd)} USD a month"]
        for measure, _, _, say in _PANELS:
            value, low, high = _decided(result, measure)
            ends = f" ({interval(low, high, say)})" if low < high else ""
            what = "a loss " if measure == "mean_years_to_loss" else "writes refused "
            parts.append(f"{what}{say(value)}{ends}")
        config = result.config
        name = f"RF {config.replication_factor}, min ISR {config.min_insync_replicas}"
        said.append(f"{name}: {', '.join(parts)}.")
    return " ".join(["Cost against losses and refused writes, as settings decide.", *said])
