"""Every number and line of text that a user can get, written down and compared to the bit.

Run it before and after a change that must not move a result:

    python bench/golden.py write golden.json
    python bench/golden.py compare golden.json [--relative 1e-6]

``compare`` lists every entry that differs; with ``--relative`` numbers may differ by that share.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import advisor
from advisor import catalog

ROOT = Path(__file__).resolve().parent.parent
CLUSTERS = ROOT / "data" / "clusters"
SIX = advisor.Cluster.uniform(brokers=6, racks=3)
LOAD = advisor.Workload(partitions=12, records_per_second=1000.0, record_bytes=512)
SAMPLE = [str(CLUSTERS / "three-az-six-brokers.txt"), "--racks"]
SAMPLE += [str(CLUSTERS / "three-az-six-brokers.racks.toml"), "--model", "three_az_cloud"]


def results() -> Iterator[tuple[str, Any]]:
    """`evaluate` on a grid of settings, and `simulate` at three of them."""
    for card, replicas in product(catalog.model_names(), (1, 2, 3, 4)):
        for least, acks, unclean in product(range(1, replicas + 1), ("all", 1, 0), (False, True)):
            config = advisor.Config(
                replication_factor=replicas,
                min_insync_replicas=least,
                acks=acks,
                unclean_leader_election_enable=unclean,
            )
            yield f"evaluate {card} {replicas}/{least} {acks} {unclean}", measured(config, card)
    for card, unclean in (("three_az_cloud", False), ("bare_metal_racks", False)):
        config = advisor.Config(
            replication_factor=5,
            min_insync_replicas=3,
            acks="all",
            unclean_leader_election_enable=unclean,
        )
        yield f"evaluate {card} 5/3", measured(config, card)
    for card, acks, replicas in (
        ("three_az_cloud", "all", 3),
        ("two_az", 1, 2),
        ("bare_metal_racks", "all", 3),
    ):
        config = advisor.Config(replication_factor=replicas, min_insync_replicas=1, acks=acks)
        sampled = advisor.simulate(
            SIX, config, advisor.load_model(card), LOAD, years=2000, seed=7, engine="local"
        )
        yield f"simulate {card}", {**sampled.to_dict(), "text": repr(sampled)}


def measured(config: advisor.Config, card: str) -> Any:
    """What one evaluation says; intervals only of small chains, for they take 32 more."""
    found = advisor.evaluate(SIX, config, advisor.load_model(card), LOAD)
    replicas = config.replication_factor or 0
    if replicas <= 2 or (replicas == 3 and config.acks == "all"):
        return {**found.to_dict(), "text": found.explain()}
    plain = {
        "measures": {name: getattr(found, name) for name in MEASURES},
        "causes": {name: dict(parts) for name, parts in found.causes.items()},
        "bounds": list(found.bounds),
        "errors": dict(found.error_bounds),
        "states": found.states,
        "method": found.method,
        "assumptions": list(found.assumptions),
    }
    return plain


MEASURES = (
    "loss_probability_per_year",
    "loss_events_per_year",
    "mean_years_to_loss",
    "acked_records_lost_per_year",
    "write_unavailability",
    "read_unavailability",
    "write_stalled",
    "records_refused_per_year",
    "records_dropped_per_year",
)


def command_lines() -> Iterator[tuple[str, Any]]:
    """What the command line prints, its exit codes and the files it writes."""
    example = str(CLUSTERS / "example.toml")
    asked = [
        ["evaluate", *SAMPLE, "--rf", "3", "--min-isr", "2"],
        ["evaluate", *SAMPLE, "--json"],
        ["audit", *SAMPLE],
        ["audit", *SAMPLE, "--json"],
        ["recommend", *SAMPLE, "--survive", "rack"],
        ["recommend", *SAMPLE, "--survive", "rack", "--json"],
        ["audit", example, "--model", "bare_metal_racks"],
        ["recommend", example, "--model", "bare_metal_racks"],
        ["simulate", *SAMPLE, "--years", "500", "--seed", "7", "--engine", "local", "--json"],
        ["cards"],
        ["evaluate", "/nowhere"],
        ["--help"],
    ]
    for words in asked:
        done = subprocess.run(
            [sys.executable, "-m", "advisor", *words], capture_output=True, text=True, check=False
        )
        yield (
            "advisor " + " ".join(words).replace(str(ROOT), "."),
            {
                "exit": done.returncode,
                "out": done.stdout.replace(str(ROOT), "."),
                "err": done.stderr.replace(str(ROOT), "."),
            },
        )
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        words = ["report", *SAMPLE, "--output", str(report)]
        done = subprocess.run(
            [sys.executable, "-m", "advisor", *words], capture_output=True, text=True, check=False
        )
        out = done.stdout.replace(folder, "").replace(str(ROOT), ".")
        page = report.read_text().replace(folder, "").replace(str(ROOT), ".")
        yield "advisor report", {"out": out, "page": page}
        words = ["recommend", *SAMPLE, "--survive", "rack", "--files", folder + "/files"]
        subprocess.run([sys.executable, "-m", "advisor", *words], capture_output=True, check=False)
        for path in sorted(Path(folder, "files").rglob("*")):
            if path.is_file():
                yield f"file {path.relative_to(folder)}", path.read_text()


def scenarios() -> Iterator[tuple[str, Any]]:
    """Transcripts of every scenario."""
    for path in sorted((ROOT / "tests").rglob("scenarios/*.txt")):
        played = advisor.play(path)
        yield f"scenario {path.stem}", [played.transcript, len(played.differences)]


def plain(value: Any) -> Any:
    """The value with floats as hexadecimal digits."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def differences(name: str, one: Any, other: Any, relative: float) -> Iterator[str]:
    """Paths at which two values differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in {**one, **other}:
            missing = object()
            yield from differences(
                f"{name} / {key}", one.get(key, missing), other.get(key, missing), relative
            )
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from differences(f"{name} [{number}]", left, right, relative)
    elif one != other:
        try:
            left, right = float.fromhex(one), float.fromhex(other)
        except (TypeError, ValueError):
            yield f"{name}: {str(one)[:300]!r} became {str(other)[:300]!r}"
            return
        off = abs(left - right) / max(abs(left), abs(right), 1e-300)
        if off > relative:
            yield f"{name}: {left:.17g} became {right:.17g}, {off:.2g} of it"


def main() -> None:
    """Write the file, or compare with it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--relative", type=float, default=0.0)
    parser.add_argument("--only", choices=("results", "commands", "scenarios"))
    asked = parser.parse_args()
    parts = {"results": results, "commands": command_lines, "scenarios": scenarios}
    found = {}
    for part, entries in parts.items():
        if asked.only in (None, part):
            found |= {f"{part}: {name}": plain(value) for name, value in entries()}
    if asked.verb == "write":
        asked.file.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
        print(f"{len(found)} entries written")
        return
    known = json.loads(asked.file.read_text())
    known = {k: v for k, v in known.items() if asked.only in (None, k.split(":")[0])}
    wrong = list(differences("", known, json.loads(json.dumps(found)), asked.relative))
    print(*wrong, sep="\n")
    print(f"{len(found)} entries compared, {len(wrong)} differences")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
