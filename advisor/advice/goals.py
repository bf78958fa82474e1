"""Goals of a topic: limits that a user gives, what it must survive, and the price of a loss."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from advisor.advice.phrases import how_often, listed, years_between
from advisor.advice.tolerance import Survival
from advisor.arguments import suggests_names
from advisor.decision import Requirements
from advisor.decision.rule import MINUTES_PER_LOSS
from advisor.errors import InputError, shown
from advisor.formatting import is_rare, one_in, percent, significant, time_per_year
from advisor.reliability import measure_table
from advisor.value_tables import FieldTable

SURVIVE_WITHOUT_LOSS = "survive_without_loss"
SURVIVE_WRITABLE = "survive_writable"
_SURVIVING = {
    SURVIVE_WITHOUT_LOSS: "losses in one failure",
    SURVIVE_WRITABLE: "writes after one failure",
}


_OFTEN = 0.5  # a chance from here on is said as one: years would be less than two
MOST = 1e30
"""Upper limit of goals in records a year."""
MOST_MINUTES = 1e12
"""Upper limit of the price of a loss, in minutes without writes."""


@suggests_names
@dataclass(frozen=True, kw_only=True)
class Goals(FieldTable):
    """The price of a loss, and limits that a replication setting should keep, if any.

    There is no limit unless one is given. Limits are held against whole measures, whatever causes
    them; of a limit that no setting keeps, the best that can be had is said.

    Parameters
    ----------
    loss_probability_per_year : float or None, default None
        Highest acceptable probability of at least one loss event in a year, 0 to 1. None: no
        limit; the same for the other limits.
    write_unavailability : float or None, default None
        Highest acceptable fraction of time in which writes are refused, 0 to 1; 1e-4 is 53 minutes
        per year.
    read_unavailability : float or None, default None
        Highest acceptable fraction of time in which no leader serves reads, 0 to 1.
    records_refused_per_year : float or None, default None
        Highest acceptable number of failed sends per year.
    acked_records_lost_per_year : float or None, default None
        Highest acceptable mean number of acknowledged records lost per year.
    survive : {"rack", "broker"} or None, default None
        The permanent loss of one rack or broker, at any time, must lose no acknowledged record and
        must not stop writes.
    minutes_per_loss : float, default 10080
        How many minutes without writes are as bad as losing records once: a week by default; for
        metrics perhaps ten minutes, for payments a month.

    Raises
    ------
    InputError
        If a limit is not a number, negative, infinite or NaN, if a fraction is above 1, if
        `survive` is unknown, or if `minutes_per_loss` is not above 0 and finite.

    See Also
    --------
    advisor.recommend : Choose settings.
    advisor.audit : Compare every topic of a cluster with goals.

    Examples
    --------
    >>> from advisor import Goals
    >>> Goals(loss_probability_per_year=1e-3, survive="rack").limits
    {'loss_probability_per_year': 0.001}
    >>> print(Goals(write_unavailability=1e-4).sentence)
    Goals: writes refused at most 53 minutes a year.
    >>> print(Goals().sentence)
    Goals: none.
    """

    loss_probability_per_year: float | None = None
    write_unavailability: float | None = None
    read_unavailability: float | None = None
    records_refused_per_year: float | None = None
    acked_records_lost_per_year: float | None = None
    survive: str | None = None
    minutes_per_loss: float = MINUTES_PER_LOSS

    def __post_init__(self) -> None:
        for name in measure_table.goals():
            limit = getattr(self, name, None)
            if limit is None:
                continue
            if isinstance(limit, bool) or not isinstance(limit, int | float):
                raise InputError(
                    f"the goal {name}={shown(limit)} must be a number, or None for no goal"
                )
            # Written so that NaN fails too.
            if not 0 <= limit <= MOST:
                raise InputError(
                    f"the goal {name}={shown(limit)} must not be negative, and at most {MOST:.0e}"
                )
            if limit > 1 and measure_table.measure(name).is_share:
                raise InputError(
                    f"the goal {name}={shown(limit)} is a fraction and cannot be above 1"
                )
        if self.survive not in (None, "rack", "broker"):
            raise InputError(
                f"survive={shown(self.survive)} is not a goal; write 'rack', 'broker' or None"
            )
        price = self.minutes_per_loss
        is_number = isinstance(price, int | float) and not isinstance(price, bool)
        if not is_number or not 0 < price <= MOST_MINUTES:
            raise InputError(
                f"minutes_per_loss={shown(price)} must be above 0 and at most {MOST_MINUTES:.0e}: "
                "give the minutes without writes that are as bad as losing records once, such as "
                f"{MINUTES_PER_LOSS:,.0f} for a week"
            )

    @property
    def limits(self) -> dict[str, float]:
        """Limit of each measure that has one."""
        limits = {name: getattr(self, name, None) for name in measure_table.goals()}
        return {name: limit for name, limit in limits.items() if limit is not None}

    @property
    def requirements(self) -> Requirements:
        """What the decision is asked: the limits, what to survive, and the price of a loss."""
        return Requirements(self.limits, self.survive, float(self.minutes_per_loss))

    @property
    def sentence(self) -> str:
        """The goals as one sentence."""
        clauses = []
        if self.loss_probability_per_year is not None:
            limit = limit_words(self.loss_probability_per_year)
            clauses.append(_loss_words(limit))
        if self.acked_records_lost_per_year is not None:
            limit = significant(self.acked_records_lost_per_year)
            clauses.append(f"at most {limit} acknowledged records lost a year")
        for name, refusals in (("write", "writes refused"), ("read", "reads refused")):
            share = getattr(self, f"{name}_unavailability")
            if share is not None:
                clauses.append(f"{refusals} at most {time_per_year(share)}")
        if self.records_refused_per_year is not None:
            limit = significant(self.records_refused_per_year)
            clauses.append(f"at most {limit} failed sends a year")
        if self.survive is not None:
            clauses.append(f"no data loss and no refused writes when one {self.survive} is lost")
        return f"Goals: {listed(clauses) or 'none'}."

    def to_dict(self) -> dict[str, float | str | None]:
        """Return every goal by name as plain JSON data; None where there is no limit.

        Examples
        --------
        >>> from advisor import Goals
        >>> Goals(survive="rack").to_dict()["survive"]
        'rack'
        """
        return asdict(self)


def goal_words(goal: str, brief: bool = False) -> str:
    """Return what a goal is about, after "the goal for" and "missed:"; in brief for columns.

    >>> goal_words("write_unavailability"), goal_words("write_unavailability", brief=True)
    ('time without writes', 'writes')
    """
    if goal in _SURVIVING:
        return _SURVIVING[goal]
    entry = measure_table.measure(goal)
    return entry.brief_goal if brief else entry.goal


def limit_words(probability: float) -> str:
    """Return a limit for data loss in words; a chance where years are too many to believe.

    >>> limit_words(0.01), limit_words(1e-6)
    ('once in 99 years', 'a 1 in 1 million chance a year')
    """
    if probability > _OFTEN:
        return f"a {percent(probability)} chance a year"
    if probability > 0 and is_rare(years_between(probability)):
        return f"a {one_in(probability)} chance a year"
    return how_often(probability)


def _loss_words(limit: str) -> str:
    if " chance " in limit:
        return f"at most {limit.replace(' chance ', ' chance of data loss ')}"
    return "no data loss" if limit == "never" else f"data loss at most {limit}"


def judge(
    goals: Goals, measures: Mapping[str, float], survival: Survival | None
) -> dict[str, bool]:
    """Return for each goal whether it is met, given what losing the rack or broker does."""
    met = {name: measures[name] <= limit for name, limit in goals.limits.items()}
    if survival is not None:
        met[SURVIVE_WITHOUT_LOSS] = survival.without_loss
        met[SURVIVE_WRITABLE] = survival.writable
    return met


def decades_short(goals: Goals, measures: Mapping[str, float]) -> float:
    """Return by how many decades limits are exceeded, summed; 20 for a limit of 0."""
    short = 0.0
    for name, limit in goals.limits.items():
        if measures[name] > limit:
            short += math.log10(measures[name] / limit) if limit > 0 else 20.0
    return short
