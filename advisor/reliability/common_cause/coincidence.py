"""Which replica sets are in the same outage class, and struck by the same event, at once."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, combinations, permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.reliability.common_cause.outage_class import (
    BROKER_DEATH,
    BROKER_REPAIR,
    PICKED,
    RACK_REPAIR,
    OutageClass,
    RackOutage,
    racks_at_once,
)
from advisor.reliability.common_cause.staggered_replacement import Destroyed, StaggeredReplacement
from advisor.reliability.solver.generator import IntArray, Vector
from advisor.reliability.statespace.state_index import codes_of_rows

Pattern = tuple[int, ...]
Hashes = NDArray[np.uint64]

_NONE = np.zeros(0, dtype=np.int64)
# One for each column of a table of events.
_FACTORS = np.random.default_rng(1979).integers(2**64, size=64, dtype=np.uint64)


class Sites(NamedTuple):
    """Brokers by number: sorted ids and the rack of each; and the names of the racks."""

    ids: IntArray
    racks: IntArray
    names: tuple[Hashable, ...]

    def numbers_of(self, brokers: IntArray) -> IntArray:
        """Numbers of brokers with these ids."""
        numbers: IntArray = np.searchsorted(self.ids, brokers)
        return numbers


def sites_of(rack_of: Mapping[int, Hashable]) -> Sites:
    """Number the brokers and racks of a cluster."""
    return _numbered(tuple(rack_of.items()))


@lru_cache(maxsize=8)
def _numbered(rack_of: tuple[tuple[int, Hashable], ...]) -> Sites:
    names = sorted({rack for _, rack in rack_of}, key=str)
    number = {rack: place for place, rack in enumerate(names)}
    racks = np.array([number[rack] for _, rack in sorted(rack_of)], dtype=np.int64)
    return Sites(np.array(sorted(broker for broker, _ in rack_of)), racks, tuple(names))


class Occurrence(NamedTuple):
    """One way in which an event can find a set in an outage class, by the set's slots.

    sites: slot of the broker that fails or returns, or one slot of each rack that does; empty for
        the whole cluster.
    brokers_out: slots whose own broker is out.
    racks_out: one slot in each rack that is out.
    unaffected: slots in service that the event does not strike; of racks marked `as_one` the first
        such slot, plus the number of slots plus 1.
    lagging: slots that lag, so do not lead.
    destroyed: of ``brokers_out``, those in each rack marked as destroyed.
    """

    sites: tuple[int, ...]
    brokers_out: tuple[int, ...]
    racks_out: tuple[int, ...]
    unaffected: tuple[int, ...]
    lagging: tuple[int, ...] = ()
    destroyed: tuple[tuple[int, ...], ...] = ()


@lru_cache(maxsize=4096)
def occurrences(
    sizes: tuple[int, ...], outage_class: OutageClass, scope: str
) -> tuple[Occurrence, ...]:
    """Every way to meet an outage class and an event, for slots sorted by rack, fullest first."""
    first = np.cumsum((0, *sizes)).tolist()
    slots = [range(begin, begin + size) for begin, size in zip(first, sizes, strict=False)]
    ways: list[Occurrence] = []
    for order in sorted(set(permutations(outage_class))):
        if tuple(rack.size for rack in order) != sizes:
            continue
        as_one = [s for s, rack in zip(slots, order, strict=True) if rack.as_one]
        numbers = {slot: slots[-1].stop + 1 + s[0] for s in as_one for slot in s}
        choices = [_brokers_out(s, rack) for s, rack in zip(slots, order, strict=True)]
        racks_out = tuple(s[0] for s, rack in zip(slots, order, strict=True) if rack.rack_out)
        for chosen in product(*choices):
            out, lagging = (tuple(chain.from_iterable(some)) for some in zip(*chosen, strict=True))
            gone = tuple(one for (one, _), r in zip(chosen, order, strict=True) if r.destroyed)
            in_service = [
                tuple(slot for slot in s if slot not in out and not rack.rack_out)
                for s, rack in zip(slots, order, strict=True)
            ]
            for one in _at(in_service, out, racks_out, scope):
                left = tuple(sorted({numbers.get(slot, slot) for slot in one.unaffected}))
                ways.append(one._replace(lagging=lagging, destroyed=gone, unaffected=left))
    return tuple(ways)


@lru_cache(maxsize=4096)
def _plain(outage_class: OutageClass) -> OutageClass:
    """The class whether brokers are destroyed or not."""
    return tuple(rack._replace(destroyed=False) for rack in outage_class)


def _brokers_out(
    slots: Sequence[int], rack: RackOutage
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Choices of the slots whose broker is out, and of those among them that lag."""
    for out in combinations(slots, rack.brokers_out):
        for lagging in combinations(out, rack.lagging):
            yield out, lagging


