"""One chain under many rates at once: every rate is a row with a column for each draw.

A draw of a card changes the rates of a chain, not which states it connects. So the order in which
states are eliminated is found once for a chain (those first that connect fewest others), and each
step is done for all draws. Nothing is subtracted (Grassmann, Taksar and Heyman, Oper. Res. 33,
1985), so that every entry keeps its digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.errors import AdvisorError
from advisor.reliability.jit import Entry, entry
from advisor.reliability.solver.generator import IntArray, Vector, adds_up

_WORDS = "Compiling what compares draws, once: this takes some seconds"


def _eliminate(
    pivots: IntArray,
    begin_in: IntArray,
    entries_in: IntArray,
    states_in: IntArray,
    begin_out: IntArray,
    entries_out: IntArray,
    begin_new: IntArray,
    new: IntArray,
    rates: Vector,
    leak: Vector,
    total: Vector,
    share: Vector,
    subtracts: bool,
) -> int:
    """Eliminate one state after the other, in each column; ``total`` is where each ends."""
    draws = rates.shape[1]
    for step in range(pivots.shape[0]):
        state = pivots[step]
        if not subtracts:
            for draw in range(draws):
                total[state, draw] = leak[state, draw]
            for out in range(begin_out[step], begin_out[step + 1]):
                for draw in range(draws):
                    total[state, draw] += rates[entries_out[out], draw]
        at = begin_new[step]
        for came in range(begin_in[step], begin_in[step + 1]):
            row, before = entries_in[came], states_in[came]
            for draw in range(draws):
                share[0, draw] = rates[row, draw] / total[state, draw]
            if not subtracts:
                for draw in range(draws):
                    leak[before, draw] += share[0, draw] * leak[state, draw]
            for out in range(begin_out[step], begin_out[step + 1]):
                place, onward = new[at], entries_out[out]
                at += 1
                if place >= 0:
                    for draw in range(draws):
                        rates[place, draw] += share[0, draw] * rates[onward, draw]
                elif subtracts:
                    for draw in range(draws):
                        total[before, draw] -= share[0, draw] * rates[onward, draw]
    return 0


def _substitute(
    pivots: IntArray,
    begin_from: IntArray,
    entries_from: IntArray,
    states_from: IntArray,
    begin_to: IntArray,
    entries_to: IntArray,
    states_to: IntArray,
    rates: Vector,
    total: Vector,
    given: Vector,
    share: Vector,
) -> int:
    """Solve in place: push what is given along, then collect what each state gets."""
    draws = rates.shape[1]
    for step in range(pivots.shape[0]):
        state = pivots[step]
        for draw in range(draws):
            share[0, draw] = given[state, draw] / total[state, draw]
        for to in range(begin_to[step], begin_to[step + 1]):
            row, other = entries_to[to], states_to[to]
            for draw in range(draws):
                given[other, draw] += share[0, draw] * rates[row, draw]
    for step in range(pivots.shape[0] - 1, -1, -1):
        state = pivots[step]
        for draw in range(draws):
            share[0, draw] = given[state, draw]
        for came in range(begin_from[step], begin_from[step + 1]):
            row, other = entries_from[came], states_from[came]
            for draw in range(draws):
                share[0, draw] += given[other, draw] * rates[row, draw]
        for draw in range(draws):
            given[state, draw] = share[0, draw] / total[state, draw]
    return 0


def _follow(
    source: IntArray,
    target: IntArray,
    count: IntArray,
    share: Vector,
    before: Vector,
    after: Vector,
    changed: Vector,
    settled: float,
) -> int:
    """One step of `advisor.reliability.measures.struck_alone`, for the draws not yet settled."""
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
    for draw in range(draws):
        if changed[draw] <= settled:
            for level in range(levels):
                for state in range(states):
                    after[level, state, draw] = before[level, state, draw]
        else:
            changed[draw] = 0.0
            for level in range(levels):
                for state in range(states):
                    change = abs(after[level, state, draw] - before[level, state, draw])
                    changed[draw] = max(changed[draw], change)
    return 0


def _order(
    entry_of: IntArray,
    degree: IntArray,
    pivots: IntArray,
    begins: IntArray,
    ends: IntArray,
    new: IntArray,
    entries: int,
) -> int:
    """Choose the state that connects fewest others, again and again; 1 for arrays without room.

    ``entry_of`` has the number of the entry from row to column or -1, and gets those of new ones;
    ``degree`` the entries into and out of each state, -1 once it is gone. By step, ``begins`` has
    the first columns of ``ends`` (entry and other state, into the pivot and out of it) and of
    ``new`` (the entry between each two of these, -1 from a state to itself).
    """
    states = pivots.shape[0]
    coming = going = made = 0
    for step in range(states):
        best, fewest = -1, 0
        for state in range(states):
            cost = degree[0, state] * degree[1, state]
            if degree[0, state] >= 0 and (best < 0 or cost < fewest):
                best, fewest = state, cost
        pivots[step], degree[0, best] = best, -1
        begins[0, step], begins[1, step], begins[2, step] = coming, going, made
        for other in range(states):
            if degree[0, other] < 0:
                continue
            if max(coming, going) >= ends.shape[1]:
                return 1
            if entry_of[other, best] >= 0:
                ends[0, coming], ends[1, coming] = entry_of[other, best], other
                degree[1, other] -= 1
                coming += 1
            if entry_of[best, other] >= 0:
                ends[2, going], ends[3, going] = entry_of[best, other], other
                degree[0, other] -= 1
                going += 1
        for came in range(begins[0, step], coming):
            for to in range(begins[1, step], going):
                one, two = ends[1, came], ends[3, to]
                if made >= new.shape[0]:
                    return 1
                new[made] = -1
                if one != two:
                    if entry_of[one, two] < 0:
                        entry_of[one, two] = entries
                        entries += 1
                        degree[1, one] += 1
                        degree[0, two] += 1
                    new[made] = entry_of[one, two]
                made += 1
    begins[0, states], begins[1, states], begins[2, states] = coming, going, made
    begins[3, 0] = entries
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


eliminate: Entry = entry(_eliminate, words=_WORDS)
substitute: Entry = entry(_substitute, words=_WORDS)
order: Entry = entry(_order, words=_WORDS)
gather: Entry = entry(_gather, words=_WORDS)
follow: Entry = entry(_follow, words=_WORDS)


class _Places(NamedTuple):
    """Entries of the eliminated matrix by step: from `begin` of one to that of the next.

    Attributes
    ----------
    begin : array of int, shape (steps + 1,)
    entry, state : array of int, shape (entries,)
        Row of the rate, and the state at its other end.
    """

    begin: IntArray
    entry: IntArray
    state: IntArray


@dataclass(frozen=True, eq=False)
class Elimination:
    """In which order states are eliminated, and which rates that adds to; for any rates.

    Attributes
    ----------
    states, entries : int
        The entries are those of the pairs that the rates connect, and new ones.
    sums : sparse array, shape (entries, rates)
        Sums the rates between each pair of different states.
    loops : sparse array, shape (states, rates)
        Sums the rates that lead from a state to itself.
    source, target : arrays of int, shape (rates,)
    pivots : array of int, shape (states,)
    coming, going : _Places
        Entries from, and to, the states that are left at each step.
    begin_new : array of int, shape (states + 1,)
    new : array of int
        By step, state it comes from and state it goes to: the entry that grows, -1 for none.
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
        codes, number = np.unique(
            source[apart] * states + target[apart], return_inverse=True
        )
        room = 8 * len(codes) + 64
        while (found := _ordered(states, codes, room)) is None:
            room *= 4
        pivots, begins, ends, new = found
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
            eliminate(
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
    full = order(entry_of, degree, pivots, begins, ends, new, len(codes))
    return None if full else (pivots, begins, ends, new)


def _ones(rows: IntArray, columns: IntArray, shape: tuple[int, int]) -> sparse.csr_array:
    return sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


@dataclass(frozen=True, eq=False)
class Eliminated:
    """Solves ``x (D - A) = given`` and ``(D - A) x = given`` in each draw.

    Attributes
    ----------
    order : Elimination
    entries : array, shape (entries, draws)
    total : array, shape (states, draws)
        What is left of D where each state is eliminated.
    """

    order: Elimination
    entries: Vector
    total: Vector

    @cached_property
    def singular(self) -> NDArray[np.bool_]:
        """Draws in which no non-negative solution exists, shape (draws,)."""
        return ~(self.total > 0.0).all(axis=0)

    def forward(self, given: Vector) -> Vector:
        """What is passed on until it leaves: ``x (D - A) = given``, shape (states, draws)."""
        return self._solved(given, self.order.coming, self.order.going)

    def backward(self, gain: Vector) -> Vector:
        """What is collected until the end: ``(D - A) x = gain``, shape (states, draws)."""
        return self._solved(gain, self.order.going, self.order.coming)

    def _solved(self, given: Vector, came: _Places, to: _Places) -> Vector:
        solution, share = np.array(given, dtype=np.float64), np.empty((1, given.shape[1]))
        substitute(self.order.pivots, *came, *to, self.entries, self.total, solution, share)
        return solution


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
    inner : array of int
        Pairs of states other than the healthy one.
    order : Elimination
        Of these states.
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
    """Cycles from the healthy state until return or absorption, under the rates of many draws.

    Parameters
    ----------
    connected : Connected
    rates : array, shape (pairs, draws)
    absorbed : array, shape (states, draws)
        Rate out of each state to absorption.
    """

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
_SETTLED, _STEPS = 1e-13, 60


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
    found: Vector = decay - lead * (1.0 - decay)
    return found
