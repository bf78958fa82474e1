"""Read the distributions of times and the repair crews from a card.

What a card can say without them, a gamma duration or exponential times, is read as that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

from advisor.errors import shown
from advisor.formatting import HOURS_PER_YEAR, as_given, significant
from advisor.reliability.failures.card_origin import Origin, nearest
from advisor.reliability.failures.mechanism import Mechanism
from advisor.reliability.failures.mechanisms import PER_YEAR, SHAPE, table
from advisor.reliability.failures.times.time_distribution import (
    EMPIRICAL,
    EXPONENTIAL,
    GAMMA,
    HOURS_PER_UNIT,
    KINDS,
    TimeDistribution,
)
from advisor.rendering import one_line

LIFETIME, DURATION = "lifetime", "duration"
"""Keys of a mechanism: the time from the end of its last outage to the next event of one broker,
rack or cluster, and the length of its outages."""
REPAIR, CREWS, NEEDED_FOR = "repair", "crews", "needed_for"
CREWS_PATH = f"{REPAIR}.{CREWS}"
"""Number of repairs that progress at a time; unlimited if left out."""

_EVIDENCE, _DISTRIBUTION = "evidence", "distribution"
_LEAST, _MOST, _MOST_VALUES = 1e-9, 1e9, 100_000
# A mean that people round is this near to that of the list.
_ROUNDED = 0.01


class _Stated(Protocol):
    @property
    def value(self) -> float: ...

    @property
    def is_range(self) -> bool: ...


@dataclass(frozen=True)
class CardTimes:
    """What a card says of times beyond their means.

    tables: the card without it, with what follows from it: the mean of a list, a gamma shape.
    distributions: by path, such as "broker.crash.lifetime".
    needed_for: the mechanisms whose repairs wait for a crew; () without crews.
    """

    tables: Mapping[str, object]
    distributions: Mapping[str, TimeDistribution]
    needed_for: tuple[str, ...]

    def check_numbers(self, numbers: Mapping[str, _Stated], origin: Origin) -> None:
        """Refuse a list of times whose mean is not what the card states, and a range of crews."""
        if CREWS_PATH in numbers and numbers[CREWS_PATH].is_range:
            raise origin.error(CREWS_PATH, "is a whole number and has no low and high.")
        for path, distribution in self.distributions.items():
            section, _, key = path.rpartition(".")
            stated_in, says = _mean_of(table()[section], key, distribution)
            given = numbers[stated_in].value if says else 0.0
            if says and abs(given / says - 1.0) > _ROUNDED:
                raise origin.error(
                    stated_in,
                    f"is {as_given(given)}, but the times listed in {path} have a mean of "
                    f"{significant(says, 4)}; leave {stated_in.rpartition('.')[2]} out, or "
                    "correct one of them.",
                )


def repaired_by_hand() -> tuple[str, ...]:
    """The mechanisms whose repairs need a crew, unless the card says which."""
    return tuple(entry.name for entry in table().entries if entry.by_hand)


def time_keys(section: str) -> tuple[str, ...]:
    """The keys of a section that hold no number."""
    if section == REPAIR:
        return (NEEDED_FOR,)
    return (LIFETIME, DURATION) if section in table() else ()


def read_times(tables: Mapping[str, object], origin: Origin) -> CardTimes:
    """Separate distributions and crews from the numbers of a card."""
    distributions: dict[str, TimeDistribution] = {}
    left: dict[str, object] = dict(tables)
    for entry in table().entries:
        group, _, name = entry.name.partition(".")
        sections = left.get(group)
        content = sections.get(name) if isinstance(sections, Mapping) else None
        if not isinstance(content, Mapping) or not {LIFETIME, DURATION} & set(content):
            continue
        assert isinstance(sections, Mapping)
        numbers = {key: raw for key, raw in content.items() if key not in (LIFETIME, DURATION)}
        for key in (LIFETIME, DURATION):
            if key in content:
                read = _distribution(content[key], f"{entry.name}.{key}", origin)
                numbers |= _stated(entry, key, read, numbers, origin)
                if not _is_a_number(entry, key, read):
                    distributions[f"{entry.name}.{key}"] = read
        left[group] = {**sections, name: numbers}
    needed_for = _needed_for(left.get(REPAIR), origin)
    repair = left.get(REPAIR)
    if isinstance(repair, Mapping):
        left[REPAIR] = {key: raw for key, raw in repair.items() if key != NEEDED_FOR}
    return CardTimes(left, distributions, needed_for)


def _is_a_number(entry: Mechanism, key: str, read: TimeDistribution) -> bool:
    """Whether the numbers of a card say the same: no distribution, or the shape of a gamma."""
    if read.kind == GAMMA and key == DURATION:
        return bool(entry.shape_path)
    return read.kind == EXPONENTIAL


def _stated(
    entry: Mechanism,
    key: str,
    read: TimeDistribution,
    numbers: Mapping[str, object],
    origin: Origin,
) -> dict[str, object]:
    """The numbers of a mechanism that follow from a distribution, as a card would write them."""
    path = f"{entry.name}.{key}"
    if key == DURATION and not entry.duration[0]:
        raise origin.error(
            path, f"is no key of a card; what it leaves behind ends as {entry.ends_as} says."
        )
    if key == DURATION and SHAPE.key in numbers:
        raise origin.error(
            path, "and shape are both given; shape is that of a gamma duration: give one of them."
        )
    if key == DURATION and _is_a_number(entry, key, read):
        shape = {"value": read.parameter, _EVIDENCE: read.evidence}
        return {SHAPE.key: shape} if read.kind == GAMMA else {}
    mean, says = _mean_of(entry, key, read)
    mean = mean.rpartition(".")[2]
    if not says or mean in numbers:
        return {}
    return {mean: {"value": says, _EVIDENCE: read.evidence}}


def _mean_of(entry: Mechanism, key: str, read: TimeDistribution) -> tuple[str, float]:
    """The path of a card's number for the mean, and what listed times say of it; 0 for none."""
    hours = read.values_mean_hours
    if key == LIFETIME:
        return entry.path(PER_YEAR), HOURS_PER_YEAR / hours if hours else 0.0
    path, units_per_hour = entry.duration
    return path, hours * units_per_hour


