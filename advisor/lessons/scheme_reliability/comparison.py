"""Kafka's ISR beside other replication schemes, under the same failure model and faults.

`quorum_rules` has the schemes' rules. Every row has the measures of :class:`Reliability`, computed
in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from advisor.errors import NotComputedError
from advisor.formatting import significant
from advisor.lessons.scheme_reliability.measures import SchemeSolution
from advisor.lessons.scheme_reliability.quorum_rules import FLUSHED_MAJORITY, SCHEMES, Quorums
from advisor.lessons.scheme_reliability.state_space import SchemeChain
from advisor.lessons.schemes.rules import ASYNCHRONOUS
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.case import Case
from advisor.reliability.common_cause.first_loss import any_loss
from advisor.reliability.common_cause.joint_survival import StrikeRates
from advisor.reliability.common_cause.placement import Brokers
from advisor.reliability.common_cause.set_losses import Tails
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures import uncertainty
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_environment import Exchangeable
from advisor.reliability.measures.first_losses import chances_along, picks
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

__all__ = [
    "FLUSHED_MAJORITY",
    "KAFKA",
    "SchemeRow",
    "compare_schemes",
    "rows_beside",
    "scheme_intervals",
    "scheme_row",
]

KAFKA = "isr"
MOST_REPLICAS = 3
"""With more replicas there are too many states to explore them all."""

_RULES = {1: "the leader alone", 0: "no log: the producer asks for no answer"}
_MOVES_BACK = (
    "After a failure the preferred leader is re-elected, and both moves may lose records that were "
    "not yet replicated: about twice as many such loss events as with the asynchronous scheme, "
    "which moves once. The time to the first loss differs less."
)
_STAYS = (
    "The new leader stays. With acks=1 Kafka re-elects the preferred leader later, which may lose "
    "records that were not yet replicated once more: about twice as many such loss events. The "
    "time to the first loss differs less."
)
# Share of a measure that the states left out of draws may add with the card's own values.
_LEFT_OUT = 1e-6


@dataclass(frozen=True)
class SchemeRow:
    """Measures of one replication scheme.

    name: "isr" for Kafka with the given configuration.
    rule: in words: which replicas must have a record before it is acknowledged.
    loss_probability_per_year: probability of at least one loss event in a year that starts healthy,
        over all partitions.
    loss_events_per_year: loss events a year, over all partitions.
    mean_years_to_loss: mean years until the first loss event; infinite if no modelled event loses
        records.
    acked_records_lost_per_year: acknowledged records within retention that are lost a year, over
        all partitions.
    write_unavailability, read_unavailability: long-run fractions of time, mean over partitions.
    write_stalled: fraction of time in which writes wait for a follower to leave the ISR; Kafka
        only. The waits of a synchronous scheme are in ``write_unavailability``; a majority waits
        for the fastest replicas, and an asynchronous leader for none.
    records_refused_per_year: records that producers give up a year, with the configuration's
        retries, over all partitions.
    records_dropped_per_year: records dropped a year by Kafka with acks=0; other schemes acknowledge
        every record.
    note: a caveat for comparing the row with others; "" if none.
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
    """Compare a configuration with other schemes of as many replicas on the same brokers.

    config: Kafka's settings. The other schemes take from it the replication factor, what decides
        the placement, and how long producers retry.
    model: failure and repair rates.
    load: traffic and retention; by default `Workload()`.
    Returns Kafka's row, named "isr", then "synchronous", "majority", "flushed majority" and
        "asynchronous".
    Raises NotComputedError if there are more than three replicas, or a repair has a shape of more
        than 2.
    Raises InputError if Kafka could not place the topic.

    >>> import advisor
    >>> cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    >>> crash = {"per_year": 5, "minutes": 10}
    >>> model = advisor.FailureModel.from_dict({"broker": {"crash": crash}})
    >>> config = advisor.Config(replication_factor=3, min_insync_replicas=2)
    >>> for row in compare_schemes(cluster, config, model):
    ...     print(f"{row.name}: {row.write_unavailability:.1e}")
    isr: 2.7e-08
    synchronous: 2.9e-04
    majority: 2.7e-08
    flushed majority: 2.7e-08
    asynchronous: 8.6e-13
    """
    return rows_beside(evaluate(cluster, config, model, load))


def rows_beside(result: Reliability) -> tuple[SchemeRow, ...]:
    """Compare a result of `evaluate` with the other schemes; see `compare_schemes`.

    result: of a topic placed as Kafka would place it.
    """
    config = result.config
    assert config.acks is not None
    rule = f"the in-sync replicas, at least {config.effective_min_insync_replicas}"
    kafka = SchemeRow(
        name=KAFKA,
        rule=rule if config.acks == "all" else _RULES[int(config.acks)],
        note=_own_note(result),
        **{measure: getattr(result, measure) for measure in measure_table.computed()},
    )
    case = _case_of(result)
    return (kafka, *(scheme_row(name, case) for name in SCHEMES))


