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
* With clean elections and acks=all a failure loses at once only if it destroys a log or is a power
  failure of the whole ISR before a flush. Records are acknowledged only while the ISR has at least
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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.reliability.chain import drift_bound
from advisor.reliability.failures.mechanisms import table
from advisor.reliability.partition import election_risk as risk
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.solver.generator import Vector


@dataclass(frozen=True)
class LossPreconditions:
    """Rates of the events without which no record is lost, and the time to recover from them.

    unflushed_losses_per_hour: other failures that may lose unflushed records.
    max_recovery_hours: upper bound on the mean time until all is healthy, from any state.
    quorum_losses_per_hour: failures after which there may be no controller quorum.
    """

    log_destructions_per_hour: float
    unflushed_losses_per_hour: float
    leader_failures_per_hour: float
    max_recovery_hours: float
    quorum_losses_per_hour: float = 0.0
    power_failures_per_hour: float = 0.0

    @property
    def elections_to_come(self) -> float:
        """Upper bound on the mean number of elections that lose after a member became stale."""
        failures = self.leader_failures_per_hour
        return 1.0 + (failures and failures * self.max_recovery_hours)

    def elections(self, election_risks: Vector, hours: Vector, dying: Vector) -> Vector:
        """Upper bound on the mean number of elections that lose until all is healthy, by state.

        hours: upper bound on the mean time until then.
        dying: mean number of limping brokers that die.
        """
        # A destruction makes an empty replica electable, at once or at a later leader failure.
        later = self.log_destructions_per_hour
        later = later and later * self.elections_to_come
        empty_electable = (election_risks == risk.EMPTY_ELECTABLE) | (
            election_risks == risk.OFFLINE_EMPTY_ELECTABLE
        )
        now = np.where(empty_electable, self.leader_failures_per_hour, 0.0)
        failures = times(later + now, hours) + np.where(empty_electable, dying, 0.0)
        elections: Vector = failures + (election_risks == risk.OFFLINE_EMPTY_ELECTABLE)
        return elections

    def elections_of_empty_members(
        self, members: Vector, leaderless: Vector, hours: Vector, dying: Vector
    ) -> Vector:
        """The same for elections of an empty member of the ELR."""
        empty, no_quorum = members[:, risk.EMPTY_IN_ELR] > 0, members[:, risk.NO_QUORUM] > 0
        now = times(self.leader_failures_per_hour, hours) + dying + leaderless
        later = times(self.quorum_losses_per_hour * self.elections_to_come, hours)
        elections: Vector = np.where(empty, np.where(no_quorum, now, later), 0.0)
        return elections

    def elections_of_stale_members(
        self, members: Vector, leaderless: Vector, hours: Vector, dying: Vector
    ) -> Vector:
        """The same for elections of a member that lacks the newest records."""
        if not self.quorum_losses_per_hour:
            return np.zeros(len(hours))
        stale, no_quorum = members[:, risk.STALE_MEMBER] > 0, members[:, risk.NO_QUORUM] > 0
        failures = times(self.leader_failures_per_hour, hours) + dying + leaderless
        now = np.where(stale, failures, 0.0)
        # Power fails while there is no controller.
        without_power = times(self.power_failures_per_hour, hours) + dying
        quorum_losses = times(self.quorum_losses_per_hour, hours)
        power = self.power_failures_per_hour
        power = power and power * self.max_recovery_hours
        later = times(power, quorum_losses) + times(dying, quorum_losses)
        elections: Vector = now + self.elections_to_come * np.where(no_quorum, without_power, later)
        return elections


def times(rate: Vector | float, hours: Vector) -> Vector:
    """Rate times hours; zero for a rate of zero, even in infinite hours."""
    with np.errstate(invalid="ignore"):
        product: Vector = np.where(np.greater(rate, 0.0), rate * hours, 0.0)
    return product


def loss_preconditions(
    rates: Mapping[str, float],
    racks: tuple[int, ...],
    constants: ChainConstants,
    drift: drift_bound.Drift,
    voters: bool = False,
) -> LossPreconditions:
    """Sum up the rates of the events that a loss needs.

    voters: outages of racks may take the majority of the controller quorum.
    """
    kinds = drift_bound.failures(tuple(rates), racks)
    per_hour = kinds.per_hour(rates) * kinds.sites
    takes_quorum = kinds.of_quorum | (voters & ~kinds.of_broker)
    leader_failures = kinds.per_hour(rates) * kinds.on_leader + per_hour * kinds.deaths(rates)
    unflushed = np.zeros(len(per_hour))
    if constants.page_cache:
        whole_isr = kinds.cuts_power & (kinds.struck >= constants.policy.min_isr)
        unflushed += per_hour * (whole_isr & ~kinds.destroys)
        if constants.policy.min_isr <= 1:
            unflushed += per_hour * kinds.deaths(rates, of_hosts=True)
    power = strikes_per_hour(rates, racks, power=True) if constants.page_cache else 0.0
    return LossPreconditions(
        log_destructions_per_hour=float(per_hour[kinds.destroys].sum()),
        unflushed_losses_per_hour=float(unflushed.sum()),
        leader_failures_per_hour=float(leader_failures.sum()),
        max_recovery_hours=drift.max_recovery_hours,
        quorum_losses_per_hour=float(per_hour[takes_quorum].sum()),
        power_failures_per_hour=power,
    )


