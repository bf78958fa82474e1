"""Which losses of different replica sets are one event: those that wait for the same racks.

A set loses when a failure strikes, or somebody comes back, while other replicas are away already.
If these are away because their racks are, all sets that stand in these racks are as weak at the
same time, and lose at the same stroke; if their own brokers are away, the sets of these brokers
are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.reliability import faults, rates
from advisor.reliability.early_cuts import Cuts
from advisor.reliability.meetings import SCOPES, Losses, Rack, Weakness, scope_of
from advisor.reliability.model import FailureModel
from advisor.reliability.numbering import IntArray, place_values

Vector = NDArray[np.float64]

# Spells of a whole rack. Who was destroyed, or lost power with the site, comes back by himself.
_OF_A_RACK = (faults.ISOLATED, faults.RACK_DARK)
_CONDITIONS = range(len(faults.SPELLS) + 1)
_BEGAN_TOGETHER = (faults.GONE, faults.DARK_ALL)
BEGIN_TOGETHER = ("rack.destroyed", "cluster.power")
"""What begins spells of several brokers that end one by one."""
# Names of rates at which something ends.
_ENDS = re.compile(r"repair |copy$")
# Each set's own: the end of its copy, and who survives a failure of the site.
_BY_CHANCE = re.compile(r"copy$|cluster\.power [^0]")


# Distinct ones, and the index of each state's among them.
Weaknesses = tuple[list[Weakness | None], IntArray]


def weaknesses(own: IntArray, racks: IntArray, began_together: bool) -> Weaknesses:
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
    alone[faults.WELL] = False
    lags = own == faults.LAGGING
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


def _weakness(numbers: Sequence[int], base: int) -> Weakness | None:
    found = []
    for number in filter(None, numbers):
        rest, away = divmod(number, 2)
        rest, lagging = divmod(rest, base)
        replicas, alone = divmod(rest, base)
        found.append(Rack(replicas, alone, bool(away), lagging))
    return tuple(found) if any(rack.alone or rack.away for rack in found) else None


def _add(
    found: dict[tuple[str, str, Weakness], float],
    mechanisms: Sequence[Mapping[str, float]],
    scopes: Sequence[str],
    distinct: Sequence[Weakness | None],
    name: IntArray,
    weakness: IntArray,
    amounts: Vector,
) -> None:
    """Add losses of who was weak; ``name`` and ``weakness`` are indices into the rest."""
    sums = np.bincount(weakness * len(mechanisms) + name, amounts)
    for code in np.flatnonzero(sums).tolist():
        number, which = divmod(code, len(mechanisms))
        weak = distinct[number]
        if weak is not None:
            for mechanism, share in mechanisms[which].items():
                found[mechanism, scopes[which], weak] += share * float(sums[code])


class Chain(Protocol):
    """What is asked of a chain: its transitions, the names of their rates, and early cuts."""

    @property
    def source(self) -> IntArray:
        """State of each transition."""

    @property
    def target(self) -> IntArray:
        """State that it leads to."""

    @property
    def rate(self) -> IntArray:
        """Index of its rate's name."""

    @property
    def rate_names(self) -> tuple[str, ...]:
        """Names of rates."""

    @property
    def cuts(self) -> Cuts:
        """What power loses that goes too early."""


def of_chain(
    chain: Chain,
    weak: Weaknesses,
    model: FailureModel,
    rates_per_hour: Vector,
    certain: Vector,
    early: Vector,
) -> Losses:
    """Losses of one set that others may have part in, per hour.

    Not those by a failure of the site that some brokers do not survive, nor by the end of a copy:
    who survives, and how long a copy takes, is decided anew for each.

    Parameters
    ----------
    chain : Chain
    weak : Weaknesses
        Of its states.
    model : FailureModel
    rates_per_hour : array, shape (names,)
    certain, early : arrays, shape (transitions,)
        Losses with a transition, and by power that goes soon after it, per hour.
    """
    distinct, number = weak
    states = len(number)
    names = chain.rate_names
    mechanisms = [rates.causes_of(name, model) for name in names]
    ends = np.array([bool(_ENDS.match(name)) for name in names], dtype=bool)
    by_chance = np.array([bool(_BY_CHANCE.match(name)) for name in names], dtype=bool)
    strike = [scope_of(name) for name in names]
    lost = np.flatnonzero((certain > 0) & ~by_chance[chain.rate])
    source = number[chain.source[lost]]
    found: dict[tuple[str, str, Weakness], float] = defaultdict(float)
    _add(found, mechanisms, strike, distinct, chain.rate[lost], source, certain[lost])
    soon = np.flatnonzero(early)
    name, target = chain.rate[soon], chain.target[soon]
    whole = chain.cuts.per_hour(rates_per_hour, states)[target]
    for scope in SCOPES:
        kept = ends | np.array([other == scope for other in strike], dtype=bool)
        part = chain.cuts.per_hour(np.where(kept, rates_per_hour, 0.0), states)[target]
        amounts = early[soon] * part / whole
        scopes = [scope] * len(names)
        _add(found, mechanisms, scopes, distinct, name, number[target], amounts)
    return dict(found)
