"""How often the 95 % intervals of rare losses hold the exact loss probability.

.venv/bin/python bench/interval_coverage.py --seeds 400
.venv/bin/python bench/interval_coverage.py --seeds 400 --method splitting --replicas 2 3

Of 400 intervals, so many held the exact number on 2026-11-28 (20,000 failures a run or more, ten
pilots; 92 to 98 % is 368 to 392):

replicas  racks  three_az_cloud  two_az  bare_metal_racks  single_rack
2         six    379             389     382               385
2         three  388             390     389               385
3         six    388             391     383               383
3         three  391             382     382               377
4         six    385             381     391               381
4         three  373             381     386               387
5         six    385             389     390               unsure
5         three  380             374     383               unsure
6         six    384             385     388               unsure
6         three  374             376     379               no exact number

Of five and six replicas on single_rack (4e-16 and 1e-19 a year) pilots say that they are unsure:
all intervals hold, and say next to nothing. With six, runs are half as long.
"""

from __future__ import annotations

import argparse
import math
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from typing import Any

import numpy as np

from advisor import Cluster, Config, Workload, evaluate, load_model
from advisor.catalog import model_names
from advisor.reliability.chain import state_selection
from advisor.reliability.patching import without_cluster_wide
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.results.units import IMPORTANCE, SPLITTING
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.cycles.pilot import find_bias
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.plan import Plan, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for
from advisor.reliability.sampler.splitting.pilot import find_retrials

LOAD = Workload(partitions=1)
LAYOUTS = {"3 racks of 2": Cluster.uniform(6, 3), "6 racks": Cluster.uniform(6, 6)}
# Bounds are worst cases, and with five replicas wider than the rarest losses. So chains are cut so
# many times finer until the number changes by no more than a share, with at most so many states.
FINER, STILL, MOST_STATES = (1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12), 0.003, 500_000
# Intervals from few effective losses are wide, and hold more or less often than they say. A run of
# importance sampling is longer where it has fewer than these, up to so many times.
ENOUGH_EFFECTIVE, LONGEST = 100.0, 6


def prepared(plan: Plan, method: str, pilot: int, failures: int) -> tuple[Plan, int, bool]:
    """Return a plan after a pilot, the years that have so many failures, whether it is unsure."""
    if method == SPLITTING:
        splitting = find_retrials(plan, pilot).splitting
        return replace(plan, splitting=splitting), round(failures / plan.strikes_per_year), False
    bias = find_bias(plan, pilot).bias
    years = round(failures / (plan.strikes_per_year * bias.overlaps))
    return replace(plan, bias=bias), years, not bias.finds_losses


def exact_at(finer: float, layout: str, replicas: int, card: str) -> tuple[float, float, int]:
    """Return the exact loss probability of a chain cut so much finer, its bound, its states.

    In a process of its own: what was solved is cached.
    """
    state_selection._FLOOR = state_selection._FLOOR * np.array([finer, 1.0, 1.0, 1.0])
    state_selection._MOST = MOST_STATES
    result = evaluate(
        LAYOUTS[layout], config_of(replicas), without_cluster_wide(load_model(card)), LOAD
    )
    bound = result.error_bounds["loss_probability_per_year"]
    return result.loss_probability_per_year, bound, result.states


def judge(layout: str, replicas: int, card: str) -> tuple[float, float] | None:
    """Return the exact loss probability and how far off it may be; None if chains do not settle."""
    before = 0.0
    for finer in FINER:
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            exact, bound, states = pool.submit(exact_at, finer, layout, replicas, card).result()
        if states >= MOST_STATES:
            return None
        moved = abs(exact - before)
        if before > 0.0 and moved <= STILL * exact:
            return exact, min(bound, moved)
        before = exact
    return None


def config_of(replicas: int) -> Config:
    """All replicas but one acknowledge."""
    return Config(replication_factor=replicas, min_insync_replicas=max(replicas - 1, 1))


def sampled(plan: Plan, years: int, seed: int, case: dict[str, Any]) -> Sampled:
    """Sample a plan here."""
    blocks = cut_into_blocks(plan, years, seed)
    return merge([run_block(plan, block) for block in blocks], blocks, plan, **case)


def long_enough(plan: Plan, years: int, seed: int, case: dict[str, Any]) -> int:
    """Return the years that give a run enough effective losses, by one that is not counted."""
    weights = sampled(plan, years, seed, case).weights if plan.bias else None
    if weights is None:
        return years
    return years * min(math.ceil(ENOUGH_EFFECTIVE / max(weights.effective, 1.0)), LONGEST)


def covered(
    layout: str, replicas: int, card: str, method: str, seeds: int, pilots: int, failures: int
) -> str:
    """Sample one case with many seeds, a few to each pilot."""
    cluster, model = LAYOUTS[layout], without_cluster_wide(load_model(card))
    config, judged = config_of(replicas), judge(layout, replicas, card)
    said = f"RF {replicas}, {layout}, {card}"
    if judged is None:
        return f"{said}: chains do not settle on a probability, so that they cannot judge"
    exact, off = judged
    plain, begun = plan_for(cluster, config, model, LOAD), time.process_time()
    case = {"config": config, "model": model, "load": LOAD, "cluster": cluster}
    held = unsure = 0
    estimates, widths, effective = [], [], []
    for pilot in range(pilots):
        plan, years, doubtful = prepared(plain, method, pilot, failures)
        unsure += doubtful
        years = long_enough(plan, max(years, 32), seeds + pilot, case)
        for seed in range(pilot, seeds, pilots):
            run = sampled(plan, years, seed, case)
            found = run.loss_probability_per_year
            held += found.low - off <= exact <= found.high + off
            estimates.append(found.value if found.seen else 0.0)
            widths.append((found.high - found.low) / exact)
            effective.append(run.weights.effective if run.weights else 0.0)
    middle = seeds // 2
    return (
        f"{said}: p = {exact:.3g}, mean of samples {sum(estimates) / seeds:.3g}; "
        f"{held} of {seeds} intervals hold it ({held / seeds:.1%}); "
        f"width {sorted(widths)[middle]:.2g} of it, "
        f"{sorted(effective)[middle]:.0f} effective losses; {unsure} of {pilots} pilots unsure; "
        f"{(time.process_time() - begun) / seeds:.2g} s a run"
    )


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--pilots", type=int, default=10)
    parser.add_argument("--failures", type=int, default=20_000, help="in a run, at least")
    parser.add_argument("--method", choices=(IMPORTANCE, SPLITTING), default=IMPORTANCE)
    parser.add_argument("--replicas", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    options = parser.parse_args()
    for replicas, layout, card in product(options.replicas, LAYOUTS, model_names()):
        asked = options.method, options.seeds, options.pilots, options.failures
        print(covered(layout, replicas, card, *asked), flush=True)


if __name__ == "__main__":
    main()