def strikes_per_hour(
    rates: Mapping[str, float], racks: tuple[int, ...], power: bool = False
) -> float:
    """Upper bound on the rate of failures, or of power failures, of any replica.

    Writes stop no more often. The death of a limping broker is a power failure of its own.
    """
    kinds = drift_bound.failures(tuple(rates), racks)
    times_each = kinds.cuts_power if power else np.ones(len(kinds.names))
    times_each = times_each + kinds.deaths(rates, of_hosts=power)
    return float((kinds.per_hour(rates) * kinds.sites * times_each).sum())


def power_per_hour(
    rates: Mapping[str, float],
    racks: tuple[int, ...],
    waits: NDArray[np.integer[Any]] | sparse.csr_array,
) -> Vector:
    """Upper bound on the rate of power failures by state, deaths of brokers that limp included."""
    per_hour: Vector = strikes_per_hour(rates, racks, power=True) + waits @ dying_hosts(rates)
    return per_hour


def dying_hosts(rates: Mapping[str, float]) -> Vector:
    """Rate at which a broker in each outage dies with its host, shape (waits,)."""
    dies = np.zeros(table().waits)
    for condition, entry in table().outages.items():
        dies[condition] = drift_bound.deaths_per_hour(entry, rates, of_hosts=True)
    return dies


class ExcursionBound(NamedTuple):
    """Upper bounds, by state, on the mean rewards of an excursion.

    events: failures and ends of outages.
    deaths: of brokers that limp in the state.
    """

    losses: Vector
    totals: Vector
    events: Vector
    hours: Vector
    deaths: Vector


class Limits:
    """Bounds on excursions from the outages and the election risk of a state alone."""

    def __init__(
        self,
        rates: Mapping[str, float],
        racks: tuple[int, ...],
        constants: ChainConstants,
        most_slack: float = math.inf,
        voters: bool = False,
    ) -> None:
        self._drift = drift_bound.drift(rates, racks, most_slack)
        self._preconditions = loss_preconditions(rates, racks, constants, self._drift, voters)
        # Of a broker in each outage, the probability that it dies in the end.
        self._deaths = np.zeros(table().waits)
        for condition, entry in table().outages.items():
            self._deaths[condition] = drift_bound.deaths_of(entry, rates)
        self._one_death_loses = constants.page_cache and constants.policy.min_isr <= 1
        self._clean = not constants.policy.unclean
        self._acks_all = constants.acks == "all"

    def until_well(
        self, waits: NDArray[np.integer[Any]] | sparse.csr_array, election_risks: Vector
    ) -> ExcursionBound:
        """Upper bounds until every replica is healthy; the arguments are those of a `Graph`."""
        risk_class = election_risks[:, risk.ELECTION_RISK]
        hours, events = self._drift.until_well(waits, election_risks[:, risk.PENDING_COPIES])
        leaderless = (risk_class == risk.OFFLINE) | (risk_class == risk.OFFLINE_EMPTY_ELECTABLE)
        dying = waits @ self._deaths
        leader_failures = times(self._preconditions.leader_failures_per_hour, hours) + dying
        destructions = times(self._preconditions.log_destructions_per_hour, hours)
        # A change of leader may cost two tails.
        at_once = 1.0 if self._acks_all else 2.0
        # A leader that failed without a controller drops them when the controller is back.
        pending = leaderless & (election_risks[:, risk.NO_QUORUM] > 0) & (not self._acks_all)
        one_by_one = (
            leaderless + at_once * pending + destructions + (at_once + 1.0) * leader_failures
        )
        losses = np.minimum(2.0 * events, one_by_one)
        totals = np.minimum(events, leaderless + destructions + 2.0 * leader_failures)
        if self._clean:
            clean_losses = destructions + self._preconditions.elections(risk_class, hours, dying)
            members = election_risks, leaderless, hours, dying
            clean_losses = clean_losses + self._preconditions.elections_of_empty_members(*members)
            totals = np.minimum(totals, clean_losses)
            if self._acks_all:
                power = (
                    times(self._preconditions.unflushed_losses_per_hour, hours)
                    + self._one_death_loses * dying
                )
                stale = self._preconditions.elections_of_stale_members(*members)
                losses = np.minimum(losses, clean_losses + power + stale)
        # The transition into an unexpanded state counts as a loss: its own loss was not computed.
        unexpanded = election_risks[:, risk.UNEXPANDED]
        return ExcursionBound(
            losses + 2.0 * unexpanded, totals + unexpanded, events + unexpanded, hours, dying
        )
