"""Consumer groups and transactions stop with their internal topics."""

import pytest
from sampled_runs import card

from advisor import Cluster, Config, Workload, evaluate, simulate
from advisor.cluster.model import Partition, Topic
from advisor.cluster.observed import Observed, Setting
from advisor.errors import NotComputedError
from advisor.reliability.internal_topics import OFFSETS, TRANSACTIONS, dependents

MODEL = card(broker_crash={"per_year": 10.0, "minutes": 60.0})
CONFIG = Config(kafka_version="4.1", replication_factor=3, min_insync_replicas=2)
DOWN = (10.0 / 8760.0) / (1.0 + 10.0 / 8760.0)
LOAD = Workload(partitions=6)


def described(*topics: Topic) -> Cluster:
    return Cluster(brokers={1: "a", 2: "b", 3: "c"}, topics=topics)


def one_replica(name: str, **configs: str) -> Topic:
    """Make a topic as the shipped properties files have it, with a partition on each broker."""
    partitions = tuple(
        Partition(index=i, leader=i + 1, replicas=(i + 1,), isr=(i + 1,)) for i in range(3)
    )
    return Topic(name=name, partitions=partitions, configs=configs)


def test_a_group_with_one_replica_of_its_offsets_stops_with_that_broker() -> None:
    """With RF 1 a group is stopped as long as one broker is down, however safe the topic is."""
    cluster = described(one_replica(OFFSETS))
    result = evaluate(cluster, CONFIG, MODEL, LOAD)
    group = dependents(result).consumer_group
    parts = dict(group.parts)
    assert parts[OFFSETS] == pytest.approx(DOWN, rel=1e-9)
    assert parts["topic read"] == result.read_unavailability < DOWN**2
    both = 1.0 - (1.0 - DOWN) * (1.0 - result.read_unavailability)
    assert group.unavailability == pytest.approx(both, rel=1e-9)
    assert group.bounds[0] <= group.unavailability <= group.bounds[1]


def test_a_transaction_needs_three_partitions() -> None:
    """With RF 1 of both internal topics a transaction needs two single brokers and the topic."""
    cluster = described(
        one_replica(OFFSETS), one_replica(TRANSACTIONS, **{"min.insync.replicas": "1"})
    )
    found = dependents(evaluate(cluster, CONFIG, MODEL, LOAD))
    whole = dict(found.transaction.parts)["topic written"]
    assert found.transaction.unavailability == pytest.approx(
        1.0 - (1.0 - DOWN) ** 2 * (1.0 - whole), rel=1e-9
    )
    assert len(found.assumptions) == 1
    assert "__consumer_offsets states no min.insync.replicas" in found.assumptions[0]


def test_what_is_not_described_is_as_kafka_makes_it() -> None:
    """Three replicas; min ISR 2 for transactions, which then equal the topic, and 1 for offsets."""
    result = evaluate(described(), CONFIG, MODEL, LOAD)
    found = dependents(result)
    parts = dict(found.transaction.parts)
    assert parts[TRANSACTIONS] == pytest.approx(result.write_unavailability, rel=1e-9)
    assert parts[OFFSETS] < parts[TRANSACTIONS]
    assert len(found.assumptions) == 2


def test_brokers_that_were_asked_give_the_min_isr_of_offsets() -> None:
    """A running cluster whose brokers ask for 2 in-sync replicas asks the same for offsets."""
    settings = {"min.insync.replicas": Setting("2", "STATIC_BROKER_CONFIG")}
    observed = Observed(mode="kraft", broker_settings=dict.fromkeys((1, 2, 3), settings))
    cluster = Cluster(brokers={1: "a", 2: "b", 3: "c"}, observed=observed)
    parts = dict(evaluate(cluster, CONFIG, MODEL, LOAD).dependents().transaction.parts)
    assert parts[OFFSETS] == parts[TRANSACTIONS]


def test_two_brokers_never_get_internal_topics_of_three_replicas() -> None:
    """Kafka refuses to create them, so that no group ever commits."""
    config = Config(kafka_version="4.1", replication_factor=2, min_insync_replicas=1)
    found = evaluate(Cluster.uniform(2, 2), config, MODEL, LOAD).dependents()
    assert found.consumer_group.unavailability == 1.0
    assert found.transaction.bounds == (1.0, 1.0)
    assert any("needs 3 brokers" in text for text in found.assumptions)


def test_a_sample_says_that_it_holds_one_topic() -> None:
    """What is not sampled is said in a sentence that names the way to it."""
    sampled = simulate(described(), CONFIG, MODEL, LOAD, years=32, seed=1, engine="local")
    with pytest.raises(NotComputedError, match="evaluate"):
        sampled.dependents()
