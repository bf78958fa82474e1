"""Read a failure-model card: nested tables in, flat and checked quantities out.

Anything that `sections` does not name is refused: a misspelt mechanism would silently not happen.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path

from advisor import catalog
from advisor.errors import ModelError, shown
from advisor.files import read_input
from advisor.formatting import as_given, significant
from advisor.parsing import is_unicode, read_toml
from advisor.reliability.calendar import Calendar, take_calendar
from advisor.reliability.failures.card_origin import Origin, check_evidence, nearest
from advisor.reliability.failures.distributions import LARGEST_SHAPE, range_of, rate_at
from advisor.reliability.failures.mechanisms import (
    MINUTES,
    PER_YEAR,
    SHAPE,
    Mechanism,
    Number,
    table,
)
from advisor.reliability.failures.times.card_times import (
    CREWS,
    CREWS_PATH,
    REPAIR,
    read_times,
    time_keys,
)
from advisor.reliability.failures.times.time_distribution import TimeDistribution
from advisor.rendering import one_line

_SESSIONS = "until the controller acts on a dead broker, in session timeouts, with {}"
OTHER_NUMBERS: dict[str, tuple[Number, ...]] = {
    "flush": (Number("seconds", "until a written record is on disk"),),
    "detection": (
        Number(
            "seconds",
            "until the controller acts on a dead broker",
            required=False,
            measured_by="kill a broker; time until its partitions have other leaders",
        ),
        Number("kraft_sessions", _SESSIONS.format("KRaft"), required=False),
        Number("zookeeper_sessions", _SESSIONS.format("ZooKeeper"), required=False),
    ),
    "election": (
        Number(
            "ms_per_leader",
            "for each leader that moves",
            measured_by="kill a broker; time from the first to the last new leader, over leaders",
        ),
    ),
    "copy": (
        Number(
            "bytes_per_second",
            "at which a replaced broker copies",
            measured_by="your throttle, or ReplicationBytesInPerSec of a broker that catches up",
        ),
    ),
    "operator": (
        Number(
            "hours",
            "until someone elects by hand a replica that remains",
            measured_by="a drill: from the page to an unclean election by hand",
        ),
    ),
    REPAIR: (Number(CREWS, "repairs that go on at the same time"),),
}
"""The sections of a card that are no mechanism, and their numbers."""


def sections() -> dict[str, tuple[str, ...]]:
    """The sections of a card and the numbers each may hold: mechanisms first, in table order."""
    return {name: tuple(n.key for n in numbers) for name, numbers in _numbers_by_section().items()}


def _numbers_by_section() -> dict[str, tuple[Number, ...]]:
    return {entry.name: entry.numbers for entry in table().entries} | OTHER_NUMBERS


def unit_of(path: str) -> str:
    """Return the unit of a card's number: "per year", "minutes"; "" for an unknown number."""
    section, _, key = path.rpartition(".")
    numbers = _numbers_by_section().get(section, ())
    return next((number.unit for number in numbers if number.key == key), "")


HOSTINGS = ("own", "cloud", "managed")
"""Whose power, disks and brokers they are: the reader's, rented, or run by a provider."""
_HOSTING = "hosting"
_TEXTS = ("title", "when_to_use", _HOSTING)
# A mean of nothing is a repair at infinite speed, which no chain or sampler can hold.
_MORE_THAN_ZERO = ("minutes", "hours", "bytes_per_second", "shape", "exposure_years")
# The standard normal's 97.5 % point: low and high are 2.5 % and 97.5 % points.
_Z_975 = 1.959963984540054
_WHY = {
    "per_year": "; say how often it happens",
    "minutes": "; say how long it lasts on average",
    "hours": "; say how long it takes on average",
}
_RANGE_KEYS = ("value", "low", "high")
_COUNT_KEYS = ("events", "exposure_years")
_PRODUCT = "minutes_per_year"
_QUANTITY_KEYS = (*_RANGE_KEYS, *_COUNT_KEYS, _PRODUCT, "evidence")
# No failure is so rare or so long, and products of a few such numbers still fit into a float.
_LEAST, _MOST = 1e-15, 1e15
# Over a year; longer ones take minutes to solve.
MOST_HOURS = 10_000.0
_UNITS_PER_HOUR = {"minutes": 60.0, "hours": 1.0, "seconds": 3600.0}
_MOST_BYTES = 1_000_000
# Beyond this a float cannot represent every whole number.
_MOST_EVENTS = 2**53


