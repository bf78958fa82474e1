import pickle
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.cluster import Cluster, Partition, Topic, format_describe, load_cluster
from advisor.errors import InputError


def healthy(index=0, replicas=(1, 2, 3), **changes):
    leader = replicas[0] if replicas else None
    return Partition(
        **{"index": index, "leader": leader, "replicas": replicas, "isr": replicas, **changes}
    )


def test_uniform_assigns_racks_round_robin():
    """Brokers 1..n are in racks r1..rk round robin; racks=None leaves them unknown."""
    expected = {1: "r1", 2: "r2", 3: "r1", 4: "r2", 5: "r1"}
    assert Cluster.uniform(brokers=5, racks=2).brokers == expected
    assert Cluster.uniform(brokers=2, racks=None).brokers == {1: None, 2: None}
    assert Cluster.uniform().racks == ("r1", "r2", "r3")


@pytest.mark.parametrize(
    "arguments",
    [
        {"brokers": 0},
        {"brokers": -1},
        {"brokers": 2.5},
        {"racks": 0},
        {"racks": 7},
        {"racks": True},
    ],
)
def test_uniform_rejects_invalid_counts(arguments):
    """Zero brokers, or more racks than brokers, are rejected."""
    with pytest.raises(InputError, match=next(iter(arguments))):
        Cluster.uniform(**arguments)


def test_racks_may_be_known_for_some_brokers_only():
    """Racks may be partly unknown; `racks` lists the known ones, sorted."""
    cluster = Cluster(brokers={3: "b", 1: "b", 2: None, 4: "a"})
    assert cluster.racks == ("a", "b")
    assert list(cluster.brokers) == [1, 2, 3, 4]


def test_with_racks_takes_both_forms_and_adds_brokers():
    """Both forms of mapping are accepted; new brokers are added."""
    cluster = Cluster(brokers={1: None, 2: "x"})
    assert cluster.with_racks({1: "a", 3: "b"}).brokers == {1: "a", 2: "x", 3: "b"}
    assert cluster.with_racks({"a": [1, 2]}).brokers == {1: "a", 2: "a"}
    assert cluster.brokers == {1: None, 2: "x"}


def test_a_cluster_knows_where_its_controllers_stand():
    """Controllers are kept by id, also in racks without brokers; voters are counted by rack."""
    cluster = Cluster({1: "a", 2: "b"}, controllers={9: "c", 1: "a", 8: "a"})
    assert list(cluster.controllers.items()) == [(1, "a"), (8, "a"), (9, "c")]
    assert cluster.voters_by_rack == {"a": 2, "c": 1}
    assert cluster.racks == ("a", "b")
    uniform = Cluster.uniform(brokers=3, racks=3, controllers={1: "r1", 2: "r2", 3: "r3"})
    assert uniform.voters_by_rack == {"r1": 1, "r2": 1, "r3": 1}
    assert hash(cluster) == hash(pickle.loads(pickle.dumps(cluster)))
    assert cluster != Cluster({1: "a", 2: "b"}, controllers={9: "c", 1: "a", 8: "b"})
    assert cluster != Cluster({1: "a", 2: "b"})
    with pytest.raises(TypeError):
        cluster.controllers[1] = "z"


def test_voters_by_rack_are_unknown_if_a_controller_is():
    """Without controllers, or with one in an unknown rack, there are no counts."""
    assert Cluster.uniform().controllers is None
    assert Cluster.uniform().voters_by_rack is None
    assert Cluster({1: "a"}, controllers={1: "a", 2: None}).voters_by_rack is None


@pytest.mark.parametrize(
    ("controllers", "said"),
    [
        ({}, "controllers={}: give the rack of each voter"),
        ([1, 2, 3], "controllers=\\[1, 2, 3\\]: give the rack of each voter"),
        ("a", "controllers='a': give the rack of each voter"),
        ({-1: "a"}, "-1 is not a controller id"),
        ({"1": "a"}, "'1' is not a controller id"),
        ({True: "a"}, "True is not a controller id"),
        ({1: ""}, "controller 1 has the rack ''; give a name or None"),
        ({1: 7}, "controller 1 has the rack 7; give a name or None"),
    ],
)
def test_a_cluster_refuses_malformed_controllers(controllers, said):
    """The error says what is wrong and what to give."""
    with pytest.raises(InputError, match=said):
        Cluster({1: "a"}, controllers=controllers)
    with pytest.raises(InputError, match=said):
        Cluster.uniform(controllers=controllers)


