"""A part of a cluster is said to be one; a damaged partition does not hide the others."""

import json

import pytest

from advisor.advice import audit
from advisor.cluster import load_cluster
from advisor.cluster.completeness import clusters_shown
from advisor.errors import InputError
from advisor.reliability.failures.failure_model import FailureModel
from read_cluster import findings_of_topic

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1e-3, "hours": 12}}})
HEADER = "Topic: {}\tPartitionCount: {}\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
LINE = "\tTopic: {}\tPartition: {}\tLeader: 1\tReplicas: 1,2,3\tIsr: {}\n"


def topic(name: str, *shown: int, stated: int | None = None) -> str:
    header = "" if stated is None else HEADER.format(name, stated)
    return header + "".join(LINE.format(name, number, "1,2,3") for number in shown)


WHOLE = topic("a", 0, 1, stated=2) + topic("b", 0, stated=1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHOLE, ""),
        (topic("a", 0, 1) + topic("b", 0), ""),
        (WHOLE + topic("c", 0, 2, stated=3), "1 of 3 partitions of c not shown"),
        (WHOLE + topic("c", 0, stated=12), "11 of 12 partitions of c not shown"),
        (
            topic("a", 0, stated=2) + topic("b", 5, stated=9),
            "1 of 2 partitions of a not shown and so with 1 more",
        ),
        (topic("a", 0, 1) + topic("b", 4, 6), "5 of 7 partitions of b not shown"),
        (WHOLE + HEADER.format("c", 3), "no partition of c"),
        (
            LINE.format("a", 0, "1,2") + LINE.format("b", 0, "1"),
            "only partitions that are not in sync",
        ),
        # As kafka-topics.sh --describe --unavailable-partitions prints.
        (
            "\tTopic: a\tPartition: 3\tLeader: none\tReplicas: 1,2\tIsr: 2\n",
            "only partitions that are not in sync",
        ),
        (topic("a", 0, 1, stated=2), "One topic is shown"),
    ],
)
def test_a_part_of_the_whole_is_said(text, said):
    """Counts, gaps, headers without partitions, and what options of the tool leave out."""
    cluster = load_cluster(text)
    assert bool(cluster.part) == bool(said)
    assert said in cluster.part
    again = load_cluster(json.dumps(cluster.to_dict()) + "\n")
    assert (again.part, again.topics) == (cluster.part, cluster.topics)


def test_headers_alone_say_which_option_to_leave_out():
    """As --topics-with-overrides prints."""
    with pytest.raises(InputError, match=r"x has no line of a partition, .*leave that out"):
        load_cluster(HEADER.format("x", 3) + HEADER.format("y", 1))


def test_nothing_is_concluded_about_brokers_that_do_not_occur():
    """Three brokers of one topic are not all brokers of the cluster."""
    whole, part = load_cluster(WHOLE), load_cluster(topic("a", 0, 1, stated=2))
    for cluster, codes in ((whole, {"KRA304"}), (part, set())):
        found = findings_of_topic(cluster.topics[0], cluster)
        assert {finding.code for finding in found} == codes


def test_of_a_list_of_brokers_none_is_unknown():
    """Beside a single topic kcat lists the brokers: what is in sync elsewhere is still open."""
    text = (
        "Metadata for orders (from broker 1: kafka-1:9092/1):\n 2 brokers:\n"
        "  broker 1 at kafka-1:9092\n  broker 2 at kafka-2:9092\n 1 topics:\n"
        '  topic "orders" with 1 partitions:\n    partition 0, leader 1, replicas: 1,2, isrs: 1,2\n'
    )
    assert "in no ISR of it may be in sync elsewhere" in load_cluster(text).part
    assert "brokers without a replica" in load_cluster(topic("a", 0, stated=1)).part


@pytest.mark.parametrize(
    ("racks", "limited"), [(None, True), ("1=a,2=b,3=c", False), ("1=a,2=b", True)]
)
def test_advice_that_ends_at_the_brokers_shown_says_so(racks, limited):
    """Of two brokers in a part nobody knows whether there are more, unless they are named."""
    line = "Topic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    cluster = load_cluster(line, racks=racks)
    said = [remark for remark in cluster.remarks if "as there are brokers in it, 2." in remark]
    assert len(said) == limited


@pytest.mark.parametrize(
    "damaged",
    [
        LINE.format("a", 1, "1,2,9"),
        LINE.format("a", 1, "1,2,3").replace("Leader: 1", "Leader: 9"),
    ],
)
def test_a_damaged_partition_is_reported_and_the_others_are_judged(damaged):
    """An ISR or a leader outside the replicas: a finding, and an audit that fails."""
    text = HEADER.format("a", 2) + LINE.format("a", 0, "1,2,3") + damaged + topic("b", 0, stated=1)
    cluster = load_cluster(text)
    broken = cluster.topic("a")
    assert ([p.index for p in broken.partitions], broken.broken) == ([0], (1,))
    assert cluster.part == ""
    audited = audit(cluster, CARD)
    assert [f.partitions for f in audited.findings if f.code == "KRA111"] == [(1,)]
    assert [t.topic.name for t in audited.topics if t.fails("critical")] == ["a"]
    again = load_cluster(json.dumps(cluster.to_dict()) + "\n")
    assert again.topics == cluster.topics


