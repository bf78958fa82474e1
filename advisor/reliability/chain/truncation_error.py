"""The stated truncation error of every measure, with the rates of the card.

The rule and the proof are in :mod:`advisor.reliability.chain.state_selection`.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.loss_bound import Limits, power_per_hour, strikes_per_hour, times
from advisor.reliability.chain.state_selection import PRECISION, truncated_flux
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver.generator import sums

Vector = NDArray[np.float64]


def truncation_error(
    chain: Structure,
    rates: Mapping[str, float],
    rate: Vector,
    outage_hours: float,
    unflushed_hours: float,
) -> Vector:
    """What excursions into truncated states add to each measure at most, per healthy hour.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    rate : array, shape (transitions,)
        Per hour.
    outage_hours : float
        Without service at a change of leader, at most.
    unflushed_hours : float
        Until what is written is on disk.

    Returns
    -------
    array, shape (6,)
        Loss events, total losses, hours not writable, hours not readable, hours, and stalls of
        acknowledgements. Zeros if no state is truncated.
    """
    truncated = chain.with_effect(Effect.TRUNCATED)
    if not truncated.any():
        return np.zeros(6)
    environment = chain.environment
    limits = Limits(rates, environment.racks, chain.constants, voters=bool(environment.voters))
    left = slice(chain.states, None)
    most = limits.until_well(chain.waits[left], chain.election_risks[left])
    away = most.hours + times(outage_hours, most.events)
    # Every failure may stop the writing, and power may go before all is on disk.
    early = unflushed_hours * strikes_per_hour(rates, environment.racks, power=True)
    strikes = strikes_per_hour(rates, environment.racks)
    stops = times(strikes, most.hours) + most.deaths
    # The power of a broker that limps already goes with its death.
    losses = most.losses + times(early, stops) + unflushed_hours * strikes * most.deaths
    cost = np.stack([losses, most.totals, away, away, most.hours, most.events], axis=1)
    target = np.where(truncated, -1, chain.target)
    sizes = chain.states, len(cost)
    visits, entered = truncated_flux(chain.source, target, rate, chain.truncated_target, sizes)
    # A sum over paths that stopped at PRECISION may lack that much.
    added: Vector = times(entered, cost.T).sum(axis=1) / (1.0 - PRECISION)
    # Writes may stop with the transition into a truncated state, or in a state left out as rare.
    power = unflushed_hours * power_per_hour(rates, environment.racks, chain.waits)
    flux = visits[chain.source] * rate
    rare = chain.writable[chain.source] & ~chain.writable[target] & chain.writes_rarely_stop[target]
    rare &= ~truncated
    stopping = times(
        flux[truncated] * chain.stops_writes, power[chain.states + chain.truncated_target]
    ).sum()
    stopping += (flux[rare] * power[target[rare]]).sum()
    added[0] += stopping / (1.0 - PRECISION)
    return added


def third_failures(
    chain: Structure, rates: Mapping[str, float], rate: Vector, flux: Vector, hours: Vector
) -> float:
    """Upper bound on loss events per hour that need a third failure within the flush window.

    The chain models a power failure that follows the failure which stopped the writes. It ignores a
    further failure between the two, within T hours; this bounds the losses that such a third
    failure adds: ``o s T^2 / 2`` for each stop of writes, with failures that keep writes stopped at
    rate o, and power failures after them at rate s.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    rate, flux : arrays, shape (transitions,)
        Per hour, without and with the probability of the state.
    hours : array, shape (transitions,)
        T; see :meth:`advisor.reliability.chain.ctmc.Structure.unflushed`.
    """
    truncated = chain.with_effect(Effect.TRUNCATED)
    power = power_per_hour(rates, chain.environment.racks, chain.waits)
    after = chain.target.copy()
    after[truncated] = chain.states + chain.truncated_target
    moves = (chain.source != chain.target) | truncated
    between = moves & (truncated | ~chain.writable[chain.target])
    feared = (rate * power[after])[between]
    onward = sums(chain.source[between], feared, chain.states)
    return float((flux * hours**2 * onward[chain.target]).sum()) / 2.0
