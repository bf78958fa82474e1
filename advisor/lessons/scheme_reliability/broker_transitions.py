"""Transitions of the brokers of one replica set as numbered rows, the same for every scheme."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from advisor.lessons.scheme_reliability.quorum_rules import is_running
from advisor.reliability.failures import fault_processes
from advisor.reliability.failures.mechanisms import HANGING, WELL, BrokerEvent
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.state_index import spread

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
        found = self._numbers.get(own)
        if found is None:
            found = self._numbers[own] = len(self.own)
            self.own.append(own)
            self.roles.append(_roles(own))
        return found

    def rate_number(self, name: str) -> int:
        """The number of a rate's name."""
        found = self._names.setdefault(name, len(self.rate_names))
        if found == len(self.rate_names):
            self.rate_names.append(name)
        return found

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
        found = self._events.setdefault(events, len(self.event_sequences))
        if found == len(self.event_sequences):
            self.event_sequences.append(events)
            # The second stage of an outage begins, which changes nothing for the partition.
            event, slots = events[0] if events else (None, ())
            self._hangs.append(slots[0] if event in HANGING else -1)
            self._power.append(any(event == BrokerEvent.POWER for event, _ in events))
        return found


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
