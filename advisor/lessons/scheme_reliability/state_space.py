"""State space of one replica set under another scheme: every state, lumped, as arrays.

Brokers and racks fail and recover as in Kafka's chain
(:mod:`advisor.reliability.failures.fault_processes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.lessons.scheme_reliability.quorum_rules import (
    Outage,
    Quorums,
    Step,
    View,
    early_end,
    follow,
    is_running,
    settle,
)
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import COPY, HANGING, WELL, BrokerEvent
from advisor.reliability.partition.log_levels import EMPTY, GAP_CLOSED, Levels, gaps_between
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.statespace.flush_window import NO_LOSS, FlushWindowLosses, Outages
from advisor.reliability.statespace.state_index import Pairs, met_in_order, spread

_STOPPED, _OUT_OF_SYNC, _WELL = range(3)


class BrokerTransitions:
    """Failures and repairs of the brokers, found once for each combination of conditions.

    own: conditions of the slots' brokers, numbered as they are met.
    roles: all that a scheme sees of them: which brokers run, and which of these are in sync.
    rate, events, after, hangs (rows,): numbers of the rate's name, of the events, and of the
        conditions afterwards; the slot of a broker that lags or limps, -1 for any other failure.
    power (rows,): whether brokers lose power.
    """

    def __init__(self, environment: fault_processes.FaultEnvironment) -> None:
        self._environment = environment
        self.own: list[fault_processes.Own] = []
        self.roles: list[int] = []
        self.rate_names: list[str] = []
        self.event_sequences: list[fault_processes.Events] = []
        self._numbers: dict[fault_processes.Own, int] = {}
        self._names: dict[str, int] = {}
        self._events: dict[fault_processes.Events, int] = {}
        self._hangs: list[int] = []
        self._power: list[bool] = []
        self._first = self._count = np.zeros(0, dtype=np.int64)
        self.rate = self.events = self.after = self._first

    def number(self, own: fault_processes.Own) -> int:
        """The number of some conditions, given at first use."""
        index = self._numbers.get(own)
        if index is None:
            index = self._numbers[own] = len(self.own)
            self.own.append(own)
            self.roles.append(_roles(own))
        return index

    def rate_number(self, name: str) -> int:
        """The number of a rate's name."""
        index = self._names.setdefault(name, len(self.rate_names))
        if index == len(self.rate_names):
            self.rate_names.append(name)
        return index

    @property
    def hangs(self) -> IntArray:
        """See the class."""
        return np.array(self._hangs, dtype=np.int64)[self.events]

    @property
    def power(self) -> IntArray:
        """See the class."""
        return np.array(self._power, dtype=np.int64)[self.events]

    def rows(self, own: IntArray) -> tuple[IntArray, IntArray]:
        """The rows of some conditions, by their numbers.

        Returns owner, row (rows,): index into ``own``.
        """
        more = np.full(len(self.own) - len(self._first), -1)
        self._first, self._count = (np.concatenate([a, more]) for a in (self._first, self._count))
        asked = np.unique(own[self._count[own] < 0]).tolist()
        rows, ends = [], [0]
        for number in asked:
            rows += self._found(number)
            ends.append(len(rows))
        self._first[asked], self._count[asked] = np.add(ends[:-1], len(self.rate)), np.diff(ends)
        if rows:
            rate, events, after = np.array(rows, dtype=np.int64).T
            self.rate = np.concatenate([self.rate, rate])
            self.events = np.concatenate([self.events, events])
            self.after = np.concatenate([self.after, after])
        return spread(self._first[own], self._count[own])

    def _found(self, number: int) -> list[tuple[int, int, int]]:
        brokers = fault_processes.BrokerStates(self.own[number], self._environment.racks)
        return [
            (self.rate_number(rate), self._events_number(events), self.number(own))
            for rate, own, events in fault_processes.changes(brokers, self._environment)
        ]

    def _events_number(self, events: fault_processes.Events) -> int:
        index = self._events.setdefault(events, len(self.event_sequences))
        if index == len(self.event_sequences):
            self.event_sequences.append(events)
            # The second stage of an outage begins, which changes nothing for the partition.
            event, slots = events[0] if events else (None, ())
            self._hangs.append(slots[0] if event in HANGING else -1)
            self._power.append(any(event == BrokerEvent.POWER for event, _ in events))
        return index


def _roles(own: fault_processes.Own) -> int:
    """One number for what a scheme sees of the brokers."""
    code = 0
    for condition in own:
        running = _OUT_OF_SYNC if is_running(condition) else _STOPPED
        code = 3 * code + (_WELL if condition == WELL else running)
    return code


@lru_cache(maxsize=16)
def broker_transitions(environment: fault_processes.FaultEnvironment) -> BrokerTransitions:
    """The one table of a fault environment."""
    return BrokerTransitions(environment)


