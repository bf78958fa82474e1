"""The memory of paths that split, beside that of the cluster."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.sampler.compiled.memory_layout import (
    OUTAGE_BINS,
    KernelState,
    record_dtype,
)

PATH = record_dtype(
    "depth level mechanisms_with_clocks kinds_without_clocks main_events retrial_events lost "
    "loss_moments",
    "weight next_split counted_until due at_risk weights squares largest",
)
"""One record: the current path, and the totals of all."""
FRAME = record_dtype("floor level retrial left", "factor main_factor hours end within mean")
LEVEL = record_dtype("sets risen begun", "retrials within")
# Of `KernelState`: what a split saves.
_SAVED = (
    *("control", "outages", "brokers", "copies", "clocks", "running", "renewals", "earliest"),
    *("sets", "gaps", "attribution"),
)


class Paths(NamedTuple):
    """The paths of one block.

    path (1,): the current path: how many splits it is in (``depth``), the level of its worst set,
        its weight, when it splits again if nothing fails (``next_split``), and until when its time
        is counted. Constants: the numbers of mechanisms with clocks, and of courses without.
        Totals: events of the main path and of retrials; paths that ``lost``, and moments of losses;
        by weight, years with a loss (``due``), hours ``at_risk``, and of all first losses the sum
        of the ``weights``, of their ``squares``, and the ``largest``.
    frames (levels,): the splits that the path is in: the level below which it ends, and that after
        the split; whether the path is a ``retrial``, and how many of them are ``left``; the path's
        factor of the weight, and that of the path that went on (``main_factor``); ``hours`` after
        which the outages should have ended, when that is, the sum of the probabilities of failures
        ``within`` them, and the ``mean`` number of retrials.
    levels (levels + 1,): by number of replicas of a set that are out or not in sync: how many sets
        have it, how often a path rose to it and how many retrials began there; how many
        ``retrials`` begin there for each failure that is expected during the outages, and the sum
        of these expected failures, ``within`` the outages of all splits.
    chances (levels, clocks of renewals): by split, the probability that each is due within its
        hours.
    totals, outages_by_length: by weight; as of `KernelState`. From ``control`` on: the cluster at
        each split.
    """

    path: NDArray[Any]
    frames: NDArray[Any]
    levels: NDArray[Any]
    level_of: NDArray[np.int64]
    chances: NDArray[np.float64]
    totals: NDArray[np.float64]
    outages_by_length: NDArray[np.float64]
    control: NDArray[Any]
    outages: NDArray[Any]
    brokers: NDArray[Any]
    copies: NDArray[Any]
    clocks: NDArray[Any]
    running: NDArray[np.int64]
    renewals: NDArray[Any]
    earliest: NDArray[np.int64]
    sets: NDArray[Any]
    gaps: NDArray[np.float64]
    attribution: NDArray[np.float64]
    saved_levels: NDArray[np.int64]
    saved_level_of: NDArray[np.int64]


def new_paths(sim: KernelState, retrials: tuple[float, ...]) -> Paths:
    """No path has begun; retrials are given by level, from 1."""
    depth, sets = len(retrials), len(sim.sets)
    path = np.zeros(1, dtype=PATH)
    path["weight"], path["next_split"] = 1.0, np.inf
    path["mechanisms_with_clocks"] = len(set(sim.renewals["kind"].tolist()))
    path["kinds_without_clocks"] = np.count_nonzero(sim.strikes["per_hour"])
    levels = np.zeros(depth + 1, dtype=LEVEL)
    levels["sets"][0] = sets
    levels["retrials"][1:] = retrials
    at_splits = {
        name: np.zeros((depth, *getattr(sim, name).shape), dtype=getattr(sim, name).dtype)
        for name in _SAVED
    }
    return Paths(
        path=path,
        frames=np.zeros(depth, dtype=FRAME),
        levels=levels,
        level_of=np.zeros(sets, dtype=np.int64),
        chances=np.zeros((depth, len(sim.renewals))),
        totals=np.zeros(sim.totals.shape),
        outages_by_length=np.zeros(OUTAGE_BINS),
        saved_levels=np.zeros((depth, depth + 1), dtype=np.int64),
        saved_level_of=np.zeros((depth, sets), dtype=np.int64),
        **at_splits,
    )
