"""Sets that share brokers, against one chain over all subsets of destroyed brokers."""

from __future__ import annotations

import random

import pytest

import advisor
from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.reliability.results.reliability import Reliability
from destroyed_brokers import Destruction, first_loss

SIX, NINE = (0, 1, 2) * 2, (0, 1, 2) * 3
# Enough traffic that a loss of a whole log always loses a record.
RECORDS_PER_SECOND = 1e5
KAFKA, ANY = "as Kafka places them", "on any brokers"
# Rates per year of a broker, a rack and the cluster; hours; share of brokers that never return.
CARDS = {
    "brokers": Destruction((), 12.0, broker=1.0),
    "brokers often, for long": Destruction((), 50.0, broker=10.0),
    "racks": Destruction((), 12.0, broker=1e-6, rack=0.5),
    "brokers and racks": Destruction((), 12.0, broker=0.5, rack=0.1),
    "site, one in ten": Destruction((), 12.0, broker=0.02, cluster=1.0, share=0.1),
    "site, half": Destruction((), 12.0, broker=0.1, cluster=0.1, share=0.5),
}
# Of the value; only the second card's is more than a few percent.
LARGEST_ERROR = dict.fromkeys(CARDS, 0.05) | {"brokers often, for long": 1.2}


def placed(how: str, racks: tuple[int, ...], partitions: int) -> tuple[tuple[int, ...], ...]:
    """Three replicas of each partition."""
    if how == KAFKA:
        names = {broker: str(rack) for broker, rack in enumerate(racks)}
        table = advisor.assign(
            names,
            partitions=partitions,
            replication_factor=3,
            algorithm="rack_alternated",
            start_index=0,
            shift=0,
        )
        return tuple(map(tuple, table.values()))
    draw = random.Random(partitions)
    return tuple(tuple(draw.sample(range(len(racks)), 3)) for _ in range(partitions))


def evaluated(found: Destruction, sets: tuple[tuple[int, ...], ...]) -> Reliability:
    """The package's answer; a failure of the site is over in a moment.

    So is the wait for an operator: what is lost is what all brokers of a set lost.
    """
    numbers: dict[str, dict[str, object]] = {
        "broker": {"destroyed": {"per_year": found.broker, "hours": found.hours}},
        "operator": {"hours": 1e-6},
    }
    if found.rack:
        numbers["rack"] = {"destroyed": {"per_year": found.rack}}
    if found.cluster:
        # No election waits for a destroyed leader while another replica has all records.
        numbers["operator"] = {"hours": 1e-4}
        numbers["cluster"] = {
            "power": {"per_year": found.cluster, "minutes": 1e-3, "not_returning": found.share}
        }
    return evaluate(
        Cluster(brokers={broker: str(rack) for broker, rack in enumerate(found.racks)}),
        Config(replication_factor=3, min_insync_replicas=2),
        FailureModel.from_dict(numbers),
        Workload(partitions=len(sets), records_per_second=RECORDS_PER_SECOND * len(sets)),
        placement=sets,
    )


@pytest.mark.parametrize("name", CARDS)
@pytest.mark.parametrize(
    ("racks", "partitions", "how"),
    [
        (SIX, 12, KAFKA),
        (SIX, 12, ANY),
        (SIX, 300, ANY),
        (NINE, 12, KAFKA),
        (NINE, 30, ANY),
        (NINE, 300, KAFKA),
    ],
)
def test_the_stated_error_covers_what_sets_share(
    name: str, racks: tuple[int, ...], partitions: int, how: str
) -> None:
    """Probability in a year and mean years; a single set is exact but for the site's moment."""
    sets, found = placed(how, racks, partitions), CARDS[name]
    found = Destruction(racks, *(getattr(found, part) for part in _NUMBERS))
    probability, years = first_loss(found, sets)
    result = evaluated(found, sets)
    alone = evaluated(found, sets[:1]).mean_years_to_loss / first_loss(found, sets[:1])[1]
    assert abs(alone - 1.0) < 1e-3
    for value, exact, measure in (
        (result.loss_probability_per_year, probability, "loss_probability_per_year"),
        (result.mean_years_to_loss, years * alone, "mean_years_to_loss"),
    ):
        error = result.error_bounds[measure]
        assert abs(value - exact) <= error + 1e-3 * exact
        assert error < LARGEST_ERROR[name] * value


_NUMBERS = ("hours", "broker", "rack", "cluster", "share")


@pytest.mark.parametrize("brokers", [6, 9])
def test_destroyed_racks_do_not_lose_each_set_separately(brokers: int) -> None:
    """Fires alone over 300 partitions: pairs of brokers apart lose two or three times more."""
    racks = (0, 1, 2) * (brokers // 3)
    found = Destruction(racks, 12.0, broker=0.0, rack=0.1)
    sets = placed(KAFKA, racks, 300)
    _, years = first_loss(found, sets)
    result = evaluated(found, sets)
    assert result.mean_years_to_loss == pytest.approx(years, rel=2e-3)
    # If two racks lost each pair of their brokers at a time of its own, the third all of its sets.
    pairs = (brokers // 3) ** 2
    apart = evaluated(found, sets[:1]).mean_years_to_loss / pairs
    assert years / apart == pytest.approx(
        {6: 4.0 / 1.5**2, 9: 9.0 / (11.0 / 6.0) ** 2}[brokers], rel=0.01
    )
