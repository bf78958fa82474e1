"""How often the 95 % intervals of importance sampling hold the exact loss probability.

.venv/bin/python bench/interval_coverage.py --seeds 400
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import product

from advisor import Cluster, Config, Workload, evaluate, load_model
from advisor.catalog import model_names
from advisor.reliability.results.settings_split import without_beyond
from advisor.reliability.sampler.block_cutting import cut_into_blocks
from advisor.reliability.sampler.cycles.block import run_block
from advisor.reliability.sampler.cycles.pilot import find_bias
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.plan_reader import plan_for

LOAD = Workload(partitions=1)
LAYOUTS = {"3 racks of 2": Cluster.uniform(6, 3), "6 racks": Cluster.uniform(6, 6)}
CYCLES = 20_000


def covered(layout: str, replicas: int, card: str, seeds: int) -> str:
    """Sample one case with many seeds, each with a pilot of its own."""
    cluster, model = LAYOUTS[layout], without_beyond(load_model(card))
    config = Config(replication_factor=replicas, min_insync_replicas=max(replicas - 1, 1))
    exact = evaluate(cluster, config, model, LOAD).loss_probability_per_year
    plain, held, seen, total = plan_for(cluster, config, model, LOAD), 0, 0, 0.0
    for seed in range(seeds):
        plan = replace(plain, bias=find_bias(plain, seed).bias)
        assert plan.bias is not None
        years = max(round(CYCLES / (plan.strikes_per_year * plan.bias.overlaps)), 32)
        blocks = cut_into_blocks(plan, years, seed)
        rows = [run_block(plan, block) for block in blocks]
        asked = {"config": config, "model": model, "load": LOAD, "cluster": cluster}
        found = merge(rows, blocks, plan, **asked).loss_probability_per_year
        held += found.low <= exact <= found.high
        seen += found.seen
        total += found.value if found.seen else 0.0
    return (
        f"RF {replicas}, {layout}, {card}: p = {exact:.3g}, mean of samples {total / seeds:.3g}, "
        f"{held} of {seeds} intervals hold it, {seeds - seen} saw nothing"
    )


def main() -> None:
    """Print a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=400)
    parser.add_argument("--replicas", type=int, nargs="+", default=[2, 3, 4, 5, 6])
    options = parser.parse_args()
    for replicas, layout, card in product(options.replicas, LAYOUTS, model_names()):
        print(covered(layout, replicas, card, options.seeds), flush=True)


if __name__ == "__main__":
    main()
