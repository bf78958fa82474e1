"""A table of mechanisms, and the names of the transition rates that follow from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple

from advisor.reliability.failures.mechanism import (
    HANGING,
    BrokerEvent,
    Death,
    Mechanism,
    Scope,
)

COPY = "copy"
"""Name of the rate at which a replaced, empty broker finishes copying."""

DECISION = "operator"
"""Name of the rate at which an operator elects what is left where Kafka would wait for ever."""


class Transition(NamedTuple):
    """What the name of a transition rate stands for.

    mechanism: with its variant. Of a copy, the one whose outage it follows.
    ends: an outage or a copy ends; else a failure strikes.
    copies: a copy ends.
    death: in which of ``mechanism.deaths`` the outage ends.
    prolongs: the first stage of the outage ends, and the second begins.
    pair: two brokers are struck: a restart that did not wait.
    racks, racks_among: how many racks of how many are struck; -1 where the failure does not spread.
    chosen, among: how many brokers of how many the probability ``share`` picked; -1 where it picks
        none.
    decides: an operator elects, after what ``mechanism`` destroyed.
    """

    mechanism: Mechanism
    ends: bool = False
    copies: bool = False
    death: Death | None = None
    pair: bool = False
    racks: int = -1
    racks_among: int = -1
    chosen: int = -1
    among: int = -1
    decides: bool = False
    prolongs: bool = False

    @property
    def cuts_power(self) -> bool:
        """A failure that may lose what was not flushed."""
        if self.ends:
            return self.death is not None and self.death.takes_host
        return self.mechanism.effect is BrokerEvent.POWER

    @property
    def hangs(self) -> bool:
        """A follower begins to lag, or a leader to limp."""
        return not self.ends and self.mechanism.effect in HANGING

    @property
    def destroys(self) -> bool:
        """A failure that destroys a log."""
        if self.ends:
            return False
        picked = self.mechanism.turns_into and self.chosen > 0
        return bool(self.mechanism.effect is BrokerEvent.DESTROY or picked)


_RATE = re.compile(
    r"(?P<repair>repair |prolong )?(?P<name>\S+?)(?: (?!prolonged)(?P<word>[a-z_]+))?"
    r"(?P<prolonged> prolonged)?"
    r"(?: (?P<racks>\d+) of (?P<racks_among>\d+) racks)?(?: (?P<chosen>\d+) of (?P<among>\d+))?"
)
_REPAIR, _PROLONG, _PAIR = "repair ", "prolong ", "pair"


@dataclass(frozen=True)
class Table:
    """The mechanisms in the order of results, and what other modules ask about them."""

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
    def kinds(self) -> tuple[Mechanism, ...]:
        """Kinds of failure: the entries, each followed by those of its variants."""
        return tuple(kind for entry in self.entries for kind in entry.kinds)

    @cached_property
    def begun(self) -> Mapping[int, Mechanism]:
        """Mechanism of each condition in which an outage can begin, ascending from 1."""
        own = sorted((entry for entry in self.kinds if entry.condition), key=_condition)
        if [entry.condition for entry in own] != list(range(1, len(own) + 1)):
            raise ValueError(f"conditions must be 1, 2, ...: {[*map(_condition, own)]}")
        return {entry.condition: entry for entry in own}

    @cached_property
    def prolonged(self) -> Mapping[int, int]:
        """Condition in the second stage of an outage with a shape, by that in the first."""
        shaped = [condition for condition, entry in self.begun.items() if entry.shape_path]
        return {first: len(self.begun) + n for n, first in enumerate(shaped, 1)}

    @cached_property
    def outages(self) -> Mapping[int, Mechanism]:
        """Mechanism whose duration ends each condition, ascending from 1."""
        second = {
            later: replace(self.begun[first], condition=later, prolonged=True)
            for first, later in self.prolonged.items()
        }
        return {**self.begun, **second}

    def stages(self, condition: int) -> tuple[int, ...]:
        """A condition in which outages begin, and that of their second stage if there is one."""
        return tuple(c for c in (condition, self.prolonged.get(condition, 0)) if c)

    @cached_property
    def conditions(self) -> int:
        """Number of conditions, that of a healthy broker included."""
        return len(self.outages) + 1

    @property
    def waits(self) -> int:
        """Length of a count of outages by condition, with one more at the end, for copies."""
        return self.conditions + 1

    def condition_of(self, entry: Mechanism) -> int:
        """The condition that it leaves a struck broker in."""
        return self._by_name[entry.ends_as].condition if entry.ends_as else entry.condition

    def conditions_after(self, entry: Mechanism) -> tuple[int, ...]:
        """The conditions in which an event of it can leave a struck broker, at once or in time."""
        others = (entry.turns_into, *entry.dies_as)
        own = (self.condition_of(entry),)
        return own + tuple(self._by_name[name].condition for name in others if name)

    @cached_property
    def of_racks(self) -> frozenset[int]:
        """The conditions of brokers whose whole rack is out and comes back together."""
        return frozenset(c for c, e in self.outages.items() if e.scope is Scope.RACK and e.together)

    @cached_property
    def of_quorum(self) -> tuple[int, ...]:
        """The conditions of the controller quorum, ascending."""
        return tuple(c for c, entry in self.outages.items() if entry.effect.of_quorum)

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
        conditions = {self.condition_of(entry) for entry in self._begin_together}
        turned = {entry.turns_into for entry in self._begin_together if entry.turns_into}
        conditions |= {self._by_name[name].condition for name in turned}
        return tuple(sorted(stage for first in conditions for stage in self.stages(first)))

    @cached_property
    def _begin_together(self) -> tuple[Mechanism, ...]:
        several = (entry for entry in self.entries if entry.scope is not Scope.BROKER)
        return tuple(e for e in several if not e.together and not e.effect.of_quorum)

    @cached_property
    def replacement(self) -> Mechanism:
        """The mechanism whose end is the replacement of a destroyed broker; copying follows."""
        (entry,) = (e for e in self.with_effect(BrokerEvent.DESTROY) if self._replaces(e))
        return entry

    @staticmethod
    def _replaces(entry: Mechanism) -> bool:
        return bool(entry.condition) and entry.scope is Scope.BROKER

    @cached_property
    def destroying(self) -> tuple[Mechanism, ...]:
        """The mechanisms that can destroy logs."""
        by_effect = BrokerEvent.DESTROY
        return tuple(e for e in self.entries if e.effect is by_effect or e.turns_into)

    def leading_to(self, entry: Mechanism) -> tuple[Mechanism, ...]:
        """Other mechanisms that can leave a broker in this one's condition."""
        return tuple(e for e in self.entries if entry.name in (e.ends_as, e.turns_into))

    def with_effect(self, *effects: BrokerEvent) -> tuple[Mechanism, ...]:
        """The mechanisms with one of some effects."""
        return tuple(entry for entry in self.entries if entry.effect in effects)

    def mean_hours(self, entry: Mechanism, rates: Mapping[str, float]) -> float:
        """Mean hours of an entry's outages by the rates of a chain; 0 if none can happen."""
        if repair_of(entry) not in rates:
            return 0.0
        ends, goes_on = rates[repair_of(entry)], rates.get(prolonging(entry), 0.0)
        ends += sum(rates.get(death_of(entry, death), 0.0) for death in entry.deaths)
        if not goes_on:
            return 1.0 / ends
        second = self.outages[self.prolonged[entry.condition]]
        return (1.0 + goes_on / rates[repair_of(second)]) / (ends + goes_on)

    def transition(self, rate: str) -> Transition:
        """What the name of a transition rate stands for."""
        return transition_of(self, rate)


