"""The cycle kernel's memory, beside that of the cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.sampler.compiled.memory_layout import OUTAGE_BINS, KernelState
from advisor.reliability.sampler.plan import Bias

# What the bias is for, and what the pilot learns from: losses that settings decide, losses that
# they do not; records lost and hours without writes, as settings decide.
LOST_BY_SETTINGS, LOST_BEYOND, RECORDS, NO_WRITES = range(4)
AIMS = 4
# A chance that is smaller happens with about this probability.
_LIKELY = 0.4


def _fields(whole: str, real: str) -> np.dtype[np.void]:
    kinds: list[tuple[str, type]] = [(name, np.int64) for name in whole.split()]
    return np.dtype([*kinds, *((name, np.float64) for name in real.split())])


CYCLE = _fields(
    "running course strikes lost beyond done lost_cycles",
    "begun base weight mixed due at_risk hours overlaps largest weights squares",
)
"""One record: the current cycle, and the totals of all."""


class Cycles(NamedTuple):
    """The cycles of one block.

    Attributes
    ----------
    cycle : array of CYCLE, shape (1,)
        The current cycle: whether it runs, the course that began it, how many failures followed
        the first, whether it ``lost`` and is ``beyond`` settings, when it began; the weight of
        its first course (``base``), and its weight now. Constants: the share of plain
        cycles (``mixed``). Totals: cycles
        that are ``done`` and ``lost_cycles``; by weight, losses that are ``due`` within a year,
        hours ``at_risk`` and hours with an outage, and cycles with ``overlaps`` of outages; the
        ``largest`` weight of a loss, the sum of the ``weights`` of losses and of their ``squares``.
    left : array of int, shape (courses,)
        Cycles still to be begun by each course.
    base : array of float, shape (courses,)
        Weight of a cycle that this course begins.
    natural : array of float, shape (courses,)
        Probability of each course.
    biased : array of float, shape (positions, courses)
        The same, with bias, for the second failure of a cycle, the third, and so on.
    boost : array of float, shape (positions,)
        Probability of that failure before the outages end, with bias.
    path : array of int, shape (positions,)
        Courses of the failures after the first.
    values : array of float, shape (AIMS,)
        What this cycle added, by weight.
    seconds : array of float, shape (AIMS, courses)
        Sum of the squares of the values, by the first course, without its weight.
    means : array of float, shape (AIMS,)
        Sum of the values.
    scores : array of float, shape (AIMS, positions, courses)
        What each course came before, by weight.
    totals : array of float, shape (2, ENTRIES, columns)
        What settings decide and what they do not, by weight; see `KernelState.totals`.
    outages_by_length : array of float, shape (OUTAGE_BINS,)
        By weight; see `KernelState.outages_by_length`.
    """

    cycle: NDArray[Any]
    left: NDArray[np.int64]
    base: NDArray[np.float64]
    natural: NDArray[np.float64]
    biased: NDArray[np.float64]
    boost: NDArray[np.float64]
    path: NDArray[np.int64]
    values: NDArray[np.float64]
    seconds: NDArray[np.float64]
    means: NDArray[np.float64]
    scores: NDArray[np.float64]
    totals: NDArray[np.float64]
    outages_by_length: NDArray[np.float64]


def new_cycles(sim: KernelState, bias: Bias, begun_by: NDArray[np.int64]) -> Cycles:
    """No cycle is done yet.

    Parameters
    ----------
    sim : KernelState
        Of the cluster.
    bias : Bias
    begun_by : array of int, shape (courses,)
        Cycles to be begun by each course.
    """
    brokers_of_a_rack = max(sim.control[0]["brokers"] / max(len(sim.racks), 1), 1.0)
    for records, chance, among in (
        (sim.strikes, "share", brokers_of_a_rack),
        (sim.strikes, "spreads", float(len(sim.racks) - 1)),
        (sim.strikes, "overlaps", 1.0),
        (sim.outages, "dies", 1.0),
    ):
        records[f"likely_{chance}"] = _likelier(records[chance], among)
    rates = sim.strikes["per_hour"]
    natural = rates / rates.sum()
    cycle = np.zeros(1, dtype=CYCLE)
    cycle["mixed"] = bias.plain
    following = np.array(bias.following)
    positions, courses = following.shape
    cycles = int(begun_by.sum())
    base = np.zeros(courses)
    some = begun_by > 0
    base[some] = natural[some] * cycles / begun_by[some]
    return Cycles(
        cycle=cycle,
        left=begun_by.copy(),
        base=base,
        natural=natural,
        biased=following,
        boost=np.array(bias.boost),
        path=np.zeros(positions, dtype=np.int64),
        values=np.zeros(AIMS),
        seconds=np.zeros((AIMS, courses)),
        means=np.zeros(AIMS),
        scores=np.zeros((AIMS, positions, courses)),
        totals=np.zeros((2, *sim.totals.shape)),
        outages_by_length=np.zeros(OUTAGE_BINS),
    )


def _likelier(chance: NDArray[np.float64], among: float) -> NDArray[np.float64]:
    """Make a chance so likely that it happens about once ``among`` so many, if it ever does."""
    return np.where(chance > 0.0, np.maximum(chance, _LIKELY / max(among, 1.0)), 0.0)
