"""A new leader that stays: failures that strike several brokers at once, by enumeration."""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from advisor import Cluster, Config, FailureModel, Workload
from advisor.lessons.scheme_reliability.comparison import scheme_row
from advisor.reliability.case import Case

PICKED, ALONG, EVENTS_PER_YEAR = 0.3, 0.2, 0.5
CONFIG = Config(replication_factor=3, min_insync_replicas=1, acks=1)
# Which brokers an event strikes, with its frequency per year; each broker has a rack of its own.
Strikes = Iterator[tuple[frozenset[int], float]]


def picked(brokers: int) -> Strikes:
    for size in range(1, brokers + 1):
        chance = PICKED**size * (1.0 - PICKED) ** (brokers - size)
        for some in combinations(range(1, brokers + 1), size):
            yield frozenset(some), EVENTS_PER_YEAR * chance


def racks_along(brokers: int) -> Strikes:
    for size in range(1, brokers + 1):
        chance = ALONG ** (size - 1) * (1.0 - ALONG) ** (brokers - size)
        for some in combinations(range(1, brokers + 1), size):
            # Each of them may be the one that took the others along.
            yield frozenset(some), EVENTS_PER_YEAR * size * chance


def restarts_along(brokers: int) -> Strikes:
    for one in range(1, brokers + 1):
        yield frozenset({one}), EVENTS_PER_YEAR * (1.0 - ALONG)
    for some in combinations(range(1, brokers + 1), 2):
        yield frozenset(some), EVENTS_PER_YEAR * 2.0 * ALONG / (brokers - 1)


CRASH = {"cluster": {"crash": {"per_year": EVENTS_PER_YEAR, "brokers": PICKED, "minutes": 5.0}}}
POWER = {"rack": {"power": {"per_year": EVENTS_PER_YEAR, "spreads": ALONG, "minutes": 5.0}}}
RESTART = {"broker": {"restart": {"per_year": EVENTS_PER_YEAR, "overlap": ALONG, "minutes": 5.0}}}


@pytest.mark.parametrize(
    ("card", "strikes", "most_off"),
    [(CRASH, picked, 1e-4), (POWER, racks_along, 0.05), (RESTART, restarts_along, 0.03)],
)
@pytest.mark.parametrize(("brokers", "partitions"), [(3, 2), (6, 6), (6, 24)])
def test_one_event_is_one_first_loss(
    card: dict[str, Any], strikes: Any, most_off: float, brokers: int, partitions: int
) -> None:
    """Each replica leads as often as any other; all of them at once keep their records.

    Where a failure takes another along, tails at two places are taken for independent, though a
    partition has one leader.
    """
    # So much is written that each leader that fails has records that it alone holds.
    load = Workload(partitions=partitions, records_per_second=1e6)
    cluster = Cluster.uniform(brokers, brokers)
    case = Case.read(cluster, CONFIG, FailureModel.from_dict(card), load)
    expected = 0.0
    for struck, per_year in strikes(brokers):
        kept = 1.0
        for replicas, count in case.placement.sets:
            share = len(struck.intersection(replicas)) / len(replicas)
            kept *= (1.0 - share if share < 1.0 else 1.0) ** count
        expected += per_year * (1.0 - kept)
    found = scheme_row("asynchronous", case)
    assert 1.0 / found.mean_years_to_loss == pytest.approx(expected, rel=most_off)
    whole = -math.expm1(-1.0 / found.mean_years_to_loss)
    assert found.loss_probability_per_year == pytest.approx(whole, rel=1e-3)
