"""One chain under many rates at once: every rate is a row with a column for each draw.

A draw of a card changes the rates of a chain, not which states it connects. So each system of
equations is solved for all draws in one pass over the chain, by Gauss and Seidel's sweeps: a state
takes what its neighbours have now, divided by its rate out. Nothing is subtracted, so that every
entry keeps its digits; a sweep up the states carries failures all the way, one down repairs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.reliability.jit import Entry, entry
from advisor.reliability.solver.generator import IntArray, Vector, adds_up

# Draws that are swept together: their rates fit into a processor's cache.
_TOGETHER = 32
# Where an entry still changes by more than this share of itself, sweeps go on ...
_SETTLED = 1e-13
# ... up to this number; a chain with longer cycles is solved draw by draw.
_MOST_SWEEPS = 400
_WORDS = "Compiling what compares draws, once: this takes some seconds"


class Neighbours(NamedTuple):
    """Who contributes to each state: entries from `begin` of one state to that of the next.

    Attributes
    ----------
    begin : array of int, shape (states + 1,)
    state, rate : array of int, shape (entries,)
        The neighbour, and the row of the rate between the two.
    """

    begin: IntArray
    state: IntArray
    rate: IntArray

    @classmethod
    def of(cls, states: int, to: IntArray, neighbour: IntArray, rate: IntArray) -> Neighbours:
        """Sort entries by the state they contribute to."""
        order = np.argsort(to, kind="stable")
        begin = np.searchsorted(to[order], np.arange(states + 1))
        return cls(*map(np.ascontiguousarray, (begin, neighbour[order], rate[order])))


def _sweep(
    begin: IntArray,
    neighbour: IntArray,
    rate_of: IntArray,
    rates: Vector,
    out: Vector,
    given: Vector,
    solution: Vector,
    changed: Vector,
    first: int,
    last: int,
    settled: float,
    most: int,
) -> int:
    """Sweep some columns until no entry changes by more than a share of itself."""
    states = out.shape[0]
    for sweep in range(most):
        for draw in range(first, last):
            changed[0, draw] = 0.0
        for place in range(states):
            state = place if sweep % 2 == 0 else states - 1 - place
            for draw in range(first, last):
                changed[1, draw] = given[state, draw]
            for at in range(begin[state], begin[state + 1]):
                other, row = neighbour[at], rate_of[at]
                for draw in range(first, last):
                    changed[1, draw] += rates[row, draw] * solution[other, draw]
            for draw in range(first, last):
                now = changed[1, draw] / out[state, draw]
                before = solution[state, draw]
                solution[state, draw] = now
                change = abs(now - before) - settled * now
                changed[0, draw] = max(changed[0, draw], change)
        if sweep % 2 == 1:
            going_on = False
            for draw in range(first, last):
                # Not a number compares as not settled.
                going_on = going_on or not changed[0, draw] <= 0.0
            if not going_on:
                return sweep + 1
    return most


def _follow(
    source: IntArray,
    target: IntArray,
    count: IntArray,
    share: Vector,
    before: Vector,
    after: Vector,
) -> int:
    """One step of `advisor.reliability.measures.struck_alone`, for all draws."""
    levels, states, draws = before.shape
    for level in range(levels):
        for state in range(states):
            for draw in range(draws):
                after[level, state, draw] = 0.0
    for draw in range(draws):
        after[0, 0, draw] = 1.0
    for edge in range(source.shape[0]):
        for already in range(levels - count[edge]):
            level = already + count[edge]
            for draw in range(draws):
                after[level, target[edge], draw] += (
                    share[edge, draw] * before[already, source[edge], draw]
                )
    return 0


def _gather(
    place: IntArray,
    state: IntArray,
    name: IntArray,
    weight: Vector,
    amounts: Vector,
    rates: Vector,
    found: Vector,
) -> int:
    """Add weight x amount of a state x rate of a name, row by row, at each place."""
    draws = found.shape[1]
    for row in range(place.shape[0]):
        for draw in range(draws):
            found[place[row], draw] += (
                weight[row] * amounts[state[row], draw] * rates[name[row], draw]
            )
    return 0


sweep: Entry = entry(_sweep, words=_WORDS)
gather: Entry = entry(_gather, words=_WORDS)
follow: Entry = entry(_follow, words=_WORDS)


def settle(
    neighbours: Neighbours,
    rates: Vector,
    out: Vector,
    given: Vector,
    start: Vector | None = None,
    settled: float = _SETTLED,
) -> tuple[Vector, NDArray[np.bool_]]:
    """Solve ``x out = given + rates x`` for every draw.

    Parameters
    ----------
    neighbours : Neighbours
    rates : array, shape (rates, draws)
    out, given : arrays, shape (states, draws)
    start : array, shape (states, draws), optional
        About the solution.
    settled : float
        Relative change of an entry that is left.

    Returns
    -------
    (array, shape (states, draws), array of bool, shape (draws,))
        The solutions, and where they are none because the sweeps did not settle.
    """
    draws = out.shape[1]
    solution = np.zeros(out.shape) if start is None else start.copy()
    changed = np.zeros((2, draws))
    kept = [np.ascontiguousarray(each) for each in (rates, out, given)]
    for first in range(0, draws, _TOGETHER):
        last = min(first + _TOGETHER, draws)
        sweep(*neighbours, *kept, solution, changed, first, last, settled, _MOST_SWEEPS)
    return solution, ~(changed[0] <= 0.0) | ~np.isfinite(solution).all(axis=0)


@dataclass(frozen=True, eq=False)
class Connected:
    """Which states a chain's moves connect, whatever their rates.

    Attributes
    ----------
    states : int
    source, target : arrays of int, shape (pairs,)
        Of each pair of different states that a move connects.
    pairs : sparse array, shape (pairs, moves)
        Sums the rates of the moves between each pair.
    leaving : sparse array, shape (states, pairs)
        Sums the rates of the pairs out of each state.
    forward, backward : Neighbours
        From where each state but the healthy one is entered, and where it leads to.
    """

    states: int
    source: IntArray
    target: IntArray
    pairs: sparse.csr_array
    leaving: sparse.csr_array
    forward: Neighbours
    backward: Neighbours

    @classmethod
    def of(cls, source: IntArray, target: IntArray, states: int) -> Connected:
        """The pairs of some moves."""
        moves = np.flatnonzero(source != target)
        codes, number = np.unique(
            source[moves] * states + target[moves], return_inverse=True
        )
        begin, end = np.divmod(codes, states)
        pairs = sparse.csr_array(
            (np.ones(len(moves)), (number.ravel(), moves)), shape=(len(codes), len(source))
        )
        inner = np.flatnonzero((begin > 0) & (end > 0))
        asked = begin[inner] - 1, end[inner] - 1
        return cls(
            states=states,
            source=begin,
            target=end,
            pairs=pairs,
            leaving=adds_up(begin, states),
            forward=Neighbours.of(states - 1, asked[1], asked[0], inner),
            backward=Neighbours.of(states - 1, asked[0], asked[1], inner),
        )


class ManyCycles:
    """Cycles from the healthy state until return or absorption, under the rates of many draws.

    Parameters
    ----------
    connected : Connected
    rates : array, shape (pairs, draws)
    absorbed : array, shape (states, draws)
        Rate out of each state to absorption.

    Attributes
    ----------
    unsettled : array of bool, shape (draws,)
        Draws whose solutions are none; they are to be solved one by one.
    """

    def __init__(self, connected: Connected, rates: Vector, absorbed: Vector) -> None:
        self._connected, self._rates, self.absorbed = connected, rates, absorbed
        self.out: Vector = connected.leaving @ rates + absorbed
        leaves, returns = connected.source == 0, connected.target == 0
        self.start, self.back = np.zeros_like(absorbed), np.zeros_like(absorbed)
        self.start[connected.target[leaves]] = rates[leaves]
        self.back[connected.source[returns]] = rates[returns]
        self.unsettled = np.zeros(rates.shape[1], dtype=np.bool_)

    def forward(self, source: Vector, near: Vector | None = None) -> Vector:
        """Mean hours in each other state, for a flow ``source`` entering them (per hour)."""
        return self._solved(self._connected.forward, source, near)

    def backward(self, gain: Vector, near: Vector | None = None) -> Vector:
        """Mean total of ``gain`` per hour collected from each other state until the end."""
        return self._solved(self._connected.backward, gain, near)

    def visits(self) -> Vector:
        """Hours in each state for an hour in the healthy one."""
        hours = self.forward(self.start)
        hours[0] = 1.0
        return hours

    def _solved(self, neighbours: Neighbours, given: Vector, near: Vector | None) -> Vector:
        start = None if near is None else np.ascontiguousarray(near[1:])
        found, unsettled = settle(neighbours, self._rates, self.out[1:], given[1:], start)
        self.unsettled |= unsettled
        return np.concatenate([np.zeros((1, found.shape[1])), found])


class FirstLosses(NamedTuple):
    """First passages from the healthy state to absorption, a column for each draw.

    Attributes
    ----------
    mean_hours, probability : arrays, shape (draws,)
    visits : array, shape (states, draws)
        Hours in each state for an hour in the healthy one, until absorption.
    unsettled : array of bool, shape (draws,)
        Draws whose answer is none here.
    """

    mean_hours: Vector
    probability: Vector
    visits: Vector
    unsettled: NDArray[np.bool_]


# What is left of the start of a year decays as exp(-horizon / slowest), to this share.
_FORGOTTEN = math.log(1e13)
_STEPS = 60


def first_losses(cycles: ManyCycles, horizon_hours: float) -> FirstLosses:
    """Mean time to absorption, and its probability within a horizon.

    By quasi-stationary extrapolation, see `advisor.reliability.solver.first_passage`; draws with
    repairs too slow for that are left to it.
    """
    visits = cycles.visits()
    per_healthy_hour = (visits * cycles.absorbed).sum(axis=0)
    never = per_healthy_hour == 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_hours = np.where(never, np.inf, visits.sum(axis=0) / per_healthy_hour)
        ahead = cycles.backward(np.ones_like(visits))
        slow = horizon_hours < _FORGOTTEN * ahead.max(axis=0)
        probability = _extrapolated(cycles, visits, ahead, per_healthy_hour, horizon_hours)
    unsettled = (cycles.unsettled | slow | ~np.isfinite(probability)) & ~never
    return FirstLosses(mean_hours, np.where(never, 0.0, probability), visits, unsettled)


def _extrapolated(
    cycles: ManyCycles, visits: Vector, ahead: Vector, per_healthy_hour: Vector, horizon: float
) -> Vector:
    there, hazard, inside = visits / visits.sum(axis=0), np.zeros(visits.shape[1]), None
    for _ in range(_STEPS):
        inside = cycles.forward(there, inside)
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
        ahead = cycles.backward(1.0 - behind, ahead)
    shortfall = (there * behind).sum(axis=0)
    lead = shortfall / (1.0 - shortfall)
    decay = -np.expm1(-hazard * horizon)
    found: Vector = decay - lead * (1.0 - decay)
    return found
