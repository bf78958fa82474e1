"""What acks=all makes producers wait for: followers that have not left the ISR yet.

Records written meanwhile are acknowledged once the follower is out, unless their producer gives
up before. It has more patience while it waits than in an outage, where every attempt fails at
once; see `advisor.protocol.clients.retry_budget`.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.protocol.clients.retry_budget import retry_budget_ms, waiting_budget_ms
from advisor.protocol.rules.config import Config
from advisor.reliability.chain.ctmc import Structure
from advisor.reliability.failures import transition_rates
from advisor.reliability.failures.failure_model import FailureModel
from advisor.reliability.failures.mechanisms import BrokerEvent, table, transition
from advisor.reliability.partition.effects import Effect
from advisor.reliability.solver.generator import Vector
from advisor.reliability.solver.sojourn_time import SojournTime

_MS_PER_HOUR = 3_600_000.0
# Gauss's rule of so many points integrates exp(-x) over 0 to _SMOOTH to all digits.
_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(16)
_SMOOTH = 8.0
# The follower is struck from the ISR after 1 to 1.5 lag times.
_LONGEST = 1.5


class ProducerTimeouts(NamedTuple):
    """How long a producer waits before it gives a record up; each may be infinite.

    Attributes
    ----------
    outage_hours : float
        While attempts fail at once.
    waiting_hours : float
        While the leader does not answer; never less.
    delivery_hours : float
        Altogether.
    """

    outage_hours: float
    waiting_hours: float
    delivery_hours: float

    @classmethod
    def of(cls, config: Config) -> ProducerTimeouts:
        """The patience of a configuration's producers."""
        whole = math.inf if config.delivery_timeout_ms is None else config.delivery_timeout_ms
        return cls(
            retry_budget_ms(config) / _MS_PER_HOUR,
            waiting_budget_ms(config) / _MS_PER_HOUR,
            whole / _MS_PER_HOUR,
        )


class IsrStalls(NamedTuple):
    """For how long acks=all waits for a follower that stops fetching; 0 with other acks.

    Attributes
    ----------
    dead_hours : float
        Until the controller notices that it is dead.
    lag_hours : float
        ``replica.lag.time.max.ms``: one that hangs leaves after 1 to 1.5 times that, evenly spread.
    """

    dead_hours: float
    lag_hours: float

    @classmethod
    def of(cls, config: Config, model: FailureModel) -> IsrStalls:
        """The waits of a configuration's leaders; see `rates.stall_hours`."""
        dead, hung = transition_rates.stall_hours(config, model)
        return cls(dead, hung / transition_rates.MEAN_LAG_TIMES)

    @property
    def hung_hours(self) -> float:
        """The mean wait for a follower that hangs."""
        return transition_rates.MEAN_LAG_TIMES * self.lag_hours

    def beyond_dead(self, waiting_hours: float) -> float:
        """Hours of a wait for the dead in which records are written that are given up."""
        return max(self.dead_hours - waiting_hours, 0.0)

    def beyond_hung(self, waiting_hours: float) -> float:
        """The same of a wait for one that hangs, on average: E[(wait - patience)+]."""
        lag = self.lag_hours
        if waiting_hours <= lag:
            return self.hung_hours - waiting_hours
        left = max(_LONGEST * lag - waiting_hours, 0.0)
        return left * left / lag if left > 0.0 else 0.0

    def beyond_into(self, outage: SojournTime, patience: ProducerTimeouts) -> Vector:
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
        longest = _LONGEST * self.lag_hours
        waits = min(patience.waiting_hours, longest)
        surely = outage.weighted_survival(np.zeros(1), np.array([self.beyond_hung(waits)]))
        if math.isinf(patience.outage_hours):
            return surely
        # Written v before the outage, a record may have `outage_hours` left for it, or less.
        full = patience.delivery_hours - patience.outage_hours
        ends = sorted({0.0, waits, *(e for e in (self.lag_hours, full) if 0.0 < e < waits)})
        hours, weights = [], []
        for begin, end in pairwise(ends):
            written, share = _graded(begin, end, outage.pace)
            left = np.minimum(patience.delivery_hours - written, patience.outage_hours)
            hours.append(np.maximum(left, 0.0))
            waiting = (longest - written) / (longest - self.lag_hours)
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
    waits: IsrStalls,
    patience: ProducerTimeouts,
) -> Vector:
    """Hours of writing that producers give up in each transition's wait, shape (transitions,).

    Parameters
    ----------
    structure : Structure
    stalled : array of bool, shape (transitions,)
        See :func:`stalling`.
    outage : Stays
        In the states without writing.
    waits, patience
    """
    lags, written = lagging(structure), structure.writable[structure.target]
    into = np.zeros(structure.states)
    if (stalled & lags & ~written).any() and waits.lag_hours > 0.0:
        into = waits.beyond_into(outage, patience)
    hung = np.where(written, waits.beyond_hung(patience.waiting_hours), into[structure.target])
    hours = np.where(lags, hung, waits.beyond_dead(patience.waiting_hours))
    return np.where(stalled, hours, 0.0)


def most_refused_hours(
    named: frozenset[str], waits: IsrStalls, patience: ProducerTimeouts
) -> float:
    """Of one wait at most, on average, whatever follows it.

    Parameters
    ----------
    named : frozenset of str
        Mechanisms that can happen.
    waits, patience
    """
    if math.isinf(patience.outage_hours):
        return 0.0
    lags = any(entry.name in named for entry in table().with_effect(BrokerEvent.LAG))
    hung = waits.hung_hours if lags else 0.0
    return max(hung, waits.beyond_dead(patience.waiting_hours))


__all__ = [
    "IsrStalls",
    "ProducerTimeouts",
    "lagging",
    "most_refused_hours",
    "refused_hours",
    "stalling",
]
