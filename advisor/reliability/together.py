"""Which losses of different replica sets are one event: those that wait for the same racks.

A set loses when a failure strikes while other replicas are away already. If these are away because
their racks are, all sets that stand in these racks are as weak at the same time, and lose at the
same stroke; if their own brokers are away, the sets of these brokers are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.reliability import faults
from advisor.reliability.early_cuts import Cuts
from advisor.reliability.meetings import SCOPES, Losses, Rack, Weakness, scope_of
from advisor.reliability.numbering import IntArray, place_values

Vector = NDArray[np.float64]

# Spells of a whole rack. Who was destroyed, or lost power with the site, comes back by himself.
_OF_A_RACK = (faults.ISOLATED, faults.RACK_DARK)
_CONDITIONS = range(len(faults.SPELLS) + 1)
_BEGAN_TOGETHER = (faults.GONE, faults.DARK_ALL)
# Names of rates at which something ends, and of failures that some brokers survive.
_ENDS, _SOME_SURVIVE = re.compile(r"repair |copy$"), re.compile(r"cluster\.power [^0]")


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
    kinds = np.array([0 if c == faults.WELL else 2 if c in shared else 1 for c in _CONDITIONS])
    digits = racks * 3 + kinds[own]
    places = place_values(3 * (int(racks.max(initial=0)) + 1), own.shape[1])
    _, first, number = np.unique(digits @ places, return_index=True, return_inverse=True)
    found = [(row % 3, row // 3) for row in digits[first]]
    return [_weakness(k.tolist(), r.tolist()) for k, r in found], number.ravel()


def _weakness(kinds: Sequence[int], racks: Sequence[int]) -> Weakness | None:
    if not any(kinds):
        return None
    in_rack: dict[int, list[int]] = defaultdict(list)
    for kind, rack in zip(kinds, racks, strict=True):
        in_rack[rack].append(kind)
    return tuple(sorted(Rack(len(k), k.count(1), 2 in k) for k in in_rack.values()))


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
    mechanisms: Sequence[Mapping[str, float]],
    rates: Vector,
    certain: Vector,
    early: Vector,
) -> Losses:
    """Losses of one set that others may have part in, per hour.

    Not those by a failure of the site that some brokers do not survive, nor by the end of a spell:
    who survives, and who is back first, is decided anew for each.

    Parameters
    ----------
    chain : Chain
    weak : Weaknesses
        Of its states.
    mechanisms : sequence of mapping of mechanism to float
        What is behind each name of a rate.
    rates : array, shape (names,)
        Per hour.
    certain, early : arrays, shape (transitions,)
        Losses with a transition, and by power that goes soon after it, per hour.
    """
    distinct, number = weak
    states = len(number)
    names = chain.rate_names
    ends = np.array([bool(_ENDS.match(name)) for name in names], dtype=bool)
    by_chance = ends | np.array([bool(_SOME_SURVIVE.match(name)) for name in names], dtype=bool)
    strike = [scope_of(name) for name in names]
    lost = np.flatnonzero((certain > 0) & ~by_chance[chain.rate])
    source = number[chain.source[lost]]
    found: dict[tuple[str, str, Weakness], float] = defaultdict(float)
    _add(found, mechanisms, strike, distinct, chain.rate[lost], source, certain[lost])
    soon = np.flatnonzero(early)
    name, target = chain.rate[soon], chain.target[soon]
    whole = chain.cuts.per_hour(rates, states)[target]
    for scope in SCOPES:
        kept = ends | np.array([other == scope for other in strike], dtype=bool)
        part = chain.cuts.per_hour(np.where(kept, rates, 0.0), states)[target]
        amounts = early[soon] * part / whole
        scopes = [scope] * len(names)
        _add(found, mechanisms, scopes, distinct, name, number[target], amounts)
    return dict(found)
