"""What an entry of the table of mechanisms says: whom it strikes, what happens, how it ends."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import cached_property
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
    """Units per hour of the key of a duration, such as ``unclean_minutes``; else 0."""
    return _PER_HOUR.get(key.rpartition("_")[2], 0.0)


class Death(NamedTuple):
    """How a broker that limps may die in the end.

    word: in the name of the rate.
    outage: the mechanism in whose outage it goes on.
    takes_host: what was not flushed is gone; else only the process dies.
    """

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
