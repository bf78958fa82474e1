"""Compile the sampler's kernels before the tests, one process for each.

What is compiled is kept in the user's cache folder. Without it every test process that samples
compiles the same kernels at the same time, which takes a core a minute or two each.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor

import advisor

METHODS = ("crude", "importance", "splitting")


def compile_kernel(method: str) -> None:
    """Sample a few years."""
    card = {"broker": {"crash": {"per_year": 1.0, "minutes": 5.0}}}
    model = advisor.FailureModel.from_dict(card)
    load = advisor.Workload(partitions=1)
    cluster, config = advisor.Cluster.uniform(2, racks=None), advisor.Config(replication_factor=2)
    advisor.simulate(cluster, config, model, load, years=32, seed=1, engine="local", method=method)


if __name__ == "__main__":
    with ProcessPoolExecutor(2) as processes:
        list(processes.map(compile_kernel, METHODS))
