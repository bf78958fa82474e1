"""Short samples and cards for the sampler's tests."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from advisor import Cluster, Config, FailureModel, Workload
from advisor.reliability.results.sampled import Estimate, Sampled
from advisor.reliability.sampler.block import Row, run_block
from advisor.reliability.sampler.compiled.memory_layout import KernelState
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.initial_state import new_state
from advisor.reliability.sampler.plan import Plan, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for

YEAR = 8760.0
# The chance that one right comparison out of a hundred strays further is 1 in 160.
FAR = 4.0
# Voters of the controller quorum in racks without brokers: outages of racks never reach them all.
ELSEWHERE = {101: "x", 102: "y", 103: "z"}
# An operator who elects at once (0.036 seconds) what is left where Kafka would wait.
AT_ONCE = {"hours": 1e-5}
MANY_RACKS = Cluster.uniform(brokers=6, racks=6)
TRIO = Config(replication_factor=3, min_insync_replicas=2)
CONFIGS = {
    "RF 3": TRIO,
    "RF 2": Config(replication_factor=2, min_insync_replicas=1),
    "RF 1": Config(replication_factor=1),
    "any leader": Config(
        replication_factor=3, min_insync_replicas=1, unclean_leader_election_enable=True
    ),
    "acks=1": Config(replication_factor=3, min_insync_replicas=1, acks="1"),
}
"""What most samples are compared on, by name."""
QUIET = Workload(records_per_second=1.0, replication_delay_ms=0.0)


def sample(
    cluster: Cluster,
    config: Config,
    model: FailureModel,
    load: Workload = QUIET,
    years: int = 2000,
    changed: Mapping[str, Any] | None = None,
    seed: int = 1,
    **options: Any,
) -> tuple[Sampled, list[Row]]:
    """Run all blocks here and merge them; parts of the plan may be changed."""
    plan = replace(plan_for(cluster, config, model, load, **options), **(changed or {}))
    blocks = cut_into_blocks(plan, years, seed)
    rows = [run_block(plan, block) for block in blocks]
    merged = merge(rows, blocks, plan, config=config, model=model, load=load, cluster=cluster)
    return merged, rows


def state_without_skipping(plan: Plan) -> KernelState:
    """A state from which no outages are skipped: of no kind is it known for all brokers."""
    sim = new_state(plan)
    sim.strikes["known"] = -len(plan.racks) - 1
    return sim


def off_by(found: Estimate, exact: float) -> float:
    """How many standard errors lie between; from the interval on a logarithmic scale."""
    error = (math.log(found.high) - math.log(found.low)) / (2.0 * 1.96)
    return (math.log(found.value) - math.log(exact)) / error


def card(**mechanisms: dict[str, float]) -> FailureModel:
    """Build a card from `broker_crash={...}` and the like."""
    tables_: dict[str, dict[str, object]] = {}
    for name, numbers in mechanisms.items():
        section, _, key = name.partition("_")
        if key:
            tables_.setdefault(section, {})[key] = numbers
        else:
            tables_[section] = dict(numbers)
    return FailureModel.from_dict(tables_)
