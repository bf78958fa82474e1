"""One chain under many rates at once: every rate is a row with a column for each draw.

The order in which states are eliminated is found once for a chain (those first that connect fewest
others), and each step is done for all draws. Nothing is subtracted (see `gth_elimination`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.errors import AdvisorError
from advisor.reliability.solver.generator import IntArray, Vector, adds_up


def _kernels() -> ModuleType:
    """The compiled loops; numba takes longer to import than all of advisor may."""
    from advisor.reliability.solver import draws_kernel

    return draws_kernel


def gather(
    place: IntArray,
    state: IntArray,
    name: IntArray,
    weight: Vector,
    amounts: Vector,
    rates: Vector,
    sums: Vector,
) -> None:
    """Add weight x amount of a state x rate of a name, row by row, at each place."""
    _kernels().gather(place, state, name, weight, amounts, rates, sums)


def follow(
    ways: tuple[IntArray, IntArray, IntArray],
    share: Vector,
    before: Vector,
    after: Vector,
    changed: Vector,
    settled: float,
) -> None:
    """Follow paths one step on, in the draws that still changed by more than is settled.

    ways (paths,): from which state, to which, and by how many levels.
    share (paths, draws): of the target's arrivals.
    before, after (levels, states, draws).
    changed (draws,): largest change of the last step, and then of this one.
    """
    _kernels().follow(*ways, share, before, after, changed, settled)


class _Places(NamedTuple):
    """Entries of the eliminated matrix by step: from `begin` of one to that of the next.

    entry, state (entries,): row of the rate, and the state at its other end.
    """

    begin: IntArray
    entry: IntArray
    state: IntArray


@dataclass(frozen=True, eq=False)
class Elimination:
    """In which order states are eliminated, and which rates that adds to; for any rates.

    entries: those of the pairs that the rates connect, and new ones.
    sums (entries, rates): sums the rates between each pair of different states.
    loops (states, rates): sums the rates that lead from a state to itself.
    coming, going: entries from, and to, the states that are left at each step.
    new: by step, state it comes from and state it goes to: the entry that grows, -1 for none.
    """

    states: int
    entries: int
    sums: sparse.csr_array
    loops: sparse.csr_array
    source: IntArray
    target: IntArray
    pivots: IntArray
    coming: _Places
    going: _Places
    begin_new: IntArray
    new: IntArray

    @classmethod
    def of(cls, states: int, source: IntArray, target: IntArray) -> Elimination:
        """Order the states that some rates connect, given by the two ends of each."""
        apart = source != target
        codes, number = np.unique(source[apart] * states + target[apart], return_inverse=True)
        room = 8 * len(codes) + 64
        while (order := _ordered(states, codes, room)) is None:
            room *= 4
        pivots, begins, ends, new = order
        every = np.arange(len(source))
        coming, going, made = (begins[row] for row in range(3))
        return cls(
            states=states,
            entries=int(begins[3, 0]),
            sums=_ones(number.ravel(), every[apart], (int(begins[3, 0]), len(source))),
            loops=_ones(source[~apart], every[~apart], (states, len(source))),
            source=source,
            target=target,
            pivots=pivots,
            coming=_Places(coming.copy(), *(row[: coming[-1]].copy() for row in ends[:2])),
            going=_Places(going.copy(), *(row[: going[-1]].copy() for row in ends[2:])),
            begin_new=made.copy(),
            new=new[: made[-1]].copy(),
        )

    def into(self, rates: Vector) -> sparse.csr_array:
        """The rates of one draw as a matrix, to the row from the column."""
        shape = self.states, self.states
        return sparse.csr_array((rates, (self.target, self.source)), shape=shape)

    def without_subtraction(self, rates: Vector, leak: Vector) -> Eliminated:
        """Eliminate where each state is left at its rates and a leak, shape (states, draws)."""
        return self._eliminated(rates, leak, np.empty_like(leak), False)

    def with_totals(self, rates: Vector, out: Vector) -> Eliminated:
        """Eliminate where each state is left at a rate that need not cover what it passes on."""
        return self._eliminated(rates, np.empty((1, 1)), out - self.loops @ rates, True)

    def _eliminated(
        self, rates: Vector, leak: Vector, total: Vector, subtracts: bool
    ) -> Eliminated:
        entries, share = self.sums @ rates, np.empty((1, rates.shape[1]))
        left, going = leak.copy(), self.going
        with np.errstate(all="ignore"):
            _kernels().eliminate(
                *(self.pivots, *self.coming, going.begin, going.entry, self.begin_new, self.new),
                *(entries, left, total, share, subtracts),
            )
        return Eliminated(self, entries, total)


def _ordered(
    states: int, codes: IntArray, room: int
) -> tuple[IntArray, IntArray, IntArray, IntArray] | None:
    """Pivots, and where their entries are; None if there is not enough room."""
    source, target = np.divmod(codes, states)
    entry_of = np.full((states, states), -1, dtype=np.int32)
    entry_of[source, target] = np.arange(len(codes))
    degree = np.stack([np.bincount(ends, minlength=states) for ends in (target, source)])
    pivots, begins = np.empty(states, dtype=np.int64), np.zeros((4, states + 1), dtype=np.int64)
    ends, new = np.empty((4, room), dtype=np.int64), np.empty(4 * room, dtype=np.int64)
    full = _kernels().order(entry_of, degree, pivots, begins, ends, new, len(codes))
    return None if full else (pivots, begins, ends, new)


def _ones(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Solves ``x (D - A) = given`` and ``(D - A) x = given`` in each draw."""

    order: Elimination
    entries: Vector
    total: Vector

    @cached_property
    def singular(self) -> NDArray[np.bool_]:
        """Draws in which no non-negative solution exists, shape (draws,)."""
        return np.asarray(~(self.total > 0.0).all(axis=0))

    def forward(self, given: Vector) -> Vector:
        """What is passed on until it leaves: ``x (D - A) = given``, shape (states, draws)."""
        return self._solved(given, self.order.coming, self.order.going)

    def backward(self, gain: Vector) -> Vector:
        """What is collected until the end: ``(D - A) x = gain``, shape (states, draws)."""
        return self._solved(gain, self.order.going, self.order.coming)

    def _solved(self, given: Vector, came: _Places, to: _Places) -> Vector:
        solution, share = np.array(given, dtype=np.float64), np.empty((1, given.shape[1]))
        _kernels().substitute(
            self.order.pivots, *came, *to, self.entries, self.total, solution, share
        )
        return solution