def _case_of(result: Reliability) -> Case:
    return Case.read(result.cluster, result.config, result.model, result.load)


def _own_note(result: Reliability) -> str:
    """Caveat for comparing Kafka's row with others."""
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
    """95 % interval of each measure of a row, from the ranges of the failure model.

    The parameter draws are those of :meth:`Reliability.interval`, for paired comparison of rows.
    Each is solved to a thousandth on the states that matter with the card's own values: the others
    together add at most a millionth to any measure there.
    """
    if row.name == KAFKA:
        return {measure: result.interval(measure) for measure in measure_table.names()}
    if not result.model.uncertain:
        return {measure: (getattr(row, measure),) * 2 for measure in measure_table.names()}
    case = _case_of(result)
    drawn = uncertainty.parameter_draws(result.model, result.states, result.load.partitions)
    cases = [case.roughly(model) for model in drawn]
    # A range may end at zero: a draw in which nothing of the kind happens has other states.
    chains: dict[frozenset[str], dict[tuple[int, ...], SchemeChain]] = {}
    for drawn_case in (case.roughly(result.model), *cases):
        if drawn_case.chain.mechanisms not in chains:
            chains[drawn_case.chain.mechanisms] = chains_that_matter(row.name, drawn_case)
    draws = [
        scheme_row(row.name, drawn_case, chains[drawn_case.chain.mechanisms])
        for drawn_case in cases
    ]
    intervals = {}
    for entry in measure_table.entries():
        value, fit = entry.of(row), uncertainty.fit_of(entry.is_probability)
        low, high = fit([entry.of(draw) for draw in draws])
        most = 1.0 if entry.is_share else math.inf
        intervals[entry.name] = (min(low, value), min(max(high, value), most))
    return intervals


def chains_that_matter(name: str, case: Case) -> dict[tuple[int, ...], SchemeChain]:
    """For each rack pattern, the chain of the states that do nearly all of the harm."""
    scheme = _quorums(name, case)
    patterns = case.placement.replica_set_classes(Exchangeable.ALL)
    return {p: SchemeSolution(scheme, p, case).part(_LEFT_OUT) for p in patterns}


def _quorums(name: str, case: Case) -> Quorums:
    replicas = case.config.replication_factor
    assert replicas is not None
    if replicas > MOST_REPLICAS:
        raise NotComputedError(
            f"replication_factor={replicas}: other schemes are compared for up to {MOST_REPLICAS} "
            "replicas"
        )
    constants = case.chain.constants
    return Quorums.of(name, replicas, constants.copying, constants.page_cache)


def scheme_row(
    name: str, case: Case, chains: Mapping[tuple[int, ...], SchemeChain] | None = None
) -> SchemeRow:
    """Measures of one scheme, one of `SCHEMES`, for the replicas and the workload of a case.

    chains: default: those of all states.
    """
    scheme, placement = _quorums(name, case), case.placement
    replicas = len(placement.sets[0][0])
    classes = placement.replica_set_classes(Exchangeable.ALL)
    solved = {
        pattern: SchemeSolution(
            scheme, pattern, case, chains[pattern] if chains else None
        ).measures()
        for pattern in classes
    }
    first = any_loss(
        {pattern: measured.losses for pattern, measured in solved.items()},
        StrikeRates.of(
            [dict(case.events_per_year)], [dict(chances_along(case))], [dict(picks(case))]
        ),
        placement,
        Exchangeable.ALL,
        Tails(per_failure=1, leaders=replicas) if scheme.tail else None,
    ).of(0)

    def total(measure: str) -> float:
        return math.fsum(solved[p].amounts[measure] * n.partitions for p, n in classes.items())

    lost = total("acked_records_lost_per_year")
    return SchemeRow(
        name=name,
        rule=scheme.rule,
        # As for Kafka, a year that starts healthy is not said to lose more than an average one.
        loss_probability_per_year=min(first.probability, lost),
        loss_events_per_year=total("loss_events_per_year"),
        mean_years_to_loss=first.mean_years,
        acked_records_lost_per_year=lost,
        write_unavailability=total("write_unavailability") / placement.partitions,
        read_unavailability=total("read_unavailability") / placement.partitions,
        write_stalled=0.0,
        records_refused_per_year=total("records_refused_per_year"),
        records_dropped_per_year=0.0,
        note=_STAYS if name == ASYNCHRONOUS else "",
    )
