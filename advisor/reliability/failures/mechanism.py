"""What an entry of the table of mechanisms says, and the names of rates that follow from it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import cached_property, lru_cache
from itertools import combinations
from typing import NamedTuple

WELL = 0
"""The condition of a broker without an outage."""


class Scope(Enum):
    """Whom one event strikes."""

    BROKER = "broker"
    RACK = "rack"
    CLUSTER = "cluster"


class BrokerEvent(IntEnum):
    """What happens to a broker or to the controller quorum, at the start or end of an outage."""

    CRASH = 0
    """The process is down; log and page cache survive; an unclean shutdown."""
    ISOLATE = 1
    """Cut off from the controller, the other brokers and clients; nothing is lost."""
    STOP = 2
    """Controlled shutdown."""
    POWER = 3
    """The host is down; what was not flushed to disk is lost; an unclean shutdown."""
    DESTROY = 4
    """The log is gone for good."""
    LAG = 5
    """Up, but out of the ISR as a follower."""
    BACK = 6
    """Running and reachable again, with its log."""
    REPLACED = 7
    """An empty broker takes the place of a destroyed one."""
    CAUGHT_UP = 8
    """Back in sync after lagging."""
    LIMP = 9
    """Up and in session, but followers cannot fetch from it, and it cannot fetch from leaders."""
    RECOVERED = 10
    """The broker no longer limps."""
    QUORUM_LOST = 11
    """The controller quorum is lost: no elections, no ISR changes, no registrations."""
    QUORUM_STOPPED = 12
    """The controller quorum is lost, and clients are stopped as well."""
    QUORUM_BACK = 13
    """The controller quorum works again."""

    @property
    def end(self) -> BrokerEvent:
        """Event that ends an outage which began with this one."""
        return _ENDS.get(self, BrokerEvent.BACK)

    @property
    def of_quorum(self) -> bool:
        """It concerns the controller quorum, not a broker."""
        return self >= BrokerEvent.QUORUM_LOST


_ENDS = {
    BrokerEvent.DESTROY: BrokerEvent.REPLACED,
    BrokerEvent.LAG: BrokerEvent.CAUGHT_UP,
    BrokerEvent.LIMP: BrokerEvent.RECOVERED,
    BrokerEvent.QUORUM_LOST: BrokerEvent.QUORUM_BACK,
    BrokerEvent.QUORUM_STOPPED: BrokerEvent.QUORUM_BACK,
}
HANGING = (BrokerEvent.LAG, BrokerEvent.LIMP)
"""A follower is up and does not fetch, or not from its leader."""


class Strikes(IntEnum):
    """Which brokers an event can strike, by how far they are out of service already."""

    IN_SYNC = 0
    RUNNING = 1
    """Also brokers that lag or limp."""
    POWERED = 2
    """Also brokers that are cut off."""
    STANDING = 3
    """All brokers that are not destroyed."""


# How far a broker is out of service, on the scale of `Strikes`.
_SEVERITY = {
    BrokerEvent.LAG: 1,
    BrokerEvent.LIMP: 1,
    BrokerEvent.ISOLATE: 2,
    BrokerEvent.DESTROY: 4,
    BrokerEvent.QUORUM_LOST: 0,
    BrokerEvent.QUORUM_STOPPED: 0,
}
_DOWN = 3


class Sign(Enum):
    """What metrics show beside the brokers that an event stops, where events look alike."""

    FULL_DISK = "their disks have no room"
    NEW_VERSION = "they have just got another version"


_UNITS = {
    "per_year": "per year",
    "minutes": "minutes",
    "hours": "hours",
    "bytes_per_second": "bytes per second",
    "seconds": "seconds",
    "sessions": "session timeouts",
    "ms_per_leader": "ms per leader",
    "shape": "(gamma shape)",
    "crews": "",
}
"""By the end of a number's name."""


class Number(NamedTuple):
    """A number that a card gives for a mechanism.

    key: its name in the card; names the unit.
    probability: may not exceed 1.
    measured_by: how a user can measure it on their own cluster, in a few words; "" if they cannot.
    question: of a fact about a user's tooling: what to ask. Such a number is never drawn.
    """

    key: str
    meaning: str
    required: bool = True
    probability: bool = False
    measured_by: str = ""
    question: str = ""

    @property
    def unit(self) -> str:
        """In words, from the end of its name.

        >>> Number("unclean_minutes", "until it is back").unit
        'minutes'
        """
        if self.probability:
            return "(chance)"
        return next(words for end, words in _UNITS.items() if self.key.endswith(end))

    def measured(self, how: str) -> Number:
        """Return the same number of a mechanism for which a user can measure it."""
        return self._replace(measured_by=how)


PER_YEAR = Number("per_year", "events per year of one broker, rack or cluster")
MINUTES = Number("minutes", "mean minutes until the outage ends")
HOURS = Number("hours", "mean hours until a lost broker is replaced; copying comes on top")
SHAPE = Number("shape", "gamma shape of the duration; 1, exponential, if left out", required=False)
PROLONGED = "prolonged"
"""What the name of a rate says of the second stage of an outage."""
_PER_HOUR = {"minutes": 60.0, "hours": 1.0}


