"""Bound on the losses of an excursion: which events can lose records at all.

:class:`~advisor.reliability.chain.drift_bound.Drift` bounds the hours until every replica is
healthy. Failures of a kind come no more often than in the healthy state, so that on average at most
rate times hours of them occur. The rules of the protocol leave few ways to lose records:

* By the destruction of a log, by a failure of the leader (crash, power, restart, isolation), or by
  the election of a leader for a partition without one. A partition loses its leader by a failure of
  that leader only. So every loss but one takes a destruction or a leader failure, and a leader
  failure can have two: at once, and at the next election.
* A limping broker may die in the end, which is a power failure of one broker: each begins with a
  failure of its kind, or is limping already.
* With clean elections and acks=all a failure loses at once only if it destroys a log or cuts power
  of the whole ISR before a flush. Records are acknowledged only while the ISR has at least
  ``min.insync.replicas`` members, so that one failure has to strike as many.
  :mod:`advisor.reliability.chain.truncation_error` adds power failures within the flush window.
* A clean election loses only from OFFLINE_EMPTY_ELECTABLE
  (:mod:`advisor.reliability.partition.election_risk`), and leaves it. A replica becomes
  EMPTY_ELECTABLE by a destruction only, and offline by a destruction or a leader failure.
* Where the controller quorum can be lost, members of the ISR and the ELR may be stale
  (:func:`~advisor.reliability.partition.election_risk.members_left_behind`), and an election loses
  more. They become so by a destruction, or by a power failure of any replica while there is no
  controller; and an empty member of the ELR is electable only after the quorum was lost.
* With acks=1 or 0 each change of leader may drop two tails; for a leader that failed without a
  controller that happens when the controller is back.
* Total losses come by destructions and elections in this way whatever the acks.

Tests check these claims in every state that the rules let a partition reach.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.chain import drift_bound
from advisor.reliability.failures.mechanisms import Scope, death_of, table, transition
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.election_risk import (
    ELECTION_RISK,
    EMPTY_ELECTABLE,
    EMPTY_IN_ELR,
    NO_QUORUM,
    OFFLINE,
    OFFLINE_EMPTY_ELECTABLE,
    PENDING_COPIES,
    STALE_MEMBER,
    UNSEEN,
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
        Failures of the leader.
    longest_hours : float
        Mean time until all is healthy from the worst of all states, at most.
    lost_quorums : float
        Failures after which there may be no controller quorum.
    powers : float
        Power failures of any replica.
    """

    destructions: float
    outages_of_power: float
    falls: float
    longest_hours: float
    lost_quorums: float = 0.0
    powers: float = 0.0

    @property
    def elections_to_come(self) -> float:
        """Mean number of elections that lose after a member became stale, at most."""
        return 1.0 + (self.falls and self.falls * self.longest_hours)

    def elections(self, election_risks: Vector, hours: Vector, dying: Vector) -> Vector:
        """Mean number of elections that lose until all is healthy, at most.

        Parameters
        ----------
        election_risks : array, shape (states,)
            An election risk, see :mod:`advisor.reliability.partition.election_risk`.
        hours : array, shape (states,)
            Mean time until all is healthy, at most.
        dying : array, shape (states,)
            Mean number of limping brokers that die.

        Returns
        -------
        array, shape (states,)
        """
        # A destruction makes an empty replica electable, at once or at a later leader failure.
        later = self.destructions and self.destructions * self.elections_to_come
        empty_electable = (election_risks == EMPTY_ELECTABLE) | (
            election_risks == OFFLINE_EMPTY_ELECTABLE
        )
        falls = times(later + np.where(empty_electable, self.falls, 0.0), hours)
        falls += np.where(empty_electable, dying, 0.0)
        most: Vector = falls + (election_risks == OFFLINE_EMPTY_ELECTABLE)
        return most

    def elections_of_empty_members(
        self, members: Vector, leaderless: Vector, hours: Vector, dying: Vector
    ) -> Vector:
        """The same of elections of an empty member of the ELR.

        Parameters
        ----------
        members : array, shape (states, columns)
            See :class:`Limits`.
        leaderless : array of bool, shape (states,)
        """
        empty, out = members[:, EMPTY_IN_ELR] > 0, members[:, NO_QUORUM] > 0
        now = times(self.falls, hours) + dying + leaderless
        later = times(self.lost_quorums * self.elections_to_come, hours)
        most: Vector = np.where(empty, np.where(out, now, later), 0.0)
        return most

    def elections_of_stale_members(
        self, members: Vector, leaderless: Vector, hours: Vector, dying: Vector
    ) -> Vector:
        """The same of elections of a member that lacks the newest records."""
        if not self.lost_quorums:
            return np.zeros(len(hours))
        stale, out = members[:, STALE_MEMBER] > 0, members[:, NO_QUORUM] > 0
        now = np.where(stale, times(self.falls, hours) + dying + leaderless, 0.0)
        # Power goes while there is no controller.
        cuts = times(self.powers, hours) + dying
        before = times(self.lost_quorums, hours)
        power = self.powers and self.powers * self.longest_hours
        later = times(power, before) + times(dying, before)
        most: Vector = now + self.elections_to_come * np.where(out, cuts, later)
        return most


def times(rate: Vector | float, hours: Vector) -> Vector:
    """Rate times hours; zero for a rate of zero, even in infinite hours."""
    with np.errstate(invalid="ignore"):
        product: Vector = np.where(np.greater(rate, 0.0), rate * hours, 0.0)
    return product


