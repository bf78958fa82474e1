"""Where every evaluation takes long, intervals come from fewer draws of the card."""

import pytest

import advisor
from advisor.reliability.failures.uncertainty import MANY_PARTITIONS, parameter_draws
from advisor.reliability.results.reliability import Reliability

CARD = advisor.FailureModel.from_dict(
    {"broker": {"crash": {"per_year": {"value": 2.0, "low": 1.0, "high": 4.0}, "minutes": 10.0}}}
)
CONFIG = advisor.Config(replication_factor=1, acks=1)
STOPS = "write_unavailability"


def result(partitions: int) -> Reliability:
    load = advisor.Workload(partitions=partitions)
    return advisor.evaluate(advisor.Cluster.uniform(3), CONFIG, CARD, load)


@pytest.mark.parametrize(
    ("partitions", "draws"), [(MANY_PARTITIONS, 32), (MANY_PARTITIONS + 1, 16)]
)
def test_many_partitions_take_fewer_draws(partitions: int, draws: int) -> None:
    """The first of the usual ones, so that results can still be compared draw by draw."""
    found = result(partitions)
    assert found.swings_are_quick == (draws == 32)
    low, high = found.interval(STOPS)
    assert low < getattr(found, STOPS) < high
    assert len(found.samples[STOPS]) == draws
    usual = [card["broker.crash.per_year"] for card in parameter_draws(CARD, found.states)]
    own = [card["broker.crash.per_year"] for card in parameter_draws(CARD, 1, partitions)]
    assert own == usual[:draws]


def test_few_and_many_partitions_are_compared_on_the_same_draws() -> None:
    """Refused writes are a share of the time, which the number of partitions does not change."""
    few, many = result(10), result(MANY_PARTITIONS + 1)
    for found in (few, many):
        found.interval(STOPS)
    assert many.samples[STOPS] == pytest.approx(few.samples[STOPS][:16], rel=1e-6)
