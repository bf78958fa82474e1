"""Losing a rack takes its controllers, too: whether writes go on, and what is said of it."""

import pytest

import advisor
from advisor.advice.tolerance import fatal_racks, quorum_words, rack_rule
from advisor.present.outcome import rack_words

CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
CONFIG = advisor.Config(replication_factor=3, min_insync_replicas=2)
BROKERS: dict[int, str | None] = {1: "a", 2: "b", 3: "c"}
HALF_IN_A: dict[int, str | None] = {1: "a", 2: "a", 3: "b"}
GOALS = advisor.Goals(loss_probability_per_year=1.0, write_unavailability=1.0, survive="rack")
TOPIC = (
    "Topic: t\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    "\tTopic: t\tPartition: 0\tLeader: {0}\tReplicas: {1}\tIsr: {1}\n"
)


def cluster(controllers: dict[int, str | None] | None) -> advisor.Cluster:
    return advisor.Cluster(brokers=BROKERS, controllers=controllers)


@pytest.mark.parametrize(
    ("controllers", "met"),
    [
        (None, True),
        (dict(BROKERS), True),
        (HALF_IN_A, False),
        ({1: "a", 2: "b"}, False),
        ({7: "a", 8: "a", 9: None}, False),  # certain, whatever the third one's rack
        ({7: "d", 8: "d", 9: "d"}, True),  # a rack without replicas
    ],
)
def test_a_rack_with_the_majority_of_controllers_stops_writes(
    controllers: dict[int, str | None] | None, met: bool
) -> None:
    """The goal to survive a rack is met only if no rack that holds replicas is fatal."""
    advice = advisor.recommend(cluster(controllers), CARD, advisor.Workload(), GOALS)
    best = next(c for c in advice.choices if c.name.startswith("RF 3, min.insync.replicas 2, acks"))
    assert best.meets == {**best.meets, "survive_without_loss": True, "survive_writable": met}
    (outcome,) = (g for g in advice.quick_verdict.actions[0].goals if g.goal == "survive")
    assert outcome.state == ("met" if met else "out of reach")


def test_a_topic_away_from_that_rack_goes_on() -> None:
    """Without a replica in the fatal rack, a partition keeps its leader and its ISR."""
    brokers = {1: "a", 2: "a", 3: "b", 4: "c", 5: "d"}
    voters = {1: "a", 2: "a", 3: "b"}
    met = {}
    for replicas in ("3,4,5", "1,3,4"):
        text = TOPIC.format(replicas[0], replicas)
        described = advisor.load_cluster(text, racks=brokers, controllers=voters)
        audited = advisor.audit(described, CARD, goals=GOALS)
        met[replicas] = audited.topics[0].choice.meets["survive_writable"]
    assert met == {"3,4,5": True, "1,3,4": False}


def test_sentences_name_the_rack_or_the_condition() -> None:
    """Known: which rack; unknown: what must hold; known and spread: nothing."""
    said = "Losing a whole rack takes one replica of a partition at worst: no acknowledged record "
    said += "is lost, and writes go on"
    condition = ", if the controllers that are left are a majority"
    rack_a = ", unless it is rack a, which has 2 of the 3 controllers"
    rule = "RF 3 with min ISR 2 keeps every acknowledged record and goes on writing when any one "
    rule += "of the 3 racks is lost"
    for voters, words in ((None, condition), (HALF_IN_A, rack_a), (dict(BROKERS), "")):
        assert rack_words(cluster(voters), CONFIG) == f"{said}{words}."
        assert rack_rule(BROKERS, "kraft", voters) == f"{rule}{words}."
    two = {1: "a", 2: "b"}
    assert fatal_racks(two, {"a", "b"}) == ("a", "b")
    words = quorum_words(two, ("a", "b"))
    assert words == ", unless it is rack a or b, each with 1 of the 2 controllers"
    assert "ZooKeeper servers" in quorum_words(None, (), "zookeeper")
    assert quorum_words({1: "a", 2: None, 3: "b"}, ()) == condition
