"""Other ways to replicate a log, under the same card and the same faults as Kafka's ISR.

Their rules are in :mod:`advisor.reliability.schemes.quorum_rules`. Every row carries the measures of
:class:`Reliability`, computed in the same way, so that it can be read beside Kafka's own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.errors import NotComputedError
from advisor.formatting import significant
from advisor.protocol.rules.config import Config
from advisor.protocol.schemes.rules import ASYNCHRONOUS
from advisor.reliability.common_cause.first_loss import Tails, any_loss
from advisor.reliability.common_cause.placement import Brokers, Exchangeable, place
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures import transition_rates, uncertainty
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.results.units import MEASURES, UNITS
from advisor.reliability.schemes.measures import measures
from advisor.reliability.schemes.quorum_rules import FLUSHED_MAJORITY, SCHEMES, Quorums
from advisor.reliability.solver.generator import EXACT, ROUGH
from advisor.reliability.workload import Workload

__all__ = [
    "FLUSHED_MAJORITY",
    "KAFKA",
    "MEASURES",
    "SchemeRow",
    "compare_schemes",
    "rows_beside",
    "scheme_intervals",
    "scheme_row",
]

KAFKA = "isr"
MOST_REPLICAS = 3
"""Beyond that there are too many states to go through them all."""

_RULES = {1: "the leader alone", 0: "no log: the producer asks for no answer"}
_MOVES_BACK = (
    "The leader moves back after a failure, and each way may lose what only a leader had: twice "
    "what the asynchronous scheme loses so."
)
_STAYS = (
    "The new leader stays. Kafka with acks=1 moves it back and loses what only a leader had twice "
    "as often."
)
_SHARES = ("probability", "fraction of time")


@dataclass(frozen=True)
class SchemeRow:
    """What one scheme loses and refuses.

    Attributes
    ----------
    name : str
        "isr" for the configuration that was asked about.
    rule : str
        Who must have a record before it is acknowledged, in words.
    loss_probability_per_year : float
        Of at least one loss event in a year that starts healthy, over all partitions.
    loss_events_per_year : float
        Over all partitions.
    mean_years_to_loss : float
        Infinite if no modelled event loses anything.
    acked_records_lost_per_year : float
        Over all partitions; nothing older than the retention counts.
    write_unavailability, read_unavailability : float
        Fractions of time, mean over partitions.
    write_stalled : float
        Time in which writes wait for replicas that are then given up; Kafka's alone. A
        synchronous scheme gives nobody up, so that its waits are in ``write_unavailability``; a
        majority waits for whoever answers first, and an asynchronous leader for nobody.
    records_refused_per_year : float
        Of producers that are as patient as the configuration's, over all partitions.
    records_dropped_per_year : float
        Of Kafka with acks=0 alone: in the other schemes every record is acknowledged.
    note : str
        What to know before the row is set beside another; "" if nothing.
    """

    name: str
    rule: str
    loss_probability_per_year: float
    loss_events_per_year: float
    mean_years_to_loss: float
    acked_records_lost_per_year: float
    write_unavailability: float
    read_unavailability: float
    write_stalled: float
    records_refused_per_year: float
    records_dropped_per_year: float
    note: str = ""


def compare_schemes(
    cluster: Brokers, config: Config, model: FailureModel, load: Workload | None = None
) -> tuple[SchemeRow, ...]:
    """Set a configuration beside the other schemes with as many replicas on the same brokers.

    Raises
    ------
    NotComputedError
        More than three replicas, or what `evaluate` does not compute.
    """
    return rows_beside(evaluate(cluster, config, model, load))


def rows_beside(result: Reliability) -> tuple[SchemeRow, ...]:
    """Set a result beside the other schemes; its own row holds its own figures.

    Parameters
    ----------
    result : Reliability
        With the replicas placed as Kafka would place them.

    Raises
    ------
    NotComputedError
        More than three replicas.
    """
    config = result.config
    words = f"the in-sync replicas, at least {config.effective_min_insync_replicas}"
    alone = config.acks != "all"
    kafka = SchemeRow(
        name=KAFKA,
        rule=_RULES[int(config.acks)] if alone and config.acks is not None else words,
        note=_own_note(result),
        **{measure: getattr(result, measure) for measure in MEASURES},
    )
    others = (
        scheme_row(name, result.cluster, config, result.model, result.load) for name in SCHEMES
    )
    return (kafka, *others)


def _own_note(result: Reliability) -> str:
    """What to know of Kafka's row before it is set beside another."""
    if result.config.acks == "all":
        return ""
    if result.config.acks == 1:
        return _MOVES_BACK
    dropped = significant(result.records_dropped_per_year)
    return (
        f"Nothing is acknowledged, so that no acknowledged record is lost: {dropped} records a "
        f"year are dropped instead. {_MOVES_BACK}"
    )


