"""Racks that one failure strikes: against every choice of racks written out, and samples."""

from __future__ import annotations

import math
import random
from itertools import product

import numpy as np
import pytest

import advisor
from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.reliability.common_cause import struck_racks
from advisor.reliability.common_cause.struck_racks import StruckRacks

PER_YEAR = 0.35
CONFIG = Config(replication_factor=3, min_insync_replicas=2)
# Brokers by rack, and the lists of replicas; None where Kafka places twelve partitions itself.
PLACEMENTS = {
    "two racks, placed by Kafka": ("aaabbb", None),
    "three racks, placed by Kafka": ("aabbcc", None),
    "two sets that share no rack": ("aabbccdd", ((0, 1, 2), (4, 5, 6))),
    "sets in each pair of four racks": (
        "aabbccdd",
        ((0, 1, 2), (3, 0, 1), (2, 4, 5), (4, 6, 7), (7, 0, 1), (0, 5, 4), (2, 6, 7)),
    ),
    "sets within a rack, too": ("aaabbbcc", ((0, 1, 2), (1, 2, 0), (3, 4, 6), (0, 4, 7))),
}


def card(spreads: float, not_returning: float, flush_seconds: float) -> FailureModel:
    """Racks lose power, and nothing else happens; a lost broker is replaced in an hour."""
    power = {
        "per_year": PER_YEAR,
        "minutes": 3.0,
        "spreads": spreads,
        "not_returning": not_returning,
    }
    numbers = {"broker": {"destroyed": {"per_year": 0.0, "hours": 1.0}}, "rack": {"power": power}}
    return FailureModel.from_dict(numbers | {"flush": {"seconds": flush_seconds}})


def cluster_of(racks: str) -> Cluster:
    """Brokers in these racks, and controllers whose majority no two racks take."""
    elsewhere = dict(zip(range(100, 105), "vwxyz", strict=True))
    return Cluster(brokers=dict(enumerate(racks)), controllers=elsewhere)


def placed(racks: str, lists: tuple[tuple[int, ...], ...] | None) -> tuple[tuple[int, ...], ...]:
    """The lists of a placement, also if Kafka makes them."""
    if lists is not None:
        return lists
    table = advisor.assign(
        dict(enumerate(racks)), partitions=12, replication_factor=3, algorithm="striped"
    )
    return tuple(map(tuple, table.values()))


def rate_of_any(racks: int, spreads: float, homes: list[tuple[set[int], float]]) -> float:
    """How often any home is lost, for one failure of a rack a year: by all choices of racks.

    Each of the struck racks may be the first; it takes the others along, and spares the rest.
    """
    total = []
    for struck in product((False, True), repeat=racks):
        some = {rack for rack, out in enumerate(struck) if out}
        if some:
            count = len(some)
            often = count * spreads ** (count - 1) * (1.0 - spreads) ** (racks - count)
            kept = math.prod(1.0 - chance for home, chance in homes if home <= some)
            total.append(often * (1.0 - kept))
    return math.fsum(total)


def some_homes(number: int, racks: int, widest: int, seed: int) -> list[tuple[set[int], float]]:
    """Distinct homes of up to so many racks, each with the probability that it loses if struck."""
    draw = random.Random(seed)
    homes = {frozenset(draw.sample(range(racks), draw.randint(1, widest))) for _ in range(number)}
    return [(set(home), draw.choice((1e-6, 0.01, 0.5, 0.9999))) for home in sorted(homes, key=str)]


