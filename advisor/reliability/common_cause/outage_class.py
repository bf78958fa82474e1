"""To be described."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from advisor.reliability.failures import fault_processes
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.state_index import place_values


class RackOutage(NamedTuple):
    """What one rack's replicas of a set suffer when the set loses.

    Attributes
    ----------
    size : int
        Replicas in the rack.
    alone : int
        Of these, away or lagging by themselves.
    away : bool
        The rack is away, and with it those who are not away by themselves.
    lagging : int
        Of those alone, lagging. Who leads a partition does not lag for it.
    """

    size: int
    alone: int
    away: bool
    lagging: int = 0


# The racks of a set, sorted.
OutageClass = tuple[RackOutage, ...]

# By the mechanism behind a loss, the scope of what happens then (a failure of a broker, a rack or
# the cluster, or the return of one), and what the set was like.
Losses = Mapping[tuple[str, str, OutageClass], float]

SCOPES = ("broker", "rack", "cluster")

BROKER_BACK, RACK_BACK = "broker back", "rack back"

# The site where it is the cluster.
CLUSTER = -1


def scope_of(name: str) -> str:
    """What a failure of this name, or of a rate's, strikes at once; what is back at an end."""
    spell = name.removeprefix("repair ")
    scope = spell.split(".")[0]
    if spell != name:
        return RACK_BACK if scope == "rack" else BROKER_BACK
    return scope if scope in ("broker", "rack") else "cluster"


# Spells of a whole rack. Who was destroyed, or lost power with the site, comes back by himself.
_OF_A_RACK = (fault_processes.ISOLATED, fault_processes.RACK_DARK)

_CONDITIONS = range(len(fault_processes.OUTAGE_MECHANISM) + 1)

_BEGAN_TOGETHER = (fault_processes.GONE, fault_processes.DARK_ALL)

BEGIN_TOGETHER = ("rack.destroyed", "cluster.power")
"""What begins spells of several brokers that end one by one."""

# Distinct ones, and the index of each state's among them.
OutageClasses = tuple[list[OutageClass | None], IntArray]


def weaknesses(own: IntArray, racks: IntArray, began_together: bool) -> OutageClasses:
    """How weak sets are in some states; None where nobody is away.

    Parameters
    ----------
    own, racks : arrays of int, shape (states, replicas)
        What each slot's broker suffers, and where it stands.
    began_together : bool
        Take spells that began together, and end one by one, for a rack's.

    Returns
    -------
    distinct : list of Weakness or None
    number : array of int, shape (states,)
        Index of each state's weakness.
    """
    shared = (*_OF_A_RACK, *_BEGAN_TOGETHER) if began_together else _OF_A_RACK
    away = np.array([condition in shared for condition in _CONDITIONS])
    alone = ~away
    alone[fault_processes.WELL] = False
    lags = own == fault_processes.LAGGING
    # A rack in one number; those of no replica are zero.
    base = own.shape[1] + 1
    numbers = np.zeros((len(own), int(racks.max(initial=0)) + 1), dtype=np.int64)
    for rack in range(numbers.shape[1]):
        here = racks == rack
        by_themselves, lagging = (here & alone[own]).sum(axis=1), (here & lags).sum(axis=1)
        numbers[:, rack] = ((here.sum(axis=1) * base + by_themselves) * base + lagging) * 2
        numbers[:, rack] += (here & away[own]).any(axis=1)
    numbers.sort(axis=1)
    codes = numbers @ place_values(2 * base**3, numbers.shape[1])
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    return [_weakness(row, base) for row in numbers[first].tolist()], number.ravel()


def _weakness(numbers: Sequence[int], base: int) -> OutageClass | None:
    found = []
    for number in filter(None, numbers):
        rest, away = divmod(number, 2)
        rest, lagging = divmod(rest, base)
        replicas, alone = divmod(rest, base)
        found.append(RackOutage(replicas, alone, bool(away), lagging))
    return tuple(found) if any(rack.alone or rack.away for rack in found) else None
