"""What Spark costs beside the local engine, how evenly a fleet is spread, and a large cluster.

Run it with ``python bench/spark_cost.py [seconds]``: about how long each engine samples on two
cores, 120 unless told. The load of the machine stands beside each figure: run it on a quiet one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from advisor import Cluster, Config, Workload, load_model
from advisor.pipeline import fleet, sampling
from advisor.pipeline.parcels import Job
from advisor.pipeline.session import spark_session
from advisor.progress import ignore
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.plan import Block, Plan, cut_into_blocks, years_per_block
from advisor.reliability.sampler.plan_reader import plan_for

CORES = 2
CARD = load_model("three_az_cloud")
CONFIG = Config(replication_factor=3, min_insync_replicas=2)
TICKS = os.sysconf("SC_CLK_TCK")


def plan_of(brokers: int, racks: int, partitions: int) -> Plan:
    """A topic of so many partitions on a cluster."""
    return plan_for(Cluster.uniform(brokers, racks), CONFIG, CARD, Workload(partitions=partitions))


def load() -> str:
    """The machine's load average, in words."""
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"


def cpu_seconds(process: int) -> float:
    """Processor time of a process and of all below it, those that ended included."""
    stats = {}
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        stats[folder.name] = int(fields[1]), sum(map(int, fields[11:15])) / TICKS
    total, waiting = 0.0, [process]
    while waiting:
        parent = waiting.pop()
        total += stats.get(str(parent), (0, 0.0))[1]
        waiting += [int(name) for name, (above, _) in stats.items() if above == parent]
    return total


def blocks_for(plan: Plan, seconds: float) -> tuple[Block, ...]:
    """Blocks that take two cores about so long, by the time of the first ones."""
    probe = cut_into_blocks(plan, 32 * years_per_block(plan), seed=1)[:3]
    run_block(plan, probe[0])
    begun = time.process_time()
    for block in probe[1:]:
        run_block(plan, block)
    each = (time.process_time() - begun) / 2
    count = max(32, int(CORES * seconds / each))
    return cut_into_blocks(plan, count * years_per_block(plan), seed=1)


def overhead(seconds: float) -> None:
    """Spark on two cores against two local processes side by side, on the same blocks."""
    plan = plan_of(30, 3, 300)
    blocks = blocks_for(plan, seconds)
    here = _side_by_side(len(blocks))
    begun, spent = time.monotonic(), cpu_seconds(os.getpid())
    session = spark_session(f"local[{CORES},4]")
    started, to_start = time.monotonic(), cpu_seconds(os.getpid()) - spent
    sampling.sample_in_session(session, plan, blocks, None, ignore)
    ended = time.monotonic()
    cpu = cpu_seconds(os.getpid()) - spent - to_start
    wall_here, cpu_here = here
    print(
        f"{len(blocks)} blocks: two local processes {wall_here:.0f} s, {cpu_here:.0f} "
        f"core-seconds; Spark {ended - started:.0f} s and {started - begun:.0f} s to start, "
        f"{cpu:.0f} core-seconds with all of Java and {to_start:.0f} to start; {load()}"
    )
    print(
        f"  Spark / local: {(ended - started) / wall_here:.3f} of the time, "
        f"{(ended - begun) / wall_here:.3f} with the start; {cpu / cpu_here:.3f} of the "
        f"core-seconds, {(cpu + to_start) / cpu_here:.3f} with the start",
        flush=True,
    )


