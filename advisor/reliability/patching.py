"""`patching`: what a rolling restart costs, by brokers at once, waiting, order and hour."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from advisor import plotting
from advisor.arguments import cluster_of, missing_attribute, model_of, names_checked
from advisor.errors import InputError, expect, shown
from advisor.formatting import significant
from advisor.protocol.rules.config import Config
from advisor.reliability.calendar import HOURS_PER_YEAR
from advisor.reliability.evaluate import check_inputs
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.units import Estimate
from advisor.reliability.sampler.block import RollingRow, run_rolling_block
from advisor.reliability.sampler.estimators import Ratio, rate
from advisor.reliability.sampler.plan import Block, Plan, plan_for
from advisor.reliability.workload import Workload
from advisor.tables import data_frame, html_table, html_verdict

if TYPE_CHECKING:
    import pandas as pd

MOST_RESTARTS = 100_000_000
# As many as fit the interval of a ratio, and more than the thirty from which it is used.
_BLOCKS = 64
# The cluster is watched for so many times the longest mean outage before brokers stop unasked.
_RUN_UP_TIMES = 10.0
# The first failure is hurried for so many times as long as a rolling restart is expected to take.
_HURRIED_TIMES = 6.0
_EXPECTED = 0.5
_MEASURES = {
    "refused_minutes": "writes refused, minutes of a partition",
    "records_refused": "failed sends",
    "loss_probability": "chance of data loss",
    "hours": "hours until it is over",
}


@dataclass(frozen=True)
class PatchingChoice:
    """What one way to restart all brokers costs, per rolling restart.

    Attributes
    ----------
    at_once, wait_for_isr, order, hour
        The choice, as in a card's ``[calendar]``.
    refused_minutes : Estimate
        Time in which a partition refuses writes, the mean over all partitions.
    records_refused : Estimate
        Failed sends of the whole topic.
    loss_probability : Estimate
        Probability that an acknowledged record is lost.
    hours : Estimate
        Until every broker was restarted and every replica is in sync.
    """

    at_once: int
    wait_for_isr: bool
    order: str
    hour: float
    refused_minutes: Estimate
    records_refused: Estimate
    loss_probability: Estimate
    hours: Estimate

    @property
    def name(self) -> str:
        """The choice in words.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> found.choices[0].name
        '1 at once, waits for the ISR'
        """
        waits = "waits for the ISR" if self.wait_for_isr else "does not wait"
        return f"{self.at_once} at once, {waits}"


@dataclass(frozen=True, repr=False)
class Patching:
    """What rolling restarts cost, choice by choice; `patching` makes it.

    Attributes
    ----------
    choices : tuple of PatchingChoice
    restarts, seed : int
        Rolling restarts that were sampled for each choice.
    cluster, config, model, load
        As asked.

    See Also
    --------
    patching : Samples it.

    Examples
    --------
    >>> import advisor
    >>> found = advisor.patching(
    ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
    ... )
    >>> len(found.choices)
    6
    """

    choices: tuple[PatchingChoice, ...]
    restarts: int
    seed: int
    cluster: Any
    config: Config
    model: FailureModel
    load: Workload

    if not TYPE_CHECKING:
        __getattr__ = missing_attribute

    @property
    def verdict(self) -> str:
        """A choice that refuses least, beside the one that refuses most.

        Of several that the sample does not resolve, the first counts.
        """
        ordered = sorted(self.choices, key=lambda each: each.refused_minutes.value)
        end, most = ordered[0].refused_minutes.high, ordered[-1]
        least = next(each for each in self.choices if each.refused_minutes.low <= end)
        brokers = "broker" if least.at_once == 1 else "brokers"
        waits = "waiting for the ISR" if least.wait_for_isr else "without waiting"
        text = f"{least.at_once} {brokers} at once, {waits}: a partition refuses writes for "
        text += f"{_time(least.refused_minutes)} of a rolling restart"
        if least is not most:
            text += f"; {most.name}: {_time(most.refused_minutes)}"
        return f"{text}."

    def rows(self) -> list[dict[str, object]]:
        """Return a row of plain values for each choice.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> found.rows()[0]["wait_for_isr"]
        True
        """
        rows = []
        for choice in self.choices:
            row: dict[str, object] = {
                name: getattr(choice, name) for name in ("at_once", "wait_for_isr", "order", "hour")
            }
            for name in _MEASURES:
                found: Estimate = getattr(choice, name)
                row |= {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
            rows.append(row)
        return rows

    def to_frame(self) -> pd.DataFrame:
        """Return one line per choice, each measure with its 95 % interval.

        Returns
        -------
        pandas.DataFrame
            Columns of the choice, then "refused_minutes", "records_refused", "loss_probability"
            and "hours", each with ``_low`` and ``_high``. Where nothing was seen, the value is the
            upper bound and ``_low`` is 0.

        Raises
        ------
        MissingExtraError
            If pandas is not installed.

        See Also
        --------
        to_dict : The whole result as plain data.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> list(found.to_frame().columns[:5])
        ['at_once', 'wait_for_isr', 'order', 'hour', 'refused_minutes']
        """
        return data_frame(self.rows())

    def to_dict(self) -> dict[str, Any]:
        """Return choices and inputs as plain data; the same for the same seed and inputs.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> found.to_dict()["restarts"]
        64
        """
        return {
            "choices": [asdict(choice) for choice in self.choices],
            "restarts": self.restarts,
            "seed": self.seed,
            "config": self.config.to_dict(),
            "load": self.load.to_dict(),
            "model": self.model.name,
        }

    def explain(self) -> str:
        """The verdict, every choice, and how it was sampled.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> "2 at once, waits for the ISR" in found.explain()
        True
        """
        lines = [self.verdict]
        for choice in self.choices:
            parts = (f"{_MEASURES[name]} {getattr(choice, name)}" for name in _MEASURES)
            where = f"by {choice.order}, from {significant(choice.hour)}:00 on"
            lines.append(f"{choice.name} ({where}): {'; '.join(parts)}.")
        return "\n".join([*lines, self._source])

    @property
    def _source(self) -> str:
        return (
            f"{self.restarts:,} rolling restarts sampled for each choice, seed {self.seed}, with "
            f"failure-model card {self.model.name}, its values taken as exact; of what settings "
            "decide. 95 %: chance of the sample."
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw the refused minutes of each choice with their intervals.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Default: those of a new figure.

        Examples
        --------
        >>> import advisor
        >>> found = advisor.patching(
        ...     advisor.Cluster.uniform(3), advisor.Config(), "three_az_cloud", restarts=64
        ... )
        >>> from matplotlib.figure import Figure
        >>> ax = found.plot(Figure().subplots())
        """
        return plotting.draw("patching", self, ax)

    def __repr__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        rows = [
            {
                "at once": choice.at_once,
                "waits for the ISR": "yes" if choice.wait_for_isr else "no",
                "order": choice.order,
                "hour": significant(choice.hour),
            }
            | {_MEASURES[name]: str(getattr(choice, name)) for name in _MEASURES}
            for choice in self.choices
        ]
        table = html_table(rows, "One rolling restart, by how it is done, with 95 % intervals")
        return f"{html_verdict(self.verdict, self._source)}{table}"


