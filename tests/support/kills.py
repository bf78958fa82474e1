"""Kill a Python worker, a standalone worker or the driver at random moments, and compare bytes.

Run it with ``python tests/support/kills.py driver 10 7``: what to kill, how often, and the seed of
the moments. It prints a line of JSON. Every other run is a fleet; the others are one sample.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from advisor import Cluster, Config, FailureModel, Workload, simulate, simulate_grid
from advisor.pipeline.session import spark_session
from standalone_cluster import ROOT, Standalone, standalone

YEARS, FLEET_YEARS, SEED = 30_000, 9_000, 11
LOAD = Workload(partitions=24, records_per_second=80.0)
MODEL = FailureModel.from_dict(
    {
        "broker": {
            "crash": {"per_year": 10.0, "minutes": 60.0},
            "destroyed": {"per_year": 1.0, "hours": 24.0, "shape": 2.0},
        },
        "rack": {"network": {"per_year": 2.0, "minutes": 120.0}},
    }
)
CONFIGS = [Config(replication_factor=n, min_insync_replicas=n - 1) for n in (2, 3)]
CLUSTERS = [Cluster.uniform(n, 3) for n in (3, 6, 9)]


def sample(kind: str, engine: str, checkpoint: Path | None = None) -> str:
    """The result of one sample or of a fleet, as text."""
    if kind == "one":
        inputs = CLUSTERS[1], CONFIGS[1], MODEL, LOAD, YEARS, SEED, engine
        return json.dumps(simulate(*inputs, checkpoint=checkpoint).to_dict())
    fleet = CLUSTERS, CONFIGS, MODEL, LOAD, FLEET_YEARS, SEED, engine
    return json.dumps(simulate_grid(*fleet, checkpoint=checkpoint).to_dict())


def kind_of(number: int) -> str:
    return "fleet" if number % 2 else "one"


def python_workers(ancestor: int) -> list[int]:
    """Processes that run blocks for the Java process with this id, below any of its children."""
    parents, daemons = {}, set()
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat.rsplit(")", 1)[1].split()[1])
        if b"pyspark.daemon" in command:
            daemons.add(int(folder.name))

    def is_below(process: int) -> bool:
        while process in parents and process != ancestor:
            process = parents[process]
        return process == ancestor

    return [each for each in daemons if parents[each] in daemons and is_below(each)]


@contextmanager
def after(seconds: float, strike: Callable[[], bool]) -> Iterator[list[bool]]:
    """Strike after so many seconds, again and again until it hits; says whether it did in time."""
    hit: list[bool] = []
    over = threading.Event()

    def wait_and_strike() -> None:
        over.wait(seconds)
        while not over.is_set():
            if strike():
                hit.append(True)
                return
            time.sleep(0.01)

    striker = threading.Thread(target=wait_and_strike)
    striker.start()
    try:
        yield hit
    finally:
        over.set()
        striker.join()


class Runs:
    """Samples on Spark that are struck, compared with the same in this process."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.wanted = {kind: sample(kind, "local") for kind in ("one", "fleet")}
        self.seconds: dict[str, float] = {}
        self.struck = self.same = 0

    def warm_up(self) -> None:
        """Measure how long the samples take."""
        for kind, wanted in self.wanted.items():
            for _ in range(2):
                begun = time.monotonic()
                assert sample(kind, "spark") == wanted
                self.seconds[kind] = time.monotonic() - begun

    def run(self, number: int, strike: Callable[[], bool]) -> None:
        """Run a sample, strike it at a random moment of its time, and compare."""
        kind = kind_of(number)
        with after(self.rng.random() * 0.9 * self.seconds[kind], strike) as hit:
            found = sample(kind, "spark")
        self.count(bool(hit), found == self.wanted[kind])

    def count(self, struck: bool, same: bool) -> None:
        """Count a run if it was struck in time, and say so."""
        self.struck += struck
        self.same += struck and same
        print(f"{self.same} of {self.struck}", file=sys.stderr, flush=True)


