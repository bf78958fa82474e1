"""Kafka's ISR beside other replication schemes, under the same failure model and faults.

`quorum_rules` has the schemes' rules. Every row has the measures of :class:`Reliability`, computed
in the same way.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from advisor.errors import NotComputedError
from advisor.lessons.scheme_reliability.quorum_rules import SCHEMES, Quorums
from advisor.lessons.scheme_reliability.state_space import explored
from advisor.protocol.rules.config import Config
from advisor.reliability.case import Case, ProducerTimeouts
from advisor.reliability.common_cause.first_loss import any_loss
from advisor.reliability.common_cause.outage_class import outage_classes
from advisor.reliability.common_cause.placement import Brokers
from advisor.reliability.common_cause.set_losses import (
    FirstOfSet,
    Rates,
    SetLosses,
    Tails,
    YearlyLosses,
    losses_of_chain,
)
from advisor.reliability.common_cause.struck_racks import StrikeRates
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.failures.fault_processes import Exchangeable
from advisor.reliability.measures import records_lost, struck_alone
from advisor.reliability.measures.first_losses import chances_along, picks
from advisor.reliability.measures.loss_events import LossChances, RecordsAtRisk
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.solver import first_passage, generator, regenerative
from advisor.reliability.solver.generator import Vector
from advisor.reliability.solver.sojourn_time import SojournTime
from advisor.reliability.statespace.flush_window import flush_window_loss
from advisor.reliability.workload import Workload

KAFKA = "isr"
MOST_REPLICAS = 3
"""With more replicas there are too many states to explore them all."""


@dataclass(frozen=True)
class SchemeRow:
    """Measures of one replication scheme.

    write_stalled: fraction of time in which writes wait for a follower to leave the ISR; Kafka
        only. The waits of a synchronous scheme are in ``write_unavailability``.
    records_dropped_per_year: records dropped by Kafka with acks=0; other schemes acknowledge every
        record.
    """

    name: str
    loss_probability_per_year: float
    loss_events_per_year: float
    mean_years_to_loss: float
    acked_records_lost_per_year: float
    write_unavailability: float
    read_unavailability: float
    write_stalled: float
    records_refused_per_year: float
    records_dropped_per_year: float


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
    measures = [entry.name for entry in fields(SchemeRow) if entry.name != "name"]
    kafka = SchemeRow(name=KAFKA, **{measure: getattr(result, measure) for measure in measures})
    case = Case.read(result.cluster, result.config, result.model, result.load)
    return (kafka, *(scheme_row(name, case) for name in SCHEMES))


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
    )


class SchemeSolution:
    """The CTMC of one replica set with the numbers of a case, solved."""

    def __init__(self, scheme: Quorums, pattern: tuple[int, ...], case: Case) -> None:
        self.case, self.parameters, self.pattern = case, case.chain, pattern
        chain = explored(scheme, case.chain.environment(pattern).without_controller)
        self.chain = chain
        rates = dict(case.chain.rates_per_hour)
        self.rates_per_hour: Vector = np.array([rates[name] for name in chain.rate_names])
        self.rate: Vector = self.rates_per_hour[chain.rate] * chain.weight
        self.unflushed_hours = case.chain.unflushed_hours if scheme.page_cache else 0.0
        self.destruction = dict(case.chain.destruction_shares)
        self.generator = self._generator(self.rate, np.zeros(len(chain.keys)))
        stops = chain.writable[chain.source] & ~chain.writes
        failures = chain.flush_window.per_hour(self.rates_per_hour, len(chain.keys))[chain.target]
        unflushed: Vector = np.where(stops, self.unflushed_hours, 0.0)
        out = self.generator.out[chain.target]
        _, self.early_lost_hours = flush_window_loss(failures, out, unflushed)
        self.pi = regenerative.stationary(self.generator, case.chain.precision)
        self.flux: Vector = self.pi[chain.source] * self.rate
        # An unreplicated tail is dropped once another replica leads.
        leaving = np.minimum(chain.failed + chain.moved, 1.0)
        self.dropping: Vector = scheme.tail * leaving * (chain.writable[chain.source] & chain.reads)
        per_second = case.load.records_per_second / case.load.partitions
        self.tail_records = per_second * case.load.replication_delay_ms / 1000.0
        self.tail_records = min(self.tail_records, self.parameters.retained_records)
        self.at_risk = self._records_at_risk(failures, out, unflushed)
        self.tails = bool(scheme.tail)
        self.outage_hours = case.chain.failovers.by_name(chain.rate_names)[chain.rate]

    def _records_at_risk(self, failures: Vector, out: Vector, unflushed: Vector) -> RecordsAtRisk:
        """Records at risk at each transition; see `RecordsAtRisk` for the parameters."""
        chain = self.chain
        # A gap begun by a power failure starts with the lost page caches; that these may have been
        # part of an older gap is neglected.
        gaps = records_lost.LogGaps(
            source=chain.source,
            target=chain.target,
            rate=self.rate[:, None],
            gap_map=chain.gap_map,
            count=chain.gaps,
            growing=chain.writable,
            new_gap=chain.unflushed,
            new_gap_hours=(self.flux * self.unflushed_hours)[:, None],
        )
        retention_hours = self.parameters.retention_hours
        within = records_lost.on_one_card(retention_hours)
        self.gap_hours = gaps.mean_hours(self.pi[:, None], within)[..., 0]
        return RecordsAtRisk(
            chain=chain,
            losses=chain.losses,
            dropping=self.dropping,
            tails=1,
            gaps=gaps,
            pi=self.pi,
            gap_hours=self.gap_hours,
            flush_window_failures_per_hour=failures,
            out=out,
            window_hours=unflushed,
            unflushed_hours=self.unflushed_hours,
            retention_hours=retention_hours,
            totals_per_hour=float(self.flux[chain.total].sum()),
            written=float(self.pi @ chain.writable),
            rough=False,
        )

    def _generator(self, rate: Vector, absorbed: Vector) -> generator.Generator:
        moves = (self.chain.source != self.chain.target) & (rate > 0)
        source, target = self.chain.source[moves], self.chain.target[moves]
        return generator.Generator.of(source, target, rate[moves], absorbed)

    @property
    def amounts(self) -> dict[str, float]:
        """Events and records a year, and fractions of time, of one partition."""
        chain = self.chain
        records = self.parameters.records_per_hour * HOURS_PER_YEAR
        dropped = float(self.flux @ self.dropping) * self.tail_records * HOURS_PER_YEAR
        losing = self._chances(1.0).probability
        return {
            "loss_events_per_year": float((self.flux * losing).sum()) * HOURS_PER_YEAR,
            "acked_records_lost_per_year": float(self._lost_hours.sum()) * records + dropped,
            "write_unavailability": math.fsum(self.pi[~chain.writable].tolist())
            + float(self._failovers(self.outage_hours, writing=True).sum()),
            "read_unavailability": math.fsum(self.pi[~chain.readable].tolist())
            + float(self._failovers(self.outage_hours, writing=False).sum()),
            "records_refused_per_year": float(sum(refused.sum() for refused in self._refused()))
            * records,
        }

    def _chances(self, partitions: float) -> LossChances:
        """Probabilities of a loss event of ``partitions`` that lose as one."""
        records_per_hour = self.parameters.records_per_hour * partitions
        return self.at_risk.chances(records_per_hour, self.tail_records * partitions)

    @property
    def losses(self) -> SetLosses:
        """Losses for combining replica sets."""
        chain, flux = self.chain, self.flux
        chances = self._chances(self.case.losing_together(Exchangeable.ALL, self.tails))
        losing = chances.probability
        absorbed = generator.sums(chain.source, self.rate * losing, len(chain.keys))
        until_loss = self._generator(self.rate * (1.0 - losing), absorbed)
        first = first_passage.first_loss(until_loss, HOURS_PER_YEAR, self.parameters.precision)
        if not chances.any_tail.any():
            precision = self.parameters.precision
            flux = regenerative.stationary(until_loss.renewed, precision)[chain.source] * self.rate
        per_year = flux * HOURS_PER_YEAR
        uncertain = per_year * (1.0 - chances.at_once)
        classes = outage_classes(chain.own, np.broadcast_to(self.pattern, chain.own.shape))
        names, rates = chain.rate_names, self.rates_per_hour[:, None]
        # One card is one draw: an axis of length 1 comes last.
        return losses_of_chain(
            chain,
            classes,
            classes,
            FirstOfSet(np.array([first.mean_hours]), np.array([first.probability]), first.method),
            (
                generator.sums(chain.rate, per_year * losing, len(names))[:, None],
                generator.sums(chain.rate, uncertain * chances.any_tail, len(names))[:, None],
            ),
            YearlyLosses(
                lossy=np.arange(len(per_year)),
                flux=per_year[:, None],
                at_once=(per_year * chances.at_once)[:, None],
                early=(uncertain * chances.window)[:, None],
                any_tail=(uncertain * chances.any_tail)[:, None],
                alone=struck_alone.not_known(len(self.pi))[..., None],
                out=np.array([1.0 - float(self.pi[0])]),
                by_name=generator.sums(chain.rate, per_year, len(names))[:, None],
            ),
            Rates.of(rates, [dict(self.parameters.rates_per_hour)], [self.destruction]),
        )

    def _failovers(self, hours: Vector, writing: bool) -> Vector:
        """Fraction of time until a new leader serves, where service continues, by transition.

        hours (transitions, 2): after a failure of the leader, and after a handover.
        """
        chain = self.chain
        before, after = (chain.writable, chain.writes) if writing else (chain.readable, chain.reads)
        changes = self.flux * (chain.failed * hours[:, 0] + chain.moved * hours[:, 1])
        return np.where(before[chain.source] & after, changes, 0.0)

    def _refused(self) -> tuple[Vector, Vector]:
        """Fraction of records whose producer gives up: by state and by transition.

        Unlike Kafka, no scheme waits for a follower to leave the ISR before an outage.
        """
        # A scheme responds to its producers, which retry on errors.
        config = self.case.config
        answered = config.changed(acks=1) if config.acks == 0 else config
        budget_hours = ProducerTimeouts.of(answered).outage_hours
        if math.isinf(budget_hours):
            return np.zeros(len(self.pi)), np.zeros(len(self.flux))
        refused = SojournTime(self.generator, ~self.chain.writable).after(budget_hours)
        beyond = np.maximum(self.outage_hours - budget_hours, 0.0)
        return self.pi * refused, self._failovers(beyond, writing=True)

    @property
    def _lost_hours(self) -> Vector:
        """Hours of writing lost per hour, except tails, by transition; no record counts twice."""
        chain, flux = self.chain, self.flux
        gone = (chain.gap_map == GAP_LOST) & ~chain.total[:, None]
        in_gaps = (self.gap_hours[chain.source] * gone).sum(axis=1) * self.rate
        cached = (chain.losses > 0) & ~chain.total & ~gone.any(axis=1)
        totals, written = float(flux[chain.total].sum()), float(self.pi @ chain.writable)
        retention_hours = self.parameters.retention_hours
        whole = records_lost.whole_log_hours(totals, written, retention_hours)
        at_once = chain.total * whole + cached * self.unflushed_hours + self.early_lost_hours
        lost: Vector = in_gaps + flux * at_once
        return lost
