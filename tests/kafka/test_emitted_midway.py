"""Rollback during a throttled reassignment."""

from collections.abc import Callable
from pathlib import Path

import pytest

import advisor
from advisor.advice.migration.plan import make_plan
from advisor.cluster import Topic
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import ClusterSpec
from advisor.protocol.rules.config import Config
from emitted_scripts import Shell, create_topics

RACKS = {1: "a", 2: "b", 3: "c"}
BYTES_PER_SECOND = 20_000
# 40 MB take minutes: the quota window of 11 s lets one fetch of 1 MB through.
RECORDS, RECORD_BYTES = 4_000, 10_000
# Of the module, so that all tests of a release come in a row and share its cluster.
both_releases = pytest.mark.parametrize(
    ("release", "kafka_version"), [("3.9", "3.9"), ("4.3", "4.2")], scope="module"
)


@both_releases
def test_throttled_reassignment_is_cancelled(
    real_cluster: Callable[[ClusterSpec], RealCluster],
    tmp_path: Path,
    release: str,
    kafka_version: str,
) -> None:
    """A throttled reassignment can be read and cancelled, and leaves no trace."""
    cluster = real_cluster(ClusterSpec(release, racks=RACKS))
    shell = Shell(cluster, tmp_path / "shell")
    create_topics(cluster, {"full": [[1]]}, {"full": {"min.insync.replicas": "1"}})
    shell.describe_until(lambda text: "Topic: full\tPartition: 0\tLeader: 1\t" in text)
    filled = shell.run_lines(
        f"kafka-producer-perf-test.sh --topic full --num-records {RECORDS} "
        f"--record-size {RECORD_BYTES} --throughput -1 --producer-props bootstrap.servers=$BS"
    )
    assert filled.well, filled.output

    def full(text: str) -> Topic:
        return advisor.load_cluster(text).topic("full")

    before = full(shell.describe())
    config = Config(
        kafka_version=kafka_version, mode="kraft", replication_factor=3, min_insync_replicas=2
    )
    plan = make_plan(
        advisor.Cluster(RACKS, (before,)), config, advisor.Workload(), BYTES_PER_SECOND
    )
    shell.write({**plan.files, "back.sh": "\n".join(["set -e", *plan.rollback, ""])})
    (execute,) = [line for line in plan.steps if "--execute" in line]
    begun = shell.run_lines(execute)
    assert begun.well, begun.output
    (moving,) = full(
        shell.describe_until(lambda text: full(text).partitions[0].reassigning)
    ).partitions
    assert sorted(moving.adding) == [2, 3]
    assert moving.held == (1,)
    back = shell.run("back.sh")
    assert back.well, back.output
    assert full(shell.describe_until(lambda text: full(text) == before)) == before
    throttles = shell.without_throttles()
    assert throttles.well, throttles.output


@both_releases
def test_a_rollback_without_a_plan_goes_on_where_nothing_is_set(
    real_cluster: Callable[[ClusterSpec], RealCluster],
    tmp_path: Path,
    release: str,
    kafka_version: str,
) -> None:
    """3.9 refuses to remove an option that is not set, 4.3 does not; no broker is an error."""
    cluster = real_cluster(ClusterSpec(release, racks=RACKS))
    shell = Shell(cluster, tmp_path / "shell")
    create_topics(cluster, {"plain": [[1, 2, 3]]}, {})
    text = shell.describe_until(lambda text: "Topic: plain\tPartition: 0\tLeader: 1\t" in text)
    config = Config(
        kafka_version=kafka_version, mode="kraft", replication_factor=3, min_insync_replicas=2
    )
    described = advisor.Cluster(RACKS, (advisor.load_cluster(text).topic("plain"),))
    plan = make_plan(described, config, advisor.Workload(), BYTES_PER_SECOND)
    assert any("--delete-config min.insync.replicas" in line for line in plan.rollback)
    back = ["set -e", *plan.rollback, "echo the end", ""]
    shell.write({"back.sh": "\n".join(back), "astray.sh": "\n".join(["BS=127.0.0.1:1", *back])})
    again = shell.run("back.sh")
    assert again.well, again.output
    refused = "It is not set; going on: kafka-configs.sh" in again.output
    assert refused is (release == "3.9")
    assert "the end" in again.output
    astray = shell.run("astray.sh")
    assert not astray.well
    assert "the end" not in astray.output
