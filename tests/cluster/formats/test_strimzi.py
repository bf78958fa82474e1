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
