import pytest

from advisor.cluster import load_cluster
from advisor.errors import InputError
from corpus import FOLDER

RACKS = "1=a,2=b,3=c"
# https://github.com/Mongey/terraform-provider-kafka, docs/resources/topic.md
TERRAFORM = """\
provider "kafka" { bootstrap_servers = ["localhost:9092"] }

resource "kafka_topic" "orders" {
  config = {
    # keep on each partition 100MiB
    "retention.bytes" = "104857600"
    "min.insync.replicas" = 2,
  }
  name               = "shop.orders.v1" // not the label
  partitions         = 15
  replication_factor = 3
}

resource "kafka_topic" "metrics" {
  name               = "metrics"
  partitions         = "2"
  replication_factor = "1"
  configuration = { }
  depends_on = [
    # nothing.here,
    kafka_acl.x
  ]
}
"""
# https://github.com/kafka-ops/julie, docs/the-descriptor-files.rst
JULIE = """\
---
context: "context"
source: "source"
projects:
  - name: "foo"
    consumers: []
    topics:
      - name: "foo"
        config:
          replication.factor: "1"
          num.partitions: "1"
      - dataType: "avro"
        name: "bar"
        config:
          replication.factor: "2"
          num.partitions: "3"
          min.insync.replicas: "2"
"""


def test_topics_of_terraform_are_placed_on_the_brokers_that_are_given():
    """Names, counts and settings are those of the resources; comments are none of them."""
    cluster = load_cluster(TERRAFORM, racks=RACKS)
    orders, metrics = cluster.topics
    assert (orders.name, len(orders.partitions), orders.replication_factor) == (
        "shop.orders.v1",
        15,
        3,
    )
    assert orders.configs == {"retention.bytes": "104857600", "min.insync.replicas": "2"}
    assert (metrics.name, len(metrics.partitions), metrics.replication_factor) == ("metrics", 2, 1)
    assert metrics.configs == {}
    assert cluster.brokers == {1: "a", 2: "b", 3: "c"}
    assert "placed as Kafka would" in " ".join(cluster.notes)


def test_topics_of_aiven_s_provider_have_kafka_s_names_of_settings():
    """Its resource says topic_name and replication, and writes settings with underscores."""
    text = (FOLDER / "aiven-topics.tf").read_text()
    (ledger,) = load_cluster(text, racks=RACKS).topics
    assert (ledger.name, len(ledger.partitions), ledger.replication_factor) == ("ledger", 3, 2)
    assert ledger.configs == {"min.insync.replicas": "1"}


def test_topics_of_a_topology_have_the_names_that_julieops_gives_them():
    """Context, what stands before the projects, project, topic and type of data are one name."""
    foo, bar = load_cluster(JULIE, racks=RACKS).topics
    assert (foo.name, len(foo.partitions), foo.replication_factor) == (
        "context.source.foo.foo",
        1,
        1,
    )
    assert (bar.name, len(bar.partitions), bar.replication_factor) == (
        "context.source.foo.bar.avro",
        3,
        2,
    )
    assert bar.configs == {"min.insync.replicas": "2"}


@pytest.mark.parametrize("text", [TERRAFORM, JULIE], ids=["terraform", "julie"])
def test_without_brokers_it_is_said_how_to_name_them(text):
    """Neither has brokers: they are not guessed from the largest replication factor."""
    with pytest.raises(InputError, match=r"say nothing of brokers: name them with --racks"):
        load_cluster(text)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"shop.orders.v1"', "var.name", "name is 'var.name', which is computed"),
        ('"shop.orders.v1"', '"${var.prefix}.orders"', "which is computed"),
        ("= 15", "= local.partitions", "partitions is 'local.partitions', which is computed"),
        ("  partitions         = 15\n", "", "it has no partitions"),
        ("  name  ", "  for_each = var.topics\n  name  ", "for_each or count"),
        ('"104857600"', "var.bytes", "retention.bytes is 'var.bytes', which is computed"),
        ("replication_factor = 3\n}", "replication_factor = 3\n", "it is not closed"),
    ],
)
def test_what_terraform_computes_is_refused(old, new, words):
    """A variable, an expression, a missing count and a cut block are named, not guessed."""
    text = TERRAFORM.replace(old, new, 1).split('resource "kafka_topic" "metrics"')[0]
    with pytest.raises(InputError) as caught:
        load_cluster(text, racks=RACKS)
    assert words in str(caught.value)
    assert "kafka_topic.orders" in str(caught.value)


def test_counts_that_a_plan_of_julieops_has_are_not_guessed():
    """A plan stands in another file, so that a count is missing here."""
    text = JULIE.replace('          num.partitions: "3"\n', "").replace(
        'name: "bar"', "name: bar\n        plan: gold"
    )
    with pytest.raises(InputError, match="in a plan or left out"):
        load_cluster(text, racks=RACKS)


