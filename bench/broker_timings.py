"""Measure on real brokers the detection, election and restart times that cards assume.

``python bench/broker_timings.py`` starts one cluster after another, for about an hour, and appends
every measurement to ``data/broker_timings.jsonl``. Names of runs restrict it to those; running one
again adds repetitions. ``--summarise`` writes ``data/broker_timings.csv`` from the measurements. On
a busy host the figures are those of a busy host; the load is recorded with each of them.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from broker_acts import Bench, Times

from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import ClusterSpec, ClusterTimeouts

ROOT = Path(__file__).resolve().parent.parent
RAW = ROOT / "data" / "broker_timings.jsonl"
TABLE = ROOT / "data" / "broker_timings.csv"

# Kafka's defaults, where the clusters of the scenarios use shorter times.
_DEFAULTS = {
    "broker.heartbeat.interval.ms": "2000",
    "controlled.shutdown.retry.backoff.ms": "5000",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    "controller.quorum.request.timeout.ms": "2000",
    "num.io.threads": "8",
    "num.network.threads": "3",
    "replica.fetch.backoff.ms": "1000",
    "replica.fetch.wait.max.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
    "replica.socket.timeout.ms": "30000",
    # By default each of ten thousand partitions reserves ten megabytes, twice.
    "log.index.size.max.bytes": "4096",
}
_LARGE = 10_000


@dataclass(frozen=True)
class Run:
    """One cluster, and how often each fault is injected into it."""

    version: str
    mode: str
    partitions: int
    session_timeout_ms: int
    replica_lag_time_max_ms: int = 30_000
    kills: int = 0
    restarts_at_once: int = 0
    stops: int = 0
    lags: int = 0

    @property
    def name(self) -> str:
        """Name on the command line."""
        return f"{self.version}-{self.mode}-{self.partitions}-{self.session_timeout_ms}"

    def wish(self) -> ClusterSpec:
        """The cluster to start."""
        heap = "1g" if self.partitions == _LARGE else "512m"
        return ClusterSpec(
            self.version,
            self.mode,
            brokers_configs=_DEFAULTS | self._heartbeat(),
            timeouts=ClusterTimeouts(self.session_timeout_ms, self.replica_lag_time_max_ms),
            java_options=(f"-Xmx{heap}", "-XX:TieredStopAtLevel=4"),
        )

    def _heartbeat(self) -> dict[str, str]:
        if self.session_timeout_ms >= 9_000:
            return {}
        return {"broker.heartbeat.interval.ms": str(self.session_timeout_ms // 6)}


def _runs(version: str, mode: str, session_ms: int, lag_ms: int) -> list[Run]:
    return [
        Run(version, mode, _LARGE, session_ms, kills=2, stops=1),
        Run(version, mode, 1_000, session_ms, kills=3, stops=2),
        Run(version, mode, 1, session_ms, lag_ms, kills=4, restarts_at_once=1, lags=2),
        Run(version, mode, 1, 3_000, 2_000, kills=5, stops=3, lags=4),
    ]


RUNS = [
    *_runs("3.9", "kraft", 9_000, 10_000),
    *_runs("4.3", "kraft", 9_000, 30_000),
    *_runs("3.9", "zookeeper", 18_000, 10_000),
]


def measure(run: Run, keep: Callable[[Run, str, Times], None]) -> None:
    """Start a run's cluster, inject its faults, and record the times."""
    folder = Path(tempfile.mkdtemp(prefix="broker-timings-"))
    try:
        with RealCluster(run.wish(), folder) as cluster:
            keep(run, cluster.jars.release, {})
            bench = Bench(cluster, run.partitions, lag_topic=run.lags > 0)
            acts: list[Callable[[], Times]] = [bench.kill] * run.kills
            acts += [lambda: bench.kill(at_once=True)] * run.restarts_at_once
            acts += [bench.stop] * run.stops + [bench.lag] * run.lags
            if run.mode == "zookeeper" and run.partitions > 1:
                acts.append(bench.kill_zookeeper_controller)
            for act in acts:
                keep(run, cluster.jars.release, act())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep(run: Run, release: str, times: Times) -> None:
    line = {
        "run": run.name,
        "release": release,
        "mode": run.mode,
        "partitions": run.partitions,
        "session_timeout_ms": run.session_timeout_ms,
        "replica_lag_time_max_ms": run.replica_lag_time_max_ms,
        "load": os.getloadavg()[0],
        "date": datetime.date.today().isoformat(),
        "times": times,
    }
    RAW.parent.mkdir(exist_ok=True)
    with RAW.open("a") as file:
        file.write(json.dumps(line) + "\n")
    print(time.strftime("%H:%M:%S"), run.name, times or "started", file=sys.stderr, flush=True)


