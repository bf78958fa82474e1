"""The scripts of a recommendation, run with Kafka's tools on real clusters."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import yaml

import advisor
from advisor.advice.migration.plan import make_plan
from advisor.advice.migration.properties import broker_properties
from advisor.advice.recommendations.recommendation import Recommendation
from advisor.cluster import Cluster, Topic
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import default
from emitted_scripts import Ran, Shell, create_topics

RACKS = {1: "a", 2: "b", 3: "c", 4: "a"}
PLACED = {
    "one": [[1], [2], [4]],
    "two.d": [[1, 2], [3, 1]],
    "low": [[1, 2, 3], [2, 3, 4]],
    "unclean_on": [[3, 1, 2]],
    "together": [[1, 4, 2], [4, 1, 3]],
    "well": [[1, 2, 3]],
    "rich": [[1, 2, 3, 4]],
    "__consumer_offsets": [[2], [3]],
}
CONFIGS = {
    "two.d": {"min.insync.replicas": "1", "cleanup.policy": "compact,delete", "flush.ms": "9000"},
    "unclean_on": {"unclean.leader.election.enable": "true"},
    "together": {"min.insync.replicas": "2"},
    "well": {"min.insync.replicas": "2", "unclean.leader.election.enable": "false"},
    "rich": {"min.insync.replicas": "3"},
    "__consumer_offsets": {"cleanup.policy": "compact"},
}
# No plan takes a replica away. With min ISR 3 the loss of rack a would stop its writes.
RICHER = {"rich"}
# Release of the brokers, mode, and the version given to the advisor.
CLUSTERS = [("3.9", "kraft", "3.9"), ("3.9", "zookeeper", "3.9"), ("4.3", "kraft", "4.2")]
Start = Callable[[ClusterSpec], RealCluster]


def settings(kafka_version: str, mode: str) -> Config:
    return Config(
        kafka_version=kafka_version, mode=mode, replication_factor=3, min_insync_replicas=2
    )


def lines_of(described: str) -> list[str]:
    """Return the sorted lines of a describe output, with ascending ISRs."""
    isr = re.compile(r"(?<=Isr: )[\d,]+")
    ascending = isr.sub(lambda found: ",".join(sorted(found[0].split(","))), described)
    return sorted(ascending.splitlines())


def spec(release: str, mode: str, kafka_version: str) -> ClusterSpec:
    """A cluster whose brokers have the emitted server.properties."""
    text = broker_properties(settings(kafka_version, mode)).text
    lines = [line.split("=") for line in text.splitlines() if not line.startswith("#")]
    return ClusterSpec(release, mode, RACKS, brokers_configs=dict(lines))


@dataclass(frozen=True)
class Journey:
    """A migration and its rollback: recommendation, output, and descriptions."""

    shell: Shell
    advice: Recommendation
    before: str
    forth: Ran
    after: str
    back: Ran
    restored: str


def topics_of(described: str) -> dict[str, Topic]:
    return {topic.name: topic for topic in advisor.load_cluster(described).topics}


def all_there(described: str) -> bool:
    """Whether all replicas of every topic are in sync."""
    if not all(f"\tTopic: {name}\tPartition: 0\t" in described for name in PLACED):
        return False
    partitions = [p for topic in topics_of(described).values() for p in topic.partitions]
    return all(len(p.isr) == p.replication_factor for p in partitions)


def as_advised(topic: Topic) -> bool:
    """Whether it has RF 3 or more in sync, min ISR 2, and clean elections."""
    return (
        topic.min_insync_replicas == 2
        and topic.configs.get("unclean.leader.election.enable", "false") == "false"
        and all(len(p.isr) == p.replication_factor >= 3 for p in topic.partitions)
    )


@pytest.fixture(scope="module", params=CLUSTERS, ids=lambda c: f"{c[0]}-{c[1]}")
def journey(
    request: pytest.FixtureRequest,
    real_cluster: Start,
    tmp_path_factory: pytest.TempPathFactory,
) -> Journey:
    release, mode, kafka_version = request.param
    cluster = real_cluster(spec(release, mode, kafka_version))
    shell = Shell(cluster, tmp_path_factory.mktemp("emitted"))
    create_topics(cluster, PLACED, CONFIGS)
    before = shell.describe_until(all_there)
    advice = advisor.recommend(
        advisor.load_cluster(before, racks=RACKS, kafka_version=kafka_version),
        advisor.load_model("three_az_cloud"),
        advisor.Workload(partitions=10),
        advisor.Goals(survive="rack"),
        Config(kafka_version=kafka_version, mode=mode, replication_factor=1, min_insync_replicas=1),
        allow_lower_durability=True,
    )
    assert advice.plan.lowered == ("topic rich: min.insync.replicas from 3 to 2",)
    shell.write(advice.files())
    forth = shell.run("commands.sh")
    after = shell.describe_until(lambda text: all(map(as_advised, topics_of(text).values())))
    back = shell.run("rollback.sh")
    restored = shell.describe_until(lambda text: lines_of(text) == lines_of(before))
    return Journey(shell, advice, before, forth, after, back, restored)


def test_the_scripts_run_to_their_end(journey: Journey) -> None:
    """Migration and rollback succeed, and no tool reports a failure."""
    assert journey.forth.well, journey.forth.output
    assert journey.back.well, journey.back.output


def test_every_topic_is_as_recommended(journey: Journey) -> None:
    """Afterwards each topic has the recommended replicas, min ISR and election setting."""
    config = journey.advice.best.config
    found = topics_of(journey.after)
    assert found.keys() == PLACED.keys()
    for name, topic in found.items():
        assert topic.min_insync_replicas == config.min_insync_replicas == 2, name
        assert topic.configs.get("unclean.leader.election.enable", "false") == "false", name
        for partition in () if name in RICHER else topic.partitions:
            assert partition.replication_factor == config.replication_factor == 3, name
            assert sorted(partition.isr) == sorted(partition.replicas), name
            assert partition.leader == partition.replicas[0], name
            assert {RACKS[broker] for broker in partition.replicas} == {"a", "b", "c"}, name


def test_other_settings_are_unchanged(journey: Journey) -> None:
    """Compliant topics, the replicas of those with more, and all other settings are unchanged."""
    before = topics_of(journey.before)
    found = topics_of(journey.after)
    assert found["well"] == before["well"]
    for name in RICHER:
        assert found[name].partitions == before[name].partitions
    for name, topic in before.items():
        for key in topic.configs.keys() - {"min.insync.replicas", "unclean.leader.election.enable"}:
            assert found[name].configs[key] == topic.configs[key]
    assert "throttled" not in journey.after


def test_rollback_restores_every_byte(journey: Journey) -> None:
    """After the rollback `kafka-topics.sh --describe` prints what it printed at first.

    All but the order in which the members of an ISR joined it, and that of the lines.
    """
    assert lines_of(journey.after) != lines_of(journey.before)
    assert lines_of(journey.restored) == lines_of(journey.before)


def test_strimzi_resources_match_the_migrated_topics(journey: Journey) -> None:
    """The KafkaTopic resources say of each topic what it is once the scripts have run.

    The operator sets what they say and takes away what they do not.
    """
    found = topics_of(journey.after)
    resources = yaml.safe_load_all(journey.advice.files()["kafka-topics.yaml"])
    stated = {r["spec"].get("topicName", r["metadata"]["name"]): r["spec"] for r in resources}
    # What stays needs none. No resource of an internal topic: deleting it would delete the topic.
    assert stated.keys() == PLACED.keys() - {"well", "__consumer_offsets"}
    for name, spec in stated.items():
        topic = found[name]
        replicas = topic.partitions[0].replication_factor
        assert (spec["partitions"], spec["replicas"]) == (len(topic.partitions), replicas)
        as_text = {key: str(value) for key, value in spec["config"].items()}
        as_text |= {k: str(v).lower() for k, v in spec["config"].items() if isinstance(v, bool)}
        assert as_text == topic.configs, name


def test_no_throttle_is_left(journey: Journey) -> None:
    """No throttle is left on brokers or topics."""
    asked = [
        f"kafka-configs.sh --bootstrap-server $BS --describe --entity-type {kind}"
        for kind in ("brokers", "topics")
    ]
    ran = journey.shell.run_lines(*asked)
    assert ran.well, ran.output
    assert "Dynamic configs for topic low" in ran.output
    assert "throttled" not in ran.output


def test_describe_output_is_read_without_loss(journey: Journey) -> None:
    """Every partition line of the tool is reproduced from the parsed topics."""
    for text in (journey.before, journey.after, journey.restored):
        cluster = advisor.load_cluster(text)
        lines = [line for line in text.splitlines() if "\tPartition: " in line]
        again = [
            (t.name, p.index, p.leader, p.replicas, p.isr)
            for t in cluster.topics
            for p in t.partitions
        ]
        assert len(again) == len(lines) == sum(map(len, PLACED.values()))
        for (name, index, leader, replicas, isr), line in zip(again, lines, strict=True):
            ids = [",".join(map(str, some)) for some in (replicas, isr)]
            assert line.startswith(
                f"\tTopic: {name}\tPartition: {index}\tLeader: {leader}\t"
                f"Replicas: {ids[0]}\tIsr: {ids[1]}"
            )


def test_commented_default_commands_work_and_roll_back(journey: Journey) -> None:
    """The commented commands about broker defaults work, and undo each other."""
    plan, shell = journey.advice.plan, journey.shell
    (there,) = [line[1:] for line in plan.steps if line.startswith("#   kafka-configs.sh")]
    (back,) = [line for line in plan.rollback if line.startswith("# If you set the brokers'")]

    def inherits(min_isr: int) -> Callable[[str], bool]:
        return lambda text: (
            "Topic: bare\tPartition: 0" in text
            and (topics_of(text)["bare"].min_insync_replicas or 1) == min_isr
        )

    # The rollback has set explicit values on the other topics, if they had any.
    ran = shell.run_lines("kafka-topics.sh --bootstrap-server $BS --create --topic bare", there)
    assert ran.well, ran.output
    assert inherits(2)(shell.describe_until(inherits(2)))
    ran = shell.run_lines(back.partition(": ")[2])
    assert ran.well, ran.output
    assert inherits(1)(shell.describe_until(inherits(1)))
    delete(shell, "bare")
    first = lines_of(journey.before)
    assert lines_of(shell.describe_until(lambda text: lines_of(text) == first)) == first


def topic_of(shell: Shell, name: str, partitions: int) -> Topic:
    """Return a new topic once the brokers have heard of all its partitions."""
    line = f"\tTopic: {name}\tPartition: "
    return topics_of(shell.describe_until(lambda text: text.count(line) == partitions))[name]


def delete(shell: Shell, name: str) -> None:
    """Delete a topic, and wait until the brokers have heard of it."""
    ran = shell.run_lines(f"kafka-topics.sh --bootstrap-server $BS --delete --topic {name}")
    assert ran.well, ran.output
    assert f"Topic: {name}\t" not in shell.describe_until(
        lambda text: f"Topic: {name}\t" not in text
    )


def test_a_new_topic_is_created_as_recommended(journey: Journey) -> None:
    """On a cluster without topics the plan creates one with the recommended settings."""
    config = journey.advice.best.config
    plan = make_plan(Cluster(RACKS), config, advisor.Workload(partitions=5))
    ran = journey.shell.run_lines(*plan.lines)
    assert ran.well, ran.output
    topic = topic_of(journey.shell, "my-topic", 5)
    delete(journey.shell, "my-topic")
    assert len(topic.partitions) == 5
    assert topic.replication_factor == 3
    assert topic.min_insync_replicas == 2


def test_emitted_server_properties_set_the_defaults(journey: Journey) -> None:
    """A topic created without a factor gets that of the emitted server.properties."""
    make = "kafka-topics.sh --bootstrap-server $BS --create --topic plain"
    ran = journey.shell.run_lines(make)
    assert ran.well, ran.output
    topic = topic_of(journey.shell, "plain", 1)
    delete(journey.shell, "plain")
    assert default("replication_factor", "3.9") == 1 != topic.replication_factor == 3


def test_script_stops_while_a_replica_is_out_of_sync(journey: Journey) -> None:
    """With a broker down the script stops at its first check, without changes."""
    cluster = journey.shell.cluster
    cluster.stop(4)
    try:
        ran = journey.shell.run("commands.sh")
        now = journey.shell.describe()
    finally:
        cluster.start(4)
    assert ran.code != 0
    # What only that broker has is offline, which is looked for first.
    assert "Leader: none" in ran.output
    stated = {name: topic.configs for name, topic in topics_of(journey.before).items()}
    assert {name: topic.configs for name, topic in topics_of(now).items()} == stated
