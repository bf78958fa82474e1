"""What fails, how often and for how long: a failure-model card as a value.

Times between failures and durations are exponential unless the card gives another distribution.
`evaluate` takes gamma durations of a `shape` up to 2, below 1 of which a few take very long;
`simulate` takes all distributions, and repairs that wait for a crew.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from advisor import catalog
from advisor.arguments import names_checked, suggests_names
from advisor.errors import ModelError, expect, shown
from advisor.formatting import HOURS_PER_YEAR
from advisor.reliability.calendar import RATE_PATH, Calendar, with_calendar
from advisor.reliability.failures.card import (
    Card,
    Quantity,
    check_card,
    check_number,
    how_to_measure,
    is_asked,
    largest_drawn,
    read_card,
)
from advisor.reliability.failures.card_origin import Origin
from advisor.reliability.failures.distributions import normal_deviates
from advisor.reliability.failures.mechanism import Mechanism, per_hour
from advisor.reliability.failures.mechanisms import MINUTES, PER_YEAR, SHAPE, Scope, table
from advisor.reliability.failures.times.card_times import NEEDED_FOR, REPAIR
from advisor.reliability.failures.times.time_distribution import TimeDistribution
from advisor.rendering import one_line, printable
from advisor.value_tables import QuantityTable

# Of one's own, and for how long one would watch them: see `FailureModel.measurable`.
_FEW_TARGETS, _YEARS_WATCHED = 3, 3.0

__all__ = ["HOURS_PER_YEAR", "FailureModel", "Quantity", "load_model"]


# What makes each text of a card harmless wherever a result shows it.
_TEXTS = {"name": one_line, "title": one_line, "when_to_use": printable, "hosting": one_line}


@suggests_names
@dataclass(frozen=True, repr=False)
class FailureModel(QuantityTable):
    """A failure-model card: mechanisms with rates and durations, and the evidence for each number.

    Build one with `load_model` (from a file) or `FailureModel.from_dict`. A mechanism that is left
    out does not happen; a left-out `flush`, `detection`, `election` or `copy` takes no time.

    Parameters
    ----------
    name : str
        Short name, for results and errors.
    title : str
        One line.
    when_to_use : str
        The situation that the card describes.
    quantities : mapping of str to Quantity
        Every number by dotted path, which names the unit: "broker.crash.per_year",
        "flush.seconds".
    times : mapping of str to TimeDistribution, optional
        Distributions of times that are not exponential, by dotted path: "broker.crash.lifetime",
        "broker.crash.duration". A gamma duration is the number "broker.crash.shape" instead.
    needed_for : tuple of str, optional
        The mechanisms whose repairs wait for a crew, if the card gives "repair.crews".
    calendar : Calendar, optional
        When brokers restart, instead of at random; ``broker.restart.per_year`` follows from it.
    hosting : {"", "own", "cloud", "managed"}
        Whose power and disks they are, for remedies: the reader's, a provider's, or a provider's
        with the brokers. "": unknown.

    See Also
    --------
    load_model : Read a card from a file.
    advisor.evaluate : What a card means for a configuration.

    Examples
    --------
    >>> import advisor
    >>> model = advisor.FailureModel.from_dict(
    ...     {"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}
    ... )
    >>> model.mechanisms
    ('broker.destroyed',)
    >>> model["broker.destroyed.hours"]
    12.0
    """

    name: str
    title: str
    when_to_use: str
    quantities: Mapping[str, Quantity]
    times: Mapping[str, TimeDistribution] = field(default_factory=dict)
    needed_for: tuple[str, ...] = ()
    calendar: Calendar | None = None
    hosting: str = ""

    def __post_init__(self) -> None:
        for text, harmless in _TEXTS.items():
            stated = expect(text, getattr(self, text), str, "a text")
            object.__setattr__(self, text, harmless(stated))
        quantities = expect("quantities", self.quantities, Mapping, "what from_dict makes")
        if not all(isinstance(quantity, Quantity) for quantity in quantities.values()):
            raise ModelError("quantities has a value that is no Quantity; from_dict makes them.")
        times = expect("times", self.times, Mapping, "what from_dict makes")
        expect("calendar", self.calendar, Calendar | None, "a Calendar, or None")
        object.__setattr__(self, "quantities", MappingProxyType(dict(quantities)))
        object.__setattr__(self, "times", MappingProxyType(dict(times)))

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(tuple(tuple(f.items()) if isinstance(f, dict) else f for f in self._fields))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        # A read-only view cannot be pickled, and Spark ships the model.
        return FailureModel, self._fields

    @property
    def _fields(self) -> tuple[Any, ...]:
        numbers, times = dict(self.quantities), dict(self.times)
        return (
            self.name,
            self.title,
            self.when_to_use,
            numbers,
            times,
            self.needed_for,
            self.calendar,
            self.hosting,
        )

    @classmethod
    @names_checked
    def from_dict(cls, tables: Mapping[str, object], name: str = "custom") -> "FailureModel":
        """Build a model from nested tables shaped like a card; numbers may be bare.

        Parameters
        ----------
        tables : mapping
            Sections of a card by name, such as
            ``{"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}}``. A number is bare, or
            a table with ``value``, ``low`` and ``high`` (or ``events`` and ``exposure_years``)
            and ``evidence``. ``data/README.md`` lists sections, keys and units.
        name : str
            What to call it, in results and in errors.

        Returns
        -------
        FailureModel

        Raises
        ------
        ModelError
            A section, key or number that no card may hold.

        See Also
        --------
        to_dict : The reverse.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 4.0}}}, name="mine"
        ... )
        >>> print(model)
        mine (mine)
          broker.crash.per_year  2
          broker.crash.minutes   4
        """
        return cls._from_card(check_card(tables, Origin(name)), name)

    @classmethod
    def _from_card(cls, card: Card, name: str) -> "FailureModel":
        texts, times = (card.title or name, card.when_to_use), (card.times, card.needed_for)
        return cls(name, *texts, card.quantities, *times, card.calendar, card.hosting)

    def to_dict(self) -> dict[str, Any]:
        """Return nested tables from which `from_dict` builds the same model (but for its name).

        Returns
        -------
        dict
            Title, use and sections; every number with value, range and evidence, and the
            distributions of times.

        See Also
        --------
        from_dict : The reverse.

        Examples
        --------
        >>> import advisor
        >>> tables = advisor.load_model("three_az_cloud").to_dict()
        >>> sorted(tables["flush"]["seconds"])
        ['evidence', 'high', 'low', 'value']
        >>> tables["flush"]["seconds"]["value"]
        35.0
        """
        tables: dict[str, Any] = {"title": self.title, "when_to_use": self.when_to_use}
        if self.hosting:
            tables["hosting"] = self.hosting
        given: dict[str, Quantity | TimeDistribution] = {**self.quantities, **self.times}
        for path, entry in given.items():
            *sections, key = path.split(".")
            table = tables
            for section in sections:
                table = table.setdefault(section, {})
            table[key] = entry.to_dict()
        if self.needed_for:
            tables[REPAIR][NEEDED_FOR] = list(self.needed_for)
        if self.calendar is not None:
            del tables["broker"]["restart"]["per_year"]
            tables["calendar"] = self.calendar.to_dict()
        return tables

    def with_calendar(self, **keys: object) -> "FailureModel":
        """Return a copy in which brokers restart by a calendar instead of at random.

        The calendar replaces ``broker.restart.per_year``, ``overlap`` and ``lifetime``.

        Parameters
        ----------
        **keys : object
            Keys of ``[calendar]``, such as at_once; those left out stay as they are.

        Returns
        -------
        FailureModel

        Raises
        ------
        ModelError
            A key or value that no calendar may hold.

        See Also
        --------
        with_values : A copy with other numbers.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.load_model("three_az_cloud")
        >>> monthly = model.with_calendar(weekday="tuesday", hour=2, every_weeks=4)
        >>> round(monthly["broker.restart.per_year"], 2)
        13.04
        """
        return FailureModel.from_dict(with_calendar(self.to_dict(), keys), self.name)

    def __getitem__(self, path: str) -> float:
        """Return the value at a dotted path.

        Raises ModelError: the card does not give it.
        """
        quantity = self.quantities.get(expect("path", path, str, "a dotted path"))
        if quantity is None:
            given = ", ".join(self.quantities)
            raise ModelError(f"{self.name}: the card does not give {path}; it gives {given}.")
        return quantity.value

    def get(self, path: str, default: float) -> float:
        """Return the value at a dotted path, or `default` when the card does not give it.

        Parameters
        ----------
        path : str
            Such as "broker.crash.per_year"; the last word is the unit.
        default : float
            In the same unit.

        Returns
        -------
        float

        See Also
        --------
        quantities : Values with their ranges and evidence.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 4.0}}}
        ... )
        >>> model.get("broker.crash.minutes", 0.0), model.get("flush.seconds", 0.0)
        (4.0, 0.0)
        """
        quantity = self.quantities.get(expect("path", path, str, "a dotted path"))
        if quantity is None:
            expect("default", default, int | float, "a number")
            try:
                return float(default)
            except OverflowError:
                raise ModelError(
                    f"default={shown(default)} is more than a float holds; give a smaller number, "
                    "or math.inf."
                ) from None
        return float(quantity.value)

    def rate_per_hour(self, mechanism: str) -> float:
        """Return how often it strikes one broker, rack or cluster, per hour; 0 if left out.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 30.0}}}
        ... )
        >>> model.rate_per_hour("broker.crash") * 8760
        2.0
        """
        return self.get(f"{_known(mechanism).name}.{PER_YEAR.key}", 0.0) / HOURS_PER_YEAR

    def repair_hours(self, mechanism: str) -> float:
        """Return the mean hours until a struck broker is back, without the copying.

        A mechanism without a duration of its own, such as "rack.destroyed", takes that of the
        mechanism whose outages it causes.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 30.0}}}
        ... )
        >>> model.repair_hours("broker.crash")
        0.5
        """
        return self.outage_hours(self._outage_of(mechanism))

    def outage_hours(self, entry: Mechanism) -> float:
        """Return the mean hours of the outages of an entry of the table, or of its variant.

        Without its own a variant has the mechanism's, and the outage that ends limping has its.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 30.0}}}
        ... )
        >>> from advisor.reliability.failures.mechanisms import table
        >>> model.outage_hours(table()["broker.crash"])
        0.5
        """
        borrowed = (e for e in table().entries if entry.name in (e.name, *e.dies_as))
        paths = [(e.path(n), per_hour(n.key)) for e in (entry, *borrowed) for n in e.numbers]
        given = (
            candidate for candidate in paths if candidate[1] and candidate[0] in self.quantities
        )
        path, units = next(given, entry.duration)
        return self[path] / units

    def shape(self, mechanism: str) -> float:
        """Return the gamma shape of its time to repair; 1.0, exponential, unless given.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 30.0}}}
        ... )
        >>> model.shape("broker.crash")
        1.0
        """
        return self.get(f"{self._outage_of(mechanism).name}.{SHAPE.key}", 1.0)

    def has_stages(self, entry: Mechanism) -> bool:
        """Return whether the CTMC needs two stages for the outages of an entry of the table.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.FailureModel.from_dict(
        ...     {"broker": {"crash": {"per_year": 2.0, "minutes": 30.0}}}
        ... )
        >>> from advisor.reliability.failures.mechanisms import table
        >>> model.has_stages(table()["broker.crash"])
        False
        """
        shape = self.quantities.get(entry.shape_path)
        return shape is not None and (shape.value != 1.0 or shape.is_range)

    @staticmethod
    def _outage_of(mechanism: str) -> Mechanism:
        """The mechanism whose duration ends its outages."""
        entry = _known(mechanism)
        return table()[entry.ends_as] if entry.ends_as else entry

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms that the card gives, in the order of the table."""
        return tuple(n for n in table().names if f"{n}.{PER_YEAR.key}" in self.quantities)

    def with_values(self, values: Mapping[str, float]) -> "FailureModel":
        """Return a copy in which the given numbers are exact and the others unchanged.

        Parameters
        ----------
        values : mapping of str to float
            By dotted path, each in the unit that the path names.

        Returns
        -------
        FailureModel

        Raises
        ------
        ModelError
            A path that the card does not give, or a number that it may not hold.

        See Also
        --------
        draws : Copies with numbers drawn from their ranges.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.load_model("three_az_cloud")
        >>> model.with_values({"broker.crash.per_year": 12.0})["broker.crash.per_year"]
        12.0
        """
        changed = dict(self.quantities)
        for path, raw in expect("values", values, Mapping, "numbers by path").items():
            self[path]
            if self.calendar is not None and path == RATE_PATH:
                raise ModelError(
                    f"{self.name}: {path} follows from calendar.every_weeks; set that."
                )
            value = check_number(raw, path, Origin(self.name))
            changed[path] = Quantity(value, value, value, changed[path].evidence)
        for path, number in changed.items():
            if number.minutes_per_year is not None and _minutes_beside(path) in values:
                changed[path] = replace(number, minutes_per_year=None)
        return replace(self, quantities=changed)

    @property
    def uncertain(self) -> tuple[str, ...]:
        """The paths of the numbers that are drawn: with a range, and no fact to ask for."""
        given = self.quantities.items()
        return tuple(path for path, number in given if number.is_range and not is_asked(path))

    def under(self, mode: str) -> "FailureModel":
        """Return the card for clusters of a mode, in which one rate is left where it gives two.

        Parameters
        ----------
        mode : {"kraft", "zookeeper"}

        Returns
        -------
        FailureModel
            The same object each time.

        See Also
        --------
        with_values : A copy with other numbers.

        Examples
        --------
        >>> import advisor
        >>> model, path = advisor.load_model("three_az_cloud"), "cluster.controller.per_year"
        >>> model.under("zookeeper")[path] > model.under("kraft")[path]
        True
        """
        by_mode: dict[str, FailureModel] = self.__dict__.setdefault("_by_mode", {})
        if mode not in by_mode:
            by_mode[mode] = self._under(mode)
        return by_mode[mode]

    def _under(self, mode: str) -> "FailureModel":
        numbers = dict(self.quantities)
        for entry in table().entries:
            rate = numbers.pop(entry.path(entry.with_zookeeper), None)
            if rate is not None and mode == "zookeeper":
                numbers[f"{entry.name}.{PER_YEAR.key}"] = rate
        return self if len(numbers) == len(self.quantities) else replace(self, quantities=numbers)

    @property
    def measurable(self) -> Mapping[str, str]:
        """How a user can measure numbers of the card on their own cluster, by dotted path.

        Rates and lengths are left out where even at the high end three brokers, three racks or
        a cluster would see less than one event in three years: none seen says little.

        See Also
        --------
        uncertain : The numbers that have a range.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.load_model("three_az_cloud")
        >>> model.measurable["broker.lag.per_year"]
        'IsrShrinksPerSec of brokers that stay up, over broker-years'
        >>> "rack.destroyed.per_year" in model.measurable
        False
        """
        ways = {path: how_to_measure(path) for path in self.quantities}
        return {path: how for path, how in ways.items() if how and self._is_seen(path)}

    def _is_seen(self, path: str) -> bool:
        """Whether a cluster of three brokers may see what a number is about in three years."""
        name, _, key = path.rpartition(".")
        if name not in table() or key not in (PER_YEAR.key, MINUTES.key):
            return True
        targets = 1 if table()[name].scope is Scope.CLUSTER else _FEW_TARGETS
        rate = self.quantities.get(f"{name}.{PER_YEAR.key}")
        return rate is not None and rate.high * targets * _YEARS_WATCHED >= 1.0

    def draws(self, n: int, seed: int) -> Iterator["FailureModel"]:
        """Yield `n` models with every uncertain number drawn from its range, independently.

        A rate with a count of events follows its gamma distribution. Every other number follows a
        two-piece lognormal whose median is `value` and whose 2.5 % and 97.5 % points are `low` and
        `high`. A half that ends at 0 has no logarithm: there the number is linear in the normal
        deviate instead, and cut at 0. Probabilities are cut at 1, shapes at 2. Where the card gives
        the product of a rate and its minutes, the product and the minutes are drawn.
        The points are a scrambled Sobol sequence, so that some hundred do; the same `n` or a
        smaller one with the same `seed` gives the same first models.

        Parameters
        ----------
        n : int
            How many, from 1; a power of two covers the ranges best.
        seed : int
            Of the scrambling.

        Yields
        ------
        FailureModel

        Raises
        ------
        ModelError
            If `n` is less than 1.

        See Also
        --------
        uncertain : The numbers that are drawn.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.load_model("three_az_cloud")
        >>> quantity = model.quantities["broker.crash.per_year"]
        >>> drawn = [m["broker.crash.per_year"] for m in model.draws(8, seed=1)]
        >>> min(drawn) < quantity.value < max(drawn)
        True
        """
        paths = self.uncertain
        for row in normal_deviates(n, len(paths), seed):
            drawn = {path: self._drawn(path, z) for path, z in zip(paths, row, strict=True)}
            yield self.with_values(self._with_products(drawn))

    def at(self, path: str, value: float) -> "FailureModel":
        """Return a copy with one number exact, and known products of a rate and minutes as before.

        Parameters
        ----------
        path : str
            Of a number that the card gives.
        value : float
            In the unit that the path names.

        Returns
        -------
        FailureModel

        See Also
        --------
        with_values : Leaves all other numbers as they are.

        Examples
        --------
        >>> import advisor
        >>> model = advisor.load_model("three_az_cloud")
        >>> longer = model.at("cluster.crash.minutes", 2 * model["cluster.crash.minutes"])
        >>> longer["cluster.crash.per_year"] / model["cluster.crash.per_year"]
        0.5
        """
        return self.with_values(self._with_products({path: value}))

    def _with_products(self, values: Mapping[str, float]) -> dict[str, float]:
        """The same numbers with rates whose products with the minutes among them are known."""
        changed = dict(values)
        for path, number in self.quantities.items():
            minutes = _minutes_beside(path)
            if number.minutes_per_year is not None and minutes in values:
                rate = values.get(path, number.value)
                changed[path] = rate * self[minutes] / values[minutes]
        return changed

    def _drawn(self, path: str, deviate: float) -> float:
        quantity = self.quantities[path]
        return min(quantity.at(deviate), max(largest_drawn(path), quantity.value))

    def _numbers(self) -> tuple[str, Mapping[str, Quantity]]:
        by = f"; rolling restarts {self.calendar.words}" if self.calendar else ""
        return f"{self.title} ({self.name}){by}", self.quantities

    def _texts(self) -> Mapping[str, tuple[str, str]]:
        times = {
            path: (str(distribution), distribution.evidence)
            for path, distribution in self.times.items()
        }
        if not self.needed_for:
            return times
        return times | {f"{REPAIR}.{NEEDED_FOR}": (", ".join(self.needed_for), "")}


