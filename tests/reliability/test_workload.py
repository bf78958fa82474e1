"""Which workloads are refused, and what the error says."""

import math
from dataclasses import fields

import pytest

from advisor.cluster import Cluster
from advisor.errors import InputError
from advisor.protocol.rules.config import Config
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.workload import Workload

# More digits than Python converts to text.
ENDLESS = pytest.param(-(10**5000), id="5001 digits")
# Traffic by the hour is tested with the restarts that it matters to.
AMOUNTS = [f.name for f in fields(Workload) if f.name not in ("partitions", "hourly")]


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize(
    "value", [-1.0, math.nan, math.inf, -math.inf, 1.1e18, 1e300, 10**400, ENDLESS]
)
def test_an_amount_is_finite_and_plausible(name, value):
    """Every field; integers too large for a float are abbreviated in the error."""
    with pytest.raises(InputError, match=rf"^{name}=.* must be a number from 0 to 1e\+18$") as said:
        Workload(**{name: value})
    assert len(str(said.value)) < 100


@pytest.mark.parametrize("name", AMOUNTS)
@pytest.mark.parametrize("value", ["x", True, False, (1.0,)])
def test_an_amount_is_a_number(name, value):
    """Text, booleans and tuples are refused on construction."""
    with pytest.raises(InputError, match=rf"^{name}=.* must be a number$"):
        Workload(**{name: value})


@pytest.mark.parametrize("name", sorted(set(AMOUNTS) - {"bytes_per_broker"}))
def test_only_bytes_per_broker_may_be_none(name):
    """None means the broker's share of the topic there, and is refused elsewhere."""
    assert Workload().bytes_per_broker is None
    with pytest.raises(InputError, match=f"{name}=None must be a number"):
        Workload(**{name: None})


@pytest.mark.parametrize("name", AMOUNTS)
def test_zero_is_an_amount(name):
    """Every field may be zero."""
    assert getattr(Workload(**{name: 0}), name) == 0


def test_more_than_an_exabyte_is_not_retained():
    """Each number is allowed, but not their product; the error names all three."""
    kept = {"records_per_second": 1e9, "retention_hours": 1e6 / 3600.0}
    assert Workload(**kept, record_bytes=990).retained_bytes == pytest.approx(9.9e17)
    said = "records_per_second=.*record_bytes=.*retention_hours=.* together keep 1.1e\\+18 bytes"
    with pytest.raises(InputError, match=said):
        Workload(**kept, record_bytes=1_100)


@pytest.mark.parametrize("partitions", [0, -1, 1.0, True, None, "1", 10**7 + 1, 10**400, ENDLESS])
def test_partitions_are_a_whole_number(partitions):
    """A whole number from 1 to ten million."""
    said = r"partitions=.* must be a whole number from 1 to 10,000,000$"
    with pytest.raises(InputError, match=said) as found:
        Workload(partitions=partitions)
    assert len(str(found.value)) < 100


def test_a_broker_that_holds_more_takes_longer_to_copy():
    """With two replicas the replaced broker is out until it has copied all that it held."""
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
