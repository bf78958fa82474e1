"""What really happened beside what a card predicts: refused minutes, with a tail probability.

A drawn card gives how many minutes are refused in the mean of many years. What happens in one
cluster's few years scatters around that: outages of each cause come at random, and last as the card
says. An outage that takes a part of the partitions is counted as if it took all, more rarely: so
the scatter is rather too wide than too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.advice.situation import usual_config
from advisor.cluster import Cluster
from advisor.formatting import HOURS_PER_YEAR, percent, significant
from advisor.learning.evidence import ClusterHistory
from advisor.learning.posterior import Array, Range
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.workload import Workload

_WRITES = "write_unavailability"
_CARDS, _YEARS_OF_EACH, _SEED = 32, 250, 0
_UNUSUAL = 0.025
_LEAST_MINUTES = 0.1
"""Six seconds: what is less is said to be so, for cards are not that exact."""


@dataclass(frozen=True)
class Observed:
    """Minutes without writes that happened, and those that the cards predict.

    refused_minutes: that a partition could not be written to, on average over partitions, in all
        the years.
    prior, posterior: what each card predicts for that time: minutes on average, and the bounds of
        95 % of such times. In a short one there is mostly no outage: the average is above both.
    prior_tail, posterior_tail: probability of at least as many minutes, or of at most as many,
        whichever is less.
    refused_partition_minutes, any_refused_minutes: minutes added up over all partitions; and those
        in which any partition refused writes. None where only counts were typed.
    refused_partition_minutes_off, any_refused_minutes_off: by how much these may be off, up or
        down, because scrapes do not say what happened between them.
    """

    refused_minutes: float
    years: float
    prior: Range
    posterior: Range
    prior_tail: float
    posterior_tail: float
    refused_partition_minutes: float | None = None
    any_refused_minutes: float | None = None
    refused_partition_minutes_off: float = 0.0
    any_refused_minutes_off: float = 0.0

    def __str__(self) -> str:
        real = f"Your cluster refused {significant(self.refused_minutes)} minutes"
        if self.refused_partition_minutes is not None and self.any_refused_minutes is not None:
            real += (
                f" a partition ({significant(self.refused_partition_minutes)} partition-minutes"
                f"{_give_or_take(self.refused_partition_minutes_off)}, "
                f"{significant(self.any_refused_minutes)} minutes with any refused"
                f"{_give_or_take(self.any_refused_minutes_off)})"
            )
        return (
            f"{real}; the card before expects {_said(self.prior)}, the card now "
            f"{_said(self.posterior)}. {_verdict(self.posterior_tail)}"
        )


def _give_or_take(minutes: float) -> str:
    return f", give or take {significant(minutes, 1)}" if minutes else ""


def _said(interval: Range) -> str:
    value, low, high = map(_minutes, interval)
    if interval.high < interval.value:
        return f"mostly {high} ({value} on average)"
    return f"{value} ({low} to {high})"


def _minutes(amount: float) -> str:
    return f"under {_LEAST_MINUTES:g}" if 0.0 < amount < _LEAST_MINUTES else significant(amount)


def _verdict(tail: float) -> str:
    if tail >= _UNUSUAL:
        return "That fits."
    chance = percent(tail)
    return f"That is unlikely ({chance}): something is missing in the counts or in the card."


def observe(
    histories: Sequence[ClusterHistory],
    prior: FailureModel,
    posterior: FailureModel,
    cluster: Cluster,
    load: Workload | None,
    config: Config | None,
) -> Observed | None:
    """Compare the minutes that histories state with what two cards predict.

    None if no history states them.
    """
    stated = [history.refused for history in histories if history.refused is not None]
    if not stated:
        return None
    years = sum(refused.years for refused in stated)
    minutes = sum(refused.minutes for refused in stated)
    usual = config or usual_config(cluster.topics, cluster.kafka_version or Config().kafka_version)
    asked = cluster, usual or Config(), load or Workload()
    before, now = (_predicted(card, years, *asked) for card in (prior, posterior))
    return Observed(
        refused_minutes=minutes,
        years=years,
        prior=_range(before),
        posterior=_range(now),
        refused_partition_minutes=_sum(refused.partition_minutes for refused in stated),
        any_refused_minutes=_sum(refused.any_minutes for refused in stated),
        refused_partition_minutes_off=math.hypot(*(r.partition_minutes_off for r in stated)),
        any_refused_minutes_off=math.hypot(*(r.any_minutes_off for r in stated)),
        prior_tail=_tail(before, minutes),
        posterior_tail=_tail(now, minutes),
    )


def _sum(amounts: Iterable[float | None]) -> float | None:
    """The sum; None if one is not known."""
    stated_amounts = list(amounts)
    return None if None in stated_amounts else sum(amount or 0.0 for amount in stated_amounts)


def _predicted(
    card: FailureModel, years: float, cluster: Cluster, config: Config, load: Workload
) -> tuple[float, Array]:
    """Minutes in so many years: expected at the card's values, and a sample with its scatter."""
    mode = str(config.mode)
    result: Any = evaluate(cluster, config, card.under(mode), load)
    in_years = years * HOURS_PER_YEAR * 60.0
    drawn = list(card.under(mode).draws(_CARDS, _SEED))
    shares = result.reevaluate.draws(drawn).values[_WRITES]
    causes = result.causes[_WRITES]
    total = sum(causes.values()) or 1.0
    rng = np.random.default_rng(_SEED)
    sample = []
    for share, own in zip(shares, drawn, strict=True):
        minutes = np.zeros(_YEARS_OF_EACH)
        for cause, amount in causes.items():
            expected = share * in_years * amount / total
            minutes += _scattered(rng, expected, _outage_minutes(own, cause))
        sample.append(minutes)
    return result.write_unavailability * in_years, np.concatenate(sample)


def _outage_minutes(card: FailureModel, cause: str) -> float:
    """How long an outage of a cause lasts on average; 0 if it has no length."""
    if cause not in table() or cause not in card.mechanisms:
        return 0.0
    return card.repair_hours(cause) * 60.0


def _scattered(rng: np.random.Generator, expected: float, length: float) -> Array:
    """Minutes of outages that come at random and last exponentially."""
    if length <= 0.0 or expected <= 0.0:
        return np.full(_YEARS_OF_EACH, expected)
    outages = rng.poisson(expected / length, _YEARS_OF_EACH)
    # A gamma variable of shape 0 is 0.
    return np.where(outages > 0, rng.gamma(np.maximum(outages, 1)) * length, 0.0)


def _range(predicted: tuple[float, Array]) -> Range:
    expected, sample = predicted
    low, high = np.quantile(sample, [0.025, 0.975])
    return Range(expected, float(low), float(high))


def _tail(predicted: tuple[float, Array], minutes: float) -> float:
    _, sample = predicted
    return min(float(np.mean(sample >= minutes)), float(np.mean(sample <= minutes)))
