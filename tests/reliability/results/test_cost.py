"""What copies cost: bytes and round trips, counted another way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import advisor
from advisor.lessons.schemes.rules import ISR, Scheme, acknowledgement_ms
from advisor.reliability.common_cause.placement import place
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.results.cost import Cost, cost_of, in_bytes
from advisor.reliability.workload import Workload

LOAD = Workload(partitions=5, records_per_second=700, record_bytes=300, retention_hours=10)


def config(replicas: int, acks: str | int = "all") -> advisor.Config:
    return advisor.Config(replication_factor=replicas, min_insync_replicas=1, acks=acks)


@given(
    racks=st.lists(st.sampled_from("abc"), min_size=3, max_size=7),
    replicas=st.integers(min_value=1, max_value=3),
)
def test_every_byte_and_trip_is_counted_partition_by_partition(
    racks: list[str], replicas: int
) -> None:
    """Sums over each partition's followers, one by one, and the schemes' own rule for the wait."""
    cluster = advisor.Cluster(brokers=dict(enumerate(racks)))
    where = place(cluster, config(replicas), LOAD.partitions)
    found = cost_of(config(replicas), LOAD, where, cluster)
    lists = [replicas_of for replicas_of, count in where.sets for _ in range(count)]
    per_partition = 700 * 300 / 5
    trips = [
        [0.5 if racks[broker] == racks[one[0]] else 2.0 for broker in one[1:]] for one in lists
    ]
    crossing = sum(trip == 2.0 for one in trips for trip in one)
    waits = [acknowledgement_ms(Scheme(ISR, replicas), 0.0, one) for one in trips]
    assert found.bytes_per_second_between_racks == pytest.approx(per_partition * crossing)
    assert found.bytes_per_second_between_brokers == pytest.approx(
        per_partition * sum(len(one) - 1 for one in lists)
    )
    assert found.acknowledgement_ms == pytest.approx(sum(waits) / 5)
    assert found.bytes_stored == pytest.approx(
        sum(len(one) * per_partition * 36_000 for one in lists)
    )


@pytest.mark.parametrize("acks", [0, 1])
def test_acks_0_and_1_do_not_wait_for_followers(acks: int) -> None:
    """With acks below all a record waits for no follower, and stores and sends the same."""
    cluster = advisor.Cluster.uniform(brokers=3, racks=3)
    where = place(cluster, config(3), 5)
    every, fewer = (cost_of(config(3, one), LOAD, where, cluster) for one in ("all", acks))
    assert (fewer.acknowledgement_ms, every.acknowledgement_ms) == (0.0, 2.0)
    assert "acks=all adds about 2 ms" in every.summary
    assert fewer.summary.endswith("; no acknowledgement waits for followers.")
    assert fewer.bytes_stored == every.bytes_stored
    assert fewer.bytes_per_second_between_racks == every.bytes_per_second_between_racks


def test_a_result_carries_its_cost() -> None:
    """`evaluate` prices the placement that it was given, and says so in words and as data."""
    model = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1, "hours": 5}}})
    cluster = advisor.Cluster(brokers={1: "a", 2: "a", 3: "b"})
    result = advisor.evaluate(cluster, config(2), model, LOAD, placement=((1, 2), (1, 2)))
    assert result.cost.bytes_per_second_between_racks == 0.0
    assert result.cost.acknowledgement_ms == 0.5
    assert result.to_dict()["cost"] == result.cost.to_dict()
    assert result.cost.summary in result.explain()
    assert "kB/s" in result.cost._repr_html_()


def test_unknown_racks_are_not_priced() -> None:
    """With unknown racks no traffic between racks is stated, and the longer wait is assumed."""
    cluster = advisor.Cluster(brokers={1: "a", 2: None, 3: "b"})
    found = cost_of(config(2), LOAD, place(cluster, config(2), 5), cluster)
    assert found.bytes_per_second_between_racks is None
    assert found.acknowledgement_ms == 2.0
    assert "racks unknown" in found.summary


def test_bytes_in_words() -> None:
    """Two digits and a decimal unit, carried over where rounding reaches the next."""
    said = {0: "0 bytes", 512: "510 bytes", 994_000: "990 kB", 996_000: "1 MB", 2.34e9: "2.3 GB"}
    said |= {1.85e12: "1.9 TB", 3e18: "3,000 PB"}
    assert {amount: in_bytes(amount) for amount in said} == said
    assert "0 bytes stored" in repr(Cost(0, 0, 0, 0))


def test_every_number_has_its_place_in_the_sentence() -> None:
    """Four numbers that differ, each where it belongs, in words and as plain data."""
    cost = Cost(
        bytes_stored=2e9,
        bytes_per_second_between_brokers=3e6,
        bytes_per_second_between_racks=4e3,
        acknowledgement_ms=5.0,
    )
    assert cost.summary == (
        "2 GB stored; followers fetch 3 MB/s, 4 kB/s of it across racks; acks=all adds about 5 ms "
        "of latency (round trips only)."
    )
    assert cost.to_dict() == {
        "bytes_stored": 2e9,
        "bytes_per_second_between_brokers": 3e6,
        "bytes_per_second_between_racks": 4e3,
        "acknowledgement_ms": 5.0,
    }
