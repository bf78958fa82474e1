"""How a state was reached: how many brokers failed on their own, without the rest of their rack.

A replica that is in service again may be stale because its rack was out, or its own broker. In the
first case all sets in these racks are as stale, whichever of the rack's brokers they are on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import Scope, transition
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.solver.once_per_chain import once_per_chain

MOST = 2
"""So many brokers are counted; more count as any number."""
PRECISION, MOST_STEPS = 1e-6, 200
"""A step that changes nothing by more than this is the last."""


class Paths(NamedTuple):
    """Transitions by which a state is reached, whatever their rates.

    move, source, target (paths,).
    alone (paths,): how many brokers each strikes alone.
    """

    move: IntArray
    source: IntArray
    target: IntArray
    alone: IntArray


@once_per_chain
def paths(chain: Structure) -> Paths:
    """The paths of a chain."""
    alone = np.array([_struck_alone(name) for name in chain.rate_names], dtype=np.int64)
    move = np.flatnonzero((chain.source != chain.target) & (chain.target > 0))
    return Paths(move, chain.source[move], chain.target[move], alone[chain.rate[move]])


def shares(chain: Structure, flux: Vector) -> Vector:
    """Share of each state by how many brokers were struck alone since the chain was healthy.

    flux (transitions,): how often each happens, in any unit.
    Returns (4, states): none, one, two, and more or not known.
    """
    all_paths = paths(chain)
    happen = flux[all_paths.move] > 0
    path_flux = flux[all_paths.move[happen]]
    source, target, counts = (column[happen] for column in all_paths[1:])
    share = path_flux / np.bincount(target, path_flux, chain.states)[target]
    ways = []
    for count in range(MOST + 1):
        of_count = counts == count
        ways.append((source[of_count], target[of_count], share[of_count]))
    by_count = np.zeros((MOST + 2, chain.states))
    by_count[0, 0] = 1.0
    for _ in range(MOST_STEPS):
        before, by_count = by_count, np.zeros_like(by_count)
        by_count[0, 0] = 1.0
        for count, (source, target, share) in enumerate(ways):
            for already in range(MOST + 1 - count):
                amounts = share * before[already, source]
                by_count[already + count] += np.bincount(target, amounts, chain.states)
        if float(np.abs(by_count - before).max()) <= PRECISION:
            break
    by_count[-1] = np.maximum(1.0 - by_count[:-1].sum(axis=0), 0.0)
    return by_count


def not_known(states: int) -> Vector:
    """The same where it is not counted: every state may have any number, as an array like that."""
    by_count = np.zeros((MOST + 2, states))
    by_count[-1] = 1.0
    return by_count


def _struck_alone(name: str) -> int:
    """Number of brokers that a transition strikes without the rest of their rack."""
    cause, mechanism = transition(name), transition(name).mechanism
    if cause.decides:
        return MOST + 1
    if cause.ends or mechanism.effect.of_quorum:
        return 0
    if cause.chosen > 0:
        return cause.chosen
    if mechanism.scope is Scope.BROKER:
        return 1 + cause.pair
    # Brokers of a destroyed rack are replaced one by one, but all of them are as stale.
    if mechanism.together or mechanism.scope is Scope.RACK:
        return 0
    return MOST + 1