def _known(mechanism: str) -> Mechanism:
    mechanism_table = table()
    if expect("mechanism", mechanism, str, "a name") not in mechanism_table:
        raise ModelError(
            f"no mechanism '{mechanism}'; there are {', '.join(mechanism_table.names)}."
        )
    return mechanism_table[mechanism]


def _minutes_beside(path: str) -> str:
    """The path of the minutes in the section of another number."""
    return f"{path.rpartition('.')[0]}.{MINUTES.key}"


@names_checked
def load_model(name_or_path: str | Path) -> FailureModel:
    """Read a failure-model card, shipped (by name) or your own (by path).

    Parameters
    ----------
    name_or_path : str or Path
        The name of a shipped card, such as "three_az_cloud", or the path of a TOML file.

    Returns
    -------
    FailureModel
        Named after the file.

    Raises
    ------
    ModelError
        No such card, or it holds a number that no card may hold or one without evidence.

    See Also
    --------
    FailureModel.from_dict : A card from a dict, with bare numbers and no evidence.

    Examples
    --------
    >>> import advisor
    >>> model = advisor.load_model("three_az_cloud")
    >>> model.title
    'Three zones, cloud instances, network block storage'
    >>> model.mechanisms[:3]
    ('broker.crash', 'broker.power', 'broker.destroyed')
    """
    path = catalog.model_path(name_or_path)
    return FailureModel._from_card(read_card(path), path.stem)
