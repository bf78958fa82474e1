"""Kafka's ISR beside other replication schemes, under the same failure model and faults.

`quorum_rules` has the schemes' rules. Every row has the measures of :class:`Reliability`, computed
in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.errors import NotComputedError
from advisor.formatting import significant
from advisor.lessons.scheme_reliability.measures import SchemeSolution
from advisor.lessons.scheme_reliability.quorum_rules import SCHEMES, Quorums
from advisor.lessons.schemes.rules import ASYNCHRONOUS
from advisor.protocol.rules.config import Config
from advisor.reliability import measure_table
from advisor.reliability.case import Case
from advisor.reliability.common_cause.first_loss import any_loss
from advisor.reliability.common_cause.placement import Brokers
from advisor.reliability.common_cause.set_losses import Tails
from advisor.reliability.common_cause.struck_racks import StrikeRates
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_processes import Exchangeable
from advisor.reliability.measures.first_losses import chances_along, picks
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.workload import Workload

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


@dataclass(frozen=True)
class SchemeRow:
    """Measures of one replication scheme.

    rule: in words: which replicas must have a record before it is acknowledged.
    write_stalled: fraction of time in which writes wait for a follower to leave the ISR; Kafka
        only. The waits of a synchronous scheme are in ``write_unavailability``.
    records_dropped_per_year: records dropped by Kafka with acks=0; other schemes acknowledge every
        record.
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

    The other schemes take from the configuration the replication factor, what decides the
    placement, and how long producers retry. Kafka's row comes first and is named "isr".
    """
    return rows_beside(evaluate(cluster, config, model, load))


def rows_beside(result: Reliability) -> tuple[SchemeRow, ...]:
    """Compare a result of `evaluate`, of a topic that Kafka placed, with the other schemes."""
    config = result.config
    assert config.acks is not None
    rule = f"the in-sync replicas, at least {config.effective_min_insync_replicas}"
    kafka = SchemeRow(
        name=KAFKA,
        rule=rule if config.acks == "all" else _RULES[int(config.acks)],
        note=_own_note(result),
        **{measure: getattr(result, measure) for measure in measure_table.computed()},
    )
    case = Case.read(result.cluster, result.config, result.model, result.load)
    return (kafka, *(scheme_row(name, case) for name in SCHEMES))


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


def scheme_row(name: str, case: Case) -> SchemeRow:
    """Measures of one scheme, one of `SCHEMES`, for the replicas and the workload of a case."""
    placement, constants = case.placement, case.chain.constants
    replicas = len(placement.sets[0][0])
    if replicas > MOST_REPLICAS:
        raise NotComputedError(
            f"replication_factor={replicas}: other schemes are compared for up to {MOST_REPLICAS} "
            "replicas"
        )
    scheme = Quorums.of(name, replicas, constants.copying, constants.page_cache)
    classes = placement.replica_set_classes(Exchangeable.ALL)
    solved = {pattern: SchemeSolution(scheme, pattern, case) for pattern in classes}
    events, along = dict(case.events_per_year), dict(chances_along(case))
    first = any_loss(
        {pattern: solution.losses for pattern, solution in solved.items()},
        StrikeRates.of([events], [along], [dict(picks(case))]),
        placement,
        Exchangeable.ALL,
        Tails(per_failure=1, leaders=replicas) if scheme.tail else None,
    ).of(0)

    amounts = {pattern: solution.amounts for pattern, solution in solved.items()}

    def total(measure: str) -> float:
        return math.fsum(amounts[p][measure] * n.partitions for p, n in classes.items())

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