def scheme_intervals(row: SchemeRow, result: Reliability) -> dict[str, uncertainty.Interval]:
    """95 % interval of each measure of a row of `rows_beside`, from the ranges of the card.

    The draws are those of :meth:`Reliability.interval`: rows can be compared draw by draw.
    """
    if row.name == KAFKA:
        return {measure: result.interval(measure) for measure in MEASURES}
    if not result.model.uncertain:
        return {measure: (getattr(row, measure),) * 2 for measure in MEASURES}
    drawn = [
        scheme_row(row.name, result.cluster, result.config, model, result.load, ROUGH)
        for model in uncertainty.parameter_draws(result.model, result.states)
    ]
    found = {}
    for measure in MEASURES:
        value = getattr(row, measure)
        low, high = uncertainty.lognormal_interval([getattr(one, measure) for one in drawn])
        most = 1.0 if UNITS[measure] in _SHARES else math.inf
        found[measure] = (min(low, value), min(max(high, value), most))
    return found


def scheme_row(
    name: str,
    cluster: Brokers,
    config: Config,
    model: FailureModel,
    load: Workload,
    precision: float = EXACT,
) -> SchemeRow:
    """What one scheme loses and refuses, with the replicas placed as Kafka would place them.

    Parameters
    ----------
    name : str
        One of `SCHEMES`.
    cluster, config, model, load
        Of the configuration only the replication factor, what places replicas and how long
        producers retry count.
    precision : float
        Relative accuracy asked of the solver.
    """
    factor = config.replication_factor
    assert factor is not None
    if factor > MOST_REPLICAS:
        raise NotComputedError(
            f"replication_factor={factor}: other schemes are compared for up to {MOST_REPLICAS} "
            "replicas"
        )
    scheme = Quorums.of(name, factor)
    where = place(cluster, config, load.partitions)
    classes = where.replica_set_classes(Exchangeable.ALL)
    counts = {pattern: sets.partitions for pattern, sets in classes.items()}
    asked = (config, model, load, where.brokers, where.brokers_per_rack, precision)
    found = {pattern: measures(scheme, pattern, *asked) for pattern in classes}
    first = any_loss(
        {pattern: measured.losses for pattern, measured in found.items()},
        lambda name: (
            transition_rates.rate_per_hour(name, config, model, load, where.brokers)
            * HOURS_PER_YEAR
        ),
        where,
        Exchangeable.ALL,
        Tails(per_failure=1, leaders=factor) if scheme.tail else None,
    )

    def over_all(measure: str) -> float:
        return math.fsum(found[pattern].amounts[measure] * n for pattern, n in counts.items())

    partitions = where.partitions
    return SchemeRow(
        name=name,
        rule=scheme.rule,
        loss_probability_per_year=first.probability,
        loss_events_per_year=over_all("loss_events_per_year"),
        mean_years_to_loss=first.mean_years,
        acked_records_lost_per_year=over_all("acked_records_lost_per_year"),
        write_unavailability=over_all("write_unavailability") / partitions,
        read_unavailability=over_all("read_unavailability") / partitions,
        write_stalled=0.0,
        records_refused_per_year=over_all("records_refused_per_year"),
        records_dropped_per_year=0.0,
        note=_STAYS if name == ASYNCHRONOUS else "",
    )
