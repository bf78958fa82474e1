"""Which evidence belongs to which number of a card, derived from the table of mechanisms.

Also what one cluster has seen of a mechanism, in the form that the arithmetic takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from advisor.learning.posterior import Lengths, Share
from advisor.reliability.failures.mechanism import per_hour
from advisor.reliability.failures.mechanisms import PER_YEAR, Mechanism, Number, Scope, table

UNNAMED = "metrics"
"""What a cluster is called whose metrics have no label for it."""


class Teaches(Enum):
    """What has to be counted to learn a number."""

    RATE = "events, over the years in which they were counted"
    ZOOKEEPER_RATE = "the same, in clusters with ZooKeeper"
    LENGTH = "how long the outages lasted"
    SHARE_OF_EVENTS = "in how many events it happened"
    SHARE_OF_DEATHS = "in how many of the events in which the broker died"
    SHARE_OF_BROKERS = "for how many of the brokers that were struck"
    SHARE_OF_RACKS = "how many other racks were struck at the same moment"
    EVERY_BROKER = "how many events struck all brokers"
    EACH_BROKER = "how many brokers were struck, of all"


def evidence_of(entry: Mechanism) -> Mapping[str, Teaches]:
    """Return what teaches each number of a mechanism, by its key; the others cannot be counted.

    >>> from advisor.reliability.failures.mechanisms import table
    >>> {key: kind.name for key, kind in evidence_of(table()["broker.gray"]).items()}
    {'per_year': 'RATE', 'minutes': 'LENGTH', 'dies': 'SHARE_OF_EVENTS', 'hard': 'SHARE_OF_DEATHS'}
    """
    kinds = ((number.key, _taught_by(entry, number)) for number in entry.numbers)
    return {key: kind for key, kind in kinds if kind is not None}


def _taught_by(entry: Mechanism, number: Number) -> Teaches | None:
    if per_hour(number.key):
        return Teaches.LENGTH
    if number.key == PER_YEAR.key:
        return Teaches.RATE
    if number == entry.with_zookeeper:
        return Teaches.ZOOKEEPER_RATE
    if not number.probability or number.question:
        return None
    if number == entry.every:
        return Teaches.EVERY_BROKER
    if number == entry.share:
        return Teaches.SHARE_OF_BROKERS if entry.turns_into else Teaches.EACH_BROKER
    if number == entry.spreads:
        return Teaches.SHARE_OF_RACKS
    return Teaches.SHARE_OF_DEATHS if number == entry.hard else Teaches.SHARE_OF_EVENTS


def length_key(entry: Mechanism, variant: str = "") -> str:
    """Return the key of the mean length of a mechanism's outages, or of a variant's.

    "" where its outages have no length of their own.
    """
    for other in entry.variants:
        if other.chance.key == variant and other.minutes is not None:
            return other.minutes.key
    of_variants = {other.minutes.key for other in entry.variants if other.minutes is not None}
    keys = (n.key for n in entry.numbers if per_hour(n.key) and n.key not in of_variants)
    return next(keys, "")


@dataclass(frozen=True)
class Seen:
    """What one cluster has seen of a mechanism.

    lengths: by the key of the number that they teach, in its unit.
    shares: by the key of the probability.
    struck: of events of which it is known: how many brokers of how many.
    """

    events: int = 0
    lengths: Mapping[str, Lengths] = field(default_factory=dict)
    shares: Mapping[str, Share] = field(default_factory=dict)
    struck: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Outage:
    """An outage with its times.

    brokers: those that are known to have been struck: ids, or names of scraped targets.
    start: in UTC.
    end: None while it goes on.
    evidence: what says so.
    """

    mechanism: str
    brokers: tuple[int | str, ...]
    start: datetime
    end: datetime | None
    evidence: str
    cluster: str = ""


class Gap(NamedTuple):
    """A time in which a broker was not watched."""

    broker: str
    start: datetime
    end: datetime


@dataclass(frozen=True)
class Refused:
    """Writes that were refused, as they really were.

    minutes: that a partition could not be written to, on average over the partitions.
    years: in which that was watched.
    partition_minutes, any_minutes: minutes added up over all partitions; and those in which any
        partition refused writes.
    partition_minutes_off, any_minutes_off: by how much these may be off, up or down, as nothing is
        known of what happens between two scrapes: about 95 of 100 times less, if what was refused
        lasted longer than from one to the next.
    """

    minutes: float
    years: float
    partition_minutes: float | None = None
    any_minutes: float | None = None
    partition_minutes_off: float = 0.0
    any_minutes_off: float = 0.0


@dataclass(frozen=True)
class ClusterHistory:
    """What was counted in one cluster, and for how long.

    racks: None if they are not known.
    mode (one of "kraft", "zookeeper").
    seen: by mechanism; one that was not watched for is not there.
    outages: those whose times are known.
    since, until: the time that was watched, if its dates are known.
    refused: minutes without writes that there really were, if known.
    exposures: years of targets in which a mechanism was watched, where that is not all the time.
    notes: what was seen and proves nothing, a sentence each.
    named: whether its name was given, and is not that of a file or of metrics without one.
    left_out: how many events were typed that began outside that time.
    """

    name: str
    brokers: int
    years: float
    racks: int | None = None
    mode: str = "kraft"
    seen: Mapping[str, Seen] = field(default_factory=dict)
    outages: tuple[Outage, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    refused: Refused | None = None
    exposures: Mapping[str, float] = field(default_factory=dict)
    gaps: tuple[Gap, ...] = ()
    notes: tuple[str, ...] = ()
    named: bool = True
    left_out: int = 0

    def with_counts(self, typed: ClusterHistory) -> ClusterHistory:
        """Return the history with what a person counted in the same cluster, which goes first."""
        both = [name for name in typed.seen if name in self.seen]
        counted = {name: typed.exposure_of(table()[name]) for name in typed.seen}
        note = f"Counted by hand, so that metrics do not count for it: {', '.join(both)}."
        return replace(
            self,
            name=typed.name if typed.named else self.name,
            brokers=typed.brokers,
            racks=typed.racks or self.racks,
            seen={**self.seen, **typed.seen},
            exposures={**self._all_exposures, **counted},
            outages=tuple(sorted((*self.outages, *typed.outages), key=lambda row: row.start)),
            refused=typed.refused or self.refused,
            left_out=typed.left_out,
            notes=(*self.notes, *([note] if both else [])),
        )

    @property
    def _all_exposures(self) -> dict[str, float]:
        return {name: self.exposure_of(table()[name]) for name in self.seen}

    def exposure_of(self, entry: Mechanism) -> float:
        """Return the years of targets in which a mechanism was watched."""
        return self.exposures.get(entry.name, self.exposure_years(entry.scope))

    def exposure_years(self, scope: Scope) -> float:
        """Return the years of all brokers, of all racks, or of the cluster."""
        targets = {Scope.BROKER: self.brokers, Scope.RACK: self.racks or 0, Scope.CLUSTER: 1}
        return targets[scope] * self.years
