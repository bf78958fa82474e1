"""What is asked of the decision about described clusters."""

import tomllib
from pathlib import Path

import pytest

import advisor
from advised import MODEL, described
from advisor.advice.deciding import surviving
from advisor.advice.migration.plan import make_plan
from advisor.cluster import Cluster, Partition, Topic
from advisor.decision import Depth, Requirements, Setting, Verdict
from advisor.errors import InputError
from decided import decide

CLUSTERS = Path(__file__).resolve().parents[2] / "data" / "clusters"
QUICK = Depth(draws=False, sensitivity=False, others=False)


def sample() -> Cluster:
    """Six topics on six brokers in three zones."""
    racks = tomllib.loads((CLUSTERS / "three-az-six-brokers.racks.toml").read_text())["racks"]
    return advisor.load_cluster(CLUSTERS / "three-az-six-brokers.txt", racks=racks)


def on(racks: str, *partitions: tuple[int, ...], min_isr: int = 1) -> Cluster:
    """A cluster of one topic, a broker for each letter."""
    rows = tuple(Partition(n, ids[0], ids, ids) for n, ids in enumerate(partitions))
    topic = Topic("orders", rows, {"min.insync.replicas": str(min_isr)})
    return Cluster(brokers=dict(enumerate(racks, 1)), topics=(topic,), kafka_version="4.1")


def verdict(cluster: Cluster, **options: object) -> Verdict:
    """Decide at the middle values."""
    return decide(cluster, MODEL, depth=QUICK, **options)


def test_the_sample_cluster() -> None:
    """Four of six topics change; at most 60 words, which name the worst."""
    model = advisor.load_model("three_az_cloud")
    answer = decide(sample(), model, depth=QUICK)
    assert answer.headline == "Change 4 of 6 topics to RF 3, min ISR 2, acks=all."
    assert answer.text.startswith("__consumer_offsets (RF 1) loses records every ")
    assert "audit (min ISR 3) stops writes" in answer.text
    assert len(str(answer).split()) <= 60
    assert [(a.topic, a.severity) for a in answer.actions] == [
        ("__consumer_offsets", "critical"),
        ("audit", "critical"),
        ("payments", "warning"),
        ("clickstream", "warning"),
        ("__transaction_state", "ok"),
        ("orders", "ok"),
    ]
    assert [a.topic for a in answer.actions if a.held_back] == ["audit"]


def test_candidates_stand_where_the_plan_puts_them() -> None:
    """The replicas of a topic that changes are those of the emitted plan."""
    cluster, load = sample(), advisor.Workload()
    config = advisor.Config(replication_factor=3, min_insync_replicas=2)
    after = {t.name: t for t in make_plan(cluster, config, load).after}
    for action in verdict(cluster).actions:
        if action.set_to is not None:
            held = tuple(p.replicas for p in after[action.topic].partitions)
            assert action.set_to.placement == held, action.topic


def test_two_brokers_never_get_one_replica() -> None:
    """RF 2 stays, and RF 1 gets a second one."""
    for replicas in ((1, 2), (1,)):
        (action,) = verdict(on("ab", replicas)).actions
        assert action.after.key == (2, 1, "all", False)


def test_a_topic_of_mixed_rf_counts_as_its_smallest() -> None:
    """And its partitions with more replicas keep them."""
    (action,) = verdict(on("abcabc", (1, 2), (2, 3, 4, 5), min_isr=2)).actions
    assert (action.today.replication_factor, action.after.replication_factor) == (2, 3)
    assert action.set_to is not None
    assert [len(replicas) for replicas in action.set_to.placement or ()] == [3, 3]


def test_producers_with_acks_1_are_asked_for_all() -> None:
    """Their settings are part of today's."""
    (action,) = verdict(on("abc", (1, 2, 3), min_isr=2), producer={"acks": 1}).actions
    assert (action.today.config.acks, action.after.config.acks) == (1, "all")


def test_a_rack_is_survived() -> None:
    """Min ISR 2 on three racks, whatever the price; with two racks it is out of reach."""
    wanted = Requirements(survive="rack", minutes_per_loss=0.0)
    (action,) = verdict(on("abc", (1, 2, 3)), requirements=wanted).actions
    assert (action.after.min_insync_replicas, action.goals[0].state) == (2, "met")
    (action,) = verdict(on("abab", (1, 2, 3)), requirements=wanted).actions
    assert action.goals[0].state == "out of reach"


def test_what_survives_a_rack_and_a_broker() -> None:
    """Copies in other racks, min ISR above the copies in one, and a majority of controllers."""
    cluster = on("abca", (1, 2, 3))
    config = advisor.Config(replication_factor=3, min_insync_replicas=2, acks="all")
    apart, together = Setting(config, ((1, 2, 3),)), Setting(config, ((1, 4, 3),))
    survives = surviving("rack", cluster)
    assert survives is not None
    assert (survives(apart), survives(together)) == (True, False)
    assert survives(Setting(config))  # as Kafka places it
    voters = {7: "a", 8: "a", 9: "b"}
    survives = surviving("rack", Cluster(brokers=cluster.brokers, controllers=voters))
    assert survives is not None
    assert not survives(apart)
    one = surviving("broker", cluster)
    assert one is not None
    assert one(together)
    assert surviving(None, cluster) is None
    with pytest.raises(InputError, match="--racks"):
        surviving("rack", Cluster(brokers={1: None, 2: "a"}))


def test_what_is_broken_now_comes_first() -> None:
    """A partition without a leader is in the headline."""
    rows = (Partition(0, None, (1, 2, 3), ()), Partition(1, 2, (2, 3, 1), (2, 3, 1)))
    topic = Topic("orders", rows, {"min.insync.replicas": "2"})
    cluster = Cluster(brokers={1: "a", 2: "b", 3: "c"}, topics=(topic,), kafka_version="4.1")
    answer = verdict(cluster)
    assert answer.headline.startswith("Broken now")
    assert answer.now[0].startswith("orders: ")
    assert verdict(described()).now == ()
