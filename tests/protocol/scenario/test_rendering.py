"""Topic configs in the output of `describe`, and the order of the ISR."""

import pytest

from advisor.protocol.rules.isr import expanded_isr, shrunk_isr
from advisor.protocol.rules.versions import rules_for
from advisor.protocol.scenario.player import play

OLD, NEW = rules_for("4.1"), rules_for("4.2")


def configs(opening, topic):
    """Configs in the header line of `describe`."""
    text = f"cluster brokers=3 {opening}\ntopic t replicas=1,2,3 {topic}\ndescribe t"
    return play(text).transcript.split("Configs:")[1].split("\n")[0].strip()


@pytest.mark.parametrize(
    ("opening", "topic", "shown"),
    [
        ("kafka=3.9", "", ""),
        ("kafka=3.9 min_insync_replicas=2", "", "min.insync.replicas=2"),
        ("kafka=3.9 min_insync_replicas=2", "min_insync_replicas=3", "min.insync.replicas=3"),
        ("kafka=4.1", "", "min.insync.replicas=1"),
        ("kafka=4.0", "", ""),
        ("kafka=4.0 eligible_leader_replicas=true", "", "min.insync.replicas=1"),
        ("kafka=4.3 eligible_leader_replicas=false", "", ""),
        # Before 2.2 the tool read ZooKeeper, which holds only topic configs.
        ("kafka=2.1 min_insync_replicas=2", "", ""),
        ("kafka=2.2 min_insync_replicas=2", "", "min.insync.replicas=2"),
        (
            "kafka=3.9",
            "unclean_leader_election_enable=true min_insync_replicas=2",
            "min.insync.replicas=2,unclean.leader.election.enable=true",
        ),
    ],
)
def test_describe_shows_what_a_topic_gets_from_its_cluster(opening, topic, shown):
    """Broker and cluster configs are shown, overridden by topic configs."""
    assert configs(opening, topic) == shown


@pytest.mark.parametrize(
    ("isr", "broker", "proposed"),
    [
        ((1, 3), 2, (1, 2, 3)),
        ((3, 1), 2, (1, 2, 3)),
        # Eight buckets for up to five members: 1 and 9 share a bucket, and 8 comes first.
        ((1, 2), 9, (1, 9, 2)),
        ((1, 2, 9, 3), 8, (8, 1, 9, 2, 3)),
        # Sixteen from six members on.
        ((1, 9, 2, 3, 4), 17, (1, 17, 2, 3, 4, 9)),
    ],
)
def test_since_4_2_the_isr_is_in_hash_set_order(isr, broker, proposed):
    """Until 4.1 a joining replica comes last; since then the order is that of Scala's hash set."""
    assert expanded_isr(isr, broker, OLD) == (*isr, broker)
    assert expanded_isr(isr, broker, NEW) == proposed


def test_a_shrunk_isr_is_in_the_order_of_sixteen_buckets():
    """The new set starts empty, with sixteen buckets, and grows at twelve members."""
    assert shrunk_isr((9, 1, 3, 2), {3}, OLD) == (9, 1, 2)
    assert shrunk_isr((9, 1, 3, 2), {3}, NEW) == (1, 2, 9)
    many = (17, *range(1, 12))
    assert shrunk_isr((*many, 99), {99}, NEW) == (*range(1, 12), 17)
    assert shrunk_isr((*many[:-1], 99), {99}, NEW) == (1, 17, *range(2, 11))
