"""Which sets of a placement are as weak at the same time, and struck by the same failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain, combinations, permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.common_cause.outage_class import (
    BROKER_BACK,
    RACK_BACK,
    OutageClass,
    RackOutage,
)
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.state_index import codes_of_rows

Vector = NDArray[np.float64]


class Case(NamedTuple):
    """One way in which a set can be as weak as that, and be struck, or have somebody back.

    Attributes
    ----------
    site : int or None
        Slot of the broker that is struck or back, or of a broker in the rack that is; None: the
        cluster.
    alone : tuple of int
        Slots away by themselves.
    away : tuple of int
        A slot in each rack that is away.
    left : tuple of int
        Slots at hand that nothing happens to.
    lagging : tuple of int
        Slots that do not lead.
    """

    site: int | None
    alone: tuple[int, ...]
    away: tuple[int, ...]
    left: tuple[int, ...]
    lagging: tuple[int, ...] = ()


def cases(sizes: tuple[int, ...], weakness: OutageClass, scope: str) -> list[Case]:
    """All of them, for a set whose slots are sorted by rack, the fullest first.

    Parameters
    ----------
    sizes : tuple of int
        Replicas in each rack, descending.
    weakness : Weakness
    scope : str
        Of what happens: one of SCOPES, BROKER_BACK or RACK_BACK.
    """
    first = np.cumsum((0, *sizes)).tolist()
    slots = [range(begin, begin + size) for begin, size in zip(first, sizes, strict=False)]
    found: list[Case] = []
    for order in sorted(set(permutations(weakness))):
        if tuple(rack.size for rack in order) != sizes:
            continue
        choices = [_alone(s, rack) for s, rack in zip(slots, order, strict=True)]
        away = tuple(s[0] for s, rack in zip(slots, order, strict=True) if rack.away)
        for chosen in product(*choices):
            alone, lagging = (
                tuple(chain.from_iterable(some)) for some in zip(*chosen, strict=True)
            )
            at_hand = [
                tuple(slot for slot in s if slot not in alone and not rack.away)
                for s, rack in zip(slots, order, strict=True)
            ]
            found += [
                case._replace(lagging=lagging) for case in _struck(at_hand, alone, away, scope)
            ]
    return found


def _alone(
    slots: Sequence[int], rack: RackOutage
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Who of a rack may be away by themselves, and who of them may lag."""
    for alone in combinations(slots, rack.alone):
        for lagging in combinations(alone, rack.lagging):
            yield alone, lagging


def _struck(
    at_hand: list[tuple[int, ...]], alone: tuple[int, ...], away: tuple[int, ...], scope: str
) -> Iterator[Case]:
    """Whoever is at hand, else those away by themselves, else racks that are away.

    Those who are back were away, by themselves or as a rack.
    """
    every = tuple(slot for slots in at_hand for slot in slots)
    if scope in (BROKER_BACK, RACK_BACK):
        for site in (away or alone) if scope == RACK_BACK else (alone or away):
            others, racks = (tuple(s for s in slots if s != site) for slots in (alone, away))
            yield Case(site, others, racks, every)
    elif scope == "cluster":
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


class _Members(NamedTuple):
    """The sets of one pattern, a row for each that leads one; slots by racks, the fullest first.

    Attributes
    ----------
    brokers, racks : arrays of int, shape (rows, replicas)
    leads : array of int, shape (rows,)
        Slot of the preferred leader; -1 where any may lead.
    once : array of int, shape (sets,)
        A row of each set.
    """

    brokers: IntArray
    racks: IntArray
    leads: IntArray
    once: IntArray


