"""Expected hours of writes in a log gap that are within the retention when the gap is lost.

A record in a gap is followed through the CTMC; its age grows in states in which newer records are
written, up to the retention R. The mean time in each state is the inverse Laplace transform of
``source (D + s C - A)^-1 / s`` at R: exit rates D, transition rates A, and C marks the states in
which age grows. The Euler method inverts it (Abate & Whitt, INFORMS J. Comput. 18, 2006): its
points have positive real parts, so that every entry keeps its relative accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.errors import NotComputedError
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.solver.generator import EXACT, IntArray, Vector, sums
from advisor.reliability.solver.regenerative import most_sweeps, sum_of_paths

# 2 * 12 + 1 points: about seven digits (0.6 times 12), whatever the chain.
_TERMS = 12
ACCURACY = 1e-6
# Three digits (0.6 for each of the five terms), for draws of a card.
_ROUGH_TERMS, ROUGH_ACCURACY = 5, 1e-3
# The retention is ignored if Chernoff's bound with this exponent says that hardly any hours lie
# beyond it, and if the series converges within _MAX_SWEEPS.
CHERNOFF_EXPONENT = 20.0
_MAX_SWEEPS = 200
# A convergence test takes longer than a sweep.
_SWEEPS_PER_TEST = 6
_TOLERANCE, _ROUGH_TOLERANCE = 1e-11, 1e-4


Within = Callable[
    [str, tuple[IntArray, IntArray], Vector, Vector, NDArray[np.bool_], Vector], Vector
]
"""From what is followed, the rows between which it moves, the rate of each move, the rate out of
each row, where it ages and where it begins: the hours in each row within the retention."""


@dataclass(frozen=True)
class LogGaps:
    """How gaps begin, grow, move and end in the chain of any replication scheme.

    A gap begins with unflushed records lost in a power failure. It grows while the partition is
    written without the replicas that lack it, and ends when every replica has it or none does.

    source, target (transitions,): states.
    rate (transitions, draws): per hour.
    gap_map (transitions, max gaps): old gap to new gap; negative if it ends. A gap that the target
        does not have ends too: the chain restarts there.
    count (states,): number of gaps.
    growing (states,): where gap 0, if any, grows and the records in all gaps age.
    new_gap (transitions,): the gap that begins with unflushed records; negative if none does.
    new_gap_hours (transitions, draws): hours of writes in the new gap, per hour; 0 if none begins.
    restarts (states, draws): rates of further transitions, which start the chain anew.
    """

    source: IntArray
    target: IntArray
    rate: Vector
    gap_map: IntArray
    count: IntArray
    growing: NDArray[np.bool_]
    new_gap: IntArray
    new_gap_hours: Vector
    restarts: Vector | float = 0.0

    @cached_property
    def out(self) -> Vector:
        """Total rate out of each state, shape (states, draws)."""
        return sums(self.source, self.rate, len(self.count)) + self.restarts

    @classmethod
    def of(
        cls, chain: Structure, rate: Vector, new_gap_hours: Vector, restarts: Vector | float = 0.0
    ) -> LogGaps:
        """The gaps of Kafka's chain; power failures open gap 0."""
        return cls(
            source=chain.source,
            target=chain.target,
            rate=rate,
            gap_map=chain.gap_map,
            count=chain.gaps,
            growing=chain.growing,
            new_gap=np.zeros_like(chain.source),
            new_gap_hours=new_gap_hours,
            restarts=restarts,
        )

    def mean_hours(self, pi: Vector, within: Within) -> Vector:
        """Mean retained hours of writes in each gap, times the probability of its state.

        Returns (states, max gaps, draws).
        """
        exists = np.arange(self.gap_map.shape[1]) < self.count[:, None]
        state, gap = np.nonzero(exists)
        index = np.full(exists.shape, -1)
        index[exists] = np.arange(len(state))
        ages = self.growing[state]
        source = np.where((ages & (gap == 0))[:, None], pi[state], 0.0)
        begins = np.flatnonzero((self.new_gap >= 0) & (self.new_gap_hours > 0).any(axis=1))
        first = index[self.target[begins], self.new_gap[begins]]
        # The target has no gap if no replica with a log lacks the records.
        begins, first = begins[first >= 0], first[first >= 0]
        source += sums(first, self.new_gap_hours[begins], len(state))
        moves, before = np.nonzero((index[self.source] >= 0) & (self.gap_map >= 0))
        rows = index[self.target[moves], self.gap_map[moves, before]]
        moves, before, rows = moves[rows >= 0], before[rows >= 0], rows[rows >= 0]
        ends = index[self.source[moves], before], rows
        hours = np.zeros((*exists.shape, pi.shape[1]))
        hours[exists] = within("gaps", ends, self.rate[moves], self.out[state], ages, source)
        return hours


def on_one_card(retention_hours: float, rough: bool = False) -> Within:
    """Follow what moves through the chain of one card, whose draw is the only one."""

    def within(
        _: str,
        ends: tuple[IntArray, IntArray],
        rate: Vector,
        out: Vector,
        ages: NDArray[np.bool_],
        source: Vector,
    ) -> Vector:
        into = sparse.csr_array((rate[:, 0], ends[::-1]), shape=(len(out),) * 2)
        hours = hours_within(into, out[:, 0], ages, source[:, 0], retention_hours, rough)
        return hours[:, None]

    return within


def _totals_per_hour_written(
    losses_per_hour: Vector | float, writable_share: Vector | float
) -> Vector:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            np.greater(writable_share, 0.0), np.divide(losses_per_hour, writable_share), 0.0
        )


