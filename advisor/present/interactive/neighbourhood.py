"""One setting among its neighbours: evaluated, drawn and put in words, as a piece of HTML."""

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
# Inside JupyterLab the charts follow its theme; elsewhere the colours drawn stand.
_THEME = (
    "--advisor-ink: var(--jp-content-font-color1, #222222); "
    "--advisor-muted: var(--jp-content-font-color2, #6b6b6b); "
    "--advisor-faint: var(--jp-border-color2, #d9d9d9); "
    "--advisor-paper: var(--jp-layout-color0, #fefefe)"
)


@dataclass(frozen=True)
class Neighbourhood:
    """A cluster, a card and a load, under which settings are looked at one after another.

    What was evaluated is kept, so that a setting seen before costs only its drawing.
    """

    cluster: Cluster
    model: FailureModel
    load: Workload
    _known: dict[Config, Reliability] = field(default_factory=dict, compare=False, repr=False)
    _curves: dict[Config, tuple[Point, ...]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def most_replicas(self) -> int:
        """The largest replication factor to look at."""
        return min(len(self.cluster.brokers), MOST_REPLICAS)

    def result(self, config: Config) -> Reliability:
        """Return what `evaluate` says of a setting.

        Raises
        ------
        AdvisorError
            It cannot be evaluated on this cluster.
        """
        if config not in self._known:
            self._known[config] = evaluate(self.cluster, config, self.model, self.load)
        return self._known[config]

    def curve(self, config: Config) -> tuple[Point, ...]:
        """Return the settings to draw around one: other replication factors and min ISRs.

        Chains grow steeply with the replication factor. Above `SMALL_REPLICAS` only what was
        asked for before is drawn, so that looking at one setting does not work out all the others.
        """
        key = config.changed(replication_factor=1, min_insync_replicas=1)
        if key not in self._curves:
            self._curves[key] = tuple(self._neighbours(config))
        seen = {
            (c.replication_factor, c.min_insync_replicas): point_of(result, ranged=False)
            for c, result in self._known.items()
            if (c.replication_factor or 0) > SMALL_REPLICAS
            and (c.min_insync_replicas or 0) <= (c.replication_factor or 0)
            and c.changed(replication_factor=1, min_insync_replicas=1) == key
        }
        return (*self._curves[key], *(seen[place] for place in sorted(seen, key=str)))

    def is_slow(self, config: Config) -> bool:
        """Return whether a setting takes seconds to evaluate because it was never asked for."""
        return (config.replication_factor or 0) > SMALL_REPLICAS and config not in self._known

    def _neighbours(self, config: Config) -> Iterator[Point]:
        for factor in range(1, min(self.most_replicas, SMALL_REPLICAS) + 1):
            for least in range(1, factor + 1):
                there = config.changed(replication_factor=factor, min_insync_replicas=least)
                # The exact model has its limits; the curve ends where it does.
                with suppress(NotComputedError):
                    yield point_of(self.result(there), ranged=False)


def setting_html(around: Neighbourhood, config: Config, name: str = "explorer") -> str:
    """Return the verdict, the chart, the tolerances and the small sides of one setting.

    Parameters
    ----------
    around
        What it is looked at under.
    config
        The setting; a min ISR above the replication factor is drawn as Kafka treats it.
    name
        The id of the chart: no two in a page may share one.

    Raises
    ------
    AdvisorError
        It cannot be evaluated on this cluster.
    """
    result = around.result(config)
    here = point_of(result, ranged=False)
    figure = plot_curves(
        around.curve(config), [(style.CHOSEN, here)], width_inches=6.6, height_inches=4.6
    )
    chart = style.svg(figure, name, f"Durability and write availability; {here.name}")
    return (
        f'<div class="advisor-explorer" style="{_THEME}">'
        f'<p role="status" style="font-size: 110%"><strong>{escape(verdict(result))}</strong></p>'
        f"{''.join(f'<p>{escape(note)}</p>' for note in notes(config))}"
        f"{chart}{_tolerance_html(result)}{_measures_html(result)}</div>"
    )


def refusal_html(error: AdvisorError) -> str:
    """Return why a setting cannot be, or cannot be worked out; no chart."""
    refused = isinstance(error, ConfigError)
    says = "Kafka refuses this:" if refused else "This cannot be worked out:"
    return (
        f'<div class="advisor-explorer"><p role="status"><strong>{says}</strong> '
        f"{escape(str(error))}</p></div>"
    )


def waiting_html(config: Config) -> str:
    """Return what to show while a large chain is worked out."""
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
    rows = [
        f'<tr><th scope="row" style="text-align: left">{escape(outcome.title)}</th>'
        f"<td>{escape(outcome.said)}</td>"
        f"<td>{escape(outcome.shares[0][0]) if outcome.shares else ''}</td></tr>"
        for outcome in outcomes(result, ranged=False)
    ]
    return (
        '<table><thead><tr><th scope="col">measure</th><th scope="col">value</th>'
        '<th scope="col">mostly from</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