def kill_python_workers(moments: int, rng: random.Random) -> Runs:
    """Kill the Python process of a task of a local session."""
    gateway: Any = spark_session("local[2,4]").sparkContext._gateway
    java = gateway.proc.pid
    runs = Runs(rng)
    runs.warm_up()

    def strike() -> bool:
        workers = python_workers(java)
        if workers:
            os.kill(rng.choice(sorted(workers)), signal.SIGKILL)
        return bool(workers)

    while runs.struck < moments:
        runs.run(runs.struck, strike)
    return runs


def kill_standalone_workers(moments: int, rng: random.Random) -> Runs:
    """Kill a worker of a standalone master; another one comes in its place."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    with tempfile.TemporaryDirectory() as folder, standalone(Path(folder)) as cluster:
        session = spark_session(cluster.url)
        runs = Runs(rng)
        runs.warm_up()
        while runs.struck < moments:
            runs.run(runs.struck, lambda: _kill_one(cluster, rng))
            alive = [worker for worker in cluster.workers if worker.poll() is None]
            if len(alive) < 2:
                cluster.start_worker()
        session.stop()
        return runs


def _kill_one(cluster: Standalone, rng: random.Random) -> bool:
    alive = [worker for worker in cluster.workers if worker.poll() is None]
    rng.choice(alive).kill()
    return True


def kill_drivers(moments: int, rng: random.Random) -> Runs:
    """Kill a program that samples with a checkpoint, and run it again."""
    runs = Runs(rng)
    with tempfile.TemporaryDirectory() as parent:
        runs.seconds = dict.fromkeys(("one", "fleet"), 0.0)
        for kind in runs.seconds:
            begun, first = _sampled_elsewhere(kind, Path(parent) / f"first-{kind}", None)
            runs.seconds[kind] = begun
            assert first == runs.wanted[kind]
        tries = 0
        while runs.struck < moments:
            kind, folder = kind_of(runs.struck), Path(parent) / str(tries)
            tries += 1
            at = rng.random() * 0.9 * runs.seconds[kind]
            _, done_in_time = _sampled_elsewhere(kind, folder, at)
            if done_in_time:
                # It was faster than the run that was timed: another moment is drawn.
                continue
            _, found = _sampled_elsewhere(kind, folder, None)
            runs.count(True, found == runs.wanted[kind])
    return runs


def _sampled_elsewhere(kind: str, folder: Path, kill_after: float | None) -> tuple[float, str]:
    """Sample in another process, which is killed so long after its first block.

    Returns
    -------
    seconds, result : float and str
        From the first block to the end; "" if it was killed.
    """
    line = [sys.executable, __file__, "sample", kind, str(folder)]
    driver = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
    while driver.poll() is None and not list(folder.glob("*.parquet")):
        time.sleep(0.01)
    begun = time.monotonic()
    if kill_after is not None:
        time.sleep(kill_after)
        driver.kill()
    result, _ = driver.communicate()
    return time.monotonic() - begun, result.strip()


SWEEPS = {
    "python": kill_python_workers,
    "standalone": kill_standalone_workers,
    "driver": kill_drivers,
}


def swept(what: str, moments: int, seed: int) -> dict[str, int]:
    """Kill in a process of its own; how often it was struck, and gave the same bytes."""
    paths = [str(ROOT), str(Path(__file__).parent)]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    line = [sys.executable, __file__, what, str(moments), str(seed)]
    done = subprocess.run(line, env=environ, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def main(what: str, *options: str) -> None:
    """Do what the command line says."""
    if what == "sample":
        kind, folder = options
        spark_session("local[2,4]")
        print(sample(kind, "spark", Path(folder)), flush=True)
        return
    moments, seed = map(int, options)
    runs = SWEEPS[what](moments, random.Random(seed))
    print(json.dumps({"struck": runs.struck, "same": runs.same}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