def loss_rates(
    rates: Mapping[str, float],
    racks: tuple[int, ...],
    constants: ChainConstants,
    drift: drift_bound.Drift,
    voters: bool = False,
) -> LossRates:
    """Sum up what a loss needs.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    racks : tuple of int
        Rack of each replica.
    drift : Drift
        Of the same rates and racks.
    voters : bool
        Outages of racks may take the majority of the controller quorum.
    """
    destructions = outages_of_power = falls = lost_quorums = 0.0
    for name, rate in rates.items():
        failure = transition(name)
        if failure.ends:
            continue
        sites, struck = drift_bound.reach(name, racks)
        if failure.mechanism.effect.of_quorum or (
            voters and failure.mechanism.scope is not Scope.BROKER
        ):
            lost_quorums += rate * sites
        falls += rate * drift_bound.strikes_on_leader(name, racks)
        dying = rate * sites * drift_bound.deaths(name, rates)
        falls += dying
        if constants.page_cache and constants.policy.min_isr <= 1:
            outages_of_power += dying
        if failure.destroys:
            destructions += rate * sites
        elif failure.cuts_power and constants.page_cache and struck >= constants.policy.min_isr:
            outages_of_power += rate * sites
    powers = strikes_per_hour(rates, racks, power=True) if constants.page_cache else 0.0
    return LossRates(
        destructions, outages_of_power, falls, drift.longest_hours, lost_quorums, powers
    )


def strikes_per_hour(
    rates: Mapping[str, float], racks: tuple[int, ...], power: bool = False
) -> float:
    """Upper bound on the rate of failures, or of power failures, of any replica.

    Only failures stop writes, so that writes stop no more often. The death of a limping broker is
    a power failure of its own.
    """
    strikes = []
    for name, rate in rates.items():
        failure = transition(name)
        if not failure.ends:
            times_each = float(failure.cuts_power or not power) + drift_bound.deaths(name, rates)
            strikes.append(rate * drift_bound.reach(name, racks)[0] * times_each)
    return math.fsum(strikes)


def power_per_hour(rates: Mapping[str, float], racks: tuple[int, ...], waits: IntArray) -> Vector:
    """Upper bound on the rate of power failures in states, deaths of brokers that limp included.

    Parameters
    ----------
    waits : array of int, shape (states, waits)

    Returns
    -------
    array, shape (states,)
    """
    dies = np.zeros(table().waits)
    for condition, entry in table().outages.items():
        dies[condition] = rates.get(death_of(entry), 0.0) if entry.dies else 0.0
    most: Vector = strikes_per_hour(rates, racks, power=True) + waits @ dies
    return most


class ExcursionBound(NamedTuple):
    """Upper bounds on the mean rewards of an excursion, by state.

    Attributes
    ----------
    losses, totals, events, hours, deaths : arrays, shape (states,)
        Loss events, total losses, failures and ends of outages, time, and deaths of brokers that
        limp in the state.
    """

    losses: Vector
    totals: Vector
    events: Vector
    hours: Vector
    deaths: Vector


class Limits:
    """Bounds on excursions from the outages and the election risk of a state alone.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    racks : tuple of int
        Rack of each replica.
    most_slack : float
        See :func:`advisor.reliability.chain.drift_bound.drift`.
    voters : bool
        See :func:`loss_rates`.
    """

    def __init__(
        self,
        rates: Mapping[str, float],
        racks: tuple[int, ...],
        constants: ChainConstants,
        most_slack: float = math.inf,
        voters: bool = False,
    ) -> None:
        self._drift = drift_bound.drift(rates, racks, most_slack)
        self._harm = loss_rates(rates, racks, constants, self._drift, voters)
        # Of a broker in each outage, the probability that it dies in the end.
        self._deaths = np.zeros(table().waits)
        for condition, entry in table().outages.items():
            self._deaths[condition] = drift_bound.deaths(entry.course, rates)
        self._alone = constants.page_cache and constants.policy.min_isr <= 1
        self._clean = not constants.policy.unclean
        self._acks_all = constants.acks == "all"

    def until_well(self, waits: IntArray, election_risks: Vector) -> ExcursionBound:
        """Upper bounds until every replica is healthy.

        Parameters
        ----------
        waits : array of int, shape (states, waits)
        election_risks : array, shape (states, columns)
            See :class:`advisor.reliability.statespace.state_graph.Graph`.
        """
        near = election_risks[:, ELECTION_RISK]
        hours, events = self._drift.until_well(waits, election_risks[:, PENDING_COPIES])
        leaderless = (near == OFFLINE) | (near == OFFLINE_EMPTY_ELECTABLE)
        dying = waits @ self._deaths
        fallen = times(self._harm.falls, hours) + dying
        destroyed = times(self._harm.destructions, hours)
        # A change of leader may cost two tails.
        at_once = 1.0 if self._acks_all else 2.0
        # A leader that fell without a controller owes them until the controller is back.
        owes = leaderless & (election_risks[:, NO_QUORUM] > 0) & (not self._acks_all)
        one_by_one = leaderless + at_once * owes + destroyed + (at_once + 1.0) * fallen
        losses = np.minimum(2.0 * events, one_by_one)
        totals = np.minimum(events, leaderless + destroyed + 2.0 * fallen)
        if self._clean:
            gone = destroyed + self._harm.elections(near, hours, dying)
            members = election_risks, leaderless, hours, dying
            gone = gone + self._harm.elections_of_empty_members(*members)
            totals = np.minimum(totals, gone)
            if self._acks_all:
                power = times(self._harm.outages_of_power, hours) + self._alone * dying
                stale = self._harm.elections_of_stale_members(*members)
                losses = np.minimum(losses, gone + power + stale)
        # What led there counts with it: what it lost was not asked.
        first = election_risks[:, UNSEEN]
        return ExcursionBound(losses + 2.0 * first, totals + first, events + first, hours, dying)
