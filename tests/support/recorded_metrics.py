"""Recordings of real brokers under injected faults: the series, thinned, and what really happened.

Made by `bench/record_metrics.py`. The truth is the injected faults, with the times at which the
controller recorded what followed; no metric is part of it.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from metric_histories import Gap, History, Kind, TrueOutage, World

RECORDINGS = Path(__file__).resolve().parent.parent / "learning" / "recordings"
SCRAPE_S = 5.0
_LINE = re.compile(r"(\{.*\}) (\S+) (\d+)$")
_INSTANCE = re.compile(r'instance="([^"]*)"')


def recorded_versions() -> list[str]:
    """Return the versions of which there are recordings."""
    return [name for name in _recorded() if "-" not in name]


def recorded_bursts() -> list[str]:
    """Return the names of the recordings of short refusals, and of brokers that freeze."""
    return [name for name in _recorded() if name.endswith("-bursts")]


def _recorded() -> list[str]:
    return sorted(path.name.removesuffix(".json") for path in RECORDINGS.glob("*.json"))


def truth_of(version: str) -> dict[str, Any]:
    """Return what was done and what the controller recorded."""
    truth: dict[str, Any] = json.loads((RECORDINGS / f"{version}.json").read_text())
    return truth


def dump_of(version: str, keep_every: int = 1) -> str:
    """Return the dump as if only every so many-th scrape had been done.

    Where a series had ended by a scrape that is kept, its end is written there.
    """
    text = gzip.decompress((RECORDINGS / f"{version}.dump.gz").read_bytes()).decode()
    series: dict[str, dict[int, str]] = defaultdict(dict)
    for line in text.splitlines():
        match = _LINE.match(line)
        if match:
            series[match[1]][int(match[3])] = match[2]
    if keep_every == 1:
        return text
    return "\n".join(line for line in _thinned(series, keep_every)) + "\n"


def _thinned(series: dict[str, dict[int, str]], keep_every: int) -> Iterator[str]:
    scrapes = {
        _instance(labels): sorted(samples)
        for labels, samples in series.items()
        if '__name__="up"' in labels
    }
    for labels, samples in series.items():
        all_times = scrapes[_instance(labels)]
        first = all_times[0]
        # Scrapes are counted from the first, so that a gap does not shift those that are kept.
        places = {time: round((time - first) / SCRAPE_S / 1e3) for time in all_times}
        goes_on = False
        for time in (t for t in all_times if places[t] % keep_every == 0):
            value = samples.get(time, "NaN")
            if value != "NaN" or goes_on:
                yield f"{labels} {value} {time}"
            goes_on = value != "NaN"


def _instance(labels: str) -> str:
    match = _INSTANCE.search(labels)
    assert match is not None, labels
    return match[1]


def history_of(version: str) -> History:
    """Return the outages and gaps that really were."""
    truth = truth_of(version)
    history = History(World(version=version.partition("-")[0]), truth["ended"])
    for number, act in enumerate(truth["acts"]):
        history.outages += _outage(truth, number, act)
        history.gaps += _gap(truth, act)
    return history


def _outage(truth: dict[str, Any], number: int, act: dict[str, Any]) -> list[TrueOutage]:
    """The outage that an act began; none if it ended one, or is the second half of a shutdown."""
    at, nodes = act["at"], act["nodes"]
    brokers = [node for node in nodes if str(node) in truth["racks"]]
    if act["act"] == "choke":
        changes = [c for c in truth["isr_changes"] if c["at"] > at and c["leader"] == brokers[0]]
        start = next(c["at"] for c in changes if c["isr"] == 1)
        end = next(c["at"] for c in changes if c["at"] > start and c["isr"] == 2)
        return [TrueOutage(Kind.HALF_DEAD, tuple(brokers), start, end)]
    if act["act"] == "kill" and not brokers:
        end = min(time for time in truth["controller_elections"] if time > at)
        return [TrueOutage(Kind.QUORUM, (), at, end)]
    if act["act"] in ("freeze", "cut off"):
        start = next(f["at"] for f in truth["fencings"] if f["at"] > at and not f["serves"])
        end = _serves_again(truth, brokers[0], at)
        return [TrueOutage(Kind.FENCED, tuple(brokers), start, end)]
    if act["act"] not in ("kill", "stop"):
        return []
    end = max(_serves_again(truth, broker, at) for broker in brokers)
    racks = {truth["racks"][str(broker)] for broker in brokers}
    kind = Kind.RESTART if act["act"] == "stop" else Kind.CRASH
    if len(brokers) > 1:
        kind = Kind.RACK if len(racks) == 1 else Kind.TOGETHER
    following = truth["acts"][number + 1]
    hard = following["act"] == "kill while it stops"
    before = [
        other
        for other in truth["acts"][:number]
        if other["act"] == "stop" and _serves_again(truth, other["nodes"][0], other["at"]) > at
    ]
    return [TrueOutage(kind, tuple(brokers), at, end, hard=hard, overlaps=bool(before))]


def _serves_again(truth: dict[str, Any], broker: int, at: float) -> float:
    """When the controller let a broker serve again that it had fenced after a moment."""
    own = [f for f in truth["fencings"] if f["broker"] == broker and f["at"] > at - 0.5]
    fenced = next(f["at"] for f in own if not f["serves"])
    return float(next((f["at"] for f in own if f["serves"] and f["at"] > fenced), math.inf))


def _gap(truth: dict[str, Any], act: dict[str, Any]) -> list[Gap]:
    ends = {"prometheus down": "prometheus up", "target missing": "target back"}
    if act["act"] not in ends:
        return []
    later = [a["at"] for a in truth["acts"] if a["act"] == ends[act["act"]] and a["at"] > act["at"]]
    target = f"broker-{act['nodes'][0]}" if act["nodes"] else None
    return [Gap(target, act["at"], later[0])]