def per_hour(key: str) -> float:
    """Units per hour of a duration's key; 0 if it is not a duration.

    >>> per_hour("minutes"), per_hour("unclean_minutes"), per_hour("per_year")
    (60.0, 60.0, 0.0)
    """
    return _PER_HOUR.get(key.rpartition("_")[2], 0.0)


class Death(NamedTuple):
    """How a broker that limps may die: in which outage it goes on, and whether with its host."""

    word: str
    outage: str
    takes_host: bool


class Variant(NamedTuple):
    """Another way in which a mechanism may strike.

    chance: the probability that an event takes it.
    condition: a number of its own, as that of a mechanism.
    minutes: its mean duration; that of the mechanism if None, or if the card does not give it.
    """

    chance: Number
    effect: BrokerEvent
    condition: int
    minutes: Number | None = None


@dataclass(frozen=True)
class Mechanism:
    """One failure mechanism.

    name: as cards write it; the first part is the scope.
    effect: what happens to the struck brokers.
    strikes: which brokers can be struck.
    words: for sentences: "broker processes crashing".
    numbers: what a card gives, in the card's order.
    condition: of a struck broker, from 1, a number of its own; 0 if it ends as ``ends_as`` does.
    ends_as: the mechanism whose condition struck brokers get, and whose duration counts; "" for its
        own.
    together: all that were struck come back together; else each after a time of its own.
    exclusive: one broker of the cluster at a time.
    share: the probability, for each broker, to be struck at all, or, with ``turns_into``, for the
        outage to turn into another.
    every: the probability that all brokers are struck; ``share`` counts for the other events.
    turns_into: the mechanism that takes over with probability ``share``, also for brokers that are
        down.
    spreads: the probability, for each other rack, to be struck at the same moment.
    overlaps: the probability that a second broker is out of sync for as long on average, because
        the next restart did not wait for it.
    dies: the probability that the outage ends in one of ``deaths``.
    hard: the share of these deaths that take the host; all of them if the card does not say.
    variants: other ways in which it may strike.
    variant: of an entry made from a variant, the key of its probability; see `Table.kinds`.
    with_zookeeper: its rate in clusters with ZooKeeper, instead of the usual one.
    by_hand: someone has to come and end it: its repairs wait where the card limits the crews.
    remembered: an operator knows how often it happened without a search.
    outlasted: producers are expected to retry for longer than it lasts (finding KRA402).
    sign: what tells it from others with the same effect in metrics.
    prolonged: of an entry made for the second stage of its outages; see `Table.prolonged`.
    """

    name: str
    effect: BrokerEvent
    strikes: Strikes
    words: str
    numbers: tuple[Number, ...] = (PER_YEAR, MINUTES, SHAPE)
    condition: int = 0
    ends_as: str = ""
    together: bool = False
    exclusive: bool = False
    share: Number | None = None
    every: Number | None = None
    turns_into: str = ""
    spreads: Number | None = None
    overlaps: Number | None = None
    dies: Number | None = None
    hard: Number | None = None
    deaths: tuple[Death, ...] = ()
    variants: tuple[Variant, ...] = ()
    variant: str = ""
    with_zookeeper: Number | None = None
    by_hand: bool = False
    remembered: bool = False
    outlasted: bool = False
    sign: Sign | None = None
    prolonged: bool = False

    @cached_property
    def scope(self) -> Scope:
        """Whom one event strikes."""
        return Scope(self.name.partition(".")[0])

    def path(self, number: Number | None) -> str:
        """Dotted path of one of its numbers in a card; "" for None."""
        return f"{self.name}.{number.key}" if number else ""

    @cached_property
    def share_path(self) -> str:
        """Dotted path of ``share``; "" without one."""
        return self.path(self.share)

    @cached_property
    def dies_as(self) -> tuple[str, ...]:
        """The mechanisms in whose outages its own may end."""
        return tuple(death.outage for death in self.deaths)

    @property
    def chances(self) -> tuple[str, ...]:
        """Dotted paths of its probabilities."""
        return tuple(self.path(number) for number in self.numbers if number.probability)

    @cached_property
    def full_name(self) -> str:
        """Its name, with that of the variant: the name of the rate at which it strikes."""
        return f"{self.name} {self.variant}".rstrip() + f" {PROLONGED}" * self.prolonged

    @property
    def shape_path(self) -> str:
        """Dotted path of the shape of its duration; "" if it takes none."""
        return self.path(SHAPE) if SHAPE in self.numbers else ""

    @property
    def duration(self) -> tuple[str, float]:
        """Dotted path of its own duration in a card, and units per hour; ("", 1) without one."""
        for number in self.numbers:
            if per_hour(number.key):
                return self.path(number), per_hour(number.key)
        return "", 1.0

    @property
    def kinds(self) -> tuple[Mechanism, ...]:
        """The kinds of failure that it causes: the entry itself, and one for each variant."""
        return (self, *map(self._with_variant, self.variants))

    def _with_variant(self, variant: Variant) -> Mechanism:
        minutes = (variant.minutes,) if variant.minutes else ()
        return replace(
            self,
            effect=variant.effect,
            condition=variant.condition,
            # Its own duration first, which is the one that counts.
            numbers=(*minutes, *self.numbers),
            variants=(),
            variant=variant.chance.key,
            overlaps=None,
        )

    @property
    def severity(self) -> int:
        """How far a struck broker is out of service, on the scale of `Strikes`."""
        return _SEVERITY.get(self.effect, _DOWN)


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
