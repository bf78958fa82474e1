"""Racks that fail as one: sets in the same racks lose at the same moment, so it counts once."""

from __future__ import annotations

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model
from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.outage_class import RACK_REPAIR, RackOutage, racks_at_once
from advisor.reliability.patching import without_cluster_wide
from sampled_runs import ELSEWHERE, card

UP, RACK_OUT = RackOutage(1, 0, False), RackOutage(1, 0, True)
AS_ONE = UP._replace(as_one=True)
RACK_OF = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
EIGHT = tuple((one, two, three) for one in (0, 1) for two in (2, 3) for three in (4, 5))


def often(name: str, *, only: str = "") -> FailureModel:
    """A card whose racks and disks are lost 600 times as often; if asked, nothing but one kind."""
    model = without_cluster_wide(load_model(name))
    rates = [f"{each}.per_year" for each in model.mechanisms]
    more = ("rack.power.per_year", "rack.destroyed.per_year", "broker.destroyed.per_year")
    model = model.with_values({each: 600.0 * model[each] for each in more})
    return model.with_values({each: 0.0 for each in rates if only and each != f"{only}.per_year"})


@pytest.mark.parametrize("racks", [2, 3])
@pytest.mark.parametrize("spreads", [0.0, 0.01, 0.1])
@pytest.mark.parametrize("least", [1, 2])
def test_where_only_racks_fail_many_sets_lose_as_often_as_one(
    racks: int, spreads: float, least: int
) -> None:
    """Each set has a replica in every rack, and every failure hits all sets in the same way."""
    outages = {"per_year": 3.0, "minutes": 240.0} | ({"spreads": spreads} if spreads else {})
    model = card(
        rack_power=outages,
        rack_network={"per_year": 4.0, "minutes": 60.0},
        flush={"seconds": 60.0},
    )
    cluster = Cluster.uniform(6, racks, controllers=ELSEWHERE)
    config = Config(replication_factor=racks, min_insync_replicas=least)
    one, many = (evaluate(cluster, config, model, Workload(partitions=n)) for n in (1, 12))
    assert many.loss_probability_per_year == pytest.approx(one.loss_probability_per_year, rel=1e-3)
    off = many.error_bounds["loss_probability_per_year"]
    assert abs(many.loss_probability_per_year - one.loss_probability_per_year) <= off


@pytest.mark.parametrize(
    ("scope", "racks", "expected"),
    [
        # Two racks fail while the third is out: three events, whatever brokers were left.
        (racks_at_once(2), (UP, UP, RACK_OUT), 3),
        # One fails and one is left: the broker there matters, unless it only ever went as its rack.
        ("rack", (UP, UP, RACK_OUT), 12),
        ("rack", (AS_ONE, AS_ONE, RACK_OUT), 6),
        # A rack returns to two that are stale, by their racks or one of them by its broker.
        (RACK_REPAIR, (UP, UP, RACK_OUT), 12),
        (RACK_REPAIR, (UP, AS_ONE, RACK_OUT), 12),
        (RACK_REPAIR, (AS_ONE, AS_ONE, RACK_OUT), 3),
    ],
)
def test_only_brokers_that_failed_on_their_own_tell_events_apart(
    scope: str, racks: tuple[RackOutage, ...], expected: int
) -> None:
    """Eight sets, one broker in each of three racks."""
    sets = CoincidentSets({(0, 1, 2): EIGHT}, RACK_OF, preferred_leader=True)
    numbers, _ = sets.events((0, 1, 2), scope, tuple(sorted(racks)))
    assert len(numbers) == expected


@pytest.mark.parametrize(
    ("only", "sampled"), [("rack.power", (6.0e-3, 7.2e-3)), ("", (1.0e-2, 1.15e-2))]
)
def test_racks_and_brokers_lose_as_often_as_sampled(
    only: str, sampled: tuple[float, float]
) -> None:
    """Against 95 % intervals of years sampled once: racks alone, and racks with brokers.

    The second are 860 first losses in `simulate`, without importance sampling.
    """
    config = Config(replication_factor=3, min_insync_replicas=2)
    model, load = often("three_az_cloud", only=only), Workload(partitions=12)
    found = evaluate(Cluster.uniform(6, 3), config, model, load)
    chance, off = found.loss_probability_per_year, found.error_bounds["loss_probability_per_year"]
    assert sampled[0] - off < chance < sampled[1] + off
    # Not by much.
    assert off < 0.15 * chance