@dataclass(frozen=True)
class Quantity:
    """A number with its 95 % range and the evidence for it.

    value, low, high: best estimate (a median) and the 2.5 % and 97.5 % points; all equal if it is
        exact.
    evidence: an id of `data/failure_rates.csv`, or "own: ..." in a card of the reader's own; may be
        "".
    events, exposure_years: the count that a rate was learned from, if it was: value, low and high
        follow from it.
    minutes_per_year: value, low and high of the product of rate and mean minutes, where only that
        is known: those of the rate are the same over the value of the minutes.
    """

    value: float
    low: float
    high: float
    evidence: str = ""
    events: int | None = None
    exposure_years: float | None = None
    minutes_per_year: tuple[float, float, float] | None = None

    def at(self, deviate: float) -> float:
        """Return the number at a standard normal deviate: 0 is the value, 1.96 the high.

        A rate from a count follows its gamma distribution. Other numbers follow a two-piece
        lognormal through low, value and high; a half that ends at 0 has no logarithm and is
        linear in the deviate instead, cut at 0.
        """
        if self.events is not None and self.exposure_years is not None:
            return rate_at(self.events, self.exposure_years, deviate)
        end = self.high if deviate > 0 else self.low
        share = abs(deviate) / _Z_975
        if self.value > 0 and end > 0:
            return self.value * math.exp(share * math.log(end / self.value))
        return max(0.0, self.value + (end - self.value) * share)

    @property
    def is_range(self) -> bool:
        """Whether the number is uncertain."""
        return self.low < self.high

    @property
    def texts(self) -> tuple[str, str, str]:
        """Value, low and high as given, or to two digits if from a count or a product."""
        is_given = self.events is None and self.minutes_per_year is None
        say = as_given if is_given else significant
        return say(self.value), say(self.low), say(self.high)

    def __str__(self) -> str:
        value, low, high = self.texts
        return f"{value} ({low} to {high})" if self.is_range else value

    def to_dict(self) -> dict[str, object]:
        """Return what a card would write: the count, or the value or product with its range."""
        if self.minutes_per_year is not None:
            value, low, high = self.minutes_per_year
            return {_PRODUCT: value, "low": low, "high": high, "evidence": self.evidence}
        keys = _RANGE_KEYS if self.events is None else _COUNT_KEYS
        return {key: getattr(self, key) for key in (*keys, "evidence")}


@dataclass(frozen=True)
class Card:
    """A card's texts, its quantities by dotted path in the order of `sections`, its calendar.

    hosting: one of `HOSTINGS`; "" if the card does not say.
    """

    title: str
    when_to_use: str
    quantities: Mapping[str, Quantity]
    times: Mapping[str, TimeDistribution]
    needed_for: tuple[str, ...]
    calendar: Calendar | None = None
    hosting: str = ""


def read_card(path: Path) -> Card:
    """Read a card file, in which every number must name its evidence."""
    try:
        text = read_input(path, _MOST_BYTES).decode("utf-8")
        tables = read_toml(text)
    except OSError as error:
        raise ModelError(f"{path}: cannot be read ({error.strerror}).") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: not UTF-8 text (byte {error.start}).") from error
    except ValueError as error:
        raise ModelError(f"{path}: not valid TOML: {error}.") from error
    origin = Origin(str(path), text)
    card = check_card(tables, origin)
    cited = {path: number.evidence for path, number in card.quantities.items()}
    cited |= {path: number.evidence for path, number in card.times.items()}
    check_evidence(cited, origin, catalog.evidence())
    return card


def check_card(tables: Mapping[str, object], origin: Origin) -> Card:
    """Check nested tables against `sections` and flatten them."""
    quantities: dict[str, Quantity] = {}
    allowed = sections()
    calendar, tables = take_calendar(_table(tables, "the card", origin), origin.error)
    times = read_times(tables, origin)
    given = dict(_sections(times.tables, origin))
    for section, content in given.items():
        # The minutes first, over which a product of rate and minutes is divided.
        for key, raw in sorted(content.items(), key=lambda item: item[0].endswith(PER_YEAR.key)):
            path = f"{section}.{key}"
            if key not in allowed[section]:
                near = nearest(key, (*allowed[section], *time_keys(section)))
                raise origin.error(path, f"is no key of a card; {near}")
            quantities[path] = _quantity(
                raw, path, origin, quantities.get(f"{section}.{MINUTES.key}")
            )
    _check_partners(quantities, set(given), origin)
    times.check_numbers(quantities, origin)
    ordered = (f"{section}.{key}" for section, keys in allowed.items() for key in keys)
    texts = [tables.get(key, "") for key in _TEXTS]
    for key, text in zip(_TEXTS, texts, strict=True):
        if not isinstance(text, str) or not is_unicode(text):
            raise origin.error(key, f"must be a text, not {shown(text)}.")
    hosting = str(texts[2])
    if hosting not in ("", *HOSTINGS):
        raise origin.error(
            _HOSTING, f'is {shown(hosting)}; it must be "own", "cloud" or "managed".'
        )
    return Card(
        title=str(texts[0]),
        when_to_use=str(texts[1]).strip(),
        quantities={path: quantities[path] for path in ordered if path in quantities},
        times=times.distributions,
        needed_for=times.needed_for,
        calendar=calendar,
        hosting=hosting,
    )


