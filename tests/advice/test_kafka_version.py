"""The Kafka version that a description's columns prove, and what is assumed without them."""

import json
from dataclasses import replace

import pytest

import advisor
from advisor import Cluster, audit, load_cluster
from advisor.advice.situation import version_of
from advisor.protocol.rules.versions import NEWEST_KNOWN

CARD = advisor.FailureModel.from_dict({"broker": {"destroyed": {"per_year": 0.1, "hours": 12}}})
_ROW = "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2"
_IN_28 = "Topic: t\tTopicId: x\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: {}\n" + _ROW
_SHOWN = {
    "0.8.0": "topic: t\tpartition: 0\tleader: 1\treplicas: 1,2\tisr: 1,2",
    "2.3": "Topic:t\tPartitionCount:1\tReplicationFactor:2\tConfigs:\n" + _ROW,
    "2.7": "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n" + _ROW,
    "3.7": _IN_28.format(""),
    "3.9": _IN_28.format("") + "\tElr: N/A\tLastKnownElr: N/A",
    NEWEST_KNOWN: _IN_28.format("") + "\tElr: \tLastKnownElr: ",
}


@pytest.mark.parametrize(("version", "text"), _SHOWN.items())
def test_the_version_is_what_the_columns_allow(version: str, text: str) -> None:
    """The last version that prints them, from a file, a text and a saved cluster; stated wins."""
    cluster = load_cluster(text + "\n")
    saved = load_cluster(json.dumps(cluster.to_dict(), indent=1))
    for each in (cluster, saved, replace(cluster, source="describe.txt")):
        assert version_of(each)[0] == version
        assert "--kafka-version" in version_of(each)[1]
        assert "the columns are those of kafka-" in version_of(each)[1]
    assert version_of(cluster, "3.1") == ("3.1", "")
    assert version_of(replace(cluster, kafka_version="2.2")) == ("2.2", "")


def test_a_version_without_columns_is_the_newest() -> None:
    """Lines of partitions alone are any version's before the ELR."""
    assert version_of(load_cluster(_ROW))[0] == "3.7"
    assert version_of(Cluster({1: None}))[0] == NEWEST_KNOWN
    assert "--kafka-version" in version_of(Cluster({1: None}))[1]
    assert "newer than" in version_of(Cluster({1: None}), "99.0")[1]
    assert version_of(Cluster({1: None}), NEWEST_KNOWN) == (NEWEST_KNOWN, "")


def test_a_min_isr_above_the_replicas_is_judged_by_a_version_that_refuses() -> None:
    """Unless the columns or the user say that it is 3.7 or newer (KAFKA-15583)."""
    high = "min.insync.replicas=3"
    cluster = load_cluster(_IN_28.format(high))
    version, note = version_of(cluster)
    assert version == "3.6"
    assert "as in topic t; 3.7 and newer count it as that number" in note
    found = audit(cluster, CARD)
    details = {f.code: f.detail for f in found.findings}
    assert details["KRA103"] == (
        "min ISR 3 is above RF 2: Kafka 3.6 refuses every acks=all write, and from 3.7 on it "
        "counts as 2."
    )
    assert details["KRA106"].endswith("which is more than there are replicas (KRA103).")
    assert found.topics[0].choice.reliability.write_unavailability == 1.0
    by_hand = 'brokers = 2\n[[topic]]\nname = "t"\nreplicas = [[1, 2]]\nmin_insync_replicas = 3'
    assert version_of(load_cluster(by_hand))[0] == "3.6"
    for known in (cluster, load_cluster(_IN_28.format(high) + "\tElr: \tLastKnownElr: ")):
        given = "3.7" if known is cluster else None
        version, _ = version_of(known, given)
        assert version == (given or NEWEST_KNOWN)
        later = {f.code: f.detail for f in audit(known, CARD, kafka_version=given).findings}
        assert later["KRA103"] == "min ISR 3 is above RF 2: it counts as 2."
        assert "KRA106" not in later
