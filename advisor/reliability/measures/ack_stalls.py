"""Stalls of acks=all: the wait until a failed follower leaves the ISR.

Records written during a stall are acknowledged then, unless their producer times out first.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.case import IsrStalls, ProducerTimeouts
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import HANGING, BrokerEvent, table, transitions
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver.generator import Vector
from advisor.reliability.solver.once_per_chain import once_per_chain
from advisor.reliability.solver.sojourn_time import SojournTime

# Gauss-Legendre with 16 points integrates exp(-x) from 0 to _SMOOTH to machine precision.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SMOOTH = 8.0
# A hung follower leaves the ISR after 1 to 1.5 times replica.lag.time.max.ms.
_MAX_LAG_TIMES = 1.5


def refused_hours_dead(stalls: IsrStalls, waiting_hours: float) -> float:
    """Hours of refused writes in one stall by a dead follower."""
    return max(stalls.dead_hours - waiting_hours, 0.0)


def refused_hours_hung(stalls: IsrStalls, waiting_hours: float) -> float:
    """Mean hours of refused writes in one stall by a hung follower: E[(stall - timeout)+]."""
    lag = stalls.lag_hours
    if waiting_hours <= lag:
        return stalls.hung_hours - waiting_hours
    remaining_hours = max(_MAX_LAG_TIMES * lag - waiting_hours, 0.0)
    return remaining_hours * remaining_hours / lag if remaining_hours > 0.0 else 0.0


def refused_hours_before_outage(
    stalls: IsrStalls, outage: SojournTime, timeouts: ProducerTimeouts
) -> Vector:
    """Mean hours of refused writes in a stall by a hung follower that ends in an outage.

    A record written v hours before the outage is refused if v exceeds the timeout in a stall, or
    if the outage outlasts the smaller of the timeout in an outage and what v leaves of the
    delivery timeout. Retries used up during the stall are not deducted.

    Returns (states,): by the state in which the outage begins; 0 for states without outage.
    """
    longest = _MAX_LAG_TIMES * stalls.lag_hours
    waits = min(timeouts.waiting_hours, longest)
    at_once = outage.weighted_survival(np.zeros(1), np.array([refused_hours_hung(stalls, waits)]))
    if math.isinf(timeouts.outage_hours):
        return at_once
    # A record written at most this long before the outage has all of `outage_hours` left.
    full_patience = timeouts.delivery_hours - timeouts.outage_hours
    ends = sorted({0.0, waits, *(e for e in (stalls.lag_hours, full_patience) if 0.0 < e < waits)})
    hours, weights = [], []
    for begin, end in pairwise(ends):
        hours_before, weight = _graded_quadrature(begin, end, outage.pace)
        patience = np.minimum(timeouts.delivery_hours - hours_before, timeouts.outage_hours)
        hours.append(np.maximum(patience, 0.0))
        stalled = (longest - hours_before) / (longest - stalls.lag_hours)
        weights.append(weight * np.minimum(stalled, 1.0))
    if not hours:
        return at_once
    return at_once + outage.weighted_survival(np.concatenate(hours), np.concatenate(weights))


def _graded_quadrature(begin: float, end: float, pace: float) -> tuple[Vector, Vector]:
    """Quadrature points and weights on intervals that halve towards ``end``.

    The integrand decays from the end at ``pace`` at most; the grading resolves slower decays too.
    """
    halvings = max(math.ceil(math.log2(max(pace * (end - begin) / _SMOOTH, 1.0))), 0)
    edges = end - (end - begin) * np.concatenate([0.5 ** np.arange(halvings + 1), [0.0]])
    half = np.diff(edges)[:, None] / 2.0
    points = edges[:-1, None] + half * (1.0 + _POINTS)
    return points.ravel(), (half * _WEIGHTS).ravel()


@once_per_chain
def stalling(structure: Structure) -> NDArray[np.bool_]:
    """Mark the transitions that stall acks=all, shape (transitions,).

    A follower in the ISR fails and the partition stays writable. A controlled shutdown leaves the
    ISR at once; a leader change is an outage. A hung follower stalls writes before it leaves the
    ISR, so this stall counts even if an outage follows; for a dead one it is part of the outage.
    """
    source, target = structure.source, structure.target
    writable = structure.writable
    stops = np.array(
        [entry.mechanism.effect is BrokerEvent.STOP for entry in transitions(structure.rate_names)]
    )
    shrinks = structure.in_sync[target] < structure.in_sync[source]
    excluded = structure.with_effect(Effect.LEADER_CHANGE | Effect.TRUNCATED)
    waits = writable[source] & (writable[target] | hanging(structure))
    stalled: NDArray[np.bool_] = waits & shrinks & ~excluded & ~stops.astype(bool)[structure.rate]
    return stalled


@once_per_chain
def hanging(structure: Structure) -> NDArray[np.bool_]:
    """Mark the transitions in which a follower hangs, shape (transitions,)."""
    by_name = np.array([entry.hangs for entry in transitions(structure.rate_names)], dtype=bool)
    by_transition: NDArray[np.bool_] = by_name[structure.rate]
    return by_transition


def refused_hours(
    structure: Structure,
    stalled: NDArray[np.bool_],
    outage: SojournTime,
    stalls: IsrStalls,
    timeouts: ProducerTimeouts,
) -> Vector:
    """Mean hours of refused writes in the stall at each transition, shape (transitions,)."""
    hangs, writable = hanging(structure), structure.writable[structure.target]
    before_outage = np.zeros(structure.states)
    if (stalled & hangs & ~writable).any() and stalls.lag_hours > 0.0:
        before_outage = refused_hours_before_outage(stalls, outage, timeouts)
    without_outage = refused_hours_hung(stalls, timeouts.waiting_hours)
    hung = np.where(writable, without_outage, before_outage[structure.target])
    hours = np.where(hangs, hung, refused_hours_dead(stalls, timeouts.waiting_hours))
    return np.where(stalled, hours, 0.0)


def max_refused_hours(
    mechanisms: frozenset[str], stalls: IsrStalls, timeouts: ProducerTimeouts
) -> float:
    """Upper bound on the mean hours of refused writes in one stall, by what can happen."""
    if math.isinf(timeouts.outage_hours):
        return 0.0
    hangs = any(entry.name in mechanisms for entry in table().with_effect(*HANGING))
    hung = stalls.hung_hours if hangs else 0.0
    return max(hung, refused_hours_dead(stalls, timeouts.waiting_hours))
