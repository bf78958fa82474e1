"""The example of a loss is the shortest one, and its scenario runs."""

import re

import pytest

from advisor.advice.recommendations.loss_story import likeliest, tell
from advisor.cluster import Cluster
from advisor.formatting import percent
from advisor.protocol.rules.config import Config
from advisor.protocol.scenario.player import play
from advisor.reliability.evaluate import evaluate
from advisor.reliability.failures.failure_model import FailureModel, load_model


@pytest.mark.parametrize(
    ("settings", "faults"),
    [
        ({"replication_factor": 1}, "1 fault is enough to lose an acknowledged record ("),
        ({"replication_factor": 2, "min_insync_replicas": 1}, "2 faults are enough"),
        ({"replication_factor": 3, "min_insync_replicas": 2}, "3 faults are enough"),
        ({"replication_factor": 3, "acks": 1}, "1 fault is enough"),
    ],
)
def test_the_fewest_faults(settings, faults):
    """As many faults as copies lose a record; with acks=1 one does. The scenario plays."""
    story = tell(Config(**settings))
    assert story.said.startswith(faults)
    assert (", and fewer are not (" in story.said) == ("faults" in faults)
    assert play(story.scenario).ok
    assert "NoAcknowledgedRecordLost" in story.scenario


def test_no_loss_found():
    """The sentence says how far the search went."""
    story = tell(Config(replication_factor=4, min_insync_replicas=3))
    assert story.scenario == ""
    assert "60,0" in story.said


ALL = {"acks": "all"}


@pytest.mark.parametrize(
    "settings",
    [
        {"replication_factor": 1, **ALL},
        {"replication_factor": 2, "min_insync_replicas": 1, **ALL},
        {"replication_factor": 3, "min_insync_replicas": 2, **ALL},
        {"replication_factor": 3, "min_insync_replicas": 2, "kafka_version": "2.8", **ALL},
        {
            "replication_factor": 3,
            "min_insync_replicas": 2,
            "eligible_leader_replicas": False,
            "unclean_leader_election_enable": True,
            **ALL,
        },
        {"replication_factor": 3, "acks": 1},
    ],
)
def test_both_stories_end_in_a_loss_with_the_brokers_back(settings):
    """Neither ends in an outage: a leader serves reads, and the records are not among them."""
    config = Config(**settings)
    result = evaluate(Cluster.uniform(6, 3), config, load_model("three_az_cloud"))
    told = likeliest(result)
    assert told is not None
    for story in (tell(config), told):
        assert play(story.scenario).ok
        assert "LEADER_NOT_AVAILABLE" not in story.scenario
        # The end of the line: no error.
        assert re.search(r"^> read \d+$", story.scenario, re.MULTILINE)
        assert "> NoAcknowledgedRecordLost" in story.scenario
    path = result.likeliest_loss()
    assert path is not None
    assert f"{percent(path.share)} of the losses go this way" in told.said


def _of_brokers(card):
    """Only what happens to brokers one by one."""
    numbers = card.to_dict()
    kept = "broker", "copy", "detection", "election", "flush"
    return FailureModel.from_dict({name: numbers[name] for name in kept if name in numbers})


def test_the_likeliest_loss_goes_through_the_mechanisms_of_the_chain():
    """A broker that limps and then dies, at min ISR 1; disks and their replacements in one rack."""
    limps = evaluate(
        Cluster.uniform(6, 3),
        Config(replication_factor=3, min_insync_replicas=1, acks="all"),
        _of_brokers(load_model("three_az_cloud")),
    )
    told = likeliest(limps)
    assert told is not None
    first = "One broker stops serving its followers (half-dead brokers), then "
    assert told.said.startswith(f"{first}the host of that broker dies: ")
    assert "\nlimp 1\n" in told.scenario
    assert "\npower-off 1\n" in told.scenario
    disks = evaluate(
        Cluster.uniform(6, 3),
        Config(replication_factor=3, min_insync_replicas=2, acks="all"),
        _of_brokers(load_model("single_rack")),
    )
    replaced = likeliest(disks)
    assert replaced is not None
    assert "then one broker is replaced by an empty one, then" in replaced.said
    nothing = FailureModel.from_dict({"broker": {"lag": {"per_year": 1.0, "minutes": 1.0}}})
    config = Config(replication_factor=3, min_insync_replicas=3, acks="all")
    assert likeliest(evaluate(Cluster.uniform(6, 3), config, nothing)) is None


def test_faults_and_brokers_fit_together():
    """Three faults from three in sync, and one broker for sure, are explained in one sentence."""
    said = tell(Config(replication_factor=3, min_insync_replicas=2)).said
    assert said.endswith(
        "That starts with all 3 replicas in sync. Only 1 broker can be lost safely at any time, "
        "because the ISR may be down to 2 by then."
    )
    # One fault and no broker need no explanation.
    assert "lost safely" not in tell(Config(replication_factor=1)).said
