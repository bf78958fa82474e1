"""Time of a draw, solved with others, and of a chain from disk, against a full evaluation.

Part of ``make bench``; run this file for the seconds of a whole decision.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from itertools import islice
from pathlib import Path

from stopwatch import seconds

import advisor
from advisor.advice.deciding import decide
from advisor.decision import Depth
from advisor.reliability.chain.structure_store import FOLDER_VARIABLE, OFF
from advisor.reliability.evaluate import Reevaluation, forget_chains

CLUSTER = Path(__file__).resolve().parents[1] / "data" / "clusters" / "three-az-six-brokers"
CONFIG = advisor.Config(replication_factor=3, min_insync_replicas=2)
LOAD = advisor.Workload(partitions=12)
DRAWS = 128


def sample() -> advisor.Cluster:
    """The sample cluster: six topics on six brokers."""
    return advisor.load_cluster(f"{CLUSTER}.txt", racks=f"{CLUSTER}.racks.toml")


def draws() -> tuple[str, float, str, float]:
    """A draw of the decision against a full evaluation of its card."""
    model, cluster = advisor.load_model("three_az_cloud"), advisor.Cluster.uniform(6, racks=3)
    result = advisor.evaluate(cluster, CONFIG, model, LOAD)
    cards, reevaluate = [*model.draws(DRAWS, 1)], result.reevaluate
    assert isinstance(reevaluate, Reevaluation)
    each = seconds(lambda: reevaluate.draws(cards), 2) / DRAWS
    others = islice(model.draws(4, 2), 4)
    full = seconds(lambda: advisor.evaluate(cluster, CONFIG, next(others), LOAD), 3)
    return f"a draw, solved with {DRAWS - 1} others", each, "a full evaluation of its card", full


def stored() -> tuple[str, float, str, float]:
    """An evaluation whose chain is on disk against one that explores it."""
    model, cluster = advisor.load_model("three_az_cloud"), advisor.Cluster.uniform(6, racks=3)
    before = os.environ.get(FOLDER_VARIABLE)
    loads = (advisor.Workload(partitions=12, record_bytes=n) for n in range(100, 200))

    def asked() -> object:
        forget_chains()
        return advisor.evaluate(cluster, CONFIG, model, next(loads))

    with tempfile.TemporaryDirectory() as folder:
        os.environ[FOLDER_VARIABLE] = folder
        read = seconds(asked, 3)
        os.environ[FOLDER_VARIABLE] = OFF
        explored = seconds(asked, 3)
    os.environ.pop(FOLDER_VARIABLE)
    if before is not None:
        os.environ[FOLDER_VARIABLE] = before
    return "an evaluation with its chain on disk", read, "one that explores it", explored


COMPARED = (draws, stored)


def main() -> None:
    """Print processor seconds and memory of a decision about the sample, step by step."""
    cluster, model = sample(), advisor.load_model("three_az_cloud")
    for words, depth in (
        ("the rule alone", Depth(draws=False, sensitivity=False, others=False)),
        ("and other settings", Depth(draws=False, sensitivity=False)),
        ("and 128 draws", Depth(sensitivity=False)),
        ("and what it depends on", Depth()),
    ):
        start = time.process_time()
        decide(cluster, model, draws=128 if depth.draws else 0, depth=depth)
        taken = time.process_time() - start
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"decision about six topics, {words}: {taken:.1f} s; {largest:,.0f} MB so far")


if __name__ == "__main__":
    main()
