"""The solved CTMC of one replica set: every measure, split by mechanism, with error bounds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.reliability import measure_table
from advisor.reliability.case import ChainParameters, IsrStalls, ProducerTimeouts
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.truncation_error import third_failures, truncation_error
from advisor.reliability.common_cause.set_losses import (
    FirstOfSet,
    Rates,
    SetLosses,
    YearlyLosses,
    losses_of_chain,
)
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import HANGING, table, transitions
from advisor.reliability.measure_table import Measure
from advisor.reliability.measures import ack_stalls, records_lost, struck_alone
from advisor.reliability.measures.late_losses import LateLosses
from advisor.reliability.measures.loss_events import RecordsAtRisk
from advisor.reliability.measures.records_lost import LogGaps, on_one_card
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver import first_passage, generator, regenerative
from advisor.reliability.solver.generator import MovePattern, Vector
from advisor.reliability.solver.once_per_chain import once_per_chain
from advisor.reliability.solver.sojourn_time import SojournTime
from advisor.reliability.statespace.flush_window import flush_window_loss
from advisor.reliability.statespace.lumping import lumping_error

Causes = dict[str, float]
_LEADER_CHANGES = (Effect.FAILOVER, Effect.HANDOVER)

# Relative error of sums of a few thousand positive terms, each accurate to 1e-16.
_ROUNDING = 1e-12
# A rough solution takes this many sums in turn, each to the solver's precision.
_ROUGH_SUMS = 10.0


@dataclass(frozen=True)
class SetMeasures:
    """Measures of one partition on one replica set.

    losses: second, if outages that began together end together; see `Structure.outage_classes`.
    causes: parts of every measure that is a rate or a share of time; they add up to the measure.
    flush_window_losses_per_year: loss events by a power failure within the flush window.
    truncated_entries_per_year: entries into truncated states.
    errors: error bound of each measure in ``causes``, in its unit.
    """

    losses: tuple[SetLosses, SetLosses]
    causes: dict[str, Causes]
    flush_window_losses_per_year: float
    truncated_entries_per_year: float
    states: int
    errors: dict[str, float]

    @property
    def dropped(self) -> SetMeasures:
        """The same with acks=0: records are not acknowledged, and dropped if lost or refused."""
        causes, errors = dict(self.causes), dict(self.errors)
        lost, refused = "acked_records_lost_per_year", "records_refused_per_year"
        dropped = "records_dropped_per_year"
        causes[dropped] = _add(causes[lost], causes[refused])
        errors[dropped] = errors[lost] + errors[refused]
        causes[lost], errors[lost] = {}, 0.0
        return replace(self, causes=causes, errors=errors)


class SolvedChain:
    """The CTMC of one replica set with its rates, and its stationary distribution.

    rate, flux (transitions,): per hour, given the source state and unconditionally.
    pi (states,): stationary distribution.
    chances: loss events of one partition at each transition.
    """

    def __init__(self, structure: Structure, parameters: ChainParameters) -> None:
        self.chain, self.parameters = structure, parameters
        self.rates, self.precision = dict(parameters.rates_per_hour), parameters.precision
        self.destruction = dict(parameters.destruction_shares)
        self.name_rates = np.array([self.rates[name] for name in structure.rate_names])
        self.rate: Vector = self.name_rates[structure.rate] * structure.weight
        self.restarts: Vector = np.zeros(0)
        if structure.restarts is not None:
            self.restarts = structure.restarts @ self.name_rates
        rate_transitions = transitions(structure.rate_names)
        self.mechanisms = [entry.mechanism.name for entry in rate_transitions]
        self.failover_hours = parameters.failovers.by_name(structure.rate_names)
        self.generator = self._generator(self.rate, np.zeros(structure.states))
        failures = structure.flush_window.per_hour(self.name_rates, structure.states)
        failures = failures[structure.target]
        # Hours after each transition during which the last records are not on disk.
        hours = parameters.unflushed_hours, parameters.hung_follower_hours
        self.flush_hours = structure.unflushed(*hours)
        out = self.generator.out[structure.target]
        _, self.window_hours = flush_window_loss(failures, out, self.flush_hours)
        self.pi = regenerative.stationary(self.generator, self.precision)
        self.flux: Vector = self.pi[structure.source] * self.rate
        unflushed = self.flux * parameters.unflushed_hours * structure.with_effect(Effect.UNFLUSHED)
        restarts = self.restarts[:, None] if len(self.restarts) else 0.0
        gaps = LogGaps.of(structure, self.rate[:, None], unflushed[:, None], restarts)
        self.rough = self.precision > generator.EXACT
        within = on_one_card(parameters.retention_hours, self.rough)
        self.gap_hours = gaps.mean_hours(self.pi[:, None], within)[..., 0]
        self.tail_records = min(parameters.tail_records, parameters.retained_records)
        self.totals_per_hour = float(self.flux[structure.with_effect(Effect.TOTAL)].sum())
        self.written = float(self.pi @ structure.writable)
        self._at_risk = RecordsAtRisk(
            chain=structure,
            losses=structure.with_effect(Effect.LOSS).astype(np.float64),
            dropping=structure.with_effect(Effect.TAIL).astype(np.float64),
            # A failed leader leads again later, and each of the two changes drops a tail.
            tails=2,
            gaps=gaps,
            pi=self.pi,
            gap_hours=self.gap_hours,
            flush_window_failures_per_hour=failures,
            out=out,
            window_hours=self.flush_hours,
            unflushed_hours=parameters.unflushed_hours,
            retention_hours=parameters.retention_hours,
            totals_per_hour=self.totals_per_hour,
            written=self.written,
            rough=self.rough,
        )
        self.chances = self._at_risk.chances(parameters.records_per_hour, self.tail_records)
        self._losses: dict[float, tuple[SetLosses, SetLosses]] = {}
        self._shares: dict[Measure, Causes] = {}

    def _generator(self, rate: Vector, absorbed: Vector) -> generator.Generator:
        return _moves(self.chain).generator(np.append(rate, self.restarts), absorbed)

    def measures(
        self,
        timeouts: ProducerTimeouts,
        stalls: IsrStalls,
        partitions: float = 1.0,
        upper: bool = True,
        shares: Sequence[Measure] | None = None,
    ) -> SetMeasures:
        """Compute every measure.

        shares: measures that are shares of time in certain states; by default those of the table.
        upper: whether the second of the losses is wanted; otherwise it is the first.
        """
        shares = measure_table.of_states() if shares is None else shares
        causes = {
            **self._losses_by_cause,
            **{entry.name: self._share_of_time(entry) for entry in shares},
            "records_refused_per_year": self._refused(stalls, timeouts),
            "write_stalled": self._stalled(stalls),
            "records_dropped_per_year": {},
        }
        errors = self._errors(causes, shares, stalls, timeouts)
        if partitions not in self._losses:
            # Once for all producers; the first loss of all sets is remembered by them.
            self._losses[partitions] = self._losses_together(partitions, upper)
        errors["records_dropped_per_year"] = 0.0
        window_losses = float((self.flux * self.chances.window).sum())
        return SetMeasures(
            losses=self._losses[partitions],
            causes=causes,
            flush_window_losses_per_year=window_losses * HOURS_PER_YEAR,
            truncated_entries_per_year=sum(self._truncated_flux) * HOURS_PER_YEAR,
            states=self.chain.states,
            errors=errors,
        )

    @cached_property
    def _losses_by_cause(self) -> dict[str, Causes]:
        events = self.chances.events
        return {
            "loss_events_per_year": self._by_trigger(self.flux * events * HOURS_PER_YEAR),
            "acked_records_lost_per_year": self._by_trigger(self._records_lost() * HOURS_PER_YEAR),
        }

    @cached_property
    def _truncation_error(self) -> list[float]:
        """Truncation bounds, as shares of time or per hour; see `truncation_error`."""
        hours = max(self.parameters.failovers), self.parameters.unflushed_hours
        whole, rate = self.chain.whole, self._whole_rate
        bounds = truncation_error(whole, self.rates, rate, self.pi, *hours)
        errors: list[float] = bounds.tolist()
        stops = np.flatnonzero(self.flush_hours)
        squared_windows = self.flux[stops] * self.flush_hours[stops] ** 2
        errors[0] += third_failures(
            whole, self.rates, rate, self.chain.target[stops], squared_windows
        )
        return errors

    @cached_property
    def _whole_rate(self) -> Vector:
        """Rate of each transition of the chain that is not condensed."""
        whole = self.chain.whole
        return self.name_rates[whole.rate] * whole.weight

    @cached_property
    def _truncated_flux(self) -> tuple[float, float]:
        """Entries into truncated states per hour: from writable states, and from the others."""
        whole = self.chain.whole
        truncated = whole.with_effect(Effect.TRUNCATED)
        flux = self.pi[whole.source[truncated]] * self._whole_rate[truncated]
        writable = whole.writable[whole.source[truncated]]
        return float(flux[writable].sum()), float(flux[~writable].sum())

    @property
    def _gap_losses_per_year(self) -> float:
        """Transitions that lose gaps, with records in them or not."""
        return float(self.flux[self._at_risk.lost.move].sum()) * HOURS_PER_YEAR

    @cached_property
    def _max_gap_hours(self) -> float:
        """Mean hours of writes in a gap, in the state where it is longest."""
        gaps = self.gap_hours / np.maximum(self.pi, 1e-300)[:, None]
        return min(
            float(gaps.max(initial=0.0)) + self.parameters.unflushed_hours,
            self.parameters.retention_hours,
        )

    def _errors(
        self,
        causes: dict[str, Causes],
        shares: Sequence[Measure],
        stalls: IsrStalls,
        timeouts: ProducerTimeouts,
    ) -> dict[str, float]:
        """Error bound of every measure: truncation, lumping, rounding and inversion."""
        events, totals, without_service, hours, stalled = self._truncation_error
        year, parameters = HOURS_PER_YEAR, self.parameters
        records = parameters.records_per_hour
        lost = totals * parameters.retained_records + events * (
            records * self._max_gap_hours + 2.0 * parameters.tail_records
        )
        # A producer without a timeout refuses nothing.
        budget_hours = timeouts.outage_hours
        waiting = self._truncated_flux[1] * (budget_hours if math.isfinite(budget_hours) else 0.0)
        stall_hours = max(stalls.dead_hours, stalls.hung_hours)
        refused_hours = ack_stalls.max_refused_hours(frozenset(self.mechanisms), stalls, timeouts)
        # Stalls of no length add nothing, even if their number has no bound.
        refused_hours = refused_hours and (stalled + self._truncated_flux[0]) * refused_hours
        refused = (without_service + waiting + refused_hours) * records
        bounds = {
            "loss_events_per_year": events * year,
            "acked_records_lost_per_year": lost * year,
            **{e.name: without_service if e.in_elections else hours for e in shares},
            "records_refused_per_year": refused * year,
            "write_stalled": stall_hours and (stalled + sum(self._truncated_flux)) * stall_hours,
        }
        lumping = lumping_error(self.chain.constants, self.chain.environment)
        relative = hours + lumping + (_ROUGH_SUMS * self.precision if self.rough else _ROUNDING)
        inversion = records_lost.ROUGH_ACCURACY if self.rough else records_lost.ACCURACY
        inverted = {"acked_records_lost_per_year": inversion * bool(self.gap_hours.any())}
        # As a share of what would be lost without a retention: at most of every loss in a gap.
        bounds["loss_events_per_year"] += inversion * self._gap_losses_per_year
        values = {name: math.fsum(causes[name].values()) for name in bounds}
        return {
            # A relative error of 0 is 0, even if it has no bound.
            name: bound + (values[name] and (relative + inverted.get(name, 0.0)) * values[name])
            for name, bound in bounds.items()
        }

    def _losses_together(self, partitions: float, upper: bool) -> tuple[SetLosses, SetLosses]:
        """Losses of ``partitions`` on the same replicas, which count as one."""
        chances = self.chances
        if partitions != 1.0:
            # Poisson processes add up: one lost stretch holds records of any of them.
            records_per_hour = self.parameters.records_per_hour * partitions
            chances = self._at_risk.chances(records_per_hour, self.tail_records * partitions)
        probability = chances.probability
        until_loss = self.until_loss(probability)
        first = first_passage.first_loss(until_loss, HOURS_PER_YEAR, self.precision)
        # Tails are lost so often that what follows them counts, too.
        pi = self.pi
        if not chances.tails.any():
            # Every loss leads back to the healthy state, so that none follows another.
            pi = regenerative.stationary(until_loss.renewed, self.precision)
        flux = pi[self.chain.source] * self.rate
        surviving = flux * (1.0 - probability)
        per_year = flux * HOURS_PER_YEAR
        lossy = np.arange(len(flux))
        late = LateLosses(self.chain, lossy, surviving[:, None])
        by_name = self._by_name(per_year)
        if self.chain.restarts is not None:
            by_name += (pi @ self.chain.restarts) * self.name_rates * HOURS_PER_YEAR
        # One card is one draw: an axis of length 1 comes last.
        year = YearlyLosses(
            lossy=lossy,
            flux=per_year[:, None],
            at_once=late.credited((per_year * chances.at_once)[:, None]),
            early=(per_year * chances.window)[:, None],
            any_tail=(per_year * chances.any_tail)[:, None],
            alone=struck_alone.shares(self.chain, surviving)[..., None],
            out=np.array([1.0 - float(self.pi[0])]),
            by_name=by_name[:, None],
        )
        events, tails = (
            self._by_name(late.credited((per_year * losses)[:, None])[:, 0])[:, None]
            for losses in (chances.events, chances.tails)
        )
        rates = Rates.of(self.name_rates[:, None], [self.rates], [self.destruction])
        of_year = (
            FirstOfSet(np.array([first.mean_hours]), np.array([first.probability]), first.method),
            *((events, tails), year, rates),
        )
        separate, standing, joint = self.chain.outage_classes
        counted = losses_of_chain(self.chain, separate, separate, *of_year)
        if not (upper and self.parameters.joint_outages):
            return counted, counted
        return counted, losses_of_chain(self.chain, standing, joint, *of_year)

    def until_loss(self, loss_probability: Vector) -> generator.Generator:
        """The chain with the first loss as absorption, by its probability at each transition."""
        source, states = self.chain.source, self.chain.states
        absorbed = np.bincount(source, self.rate * loss_probability, states)
        surviving = self.rate * (1.0 - loss_probability)
        return self._generator(surviving, absorbed.astype(np.float64))

    def _by_trigger(self, amounts: Vector) -> Causes:
        """Sum over transitions, by the mechanism that triggers them."""
        return self._by_mechanism(self._by_name(amounts))

    def _by_name(self, amounts: Vector) -> Vector:
        """Sum over transitions, by the name of their rate."""
        return generator.sums(self.chain.rate, amounts, len(self.mechanisms))

    def _by_mechanism(self, sums: Vector) -> Causes:
        """Sum over rate names, by mechanism; a replacement belongs to what destroyed the broker."""
        names = self.chain.rate_names
        return transition_rates.sum_by_mechanism(names, sums.tolist(), self.destruction)

    def _by_outage(self, amounts: Vector) -> Causes:
        """Sum over states, by the mechanisms whose outages make them up."""
        causes: Causes = defaultdict(float)
        # Not a matrix product: its threads cost more than they save.
        sums = (self._outage_shares * amounts).sum(axis=1).tolist()
        for mechanism, amount in zip(self.chain.attribution, sums, strict=True):
            if amount <= 0:
                continue
            if mechanism == table().replacement.name:
                for name, share in self.destruction.items():
                    causes[name] += amount * share
            else:
                causes[mechanism] += amount
        return dict(causes)

    @cached_property
    def _outage_shares(self) -> Vector:
        return np.stack(list(self.chain.attribution.values()))

    def _share_of_time(self, entry: Measure) -> Causes:
        """Share of time in the states of a measure, and in leader changes between others."""
        if entry not in self._shares:
            holds = self.chain.where(entry.holds)
            causes = self._by_outage(self.pi * holds)
            if entry.in_elections:
                elections = (self._leader_changes(~holds) * self.failover_hours).sum(axis=1)
                causes = _add(causes, self._by_mechanism(elections))
            self._shares[entry] = causes
        return self._shares[entry]

    def _stalled(self, stalls: IsrStalls) -> Causes:
        """Share of time in which acks=all waits for a failed follower to leave the ISR."""
        dead, hung = stalls.dead_hours, stalls.hung_hours
        lags = {entry.name for entry in table().with_effect(*HANGING)}
        hours = np.array([hung if name in lags else dead for name in self.mechanisms])
        return self._by_mechanism(self._stalls_per_hour * hours)

    @cached_property
    def _stalls_per_hour(self) -> Vector:
        """Stalls of acknowledgements per hour, by name of rate."""
        return self._by_name(self.flux * self._stalling)

    @cached_property
    def _stalling(self) -> NDArray[np.bool_]:
        return ack_stalls.stalling(self.chain)

    def _leader_changes(self, available: NDArray[np.bool_]) -> Vector:
        """Failovers and handovers between available states per hour, by name of rate."""
        flux = self.flux * (available[self.chain.source] & available[self.chain.target])
        changes = [
            self._by_name(flux * self.chain.with_effect(change)) for change in _LEADER_CHANGES
        ]
        return np.stack(changes, axis=1)

    @cached_property
    def _write_outage(self) -> SojournTime:
        return SojournTime(self.generator, ~self.chain.writable)

    def _refused(self, stalls: IsrStalls, timeouts: ProducerTimeouts) -> Causes:
        """Records that time out: written with more of an outage or stall left than the timeout."""
        per_year = self.parameters.records_per_hour * HOURS_PER_YEAR
        budget_hours = timeouts.outage_hours
        if math.isinf(budget_hours):
            return {}
        outages = self.pi * self._write_outage.after(budget_hours)
        beyond = np.maximum(self.failover_hours - budget_hours, 0.0)
        changes = (self._write_changes * beyond).sum(axis=1)
        if max(stalls) > 0.0:
            refused_hours = ack_stalls.refused_hours(
                self.chain, self._stalling, self._write_outage, stalls, timeouts
            )
            changes += self._by_name(self.flux * refused_hours)
        return _add(self._by_outage(outages * per_year), self._by_mechanism(changes * per_year))

    @cached_property
    def _write_changes(self) -> Vector:
        return self._leader_changes(self.chain.writable)

    def _records_lost(self) -> Vector:
        """Mean acknowledged records lost per hour at each transition, none counted twice."""
        per_hour, retention = self.parameters.records_per_hour, self.parameters.retention_hours
        source, total = self.chain.source, self.chain.with_effect(Effect.TOTAL)
        lost, hours = self._at_risk.lost, np.zeros(len(source))
        gap_hours = (self.gap_hours[source[lost.move]] * lost.gaps).sum(axis=1)
        hours[lost.move] = gap_hours * self.rate[lost.move]
        whole_log_hours = records_lost.whole_log_hours(
            self.totals_per_hour, self.written, retention
        )
        hours += np.where(total, self.flux * whole_log_hours, 0.0)
        cached = self.chain.with_effect(Effect.LOSS) & ~total
        cached[lost.move] = False
        hours += np.where(cached, self.flux * self.parameters.unflushed_hours, 0.0)
        hours += self.flux * self.window_hours
        tails = np.where(self.chain.with_effect(Effect.TAIL), 2.0 * self.tail_records, 0.0)
        return hours * per_hour + self.flux * tails


@once_per_chain
def _moves(chain: Structure) -> MovePattern:
    source, target = chain.source, chain.target
    if chain.restarts is not None:
        states = np.arange(chain.states)
        source, target = np.append(source, states), np.append(target, np.zeros_like(states))
    return MovePattern.of(source, target, chain.states, np.arange(len(source)))


def _add(causes: Causes, more_causes: Causes) -> Causes:
    return {
        name: causes.get(name, 0.0) + more_causes.get(name, 0.0)
        for name in {**causes, **more_causes}
    }
