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
# After so many failures beyond the first, a cycle goes on without bias.
MOST_FAILURES = 40
# A smaller chance happens with this probability; to one broker of a rack, if to several.
_LIKELY = 0.5


def _fields(whole: str, real: str) -> np.dtype[np.void]:
    kinds: list[tuple[str, type]] = [(name, np.int64) for name in whole.split()]
    return np.dtype([*kinds, *((name, np.float64) for name in real.split())])


CYCLE = _fields(
    "running course strikes rarest next_course next_target lost beyond done lost_cycles",
    "begun base weight mixed boost lengthened due at_risk hours overlaps largest weights squares",
)
"""One record: the current cycle, and the totals of all."""


class Cycles(NamedTuple):
    """The cycles of one block.

    Attributes
    ----------
    cycle : array of CYCLE, shape (1,)
        The current cycle: whether it runs, the course that began it, how many failures followed the
        first, the ``rarest`` of all, course and target of the next, whether it ``lost`` and is
        ``beyond`` settings, when it began; the weight of its first course (``base``), and its
        weight now. Constants: the share of plain cycles (``mixed``), and the probability that a
        failure is brought about before the outages end (``boost``), and that the outage that began
        last is drawn longer (``lengthened``). Totals: cycles that are ``done`` and ``lost_cycles``;
        by weight, losses that are ``due`` within a year, hours ``at_risk`` and hours with an
        outage, and cycles with ``overlaps`` of outages; the ``largest`` weight of a loss, the sum
        of the ``weights`` of losses and of their ``squares``.
    left : array of int, shape (courses,)
        Cycles still to be begun by each course.
    base : array of float, shape (courses,)
        Weight of a cycle that this course begins.
    natural : array of float, shape (courses,)
        Probability of each course.
    biased : array of float, shape (courses, courses)
        The same of a failure that is brought about, by the rarest course before.
    struck : array of int, shape (brokers,)
        Brokers that a failure of this cycle struck.
    wanted : array of float, shape (brokers,)
        How much the next failure aims at each.
    path, path_before : array of int, shape (MOST_FAILURES,)
        Courses of the failures after the first, and the rarest before each.
    brought_about : array of float, shape (MOST_FAILURES,)
        Probability that each was brought about, given what it is.
    values : array of float, shape (AIMS,)
        What this cycle added, by weight.
    seconds : array of float, shape (AIMS, courses)
        Sum of the squares of the values, by the first course, without its weight.
    means : array of float, shape (AIMS,)
        Sum of the values.
    scores : array of float, shape (AIMS, courses, courses)
        What a course came before that was brought about, by weight, by the rarest before that.
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
    path: NDArray[np.int64]
    path_before: NDArray[np.int64]
    brought_about: NDArray[np.float64]
    struck: NDArray[np.int64]
    wanted: NDArray[np.float64]
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
    for records, chance, likely in (
        (sim.strikes, "share", _LIKELY / brokers_of_a_rack),
        (sim.strikes, "spreads", _LIKELY),
        (sim.strikes, "overlaps", _LIKELY),
        (sim.outages, "dies", _LIKELY),
    ):
        natural = records[chance]
        records[f"likely_{chance}"] = np.where(natural > 0.0, np.maximum(natural, likely), 0.0)
    rates = sim.strikes["per_hour"]
    natural = rates / rates.sum()
    cycle = np.zeros(1, dtype=CYCLE)
    cycle["mixed"], cycle["boost"], cycle["lengthened"] = bias.plain, bias.boost, bias.lengthened
    following = np.array(bias.following)
    courses = len(following)
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
        path=np.zeros(MOST_FAILURES, dtype=np.int64),
        path_before=np.zeros(MOST_FAILURES, dtype=np.int64),
        brought_about=np.zeros(MOST_FAILURES),
        struck=np.zeros(sim.control[0]["brokers"], dtype=np.int64),
        wanted=np.zeros(sim.control[0]["brokers"]),
        values=np.zeros(AIMS),
        seconds=np.zeros((AIMS, courses)),
        means=np.zeros(AIMS),
        scores=np.zeros((AIMS, courses, courses)),
        totals=np.zeros((2, *sim.totals.shape)),
        outages_by_length=np.zeros(OUTAGE_BINS),
    )
