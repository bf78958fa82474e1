"""A calendar of rolling restarts: when brokers restart, how many at once, and what they wait for.

A card has it as its section ``[calendar]``. It says *when*; how long a restart takes and how it may
end are the numbers of ``[broker.restart]``, which a card may also write into ``[calendar]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from advisor.arguments import suggestion, suggests_names
from advisor.errors import InputError, NotComputedError, shown
from advisor.formatting import HOURS_PER_YEAR, significant

HOURS_PER_WEEK = 168.0
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ORDERS = ("rack", "id")
RESTART = ("minutes", "shape", "unclean", "unclean_minutes")
"""Numbers of ``[broker.restart]`` that ``[calendar]`` may hold instead."""

_REQUIRED = {
    "weekday": 'the day on which it begins, such as "tuesday"',
    "hour": "the hour at which it begins, from 0 to below 24",
    "every_weeks": "how many weeks pass from one to the next",
}
_OPTIONAL = ("at_once", "wait_for_isr", "order", "pause_minutes", "catch_up_minutes")
KEYS = (*_REQUIRED, *_OPTIONAL, *RESTART)
"""What ``[calendar]`` may hold."""
_MOST_WEEKS, _MOST_BROKERS, _MOST_MINUTES = 520, 10_000, 600_000.0
_OWN_EVIDENCE = "own: [calendar]"
_RATE, _OVERLAP, _LIFETIME = "per_year", "overlap", "lifetime"
_SECTION = ("broker", "restart")
RATE_PATH = ".".join((*_SECTION, _RATE))
"""The number of a card that follows from the calendar."""

Failing = Callable[[str, str], Exception]
"""Makes the error for a dotted key of a card, given what is wrong with it."""


@suggests_names
@dataclass(frozen=True, kw_only=True)
class Calendar:
    """When rolling restarts begin, and how they go from broker to broker.

    Parameters
    ----------
    weekday : str
        "monday" to "sunday".
    hour : float
        At which a rolling restart begins, by the cluster's clock (UTC if yours runs on UTC), from
        0 to below 24; 2.5 is half past two. `Workload(hourly=)` is read by the same clock.
    every_weeks : int
        Weeks from one to the next. One that is still under way when the next is due replaces it.
    at_once : int, default 1
        Brokers that restart at the same moment.
    wait_for_isr : bool, default True
        Whether the next brokers wait until every broker is up and every replica in sync. Without
        waiting they stop when the last ones run again, whatever else is out.
    order : {"rack", "id"}, default "rack"
        Rack by rack, as `rolling-restart.sh` of a recommendation does: brokers of different racks
        never restart together. Or by broker id, whatever the rack.
    pause_minutes : float, default 0
        From when the next brokers may restart until they do.
    catch_up_minutes : float, optional
        The part of ``minutes`` in which a restarted broker runs, and its replicas are not in sync
        yet. Default: half, for a broker needs about as long to catch up as it was away.

    Raises
    ------
    InputError
        If a value is out of range.

    Examples
    --------
    >>> monthly = Calendar(weekday="tuesday", hour=2, every_weeks=4)
    >>> round(monthly.per_year, 2)
    13.04
    >>> monthly.words
    'every 4 weeks on Tuesday at 2:00, one broker at a time, the next when all replicas are in sync'
    """

    weekday: str
    hour: float
    every_weeks: int
    at_once: int = 1
    wait_for_isr: bool = True
    order: str = "rack"
    pause_minutes: float = 0.0
    catch_up_minutes: float | None = None

    def __post_init__(self) -> None:
        for key, value in asdict(self).items():
            wrong = _problem(key, value)
            if wrong:
                raise InputError(f"{key} {wrong}")

    @property
    def per_year(self) -> float:
        """Rolling restarts, and so restarts of each broker, in a year of 8760 hours."""
        return HOURS_PER_YEAR / self.period_hours

    @property
    def period_hours(self) -> float:
        """Hours from the begin of one rolling restart to that of the next."""
        return self.every_weeks * HOURS_PER_WEEK

    @property
    def hour_of_week(self) -> float:
        """Hours from Monday 0:00 until a rolling restart begins."""
        return WEEKDAYS.index(self.weekday) * 24.0 + self.hour

    @property
    def words(self) -> str:
        """The calendar in words, without a full stop."""
        weeks = "every week" if self.every_weeks == 1 else f"every {self.every_weeks} weeks"
        brokers = "one broker" if self.at_once == 1 else f"{self.at_once} brokers"
        brokers += " at a time" + ("" if self.order == "rack" else " in the order of their ids")
        then = "the next when all replicas are in sync"
        if not self.wait_for_isr:
            then = "the next without waiting for replicas to be in sync"
        hours, minutes = divmod(round(60.0 * self.hour), 60)
        pause = f", {significant(self.pause_minutes)} minutes later" if self.pause_minutes else ""
        begins = f"on {self.weekday.capitalize()} at {hours}:{minutes:02}"
        return f"{weeks} {begins}, {brokers}, {then}{pause}"

    def catch_up_share(self, minutes: float) -> float:
        """Part of a restart of ``minutes`` in which the broker runs but is not in sync yet."""
        if self.catch_up_minutes is None:
            return 0.5
        return min(self.catch_up_minutes / minutes, 1.0)

    def to_dict(self) -> dict[str, Any]:
        """The keys of ``[calendar]`` in a card, without those that are not given."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def check_exact(self) -> None:
        """Refuse what the exact answer cannot hold.

        Raises
        ------
        NotComputedError
            If several brokers restart at once, or the next ones do not wait.
        """
        if self.at_once == 1 and self.wait_for_isr:
            return
        which = "wait_for_isr=false" if self.at_once == 1 else f"at_once={self.at_once}"
        raise NotComputedError(
            f"calendar.{which}: the exact answer holds one restart at a time that waits for the "
            "ISR; ask advisor.simulate or advisor.patching for this card"
        )


