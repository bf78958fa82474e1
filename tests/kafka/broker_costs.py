"""Record what the tests with real brokers cost: processes started, seconds spent, by test file.

With ADVISOR_BROKER_COSTS=FILE each test process adds one line of JSON for each test file to FILE:

    ADVISOR_BROKER_COSTS=costs.jsonl pytest tests/kafka
    python tests/kafka/broker_costs.py costs.jsonl

Seconds of work that goes on at the same time are added, so they may exceed those that passed.
"""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import emitted_scripts
from advisor.kafka_lab import player, real_simulation
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.processes import JavaProcess

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_SECONDS = ("start", "reset", "settle", "stories", "tools", "stop", "maven")
_COUNTS = ("clusters", "nodes", "formats", "stories run", "tools run")


class Costs:
    """Counts and seconds of this process since the last `take`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Counter[str] = Counter()
        self._living: list[JavaProcess] = []
        self._processor_s = self._processors_s()
        self._python_s = time.process_time()
        self._began_s = time.monotonic()

    def add(self, **amounts: float) -> None:
        """Add to counts or seconds."""
        with self._lock:
            for name, amount in amounts.items():
                self._totals[name.replace("_", " ")] += amount  # type: ignore[assignment]

    def note(self, process: JavaProcess) -> None:
        """Note a process whose processor time counts while it lives."""
        with self._lock:
            self._living = [*(p for p in self._living if p.running), process]

    def _processors_s(self) -> float:
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        own = time.process_time()
        with self._lock:
            living = sum(_processor_s(process.pid) for process in self._living if process.running)
        return ended.ru_utime + ended.ru_stime + own + living

    def take(self) -> dict[str, float]:
        """Return what was spent since the last time."""
        processor_s, now_s = self._processors_s(), time.monotonic()
        python_s = time.process_time()
        with self._lock:
            taken = {name: round(float(amount), 1) for name, amount in self._totals.items()}
            self._totals.clear()
        taken["processor"] = round(processor_s - self._processor_s, 1)
        taken["python"] = round(python_s - self._python_s, 1)
        taken["wall"] = round(now_s - self._began_s, 1)
        self._processor_s, self._python_s, self._began_s = processor_s, python_s, now_s
        return taken


def _processor_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND


def _timed(costs: Costs, owner: Any, name: str, seconds: str, **counts: float) -> None:
    """Replace a function by itself with its calls and seconds counted."""
    original: Callable[..., Any] = getattr(owner, name)

    @functools.wraps(original)
    def counted(*words: Any, **named: Any) -> Any:
        began_s = time.monotonic()
        try:
            return original(*words, **named)
        finally:
            costs.add(**{seconds: time.monotonic() - began_s}, **counts)

    setattr(owner, name, counted)


def recorded() -> Costs:
    """Begin to count in this process."""
    costs = Costs()
    begin = JavaProcess.__init__

    @functools.wraps(begin)
    def begun(self: JavaProcess, jars: Any, command: Any, *words: Any, **named: Any) -> None:
        begin(self, jars, command, *words, **named)
        costs.note(self)
        costs.add(**{"formats" if "StorageTool" in command[0] else "nodes": 1})

    JavaProcess.__init__ = begun  # type: ignore[method-assign]
    _timed(costs, RealCluster, "_start_all", "start", clusters=1)
    _timed(costs, RealCluster, "start", "start")
    _timed(costs, RealCluster, "start_controller", "start")
    _timed(costs, RealCluster, "close", "stop")
    _timed(costs, player, "reset_cluster", "reset")
    _timed(costs, real_simulation, "wait_until_quiescent", "settle")
    _timed(costs, player.RealRunner, "run", "stories", stories_run=1)
    _timed(costs, emitted_scripts.Shell, "run", "tools", tools_run=1)
    for module in list(sys.modules.values()):
        if hasattr(module, "run_tool"):
            _timed(costs, module, "run_tool", "tools", tools_run=1)
    run = subprocess.run

    @functools.wraps(run)
    def ran(command: Any, *words: Any, **named: Any) -> Any:
        began_s = time.monotonic()
        try:
            return run(command, *words, **named)
        finally:
            if "mvn" in str(command[0]):
                costs.add(maven=time.monotonic() - began_s)

    subprocess.run = ran  # type: ignore[assignment]
    return costs


def main(path: str) -> None:
    """Print the table of a file of costs."""
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    names = ("wall", "processor", "python", *_COUNTS, *_SECONDS)
    print("| file | " + " | ".join(names) + " |")
    print("|---" * (len(names) + 1) + "|")
    totals: Counter[str] = Counter()
    for row in rows:
        totals.update({name: row.get(name, 0) for name in names})
        print(
            f"| {row['file']} | " + " | ".join(f"{row.get(name, 0):.0f}" for name in names) + " |"
        )
    print("| all | " + " | ".join(f"{totals[name]:.0f}" for name in names) + " |")


if __name__ == "__main__":
    main(sys.argv[1])
