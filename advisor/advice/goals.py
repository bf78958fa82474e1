"""What somebody wants of a topic: limits on the small sides, and what it has to survive."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from advisor.advice.phrases import how_often, listed
from advisor.advice.tolerance import Survival
from advisor.errors import InputError
from advisor.formatting import significant, time_per_year

MEASURES = (
    "loss_probability_per_year",
    "write_unavailability",
    "read_unavailability",
    "records_refused_per_year",
)
SURVIVE_WITHOUT_LOSS = "survive_without_loss"
SURVIVE_WRITABLE = "survive_writable"


@dataclass(frozen=True, kw_only=True)
class Goals:
    """Limits that a configuration has to keep; None: no limit.

    Parameters
    ----------
    loss_probability_per_year : float or None
        Most acceptable probability of losing an acknowledged record within a year, 0 to 1.
    write_unavailability, read_unavailability : float or None
        Most acceptable fraction of time in which writes or reads fail, 0 to 1; 1e-4 is 53 minutes
        a year.
    records_refused_per_year : float or None
        Most acceptable number of records that producers give up.
    survive : {"rack", "broker"} or None
        One such thing may go at any time, for good, without an acknowledged record lost and with
        writes going on.

    Raises
    ------
    InputError
        A number that is none, negative, not finite, or a fraction above 1; an unknown `survive`.
    """

    loss_probability_per_year: float | None = 1e-6
    write_unavailability: float | None = 1e-4
    read_unavailability: float | None = None
    records_refused_per_year: float | None = None
    survive: str | None = None

    def __post_init__(self) -> None:
        for name in MEASURES:
            limit = getattr(self, name)
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int | float):
                raise InputError(f"the goal {name}={limit!r} must be a number, or None for no goal")
            if not math.isfinite(limit) or limit < 0:
                raise InputError(f"the goal {name}={limit!r} must be finite and not negative")
            if limit > 1 and name != "records_refused_per_year":
                raise InputError(f"the goal {name}={limit!r} is a fraction and cannot be above 1")
        if self.survive not in (None, "rack", "broker"):
            raise InputError(f"survive={self.survive!r} is no goal; write 'rack', 'broker' or None")

    @property
    def limits(self) -> dict[str, float]:
        """The measures that have a limit."""
        return {name: limit for name in MEASURES if (limit := getattr(self, name)) is not None}

    @property
    def sentence(self) -> str:
        """What is asked for: "Goals: writes are refused for at most 53 minutes a year."."""
        said = []
        if self.loss_probability_per_year is not None:
            often = how_often(self.loss_probability_per_year)
            said.append(f"an acknowledged record is lost at most {often}")
        for name, what in (("write", "writes are refused"), ("read", "reads fail")):
            share = getattr(self, f"{name}_unavailability")
            if share is not None:
                said.append(f"{what} for at most {time_per_year(share)}")
        if self.records_refused_per_year is not None:
            limit = significant(self.records_refused_per_year)
            said.append(f"at most {limit} records a year are refused")
        if self.survive is not None:
            said.append(f"losing one {self.survive} costs no acknowledged record and no writes")
        return f"Goals: {listed(said) or 'none'}."

    def to_dict(self) -> dict[str, float | str | None]:
        """Every goal by name."""
        return asdict(self)


def judge(
    goals: Goals, measures: Mapping[str, float], survival: Survival | None
) -> dict[str, bool]:
    """Return for each goal whether it is met.

    Parameters
    ----------
    goals : Goals
    measures : mapping of str to float
        At least every measure that has a limit.
    survival : Survival or None
        What one event of the kind that `goals.survive` names does; None when nothing is to be
        survived.
    """
    met = {name: measures[name] <= limit for name, limit in goals.limits.items()}
    if survival is not None:
        met[SURVIVE_WITHOUT_LOSS] = survival.without_loss
        met[SURVIVE_WRITABLE] = survival.writable
    return met


def decades_short(goals: Goals, measures: Mapping[str, float]) -> float:
    """Return how many powers of ten the measures are beyond their limits, added up.

    A measure beyond a limit of 0 has no distance from it; it counts as 20 decades, more than any
    measure of a year can be short otherwise.
    """
    short = 0.0
    for name, limit in goals.limits.items():
        if measures[name] > limit:
            short += math.log10(measures[name] / limit) if limit > 0 else 20.0
    return short