Key = tuple[tuple[int, ...], Levels]
"""Condition of each slot's broker, and completeness of its log."""


@dataclass(frozen=True, eq=False)
class SchemeChain:
    """A CTMC without numeric rates; equal only to itself.

    keys: the states; 0 is healthy.
    writable, readable (states,).
    source, target, rate (transitions,): state, state, index into ``rate_names``.
    weight (transitions,): share of the rate.
    losses, failed, moved (transitions,): probability that acknowledged records other than a tail
        are lost, that the leader failed, and that it handed over.
    total (transitions,): no log is left.
    gaps (states,): number of gaps between logs; see
        :mod:`advisor.reliability.partition.log_levels`.
    gap_map (transitions, most gaps): old gap to new gap, GAP_LOST or GAP_CLOSED.
    unflushed (transitions,): the new gap that begins with records lost from page caches, GAP_LOST
        or GAP_CLOSED.
    writes, reads (transitions,): whether the partition is writable, readable after the transition.
    flush_window: losses by power failures soon after writes have stopped, by the states after the
        stop.
    """

    keys: tuple[Key, ...]
    writable: NDArray[np.bool_]
    readable: NDArray[np.bool_]
    source: IntArray
    target: IntArray
    rate: IntArray
    weight: Vector
    losses: Vector
    failed: Vector
    moved: Vector
    total: NDArray[np.bool_]
    gaps: IntArray
    gap_map: IntArray
    unflushed: IntArray
    writes: NDArray[np.bool_]
    reads: NDArray[np.bool_]
    rate_names: tuple[str, ...]
    flush_window: FlushWindowLosses

    @cached_property
    def own(self) -> IntArray:
        """Condition of each slot's broker, shape (states, replicas)."""
        return np.array([own for own, _ in self.keys])

    def part(self, kept: IntArray) -> SchemeChain:
        """The chain of some states, which starts anew where it would leave them.

        kept: states, ascending; the first is 0.
        """
        place = np.full(len(self.keys), -1)
        place[kept] = np.arange(len(kept))
        moves = np.flatnonzero(place[self.source] >= 0)
        losses = np.flatnonzero(place[self.flush_window.state] >= 0)
        of_moves = {
            name: getattr(self, name)[moves]
            for name in (
                *("rate", "weight", "losses", "failed", "moved", "total"),
                *("gap_map", "unflushed", "writes", "reads"),
            )
        }
        return replace(
            self,
            **of_moves,
            keys=tuple(self.keys[state] for state in kept.tolist()),
            writable=self.writable[kept],
            readable=self.readable[kept],
            gaps=self.gaps[kept],
            source=place[self.source[moves]],
            target=np.maximum(place[self.target[moves]], 0),
            flush_window=self.flush_window._replace(
                state=place[self.flush_window.state[losses]],
                rate=self.flush_window.rate[losses],
                end=self.flush_window.end[losses],
            ),
        )


@lru_cache(maxsize=64)
def explored(scheme: Quorums, environment: fault_processes.FaultEnvironment) -> SchemeChain:
    """Every state that a healthy partition can reach.

    environment: racks of the replicas and the failures that can happen there.
    """
    space = _Exploration(scheme, environment)
    found, asked = [], 0
    while asked < len(space.keys):
        fresh = np.arange(asked, len(space.keys))
        asked = len(space.keys)
        found.append(space.moves(fresh))
    return space.chain(_Moves(*map(np.concatenate, zip(*found, strict=True))))


class _Moves(NamedTuple):
    """Transitions, by the order of their sources; arrays of shape (transitions,).

    source, target, rate, step: state, state, numbers of the rate's name and of the step.
    """

    source: IntArray
    target: IntArray
    rate: IntArray
    step: IntArray
    weight: Vector