def _distribution(raw: object, path: str, origin: Origin) -> TimeDistribution:
    if not isinstance(raw, Mapping) or _DISTRIBUTION not in raw:
        raise origin.error(
            path, f'needs a distribution, such as {{ {_DISTRIBUTION} = "weibull", shape = 0.7 }}.'
        )
    names = [kind.name for kind in KINDS]
    name = raw[_DISTRIBUTION]
    if name not in names:
        close = nearest(name, names) if isinstance(name, str) else f"known are {', '.join(names)}."
        raise origin.error(path, f"has the unknown distribution {shown(name)}; {close}")
    kind = names.index(str(name))
    allowed = [KINDS[kind].number] if KINDS[kind].number else []
    allowed = [*HOURS_PER_UNIT] if kind == EMPIRICAL else allowed
    for key in raw:
        if key not in (_DISTRIBUTION, _EVIDENCE, *allowed):
            near = nearest(str(key), [_DISTRIBUTION, _EVIDENCE, *allowed])
            raise origin.error(path, f"holds {shown(key)}, which {name} does not take; {near}")
    evidence = raw.get(_EVIDENCE, "")
    if not isinstance(evidence, str):
        raise origin.error(path, f"needs a text as evidence, not {shown(evidence)}.")
    evidence = one_line(evidence.strip())
    if kind == EMPIRICAL:
        unit, values = _observed(raw, path, origin)
        return TimeDistribution(kind, values=values, unit=unit, evidence=evidence)
    parameter = 1.0
    if allowed:
        parameter = _parameter(raw, kind, path, origin)
    return TimeDistribution(kind, parameter, evidence=evidence)


def _parameter(raw: Mapping[str, Any], kind: int, path: str, origin: Origin) -> float:
    name, key, least, most = KINDS[kind]
    if key not in raw:
        raise origin.error(path, f"has no {key}, which {name} needs.")
    number = _number(raw[key], f"{path}.{key}", origin)
    if not least <= number <= most:
        raise origin.error(
            f"{path}.{key}",
            f"must lie between {as_given(least)} and {as_given(most)}, but is {as_given(number)}.",
        )
    return number


def _observed(raw: Mapping[str, Any], path: str, origin: Origin) -> tuple[str, tuple[float, ...]]:
    units = [unit for unit in HOURS_PER_UNIT if unit in raw]
    if len(units) != 1:
        raise origin.error(path, "needs one list of observed times: minutes, hours or days.")
    values, place = raw[units[0]], f"{path}.{units[0]}"
    if not isinstance(values, list | tuple) or not 0 < len(values) <= _MOST_VALUES:
        raise origin.error(place, f"must be a list of 1 to {_MOST_VALUES:,} observed times.")
    numbers = tuple(_number(value, place, origin) for value in values)
    for number in numbers:
        if not _LEAST <= number <= _MOST:
            raise origin.error(
                place, f"holds {as_given(number)}; a time lies between {_LEAST:g} and {_MOST:g}."
            )
    return units[0], numbers


def _number(raw: object, path: str, origin: Origin) -> float:
    if isinstance(raw, bool) or not isinstance(raw, Real):
        raise origin.error(path, f"must be a number, not {shown(raw)}.")
    try:
        number = float(raw)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number <= 0.0:
        raise origin.error(path, f"must be a finite number above 0, but is {as_given(number)}.")
    return number


def _needed_for(repair: object, origin: Origin) -> tuple[str, ...]:
    """The mechanisms whose repairs wait for a crew, in the order of the table."""
    if not isinstance(repair, Mapping):
        return ()
    path = f"{REPAIR}.{NEEDED_FOR}"
    raw = repair.get(NEEDED_FOR)
    if CREWS not in repair:
        if raw is not None:
            raise origin.error(REPAIR, f"has no {CREWS}; say how many there are.")
        return ()
    if raw is None:
        return repaired_by_hand()
    if not isinstance(raw, list | tuple) or not raw:
        raise origin.error(
            path, f'must be a list of mechanisms, such as ["{repaired_by_hand()[0]}"].'
        )
    possible = _each_by_itself()
    for name in raw:
        if name not in possible:
            near = nearest(name, possible) if isinstance(name, str) else ""
            raise origin.error(
                path, f"holds {shown(name)}, whose repairs cannot wait for a crew; {near}".strip()
            )
    return tuple(name for name in possible if name in raw)


def _each_by_itself() -> list[str]:
    """Mechanisms after which each broker is repaired by itself; no restarts among them."""
    known: Iterable[Mechanism] = table().entries
    return [
        entry.name
        for entry in known
        if entry.condition and not (entry.together or entry.exclusive or entry.effect.of_quorum)
    ]