def _side_by_side(count: int) -> tuple[float, float]:
    """Time and core-seconds of two processes that run every second block each."""
    begun = time.monotonic()
    halves = [
        subprocess.Popen(
            [sys.executable, __file__, "half", str(count), str(half)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for half in range(CORES)
    ]
    found = [json.loads(half.communicate()[0]) for half in halves]
    return time.monotonic() - begun, sum(found)


def _half(count: int, half: int) -> None:
    """Run every second block of the plan, and print the core-seconds of this process."""
    plan = plan_of(30, 3, 300)
    blocks = cut_into_blocks(plan, count * years_per_block(plan), seed=1)
    sampling.sample_locally(plan, blocks[half::CORES], None, ignore)
    print(json.dumps(time.process_time()))


def skew() -> None:
    """The slowest task of a fleet whose cells cost very different amounts, against the mean."""
    sizes = [(3, 3, 1), (6, 3, 12), (12, 3, 50), (60, 3, 300)]
    jobs = []
    for size in sizes:
        plan = plan_of(*size)
        jobs.append(Job.of(plan, cut_into_blocks(plan, 10_000, seed=1)))
    costs = [job.seconds_per_block * len(job.blocks) for job in jobs]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYSPARK_SUBMIT_ARGS"] = (
            "--conf spark.eventLog.enabled=true --conf spark.eventLog.compress=false "
            f"--conf spark.eventLog.dir=file://{folder} "
            "--conf spark.eventLog.rolling.enabled=false "
            f"--master local[{CORES},4] pyspark-shell"
        )
        session = spark_session()
        # The workers import and fill their tables first.
        fleet.run_in_session(session, jobs[:1], None, lambda *_: None)
        jobs = [Job.of(job.plan, _again(job)) for job in jobs]
        begun = time.monotonic()
        fleet.run_in_session(session, jobs, None, lambda *_: None)
        wall = time.monotonic() - begun
        session.stop()
        (log,) = Path(folder).iterdir()
        events = [json.loads(line) for line in log.read_text().splitlines()]
    tasks = [e for e in events if e["Event"] == "SparkListenerTaskEnd"]
    last = max(task["Stage ID"] for task in tasks)
    ran = [task["Task Metrics"] for task in tasks if task["Stage ID"] == last]
    times = [task["Executor Run Time"] / 1000 for task in ran]
    busy = sum(times) / (CORES * wall)
    print(
        f"cells cost 1 to {max(costs) / min(costs):,.0f}; {len(times)} tasks of "
        f"{sum(times) / len(times):.2f} s on average, {max(times):.2f} s at most; the cores are "
        f"busy {100 * busy:.0f} % of the time; {load()}",
        flush=True,
    )


def _again(job: Job) -> tuple[Block, ...]:
    """The same blocks of another seed."""
    return tuple(Block(2, block.index, block.years) for block in job.blocks)


def large() -> None:
    """What a year of 1,000 brokers, 20 racks and 100,000 partitions costs one core."""
    begun = time.process_time()
    plan = plan_of(1000, 20, 100_000)
    planned = time.process_time() - begun
    run_block(plan, Block(1, 0, 1))
    begun = time.process_time()
    row = run_block(plan, Block(1, 1, 10))
    each = (time.process_time() - begun) / 10
    kernel = 10 * each / row.events
    small = plan_of(30, 3, 300)
    run_block(small, Block(1, 0, 10))
    begun = time.process_time()
    other = run_block(small, Block(1, 1, 2000))
    peer = (time.process_time() - begun) / other.events
    print(
        f"1,000 brokers, 100,000 partitions: {each:.2f} core-seconds a cluster-year, "
        f"{kernel * 1e6:.1f} us an event, {kernel / peer:.1f} times an event of 30 brokers with "
        f"300 partitions; the plan takes {planned:.1f} s once; {load()}",
        flush=True,
    )


def main() -> None:
    """Print all figures; each part is a process, since the second session needs other settings."""
    if sys.argv[1:2] == ["half"]:
        _half(*map(int, sys.argv[2:]))
    elif sys.argv[1:2] and sys.argv[1] in ("large", "skew"):
        {"large": large, "skew": skew}[sys.argv[1]]()
    elif sys.argv[1:2] == ["overhead"]:
        overhead(float(sys.argv[2]))
    else:
        seconds = sys.argv[1] if sys.argv[1:] else "120"
        for part in (["large"], ["skew"], ["overhead", seconds]):
            subprocess.run([sys.executable, __file__, *part], check=True)


if __name__ == "__main__":
    main()
