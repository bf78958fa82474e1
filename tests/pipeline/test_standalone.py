"""A standalone master with two workers and the wheel: the same bytes as in this process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from standalone_cluster import Standalone, build_wheel, configured, standalone

PROGRAM = """
import json, sys
from advisor.pipeline.session import spark_session
"""

QUESTION = """
from advisor import Cluster, Config, FailureModel, Workload, simulate, simulate_grid

card = {"broker": {"crash": {"per_year": 10.0, "minutes": 60.0},
                   "destroyed": {"per_year": 1.0, "hours": 24.0, "shape": 2.0}}}
model, load = FailureModel.from_dict(card), Workload(partitions=8)
configs = [Config(replication_factor=n, min_insync_replicas=n - 1) for n in (2, 3)]
clusters = [Cluster.uniform(3, 3), Cluster.uniform(6, 3)]

def one(engine, **options):
    return simulate(clusters[0], configs[1], model, load, 96, 11, engine, **options).to_dict()

def grid(engine, **options):
    found = simulate_grid(clusters, configs, model, load, 64, 11, engine, **options)
    return found.to_dict()
"""

ANSWER = """
def where(batches):
    import advisor, pyarrow
    from advisor.reliability.sampler.compiled import kernel
    found = {"file": advisor.__file__, "run": str(kernel.run.compiled)}
    for _ in batches:
        yield pyarrow.RecordBatch.from_pylist([found])

session = spark_session()
folder = sys.argv[1]
frame = session.range(0, 4, 1, 4).mapInArrow(where, "file string, run string")
print(json.dumps({
    "master": session.sparkContext.master,
    "files": [row.file for row in frame.collect()],
    "one": [one("spark"), one("spark", checkpoint=folder + "/one"),
            one("spark", checkpoint=folder + "/one")],
    "grid": [grid("spark"), grid("spark", checkpoint=folder + "/grid"),
             grid("spark", checkpoint=folder + "/grid")],
}))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone(tmp_path_factory.mktemp("standalone")) as found:
        yield found


@pytest.fixture(scope="module")
def answer(cluster: Standalone, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a program prints that uses the wheel, configured for the master."""
    folder = tmp_path_factory.mktemp("program")
    environ = configured(folder, cluster.url, build_wheel(tmp_path_factory.mktemp("dist")))
    line = [sys.executable, "-c", PROGRAM + QUESTION + ANSWER, str(folder)]
    done = subprocess.run(line, env=environ, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    found = json.loads(done.stdout)
    found["kept"] = {
        name: len(list((folder / name).glob("part-*.parquet"))) for name in ("one", "grid")
    }
    return found


def test_the_configured_master_runs_it(cluster: Standalone, answer: dict[str, Any]) -> None:
    """The master of spark-defaults.conf is used, and its workers import the wheel."""
    assert answer["master"] == cluster.url
    assert len(answer["files"]) == 4
    for file in answer["files"]:
        assert "/advisor.zip/advisor/" in file


@pytest.mark.parametrize("kind", ["one", "grid"])
def test_the_cluster_gives_the_same_bytes(answer: dict[str, Any], kind: str) -> None:
    """Without and with a checkpoint, from the checkpoint, and in the driver alone."""
    plain, kept, resumed = (json.dumps(each) for each in answer[kind])
    here: dict[str, Any] = {}
    exec(QUESTION, here)
    assert plain == kept == resumed == json.dumps(here[kind]("local"))
    assert answer["kept"][kind] > 0