class _Exploration:
    """Numbered states of one replica set; each rule is evaluated once, and many states together."""

    def __init__(self, scheme: Quorums, environment: fault_processes.FaultEnvironment) -> None:
        self._scheme, self._environment = scheme, environment
        self._brokers = broker_transitions(environment)
        self.keys: list[Key] = []
        self._numbers: dict[Key, int] = {}
        self._own: list[int] = []
        self._views: list[View] = []
        self._view: list[int] = []
        self._view_numbers: dict[View, int] = {}
        self._levels: dict[Levels, int] = {}
        self._steps: list[Step] = []
        self._step_levels: list[int] = []
        self._step_numbers: dict[tuple[int, int, int], int] = {}
        self._asked_steps, self._asked_keys = Pairs(), Pairs()
        self._step_of = self._number_of = np.zeros(0, dtype=np.int64)
        self._followed: dict[tuple[View, fault_processes.Events, int, bool], Step] = {}
        well = fault_processes.initial_state(environment).own
        first = settle(scheme, well, (0,) * len(well))
        self._add((well, first.levels), first)

    def _add(self, key: Key, view: View) -> int:
        number = self._numbers[key] = len(self.keys)
        self.keys.append(key)
        self._own.append(self._brokers.number(key[0]))
        known = self._view_numbers.setdefault(view, len(self._views))
        if known == len(self._views):
            self._views.append(view)
        self._view.append(known)
        return number

    def moves(self, states: IntArray) -> _Moves:
        """Transitions out of states; what they lead to is numbered in their order."""
        brokers, view = self._brokers, np.array(self._view, dtype=np.int64)
        owner, row = brokers.rows(np.array(self._own, dtype=np.int64)[states])
        weight = self._weights(view[states][owner], brokers.hangs[row])
        kept = np.flatnonzero(weight)
        owner, row, weight = owner[kept], row[kept], weight[kept]
        rate, after = brokers.rate[row], brokers.after[row]
        step = self._steps_after(view[states][owner], brokers.events[row], after)
        copier, copied = self._copies(states)
        source = np.concatenate([states[owner], states[copier]])
        if len(copier):
            same = np.array(self._own, dtype=np.int64)[states[copier]]
            named = np.full(len(copier), brokers.rate_number(COPY))
            rate, after = np.concatenate([rate, named]), np.concatenate([after, same])
            step = np.concatenate([step, copied])
            weight = np.concatenate([weight, np.ones(len(copier))])
        order = np.argsort(source, kind="stable")
        rate, step, after = rate[order], step[order], after[order]
        return _Moves(source[order], self._targets(after, step), rate, step, weight[order])

    def _weights(self, view: IntArray, hangs: IntArray) -> Vector:
        """A leader that lags or limps counts as well, and each member is equally likely to lead."""
        weight = np.ones(len(view))
        about = np.flatnonzero(hangs >= 0)
        for place, number, slot in zip(
            about.tolist(), view[about].tolist(), hangs[about].tolist(), strict=True
        ):
            members = self._views[number].members
            if slot in members:
                weight[place] = (len(members) - 1) / len(members)
        return weight

    def _steps_after(self, view: IntArray, events: IntArray, after: IntArray) -> IntArray:
        """Numbers of the steps by which some events, and the brokers after them, are followed."""
        brokers = self._brokers
        kinds = 3**self._environment.replicas
        roles = np.array(brokers.roles, dtype=np.int64)[after]
        asked, new = self._asked_steps.of(view, events * kinds + roles)
        if len(new):
            steps = [
                self._step_number(
                    (one, seq, role), self._follow(self._views[one], self._change(seq, own))
                )
                for one, seq, own, role in zip(
                    view[new].tolist(),
                    events[new].tolist(),
                    after[new].tolist(),
                    roles[new].tolist(),
                    strict=True,
                )
            ]
            self._step_of = np.concatenate([self._step_of, np.array(steps, dtype=np.int64)])
        return self._step_of[asked]

    def _change(self, seq: int, own: int) -> fault_processes.Change:
        """The transition with this sequence of events and these conditions after it."""
        events = self._brokers.event_sequences[seq]
        return fault_processes.Change("", self._brokers.own[own], events)

    def _follow(self, before: View, change: fault_processes.Change, early: bool = False) -> Step:
        """The rules, asked once for all that they see."""
        key = before, change.events, self._brokers.roles[self._brokers.number(change.own)], early
        followed = self._followed.get(key)
        if followed is None:
            followed = self._followed[key] = follow(self._scheme, before, change, early)
        return followed

    def _step_number(self, key: tuple[int, int, int], step: Step) -> int:
        number = self._step_numbers.setdefault(key, len(self._steps))
        if number == len(self._steps):
            levels = step.view.levels
            self._steps.append(step)
            self._step_levels.append(self._levels.setdefault(levels, len(self._levels)))
        return number

    def _copies(self, states: IntArray) -> tuple[IntArray, IntArray]:
        """Index of the state and number of the step, for every copy that can complete."""
        copies = [
            (place, step)
            for place, number in enumerate(states.tolist())
            if EMPTY in self._views[self._view[number]].levels
            for step in self._copied(number)
        ]
        copier, step = np.array(copies, dtype=np.int64).reshape(-1, 2).T
        return copier, step

    def _copied(self, state: int) -> Iterator[int]:
        own, levels = self.keys[state][0], self._views[self._view[state]].levels
        longest = min(levels)
        sources = [s for s, c in enumerate(own) if is_running(c) and levels[s] == longest]
        for slot, level in enumerate(levels):
            if level == EMPTY and is_running(own[slot]) and sources and longest != EMPTY:
                held = tuple(longest if s == slot else value for s, value in enumerate(levels))
                view = settle(self._scheme, own, held)
                key = self._view[state], -1 - slot, self._brokers.roles[self._own[state]]
                yield self._step_number(key, Step(view, gap_map=view.gap_map))

    def _targets(self, after: IntArray, step: IntArray) -> IntArray:
        """The states of brokers and logs, numbered at first use."""
        levels, listed = np.array(self._step_levels, dtype=np.int64)[step], list(self._levels)
        asked, new = self._asked_keys.of(after, levels)
        targets = []
        for own, held in zip(after[new].tolist(), levels[new].tolist(), strict=True):
            key = _canonical(self._environment.racks, self._brokers.own[own], listed[held])
            known = self._numbers.get(key)
            targets.append(self._add(key, settle(self._scheme, *key)) if known is None else known)
        self._number_of = np.concatenate([self._number_of, np.array(targets, dtype=np.int64)])
        return self._number_of[asked]

    def _early_losses(self, moves: _Moves, outages: Outages[Outage]) -> tuple[IntArray, ...]:
        """Power failures that lose within the flush window after a stop.

        Returns state, rate, end (losses,).
        """
        views, brokers = self._views, self._brokers
        view = np.array(self._view, dtype=np.int64)
        writes = np.array([view_before.writable for view_before in views])[view]
        stopped = np.unique(moves.target[writes[moves.source]])
        stopped = stopped[~writes[stopped]] if self._scheme.page_cache else stopped[:0]
        owner, row = brokers.rows(np.array(self._own, dtype=np.int64)[stopped])
        power = np.flatnonzero(brokers.power[row])
        owner, row = owner[power], row[power]
        both = brokers.events[row] * len(brokers.own) + brokers.after[row]
        asked, new = Pairs().of(view[stopped][owner], both)
        losses = [
            early_end(
                self._scheme,
                views[view[stopped[owner[place]]]],
                self._change(int(brokers.events[row[place]]), int(brokers.after[row[place]])),
                self._environment,
                outages,
                self._follow,
            )
            for place in new.tolist()
        ]
        end = np.array(losses, dtype=np.int64)[asked]
        loses = end != NO_LOSS
        return stopped[owner[loses]], brokers.rate[row[loses]], end[loses]

    def chain(self, moves: _Moves) -> SchemeChain:
        """All states and transitions as arrays."""
        outages: Outages[Outage] = Outages()
        state, power, end = self._early_losses(moves, outages)
        listed = self._brokers.rate_names
        met, rate = met_in_order(moves.rate, len(listed))
        ends = end.tolist()
        names = [listed[number] for number in met.tolist()]
        names += [name for name in outages.names(ends) if name not in names]
        index = {name: number for number, name in enumerate(names)}
        odds, renamed = outages.odds(ends, index)
        views, steps = [self._views[number] for number in self._view], self._steps
        gap_map = np.full((len(steps), max(self._environment.replicas - 1, 1)), GAP_CLOSED)
        for row, step in enumerate(steps):
            gap_map[row, : len(step.gap_map)] = step.gap_map
        return SchemeChain(
            keys=tuple(self.keys),
            writable=np.array([view.writable for view in views]),
            readable=np.array([view.readable for view in views]),
            source=moves.source,
            target=moves.target,
            rate=rate,
            weight=moves.weight,
            losses=np.array([step.losses for step in steps])[moves.step],
            failed=np.array([step.failed for step in steps])[moves.step],
            moved=np.array([step.moved for step in steps])[moves.step],
            total=np.array([step.total for step in steps], dtype=np.bool_)[moves.step],
            gaps=np.array([gaps_between(view.levels) for view in views], dtype=np.int64),
            gap_map=gap_map.take(moves.step, axis=0),
            unflushed=np.array([step.unflushed for step in steps], dtype=np.int64)[moves.step],
            writes=np.array([step.view.writable for step in steps], dtype=np.bool_)[moves.step],
            reads=np.array([step.view.readable for step in steps], dtype=np.bool_)[moves.step],
            rate_names=tuple(names),
            flush_window=FlushWindowLosses(
                state,
                np.array([index[listed[number]] for number in power.tolist()], dtype=np.int64),
                renamed,
                odds,
            ),
        )


def _canonical(racks: tuple[int, ...], own: tuple[int, ...], levels: Levels) -> Key:
    """The representative of states that differ by exchangeable brokers or racks (lumping)."""
    groups: dict[int, list[tuple[int, int]]] = {}
    for rack, condition, level in zip(racks, own, levels, strict=True):
        groups.setdefault(rack, []).append((condition, level))
    # The fullest rack comes first in a pattern; racks of one size are exchangeable.
    ordered = sorted((sorted(group) for group in groups.values()), key=lambda g: (-len(g), g))
    slots = [slot for group in ordered for slot in group]
    return tuple(condition for condition, _ in slots), tuple(level for _, level in slots)