def _condition(entry: Mechanism) -> int:
    return entry.condition


def repair_of(entry: Mechanism) -> str:
    """Name of the rate at which its outages end."""
    return f"{_REPAIR}{entry.full_name}"


def death_of(entry: Mechanism, death: Death) -> str:
    """Name of the rate at which its outages end in a death."""
    return f"{_REPAIR}{entry.name} {death.word}"


def prolonging(entry: Mechanism) -> str:
    """Name of the rate at which its outages go on to their second stage."""
    return f"{_PROLONG}{entry.full_name}"


def pair_of(entry: Mechanism) -> str:
    """Name of the rate at which it strikes two brokers at once."""
    return f"{entry.name} {_PAIR}"


def striking(
    entry: Mechanism,
    racks: tuple[int, int] | None = None,
    chosen: tuple[int, int] | None = None,
) -> str:
    """Name of the rate at which it strikes some racks of some, and picks some brokers of some.

    For example "rack.power 1 of 3 racks 0 of 2".
    """
    of_racks = f" {racks[0]} of {racks[1]} racks" if racks else ""
    return f"{entry.full_name}{of_racks}" + (f" {chosen[0]} of {chosen[1]}" if chosen else "")


def picks_by_chance(entry: Mechanism, mechanisms: Collection[str]) -> bool:
    """Whether it picks brokers, given the paths of the probabilities that are not 0."""
    return entry.share_path in mechanisms or entry.path(entry.every) in mechanisms


@lru_cache(maxsize=4096)
def picks(
    entry: Mechanism,
    candidates: tuple[int, ...],
    by_chance: bool,
    racks: tuple[int, int] | None,
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Name of the rate and picked slots, for every set that the probability may pick."""
    return tuple(
        (striking(entry, racks, (count, len(candidates))), picked)
        for count in range(len(candidates) + 1 if by_chance else 1)
        for picked in combinations(candidates, count)
    )


@lru_cache(maxsize=4096)
def transition_of(table: Table, rate: str) -> Transition:
    """What the name of a rate stands for in a table; see `Table.transition`."""
    if rate in (COPY, DECISION):
        return Transition(table.replacement, True, rate == COPY, decides=rate == DECISION)
    match = _RATE.fullmatch(rate)
    if match is None:
        raise KeyError(rate)
    entry, word, ends = table[match["name"]], match["word"], bool(match["repair"])
    prolongs = match["repair"] == _PROLONG
    if word == _PAIR:
        return Transition(entry, pair=True)
    for death in entry.deaths if ends else ():
        if word == death.word:
            return Transition(entry, ends=True, death=death)
    (kind,) = (course for course in entry.kinds if course.variant == (word or ""))
    if match["prolonged"]:
        kind = table.outages[table.prolonged[kind.condition]]
    groups = ("racks", "racks_among", "chosen", "among")
    racks, racks_among, chosen, among = (-1 if match[g] is None else int(match[g]) for g in groups)
    return Transition(
        kind, ends, False, None, False, racks, racks_among, chosen, among, prolongs=prolongs
    )