@dataclass(frozen=True, eq=False)
class Connected:
    """Which states a chain's moves connect, whatever their rates, in pairs of different states.

    pairs (pairs, moves): sums the rates of the moves between each pair.
    leaving (states, pairs): sums the rates of the pairs out of each state.
    inner: pairs of states other than the healthy one, which ``order`` is of.
    """

    states: int
    source: IntArray
    target: IntArray
    pairs: sparse.csr_array
    leaving: sparse.csr_array
    inner: IntArray
    order: Elimination

    @classmethod
    def of(cls, source: IntArray, target: IntArray, states: int) -> Connected:
        """The pairs of some moves."""
        moves = np.flatnonzero(source != target)
        codes, number = np.unique(source[moves] * states + target[moves], return_inverse=True)
        begin, end = np.divmod(codes, states)
        inner = np.flatnonzero((begin > 0) & (end > 0))
        return cls(
            states=states,
            source=begin,
            target=end,
            pairs=_ones(number.ravel(), moves, (len(codes), len(source))),
            leaving=adds_up(begin, states),
            inner=inner,
            order=Elimination.of(states - 1, begin[inner] - 1, end[inner] - 1),
        )


class ManyCycles:
    """Cycles from the healthy state until return or absorption, under the rates of many draws."""

    def __init__(self, connected: Connected, rates: Vector, absorbed: Vector) -> None:
        self.absorbed = absorbed
        self.out: Vector = connected.leaving @ rates + absorbed
        leaves, returns = connected.source == 0, connected.target == 0
        self.start, self.back = np.zeros_like(absorbed), np.zeros_like(absorbed)
        self.start[connected.target[leaves]] = rates[leaves]
        self.back[connected.source[returns]] = rates[returns]
        leak = self.back[1:] + absorbed[1:]
        self._inside = connected.order.without_subtraction(rates[connected.inner], leak)
        if self._inside.singular.any():
            raise AdvisorError("a state of the chain cannot be left: give every outage a duration")

    def forward(self, source: Vector) -> Vector:
        """Mean hours in each other state, for a flow ``source`` entering them (per hour)."""
        return _with_healthy(self._inside.forward(source[1:]))

    def backward(self, gain: Vector) -> Vector:
        """Mean total of ``gain`` per hour collected from each other state until the end."""
        return _with_healthy(self._inside.backward(gain[1:]))

    def visits(self) -> Vector:
        """Hours in each state for an hour in the healthy one."""
        hours = self.forward(self.start)
        hours[0] = 1.0
        return hours


