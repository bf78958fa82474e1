"""How much a chain may miss because it leaves states out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.chain.drift_bound import TruncatedStates, alike, groups, reward_bound
from advisor.reliability.chain.loss_bound import Limits, strikes_per_hour, times
from advisor.reliability.failures.mechanisms import transition
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver.generator import Generator, sums
from advisor.reliability.solver.regenerative import RegenerativeCycles
from advisor.reliability.statespace.state_graph import IntArray

Vector = NDArray[np.float64]

_PRECISION = 1e-2
_ROUNDS = 4


def truncation_error(
    chain: Structure,
    rates: Mapping[str, float],
    rate: Vector,
    gain: Vector,
    outage_hours: float,
    unflushed_hours: float,
) -> Vector:
    """What paths through left-out states add to each measure at most, per healthy hour.

    Parameters
    ----------
    chain : Structure
    rates : mapping of str to float
        Of everything that can happen, per hour.
    rate : array, shape (transitions,)
        Per hour.
    gain : array, shape (states, 6)
        Loss events, total losses, hours not writable, hours not readable, hours, and stalls of
        acknowledgements, per hour.
    outage_hours : float
        Without service at a change of leader, at most.
    unflushed_hours : float
        Until what is written is on disk.

    Returns
    -------
    array, shape (6,)
        Zeros if no state is left out.
    """
    beyond = chain.did(Effect.TRUNCATED)
    if not beyond.any():
        return np.zeros(gain.shape[1])
    left_out = slice(chain.states, None)
    limits = Limits(rates, chain.setting.racks, chain.setup)
    most = limits.until_well(chain.waits[left_out], chain.election_risks[left_out])
    away = most.hours + times(outage_hours, most.events)
    # Every failure may stop the writing, and power may go before all is on disk.
    early = unflushed_hours * strikes_per_hour(rates, chain.setting.racks, power=True)
    stops = times(strikes_per_hour(rates, chain.setting.racks), most.hours)
    losses = most.losses + times(early, stops)
    group = groups(chain.symmetry_class, chain.outage_profile, alike(rates))
    left = TruncatedStates(
        source=chain.source[beyond],
        state=chain.beyond,
        rate=rate[beyond],
        group=group[chain.states :],
        limit=np.stack([losses, most.totals, away, away, most.hours, most.events], axis=1),
    )
    inner = ~beyond & (chain.source != chain.target)
    out = sums(left.source, left.rate, chain.states)
    flow = Generator.of(chain.source[inner], chain.target[inner], rate[inner], out)
    excursions = RegenerativeCycles(flow, _PRECISION)
    # A sum that stopped may lack that much.
    visits = excursions.forward(excursions.start) / (1.0 - _PRECISION)
    visits[0] = 1.0
    entered = sums(left.state, visits[left.source] * left.rate, len(left.group))
    worth = reward_bound(excursions, gain, group[: chain.states], left, entered, _ROUNDS)
    added: Vector = entered @ worth
    # Where writing stops with the very move into a left-out state.
    stopping = np.bincount(
        left.state[chain.stops],
        (visits[left.source] * left.rate)[chain.stops],
        len(left.group),
    )
    added[0] += float(stopping @ _early(chain, rates, unflushed_hours, group, early))
    return added


def third_failures(
    chain: Structure, rates: Mapping[str, float], rate: Vector, flux: Vector, hours: Vector
) -> float:
    """Loss events that take a third failure before all is on disk, at most, per hour.

    A chain has the power that goes after the failure that stopped the writing. What comes between
    the two within T hours, at rate o without writing again, is neglected there: ``o s T^2 / 2``
    losses for each stop, with power that loses something going at rate s. After power any power
    is feared that can still go. After anything else, as much as where the writing has stopped and
    the most is lost: no state with one more failure is weaker, which is a judgement.

    Parameters
    ----------
    chain : Structure
    rates : mapping of str to float
        Of everything that can happen, per hour.
    rate, flux : arrays, shape (transitions,)
        Per hour, without and with the probability of the state.
    hours : array, shape (transitions,)
        T; see :meth:`advisor.reliability.chain.ctmc.Structure.unflushed`.
    """
    table = np.array([rates[name] for name in chain.rate_names])
    cuts = float(chain.cuts.per_hour(table, chain.states).max())
    powers = [transition(name).cuts_power for name in chain.rate_names]
    is_power = np.array(powers, dtype=bool)[chain.rate]
    beyond = chain.did(Effect.TRUNCATED)
    moves = (chain.source != chain.target) | beyond
    still = sums(chain.source, rate * (is_power & moves), chain.states)[chain.target]
    still = np.where(beyond, strikes_per_hour(rates, chain.setting.racks, power=True), still)
    between = moves & (beyond | ~chain.writable[chain.target])
    feared = rate * np.where(is_power, still, cuts)
    onward = sums(chain.source[between], feared[between], chain.states)
    return float((flux * hours**2 * onward[chain.target]).sum()) / 2.0


def _early(
    chain: Structure,
    rates: Mapping[str, float],
    unflushed_hours: float,
    group: IntArray,
    most: float,
) -> Vector:
    """Chance of early power by left-out states, at most: that of any power, or of like states."""
    table = np.array([rates[name] for name in chain.rate_names])
    chance = chain.cuts.per_hour(table, chain.states) * unflushed_hours
    stops = chain.writable[chain.source] & ~chain.did(Effect.TRUNCATED)
    stopped = np.unique(chain.target[stops & ~chain.writable[chain.target]])
    limit = np.full((len(group) - chain.states, 1), most)
    if not len(stopped):
        return limit[:, 0]
    nothing = np.zeros(0, dtype=np.int64)
    left = TruncatedStates(nothing, nothing, np.zeros(0), group[chain.states :], limit)
    return left.worth(group[stopped], chance[stopped, None])[:, 0]
