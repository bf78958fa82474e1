"""State space of one replica set, explored on demand by the protocol's rules.

A state is the condition of the brokers (:mod:`advisor.reliability.failures.fault_processes`) and of
the partition (:mod:`advisor.reliability.partition.reduced_state`). Transitions carry names of
rates, not rates: the space grows once for a setting and serves every card and every draw of its
uncertainty. States are numbered in the order of exploration; no result depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import COPY, DECISION
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.effects import Effect
from advisor.reliability.partition.election_risk import (
    COLUMNS,
    election_risk,
    members_left_behind,
    pending_copies_bound,
)
from advisor.reliability.partition.transition_table import COPIES, automaton
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.flush_window import EarlyCuts, Outage
from advisor.reliability.statespace.lumping import Symmetry
from advisor.reliability.statespace.recovery_order import NO_LOSS, Outages
from advisor.reliability.statespace.state_index import Pairs, spread
from advisor.reliability.statespace.successors import (
    Copies,
    Decisions,
    PartitionTransitions,
    changes,
)

__all__ = ["Graph", "IntArray", "graph", "shared_constants"]

# Columns of the moves out of a state; see `Graph.moves`.
TARGET, RATE, EFFECTS, GAPS, WAYS, TIMES = range(6)
# A transition with one of these effects counts even if it leads back to its state.
_KEPT_IN_PLACE = int(Effect.LOSS | Effect.TAIL | Effect.TOTAL)


class Graph:
    """Numbered states of one replica set and their transitions; state 0 is healthy.

    Attributes
    ----------
    broker_states, partition : arrays of int, shape (states,)
        Numbers of the brokers' conditions and of the partition's state in ``table``.
    rate_names : list of str
    gap_maps : list of tuple of int
        Old gap to new gap, or GAP_LOST or GAP_CLOSED.
    """

    def __init__(self, setup: ChainConstants, setting: fault_processes.Setting) -> None:
        self.setting = setting
        self.table = automaton(setup, len(setting.racks))
        self._changes = changes(setting, setup.copying, setup.operator)
        self._symmetry = Symmetry(self.table, setting)
        self._passages = PartitionTransitions(
            self.table, self._changes.told, self._symmetry.exchanging
        )
        self._copies = Copies(self.table, self._changes.told)
        self._decisions = Decisions(self.table, self._changes.told)
        self._cuts = EarlyCuts(
            self.table, self._changes.told, self._passages, self._symmetry, setting
        )
        self._numbers = Pairs()
        self.rate_names = self._changes.rate_names
        self.gap_maps = self._passages.gap_maps
        nothing = np.zeros(0, dtype=np.int64)
        self.broker_states = self.partition = self._first = self._count = nothing
        self._election_risks = np.zeros((0, len(COLUMNS)))
        self._rows = np.zeros((0, 6), dtype=np.int64)
        well = np.array([fault_processes.initial_state(setting).own])
        self._numbered(well, np.array([setting.slot_racks]), np.zeros(1, dtype=np.int64))

    def __len__(self) -> int:
        """Number of states found so far."""
        return len(self.partition)

    def moves(self, states: IntArray) -> tuple[IntArray, IntArray]:
        """Transitions out of states.

        Transitions that change nothing are omitted, unless they lose something.

        Parameters
        ----------
        states : array of int, shape (asked,)

        Returns
        -------
        owner : array of int, shape (moves,)
            Index into ``states``.
        rows : array of int, shape (moves, 6)
            Target, rate, effects, gap map, one of how many ways it may come, and multiplicity.
        """
        unknown = states[self._count[states] < 0]
        if len(unknown):
            self._explore(unknown)
        owner, row = spread(self._first[states], self._count[states])
        # Whole rows: twice to four times as fast as by an index array.
        return owner, self._rows.take(row, axis=0)

    def waits(self, states: IntArray) -> IntArray:
        """How many replicas wait for each kind of end, shape (states, waits)."""
        copying = self.table.facts(self.partition[states])[COPIES]
        brokers = self._changes.waits.take(self.broker_states[states], axis=0)
        return np.concatenate([brokers, copying[:, None]], axis=1)

    def brokers(self, states: IntArray) -> tuple[IntArray, IntArray]:
        """Condition and rack of each slot's broker, both of shape (states, replicas)."""
        broker_states = self.broker_states[states]
        known = self._changes
        return known.own.take(broker_states, axis=0), known.racks.take(broker_states, axis=0)

    def election_risks(self, states: IntArray) -> NDArray[np.float64]:
        """Columns of :mod:`advisor.reliability.partition.election_risk`, shape (states, 5)."""
        partition = self.partition[states]
        unknown = len(self.table.states) - len(self._election_risks)
        more = np.full((unknown, len(COLUMNS)), -1.0)
        self._election_risks = np.concatenate([self._election_risks, more])
        for number in np.unique(partition[self._election_risks[partition, 0] < 0]).tolist():
            state = self.table.states[number]
            self._election_risks[number] = (
                election_risk(state),
                pending_copies_bound(state),
                *members_left_behind(state),
            )
        return self._election_risks.take(partition, axis=0)

    def early_cuts(self, states: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Losses by power failures within the flush window.

        Parameters
        ----------
        states : array of int, shape (asked,)
            States in which nothing is written.

        Returns
        -------
        owner, rate, end : arrays of int, shape (cuts,)
            Index into ``states``, number of the rate's name, and CERTAIN_LOSS or an outage.
        """
        broker_states, known = self.broker_states[states], self._changes
        known.ask(broker_states)
        owner, row = spread(known.first[broker_states], known.count[broker_states])
        early = self._cuts.early(known.events[row])
        about = np.flatnonzero(early >= 0)
        owner, row = owner[about], row[about]
        end = self._cuts.ends(
            self.partition[states[owner]],
            known.events[row],
            early[about],
            known.after[row],
            known.racks[broker_states[owner]],
        )
        loses = end != NO_LOSS
        return owner[loses], known.rate[row[loses]], end[loses]

    @property
    def outages(self) -> Outages[Outage]:
        """Outages in which the order of recoveries decides what an early power failure loses."""
        return self._cuts.outages

    def _explore(self, states: IntArray) -> None:
        """Find the transitions out of many states at once."""
        broker_states, partition = self.broker_states[states], self.partition[states]
        known = self._changes
        known.ask(broker_states)
        source, row = spread(known.first[broker_states], known.count[broker_states])
        copier, done = self._copies.of(partition)
        waits, decided = self._decisions.of(partition)
        events = np.concatenate([known.events[row], done, decided])
        rate, unchanged = known.rate[row], np.concatenate([copier, waits])
        for name, which in ((COPY, copier), (DECISION, waits)):
            if len(which):
                rate = np.concatenate([rate, np.full(len(which), known.rate_number(name))])
        source = np.concatenate([source, unchanged])
        same = known.own.take(broker_states[unchanged], axis=0)
        own = np.concatenate([known.after.take(row, axis=0), same])
        passage = self._passages.of(partition[source], events)
        ways = self._passages.ways[passage]
        if (ways > 1).any():
            owner, passage = spread(passage, ways)
            source, rate, own = source[owner], rate[owner], own.take(owner, axis=0)
        racks = known.racks.take(broker_states[source], axis=0)
        target = self._numbered(own, racks, self._passages.following[passage])
        effects = self._passages.effects[passage]
        kept = (target != states[source]) | (effects & _KEPT_IN_PLACE > 0)
        gaps, ways = self._passages.gaps[passage], self._passages.ways[passage]
        columns = np.stack([source, target, rate, effects, gaps, ways], axis=1)
        self._add_moves(states, columns.compress(kept, axis=0))

    def _add_moves(self, states: IntArray, columns: IntArray) -> None:
        """Merge equal transitions of a state and keep them."""
        code = np.zeros(len(columns), dtype=np.int64)
        for column in columns.T:
            code = code * (int(column.max(initial=0)) + 1) + column
        _, first, times = np.unique(code, return_index=True, return_counts=True)
        rows = np.concatenate([columns.take(first, axis=0)[:, 1:], times[:, None]], axis=1)
        count = np.bincount(columns[first, 0], minlength=len(states))
        self._first[states] = len(self._rows) + np.cumsum(count) - count
        self._count[states] = count
        self._rows = np.concatenate([self._rows, rows])

    def _numbered(self, own: IntArray, racks: IntArray, partition: IntArray) -> IntArray:
        """The numbers of states, assigned at first use."""
        code, partition = self._symmetry.representatives(own, racks, partition)
        broker_states, new = self._changes.numbers.of(code)
        if len(new):
            self._changes.add(*self._symmetry.broker_states(code[new]))
        numbers, new = self._numbers.of(broker_states, partition)
        unknown = np.full(len(new), -1)
        self.broker_states = np.concatenate([self.broker_states, broker_states[new]])
        self.partition = np.concatenate([self.partition, partition[new]])
        self._first = np.concatenate([self._first, unknown])
        self._count = np.concatenate([self._count, unknown])
        return numbers


def shared_constants(setup: ChainConstants, setting: fault_processes.Setting) -> ChainConstants:
    """The constants whose state space serves these as well.

    Where every ISR is large enough, acks=all is acknowledged as acks=1 is, and differs only in that
    no tail is lost: transitions with the effect TAIL lose nothing. Without a controller the ISR
    cannot shrink, and acks=all waits for members that are gone.
    """
    if setting.quorum_can_fail:
        return setup
    never_refused = setup.acks != "all" or setup.policy.min_isr <= 1
    return replace(setup, acks=1) if never_refused else setup


@lru_cache(maxsize=64)
def graph(setup: ChainConstants, setting: fault_processes.Setting) -> Graph:
    """The state space of these constants and setting, one per process."""
    return Graph(setup, setting)
