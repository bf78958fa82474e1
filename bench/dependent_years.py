"""How often a loss interval covers the truth where years depend on each other.

Run it with ``python bench/dependent_years.py``; it takes some minutes. One replica, which loses its
log in a year unless more than a year is left of its lifetime: that has a closed form. The second
column is what an interval that took the years for independent would cover: on 2026-11-24 it was
85.8 % of 400 seeds for Weibull 0.5, 3 years and 320 simulated, where ours covered 99.8 %.
"""

from __future__ import annotations

import math

from scipy import integrate, stats

from advisor import Cluster, Config, FailureModel, simulate
from advisor.reliability.sampler.intervals import share

CLUSTER = Cluster.uniform(1, 1)
CONFIG = Config(replication_factor=1, min_insync_replicas=1)
SEEDS = 400
# Distribution, its number, mean years between failures, years simulated.
CASES = (
    ("weibull", 0.5, 3.0, 320),
    ("weibull", 0.5, 30.0, 3200),
    ("weibull", 0.5, 300.0, 320),
    ("weibull", 3.0, 3.0, 320),
    ("lognormal", 1.5, 10.0, 320),
    ("lognormal", 1.5, 100.0, 320),
)


def within_a_year(kind: str, number: float, mean: float) -> float:
    """Probability of a failure in a year that begins at a random moment."""
    if kind == "weibull":
        law = stats.weibull_min(number, scale=mean / math.gamma(1.0 + 1.0 / number))
    else:
        law = stats.lognorm(number, scale=mean * math.exp(-0.5 * number**2))
    return float(integrate.quad(law.sf, 0.0, 1.0, limit=200)[0]) / mean


def main() -> None:
    """Print the coverage of the interval over blocks, and of one over years."""
    print("distribution, mean years, years: exact; covered, over years; seen in; mean / exact")
    for kind, number, mean, years in CASES:
        key = "shape" if kind == "weibull" else "sigma"
        lifetime = {"distribution": kind, key: number}
        numbers = {"per_year": 1.0 / mean, "hours": 0.01, "lifetime": lifetime}
        card = FailureModel.from_dict({"broker": {"destroyed": numbers}})
        exact = within_a_year(kind, number, mean)
        covered, over_years, seen, values = 0, 0, 0, []
        for seed in range(SEEDS):
            sampled = simulate(CLUSTER, CONFIG, card, years=years, seed=seed, engine="local")
            found = sampled.loss_probability_per_year
            lost = sum(each for _, each in sampled.history)
            alone = share(int(lost), years)
            covered += found.low <= exact <= found.high
            over_years += alone.low <= exact <= alone.high
            seen += found.seen
            values.append(lost / years)
        print(
            f"{kind} {number:g}, {mean:g}, {years}: {exact:.4g}; {100 * covered / SEEDS:.1f} %, "
            f"{100 * over_years / SEEDS:.1f} %; {100 * seen / SEEDS:.0f} %; "
            f"{math.fsum(values) / SEEDS / exact:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