def check_number(raw: object, path: str, origin: Origin) -> float:
    """Return `raw` as a float that the key `path` may hold."""
    if isinstance(raw, bool) or not isinstance(raw, Real):
        raise origin.error(path, f"must be a number, not {shown(raw)}.")
    try:
        number = float(raw)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise origin.error(path, f"must be a finite number, not {number}.")
    key = path.rpartition(".")[2]
    if number < 0:
        raise origin.error(path, f"must not be negative, but is {as_given(number)}.")
    if number == 0 and key in _MORE_THAN_ZERO:
        raise origin.error(path, "must be more than 0.")
    if path == CREWS_PATH and (number < 1 or not number.is_integer()):
        raise origin.error(path, f"must be a whole number from 1, but is {as_given(number)}.")
    if number > 1 and is_probability(path):
        raise origin.error(
            path, f"is a probability and must not exceed 1, but is {as_given(number)}."
        )
    return number


def is_probability(path: str) -> bool:
    """Whether the number at a dotted path is a probability."""
    number = _numbers().get(path)
    return number is not None and number.probability


def is_asked(path: str) -> bool:
    """Whether the number at a dotted path is a fact to ask for, and not drawn."""
    number = _numbers().get(path)
    return number is not None and bool(number.question)


def how_to_measure(path: str) -> str:
    """How a user can measure the number at a dotted path; "" if they cannot."""
    number = _numbers().get(path)
    return number.measured_by if number is not None else ""


def largest_drawn(path: str) -> float:
    """The largest number to draw at a path; of shapes, what `advisor.evaluate` solves."""
    if path.rpartition(".")[2] == SHAPE.key:
        return LARGEST_SHAPE
    return 1.0 if is_probability(path) else math.inf


def _numbers() -> dict[str, Number]:
    """All numbers by dotted path."""
    return {f"{s}.{n.key}": n for s, numbers in _numbers_by_section().items() for n in numbers}


def _sections(
    tables: Mapping[str, object], origin: Origin
) -> Iterator[tuple[str, Mapping[str, object]]]:
    allowed = sections()
    groups = {section.partition(".")[0] for section in allowed if "." in section}
    for name, content in tables.items():
        if name in _TEXTS:
            continue
        if name not in groups and name not in allowed:
            meant = nearest(name, [*groups, *allowed, *_TEXTS, "calendar"])
            raise origin.error(name, f"is no section of a card; {meant}")
        nested = _table(content, name, origin)
        if name in allowed:
            yield name, nested
            continue
        for child, inner in nested.items():
            section = f"{name}.{child}"
            if section not in allowed:
                near = [key for key in allowed if key.startswith(f"{name}.")]
                raise origin.error(section, f"is no section of a card; {nearest(section, near)}")
            yield section, _table(inner, section, origin)


def _table(content: object, path: str, origin: Origin) -> Mapping[str, object]:
    if not isinstance(content, Mapping):
        raise origin.error(path, f"must be a table, not {shown(content)}.")
    for key in content:
        if not isinstance(key, str):
            raise origin.error(path, f"has a key that is no text: {shown(key)}.")
    return content


def _quantity(raw: object, path: str, origin: Origin, minutes: Quantity | None) -> Quantity:
    if not isinstance(raw, Mapping):
        value = _given(raw, path, origin)
        return Quantity(value, value, value)
    for key in raw:
        if key not in _QUANTITY_KEYS:
            near = nearest(str(key), _QUANTITY_KEYS)
            raise origin.error(path, f"holds {shown(key)}, which is no part of a number; {near}")
    if any(key in raw for key in _COUNT_KEYS):
        return _counted(raw, path, origin)
    if _PRODUCT in raw:
        return _divided(raw, path, origin, minutes)
    if "value" not in raw:
        raise origin.error(path, "has no value.")
    if ("low" in raw) != ("high" in raw):
        raise origin.error(path, "needs both low and high, or neither.")
    return Quantity(*_range(raw, "value", path, origin), _evidence(raw, path, origin))


def _range(
    raw: Mapping[str, object], key: str, path: str, origin: Origin
) -> tuple[float, float, float]:
    """Return value, low and high; both ends are the value if left out."""
    value = _given(raw[key], path, origin)
    low = _given(raw.get("low", value), path, origin)
    high = _given(raw.get("high", value), path, origin)
    if not low <= value <= high:
        got = ", ".join(map(as_given, (low, value, high)))
        raise origin.error(path, f"needs low <= {key} <= high, got {got}.")
    return value, low, high


