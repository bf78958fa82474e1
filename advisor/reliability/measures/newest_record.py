"""Probability that the log gaps which a transition loses hold a retained record.

Of each set of gaps that is lost, or becomes part of one, the newest record is followed through the
CTMC: a newer one replaces it where gap 0 is in the set and grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from advisor.reliability.measures.records_lost import LogGaps, Within
from advisor.reliability.solver.generator import IntArray, Vector, sums


class GapSets(NamedTuple):
    """Sets of gaps, as bits, from which a lost set comes; they do not depend on any rate.

    number (states, sets): number of a state and set; -1 if it need not be followed.
    state, members (numbers,).
    move, after, row (steps,): a transition into a state, the set there, and their number;
        ascending.
    column (steps,): number of the state and set from which it comes; -1 if all of its gaps are new.
    """

    number: IntArray
    state: IntArray
    members: IntArray
    move: IntArray
    after: IntArray
    row: IntArray
    column: IntArray


def gap_sets(
    source: IntArray, target: IntArray, gap_map: IntArray, count: IntArray, lost: IntArray
) -> GapSets:
    """Follow the lost sets of gaps, as bits, back to where they begin."""
    moves = np.flatnonzero(count[target] > 0)
    source_of, target_of = source[moves], target[moves]
    # By set in the target: the set in the source that becomes it.
    before = np.zeros((1 << gap_map.shape[1], len(moves)), dtype=np.int64)
    for gap in range(gap_map.shape[1]):
        onto = gap_map[moves, gap]
        onto = np.where(gap < count[source_of], onto, -1)
        for members in range(1, len(before)):
            before[members] |= ((onto >= 0) & (members >> np.maximum(onto, 0) & 1 > 0)) << gap
    needed = np.zeros((len(before), len(count)), dtype=np.bool_)
    needed[lost, source] = True
    needed[0] = False
    waiting = set(range(1, len(before)))
    while waiting:
        members = waiting.pop()
        into = np.flatnonzero(needed[members][target_of])
        sets, states = before[members, into], source_of[into]
        new = ~needed[sets, states] & (sets > 0)
        needed[sets[new], states[new]] = True
        waiting.update(np.unique(sets[new]).tolist())
    members_of, state = np.nonzero(needed)
    number = np.full(needed.shape, -1)
    number[needed] = np.arange(len(state))
    steps = [
        (moves[into], np.full(len(into), members), before[members, into])
        for members in range(1, len(before))
        for into in (np.flatnonzero(needed[members][target_of]),)
    ]
    move, after, came_from = map(np.concatenate, zip(*steps, strict=True))
    row = number[after, target[move]]
    order = np.argsort(row, kind="stable")
    column = number[came_from, source[move]]
    return GapSets(
        number.T, state, members_of, move[order], after[order], row[order], column[order]
    )


def some_record(
    gaps: LogGaps,
    sets: GapSets,
    pi: Vector,
    records_per_hour: float,
    unflushed_hours: Vector,
    within: Within,
) -> Vector:
    """Probability of a state and of a retained record in a set of its gaps: (numbers, draws).

    records_per_hour: arrivals while gap 0 grows.
    unflushed_hours (draws,): hours of writes with which a gap begins after a power failure.
    """
    new_gap, new_hours = gaps.new_gap[sets.move], gaps.new_gap_hours[sets.move]
    opens = (new_hours > 0.0).any(axis=1) & (new_gap >= 0)
    opens &= sets.after >> np.maximum(new_gap, 0) & 1 > 0
    # Probability of a record in a new gap; per hour of writes with which it begins.
    has_record = -np.expm1(-records_per_hour * unflushed_hours)
    new_records = new_hours[opens] * (has_record / np.maximum(unflushed_hours, 1e-300))
    ages = gaps.growing[sets.state]
    grows = ages & (sets.members & 1 > 0)
    source = np.where(grows[:, None], records_per_hour * pi[sets.state], 0.0)
    source += sums(sets.row[opens], new_records, len(sets.state))
    followed = np.flatnonzero(sets.column >= 0)
    # A record in the new gap is newer than those that were there.
    rate = gaps.rate[sets.move[followed]]
    rate[opens[followed]] *= 1.0 - has_record
    out = gaps.out[sets.state] + (records_per_hour * grows)[:, None]
    return within("sets", (sets.column[followed], sets.row[followed]), rate, out, ages, source)
