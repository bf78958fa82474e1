"""The stated truncation error of every measure, with the rates of the card.

The rule and the proof are in :mod:`advisor.reliability.chain.state_selection`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.loss_bound import Limits, power_per_hour, strikes_per_hour, times
from advisor.reliability.chain.state_selection import PRECISION
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver.generator import IntArray, sums
from advisor.reliability.solver.once_per_chain import once_per_chain

Vector = NDArray[np.float64]


def truncation_error(
    chain: Structure,
    rates: Mapping[str, float],
    rate: Vector,
    pi: Vector,
    outage_hours: float,
    unflushed_hours: float,
) -> Vector:
    """What excursions into truncated states add to each measure at most, per hour.

    rates: of everything that can happen, per hour.
    rate (transitions,): per hour.
    pi (states,): stationary distribution, within PRECISION.
    outage_hours: without service at a change of leader, at most.
    unflushed_hours: until what is written is on disk.
    Returns (6,): loss events, total losses, hours not writable, hours not readable, hours, and
        stalls of acknowledgements. Zeros if no state is truncated.
    """
    left_out = left_out_of(chain)
    if not len(left_out.source):
        return np.zeros(6)
    environment = chain.environment
    limits = Limits(rates, environment.racks, chain.constants, voters=bool(environment.voters))
    most = limits.until_well(left_out.waits, chain.election_risks[chain.states :])
    away = most.hours + times(outage_hours, most.events)
    # Every failure may stop the writing, and power may go before all is on disk.
    early = unflushed_hours * strikes_per_hour(rates, environment.racks, power=True)
    strikes = strikes_per_hour(rates, environment.racks)
    stops = times(strikes, most.hours) + most.deaths
    # The power of a broker that limps already goes with its death.
    losses = most.losses + times(early, stops) + unflushed_hours * strikes * most.deaths
    cost = np.stack([losses, most.totals, away, away, most.hours, most.events], axis=1)
    # The chain starts anew where an excursion would begin, so that it visits the same states.
    flux = pi[left_out.source] * rate[left_out.moves]
    entered = sums(chain.truncated_target, flux, len(cost))
    # A sum over paths that stopped at PRECISION may lack that much.
    added: Vector = times(entered, cost.T).sum(axis=1) / (1.0 - PRECISION)
    # Writes may stop with the transition into a truncated state, or in a state left out as rare.
    power = unflushed_hours * power_per_hour(rates, environment.racks, left_out.every_wait)
    stopping = times(flux * chain.stops_writes, power[chain.states + chain.truncated_target]).sum()
    rare = left_out.rare
    often = pi[chain.source[rare]] * rate[rare]
    stopping += (often * power[chain.target[rare]]).sum()
    added[0] += stopping / (1.0 - PRECISION)
    return added


def third_failures(
    chain: Structure, rates: Mapping[str, float], rate: Vector, target: IntArray, stops: Vector
) -> float:
    """Upper bound on loss events per hour that need a third failure within the flush window.

    The chain models a power failure that follows the failure which stopped the writes. It ignores a
    further failure between the two, within T hours; this bounds the losses that such a third
    failure adds: ``o s T^2 / 2`` for each stop of writes, with failures that keep writes stopped at
    rate o, and power failures after them at rate s.

    rates: of everything that can happen, per hour.
    rate (transitions,): per hour, given the source state.
    target (stops,): state that each transition leads to which stops writes.
    stops (stops,): how often it happens per hour, times the square of T, for which see
        :meth:`advisor.reliability.chain.ctmc.Structure.unflushed`.
    """
    left_out = left_out_of(chain)
    power = power_per_hour(rates, chain.environment.racks, left_out.every_wait)
    between = left_out.between
    feared = rate[between] * power[left_out.after]
    onward = sums(chain.source[between], feared, chain.states)
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
