"""Losses at the replacement of a broker, credited to the failure that destroyed its disk.

Once every electable replica is destroyed, the records are gone, but the loss happens when the first
replaced broker leads with an empty log. Which sets lose together was decided by the destruction.
"""

from __future__ import annotations

import numpy as np

from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import table, transition
from advisor.reliability.solver.generator import Vector

# What remains unassigned is spread like the rest.
_REMAINS = 1e-4
_MOST_STEPS = 200


class LateLosses:
    """Where losses at a replacement began, for a chain in its stationary state.

    Parameters
    ----------
    flux : array, shape (transitions,)
        How often each happens, per hour.
    """

    def __init__(self, chain: Structure, flux: Vector) -> None:
        replacement = table().replacement.name
        known = [transition(name) for name in chain.rate_names]
        ends = [
            ((each.ends and not each.copies) or each.decides) and each.mechanism.name == replacement
            for each in known
        ]
        self._late = np.array(ends, dtype=bool)[chain.rate]
        destroys = np.array([each.destroys for each in known], dtype=bool)[chain.rate]
        self._source, states = chain.source, chain.states
        gone = table().stages(table().replacement.condition)
        destroyed = np.flatnonzero(np.isin(chain.own, gone).any(axis=1))
        moves = (
            (flux > 0)
            & np.isin(chain.target, destroyed)
            & (destroys | (chain.source != chain.target))
        )
        into = np.flatnonzero(moves)
        target = chain.target[into]
        arrivals = np.bincount(target, flux[into], states)
        begins = destroys[into]
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

        Parameters
        ----------
        amounts : array, shape (transitions,)
            Lost with each, in any unit.

        Returns
        -------
        array, shape (transitions,)
            With the same sum.
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
            if there.sum() <= _REMAINS * total:
                break
        begun = visited[self._begin_target] * self._begin_share
        if not begun.any():
            return amounts
        found = amounts.copy()
        found[late] = 0.0
        found[self._begin] += begun * (total / begun.sum())
        return found