# What is measured, from which timestamp to which; "by_log" is a second, independent reading.
_RECORD = "stamps of the metadata log (KRaft) or ZooKeeper's transaction log"
HOW = {
    "detection": f"SIGKILL to the fencing of the broker; {_RECORD}",
    "detection_by_log": "the same, from the controller's or ZooKeeper's server log",
    "election_recorded": f"fencing to the last leader on record; {_RECORD}",
    "election_serving": "fencing to the last 'starts at leader epoch' in the brokers' logs",
    "kill_cpu": "processor time of the controller and the two other brokers, SIGKILL to quiet",
    "handover_recorded": f"SIGTERM to the last leader on record; {_RECORD}",
    "handover_serving": "SIGTERM to the last 'starts at leader epoch' in the brokers' logs",
    "stopped": "SIGTERM to the end of the process",
    "stop_cpu": "processor time of the controller and the two other brokers, SIGTERM to quiet",
    "restart_to_serving": f"process started to broker unfenced or registered; {_RECORD}",
    "restart_to_full_isr": f"process started after SIGKILL to the last ISR whole; {_RECORD}",
    "restart_to_full_isr_by_log": "the same, from 'ISR updated' in the leaders' logs",
    "restart_to_serving_after_stop": f"the same after a controlled shutdown; {_RECORD}",
    "restart_to_full_isr_after_stop": f"the same after a controlled shutdown; {_RECORD}",
    "restart_to_full_isr_by_log_after_stop": "the same, from 'ISR updated' in the leaders' logs",
    "killed_and_started_at_once_to_full_isr": f"SIGKILL to the last ISR whole; {_RECORD}",
    "isr_shrink": f"fetching held to the ISR shrunk, by each of two leaders; {_RECORD}",
    "isr_shrink_by_log": "the same by the first, from 'Shrinking ISR' in its log",
    "isr_expand_after_lag": f"fetching let go to the last ISR whole; {_RECORD}",
    "controller_failover": "end of the controller's session to 'Ready to serve' in its heir's log",
}
SAME = {"isr_shrink_of_the_other_leader": "isr_shrink"}
COLUMNS = [
    "quantity", "unit", "release", "mode", "partitions", "session_timeout_ms",
    "replica_lag_time_max_ms", "repetitions", "value", "low", "high", "load", "how", "machine",
    "date",
]  # fmt: skip
_GROUPED = (
    "release", "mode", "partitions", "session_timeout_ms", "replica_lag_time_max_ms",
)  # fmt: skip


def summary(lines: Iterable[str]) -> list[dict[str, object]]:
    """Return a row per quantity and setting: median, least and greatest of the repetitions."""
    values: dict[tuple[object, ...], list[int]] = defaultdict(list)
    loads: dict[tuple[object, ...], list[float]] = defaultdict(list)
    dates: dict[tuple[object, ...], str] = {}
    for line in map(json.loads, lines):
        for name, value in line["times"].items():
            quantity = SAME.get(name, name)
            key = (quantity, *(line[column] for column in _GROUPED))
            values[key].append(value)
            loads[key].append(line["load"])
            dates[key] = line["date"]
    order = list(HOW)
    rows = []
    for key in sorted(values, key=lambda k: (order.index(str(k[0])), *map(str, k[1:3]), k[3:])):
        taken = values[key]
        figures = {
            "unit": "ms",
            "repetitions": len(taken),
            "value": round(statistics.median(taken)),
            "low": min(taken),
            "high": max(taken),
            "load": round(statistics.median(loads[key]), 1),
            "how": HOW[str(key[0])],
            "machine": f"all nodes on one, {os.cpu_count()} cores",
            "date": dates[key],
        }
        rows.append(dict(zip(("quantity", *_GROUPED), key, strict=True)) | figures)
    return rows


def main() -> None:
    """Measure, or write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", metavar="RUN", help=", ".join(r.name for r in RUNS))
    parser.add_argument("--summarise", action="store_true", help="write the table and end")
    given = parser.parse_args()
    if given.summarise:
        with TABLE.open("w", newline="") as file, RAW.open() as raw:
            table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            table.writeheader()
            table.writerows(summary(raw))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # Clusters are stopped on the way out.
    for run in RUNS:
        if not given.runs or run.name in given.runs:
            measure(run, _keep)


if __name__ == "__main__":
    main()
