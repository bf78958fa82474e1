"""Foster drift bound: mean hours and events from a state until every replica is healthy again.

Give every outage of a broker the weight ``a / repair rate``, and every copy that may still have to
be made the weight ``a / copy rate``, with ``a = 1 / (1 - r)`` and r the weight that failures add
per hour at ``a = 1``. While anything is down, repairs and copies take off at least a per hour and
failures add at most ``a r = a - 1``: a drift of -1 or less, so that the sum of the weights bounds
the mean time until all is healthy (Foster, Ann. Math. Stat. 24, 1953).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.reliability.failures.mechanisms import (
    COPY,
    HANGING,
    Mechanism,
    Scope,
    Table,
    Transition,
    death_of,
    repair_of,
    table,
)
from advisor.reliability.partition.election_risk import most_copies
from advisor.reliability.solver.generator import IntArray, Vector


@dataclass(frozen=True)
class Drift:
    """The bound by drift.

    hours (waits,): what an outage of each kind adds to the mean time until all is healthy; infinite
        if failures bring in more than repairs take off.
    ends (waits,): how many ends of outages each kind still has to come.
    events_per_hour: upper bound on failures, with the ends of the outages that they start.
    """

    hours: Vector
    copy_hours: float
    replicas: int
    ends: Vector
    events_per_hour: float

    def until_well(
        self, waits: NDArray[np.integer[Any]] | sparse.csr_array, copies: Vector
    ) -> tuple[Vector, Vector]:
        """Upper bounds on the mean hours and events until all is healthy, by state.

        copies (states,): :func:`advisor.reliability.partition.election_risk.pending_copies_bound`.
        """
        # Only outages that there are are stored, and 0 times infinite hours does not come up.
        if not (isinstance(waits, sparse.csr_array) and waits.dtype == np.float64):
            waits = sparse.csr_array(waits, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            hours = waits @ self.hours
            hours = hours + np.where(copies > 0, copies * self.copy_hours, 0.0)
        copied = 2.0 * self.replicas * (copies > 0) * bool(self.copy_hours)
        return hours, waits @ self.ends + copied + self.events_per_hour * hours

    @property
    def max_recovery_hours(self) -> float:
        """Upper bound on the mean hours until all is healthy, from any state."""
        longest = self.replicas * float(self.hours.max())
        return longest + self.copy_hours * most_copies(self.replicas)


def drift(
    rates: Mapping[str, float], racks: tuple[int, ...], most_slack: float = math.inf
) -> Drift:
    """Compute the drift bound of these rates.

    most_slack: upper limit of the factor a. A finite limit makes the bound an estimate, which only
        the choice of states may use.
    """
    replicas = len(racks)
    copy_hours = 1.0 / rates[COPY] if COPY in rates else 0.0
    hours, ends = _outages(rates, copy_hours * most_copies(replicas))
    kinds = failures(tuple(rates), racks)
    failures_per_hour = kinds.per_hour(rates) * kinds.sites
    # Without its leader a partition may have all to copy; a log that is gone, itself.
    leader_failures = float((kinds.per_hour(rates) * kinds.on_leader).sum())
    destroyed_logs = float((failures_per_hour * kinds.struck * kinds.destroys).sum())
    added_hours = float(
        (failures_per_hour * kinds.struck * hours[kinds.conditions].max(axis=1)).sum()
    )
    added_hours += copy_hours * (leader_failures * most_copies(replicas) + destroyed_logs)
    events = float(
        (failures_per_hour * (1.0 + kinds.struck * ends[kinds.conditions].max(axis=1))).sum()
    )
    events += bool(copy_hours) * (leader_failures * 2.0 * replicas + destroyed_logs)
    slack = min(1.0 / (1.0 - added_hours) if added_hours < 1.0 else math.inf, most_slack)
    with np.errstate(invalid="ignore"):
        hours = np.where(hours > 0, hours * slack, 0.0)
    return Drift(hours, copy_hours and copy_hours * slack, replicas, ends, events)


def _outages(rates: Mapping[str, float], copy_hours: float) -> tuple[Vector, Vector]:
    """Mean hours and ends to come of an outage of each condition, what it turns into included.

    The move to the second stage does not end the outage, and the partition does not see it.
    """
    mechanisms = table()
    hours, ends = np.zeros(mechanisms.waits), np.zeros(mechanisms.waits)
    for condition, entry in mechanisms.outages.items():
        hours[condition] = mechanisms.mean_hours(entry, rates)
        ends[condition] = float(repair_of(entry) in rates)
    for condition, entry in mechanisms.outages.items():
        possible = [death for death in entry.deaths if death_of(entry, death) in rates]
        outage_hours, most_ends = hours[condition], 0.0
        for death in possible:
            later = mechanisms[death.outage].condition
            hours[condition] += (
                rates[death_of(entry, death)] * outage_hours * (hours[later] + copy_hours)
            )
            most_ends = max(most_ends, ends[later])
        ends[condition] += most_ends
    return hours, ends


def deaths_of(entry: Mechanism, rates: Mapping[str, float], of_hosts: bool = False) -> float:
    """Probability that an outage of a mechanism ends in a death, or in one that takes the host."""
    per_hour = deaths_per_hour(entry, rates, of_hosts)
    return per_hour * table().mean_hours(entry, rates) if per_hour else 0.0


def deaths_per_hour(entry: Mechanism, rates: Mapping[str, float], of_hosts: bool = False) -> float:
    """Rate at which a broker in its outage dies."""
    return math.fsum(
        rates.get(death_of(entry, death), 0.0)
        for death in entry.deaths
        if death.takes_host or not of_hosts
    )


def _reach(failure: Transition, racks: tuple[int, ...]) -> tuple[float, int]:
    """Number of sites that a failure can strike, and most replicas at any of them.

    Where a probability picks brokers, or a failure spreads to racks, only the names for all of
    them have sites: with fewer standing the failure comes no more often. A rack that holds voters
    and no replica counts as one replica.
    """
    scope, sizes = failure.mechanism.scope, sorted(Counter(racks).values(), reverse=True)
    if failure.pair:
        return math.comb(len(racks), 2), 2
    if failure.mechanism.effect.of_quorum:
        return 1, 1
    if scope is Scope.BROKER:
        return len(racks), 1
    sites, struck = 1.0, len(racks)
    if scope is Scope.RACK:
        sites, struck = len(sizes), sizes[0]
        if failure.racks > 0:
            sites = math.comb(failure.racks_among, failure.racks)
            sites *= failure.racks_among >= len(sizes)
            without_replica = max(failure.racks - len(sizes), 0)
            struck = sum(sizes[: failure.racks]) + without_replica
    if failure.chosen >= 0:
        brokers = len(racks) if scope is Scope.CLUSTER else min(struck, len(racks))
        sites *= math.comb(failure.among, failure.chosen) if failure.among == brokers else 0
    return sites, struck


def _sites_of_leader(failure: Transition, sites: float) -> float:
    """Number of sites at which a failure strikes a leader and may end its term."""
    effect = failure.mechanism.effect
    if effect in HANGING or effect.of_quorum:
        return 0.0
    if failure.mechanism.scope is Scope.CLUSTER or failure.racks > 0 or failure.pair:
        return sites
    return min(sites, 1.0) if failure.chosen < 0 else sites


class Failures(NamedTuple):
    """The failures among named rates, and what each can strike.

    conditions (failures, most): in which each can leave a broker; the first one is repeated.
    dying: those whose outages may end in a death.
    """

    names: tuple[str, ...]
    mechanisms: tuple[Mechanism, ...]
    sites: Vector
    struck: Vector
    on_leader: Vector
    conditions: IntArray
    cuts_power: NDArray[np.bool_]
    destroys: NDArray[np.bool_]
    of_quorum: NDArray[np.bool_]
    of_broker: NDArray[np.bool_]
    dying: IntArray

    def per_hour(self, rates: Mapping[str, float]) -> Vector:
        """Their rates."""
        return np.array([rates[name] for name in self.names])

    def deaths(self, rates: Mapping[str, float], of_hosts: bool = False) -> Vector:
        """Probability that the outage that each begins ends in a death."""
        chances = np.zeros(len(self.names))
        for number in self.dying.tolist():
            chances[number] = deaths_of(self.mechanisms[number], rates, of_hosts)
        return chances


def failures(names: tuple[str, ...], racks: tuple[int, ...]) -> Failures:
    """The failures among names of rates."""
    return _failures(names, racks, table())


@lru_cache(maxsize=256)
def _failures(names: tuple[str, ...], racks: tuple[int, ...], mechanism_table: Table) -> Failures:
    kinds = [(name, mechanism_table.transition(name)) for name in names]
    kinds = [(name, failure) for name, failure in kinds if not failure.ends]
    mechanisms = [failure.mechanism for _, failure in kinds]
    after = [mechanism_table.conditions_after(entry) for entry in mechanisms]
    widest = max(map(len, after), default=1)
    padded = [(*conditions, *[conditions[0]] * (widest - len(conditions))) for conditions in after]
    reached = np.array([_reach(failure, racks) for _, failure in kinds]).reshape(-1, 2)
    sites = reached[:, 0]
    of_leader = [
        _sites_of_leader(failure, at_sites)
        for (_, failure), at_sites in zip(kinds, sites.tolist(), strict=True)
    ]
    return Failures(
        names=tuple(name for name, _ in kinds),
        mechanisms=tuple(mechanisms),
        sites=sites,
        struck=reached[:, 1],
        on_leader=np.array(of_leader),
        conditions=np.array(padded, dtype=np.int64).reshape(-1, widest),
        cuts_power=np.array([failure.cuts_power for _, failure in kinds], dtype=bool),
        destroys=np.array([failure.destroys for _, failure in kinds], dtype=bool),
        of_quorum=np.array([entry.effect.of_quorum for entry in mechanisms], dtype=bool),
        of_broker=np.array([entry.scope is Scope.BROKER for entry in mechanisms], dtype=bool),
        dying=np.flatnonzero([bool(entry.deaths) for entry in mechanisms]),
    )
