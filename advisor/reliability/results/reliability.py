"""What `evaluate` returns: every measure, its causes, its interval and where it comes from."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from advisor import formatting, plotting
from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import mechanisms, uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.cost import Cost
from advisor.reliability.results.fault_tolerance import Tolerance, never_writes, tolerance
from advisor.reliability.results.sensitivity import Tornado, tornadoes
from advisor.reliability.workload import Workload
from advisor.tables import data_frame

if TYPE_CHECKING:
    import pandas as pd

    from advisor.reliability.results.dependents import Dependents

# A share of the losses below this is not told.
_WORTH_A_LINE = 0.01

__all__ = ["MEASURES", "UNITS", "Reliability", "Tolerance", "tolerance"]

UNITS = {
    "loss_probability_per_year": "probability",
    "loss_events_per_year": "events/year",
    "mean_years_to_loss": "years",
    "acked_records_lost_per_year": "records/year",
    "write_unavailability": "fraction of time",
    "read_unavailability": "fraction of time",
    "write_stalled": "fraction of time",
    "records_refused_per_year": "records/year",
    "records_dropped_per_year": "records/year",
}

MEASURES = tuple(UNITS)
_FRACTIONS = tuple(name for name, unit in UNITS.items() if not unit.endswith(("year", "years")))
# Measures that depend on what replica sets have in common, as `AnyLoss` calls them.
_OF_ALL_SETS = {"loss_probability_per_year": "probability", "mean_years_to_loss": "mean_years"}

# Rarer than this, what the card leaves out matters more than what it holds.
_BEYOND_BELIEF_YEARS = 1e6
# A numerical error of a smaller share is not worth a number.
_HARDLY = 1e-6


def _check_measure(name: str) -> None:
    if name not in MEASURES:
        raise InputError(f"{name!r} is no measure; there are: {', '.join(MEASURES)}")


@dataclass(frozen=True, repr=False)
class Reliability:
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
        _check_measure(measure)
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
            most = 1.0 if name in _FRACTIONS else math.inf
            # Where failures outrun repairs no bound can be given, and the draws count as they are.
            # Rounding adds nothing, not even a rough solution's: two digits do not show it.
            worst = [result._at_worst(name) for result in drawn]
            if self.truncated_entries_per_year and all(
                math.isfinite(result.error_bounds["loss_events_per_year"]) for result in drawn
            ):
                ends = uncertainty.lognormal_interval(worst)
                low, high = min(low, ends[0]), max(high, ends[1])
            found[name] = (min(low, value), min(max(high, value), most))
        return found

    def _at_worst(self, name: str) -> float:
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

    def _has_no_digit(self, name: str) -> bool:
        """Whether a measure may be off by half of itself, or more."""
        value: float = getattr(self, name)
        return 0.0 < value < math.inf and value <= 2.0 * self.error_bounds[name]

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
        _check_measure(measure)
        if not self.swings:
            values = {name: getattr(self, name) for name in MEASURES}
            self.swings.update(tornadoes(self.reevaluate, self.model, values, UNITS))
        return self.swings[measure]

    @property
    def verdict(self) -> str:
        """One sentence: what is lost, what is refused, what it is mostly due to."""
        settings = (
            f"RF {self.config.replication_factor}, min.insync.replicas "
            f"{self.config.min_insync_replicas}, acks={self.config.acks}"
        )
        never = never_writes(self.config)
        return f"{settings}: {never or f'{self._loss_words()}; {self._refusal_words()}'}."

    def dependents(self) -> Dependents:
        """How long consumer groups and transactions stop, by their internal topics too."""
        from advisor.reliability.results import dependents

        return dependents.dependents(self)

    def _loss_words(self) -> str:
        if self.config.acks == 0:
            return (
                "nothing is acknowledged, so nothing counts as lost: "
                f"{formatting.significant(self.records_dropped_per_year)} records a year are dropped "
                "and their producer never knows"
            )
        if self.loss_events_per_year == 0:
            if self.error_bounds["loss_events_per_year"] > 0.0:
                least = formatting.years(self._at_worst("mean_years_to_loss"))
                return f"no loss was found; there is less than one in {least}"
            return "nothing in this failure model loses an acknowledged record"
        low, high = self.interval("mean_years_to_loss")
        if low >= _BEYOND_BELIEF_YEARS:
            least, most = formatting.years(low), formatting.years(high)
            within = formatting.interval(least, most) or f" (about once in {least})"
            return (
                "these failures lose an acknowledged record less than once in "
                f"a million years{within}, so mistakes and bugs, which no card knows, come first"
            )
        about = formatting.years(self.mean_years_to_loss)
        within = formatting.interval(formatting.years(low), formatting.years(high))
        return (
            f"you lose an acknowledged record about once in {about}{within}"
            f"{', an order of magnitude' * self._has_no_digit('mean_years_to_loss')}"
        )

    def _refusal_words(self) -> str:
        if self.write_unavailability == 0:
            return "writes are never refused"
        low, high = self.interval("write_unavailability")
        causes = self.causes["write_unavailability"]
        first = max(causes, key=lambda name: causes[name])
        share = causes[first] / self.write_unavailability
        about = formatting.time_per_year(self.write_unavailability)
        within = formatting.interval(formatting.time_per_year(low), formatting.time_per_year(high))
        most = f"{formatting.percent(share)} of it from {mechanisms.words(first)}"
        return f"writes stop {about}{within}, {most}"

    def _error_words(self) -> str:
        """How exact the computation is, whatever the card is worth."""
        off = [
            f"{name} by {formatting.significant(self.error_bounds[name])}"
            for name in MEASURES
            if self.error_bounds[name] > _HARDLY * getattr(self, name)
        ]
        rest = "no value is off by more than a millionth of itself"
        if off:
            rest = ", ".join([*off, "and any other value by a millionth of itself at most"])
            rest = rest.replace(" by ", " may be off by ", 1)
        left = "no state is left out"
        if self.truncated_entries_per_year:
            entered = formatting.significant(self.truncated_entries_per_year)
            left = f"rare states, entered {entered} times a year, are left out"
        vague = [name for name in MEASURES if self._has_no_digit(name)]
        magnitudes = f" Orders of magnitude, without a certain digit: {', '.join(vague)}."
        between = formatting.dependence(*self.bounds)
        return f"Numerical error: {left}; {rest}.{magnitudes if vague else ''}{between}"

    def explain(self) -> str:
        """The verdict, the three tolerance numbers, the causes and the assumptions, in words."""
        # Where no write ever succeeds there is nothing to divide by causes.
        told = () if never_writes(self.config) else ("loss_events_per_year", "write_unavailability")
        lines = [
            self.verdict,
            f"{formatting.capital(str(self.tolerates))}.",
            *([""] if told else []),
        ]
        for measure in told:
            parts = sorted(self.causes[measure].items(), key=lambda item: -item[1])
            whole = sum(part for _, part in parts)
            value = formatting.significant(getattr(self, measure))
            # One failure may hit many partitions: their losses come more often than the first.
            each = measure == "loss_events_per_year" and whole and self.load.partitions > 1
            lines.append(
                f"{measure} = {value}{', each partition by itself' if each else ''}"
                f"{', because of:' * bool(parts)}"
            )
            lines += [
                f"  {100 * part / whole:5.1f} %  {mechanisms.words(name)} ({name})"
                for name, part in parts
                if part > 0.0005 * whole
            ]
            if measure == "loss_events_per_year":
                lines += self._early_words()
            if whole and self.swings_are_quick:
                lines.append(self.tornado(measure).verdict)
        if self.write_stalled:
            waits = formatting.time_per_year(self.write_stalled)
            lines.append(f"acks=all waits {waits} more for followers that have to leave the ISR.")
        lines += ["", f"Card: {self.model.name}. Method: {self.method}."]
        lines.append(self._error_words())
        lines.append(f"Cost: {self.cost}")
        lines += [f"Assumed: {text}." for text in self.assumptions]
        return "\n".join(lines)

    def _early_words(self) -> list[str]:
        """How many of the losses take two failures, one soon after the other."""
        early, whole = self.flush_window_losses_per_year, self.loss_events_per_year
        if not whole or early < _WORTH_A_LINE * whole or not early:
            return []
        seconds = formatting.significant(self.model["flush.seconds"])
        return [
            f"{formatting.significant(100.0 * early / whole)} % of them are power lost within "
            f"{seconds} s after a failure stopped the writing: what was written last was not on "
            "disk yet. Each loses some seconds of records."
        ]

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
        return f"{self.verdict}\n{formatting.capital(str(self.tolerates))}.\n{self._error_words()}"

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
            f"<p>{html.escape(formatting.capital(str(self.tolerates)))}.</p><p>{html.escape(self._error_words())}</p>"
            "<table><thead><tr><th>measure</th><th>value</th><th>95 % interval</th>"
            f"<th>unit</th></tr></thead><tbody>{rows}</tbody></table>"
        )
