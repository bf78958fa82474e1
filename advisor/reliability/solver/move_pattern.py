"""Which states a chain's transitions connect, whatever their rates: a sparse matrix to be filled.

Hundreds of transitions may connect the same two states, and most lead back to the healthy one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from advisor.reliability.solver.generator import Generator, IntArray, Vector


@dataclass(frozen=True, eq=False)
class MovePattern:
    """Pairs of different states with the transitions between them.

    moves (moves,): transitions, by source and then by target.
    first (pairs,): place among them of the first one of each pair.
    target (pairs,).
    begin (states + 1,): place of the first pair of each source.
    """

    moves: IntArray
    first: IntArray
    target: IntArray
    begin: IntArray

    @classmethod
    def of(cls, source: IntArray, target: IntArray, states: int, moves: IntArray) -> MovePattern:
        """The pattern of some transitions, given by their numbers."""
        moves = moves[source[moves] != target[moves]]
        codes = source[moves] * states + target[moves]
        moves = moves[np.argsort(codes, kind="stable")]
        pairs, first = np.unique(source[moves] * states + target[moves], return_index=True)
        begin = np.searchsorted(pairs, np.arange(states + 1) * states)
        return cls(moves, first, pairs % states, begin)

    def generator(self, rate: Vector, absorbed: Vector) -> Generator:
        """The rate matrix.

        rate (transitions,): of every transition, also of those that are left out here.
        absorbed (states,).
        """
        target, begin, states = self.target, self.begin, len(absorbed)
        sums = np.add.reduceat(rate[self.moves], self.first) if len(self.first) else np.zeros(0)
        happen = sums > 0.0
        if not happen.all():
            places = np.concatenate([[0], np.cumsum(happen)])
            sums, target, begin = sums[happen], target[happen], places[begin]
        return Generator(sparse.csr_array((sums, target, begin), shape=(states, states)), absorbed)