def whole_log_hours(
    losses_per_hour: Vector | float, writable_share: Vector | float, retention_hours: float
) -> Vector:
    """Mean hours of writing that a log holds when all of it is lost, by losses that are Poisson.

    ``writable_share`` is the fraction of time in which the partition is writable.
    """
    rate = _totals_per_hour_written(losses_per_hour, writable_share)
    with np.errstate(divide="ignore", invalid="ignore"):
        hours = -np.expm1(-rate * retention_hours) / rate
    return np.where(rate * retention_hours == 0.0, retention_hours, hours)


def whole_log_chance(
    records_per_hour: float,
    losses_per_hour: Vector | float,
    writable_share: Vector | float,
    retention_hours: float,
) -> Vector:
    """Probability that a log holds a record when all of it is lost, by the same hours."""
    rate = _totals_per_hour_written(losses_per_hour, writable_share)
    if records_per_hour == 0.0:
        return np.zeros_like(rate)
    arrivals = records_per_hour + rate
    return np.asarray(records_per_hour / arrivals * -np.expm1(-arrivals * retention_hours))


def hours_within(
    into: sparse.csr_array,
    out: Vector,
    ages: NDArray[np.bool_],
    source: Vector,
    retention_hours: float,
    rough: bool = False,
) -> Vector:
    """Mean hours that records spend in each state before their age reaches the retention.

    into (states, states): rates per hour, to the row from the column. out (states,): total exit
    rate, absorption included, per hour. ages (states,): where newer records are written. source
    (states,): hours of records that enter in each state, per hour. rough: three digits are enough;
    else the error is at most ``ACCURACY`` of the value without limit.
    """
    if retention_hours <= 0 or not source.any():
        return np.zeros(len(source))
    unlimited = _unlimited(into, out, ages, source, retention_hours)
    if unlimited is not None:
        return unlimited
    return hours_limited(into, out, ages, source, retention_hours, rough)


def hours_limited(
    into: sparse.csr_array,
    out: Vector,
    ages: NDArray[np.bool_],
    source: Vector,
    retention_hours: float,
    rough: bool = False,
) -> Vector:
    """The same where the retention is known to matter."""
    points, weights = _euler(_ROUGH_TERMS if rough else _TERMS)
    shifts = points / retention_hours
    exits = out[:, None] + ages[:, None] * shifts[None, :]
    transform = _complex_hours(into, exits, source, _ROUGH_TOLERANCE if rough else _TOLERANCE)
    hours = (transform / shifts[None, :]).real @ weights / retention_hours
    return np.maximum(hours, 0.0)


def _unlimited(
    into: sparse.csr_array,
    out: Vector,
    ages: NDArray[np.bool_],
    source: Vector,
    retention_hours: float,
) -> Vector | None:
    """Mean hours in each state without a limit if the retention hardly matters, else None.

    At age c > R, ``exp(s (c - R)) > 1``; so the hours beyond R are at most
    ``exp(-s R) (D - s C - A)^-1 source``, for every s for which that is finite (Chernoff).
    """
    exits = out - CHERNOFF_EXPONENT / retention_hours * ages
    if not bool(np.all(exits > 0)):
        return None
    weighted = _hours(into, exits, source, ACCURACY)
    hours = None if weighted is None else _hours(into, out, source, EXACT)
    if weighted is None or hours is None:
        return None
    negligible = math.exp(-CHERNOFF_EXPONENT) * weighted <= ACCURACY / 2.0 * hours
    return hours if bool(np.all(negligible)) else None


def _hours(
    into: sparse.csr_array, exits: Vector, source: Vector, precision: float
) -> Vector | None:
    """``(D - A)^-1 source`` as a Neumann series; None if it does not converge in time."""
    shares = (into.data / exits[into.indices], into.indices, into.indptr)
    jumps = sparse.csr_array(shares, shape=into.shape)
    visits = sum_of_paths(jumps, source, precision, _MAX_SWEEPS)
    return None if visits is None else visits / exits


def _complex_hours(
    into: sparse.csr_array, exits: NDArray[np.complex128], source: Vector, tolerance: float
) -> NDArray[np.complex128]:
    """``(D - A)^-1 source`` as a Neumann series, for every column of D."""
    mean_stay = 1.0 / exits
    term = source[:, None] * mean_stay
    total = term.copy()
    for sweep in range(1, most_sweeps(into.nnz * term.shape[1]) + 1):
        term = into @ term
        term *= mean_stay
        total += term
        if sweep % _SWEEPS_PER_TEST:
            continue
        if bool(np.all(np.abs(term) <= tolerance * np.abs(total))):
            return total
    raise NotComputedError(
        "records in gaps were not settled: outages so frequent and long that a healthy cluster "
        "is almost never reached are too much for the chain"
    )


@lru_cache(maxsize=4)
def _euler(terms: int) -> tuple[NDArray[np.complex128], Vector]:
    """Points and weights: ``f(t) = sum(weight * Re F(point / t)) / t``."""
    count = 2 * terms + 1
    points = np.full(count, terms * math.log(10.0) / 3.0, dtype=np.complex128)
    points.imag = math.pi * np.arange(count)
    weights: Vector = np.ones(count)
    weights[0] = 0.5
    weights[-1] = 2.0**-terms
    for k in range(1, terms):
        weights[count - 1 - k] = weights[count - k] + 2.0**-terms * math.comb(terms, k)
    weights[1::2] *= -1.0
    return points, 10.0 ** (terms / 3.0) * weights
