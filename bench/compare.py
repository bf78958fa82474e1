"""How fast the main pieces are, as ratios against a peer in the same run.

Ratios travel between machines; seconds do not. Run it with ``make bench``.
"""

from __future__ import annotations

import exact
import numpy as np
import redraw
import simpy
from audit import judged
from stopwatch import seconds

from advisor import Cluster, Config, FailureModel, Workload
from advisor.protocol.exploration.shortest_loss import CRASHES, shortest_loss
from advisor.protocol.specification.model_checker import check
from advisor.reliability.sampler.block import run_block
from advisor.reliability.sampler.block_cutting import cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for

YEAR = 8760.0
LOAD = Workload(partitions=1)
CONFIG = Config(replication_factor=3, min_insync_replicas=2)


def sampler() -> tuple[str, float, str, float]:
    """Broker-years a second against SimPy on three brokers that are destroyed and replaced."""
    model = FailureModel.from_dict({"broker": {"destroyed": {"per_year": 1.0, "hours": 12.0}}})
    cluster = Cluster(brokers={1: "a", 2: "b", 3: "c"})
    plan = plan_for(cluster, CONFIG, model, LOAD)
    block = cut_into_blocks(plan, 200_000, seed=1)[0]
    ours = seconds(lambda: run_block(plan, block), 3) / block.years
    years = 2_000

    def broker(world: simpy.Environment, rng: np.random.Generator) -> object:
        while True:
            yield world.timeout(rng.exponential(YEAR))
            yield world.timeout(rng.exponential(12.0))

    def simulated() -> None:
        world, rng = simpy.Environment(), np.random.default_rng(1)
        for _ in range(3):
            world.process(broker(world, rng))
        world.run(until=years * YEAR)

    return (
        "a sampled year, with its rules",
        ours,
        "SimPy, without any",
        seconds(simulated, 3) / years,
    )


def search() -> tuple[str, float, str, float]:
    """A state of the reference against a state of the public specification."""
    found = []
    config = Config(kafka_version="3.9", replication_factor=3, min_insync_replicas=2, acks="all")
    reference = seconds(
        lambda: found.append(shortest_loss(config, faults=2, kinds=CRASHES, writes=1)), 2
    )
    spec = check("Kip101", 2, 2, 2, 2)
    specification = seconds(lambda: check("Kip101", 2, 2, 2, 2), 2) / spec.distinct_states
    return (
        "a state of the reference's search",
        reference / found[-1].states,
        "a state of the specification's",
        specification,
    )


def main() -> None:
    """Print a line for each comparison."""
    exact.main()
    for compare in (sampler, search, judged):
        ours, taken, peer, other = compare()
        print(
            f"{ours}: {taken * 1e6:,.1f} us; {peer}: {other * 1e6:,.1f} us; "
            f"ratio {taken / other:.2g}"
        )
    redraw.main()


if __name__ == "__main__":
    main()