@names_checked
def patching(
    cluster: Any | str | PathLike[str],
    config: Config,
    model: FailureModel | str | PathLike[str],
    load: Workload | None = None,
    *,
    at_once: Sequence[int] = (1, 2, 3),
    wait_for_isr: Sequence[bool] = (True, False),
    hours: Sequence[float] | None = None,
    orders: Sequence[str] | None = None,
    restarts: int = 20_000,
    seed: int = 7,
) -> Patching:
    """Compare ways to restart all brokers: what each refuses, may lose, and how long it takes.

    Rolling restarts are sampled by themselves, in this process, with the failures of the card and
    the same random numbers for each choice.

    Parameters
    ----------
    cluster : Cluster, str or path
        Brokers and their racks; a text or path is read by `load_cluster`.
    config : Config
        Topic, producer and broker settings.
    model : FailureModel, str or path
        Failure and repair rates, and how long a restart takes. If it has a ``[calendar]``, what is
        not compared here is taken from there.
    load : Workload, optional
        Traffic and partitions, also by the hour. Default: ``Workload()``.
    at_once : sequence of int, default (1, 2, 3)
        Brokers that restart together.
    wait_for_isr : sequence of bool, default (True, False)
        Whether the next brokers wait for every broker and replica.
    hours : sequence of float, optional
        At which it begins. Default: the calendar's, or 2. Matters to failed sends, if ``load`` has
        traffic by the hour.
    orders : sequence of {"rack", "id"}, optional
        Rack by rack, or by broker id. Default: the calendar's, or "rack".
    restarts : int, default 20,000
        Rolling restarts to sample for each choice.
    seed : int, default 7
        0 to 2**64 - 1. The same seed and inputs give identical results.

    Returns
    -------
    Patching
        A row for each choice: refused writes, failed sends, chance of data loss, duration.

    Raises
    ------
    InputError
        If an argument is out of range, or the card does not say how long a restart takes.

    See Also
    --------
    simulate : Whole years, with the rolling restarts of a card's calendar among all failures.

    Notes
    -----
    One that waits begins when all is healthy, as it would in operation. One that does not wait
    begins after some time of failures and repairs (ten times the longest mean outage), with
    whatever is out then; what began even earlier is left out. The first failure after that is
    sampled more often than it happens, and weighted accordingly. What people and bugs do to whole
    clusters is counted as in `Reliability.beyond_settings`, that is, not here.

    Examples
    --------
    >>> import advisor
    >>> cluster = advisor.Cluster.uniform(brokers=6, racks=3)
    >>> config = advisor.Config(replication_factor=3, min_insync_replicas=2)
    >>> found = advisor.patching(
    ...     cluster, config, "three_az_cloud", at_once=(1,), restarts=640
    ... )
    >>> waiting, not_waiting = found.choices
    >>> waiting.refused_minutes.value < not_waiting.refused_minutes.value
    True
    """
    cluster, model = cluster_of(cluster), model_of(model)
    check_inputs(cluster, config, model, load, None)
    load = Workload() if load is None else load
    whole = expect("restarts", restarts, int, "a whole number")
    if not _BLOCKS <= whole <= MOST_RESTARTS:
        raise InputError(f"restarts={shown(restarts)}: give {_BLOCKS} to {MOST_RESTARTS:,}")
    if not 0 <= expect("seed", seed, int, "a whole number") < 2**64:
        raise InputError(f"seed={shown(seed)} must be a whole number from 0 below 2**64")
    base = _with_calendar(model)
    assert base.calendar is not None
    ways = {
        "at_once": _several("at_once", at_once),
        "wait_for_isr": _several("wait_for_isr", wait_for_isr),
        "order": _several("orders", orders or (base.calendar.order,)),
        "hour": _several("hours", hours or (base.calendar.hour,)),
    }
    cards = [
        base.with_calendar(**dict(zip(ways, values, strict=True)))
        for values in itertools.product(*ways.values())
    ]
    choices = tuple(_sampled(cluster, config, card, load, restarts, seed) for card in cards)
    return Patching(choices, restarts, seed, cluster, config, model, load)


