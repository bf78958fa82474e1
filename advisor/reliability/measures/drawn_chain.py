"""The chain of one replica set under many cards at once: what the draws of a decision need of it.

What does not depend on a rate (which moves lose, open a gap, change the leader) is found once for a
chain; a draw only fills in numbers. Measures are those of `solved_chain`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.reliability import measure_table
from advisor.reliability.case import ChainParameters, IsrStalls, ProducerTimeouts
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.loss_bound import times
from advisor.reliability.chain.truncation_error import DrawnTruncation, truncation_of_draws
from advisor.reliability.common_cause.set_losses import (
    FirstOfSet,
    Rates,
    SetLosses,
    YearlyLosses,
    losses_of_chain,
)
from advisor.reliability.failures.failure_model import HOURS_PER_YEAR
from advisor.reliability.failures.mechanisms import HANGING, table, transitions
from advisor.reliability.measure_table import Measure
from advisor.reliability.measures import ack_stalls, struck_alone
from advisor.reliability.measures.late_losses import LateLosses, late_moves
from advisor.reliability.measures.loss_events import (
    LossChances,
    chance_in_gaps,
    lost_gaps,
    window_chance,
)
from advisor.reliability.measures.records_lost import (
    ACCURACY,
    CHERNOFF_EXPONENT,
    ROUGH_ACCURACY,
    LogGaps,
    hours_limited,
    whole_log_chance,
    whole_log_hours,
)
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver import first_passage, generator, regenerative
from advisor.reliability.solver.generator import EXACT, ROUGH, IntArray, Vector, adds_up
from advisor.reliability.solver.many_draws import (
    Connected,
    Elimination,
    ManyCycles,
    first_losses,
    follow,
)
from advisor.reliability.solver.once_per_chain import once_per_chain
from advisor.reliability.solver.sojourn_time import SojournTime
from advisor.reliability.statespace.flush_window import flush_window_loss
from advisor.reliability.statespace.lumping import lumping_error

_ROUNDING = 1e-12
# Nine tenths of the memory of a chain whose draws are solved.
_OF_MOVES = ("rate", "flux", "lossy_rate", "lossy_flux", "gaps", "gap_hours", "windows")


class _Moves(NamedTuple):
    """What a condensed chain's moves do, whatever their rates; each an array of their numbers.

    connected: restarts of each state come after the moves.
    lossy: moves that may lose: by themselves, tails, or by a power failure soon after; and those
        that destroy a broker, to which later losses are credited.
    losing, total, dropping, stopping, cached, in_gaps: rows of ``lossy`` that lose something other
        than tails, the whole log, tails; that stop writes; that lose page caches; that lose gaps.
    by_name: sums moves by name of rate.
    lossy_leaving, lossy_by_name: sum the lossy moves by source and by name of rate.
    """

    connected: Connected
    lossy: IntArray
    losing: IntArray
    total: IntArray
    dropping: IntArray
    stopping: IntArray
    cached: IntArray
    in_gaps: IntArray
    by_name: sparse.csr_array
    lossy_leaving: sparse.csr_array
    lossy_by_name: sparse.csr_array


@once_per_chain
def moves_of(chain: Structure) -> _Moves:
    """Sort the moves of a condensed chain by what they do."""
    states, names = np.arange(chain.states), len(chain.rate_names)
    source, target = chain.source, chain.target
    losing, tails = chain.with_effect(Effect.LOSS), chain.with_effect(Effect.TAIL)
    gaps = np.zeros(len(source), dtype=bool)
    gaps[lost_gaps(chain).move] = True
    destroying = np.zeros(len(source), dtype=bool)
    destroying[late_moves(chain).begin] = True
    power_loses = np.zeros(chain.states, dtype=bool)
    power_loses[chain.flush_window.state] = True
    stopping = chain.ends_writing & power_loses[target]
    lossy = np.flatnonzero(losing | chain.total | tails | stopping | gaps | destroying)
    ends = np.append(source, states), np.append(target, np.zeros_like(states))
    return _Moves(
        connected=Connected.of(*ends, chain.states),
        lossy=lossy,
        losing=np.flatnonzero(losing[lossy]),
        total=np.flatnonzero(chain.total[lossy]),
        dropping=np.flatnonzero(tails[lossy]),
        stopping=np.flatnonzero(stopping[lossy]),
        cached=np.flatnonzero((losing & ~chain.total & ~gaps)[lossy]),
        in_gaps=np.flatnonzero(gaps[lossy]),
        by_name=adds_up(chain.rate, names),
        lossy_leaving=adds_up(source[lossy], chain.states),
        lossy_by_name=adds_up(chain.rate[lossy], names),
    )


@once_per_chain
def _orders(_: Structure) -> dict[str, Elimination]:
    """In which order the rows of gaps, and of sets of them, are eliminated; filled in when met."""
    return {}


@once_per_chain
def truncated_moves(chain: Structure) -> sparse.csr_array:
    """How many transitions of each name lead from a state to truncated ones: (states, names)."""
    truncated = chain.with_effect(Effect.TRUNCATED)
    cells = chain.source[truncated], chain.rate[truncated]
    size = chain.states, len(chain.rate_names)
    return sparse.csr_array((chain.weight[truncated], cells), shape=size)


@dataclass(frozen=True)
class DrawnSet:
    """Measures of one partition on one replica set; values and errors of shape (draws,)."""

    values: dict[str, Vector]
    errors: dict[str, Vector]
    losses: SetLosses
    states: int


class DrawnChain:
    """A condensed chain under the rates of many draws."""

    def __init__(self, chain: Structure, parameters: Sequence[ChainParameters]) -> None:
        self.chain, self.parameters = chain, parameters
        self.rates = [dict(drawn.rates_per_hour) for drawn in parameters]
        self.moves, draws = moves_of(chain), len(parameters)
        self.name_rates = rates_of(chain, parameters)
        assert chain.restarts is not None
        self.restarts: Vector = chain.restarts @ self.name_rates
        cycles = self.cycles(self.rate, np.zeros((chain.states, draws)))
        self.out = cycles.out
        hours = cycles.visits()
        self.pi: Vector = hours / hours.sum(axis=0)
        self.unflushed = np.array([drawn.unflushed_hours for drawn in parameters])
        self.retention_hours = parameters[0].retention_hours
        self.rough = parameters[0].precision > EXACT
        self.accuracy = ROUGH_ACCURACY if self.rough else ACCURACY
        self.totals_per_hour = self.lossy_flux[self.moves.total].sum(axis=0)
        self.written: Vector = chain.writable.astype(np.float64) @ self.pi

    @cached_property
    def rate(self) -> Vector:
        """Of each move, given its source, per hour."""
        per_hour: Vector = self.name_rates[self.chain.rate] * self.chain.weight[:, None]
        return per_hour

    @cached_property
    def flux(self) -> Vector:
        """How often each move happens, per hour."""
        per_hour: Vector = self.pi[self.chain.source] * self.rate
        return per_hour

    @cached_property
    def lossy_rate(self) -> Vector:
        """As `rate`, of the lossy moves."""
        return self.rate[self.moves.lossy]

    @cached_property
    def lossy_flux(self) -> Vector:
        """As `flux`, of the lossy moves."""
        return self.flux[self.moves.lossy]

    def _forget_moves(self) -> None:
        """Free what has a number for each move or gap and draw: it is filled in again quickly."""
        for name in _OF_MOVES:
            self.__dict__.pop(name, None)

    def cycles(self, rate: Vector, absorbed: Vector) -> ManyCycles:
        """The cycles of the chain with other rates of its moves."""
        with_restarts = np.concatenate([rate, self.restarts])
        return ManyCycles(
            self.moves.connected, self.moves.connected.pairs @ with_restarts, absorbed
        )

    @cached_property
    def power_failures(self) -> Vector:
        """Power failures in each state that would lose the last writes."""
        return self.chain.flush_window.per_hour(self.name_rates, self.chain.states)

    @cached_property
    def windows(self) -> tuple[Vector, Vector, Vector]:
        """After each move that stops writes: hours until all is on disk, power failures, moves."""
        stops = self.moves.lossy[self.moves.stopping]
        target = self.chain.target[stops]
        return self._window_hours(stops), self.power_failures[target], self.out[target]

    def _window_hours(self, stops: IntArray) -> Vector:
        """Hours after moves that stop writes until all is on disk."""
        rate_transitions = transitions(self.chain.rate_names)
        waits = np.array([entry.hangs for entry in rate_transitions], dtype=np.float64)
        hung = np.array([drawn.hung_follower_hours for drawn in self.parameters])
        remaining_hours: Vector = self.unflushed - waits[self.chain.rate[stops], None] * hung
        return np.maximum(remaining_hours, 0.0)

    @cached_property
    def gaps(self) -> LogGaps:
        """How log gaps begin, move and end."""
        opening = self.chain.with_effect(Effect.UNFLUSHED)[:, None]
        hours = np.where(opening, self.flux * self.unflushed, 0.0)
        return LogGaps.of(self.chain, self.rate, hours, self.restarts)

    @cached_property
    def gap_hours(self) -> Vector:
        """As `LogGaps.mean_hours`."""
        return self.gaps.mean_hours(self.pi, self._within)

    @cached_property
    def lost_gap_hours(self) -> Vector:
        """Hours of writes in what each move loses that loses gaps."""
        lost = lost_gaps(self.chain)
        hours: Vector = self.gap_hours[self.chain.source[lost.move]] * lost.gaps[..., None]
        return np.asarray(hours.sum(axis=1))

    @cached_property
    def has_gaps(self) -> NDArray[np.bool_]:
        """Whether any record can be in a gap."""
        return np.asarray(self.gap_hours.any(axis=(0, 1)))

    @cached_property
    def longest_gap_hours(self) -> Vector:
        """Mean hours of writes in a gap, in the state where it is longest."""
        hours = self.gap_hours / np.maximum(self.pi, 1e-300)[:, None]
        longest = hours.max(axis=(0, 1), initial=0.0) + self.unflushed
        return np.asarray(np.minimum(longest, self.retention_hours))

    def _within(
        self,
        followed: str,
        ends: tuple[IntArray, IntArray],
        rates: Vector,
        out: Vector,
        ages: NDArray[np.bool_],
        source: Vector,
    ) -> Vector:
        """`records_lost.hours_within` of each draw."""
        retention, orders = self.retention_hours, _orders(self.chain)
        if retention <= 0.0 or not source.any():
            return np.zeros_like(source)
        if followed not in orders:
            orders[followed] = Elimination.of(len(out), *ends)
        order = orders[followed]
        unlimited = order.with_totals(rates, out)
        exits = out - CHERNOFF_EXPONENT / retention * ages[:, None]
        weighing = order.with_totals(rates, exits)
        with np.errstate(all="ignore"):
            hours, weighted = unlimited.forward(source), weighing.forward(source)
            beyond = np.exp(-CHERNOFF_EXPONENT) * weighted > self.accuracy / 2.0 * hours
        limited = unlimited.singular | weighing.singular | beyond.any(axis=0)
        for draw in np.flatnonzero(limited).tolist():
            into = order.into(rates[:, draw])
            hours[:, draw] = hours_limited(
                into, out[:, draw], ages, source[:, draw], retention, self.rough
            )
        return hours

    def chances(self, records_per_hour: float, tail_records: float) -> LossChances:
        """`RecordsAtRisk.chances` of each draw, of the lossy moves."""
        moves, lost = self.moves, lost_gaps(self.chain)
        shape = len(moves.lossy), len(self.rates)
        cached = -np.expm1(-records_per_hour * self.unflushed)
        at_once = np.zeros(shape)
        at_once[moves.losing] = cached
        if len(lost.move) and records_per_hour > 0.0:
            in_gaps = chance_in_gaps(
                *(self.gaps, lost, self.pi, self.lost_gap_hours),
                *(records_per_hour, self.unflushed, self._within),
            )
            losing = self.chain.with_effect(Effect.LOSS)[lost.move]
            at_once[moves.in_gaps] = in_gaps * losing[:, None]
        total = whole_log_chance(
            records_per_hour, self.totals_per_hour, self.written, self.retention_hours
        )
        at_once[moves.total] = total * np.isin(moves.total, moves.losing)[:, None]
        tails, any_tail = np.zeros(shape), np.zeros(shape)
        tails[moves.dropping] = -2.0 * np.expm1(-tail_records)
        any_tail[moves.dropping] = -np.expm1(-2.0 * tail_records)
        window = np.zeros(shape)
        window[moves.stopping] = window_chance(*self.windows, records_per_hour)
        return LossChances(at_once, tails, any_tail, window)

    def records_lost_per_hour(self, records_per_hour: float, tail_records: float) -> Vector:
        """Mean acknowledged records lost, none counted twice; see `SolvedChain`."""
        moves, flux = self.moves, self.lossy_flux
        hours = np.zeros_like(flux)
        if len(moves.in_gaps):
            hours[moves.in_gaps] = self.lost_gap_hours * self.lossy_rate[moves.in_gaps]
        hours[moves.total] += flux[moves.total] * whole_log_hours(
            self.totals_per_hour, self.written, self.retention_hours
        )
        hours[moves.cached] += flux[moves.cached] * self.unflushed
        window_hours, failures, out = self.windows
        hours[moves.stopping] += (
            flux[moves.stopping] * flush_window_loss(failures, out, window_hours)[1]
        )
        tails = 2.0 * tail_records * flux[moves.dropping].sum(axis=0)
        lost: Vector = records_per_hour * hours.sum(axis=0) + tails
        return lost

    def share_of_time(self, entry: Measure, parameters: Sequence[ChainParameters]) -> Vector:
        """Share of time in the states of a measure, and in leader changes between others."""
        chain = self.chain
        holds = chain.where(entry.holds)
        share: Vector = holds.astype(np.float64) @ self.pi
        if not entry.in_elections:
            return share
        served = ~holds[chain.source] & ~holds[chain.target]
        hours = np.stack([p.failovers.by_name(chain.rate_names) for p in parameters], axis=2)
        for column, change in enumerate((Effect.FAILOVER, Effect.HANDOVER)):
            rows = np.flatnonzero(served & chain.with_effect(change))
            share += (self.flux[rows] * hours[chain.rate[rows], column]).sum(axis=0)
        return share

    @cached_property
    def truncation(self) -> DrawnTruncation:
        """What states that are left out add at most."""
        stops = np.flatnonzero(self.chain.ends_writing)
        squared_windows = self.flux[stops] * self._window_hours(stops) ** 2
        return truncation_of_draws(
            self.chain.whole,
            self.rates,
            self.name_rates,
            self.pi,
            self.unflushed,
            self.chain.target[stops],
            squared_windows,
        )

    def measures(self, parameters: Sequence[ChainParameters], partitions: float) -> DrawnSet:
        """Compute what a decision needs; ``partitions`` count as one when records are lost."""
        records = parameters[0].records_per_hour
        tails = min(parameters[0].tail_records, parameters[0].retained_records)
        chances = self.chances(records, tails)
        events = (self.lossy_flux * chances.events).sum(axis=0) * HOURS_PER_YEAR
        values = {
            "loss_events_per_year": events,
            "acked_records_lost_per_year": HOURS_PER_YEAR
            * self.records_lost_per_hour(records, tails),
            **{e.name: self.share_of_time(e, parameters) for e in measure_table.of_states()},
        }
        if partitions != 1.0:
            chances = self.chances(records * partitions, tails * partitions)
        measured = DrawnSet(
            values, self._errors(values, parameters), self._losses(chances), self.chain.states
        )
        self._forget_moves()
        return measured

    def _errors(
        self, values: dict[str, Vector], parameters: Sequence[ChainParameters]
    ) -> dict[str, Vector]:
        """As `SolvedChain` bounds them: truncation, lumping, rounding and inversion."""
        missing, shared = self.truncation, parameters[0]
        failover_hours = np.array([max(drawn.failovers) for drawn in parameters])
        in_gaps = self.lossy_flux[self.moves.in_gaps].sum(axis=0)
        lost: Vector = times(shared.retained_records, missing.totals) + missing.losses * (
            shared.records_per_hour * self.longest_gap_hours + 2.0 * shared.tail_records
        )
        without_service = missing.without_service(failover_hours)
        events: Vector = (missing.losses + self.accuracy * in_gaps) * HOURS_PER_YEAR
        bounds: dict[str, Vector] = {
            "loss_events_per_year": events,
            "acked_records_lost_per_year": np.asarray(lost * HOURS_PER_YEAR),
            **{
                entry.name: without_service if entry.in_elections else missing.hours
                for entry in measure_table.of_states()
            },
        }
        inverted: Vector = np.asarray(self.accuracy * self.has_gaps, dtype=np.float64)
        return self._with_rounding(bounds, values, {"acked_records_lost_per_year": inverted})

    def _with_rounding(
        self,
        bounds: Mapping[str, Vector],
        values: Mapping[str, Vector],
        further: Mapping[str, Vector],
    ) -> dict[str, Vector]:
        """Bounds with errors that are a share of a value; of nothing they are nothing."""
        lumping = lumping_error(self.chain.constants, self.chain.environment)
        relative = self.truncation.hours + lumping + _ROUNDING
        with np.errstate(invalid="ignore"):
            return {
                name: bound
                + np.where(
                    values[name] > 0.0, (relative + further.get(name, 0.0)) * values[name], 0.0
                )
                for name, bound in bounds.items()
            }

    def of_producers(
        self,
        parameters: Sequence[ChainParameters],
        stalls: Sequence[IsrStalls],
        timeouts: ProducerTimeouts,
    ) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """What producers wait for and give up in each draw, and the error bounds of both."""
        chain, names = self.chain, self.chain.rate_names
        stalling = ack_stalls.stalling(chain)
        lags = {entry.name for entry in table().with_effect(*HANGING)}
        mechanisms = [entry.mechanism.name for entry in transitions(names)]
        dead, hung = (
            np.array([getattr(drawn, field) for drawn in stalls])
            for field in ("dead_hours", "hung_hours")
        )
        hours = np.where(np.isin(mechanisms, list(lags))[:, None], hung, dead)
        stalls_per_hour = self.moves.by_name @ (self.flux * stalling[:, None])
        values = {
            "write_stalled": (stalls_per_hour * hours).sum(axis=0),
            "records_refused_per_year": self._refused(parameters, stalls, timeouts, stalling),
        }
        from_writable, from_refusing = self.truncated_per_hour
        missing, records = self.truncation, parameters[0].records_per_hour
        longest = np.maximum(dead, hung)
        patience = timeouts.outage_hours if math.isfinite(timeouts.outage_hours) else 0.0
        most_refused_hours = np.array(
            [ack_stalls.max_refused_hours(frozenset(mechanisms), s, timeouts) for s in stalls]
        )
        unserved_hours = missing.without_service(
            np.array([max(drawn.failovers) for drawn in parameters])
        )
        refused_hours = (
            unserved_hours
            + from_refusing * patience
            + times(most_refused_hours, missing.events + from_writable)
        )
        bounds = {
            "write_stalled": times(longest, missing.events + from_writable + from_refusing),
            "records_refused_per_year": refused_hours * records * HOURS_PER_YEAR,
        }
        errors = self._with_rounding(bounds, values, {})
        self._forget_moves()
        return values, errors

    def _refused(
        self,
        parameters: Sequence[ChainParameters],
        stalls: Sequence[IsrStalls],
        timeouts: ProducerTimeouts,
        stalling: NDArray[np.bool_],
    ) -> Vector:
        """Records that time out a year; how long outages last is found draw by draw."""
        chain, budget_hours = self.chain, timeouts.outage_hours
        refused = np.zeros(len(parameters))
        if math.isinf(budget_hours):
            return refused
        absorbed, writable = np.zeros(chain.states), chain.writable
        within = writable[chain.source] & writable[chain.target]
        for draw, drawn in enumerate(parameters):
            one_draw = self._generator(self.rate[:, draw], absorbed, draw)
            outage = SojournTime(one_draw, ~writable)
            hours = float(self.pi[:, draw] @ outage.after(budget_hours))
            beyond = np.maximum(drawn.failovers.by_name(chain.rate_names) - budget_hours, 0.0)
            flux = self.flux[:, draw]
            for number, change in enumerate((Effect.FAILOVER, Effect.HANDOVER)):
                moves = within & chain.with_effect(change)
                hours += float(flux[moves] @ beyond[chain.rate[moves], number])
            if max(stalls[draw]) > 0.0:
                refused_hours = ack_stalls.refused_hours(
                    chain, stalling, outage, stalls[draw], timeouts
                )
                hours += float(flux @ refused_hours)
            refused[draw] = hours * drawn.records_per_hour * HOURS_PER_YEAR
        return refused

    @cached_property
    def truncated_per_hour(self) -> tuple[Vector, Vector]:
        """Entries into truncated states: from writable states, and from the others."""
        entries = truncated_moves(self.chain.whole)
        flux = self.pi * (entries @ self.name_rates)
        writable = self.chain.writable
        return flux[writable].sum(axis=0), flux[~writable].sum(axis=0)

    def _losses(self, chances: LossChances) -> SetLosses:
        """Losses of partitions on the same replicas, which count as one."""
        chain, moves, probability = self.chain, self.moves, chances.probability
        absorbed = moves.lossy_leaving @ (self.lossy_rate * probability)
        surviving = self.rate.copy()
        surviving[moves.lossy] *= 1.0 - probability
        first = first_losses(self.cycles(surviving, absorbed), HOURS_PER_YEAR)
        for draw in np.flatnonzero(first.unsettled).tolist():
            one_draw = self._generator(surviving[:, draw], absorbed[:, draw], draw)
            # As accurate as a draw is; all digits would take seconds a draw.
            first_loss = first_passage.first_loss(one_draw, HOURS_PER_YEAR, ROUGH)
            first.mean_hours[draw] = first_loss.mean_hours
            first.probability[draw] = first_loss.probability
            first.visits[:, draw] = regenerative.stationary(one_draw.renewed)
        pi = self.pi
        if not chances.tails.any():
            pi = first.visits / first.visits.sum(axis=0)
        flux = pi[chain.source] * self.rate
        surviving_flux = flux.copy()
        surviving_flux[moves.lossy] *= 1.0 - probability
        per_year = flux[moves.lossy] * HOURS_PER_YEAR
        late = LateLosses(chain, moves.lossy, surviving_flux)
        assert chain.restarts is not None
        by_name = moves.by_name @ flux + (chain.restarts.T @ pi) * self.name_rates
        year = YearlyLosses(
            lossy=moves.lossy,
            flux=flux * HOURS_PER_YEAR,
            at_once=late.credited(per_year * chances.at_once),
            early=per_year * chances.window,
            any_tail=per_year * chances.any_tail,
            alone=alone_of_draws(chain, surviving_flux),
            out=1.0 - self.pi[0],
            by_name=by_name * HOURS_PER_YEAR,
        )
        events, tails = (
            moves.lossy_by_name @ late.credited(per_year * losses)
            for losses in (chances.events, chances.tails)
        )
        separate, *_ = chain.outage_classes
        return losses_of_chain(
            chain,
            separate,
            separate,
            FirstOfSet(first.mean_hours, first.probability, "of many draws"),
            (events, tails),
            year,
            Rates.of(
                self.name_rates,
                self.rates,
                [dict(drawn.destruction_shares) for drawn in self.parameters],
            ),
        )

    def _generator(self, rate: Vector, absorbed: Vector, draw: int) -> generator.Generator:
        """The chain of one draw by itself."""
        connected = self.moves.connected
        rates = connected.pairs @ np.append(rate, self.restarts[:, draw])
        return generator.Generator.of(connected.source, connected.target, rates, absorbed)


def rates_of(chain: Structure, parameters: Sequence[ChainParameters]) -> Vector:
    """Rates per hour of a chain's names in each draw, shape (names, draws)."""
    names, place = parameters[0].rates_per_hour, {}
    for number, (name, _) in enumerate(names):
        place[name] = number
    rates = np.array([[rate for _, rate in drawn.rates_per_hour] for drawn in parameters])
    of_chain: Vector = rates.T[[place[name] for name in chain.rate_names]]
    return of_chain


def alone_of_draws(chain: Structure, flux: Vector) -> Vector:
    """`struck_alone.shares` of each draw, shape (4, states, draws)."""
    paths = struck_alone.paths(chain)
    moving, draws = flux[paths.move], flux.shape[1]
    arrivals = adds_up(paths.target, chain.states) @ moving
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(moving > 0.0, moving / arrivals[paths.target], 0.0)
    shares = np.zeros((struck_alone.MOST + 1, chain.states, draws))
    shares[0, 0] = 1.0
    after, changed = np.zeros_like(shares), np.full(draws, np.inf)
    for _ in range(struck_alone.MOST_STEPS):
        follow(paths[1:], share, shares, after, changed, struck_alone.PRECISION)
        shares, after = after, shares
        if (changed <= struck_alone.PRECISION).all():
            break
    unassigned = np.maximum(1.0 - shares.sum(axis=0), 0.0)
    return np.concatenate([shares, unassigned[None]])
