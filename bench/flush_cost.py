"""Measure on real brokers what ``flush.messages=1`` costs in throughput and latency.

``python bench/flush_cost.py`` starts three brokers on this machine, for about five minutes, and
writes ``data/flush_cost.csv``. Two topics differ in ``flush.messages`` alone. Kafka's own
``kafka-producer-perf-test.sh`` writes to them in turn: as fast as it can for the throughput, and a
hundred records a second, each in a request of its own, for the latency. The three brokers share one
disk and the processors with the producer, so the figures compare the settings and are no limit of
Kafka's. On a busy host they are those of a busy host: the load is recorded.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import os
import re
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.kafka_tools import run_tool
from advisor.kafka_lab.nodes.node_properties import ClusterSpec, ClusterTimeouts

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "data" / "flush_cost.csv"
VERSION = "4.3"
RECORD_BYTES = 1000
FAST_RECORDS = 60_000
SLOW_RECORDS = 1_000
SLOW_PER_SECOND = 100
TOPICS = {"default": [], "flush-each": ["--config", "flush.messages=1"]}
FLUSH_MESSAGES = {"default": "Kafka's default (never)", "flush-each": "1"}

# Kafka's defaults, where the clusters of the scenarios use less.
_DEFAULTS = {"num.io.threads": "8", "num.network.threads": "3", "replica.fetch.wait.max.ms": "500"}
_SENT = re.compile(
    r"(?P<records>\d+) records sent, (?P<records_per_second>[\d.]+) records/sec.*?"
    r"(?P<mean_ms>[\d.]+) ms avg latency, (?P<max_ms>[\d.]+) ms max latency, "
    r"(?P<p50_ms>\d+) ms 50th, (?P<p95_ms>\d+) ms 95th, (?P<p99_ms>\d+) ms 99th"
)
Samples = dict[tuple[str, str, str], list[float]]


def create(cluster: RealCluster, topic: str, configs: list[str]) -> None:
    """Create a topic of one partition on all three brokers."""
    arguments = ["--bootstrap-server", cluster.bootstrap, "--create", "--topic", topic]
    arguments += ["--replica-assignment", "1:2:3", "--config", "min.insync.replicas=2", *configs]
    done = run_tool(cluster.jars, "kafka-topics.sh", arguments)
    if done.code:
        sys.exit(f"kafka-topics.sh failed: {done.output} {done.errors}")


def send(cluster: RealCluster, topic: str, records: int, per_second: int) -> dict[str, float]:
    """Run the performance test once; its summary as numbers."""
    arguments = ["--topic", topic, "--num-records", str(records)]
    arguments += ["--record-size", str(RECORD_BYTES), "--throughput", str(per_second)]
    arguments += ["--producer-props", f"bootstrap.servers={cluster.bootstrap}", "acks=all"]
    # A record a request: the default linger of 4.x would gather those of 5 ms.
    arguments += ["linger.ms=0"]
    done = run_tool(cluster.jars, "kafka-producer-perf-test.sh", arguments)
    summaries = list(_SENT.finditer(done.output))
    found = summaries[-1] if summaries else None
    if found is None or int(found["records"]) != records:
        sys.exit(f"kafka-producer-perf-test.sh failed: {done.output[-500:]} {done.errors[-500:]}")
    return {name: float(value) for name, value in found.groupdict().items()}


def fsync_ms(folder: Path, times: int = 200) -> float:
    """Median time to append a record to a file and fsync it, on the disk of the brokers."""
    taken = []
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        for _ in range(times):
            file.write(b"x" * RECORD_BYTES)
            file.flush()
            began = time.perf_counter()
            os.fsync(file.fileno())
            taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def measure(runs: int) -> tuple[Samples, dict[str, str]]:
    """All runs, in turn between the topics, after one of each that is not counted."""
    samples: Samples = defaultdict(list)
    spec = ClusterSpec(
        VERSION,
        brokers_configs=_DEFAULTS,
        timeouts=ClusterTimeouts(9_000, 30_000),
        java_options=("-Xmx512m", "-XX:TieredStopAtLevel=4"),
    )
    loads = []
    with tempfile.TemporaryDirectory(prefix="flush-cost-") as name:
        folder = Path(name)
        before = fsync_ms(folder)
        with RealCluster(spec, folder / "cluster") as cluster:
            for topic, configs in TOPICS.items():
                create(cluster, topic, configs)
            for run in range(runs + 1):
                for topic in TOPICS:
                    loads.append(os.getloadavg()[0])
                    fast = send(cluster, topic, FAST_RECORDS, -1)
                    slow = send(cluster, topic, SLOW_RECORDS, SLOW_PER_SECOND)
                    print(time.strftime("%H:%M:%S"), run, topic, fast, slow, file=sys.stderr)
                    if run == 0:
                        continue
                    samples[topic, "throughput", "records_per_second"].append(
                        fast["records_per_second"]
                    )
                    for measured in ("mean_ms", "p50_ms", "p95_ms", "p99_ms"):
                        samples[topic, "latency", measured].append(slow[measured])
            release = cluster.jars.release
    conditions = {
        "date": datetime.date.today().isoformat(),
        "kafka": release,
        "cores": str(os.cpu_count()),
        "load_median": f"{statistics.median(loads):.1f}",
        "fsync_ms": f"{before:.2f}",
    }
    return samples, conditions


HOW = {
    "throughput": f"{FAST_RECORDS} records of {RECORD_BYTES} bytes as fast as the producer can, "
    "batches of 16 KB, 5 requests in flight",
    "latency": f"{SLOW_RECORDS} records of {RECORD_BYTES} bytes, {SLOW_PER_SECOND} a second, "
    "one in a request",
}


def write(samples: Samples, conditions: dict[str, str], disk: str) -> None:
    """One row for each topic and measure: median, least and most of the runs."""
    rows = [
        {
            "flush_messages": FLUSH_MESSAGES[topic],
            "measure": f"{kind}_{name}",
            "median": f"{statistics.median(values):g}",
            "low": f"{min(values):g}",
            "high": f"{max(values):g}",
            "runs": str(len(values)),
            "replication": "RF 3, min.insync.replicas 2, acks=all, 1 partition, 3 brokers on one "
            "host and disk",
            "how": HOW[kind],
            "disk": disk,
            **conditions,
        }
        for (topic, kind, name), values in samples.items()
    ]
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each topic")
    parser.add_argument("--disk", required=True, help="kind of disk, in words")
    arguments = parser.parse_args()
    write(*measure(arguments.runs), arguments.disk)


if __name__ == "__main__":
    main()
