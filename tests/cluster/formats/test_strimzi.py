import pytest

from advisor.cluster import load_cluster
from advisor.errors import InputError

STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: {name: controllers, labels: {strimzi.io/cluster: prod}}
spec: {replicas: 3, roles: [controller]}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaNodePool
metadata: {name: brokers, labels: {strimzi.io/cluster: prod}}
spec: {replicas: 3, roles: [broker]}
---
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: prod}
spec:
  kafka:
    version: 3.10
    rack: {topologyKey: topology.kubernetes.io/zone}
    config: {default.replication.factor: 3, min.insync.replicas: 2, num.partitions: 4}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: orders, labels: {strimzi.io/cluster: prod}}
spec: {partitions: 6, replicas: 2, config: {min.insync.replicas: 1, retention.ms: 5}}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: events, labels: {strimzi.io/cluster: prod}}
spec: {topicName: Events_2}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: foreign, labels: {strimzi.io/cluster: other}}
spec: {partitions: 1, replicas: 9}
"""


def test_strimzi_resources_are_read():
    """Brokers are the pools with that role; topics inherit cluster defaults."""
    cluster = load_cluster(STRIMZI)
    assert (cluster.kafka_version, cluster.brokers) == ("3.10", dict.fromkeys([3, 4, 5]))
    orders, events = cluster.topics
    assert (len(orders.partitions), orders.replication_factor) == (6, 2)
    assert orders.configs == {"min.insync.replicas": "1", "retention.ms": "5"}
    assert (events.name, len(events.partitions), events.replication_factor) == ("Events_2", 4, 3)
    assert events.min_insync_replicas == 2
    said = " ".join(cluster.notes)
    assert "topology.kubernetes.io/zone" in said
    assert "Node ids of controllers, brokers are assumed" in said


def test_topics_follow_the_unclean_elections_of_the_brokers():
    """What the brokers allow, a topic without a value of its own allows."""
    text = STRIMZI.replace("num.partitions: 4", "unclean.leader.election.enable: true")
    text = text.replace("retention.ms: 5", "unclean.leader.election.enable: false")
    orders, events = load_cluster(text).topics
    assert orders.configs["unclean.leader.election.enable"] == "false"
    assert events.configs["unclean.leader.election.enable"] == "true"


def test_pools_of_controllers_and_zookeeper_say_the_mode():
    """KRaft with a pool of controllers, ZooKeeper where the resource has its servers."""
    assert load_cluster(STRIMZI).mode == "kraft"
    older = "kind: Kafka\nmetadata: {name: a}\nspec: {kafka: {version: 3.6.1, replicas: 3}"
    header = "apiVersion: kafka.strimzi.io/v1beta2\n"
    assert load_cluster(f"{header}{older}, zookeeper: {{replicas: 3}}}}\n").mode == "zookeeper"
    assert load_cluster(f"{header}{older}}}\n").mode is None


def test_strimzi_pools_say_which_nodes_are_controllers():
    """Controllers are the pools with that role, by the racks that are given for their node ids."""
    assert load_cluster(STRIMZI).controllers == dict.fromkeys([0, 1, 2])
    placed = load_cluster(STRIMZI, racks="0=a,1=b,2=c,3=a,4=b,5=b")
    assert placed.controllers == {0: "a", 1: "b", 2: "c"}
    assert placed.brokers == {3: "a", 4: "b", 5: "b"}
    combined = STRIMZI.replace("roles: [broker]", "roles: [controller, broker]")
    mixed = load_cluster(combined, racks={4: "b"})
    assert mixed.controllers == {**dict.fromkeys(range(6)), 4: "b"}
    assert mixed.brokers == {3: None, 4: "b", 5: None}
    alone = load_cluster(STRIMZI[STRIMZI.index("---") :])
    assert (alone.brokers, alone.controllers) == (dict.fromkeys(range(3)), None)


def test_assumed_node_ids_are_not_those_that_another_pool_states():
    """Pools without a status get the ids that are free, in whatever order the file has."""
    old, new = "roles: [broker]}", "roles: [broker]}\nstatus: {nodeIds: [0, 1, 5]}"
    cluster = load_cluster(STRIMZI.replace(old, new, 1))
    assert cluster.brokers == dict.fromkeys([0, 1, 5])
    assert cluster.controllers == dict.fromkeys([2, 3, 4])
    both = STRIMZI.replace("roles: [controller]}", "roles: [controller]}\nstatus: {nodeIds: [5]}")
    with pytest.raises(InputError, match="the same node id"):
        load_cluster(both.replace(old, new, 1))


OLD = """\
apiVersion: kafka.strimzi.io/v1beta2
kind: Kafka
metadata: {name: my}
spec:
  kafka: {replicas: 4, version: 3.6.1}
  zookeeper: {replicas: 3}
