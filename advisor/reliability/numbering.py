"""Numbers for what is met, and rows of ragged tables: the small change of exploring a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

# Codes below this fit into 64 bits, with room to add.
_FITS = 2**62


class Numbering:
    """Numbers codes in the order in which they are first asked about."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def of(self, codes: NDArray[Any]) -> tuple[IntArray, IntArray]:
        """The number of every code.

        Parameters
        ----------
        codes : array of int, shape (asked,)

        Returns
        -------
        numbers : array of int, shape (asked,)
        new : array of int
            Where a code is asked about for the first time, in the order of their numbers.
        """
        distinct, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
        keys = distinct.tolist()
        known = self._numbers
        numbers = np.array([known.get(key, -1) for key in keys], dtype=np.int64)
        new = np.flatnonzero(numbers < 0)
        new = new[np.argsort(first[new])]
        numbers[new] = np.arange(len(known), len(known) + len(new))
        known.update((keys[place], len(known)) for place in new.tolist())
        return numbers[inverse.ravel()], first[new]


def place_values(base: int, digits: int) -> NDArray[Any]:
    """What each digit counts in a code of so many digits; Python's integers if 64 bits are few."""
    values = [base**digit for digit in range(digits - 1, -1, -1)]
    return np.array(values, dtype=np.int64 if base**digits < _FITS else object)


def spread(first: IntArray, count: IntArray) -> tuple[IntArray, IntArray]:
    """Rows of a ragged table.

    Parameters
    ----------
    first, count : arrays of int, shape (owners,)
        Where the rows of each owner begin, and how many there are.

    Returns
    -------
    owner, row : arrays of int, shape (rows,)
    """
    owner = np.repeat(np.arange(len(count)), count)
    begin = np.cumsum(count) - count
    return owner, np.arange(len(owner)) + (first - begin)[owner]