def _at(
    in_service: list[tuple[int, ...]],
    out: tuple[int, ...],
    racks_out: tuple[int, ...],
    scope: str,
) -> Iterator[Occurrence]:
    """Sites of the event: what is in service, else brokers that are out, else racks."""
    every = tuple(slot for slots in in_service for slot in slots)
    if scope in (BROKER_REPAIR, RACK_REPAIR):
        for site in (racks_out or out) if scope == RACK_REPAIR else (out or racks_out):
            others, racks = (tuple(s for s in slots if s != site) for slots in (out, racks_out))
            yield Occurrence((site,), others, racks, every)
    elif scope == BROKER_DEATH:
        # Its partitions' followers are out of sync because of it, not by themselves.
        for site in out or racks_out:
            yield Occurrence((site,), tuple(slot for slot in out if slot != site), racks_out, ())
    elif scope == "cluster":
        yield Occurrence((), out, racks_out, ())
    elif scope not in ("broker", PICKED) and every:
        serving = [slots for slots in in_service if slots]
        fewer = [n for n in range(1, len(serving)) if racks_at_once(n) == scope]
        for struck in combinations(serving, fewer[0] if fewer else len(serving)):
            unaffected = tuple(slot for some in serving if some not in struck for slot in some)
            yield Occurrence(tuple(slots[0] for slots in struck), out, racks_out, unaffected)
    else:
        for site in every or out or racks_out:
            others = tuple(slot for slot in out if slot != site)
            unaffected = tuple(slot for slot in every if slot != site)
            yield Occurrence((site,), others, racks_out, unaffected)


class _Members(NamedTuple):
    """The sets of one rack pattern, slots sorted by rack, fullest first.

    brokers, racks (rows, replicas): a row for each pair of set and preferred leader.
    leader (rows,): slot of the preferred leader; -1 where any replica may lead.
    once (sets,): one row of each set.
    """

    brokers: IntArray
    racks: IntArray
    leader: IntArray
    once: IntArray