def as_arrays(homes: list[tuple[set[int], float]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows of racks and logarithms of survival, as `StruckRacks` takes them."""
    widest = max(len(home) for home, _ in homes)
    rows = [(-1,) * (widest - len(home)) + tuple(sorted(home)) for home, _ in homes]
    return np.array(rows), np.array([math.log1p(-chance) for _, chance in homes])


@pytest.mark.parametrize("widest", [1, 2, 3])
@pytest.mark.parametrize("spreads", [0.0, 0.01, 0.2, 0.9, 1.0])
def test_every_choice_of_racks_is_counted(spreads: float, widest: int) -> None:
    """Homes among seven of nine racks; where nothing spreads, homes of one rack are lost alone."""
    homes = some_homes(12, 7, widest if spreads else 1, seed=widest)
    found = StruckRacks(9, spreads).any_loss(*as_arrays(homes))
    assert found.rate == pytest.approx(rate_of_any(9, spreads, homes), rel=1e-11)
    assert found.error == 0.0


@pytest.mark.parametrize("spreads", [0.001, 0.05, 0.3, 0.9])
def test_drawn_racks_lose_as_often_as_counted_ones(
    spreads: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where racks are too many to be enumerated, the rate is within its stated error, repeatably.

    Of forty seeds the mean is right within three of its own standard errors.
    """
    homes = some_homes(40, 10, 3, seed=5)
    expected = rate_of_any(12, spreads, homes)
    monkeypatch.setattr(struck_racks, "_ENUMERATED", 2)
    struck, arrays = StruckRacks(12, spreads), as_arrays(homes)
    assert struck.any_loss(*arrays) == struck.any_loss(*arrays)
    off = []
    for seed in range(40):
        monkeypatch.setattr(struck_racks, "_SEED", seed)
        found = struck.any_loss(*arrays)
        assert 0.0 < found.error < 0.02 * expected
        off.append((found.rate - expected) / found.error)
    assert abs(np.mean(off)) < 3.0 / math.sqrt(len(off))
    assert np.std(off) < 1.5


@pytest.mark.parametrize("where", PLACEMENTS)
@pytest.mark.parametrize("not_returning", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("spreads", [0.05, 0.178, 0.6])
def test_page_caches_are_lost_as_often_as_whole_sets_are_struck(
    spreads: float, not_returning: float, where: str
) -> None:
    """A set loses what is not on disk if all its racks lose power at once: all its sets together.

    Whether brokers return does not matter, since their page caches are gone in any case. What
    comes of further failures within the three minutes is a thousandth.
    """
    racks, lists = PLACEMENTS[where]
    replicas, names = placed(racks, lists), sorted(set(racks))
    homes = [({names.index(racks[b]) for b in each}, 1.0) for each in replicas]
    expected = -math.expm1(-PER_YEAR * rate_of_any(len(names), spreads, homes))
    model = card(spreads, not_returning, 5.0)
    found = evaluate(cluster_of(racks), CONFIG, model, placement=replicas)
    off = found.error_bounds["loss_probability_per_year"]
    assert off < 0.01 * expected
    assert abs(found.loss_probability_per_year - expected) < off + 1e-3 * expected


@pytest.mark.slow
@pytest.mark.parametrize("where", ["two racks, placed by Kafka", "sets in each pair of four racks"])
@pytest.mark.parametrize("flush_seconds", [0.0, 5.0])
@pytest.mark.parametrize(("spreads", "not_returning"), [(0.178, 0.01), (0.178, 0.1), (0.6, 0.3)])
def test_struck_racks_lose_as_often_as_sampled(
    spreads: float, not_returning: float, flush_seconds: float, where: str
) -> None:
    """Years as they come, also where only brokers that do not return lose anything.

    The number of years with a loss is binomial; four and a half standard deviations of it.
    """
    racks, lists = PLACEMENTS[where]
    model, years = card(spreads, not_returning, flush_seconds), 100_000
    given = cluster_of(racks), CONFIG, model, Workload(partitions=len(placed(racks, lists)))
    found = evaluate(*given, placement=placed(racks, lists))
    sampled = advisor.simulate(
        *given, placement=placed(racks, lists), years=years, seed=11, engine="local", method="crude"
    )
    chance, off = found.loss_probability_per_year, found.error_bounds["loss_probability_per_year"]
    deviation = math.sqrt(chance * (1.0 - chance) / years)
    assert abs(sampled.loss_probability_per_year.value - chance) < 4.5 * deviation + off
    if flush_seconds:
        assert off < 0.01 * chance
