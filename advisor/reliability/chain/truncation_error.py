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
    visits, entered = truncated_flux(chain.source, target, rate, chain.beyond, sizes)
    # A sum over paths that stopped at PRECISION may lack that much.
    added: Vector = times(entered, cost.T).sum(axis=1) / (1.0 - PRECISION)
    # Writing may stop with the very transition into a truncated state, or where it seldom does.
    power = unflushed_hours * power_per_hour(rates, environment.racks, chain.waits)
    flux = visits[chain.source] * rate
    seldom = chain.writable[chain.source] & ~chain.writable[target] & chain.seldom_stops[target]
    seldom &= ~truncated
    stopping = times(flux[truncated] * chain.stops, power[chain.states + chain.beyond]).sum()
    stopping += (flux[seldom] * power[target[seldom]]).sum()
    added[0] += stopping / (1.0 - PRECISION)
    return added


def third_failures(
    chain: Structure, rates: Mapping[str, float], rate: Vector, flux: Vector, hours: Vector
) -> float:
    """Loss events that take a third failure before all is on disk, at most, per hour.

    A chain has the power that goes after the failure that stopped the writing. What comes between
    the two within T hours, at rate o without writing again, is neglected there: ``o s T^2 / 2``
    losses for each stop, with any power that can go then at rate s.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    rate, flux : arrays, shape (transitions,)
        Per hour, without and with the probability of the state.
    hours : array, shape (transitions,)
        T; see :meth:`advisor.reliability.chain.ctmc.Structure.unflushed`.
    """
    beyond = chain.with_effect(Effect.TRUNCATED)
    power = power_per_hour(rates, chain.environment.racks, chain.waits)
    after = chain.target.copy()
    after[beyond] = chain.states + chain.beyond
    moves = (chain.source != chain.target) | beyond
    between = moves & (beyond | ~chain.writable[chain.target])
    feared = (rate * power[after])[between]
    onward = sums(chain.source[between], feared, chain.states)
    return float((flux * hours**2 * onward[chain.target]).sum()) / 2.0
