"""`Sampled`, what `simulate` returns: every measure as an estimate with its interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Never

from advisor import formatting, plotting
from advisor.errors import NotComputedError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import mechanisms
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import decided_by_settings
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results import explanation, units
from advisor.reliability.results.assumptions import assumptions
from advisor.reliability.results.fault_tolerance import Tolerance, never_writes
from advisor.reliability.results.fault_tolerance import tolerance_in_words as tolerated
from advisor.reliability.results.settings_split import (
    LOSSES,
    PARTS,
    STOPS,
    WITHOUT_PARTS,
    Outlook,
    amount_of,
    beyond,
    beyond_causes,
    main_cause,
    years_of_parts,
    years_within,
)
from advisor.reliability.results.units import MEASURES, UNITS, WORDS, Estimate, check_measure
from advisor.reliability.workload import Workload
from advisor.tables import MeasureTable

if TYPE_CHECKING:
    from advisor.reliability.results.reliability import Reliability

__all__ = ["Estimate", "Sampled"]

ALL_DONE = "all years done"
NARROW = "interval narrow enough"
TIME_UP = "time is up"


@dataclass(frozen=True, repr=False)
class Sampled(MeasureTable):
    """What a Kafka configuration lost and refused in simulated years.

    The measures have the names and meanings of those of `Reliability`; each is an `Estimate`.

    Attributes
    ----------
    tolerates : Tolerance
    causes : mapping of measure to mapping of mechanism to float
        Events by mechanism.
    parts : mapping of measure to (Estimate, Estimate)
        The part that replication settings decide and the rest; see `by_settings`.
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
        By mechanism and part; see `write_samples`.
    method, why_method : str
        "crude", "importance" or "splitting"; and the reason, if the package chose it.
    weights : Weights, optional
        Weights of the losses; None for "crude".
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
    parts: Mapping[str, tuple[Estimate, Estimate]]
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

    _FRAME_COLUMNS = ("measure", "value", "low", "high", "seen", "unit", "years", "method", *PARTS)
    _HTML_COLUMNS = ("measure", "sampled", "unit", "method")

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
        check_measure(measure)
        found: Estimate = getattr(self, measure)
        return found

    def by_settings(self, measure: str) -> Estimate:
        """Return the part of a measure that replication settings decide.

        See `Reliability.by_settings`. The values of both parts add up to the measure's, where
        events of both were seen; of `mean_years_to_loss` each is the time until it alone loses.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> whole = sampled.write_unavailability.value
        >>> sampled.by_settings("write_unavailability").value <= whole
        True
        """
        check_measure(measure)
        return self.parts[measure][0]

    def beyond_settings(self, measure: str) -> Estimate:
        """Return the part of a measure that no replication setting changes.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> whole = sampled.write_unavailability.high
        >>> sampled.beyond_settings("write_unavailability").value <= whole
        True
        """
        check_measure(measure)
        return self.parts[measure][1]

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
        found = self.estimate(measure)
        return found.low, found.high

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions made where the input is silent."""
        return assumptions(self.cluster, self.config, self.model, sampled=True)

    @property
    def verdict(self) -> str:
        """Data loss, downtime and main cause by what settings decide, in at most 25 words."""
        return explanation.verdict(self.outlook)

    @property
    def no_setting_changes(self) -> str:
        """What causes beyond settings add, in one sentence."""
        return explanation.no_setting_changes(self.outlook)

    @property
    def outlook(self) -> Outlook:
        """The numbers behind the verdict."""
        events, by = "loss_events_per_year", decided_by_settings
        main = {
            measure: main_cause({name: n for name, n in self.causes[key].items() if by(name)})
            for measure, key in ((LOSSES, events), (STOPS, STOPS))
        }
        return Outlook(
            config=self.config,
            years=years_of_parts(self.mean_years_to_loss, self.parts["mean_years_to_loss"]),
            stopped=(amount_of(self.parts[STOPS][0]), amount_of(self.parts[STOPS][1])),
            dropped=amount_of(self.records_dropped_per_year),
            main=main,
            beyond={
                LOSSES: beyond_causes(self.causes, events, self.model),
                STOPS: beyond_causes(self.causes, STOPS, self.model),
            },
            simulated=self.years,
            years_within=years_within(self.mean_years_to_loss, self.parts["mean_years_to_loss"]),
        )

    @property
    def measured_lines(self) -> list[str]:
        """The numbers of the verdict with their 95 % intervals, and where they come from."""
        never = never_writes(self.config)
        if never:
            return [f"{formatting.capital(never)}."]
        loss = f"Data loss: {units.loss_words(self.mean_years_to_loss, self.years)}."
        if self.config.acks == 0:
            loss = f"Records lost, never acknowledged: {self.records_dropped_per_year} a year."
        return [
            loss,
            f"Refused writes: {units.refused_words(self.write_unavailability)}.",
            *(units.lines_of_parts(self, self.config.acks != 0) if beyond(self.model) else ()),
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
        """The verdict, every measure with its interval, the causes, and how it was sampled.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> "seed 7" in sampled.explain()
        True
        """
        lines = [self.verdict, *self._paragraphs(), ""]
        for name in MEASURES:
            found = self.estimate(name)
            lines.append(f"{name} = {found} {UNITS[name]}; {found.method}")
            by, rest = self.parts[name]
            if rest.high > 0.0 and name not in WITHOUT_PARTS:
                lines.append(f"  by settings {by}, beyond settings {rest}")
            parts = sorted(self.causes.get(name, {}).items(), key=lambda item: -item[1])
            whole = sum(part for _, part in parts)
            lines += [
                f"  {100 * part / whole:5.1f} %  {mechanisms.words(cause)} ({cause})"
                for cause, part in parts
                if part > 0.0005 * whole
            ]
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
            "measures": {name: asdict(self.estimate(name)) for name in MEASURES},
            **{
                part: {name: asdict(self.parts[name][half]) for name in MEASURES}
                for half, part in enumerate(PARTS)
            },
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
        return [
            (
                *(name, e.value, e.low, e.high, e.seen, UNITS[name], e.n, e.method),
                *(part.value for part in self.parts[name]),
            )
            for name, e in ((name, self.estimate(name)) for name in MEASURES)
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
        return "\n".join([self.verdict, *self._paragraphs()])

    def _paragraphs(self) -> tuple[str, ...]:
        brokers = f"{formatting.capital(tolerated(self.config))}."
        return self.no_setting_changes, *self.measured_lines, brokers

    def _html_columns(self) -> tuple[str, ...]:
        parts = tuple(part.replace("_", " ") for part in PARTS if beyond(self.model))
        return (*self._HTML_COLUMNS, *parts, "attribute")

    def _html_rows(self) -> list[tuple[str, ...]]:
        halves = (0, 1) if beyond(self.model) else ()
        return [
            (
                *(WORDS[name], str(estimate), UNITS[name], estimate.method),
                *("–" if name in WITHOUT_PARTS else str(self.parts[name][half]) for half in halves),
                name,
            )
            for name, estimate in zip(MEASURES, map(self.estimate, MEASURES), strict=True)
        ]
