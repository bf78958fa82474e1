"""How much of a gap is still kept when it is lost: what is older than the retention is not.

A record in a gap is followed from state to state, and a clock runs for it while newer records are
written. It counts until the clock shows the retention. The time it spends in each state up to a
clock of R is the inverse Laplace transform of ``source (D + s C - A)^-1 / s`` at R, where C marks
the states whose clock runs. The transform is inverted by the Euler method (Abate & Whitt, INFORMS
J. Comput. 18, 2006): all its points have a positive real part, at which the sum over paths ends
sooner than without a limit, and every entry keeps its own digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.errors import NotComputedError
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.solver.generator import EXACT, IntArray, sums
from advisor.reliability.solver.regenerative import most_sweeps, sum_of_paths

Vector = NDArray[np.float64]

# 2 * 12 + 1 points: about seven digits (0.6 times 12), whatever the chain.
_TERMS = 12
ACCURACY = 1e-6
_ROUGH_TERMS = 5
# Whether the retention matters at all is asked first: of the hours beyond it, weighed by e to this
# power at least, few must be left, in so many sweeps.
_BEYOND = 20.0
_PATIENCE = 200
# Looking whether a sum has settled takes longer than a sweep.
_SWEEPS_BETWEEN_LOOKS = 6
_SETTLED, _ROUGHLY_SETTLED = 1e-11, 1e-4


@dataclass(frozen=True)
class LogGaps:
    """What becomes of the gaps in a chain of any scheme.

    A gap begins with what those who lost power had not flushed. It grows while the partition is
    written without the replicas that lack it, and moves along the transitions until everyone has
    it or nobody does.

    Attributes
    ----------
    source, target : arrays of int, shape (transitions,)
        States.
    rate : array, shape (transitions,)
        Per hour.
    onto : array of int, shape (transitions, most gaps)
        Old gap to new gap; negative where it is none any more. One that the target does not have
        ends, too: there the chain starts anew.
    count : array of int, shape (states,)
        How many gaps there are.
    growing : array of bool, shape (states,)
        Where gap 0 grows, if there is one, and records of all gaps become older.
    begins : array of int, shape (transitions,)
        The new gap that begins with what was not flushed; negative if none does.
    begun : array, shape (transitions,)
        Hours of writing with which it begins, per hour; 0 where it does not.
    """

    source: IntArray
    target: IntArray
    rate: Vector
    onto: IntArray
    count: IntArray
    growing: NDArray[np.bool_]
    begins: IntArray
    begun: Vector

    @classmethod
    def of(cls, chain: Structure, rate: Vector, begun: Vector) -> LogGaps:
        """The gaps of Kafka's chain.

        Parameters
        ----------
        chain : Structure
        rate : array, shape (transitions,)
            Per hour.
        begun : array, shape (transitions,)
            Hours of writing that were not flushed where power went, per hour.
        """
        return cls(
            source=chain.source,
            target=chain.target,
            rate=rate,
            onto=chain.gap_map,
            count=chain.gaps,
            growing=chain.growing,
            # Power takes the page caches of the newest.
            begins=np.zeros_like(chain.source),
            begun=begun,
        )

    def mean_hours(self, share: Vector, retention_hours: float, rough: bool = False) -> Vector:
        """Hours of writing in each gap that are still kept, times the probability of the state.

        Parameters
        ----------
        share : array, shape (states,)
            Long-run fraction of time.
        retention_hours : float
        rough : bool
            See :func:`hours_within`.

        Returns
        -------
        array, shape (states, most gaps)
        """
        states, width = len(self.count), self.onto.shape[1]
        there = np.arange(width) < self.count[:, None]
        state, _ = np.nonzero(there)
        hours = np.zeros(there.shape)
        place = np.full(there.shape, -1)
        place[there] = np.arange(len(state))
        source = np.zeros(len(state))
        grows = self.growing & there[:, 0]
        source[place[grows, 0]] = share[grows]
        begins = np.flatnonzero((self.begins >= 0) & (self.begun > 0))
        first = place[self.target[begins], self.begins[begins]]
        # Where nobody with a log lacks it there is no gap.
        some = first >= 0
        source += sums(first[some], self.begun[begins[some]], len(state))
        out = sums(self.source, self.rate, states)[state]
        clock = self.growing[state]
        into = self._into(place)
        hours[there] = hours_within(into, out, clock, source, retention_hours, rough)
        return hours

    def _into(self, place: IntArray) -> sparse.csr_array:
        """Rates per hour between places, the numbers of all gaps of all states; -1 is none."""
        moves, gap = np.nonzero((place[self.source] >= 0) & (self.onto >= 0))
        rows = place[self.target[moves], self.onto[moves, gap]]
        kept = rows >= 0
        where = (rows[kept], place[self.source[moves], gap][kept])
        size = int(place.max()) + 1
        return sparse.csr_array((self.rate[moves[kept]], where), shape=(size, size))


def hours_within(
    into: sparse.csr_array,
    out: Vector,
    clock: NDArray[np.bool_],
    source: Vector,
    retention_hours: float,
    rough: bool = False,
) -> Vector:
    """Mean hours that records spend in each place before they are older than the retention.

    Parameters
    ----------
    into : sparse array, shape (places, places)
        Rates per hour, to the row from the column.
    out : array, shape (places,)
        Whole rate out of each place, ends included, per hour.
    clock : array of bool, shape (places,)
        Where newer records are written.
    source : array, shape (places,)
        Hours of records that begin in each place, per hour.
    retention_hours : float
        In hours of writing.
    rough : bool
        Three digits are enough.

    Returns
    -------
    array, shape (places,)
        Exact to ``ACCURACY`` of each entry's unlimited value, unless rough.
    """
    if retention_hours <= 0 or not source.any():
        return np.zeros(len(source))
    unlimited = _unlimited(into, out, clock, source, retention_hours)
    if unlimited is not None:
        return unlimited
    points, weights = _euler(_ROUGH_TERMS if rough else _TERMS)
    shifts = points / retention_hours
    leaves = out[:, None] + clock[:, None] * shifts[None, :]
    found = _paths(into, leaves, source, _ROUGHLY_SETTLED if rough else _SETTLED)
    summed = (found / shifts[None, :]).real @ weights / retention_hours
    return np.maximum(summed, 0.0)


def _unlimited(
    into: sparse.csr_array,
    out: Vector,
    clock: NDArray[np.bool_],
    source: Vector,
    retention_hours: float,
) -> Vector | None:
    """The hours in each place if none of them lie beyond the retention, to all digits; else None.

    Where the clock shows c, ``exp(s (c - R))`` is 1 at least beyond R; so the hours beyond are
    ``exp(-s R) (D - s C - A)^-1 source`` at most, for every s for which that is finite (Chernoff).
    """
    leaves = out - _BEYOND / retention_hours * clock
    if not bool(np.all(leaves > 0)):
        return None
    weighted = _hours(into, leaves, source, ACCURACY, _PATIENCE)
    hours = None if weighted is None else _hours(into, out, source, EXACT, _PATIENCE)
    if weighted is None or hours is None:
        return None
    few = math.exp(-_BEYOND) * weighted <= ACCURACY / 2.0 * hours
    return hours if bool(np.all(few)) else None


def _hours(
    into: sparse.csr_array, leaves: Vector, source: Vector, precision: float, patience: int
) -> Vector | None:
    """``(D - A)^-1 source`` as a sum over paths; None if that takes longer."""
    shares = (into.data / leaves[into.indices], into.indices, into.indptr)
    jumps = sparse.csr_array(shares, shape=into.shape)
    visits = sum_of_paths(jumps, source, precision, patience)
    return None if visits is None else visits / leaves


def _paths(
    into: sparse.csr_array, leaves: NDArray[np.complex128], source: Vector, settled: float
) -> NDArray[np.complex128]:
    """``(D - A)^-1 source`` for every column of D at once, as a sum over paths."""
    per_leaving = 1.0 / leaves
    term = source[:, None] * per_leaving
    total = term.copy()
    for sweep in range(1, most_sweeps(into.nnz * term.shape[1]) + 1):
        term = into @ term
        term *= per_leaving
        total += term
        if sweep % _SWEEPS_BETWEEN_LOOKS:
            continue
        if bool(np.all(np.abs(term) <= settled * np.abs(total))):
            return total
    raise NotComputedError(
        "records in gaps were not settled: outages so frequent and long that a healthy cluster "
        "is hardly ever seen are too much for the chain"
    )


@lru_cache(maxsize=4)
def _euler(terms: int) -> tuple[NDArray[np.complex128], Vector]:
    """Points and weights: ``f(t) = sum(weight * Re F(point / t)) / t``."""
    count = 2 * terms + 1
    points = np.full(count, terms * math.log(10.0) / 3.0, dtype=np.complex128)
    points.imag = math.pi * np.arange(count)
    smooth: Vector = np.ones(count)
    smooth[0] = 0.5
    smooth[-1] = 2.0**-terms
    for k in range(1, terms):
        smooth[count - 1 - k] = smooth[count - k] + 2.0**-terms * math.comb(terms, k)
    smooth[1::2] *= -1.0
    return points, 10.0 ** (terms / 3.0) * smooth
