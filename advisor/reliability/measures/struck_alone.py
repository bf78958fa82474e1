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
    every = paths(chain)
    happen = flux[every.move] > 0
    often = flux[every.move[happen]]
    source, target, counts = (part[happen] for part in every[1:])
    share = often / np.bincount(target, often, chain.states)[target]
    ways = []
    for count in range(MOST + 1):
        some = counts == count
        ways.append((source[some], target[some], share[some]))
    found = np.zeros((MOST + 2, chain.states))
    found[0, 0] = 1.0
    for _ in range(MOST_STEPS):
        before, found = found, np.zeros_like(found)
        found[0, 0] = 1.0
        for count, (source, target, share) in enumerate(ways):
            for already in range(MOST + 1 - count):
                amounts = share * before[already, source]
                found[already + count] += np.bincount(target, amounts, chain.states)
        if float(np.abs(found - before).max()) <= PRECISION:
            break
    found[-1] = np.maximum(1.0 - found[:-1].sum(axis=0), 0.0)
    return found


def not_known(states: int) -> Vector:
    """The same where it is not counted: every state may have any number, as an array like that."""
    found = np.zeros((MOST + 2, states))
    found[-1] = 1.0
    return found


def _struck_alone(name: str) -> int:
    """Number of brokers that a transition strikes without the rest of their rack."""
    known, mechanism = transition(name), transition(name).mechanism
    if known.decides:
        return MOST + 1
    if known.ends or mechanism.effect.of_quorum:
        return 0
    if known.chosen > 0:
        return known.chosen
    if mechanism.scope is Scope.BROKER:
        return 1 + known.pair
    # Brokers of a destroyed rack are replaced one by one, but all of them are as stale.
    if mechanism.together or mechanism.scope is Scope.RACK:
        return 0
    return MOST + 1