class CoincidentSets:
    """Which sets of a placement are as weak at once, and struck at once; each event once.

    Parameters
    ----------
    sets : mapping of pattern to sequence of replicas
        Distinct sets, whose racks are filled alike.
    rack_of : mapping of int to Hashable
    led : bool
        The first replica of each leads, and a set is named for each of its leaders; otherwise any
        may.
    """

    def __init__(
        self,
        sets: Mapping[tuple[int, ...], Sequence[tuple[int, ...]]],
        rack_of: Mapping[int, Hashable],
        led: bool,
    ) -> None:
        names = sorted(set(rack_of.values()), key=str)
        self._numbers = {rack: number for number, rack in enumerate(names)}
        self._rack_of, self._led = rack_of, led
        self._sets = {pattern: self._sorted(members) for pattern, members in sets.items()}
        self._events: dict[str, dict[tuple[int, ...], int]] = defaultdict(dict)
        nobody = np.zeros(0, dtype=np.int64)
        self._sites: dict[str, IntArray] = defaultdict(lambda: nobody)
        self._known: dict[tuple[tuple[int, ...], str, OutageClass], tuple[IntArray, Vector]] = {}

    def _sorted(self, members: Sequence[tuple[int, ...]]) -> _Members:
        brokers, racks, leads = [], [], []
        once: dict[tuple[int, ...], int] = {}
        for row, replicas in enumerate(members):
            where = [self._numbers[self._rack_of[broker]] for broker in replicas]
            order = sorted(zip(where, replicas, strict=True), key=lambda p: (-where.count(p[0]), p))
            racks.append([rack for rack, _ in order])
            slots = tuple(broker for _, broker in order)
            brokers.append(slots)
            leads.append(slots.index(replicas[0]) if self._led else -1)
            once.setdefault(slots, row)
        tables = (brokers, racks, leads, list(once.values()))
        return _Members(*[np.array(table, dtype=np.int64) for table in tables])

    def sites(self, scope: str) -> IntArray:
        """Where each known event strikes, by their numbers: a broker, a rack, -1 the cluster."""
        known = self._sites[scope]
        if len(known) < len(self._events[scope]):
            sites = [key[0] for key in self._events[scope]]
            known = self._sites[scope] = np.array(sites, dtype=np.int64)
        return known

    def met(
        self, pattern: tuple[int, ...], scope: str, weakness: OutageClass
    ) -> tuple[IntArray, Vector]:
        """The numbers of the events in which sets meet this, and the part of a set's in each.

        Parameters
        ----------
        pattern : tuple of int
        scope : str
            Of what happens: one of SCOPES, BROKER_BACK or RACK_BACK.
        weakness : Weakness
        """
        asked = (pattern, scope, weakness)
        if asked not in self._known:
            self._known[asked] = self._meet(*asked)
        return self._known[asked]

    def _meet(
        self, pattern: tuple[int, ...], scope: str, weakness: OutageClass
    ) -> tuple[IntArray, Vector]:
        members = self._sets[pattern]
        # Who leads matters only to those who lag.
        lags = any(rack.lagging for rack in weakness)
        rows = np.arange(len(members.leads)) if lags else members.once
        brokers, racks, leads = members.brokers[rows], members.racks[rows], members.leads[rows]
        _, counts = np.unique(racks[0], return_counts=True)
        ways = cases(tuple(sorted(counts.tolist(), reverse=True)), weakness, scope)
        lagging = _padded([way.lagging for way in ways], brokers.shape[1])
        # Nobody leads from the slot that fills up.
        meets = (lagging[:, None, :] != leads[:, None]).all(axis=2)
        # Who was preferred may lag while another leads.
        meets |= ~meets.any(axis=0)
        every = _events(ways, brokers, racks, scope)[meets]
        _, first, which = np.unique(
            codes_of_rows(every.T + 1), return_index=True, return_inverse=True
        )
        different = every[first]
        part = 1.0 / meets.sum(axis=0)
        parts = np.zeros(len(different))
        np.maximum.at(parts, which.ravel(), np.concatenate([part[here] for here in meets]))
        known = self._events[scope]
        numbers = [known.setdefault(tuple(key), len(known)) for key in different.tolist()]
        return np.array(numbers, dtype=np.int64), parts


def _events(ways: Sequence[Case], brokers: IntArray, racks: IntArray, scope: str) -> IntArray:
    """What tells events apart, -1 for nobody; shape (ways, rows, 1 + 3 replicas).

    The site; who is away; who is left; the racks that are away.
    """
    nobody = np.full((len(brokers), 1), -1)
    of_brokers, of_racks = (np.concatenate([table, nobody], axis=1) for table in (brokers, racks))
    width = brokers.shape[1]
    of_one = scope in ("broker", BROKER_BACK)
    site = np.array([width if way.site is None else way.site for way in ways])
    parts = [(of_brokers if of_one else of_racks)[:, site, None]]
    for table, chosen in (
        (of_brokers, [way.alone for way in ways]),
        (of_brokers, [way.left for way in ways]),
        (of_racks, [way.away for way in ways]),
    ):
        parts.append(np.sort(table[:, _padded(chosen, width)], axis=2))
    return np.concatenate(parts, axis=2).swapaxes(0, 1)


def _padded(slots: Sequence[tuple[int, ...]], width: int) -> IntArray:
    """Tuples of slots as rows of equal length, filled up with ``width``."""
    return np.array([some + (width,) * (width - len(some)) for some in slots])
