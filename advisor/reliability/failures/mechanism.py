"""What an entry of the table of mechanisms says: whom it strikes, what happens, how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple

WELL = 0
"""The condition of a broker without an outage."""


class Scope(Enum):
    """Whom one event strikes."""

    BROKER = "broker"
    RACK = "rack"
    CLUSTER = "cluster"


class BrokerEvent(IntEnum):
    """What happens to a broker: at the start of an outage (up to LAG), or at its end."""

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

    @property
    def end(self) -> BrokerEvent:
        """What ends an outage that began with this."""
        return _ENDS.get(self, BrokerEvent.BACK)


_ENDS = {BrokerEvent.DESTROY: BrokerEvent.REPLACED, BrokerEvent.LAG: BrokerEvent.CAUGHT_UP}


class Strikes(IntEnum):
    """Which brokers an event can strike, by how far they are out of service already."""

    IN_SYNC = 0
    RUNNING = 1
    """Those that lag, too."""
    POWERED = 2
    """Those that are cut off, too."""
    STANDING = 3
    """All but the destroyed."""


# How far a broker is out of service, on the scale of `Strikes`.
_SEVERITY = {BrokerEvent.LAG: 1, BrokerEvent.ISOLATE: 2, BrokerEvent.DESTROY: 4}
_DOWN = 3


class Number(NamedTuple):
    """A number that a card gives for a mechanism.

    Attributes
    ----------
    key : str
        Its name in the card; names the unit.
    meaning : str
    required : bool
    probability : bool
        May not exceed 1.
    """

    key: str
    meaning: str
    required: bool = True
    probability: bool = False


PER_YEAR = Number("per_year", "events per year of one broker, rack or cluster")
MINUTES = Number("minutes", "mean minutes until the outage ends")
HOURS = Number("hours", "mean hours until a lost broker is replaced; copying comes on top")
SHAPE = Number("shape", "gamma shape of the duration; 1, exponential, if left out", required=False)
_PER_HOUR = {MINUTES.key: 60.0, HOURS.key: 1.0}


@dataclass(frozen=True)
class Mechanism:
    """One failure mechanism.

    Attributes
    ----------
    name : str
        As cards write it; the first part is the scope.
    effect : BrokerEvent
        What happens to the struck brokers.
    strikes : Strikes
        Which brokers can be struck.
    words : str
        For sentences: "broker processes crashing".
    numbers : tuple of Number
        What a card gives, in the card's order.
    condition : int
        Of a struck broker, from 1, a number of its own; 0 if it ends as ``ends_as`` does.
    ends_as : str
        The mechanism whose condition struck brokers get, and whose duration counts; "" for its own.
    together : bool
        All that were struck come back together; else each after a time of its own.
    exclusive : bool
        One broker of the cluster at a time.
    share : Number or None
        The probability, for each broker, to be struck at all, or, with ``turns_into``, for the
        outage to turn into another.
    turns_into : str
        The mechanism that takes over with probability ``share``, also for brokers that are down.
    outlasted : bool
        Producers are expected to retry for longer than it lasts (finding KRA402).
    beyond_settings : bool
        No replication setting within one cluster changes much of what it costs: it strikes
        brokers of all racks at once. Goals are not held against that part of a measure.
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
    turns_into: str = ""
    outlasted: bool = False
    beyond_settings: bool = False

    @property
    def scope(self) -> Scope:
        """Whom one event strikes."""
        return Scope(self.name.partition(".")[0])

    @property
    def share_path(self) -> str:
        """Dotted path of the probability in a card; "" without one."""
        return f"{self.name}.{self.share.key}" if self.share else ""

    @property
    def duration(self) -> tuple[str, float]:
        """Dotted path of its own duration in a card, and units per hour; ("", 1) without one."""
        for number in self.numbers:
            if number.key in _PER_HOUR:
                return f"{self.name}.{number.key}", _PER_HOUR[number.key]
        return "", 1.0

    @property
    def severity(self) -> int:
        """How far a struck broker is out of service, on the scale of `Strikes`."""
        return _SEVERITY.get(self.effect, _DOWN)
