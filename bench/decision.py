"""Time of draws, intervals, chains from disk, a decision and a report, each against a peer.

Part of ``make bench``; run this file for the seconds of a decision, and seconds and memory of
reports.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from stopwatch import seconds

import advisor
from advisor.advice.deciding import MIDDLE, SURE, Decision
from advisor.advice.situation import Situation
from advisor.decision import Depth, Requirements
from advisor.reliability.chain.structure_store import FOLDER_VARIABLE, OFF
from advisor.reliability.evaluate import Reevaluation, forget_chains
from advisor.reliability.failures import uncertainty

CLUSTERS = Path(__file__).resolve().parents[1] / "data" / "clusters"
CLUSTER = CLUSTERS / "three-az-six-brokers"
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


def intervals() -> tuple[str, float, str, float]:
    """The intervals of a setting, its draws solved together, against its draws one by one."""
    model, cluster = advisor.load_model("three_az_cloud"), advisor.Cluster.uniform(6, racks=3)
    result = advisor.evaluate(cluster, CONFIG, model, LOAD)
    number, seeds = uncertainty.draws(result.states, LOAD.partitions), count(1)

    def cards() -> list[advisor.FailureModel]:
        """Cards that nobody has asked for yet: answers are remembered."""
        return [*model.draws(number, next(seeds))]

    return (
        f"intervals of a setting from {number} draws together",
        seconds(lambda: result.intervals_of_draws(result.under(cards())), 3),
        "so many draws one by one",
        seconds(lambda: [result.reevaluate(card) for card in cards()], 1),
    )


def decide(depth: Depth, draws: int = DRAWS) -> None:
    """Decide about the six topics of the sample cluster."""
    situation = Situation.read(sample(), shared=False)
    asked = Decision(situation, advisor.load_model("three_az_cloud"), Requirements())
    asked.answered(asked.exactly(draws), depth)


def decision() -> tuple[str, float, str, float]:
    """How sure the decision about six topics is, against the decision."""

    def decided(depth: Depth) -> float:
        return seconds(lambda: decide(depth), 1)

    return (
        f"the decision about six topics and {DRAWS} draws",
        decided(SURE),
        "the decision alone",
        decided(MIDDLE),
    )


class Run(NamedTuple):
    """What a command took.

    Attributes
    ----------
    cpu_seconds, seconds : float
        Of processors, all its processes together; and until its end.
    most_mb : float
        Of the process that took most memory.
    """

    cpu_seconds: float
    seconds: float
    most_mb: float


def command(verb: str, name: str, card: str, *options: str) -> Run:
    """Run a command of ``advisor`` about a sample cluster in a process of its own."""
    arguments = [verb, f"{CLUSTERS / name}.txt", "--racks", f"{CLUSTERS / name}.racks.toml"]
    program = [sys.executable, "-c", _MEASURED, *arguments, "--model", card, *options]
    start = time.monotonic()
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    cpu, kilobytes = done.stdout.split()[-2:]
    return Run(float(cpu), time.monotonic() - start, float(kilobytes) / 1024)


# The command in a child, so that what its processes took is known when it has ended.
_MEASURED = """
import resource, subprocess, sys
subprocess.run([sys.executable, "-m", "advisor", *sys.argv[1:]], capture_output=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
"""


def report() -> tuple[str, float, str, float]:
    """The report of six topics, with both of its processes, against the audit of them."""
    with tempfile.TemporaryDirectory() as folder:
        page = "--output", str(Path(folder, "report.html"))
        written = command("report", CLUSTER.name, "three_az_cloud", *page).cpu_seconds
    audited = command("audit", CLUSTER.name, "three_az_cloud").cpu_seconds
    return "the report of six topics", written, "the audit of them", audited


COMPARED = (draws, intervals, stored, decision, report)


def main() -> None:
    """Print processor seconds and memory of a decision, step by step, and of two reports."""
    for words, depth in (
        ("the rule alone", Depth(draws=False, sensitivity=False, others=False)),
        ("and other settings", Depth(draws=False, sensitivity=False)),
        ("and 128 draws", Depth(sensitivity=False)),
        ("and what it depends on", Depth()),
    ):
        start = time.process_time()
        decide(depth, 128 if depth.draws else 0)
        taken = time.process_time() - start
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"decision about six topics, {words}: {taken:.1f} s; {largest:,.0f} MB so far")
    for name, card in ((CLUSTER.name, "three_az_cloud"), ("two-az-four-brokers", "two_az")):
        with tempfile.TemporaryDirectory() as folder:
            took = command("report", name, card, "--output", str(Path(folder, "report.html")))
        print(
            f"report of {name} under {card}: {took.cpu_seconds:.1f} s of processors, "
            f"{took.seconds:.1f} s until its end, a process with {took.most_mb:,.0f} MB"
        )


if __name__ == "__main__":
    main()
