"""`Sampled`, what `simulate` returns: every measure as an estimate with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Never

from advisor import formatting, plotting
from advisor.errors import NotComputedError
from advisor.protocol.rules.config import Config
from advisor.reliability.failures import mechanisms
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.assumptions import assumptions
from advisor.reliability.results.fault_tolerance import Tolerance, never_writes
from advisor.reliability.results.settings_split import (
    PARTS,
    Said,
    beyond,
    beyond_in_words,
    in_words,
)
from advisor.reliability.results.units import MEASURES, UNITS, Estimate, check_measure
from advisor.reliability.workload import Workload
from advisor.tables import MeasureTable

__all__ = ["Estimate", "Sampled"]


@dataclass(frozen=True, repr=False)
class Sampled(MeasureTable):
    """What a Kafka configuration lost and refused in simulated years.

    The measures have the names and meanings of those of `Reliability`; each is an `Estimate`.

    Attributes
    ----------
    tolerates : Tolerance
    causes : mapping of measure to mapping of mechanism to float
        Events by mechanism; the parts add up to what was seen.
    parts : mapping of measure to (Estimate, Estimate)
        What replication settings decide of it, and what they do not; see `by_settings`.
    years, seed, blocks : int
        What was simulated.
    versions : mapping of str to str
        Of this package, numpy and numba: the same draws need the same versions.

    See Also
    --------
    simulate : Samples it.
    Reliability : The same measures, exact.

    Examples
    --------
    >>> import advisor
    >>> card = advisor.FailureModel.from_dict(
    ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
    ... )
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

    _FRAME_COLUMNS = ("measure", "value", "low", "high", "unit", "years", "method", *PARTS)
    _HTML_COLUMNS = ("measure", "sampled", "unit", "method")

    def estimate(self, measure: str) -> Estimate:
        """A measure by name.

        Raises
        ------
        InputError
            For a name that is no measure.

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

        The table of mechanisms says which do; see `Reliability.by_settings`. The values of both
        parts add up to the measure's, where events of both were seen.

        Raises
        ------
        InputError
            For a name that is no measure.

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
            For a name that is no measure.

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
        """95 % interval of a measure, for the chance of the sample alone.

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
        """What was assumed because the input did not say."""
        return assumptions(self.cluster, self.config, self.model)

    @property
    def verdict(self) -> str:
        """What was lost, what was refused, and what of it settings decide."""
        settings = (
            f"RF {self.config.replication_factor}, min.insync.replicas "
            f"{self.config.min_insync_replicas}, acks={self.config.acks}"
        )
        never = never_writes(self.config)
        if never:
            return f"{settings}: {never}."
        parts = self._parts_words()
        whole = f"{settings}: {self._loss_words()}; {self._refusal_words()}."
        return f"{whole} {parts}" if parts else whole

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

    def _loss_words(self) -> str:
        if self.config.acks == 0:
            dropped = self.records_dropped_per_year
            return formatting.unacknowledged(f"{dropped}" if dropped.high > 0.0 else "")
        first = self.mean_years_to_loss
        if math.isinf(first.low):
            return "nothing in this failure model loses an acknowledged record"
        if not first.seen:
            return (
                f"no acknowledged record was lost in {self.years:,} simulated years, so less than "
                f"once in {formatting.years(first.low)} (95 %)"
            )
        within = formatting.interval(formatting.years(first.low), formatting.years(first.high))
        return (
            f"you lose an acknowledged record about once in {formatting.years(first.value)}{within}"
        )

    def _refusal_words(self) -> str:
        stops = self.write_unavailability
        if stops.high == 0.0:
            return "writes are never refused"
        if not stops.seen:
            return f"writes were never refused in {self.years:,} simulated years"
        within = formatting.interval(*map(formatting.time_per_year, (stops.low, stops.high)))
        return f"writes stop {formatting.time_per_year(stops.value)}{within}"

    def _parts_words(self) -> str:
        """What settings decide and what they do not; "" where nothing is beyond them."""
        if not beyond(self.model):
            return ""
        stops, losses = "write_unavailability", "loss_events_per_year"
        by, rest = (_time_said(part) for part in self.parts[stops])
        loses = (self._once(0), self._once(1)) if self.config.acks != 0 else (Said(), Said())
        why = (beyond_in_words(self.causes, (name,), self.model) for name in (stops, losses))
        return in_words((by, rest), loses, *why)

    def _once(self, half: int) -> Said:
        """How often what settings decide (0), or do not (1), loses a record."""
        waited, part = self.mean_years_to_loss, self.parts["mean_years_to_loss"][half]
        if not waited.seen or part.high == 0.0:
            return Said()
        if not part.seen:
            least = formatting.years(waited.value**2 / part.high)
            return Said(f"less than once in {least} (95 %)")
        value, low, high = (
            formatting.years(waited.value**2 / each) for each in (part.value, part.high, part.low)
        )
        return Said(f"once in {value}", formatting.interval(low, high))

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
        lines = [self.verdict, f"{formatting.capital(str(self.tolerates))}.", ""]
        for name in MEASURES:
            found = self.estimate(name)
            lines.append(f"{name} = {found} {UNITS[name]}; {found.method}")
            by, rest = self.parts[name]
            if rest.high > 0.0:
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
            "versions": dict(self.versions),
            "assumptions": list(self.assumptions),
            "config": self.config.to_dict(),
            "load": self.load.to_dict(),
            "model": self.model.name,
        }

    def _frame_rows(self) -> list[tuple[object, ...]]:
        found = [(name, self.estimate(name)) for name in MEASURES]
        return [
            (
                *(name, e.value, e.low, e.high, UNITS[name], e.n, e.method),
                *(part.value for part in self.parts[name]),
            )
            for name, e in found
        ]

    def plot(self, ax: Any = None) -> Any:
        """Draw the measures with their intervals on matplotlib axes; returns the axes.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config()
        >>> sampled = advisor.simulate(cluster, config, "three_az_cloud", years=20, engine="local")
        >>> from matplotlib.figure import Figure
        >>> axes = sampled.plot(Figure().add_subplot())
        """
        return plotting.draw("sampled", self, ax)

    def __repr__(self) -> str:
        return f"{self.verdict}\n{formatting.capital(str(self.tolerates))}."

    def _paragraphs(self) -> tuple[str, ...]:
        return (f"{formatting.capital(str(self.tolerates))}.",)

    def _html_columns(self) -> tuple[str, ...]:
        parts = tuple(part.replace("_", " ") for part in PARTS)
        return (*self._HTML_COLUMNS, *parts) if beyond(self.model) else self._HTML_COLUMNS

    def _html_rows(self) -> list[tuple[str, ...]]:
        halves = (0, 1) if beyond(self.model) else ()
        found = [(name, self.estimate(name)) for name in MEASURES]
        return [
            (
                *(name, str(estimate), UNITS[name], estimate.method),
                *(str(self.parts[name][half]) for half in halves),
            )
            for name, estimate in found
        ]


def _time_said(part: Estimate) -> Said:
    """Time a year of one part."""
    if part.high == 0.0:
        return Said()
    low, high = map(formatting.time_per_year, (part.low, part.high))
    if not part.seen:
        return Said(f"less than {high}")
    ends = (end.removesuffix(" a year") for end in (low, high))
    return Said(formatting.time_per_year(part.value), formatting.interval(*ends))
