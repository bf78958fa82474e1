"""The table of failure mechanisms: one entry says everything the package knows about each.

Cards, the CTMC, the sampler, the other schemes, causes, findings and assumptions read this table;
no other module names a mechanism. To add one, add an entry to ``_ENTRIES``. Results list the
mechanisms in the order of the table.

A broker is well or in one *condition*, the mark of the outage that it is in. Transition rates are
named after the mechanism ("broker.crash"), its end ("repair broker.crash"), or, where each broker
is struck by chance, how many of how many were ("cluster.power 1 of 3").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from advisor.reliability.failures.mechanism import (
    HOURS,
    MINUTES,
    PER_YEAR,
    SHAPE,
    WELL,
    BrokerEvent,
    Mechanism,
    Number,
    Scope,
    Strikes,
)

__all__ = [
    "CONFIGURATION",
    "COPY",
    "HOURS",
    "MINUTES",
    "PER_YEAR",
    "SHAPE",
    "WELL",
    "BrokerEvent",
    "Mechanism",
    "Number",
    "Scope",
    "Strikes",
    "Table",
    "Transition",
    "decided_by_settings",
    "registered",
    "repair_of",
    "striking",
    "table",
    "transition",
    "words",
]

CONFIGURATION = "configuration"
"""The cause of an outage in which every replica is available."""

COPY = "copy"
"""Name of the rate at which a replaced, empty broker finishes copying."""

_NOT_RETURNING = Number(
    "not_returning", "probability that a broker never returns", required=False, probability=True
)

_ENTRIES = (
    Mechanism(
        "broker.crash",
        BrokerEvent.CRASH,
        Strikes.RUNNING,
        "broker processes crashing",
        condition=1,
        outlasted=True,
    ),
    Mechanism(
        "broker.power",
        BrokerEvent.POWER,
        Strikes.RUNNING,
        "hosts losing power or panicking",
        condition=2,
    ),
    Mechanism(
        "broker.destroyed",
        BrokerEvent.DESTROY,
        Strikes.STANDING,
        "disks or instances destroyed",
        numbers=(PER_YEAR, HOURS, SHAPE),
        condition=5,
    ),
    Mechanism(
        "broker.lag",
        BrokerEvent.LAG,
        Strikes.IN_SYNC,
        "followers falling behind",
        condition=6,
    ),
    Mechanism(
        "broker.restart",
        BrokerEvent.STOP,
        Strikes.IN_SYNC,
        "planned restarts",
        condition=4,
        exclusive=True,
        outlasted=True,
    ),
    Mechanism(
        "rack.network",
        BrokerEvent.ISOLATE,
        Strikes.RUNNING,
        "racks unreachable",
        condition=7,
        together=True,
        outlasted=True,
    ),
    Mechanism(
        "rack.power",
        BrokerEvent.POWER,
        Strikes.POWERED,
        "racks losing power",
        condition=8,
        together=True,
        outlasted=True,
    ),
    Mechanism(
        "rack.destroyed",
        BrokerEvent.DESTROY,
        Strikes.STANDING,
        "racks destroyed",
        numbers=(PER_YEAR,),
        ends_as="broker.destroyed",
    ),
    Mechanism(
        "cluster.power",
        BrokerEvent.POWER,
        Strikes.POWERED,
        "the whole site losing power",
        numbers=(PER_YEAR, MINUTES, _NOT_RETURNING, SHAPE),
        condition=3,
        share=_NOT_RETURNING,
        turns_into="broker.destroyed",
        beyond_settings=True,
    ),
)


class Transition(NamedTuple):
    """What the name of a transition rate stands for.

    Attributes
    ----------
    mechanism : Mechanism
        Of a copy, the one whose outage it follows.
    ends : bool
        An outage or a copy ends; else a failure strikes.
    copies : bool
        A copy ends.
    chosen, among : int
        How many brokers of how many the probability ``share`` picked; -1 where it picks none.
    """

    mechanism: Mechanism
    ends: bool = False
    copies: bool = False
    chosen: int = -1
    among: int = -1

    @property
    def cuts_power(self) -> bool:
        """A failure that may lose what was not flushed."""
        return not self.ends and self.mechanism.effect is BrokerEvent.POWER

    @property
    def hangs(self) -> bool:
        """A follower begins to lag."""
        return not self.ends and self.mechanism.effect is BrokerEvent.LAG

    @property
    def destroys(self) -> bool:
        """A failure that destroys a log."""
        if self.ends:
            return False
        picked = self.mechanism.turns_into and self.chosen > 0
        return bool(self.mechanism.effect is BrokerEvent.DESTROY or picked)


_CHOSEN = re.compile(r"(\S+) (\d+) of (\d+)")
_REPAIR = "repair "


@dataclass(frozen=True)
class Table:
    """The mechanisms, and the questions that other modules ask about them.

    Parameters
    ----------
    entries : tuple of Mechanism
        In the order in which results list them.
    """

    entries: tuple[Mechanism, ...]

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[type, tuple[tuple[Mechanism, ...]]]:
        # Without cached values: hashes of strings differ from process to process.
        return Table, (self.entries,)

    @cached_property
    def _hash(self) -> int:
        return hash(self.entries)

    def __getitem__(self, name: str) -> Mechanism:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @cached_property
    def _by_name(self) -> Mapping[str, Mechanism]:
        return {entry.name: entry for entry in self.entries}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(self._by_name)

    @cached_property
    def outages(self) -> Mapping[int, Mechanism]:
        """By condition, ascending from 1: the mechanism whose duration ends it."""
        own = sorted((entry for entry in self.entries if entry.condition), key=_condition)
        if [entry.condition for entry in own] != list(range(1, len(own) + 1)):
            raise ValueError(f"conditions must be 1, 2, ...: {[*map(_condition, own)]}")
        return {entry.condition: entry for entry in own}

    @cached_property
    def conditions(self) -> int:
        """How many conditions there are, that of a well broker included."""
        return len(self.outages) + 1

    @property
    def waits(self) -> int:
        """Length of a count of outages by condition, with one more at the end, for copies."""
        return self.conditions + 1

    def condition_of(self, entry: Mechanism) -> int:
        """The condition that it leaves a struck broker in."""
        return self._by_name[entry.ends_as].condition if entry.ends_as else entry.condition

    def conditions_with(self, *effects: BrokerEvent) -> tuple[int, ...]:
        """The conditions that begin with one of some effects, ascending."""
        return tuple(c for c, entry in self.outages.items() if entry.effect in effects)

    def severity(self, condition: int) -> int:
        """How far a broker is out of service, on the scale of `Strikes`."""
        return self._severities[condition]

    @cached_property
    def _severities(self) -> tuple[int, ...]:
        return (0, *(entry.severity for entry in self.outages.values()))

    @cached_property
    def begin_together(self) -> tuple[str, ...]:
        """Mechanisms that strike several brokers, each of which comes back separately."""
        return tuple(entry.name for entry in self._begin_together)

    @cached_property
    def begun_together(self) -> tuple[int, ...]:
        """The conditions that they leave brokers in, ascending."""
        found = {self.condition_of(entry) for entry in self._begin_together}
        turned = {entry.turns_into for entry in self._begin_together if entry.turns_into}
        return tuple(sorted(found | {self._by_name[name].condition for name in turned}))

    @cached_property
    def _begin_together(self) -> tuple[Mechanism, ...]:
        several = (entry for entry in self.entries if entry.scope is not Scope.BROKER)
        return tuple(entry for entry in several if not entry.together)

    @cached_property
    def replacement(self) -> Mechanism:
        """The mechanism whose end is the replacement of a destroyed broker; copying follows."""
        (found,) = self.conditions_with(BrokerEvent.DESTROY)
        return self.outages[found]

    def leading_to(self, entry: Mechanism) -> tuple[Mechanism, ...]:
        """Other mechanisms that can leave a broker in this one's condition."""
        return tuple(e for e in self.entries if entry.name in (e.ends_as, e.turns_into))

    def with_effect(self, effect: BrokerEvent) -> tuple[Mechanism, ...]:
        """The mechanisms with an effect."""
        return tuple(entry for entry in self.entries if entry.effect is effect)

    def transition(self, rate: str) -> Transition:
        """What the name of a transition rate stands for.

        Parameters
        ----------
        rate : str
            A mechanism, "repair" and a mechanism, "copy", or "<mechanism> <count> of <count>".
        """
        return _transition(self, rate)


