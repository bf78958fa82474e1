"""What `describe` shows of a topic beyond its partitions, and the order of its ISR."""

import pytest

from advisor.protocol.rules.isr import expanded_isr, shrunk_isr
from advisor.protocol.rules.versions import rules_for
from advisor.protocol.scenario.player import play

OLD, NEW = rules_for("4.1"), rules_for("4.2")


def configs(opening, topic):
    """Return what the header of `describe` shows as the topic's settings."""
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
        # Before 2.2 the tool read ZooKeeper, where only the topic's own settings are.
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
    """Brokers' and cluster's settings are shown, the topic's own instead where it has them."""
    assert configs(opening, topic) == shown


@pytest.mark.parametrize(
    ("isr", "broker", "proposed"),
    [
        ((1, 3), 2, (1, 2, 3)),
        ((3, 1), 2, (1, 2, 3)),
        # Eight buckets for up to five members: 9 shares one with 1, and 8 comes first.
        ((1, 2), 9, (1, 9, 2)),
        ((1, 2, 9, 3), 8, (8, 1, 9, 2, 3)),
        # Sixteen from six members on.
        ((1, 9, 2, 3, 4), 17, (1, 17, 2, 3, 4, 9)),
    ],
)
def test_who_joins_since_4_2_is_put_into_its_bucket(isr, broker, proposed):
    """Until 4.1 who joins comes last; since then ids stand as Scala's hash set walks them."""
    assert expanded_isr(isr, broker, OLD) == (*isr, broker)
    assert expanded_isr(isr, broker, NEW) == proposed


def test_a_shrunk_isr_is_walked_by_sixteen_buckets():
    """The set that is left starts empty, with sixteen buckets; twelve members make it grow."""
    assert shrunk_isr((9, 1, 3, 2), {3}, OLD) == (9, 1, 2)
    assert shrunk_isr((9, 1, 3, 2), {3}, NEW) == (1, 2, 9)
    many = (17, *range(1, 12))
    assert shrunk_isr((*many, 99), {99}, NEW) == (*range(1, 12), 17)
    assert shrunk_isr((*many[:-1], 99), {99}, NEW) == (1, 17, *range(2, 11))
