"""How fast years are sampled, beside a plain SimPy program, and what rare losses take.

Part of ``make bench``. Alone: ``.venv/bin/python bench/sampling.py``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator
from dataclasses import replace
from functools import partial

import numpy as np
import simpy
from stopwatch import seconds

from advisor import Cluster, Config, FailureModel, Workload, evaluate, load_model, simulate
from advisor.reliability.patching import without_cluster_wide
from advisor.reliability.results.sampled import Sampled
from advisor.reliability.sampler.block import begun_by, run_block, sample_cycles
from advisor.reliability.sampler.cycles.memory import LOST
from advisor.reliability.sampler.cycles.pilot import find_bias
from advisor.reliability.sampler.estimators import merge
from advisor.reliability.sampler.plan import Block, Plan, cut_into_blocks
from advisor.reliability.sampler.plan_reader import plan_for

YEAR = 8760.0
CONFIG = Config(replication_factor=3, min_insync_replicas=2)
ONE = Workload(partitions=1)
TRIO = Cluster(brokers={1: "a", 2: "b", 3: "c"})
SEED = 1
Compared = tuple[str, float, str, float]
Process = Generator[simpy.Event, object, None]


def destroyed(per_year: float, hours: float) -> FailureModel:
    """A card of brokers that are destroyed and replaced."""
    return FailureModel.from_dict({"broker": {"destroyed": {"per_year": per_year, "hours": hours}}})


def biased(plan: Plan) -> Plan:
    """The plan for cycles with likelier failures."""
    return replace(plan, bias=find_bias(plan, SEED).bias)


def seconds_per_year(plan: Plan, years: float) -> float:
    """Processor seconds of a block of these years, by year."""
    block = cut_into_blocks(plan, years, SEED)[0]
    return seconds(lambda: run_block(plan, block), 3) / block.years


def simpy_seconds_per_year(brokers: int, per_year: float, hours: float) -> float:
    """Seconds a year of brokers that fail and are repaired in SimPy, without any partitions."""
    years = max(6_000 // brokers // max(round(per_year), 1), 1)

    def broker(world: simpy.Environment, rng: np.random.Generator) -> Process:
        while True:
            yield world.timeout(rng.exponential(YEAR / per_year))
            yield world.timeout(rng.exponential(hours))

    def simulated() -> None:
        world, rng = simpy.Environment(), np.random.default_rng(SEED)
        for _ in range(brokers):
            world.process(broker(world, rng))
        world.run(until=years * YEAR)

    return seconds(simulated, 3) / years


def years_as_they_come() -> Compared:
    """Three brokers that are destroyed and replaced, every year of them."""
    plan = plan_for(TRIO, CONFIG, destroyed(1.0, 12.0), ONE)
    peer = simpy_seconds_per_year(3, 1.0, 12.0)
    return "a sampled year, with its rules", seconds_per_year(plan, 200_000), "SimPy, without", peer


def years_that_matter() -> Compared:
    """The same, where only overlapping outages are replayed."""
    plan = biased(plan_for(TRIO, CONFIG, destroyed(1.0, 12.0), ONE))
    peer = simpy_seconds_per_year(3, 1.0, 12.0)
    ours = seconds_per_year(plan, 10**9)
    return "a year of which only overlaps are sampled", ours, "SimPy, every year", peer


def thirty_brokers_as_they_come() -> Compared:
    """Thirty brokers with 300 partitions, every year, beside brokers that fail as often."""
    cluster, model = Cluster.uniform(30, 3), load_model("three_az_cloud")
    plan = plan_for(cluster, CONFIG, model, Workload(partitions=300))
    peer = simpy_seconds_per_year(30, plan.strikes_per_year / 30, 0.1)
    ours = seconds_per_year(plan, 20_000)
    return "30 brokers, 300 partitions, every year", ours, "SimPy, as many failures", peer


def thirty_brokers() -> Compared:
    """Thirty brokers with 300 partitions and every mechanism, beside brokers that fail once."""
    cluster, model = Cluster.uniform(30, 3), load_model("three_az_cloud")
    plan = biased(plan_for(cluster, CONFIG, model, Workload(partitions=300)))
    peer = simpy_seconds_per_year(30, 1.0, 12.0)
    return (
        "30 brokers, 300 partitions",
        seconds_per_year(plan, 20_000),
        "SimPy, no partitions",
        peer,
    )


COMPARED: tuple[Callable[[], Compared], ...] = (
    years_as_they_come,
    years_that_matter,
    thirty_brokers_as_they_come,
    thirty_brokers,
)


def sampled(
    cluster: Cluster, model: FailureModel, years: int, importance: bool
) -> tuple[Sampled, float]:
    """Sample one partition here; return the result and the processor seconds."""
    begun = time.process_time()
    plan = plan_for(cluster, CONFIG, model, ONE)
    plan = biased(plan) if importance else plan
    blocks = cut_into_blocks(plan, years, SEED)
    rows = [run_block(plan, block) for block in blocks]
    taken = time.process_time() - begun
    found = merge(rows, blocks, plan, config=CONFIG, model=model, load=ONE, cluster=cluster)
    return found, taken


def relative_variance(found: Sampled) -> float:
    """Of the loss probability, from its interval."""
    chance = found.loss_probability_per_year
    return (math.log(chance.high / chance.low) / 3.92) ** 2


def variance_of_a_cycle(model: FailureModel, cycles: int = 200_000) -> float:
    """Of the losses in a sampled cycle, as a multiple of their squared mean."""
    plan = plan_for(TRIO, CONFIG, model, ONE)
    bias = find_bias(plan, SEED).bias
    done, _ = sample_cycles(plan, bias, begun_by(bias, cycles), Block(SEED, 0, 1))
    mean = done.means[LOST] / cycles
    return float(done.second_moments[LOST] @ done.base**2 / cycles / mean**2 - 1.0)


def main() -> None:
    """Print what rare losses take."""
    model = destroyed(1.0, 12.0)
    exact = evaluate(TRIO, CONFIG, model, ONE).loss_probability_per_year
    found, taken = sampled(TRIO, model, 10**8, importance=True)
    # Years as they come: one success in 1 / p trials has a relative variance of 1 / (p years).
    crude_year = seconds_per_year(plan_for(TRIO, CONFIG, model, ONE), 200_000)
    crude = crude_year / exact
    print(
        f"p = {exact:.3g}: sampled {found.loss_probability_per_year} in {taken:.2g} s; variance "
        f"times seconds {crude / (relative_variance(found) * taken):,.0f} times lower than crude"
    )
    varied = variance_of_a_cycle(model)
    print(
        f"  the variance of a cycle is {1.0 / exact / varied:,.0f} times lower than that of a year "
        "as it comes"
    )
    rarely("three_az_cloud", 13_000, 10**15)
    rarely("single_rack", 8, 2 * 10**13)
    rates_worth()


def rarely(name: str, slower: int, years: int) -> None:
    """Print what it takes to know a loss of about 1e-11 a year, with every mechanism, to 10 %."""
    cluster = Cluster.uniform(6, 3)
    card = without_cluster_wide(load_model(name))
    rare = card.with_values(
        {name: card[name] / slower for name in card.quantities if "per_year" in name}
    )
    exact = evaluate(cluster, CONFIG, rare, ONE).loss_probability_per_year
    begun = time.process_time()
    asked = partial(simulate, cluster, CONFIG, rare, ONE, method="importance", engine="local")
    found = asked(years=years, relative_width=0.1)
    print(
        f"p = {exact:.3g}, every mechanism of {name}: sampled {found.loss_probability_per_year} in "
        f"{time.process_time() - begun:.2g} s of one core"
    )


def rates_worth() -> None:
    """Print how many years as they come say as much of losses, of 30 brokers, by second."""
    cluster, model = Cluster.uniform(30, 3), without_cluster_wide(load_model("three_az_cloud"))
    load = Workload(partitions=300)
    plan = biased(plan_for(cluster, CONFIG, model, load))
    blocks = cut_into_blocks(plan, 5_000, SEED)
    begun = time.process_time()
    rows = [run_block(plan, block) for block in blocks]
    taken = time.process_time() - begun
    found = merge(rows, blocks, plan, config=CONFIG, model=model, load=load, cluster=cluster)
    assert found.weights is not None
    worth = found.weights.effective / found.loss_probability_per_year.value / taken
    peer = simpy_seconds_per_year(30, 1.0, 12.0)
    print(
        f"30 brokers, 300 partitions: losses known as from {worth:.2g} years as they come by "
        f"second, {worth * peer:,.0f} times SimPy's without partitions"
    )


if __name__ == "__main__":
    for compare in COMPARED:
        what, ours, peer, theirs = compare()
        print(f"{what}: {ours:.3g} s; {peer}: {theirs:.3g} s; {theirs / ours:,.3g} times as fast")
    main()