def take_calendar(
    tables: Mapping[str, Any], failing: Failing
) -> tuple[Calendar | None, Mapping[str, Any]]:
    """Take the calendar out of a card's tables, and put in the rate that follows from it.

    Raises Exception: what ``failing`` makes.
    """
    if "calendar" not in tables:
        return None, tables
    content = tables["calendar"]
    if not isinstance(content, Mapping):
        raise failing("calendar", f"must be a table, not {shown(content)}.")
    for key, value in content.items():
        if key not in KEYS:
            meant = suggestion(str(key), KEYS)
            hint = f"did you mean '{meant}'?" if meant else f"known are {', '.join(KEYS)}."
            raise failing(f"calendar.{key}", f"is no key of a calendar; {hint}")
        wrong = _problem(key, value)
        if wrong:
            raise failing(f"calendar.{key}", f"{wrong}.")
    for key, meaning in _REQUIRED.items():
        if key not in content:
            raise failing("calendar", f"has no {key}; say {meaning}.")
    calendar = Calendar(**{key: content[key] for key in content if key not in RESTART})
    rest = {name: section for name, section in tables.items() if name != "calendar"}
    broker = rest.get("broker", {})
    restart = broker.get("restart", {}) if isinstance(broker, Mapping) else None
    if not isinstance(restart, Mapping):
        # Rejected later, with every other section that is not a table.
        return calendar, rest
    merged = _merged(calendar, content, restart, failing)
    return calendar, {**rest, "broker": {**broker, "restart": merged}}


def with_calendar(tables: Mapping[str, Any], keys: Mapping[str, object]) -> dict[str, Any]:
    """Return the tables of a card with other keys of the calendar, and without what it replaces."""
    replaced = {_RATE, _OVERLAP, _LIFETIME, *(key for key in RESTART if key in keys)}
    broker = dict(tables.get("broker", {}))
    restart = broker.get("restart", {})
    broker["restart"] = {key: restart[key] for key in restart if key not in replaced}
    return {**tables, "broker": broker, "calendar": {**tables.get("calendar", {}), **keys}}


def _merged(
    calendar: Calendar, content: Mapping[str, Any], restart: Mapping[str, Any], failing: Failing
) -> dict[str, Any]:
    """``[broker.restart]`` with the numbers of the calendar."""
    says = {
        _RATE: "says how often brokers restart, and so does calendar.every_weeks",
        _OVERLAP: "says how often a restart does not wait, and so does calendar.wait_for_isr",
        _LIFETIME: "says when brokers restart, and so does the calendar",
    }
    for key, why in says.items():
        if key in restart:
            raise failing(".".join((*_SECTION, key)), f"{why}; leave out one of them.")
    for key in RESTART:
        if key in content and key in restart:
            raise failing(
                f"calendar.{key}", f"is given in [{'.'.join(_SECTION)}], too; leave out one."
            )
    if "minutes" not in {*content, *restart}:
        raise failing("calendar", "has no minutes; say how long a restart takes on average.")
    own = {key: content[key] for key in RESTART if key in content}
    numbers = {_RATE: calendar.per_year, **own}
    bare = {key: value for key, value in numbers.items() if not isinstance(value, Mapping)}
    said = {key: {"value": value, "evidence": _OWN_EVIDENCE} for key, value in bare.items()}
    return {**restart, **numbers, **said}


def _problem(key: str, value: object) -> str:
    """What is wrong with a value of the calendar, without a full stop; "" if nothing is."""
    if key in ("weekday", "order"):
        known = WEEKDAYS if key == "weekday" else ORDERS
        if isinstance(value, str) and value in known:
            return ""
        meant = suggestion(value, known) if isinstance(value, str) else None
        hint = f"; did you mean '{meant}'" if meant else ""
        return f"must be one of {', '.join(known)}, not {shown(value)}{hint}"
    if key == "wait_for_isr":
        return "" if isinstance(value, bool) else f"must be true or false, not {shown(value)}"
    if key in ("at_once", "every_weeks"):
        most = _MOST_BROKERS if key == "at_once" else _MOST_WEEKS
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= most:
            return ""
        return f"must be a whole number from 1 to {most:,}, not {shown(value)}"
    if key in RESTART and isinstance(value, Mapping):
        # A number with its range, checked with those of all mechanisms.
        return ""
    if key == "catch_up_minutes" and value is None:
        return ""
    return _problem_of_number(key, value)


def _problem_of_number(key: str, value: object) -> str:
    # Not isfinite, which fails for integers beyond floats.
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not -math.inf < value < math.inf
    ):
        return f"must be a number, not {shown(value)}"
    if key == "hour":
        return "" if 0 <= value < 24 else f"must be from 0 to below 24, not {shown(value)}"
    if key == "unclean":
        return "" if 0 <= value <= 1 else f"is a probability, from 0 to 1, not {shown(value)}"
    if key in RESTART:
        if 0 < value <= _MOST_MINUTES:
            return ""
        return f"must be more than 0, at most {_MOST_MINUTES:,.0f}, not {shown(value)}"
    right = 0 <= value <= _MOST_MINUTES
    return "" if right else f"must be from 0 to {_MOST_MINUTES:,.0f} minutes, not {shown(value)}"
