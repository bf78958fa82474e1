"""One setting among similar ones, evaluated and rendered as an HTML fragment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape

from advisor.cluster.model import Cluster
from advisor.errors import AdvisorError, ConfigError, NotComputedError
from advisor.present.figures import style
from advisor.present.figures.curves import plot_curves
from advisor.present.outcome import outcomes, point_of
from advisor.present.points import Point
from advisor.present.setting_text import notes, rack_words, tolerance_words, verdict
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

MOST_REPLICAS, SMALL_REPLICAS = 5, 3
# In JupyterLab the charts follow its theme; elsewhere they keep their own colours.
_THEME = (
    "--advisor-ink: var(--jp-content-font-color1, #222222); "
    "--advisor-muted: var(--jp-content-font-color2, #6b6b6b); "
    "--advisor-faint: var(--jp-border-color2, #d9d9d9); "
    "--advisor-paper: var(--jp-layout-color0, #fefefe)"
)


@dataclass(frozen=True)
class Neighbourhood:
    """A cluster, a card and a load, with a cache of the settings evaluated for them."""

    cluster: Cluster
    model: FailureModel
    load: Workload
    _results: dict[Config, Reliability] = field(default_factory=dict, compare=False, repr=False)
    _curves: dict[Config, tuple[Point, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def most_replicas(self) -> int:
        """The largest replication factor offered."""
        return min(len(self.cluster.brokers), MOST_REPLICAS)

    def result(self, config: Config) -> Reliability:
        """Return `evaluate` of a setting, cached.

        Raises
        ------
        AdvisorError
            If the setting cannot be evaluated on this cluster.
        """
        if config not in self._results:
            self._results[config] = evaluate(self.cluster, config, self.model, self.load)
        return self._results[config]

    def curve(self, config: Config) -> tuple[Point, ...]:
        """Return the points to draw for a setting: other replication factors and min ISRs.

        Markov chains grow steeply with the replication factor: above `SMALL_REPLICAS`, only
        settings already evaluated are included.
        """
        key = config.changed(replication_factor=1, min_insync_replicas=1)
        if key not in self._curves:
            self._curves[key] = tuple(self._neighbours(config))
        cached = {
            (c.replication_factor, c.min_insync_replicas): point_of(result, intervals=False)
            for c, result in self._results.items()
            if (c.replication_factor or 0) > SMALL_REPLICAS
            and (c.min_insync_replicas or 0) <= (c.replication_factor or 0)
            and c.changed(replication_factor=1, min_insync_replicas=1) == key
        }
        return (*self._curves[key], *(cached[place] for place in sorted(cached, key=str)))

    def is_slow(self, config: Config) -> bool:
        """Return whether a setting takes seconds: a large chain that is not cached."""
        return (config.replication_factor or 0) > SMALL_REPLICAS and config not in self._results

    def _neighbours(self, config: Config) -> Iterator[Point]:
        for factor in range(1, min(self.most_replicas, SMALL_REPLICAS) + 1):
            for least in range(1, factor + 1):
                other = config.changed(replication_factor=factor, min_insync_replicas=least)
                # The curve ends at the limits of the exact model.
                with suppress(NotComputedError):
                    yield point_of(self.result(other), intervals=False)


def setting_html(around: Neighbourhood, config: Config, name: str = "explorer") -> str:
    """Return verdict, chart, tolerated failures and measures of one setting as HTML.

    Parameters
    ----------
    around : Neighbourhood
        Cluster, card and load.
    config : Config
        The setting; a min ISR above the replication factor is drawn as Kafka treats it.
    name : str
        Id of the chart, unique in the page.

    Raises
    ------
    AdvisorError
        If the setting cannot be evaluated on this cluster.
    """
    result = around.result(config)
    point = point_of(result, intervals=False)
    figure = plot_curves(
        around.curve(config), [(style.CHOSEN, point)], width_inches=6.6, height_inches=4.6
    )
    chart = style.svg(figure, name, f"Durability and write availability; {point.name}")
    return (
        f'<div class="advisor-explorer" style="{_THEME}">'
        f'<p role="status" style="font-size: 110%"><strong>{escape(verdict(result))}</strong></p>'
        f"{''.join(f'<p>{escape(note)}</p>' for note in notes(config))}"
        f"{chart}{_tolerance_html(result)}{_measures_html(result)}</div>"
    )


def refusal_html(error: AdvisorError) -> str:
    """Return why Kafka refuses a setting, or why it cannot be computed; no chart."""
    refused = isinstance(error, ConfigError)
    heading = "Kafka refuses this:" if refused else "This cannot be worked out:"
    return (
        f'<div class="advisor-explorer"><p role="status"><strong>{heading}</strong> '
        f"{escape(str(error))}</p></div>"
    )


def waiting_html(config: Config) -> str:
    """Return the message shown while a large chain is solved."""
    return (
        f'<div class="advisor-explorer"><p role="status">Replication factor '
        f"{config.replication_factor} is worked out for the first time; this takes some "
        "seconds.</p></div>"
    )


def _tolerance_html(result: Reliability) -> str:
    rows = "".join(
        f'<tr><th scope="row" style="text-align: left">{escape(words)}</th><td>{number}</td></tr>'
        for words, number in tolerance_words(result)
    )
    return (
        f"<table><caption>Brokers that may be lost</caption><tbody>{rows}</tbody></table>"
        f"<p>{escape(rack_words(result.cluster, result.config))}</p>"
    )


def _measures_html(result: Reliability) -> str:
    found = outcomes(result, intervals=False)
    split = any(outcome.parts[1] for outcome in found)
    rows = [
        f'<tr><th scope="row" style="text-align: left">{escape(outcome.title)}</th>'
        f"<td>{escape(outcome.said)}</td>"
        + "".join(f"<td>{escape(part)}</td>" for part in outcome.parts if split)
        + f"<td>{escape(outcome.shares[0][0]) if outcome.shares else ''}</td></tr>"
        for outcome in found
    ]
    columns = '<th scope="col">settings decide</th><th scope="col">no setting changes</th>'
    return (
        '<table><thead><tr><th scope="col">measure</th><th scope="col">value</th>'
        f"{columns if split else ''}"
        '<th scope="col">mostly from</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
