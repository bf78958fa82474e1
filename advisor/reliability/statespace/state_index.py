"""State indexing and ragged arrays for exploring a state space."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.solver.generator import IntArray

# Codes below this fit into 64 bits, with room to add.
_FITS = 2**62
# Entries of a table that is only read where something is known (16 MB), and of one that grows.
_LARGEST_TABLE, _LARGEST_GROWN = 2**22, 2**20


class Numbering:
    """Numbers codes in the order in which they are first asked about.

    A table answers if there are few ``codes``, else a sorted list.
    """

    def __init__(self, codes: int = _FITS) -> None:
        few = codes <= _LARGEST_TABLE
        # Numbers from 1; what is not known yet costs no memory.
        self._table = np.zeros(codes, dtype=np.int32) if few else None
        self._sorted: NDArray[Any] = np.zeros(0, dtype=np.int64)
        self._numbers = np.zeros(0, dtype=np.int64)
        self._count = 0

    def of(self, codes: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """The number of every code; and, by number, where new ones are asked about first."""
        numbers = self._known(codes) if self._table is None else self._table.take(codes) - 1
        numbers = numbers.astype(np.int64)
        unknown = np.flatnonzero(numbers < 0)
        if not len(unknown):
            return numbers, unknown
        rank, first = _in_order(codes[unknown])
        numbers[unknown] = self._count + rank
        new = unknown[first]
        self._learn(codes[new])
        return numbers, new

    def _known(self, codes: NDArray[Any]) -> IntArray:
        """Numbers from the sorted list; -1 for codes that are not in it yet."""
        if not self._count:
            return np.full(len(codes), -1)
        place = np.minimum(self._sorted.searchsorted(codes), self._count - 1)
        return np.where(self._sorted.take(place) == codes, self._numbers.take(place), -1)

    def _learn(self, codes: NDArray[Any]) -> None:
        """Give new codes the next numbers."""
        numbers = self._count + np.arange(len(codes))
        self._count += len(codes)
        if self._table is not None:
            self._table[codes] = numbers + 1
            return
        all_codes = np.concatenate([self._sorted, codes]) if len(self._sorted) else codes
        order = all_codes.argsort(kind="stable")
        self._sorted = all_codes[order]
        self._numbers = np.concatenate([self._numbers, numbers])[order]


def _in_order(codes: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Number codes as they are met; where each is met first, in the order of the numbers."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()], first[order]


class Pairs:
    """Numbers pairs as `Numbering` does codes: by a table while it is small, then by a list."""

    def __init__(self) -> None:
        # Numbers from 1; what is not known yet costs no memory.
        self._table = np.zeros((128, 128), dtype=np.int32)
        self._beyond: Numbering | None = None
        self._count = 0

    def of(self, one: IntArray, other: IntArray) -> tuple[IntArray, IntArray]:
        """The number of every pair, below 2^31; and where new ones are asked about first."""
        if self._beyond is None:
            self._grow(int(one.max(initial=0)), int(other.max(initial=0)))
        if self._beyond is not None:
            return self._beyond.of(one << 32 | other)
        table, place = self._table.ravel(), one * self._table.shape[1] + other
        numbers = table.take(place).astype(np.int64) - 1
        unknown = np.flatnonzero(numbers < 0)
        if not len(unknown):
            return numbers, unknown
        rank, first = _in_order(one[unknown] << 32 | other[unknown])
        numbers[unknown] = self._count + rank
        new = unknown[first]
        table[place[new]] = numbers[new] + 1
        self._count += len(new)
        return numbers, new

    def _grow(self, row: int, column: int) -> None:
        """Have a place for these; give up the table if it would be too large."""
        rows, columns = self._table.shape
        if row < rows and column < columns:
            return
        while rows <= row:
            rows *= 2
        while columns <= column:
            columns *= 2
        if rows * columns <= _LARGEST_GROWN:
            grown = np.zeros((rows, columns), dtype=np.int32)
            grown[: self._table.shape[0], : self._table.shape[1]] = self._table
            self._table = grown
            return
        one, other = np.nonzero(self._table)
        order = np.argsort(self._table[one, other])
        self._beyond = Numbering()
        self._beyond.of(one[order] << 32 | other[order])
        self._table = self._table[:0]


def codes_of_rows(columns: Iterable[IntArray]) -> IntArray:
    """One number for each row of non-negative numbers; equal ones for equal rows, and no others."""
    codes, codes_so_far = np.zeros(1, dtype=np.int64), 1
    for column in columns:
        base = int(column.max(initial=0)) + 1
        if codes_so_far * base >= _FITS:
            codes = np.unique(codes, return_inverse=True)[1].ravel()
            codes_so_far = len(codes)
        codes, codes_so_far = codes * base + column, codes_so_far * base
    return codes


def met_in_order(numbers: IntArray, size: int) -> tuple[IntArray, IntArray]:
    """Distinct numbers below ``size`` in the order in which they are met; the place of each."""
    first = np.full(size, len(numbers))
    # Of several writes to one place the last stays.
    first[numbers[::-1]] = np.arange(len(numbers) - 1, -1, -1)
    met = np.flatnonzero(first < len(numbers))
    distinct = met[np.argsort(first[met])]
    place = np.empty(size, dtype=np.int64)
    place[distinct] = np.arange(len(distinct))
    return distinct, place[numbers]


def place_values(base: int, digits: int) -> NDArray[Any]:
    """Place value of each digit of a code; Python's integers if 64 bits do not suffice."""
    values = [base**digit for digit in range(digits - 1, -1, -1)]
    return np.array(values, dtype=np.int64 if base**digits < _FITS else object)


def spread(first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Owner and row of each row of a ragged table: where those of each owner begin, how many."""
    owner = np.repeat(np.arange(len(count)), count)
    begin = np.cumsum(count) - count
    return owner, np.arange(len(owner)) + (first - begin)[owner]
