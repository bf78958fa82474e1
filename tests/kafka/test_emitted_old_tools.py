"""Scripts for old versions, run by the tools of those versions, which write to ZooKeeper.

The brokers are 3.9, the last version with ZooKeeper.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

import advisor
from advisor.advice.migration.plan import MigrationPlan, make_plan
from advisor.caches import cache_folder
from advisor.cluster import Topic
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.distribution import (
    BrokersUnavailableError,
    class_path_of,
)
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.protocol.rules.config import Config
from clusters import skip_or_fail
from emitted_scripts import Shell, create_topics

# One release per dialect of the tools, its Scala version, and the version given to the advisor.
RELEASES = [
    ("0.8.2.2", "2.11", "0.8.2"),
    ("1.1.1", "2.12", "1.1"),
    ("2.3.1", "2.12", "2.3"),
    ("2.5.1", "2.13", "2.5"),
]
CLASSES = {
    "kafka-topics.sh": "kafka.admin.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-reassign-partitions.sh": "kafka.admin.ReassignPartitionsCommand",
    "kafka-preferred-replica-election.sh": "kafka.admin.PreferredReplicaLeaderElectionCommand",
    "kafka-leader-election.sh": "kafka.admin.LeaderElectionCommand",
}
RACKS = {1: "a", 2: "b", 3: "c"}
SPEC = ClusterSpec("3.9", "zookeeper", RACKS)
POM = Path(__file__).parent / "old_tools.xml"


def old_tools(release: str, scala: str) -> dict[str, list[str]]:
    """Return the command behind each script of an old release, downloaded by Maven."""
    options = [f"-Dkafka.version={release}", f"-Dscala={scala}", f"-P{release[0]}"]
    folder = cache_folder(f"old-tools-{release}")
    try:
        class_path = class_path_of(f"Kafka {release}", POM, options, folder)
    except BrokersUnavailableError as error:
        skip_or_fail(str(error))
    java = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", class_path]
    return {script: [*java, name] for script, name in CLASSES.items()}


@pytest.mark.parametrize(("release", "scala", "kafka_version"), RELEASES)
def test_old_tools_run_the_scripts_for_their_version(
    real_cluster: Callable[[ClusterSpec], RealCluster],
    tmp_path: Path,
    release: str,
    scala: str,
    kafka_version: str,
) -> None:
    """RF 1 to 3 with min ISR 2 and rolled_back, with the tools of the version."""
    cluster = real_cluster(SPEC)
    shell = Shell(cluster, tmp_path / "shell", old_tools(release, scala))
    name = f"of.{release}"
    create_topics(cluster, {name: [[1], [2]]}, {name: {"unclean.leader.election.enable": "true"}})

    def described(wanted: Callable[[Topic], bool]) -> Topic:
        text = shell.describe_until(
            lambda text: (
                f"Topic: {name}\t" in text and wanted(advisor.load_cluster(text).topic(name))
            )
        )
        return advisor.load_cluster(text).topic(name)

    before = described(lambda topic: len(topic.partitions) == 2)
    plan = planned(before, kafka_version)
    shell.write(
        {**plan.files, "there.sh": script(plan.lines), "rolled_back.sh": script(plan.rollback)}
    )
    assert "--zookeeper $ZK" in script(plan.lines)
    migrated = shell.run("there.sh")
    assert migrated.well, migrated.output
    after = described(
        lambda topic: (
            topic.min_insync_replicas == 2
            and all(sorted(p.isr) == [1, 2, 3] for p in topic.partitions)
        )
    )
    assert all(sorted(p.isr) == [1, 2, 3] for p in after.partitions)
    assert after.configs["unclean.leader.election.enable"] == "false"
    assert "throttled" not in shell.describe_until(lambda text: "throttled" not in text)
    rolled_back = shell.run("rolled_back.sh")
    assert rolled_back.well, rolled_back.output
    assert described(before.__eq__) == before


def planned(topic: Topic, kafka_version: str) -> MigrationPlan:
    config = Config(
        kafka_version=kafka_version,
        replication_factor=3,
        min_insync_replicas=2,
        unclean_leader_election_enable=False,
    )
    return make_plan(advisor.Cluster(RACKS, (topic,)), config, advisor.Workload())


def script(lines: list[str] | tuple[str, ...]) -> str:
    return "\n".join(["set -e", *lines, ""])