def _condition(entry: Mechanism) -> int:
    return entry.condition


def repair_of(entry: Mechanism) -> str:
    """Name of the rate at which its outages end."""
    return f"{_REPAIR}{entry.name}"


def striking(entry: Mechanism, chosen: int, among: int) -> str:
    """Name of the rate at which it strikes where its probability picks some of some brokers."""
    return f"{entry.name} {chosen} of {among}"


@lru_cache(maxsize=4096)
def _transition(table: Table, rate: str) -> Transition:
    if rate == COPY:
        return Transition(table.replacement, ends=True, copies=True)
    if rate.startswith(_REPAIR):
        return Transition(table[rate.removeprefix(_REPAIR)], ends=True)
    chosen = _CHOSEN.fullmatch(rate)
    if chosen:
        return Transition(table[chosen[1]], chosen=int(chosen[2]), among=int(chosen[3]))
    return Transition(table[rate])


_current = Table(_ENTRIES)


def table() -> Table:
    """The table in use."""
    return _current


@contextmanager
def registered(*entries: Mechanism) -> Iterator[Table]:
    """Add entries to the table for the duration of a ``with`` block.

    Results are cached by card: an entry that behaves differently needs a name of its own.
    """
    global _current
    before = _current
    _current = Table((*before.entries, *entries))
    try:
        yield _current
    finally:
        _current = before


def transition(rate: str) -> Transition:
    """What the name of a transition rate stands for; see `Table.transition`."""
    return _transition(_current, rate)


def decided_by_settings(cause: str) -> bool:
    """Whether replication settings decide what a cause costs.

    What is no mechanism of the table, such as the configuration itself, they decide.

    >>> decided_by_settings("rack.power"), decided_by_settings("cluster.power")
    (True, False)
    >>> decided_by_settings("configuration")
    True
    """
    return cause not in _current or not _current[cause].beyond_settings


def words(cause: str) -> str:
    """What a cause is called in a sentence.

    >>> words("rack.power"), words("configuration")
    ('racks losing power', 'the configuration itself')
    """
    if cause == CONFIGURATION:
        return "the configuration itself"
    return _current[cause].words if cause in _current else cause
