"""All that can happen to a replica set, found as it is asked for by calling the protocol's rules.

A state is what the machines suffer (:mod:`advisor.reliability.faults`) and what the partition has
become (:mod:`advisor.reliability.reduction`). A graph holds names of rates, not rates: it grows
once for a setting and serves every card and every draw of its uncertainty. How its states are
numbered depends on who asked first; no number that is computed depends on that.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.reliability import faults
from advisor.reliability import reduction as red
from advisor.reliability.automaton import automaton
from advisor.reliability.reduction import Setup
from advisor.reliability.symmetry import Symmetry

IntArray = NDArray[np.int64]

# What a transition does, as bits.
LOSS, TAIL, TOTAL, FAILOVER, HANDOVER = 1, 2, 4, 8, 16
# Columns of the moves out of a state; see `Graph.moves`.
TARGET, RATE, FLAGS, GAPS, TIMES = range(5)
# What a replica may wait for: the end of its broker's spell, by the spell's number, or its copy.
COPYING = len(faults.SPELLS) + 1
WAITS = COPYING + 1

# next partition state, flags, number of the gap map
_Step = tuple[int, int, int]
_Key = tuple[faults.Machines, int]


class Graph:
    """Numbered states of one replica set and the moves between them; 0 is the healthy one.

    Parameters
    ----------
    setup : Setup
    setting : Setting

    Attributes
    ----------
    keys : list of (Machines, int)
        What each state is: the machines, and the partition's number in ``table``.
    rate_names : list of str
    gap_maps : list of tuple of int
        Old gap to new gap, or LOST or INTO_BASE.
    waits : list of tuple of int
        Per state: how many replicas wait for each kind of end.
    looks : list of int
        Per state: the same number if the partitions are alike, whatever their racks.
    """

    def __init__(self, setup: Setup, setting: faults.Setting) -> None:
        self.setting = setting
        self.table = automaton(setup, len(setting.racks))
        self.keys: list[_Key] = []
        self.rate_names: list[str] = []
        self.gap_maps: list[tuple[int, ...]] = []
        self.waits: list[tuple[int, ...]] = []
        self.looks: list[int] = []
        self._look_numbers: dict[tuple[tuple[int, ...], ...], int] = {}
        self._moves: dict[int, IntArray] = {}
        self._alike = Symmetry(self.table, setting)
        self._numbers: dict[_Key, int] = {}
        self._name_numbers: dict[str, int] = {}
        self._gap_numbers: dict[tuple[int, ...], int] = {}
        self._changes: dict[faults.Machines, tuple[faults.Change, ...]] = {}
        self._steps: dict[tuple[int, faults.Events], _Step] = {}
        self._number(faults.all_well(setting), 0)

    def moves(self, state: int) -> IntArray:
        """Everything that can happen next: rows of target, rate, flags, gap map and multiplicity.

        Moves that change nothing are left out, unless they lose something.
        """
        known = self._moves.get(state)
        if known is None:
            known = self._moves[state] = self._found(state)
        return known

    def _found(self, state: int) -> IntArray:
        machines, partition = self.keys[state]
        changes = self._changes.get(machines)
        if changes is None:
            changes = self._changes[machines] = tuple(faults.changes(machines, self.setting))
        times: dict[tuple[int, int, int, int], int] = {}
        moves = [(change.rate, change.machines, change.events) for change in changes]
        moves += [("copy", machines, ((red.COPIED, (s,)),)) for s in self.table.copying[partition]]
        for name, following, events in moves:
            step = self._steps.get((partition, events))
            if step is None:
                step = self._steps[partition, events] = self._followed(partition, events)
            target = self._number(following, step[0])
            if target == state and not step[1] & (LOSS | TAIL | TOTAL):
                continue
            rate = self._name_numbers.get(name)
            if rate is None:
                rate = self._name_numbers[name] = len(self.rate_names)
                self.rate_names.append(name)
            row = (target, rate, step[1], step[2])
            times[row] = times.get(row, 0) + 1
        rows = [(*row, count) for row, count in times.items()]
        return np.array(rows, dtype=np.int64).reshape(len(rows), 5)

    def _followed(self, partition: int, events: faults.Events) -> _Step:
        """Let the partition live through a change's events, one after the other."""
        table = self.table
        losses, total, failed, moved = 0, False, False, False
        gaps = tuple(range(table.gaps[partition]))
        was_readable = table.readable[partition]
        for event, slots in events:
            if not slots:
                continue
            partition, outcome = table.step(partition, event, slots)
            losses |= outcome.losses
            total |= outcome.total
            failed |= outcome.leader_failed
            moved |= outcome.leader_moved
            gaps = tuple(outcome.gap_map[gap] if gap >= 0 else gap for gap in gaps)
        new_leader = was_readable and table.readable[partition]
        certain = bool(losses & ~red.TAIL)
        flags = (
            certain * LOSS
            | (not certain and bool(losses & red.TAIL)) * TAIL
            | total * TOTAL
            | (failed and new_leader) * FAILOVER
            | (moved and not failed and new_leader) * HANDOVER
        )
        width = max(table.replicas - 1, 1)
        gaps += (red.INTO_BASE,) * (width - len(gaps))
        number = self._gap_numbers.get(gaps)
        if number is None:
            number = self._gap_numbers[gaps] = len(self.gap_maps)
            self.gap_maps.append(gaps)
        return partition, flags, number

    def _number(self, machines: faults.Machines, partition: int) -> int:
        """The number of a state, given to it when it is first met."""
        key = (machines, partition)
        number = self._numbers.get(key)
        if number is not None:
            return number
        first = self._alike.representative(machines, partition)
        number = self._numbers.get(first)
        if number is None:
            number = self._numbers[first] = len(self.keys)
            self.keys.append(first)
            self._describe(first)
        self._numbers[key] = number
        return number

    def _describe(self, key: _Key) -> None:
        machines, partition = key
        state = self.table.states[partition]
        waits = [0] * WAITS
        for own in machines.own:
            waits[own] += 1
        waits[faults.WELL] = 0
        waits[COPYING] = state.condition.count(red.COPYING)
        self.waits.append(tuple(waits))
        known = self._alike.known_of(state)
        self.looks.append(self._look_numbers.setdefault(known, len(self._look_numbers)))


@lru_cache(maxsize=64)
def graph(setup: Setup, setting: faults.Setting) -> Graph:
    """The one graph of a setup and setting in this process."""
    return Graph(setup, setting)
