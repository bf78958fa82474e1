"""The loops over a chain's states for many draws at once, compiled: a column is one draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.solver.jit import Entry, called, entry

IntArray = NDArray[np.int64]
Vector = NDArray[np.float64]

_WORDS = "Compiling what compares draws, once: this takes some seconds"


@called
def _leave(
    state: int,
    entries_out: IntArray,
    first: int,
    last: int,
    rates: Vector,
    leak: Vector,
    total: Vector,
) -> None:
    """The rate at which a state is left: to the states that remain, and to the outside."""
    draws = rates.shape[1]
    for draw in range(draws):
        total[state, draw] = leak[state, draw]
    for out in range(first, last):
        for draw in range(draws):
            total[state, draw] += rates[entries_out[out], draw]


@called
def _add(to: Vector, row: int, share: Vector, given: Vector, other: int, sign: float) -> None:
    """Add a share of one row to a row of another array, in every draw."""
    for draw in range(share.shape[1]):
        to[row, draw] += sign * share[0, draw] * given[other, draw]


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
            _leave(state, entries_out, begin_out[step], begin_out[step + 1], rates, leak, total)
        at = begin_new[step]
        for came in range(begin_in[step], begin_in[step + 1]):
            row, before = entries_in[came], states_in[came]
            for draw in range(draws):
                share[0, draw] = rates[row, draw] / total[state, draw]
            if not subtracts:
                _add(leak, before, share, leak, state, 1.0)
            for out in range(begin_out[step], begin_out[step + 1]):
                place = new[at]
                at += 1
                if place >= 0:
                    _add(rates, place, share, rates, entries_out[out], 1.0)
                elif subtracts:
                    _add(total, before, share, rates, entries_out[out], -1.0)
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


@called
def _settle(before: Vector, after: Vector, changed: Vector, settled: float) -> None:
    """Note the largest change of each draw; one that was settled before stays as it was."""
    levels, states, draws = before.shape
    for draw in range(draws):
        # What was settled is negative from now on.
        changed[draw] = -1.0 if changed[draw] <= settled else 0.0
    for level in range(levels):
        for state in range(states):
            for draw in range(draws):
                if changed[draw] < 0.0:
                    after[level, state, draw] = before[level, state, draw]
                else:
                    change = abs(after[level, state, draw] - before[level, state, draw])
                    changed[draw] = max(changed[draw], change)


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
    _settle(before, after, changed, settled)
    return 0


@called
def _least_connected(degree: IntArray) -> int:
    best, fewest = -1, 0
    for state in range(degree.shape[1]):
        cost = degree[0, state] * degree[1, state]
        if degree[0, state] >= 0 and (best < 0 or cost < fewest):
            best, fewest = state, cost
    return best


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
        best = _least_connected(degree)
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
    sums: Vector,
) -> int:
    """Add weight x amount of a state x rate of a name, row by row, at each place."""
    draws = sums.shape[1]
    for row in range(place.shape[0]):
        for draw in range(draws):
            sums[place[row], draw] += (
                weight[row] * amounts[state[row], draw] * rates[name[row], draw]
            )
    return 0


eliminate: Entry = entry(_eliminate, words=_WORDS)
substitute: Entry = entry(_substitute, words=_WORDS)
order: Entry = entry(_order, words=_WORDS)
gather: Entry = entry(_gather, words=_WORDS)
follow: Entry = entry(_follow, words=_WORDS)
