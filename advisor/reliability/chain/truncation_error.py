"""The stated truncation error of every measure, with the rates of the card, or of many draws of it.

The rule and the proof are in :mod:`advisor.reliability.chain.state_selection`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy import sparse

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.loss_bound import (
    ExcursionBound,
    Limits,
    dying_hosts,
    power_per_hour,
    strikes_per_hour,
    times,
)
from advisor.reliability.chain.state_selection import PRECISION
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.solver.many_draws import gather
from advisor.reliability.solver.once_per_chain import once_per_chain
from advisor.reliability.statespace.state_index import codes_of_rows

Rates = Mapping[str, float]
"""Of everything that can happen, per hour."""


def truncation_error(
    chain: Structure,
    rates: Rates,
    rate: Vector,
    pi: Vector,
    outage_hours: float,
    unflushed_hours: float,
) -> Vector:
    """What excursions into truncated states add to each measure at most, per hour.

    rate (transitions,): per hour.
    pi (states,): stationary distribution, within PRECISION.
    outage_hours: without service at a change of leader, at most.
    Returns (5,): loss events, total losses, hours without service, hours, and stalls of
        acknowledgements.
    """
    left_out = left_out_of(chain)
    if not len(left_out.source):
        return np.zeros(5)
    risks = chain.election_risks[chain.states :]
    bound, losses = _excursion(chain, rates, left_out.waits, risks, unflushed_hours)
    unserved_hours = bound.hours + times(outage_hours, bound.events)
    cost = np.stack([losses, bound.totals, unserved_hours, bound.hours, bound.events], axis=1)
    # The chain starts anew where an excursion would begin, so that it visits the same states.
    flux = pi[left_out.source] * rate[left_out.moves]
    entries = sums(chain.truncated_target, flux, len(cost))
    # A sum over paths that stopped at PRECISION may lack that much.
    errors: Vector = times(entries, cost.T).sum(axis=1) / (1.0 - PRECISION)
    # Writes may stop with the transition into a truncated state, or in a state left out as rare.
    racks = chain.environment.racks
    power = unflushed_hours * power_per_hour(rates, racks, left_out.every_wait)
    stopping = times(flux * chain.stops_writes, power[chain.states + chain.truncated_target]).sum()
    rare = left_out.rare
    stops = pi[chain.source[rare]] * rate[rare]
    stopping += (stops * power[chain.target[rare]]).sum()
    errors[0] += stopping / (1.0 - PRECISION)
    return errors


def _excursion(
    chain: Structure,
    rates: Rates,
    waits: sparse.csr_array,
    election_risks: Vector,
    unflushed_hours: float,
) -> tuple[ExcursionBound, Vector]:
    """Bounds of an excursion, and its losses with those by a power failure before a flush."""
    racks, voters = chain.environment.racks, bool(chain.environment.voters)
    limits = Limits(rates, racks, chain.constants, voters=voters)
    bound = limits.until_well(waits, election_risks)
    # Every failure may stop the writing, and power may go before all is on disk.
    early_power = unflushed_hours * strikes_per_hour(rates, racks, power=True)
    strikes = strikes_per_hour(rates, racks)
    stops = times(strikes, bound.hours) + bound.deaths
    # The power of a broker that limps already goes with its death.
    losses = bound.losses + times(early_power, stops) + unflushed_hours * strikes * bound.deaths
    return bound, losses


def third_failures(
    chain: Structure, rates: Rates, rate: Vector, target: IntArray, stops: Vector
) -> float:
    """Upper bound on loss events per hour that need a third failure within the flush window.

    The chain ignores a failure between that which stops the writes and that of power, within T
    hours: it adds ``o s T^2 / 2`` for each stop of writes, with failures that keep writes stopped
    at rate o, and power failures after them at rate s.

    target (stops,): state that each transition leads to which stops writes.
    stops (stops,): how often it happens per hour, times the square of T, for which see
        :meth:`advisor.reliability.chain.ctmc.Structure.unflushed`.
    """
    left_out = left_out_of(chain)
    power = power_per_hour(rates, chain.environment.racks, left_out.every_wait)
    between = left_out.between
    power_after = rate[between] * power[left_out.after]
    onward = sums(chain.source[between], power_after, chain.states)
    return float((stops * onward[target]).sum()) / 2.0


class LeftOut(NamedTuple):
    """What a chain leaves out, whatever its rates.

    moves, source (truncated transitions,): which lead to truncated states, and their sources.
    rare: transitions that stop writes in a state left out as rare.
    between (transitions,): those that keep writes stopped, or may.
    after (transitions,): the state that each leads to, also if it is truncated.
    waits, every_wait (states, waits): of the truncated states, and of all of them, these last.
    """

    moves: IntArray
    source: IntArray
    rare: IntArray
    between: IntArray
    after: IntArray
    waits: sparse.csr_array
    every_wait: sparse.csr_array


@once_per_chain
def left_out_of(chain: Structure) -> LeftOut:
    """What a chain leaves out."""
    truncated = chain.with_effect(Effect.TRUNCATED)
    source, target, writable = chain.source, chain.target, chain.writable
    after = target.copy()
    after[truncated] = chain.states + chain.truncated_target
    between = ((source != target) | truncated) & (truncated | ~writable[target])
    rare = writable[source] & ~writable[target] & chain.writes_rarely_stop[target] & ~truncated
    moves = np.flatnonzero(truncated)
    every_wait = sparse.csr_array(chain.waits, dtype=np.float64)
    return LeftOut(
        moves=moves,
        source=source[moves],
        rare=np.flatnonzero(rare),
        between=np.flatnonzero(between),
        after=after[between],
        waits=sparse.csr_array(every_wait[chain.states :]),
        every_wait=every_wait,
    )


class _Kinds(NamedTuple):
    """States that are left out, by what their bound depends on; and all states, by outages.

    waits, election_risks (kinds, ...).
    of_left_out (truncated states,).
    every_wait (outages, waits).
    of_state (states + truncated states,).
    """

    waits: sparse.csr_array
    election_risks: Vector
    of_left_out: IntArray
    every_wait: IntArray
    of_state: IntArray


@once_per_chain
def _kinds(chain: Structure) -> _Kinds:
    _, first, of_state = np.unique(
        codes_of_rows(chain.waits.T.astype(np.int64)), return_index=True, return_inverse=True
    )
    every_wait, of_state = chain.waits[first].astype(np.int64), of_state.ravel()
    left_out = np.arange(chain.states, len(of_state))
    risks = (np.unique(column, return_inverse=True)[1] for column in chain.election_risks.T)
    columns = [of_state, *(codes.ravel() for codes in risks)]
    _, kinds, of_left_out = np.unique(
        codes_of_rows([column[left_out] for column in columns]),
        return_index=True,
        return_inverse=True,
    )
    kinds = left_out[kinds]
    waits = sparse.csr_array(chain.waits[kinds], dtype=np.float64)
    return _Kinds(waits, chain.election_risks[kinds], of_left_out.ravel(), every_wait, of_state)


class DrawnTruncation(NamedTuple):
    """What excursions into truncated states add at most, per hour; each of shape (draws,).

    losses, totals, hours, events: loss events; total losses; hours; and failures and ends of
        outages.
    """

    losses: Vector
    totals: Vector
    hours: Vector
    events: Vector

    def without_service(self, outage_hours: Vector) -> Vector:
        """Hours, with so many hours without service at a change of leader."""
        return self.hours + times(outage_hours, self.events)


def truncation_of_draws(
    chain: Structure,
    rates: Sequence[Mapping[str, float]],
    name_rates: Vector,
    pi: Vector,
    unflushed_hours: Vector,
    stops: IntArray,
    stop_rates: Vector,
) -> DrawnTruncation:
    """Bound what the states add in each draw that are left out.

    chain: not condensed.
    rates: of everything that can happen in each draw, per hour.
    name_rates (names, draws).
    pi (states, draws).
    unflushed_hours (draws,): until what is written is on disk.
    stops (stops,): states that transitions lead to which stop writes.
    stop_rates (stops, draws): as for `third_failures`.
    """
    left_out, kinds = left_out_of(chain), _kinds(chain)
    power = np.array([strikes_per_hour(drawn, chain.environment.racks, True) for drawn in rates])
    power = power + kinds.every_wait @ np.stack([dying_hosts(drawn) for drawn in rates], axis=1)
    entries, stopping = np.zeros((len(kinds.election_risks), len(rates))), np.zeros_like(power)
    kind, after = kinds.of_left_out[chain.truncated_target], kinds.of_state[chain.states :]
    _gathered(chain, left_out.moves, kind, pi, name_rates, entries)
    stops_writes = np.flatnonzero(chain.stops_writes)
    place = after[chain.truncated_target[stops_writes]]
    _gathered(chain, left_out.moves[stops_writes], place, pi, name_rates, stopping)
    rare = left_out.rare
    _gathered(chain, rare, kinds.of_state[chain.target[rare]], pi, name_rates, stopping)
    before_flush = unflushed_hours * (stopping * power).sum(axis=0)
    bounds = []
    for drawn, unflushed in zip(rates, unflushed_hours, strict=True):
        excursion, drawn_losses = _excursion(
            chain, drawn, kinds.waits, kinds.election_risks, unflushed
        )
        bounds.append((drawn_losses, excursion.totals, excursion.hours, excursion.events))
    losses, totals, hours, events = (
        times(entries, np.stack(bound, axis=1)).sum(axis=0) / (1.0 - PRECISION)
        for bound in zip(*bounds, strict=True)
    )
    third = _third_failures(chain, power, name_rates, stops, stop_rates)
    return DrawnTruncation(losses + before_flush / (1.0 - PRECISION) + third, totals, hours, events)


def _third_failures(
    chain: Structure, power: Vector, name_rates: Vector, stops: IntArray, stop_rates: Vector
) -> Vector:
    """`third_failures` of each draw; ``power`` by kind of outages."""
    left_out, kinds = left_out_of(chain), _kinds(chain)
    onward, between = np.zeros((chain.states, power.shape[1])), left_out.between
    rate, weight = chain.rate[between], chain.weight[between]
    place = kinds.of_state[left_out.after]
    gather(chain.source[between], place, rate, weight, power, name_rates, onward)
    third: Vector = (stop_rates * onward[stops]).sum(axis=0) / 2.0
    return third


def _gathered(
    chain: Structure,
    moves: IntArray,
    place: IntArray,
    pi: Vector,
    name_rates: Vector,
    totals: Vector,
) -> None:
    """How often some transitions happen, summed at a place for each."""
    gather(
        place, chain.source[moves], chain.rate[moves], chain.weight[moves], pi, name_rates, totals
    )
