"""Emitted scripts run nothing that stands in a cluster's description."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from advisor.advice.migration.plan import _comments, make_plan
from advisor.cluster import Cluster, load_cluster
from advisor.cluster.observed import Observed
from advisor.errors import AdvisorError
from advisor.protocol.rules.config import Config
from advisor.reliability.workload import Workload
from patience import PATIENCE_S
from saved_cluster import places, saved, write_tools

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


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Write the stand-ins to a folder."""
    return write_tools(tmp_path / "tools")


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
            timeout=PATIENCE_S,
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
    assert line.text == "# every partition on c touch PWNED #"