class CoincidentSets:
    """Events in which sets of a placement are in one outage class and struck at once.

    A set is repeated for each of its preferred leaders; without these any replica may lead.
    """

    def __init__(
        self,
        sets: Mapping[tuple[int, ...], Sequence[tuple[int, ...]]],
        rack_of: Mapping[int, Hashable],
        preferred_leader: bool,
    ) -> None:
        self._where, self._preferred_leader = sites_of(rack_of), preferred_leader
        self._members = {pattern: self._sorted(lists) for pattern, lists in sets.items()}
        self._sizes = {
            pattern: tuple(sorted(Counter(members.racks[0].tolist()).values(), reverse=True))
            for pattern, members in self._members.items()
        }
        # Per scope: numbers of distinct events, and the site and the outage before each.
        self._events: dict[str, _Numbers] = defaultdict(_Numbers)
        self._sites: dict[str, IntArray] = {}
        self._outage_of: dict[str, IntArray] = defaultdict(lambda: _NONE)
        # Of any scope.
        self._outages = _Numbers()
        self._of_class: dict[tuple[Pattern, str, OutageClass], IntArray] = {}
        self._cache: dict[tuple[tuple[int, ...], str, OutageClass], tuple[IntArray, Vector]] = {}
        self._staggered_replacement: dict[
            tuple[str, tuple[tuple[Pattern, OutageClass], ...], bool], StaggeredReplacement
        ] = {}

    def _sorted(self, lists: Sequence[tuple[int, ...]]) -> _Members:
        listed = np.array(lists, dtype=np.int64)
        racks = self.racks_of(listed)
        fullness = (racks[:, :, None] == racks[:, None, :]).sum(axis=2)
        order = np.lexsort((listed, racks, -fullness), axis=1)
        brokers, racks = (np.take_along_axis(table, order, axis=1) for table in (listed, racks))
        leader = np.full(len(listed), -1)
        if self._preferred_leader:
            leader = (brokers == listed[:, :1]).argmax(axis=1)
        _, once = np.unique(_hashes(brokers), return_index=True)
        return _Members(brokers, racks, leader, np.sort(once))

    def sites(self, scope: str) -> IntArray:
        """Sites by event number, (events, replicas): a broker, or racks padded with -1."""
        return self._sites[scope]

    def racks_of(self, brokers: IntArray) -> IntArray:
        """Numbers of the racks of brokers, as `sites` has them."""
        racks: IntArray = self._where.racks[self._where.numbers_of(brokers)]
        return racks

    def outages(self, scope: str) -> IntArray:
        """Number of the outage before each event so far, by event number; of any scope's."""
        return self._outage_of[scope]

    @property
    def outages_so_far(self) -> int:
        """Number of outages seen so far."""
        return len(self._outages)

    def outages_of_class(self, pattern: Pattern, scope: str, outage_class: OutageClass) -> IntArray:
        """Numbers of the outages that put sets in a class."""
        key = (pattern, scope, _plain(outage_class))
        if key not in self._of_class:
            numbers, _ = self.events(*key)
            self._of_class[key] = np.unique(self.outages(scope)[numbers])
        return self._of_class[key]

    def events(
        self, pattern: tuple[int, ...], scope: str, outage_class: OutageClass
    ) -> tuple[IntArray, Vector]:
        """Numbers of the events that find sets in an outage class, and a set's share in each."""
        key = (pattern, scope, _plain(outage_class))
        if key not in self._cache:
            self._cache[key] = self._numbered(*key)
        return self._cache[key]

    def staggered_replacement(
        self, scope: str, exposed: tuple[tuple[Pattern, OutageClass], ...], by_rack: bool
    ) -> StaggeredReplacement:
        """The destroyed brokers that expose sets to the same events; computed once.

        by_rack: each rack was destroyed by its own event; otherwise all brokers by one.
        """
        key = (scope, exposed, by_rack)
        if key not in self._staggered_replacement:
            classes = [self._destroyed(scope, *each, by_rack) for each in exposed]
            self._staggered_replacement[key] = StaggeredReplacement(classes, len(self._where.ids))
        return self._staggered_replacement[key]

    def ways(self, pattern: Pattern, outage_class: OutageClass, scope: str) -> tuple[int, int]:
        """Numbers of ways and of outages by which a set can be in an outage class and struck."""
        meetings = occurrences(self._sizes[pattern], outage_class, scope)
        return len(meetings), len({(way.brokers_out, way.racks_out) for way in meetings})

    def _destroyed(
        self, scope: str, pattern: Pattern, outage_class: OutageClass, by_rack: bool
    ) -> Destroyed:
        members = self._members[pattern]
        brokers, racks = members.brokers[members.once], members.racks[members.once]
        ways, slots = [], []
        for way in occurrences(self._sizes[pattern], outage_class, scope):
            parts = way.destroyed if by_rack else (tuple(chain.from_iterable(way.destroyed)),)
            widest = max(map(len, parts))
            slots.append([(*part, *[part[-1]] * (widest - len(part))) for part in parts])
            gone = set(chain.from_iterable(parts))
            others = tuple(slot for slot in way.brokers_out if slot not in gone)
            destroyed_racks = tuple(part[0] for part in parts) if by_rack else ()
            ways.append(
                way._replace(brokers_out=others, racks_out=(*way.racks_out, *destroyed_racks))
            )
        keys = _event_keys(ways, brokers, racks, scope)
        rows, where = (table[:, np.array(slots)].swapaxes(0, 1) for table in (brokers, racks))
        rows = np.take_along_axis(rows, where.argsort(axis=2, kind="stable"), axis=2)
        rows, keys = rows.reshape(-1, *rows.shape[2:]), keys.reshape(-1, keys.shape[2])
        both = np.concatenate([keys, rows.reshape(len(rows), -1)], axis=1)
        _, first = np.unique(codes_of_rows(both.T - both.min()), return_index=True)
        return Destroyed(keys[first], rows[first])

    def _numbered(
        self, pattern: tuple[int, ...], scope: str, outage_class: OutageClass
    ) -> tuple[IntArray, Vector]:
        members = self._members[pattern]
        # The leader matters only if a follower lags, or if it is the leader that dies.
        led = scope == BROKER_DEATH or any(rack.lagging for rack in outage_class)
        rows = np.arange(len(members.leader)) if led else members.once
        brokers, racks, leader = members.brokers[rows], members.racks[rows], members.leader[rows]
        ways = occurrences(self._sizes[pattern], outage_class, scope)
        lagging = _padded([way.lagging for way in ways], brokers.shape[1])
        possible = (lagging[:, None, :] != leader[:, None]).all(axis=2)
        if scope == BROKER_DEATH:
            sites = np.array([way.sites[0] for way in ways])
            possible &= (sites[:, None] == leader) | (leader == -1)
        # The preferred leader itself may lag, or be out, while another leads.
        possible |= ~possible.any(axis=0)
        keys = _event_keys(ways, brokers, racks, scope)[possible]
        hashes, first, which = np.unique(_hashes(keys), return_index=True, return_inverse=True)
        share = np.broadcast_to(1.0 / possible.sum(axis=0), possible.shape)
        shares = np.zeros(len(first))
        np.maximum.at(shares, which.ravel(), share[possible])
        numbers, new = self._events[scope].of(hashes)
        # After the sites: brokers out, what is unaffected, racks out.
        new_keys, width = keys[first[new]], brokers.shape[1]
        out = _hashes(np.delete(new_keys, np.s_[2 * width : 3 * width], axis=1)[:, width:])
        distinct, where = np.unique(out, return_inverse=True)
        outages = self._outages.of(distinct)[0][where.ravel()]
        before = self._sites.get(scope, new_keys[:0, :width])
        self._sites[scope] = np.concatenate([before, new_keys[:, :width]])
        self._outage_of[scope] = np.concatenate([self._outage_of[scope], outages])
        return numbers, shares