def test_with_racks_moves_controllers_too():
    """A controller alone is no broker; one that stands with its broker moves with it."""
    cluster = Cluster(
        {1: None, 2: "a", 3: "a"}, controllers={1: None, 2: "a", 3: "z", 7: None, 8: "b"}
    )
    moved = cluster.with_racks({1: "x", 2: "x", 3: "x", 7: "y", 4: "w"})
    assert moved.brokers == {1: "x", 2: "x", 3: "x", 4: "w"}
    assert moved.controllers == {1: "x", 2: "x", 3: "z", 7: "y", 8: "b"}
    assert Cluster({1: None}).with_racks({1: "a"}).controllers is None


@pytest.mark.parametrize(
    "brokers", [{}, {-1: "a"}, {"1": "a"}, {True: "a"}, {1: ""}, {1: "  "}, {1: 7}]
)
def test_a_cluster_refuses_malformed_brokers(brokers):
    """Broker ids are non-negative integers and racks are names."""
    with pytest.raises(InputError):
        Cluster(brokers=brokers)


def test_a_cluster_of_too_many_brokers_or_partitions_is_refused(monkeypatch):
    """The limit is named, however the cluster was described, and what to do."""
    with pytest.raises(InputError, match=r"more than 100,000 brokers .*; leave out"):
        Cluster(dict.fromkeys(range(100_001)))
    monkeypatch.setattr("advisor.cluster.topic.MOST_PARTITIONS", 2_000)
    every = "brokers = 3\n[defaults]\nreplication_factor = 1\npartitions = 1000\n"
    topics = [f'[[topic]]\nname = "t{number}"\n' for number in range(3)]
    cluster = load_cluster(every + "".join(topics[:2]))
    one_more = replace(cluster.topics[0], name="u", partitions=cluster.topics[0].partitions[:1])
    said = r"more than 2,000 partitions .*; describe fewer topics"
    with pytest.raises(InputError, match=said):
        replace(cluster, topics=(*cluster.topics, one_more))
    with pytest.raises(InputError, match=said):
        load_cluster(every + "".join(topics))
    described = format_describe(cluster) + format_describe(replace(cluster, topics=(one_more,)))
    with pytest.raises(InputError, match=said):
        load_cluster(described)


def test_values_can_be_hashed_compared_and_sent():
    """Equal clusters have equal hashes, and pickling preserves equality."""
    topic = Topic("t", (healthy(),), {"min.insync.replicas": "2"})
    one = Cluster({1: "a", 2: "a", 3: "b"}, (topic,))
    two = Cluster({3: "b", 2: "a", 1: "a"}, [topic])
    assert one == two
    assert hash(one) == hash(two)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != two.with_racks({1: "z"})
    with pytest.raises(AttributeError):
        one.brokers = {}
    with pytest.raises(TypeError):
        one.brokers[1] = "z"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"isr": (1, 9)}, "broker 9 as Isr"),
        ({"leader": 9}, "broker 9 as Leader"),
        ({"elr": (9,)}, "broker 9 as Elr"),
        ({"replicas": (1, 1), "isr": (1,), "leader": 1}, "twice in Replicas"),
        ({"isr": (1, 1)}, "twice in Isr"),
        ({"replicas": ()}, "no replicas"),
        ({"replicas": (1, -2), "isr": (1,)}, "-2"),
        ({"index": -1}, "numbers start at 0"),
    ],
)
def test_an_impossible_partition_is_rejected(changes, said):
    """Leader, ISR and ELR must be replicas, and replicas distinct."""
    with pytest.raises(InputError, match=said):
        healthy(**changes)


IDS = st.lists(st.sampled_from([1, 2, 3, 2**31, -1, True, 1.0, "1"]), max_size=3).map(tuple)
SETS = st.sampled_from([(1, 2, 3), (2, 1), (1,), (), [1, 2]]) | IDS


