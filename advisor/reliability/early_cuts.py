"""Power that goes before all is on disk, though writing has stopped.

What was written last is in the page cache of those who were in sync. One failure stops the
writing; if power then goes within the time until all is on disk, whoever it strikes lacks the end
of the log: nobody has it any more, or whoever leads next lacks it. The second failure within so
short a time is charged to the first one, which leads into the state without writing. What a third
could do is neglected, and part of the error (:func:`advisor.reliability.bounds.third_failures`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability import faults
from advisor.reliability import reduction as red
from advisor.reliability.automaton import Automaton
from advisor.reliability.happenings import LOSS, UNFLUSHED, Events, Passages
from advisor.reliability.numbering import IntArray
from advisor.reliability.solve import Vector, sums

_EARLY = {red.POWER: red.EARLY_POWER}
# Below this two terms of the series have more digits than the quotient.
_FEW = 1e-5


class Cuts(NamedTuple):
    """What early power loses, by states in which nothing is written.

    Attributes
    ----------
    state, rate : arrays of int, shape (cuts,)
        Where, and index of the name of the failure's rate.
    chance : array, shape (cuts,)
        Of a loss by this failure.
    """

    state: IntArray
    rate: IntArray
    chance: Vector

    def per_hour(self, rates: Vector, states: int) -> Vector:
        """How often power that would go early goes in each state.

        Parameters
        ----------
        rates : array, shape (names,)
            Per hour, of each name.
        states : int
        """
        return sums(self.state, rates[self.rate] * self.chance, states)


def charged(per_hour: Vector, out: Vector, hours: Vector) -> tuple[Vector, Vector]:
    """What a cut that comes within some hours loses, if nothing else happens before.

    With cuts at rate r, changes of any kind at rate o, and x = o times the hours T until all is on
    disk: a cut with the chance ``r T (1 - exp(-x)) / x``. One after t hours takes T - t of writing,
    which comes to ``r T^2 (x - 1 + exp(-x)) / x^2``.

    Parameters
    ----------
    per_hour, out, hours : arrays, shape (transitions,)
        r and o in the state that the transition leads to, and T.

    Returns
    -------
    chance : array, shape (transitions,)
    lost_hours : array, shape (transitions,)
        Of writing, times the chance.
    """
    changes = out * hours
    few = changes < _FEW
    safe = np.where(few, 1.0, changes)
    once = np.where(few, 1.0 - changes / 2.0, -np.expm1(-safe) / safe)
    twice = np.where(few, 0.5 - changes / 6.0, (safe + np.expm1(-safe)) / safe**2)
    return per_hour * hours * once, per_hour * hours**2 * twice


class EarlyCuts:
    """What early power loses: the rules are asked once for each partition and failure.

    Parameters
    ----------
    table : Automaton
    events : Events
    passages : Passages
    """

    def __init__(self, table: Automaton, events: Events, passages: Passages) -> None:
        self._table, self._events, self._passages = table, events, passages
        self._early = np.zeros(0, dtype=np.int64)
        self._later: dict[int, float] = {}

    def early(self, events: IntArray) -> IntArray:
        """The same events with power gone early; -1 if none is about power."""
        found: IntArray
        more = [self._early_of(told) for told in self._events.listed[len(self._early) :]]
        self._early = np.concatenate([self._early, np.array(more, dtype=np.int64)])
        found = self._early[events]
        return found

    def _early_of(self, told: faults.Events) -> int:
        early = tuple((_EARLY.get(event, event), slots) for event, slots in told)
        return -1 if early == told else self._events.number(early)

    def chance(self, partition: IntArray, events: IntArray, early: IntArray) -> NDArray[np.float64]:
        """Of losing by power that goes early what is not lost by power that goes late.

        Parameters
        ----------
        partition, events, early : arrays of int, shape (asked,)
        """
        known = self._passages
        late, soon = known.of(partition, events), known.of(partition, early)
        spared = known.flags[late] & LOSS == 0
        lost: NDArray[np.float64]
        lost = (spared & (known.flags[soon] & LOSS > 0)).astype(np.float64)
        for place in np.flatnonzero(spared & (known.flags[soon] & UNFLUSHED > 0)).tolist():
            lost[place] = max(lost[place], self._lost_later(int(known.following[soon[place]])))
        return lost

    def _lost_later(self, partition: int) -> float:
        """Chance that gap 0 is lost as soon as somebody leads; who returns first is left open."""
        table = self._table
        if table.readable[partition]:
            return 0.0
        known = self._later.get(partition)
        if known is None:
            condition = table.states[partition].condition
            down = [slot for slot, own in enumerate(condition) if own in red.DOWN]
            chances = [self._lost_with(partition, slot) for slot in down]
            known = self._later[partition] = sum(chances) / len(chances) if chances else 0.0
        return known

    def _lost_with(self, partition: int, slot: int) -> float:
        """The same if this slot's broker returns first."""
        following, outcome = self._table.step(partition, red.BACK, (slot,))
        onto = outcome.gap_map[0]
        if onto == red.LOST:
            return 1.0
        return self._lost_later(following) if onto == 0 and following != partition else 0.0