# https://github.com/devshawn/kafka-gitops, docs/specification.md; topicctl: segmentio/topicctl,
# README.md.
GITOPS = """\
settings:
  topics:
    defaults:
      replication: 3
topics:
  orders:
    partitions: 6
    configs:
      min.insync.replicas: 2
      cleanup.policy: compact
  bills:
    partitions: 1
    replication: 1
"""
LISTED = """\
topics:
  - name: orders
    partitions: 6
    replicationFactor: 3
    config:
      min.insync.replicas: "2"
      cleanup.policy: compact
  - topic: bills
    num_partitions: 1
    replication_factor: 1
"""
TOPICCTL = """\
meta:
  name: orders
  cluster: shop
spec:
  partitions: 6
  replicationFactor: 3
  settings:
    min.insync.replicas: 2
    cleanup.policy: [compact]
---
meta: {name: bills}
spec: {partitions: 1, replicationFactor: 1}
"""


@pytest.mark.parametrize("text", [GITOPS, LISTED, TOPICCTL], ids=["gitops", "list", "topicctl"])
def test_topics_in_yaml_are_read_under_the_usual_names(text):
    """A table, a list, and a document for each: the same two topics."""
    cluster = load_cluster(text, racks=RACKS)
    assert cluster.taken_for.startswith("Taken for topics in YAML ")
    assert [(t.name, len(t.partitions), t.replication_factor) for t in cluster.topics] == [
        ("orders", 6, 3),
        ("bills", 1, 1),
    ]
    assert cluster.topic("orders").configs == {
        "min.insync.replicas": "2",
        "cleanup.policy": "compact",
    }


@pytest.mark.parametrize("gone", ["    partitions: 6\n", "    replicationFactor: 3\n"])
def test_a_count_that_is_left_out_of_yaml_is_not_guessed(gone):
    """The topic is named, and what to run."""
    with pytest.raises(InputError, match=r"topic 'orders': .* left out; run kafka-topics\.sh"):
        load_cluster(LISTED.replace(gone, ""), racks=RACKS)


AIVEN_SERVICE = """\
resource "aiven_kafka" "shop" {
  plan = "business-4"
  kafka_user_config {
    kafka_version = "3.8"
    kafka {
      min_insync_replicas     = 2
      log_retention_bytes     = var.bytes
      group_min_session_timeout_ms = 6000
    }
  }
}
"""
AIVEN_TOPIC = """\
resource "aiven_kafka_topic" "orders" {
  topic_name  = "orders"
  partitions  = 3
  replication = 3
}
"""
AIVEN_JSON = """\
{"service_type": "kafka", "user_config": {"kafka": {"min_insync_replicas": 2}, "kafka_version":
"3.8"}, "topics": [{"topic_name": "orders", "partitions": 3, "replication": 3, "retention_hours": 1,
"min_insync_replicas": null}]}
"""


@pytest.mark.parametrize("text", [AIVEN_SERVICE + AIVEN_TOPIC, AIVEN_JSON])
def test_topics_of_an_aiven_service_follow_its_user_config(text):
    """kafka_user_config has the brokers' settings and the version; what is computed is left out."""
    cluster = load_cluster(text, racks=RACKS)
    assert cluster.kafka_version == "3.8"
    assert cluster.managed == "Aiven for Apache Kafka"
    assert cluster.broker_settings == {"min.insync.replicas": "2"}
    (orders,) = cluster.topics
    assert (orders.name, len(orders.partitions), orders.replication_factor) == ("orders", 3, 3)
    assert orders.min_insync_replicas == 2


def test_an_aiven_service_without_topics_stands_beside_a_description(tmp_path):
    """Alone it says what to run; its settings and version are added to those of another file."""
    path, described = tmp_path / "service.tf", tmp_path / "describe.txt"
    path.write_text(AIVEN_SERVICE)
    described.write_text(
        "Topic: t\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
        "\tTopic: t\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\n"
    )
    with pytest.raises(InputError, match="the configuration of an Aiven service"):
        load_cluster(path)
    cluster = load_cluster([described, path])
    assert (cluster.topics[0].min_insync_replicas, cluster.kafka_version) == (2, "3.8")
    user_config = '{"kafka_user_config": {"kafka": {"min_insync_replicas": 2}}}\n'
    path.write_text(user_config)
    assert load_cluster([described, path]).topics[0].min_insync_replicas == 2


def test_two_aiven_services_in_one_file_are_refused():
    """Whose topics they are is not known."""
    with pytest.raises(InputError, match="2 services"):
        load_cluster(AIVEN_SERVICE * 2 + AIVEN_TOPIC, racks=RACKS)
