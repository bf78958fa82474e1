"""One setting among its neighbours: evaluated, drawn and put in words, as a piece of HTML."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape

from advisor.advice.tolerance import largest_share, survival
from advisor.cluster.model import Cluster
from advisor.errors import AdvisorError, ConfigError, NotComputedError
from advisor.present import style
from advisor.present.labels import once_in_years, time_per_year
from advisor.present.outcome import compared_outcomes, estimated, outcomes, point_of
from advisor.present.plots import plot_curves
from advisor.present.points import Point
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.fault_tolerance import never_writes
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

MOST_REPLICAS, SMALL_REPLICAS = 5, 3
_BEYOND_BELIEF_YEARS = 1e6
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


def verdict(result: Reliability) -> str:
    """Return in one sentence what a setting does, without intervals: they take many evaluations."""
    _, refused, _ = compared_outcomes(result, ranged=False)
    never = never_writes(result.config)
    name = point_of(result, ranged=False).name
    loss = estimated(result, "loss_probability_per_year", ranged=False).value
    between = once_in_years(result.mean_years_to_loss)
    stopped = estimated(result, "write_unavailability", ranged=False).value
    if never:
        return f"{name}: {never}."
    loses = "nothing in this failure model loses an acknowledged record"
    if loss:
        loses = f"you lose an acknowledged record {between}"
    if loss and result.mean_years_to_loss >= _BEYOND_BELIEF_YEARS:
        loses = f"these failures lose a record {between}, so mistakes and bugs come first"
    if not stopped:
        return f"{name}: {loses}; writes are never refused."
    return (
        f"{name}: {loses}; writes stop {time_per_year(stopped)}, "
        f"mostly from {refused.shares[0][0]}."
    )


def notes(config: Config) -> tuple[str, ...]:
    """Return what Kafka silently makes of a setting, one sentence each."""
    said = []
    least, factor = config.min_insync_replicas or 1, config.replication_factor or 1
    if least > factor:
        if config.effective_min_insync_replicas > factor:
            said.append(
                f"min.insync.replicas {least} is above the replication factor {factor}: Kafka "
                f"{config.kafka_version} refuses every write with acks=all: "
                "“Messages are rejected since there are fewer in-sync replicas than required.”"
            )
        else:
            said.append(
                f"min.insync.replicas {least} is above the replication factor {factor}: Kafka "
                f"{config.kafka_version} takes it for {factor} (since 3.7)."
            )
    if not config.enable_idempotence:
        said.append("enable.idempotence is off: retries may write duplicates.")
    return tuple(said)


def tolerance_words(result: Reliability) -> tuple[tuple[str, str], ...]:
    """Return the three tolerance numbers, each with what it counts."""
    tolerates = result.tolerates
    never = tolerates.while_writable < 0
    return (
        ("without losing acknowledged records", f"{tolerates.without_loss}"),
        ("while writes go on", "not even 0" if never else f"{tolerates.while_writable}"),
        ("while reads go on", f"{tolerates.while_readable}"),
    )


def rack_words(cluster: Cluster, config: Config) -> str:
    """Return in one sentence what losing one rack does; the worst single event there is."""
    assert config.replication_factor is not None
    share = largest_share(cluster.brokers, config.replication_factor, str(config.mode))
    if share is None:
        return "The racks are not known, so nothing can be said about losing one."
    after = survival(share, config)
    lost = (
        "no acknowledged record is lost" if after.without_loss else "acknowledged records are lost"
    )
    goes_on = "writes go on" if after.writable else "writes stop"
    replicas = "one replica" if share == 1 else f"{share} replicas"
    return f"Losing a whole rack takes {replicas} of a partition at worst: {lost}, and {goes_on}."


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
