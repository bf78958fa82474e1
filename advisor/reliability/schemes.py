"""Other ways to replicate a log, under the same card and the same faults as Kafka's ISR.

Their rules are in :mod:`advisor.reliability.quorums`. Every row carries the measures of
:class:`Reliability`, computed in the same way, so that it can be read beside Kafka's own.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from advisor.errors import NotComputedError
from advisor.protocol.config import Config
from advisor.protocol.schemes import ASYNCHRONOUS
from advisor.reliability import ranges, rates, solve
from advisor.reliability.anyloss import SetLosses, Tails, any_loss
from advisor.reliability.evaluate import evaluate
from advisor.reliability.measures import setting_for
from advisor.reliability.model import HOURS_PER_YEAR, FailureModel
from advisor.reliability.placement import Brokers, Replicas, place
from advisor.reliability.quorums import FLUSHED_MAJORITY, SCHEMES, Quorums
from advisor.reliability.result import Reliability
from advisor.reliability.scheme_chain import SchemeChain, explored
from advisor.reliability.solve import EXACT, ROUGH, Vector
from advisor.reliability.workload import Workload

__all__ = [
    "FLUSHED_MAJORITY",
    "KAFKA",
    "MEASURES",
    "SchemeRow",
    "compare_schemes",
    "rows_beside",
    "scheme_intervals",
    "scheme_row",
]

KAFKA = "isr"
MEASURES = (
    "loss_probability_per_year",
    "loss_events_per_year",
    "mean_years_to_loss",
    "write_unavailability",
    "read_unavailability",
)
MOST_REPLICAS = 3
"""Beyond that there are too many states to go through them all."""

_RULES = {1: "the leader alone", 0: "no log: the producer asks for no answer"}
_MOVES_BACK = (
    "The leader moves back after a failure, and each way may lose what only a leader had: twice "
    "what the asynchronous scheme loses so."
)
_STAYS = (
    "The new leader stays. Kafka with acks=1 moves it back and loses what only a leader had twice "
    "as often."
)


@dataclass(frozen=True)
class SchemeRow:
    """What one scheme loses and refuses.

    Attributes
    ----------
    name : str
        "isr" for the configuration that was asked about.
    rule : str
        Who must have a record before it is acknowledged, in words.
    loss_probability_per_year : float
        Of at least one loss event in a year that starts healthy, over all partitions.
    loss_events_per_year : float
        Over all partitions.
    mean_years_to_loss : float
        Infinite if no modelled event loses anything.
    write_unavailability, read_unavailability : float
        Fractions of time, mean over partitions.
    note : str
        What to know before the row is set beside another; "" if nothing.
    """

    name: str
    rule: str
    loss_probability_per_year: float
    loss_events_per_year: float
    mean_years_to_loss: float
    write_unavailability: float
    read_unavailability: float
    note: str = ""


def compare_schemes(
    cluster: Brokers, config: Config, model: FailureModel, load: Workload | None = None
) -> tuple[SchemeRow, ...]:
    """Set a configuration beside the other schemes with as many replicas on the same brokers.

    Raises
    ------
    NotComputedError
        More than three replicas, or what `evaluate` does not compute.
    """
    return rows_beside(evaluate(cluster, config, model, load))


def rows_beside(result: Reliability) -> tuple[SchemeRow, ...]:
    """Set a result beside the other schemes; its own row holds its own figures.

    Parameters
    ----------
    result : Reliability
        With the replicas placed as Kafka would place them.

    Raises
    ------
    NotComputedError
        More than three replicas.
    """
    config = result.config
    words = f"the in-sync replicas, at least {config.effective_min_insync_replicas}"
    alone = config.acks != "all"
    kafka = SchemeRow(
        name=KAFKA,
        rule=_RULES[int(config.acks)] if alone and config.acks is not None else words,
        note=_MOVES_BACK if alone else "",
        **{measure: getattr(result, measure) for measure in MEASURES},
    )
    others = (
        scheme_row(name, result.cluster, config, result.model, result.load) for name in SCHEMES
    )
    return (kafka, *others)


def scheme_intervals(row: SchemeRow, result: Reliability) -> dict[str, ranges.Interval]:
    """95 % interval of each measure of a row of `rows_beside`, from the ranges of the card.

    The draws are those of :meth:`Reliability.interval`: rows can be compared draw by draw.
    """
    if row.name == KAFKA:
        return {measure: result.interval(measure) for measure in MEASURES}
    if not result.model.uncertain:
        return {measure: (getattr(row, measure),) * 2 for measure in MEASURES}
    drawn = [
        scheme_row(row.name, result.cluster, result.config, model, result.load, ROUGH)
        for model in ranges.drawn(result.model, result.states)
    ]
    found = {}
    for measure in MEASURES:
        value = getattr(row, measure)
        low, high = ranges.spread([getattr(one, measure) for one in drawn])
        most = math.inf if measure in ("loss_events_per_year", "mean_years_to_loss") else 1.0
        found[measure] = (min(low, value), min(max(high, value), most))
    return found


def scheme_row(
    name: str,
    cluster: Brokers,
    config: Config,
    model: FailureModel,
    load: Workload,
    precision: float = EXACT,
) -> SchemeRow:
    """What one scheme loses and refuses, with the replicas placed as Kafka would place them.

    Parameters
    ----------
    name : str
        One of `SCHEMES`.
    cluster, config, model, load
        Of the configuration only the replication factor and what places replicas count.
    precision : float
        Relative accuracy asked of the solver.
    """
    factor = config.replication_factor
    assert factor is not None
    if factor > MOST_REPLICAS:
        raise NotComputedError(
            f"replication_factor={factor}: other schemes are compared for up to {MOST_REPLICAS} "
            "replicas"
        )
    scheme = Quorums.of(name, factor)
    where = place(cluster, config, load.partitions)
    counts: Counter[tuple[int, ...]] = Counter()
    patterns: dict[Replicas, tuple[int, ...]] = {}
    for replicas, count in where.sets:
        pattern = where.pattern(replicas, ordered=False)
        counts[pattern] += count
        patterns[replicas if scheme.tail else tuple(sorted(replicas))] = pattern
    found = {
        pattern: _measures(scheme, pattern, config, model, load, where.brokers, precision)
        for pattern in counts
    }
    first = any_loss(
        {replicas: found[pattern].losses for replicas, pattern in patterns.items()},
        lambda name: rates.rate_per_hour(name, config, model, load, where.brokers) * HOURS_PER_YEAR,
        where,
        tails=Tails(each_change=1, leaders=factor) if scheme.tail else None,
    )
    events, refused, unread = (
        math.fsum(found[pattern].sums[column] * count for pattern, count in counts.items())
        for column in range(3)
    )
    partitions = counts.total()
    return SchemeRow(
        name=name,
        rule=scheme.rule,
        loss_probability_per_year=first.probability,
        loss_events_per_year=events,
        mean_years_to_loss=first.mean_years,
        write_unavailability=refused / partitions,
        read_unavailability=unread / partitions,
        note=_STAYS if name == ASYNCHRONOUS else "",
    )


class _Measures(NamedTuple):
    """What one partition loses and refuses.

    Attributes
    ----------
    losses : SetLosses
    sums : (float, float, float)
        Loss events a year, and the shares of time without writes and without reads.
    """

    losses: SetLosses
    sums: tuple[float, float, float]


def _measures(
    scheme: Quorums,
    pattern: tuple[int, ...],
    config: Config,
    model: FailureModel,
    load: Workload,
    brokers: int,
    precision: float,
) -> _Measures:
    copying = rates.copy_hours(config, model, load, brokers) > 0
    page_cache = model.get("flush.seconds", 0.0) > 0 and not scheme.flushed
    chain = explored(scheme, setting_for(pattern, model), copying, page_cache)
    per_hour = np.array(
        [rates.rate_per_hour(name, config, model, load, brokers) for name in chain.rate_names]
    )
    rate = per_hour[chain.rate] * chain.weight
    share = solve.stationary(_flow(chain, rate, np.zeros(len(chain.keys))), precision)
    flux = share[chain.source] * rate
    # What only the leader had is lost once another leads.
    tail = load.records_per_second / load.partitions * load.replication_delay_ms / 1000.0
    some = -math.expm1(-tail) if scheme.tail else 0.0
    going = np.minimum(chain.failed + chain.moved, 1.0)
    dropped = some * going * (chain.writable[chain.source] & chain.reads)
    outage = rates.failover_hours(model, load, brokers)
    change = flux * (chain.failed * outage[0] + chain.moved * outage[1])
    losing = chain.losses + (1.0 - chain.losses) * dropped
    absorbed = np.bincount(chain.source, rate * losing, len(chain.keys)).astype(np.float64)
    until_loss = _flow(chain, rate * (1.0 - losing), absorbed)
    first = solve.first_loss(until_loss, HOURS_PER_YEAR, precision)
    return _Measures(
        SetLosses(first, _by_mechanism(chain, flux * losing * HOURS_PER_YEAR)),
        (
            math.fsum((flux * losing).tolist()) * HOURS_PER_YEAR,
            math.fsum(share[~chain.writable].tolist())
            + math.fsum(change[chain.writable[chain.source] & chain.writes].tolist()),
            math.fsum(share[~chain.readable].tolist())
            + math.fsum(change[chain.readable[chain.source] & chain.reads].tolist()),
        ),
    )


def _by_mechanism(chain: SchemeChain, amounts: Vector) -> dict[str, float]:
    sums: dict[str, float] = defaultdict(float)
    by_rate = np.bincount(chain.rate, amounts, len(chain.rate_names))
    for name, amount in zip(chain.rate_names, by_rate.tolist(), strict=True):
        sums[rates.mechanism_of(name)] += amount
    return {mechanism: amount for mechanism, amount in sums.items() if amount > 0}


def _flow(chain: SchemeChain, rate: Vector, absorbed: Vector) -> solve.Flow:
    size = (len(chain.keys), len(chain.keys))
    moving = (chain.source != chain.target) & (rate > 0)
    where = (chain.source[moving], chain.target[moving])
    return solve.Flow(sparse.csr_array((rate[moving], where), shape=size), absorbed)
