"""`patching`: what a rolling restart costs, by brokers at once, waiting, order and hour."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from advisor.arguments import Sources, cluster_of, model_of, names_checked
from advisor.errors import InputError, expect, shown
from advisor.formatting import HOURS_PER_YEAR
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import check_inputs
from advisor.reliability.failures import mechanisms
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import PER_YEAR
from advisor.reliability.patching_choices import Patching, PatchingChoice
from advisor.reliability.results.units import Estimate
from advisor.reliability.sampler.block import RollingRow, run_rolling_block
from advisor.reliability.sampler.intervals import Ratio, rate
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.workload import Workload

MOST_RESTARTS = 100_000_000
# As many as fit the interval of a ratio, and more than the thirty from which it is used.
_BLOCKS = 64
# The cluster is watched for this many times the longest mean outage before brokers stop unasked.
_RUN_UP_TIMES = 10.0
# The first failure is hurried for this many times as long as a rolling restart is expected to take.
_HURRIED_TIMES = 6.0
_EXPECTED = 0.5


@names_checked
def patching(
    cluster: Any | Sources,
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
    cluster : Cluster, str, path or list
        Brokers and their racks; texts or paths are read by `load_cluster`.
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
    sampled more often than it happens, and weighted accordingly. What strikes the whole cluster,
    such as deleted broker data, is left out: it comes however brokers are restarted.

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
    base = _with_calendar(without_cluster_wide(model))
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


def without_cluster_wide(model: FailureModel) -> FailureModel:
    """The card without what strikes the whole cluster."""
    wide = [
        entry for entry in mechanisms.table().entries if entry.scope is mechanisms.Scope.CLUSTER
    ]
    rates = [entry.path(key) for entry in wide for key in (PER_YEAR, entry.with_zookeeper)]
    return model.with_values({path: 0.0 for path in rates if path in model.quantities})


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
    most = max(mechanism.hours for mechanism in plan.mechanisms.values())
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
    estimate = rate(Ratio(amounts, [float(row.restarts) for row in rows], most), n)
    return replace(estimate, method=estimate.method.replace("years", "rolling restarts"))


def alone(plan: Plan) -> Plan:
    """The plan of rolling restarts by themselves, with the first failure of each hurried."""
    rolling = plan.rolling
    assert rolling is not None
    outages = [mechanism.hours for mechanism in plan.mechanisms.values()]
    copying = 1.0 / plan.copies_per_hour if plan.copies_per_hour else 0.0
    run_up = 0.0 if rolling.waits else _RUN_UP_TIMES * (max(outages) + copying)
    by_chance = plan.strikes_per_year_by_chance / HOURS_PER_YEAR
    takes = len(rolling.batches) * (rolling.mean_hours + rolling.pause_hours)
    expected = by_chance * takes
    hurry = max(1.0, _EXPECTED / expected) if 0.0 < expected < math.inf else 1.0
    by_itself = replace(
        rolling,
        alone=True,
        run_up_hours=run_up,
        hurry=hurry,
        hurry_hours=_HURRIED_TIMES * takes,
    )
    return replace(plan, rolling=by_itself)
