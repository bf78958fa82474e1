"""The kernels are compiled once for all processes: `make test` begins with this file."""

import subprocess
import sys

import advisor

READY = """
from advisor.reliability.sampler.compiled import kernel
from advisor.reliability.sampler.cycles import kernel as cycles
from advisor.reliability.sampler.splitting import kernel as splitting

print(kernel.run.is_ready, cycles.run.is_ready, splitting.run.is_ready)
"""


def test_other_processes_find_what_one_compiled() -> None:
    """One process compiles all kernels, what they share once; another one finds them ready."""
    card = {"broker": {"crash": {"per_year": 1.0, "minutes": 5.0}}}
    model = advisor.FailureModel.from_dict(card)
    load = advisor.Workload(partitions=1)
    cluster, config = advisor.Cluster.uniform(2, racks=None), advisor.Config(replication_factor=2)
    few = {"years": 32, "seed": 1, "engine": "local"}
    for method in ("crude", "importance", "splitting"):
        advisor.simulate(cluster, config, model, load, method=method, **few)
    asked = [sys.executable, "-c", READY]
    told = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["True"] * 3
