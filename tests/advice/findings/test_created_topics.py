"""Topics that Kafka or its frameworks create: their names, their replicas, brokers for them."""

import json

import pytest

from advisor.cluster import Cluster, Topic, load_cluster
from advisor.cluster.observed import Observed, Setting
from checked_topics import ONE, SIX, partition, with_min_isr
from read_cluster import findings_of, findings_of_topic

OFFSETS, TRANSACTIONS = "offsets.topic", "transaction.state.log"
AUTO = "auto.create.topics.enable"


def found(brokers: int, *topics: Topic, **settings: str) -> dict[str, str]:
    """Findings about topics to come; settings with underscores, as a running cluster reports."""
    values = {k.replace("_", "."): Setting(v, "STATIC_BROKER_CONFIG") for k, v in settings.items()}
    racks = {broker: SIX[broker] for broker in range(1, brokers + 1)}
    observed = Observed(mode="kraft", broker_settings=dict.fromkeys(racks, values))
    cluster = Cluster(racks, topics, observed=observed if settings else None)
    told = findings_of(cluster)
    return {each.code: each.detail for each in told if each.code in ("KRA207", "KRA208")}


def internal(name: str) -> Topic:
    return with_min_isr(1, ONE, name=name)


@pytest.mark.parametrize("brokers", [1, 2, 3])
def test_a_small_cluster_cannot_create_the_internal_topics(brokers: int) -> None:
    """With fewer than three brokers, unless set or there already; a file without topics is mute."""
    user = with_min_isr(1, ONE)
    both = found(brokers, user)
    assert set(both) == ({"KRA208"} if brokers < 3 else set())
    assert found(brokers) == {}
    assert found(brokers, user, *map(internal, ("__consumer_offsets", "__transaction_state"))) == {}
    if brokers == 2:
        assert both["KRA208"] == (
            "there are 2 brokers, and __consumer_offsets and __transaction_state are not in the "
            "description."
        )
        one = found(2, user, internal("__consumer_offsets"))
        assert one["KRA208"].endswith("and __transaction_state is not in the description.")
        low = {"offsets_topic_replication_factor": "2"}
        low["transaction_state_log_replication_factor"] = "2"
        assert found(2, user, **low) == {}


def test_a_running_cluster_says_that_new_topics_get_one_replica() -> None:
    """The default counts where clients create topics, that of an internal topic until it exists."""
    user = with_min_isr(2)
    default = {"default_replication_factor": "1"}
    auto = {"auto_create_topics_enable": "true"}
    offsets = {"offsets_topic_replication_factor": "1"}
    assert found(3, user, **default, **auto) == {
        "KRA207": "default.replication.factor is 1, and auto.create.topics.enable is true."
    }
    assert found(3, user, **default, auto_create_topics_enable="false") == {}
    assert found(3, user, default_replication_factor="3", **auto) == {}
    assert found(3, user, **offsets) == {"KRA207": "offsets.topic.replication.factor is 1."}
    assert found(3, user, internal("__consumer_offsets"), **offsets) == {}
    assert found(3, user, **default, **auto, **offsets)["KRA207"].startswith(
        "default.replication.factor and offsets.topic.replication.factor are 1, and auto."
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("connect-cluster-offsets", "KRA205"),
        ("connect-cluster-configs", "KRA205"),
        ("my-connect-cluster-1-status", "KRA205"),
        ("mm2-offset-syncs.backup.internal", "KRA205"),
        ("mm2-offsets.backup.internal", "KRA205"),
        ("primary.checkpoints.internal", "KRA205"),
        ("connection-status", "KRA204"),
        ("device-connect-user-status", "KRA204"),
        ("heartbeats", "KRA204"),
    ],
)
def test_frameworks_are_known_by_the_names_of_their_topics(name: str, code: str) -> None:
    """Those of Strimzi's examples and of MirrorMaker 2, but no name that anyone may use."""
    topic = internal(name)
    cluster = Cluster(SIX, (topic,))
    told = {each.code for each in findings_of_topic(topic, cluster)}
    assert told == {code}


@pytest.mark.parametrize(
    ("version", "topic_id", "assumed"),
    [
        ("4.1", "AAAAAAAAAAAAAAAAAAAAAQ", False),
        ("2.8", "AAAAAAAAAAAAAAAAAAAAAQ", True),
        ("4.1", None, True),
    ],
)
def test_what_newer_tools_leave_out_is_the_default(
    version: str, topic_id: str | None, assumed: bool
) -> None:
    """From 3.0 on kafka-topics.sh asks the brokers, so that nothing is assumed."""
    topic = Topic("t", (partition(),), topic_id=topic_id)
    told = findings_of_topic(topic, Cluster(SIX, (topic,)), version)
    assert ("KRA107" in {each.code for each in told}) == assumed


STRIMZI = """\
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: my}
spec:
  kafka:
    version: 4.1.0
    replicas: 3
    config: {default.replication.factor: 3, SETTINGS}
---
apiVersion: kafka.strimzi.io/v1
kind: KafkaTopic
metadata: {name: orders}
spec: {partitions: 1, replicas: 3}
"""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", {}),
        ("offsets.topic.replication.factor: 3, transaction.state.log.min.isr: 2", {}),
        (
            "offsets.topic.replication.factor: 1, transaction.state.log.replication.factor: 1",
            {
                "KRA207": "offsets.topic.replication.factor and "
                "transaction.state.log.replication.factor are 1."
            },
        ),
        (
            "default.replication.factor: 1",
            {"KRA207": "default.replication.factor is 1, and auto.create.topics.enable is true."},
        ),
        ("default.replication.factor: 1, auto.create.topics.enable: false", {}),
        (
            "transaction.state.log.min.isr: 1",
            {
                "KRA206": "transaction.state.log.min.isr is 1, "
                "transaction.state.log.replication.factor 3."
            },
        ),
        (
            "transaction.state.log.replication.factor: 2",
            {
                "KRA206": "transaction.state.log.min.isr is 2, "
                "transaction.state.log.replication.factor 2."
            },
        ),
        (
            "offsets.topic.replication.factor: 4",
            {
                "KRA208": "there are 3 brokers, and __consumer_offsets is not in the description.",
            },
        ),
    ],
)
def test_strimzi_says_what_topics_to_come_get(settings: str, expected: dict[str, str]) -> None:
    """The brokers' settings in a Kafka resource count where internal topics are not described."""
    text = STRIMZI.replace("default.replication.factor: 3, SETTINGS", settings or "a: b")
    if "default.replication.factor" not in settings:
        text = STRIMZI.replace("SETTINGS", settings or "a: b")
    cluster = load_cluster(text)
    saved = load_cluster(json.dumps(cluster.to_dict(), indent=1))
    for each in (cluster, saved):
        told = {f.code: f.detail for f in findings_of(each) if f.code.startswith("KRA20")}
        assert told == expected
    pool = text.replace("metadata: {name: orders}", "metadata: {name: __transaction_state}")
    codes = {f.code for f in findings_of(load_cluster(pool))}
    assert "KRA206" not in codes
