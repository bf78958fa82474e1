"""The exact measures of a topic, with what is asked of them again: intervals and sensitivity."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.cost import Cost
from advisor.reliability.results.fault_tolerance import LossPath, Tolerance
from advisor.reliability.results.floor import AboveFloor
from advisor.reliability.results.sensitivity import Tornado, compute_intervals
from advisor.reliability.workload import Workload

# Measures that depend on the common causes of several replica sets; their names in `AnyLoss`.
_OF_ALL_SETS = {"loss_probability_per_year": "probability", "mean_years_to_loss": "mean_years"}


class WithErrors:
    """Mixin of what has measures and their errors."""

    loss_probability_per_year: float
    error_bounds: Mapping[str, float]
    first_loss_upper: AnyLoss

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
        value = float(measure_table.measure(name).of(self))
        if name != "mean_years_to_loss":
            off = self.error_bounds.get(name, 0.0)
            return value + (self._off_sooner if name == "loss_probability_per_year" else off)
        rate = 1.0 / value + self._off_sooner
        return 1.0 / rate if rate else math.inf

    @property
    def _off_sooner(self) -> float:
        """How far the probability may be too low; dependence between sets only makes it lower."""
        too_high = self.loss_probability_per_year - self.first_loss_upper.probability
        return self.error_bounds["loss_probability_per_year"] - too_high


class DrawnResult(WithErrors):
    """The measures under one of several cards, as attributes of their names, and their errors.

    What sets share and is approximated is not computed for each card: its share of the first losses
    is taken from the result that was asked.

    Parameters
    ----------
    values, errors : mapping of str to float
        By measure.
    later, longer : float
        Probability of a loss and mean years to it by the upper estimate, as shares of those
        counted.
    dependence : float
        See `AnyLoss.error`.
    """

    def __init__(
        self,
        values: Mapping[str, float],
        errors: Mapping[str, float],
        later: float,
        longer: float,
        dependence: float,
    ) -> None:
        vars(self).update(values)
        probability, years = values["loss_probability_per_year"], values["mean_years_to_loss"]
        self.first_loss_upper = AnyLoss(probability * later, years * longer, (0.0, 1.0))
        apart = probability * (1.0 - later + dependence)
        either = errors["loss_probability_per_year"] + apart
        self.error_bounds = {**errors, "loss_probability_per_year": min(either, 1.0)}


@dataclass(frozen=True, repr=False)
class ExactMeasures(WithErrors, AboveFloor):
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
    reevaluate: Any = field(compare=False)
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
    def again(self) -> Any:
        """Former name of ``reevaluate``, for one release."""
        return self.reevaluate

    def interval(self, measure: str) -> Interval:
        """Return the 95 % interval of a measure from the card's low and high values.

        All uncertain numbers of the card are drawn together by a quasi-random sequence, 32 times
        (16 with more than 2,000 partitions, 8 for chains of more than 4,000 states). The interval
        is that of a further draw, by a two-piece log-normal, and never narrower than the draws.
        Each is solved to a thousandth; the error of its truncated chain is added to the ends.

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
            If `measure` is not the name of a measure.

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
        measure_table.measure(measure)
        compute_intervals([self])
        return self.intervals[measure]

    def under(self, cards: Sequence[FailureModel]) -> list[DrawnResult]:
        """The measures under other cards, solved together to a few digits; with their errors.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> (same,) = result.under([result.model])
        >>> round(same.write_unavailability / result.write_unavailability, 6)
        1.0
        """
        if not cards:
            return []
        drawn = self.reevaluate.draws(cards, producers=True)
        upper, own = self.first_loss_upper, self.loss_probability_per_year
        later = upper.probability / own if own else 1.0
        years = self.mean_years_to_loss
        longer = upper.mean_years / years if 0.0 < years < math.inf else 1.0
        return [
            DrawnResult(
                values={name: float(values[number]) for name, values in drawn.values.items()},
                errors={name: float(errors[number]) for name, errors in drawn.errors.items()},
                later=later,
                longer=longer,
                dependence=upper.error,
            )
            for number in range(len(cards))
        ]

    def intervals_of_draws(self, drawn: Sequence[DrawnResult]) -> dict[str, Interval]:
        """Every interval from draws of the card.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> intervals = result.intervals_of_draws([])
        >>> intervals["write_stalled"] == (result.write_stalled, result.write_stalled)
        True
        """
        return {name: self._interval_of(name, drawn) for name in measure_table.names()}

    def _interval_of(self, name: str, drawn: Sequence[DrawnResult]) -> Interval:
        """Interval of a measure from the results of draws of the card."""
        entry = measure_table.measure(name)
        value = float(entry.of(self))
        if not drawn:
            return (value, value)
        fit = uncertainty.fit_of(entry.is_probability)
        low, high = fit([float(entry.of(result)) for result in drawn])
        if name in _OF_ALL_SETS:
            ends = fit([getattr(r.first_loss_upper, _OF_ALL_SETS[name]) for r in drawn])
            low, high = min(low, ends[0]), max(high, ends[1])
        most = 1.0 if entry.is_share else math.inf
        # Where failures outrun repairs no bound can be given, and the draws count as they are.
        # Rounding adds nothing, not even a rough solution's: two digits do not show it.
        worst = [result.at_worst(name) for result in drawn]
        if self.truncated_entries_per_year and all(
            math.isfinite(result.error_bounds["loss_events_per_year"]) for result in drawn
        ):
            ends = fit(worst)
            low, high = min(low, ends[0]), max(high, ends[1])
        return (min(low, value), min(max(high, value), most))

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
        value = float(measure_table.measure(measure).of(self))
        return 0.0 < value < math.inf and value <= 2.0 * self.error_bounds.get(measure, 0.0)

    @property
    def swings_are_quick(self) -> bool:
        """Whether `tornado` answers at once or in seconds: known already, or of a small chain."""
        return bool(self.swings) or not uncertainty.is_large(self.states, self.load.partitions)
