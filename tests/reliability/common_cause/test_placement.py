"""Placement of partitions, rack patterns and classes of exchangeable replica sets."""

from itertools import permutations, product
from operator import mul

import numpy as np
import pytest

from advisor.cluster import Cluster
from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.placement import fewest_voters, place
from advisor.reliability.failures.fault_processes import Exchangeable
from advisor.reliability.workload import Workload

CLUSTER = Cluster(brokers={1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"})


@pytest.mark.parametrize(("version", "algorithm"), [("4.2", "striped"), ("2.0", "rack_alternated")])
def test_placed_as_kafka_places(version, algorithm):
    """A new topic is placed as that version's controller would place it."""
    config = Config(kafka_version=version, replication_factor=3)
    found = place(CLUSTER, config, partitions=10)
    expected = assign(CLUSTER.brokers, partitions=10, replication_factor=3, algorithm=algorithm)
    assert found.partitions == 10
    assert {r for r, _ in found.sets} == {tuple(r) for r in expected.values()}


@pytest.mark.parametrize(
    ("replicas", "pattern"),
    [((5, 1, 2), (0, 1, 1)), ((1, 5, 2), (0, 0, 1)), ((5, 3, 1, 2), (0, 1, 1, 2))],
)
def test_patterns_put_the_leaders_rack_first(replicas, pattern):
    """Exchangeable followers: the fullest rack comes next. Otherwise the order stays."""
    found = place(CLUSTER, Config(replication_factor=len(replicas)), 1, placement=(replicas,))
    assert found.rack_pattern(replicas, Exchangeable.FOLLOWERS) == pattern
    assert found.rack_pattern((1, 5, 2), Exchangeable.NONE) == (0, 1, 0)


def test_a_set_counts_once_with_any_leader():
    """Brokers 1, 2 and 5 lose together; led from the smaller rack they have another pattern."""
    lists = ((1, 2, 5), (5, 1, 2), (5, 2, 1), (6, 1, 2))
    found = place(CLUSTER, Config(replication_factor=3), 1, placement=lists)
    classes = found.replica_set_classes()
    counted = {pattern: (sets.partitions, sets.sets) for pattern, sets in classes.items()}
    assert counted == {(0, 1, 1): (3, 2), (0, 0, 1): (1, 0)}
    sites, counts = classes[0, 1, 1].exposure["broker", 3]
    ids = np.array(sorted(CLUSTER.brokers))[sites]
    assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == {1: 2, 2: 2, 5: 1, 6: 1}
    assert next(iter(classes)) == (0, 1, 1)
    together = found.replica_set_classes(Exchangeable.ALL)
    counted = {pattern: (sets.partitions, sets.sets) for pattern, sets in together.items()}
    assert counted == {(0, 0, 1): (4, 2)}


def test_brokers_without_a_rack_have_racks_of_their_own():
    """Two brokers of unknown rack are not assumed to share one."""
    cluster = Cluster(brokers={1: None, 2: None, 3: "a"})
    found = place(cluster, Config(replication_factor=3), 1, placement=((1, 2, 3),))
    assert found.rack_pattern((1, 2, 3), Exchangeable.NONE) == (0, 1, 2)


@pytest.mark.parametrize(
    ("replicas", "sentence"),
    [((1, 9), "broker 9 is not in the cluster"), ((1, 1), "two replicas"), ((1,), "1 replicas")],
)
def test_impossible_placements_are_refused(replicas, sentence):
    """Unknown brokers, a broker twice, and another number of replicas than the RF."""
    with pytest.raises(InputError, match=sentence):
        place(CLUSTER, Config(replication_factor=2), 1, placement=(replicas,))


@pytest.mark.parametrize(
    "field", ["records_per_second", "record_bytes", "retention_hours", "replication_delay_ms"]
)
@pytest.mark.parametrize("value", [-1, float("nan"), float("inf"), "many", True])
def test_impossible_loads_are_refused(field, value):
    """Negative, infinite or textual amounts: the error names the field."""
    with pytest.raises(InputError, match=field):
        Workload(**{field: value})


@pytest.mark.parametrize("partitions", [0, -3, 1.5, True])
def test_a_topic_has_partitions(partitions):
    """Zero, negative, fractional or boolean partitions are refused."""
    with pytest.raises(InputError, match="partitions"):
        Workload(partitions=partitions)


def test_the_load_is_spread_over_the_partitions():
    """Two partitions take half each and retain a week of it."""
    load = Workload(partitions=2, records_per_second=10.0, record_bytes=100)
    assert load.records_per_hour_per_partition == 18_000
    assert load.retained_records_per_partition == 18_000 * 168
    assert load.retained_bytes == 2 * 18_000 * 168 * 100


@pytest.mark.parametrize(
    "voters", [(2, 1), (3, 1, 1), (2, 2, 1), (1, 1, 1), (4, 3, 2, 2), (3, 2, 2)]
)
def test_fewer_voters_lose_the_majority_in_the_same_outages(voters):
    """Every choice of racks takes half of the voters with the fewest if it does with the given."""
    fewest = fewest_voters(voters)
    assert sum(fewest) <= sum(voters)
    for out in product((0, 1), repeat=len(voters)):
        lost = [2 * sum(map(mul, out, n)) >= sum(n) for n in (voters, fewest)]
        assert lost[0] == lost[1]


def test_a_voter_that_never_decides_does_not_tell_racks_apart():
    """Of three voters two are in one rack: the other racks share a chain, two in all, not three."""
    brokers = {1: "a", 2: "b", 3: "c"}
    lists = tuple(permutations(brokers))
    cluster = Cluster(brokers=brokers, controllers={1: "a", 2: "a", 3: "b"})
    found = place(cluster, Config(replication_factor=3), 1, lists, racks_at_once=1)
    patterns = found.replica_set_classes()
    assert sorted(pattern.voters for pattern in patterns) == [(0, 1, 0), (1, 0, 0)]
