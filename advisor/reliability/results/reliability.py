"""What `evaluate` returns: every measure, its causes, its interval and where it comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor import formatting, plotting
from advisor.reliability import measure_table
from advisor.reliability.results import explanation
from advisor.reliability.results.dependents import Dependents, dependents
from advisor.reliability.results.exact_measures import ExactMeasures
from advisor.reliability.results.fault_tolerance import tolerance_in_words
from advisor.reliability.results.sensitivity import Tornado, tornadoes
from advisor.tables import MeasureTable
from advisor.verdicts import verdict_of


@dataclass(frozen=True, repr=False)
class Reliability(ExactMeasures, MeasureTable):
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

    _FRAME_COLUMNS = ("measure", "value", "low", "high", "unit")
    _HTML_COLUMNS = ("measure", "value", "95 % interval", "unit", "attribute")

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
        return explanation.summary(self.outlook)

    @property
    def outlook(self) -> explanation.Outlook:
        """The numbers behind the summary."""
        return explanation.outlook_of(self)

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
        return explanation.explain(self)

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
        say = formatting.significant
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
            *explanation.measured_lines(self),
            f"{tolerated}.",
            explanation.numerical_error(self),
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
