"""How much a state can still bring before all is well: from its looks, and from what can lose.

:class:`advisor.reliability.chain.drift_bound.Drift` bounds the hours until all is well. Failures of a kind
come no more often than in the healthy state, so that on average at most rate times hours of them
are met. That bounds the losses, since the rules of the protocol leave few ways to lose:

* Records are lost by the destruction of a log, by a *fall* of the leader (crash, power, restart,
  isolation), or when a partition without a leader gets one. It is leaderless by a fall of its
  leader alone. So every loss but one takes a destruction or such a fall, and a fall can have
  two: at once, and when a leader is back.
* Where elections are clean and acks=all, a failure loses at once only if it destroys a log, or
  takes power from the whole ISR before it flushed. Records are acknowledged only while the ISR is
  at least ``min.insync.replicas`` large, so that one failure has to strike as many. What power
  takes that goes within the flush after another failure stopped the writing is not counted here;
  :mod:`advisor.reliability.chain.truncation_error` adds it.
* A clean election loses only from the *brink* (:mod:`advisor.reliability.partition.election_risk`), and leaves it. A
  partition is armed by a destruction alone, and comes to the brink by a destruction, or by a
  fall of its leader while it is armed.
* Total losses come by destructions and elections in this way whatever the acks.

Tests hold these claims against every state that the rules let a partition reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.chain import drift_bound
from advisor.reliability.failures.mechanisms import transition
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.election_risk import (
    ELECTION_RISK,
    EMPTY_ELECTABLE,
    OFFLINE,
    OFFLINE_EMPTY_ELECTABLE,
    PENDING_COPIES,
)

Vector = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class LossRates:
    """Rates of what a loss needs, per hour.

    Attributes
    ----------
    destructions : float
        Failures that destroy a log.
    outages_of_power : float
        Others that may lose what was not flushed.
    falls : float
        Failures that strike the leader.
    longest_hours : float
        Mean time until all is well from the worst of all states, at most.
    """

    destructions: float
    outages_of_power: float
    falls: float
    longest_hours: float

    def elections(self, election_risks: Vector, hours: Vector) -> Vector:
        """Mean number of elections that lose until all is well, at most.

        Parameters
        ----------
        perils : array, shape (states,)
            ARMED, BRINK or another.
        hours : array, shape (states,)
            Mean time until all is well, at most.

        Returns
        -------
        array, shape (states,)
        """
        # A destruction leads to the brink, or arms the partition for the falls to come.
        later = self.destructions and self.destructions * (1.0 + self.falls * self.longest_hours)
        armed = (election_risks == EMPTY_ELECTABLE) | (election_risks == OFFLINE_EMPTY_ELECTABLE)
        most: Vector = times(later + np.where(armed, self.falls, 0.0), hours) + (
            election_risks == OFFLINE_EMPTY_ELECTABLE
        )
        return most


def times(rate: Vector | float, hours: Vector) -> Vector:
    """What never happens does not happen in endless hours either."""
    with np.errstate(invalid="ignore"):
        product: Vector = np.where(np.greater(rate, 0.0), rate * hours, 0.0)
    return product


def loss_rates(
    rates: Mapping[str, float],
    racks: tuple[int, ...],
    setup: ChainConstants,
    drift: drift_bound.Drift,
) -> LossRates:
    """Sum up what a loss needs.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    racks : tuple of int
        Rack of each replica.
    setup : Setup
    drift : Drift
        Of the same rates and racks.
    """
    destructions = outages_of_power = falls = 0.0
    for name, rate in rates.items():
        failure = transition(name)
        if failure.ends:
            continue
        sites, struck = drift_bound.reach(name, racks)
        falls += rate * drift_bound.strikes_on_leader(name, sites)
        if failure.destroys:
            destructions += rate * sites
        elif failure.cuts_power and setup.page_cache and struck >= setup.policy.min_isr:
            outages_of_power += rate * sites
    return LossRates(destructions, outages_of_power, falls, drift.longest_hours)


def strikes_per_hour(
    rates: Mapping[str, float], racks: tuple[int, ...], power: bool = False
) -> float:
    """How often any of the replicas is struck, at most; with ``power`` by a loss of power only.

    Nothing but a failure stops the writing, so that it stops no more often.
    """
    return math.fsum(
        rate * drift_bound.reach(name, racks)[0]
        for name, rate in rates.items()
        if not (failure := transition(name)).ends and (failure.cuts_power or not power)
    )


class ExcursionBound(NamedTuple):
    """What left-out states may bring until all is well, on average, at most.

    Attributes
    ----------
    losses, totals, events, hours : arrays, shape (states,)
        Loss events, losses of everything, failures and ends of spells, and time.
    """

    losses: Vector
    totals: Vector
    events: Vector
    hours: Vector


class Limits:
    """Bounds on what states are worth, from their looks alone.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    racks : tuple of int
        Rack of each replica.
    setup : Setup
    most_slack : float
        See :func:`advisor.reliability.chain.drift_bound.drift`.
    """

    def __init__(
        self,
        rates: Mapping[str, float],
        racks: tuple[int, ...],
        setup: ChainConstants,
        most_slack: float = math.inf,
    ) -> None:
        self._drift = drift_bound.drift(rates, racks, most_slack)
        self._harm = loss_rates(rates, racks, setup, self._drift)
        self._clean = not setup.policy.unclean
        self._acks_all = setup.acks == "all"

    def until_well(self, waits: IntArray, election_risks: Vector) -> ExcursionBound:
        """What states are worth at most.

        Parameters
        ----------
        waits : array of int, shape (states, waits)
        perils : array, shape (states, 2)
            See :class:`advisor.reliability.statespace.state_graph.Graph`.
        """
        near = election_risks[:, ELECTION_RISK]
        hours, events = self._drift.until_well(waits, election_risks[:, PENDING_COPIES])
        leaderless = (near == OFFLINE) | (near == OFFLINE_EMPTY_ELECTABLE)
        fallen = times(self._harm.falls, hours)
        destroyed = times(self._harm.destructions, hours)
        # A change of leader may cost two tails.
        at_once = 1.0 if self._acks_all else 2.0
        losses = np.minimum(2.0 * events, leaderless + destroyed + (at_once + 1.0) * fallen)
        totals = np.minimum(events, leaderless + destroyed + 2.0 * fallen)
        if self._clean:
            gone = destroyed + self._harm.elections(near, hours)
            totals = np.minimum(totals, gone)
            if self._acks_all:
                losses = np.minimum(losses, gone + times(self._harm.outages_of_power, hours))
        return ExcursionBound(losses, totals, events, hours)
