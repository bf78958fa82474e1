"""Losses of one set when racks are struck, whichever brokers the strike destroys besides.

Most do not depend on these: the page caches of a whole set are lost in any case, with those of all
sets in the racks. What is lost only because certain brokers were destroyed stays apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.common_cause.outage_class import OutageClasses, TransitionArrays
from advisor.reliability.failures.mechanisms import Scope, Transition, transitions
from advisor.reliability.solver.generator import IntArray, Vector, sums
from advisor.reliability.solver.once_per_chain import once_per_chain


class StruckLosses(NamedTuple):
    """Losses of one set by a mechanism that strikes all of its racks while nothing is out.

    per_year (draws,): loss events a year, whichever brokers are picked to be destroyed.
    share (draws,): probability of a broker to be picked.
    by_picked (picked + 1, draws): further loss events a year, by how many of the set's brokers are
        picked, from 0 to all; no rows if none ever are.
    """

    per_year: Vector
    share: Vector
    by_picked: Vector

    @property
    def total_per_year(self) -> Vector:
        """All loss events a year."""
        return np.asarray(self.per_year + self.by_picked.sum(axis=0))

    def scaled(self, share: Vector) -> StruckLosses:
        """The same for a share of the loss events."""
        return self._replace(per_year=self.per_year * share, by_picked=self.by_picked * share)


def lost_in_any_case(
    chain: TransitionArrays, lossy: IntArray, flux: Vector, lost: Vector
) -> Vector:
    """Move what a strike on racks loses in any case to the transition that picks none.

    lossy: the transitions that may lose.
    flux (transitions, draws): how often each transition happens.
    lost (lossy, draws): how often it loses.
    Returns (lossy, draws): losses with the same sum.
    """
    moves, group, none_picked = strikes_of(chain)
    if not len(moves):
        return lost
    row = np.searchsorted(lossy, moves)
    losing = (row < len(lossy)) & (lossy[np.minimum(row, len(lossy) - 1)] == moves)
    amounts = np.zeros((len(moves), lost.shape[1]))
    amounts[losing] = lost[row[losing]]
    none, groups = group[none_picked], int(group.max()) + 1
    base = sums(none, flux[moves[none_picked]], groups)
    base_lost = sums(none, amounts[none_picked], groups)
    chance = base_lost / np.where(base > 0.0, base, np.inf)
    others, first = ~none_picked & losing, none_picked & losing
    in_any_case = np.zeros_like(amounts)
    in_any_case[others] = np.minimum(amounts[others], chance[group[others]] * flux[moves[others]])
    more = sums(group, in_any_case, groups) / np.where(base_lost > 0.0, base_lost, np.inf)
    moved = lost.copy()
    moved[row[first]] *= 1.0 + more[group[first]]
    moved[row[others]] -= in_any_case[others]
    return moved


class Strikes(NamedTuple):
    """Transitions by strikes on racks that pick brokers, whatever their rates.

    moves, group (strikes,): the transition, and the number of its source and kind of strike.
    none_picked (strikes,).
    """

    moves: IntArray
    group: IntArray
    none_picked: NDArray[np.bool_]


@once_per_chain
def strikes_of(chain: TransitionArrays) -> Strikes:
    """The strikes on racks of a chain that pick brokers."""
    entries = transitions(chain.rate_names)
    kinds = [
        (entry.mechanism.full_name, entry.racks, entry.racks_among, entry.among)
        for entry in entries
    ]
    picks = np.array([_picks_of_racks(entry) for entry in entries], dtype=bool)
    none = np.array([entry.chosen == 0 for entry in entries], dtype=bool)
    moves = np.flatnonzero(picks[chain.rate])
    numbers = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
    kind = np.array([numbers[name] for name in kinds])[chain.rate[moves]]
    _, group = np.unique(chain.source[moves] * len(numbers) + kind, return_inverse=True)
    return Strikes(moves, group.ravel(), none[chain.rate[moves]])


def struck_together_with_losses(chain: TransitionArrays, losing: NDArray[np.bool_]) -> IntArray:
    """The transitions whose losses `lost_in_any_case` compares, and those beside them."""
    moves, group, none_picked = strikes_of(chain)
    compared = group[none_picked & losing[moves]]
    return moves[np.isin(group, compared)]


def _picks_of_racks(strike: Transition) -> bool:
    """A strike on racks that destroys some of their brokers by chance, or might have."""
    of_racks = strike.mechanism.scope is Scope.RACK and not strike.ends
    return bool(of_racks and strike.chosen >= 0 and strike.mechanism.turns_into)


def struck_of_all_racks(chain: TransitionArrays, classes: OutageClasses) -> NDArray[np.bool_]:
    """Which transitions strike all racks of the set while nothing is out."""
    entries = transitions(chain.rate_names)
    of_racks = np.array(
        [entry.mechanism.scope is Scope.RACK and not entry.ends for entry in entries], dtype=bool
    )
    distinct, number = classes
    none_out = np.array([racks is None for racks in distinct], dtype=bool)
    none_left = np.array(
        [racks is not None and not any(rack.in_service for rack in racks) for racks in distinct]
    )
    all_struck = none_out[number[chain.source]] & none_left[number[chain.target]]
    return np.asarray(of_racks[chain.rate] & all_struck)


def struck_losses(
    chain: TransitionArrays,
    lossy: IntArray,
    classes: OutageClasses,
    per_hour: Vector,
    at_once: Vector,
) -> dict[str, StruckLosses]:
    """Losses in which all racks of the set are struck while nothing is out, by mechanism.

    classes: of the chain's states.
    per_hour (names, draws): rates.
    at_once (lossy, draws): losses a year with each transition while nothing is out.
    """
    entries = transitions(chain.rate_names)
    rows = np.flatnonzero(struck_of_all_racks(chain, classes)[lossy])
    by_name = sums(chain.rate[lossy[rows]], at_once[rows], len(entries))
    amounts: dict[str, dict[int, Vector]] = defaultdict(dict)
    for name in np.flatnonzero(by_name.any(axis=1)).tolist():
        by_picked, chosen = amounts[entries[name].mechanism.name], max(entries[name].chosen, 0)
        by_picked[chosen] = by_picked.get(chosen, 0.0) + by_name[name]
    losses = {}
    nothing = np.zeros(per_hour.shape[1])
    for mechanism, by_picked in amounts.items():
        none, share = by_picked.pop(0, nothing), nothing
        counts = range(max(by_picked, default=-1) + 1)
        picked = np.array([by_picked.get(count, nothing) for count in counts])
        if by_picked:
            share = np.array([share_picked(mechanism, entries, column) for column in per_hour.T])
        losses[mechanism] = StruckLosses(none, share, picked.reshape(-1, len(nothing)))
    return losses


def share_picked(mechanism: str, entries: Sequence[Transition], per_hour: Vector) -> float:
    """Probability of a broker to be picked: the odds are those of one picked, and none."""
    rates: dict[tuple[int, int, int], dict[int, float]] = defaultdict(dict)
    for entry, rate in zip(entries, per_hour.tolist(), strict=True):
        if entry.mechanism.name == mechanism and not entry.ends and entry.among > 0:
            rates[entry.racks, entry.racks_among, entry.among][entry.chosen] = rate
    for by_count in rates.values():
        none, one = by_count.get(0, 0.0), by_count.get(1, 0.0)
        if none + one > 0.0:
            return one / (none + one)
    return 1.0
