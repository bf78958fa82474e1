"""Systems and topics that do not replicate as Kafka does are named, and never judged."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.__main__ import main
from advisor.advice import audit, recommend
from advisor.catalog import model_path
from advisor.cluster import Cluster, Partition, Topic, load_cluster
from advisor.cluster.managed_services import SERVICES, service_of
from advisor.errors import InputError
from advisor.reliability.failures.failure_model import FailureModel
from read_cluster import state_of

CARD = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1e-3, "hours": 12}}})
PLAIN = (
    "Topic: orders\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: min.insync.replicas=2\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2,3\tIsr: 1,2,3\n"
)


def described(name: str, configs: str, leader: str = "1") -> str:
    return (
        f"Topic: {name}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: {configs}\n"
        f"\tTopic: {name}\tPartition: 0\tLeader: {leader}\tReplicas: 1\tIsr: 1\n"
    )


# Settings: https://docs.redpanda.com/current/reference/properties/topic-properties/ and
# https://github.com/redpanda-data/redpanda/pull/3192; https://github.com/AutoMQ/automq.
@pytest.mark.parametrize(
    ("system", "name", "configs"),
    [
        ("Redpanda", "clicks", "cleanup.policy=delete,redpanda.remote.read=true"),
        ("Redpanda", "clicks", "redpanda.iceberg.mode=disabled"),
        ("Redpanda", "clicks", "retention.local.target.bytes=-1,retention.ms=1"),
        ("Redpanda", "clicks", "initial.retention.local.target.ms=3600000"),
        ("Redpanda", "clicks", "write.caching=true"),
        ("Redpanda", "_redpanda.audit_log", ""),
        ("AutoMQ", "clicks", "automq.table.topic.enable=true"),
    ],
)
@pytest.mark.parametrize("beside", ["", PLAIN])
def test_a_mark_on_any_topic_names_the_system(system, name, configs, beside):
    """Whatever else stands in the text, there is no cluster to judge."""
    for text in (beside + described(name, configs), described(name, configs) + beside):
        with pytest.raises(InputError, match=rf"this cluster is {system}\. .*no verdict"):
            load_cluster(text)


def test_marks_are_seen_in_every_format():
    """A saved cluster and a description in TOML are refused like a pasted output."""
    topic = Topic("t", (Partition(0, 1, (1,), (1,)),), {"redpanda.remote.write": "true"})
    saved = Cluster({1: None}, (topic,)).to_dict()
    toml = 'brokers = 1\n[[topic]]\nname = "t"\nreplicas = [[1]]\n'
    toml += 'configs = { "redpanda.remote.write" = true }\n'
    for text in (json.dumps(saved), toml):
        with pytest.raises(InputError, match="Redpanda replicates with Raft"):
            load_cluster(text + "\n")


# Output of rpk: https://github.com/redpanda-data/redpanda/issues/3347 (partitions), the client of
# 2021: https://github.com/redpanda-data/redpanda/issues/425.
@pytest.mark.parametrize(
    "text",
    [
        "PARTITION  LEADER  EPOCH  REPLICAS  LOG-START-OFFSET  HIGH-WATERMARK\n"
        "0          1       1      [1 2 3]   0                 12\n",
        "  Name                orders\n  Internal            false\n"
        "  Partition           Leader            Replicas   In-Sync Replicas  High Watermark\n"
        "  0                   1                 [0 1 2]    [0 1 2]           1\n",
        "NAME      PARTITIONS  REPLICAS\norders    3           3\n",
        "CLUSTER\n=======\nredpanda.8f9d2b1c\n\nBROKERS\n=======\nID    HOST       PORT\n"
        "0*    127.0.0.1  9092\n",
    ],
)
@pytest.mark.parametrize("beside", ["", PLAIN])
def test_rpk_is_named_beside_a_describe_too(text, beside):
    """What rpk prints is of Redpanda, and so is what was printed with it."""
    with pytest.raises(InputError, match=r"of Redpanda: .*majority"):
        load_cluster(text + beside)


# https://github.com/aiven/inkless and KIP-1150; KIP-405; Confluent's tiered storage.
@pytest.mark.parametrize(
    ("storage", "configs", "true_of"),
    [
        ("diskless", "diskless.enable=true,remote.storage.enable=true", "object storage before"),
        ("diskless", "inkless.enable=true", "object storage before"),
        ("tiered", "remote.storage.enable=true", "at most what is not uploaded yet is lost"),
        ("tiered", "confluent.tier.enable=true", "at most what is not uploaded yet is lost"),
        (None, "remote.storage.enable=false,diskless.enable=false", ""),
    ],
)
def test_a_topic_of_another_storage_is_set_aside_and_the_others_are_judged(
    storage, configs, true_of
):
    """It is in no verdict, no plan, no file and no load; what is true of it is said."""
    text = described("orders", "") + described("clicks", configs)
    cluster = load_cluster(text, racks={1: "a", 2: "b", 3: "c"})
    assert [topic.name for topic in cluster.set_aside] == (["clicks"] if storage else [])
    if storage is None:
        assert len(cluster.topics) == 2
        return
    assert [topic.storage for topic in cluster.set_aside] == [storage]
    (said,) = [remark for remark in cluster.remarks if "clicks" in remark]
    assert true_of in said
    audited, recommended = audit(cluster, CARD), recommend(cluster, CARD)
    assert [topic.topic.name for topic in audited.topics] == ["orders"]
    assert [action.topic for action in recommended.quick_verdict.actions] == ["orders"]
    files = "".join(map(str, recommended.files().values()))
    assert "orders" in files
    assert "clicks" not in files
    assert said in recommended.notes
    assert said in audited.notes
    again = load_cluster(json.dumps(cluster.to_dict()) + "\n")
    assert again.set_aside == cluster.set_aside


def test_brokers_may_make_every_topic_diskless():
    """Strimzi's Kafka resource has the default of topics without a value of their own."""
    resource = (
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: {}\nmetadata: {{name: {}}}\nspec: {}\n---\n"
    )
    text = resource.format(
        "Kafka", "shop", "{kafka: {replicas: 3, config: {log.diskless.enable: true}}}"
    )
    for name, own in (("a", ""), ("b", ", config: {diskless.enable: false}")):
        text += resource.format("KafkaTopic", name, f"{{partitions: 1, replicas: 3{own}}}")
    cluster = load_cluster(text)
    assert [topic.name for topic in cluster.set_aside] == ["a"]
    assert [topic.name for topic in cluster.topics] == ["b"]


