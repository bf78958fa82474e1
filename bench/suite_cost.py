"""What the tests cost: processor and wall seconds of each file, and what it starts.

Run it with ``PYTEST_ADDOPTS="-p bench.suite_cost" make test``; it writes ``bench/suite_cost.csv``,
or where ``SUITE_COST`` says. Processor seconds include the processes that a test starts, those
still running too. What starts is seen five times a second, so that a process which lives for a
shorter time may be missed.
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

RESULT = Path(os.environ.get("SUITE_COST") or Path(__file__).with_suffix(".csv"))
ROWS = "SUITE_COST_ROWS"
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
INTERVAL_S = 0.2
BROWSERS = ("chromium", "chrome", "headless_shell", "chrome-headless-shell")
STARTED = ("jvms", "spark_sessions", "brokers", "browsers", "notebook_kernels", "processes")
SECONDS = ("processor_s", "wall_s", "slowest_s")
COLUMNS = ("file", "tests", *SECONDS, *STARTED, "slowest_test")


def descendants(process: int) -> Iterator[int]:
    """Identifiers of the processes below one, those that run now."""
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = listed.read_text().split()
        except OSError:  # it has ended meanwhile
            continue
        for child in map(int, children):
            yield child
            yield from descendants(child)


def processor_seconds() -> float:
    """Of this process and of all below it, those that have ended included."""
    own = os.times()
    ticks = 0
    for process in descendants(os.getpid()):
        try:
            fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        ticks += sum(map(int, fields[11:15]))
    return sum(own[:4]) + ticks / TICKS_PER_SECOND


def command_line(process: int) -> str:
    """Program and arguments, each ended by a zero; nothing of a process that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""


def parent(process: int) -> int:
    """The process that started one; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def kinds(command: list[str]) -> list[str]:
    """What a command line starts, of what is counted."""
    program = Path(command[0]).name
    if program == "java":
        if any("SparkSubmit" in word for word in command):
            return ["jvms", "spark_sessions"]
        return ["jvms", "brokers"] if "kafka.Kafka" in command else ["jvms"]
    if program in BROWSERS and not any(word.startswith("--type=") for word in command):
        return ["browsers"]
    if "ipykernel_launcher" in " ".join(command):
        return ["notebook_kernels"]
    return []


@dataclass
class Watch:
    """Counts the processes that start below this one."""

    seen: dict[int, str] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)
    ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Count what is new since the last look, by its command line; a fork is no program."""
        for process in list(descendants(os.getpid())):
            line = command_line(process)
            if line and line not in (self.seen.get(process), command_line(parent(process))):
                self.seen[process] = line
                self.started.update([*kinds(line.split("\0")), "processes"])

    def run(self) -> None:
        """Look until told to end."""
        while not self.ended.wait(INTERVAL_S):
            self.look()


class Recorder:
    """Writes a line for each test: its file, its seconds, and what it started."""

    def __init__(self, rows: Path) -> None:
        self.rows = rows
        self.watch = Watch()
        threading.Thread(target=self.watch.run, daemon=True).start()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test with its fixtures."""
        processor_s, wall_s, before = processor_seconds(), time.monotonic(), self._counts()
        yield
        self.watch.look()
        measured = {
            "file": item.nodeid.split("::")[0],
            "test": item.name,
            "processor_s": processor_seconds() - processor_s,
            "wall_s": time.monotonic() - wall_s,
            **(self._counts() - before),
        }
        with self.rows.open("a") as written:
            written.write(json.dumps(measured) + "\n")

    def _counts(self) -> Counter[str]:
        return Counter(self.watch.started)


def by_file(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum the tests of each file; the dearest file comes first."""
    files: dict[str, dict[str, Any]] = {}
    for row in rows:
        new = {"file": row["file"], "tests": 0, "slowest_s": -1.0}
        total = files.setdefault(row["file"], new)
        total["tests"] += 1
        if row["processor_s"] > total["slowest_s"]:
            total |= {"slowest_s": row["processor_s"], "slowest_test": row["test"]}
        for column in ("processor_s", "wall_s", *STARTED):
            total[column] = total.get(column, 0) + row.get(column, 0)
    return sorted(files.values(), key=lambda total: -total["processor_s"])


def write(files: list[dict[str, Any]], path: Path) -> None:
    """Write the table, its sum first."""
    sums = ("tests", "processor_s", "wall_s", *STARTED)
    total = {column: sum(row[column] for row in files) for column in sums}
    longest = max(files, key=lambda row: float(row["slowest_s"]))
    total |= {"file": "all", **{name: longest[name] for name in ("slowest_s", "slowest_test")}}
    with path.open("w", newline="") as written:
        table = csv.DictWriter(written, COLUMNS, lineterminator="\n")
        table.writeheader()
        for row in (total, *files):
            table.writerow(row | {name: round(row[name], 1) for name in SECONDS})


def pytest_configure(config: pytest.Config) -> None:
    """Record in each test process; the first process gives them a file to write to."""
    if not hasattr(config, "workerinput"):
        handle, os.environ[ROWS] = tempfile.mkstemp(suffix=".jsonl")
        os.close(handle)
    config.pluginmanager.register(Recorder(Path(os.environ[ROWS])), "suite-cost-recorder")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Sum up in the first process."""
    if hasattr(config, "workerinput"):
        return
    rows = Path(os.environ.pop(ROWS))
    measured = [json.loads(line) for line in rows.read_text().splitlines()]
    rows.unlink()
    if measured:
        write(by_file(measured), RESULT)
