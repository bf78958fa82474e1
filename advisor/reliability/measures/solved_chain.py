"""A chain filled with a card's numbers: every measure of one replica set, split by cause."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.case import ChainParameters, IsrStalls, ProducerTimeouts
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.truncation_error import third_failures, truncation_error
from advisor.reliability.common_cause.first_loss import SetLosses
from advisor.reliability.common_cause.outage_class import (
    Losses,
    OutageClasses,
    shared_loss_rates,
)
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import BrokerEvent, table, transition
from advisor.reliability.measures import ack_stalls, records_lost
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.log_levels import GAP_LOST
from advisor.reliability.solver import first_passage, generator, regenerative
from advisor.reliability.solver.sojourn_time import SojournTime
from advisor.reliability.statespace.flush_window import flush_window_loss
from advisor.reliability.statespace.lumping import lumping_error

Vector = NDArray[np.float64]
Causes = dict[str, float]
_LEADER_CHANGES = (Effect.FAILOVER, Effect.HANDOVER)

# What sums of a few thousand positive terms, each exact to 1e-16, may be off.
_ROUNDING = 1e-12
# In a rough solution: of so many sums, one after the other, each stops at its precision ...
_ROUGHLY = 10.0
# ... and the transform is inverted to three digits (0.6 for each of its five terms).
_ROUGHLY_INVERTED = 1e-3


@dataclass(frozen=True)
class SetMeasures:
    """What one partition on one replica set loses and refuses.

    Attributes
    ----------
    losses : (SetLosses, SetLosses)
        Second, if spells that began together end together too; see `outage_classes`.
    causes : dict of measure to dict of mechanism to float
        For all measures that are sums or shares of time; the parts add up to the measure.
    early_cuts_per_year : float
        Loss events by power that goes before all is on disk; see `early_cuts`.
    neglected_per_year : float
        Entries into states that the chain leaves out.
    states : int
    errors : dict of str to float
        How far each measure of ``causes`` may be off, in its unit.
    """

    losses: tuple[SetLosses, SetLosses]
    causes: dict[str, Causes]
    flush_window_losses_per_year: float
    truncated_entries_per_year: float
    states: int
    errors: dict[str, float]


class SolvedChain:
    """The chain of one replica set with its rates, solved.

    Parameters
    ----------
    structure : Structure
    parameters : ChainParameters
    """

    def __init__(self, structure: Structure, parameters: ChainParameters) -> None:
        self.chain, self.parameters = structure, parameters
        self.rates, self.precision = dict(parameters.rates_per_hour), parameters.precision
        self.destruction = dict(parameters.destruction_shares)
        self.table = np.array([self.rates[name] for name in structure.rate_names])
        self.rate: Vector = self.table[structure.rate] * structure.weight
        self.mechanism = [transition(name).mechanism.name for name in structure.rate_names]
        self.outage_hours = parameters.failovers.by_name(structure.rate_names)
        # A failed leader leads again later, and each of the two changes drops a tail.
        any_tail = -math.expm1(-parameters.tail_records)
        certain, tail = structure.did(Effect.LOSS), structure.did(Effect.TAIL)
        self.flow = self._flow(self.rate, np.zeros(structure.states))
        cuts = structure.cuts.per_hour(self.table, structure.states)[structure.target]
        # Hours after each transition during which the last records are not on disk.
        self.unflushed = structure.unflushed(
            parameters.unflushed_hours, parameters.hung_follower_hours
        )
        out = self.flow.out[structure.target]
        self.early, self.early_lost_hours = flush_window_loss(cuts, out, self.unflushed)
        self.tails: Vector = np.where(tail, 2.0 * any_tail, 0.0)
        self.events: Vector = certain + self.tails + self.early
        losing = certain - math.expm1(-2.0 * parameters.tail_records) * tail
        self.losing: Vector = losing + (1.0 - losing) * self.early
        self.pi = regenerative.stationary(self.flow, self.precision)
        self.flux: Vector = self.pi[structure.source] * self.rate
        rough = self.precision > generator.EXACT
        begun = self.flux * parameters.unflushed_hours * structure.did(Effect.UNFLUSHED)
        gaps = records_lost.LogGaps.of(structure, self.rate, begun)
        self.gaps = gaps.mean_hours(self.pi, parameters.retention_hours, rough)

    def _flow(self, rate: Vector, absorbed: Vector) -> generator.Generator:
        moves = (self.chain.source != self.chain.target) & (rate > 0)
        source, target = self.chain.source[moves], self.chain.target[moves]
        return generator.Generator.of(source, target, rate[moves], absorbed)

    def measures(self, timeouts: ProducerTimeouts, stalls: IsrStalls) -> SetMeasures:
        """Every measure, split by cause.

        Parameters
        ----------
        timeouts : ProducerTimeouts
        stalls : IsrStalls
        """
        causes = {
            **self._causes,
            "records_refused_per_year": self._refused(stalls, timeouts),
            "write_stalled": self._stalled(stalls),
            "records_dropped_per_year": {},
        }
        errors = self._errors(causes, stalls, timeouts)
        errors["records_dropped_per_year"] = 0.0
        if self.parameters.constants.acks == 0:
            _drop_what_nobody_acknowledged(causes, errors)
        return SetMeasures(
            losses=self._losses,
            causes=causes,
            flush_window_losses_per_year=float((self.flux * self.early).sum()) * HOURS_PER_YEAR,
            truncated_entries_per_year=sum(self._flux_beyond) * HOURS_PER_YEAR,
            states=self.chain.states,
            errors=errors,
        )

    @cached_property
    def _causes(self) -> dict[str, Causes]:
        """Of all measures that do not depend on how long producers wait."""
        return {
            "loss_events_per_year": self._by_trigger(self.flux * self.events * HOURS_PER_YEAR),
            "acked_records_lost_per_year": self._by_trigger(self._records_lost() * HOURS_PER_YEAR),
            "write_unavailability": self._unavailability(self.chain.writable),
            "read_unavailability": self._unavailability(self.chain.readable),
        }

    @cached_property
    def _missed(self) -> list[float]:
        """What is left out, as a share of all time; see `bounds.truncation_error`."""
        hours = max(self.parameters.failovers), self.parameters.unflushed_hours
        found = truncation_error(self.chain, self.rates, self.rate, *hours)
        share: list[float] = (found * self.pi[0]).tolist()
        share[0] += third_failures(self.chain, self.rates, self.rate, self.flux, self.unflushed)
        return share

    @cached_property
    def _flux_beyond(self) -> tuple[float, float]:
        """Into left-out states per hour, from states that are written and from the others."""
        beyond = self.chain.did(Effect.TRUNCATED)
        written = self.chain.writable[self.chain.source]
        return float(self.flux[beyond & written].sum()), float(self.flux[beyond & ~written].sum())

    @cached_property
    def _widest_gap_hours(self) -> float:
        """Writing in a gap, on average in the state where that is longest."""
        gaps = self.gaps / np.maximum(self.pi, 1e-300)[:, None]
        return min(
            float(gaps.max(initial=0.0)) + self.parameters.unflushed_hours,
            self.parameters.retention_hours,
        )

    def _errors(
        self,
        causes: dict[str, Causes],
        stalls: IsrStalls,
        timeouts: ProducerTimeouts,
    ) -> dict[str, float]:
        """How far every measure may be off: by what is left out, and by rounding."""
        events, totals, unwritable, unreadable, hours, stalled = self._missed
        year, parameters = HOURS_PER_YEAR, self.parameters
        records = parameters.records_per_hour
        lost = totals * parameters.retained_records + events * (
            records * self._widest_gap_hours + 2.0 * self.parameters.tail_records
        )
        # Nobody who waits for ever is refused.
        budget_hours = timeouts.outage_hours
        waiting = self._flux_beyond[1] * (budget_hours if math.isfinite(budget_hours) else 0.0)
        longest = max(stalls.dead_hours, stalls.hung_hours)
        most = ack_stalls.most_refused_hours(frozenset(self.mechanism), stalls, timeouts)
        # Without a bound on what is left out nobody waits if nobody has to.
        given_up = unwritable + waiting + (most and (stalled + self._flux_beyond[0]) * most)
        added = {
            "loss_events_per_year": events * year,
            "acked_records_lost_per_year": lost * year,
            "write_unavailability": unwritable,
            "read_unavailability": unreadable,
            "records_refused_per_year": given_up * records * year,
            "write_stalled": longest and (stalled + sum(self._flux_beyond)) * longest,
        }
        merged = lumping_error(self.chain.setup, self.chain.setting)
        rough = self.precision > generator.EXACT
        share = hours + merged + (_ROUGHLY * self.precision if rough else _ROUNDING)
        digits = _ROUGHLY_INVERTED if rough else records_lost.ACCURACY
        inverted = {"acked_records_lost_per_year": digits * bool(self.gaps.any())}
        whole = {name: math.fsum(causes[name].values()) for name in added}
        return {
            # Of nothing no share is missing, be it without a bound.
            name: amount + (whole[name] and (share + inverted.get(name, 0.0)) * whole[name])
            for name, amount in added.items()
        }

    @cached_property
    def _losses(self) -> tuple[SetLosses, SetLosses]:
        first = first_passage.first_loss(self.until_loss, HOURS_PER_YEAR, self.precision)
        events = self._causes["loss_events_per_year"]
        tails = self._by_trigger(self.flux * self.tails * HOURS_PER_YEAR)
        apart, at_once = self.chain.outage_classes
        found = SetLosses(first, events, self._together(apart), tails)
        if not self.parameters.joint_outages:
            return found, found
        return found, replace(found, shared=self._together(at_once))

    def _together(self, weak: OutageClasses) -> Losses:
        """Losses a year that other sets may have part in."""
        certain, early = self.flux * self.chain.did(Effect.LOSS), self.flux * self.early
        per_year = certain * HOURS_PER_YEAR, early * HOURS_PER_YEAR
        return shared_loss_rates(self.chain, weak, self.destruction, self.table, *per_year)

    @property
    def until_loss(self) -> generator.Generator:
        """The chain up to its first loss."""
        absorbed = np.bincount(self.chain.source, self.rate * self.losing, self.chain.states)
        return self._flow(self.rate * (1.0 - self.losing), absorbed.astype(np.float64))

    def _by_trigger(self, amounts: Vector) -> Causes:
        """Sum what transitions do by the mechanism that set them off."""
        return self._by_mechanism(self._by_name(amounts))

    def _by_name(self, amounts: Vector) -> Vector:
        """Sum what transitions do by the names of their rates."""
        return generator.sums(self.chain.rate, amounts, len(self.mechanism))

    def _by_mechanism(self, sums: Vector) -> Causes:
        """The sums of a mechanism's names in one.

        What a new disk or its copy sets off is the doing of what destroyed the old one.
        """
        causes: Causes = defaultdict(float)
        for name, amount in zip(self.chain.rate_names, sums.tolist(), strict=True):
            if amount > 0:
                for mechanism, share in transition_rates.causes_of(name, self.destruction).items():
                    causes[mechanism] += amount * share
        return dict(causes)

    def _by_blame(self, amounts: Vector) -> Causes:
        """Sum what states do by the mechanisms that keep replicas away in them."""
        causes: Causes = defaultdict(float)
        # No matrix product: its threads take longer than they save.
        each = (self._shares * amounts).sum(axis=1).tolist()
        for mechanism, amount in zip(self.chain.blame, each, strict=True):
            if amount <= 0:
                continue
            if mechanism == table().replacement.name:
                for name, part in self.destruction.items():
                    causes[name] += amount * part
            else:
                causes[mechanism] += amount
        return dict(causes)

    @cached_property
    def _shares(self) -> Vector:
        return np.stack(list(self.chain.blame.values()))

    def _unavailability(self, available: NDArray[np.bool_]) -> Causes:
        """Time in states without service, and the moments until a new leader serves."""
        return _added(
            self._by_blame(self.pi * ~available),
            self._by_mechanism((self._leader_changes(available) * self.outage_hours).sum(axis=1)),
        )

    def _stalled(self, stalls: IsrStalls) -> Causes:
        """Time in which acks=all waits for followers that have not left the ISR yet."""
        dead, hung = stalls.dead_hours, stalls.hung_hours
        lags = {entry.name for entry in table().with_effect(BrokerEvent.LAG)}
        hours = np.array([hung if name in lags else dead for name in self.mechanism])
        return self._by_mechanism(self._stalls_per_hour * hours)

    @cached_property
    def _stalls_per_hour(self) -> Vector:
        """By the names of rates."""
        return self._by_name(self.flux * self._stalling)

    @cached_property
    def _stalling(self) -> NDArray[np.bool_]:
        return ack_stalls.stalling(self.chain)

    def _leader_changes(self, available: NDArray[np.bool_]) -> Vector:
        """Failures and moves of the leader that end in service, per hour; by names of rates."""
        served = self.flux * (available[self.chain.source] & available[self.chain.target])
        each = [self._by_name(served * self.chain.did(change)) for change in _LEADER_CHANGES]
        return np.stack(each, axis=1)

    @cached_property
    def _unwritable(self) -> SojournTime:
        return SojournTime(self.flow, ~self.chain.writable)

    def _refused(self, stalls: IsrStalls, timeouts: ProducerTimeouts) -> Causes:
        """Records whose producer gives up: created with more ahead of them than it stalls."""
        per_year = self.parameters.records_per_hour * HOURS_PER_YEAR
        budget_hours = timeouts.outage_hours
        if math.isinf(budget_hours):
            return {}
        away = self.pi * self._unwritable.after(budget_hours)
        beyond = np.maximum(self.outage_hours - budget_hours, 0.0)
        moments = (self._write_changes * beyond).sum(axis=1)
        if max(stalls) > 0.0:
            weighted_cycle_gain = self._stalling, self._unwritable, stalls, timeouts
            moments += self._by_name(
                self.flux * ack_stalls.refused_hours(self.chain, *weighted_cycle_gain)
            )
        return _added(self._by_blame(away * per_year), self._by_mechanism(moments * per_year))

    @cached_property
    def _write_changes(self) -> Vector:
        return self._leader_changes(self.chain.writable)

    def _records_lost(self) -> Vector:
        """Expected acknowledged records lost, per hour and transition; none twice.

        Nothing older than the retention counts. A partition that loses all loses its whole log,
        which is as long as it was written since the last such loss.
        """
        per_hour, most = self.parameters.records_per_hour, self.parameters.retention_hours
        source, total = self.chain.source, self.chain.did(Effect.TOTAL)
        lost = np.zeros(len(source))
        in_gaps = np.zeros(len(source), dtype=bool)
        for gap in range(self.chain.gap_map.shape[1]):
            gone = (self.chain.gap_map[:, gap] == GAP_LOST) & ~total
            in_gaps |= gone
            lost += np.where(gone, self.gaps[source, gap] * self.rate, 0.0)
        lost += np.where(total, self.flux * self._whole_log_hours(total), 0.0)
        cached = self.chain.did(Effect.LOSS) & ~total & ~in_gaps
        lost += np.where(cached, self.flux * self.parameters.unflushed_hours, 0.0)
        lost += self.flux * self.early_lost_hours
        tails = min(2.0 * self.parameters.tail_records, most * per_hour)
        return lost * per_hour + np.where(self.chain.did(Effect.TAIL), self.flux * tails, 0.0)

    def _whole_log_hours(self, total: NDArray[np.bool_]) -> float:
        """Mean hours of writing that a log holds when all of it is lost.

        Such losses come as a Poisson process, as far as the chain starts anew after each.
        """
        most = self.parameters.retention_hours
        written = float(self.pi @ self.chain.writable)
        losses = float(self.flux[total].sum()) / written if written else 0.0
        return -math.expm1(-losses * most) / losses if losses * most > 0.0 else most


def _drop_what_nobody_acknowledged(causes: dict[str, Causes], errors: dict[str, float]) -> None:
    """With acks=0 no record is acknowledged: what is gone was dropped, in logs or before them."""
    lost, refused = "acked_records_lost_per_year", "records_refused_per_year"
    dropped = "records_dropped_per_year"
    causes[dropped] = _added(causes[lost], causes[refused])
    causes[lost] = {}
    errors[dropped] = errors[lost] + errors[refused]
    errors[lost] = 0.0


def _added(one: Causes, other: Causes) -> Causes:
    return {name: one.get(name, 0.0) + other.get(name, 0.0) for name in {**one, **other}}
