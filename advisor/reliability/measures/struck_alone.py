"""How a state was reached: how many brokers failed on their own, without the rest of their rack.

A replica that is in service again may be stale because its rack was out, or its own broker. In the
first case all sets in these racks are as stale, whichever of the rack's brokers they are on.
"""

from __future__ import annotations

import numpy as np

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import Scope, transition
from advisor.reliability.solver.generator import Vector

# So many brokers are counted; more count as any number.
_MOST = 2
# A step that changes nothing by more than this is the last.
_PRECISION, _MOST_STEPS = 1e-6, 200


def shares(chain: Structure, flux: Vector) -> Vector:
    """Share of each state by how many brokers were struck alone since the chain was healthy.

    The stationary chain is followed backward to the healthy state.

    Parameters
    ----------
    flux : array, shape (transitions,)
        How often each happens, in any unit.

    Returns
    -------
    array, shape (4, states)
        None, one, two, and more or not known.
    """
    alone = np.array([_struck_alone(name) for name in chain.rate_names])
    into = np.flatnonzero((flux > 0) & (chain.source != chain.target) & (chain.target > 0))
    arrivals = np.bincount(chain.target[into], flux[into], chain.states)
    ways = []
    for count in range(_MOST + 1):
        some = into[alone[chain.rate[into]] == count]
        target = chain.target[some]
        ways.append((chain.source[some], target, flux[some] / arrivals[target]))
    found = np.zeros((_MOST + 2, chain.states))
    found[0, 0] = 1.0
    for _ in range(_MOST_STEPS):
        before, found = found, np.zeros_like(found)
        found[0, 0] = 1.0
        for count, (source, target, share) in enumerate(ways):
            for already in range(_MOST + 1 - count):
                amounts = share * before[already, source]
                found[already + count] += np.bincount(target, amounts, chain.states)
        if float(np.abs(found - before).max()) <= _PRECISION:
            break
    found[-1] = np.maximum(1.0 - found[:-1].sum(axis=0), 0.0)
    return found


def not_known(states: int) -> Vector:
    """The same where it is not counted: every state may have any number, as an array like that."""
    found = np.zeros((_MOST + 2, states))
    found[-1] = 1.0
    return found


def _struck_alone(name: str) -> int:
    """Number of brokers that a transition strikes without the rest of their rack."""
    known, mechanism = transition(name), transition(name).mechanism
    if known.decides:
        return _MOST + 1
    if known.ends or mechanism.effect.of_quorum:
        return 0
    if known.chosen > 0:
        return known.chosen
    if mechanism.scope is Scope.BROKER:
        return 1 + known.pair
    # Brokers of a destroyed rack are replaced one by one, but all of them are as stale.
    if mechanism.together or mechanism.scope is Scope.RACK:
        return 0
    return _MOST + 1
