"""`Sampled`, what `simulate` returns: every measure as an estimate with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Never

from advisor import formatting, plotting
from advisor.errors import NotComputedError
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results import explanation, units
from advisor.reliability.results.assumptions import assumptions
from advisor.reliability.results.fault_tolerance import Tolerance, never_writes
from advisor.reliability.results.fault_tolerance import tolerance_in_words as tolerated
from advisor.reliability.results.floor import AboveFloor
from advisor.reliability.results.units import Estimate
from advisor.reliability.workload import Workload
from advisor.tables import MeasureTable

if TYPE_CHECKING:
    from advisor.reliability.results.reliability import Reliability

__all__ = ["Estimate", "Sampled"]

ALL_DONE = "all years done"
NARROW = "interval narrow enough"
TIME_UP = "time is up"


@dataclass(frozen=True, repr=False)
class Sampled(AboveFloor, MeasureTable):
    """What a Kafka configuration lost and refused in simulated years.

    The measures have the names and meanings of those of `Reliability`; each is an `Estimate`.

    Attributes
    ----------
    tolerates : Tolerance
    causes : mapping of measure to mapping of mechanism to float
        Events by mechanism.
    years, seed, blocks : int
        What was simulated.
    history : tuple of tuple of float
        For each block: years, and those with a loss; unless "crude" what `loss_chance` takes.
    clumping, largest_weight : float, optional
    failure_rates : tuple of float
        As of `Plan`: what else the interval of the loss probability depends on, block by block.
    outages : tuple of (float, float, float)
        Write outages of partitions by length: at least and less than this many seconds, number.
    why : str
        Why sampling stopped: "all years done", "interval narrow enough" or "time is up".
    breakdown : Breakdown
        By mechanism; see `write_samples`.
    method, why_method : str
        "crude", "importance" or "splitting"; and the reason, if the package chose it.
    weights : Weights, optional
        Weights of the losses; None for "crude".
    further : mapping of str to Estimate
        Measures without a field of their own; each is an attribute as well.
    versions : mapping of str to str
        Of this package, numpy and numba: the same draws need the same versions.

    See Also
    --------
    simulate : Samples it.

    Examples
    --------
    >>> import advisor
    >>> crash = {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
    >>> card = advisor.FailureModel.from_dict(crash)
    >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
    >>> sampled = advisor.simulate(cluster, config, card, years=200, engine="local")
    >>> sampled.years, sampled.loss_events_per_year.seen
    (200, False)
    """

    loss_probability_per_year: Estimate
    loss_events_per_year: Estimate
    mean_years_to_loss: Estimate
    acked_records_lost_per_year: Estimate
    write_unavailability: Estimate
    read_unavailability: Estimate
    write_stalled: Estimate
    records_refused_per_year: Estimate
    records_dropped_per_year: Estimate
    tolerates: Tolerance
    causes: Mapping[str, Mapping[str, float]]
    years: int
    seed: int
    blocks: int
    versions: Mapping[str, str]
    config: Config
    model: FailureModel
    load: Workload
    cluster: Any
    history: tuple[tuple[float, ...], ...] = ()
    clumping: float | None = None
    outages: tuple[tuple[float, float, float], ...] = ()
    why: str = field(default=ALL_DONE, compare=False)
    breakdown: units.Breakdown | None = None
    method: str = units.CRUDE
    why_method: str = field(default="", compare=False)
    weights: units.Weights | None = None
    largest_weight: float | None = None
    failure_rates: tuple[float, ...] = ()
    further: Mapping[str, Estimate] = field(default_factory=dict)

    _FRAME_COLUMNS = ("measure", "value", "low", "high", "seen", "unit", "years", "method")
    _HTML_COLUMNS = ("measure", "sampled", "unit", "method", "attribute")

    def estimate(self, measure: str) -> Estimate:
        """A measure by name.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> sampled.estimate("write_unavailability") == sampled.write_unavailability
        True
        """
        estimate: Estimate = measure_table.measure(measure).of(self)
        return estimate

    def interval(self, measure: str) -> Interval:
        """95 % interval of a measure, for the sampling error alone.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> low, high = sampled.interval("write_unavailability")
        >>> low <= sampled.write_unavailability.value <= high
        True
        """
        estimate = self.estimate(measure)
        return estimate.low, estimate.high

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions made where the input is silent."""
        return assumptions(self.cluster, self.config, self.model, sampled=True)

    @property
    def summary(self) -> str:
        """Setting, data loss, time without writes and main cause, in at most 25 words."""
        return explanation.summary(self.outlook)

    @property
    def outlook(self) -> explanation.Outlook:
        """The numbers behind the summary."""
        losses, stops = explanation.LOSSES, explanation.STOPS
        waited = self.mean_years_to_loss
        return explanation.Outlook(
            config=self.config,
            years=explanation.Amount(waited.value if waited.seen else waited.low, waited.seen),
            stopped=explanation.amount_of(self.write_unavailability),
            dropped=explanation.amount_of(self.records_dropped_per_year),
            main={
                losses: explanation.main_cause(self.causes["loss_events_per_year"]),
                stops: explanation.main_cause(self.causes[stops]),
            },
            simulated=self.years,
        )

    @property
    def measured_lines(self) -> list[str]:
        """The numbers of the summary with their 95 % intervals, and where they come from."""
        never = never_writes(self.config)
        if never:
            return [f"{formatting.capital(never)}."]
        loss = f"Data loss: {units.loss_words(self.mean_years_to_loss, self.years)}."
        if self.config.acks == 0:
            loss = f"Records lost, never acknowledged: {self.records_dropped_per_year} a year."
        return [
            loss,
            f"Refused writes: {units.refused_words(self.write_unavailability)}.",
            f"Source: {self.years:,} years simulated with failure-model card {self.model.name}, "
            "its values taken as exact; 95 %: chance of the sample.",
            *([] if self.why == ALL_DONE else [f"Stopped after these years: {self.why}."]),
            *units.method_lines(self.method, self.why_method, self.weights),
        ]

    def dependents(self) -> Never:
        """`Reliability.dependents` only.

        Raises
        ------
        NotComputedError
            Always: one topic is sampled at a time.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> sampled.dependents()  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        advisor.errors.NotComputedError: a sample holds one topic, not the internal ones ...
        """
        raise NotComputedError(
            "a sample holds one topic, not the internal ones beside it; ask "
            "evaluate(...).dependents()"
        )

    def explain(self) -> str:
        """The summary, every measure with its interval, the causes, and how it was sampled.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> "seed 7" in sampled.explain()
        True
        """
        lines = [self.summary, *self._paragraphs(), ""]
        for entry in measure_table.entries():
            name, estimate = entry.name, self.estimate(entry.name)
            lines.append(f"{name} = {estimate} {entry.unit}; {estimate.method}")
            lines += explanation.shares_of_causes(self.causes.get(name, {}))
        made = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        lines += [
            "",
            f"Card: {self.model.name}, its values taken as exact. {self.years:,} years in "
            f"{self.blocks} blocks, seed {self.seed}; {made}.",
            *(f"Assumed: {text}." for text in self.assumptions),
        ]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Measures, causes and inputs as plain data; the same for the same seed and inputs.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> sampled.to_dict()["years"]
        20
        """
        return {
            "measures": {name: asdict(self.estimate(name)) for name in measure_table.names()},
            "tolerates": asdict(self.tolerates),
            "causes": {name: dict(parts) for name, parts in self.causes.items()},
            "years": self.years,
            "seed": self.seed,
            "blocks": self.blocks,
            "method": self.method,
            "weights": None if self.weights is None else asdict(self.weights),
            "versions": dict(self.versions),
            "assumptions": list(self.assumptions),
            "config": self.config.to_dict(),
            "load": self.load.to_dict(),
            "model": self.model.name,
        }

    def _frame_rows(self) -> list[tuple[object, ...]]:
        estimates = [(entry, self.estimate(entry.name)) for entry in measure_table.entries()]
        return [
            (entry.name, e.value, e.low, e.high, e.seen, entry.unit, e.n, e.method)
            for entry, e in estimates
        ]

    def plot(self, ax: Any = None, exact: Reliability | None = None) -> Any:
        """Draw the loss interval narrowing with the years, and how long write outages last.

        Parameters
        ----------
        ax : matplotlib axes, or two of them, optional
            One: draws the measures and their causes in words, as of a `Reliability`. Default: two
            of a new figure.
        exact : Reliability, optional
            What `evaluate` returned: its loss probability is drawn beside the sampled one.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> from matplotlib.figure import Figure
        >>> narrowing, lengths = sampled.plot(Figure().subplots(1, 2))
        """
        return plotting.draw("sampled", self, ax, exact)

    def __repr__(self) -> str:
        return "\n".join([self.summary, *self._paragraphs()])

    def _paragraphs(self) -> tuple[str, ...]:
        brokers = f"{formatting.capital(tolerated(self.config))}."
        return *self.measured_lines, brokers

    def _html_rows(self) -> list[tuple[str, ...]]:
        estimates = [(entry, self.estimate(entry.name)) for entry in measure_table.entries()]
        return [
            (entry.words, str(estimate), entry.unit, estimate.method, entry.name)
            for entry, estimate in estimates
        ]
