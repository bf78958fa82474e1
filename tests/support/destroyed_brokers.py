"""Which brokers of a whole cluster are destroyed, as one Markov chain over all subsets.

It shares no code with the package. Loss means that all replicas of a set are destroyed at once, and
copying is instant. Sets are counted together because the chain knows every broker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse import linalg

YEAR = 8760.0


@dataclass(frozen=True)
class Destruction:
    """How brokers are destroyed; rates per year.

    Attributes
    ----------
    racks : tuple of int
        Rack of each broker.
    hours : float
        Mean time until a destroyed broker is replaced, each on its own.
    broker, rack : float
        Of each broker, and of each rack with all brokers in it.
    cluster, share : float
        Of events that destroy each broker with the probability ``share``.
    """

    racks: tuple[int, ...]
    hours: float
    broker: float = 0.0
    rack: float = 0.0
    cluster: float = 0.0
    share: float = 0.0


def first_loss(destruction: Destruction, sets: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Probability of a loss within a year that starts healthy, and mean years until one.

    Parameters
    ----------
    sets : sequence of sequence of int
        The brokers of each partition, numbered from 0.
    """
    brokers = len(destruction.racks)
    losing = _losing(brokers, sets)
    rows = [
        (source, target, rate)
        for source in np.flatnonzero(~losing).tolist()
        for target, rate in _moves(source, destruction)
        if target != source
    ]
    place = np.cumsum(~losing) - 1
    states = int(place[-1]) + 1
    source, target, rate = (np.array(column) for column in zip(*rows, strict=True))
    source, lost = place[source], losing[target]
    leave = np.bincount(source, rate, states)
    to_loss = np.bincount(source, np.where(lost, rate, 0.0), states)
    kept = sparse.csr_array(
        (rate[~lost], (source[~lost], place[target[~lost]])), shape=(states, states)
    )
    mean_hours = linalg.spsolve((sparse.diags_array(leave) - kept).tocsc(), np.ones(states))[0]
    return _within(YEAR, kept, leave.astype(float), to_loss.astype(float)), float(mean_hours) / YEAR


def _losing(brokers: int, sets: Sequence[Sequence[int]]) -> NDArray[np.bool_]:
    """Subsets that contain all replicas of a set, shape (2 ** brokers,)."""
    masks = np.arange(1 << brokers)
    losing = np.zeros(1 << brokers, dtype=bool)
    for replicas in {frozenset(each) for each in sets}:
        whole = sum(1 << broker for broker in replicas)
        losing |= masks & whole == whole
    return losing


def _moves(out: int, destruction: Destruction) -> Iterator[tuple[int, float]]:
    """Subsets that may come next, with their rates per hour."""
    racks = destruction.racks
    brokers = range(len(racks))
    for broker in brokers:
        if out >> broker & 1:
            yield out & ~(1 << broker), 1.0 / destruction.hours
        elif destruction.broker:
            yield out | 1 << broker, destruction.broker / YEAR
    if destruction.rack:
        for rack in set(racks):
            struck = sum(1 << broker for broker in brokers if racks[broker] == rack)
            yield out | struck, destruction.rack / YEAR
    if destruction.cluster:
        left = [broker for broker in brokers if not out >> broker & 1]
        for count in range(1, len(left) + 1):
            chance = destruction.share**count * (1.0 - destruction.share) ** (len(left) - count)
            for picked in combinations(left, count):
                struck = sum(1 << broker for broker in picked)
                yield out | struck, destruction.cluster / YEAR * chance


def _within(
    hours: float, kept: sparse.csr_array, leave: NDArray[np.float64], to_loss: NDArray[np.float64]
) -> float:
    """Probability of a loss in so many hours, by uniformisation; only positive terms are added."""
    fastest = float(leave.max()) * 1.01
    step = (kept / fastest + sparse.diags_array(1.0 - leave / fastest)).T.tocsr()
    jumps = stats.poisson(fastest * hours)
    most = int(jumps.isf(1e-14)) + 1
    later = jumps.sf(np.arange(most))
    at = np.zeros(len(leave))
    at[0] = 1.0
    lost = 0.0
    for some_later in later:
        lost += some_later * float(at @ to_loss) / fastest
        at = step @ at
    return lost