def test_only_topics_of_another_storage_give_no_verdict():
    """A recommendation for a new topic would look like one for them."""
    with pytest.raises(InputError, match=r"there is no topic to judge\. .*clicks"):
        load_cluster(described("clicks", "diskless.enable=true"))
    with pytest.raises(InputError, match="topic clicks is set aside"):
        load_cluster(PLAIN + described("clicks", "diskless.enable=true")).topic("clicks")


def test_a_tiered_partition_without_a_leader_is_seen():
    """Elections of a tiered topic are Kafka's; a diskless one's leader means nothing."""
    for configs, offline in (
        ("remote.storage.enable=true", ("clicks-0",)),
        ("diskless.enable=true", ()),
    ):
        cluster = load_cluster(PLAIN + described("clicks", configs, leader="none"))
        assert state_of(cluster, "4.1").offline == offline


# Hosts and topics as in https://docs.aws.amazon.com/msk/latest/developerguide/,
# https://docs.confluent.io/cloud/current/clusters/broker-config.html and https://aiven.io/docs.
@pytest.mark.parametrize(
    ("service", "text"),
    [
        (
            "Amazon MSK",
            "$ kafka-topics.sh --bootstrap-server b-1.shop.wm1fi5.c23.kafka.us-east-1.amazonaws.com"
            ":9094 --describe\n" + PLAIN,
        ),
        ("Amazon MSK", PLAIN + described("__amazon_msk_canary", "")),
        (
            "Confluent Cloud",
            "$ kafka-topics --bootstrap-server pkc-4r087.us-west2.gcp.confluent.cloud:9092 "
            "--command-config c --describe\n" + PLAIN,
        ),
        (
            "Aiven for Apache Kafka",
            "$ kafka-topics.sh --bootstrap-server shop-demo.a.aivencloud.com:12693 --describe\n"
            + PLAIN,
        ),
        (
            "Amazon MSK Serverless",
            "$ kafka-topics.sh --bootstrap-server boot-p1.c3.kafka-serverless.us-east-1.amazonaws."
            "com:9098 --describe\n" + PLAIN,
        ),
        (None, PLAIN),
    ],
)
def test_a_managed_service_is_named_with_what_can_be_set(service, text):
    """The remark and the head of commands.sh say what a user can set there."""
    cluster = load_cluster(text)
    assert cluster.managed == service
    worse = replace(cluster, topics=tuple(_with_min_isr_1(t) for t in cluster.topics))
    commands = str(recommend(worse, CARD).files()["commands.sh"])
    for name, each in SERVICES.items():
        assert (each.sentence in cluster.remarks) == (name == service)
        assert (each.marked.split(":")[0] in commands) == (name == service)


def _with_min_isr_1(topic: Topic) -> Topic:
    return replace(topic, configs={"min.insync.replicas": "1"})


def test_event_hubs_is_declined():
    """It answers Kafka's protocol and decides on replication by itself."""
    prompt = "$ kafka-topics.sh --bootstrap-server shop.servicebus.windows.net:9093 --describe\n"
    with pytest.raises(InputError, match="Azure Event Hubs"):
        load_cluster(prompt + PLAIN)


def test_hosts_in_files_of_resources_are_not_the_cluster_s():
    """A Strimzi file may name another cluster, from which it mirrors."""
    source = "b-1.shop.wm1fi5.c23.kafka.us-east-1.amazonaws.com:9094"
    text = (
        "apiVersion: kafka.strimzi.io/v1beta2\nkind: Kafka\nmetadata:\n  name: shop\n"
        f"  annotations:\n    mirrors: {source}\nspec:\n  kafka:\n    replicas: 3\n"
    )
    assert load_cluster(text).managed is None
    assert service_of(source, ()) == "Amazon MSK"


def test_the_command_line_gives_no_verdict_of_redpanda(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One sentence on standard error, nothing on standard output, exit code 2."""
    path, model = tmp_path / "describe.txt", tmp_path / "card.toml"
    path.write_text(PLAIN + described("clicks", "redpanda.remote.read=true"))
    model.write_text(model_path("three_az_cloud").read_text())
    for line in (
        ["audit", str(path)],
        ["recommend", str(path)],
        ["evaluate", str(path)],
        ["report", str(path), "--output", str(tmp_path / "page.html")],
    ):
        assert main([*line, "--model", str(model)]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert "Redpanda" in said.err
    assert not (tmp_path / "page.html").exists()
