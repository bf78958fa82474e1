"""The cycle kernel's memory, beside that of the cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.partition.reduced_state import POWER
from advisor.reliability.sampler.compiled.memory_layout import (
    OUTAGE_BINS,
    KernelState,
    record_dtype,
)
from advisor.reliability.sampler.plan import Bias

# What the bias is for, and what the pilot learns from: losses, records lost, hours without writes.
LOST, RECORDS, NO_WRITES = range(3)
OBJECTIVES = 3
# Columns of `Cycles.first_losses`.
NUMBER, WEIGHTS, SQUARES, LARGEST = range(4)
# After this number of failures beyond the first, a cycle goes on without bias.
MOST_FAILURES = 40
# A smaller chance is biased to this probability; for several brokers of a rack, to one of them.
_BIASED_CHANCE = 0.5


CYCLE = record_dtype(
    "running first_kind later_failures rarest_kind next_kind next_target lost done "
    "has_power_failures",
    "begun_at base_weight weight plain_share to_loss at_risk at_risk_squared hours overlaps",
)
"""One record: the current cycle, and the totals of all."""


class Cycles(NamedTuple):
    """The cycles of one block.

    cycle (1,): the current cycle: whether it runs, its first kind, how many failures followed the
        first, the rarest kind of all, kind and target of the next, whether it ``lost``, when it
        began; the weight of its first kind (``base_weight``), and its weight now. Constants: the
        share of cycles without bias (``plain_share``), whether the model ``has_power_failures``.
        Totals: cycles that are ``done``; by weight, hours from the beginning of a cycle
        ``to_loss``, hours ``at_risk`` and the sum of their squares over the cycles, hours with an
        outage, and cycles with ``overlaps`` of outages.
    first_losses (kinds, 4): by the first kind: the columns above, of first losses of cycles.
    left, base, natural (kinds,): cycles still to be begun by each kind, their weight, and its
        probability.
    biased, biased_power (kinds, kinds): the same of a forced failure, by the rarest kind before;
        and of a forced power failure in the flush window.
    path, path_before, forced (MOST_FAILURES,): kinds of the failures after the first, the rarest
        kind before each, and the probability that it was forced, given what it is.
    struck, target_weights (brokers,): those that a failure of this cycle struck; weight as the
        target of the next forced failure.
    values, means (OBJECTIVES,): what this cycle added, by weight, and what all did.
    second_moments (OBJECTIVES, kinds): sum of the squares of the values, by the first kind, without
        its weight.
    scores (OBJECTIVES, kinds, kinds): values of the cycles in which a forced failure of a kind
        came, by the rarest kind before.
    totals, outages_by_length: by weight; as of `KernelState`.
    """

    cycle: NDArray[Any]
    first_losses: NDArray[np.float64]
    left: NDArray[np.int64]
    base: NDArray[np.float64]
    natural: NDArray[np.float64]
    biased: NDArray[np.float64]
    biased_power: NDArray[np.float64]
    path: NDArray[np.int64]
    path_before: NDArray[np.int64]
    forced: NDArray[np.float64]
    struck: NDArray[np.int64]
    target_weights: NDArray[np.float64]
    values: NDArray[np.float64]
    second_moments: NDArray[np.float64]
    means: NDArray[np.float64]
    scores: NDArray[np.float64]
    totals: NDArray[np.float64]
    outages_by_length: NDArray[np.float64]


def new_cycles(sim: KernelState, bias: Bias, begun_by: NDArray[np.int64]) -> Cycles:
    """No cycle is done yet.

    begun_by (kinds,).
    """
    brokers_of_a_rack = max(sim.control[0]["brokers"] / max(len(sim.racks), 1), 1.0)
    for records, chance, biased in (
        (sim.strikes, "share", _BIASED_CHANCE / brokers_of_a_rack),
        (sim.strikes, "spreads", _BIASED_CHANCE),
        (sim.strikes, "overlaps", _BIASED_CHANCE),
        (sim.strikes, "every", _BIASED_CHANCE),
        (sim.outages, "dies", _BIASED_CHANCE),
        (sim.outages, "hard", _BIASED_CHANCE),
    ):
        natural = records[chance]
        records[f"biased_{chance}"] = np.where(natural > 0.0, np.maximum(natural, biased), 0.0)
    rates = sim.strikes["per_hour"]
    natural = rates / rates.sum()
    cycle = np.zeros(1, dtype=CYCLE)
    cycle["plain_share"] = bias.plain
    following, kinds = np.array(bias.following), len(natural)
    power = np.where(sim.strikes["event"] == POWER, following, 0.0)
    of_power = power.sum(axis=1, keepdims=True)
    if of_power.all():
        cycle["has_power_failures"], power = 1, power / of_power
    cycles = int(begun_by.sum())
    base = np.zeros(kinds)
    begins = begun_by > 0
    base[begins] = natural[begins] * cycles / begun_by[begins]
    return Cycles(
        cycle=cycle,
        first_losses=np.zeros((kinds, 4)),
        left=begun_by.copy(),
        base=base,
        natural=natural,
        biased=following,
        biased_power=power,
        path=np.zeros(MOST_FAILURES, dtype=np.int64),
        path_before=np.zeros(MOST_FAILURES, dtype=np.int64),
        forced=np.zeros(MOST_FAILURES),
        struck=np.zeros(sim.control[0]["brokers"], dtype=np.int64),
        target_weights=np.zeros(sim.control[0]["brokers"]),
        values=np.zeros(OBJECTIVES),
        second_moments=np.zeros((OBJECTIVES, kinds)),
        means=np.zeros(OBJECTIVES),
        scores=np.zeros((OBJECTIVES, len(following), kinds)),
        totals=np.zeros(sim.totals.shape),
        outages_by_length=np.zeros(OUTAGE_BINS),
    )