def _several(name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise InputError(f"{name}={shown(values)}: give a list of one or more, such as (1, 2)")
    return tuple(values)


def _with_calendar(model: FailureModel) -> FailureModel:
    """The card with a calendar, whose weeks and weekday do not matter here."""
    if model.calendar is not None:
        return model
    return model.with_calendar(weekday="tuesday", hour=2, every_weeks=4)


def _sampled(
    cluster: Any, config: Config, model: FailureModel, load: Workload, restarts: int, seed: int
) -> PatchingChoice:
    """Sample the rolling restarts of one card."""
    plan = alone(plan_for(cluster, config, model, load))
    least, more = divmod(restarts, _BLOCKS)
    blocks = [Block(seed, index, least + (index < more)) for index in range(_BLOCKS)]
    rows = [run_rolling_block(plan, block) for block in blocks]
    partitions, calendar = sum(plan.partitions), model.calendar
    assert calendar is not None
    most = max(each.hours for each in plan.mechanisms.values())
    most *= max(row.most_weight for row in rows)
    minute = partitions / 60.0
    # Restarts alone lose nothing that all in-sync replicas have: a loss takes a failure, too.
    needs_failure = (
        calendar.wait_for_isr and config.acks == "all" and not config.unclean_leader_election_enable
    )
    heaviest = max(row.most_struck if needs_failure else row.most_weight for row in rows)
    return PatchingChoice(
        calendar.at_once,
        calendar.wait_for_isr,
        calendar.order,
        calendar.hour,
        _estimate([row.unwritable_hours / minute for row in rows], rows, 60.0 * most),
        _estimate(
            [row.records_refused for row in rows],
            rows,
            most * plan.records_per_hour * partitions,
        ),
        _estimate([row.losses for row in rows], rows, heaviest),
        _estimate([row.hours for row in rows], rows, most),
    )


def _estimate(amounts: list[float], rows: list[RollingRow], most: float) -> Estimate:
    """A mean per rolling restart, of which one can add ``most`` to the sum unseen."""
    n = sum(row.restarts for row in rows)
    found = rate(Ratio(amounts, [float(row.restarts) for row in rows], most), n)
    return replace(found, method=found.method.replace("years", "rolling restarts"))


def alone(plan: Plan) -> Plan:
    """The plan of rolling restarts by themselves, with the first failure of each hurried.

    So much that one comes in every other rolling restart: weights stay below exp(3).
    """
    rolling = plan.rolling
    assert rolling is not None
    outages = [each.hours for each in plan.mechanisms.values()]
    copying = 1.0 / plan.copies_per_hour if plan.copies_per_hour else 0.0
    run_up = 0.0 if rolling.waits else _RUN_UP_TIMES * (max(outages) + copying)
    by_chance = plan.strikes_per_year_by_chance / HOURS_PER_YEAR
    takes = len(rolling.batches) * (rolling.mean_hours + rolling.pause_hours)
    expected = by_chance * takes
    hurry = max(1.0, _EXPECTED / expected) if 0.0 < expected < math.inf else 1.0
    soon = {"hurry": hurry, "hurry_hours": _HURRIED_TIMES * takes}
    return replace(plan, rolling=replace(rolling, alone=True, run_up_hours=run_up, **soon))


def _time(minutes: Estimate) -> str:
    """A time with its interval, in minutes or, if it is shorter, in seconds."""
    short = minutes.high < 1.0
    unit, size = ("seconds", 60.0) if short else ("minutes", 1.0)
    value, low, high = (
        significant(size * each) for each in (minutes.value, minutes.low, minutes.high)
    )
    if not minutes.seen:
        return f"less than {high} {unit}" if minutes.high else f"0 {unit}"
    return f"{value} {unit} (95 %: {low} to {high})"
