"""The probability that any of many sets loses, against a computation set by set."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict

import numpy as np
import pytest

import advisor
from advisor.reliability.common_cause.first_loss import any_loss
from advisor.reliability.common_cause.placement import Placement, ReplicaSetClass, place
from advisor.reliability.common_cause.set_losses import FirstOfSet, SetLosses, Tails
from advisor.reliability.common_cause.struck_racks import StrikeRates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.fault_processes import Exchangeable, Replicas
from advisor.reliability.workload import Workload

HOURS = 8760.0
CLUSTER = advisor.Cluster(brokers=dict(enumerate(["a", "a", "b", "b", "b", None, "c", "c"])))
STRIKES = {"broker.power": 2.0, "rack.power": 0.3, "cluster.power": 0.05, "broker.restart": 0.0}
CARD = FailureModel.from_dict(
    {
        "broker": {"destroyed": {"per_year": {"value": 1, "low": 0.5, "high": 2}, "hours": 12}},
        "rack": {"power": {"per_year": 1, "minutes": 20}},
        "flush": {"seconds": 60},
    }
)


def some_sets(number: int) -> Placement:
    """Partitions on three random brokers each; some sets repeat."""
    draw = random.Random(number)
    lists = tuple(tuple(draw.sample(range(8), 3)) for _ in range(number))
    config = advisor.Config(replication_factor=3, min_insync_replicas=2)
    return place(CLUSTER, config, number, lists)


def losses_of(pattern: tuple[int, ...], tails: Tails | None) -> SetLosses:
    """Losses that differ by pattern and mechanism; clustered, unless they are tails."""
    per_year = {name: 1e-4 * (1 + sum(pattern)) / (3 + i) for i, name in enumerate(STRIKES)}
    total = sum(per_year.values())
    cluster_size = 1.0 if tails else 1.1 + sum(pattern)
    hours, chance = np.array([cluster_size * HOURS / total]), np.array([-math.expm1(-total)])
    often = {name: np.array([amount]) for name, amount in per_year.items()}
    return SetLosses(FirstOfSet(hours, chance, ""), often, tails=often if tails else {})


def sites_of(mechanism: str, replicas: Replicas, where: Placement) -> set[object]:
    """Sites of a mechanism at which a set is exposed."""
    if mechanism.startswith("broker"):
        return set(replicas)
    return {where.rack_of[b] for b in replicas} if mechanism.startswith("rack") else {"all"}


def set_by_set(
    where: Placement, exchangeable: Exchangeable, tails: Tails | None
) -> dict[str, float]:
    """How often each mechanism makes any set lose: each set counted at its sites, one by one."""
    lists: dict[Replicas, Counter[tuple[int, ...]]] = defaultdict(Counter)
    for replicas, count in where.sets:
        together = replicas if tails else tuple(sorted(replicas))
        lists[together][where.rack_pattern(replicas, exchangeable)] += count
    counts = dict(where.sets) if tails else dict.fromkeys(lists, 1)
    chances = tails.per_failure if tails else 1
    survival: dict[tuple[str, object], float] = {}
    often: dict[str, float] = defaultdict(float)
    for replicas, patterns in lists.items():
        # By the pattern of most of its partitions.
        most = max(patterns.values())
        losses = losses_of(min(p for p, count in patterns.items() if count == most), tails)
        first = float(HOURS / losses.first.mean_hours[0] / sum(losses.per_year.values())[0])
        for mechanism, of_all in losses.per_year.items():
            flux = float(of_all[0]) * first
            sites = sites_of(mechanism, replicas[: tails.leaders] if tails else replicas, where)
            if not STRIKES[mechanism]:
                often[mechanism] += flux
                continue
            share = flux / len(sites) / STRIKES[mechanism] / chances
            for site in sites:
                each = (1 - share) ** (chances * counts[replicas])
                survival[mechanism, site] = survival.get((mechanism, site), 1.0) * each
    for (mechanism, _), left in survival.items():
        often[mechanism] += (1 - left) * STRIKES[mechanism]
    return often


@pytest.mark.parametrize("exchangeable", Exchangeable)
@pytest.mark.parametrize("tails", [None, Tails(2, 1), Tails(1, 3)])
def test_grouped_sets_lose_as_set_by_set(exchangeable: Exchangeable, tails: Tails | None) -> None:
    """Sixty partitions on random brokers; only the order of the sums differs.

    Probabilities of about 1e-4, subtracted from one, lose four of a float's sixteen digits.
    """
    where = some_sets(60)
    classes = where.replica_set_classes(exchangeable)
    losses = {pattern: losses_of(pattern, tails) for pattern in classes}
    found = any_loss(losses, StrikeRates.of([STRIKES]), where, exchangeable, tails).of(0)
    assert len(classes) > 1
    assert sum(sets.partitions for sets in classes.values()) == 60
    expected = set_by_set(where, exchangeable, tails)
    rate = sum(expected.values())
    assert found.probability == pytest.approx(-math.expm1(-rate), rel=1e-11)
    shares = {mechanism: often / rate for mechanism, often in expected.items()}
    assert dict(found.shares) == pytest.approx(shares, rel=1e-11)


def test_a_strike_on_many_sets_has_one_share_of_the_first_losses() -> None:
    """Site power makes every partition lose, a dead host those of one broker: shares by strikes.

    With one copy on each of eight brokers a partition loses by either. By loss events, which count
    each partition, both would have the share of their rates; first losses count the site once.
    """
    card = FailureModel.from_dict(
        {
            "broker": {"destroyed": {"per_year": 1e-3, "hours": 0.01}},
            "cluster": {"power": {"per_year": 1e-3, "minutes": 0.01, "not_returning": 1.0}},
        }
    )
    cluster = advisor.Cluster.uniform(brokers=8, racks=1)
    config = advisor.Config(replication_factor=1, acks="all")
    found = advisor.evaluate(cluster, config, card, Workload(partitions=8))
    events, first = (
        found.causes[f"loss_{measure}_per_year"] for measure in ("events", "probability")
    )
    assert events["cluster.power"] == pytest.approx(events["broker.destroyed"], rel=1e-3)
    assert first["broker.destroyed"] == pytest.approx(8 * first["cluster.power"], rel=1e-2)
    assert sum(first.values()) == pytest.approx(found.loss_probability_per_year, rel=1e-12)


def test_new_draws_of_a_card_do_not_regroup_the_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on the placement alone is computed once for any number of draws."""
    asked: list[Exchangeable] = []
    grouped = Placement._grouped

    def counted(
        self: Placement, exchangeable: Exchangeable, leaders: int | None
    ) -> dict[tuple[int, ...], ReplicaSetClass]:
        asked.append(exchangeable)
        return grouped(self, exchangeable, leaders)

    monkeypatch.setattr(Placement, "_grouped", counted)
    config = advisor.Config(replication_factor=3, min_insync_replicas=1, acks="all")
    lists = tuple(replicas for replicas, _ in some_sets(40).sets)
    result = advisor.evaluate(CLUSTER, config, CARD, Workload(), placement=lists)
    assert result.interval("loss_events_per_year")[1] > result.loss_events_per_year
    assert len(asked) == 1


def test_a_placement_is_made_once() -> None:
    """Settings that do not affect placement share one."""
    one, two = (
        place(CLUSTER, advisor.Config(replication_factor=3, min_insync_replicas=least), 50)
        for least in (1, 2)
    )
    assert one is two


def test_destroyed_replicas_lose_the_same_with_any_acks() -> None:
    """Twelve partitions of one replica each have the same first loss with acks=1 and acks=all."""
    with_all, with_one = (
        advisor.evaluate(
            CLUSTER,
            advisor.Config(replication_factor=1, min_insync_replicas=1, acks=acks),
            CARD,
            Workload(partitions=12, replication_delay_ms=0.0),
        )
        for acks in ("all", 1)
    )
    # Partitions with acks=1 lose apart: a log destroyed twice at once is empty more often.
    assert with_all.mean_years_to_loss == pytest.approx(with_one.mean_years_to_loss, rel=1e-9)
    assert with_all.loss_probability_per_year > 0.9
