"""What a workload refuses, and what it says of itself."""

import math
from dataclasses import fields

import pytest

from advisor.cluster import Cluster
from advisor.errors import InputError
from advisor.protocol.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.model import FailureModel
from advisor.reliability.workload import Workload

AMOUNTS = [field.name for field in fields(Workload) if field.name != "partitions"]


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf, -math.inf, 10**400])
def test_an_amount_is_finite_and_not_negative(name, value):
    """Each of the fields, also where it is a whole number that no float can hold."""
    with pytest.raises(InputError, match=rf"^{name}=.* must be finite and not negative$"):
        Workload(**{name: value})


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("value", ["x", True, False, (1.0,)])
def test_an_amount_is_a_number(name, value):
    """A text, a truth value or a list is refused where it stands, not where it is used."""
    with pytest.raises(InputError, match=rf"^{name}=.* must be a number$"):
        Workload(**{name: value})


@pytest.mark.parametrize("name", sorted(set(AMOUNTS) - {"bytes_per_broker"}))
def test_only_the_bytes_of_a_broker_may_be_left_open(name):
    """None is the topic's own share there, and nothing elsewhere."""
    assert Workload().bytes_per_broker is None
    with pytest.raises(InputError, match=f"{name}=None must be a number"):
        Workload(**{name: None})


@pytest.mark.parametrize("name", AMOUNTS)
def test_nothing_at_all_is_an_amount(name):
    """Zero is taken for each of the fields."""
    assert getattr(Workload(**{name: 0}), name) == 0


@pytest.mark.parametrize(
    "amounts",
    [{"records_per_second": 1e300, "record_bytes": 10**6}, {"retention_hours": 1e305}],
)
def test_amounts_whose_product_is_endless_are_refused(amounts):
    """Each number is finite, but not the bytes that are kept; all three are named."""
    said = "records_per_second=.*record_bytes=.*retention_hours=.*more bytes than can be counted"
    with pytest.raises(InputError, match=said):
        Workload(**amounts)


@pytest.mark.parametrize("partitions", [0, -1, 1.0, True, None, "1"])
def test_partitions_are_counted(partitions):
    """A whole number from 1."""
    with pytest.raises(InputError, match=r"partitions=.* must be a whole number above 0"):
        Workload(partitions=partitions)


def test_a_broker_that_holds_more_is_copied_longer():
    """With two replicas the second broker is away until it has copied all that it held."""
    card = FailureModel.from_dict(
        {
            "broker": {"destroyed": {"per_year": 1.0, "hours": 1.0}},
            "copy": {"bytes_per_second": 1e6},
        }
    )
    chance = [
        evaluate(
            Cluster(brokers={1: "a", 2: "b"}),
            Config(replication_factor=2),
            card,
            Workload(bytes_per_broker=held),
        ).loss_probability_per_year
        for held in (0, 36e9, 360e9)
    ]
    assert chance == sorted(set(chance))