def test_a_topic_of_which_every_partition_is_damaged_is_refused():
    """There is nothing left to judge; the sentence names line, partition and broker."""
    with pytest.raises(InputError, match=r":2: partition 0 has broker 9 as Isr but not in its Rep"):
        load_cluster(HEADER.format("a", 1) + LINE.format("a", 0, "1,2,9"))


def test_a_last_line_that_is_cut_in_its_isr_is_no_damaged_partition():
    """Broker 1 of "Isr: 1,2,10" would be none of the replicas."""
    line = "\tTopic: a\tPartition: 1\tLeader: 20\tReplicas: 20,30\tIsr: 20,3"
    with pytest.raises(InputError, match="the line is cut in its Isr"):
        load_cluster(HEADER.format("a", 2) + LINE.format("a", 0, "1,2,3") + line)


def test_a_topic_without_the_line_of_its_settings_is_said_to_be_assumed():
    """As tail leaves the first topic, while others have theirs; and as grep leaves all of them."""
    cut = load_cluster(topic("a", 0, 1) + topic("b", 0, stated=1))
    assert "the settings of a not shown, so that min ISR 1 is assumed" in cut.part
    grepped = load_cluster(topic("a", 0, 1) + topic("b", 0))
    assert grepped.taken_for.endswith("which has leaders, replicas and ISR; no settings; no racks.")
    assert any("The min ISR of 2 topics is assumed" in remark for remark in grepped.remarks)
    whole = load_cluster(WHOLE)
    assert whole.taken_for.endswith("leaders, replicas, ISR and settings; no racks.")
    assert len(whole.remarks) == 1


ELSEWHERE = topic("c", 0, stated=1).replace("1,2,3", "4,5,6").replace("Leader: 1", "Leader: 4")
COMMAND = "$ kafka-topics.sh --bootstrap-server {} --describe\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("== eu ==\n" + WHOLE + "== us ==\n" + ELSEWHERE, "brokers of both 1, 2, 3 and 4, 5, 6"),
        (WHOLE + ELSEWHERE, ""),
        (topic("a", 0, stated=1) + "== b\n" + topic("b", 0, stated=1), ""),
        ("-- a\n" + topic("a", 0, stated=1) + ELSEWHERE + "-- b\n" + topic("b", 0, stated=1), ""),
        (
            COMMAND.format("eu:9092") + WHOLE + COMMAND.format("us:9092") + topic("c", 0, stated=1),
            "its commands name eu:9092 and us:9092",
        ),
        (
            COMMAND.format("a:9092,b:9092")
            + WHOLE
            + COMMAND.format("b:9092")
            + topic("c", 0, stated=1),
            "",
        ),
    ],
)
def test_topics_that_may_be_of_two_clusters_are_said_to_be(text, said):
    """Commands without a host in common, or disjoint brokers on both sides of a line of prose."""
    part = load_cluster(text).part
    assert ("This may be of two clusters" in part) == bool(said)
    assert said in part


def test_a_setting_in_other_letters_is_said_and_not_applied():
    """Kafka knows none but its own names; of topics, of brokers, and with underscores alike."""
    described = load_cluster(topic("a", 0, stated=1).replace("min.insync", "Min.InSync"))
    assert described.topics[0].min_insync_replicas is None
    assert described.remarks[-1] == (
        "Min.InSync.replicas of 1 topic is not applied: Kafka's name, in exactly these letters, is "
        "min.insync.replicas."
    )
    deployed = load_cluster(
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata:\n  name: shop\nspec:\n"
        "  kafka:\n    replicas: 3\n    config:\n      Default.Replication.Factor: 3\n---\n"
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: KafkaTopic\nmetadata:\n  name: orders\n"
        "spec:\n  partitions: 3\n  replicas: 3\n  config:\n    min_insync_replicas: 2\n"
    )
    assert deployed.remarks[-1] == (
        "Default.Replication.Factor of the brokers and min_insync_replicas of 1 topic are not "
        "applied: Kafka's names, in exactly these letters, are default.replication.factor and "
        "min.insync.replicas."
    )
    plain = load_cluster(WHOLE.replace("=2", "=2,Owner=x,segment.Bytes=1"))
    assert not any("not applied" in remark for remark in plain.remarks)


def test_a_long_text_is_looked_through_once_for_clusters():
    """A word of millions of letters, and commands of many addresses, each looked at once."""
    assert clusters_shown("--describe " + "k" * 3_000_000, []) == ""
    command = "kafka-topics.sh --bootstrap-server a:9092,b{}:9092 --describe\n"
    text = "".join(map(command.format, range(30_000)))
    assert clusters_shown(text, []) == ""
    assert "name a:9092,b0:9092 and c:9092" in clusters_shown(
        text + "kafka-topics.sh --bootstrap-server c:9092 --describe\n", []
    )
