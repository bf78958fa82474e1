"""The exact measures of a topic, with what is asked of them again: intervals and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results import settings_split
from advisor.reliability.results.cost import Cost
from advisor.reliability.results.fault_tolerance import LossPath, Tolerance
from advisor.reliability.results.sensitivity import Tornado, compute_intervals
from advisor.reliability.results.settings_split import (
    BEYOND_SETTINGS,
    BY_SETTINGS,
    PARTS,
    TIMES_RARER,
    Split,
    check_part,
)
from advisor.reliability.results.units import FRACTIONS, MEASURES, check_measure
from advisor.reliability.workload import Workload

# Measures that depend on the common causes of several replica sets; their names in `AnyLoss`.
_OF_ALL_SETS = {"loss_probability_per_year": "probability", "mean_years_to_loss": "mean_years"}
# What `intervals` holds beside the measures, for each part: `years_between`.
_YEARS = "years_between"


@dataclass(frozen=True, repr=False)
class ExactMeasures:
    """The numbers of a `Reliability`, which documents its attributes."""

    loss_probability_per_year: float
    loss_events_per_year: float
    mean_years_to_loss: float
    acked_records_lost_per_year: float
    write_unavailability: float
    read_unavailability: float
    write_stalled: float
    records_refused_per_year: float
    records_dropped_per_year: float
    tolerates: Tolerance
    causes: Mapping[str, Mapping[str, float]]
    bounds: Interval
    first_loss_upper: AnyLoss
    error_bounds: Mapping[str, float]
    flush_window_losses_per_year: float
    truncated_entries_per_year: float
    states: int
    method: str
    assumptions: tuple[str, ...]
    config: Config
    model: FailureModel
    load: Workload
    cluster: Any
    cost: Cost
    reevaluate: Callable[[FailureModel], ExactMeasures] = field(compare=False)
    evaluate_card: Callable[[FailureModel], ExactMeasures] = field(compare=False)
    evaluate_topic: Callable[..., ExactMeasures] = field(compare=False)
    empty_leader_share: Callable[[], float | None] = field(compare=False)
    likeliest_loss: Callable[[], LossPath | None] = field(compare=False)
    intervals: dict[str, Interval] = field(default_factory=dict, compare=False)
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict, compare=False)
    swings: dict[str, Tornado] = field(default_factory=dict, compare=False)

    @property
    def latest(self) -> AnyLoss:
        """Former name of ``first_loss_upper``, for one release."""
        return self.first_loss_upper

    @property
    def early_cuts_per_year(self) -> float:
        """Former name of ``flush_window_losses_per_year``, for one release."""
        return self.flush_window_losses_per_year

    @property
    def neglected_per_year(self) -> float:
        """Former name of ``truncated_entries_per_year``, for one release."""
        return self.truncated_entries_per_year

    @property
    def again(self) -> Callable[[FailureModel], ExactMeasures]:
        """Former name of ``reevaluate``, for one release."""
        return self.reevaluate

    def by_settings(self, measure: str) -> float:
        """Return the part of a measure that replication settings decide.

        It is the measure on the same card without the mechanisms beyond settings, such as
        the loss of a site's power; `beyond_settings` is what those add. The two add up to the
        measure. The first call evaluates that card.

        ``mean_years_to_loss`` is divided in proportion to how often either makes the first loss.
        How long it takes what settings decide alone to lose a record is ``decided``'s
        ``mean_years_to_loss``.

        Parameters
        ----------
        measure : str
            Name of a measure, such as "write_unavailability".

        Returns
        -------
        float
            In the measure's unit; the whole measure for a card without other mechanisms.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure.

        See Also
        --------
        beyond_settings : The rest.
        interval : Its ``part`` gives the interval of either.

        Examples
        --------
        >>> import advisor
        >>> failures = {"per_year": 2.0, "minutes": 10.0}
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": failures}, "cluster": {"power": failures}}
        ... )
        >>> config = advisor.Config(replication_factor=1, acks=1)
        >>> result = advisor.evaluate(advisor.Cluster.uniform(1, racks=1), config, card)
        >>> measure = "write_unavailability"
        >>> parts = result.by_settings(measure), result.beyond_settings(measure)
        >>> print(f"{parts[0]:.2g} + {parts[1]:.2g} = {result.write_unavailability:.2g}")
        3.8e-05 + 3.8e-05 = 7.6e-05
        """
        check_measure(measure)
        return self._split.part(measure, BY_SETTINGS)

    def beyond_settings(self, measure: str) -> float:
        """Return the part of a measure that no replication setting changes.

        Parameters
        ----------
        measure : str
            Name of a measure, such as "write_unavailability".

        Returns
        -------
        float
            In the measure's unit; 0 for a card without such mechanisms.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure.

        See Also
        --------
        by_settings : What is meant, and the other part.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
        ... )
        >>> result = advisor.evaluate(advisor.Cluster.uniform(3), advisor.Config(), card)
        >>> result.beyond_settings("write_unavailability")
        0.0
        """
        check_measure(measure)
        return self._split.part(measure, BEYOND_SETTINGS)

    def interval(self, measure: str, part: str | None = None) -> Interval:
        """Return the 95 % interval of a measure from the card's low and high values.

        All uncertain numbers of the card are drawn together by a quasi-random sequence, 32 times
        (16 with more than 2,000 partitions, 8 for chains of more than 4,000 states). The interval
        is that of a further draw, by a two-piece log-normal, and never narrower than the draws.
        Each is solved to a thousandth; the error of its truncated chain is added to the ends.

        Parameters
        ----------
        measure : str
            Name of a measure, such as "write_unavailability".
        part : {"by_settings", "beyond_settings"}, optional
            That part of the measure. Default: the whole.

        Returns
        -------
        (float, float)
            Low and high, in the measure's unit. Twice the value for a card without ranges.

        Raises
        ------
        InputError
            If `measure` is not the name of a measure, or `part` not the name of a part.

        See Also
        --------
        tornado : Which number of the card the interval is due to.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
        ... )
        >>> result = advisor.evaluate(advisor.Cluster.uniform(3), advisor.Config(), card)
        >>> low, high = result.interval("loss_events_per_year")
        >>> low == high == result.loss_events_per_year
        True
        """
        check_measure(measure)
        if part is not None:
            check_part(part)
        return self._interval(measure, part)

    def _interval(self, measure: str, part: str | None) -> Interval:
        compute_intervals([self])
        return self.intervals[_key(measure, part)]

    def years_between(self, part: str) -> float:
        """Mean years until one part of the losses alone makes one; infinite if it makes none.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> result.years_between("by_settings") >= result.mean_years_to_loss
        True
        """
        check_part(part)
        return self._split.years(part)

    def years_between_interval(self, part: str) -> Interval:
        """95 % interval of `years_between`.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> low, high = result.years_between_interval("by_settings")
        >>> low < result.years_between("by_settings") < high
        True
        """
        check_part(part)
        return self._interval(_YEARS, part)

    @cached_property
    def decided(self) -> ExactMeasures:
        """The same question on the card without the mechanisms beyond settings."""
        if not settings_split.beyond(self.model):
            return self
        return self.evaluate_card(settings_split.without_beyond(self.model))

    @property
    def _split(self) -> Split:
        return Split(self, self.decided)

    def intervals_of_draws(
        self, drawn: Sequence[ExactMeasures], decided: Sequence[ExactMeasures]
    ) -> dict[str, Interval]:
        """Every interval from draws of the card, with and without what is beyond settings.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> intervals = result.intervals_of_draws([], [])
        >>> intervals["write_stalled"] == (result.write_stalled, result.write_stalled)
        True
        """
        found = {name: self._interval_of(name, drawn) for name in MEASURES}
        if self.decided is not self:
            return found | settings_split.capped(self._intervals_of_parts(drawn, decided), found)
        nothing = {_key(name, BEYOND_SETTINGS): (0.0, 0.0) for name in MEASURES}
        by = {_key(name, BY_SETTINGS): ends for name, ends in found.items()}
        years = {BY_SETTINGS: found["mean_years_to_loss"], BEYOND_SETTINGS: (math.inf,) * 2}
        return found | by | nothing | {_key(_YEARS, part): years[part] for part in PARTS}

    def _intervals_of_parts(
        self, drawn: Sequence[ExactMeasures], decided: Sequence[ExactMeasures]
    ) -> dict[str, Interval]:
        """Intervals of what settings decide and of the rest, from the same draws of both."""
        splits = [Split(*pair) for pair in zip(drawn, decided, strict=True)]
        found = {}
        for name in MEASURES:
            low, high = self.decided._interval_of(name, decided)
            value = self.by_settings(name)
            # Rounding may leave the other card a little above this one.
            found[_key(name, BY_SETTINGS)] = min(low, value), max(high, value)
        years = self.decided._interval_of("mean_years_to_loss", decided)
        found[_key(_YEARS, BY_SETTINGS)] = years
        readings: dict[str, list[Callable[[Split], float]]] = {
            _key(name, BEYOND_SETTINGS): [
                partial(Split.part, measure=name, part=BEYOND_SETTINGS),
                partial(Split.beyond_at_worst, measure=name),
            ]
            for name in MEASURES
        }
        for part in PARTS:
            readings[_key("mean_years_to_loss", part)] = [
                partial(Split.part, measure="mean_years_to_loss", part=part)
            ]
        readings[_key(_YEARS, BEYOND_SETTINGS)] = [partial(Split.years, part=BEYOND_SETTINGS)]
        readings[TIMES_RARER] = [Split.times_rarer]
        for key, reading in readings.items():
            value = reading[0](self._split)
            ends = [(value, value)]
            if splits:
                samples = ([read(split) for split in splits] for read in reading)
                ends += map(uncertainty.lognormal_interval, samples)
            most = 1.0 if key.removeprefix(f"{BEYOND_SETTINGS} ") in FRACTIONS else math.inf
            found[key] = (min(low for low, _ in ends), min(max(high for _, high in ends), most))
        return found

    def _interval_of(self, name: str, drawn: Sequence[ExactMeasures]) -> Interval:
        """Interval of a measure from the results of draws of the card."""
        value: float = getattr(self, name)
        if not drawn:
            return (value, value)
        fit = uncertainty.fit_of(name)
        low, high = fit([getattr(result, name) for result in drawn])
        if name in _OF_ALL_SETS:
            ends = fit([getattr(r.first_loss_upper, _OF_ALL_SETS[name]) for r in drawn])
            low, high = min(low, ends[0]), max(high, ends[1])
        most = 1.0 if name in FRACTIONS else math.inf
        # Where failures outrun repairs no bound can be given, and the draws count as they are.
        # Rounding adds nothing, not even a rough solution's: two digits do not show it.
        worst = [result.at_worst(name) for result in drawn]
        if self.truncated_entries_per_year and all(
            math.isfinite(result.error_bounds["loss_events_per_year"]) for result in drawn
        ):
            ends = fit(worst)
            low, high = min(low, ends[0]), max(high, ends[1])
        return (min(low, value), min(max(high, value), most))

    def at_worst(self, name: str) -> float:
        """Return a measure with its error, which adds to it or shortens the time to a loss.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> result.at_worst("write_unavailability") >= result.write_unavailability
        True
        """
        value: float = getattr(self, name)
        if name != "mean_years_to_loss":
            off = self.error_bounds[name]
            return value + (self._off_sooner if name == "loss_probability_per_year" else off)
        rate = 1.0 / value + self._off_sooner
        return 1.0 / rate if rate else math.inf

    @property
    def _off_sooner(self) -> float:
        """How far the probability may be too low; dependence between sets only makes it lower."""
        too_high = self.loss_probability_per_year - self.first_loss_upper.probability
        return self.error_bounds["loss_probability_per_year"] - too_high

    def has_no_digit(self, measure: str) -> bool:
        """Whether a measure may be off by half of itself, or more.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> result.has_no_digit("write_unavailability")
        False
        """
        value: float = getattr(self, measure)
        return 0.0 < value < math.inf and value <= 2.0 * self.error_bounds[measure]

    @property
    def swings_are_quick(self) -> bool:
        """Whether `tornado` answers at once or in seconds: known already, or of a small chain."""
        return bool(self.swings) or not uncertainty.is_large(self.states, self.load.partitions)


def _key(measure: str, part: str | None) -> str:
    """Name of an interval among the cached ones."""
    return f"{part} {measure}" if part else measure
