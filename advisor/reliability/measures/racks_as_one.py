"""How a state was reached: by whole racks alone, or by single brokers, too.

A replica that is in service again may be stale because its rack was out, or its own broker. In the
first case all sets in these racks are as stale, whichever of the brokers they are on.
"""

from __future__ import annotations

import numpy as np

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import Scope, transition
from advisor.reliability.solver.generator import Vector

# What no step changes by more than this is known.
_PRECISION = 1e-6
_MOST_STEPS = 200


def as_one(chain: Structure, flux: Vector) -> Vector:
    """Share of each state in which every rack went and came as one since the chain was healthy.

    The stationary chain is followed backward to the healthy state, as far as failures and repairs
    strike or end whole racks, or the cluster. What is not followed counts as single brokers.

    Parameters
    ----------
    flux : array, shape (transitions,)
        How often each happens, in any unit.

    Returns
    -------
    array, shape (states,)
    """
    whole = np.array([_strikes_whole_racks(name) for name in chain.rate_names], dtype=bool)
    into = np.flatnonzero((flux > 0) & (chain.source != chain.target) & (chain.target > 0))
    arrivals = np.bincount(chain.target[into], flux[into], chain.states)
    into = into[whole[chain.rate[into]]]
    source, target = chain.source[into], chain.target[into]
    share = flux[into] / arrivals[target]
    found = np.zeros(chain.states)
    found[0] = 1.0
    for _ in range(_MOST_STEPS if len(into) else 0):
        before, found = found, np.bincount(target, share * found[source], chain.states)
        found[0] = 1.0
        if float(np.abs(found - before).max()) <= _PRECISION:
            break
    return np.minimum(found, 1.0)


def _strikes_whole_racks(name: str) -> bool:
    known = transition(name)
    if known.copies or known.decides or known.chosen > 0 or known.dies:
        return False
    return known.mechanism.scope is not Scope.BROKER and (
        not known.ends or known.mechanism.together
    )
