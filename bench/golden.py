"""Every number and text that a user can get, written to a file and compared with it to the bit.

Run it before and after a change that must not move a result:

    python bench/golden.py write before.json
    python bench/golden.py compare before.json [--relative 1e-6] [--only results]

``compare`` lists every entry that differs and exits with 1 if there is one; with ``--relative``
numbers may differ by that fraction. ``results`` takes two minutes, ``commands`` one,
``scenarios`` and ``small`` seconds. ``small`` is what `tests/system/test_golden.py` compares.
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
from advisor.reliability import measure_table

ROOT = Path(__file__).resolve().parent.parent
CLUSTERS = ROOT / "data" / "clusters"
SIX = advisor.Cluster.uniform(brokers=6, racks=3)
LOAD = advisor.Workload(partitions=12, records_per_second=1000.0, record_bytes=512)
SAMPLE = [str(CLUSTERS / "three-az-six-brokers.txt"), "--racks"]
SAMPLE += [str(CLUSTERS / "three-az-six-brokers.racks.toml"), "--model", "three_az_cloud"]
MEASURES = measure_table.names()


def results() -> Iterator[tuple[str, Any]]:
    """Yield `evaluate` on a grid of settings, and `simulate` at three of them."""
    for card, replicas in product(catalog.model_names(), (1, 2, 3, 4)):
        for least, acks, unclean in product(range(1, replicas + 1), ("all", 1, 0), (False, True)):
            config = setting(replicas, least, acks, unclean)
            name = f"evaluate {card} {replicas}/{least} {acks} {unclean}"
            yield name, measured(config, card)
    for card in ("three_az_cloud", "bare_metal_racks"):
        yield f"evaluate {card} 5/3", measured(setting(5, 3, "all", False), card)
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


def small() -> Iterator[tuple[str, Any]]:
    """Yield the measures and causes of a few settings on each card."""
    settings = (
        (1, 1, "all", False),
        (2, 1, "all", False),
        (2, 2, "all", True),
        (2, 1, 1, False),
        (3, 1, "all", True),
        (3, 2, "all", False),
        (3, 2, 0, False),
        (3, 3, "all", False),
        (3, 1, 1, True),
    )
    for card, (replicas, least, acks, unclean) in product(catalog.model_names(), settings):
        result = advisor.evaluate(
            SIX, setting(replicas, least, acks, unclean), advisor.load_model(card), LOAD
        )
        yield f"{card} {replicas}/{least} {acks} {unclean}", measures_and_causes(result)


def setting(replicas: int, least: int, acks: Any, unclean: bool) -> advisor.Config:
    """Return the settings of one entry."""
    return advisor.Config(
        replication_factor=replicas,
        min_insync_replicas=least,
        acks=acks,
        unclean_leader_election_enable=unclean,
    )


def measured(config: advisor.Config, card: str) -> Any:
    """Return all that one evaluation says; intervals of small chains only, as they cost 32 more."""
    result = advisor.evaluate(SIX, config, advisor.load_model(card), LOAD)
    replicas = config.replication_factor or 0
    if replicas <= 2 or (replicas == 3 and config.acks == "all"):
        return {**result.to_dict(), "text": result.explain()}
    return {
        **measures_and_causes(result),
        "bounds": list(result.bounds),
        "errors": dict(result.error_bounds),
        "states": result.states,
        "method": result.method,
        "assumptions": list(result.assumptions),
    }


def measures_and_causes(result: Any) -> dict[str, Any]:
    """Return every measure of a result and what each cause adds to it."""
    return {
        "measures": {name: getattr(result, name) for name in MEASURES},
        "causes": {name: dict(parts) for name, parts in result.causes.items()},
    }


def command_lines() -> Iterator[tuple[str, Any]]:
    """Yield what the command line prints, its exit codes and the files it writes."""
    example = str(CLUSTERS / "example.toml")
    for arguments in (
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
    ):
        done = run(arguments)
        texts = {"out": without(done.stdout), "err": without(done.stderr)}
        yield "advisor " + without(" ".join(arguments)), {"exit": done.returncode, **texts}
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.html"
        printed = run(["report", *SAMPLE, "--output", str(report)]).stdout
        page = report.read_text()
        yield "advisor report", {"out": without(printed, folder), "page": without(page, folder)}
        run(["recommend", *SAMPLE, "--survive", "rack", "--files", folder + "/files"])
        for path in sorted(Path(folder, "files").rglob("*")):
            if path.is_file():
                yield f"file {path.relative_to(folder)}", path.read_text()


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    command = [sys.executable, "-m", "advisor", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def without(text: str, folder: str = "") -> str:
    """Return a text without the places that differ from one run or checkout to the next."""
    return (text.replace(folder, "") if folder else text).replace(str(ROOT), ".")


def scenarios() -> Iterator[tuple[str, Any]]:
    """Yield the transcript of every scenario and how many expectations differ."""
    for path in sorted((ROOT / "tests").rglob("scenarios/*.txt")):
        played = advisor.play(path)
        yield f"scenario {path.stem}", [played.transcript, len(played.differences)]


PARTS = {"results": results, "commands": command_lines, "scenarios": scenarios, "small": small}


def entries(only: str | None = None) -> dict[str, Any]:
    """Return the entries of one part, or of all but ``small``, ready for JSON."""
    chosen = [only] if only else ["results", "commands", "scenarios"]
    return {f"{part}: {name}": plain(value) for part in chosen for name, value in PARTS[part]()}


def plain(value: Any) -> Any:
    """Return the value with floats as hexadecimal digits."""
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return value


def differences(name: str, one: Any, other: Any, relative: float) -> Iterator[str]:
    """Yield a line for each place where two values differ by more than ``relative``."""
    if isinstance(one, dict) and isinstance(other, dict):
        missing = object()
        for key in {**one, **other}:
            pair = one.get(key, missing), other.get(key, missing)
            yield from differences(f"{name} / {key}", *pair, relative)
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, pair in enumerate(zip(one, other, strict=True)):
            yield from differences(f"{name} [{number}]", *pair, relative)
    elif one != other:
        try:
            left, right = float.fromhex(one), float.fromhex(other)
        except (TypeError, ValueError):
            yield f"{name}: {str(one)[:300]!r} became {str(other)[:300]!r}"
            return
        off = abs(left - right) / max(abs(left), abs(right), 1e-300)
        if not off <= relative:
            yield f"{name}: {left:.17g} became {right:.17g}, {off:.2g} of it"


def main() -> None:
    """Write the file, or compare with it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=("write", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--relative", type=float, default=0.0, help="largest allowed difference")
    parser.add_argument("--only", choices=tuple(PARTS), help="one part instead of all but small")
    arguments = parser.parse_args()
    now = entries(arguments.only)
    if arguments.verb == "write":
        arguments.file.write_text(json.dumps(now, indent=0, sort_keys=True) + "\n")
        print(f"{len(now)} entries written")
        return
    before = json.loads(arguments.file.read_text())
    before = {k: v for k, v in before.items() if arguments.only in (None, k.split(":")[0])}
    wrong = list(differences("", before, json.loads(json.dumps(now)), arguments.relative))
    print(*wrong, sep="\n")
    print(f"{len(now)} entries compared, {len(wrong)} differences")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
