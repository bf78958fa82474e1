"""The measures of a setting: what each is called, its unit, and what is better.

One entry is all that tables, texts and charts know of a measure. `evaluate` and `simulate` compute
its value, which a result has as an attribute of the same name. A share of time in certain states of
a partition says which states those are, and needs nothing else: chain and sampler ask the entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from advisor.errors import InputError
from advisor.formatting import once_in, one_in, significant, time_per_year
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.reduced_state import PartitionState, is_readable, is_writable

PROBABILITY, FRACTION, YEARS = "probability", "fraction of time", "years"
EVENTS, RECORDS = "events/year", "records/year"

States = Callable[[PartitionState, ChainConstants], bool]
"""Some states of a partition. Which slot a broker has must not matter."""


@dataclass(frozen=True)
class Measure:
    """One measure.

    name: as results, goals and tables of data have it.
    unit: one of PROBABILITY, FRACTION, YEARS, EVENTS and RECORDS.
    title: heading of its own, as in a report.
    say: a value in a sentence.
    goal: what a goal for it is about, after "the goal for"; "" if it can be none. `Goals` has a
        field of its name then.
    brief_goal: the same for narrow columns.
    shown: whether reports and the explorer give it a line of its own.
    compared: whether tables that compare settings have a column for it.
    wait: what a time of it is, after the time; "" for a share of time that has availability as its
        rest.
    weighed: what the decision weighs of it, in few words; "" for measures that it does not weigh.
    between: the measure that tells the time between the same events; "" for none.
    read: from a result to its value; by default the attribute of its name.
    states: of a share of time: the states of a partition in which it passes; None for all others.
    in_elections: whether the time until a new leader serves is part of it.
    """

    name: str
    unit: str
    words: str
    title: str
    say: Callable[[float], str]
    goal: str = ""
    brief_goal: str = ""
    shown: bool = False
    compared: bool = False
    wait: str = ""
    weighed: str = ""
    between: str = ""
    read: Callable[[Any], Any] | None = field(default=None, compare=False)
    states: States | None = None
    in_elections: bool = False

    @property
    def is_share(self) -> bool:
        """Whether it cannot exceed 1."""
        return self.unit in (PROBABILITY, FRACTION)

    @property
    def is_probability(self) -> bool:
        """Whether its interval goes by the hazard, so that no end exceeds 1."""
        return self.unit == PROBABILITY

    @property
    def is_time_between(self) -> bool:
        """Whether more of it is better, and inverses add up: a time between events."""
        return self.unit == YEARS

    @property
    def limit(self) -> str:
        """What a limit of it is, in a line of help."""
        if self.unit == PROBABILITY:
            return f"at most this {self.words}, 0 to 1"
        if self.unit == FRACTION:
            return f"{self.words} at most this fraction of the time, 0 to 1"
        return f"at most so many {self.words} a year"

    def holds(self, state: PartitionState, constants: ChainConstants) -> bool:
        """Whether the time counts in which a partition is in a state."""
        return self.states is not None and self.states(state, constants)

    def of(self, result: Any) -> Any:
        """Return the value in a result: a float, or an `Estimate` if it was sampled."""
        return attrgetter(self.name)(result) if self.read is None else self.read(result)

    def best(self, values: Sequence[float]) -> float:
        """Return the best of several values."""
        return max(values) if self.is_time_between else min(values)

    def rest(self, whole: float, floor: float) -> float:
        """Return what a value has beside its floor; the two add up, times between as rates."""
        if not self.is_time_between:
            return whole - floor
        rate = 1.0 / whole - 1.0 / floor
        return 1.0 / rate if rate else math.inf


def _chance(probability: float) -> str:
    return "none" if probability == 0 else f"a {one_in(probability)} chance a year"


def _records(number: float) -> str:
    return f"{significant(number)} a year"


def cannot_write(state: PartitionState, constants: ChainConstants) -> bool:
    """Writes are refused, or wait for ever."""
    return not is_writable(state, constants)


def cannot_read(state: PartitionState, _: ChainConstants) -> bool:
    """No leader serves."""
    return not is_readable(state)


_ENTRIES = (
    Measure(
        "loss_probability_per_year",
        PROBABILITY,
        "chance of data loss in a year",
        "Acknowledged records lost",
        _chance,
        goal="lost records",
        brief_goal="losses",
        shown=True,
        compared=True,
        weighed="losses",
        between="mean_years_to_loss",
    ),
    Measure("loss_events_per_year", EVENTS, "data losses", "Data losses", _records),
    Measure(
        "mean_years_to_loss",
        YEARS,
        "time to the first data loss",
        "Time between losses",
        once_in,
    ),
    Measure(
        "acked_records_lost_per_year",
        RECORDS,
        "acknowledged records lost",
        "Acknowledged records lost a year",
        _records,
        goal="the number of lost records",
        brief_goal="records lost",
    ),
    Measure(
        "write_unavailability",
        FRACTION,
        "writes refused",
        "Writes refused",
        time_per_year,
        goal="time without writes",
        brief_goal="writes",
        shown=True,
        compared=True,
        weighed="time without writes",
        states=cannot_write,
        in_elections=True,
    ),
    Measure(
        "read_unavailability",
        FRACTION,
        "reads not served",
        "Reads not served",
        time_per_year,
        goal="time without reads",
        brief_goal="reads",
        shown=True,
        compared=True,
        states=cannot_read,
        in_elections=True,
    ),
    Measure(
        "write_stalled",
        FRACTION,
        "writes waiting for a slow replica",
        "Writes stalled",
        time_per_year,
        shown=True,
        wait="in which acks=all waits",
    ),
    Measure(
        "records_refused_per_year",
        RECORDS,
        "failed sends",
        "Failed sends",
        _records,
        goal="failed sends",
        brief_goal="failed sends",
        shown=True,
    ),
    Measure(
        "records_dropped_per_year",
        RECORDS,
        "records lost without an acknowledgement",
        "Records lost, never acknowledged",
        _records,
    ),
)

_current: Mapping[str, Measure] = MappingProxyType({entry.name: entry for entry in _ENTRIES})


def table() -> Mapping[str, Measure]:
    """Return the measures by name, in the order of tables."""
    return _current


def entries() -> tuple[Measure, ...]:
    """Return all measures."""
    return tuple(_current.values())


def names() -> tuple[str, ...]:
    """Return the names of all measures."""
    return tuple(_current)


def computed(*units: str) -> tuple[str, ...]:
    """Return the names of the measures, of some units if given, that follow from no other."""
    own = [entry for entry in _current.values() if entry.read is None]
    return tuple(entry.name for entry in own if not units or entry.unit in units)


def of_states() -> tuple[Measure, ...]:
    """Return the measures that are shares of time in certain states, in the order of the table.

    >>> [entry.name for entry in of_states()]
    ['write_unavailability', 'read_unavailability']
    """
    return tuple(entry for entry in _current.values() if entry.states is not None)


def goals() -> tuple[str, ...]:
    """Return the names of the measures that can be limited by a goal."""
    return tuple(name for name, entry in _current.items() if entry.goal)


def weighed() -> tuple[Measure, ...]:
    """Return the measures that the decision weighs against each other."""
    return tuple(entry for entry in _current.values() if entry.weighed)


def weighed_as_times() -> tuple[Measure, ...]:
    """Return the same, or what tells the time between their events: with a scale in charts.

    >>> [entry.name for entry in weighed_as_times()]
    ['mean_years_to_loss', 'write_unavailability']
    """
    return tuple(_current[entry.between] if entry.between else entry for entry in weighed())


def measure(name: str) -> Measure:
    """Return the entry of a measure."""
    if name not in _current:
        raise InputError(f"{name!r} is no measure; there are: {', '.join(_current)}")
    return _current[name]


@contextmanager
def registered(*entries: Measure) -> Iterator[Mapping[str, Measure]]:
    """Add measures for the duration of a ``with`` block.

    >>> with registered(Measure("noise", RECORDS, "noise", "Noise", str)) as measures:
    ...     "noise" in measures
    True
    """
    global _current
    before = _current
    _current = MappingProxyType({**before, **{entry.name: entry for entry in entries}})
    try:
        yield _current
    finally:
        _current = before
