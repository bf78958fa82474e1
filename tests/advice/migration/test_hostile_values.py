"""Emitted scripts run nothing that stands in a cluster's description."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advisor.advice.migration.plan import _comments, make_plan
from advisor.cluster import Cluster, Partition, Topic, load_cluster
from advisor.cluster.observed import Observed, Quorum, Setting
from advisor.errors import AdvisorError
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload

# Each creates the file PWNED if a shell runs it, from within various quotes.
HOSTILE = (
    "$(touch PWNED)",
    "b1:9092$(touch PWNED)",
    "`touch PWNED`:9092",
    "}; touch PWNED; :",
    "'; touch PWNED; '",
    "'}; touch PWNED; '",
    '"; touch PWNED; "',
    "x\ntouch PWNED\n",
    "x | touch PWNED & touch PWNED",
    "b1:9092} && touch PWNED #",
)
# Stand-ins for Kafka's tools and sleep: they report every move as complete.
TOOL = """#!/bin/sh
case "$*" in *--verify*) grep -o '"partition"' reassign.json | sed 's/.*/x is complete/';; esac
"""
TOOLS = (
    "kafka-topics.sh",
    "kafka-configs.sh",
    "kafka-reassign-partitions.sh",
    "kafka-leader-election.sh",
    "kafka-preferred-replica-election.sh",
    "sleep",
)


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Write the stand-ins to a folder."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in TOOLS:
        (folder / name).write_text(TOOL)
        (folder / name).chmod(0o755)
    return folder


def saved() -> dict[str, Any]:
    """Return a saved live cluster that uses every field."""
    setting = Setting("1", "DYNAMIC_TOPIC_CONFIG")
    configs = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    return Cluster(
        {1: "a", 2: "b", 3: "c"},
        (Topic("orders", (Partition(0, 1, (1, 2), (1, 2)),), configs, "id"),),
        kafka_version="4.1",
        source="live",
        notes=("a note",),
        observed=Observed(
            mode="kraft",
            cluster_id="c",
            quorum=Quorum(1, 1, (1, 2, 3), ()),
            features={"metadata.version": 1},
            features_known=True,
            versions={1: "4.1"},
            broker_settings={1: {"min.insync.replicas": setting}},
            topic_settings={
                "orders": {
                    "min.insync.replicas": setting,
                    "unclean.leader.election.enable": setting,
                }
            },
            bootstrap_servers="b1:9092",
            command_config="client.properties",
        ),
        controllers={1: "a", 2: "b", 3: "c"},
    ).to_dict()


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value that is not a mapping or list."""
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in pairs:
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))
        else:
            yield (*path, key)


def changed(path: tuple[Any, ...], value: str, as_key: bool) -> str:
    """Return the saved cluster as JSON with one value, or its key, replaced."""
    data = saved()
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    if as_key and isinstance(inner, dict):
        inner[value] = inner.pop(path[-1])
    else:
        inner[path[-1]] = value
    return json.dumps(data) + "\n"


def run_scripts(described: Cluster, version: str, folder: Path, tools: Path) -> None:
    """Run the commands and the way back with the stand-ins, in every shell there is."""
    config = Config(replication_factor=3, min_insync_replicas=2, kafka_version=version)
    plan = make_plan(described, config, Workload(partitions=1))
    folder.mkdir(exist_ok=True)
    for name, content in {**plan.files, **plan.scripts}.items():
        (folder / name).write_text(content)
    for name in plan.scripts:
        done = subprocess.run(
            ["sh", name],
            cwd=folder,
            env={"PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == 0, done.stderr
    assert not (folder / "PWNED").exists()


@pytest.mark.parametrize("version", ["4.1", "2.4"])
def test_the_stand_ins_run_the_whole_script(tmp_path: Path, tools: Path, version: str) -> None:
    """A plan with moves and changes passes, so that the next test runs every line."""
    described = load_cluster(json.dumps(saved()) + "\n")
    run_scripts(described, version, tmp_path / "run", tools)
    assert '"partition"' in (tmp_path / "run" / "reassign.json").read_text()


@pytest.mark.parametrize("as_key", [False, True])
def test_no_value_of_a_saved_cluster_is_run(tmp_path: Path, tools: Path, as_key: bool) -> None:
    """A hostile value in any field is refused when it is read, or quoted in the scripts."""
    seen: set[tuple[str, ...]] = set()
    for path in places(saved()):
        for hostile in HOSTILE:
            try:
                described = load_cluster(changed(path, hostile, as_key))
            except AdvisorError:
                continue
            # Clusters that lead to the same script need not be run again.
            config = Config(replication_factor=3, min_insync_replicas=2)
            lines = tuple(make_plan(described, config, Workload(partitions=1)).scripts.values())
            if lines not in seen:
                seen.add(lines)
                run_scripts(described, "4.1", tmp_path / "run", tools)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_the_path_of_the_client_properties_is_quoted(
    tmp_path: Path, tools: Path, hostile: str
) -> None:
    """A path may have any characters but line breaks, and reaches the tool as it is."""
    observed = Observed("kraft", bootstrap_servers="b1:9092")
    if "\n" in hostile:
        with pytest.raises(AdvisorError, match="command_config"):
            Observed("kraft", bootstrap_servers="b1:9092", command_config=hostile)
        return
    observed = Observed("kraft", bootstrap_servers="b1:9092", command_config=hostile)
    described = Cluster({1: "a", 2: "b", 3: "c"}, observed=observed)
    run_scripts(described, "4.1", tmp_path / "run", tools)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_addresses_with_shell_code_are_refused(hostile: str) -> None:
    """Bootstrap servers are host:port."""
    with pytest.raises(AdvisorError, match="bootstrap_servers"):
        Observed("kraft", bootstrap_servers=hostile)


@pytest.mark.parametrize("value", [7, 1.5, ["x"], {"a": 1}])
def test_a_path_of_client_properties_is_text(value: Any) -> None:
    """`command_config: 7` is refused where it is read."""
    document = saved()
    document["observed"]["command_config"] = value
    with pytest.raises(AdvisorError, match="command_config"):
        load_cluster(json.dumps(document) + "\n")


def test_a_comment_is_one_line() -> None:
    """A sentence with a line break stays within its comment."""
    (line,) = _comments("every partition on c\ntouch PWNED #")
    assert line == "# every partition on c touch PWNED #"
