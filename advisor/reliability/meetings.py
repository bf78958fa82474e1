"""Which sets of a placement are as weak at the same time, and struck by the same failure."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np

from advisor.reliability.numbering import IntArray


class Rack(NamedTuple):
    """What one rack's replicas of a set suffer when the set loses.

    Attributes
    ----------
    size : int
        Replicas in the rack.
    alone : int
        Of these, away or lagging by themselves.
    away : bool
        The rack is away, and with it those who are not away by themselves.
    """

    size: int
    alone: int
    away: bool


# The racks of a set, sorted.
Weakness = tuple[Rack, ...]
# By the mechanism behind a loss, the scope of what strikes then (broker, rack or cluster), and what
# the set was like.
Losses = Mapping[tuple[str, str, Weakness], float]
SCOPES = ("broker", "rack", "cluster")


def scope_of(name: str) -> str:
    """What a failure of this name, or of a rate's, strikes at once."""
    scope = name.split(".")[0]
    return scope if scope in ("broker", "rack") else "cluster"


class Case(NamedTuple):
    """One way in which a set can be as weak as that, and be struck.

    Attributes
    ----------
    site : int or None
        Slot of the broker that is struck, or of a broker in the rack that is; None: the cluster.
    alone : tuple of int
        Slots away by themselves.
    away : tuple of int
        A slot in each rack that is away.
    left : tuple of int
        Slots at hand that are not struck.
    """

    site: int | None
    alone: tuple[int, ...]
    away: tuple[int, ...]
    left: tuple[int, ...]


def cases(sizes: tuple[int, ...], weakness: Weakness, scope: str) -> list[Case]:
    """All of them, for a set whose slots are sorted by rack, the fullest first.

    Parameters
    ----------
    sizes : tuple of int
        Replicas in each rack, descending.
    weakness : Weakness
    scope : {"broker", "rack", "cluster"}
        Of what strikes.
    """
    first = np.cumsum((0, *sizes)).tolist()
    slots = [range(begin, begin + size) for begin, size in zip(first, sizes, strict=False)]
    found: list[Case] = []
    for order in sorted(set(permutations(weakness))):
        if tuple(rack.size for rack in order) != sizes:
            continue
        choices = [combinations(s, rack.alone) for s, rack in zip(slots, order, strict=True)]
        away = tuple(s[0] for s, rack in zip(slots, order, strict=True) if rack.away)
        for chosen in product(*choices):
            alone = tuple(slot for some in chosen for slot in some)
            at_hand = [
                tuple(slot for slot in s if slot not in alone and not rack.away)
                for s, rack in zip(slots, order, strict=True)
            ]
            found += _struck(at_hand, alone, away, scope)
    return found


def _struck(
    at_hand: list[tuple[int, ...]], alone: tuple[int, ...], away: tuple[int, ...], scope: str
) -> Iterator[Case]:
    """Whoever is at hand, else those away by themselves, else racks that are away."""
    every = tuple(slot for slots in at_hand for slot in slots)
    if scope == "cluster":
        yield Case(None, alone, away, ())
    elif scope == "rack" and every:
        for slots in at_hand:
            if slots:
                left = tuple(slot for slot in every if slot not in slots)
                yield Case(slots[0], alone, away, left)
    else:
        for site in every or alone or away:
            others = tuple(slot for slot in alone if slot != site)
            yield Case(site, others, away, tuple(slot for slot in every if slot != site))


class Meetings:
    """Which sets of a placement are as weak at once, and struck at once; each event once.

    Parameters
    ----------
    sets : mapping of pattern to sequence of replicas
        Distinct sets, whose racks are filled alike.
    rack_of : mapping of int to Hashable
    """

    def __init__(
        self,
        sets: Mapping[tuple[int, ...], Sequence[tuple[int, ...]]],
        rack_of: Mapping[int, Hashable],
    ) -> None:
        names = sorted(set(rack_of.values()), key=str)
        self._numbers = {rack: number for number, rack in enumerate(names)}
        self._rack_of = rack_of
        self._sets = {pattern: self._sorted(members) for pattern, members in sets.items()}
        self._events: dict[str, dict[tuple[int, ...], int]] = {scope: {} for scope in SCOPES}
        self._known: dict[tuple[tuple[int, ...], str, Weakness], tuple[int, IntArray]] = {}

    def _sorted(self, members: Sequence[tuple[int, ...]]) -> tuple[IntArray, IntArray]:
        """Brokers and racks by slots, the fullest rack first."""
        brokers, racks = [], []
        for replicas in members:
            where = [self._numbers[self._rack_of[broker]] for broker in replicas]
            order = sorted(zip(where, replicas, strict=True), key=lambda p: (-where.count(p[0]), p))
            racks.append([rack for rack, _ in order])
            brokers.append([broker for _, broker in order])
        return np.array(brokers, dtype=np.int64), np.array(racks, dtype=np.int64)

    def sites(self, scope: str) -> IntArray:
        """Where each known event strikes, by their numbers: a broker, a rack, -1 the cluster."""
        return np.array([key[0] for key in self._events[scope]], dtype=np.int64)

    def met(self, pattern: tuple[int, ...], scope: str, weakness: Weakness) -> tuple[int, IntArray]:
        """In how many ways one set meets this, and the numbers of the events for all sets.

        Parameters
        ----------
        pattern : tuple of int
        scope : {"broker", "rack", "cluster"}
            Of what strikes.
        weakness : Weakness
        """
        asked = (pattern, scope, weakness)
        if asked not in self._known:
            self._known[asked] = self._meet(*asked)
        return self._known[asked]

    def _meet(
        self, pattern: tuple[int, ...], scope: str, weakness: Weakness
    ) -> tuple[int, IntArray]:
        brokers, racks = self._sets[pattern]
        _, counts = np.unique(racks[0], return_counts=True)
        ways = cases(tuple(sorted(counts.tolist(), reverse=True)), weakness, scope)
        width = brokers.shape[1]
        keys = []
        for way in ways:
            # The site; who is away; who is left; the racks that are away. -1 is nobody.
            key = np.full((len(brokers), 1 + 3 * width), -1, dtype=np.int64)
            if way.site is not None:
                key[:, 0] = (brokers if scope == "broker" else racks)[:, way.site]
            for place, (table, chosen) in enumerate(
                [(brokers, way.alone), (brokers, way.left), (racks, way.away)]
            ):
                begin = 1 + place * width
                key[:, begin : begin + len(chosen)] = np.sort(table[:, chosen], axis=1)
            keys.append(key)
        different = np.unique(np.concatenate(keys), axis=0)
        known = self._events[scope]
        numbers = [known.setdefault(tuple(key), len(known)) for key in different.tolist()]
        return len(ways), np.array(numbers, dtype=np.int64)