@settings(max_examples=400)
@given(
    st.fixed_dictionaries(
        {
            "index": st.sampled_from([0, 7, -1, 2**31, True, 1.5, "0"]),
            "leader": st.sampled_from([None, 1, 2, 9, True, "1"]),
            "replicas": SETS,
            "isr": SETS,
        },
        optional=dict.fromkeys(("elr", "last_known_elr", "adding", "removing"), SETS | st.none()),
    )
)
def test_the_quick_look_at_a_partition_changes_nothing(fields):
    """What passes it passes every check, with the same values and types."""

    def made():
        try:
            return repr(Partition(**fields))
        except InputError as error:
            return str(error)

    quick = made()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Partition, "_plain", lambda _: False)
        assert quick == made()


def test_odd_but_real_partitions_are_kept():
    """No leader, an empty ISR with an ELR, and a reassignment are valid."""
    lone = healthy(leader=None, isr=(), elr=(1, 2), last_known_elr=(1,))
    assert lone.leader is None
    moving = healthy(replicas=(4, 5, 1, 2), adding=(4, 5), removing=(1,))
    assert moving.replication_factor == 2
    assert healthy(adding=(8,)).replication_factor == 3
    assert healthy(adding=(8,)).brokers() == {1, 2, 3, 8}


def test_a_topic_sorts_its_partitions_and_knows_its_numbers():
    """Partitions are sorted; min ISR above RF is valid."""
    topic = Topic("t", (healthy(1), healthy(0)), {"min.insync.replicas": "5"})
    assert [partition.index for partition in topic.partitions] == [0, 1]
    assert (topic.replication_factor, topic.min_insync_replicas, topic.internal) == (3, 5, False)
    assert Topic("__consumer_offsets", (healthy(),)).internal
    assert Topic("t", (healthy(),)).min_insync_replicas is None


@pytest.mark.parametrize("stated", ["0", "-1", "two", "", "1.5", "²"])
def test_an_invalid_min_isr_is_rejected(stated):
    """min.insync.replicas must be a positive integer."""
    with pytest.raises(InputError, match=r"min\.insync\.replicas"):
        Topic("t", (healthy(),), {"min.insync.replicas": stated})


@pytest.mark.parametrize("name", [".", "..", "", "a b", "a\n", None, "x" * 250])
def test_a_name_that_kafka_refuses_is_refused(name):
    """Kafka takes neither "." nor "..", which would be folders of the log directory."""
    with pytest.raises(InputError, match="is not the name of a topic"):
        Topic(name, (Partition(0, 1, (1,), (1,)),))


@pytest.mark.parametrize("name", ["...", ".a", "..a", "_", "x" * 249])
def test_a_name_that_kafka_takes_is_taken(name):
    """Dots as a part of a name are allowed."""
    assert Topic(name, (Partition(0, 1, (1,), (1,)),)).name == name


def test_topics_must_fit_the_cluster():
    """Repeated topics and replicas on unknown brokers are rejected."""
    topic = Topic("t", (healthy(),))
    with pytest.raises(InputError, match="twice"):
        Cluster({1: None, 2: None, 3: None}, (topic, topic))
    with pytest.raises(InputError, match="t-0 names broker 3"):
        Cluster({1: None, 2: None}, (topic,))
    with pytest.raises(InputError, match="partition 0 twice"):
        Topic("t", (healthy(), healthy()))
    with pytest.raises(InputError, match="no topic 'u'"):
        Cluster({1: None, 2: None, 3: None}, (topic,)).topic("u")


def test_repr_and_html_of_a_cluster():
    """The repr has the counts, and the HTML is escaped."""
    cluster = Cluster({1: "<a>", 2: "b", 3: None}, (Topic("t", (healthy(),)),), "4.1")
    assert repr(cluster) == (
        "Cluster(3 brokers in 2 racks (<a>, b), 1 of them in no known rack; "
        "1 topic, 1 partition; Kafka 4.1)"
    )
    voters = Cluster({1: "a"}, kafka_version="4.1", controllers={1: "a", 8: "<b>", 9: None})
    assert repr(voters) == (
        "Cluster(1 broker in 1 rack (a); "
        "3 controllers in 2 racks (<b>, a), 1 of them in no known rack; Kafka 4.1)"
    )
    assert "&lt;b&gt;" in voters._repr_html_()
    assert "3 controllers, racks not known" in repr(
        Cluster({1: "a"}, controllers=dict.fromkeys((1, 2, 3)))
    )
    html = cluster._repr_html_()
    assert "&lt;a&gt;" in html
    assert "<a>" not in html
    assert ">t</th><td>1</td><td>3</td>" in html
