"""What `evaluate` returns: every measure, its causes, its interval and where it comes from."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from advisor import formatting, plotting
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.cost import Cost
from advisor.reliability.results.dependents import Dependents, dependents
from advisor.reliability.results.explanation import Explained
from advisor.reliability.results.fault_tolerance import Tolerance
from advisor.reliability.results.sensitivity import Tornado, tornadoes
from advisor.reliability.results.units import FRACTIONS, MEASURES, UNITS, check_measure
from advisor.reliability.workload import Workload
from advisor.tables import data_frame

if TYPE_CHECKING:
    import pandas as pd


# Measures that depend on what replica sets have in common, as `AnyLoss` calls them.
_OF_ALL_SETS = {"loss_probability_per_year": "probability", "mean_years_to_loss": "mean_years"}


@dataclass(frozen=True, repr=False)
class Reliability(Explained):
    """What a Kafka configuration loses and refuses, computed exactly from a card.

    All rates are long-run over all partitions of the workload; unavailabilities are fractions of
    time, mean over partitions.

    Attributes
    ----------
    loss_probability_per_year : float
        Of at least one loss event in a year that starts with every replica healthy.
    loss_events_per_year, acked_records_lost_per_year : float
    mean_years_to_loss : float
        Infinite if no modelled event loses anything.
    write_unavailability, read_unavailability : float
        The quick reactions (detection, election) are charged to the failure that needs them, in
        their mean length. That it ends, or another comes, meanwhile is neglected: with the
        shipped cards at most 5 % of a reaction.
    write_stalled : float
        Time in which acks=all waits for a follower that died or hangs in the ISR: until the
        controller notices, or 1 to 1.5 times ``replica.lag.time.max.ms``. None of it is in
        ``write_unavailability``; 0 with other acks.
    records_refused_per_year : float
        Written with more outage ahead than the producer waits, by the distribution of outages, or
        given up while acks=all waited for a follower.
    records_dropped_per_year : float
        With acks=0, which acknowledges nothing: records gone from logs, and never written to
        them (``records_refused_per_year`` counts these too). ``acked_records_lost_per_year`` is
        then 0; loss events are those in which records that a leader had are gone.
    tolerates : Tolerance
    causes : mapping of measure to mapping of mechanism to float
        The parts add up to the measure.
    bounds : (float, float)
        What ``loss_probability_per_year`` lies between, whatever the dependence between the
        replica sets and their leaders: the largest one's, and the sum. Equal for a single one.
    latest : AnyLoss
        The first loss of several sets if spells that began together, by a rack or the site, ended
        together too; the value counts them as each broker's own, which is sooner.
    error_bounds : mapping of measure to float
        How far each computed value may be from the model's own, in the measure's unit: what the
        states that the chain leaves out could add, and rounding. It has nothing to do with the
        uncertainty of the card, for which see :meth:`interval`.
    early_cuts_per_year : float
        Of the loss events, those by power that goes within `flush.seconds` after another failure
        stopped the writing.
    neglected_per_year : float
        How often the partitions enter states that the chain leaves out; 0 if it keeps all.
    states : int
        Of the chains that were solved.
    method : str
    assumptions : tuple of str
        What was assumed because the input did not say.
    cost : Cost
        Bytes stored and sent, and a coarse wait for acknowledgements.
    """

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
    reevaluate: Callable[[FailureModel], Reliability] = field(compare=False)
    evaluate_topic: Callable[..., Reliability] = field(compare=False)
    empty_leader_share: Callable[[], float | None] = field(compare=False)
    intervals: dict[str, Interval] = field(default_factory=dict, compare=False)
    swings: dict[str, Tornado] = field(default_factory=dict, compare=False)

    def interval(self, measure: str) -> Interval:
        """95 % interval of a measure from the card's low and high values.

        Every uncertain number of the card is drawn from its distribution, all at once, and the
        measure computed anew, for 32 quasi-random draws (8 for chains of over 4,000 states); a
        log-normal distribution fitted to them gives the interval. A card without ranges gives the
        value itself twice. The draws are solved roughly, which moves an end by a thousandth at
        most, less than its two digits show; what their chains leave out is added to the ends.

        Raises
        ------
        InputError
            For a name that is no measure.
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
        """A measure with its error, which adds to it, or shortens the time to a loss."""
        value: float = getattr(self, name)
        if name != "mean_years_to_loss":
            off = self.error_bounds[name]
            return value + (self._off_sooner if name == "loss_probability_per_year" else off)
        rate = 1.0 / value + self._off_sooner
        return 1.0 / rate if rate else math.inf

    @property
    def _off_sooner(self) -> float:
        """By how much the probability may be too low: replica sets only depend more, not less."""
        too_high = self.loss_probability_per_year - self.first_loss_upper.probability
        return self.error_bounds["loss_probability_per_year"] - too_high

    @property
    def swings_are_quick(self) -> bool:
        """Whether `tornado` answers at once or in seconds: known already, or of a small chain."""
        return bool(self.swings) or not uncertainty.is_large(self.states)

    def tornado(self, measure: str = "loss_events_per_year") -> Tornado:
        """Which number of the card moves a measure most, one at a time from low to high.

        Two evaluations for each uncertain number, the first time: some seconds, more for four and
        five replicas. They are solved roughly, to a thousandth of their value, on the states that
        matter for the card as it is; the ``error_bounds`` of :attr:`reevaluate` say what that misses.

        Raises
        ------
        InputError
            For a name that is no measure.
        """
        check_measure(measure)
        if not self.swings:
            values = {name: getattr(self, name) for name in MEASURES}
            self.swings.update(tornadoes(self.reevaluate, self.model, values, UNITS))
        return self.swings[measure]

    def dependents(self) -> Dependents:
        """How long consumer groups and transactions stop, by their internal topics too."""
        return dependents(self)

    def to_dict(self) -> dict[str, Any]:
        """Measures, intervals, causes and inputs as plain data."""
        return {
            "measures": {name: getattr(self, name) for name in MEASURES},
            "intervals": {name: list(self.interval(name)) for name in MEASURES},
            "tolerates": vars(self.tolerates),
            "causes": {name: dict(parts) for name, parts in self.causes.items()},
            "loss_probability_bounds": list(self.bounds),
            "error_bounds": dict(self.error_bounds),
            "neglected_per_year": self.truncated_entries_per_year,
            "method": self.method,
            "assumptions": list(self.assumptions),
            "config": self.config.to_dict(),
            "load": self.load.to_dict(),
            "cost": self.cost.to_dict(),
            "model": self.model.name,
        }

    def to_frame(self) -> pd.DataFrame:
        """One row a measure: value, low, high, unit.

        Raises
        ------
        MissingExtraError
            Without pandas.
        """
        rows = [(name, getattr(self, name), *self.interval(name), UNITS[name]) for name in MEASURES]
        return data_frame(rows, ("measure", "value", "low", "high", "unit"))

    def plot(self, ax: Any = None) -> Any:
        """Draw the measures with their intervals on matplotlib axes; returns the axes."""
        return plotting.draw("reliability", self, ax)

    def __repr__(self) -> str:
        return (
            f"{self.verdict}\n{formatting.capital(str(self.tolerates))}.\n{self.numerical_error()}"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th scope='row' style='text-align:left'>{name}</th>"
            f"<td>{formatting.significant(getattr(self, name))}</td>"
            f"<td>{' to '.join(dict.fromkeys(map(formatting.significant, self.interval(name))))}</td>"
            f"<td>{UNITS[name]}</td></tr>"
            for name in MEASURES
        )
        return (
            f"<p><strong>{html.escape(self.verdict)}</strong></p>"
            f"<p>{html.escape(formatting.capital(str(self.tolerates)))}.</p><p>{html.escape(self.numerical_error())}</p>"
            "<table><thead><tr><th>measure</th><th>value</th><th>95 % interval</th>"
            f"<th>unit</th></tr></thead><tbody>{rows}</tbody></table>"
        )
