"""Consumer groups and transactions stop with their internal topics."""

import pytest

from advisor import Cluster, Config, FailureModel, Workload, evaluate, simulate
from advisor.cluster.observed import Observed, Setting
from advisor.cluster.topic import Partition, Topic
from advisor.errors import NotComputedError
from advisor.reliability.results.dependents import OFFSETS, TRANSACTIONS, dependents
from sampled_runs import card

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


def test_partitions_half_way_to_more_replicas_count_each_by_its_own() -> None:
    """One of three partitions of the offsets with three replicas, two with one: their mean."""
    singles = one_replica(OFFSETS).partitions
    grown = Partition(index=0, leader=1, replicas=(1, 2, 3), isr=(1, 2, 3))
    mixed = Topic(name=OFFSETS, partitions=(grown, *singles[1:]), configs={})
    parts = dict(evaluate(described(mixed), CONFIG, MODEL, LOAD).dependents().consumer_group.parts)
    # The third is down only while all its brokers are, or wait for each other: two at least.
    assert parts[OFFSETS] == pytest.approx(2 * DOWN / 3, abs=DOWN**2)


def test_internal_topics_are_led_as_the_clusters_other_topics() -> None:
    """With ELR and without, what is written by defaults equals the topic that is like it."""
    model = card(
        broker_crash={"per_year": 20.0, "minutes": 600.0},
        broker_destroyed={"per_year": 1.0, "hours": 12.0},
    )
    for elr in (True, False):
        config = CONFIG.changed(eligible_leader_replicas=elr)
        result = evaluate(described(), config, model, Workload(partitions=50))
        parts = dict(result.dependents().transaction.parts)
        assert parts[TRANSACTIONS] == pytest.approx(result.write_unavailability, rel=1e-9)


@pytest.mark.parametrize("mechanism", ["cluster.power", "rack.network"])
def test_what_strikes_every_broker_stops_all_parts_together(mechanism: str) -> None:
    """One outage of everything is one outage for a transaction, not three that come apart.

    The rack is the whole cluster in one case; with three racks its outages come apart.
    """
    room, what = mechanism.split(".")
    model = FailureModel.from_dict({room: {what: {"per_year": 2.0, "minutes": 600.0}}})
    for racks in ({1: "a", 2: "a", 3: "a"}, {1: "a", 2: "b", 3: "c"}):
        found = evaluate(Cluster(brokers=racks), CONFIG, model, LOAD).dependents().transaction
        together = room == "cluster" or len(set(racks.values())) == 1
        assert (found.unavailability == pytest.approx(found.bounds[0], rel=1e-9)) == together
    apart = evaluate(Cluster(brokers={1: "a", 2: "a", 3: "a"}), CONFIG, MODEL, LOAD).dependents()
    assert apart.transaction.unavailability > 2.0 * apart.transaction.bounds[0]


def test_outages_of_all_and_of_one_add_up() -> None:
    """The site's outages count once, those of two single brokers once each: to second order.

    After an outage of the site all brokers are back together: a topic that needs two of them waits
    no longer than one that needs one.
    """
    model = FailureModel.from_dict(
        {**MODEL.to_dict(), "cluster": {"power": {"per_year": 2.0, "minutes": 600.0}}}
    )
    one = {"min.insync.replicas": "1"}
    cluster = described(one_replica(OFFSETS, **one), one_replica(TRANSACTIONS, **one))
    result = evaluate(cluster, CONFIG, model, LOAD)
    site = result.causes["write_unavailability"]["cluster.power"]
    alone = 2.0 * 10.0 / 8760.0
    assert site == pytest.approx(alone, rel=0.01)
    found = result.dependents().transaction
    second_order = (site + 3.0 * DOWN) ** 2
    assert found.unavailability == pytest.approx(site + 2.0 * DOWN, abs=second_order)
    assert dict(found.parts)[OFFSETS] == pytest.approx(alone + DOWN, abs=second_order)


def test_old_versions_have_neither_transactions_nor_offsets_of_their_own() -> None:
    """Before 0.11 there are no transactions; before 0.8.2 groups keep offsets in ZooKeeper."""
    for version, group, transaction in (("0.8.1", False, False), ("0.10.2", True, False)):
        config = Config(kafka_version=version, replication_factor=3, acks="all")
        found = evaluate(described(), config, MODEL, LOAD).dependents()
        assert (found.consumer_group is not None, found.transaction is not None) == (
            group,
            transaction,
        )
        assert found.explain().startswith("A consumer group is down") == group


def test_dependents_are_told_in_words() -> None:
    """A sentence a client with its time, bounds and parts, and one for each assumption."""
    one = {"min.insync.replicas": "1"}
    cluster = described(one_replica(OFFSETS, **one), one_replica(TRANSACTIONS, **one))
    found = evaluate(cluster, CONFIG, MODEL, LOAD).dependents()
    group, transaction = found.explain().splitlines()
    assert group.startswith("A consumer group is down 10 hours a year: topic read less than")
    assert transaction.startswith(
        "A transaction is down 20 hours a year (10 hours a year to 20 hours a year, whether or"
    )
    assert transaction.endswith("__consumer_offsets 10 hours a year.")
    (assumed,) = (
        evaluate(described(one_replica(OFFSETS, **one)), CONFIG, MODEL, LOAD)
        .dependents()
        .explain()
        .splitlines()[2:]
    )
    assert assumed.startswith("Assumed: __transaction_state is not described")
    assert (
        found.to_dict()["consumer_group"]["unavailability"] == found.consumer_group.unavailability
    )


def test_a_sample_says_that_it_holds_one_topic() -> None:
    """What is not sampled is said in a sentence that names the way to it."""
    sampled = simulate(described(), CONFIG, MODEL, LOAD, years=32, seed=1, engine="local")
    with pytest.raises(NotComputedError, match="evaluate"):
        sampled.dependents()
