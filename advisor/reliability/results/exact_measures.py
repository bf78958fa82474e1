"""The exact measures of a topic, with what is asked of them again: intervals and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.cost import Cost
from advisor.reliability.results.dependents import Dependents, dependents
from advisor.reliability.results.fault_tolerance import Tolerance
from advisor.reliability.results.sensitivity import Tornado, tornadoes
from advisor.reliability.results.units import FRACTIONS, MEASURES, UNITS, check_measure
from advisor.reliability.workload import Workload

# Measures that depend on the common causes of several replica sets; their names in `AnyLoss`.
_OF_ALL_SETS = {"loss_probability_per_year": "probability", "mean_years_to_loss": "mean_years"}


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
    evaluate_topic: Callable[..., ExactMeasures] = field(compare=False)
    empty_leader_share: Callable[[], float | None] = field(compare=False)
    intervals: dict[str, Interval] = field(default_factory=dict, compare=False)
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

    def interval(self, measure: str) -> Interval:
        """Return the 95 % interval of a measure from the card's low and high values.

        All uncertain numbers of the card are drawn together, 32 times by a quasi-random sequence
        (8 times for chains of over 4,000 states), and a log-normal distribution is fitted to the
        results. Each draw is solved to a thousandth; the error of its truncated chain is added to
        the ends.

        Parameters
        ----------
        measure : str
            Name of a measure, such as "write_unavailability".

        Returns
        -------
        (float, float)
            Low and high, in the measure's unit. Twice the value for a card without ranges.

        Raises
        ------
        InputError
            For a name that is no measure.

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
        if not self.intervals:
            self.intervals.update(self._intervals())
        return self.intervals[measure]

    def _intervals(self) -> dict[str, Interval]:
        if not self.model.uncertain:
            return {name: (getattr(self, name),) * 2 for name in MEASURES}
        drawn = [
            self.reevaluate(model) for model in uncertainty.parameter_draws(self.model, self.states)
        ]
        found = {}
        for name in MEASURES:
            value, sample = getattr(self, name), [getattr(result, name) for result in drawn]
            low, high = uncertainty.lognormal_interval(sample)
            if name in _OF_ALL_SETS:
                ends = uncertainty.lognormal_interval(
                    [getattr(r.first_loss_upper, _OF_ALL_SETS[name]) for r in drawn]
                )
                low, high = min(low, ends[0]), max(high, ends[1])
            most = 1.0 if name in FRACTIONS else math.inf
            # Where failures outrun repairs no bound can be given, and the draws count as they are.
            # Rounding adds nothing, not even a rough solution's: two digits do not show it.
            worst = [result.at_worst(name) for result in drawn]
            if self.truncated_entries_per_year and all(
                math.isfinite(result.error_bounds["loss_events_per_year"]) for result in drawn
            ):
                ends = uncertainty.lognormal_interval(worst)
                low, high = min(low, ends[0]), max(high, ends[1])
            found[name] = (min(low, value), min(max(high, value), most))
        return found

    def at_worst(self, name: str) -> float:
        """Return a measure with its error, which adds to it or shortens the time to a loss."""
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
        """Whether a measure may be off by half of itself, or more."""
        value: float = getattr(self, measure)
        return 0.0 < value < math.inf and value <= 2.0 * self.error_bounds[measure]

    @property
    def swings_are_quick(self) -> bool:
        """Whether `tornado` answers at once or in seconds: known already, or of a small chain."""
        return bool(self.swings) or not uncertainty.is_large(self.states)

    def tornado(self, measure: str = "loss_events_per_year") -> Tornado:
        """Return how far each number of the card moves a measure, one at a time from low to high.

        The first call evaluates twice for each uncertain number: some seconds, more for four and
        five replicas. These evaluations are solved to a thousandth on the card's own states; what
        that misses is in the ``error_bounds`` of `reevaluate`.

        Parameters
        ----------
        measure : str
            Name of a measure.

        Returns
        -------
        Tornado
            One row per uncertain number, largest swing first.

        Raises
        ------
        InputError
            For a name that is no measure.

        See Also
        --------
        interval : All numbers of the card drawn together.

        Examples
        --------
        >>> import advisor
        >>> rate = {"value": 2.0, "low": 1.0, "high": 4.0}
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": rate, "minutes": 10.0}}}
        ... )
        >>> config = advisor.Config(replication_factor=1, acks=1)
        >>> result = advisor.evaluate(advisor.Cluster.uniform(1, racks=1), config, card)
        >>> round(result.tornado("write_unavailability").rows[0].factor, 2)
        4.0
        """
        check_measure(measure)
        if not self.swings:
            values = {name: getattr(self, name) for name in MEASURES}
            self.swings.update(tornadoes(self.reevaluate, self.model, values, UNITS))
        return self.swings[measure]

    def dependents(self) -> Dependents:
        """Return how long consumer groups and transactions stop, internal topics included."""
        return dependents(self)