class _Numbers:
    """Numbers of distinct hashes, from 0."""

    def __init__(self) -> None:
        self._hashes, self._numbers = np.zeros(0, dtype=np.uint64), _NONE

    def __len__(self) -> int:
        return len(self._hashes)

    def of(self, hashes: Hashes) -> tuple[IntArray, IntArray]:
        """Numbers of sorted distinct hashes, and which of them are new: these come last."""
        at = np.searchsorted(self._hashes, hashes)
        is_known = np.zeros(len(hashes), dtype=bool)
        inside = at < len(self)
        is_known[inside] = self._hashes[at[inside]] == hashes[inside]
        numbers, new = np.empty(len(hashes), dtype=np.int64), np.flatnonzero(~is_known)
        numbers[is_known] = self._numbers[at[is_known]]
        numbers[new] = len(self) + np.arange(len(new))
        self._hashes = np.insert(self._hashes, at[new], hashes[new])
        self._numbers = np.insert(self._numbers, at[new], numbers[new])
        return numbers, new


def _hashes(rows: IntArray) -> Hashes:
    """64 bits for each row of a table; two of ten million agree with a probability of 1e-4 at most.

    A sum with random factors modulo 2 ** 64 (Carter and Wegman, J. Comput. Syst. Sci. 18, 1979).
    """
    # Rows that begin to differ with their n-th bit agree for 2 ** (n - 64) of all factors.
    hashes: Hashes = (rows.astype(np.uint64) * _FACTORS[: rows.shape[1]]).sum(axis=1)
    return hashes


def _event_keys(
    ways: Sequence[Occurrence], brokers: IntArray, racks: IntArray, scope: str
) -> IntArray:
    """What distinguishes events, padded with -1; shape (ways, rows, 4 replicas).

    The sites; the brokers out; the brokers unaffected, or racks as -2, -3, ...; the racks out.
    """
    none = np.full((len(brokers), 1), -1)
    of_brokers, of_racks = (np.concatenate([table, none], axis=1) for table in (brokers, racks))
    width = brokers.shape[1]
    of_one = scope in ("broker", PICKED, BROKER_REPAIR, BROKER_DEATH)
    parts = [
        np.sort(table[:, _padded(slots, width)], axis=2)
        for table, slots in (
            (of_brokers if of_one else of_racks, [way.sites for way in ways]),
            (of_brokers, [way.brokers_out for way in ways]),
            (np.concatenate([of_brokers, -2 - racks], axis=1), [way.unaffected for way in ways]),
            (of_racks, [way.racks_out for way in ways]),
        )
    ]
    return np.concatenate(parts, axis=2).swapaxes(0, 1)


def _padded(slots: Sequence[tuple[int, ...]], width: int) -> IntArray:
    """Tuples of slots as rows of equal length, padded with ``width``, which is not a slot."""
    return np.array([some + (width,) * (width - len(some)) for some in slots])
