"""Losses at the replacement of a broker, credited to the failure that destroyed its disk.

The loss happens when the first replaced broker leads with an empty log; which sets lose together
was decided by the destruction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import table, transition
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.solver.once_per_chain import once_per_chain

# What remains unassigned is spread like the rest.
_REMAINS = 1e-4
_MOST_STEPS = 200


class LateMoves(NamedTuple):
    """Transitions by which destroyed brokers go and come, whatever their rates.

    late (transitions,): replacements.
    begin, passing: into states with a destroyed broker: those that destroy one, and the others.
    """

    late: NDArray[np.bool_]
    begin: IntArray
    passing: IntArray


@once_per_chain
def late_moves(chain: Structure) -> LateMoves:
    """Find the transitions of a chain by which destroyed brokers go and come."""
    replacement = table().replacement.name
    rate_transitions = [transition(name) for name in chain.rate_names]
    ends = [
        ((entry.ends and not entry.copies) or entry.decides) and entry.mechanism.name == replacement
        for entry in rate_transitions
    ]
    destroys = np.array([entry.destroys for entry in rate_transitions], dtype=bool)[chain.rate]
    replaced_stages = table().stages(table().replacement.condition)
    destroyed = np.asarray(np.isin(chain.own, replaced_stages).any(axis=1))[chain.target]
    passing = destroyed & ~destroys & (chain.source != chain.target)
    return LateMoves(
        np.array(ends, dtype=bool)[chain.rate],
        np.flatnonzero(destroyed & destroys),
        np.flatnonzero(passing),
    )


class LateLosses:
    """Where losses at a replacement began, for a chain in its stationary state.

    lossy: transitions that may lose, those that destroy a broker among them; ascending.
    flux (transitions, draws): how often each happens, per hour.
    """

    def __init__(self, chain: Structure, lossy: IntArray, flux: Vector) -> None:
        moves = late_moves(chain)
        into = np.sort(np.concatenate([moves.begin, moves.passing]))
        target, begins = chain.target[into], np.isin(into, moves.begin)
        arrivals = sums(target, flux[into], chain.states)[target]
        share = flux[into] / np.where(arrivals > 0.0, arrivals, np.inf)
        self._begin = np.searchsorted(lossy, into[begins])
        self._begin_target, self._begin_share = target[begins], share[begins]
        self._pass_target, self._pass_share = target[~begins], share[~begins]
        self._states, self._passing = chain.states, chain.source[into[~begins]]
        self._late = np.flatnonzero(moves.late[lossy])
        self._leaving = chain.source[lossy[self._late]]

    def credited(self, amounts: Vector) -> Vector:
        """Move what is lost at replacements to the transitions that destroyed a disk last.

        The stationary chain is followed backward: a state was entered by each transition as often
        as its flux says, until one that destroys.

        amounts (lossy, draws): lost with each, in any unit.
        Returns (lossy, draws): with the same sum.
        """
        late = amounts[self._late]
        lost_at = sums(self._leaving, late, self._states)
        total = lost_at.sum(axis=0)
        if not total.any():
            return amounts
        visited = np.zeros_like(lost_at)
        for _ in range(_MOST_STEPS):
            visited += lost_at
            passed = lost_at[self._pass_target] * self._pass_share
            lost_at = sums(self._passing, passed, self._states)
            lost_at[:, lost_at.sum(axis=0) <= _REMAINS * total] = 0.0
            if not lost_at.any():
                break
        begun = visited[self._begin_target] * self._begin_share
        traced = begun.sum(axis=0)
        is_traced = traced > 0.0
        credited = amounts.copy()
        credited[self._late] = np.where(is_traced, 0.0, late)
        credited[self._begin] += begun * (total / np.where(is_traced, traced, np.inf))
        return credited