def _divided(
    raw: Mapping[str, object], path: str, origin: Origin, minutes: Quantity | None
) -> Quantity:
    """Return a rate of which only the product with its mean minutes is known."""
    if not path.endswith("per_year") or minutes is None:
        raise origin.error(
            path,
            f"has {_PRODUCT}, which only a rate (per_year) beside minutes may; give a value.",
        )
    if "value" in raw:
        raise origin.error(path, f"has both {_PRODUCT} and a value; give one of them.")
    product = _range(raw, _PRODUCT, path, origin)
    value, low, high = (end / minutes.value for end in product)
    evidence = _evidence(raw, path, origin)
    return Quantity(value, low, high, evidence, minutes_per_year=product)


def _given(raw: object, path: str, origin: Origin) -> float:
    """Return a number that a card states; what is drawn from its range may go beyond."""
    number = check_number(raw, path, origin)
    if number != 0 and not _LEAST <= number <= _MOST:
        said = f"must lie between {_LEAST:.0e} and {_MOST:.0e}, but is {as_given(number)}."
        raise origin.error(path, said)
    unit = path.rpartition(".")[2].rpartition("_")[2]
    maximum = MOST_HOURS * _UNITS_PER_HOUR.get(unit, math.inf)
    if number > maximum:
        raise origin.error(path, f"must be at most {as_given(maximum)}, but is {as_given(number)}.")
    return number


def _counted(raw: Mapping[str, object], path: str, origin: Origin) -> Quantity:
    """Return a rate with the range that its count of events leaves."""
    if not path.endswith("per_year"):
        raise origin.error(
            path, "is no rate, and only a rate (per_year) may count events; give a value instead."
        )
    if any(key in raw for key in (*_RANGE_KEYS, _PRODUCT)):
        raise origin.error(
            path, "has both a count and a value; give events and exposure_years, or value."
        )
    if any(key not in raw for key in _COUNT_KEYS):
        raise origin.error(path, "needs both events and exposure_years: how many in how long.")
    number = check_number(raw["events"], f"{path}.events", origin)
    if not number.is_integer() or number > _MOST_EVENTS:
        raise origin.error(f"{path}.events", f"must be a whole number, but is {as_given(number)}.")
    years = check_number(raw["exposure_years"], f"{path}.exposure_years", origin)
    value, low, high = range_of(int(number), years)
    if not 0 < low <= high < math.inf:
        none = f"leaves no rate that can be computed: {as_given(years)} years."
        raise origin.error(f"{path}.exposure_years", none)
    _given(value, path, origin)
    return Quantity(value, low, high, _evidence(raw, path, origin), int(number), years)


def _evidence(raw: Mapping[str, object], path: str, origin: Origin) -> str:
    evidence = raw.get("evidence", "")
    if not isinstance(evidence, str) or not is_unicode(evidence):
        raise origin.error(path, f"needs a text as evidence, not {shown(evidence)}.")
    return one_line(evidence.strip())


def _check_partners(
    quantities: Mapping[str, Quantity], given: Collection[str], origin: Origin
) -> None:
    mechanism_table, numbers = table(), _numbers()
    entries = [
        entry for entry in mechanism_table.entries if f"{entry.name}.{PER_YEAR.key}" in quantities
    ]
    # Brokers that a rack or a power cut takes for good are replaced in broker.destroyed.hours,
    # so a card may give those hours even where no broker is destroyed alone.
    # The same holds for the outages in which limping ends.
    later = ((*_borrowed(entry), *entry.dies_as) for entry in entries)
    excused = {f"{name}.{PER_YEAR.key}" for names in later for name in names if name}
    for section, keys in sections().items():
        for key in keys:
            path = f"{section}.{key}"
            optional = path in excused or not numbers[path].required
            if section in given and path not in quantities and not optional:
                raise origin.error(section, f"has no {key}{_WHY.get(key, '')}.")
    detection = [key for key in sections()["detection"] if f"detection.{key}" in quantities]
    if "detection" in given and "seconds" not in detection and len(detection) < 2:
        raise origin.error(
            "detection", "has no seconds, and not both kraft_sessions and zookeeper_sessions."
        )
    for entry in entries:
        chance = quantities.get(entry.share_path)
        if entry.turns_into and (chance is None or not chance.high > 0):
            continue
        for borrowed in _borrowed(entry):
            path, _ = mechanism_table[borrowed].duration
            if path not in quantities:
                needing = entry.share_path if entry.turns_into else entry.name
                raise origin.error(
                    needing, f"needs {path}: how long until a lost broker is replaced."
                )
    if not entries:
        raise origin.error(
            "",
            "nothing ever fails in this card; give at least one of "
            f"{', '.join(mechanism_table.names)}.",
        )


def _borrowed(entry: Mechanism) -> tuple[str, ...]:
    """Mechanisms whose duration counts for the outages that this one causes."""
    return tuple(name for name in (entry.ends_as, entry.turns_into) if name)
