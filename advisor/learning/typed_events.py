"""What a person types about the events of one mechanism: a count, a table of totals, or a list."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from numbers import Real
from typing import Any

from advisor.errors import InputError, shown
from advisor.formatting import HOURS_PER_YEAR, as_given
from advisor.learning.evidence import (
    ClusterHistory,
    Outage,
    Seen,
    Teaches,
    evidence_of,
    length_key,
)
from advisor.learning.posterior import Lengths, Share
from advisor.reliability.failures.mechanism import per_hour
from advisor.reliability.failures.mechanisms import Mechanism, Scope

TIMES = ("start", "end")
_EVENTS, _ONGOING = "events", "ongoing"
_WHERE = "where"
"""The line of a file that an event stands in, for errors."""
_HOURS = {"minutes": 1.0 / 60.0, "hours": 1.0}
_SHARES = (Teaches.SHARE_OF_EVENTS, Teaches.SHARE_OF_DEATHS)
_DIES = "dies"


@dataclass(frozen=True)
class _Event:
    """One event; its length in hours, or None where that was not said."""

    hours: float | None
    goes_on: bool
    shares: Mapping[str, Share]
    variant: str
    struck: tuple[int, int] | None
    brokers: tuple[int, ...]
    start: datetime | None
    end: datetime | None


@dataclass(frozen=True)
class TypedEvents:
    """Reads what was typed of a mechanism.

    history: the cluster in which it was counted, and the time.
    where: for errors.
    """

    entry: Mechanism
    history: ClusterHistory
    where: str

    def read(self, raw: Any) -> tuple[Seen, list[Outage]]:
        """Return what was seen, and the outages whose times are known.

        Raises InputError: anything else than a count, a table of totals or a list of events.
        """
        if isinstance(raw, list | tuple):
            events = [event for given in raw if (event := self._event(given)) is not None]
            return self._added_up(events), [*map(self._outage, filter(_has_start, events))]
        if isinstance(raw, Mapping):
            return self._totals(raw), []
        return Seen(whole_number(raw, self.where)), []

    @cached_property
    def _taught(self) -> Mapping[str, Teaches]:
        return evidence_of(self.entry)

    def _keys(self, *kinds: Teaches) -> list[str]:
        return [key for key, kind in self._taught.items() if kind in kinds]

    # One event after the other

    def _event(self, raw: Any) -> _Event | None:
        """One event; None if it did not begin in the time that was watched."""
        if not isinstance(raw, Mapping):
            raise InputError(f'{self.where}: an event is a table, such as {{"minutes": 40}}.')
        where = str(raw.get(_WHERE, self.where))
        flags = self._keys(*_SHARES, Teaches.EVERY_BROKER)
        counted = self._keys(Teaches.SHARE_OF_BROKERS)
        allowed = (*_HOURS, _ONGOING, "brokers", "racks", *TIMES, *flags, *counted)
        _check_keys(raw, allowed, where)
        start, end = (moment(raw[k], f"{where}: {k}") if k in raw else None for k in TIMES)
        hours, goes_on = self._length(raw, where, start, end)
        ids, number = self._brokers(raw, where)
        racks = whole_number(raw.get("racks", 1), f"{where}: racks", 1, self.history.racks or 1)
        said = {key: flag(raw[key], f"{where}: {key}") for key in flags if key in raw}
        shares = {key: Share(int(value), 1) for key, value in said.items()}
        self._check_deaths(said, where)
        every = self.entry.every.key if self.entry.every else ""
        shares.pop(every, None)
        for key in counted:
            if key in raw:
                struck = number or self._standing_in(racks)
                lost = whole_number(raw[key], f"{where}: {key}", 0, struck)
                shares[key] = Share(lost, struck)
        for key in self._keys(Teaches.SHARE_OF_RACKS):
            if "racks" in raw and self.history.racks:
                shares[key] = Share(racks - 1, self.history.racks - 1)
        if not self._is_inside(start):
            return None
        return _Event(
            hours=hours,
            goes_on=goes_on,
            shares=shares,
            variant=next((v.chance.key for v in self.entry.variants if said.get(v.chance.key)), ""),
            struck=self._struck(said.get(every), number, where),
            brokers=ids,
            start=start,
            end=None if goes_on else end,
        )

    def _is_inside(self, start: datetime | None) -> bool:
        since, until = self.history.since, self.history.until
        return start is None or since is None or until is None or since <= start < until

    def _length(
        self, raw: Mapping[str, Any], where: str, start: datetime | None, end: datetime | None
    ) -> tuple[float | None, bool]:
        """How many hours it lasted, and whether it went on then."""
        stated = [key for key in _HOURS if key in raw]
        goes_on = flag(raw.get(_ONGOING, False), f"{where}: {_ONGOING}")
        if len(stated) + (end is not None) > 1 or (end is not None and goes_on):
            raise InputError(f"{where}: say how long it lasted once: minutes, hours, or its end.")
        if end is not None and start is None:
            raise InputError(f"{where}: it has an end and no start.")
        hours: float | None = None
        until = self.history.until
        if stated:
            hours = amount(raw[stated[0]], f"{where}: {stated[0]}") * _HOURS[stated[0]]
        elif start is not None and (end is not None or until is not None):
            # What has no end, or a later one, goes on when the watch is over.
            goes_on = end is None or (until is not None and end > until)
            last = until if goes_on or end is None else end
            assert last is not None
            if self._is_inside(start) and last < start:
                raise InputError(f"{where}: it ends before it starts.")
            hours = max((last - start).total_seconds() / 3600.0, 0.0)
        if hours is not None and self._is_inside(start):
            self._check_length(hours, where)
        return hours, goes_on

    def _check_length(self, hours: float, where: str) -> None:
        if not 0.0 < hours <= self.history.years * HOURS_PER_YEAR:
            raise InputError(
                f"{where}: it lasted {as_given(hours)} hours; it must be more than 0 and no more "
                "than all the time that was watched."
            )

    def _brokers(self, raw: Mapping[str, Any], where: str) -> tuple[tuple[int, ...], int]:
        """The ids of the brokers that were struck, if given, and their number; 0 if not said."""
        if "brokers" not in raw:
            return (), 0
        given, largest = raw["brokers"], self.history.brokers
        ids: tuple[int, ...] = ()
        if isinstance(given, list | tuple):
            ids = tuple(whole_number(broker, f"{where}: brokers") for broker in given)
            given = len(set(ids))
        number = whole_number(given, f"{where}: brokers", 1, largest)
        if self.entry.scope is Scope.BROKER and number > 1:
            raise InputError(
                f"{where}: {self.entry.name} strikes one broker, not {number}; several at once by "
                "one cause are one event of a rack.* or cluster.* mechanism, else an event each."
            )
        return ids, number

    def _standing_in(self, racks: int) -> int:
        """How many brokers some racks have, or the cluster."""
        if self.entry.scope is Scope.RACK and self.history.racks:
            return max(1, round(self.history.brokers * racks / self.history.racks))
        return self.history.brokers if self.entry.scope is Scope.CLUSTER else 1

    def _struck(self, every: bool | None, number: int, where: str) -> tuple[int, int] | None:
        """How many brokers of how many an event struck that may strike some."""
        if not self._keys(Teaches.EACH_BROKER):
            return None
        whole = self.history.brokers
        if every is False and not number:
            raise InputError(f"{where}: it did not strike all; say how many brokers it did.")
        if every is not None and number and every != (number == whole):
            raise InputError(f"{where}: {number} of {whole} brokers, and all={every}: which?")
        return (number or whole, whole) if number or every else None

    def _check_deaths(self, said: Mapping[str, bool], where: str) -> None:
        for key in self._keys(Teaches.SHARE_OF_DEATHS):
            if key in said and not said.get(_DIES):
                raise InputError(f"{where}: {key} is said of a broker that died; say {_DIES}, too.")

    def _added_up(self, events: Sequence[_Event]) -> Seen:
        lengths: dict[str, list[list[float]]] = {}
        shares: dict[str, Share] = {}
        for event in events:
            key = length_key(self.entry, event.variant)
            if key and event.hours is not None:
                both = lengths.setdefault(key, [[], []])
                both[event.goes_on].append(event.hours * per_hour(key))
            for name, share in event.shares.items():
                before = shares.get(name, Share(0, 0))
                shares[name] = Share(before.happened + share.happened, before.of + share.of)
        return Seen(
            events=len(events),
            lengths={key: Lengths(*map(tuple, both)) for key, both in lengths.items()},
            shares=shares,
            struck=tuple(event.struck for event in events if event.struck is not None),
        )

    def _outage(self, event: _Event) -> Outage:
        assert event.start is not None
        return Outage(
            mechanism=self.entry.name,
            brokers=event.brokers,
            start=event.start,
            end=event.end,
            evidence="typed",
            cluster=self.history.name,
        )

    # Totals

    def _totals(self, raw: Mapping[str, Any]) -> Seen:
        where = str(raw.get(_WHERE, self.where))
        long = {key: key for key in self._keys(Teaches.LENGTH)}
        own = length_key(self.entry)
        long |= dict.fromkeys(_HOURS, own) if own else {}
        flags = self._keys(*_SHARES)
        _check_keys(raw, (_EVENTS, *long, *flags), where)
        if _EVENTS not in raw:
            raise InputError(f"{where}: say how many events there were (events).")
        events = whole_number(raw[_EVENTS], f"{where}: {_EVENTS}")
        lengths: dict[str, Lengths] = {}
        for typed, key in long.items():
            if typed not in raw:
                continue
            if key in lengths:
                raise InputError(f"{where}: give minutes or hours, not both.")
            hours = self._lengths(raw[typed], f"{where}: {typed}", per_hour(typed))
            lengths[key] = Lengths(tuple(length * per_hour(key) for length in hours))
        if sum(len(seen.ended) for seen in lengths.values()) > events:
            raise InputError(f"{where}: there are more lengths than events.")
        shares: dict[str, Share] = {}
        for key in flags:
            if key in raw:
                of = events
                if self._taught[key] is Teaches.SHARE_OF_DEATHS:
                    of = whole_number(raw.get(_DIES), f"{where}: {_DIES}", 0, events)
                shares[key] = Share(whole_number(raw[key], f"{where}: {key}", 0, of), of)
        return Seen(events, lengths, shares)

    def _lengths(self, raw: Any, where: str, per_hour_typed: float) -> list[float]:
        """Lengths in hours."""
        if not isinstance(raw, list | tuple):
            raise InputError(f"{where}: give a list, with the length of each outage.")
        hours = [amount(length, where) / per_hour_typed for length in raw]
        for length in hours:
            self._check_length(length, where)
        return hours


def _has_start(event: _Event) -> bool:
    return event.start is not None


def _check_keys(raw: Mapping[str, Any], allowed: Collection[str], where: str) -> None:
    for key in raw:
        if key not in allowed and key != _WHERE:
            raise InputError(f"{where}: {shown(key)} is no key of it; {near(key, allowed)}")


def near(word: Any, allowed: Collection[str]) -> str:
    """Return the known word that is most like another, as a question; else all of them."""
    close = difflib.get_close_matches(str(word), allowed, n=1)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(allowed)}."


def whole_number(raw: Any, where: str, smallest: int = 0, largest: int = 2**53) -> int:
    """Return a whole number within limits.

    Raises InputError if it is something else.
    """
    is_number = isinstance(raw, Real) and not isinstance(raw, bool)
    if not is_number or not math.isfinite(raw) or raw != int(raw):
        raise InputError(f"{where} must be a whole number, not {shown(raw)}.")
    number = int(raw)
    if not smallest <= number <= largest:
        limits = f"from {smallest:,} to {largest:,}"
        limits = limits if largest < 2**53 else f"{smallest:,} or more"
        raise InputError(f"{where} must be {limits}, but is {shown(raw)}.")
    return number


def amount(raw: Any, where: str) -> float:
    """Return a number that is not negative.

    Raises InputError if it is something else.
    """
    if isinstance(raw, bool) or not isinstance(raw, Real) or not math.isfinite(raw):
        raise InputError(f"{where} must be a finite number, not {shown(raw)}.")
    if raw < 0:
        raise InputError(f"{where} must not be negative, but is {shown(raw)}.")
    return float(raw)


def flag(raw: Any, where: str) -> bool:
    """Return yes or no.

    Raises InputError if it is something else.
    """
    if isinstance(raw, bool):
        return raw
    raise InputError(f"{where} must be true or false, not {shown(raw)}.")


def moment(raw: Any, where: str) -> datetime:
    """Return a time in UTC, in which a text or date without a zone is taken to be.

    Raises InputError if it is no time.

    >>> moment("2026-03-01 12:30", "start"), moment("2026-03-01T12:30+02:00", "start").hour
    (datetime.datetime(2026, 3, 1, 12, 30, tzinfo=datetime.timezone.utc), 10)
    """
    value = raw
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            value = None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if not isinstance(value, datetime):
        raise InputError(f'{where} must be a time, such as "2026-03-01 12:30", not {shown(raw)}.')
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