"""


def test_older_strimzi_counts_its_zookeeper_servers():
    """ZooKeeper servers are numbered after the brokers, so that racks name them apart."""
    cluster = load_cluster(OLD)
    assert cluster.controllers == dict.fromkeys([4, 5, 6])
    assert "ZooKeeper servers are numbered 4, 5, 6 here." in cluster.notes
    placed = load_cluster(OLD, racks="0=a,4=x,5=y,6=z")
    assert placed.controllers == {4: "x", 5: "y", 6: "z"}
    assert placed.brokers == {0: "a", 1: None, 2: None, 3: None}
    assert load_cluster(OLD.replace("replicas: 3", "replicas: 0")).controllers is None
    pool = STRIMZI.replace("spec:\n  kafka:", "spec:\n  zookeeper: {replicas: 5}\n  kafka:")
    assert load_cluster(pool).controllers == dict.fromkeys([0, 1, 2])


@pytest.mark.parametrize(
    ("replicas", "said"),
    [("x", "zookeeper: replicas is 'x', which is not"), ("-1", "zookeeper: replicas is -1")],
)
def test_a_malformed_number_of_zookeeper_servers_is_rejected(replicas, said):
    """The error names the section."""
    with pytest.raises(InputError, match=said):
        load_cluster(OLD.replace("replicas: 3", f"replicas: {replicas}"))
    with pytest.raises(InputError, match="zookeeper is '3', which is not a mapping"):
        load_cluster(OLD.replace("{replicas: 3}", "3"))


def test_strimzi_racks_decide_the_placement():
    """With racks given there is no note about racks."""
    cluster = load_cluster(STRIMZI, racks="3=a,4=b,5=c")
    assert cluster.racks == ("a", "b", "c")
    assert not any("zone" in note for note in cluster.notes)
    with pytest.raises(InputError, match="broker 9 is not one"):
        load_cluster(STRIMZI, racks="9=a")


def test_older_strimzi_and_saved_lists_are_read(tmp_path):
    """v1beta2 has the broker count in Kafka; a kubectl List has the real node ids."""
    old = (
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata:\n  name: my\n"
        "spec:\n  kafka:\n    replicas: 4\n    version: 3.6.1\n"
    )
    assert list(load_cluster(old).brokers) == [0, 1, 2, 3]
    saved = tmp_path / "saved.yaml"
    saved.write_text(
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: kafka.strimzi.io/v1beta2\n"
        "  kind: KafkaNodePool\n  metadata: {name: p}\n  spec: {replicas: 2, roles: [broker]}\n"
        "  status: {nodeIds: [7, 11]}\n"
    )
    assert list(load_cluster(saved).brokers) == [7, 11]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("roles: [broker]", "roles: [controller]", "no KafkaNodePool has the role broker"),
        ("replicas: 3, roles: [broker]", "replicas: x, roles: [broker]", "'x', which is not"),
        ("replicas: 3, roles: [broker]", "replicas: 99999999, roles: [broker]", "99999999"),
        ("replicas: 2, config", "replicas: 4, config", "orders has replication_factor 4"),
        ("version: 3.10", "version: latest", "'latest' is not a Kafka version"),
        ("metadata: {name: prod}", "metadata: {}", "Kafka has no metadata.name"),
        ("kind: Kafka\n", "Kind: Kafka\n", "a document has no kind"),
        ("spec: {partitions", "spec: {{partitions", ":2[0-9]: this is not YAML"),
        (
            "spec: {partitions: 6",
            "spec: {partitions: 5, partitions: 6",
            "not YAML: an object has the key 'partitions' more than once",
        ),
        (
            "kind: KafkaTopic\nmetadata: {name: foreign",
            "kind: Kafka\nmetadata: {name: b",
            "several",
        ),
    ],
)
def test_invalid_strimzi_is_rejected(old, new, said):
    """The error names the resource."""
    assert old in STRIMZI
    with pytest.raises(InputError, match=said) as caught:
        load_cluster(STRIMZI.replace(old, new, 1))
    assert "\n" not in str(caught.value)
