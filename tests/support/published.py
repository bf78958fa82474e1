"""Published figures, and small systems that the package solves to reproduce them."""

from __future__ import annotations

import csv
import functools
import math

import numpy as np
from scipy import sparse

from advisor import Cluster, Config, FailureModel, Workload, evaluate
from advisor.catalog import data_dir
from advisor.reliability.results.reliability import Reliability
from advisor.reliability.solver.generator import Generator

# The formulas and the oracle know no waiting: an operator elects at once what is left.
AT_ONCE = {"hours": 1e-9}


@functools.cache
def rows() -> dict[str, dict[str, str]]:
    """Return every row of `data/published_results.csv` by its id."""
    with (data_dir() / "published_results.csv").open(encoding="utf-8", newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def published(name: str) -> float:
    """Return a published figure."""
    return float(rows()[name]["value"])


def rounding(name: str) -> float:
    """Return half a unit of the last digit that is printed."""
    digits, _, exponent = rows()[name]["value"].lower().partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.5 * 10.0 ** (int(exponent or 0) - decimals)


def repairable_units(
    units: int, per_hour: float, repair_hours: float, kept: int, one_at_a_time: bool = False
) -> Generator:
    """Return the CTMC of identical units by how many are down; more than `kept` is absorbing."""
    down = np.arange(kept + 1)
    failing = (units - down) * per_hour
    repair = (np.minimum(down, 1) if one_at_a_time else down) / repair_hours
    rates = np.diag(failing[:-1], 1) + np.diag(repair[1:], -1)
    absorbed = np.zeros(kept + 1)
    absorbed[-1] = failing[-1]
    return Generator(sparse.csr_array(rates), absorbed)


def destroyed(per_year: float, hours: float) -> FailureModel:
    """Return a card in which only disks fail."""
    destroyed = {"per_year": per_year, "hours": hours}
    return FailureModel.from_dict({"broker": {"destroyed": destroyed}, "operator": AT_ONCE})


def outages(per_year: float, not_returning: float) -> FailureModel:
    """Return a card of instant power outages that destroy each broker with a probability."""
    power = {"per_year": per_year, "minutes": 1e-5, "not_returning": not_returning}
    return FailureModel.from_dict(
        {
            "broker": {"destroyed": {"hours": 50.0}},
            "cluster": {"power": power},
            "operator": AT_ONCE,
        }
    )


def replicas(count: int, model: FailureModel, brokers: int | None = None) -> Reliability:
    """Evaluate one partition, each broker in a rack of its own."""
    return evaluate(
        Cluster.uniform(brokers or count, brokers or count),
        Config(replication_factor=count, min_insync_replicas=1, acks="all", retries=0),
        model,
        Workload(partitions=1),
    )


def chance_any_lost(sets: int, replicas: int, brokers: int, lost: float) -> float:
    """Copyset formula ``1 - (1 - q)^K`` of Cidon et al. (2013): copysets as if independent."""
    one = math.prod(max(lost - i, 0.0) / (brokers - i) for i in range(replicas))
    return 1.0 if one >= 1.0 else -math.expm1(sets * math.log1p(-one))
