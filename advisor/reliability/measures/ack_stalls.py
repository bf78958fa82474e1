"""What acks=all makes producers wait for: followers that have not left the ISR yet.

Records written meanwhile are acknowledged once the follower is out, unless their producer gives
up before. It has more patience while it waits than in an outage, where every attempt fails at
once; see `advisor.protocol.clients.retry_budget`.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.case import IsrStalls, ProducerTimeouts
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures.mechanisms import BrokerEvent, table, transition
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver.generator import Vector
from advisor.reliability.solver.sojourn_time import SojournTime

# Gauss's rule of so many points integrates exp(-x) over 0 to _SMOOTH to all digits.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SMOOTH = 8.0
# The follower is struck from the ISR after 1 to 1.5 lag times.
_LONGEST = 1.5


def beyond_dead(stalls: IsrStalls, waiting_hours: float) -> float:
    """Hours of a wait for the dead in which records are written that are given up."""
    return max(stalls.dead_hours - waiting_hours, 0.0)


def beyond_hung(stalls: IsrStalls, waiting_hours: float) -> float:
    """The same of a wait for one that hangs, on average: E[(wait - patience)+]."""
    lag = stalls.lag_hours
    if waiting_hours <= lag:
        return stalls.hung_hours - waiting_hours
    left = max(_LONGEST * lag - waiting_hours, 0.0)
    return left * left / lag if left > 0.0 else 0.0


def beyond_into(stalls: IsrStalls, outage: SojournTime, timeouts: ProducerTimeouts) -> Vector:
    """The same where an outage follows at once, for each state that it may begin in.

    A record that is written v before the follower leaves is given up if v is beyond the
    patience of waiting, or if the outage lasts beyond what is left: the patience in outages,
    and of the delivery timeout what v leaves. Attempts that failed during the wait are not
    taken off the retries, which makes a difference of some backoffs.

    Returns
    -------
    array, shape (states,)
        Mean hours; 0 where it is no outage.
    """
    longest = _LONGEST * stalls.lag_hours
    waits = min(timeouts.waiting_hours, longest)
    surely = outage.weighted_survival(np.zeros(1), np.array([beyond_hung(stalls, waits)]))
    if math.isinf(timeouts.outage_hours):
        return surely
    # Written v before the outage, a record may have `outage_hours` left for it, or less.
    full = timeouts.delivery_hours - timeouts.outage_hours
    ends = sorted({0.0, waits, *(e for e in (stalls.lag_hours, full) if 0.0 < e < waits)})
    hours, weights = [], []
    for begin, end in pairwise(ends):
        written, share = _graded(begin, end, outage.pace)
        left = np.minimum(timeouts.delivery_hours - written, timeouts.outage_hours)
        hours.append(np.maximum(left, 0.0))
        waiting = (longest - written) / (longest - stalls.lag_hours)
        weights.append(share * np.minimum(waiting, 1.0))
    if not hours:
        return surely
    return surely + outage.weighted_survival(np.concatenate(hours), np.concatenate(weights))


def _graded(begin: float, end: float, pace: float) -> tuple[Vector, Vector]:
    """Points and weights between two times, the closer to the end the denser.

    The chance that an outage lasts beyond what is left falls off from the end at ``pace`` at most:
    parts that halve towards it resolve every slower decay, too.
    """
    halvings = max(math.ceil(math.log2(max(pace * (end - begin) / _SMOOTH, 1.0))), 0)
    edges = end - (end - begin) * np.concatenate([0.5 ** np.arange(halvings + 1), [0.0]])
    half = np.diff(edges)[:, None] / 2.0
    points = edges[:-1, None] + half * (1.0 + _POINTS)
    return points.ravel(), (half * _WEIGHTS).ravel()


def stalling(structure: Structure) -> NDArray[np.bool_]:
    """Failures of followers in the ISR with writes going on before and after.

    A controlled shutdown leaves the ISR at once, and a change of leader is counted as such. Who
    lags is waited for before the spell in which he is out of the ISR, so that this wait counts
    even where no writes follow; for the dead it is part of the outage.

    Returns
    -------
    array, shape (transitions,)
    """
    now, then = structure.source, structure.target
    writable = structure.writable
    lags = lagging(structure)
    quick = np.array(
        [transition(name).mechanism.effect is BrokerEvent.STOP for name in structure.rate_names]
    )
    fewer = structure.in_sync[then] < structure.in_sync[now]
    other = structure.did(Effect.LEADER_CHANGE | Effect.TRUNCATED)
    asked = writable[now] & (writable[then] | lags)
    found: NDArray[np.bool_] = asked & fewer & ~other & ~quick.astype(bool)[structure.rate]
    return found


def lagging(structure: Structure) -> NDArray[np.bool_]:
    """Transitions by which somebody begins to lag, shape (transitions,)."""
    names = np.array([transition(name).hangs for name in structure.rate_names], dtype=bool)
    found: NDArray[np.bool_] = names[structure.rate]
    return found


def refused_hours(
    structure: Structure,
    stalled: NDArray[np.bool_],
    outage: SojournTime,
    stalls: IsrStalls,
    timeouts: ProducerTimeouts,
) -> Vector:
    """Hours of writing that producers give up in each transition's wait, shape (transitions,).

    Parameters
    ----------
    structure : Structure
    stalled : array of bool, shape (transitions,)
        See :func:`stalling`.
    outage : Stays
        In the states without writing.
    stalls, timeouts
    """
    lags, written = lagging(structure), structure.writable[structure.target]
    into = np.zeros(structure.states)
    if (stalled & lags & ~written).any() and stalls.lag_hours > 0.0:
        into = beyond_into(stalls, outage, timeouts)
    hung = np.where(written, beyond_hung(stalls, timeouts.waiting_hours), into[structure.target])
    hours = np.where(lags, hung, beyond_dead(stalls, timeouts.waiting_hours))
    return np.where(stalled, hours, 0.0)


def most_refused_hours(
    named: frozenset[str], stalls: IsrStalls, timeouts: ProducerTimeouts
) -> float:
    """Of one wait at most, on average, whatever follows it.

    Parameters
    ----------
    named : frozenset of str
        Mechanisms that can happen.
    stalls, timeouts
    """
    if math.isinf(timeouts.outage_hours):
        return 0.0
    lags = any(entry.name in named for entry in table().with_effect(BrokerEvent.LAG))
    hung = stalls.hung_hours if lags else 0.0
    return max(hung, beyond_dead(stalls, timeouts.waiting_hours))