def _with_healthy(amounts: Vector) -> Vector:
    return np.concatenate([np.zeros((1, amounts.shape[1])), amounts])


class FirstLosses(NamedTuple):
    """First passages from the healthy state to absorption, a column for each draw.

    visits (states, draws): hours in each state for an hour in the healthy one, until absorption.
    unsettled (draws,): draws whose answer is none here.
    """

    mean_hours: Vector
    probability: Vector
    visits: Vector
    unsettled: NDArray[np.bool_]


# What is left of the start of a year decays as exp(-horizon / slowest), to this share.
_FORGOTTEN = math.log(1e13)
_SETTLED, _STEPS = 1e-13, 60


def first_losses(cycles: ManyCycles, horizon_hours: float) -> FirstLosses:
    """Mean time to absorption, and its probability within a horizon.

    By the extrapolation of `first_passage`, to which draws with repairs too slow for that are left.
    """
    visits = cycles.visits()
    per_healthy_hour = (visits * cycles.absorbed).sum(axis=0)
    never = per_healthy_hour == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_hours = np.where(never, np.inf, visits.sum(axis=0) / per_healthy_hour)
        ahead = cycles.backward(np.ones_like(visits))
        slow = horizon_hours < _FORGOTTEN * ahead.max(axis=0)
        probability = _extrapolated(cycles, visits, ahead, per_healthy_hour, horizon_hours)
    unsettled = (slow | ~np.isfinite(probability)) & ~never
    return FirstLosses(mean_hours, np.where(never, 0.0, probability), visits, unsettled)


def _extrapolated(
    cycles: ManyCycles, visits: Vector, ahead: Vector, per_healthy_hour: Vector, horizon: float
) -> Vector:
    there, hazard = visits / visits.sum(axis=0), np.zeros(visits.shape[1])
    for _ in range(_STEPS):
        inside = cycles.forward(there)
        healthy = (there[0] + (inside * cycles.back).sum(axis=0)) / per_healthy_hour
        following = inside + healthy * visits
        previous, hazard = hazard, there.sum(axis=0) / following.sum(axis=0)
        there = following / following.sum(axis=0)
        if not (np.abs(hazard - previous) > _SETTLED * hazard).any():
            break
    lost = cycles.backward(cycles.absorbed)
    behind = np.zeros_like(lost)
    for _ in range(_STEPS):
        before, behind = behind, lost - hazard * ahead
        if not (np.abs(behind - before).max(axis=0) > _SETTLED).any():
            break
        ahead = cycles.backward(1.0 - behind)
    shortfall = (there * behind).sum(axis=0)
    lead = shortfall / (1.0 - shortfall)
    decay = -np.expm1(-hazard * horizon)
    survival: Vector = decay - lead * (1.0 - decay)
    return survival
