"""How rightly events are told from generated metrics whose truth is known, by kind.

Run it with ``python bench/generated_events.py [events] [step_s ...]``: so many events of each kind
(1,000 unless told) at each step between scrapes (5 s), in histories of ten of each kind. A line for
each kind says how many there were, how many a row tells of (recall), and of the rows that name the
kind how many are right (precision). Rows about nothing, and refused minutes, come last.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from advisor.learning.counts import Window, read_histories
from metric_histories import FENCES, SCRIPTS, WATCHERS, World, busy_acts, happened
from metric_judge import judge
from metric_series import Scraping, dump, query_range

EACH = 3
WORLDS = (World(), World(version="3.9"), World(version="3.9", brokers=9), World(brokers=12))
PODS = (World(pods=True), World(version="3.9", pods=True), World(brokers=12, pods=True))
SPELLINGS = ("count_total", "camel", "value", "name_label")


class Tally(NamedTuple):
    """Events by the name of their kind, and what rows said of them."""

    true: Counter[str]
    told: Counter[str]
    named: Counter[str]
    rows: Counter[str]
    wrong_rows: Counter[str]
    false_rows: int
    refused: float
    truly_refused: float


def tally(number: int, world: World, spelling: str, step_s: float, on_grid: bool) -> Tally:
    """Generate a history, read it and judge what was read."""
    what = (*SCRIPTS, *WATCHERS, *FENCES)
    acts, seconds = busy_acts(world, 1_000 + number, EACH, what)
    history = happened(world, acts, 1_000 + number, seconds)
    scraping = Scraping(step_s=step_s, spelling=spelling, node_exporter=True)
    if on_grid:
        (result,) = read_histories([query_range(history, scraping)], Window())
    else:
        with TemporaryDirectory() as folder:
            path = Path(folder, "dump.txt")
            path.write_text("\n".join(dump(history, scraping)) + "\n")
            (result,) = read_histories([path], Window(work=Path(folder, "work")))
    judged = judge(history, result.outages, 3.0 * step_s + 20.0)
    wrong = [row for row, _ in judged.misnamed] + judged.false_rows
    assert result.refused is not None
    assert result.refused.partition_minutes is not None
    return Tally(
        Counter(outage.kind.value for outage in history.outages),
        Counter({kind.value: count for kind, count in judged.found.items()}),
        Counter({kind.value: count for kind, count in judged.named.items()}),
        Counter(row.mechanism for row in result.outages),
        Counter(row.mechanism for row in wrong),
        len(judged.false_rows),
        result.refused.partition_minutes,
        history.refused_partition_minutes,
    )


def together(counts: Iterable[Counter[str]]) -> Counter[str]:
    """Add up counts."""
    return Counter(name for entry in counts for name in entry.elements())


def report(tallies: list[Tally], step_s: float) -> None:
    """Print a line for each kind, and one for all."""
    true = together(entry.true for entry in tallies)
    told = together(entry.told for entry in tallies)
    named = together(entry.named for entry in tallies)
    rows = together(entry.rows for entry in tallies)
    wrong = together(entry.wrong_rows for entry in tallies)
    print(f"every {step_s:g} s: {'events':>8} {'told':>7} {'named':>7} {'precision':>10}")
    for kind in sorted(true):
        precision = f"{1.0 - wrong[kind] / rows[kind]:10.3f}" if rows[kind] else f"{'-':>10}"
        shares = f"{told[kind] / true[kind]:7.3f} {named[kind] / true[kind]:7.3f}"
        print(f"{kind:>18} {true[kind]:6} {shares} {precision}", flush=True)
    unnamed = ", ".join(f"{name} {rows[name]}" for name in sorted(rows.keys() - true.keys()))
    ratio = sum(entry.refused for entry in tallies) / sum(entry.truly_refused for entry in tallies)
    false_rows = sum(entry.false_rows for entry in tallies)
    print(f"rows about nothing: {false_rows}; without a name: {unnamed}")
    print(f"refused partition-minutes: {ratio:.3f} of the true ones")


def main() -> None:
    """Generate, read and judge."""
    parser = argparse.ArgumentParser()
    parser.add_argument("events", nargs="?", type=int, default=1_000)
    parser.add_argument("steps_s", nargs="*", type=float, default=[5.0])
    parser.add_argument("--grid", action="store_true")
    parser.add_argument("--pods", action="store_true")
    options = parser.parse_args()
    count = -(-options.events // EACH)
    for step_s in options.steps_s:
        with ProcessPoolExecutor(2) as pool:
            worlds = islice(cycle(PODS if options.pods else WORLDS), count)
            spellings = islice(cycle(SPELLINGS), count)
            steps, grids = [step_s] * count, [options.grid] * count
            tallies = pool.map(tally, range(count), worlds, spellings, steps, grids)
            report(list(tallies), step_s)


if __name__ == "__main__":
    main()
