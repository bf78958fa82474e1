"""What `evaluate` returns: every measure, its causes, its interval and where it comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from advisor import formatting, plotting
from advisor.formatting import once_at_most, once_in, significant, time_per_year
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.common_cause.first_loss import AnyLoss
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.uncertainty import Interval
from advisor.reliability.results.cost import Cost
from advisor.reliability.results.dependents import Dependents, dependents
from advisor.reliability.results.explanation import (
    BETWEEN,
    EVENTS,
    LOSSES,
    STOPS,
    Amount,
    Outlook,
    main_cause,
    shares_of_causes,
    summary,
)
from advisor.reliability.results.fault_tolerance import (
    LossPath,
    Tolerance,
    never_writes,
    tolerance_in_words,
)
from advisor.reliability.results.floor import AboveFloor
from advisor.reliability.results.sensitivity import Tornado, compute_intervals, tornadoes
from advisor.reliability.workload import Workload
from advisor.tables import MeasureTable
from advisor.verdicts import verdict_of

# Smaller shares of the losses are not mentioned.
_SMALLEST_SHARE = 0.01
# A smaller relative numerical error is not mentioned.
_SMALLEST_ERROR = 1e-6
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
class Reliability(WithErrors, AboveFloor, MeasureTable):
    """What a Kafka configuration loses and refuses, computed exactly from a failure model.

    Rates are long-run and count all partitions of the workload; unavailabilities are fractions of
    time, averaged over partitions.

    Attributes
    ----------
    loss_probability_per_year : float
        Probability of at least one loss event in a year that starts with every replica healthy.
    loss_events_per_year, acked_records_lost_per_year : float
        Loss events, and acknowledged records lost.
    mean_years_to_loss : float
        Mean time to the first loss event; infinite if no modelled failure loses anything.
    write_unavailability, read_unavailability : float
        Fraction of time. Detection and election add their mean length to the failure that needs
        them. A second failure during that time is neglected: at most 5 % of it with the shipped
        cards.
    write_stalled : float
        Fraction of time in which acks=all waits for a dead or hung ISR member: until the controller
        notices, or 1 to 1.5 times ``replica.lag.time.max.ms``. Not part of
        ``write_unavailability``; 0 with other acks.
    records_refused_per_year : float
        Records whose producer gave up: written before an outage longer than its timeouts, or while
        acks=all waited for a follower.
    records_dropped_per_year : float
        With acks=0, which acknowledges nothing: records lost from logs, and records never written
        (also in ``records_refused_per_year``). ``acked_records_lost_per_year`` is then 0.
    tolerates : Tolerance
        Brokers that may fail without loss, while writable and while readable.
    causes : mapping of str to mapping of str to float
        Measure to mechanism to its part; the parts add up to the measure.
    bounds : (float, float)
        Bounds on ``loss_probability_per_year`` whatever the dependence between replica sets and
        between leaders: the largest of one set, and the sum. Equal for a single set.
    first_loss_upper : AnyLoss
        The first loss of several sets if outages that a rack or the site began on several brokers
        also ended together. The values end them broker by broker, so that a loss comes sooner.
        Destroyed brokers count as replaced one by one in both, unless a replacement itself loses.
    error_bounds : mapping of str to float
        Error of each measure, in its unit: truncated states, rounding, and for
        ``loss_probability_per_year`` and ``mean_years_to_loss`` also what replica sets share and is
        approximated. It has nothing to do with the uncertainty of the card; for that see
        `interval`.
    flush_window_losses_per_year : float
        Loss events by a power failure within ``flush.seconds`` after another failure stopped the
        writes.
    truncated_entries_per_year : float
        Entries into states that the chain leaves out; 0 if it keeps all.
    states : int
        States of the chains that were solved.
    method : str
        How the chains were solved and the sets combined.
    assumptions : tuple of str
        What was assumed because the input did not say.
    config, model, load, cluster
        The question.
    cost : Cost
        Bytes stored and sent, and a rough wait for acknowledgements.
    reevaluate : callable
        Evaluates another card on the same states, to a few digits.
    evaluate_card : callable
        Evaluates another card in full.
    evaluate_topic : callable
        Evaluates another topic on the same cluster and card: config, load, placement.
    empty_leader_share : callable
        Share of the losses by an empty broker that was replaced and elected, or None.
    likeliest_loss : callable
        The most probable way to a loss of a partition, a `LossPath`, or None.
    further : mapping of str to float
        Measures without a field of their own; each is an attribute as well.

    See Also
    --------
    evaluate : Computes it.
    Sampled : The same measures, sampled.

    Examples
    --------
    >>> import advisor
    >>> card = advisor.FailureModel.from_dict(
    ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
    ... )
    >>> config = advisor.Config(replication_factor=1, acks=1)
    >>> result = advisor.evaluate(advisor.Cluster.uniform(1, racks=1), config, card)
    >>> print(f"{result.write_unavailability:.3g}")
    3.81e-05
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
    reevaluate: Any = field(compare=False)
    evaluate_card: Callable[[FailureModel], Reliability] = field(compare=False)
    evaluate_topic: Callable[..., Reliability] = field(compare=False)
    empty_leader_share: Callable[[], float | None] = field(compare=False)
    likeliest_loss: Callable[[], LossPath | None] = field(compare=False)
    intervals: dict[str, Interval] = field(default_factory=dict, compare=False)
    samples: dict[str, tuple[float, ...]] = field(default_factory=dict, compare=False)
    swings: dict[str, Tornado] = field(default_factory=dict, compare=False)
    further: Mapping[str, float] = field(default_factory=dict)

    _FRAME_COLUMNS = ("measure", "value", "low", "high", "unit")
    _HTML_COLUMNS = ("measure", "value", "95 % interval", "unit", "attribute")

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

    @cached_property
    def verdict(self) -> Any:
        """What to set in place of this setting, or that it should stay: a `Verdict`.

        ``str`` gives its headline and text. The first reading evaluates other settings, and each of
        them in draws of the card: some seconds.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
        ... )
        >>> config = advisor.Config(replication_factor=3, min_insync_replicas=3)
        >>> result = advisor.evaluate(advisor.Cluster.uniform(3), config, card)
        >>> print(result.verdict.headline)
        Set RF 3, min ISR 1, acks=all.
        """
        return verdict_of("reliability", self)

    @property
    def summary(self) -> str:
        """Setting, data loss, time without writes and main cause, in at most 25 words."""
        return summary(self.outlook)

    @property
    def outlook(self) -> Outlook:
        """The numbers behind the summary."""
        years = Amount(self.mean_years_to_loss)
        if self.loss_events_per_year == 0 and self.error_bounds[EVENTS] > 0.0:
            years = Amount(self.at_worst(BETWEEN), seen=False)
        return Outlook(
            config=self.config,
            years=years,
            stopped=Amount(self.write_unavailability),
            dropped=Amount(self.records_dropped_per_year),
            main={LOSSES: main_cause(self.causes[EVENTS]), STOPS: main_cause(self.causes[STOPS])},
        )

    def explain(self) -> str:
        """Return summary, measures, tolerated failures, causes and assumptions as text.

        Without intervals: `interval` takes draws of the card.

        Returns
        -------
        str
            Several lines.

        See Also
        --------
        to_dict : The same as data.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
        ... )
        >>> config = advisor.Config(replication_factor=1, acks=1)
        >>> result = advisor.evaluate(advisor.Cluster.uniform(1, racks=1), config, card)
        >>> result.explain().split(", ")[0]
        'RF 1 with acks=1: no modelled data loss'
        """
        # Where no write ever succeeds there is nothing to divide by causes.
        explained = () if never_writes(self.config) else (EVENTS, STOPS)
        lines = [
            self.summary,
            *_measured_lines(self),
            f"{formatting.capital(tolerance_in_words(self.config))}.",
            *([""] if explained else []),
        ]
        for measure in explained:
            lines += _cause_lines(self, measure)
        if self.write_stalled:
            waits = time_per_year(self.write_stalled)
            lines.append(f"acks=all also stalls {waits}, until dead followers leave the ISR.")
        lines += _other_measures(self)
        lines += ["", f"Card: {self.model.name}. Method: {self.method}."]
        lines.append(_numerical_error(self))
        lines.append(f"Cost: {self.cost}")
        lines += [f"Assumed: {text}." for text in self.assumptions]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return measures, intervals, causes and inputs as plain data.

        Returns
        -------
        dict of str to Any
            Ready for JSON.

        See Also
        --------
        to_frame : Only the measures, as a table.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
        ... )
        >>> result = advisor.evaluate(advisor.Cluster.uniform(3), advisor.Config(), card)
        >>> result.to_dict()["model"]
        'custom'
        """
        return {
            "measures": {entry.name: entry.of(self) for entry in measure_table.entries()},
            "intervals": {name: list(self.interval(name)) for name in measure_table.names()},
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

    def _frame_rows(self) -> list[tuple[object, ...]]:
        return [
            (entry.name, entry.of(self), *self.interval(entry.name), entry.unit)
            for entry in measure_table.entries()
        ]

    def _html_rows(self) -> list[tuple[str, ...]]:
        say = significant
        return [
            (
                entry.words,
                say(entry.of(self)),
                " to ".join(dict.fromkeys(map(say, self.interval(entry.name)))),
                entry.unit,
                entry.name,
            )
            for entry in measure_table.entries()
        ]

    def _paragraphs(self) -> tuple[str, ...]:
        tolerated = formatting.capital(tolerance_in_words(self.config))
        return (
            *_measured_lines(self),
            f"{tolerated}.",
            _numerical_error(self),
        )

    def tornado(self, measure: str = "loss_events_per_year") -> Tornado:
        """Return how far each number of the card moves a measure, one at a time from low to high.

        The first call evaluates twice for each uncertain number, all together: a second, more for
        four and five replicas. These evaluations are solved to a thousandth on the card's own
        states; what that misses is in the ``error_bounds`` of `under`.

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
            If `measure` is not the name of a measure.

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
        measure_table.measure(measure)
        if not self.swings:
            values = {entry.name: entry.of(self) for entry in measure_table.entries()}
            self.swings.update(tornadoes(self.under, self.model, values))
        return self.swings[measure]

    def dependents(self) -> Dependents:
        """Return how long consumer groups and transactions stop, internal topics included.

        Examples
        --------
        >>> import advisor
        >>> cluster, config = advisor.Cluster.uniform(3), advisor.Config(replication_factor=2)
        >>> result = advisor.evaluate(cluster, config, "three_az_cloud")
        >>> print(result.dependents().explain().splitlines()[0][:24])
        A consumer group is down
        """
        return dependents(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw the measures with their intervals.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; new ones by default.

        Returns
        -------
        matplotlib.axes.Axes
            The axes drawn on.

        Raises
        ------
        MissingExtraError
            If matplotlib is not installed.

        See Also
        --------
        tornado : What moves a measure; has a plot of its own.

        Examples
        --------
        >>> import advisor
        >>> card = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 10.0}}}
        ... )
        >>> result = advisor.evaluate(advisor.Cluster.uniform(3), advisor.Config(), card)
        >>> from matplotlib.figure import Figure
        >>> axes = result.plot(Figure().add_subplot())
        """
        return plotting.draw("reliability", self, ax)

    def __repr__(self) -> str:
        return "\n".join([self.summary, *self._paragraphs()])


def _measured_lines(result: Reliability) -> list[str]:
    """Return the numbers of the summary in full, and where they come from; without intervals."""
    never = never_writes(result.config)
    if never:
        return [f"{formatting.capital(never)}."]
    uncertain = result.model.uncertain
    ranges = "solved exactly at the middle of each range" if uncertain else "solved exactly"
    return [
        _loss_line(result),
        _stop_line(result),
        f"Source: failure-model card {result.model.name}, {ranges}.",
    ]


def _loss_line(result: Reliability) -> str:
    if result.config.acks == 0:
        dropped = significant(result.records_dropped_per_year)
        return f"Records lost, never acknowledged: {dropped} a year."
    outlook = result.outlook
    years = outlook.years
    often = "none modelled"
    if math.isfinite(years.value):
        often = once_in(years.value) if years.seen else once_at_most(years.value)
    digit = ", an order of magnitude" * result.has_no_digit(BETWEEN)
    cause = f"; main cause of loss: {outlook.main[LOSSES]}" if outlook.main[LOSSES] else ""
    return f"Data loss: {often}{digit}{cause}."


def _stop_line(result: Reliability) -> str:
    if not result.write_unavailability:
        return "Refused writes: none modelled."
    said = time_per_year(result.write_unavailability)
    return f"Refused writes: {said}; main cause: {main_cause(result.causes[STOPS])}."


def _numerical_error(result: Reliability) -> str:
    """Numerical error in words; the uncertainty of the card is another matter."""
    rest = "no value is off by more than a millionth of itself"
    if off := _off_by(result):
        rest = f"{off}, and any other value by a millionth of itself at most"
    left = "no state is left out"
    if result.truncated_entries_per_year:
        entered = significant(result.truncated_entries_per_year)
        left = f"rare states, entered {entered} times a year, are left out"
    vague = [name for name in measure_table.names() if result.has_no_digit(name)]
    magnitudes = f" Good to an order of magnitude only: {', '.join(vague)}."
    between = formatting.dependence(*result.bounds)
    return f"Numerical error: {left}; {rest}.{magnitudes if vague else ''}{between}"


def _off_by(result: Reliability) -> str:
    """Errors that matter, such as "loss_probability_per_year may be off by 1e-8"; "" for none."""
    values = {entry.name: entry.of(result) for entry in measure_table.entries()}
    off = [
        f"{name} by {significant(error)}"
        for name, value in values.items()
        if (error := result.error_bounds.get(name, 0.0)) > _SMALLEST_ERROR * value
    ]
    return ", ".join(off).replace(" by ", " may be off by ", 1)


def _other_measures(result: Reliability) -> list[str]:
    """A line for each measure that the lines above do not give."""
    said = (LOSSES, EVENTS, BETWEEN, STOPS, "write_stalled")
    others = [entry for entry in measure_table.entries() if entry.name not in said]
    values = [(entry, entry.of(result)) for entry in others]
    return [f"{entry.name}: {significant(v)} {entry.unit}." for entry, v in values if v]


def _cause_lines(result: Reliability, measure: str) -> list[str]:
    """Return the causes of a measure as shares."""
    causes = result.causes[measure]
    whole = sum(sorted(causes.values(), reverse=True))
    name = "data loss" if measure != STOPS else "refused writes"
    counted = "" if measure == STOPS else _counted_in_partitions(result)
    heading = f"Causes of {name}{counted}:"
    lines = [heading] if whole else [f"Nothing in this card causes {name}."]
    lines += shares_of_causes(causes)
    if measure != STOPS:
        lines += _flush_window_words(result)
    return lines


def _counted_in_partitions(result: Reliability) -> str:
    """That one loss, as the summary counts them, may be of many partitions."""
    if result.load.partitions == 1:
        return ""
    of_partitions = result.loss_events_per_year
    at_once = of_partitions * result.mean_years_to_loss
    together = f", about {significant(at_once)} at once" if 1.5 <= at_once < math.inf else ""
    return f", counted in partitions ({significant(of_partitions)} lose records a year{together})"


def _flush_window_words(result: Reliability) -> list[str]:
    """Share of the losses by a power failure within the flush time after another failure."""
    early, whole = result.flush_window_losses_per_year, result.loss_events_per_year
    if not whole or early < _SMALLEST_SHARE * whole or not early:
        return []
    seconds = significant(result.model["flush.seconds"])
    return [
        f"{significant(100.0 * early / whole)} % of them are power lost within "
        f"{seconds} s after a failure stopped the writing: what was written last was not on "
        "disk yet. Each loses some seconds of records."
    ]
