"""Compile all kernels of the sampler, so that what follows is not held up by the first use."""

import advisor

METHODS = ("crude", "importance", "splitting")
"""Each has a kernel of its own."""


def compile_kernels() -> None:
    """Sample a few years by every method."""
    card = {"broker": {"crash": {"per_year": 1.0, "minutes": 5.0}}}
    model = advisor.FailureModel.from_dict(card)
    load = advisor.Workload(partitions=1)
    cluster, config = advisor.Cluster.uniform(2, racks=None), advisor.Config(replication_factor=2)
    for method in METHODS:
        advisor.simulate(
            cluster, config, model, load, years=32, seed=1, engine="local", method=method
        )
