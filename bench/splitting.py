"""How much sooner splitting knows a rare loss than years as they come.

Run it with ``python bench/splitting.py``; it takes a minute. For each plan: the loss probability of
a year by splitting with its error, and the core-seconds in which either method knows it to 10 %.
Years as they come need 100 losses, whose time is that of their years.

Core-seconds to 10 % on 2026-11-26; the last two were known to 34 and 19 % only:

plan                                             losses a year  splitting  years    times faster
2 of 3 brokers, disks                            2.7e-4         0.007      0.10     15
3 of 3 brokers, disks                            3.1e-8         0.05       1,200    22,000
3 of 6 brokers, disks, crashes, one crew         1.2e-6         35         2,400    70
3 of 12 brokers, disks, crashes, power of racks  4.7e-7         15         54,000   3,500
"""

from __future__ import annotations

import time

import numpy as np

from advisor import Cluster, Config, FailureModel, Workload
from advisor.reliability.results.units import SPLITTING
from advisor.reliability.sampler.block import DUE, run_block
from advisor.reliability.sampler.methods import with_method
from advisor.reliability.sampler.plan import Block, Plan
from advisor.reliability.sampler.plan_reader import plan_for

SECONDS = 4.0
FEWEST_BLOCKS = 20
WEIBULL = {"distribution": "weibull", "shape": 0.7}
FIXED = {"distribution": "fixed"}
SKEWED = {"distribution": "lognormal", "sigma": 1.0}


def plan_of(brokers: int, replicas: int, partitions: int = 6, **sections: object) -> Plan:
    """Three racks, RF replicas, min ISR one less, and a card."""
    config = Config(replication_factor=replicas, min_insync_replicas=max(replicas - 1, 1))
    card = FailureModel.from_dict(dict(sections))
    load = Workload(partitions=partitions, records_per_second=10.0)
    return plan_for(Cluster.uniform(brokers, 3), config, card, load)


def disks(per_year: float, hours: float) -> dict[str, object]:
    """Disks that fail while they are new, and repairs of which a few take long."""
    return {"per_year": per_year, "hours": hours, "lifetime": WEIBULL, "duration": SKEWED}


CRASH = {"per_year": 12.0, "minutes": 10.0, "lifetime": WEIBULL}
POWER = {"per_year": 0.5, "minutes": 60.0, "not_returning": 0.02}
PLANS = {
    "2 of 3 brokers, disks": plan_of(3, 2, broker={"destroyed": disks(0.2, 10.0)}),
    "3 of 3 brokers, disks": plan_of(3, 3, broker={"destroyed": disks(0.2, 10.0)}),
    "3 of 6 brokers, disks, crashes, one crew": plan_of(
        6, 3, broker={"destroyed": disks(0.2, 24.0), "crash": CRASH}, repair={"crews": 1}
    ),
    "3 of 12 brokers, disks, crashes, racks": plan_of(
        12, 3, 60, broker={"destroyed": disks(0.1, 12.0), "crash": CRASH}, rack={"power": POWER}
    ),
}


def cost(plan: Plan, years: int) -> tuple[np.ndarray, float]:
    """Sample blocks of so many years; return the losses of each, and the time of one."""
    run_block(plan, Block(1, 0, 1))
    found: list[float] = []
    begun = time.process_time()
    while time.process_time() - begun < SECONDS or len(found) < FEWEST_BLOCKS:
        row = run_block(plan, Block(1, len(found) + 1, years))
        found.append(row.cycles[DUE] if row.cycles else float(row.lost_years))
    return np.array(found), (time.process_time() - begun) / len(found)


def main() -> None:
    """Print a line for each plan."""
    print(
        "plan; retrials; a year's losses; relative error; seconds to 10 %: splitting, as they come"
    )
    for name, plan in PLANS.items():
        years = max(1, int(4000 / (1.0 + plan.strikes_per_year)))
        split, _ = with_method(plan, SPLITTING, years, 1)
        assert split.splitting is not None
        losses, seconds = cost(split, years)
        mean = losses.mean() / years
        error = losses.std(ddof=1) / losses.mean()
        plain, plain_seconds = cost(plan, 10 * years)
        by_splitting = seconds * error**2 / 0.01
        as_they_come = plain_seconds / (10 * years) * 100.0 / mean
        retrials = ", ".join(f"{each:.3g}" for each in split.splitting.retrials)
        print(
            f"{name}; {retrials}; {mean:.3g}; {error / len(losses) ** 0.5:.2g}; "
            f"{by_splitting:.3g}, {as_they_come:.3g}: {as_they_come / by_splitting:.3g} times; "
            f"as they come saw {plain.sum():g}, {plain.mean() / (10 * years):.3g} a year; "
            f"work {seconds / years / (plain_seconds / (10 * years)):.3g}, "
            f"expected {split.splitting.work:.3g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
