"""What a chain may miss of the states that it leaves out.

Every path into a left-out state is worth its flow times what the state is worth: the losses, or
hours without service, to be expected from there until all is well again. That worth is bounded
in two ways, of which the smaller counts.

*By drift*, for every state: give each broker's spell the weight ``a / repair rate``, and copies
ahead (:func:`advisor.reliability.partition.election_risk.pending_copies_bound`) the weight ``a / copy rate`` for each time of
one, with ``a = 1 / (1 - r)`` and r the weight that failures bring in per hour at ``a = 1``. While
anything is away, repairs and copies take off at least a, and failures bring in ``a r = a - 1`` at
most, so the sum of the weights bounds the mean time until all is well (Foster's criterion). Each
failure and each end of a spell or copy is one event at most. How many of the failures can lose
anything is the matter of :mod:`advisor.reliability.chain.loss_bound`.

*By likeness*: a left-out state is worth no more than four times the dearest kept state whose
partition is the same, but for racks, and whose brokers in the same roles suffer outages of much
the same lengths. A planned restart is like no other outage, since nobody else restarts meanwhile.
That is a judgement, not a theorem; tests hold it against whole chains.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from advisor.reliability.failures.mechanisms import (
    COPY,
    BrokerEvent,
    Scope,
    repair_of,
    table,
    transition,
)
from advisor.reliability.partition.election_risk import most_copies
from advisor.reliability.solver.regenerative import RegenerativeCycles
from advisor.reliability.statespace.state_graph import IntArray
from advisor.reliability.statespace.state_index import codes_of_rows

Vector = NDArray[np.float64]

# Outages whose lengths differ by no more than this factor count as one kind.
_ALIKE = 2.5
_LIKE_NO_OTHER = (BrokerEvent.DESTROY, BrokerEvent.LAG)
# A left-out state is worth no more than this many times the dearest kept state of its group.
_MARGIN = 4.0
# What shrinks no further in a round is left at that; it is a bound as it is.
_SETTLED = 0.99
# Stands for what has no bound: no chance is so small that it hides it, and none makes NaN of it.
_ENDLESS = 1e200


@dataclass(frozen=True)
class Drift:
    """The bound by drift.

    Attributes
    ----------
    hours : array, shape (waits,)
        What a broker's spell of each kind adds to the mean time until all is well; infinite if
        failures bring in more than repairs take off.
    copy_hours : float
        What each time of a copy ahead adds.
    replicas : int
    ends : array, shape (waits,)
        How many ends each kind has ahead.
    events_per_hour : float
        Failures, with the ends that they bring, at most.
    """

    hours: Vector
    copy_hours: float
    replicas: int
    ends: Vector
    events_per_hour: float

    def until_well(self, waits: IntArray, copies: Vector) -> tuple[Vector, Vector]:
        """Mean hours and events until all is well, at most.

        Parameters
        ----------
        waits : array of int, shape (states, waits)
        copies : array, shape (states,)
            :func:`advisor.reliability.partition.election_risk.pending_copies_bound`.
        """
        with np.errstate(invalid="ignore"):
            hours = np.where(waits > 0, waits * self.hours, 0.0).sum(axis=1)
            hours = hours + np.where(copies > 0, copies * self.copy_hours, 0.0)
        copied = 2.0 * self.replicas * (copies > 0) * bool(self.copy_hours)
        return hours, waits @ self.ends + copied + self.events_per_hour * hours

    @property
    def longest_hours(self) -> float:
        """Mean hours until all is well, at most, whatever has happened."""
        longest = self.replicas * float(self.hours.max())
        return longest + self.copy_hours * most_copies(self.replicas)


def drift(
    rates: Mapping[str, float], racks: tuple[int, ...], most_slack: float = math.inf
) -> Drift:
    """Weigh failures against repairs.

    Parameters
    ----------
    rates : mapping of str to float
        Of everything that can happen, per hour.
    racks : tuple of int
        Rack of each replica.
    most_slack : float
        No more than this is allowed for what failures bring in. Anything less than infinity is a
        guess, for the choice of states alone.
    """
    hours, ends, replicas = np.zeros(table().waits), np.zeros(table().waits), len(racks)
    for condition, mechanism in table().outages.items():
        if repair_of(mechanism) in rates:
            hours[condition], ends[condition] = 1.0 / rates[repair_of(mechanism)], 1.0
    copy = 1.0 / rates[COPY] if COPY in rates else 0.0
    brought = events = 0.0
    for name, rate in rates.items():
        if transition(name).ends:
            continue
        sites, struck = reach(name, racks)
        conditions = _brought_by(name)
        brought += rate * sites * struck * max(hours[c] for c in conditions)
        events += rate * sites * (1.0 + struck * max(ends[c] for c in conditions))
        # Without its leader a partition may have all to copy; a log that is gone, itself.
        leaders, logs = (
            rate * strikes_on_leader(name, sites),
            rate * sites * struck * destroys(name),
        )
        brought += copy * (leaders * most_copies(replicas) + logs)
        events += bool(copy) * (leaders * 2.0 * replicas + logs)
    slack = min(1.0 / (1.0 - brought) if brought < 1.0 else math.inf, most_slack)
    with np.errstate(invalid="ignore"):
        hours = np.where(hours > 0, hours * slack, 0.0)
    return Drift(hours, copy and copy * slack, replicas, ends, events)


def reach(name: str, racks: tuple[int, ...]) -> tuple[float, int]:
    """How many sites a failure of this name can strike, and how many replicas at each at most.

    Where a probability picks brokers only the names for all replicas have sites: with fewer
    standing the cluster fails no more often.
    """
    failure = transition(name)
    if failure.mechanism.scope is Scope.RACK:
        sizes = Counter(racks).values()
        return len(sizes), max(sizes)
    if failure.mechanism.scope is Scope.BROKER:
        return len(racks), 1
    if failure.chosen < 0:
        return 1, len(racks)
    ways = math.comb(failure.among, failure.chosen) if failure.among == len(racks) else 0
    return ways, len(racks)


def strikes_on_leader(name: str, sites: float) -> float:
    """At how many of the sites a failure of this name strikes a leader and may end its term."""
    mechanism = transition(name).mechanism
    if mechanism.effect is BrokerEvent.LAG:
        return 0.0
    return sites if mechanism.scope is Scope.CLUSTER else 1.0


def destroys(name: str) -> bool:
    """Whether a failure of this name destroys a log."""
    return transition(name).destroys


def _brought_by(name: str) -> tuple[int, ...]:
    known, mechanism = table(), transition(name).mechanism
    own = known.condition_of(mechanism)
    return (own, known[mechanism.turns_into].condition) if mechanism.turns_into else (own,)


def alike(rates: Mapping[str, float]) -> IntArray:
    """For each kind of wait, the first kind that is like it: outages of much the same length.

    Returns
    -------
    array of int, shape (waits,)
    """
    first = np.arange(table().waits)
    lengths = sorted(
        (1.0 / rates[repair_of(mechanism)], condition)
        for condition, mechanism in table().outages.items()
        if mechanism.effect not in _LIKE_NO_OTHER
        and not mechanism.exclusive
        and repair_of(mechanism) in rates
    )
    shortest, kind = 0.0, 0
    for length, condition in lengths:
        # Against the shortest of the kind: a chain of neighbours could span any lengths.
        if length > _ALIKE * shortest:
            shortest, kind = length, condition
        first[condition] = kind
    return first


def groups(symmetry_class: IntArray, outage_profile: IntArray, first: IntArray) -> IntArray:
    """Number the states so that like ones have one number.

    It matters who suffers what: a partition that waits for the one replica that may lead waits
    for that broker's spell.

    Parameters
    ----------
    looks : array of int, shape (states,)
    spells : array of int, shape (states, replicas)
        See :meth:`advisor.reliability.statespace.state_graph.Graph.outage_profile`.
    first : array of int, shape (waits,)
        See :func:`alike`.
    """
    role, own = np.divmod(outage_profile, len(first))
    merged = np.sort(role * len(first) + first[own], axis=1)
    return np.unique(codes_of_rows([symmetry_class, *merged.T]), return_inverse=True)[1].ravel()


@dataclass(frozen=True)
class TruncatedStates:
    """Flow into left-out states, and how those look.

    Attributes
    ----------
    source, state : arrays of int, shape (transitions,)
        Kept state, ascending, and index of the left-out state.
    rate : array, shape (transitions,)
        Per hour.
    group : array of int, shape (left-out states,)
    limit : array, shape (left-out states, measures)
        The bound by drift.
    """

    source: IntArray
    state: IntArray
    rate: Vector
    group: IntArray
    limit: Vector

    def worth(self, kept_group: IntArray, kept_worth: Vector) -> Vector:
        """The smaller of the two bounds, for each left-out state and measure."""
        groups = int(max(kept_group.max(), self.group.max(initial=0))) + 1
        dearest = np.full((groups, kept_worth.shape[1]), -np.inf)
        order = np.argsort(kept_group, kind="stable")
        ordered = kept_group[order]
        begin = np.flatnonzero(np.diff(ordered, prepend=-1))
        dearest[ordered[begin]] = np.maximum.reduceat(kept_worth.take(order, axis=0), begin)
        alike = _MARGIN * dearest.take(self.group, axis=0)
        return np.where(np.isneginf(alike), self.limit, np.minimum(alike, self.limit))

    def known(self, kept_group: IntArray) -> NDArray[np.bool_]:
        """Which left-out states have a kept state in their group."""
        return np.isin(self.group, kept_group)

    def ways(self, states: int) -> sparse.csr_array:
        """Rates from each of so many kept states to the left-out ones."""
        begin = np.searchsorted(self.source, np.arange(states + 1))
        return sparse.csr_array((self.rate, self.state, begin), shape=(states, len(self.group)))


def reward_bound(
    hours: RegenerativeCycles,
    gain: Vector,
    group: IntArray,
    left: TruncatedStates,
    entered: Vector,
    rounds: int,
) -> Vector:
    """What each left-out state is worth, from above: each round starts from the last one's.

    Parameters
    ----------
    hours : Excursions
        Of the kept states; ways out of them end an excursion.
    gain : array, shape (states, measures)
        Per hour in each kept state.
    group : array of int, shape (states,)
    left : LeftOut
    entered : array, shape (left-out states,)
        How often, per hour: what a round makes of worth times this tells whether to go on.
    rounds : int
        At most.
    """
    worth, ways = left.limit, left.ways(len(gain))
    added = np.full(gain.shape[1], np.inf)
    for _ in range(rounds):
        # A sum that stopped may lack that much.
        kept = hours.backward(gain + ways @ np.minimum(worth, _ENDLESS)) / (1.0 - hours.precision)
        kept[kept > math.sqrt(_ENDLESS)] = np.inf
        worth = np.minimum(worth, left.worth(group, kept))
        before, added = added, entered @ worth
        if bool(np.all(added >= _SETTLED * before)):
            break
    return worth
