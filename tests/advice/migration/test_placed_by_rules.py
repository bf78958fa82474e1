"""Topics whose replicas follow Confluent's placement constraints: no plan moves their replicas."""

import json

from advisor.advice import recommend
from advisor.cluster import load_cluster
from advisor.reliability.failures.failure_model import FailureModel

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1e-3, "hours": 12}}})
LINE = "\tTopic: {}\tPartition: 0\tLeader: 1\tReplicas: {}\tIsr: 1\tOffline: {}\n"
HEADER = "Topic: {}\tPartitionCount: 1\tReplicationFactor: {}\tConfigs: {}\n"


def test_a_reassignment_has_no_topic_with_observers() -> None:
    """Both topics are to have more replicas; only the plain one is moved and set by the plan."""
    text = HEADER.format("observed", 3, "") + LINE.format("observed", "1,3,4", "\tObservers: 3,4")
    text += HEADER.format("plain", 1, "") + LINE.format("plain", "1", "")
    result = recommend(load_cluster(text, racks="1=a,2=b,3=c,4=d"), CARD)
    actions = {action.topic: action.set_to for action in result.quick_verdict.actions}
    assert {name: setting.replication_factor for name, setting in actions.items()} == {
        "observed": 3,
        "plain": 3,
    }
    files = {name: str(text) for name, text in result.files().items()}
    moved = json.loads(files["reassign.json"])["partitions"]
    assert [row["topic"] for row in moved] == ["plain"]
    assert "observed" not in files["kafka-topics.yaml"]
    lines = [line for line in files["commands.sh"].splitlines() if "observed" in line]
    assert lines
    assert all(line.startswith("#") for line in lines)
    assert "confluent.placement.constraints" in lines[0]


def test_a_topic_that_is_not_changed_here_does_not_have_the_settings_already() -> None:
    """A plan of such a topic alone changes nothing, and says why."""
    text = HEADER.format("observed", 3, "") + LINE.format("observed", "1,3,4", "\tObservers: 3,4")
    result = recommend(load_cluster(text, racks="1=a,2=b,3=c,4=d"), CARD)
    commands = str(result.files()["commands.sh"])
    assert "reassign.json" not in result.files()
    assert "every topic has these settings already" not in commands
    assert "observed is not changed here" in commands


def test_no_other_setting_is_weighed_where_observers_stand_beside_replicas() -> None:
    """Two replicas in sync and two observers are kept as they are, and no floor is claimed."""
    line = "\tTopic: observed\tPartition: 0\tLeader: 1\tReplicas: 1,2,3,4\tIsr: 1,2\tOffline: "
    text = HEADER.format("observed", 4, "min.insync.replicas=2") + line + "\tObservers: 3,4\n"
    cluster = load_cluster(text, racks="1=a,2=a,3=b,4=b")
    verdict = recommend(cluster, CARD).verdict
    (action,) = verdict.actions
    assert (action.set_to, action.today.replication_factor) == (None, 2)
    assert action.floor.losses_per_year == 0.0
    assert "How sure" not in str(verdict)
    assert any("no other setting is weighed" in remark for remark in cluster.remarks)
