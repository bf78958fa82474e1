"""Losses at the replacement of a broker, credited to the failure that destroyed its disk.

Once every electable replica is destroyed, the records are gone, but the loss happens when the first
replaced broker leads with an empty log. Which sets lose together was decided by the destruction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import table, transition
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.solver.once_per_chain import once_per_chain

REMAINS = 1e-4
"""What remains unassigned is spread like the rest."""
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
    known = [transition(name) for name in chain.rate_names]
    ends = [
        ((entry.ends and not entry.copies) or entry.decides) and entry.mechanism.name == replacement
        for entry in known
    ]
    destroys = np.array([entry.destroys for entry in known], dtype=bool)[chain.rate]
    gone = table().stages(table().replacement.condition)
    destroyed = np.asarray(np.isin(chain.own, gone).any(axis=1))[chain.target]
    passing = destroyed & ~destroys & (chain.source != chain.target)
    return LateMoves(
        np.array(ends, dtype=bool)[chain.rate],
        np.flatnonzero(destroyed & destroys),
        np.flatnonzero(passing),
    )


class LateLosses:
    """Where losses at a replacement began, for a chain in its stationary state.

    flux (transitions,): how often each happens, per hour.
    """

    def __init__(self, chain: Structure, flux: Vector) -> None:
        moves = late_moves(chain)
        self._late, self._source, states = moves.late, chain.source, chain.states
        begins = np.zeros(len(flux), dtype=bool)
        begins[moves.begin] = True
        into = np.sort(np.concatenate([moves.begin, moves.passing]))
        into = into[flux[into] > 0]
        target = chain.target[into]
        arrivals = np.bincount(target, flux[into], states)
        begins = begins[into]
        share = flux[into] / arrivals[target]
        self._begin, self._begin_target, self._begin_share = (
            each[begins] for each in (into, target, share)
        )
        self._pass_source, self._pass_target, self._pass_share = (
            each[~begins] for each in (chain.source[into], target, share)
        )
        self._states = states

    def credited(self, amounts: Vector) -> Vector:
        """Move what is lost at replacements to the transitions that destroyed a disk last.

        The stationary chain is followed backward: a state was entered by each transition as often
        as its flux says, until one that destroys.

        amounts (transitions,): lost with each, in any unit.
        Returns (transitions,): with the same sum.
        """
        late = np.flatnonzero(self._late & (amounts > 0))
        if not len(late):
            return amounts
        there = np.bincount(self._source[late], amounts[late], self._states)
        total = float(there.sum())
        visited = np.zeros(self._states)
        for _ in range(_MOST_STEPS):
            visited += there
            passed = there[self._pass_target] * self._pass_share
            there = np.bincount(self._pass_source, passed, self._states)
            if there.sum() <= REMAINS * total:
                break
        begun = visited[self._begin_target] * self._begin_share
        if not begun.any():
            return amounts
        found = amounts.copy()
        found[late] = 0.0
        found[self._begin] += begun * (total / begun.sum())
        return found
