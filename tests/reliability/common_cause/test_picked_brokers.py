"""Events that strike each broker by chance, against every choice of brokers written out."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.reliability.common_cause import picked_brokers
from advisor.reliability.common_cause.picked_brokers import AnyPicked, PickedBrokers
from advisor.reliability.failures.mechanisms import (
    PER_YEAR,
    BrokerEvent,
    Mechanism,
    Number,
    Strikes,
    registered,
)
from sampled_runs import card, sample

BROKERS = Number("brokers", "probability that a broker is struck", probability=True)
ERASED = Mechanism(
    "cluster.erased",
    BrokerEvent.DESTROY,
    Strikes.STANDING,
    "logs erased",
    numbers=(PER_YEAR, BROKERS),
    ends_as="broker.destroyed",
    share=BROKERS,
)
PATTERN = (0, 1, 2)
ALL_OR_NOTHING = (0.0, 0.0, 0.0, 1.0)
GRADED = (0.0, 0.01, 0.2, 0.9)


def some_sets(brokers: int, count: int, seed: int) -> list[tuple[int, ...]]:
    """Distinct sets of three brokers."""
    draw = random.Random(seed)
    return sorted({tuple(sorted(draw.sample(range(brokers), 3))) for _ in range(count)})


def written_out(
    sets: list[tuple[int, ...]], brokers: int, chances: tuple[float, ...], share: float
) -> float:
    """Probability that any set loses, over every choice of brokers."""
    total = []
    for count in range(brokers + 1):
        for picked in combinations(range(brokers), count):
            kept = math.prod(1.0 - chances[len(set(each) & set(picked))] for each in sets)
            total.append(share**count * (1.0 - share) ** (brokers - count) * (1.0 - kept))
    return math.fsum(total)


def any_picked(sets: list[tuple[int, ...]], chances: tuple[float, ...], share: float) -> AnyPicked:
    """The same by the package."""
    by_count = {PATTERN: np.array(chances)[:, None]}
    return PickedBrokers({PATTERN: sets}).any_loss(by_count, np.array([share]))


@pytest.mark.parametrize("chances", [ALL_OR_NOTHING, GRADED])
@pytest.mark.parametrize(("brokers", "count", "share"), [(6, 12, 0.1), (9, 60, 0.5), (5, 2, 1.0)])
def test_every_choice_of_brokers_is_enumerated(
    chances: tuple[float, ...], brokers: int, count: int, share: float
) -> None:
    """A set loses if all its brokers are picked, or by chance the likelier the more are."""
    sets = some_sets(brokers, count, seed=count)
    found = any_picked(sets, chances, share)
    assert found.probability == pytest.approx(written_out(sets, brokers, chances, share), rel=1e-11)
    picked = range(4)
    each = math.fsum(
        math.comb(3, k) * share**k * (1.0 - share) ** (3 - k) * chances[k] for k in picked
    )
    assert found.total == pytest.approx(len(sets) * each, rel=1e-12)
    assert found.error == 0.0


@pytest.mark.parametrize("chances", [ALL_OR_NOTHING, GRADED])
@pytest.mark.parametrize("share", [0.02, 0.1, 0.3])
def test_sampled_choices_agree_with_all_of_them(
    monkeypatch: pytest.MonkeyPatch, chances: tuple[float, ...], share: float
) -> None:
    """Fourteen brokers, enumerated and as if there were too many for that."""
    sets = some_sets(14, 150, seed=3)
    exact = any_picked(sets, chances, share)
    monkeypatch.setattr(picked_brokers, "_ENUMERATED", 0)
    sampled = any_picked(sets, chances, share)
    assert 0.0 < sampled.error < 0.03 * exact.probability
    assert abs(sampled.probability - exact.probability) < 4.0 * sampled.error
    assert sampled == any_picked(sets, chances, share)


@pytest.mark.parametrize("brokers", [9, 40])
def test_an_event_that_strikes_every_broker_is_counted_at_once(brokers: int) -> None:
    """Each set has all of its brokers struck: no choice is left to enumerate or to draw."""
    sets = some_sets(brokers, 30, 7)
    answer = any_picked(sets, GRADED, 1.0)
    assert answer.probability == pytest.approx(1.0 - (1.0 - GRADED[-1]) ** len(sets), rel=1e-12)
    assert (answer.total, answer.error) == (pytest.approx(GRADED[-1] * len(sets)), 0.0)


@pytest.mark.parametrize("brokers", [1, 6, 30, 1500])
@pytest.mark.parametrize("share", [0.0, 1e-6, 0.3, 1.0])
def test_the_number_of_picked_brokers_is_binomial(brokers: int, share: float) -> None:
    """Against exact fractions, on a cluster whose binomial coefficients overflow as well."""
    found, odds = picked_brokers.binomial(brokers, np.array([share]))[:, 0], Fraction(share)
    for picked in {0, 1, brokers // 2, brokers - 1, brokers}:
        exact = math.comb(brokers, picked) * odds**picked * (1 - odds) ** (brokers - picked)
        wanted = float(exact) if exact > Fraction(1, 10**300) else 0.0
        assert found[picked] == pytest.approx(wanted, rel=1e-11, abs=1e-299)


@pytest.mark.parametrize("name", ["erased", "wiped"])
def test_erased_brokers_lose_the_sets_that_they_hold(name: str) -> None:
    """Twelve partitions on six brokers: an event loses if it strikes all brokers of a set.

    An event every thousand years is over long before the next, and nothing else happens. The logs
    come back one by one, or all together.
    """
    per_year, share = 1e-3, 0.2
    cluster = Cluster(brokers=dict(enumerate("abcabc")))
    config = Config(replication_factor=3, min_insync_replicas=2)
    lists = tuple(some_sets(6, 12, seed=1))
    numbers = {"per_year": per_year, "brokers": share} | (
        {"hours": 1e-3} if name == "wiped" else {}
    )
    with registered(ERASED):
        model = FailureModel.from_dict(
            {
                "broker": {"destroyed": {"per_year": 0.0, "hours": 1e-3}},
                "cluster": {name: numbers},
            }
        )
        load = Workload(partitions=len(lists), records_per_second=1e5)
        found = evaluate(cluster, config, model, load, placement=lists)
    chance = written_out(list(lists), 6, ALL_OR_NOTHING, share)
    assert 1.0 / found.mean_years_to_loss == pytest.approx(per_year * chance, rel=1e-6)
    assert found.loss_probability_per_year == pytest.approx(
        -math.expm1(-per_year * chance), rel=1e-6
    )
    each = per_year * share**3
    assert found.loss_events_per_year == pytest.approx(len(lists) * each, rel=1e-6)


def test_wiped_brokers_of_a_large_cluster_lose_as_sampled() -> None:
    """Thirty brokers are too many to enumerate; the stated error is small, and holds."""
    cluster = Cluster.uniform(brokers=30, racks=3)
    config = Config(replication_factor=3, min_insync_replicas=2)
    load = Workload(partitions=100)
    model = card(
        broker_destroyed={"per_year": 0.2, "hours": 24.0},
        cluster_wiped={"per_year": 0.5, "brokers": 0.2, "hours": 24.0},
    )
    exact = evaluate(cluster, config, model, load)
    found, _ = sample(cluster, config, model, load, years=10_000)
    chance = found.loss_probability_per_year
    off = exact.error_bounds["loss_probability_per_year"]
    assert off < 0.1 * exact.loss_probability_per_year
    assert chance.low - off < exact.loss_probability_per_year < chance.high + off
    # Sets of one failure that lose together count once.
    assert exact.loss_probability_per_year < 0.75 * exact.bounds[1]


def test_racks_destroyed_together_are_one_loss_for_any_number_of_sets() -> None:
    """All three racks at once: 3 rates times spreads squared, for one set or hundreds."""
    model = card(
        rack_destroyed={"per_year": 0.01, "spreads": 0.1}, broker_destroyed={"hours": 0.01}
    )
    cluster = Cluster.uniform(brokers=9, racks=3)
    config = Config(replication_factor=3, min_insync_replicas=2)
    for partitions in (1, 12, 300):
        found = evaluate(cluster, config, model, Workload(partitions=partitions))
        assert 1.0 / found.mean_years_to_loss == pytest.approx(3 * 0.01 * 0.1**2, rel=0.01)
