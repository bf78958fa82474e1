"""Sparse generator (rate matrix) of a CTMC with absorption."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

IntArray = NDArray[np.int64]
Vector = NDArray[np.float64]

# Relative accuracy of every entry: all digits, or enough for a draw of an uncertain card.
EXACT = 1e-16
ROUGH = 1e-4


def sums(place: NDArray[np.int64], amounts: Vector, size: int) -> Vector:
    """Sum the amounts, or each column of them, at each index below ``size``."""
    if amounts.ndim > 1 and amounts.shape[1] != 1:
        columns: Vector = adds_up(place, size) @ amounts
        return columns
    # Without amounts NumPy counts, in integers.
    totals = np.bincount(place, amounts.ravel(), size).astype(np.float64)
    return totals if amounts.ndim == 1 else totals[:, None]


def adds_up(place: IntArray, size: int) -> sparse.csr_array:
    """A matrix that sums the rows of another at each index below ``size``."""
    rows = np.arange(len(place))
    return sparse.csr_array((np.ones(len(place)), (place, rows)), shape=(size, len(place)))


@dataclass(frozen=True)
class Generator:
    """Rates per hour between states; the healthy state is 0.

    rates (states, states): off-diagonal rates from row to column.
    absorbed (states,): rate out of each state to absorption.
    """

    rates: sparse.csr_array
    absorbed: Vector

    @cached_property
    def out(self) -> Vector:
        """Total rate out of each state."""
        return sums(self.sources, self.rates.data, len(self.absorbed)) + self.absorbed

    @cached_property
    def sources(self) -> NDArray[np.int64]:
        """State that each of the matrix's entries leads out of."""
        return np.repeat(np.arange(len(self.absorbed)), np.diff(self.rates.indptr))

    @property
    def renewed(self) -> Generator:
        """The chain that starts anew, healthy, instead of being absorbed."""
        leave = np.flatnonzero(self.absorbed[1:] > 0.0) + 1
        states = len(self.absorbed)
        begin = np.searchsorted(leave, np.arange(states + 1))
        back = (self.absorbed[leave], np.zeros_like(leave), begin)
        rates = sparse.csr_array(self.rates + sparse.csr_array(back, shape=(states, states)))
        return Generator(rates, np.zeros(states))

    @classmethod
    def of(
        cls,
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        rate: Vector,
        absorbed: Vector,
    ) -> Generator:
        """The generator of some transitions, by ascending source; rates of equal pairs add up."""
        states = len(absorbed)
        begin = np.searchsorted(source, np.arange(states + 1))
        return cls(sparse.csr_array((rate, target, begin), shape=(states, states)), absorbed)


@dataclass(frozen=True, eq=False)
class MovePattern:
    """Pairs of different states with the transitions between them, whatever their rates.

    Hundreds of transitions may connect the same two states, and most lead back to the healthy one.

    moves (moves,): transitions, by source and then by target.
    first, target (pairs,): place among them of the first one of each pair; its target.
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
        """The rate matrix, from the rates of every transition, also of those left out here."""
        target, begin, states = self.target, self.begin, len(absorbed)
        sums = np.add.reduceat(rate[self.moves], self.first) if len(self.first) else np.zeros(0)
        happen = sums > 0.0
        if not happen.all():
            places = np.concatenate([[0], np.cumsum(happen)])
            sums, target, begin = sums[happen], target[happen], places[begin]
        return Generator(sparse.csr_array((sums, target, begin), shape=(states, states)), absorbed)
