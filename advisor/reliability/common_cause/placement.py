"""Which brokers and racks hold the partitions: replica sets, and the exchangeable ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.coincidence import CoincidentSets, Sites, sites_of
from advisor.reliability.common_cause.outage_class import CLUSTER
from advisor.reliability.common_cause.picked_brokers import PickedBrokers
from advisor.reliability.failures.fault_processes import Exchangeable, Replicas, rack_pattern
from advisor.reliability.solver.generator import IntArray
from advisor.reliability.statespace.state_index import codes_of_rows

_LARGE_RACK, _SEED = 20, 20130626
# Distributions of voters over racks that are tried.
_MOST_DISTRIBUTIONS = 4096


class Brokers(Protocol):
    """Anything with brokers and their racks."""

    @property
    def brokers(self) -> Mapping[int, str | None]:
        """Rack of each broker id, None where unknown."""


@dataclass(frozen=True, eq=False)
class ReplicaSetClass:
    """Exchangeable replica sets: those of one rack pattern, which have the same CTMC.

    partitions: on all of these sets.
    lists: distinct sets by leader as well, and by order where that decides elections.
    members (sets, replicas): broker numbers of each distinct set. One with several patterns is here
        where it has most.
    on_set (sets,): partitions on each.
    rack_numbers (brokers,): rack of each broker, by number.
    leaders: each partition loses on its own, with its leader: one of the first ``leaders`` replicas
        of the list. None if all on a set lose together, with any of their brokers.
    """

    partitions: int
    lists: int
    members: IntArray
    on_set: IntArray
    rack_numbers: IntArray
    leaders: int | None

    @property
    def sets(self) -> int:
        """Number of distinct sets."""
        return len(self.on_set)

    @cached_property
    def exposure(self) -> Mapping[tuple[str, int], tuple[IntArray, IntArray]]:
        """Sites and their sets, or partitions, by scope and number of sites that a set spans."""
        counts = self.on_set if self.leaders else np.ones_like(self.on_set)
        brokers = self.members[:, : self.leaders]
        exposure = {("broker", brokers.shape[1]): _summed(brokers, counts)}
        racks = _distinct_in_row(self.rack_numbers[brokers])
        spanned = (racks >= 0).sum(axis=1)
        for several in np.unique(spanned).tolist():
            rows = spanned == several
            exposure["rack", several] = _summed(racks[rows], counts[rows])
        exposure["cluster", 1] = np.array([CLUSTER]), np.array([counts.sum()])
        return exposure

    @cached_property
    def homes(self) -> tuple[IntArray, IntArray]:
        """Racks of sets, in rows padded with -1, and which of these rows each set has."""
        racks = _distinct_in_row(self.rack_numbers[self.members])
        _, first, which = np.unique(
            codes_of_rows((racks + 1).T), return_index=True, return_inverse=True
        )
        return racks[first], which.ravel()


def _distinct_in_row(table: IntArray) -> IntArray:
    """The distinct numbers of each row, sorted; in place of the others -1, which come first."""
    ordered = np.sort(table, axis=1)
    ordered[:, 1:][ordered[:, 1:] == ordered[:, :-1]] = -1
    return np.sort(ordered, axis=1)


def _summed(sites: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
    """Sites that rows hold, and the sum of these rows' counts for each; -1 is none."""
    held = sites >= 0
    rows = np.repeat(np.arange(len(sites)), held.sum(axis=1))
    totals = np.bincount(sites[held], counts[rows]).astype(np.int64)
    which = np.flatnonzero(totals)
    return which, totals[which]


@dataclass(frozen=True, eq=False)
class Placement:
    """A topic's partitions, grouped by replica list; equal only to itself.

    sets: replica lists in assignment order, and how many partitions have each.
    rack_of: rack of each broker; a broker whose rack is unknown has one of its own.
    voters: of the controller quorum by rack; empty if no outage of racks can take the majority.
    """

    sets: tuple[tuple[Replicas, int], ...]
    brokers: int
    rack_of: Mapping[int, str]
    voters: Mapping[str, int] = field(default_factory=dict)
    # One placement of tens of thousands of sets serves many draws of a card.
    _classes: dict[tuple[Exchangeable, int | None], Mapping[tuple[int, ...], ReplicaSetClass]] = (
        field(default_factory=dict, init=False, repr=False)
    )
    _coincident: dict[Exchangeable, CoincidentSets] = field(
        default_factory=dict, init=False, repr=False
    )
    _picked: dict[Exchangeable, PickedBrokers] = field(default_factory=dict, init=False, repr=False)
    _numbered_patterns: dict[Exchangeable, tuple[list[tuple[int, ...]], IntArray]] = field(
        default_factory=dict, init=False, repr=False
    )
    _parts: dict[tuple[int, Exchangeable], Placement] = field(
        default_factory=dict, init=False, repr=False
    )

    def __reduce__(self) -> tuple[type[Placement], tuple[Any, ...]]:
        # Without what was computed from it.
        return Placement, (self.sets, self.brokers, self.rack_of, self.voters)

    @cached_property
    def racks(self) -> int:
        """Number of racks of the cluster, known or assumed."""
        return len({*self.rack_of.values(), *self.voters})

    @property
    def voter_racks(self) -> int:
        """Racks with voters of the controller quorum whose outages can take the majority."""
        return len(self.voters)

    @cached_property
    def partitions(self) -> int:
        """Number of partitions."""
        return int(self._counts.sum())

    @cached_property
    def _sites(self) -> Sites:
        return sites_of(self.rack_of)

    @cached_property
    def _lists(self) -> IntArray:
        """Broker numbers of each list, shape (lists, replicas)."""
        return self._sites.numbers_of(np.array([replicas for replicas, _ in self.sets]))

    @cached_property
    def _counts(self) -> IntArray:
        """Partitions with each list."""
        return np.array([count for _, count in self.sets])

    @cached_property
    def brokers_per_rack(self) -> float:
        """Mean number of brokers whose leaders move at once when a leader's rack fails."""
        brokers_in = np.bincount(self._sites.racks)[self._sites.racks]
        mean = float(brokers_in[self._lists[:, 0]] @ self._counts) / self.partitions
        return mean if mean < _LARGE_RACK else float(round(mean))

    @cached_property
    def cross_rack_followers(self) -> Mapping[int, int]:
        """Number of partitions by how many followers are in another rack than the leader."""
        racks = self._sites.racks[self._lists]
        totals = np.bincount((racks != racks[:, :1]).sum(axis=1), self._counts)
        return {n: int(count) for n, count in enumerate(totals.tolist()) if count}

    def distinct_sets(self, exchangeable: Exchangeable) -> int:
        """Number of sets that may lose independently."""
        return len(_distinct_rows(_canonical(self._lists, exchangeable)))

    def some_of(self, sets: int, exchangeable: Exchangeable) -> Placement:
        """So many of the distinct sets, always the same ones, with a partition on each."""
        if (sets, exchangeable) not in self._parts:
            lists = _canonical(self._lists, exchangeable)
            first = _distinct_rows(lists)
            chosen = np.random.default_rng(_SEED).permutation(len(first))[:sets]
            some = self._sites.ids[lists[first[chosen]]].tolist()
            rows = tuple((tuple(replicas), 1) for replicas in some)
            part = Placement(rows, self.brokers, self.rack_of, self.voters)
            self._parts[sets, exchangeable] = part
        return self._parts[sets, exchangeable]

    def replica_set_classes(
        self, exchangeable: Exchangeable = Exchangeable.FOLLOWERS, leaders: int | None = None
    ) -> Mapping[tuple[int, ...], ReplicaSetClass]:
        """Group the sets by rack pattern; computed once.

        leaders: count what each partition loses on its own, with its leader; see `ReplicaSetClass`.
        """
        key = (exchangeable, leaders)
        if key not in self._classes:
            self._classes[key] = self._grouped(*key)
        return self._classes[key]

    def coincident_sets(self, exchangeable: Exchangeable) -> CoincidentSets:
        """Events that strike several of the sets in one outage class; computed once."""
        if exchangeable not in self._coincident:
            # Coincident outages depend on the leader, never on the order of followers.
            preferred_leader = exchangeable is not Exchangeable.ALL
            fixed = Exchangeable.FOLLOWERS if preferred_leader else Exchangeable.ALL
            patterns, number = self._patterns(exchangeable)
            lists = _canonical(self._lists, fixed)
            first = _distinct_rows(lists, number)
            ids = self._sites.ids[lists[first]]
            members = {p: ids[number[first] == n] for n, p in enumerate(patterns)}
            coincident = CoincidentSets(members, self.rack_of, preferred_leader)
            self._coincident[exchangeable] = coincident
        return self._coincident[exchangeable]

    def picked_brokers(self, exchangeable: Exchangeable) -> PickedBrokers:
        """Choices of brokers among those that hold the sets; computed once."""
        if exchangeable not in self._picked:
            classes = self.replica_set_classes(exchangeable)
            sets = {pattern: held.members for pattern, held in classes.items()}
            self._picked[exchangeable] = PickedBrokers(sets)
        return self._picked[exchangeable]

    def _patterns(self, exchangeable: Exchangeable) -> tuple[list[tuple[int, ...]], IntArray]:
        """Patterns in the order in which they are met, and the number of each list's."""
        if exchangeable not in self._numbered_patterns:
            racks = self._sites.racks[self._lists]
            _, first, which = np.unique(
                codes_of_rows(racks.T), return_index=True, return_inverse=True
            )
            numbers: dict[tuple[int, ...], int] = {}
            order, number = np.argsort(first), np.empty(len(first), dtype=np.int64)
            for place, row in zip(order.tolist(), racks[first[order]].tolist(), strict=True):
                names = tuple(str(self._sites.names[rack]) for rack in row)
                number[place] = numbers.setdefault(self._pattern(names, exchangeable), len(numbers))
            self._numbered_patterns[exchangeable] = list(numbers), number[which.ravel()]
        return self._numbered_patterns[exchangeable]

    def _grouped(
        self, exchangeable: Exchangeable, leaders: int | None
    ) -> dict[tuple[int, ...], ReplicaSetClass]:
        patterns, number = self._patterns(exchangeable)
        several = len(patterns)
        partitions = np.bincount(number, self._counts, several).astype(np.int64)
        distinct = _distinct_rows(_canonical(self._lists, exchangeable), number)
        lists = np.bincount(number[distinct], minlength=several)
        together = np.sort(self._lists, axis=1) if leaders is None else self._lists
        _, first, which = np.unique(
            codes_of_rows(together.T), return_index=True, return_inverse=True
        )
        pairs, where = np.unique(which.ravel() * several + number, return_inverse=True)
        count = np.bincount(where.ravel(), self._counts).astype(np.int64)
        # Partitions that lose together count once, whichever replica leads them.
        rank = np.empty(several, dtype=np.int64)
        rank[sorted(range(several), key=patterns.__getitem__)] = np.arange(several)
        row, of_pattern = np.divmod(pairs, several)
        order = np.lexsort((rank[of_pattern], -count, row))
        likeliest = of_pattern[order[np.searchsorted(row[order], np.arange(len(first)))]]
        on_set = np.bincount(which.ravel(), self._counts).astype(np.int64)
        classes = {}
        # Where there is one set only, its pattern comes first.
        for n in sorted(range(several), key=lambda n: not (likeliest == n).any()):
            here = likeliest == n
            classes[patterns[n]] = ReplicaSetClass(
                int(partitions[n]),
                int(lists[n]),
                together[first[here]],
                on_set[here],
                self._sites.racks,
                leaders,
            )
        return classes

    def rack_pattern(self, replicas: Replicas, exchangeable: Exchangeable) -> tuple[int, ...]:
        """Rack numbers of a replica list, in a canonical order unless the order matters.

        FOLLOWERS puts the leader's rack first, ALL the fullest; the rest follow by size. Which
        follower leads next is lost thereby: an error of a share rate times duration where racks are
        not equal.
        """
        racks = tuple(map(self.rack_of.__getitem__, replicas))
        return self._pattern(racks, exchangeable)

    def _pattern(self, racks: tuple[str, ...], exchangeable: Exchangeable) -> tuple[int, ...]:
        return rack_pattern(racks, exchangeable, tuple(self.voters.items()))


def _canonical(lists: IntArray, exchangeable: Exchangeable) -> IntArray:
    """The representatives of all lists that lose together; see `Exchangeable.canonical`."""
    if exchangeable is Exchangeable.NONE:
        return lists
    fixed = 1 if exchangeable is Exchangeable.FOLLOWERS else 0
    return np.concatenate([lists[:, :fixed], np.sort(lists[:, fixed:], axis=1)], axis=1)


def _distinct_rows(lists: IntArray, *columns: IntArray) -> IntArray:
    """Index of the first of each of the distinct rows of a table, with further columns."""
    _, first = np.unique(codes_of_rows([*columns, *lists.T]), return_index=True)
    return first


def place(
    cluster: Brokers,
    config: Config,
    partitions: int,
    placement: tuple[Replicas, ...] | None = None,
    racks_at_once: int = 1,
) -> Placement:
    """Place a new topic as Kafka would, or take the placement of an existing one.

    racks_at_once: how many racks one failure can strike; it matters for the controller quorum.

    >>> from advisor import Cluster, Config
    >>> cluster = Cluster(brokers={1: "a", 2: "a", 3: "b", 4: "c"})
    >>> lists = ((1, 3), (3, 1), (2, 3))
    >>> placement = place(cluster, Config(replication_factor=2), 3, lists)
    >>> placement.sets
    (((1, 3), 1), ((3, 1), 1), ((2, 3), 1))
    >>> placement.replica_set_classes()[0, 1].sets
    2
    """
    voters = tuple(voters_at_risk(cluster, racks_at_once).items())
    if placement is None:
        assert config.replication_factor is not None
        brokers, striped = tuple(cluster.brokers.items()), config.mode == "kraft"
        return _new_topic(brokers, partitions, config.replication_factor, striped, voters)
    racks = _racks(tuple(cluster.brokers.items()))
    lists = Counter(map(tuple, placement))
    for replicas in lists:
        _check(replicas, config, racks)
    return Placement(tuple(lists.items()), len(racks), racks, dict(voters))


def voters_at_risk(cluster: Brokers, racks_at_once: int) -> dict[str, int]:
    """Voters of the controller quorum by rack, if outages of racks can take the majority.

    If it is unknown where they stand and there are two racks, three voters are assumed, two of them
    in the first rack; with more racks, that a majority is always left.
    """
    voters: Mapping[str, int] | None = getattr(cluster, "voters_by_rack", None)
    if voters is None:
        names = sorted(rack for rack in set(cluster.brokers.values()) if rack is not None)
        voters = {names[0]: 2, names[1]: 1} if len(names) == 2 else {}
    largest = sorted(voters.values(), reverse=True)[: min(racks_at_once, 2)]
    if not voters or 2 * sum(largest) < sum(voters.values()):
        return {}
    fewest = fewest_voters(tuple(voters.values()))
    return {_rack_name(rack): n for rack, n in zip(voters, fewest, strict=True) if n}


@lru_cache(maxsize=256)
def fewest_voters(voters: tuple[int, ...]) -> tuple[int, ...]:
    """The fewest voters by rack with which the same outages of racks take the majority.

    >>> fewest_voters((2, 1)), fewest_voters((3, 2, 2))
    ((1, 0), (1, 1, 1))
    """
    if math.prod(n + 1 for n in voters) > _MOST_DISTRIBUTIONS:
        return voters
    out = np.array(list(product((0, 1), repeat=len(voters))))

    def lost(numbers: tuple[int, ...]) -> bytes:
        return bytes(2 * (out @ np.array(numbers)) >= sum(numbers))

    fewer = product(*(range(n + 1) for n in voters))
    return next(some for some in sorted(fewer, key=sum) if lost(some) == lost(voters))


def _rack_name(rack: str) -> str:
    return f"rack {rack}"


@lru_cache(maxsize=8)
def _racks(brokers: tuple[tuple[int, str | None], ...]) -> Mapping[int, str]:
    """Racks of all brokers; the topics of a cluster share one mapping."""
    names = {
        broker: _rack_name(rack) if rack is not None else f"broker {broker}"
        for broker, rack in brokers
    }
    return MappingProxyType(names)


@lru_cache(maxsize=64)
def _new_topic(
    brokers: tuple[tuple[int, str | None], ...],
    partitions: int,
    replication_factor: int,
    striped: bool,
    voters: tuple[tuple[str, int], ...] = (),
) -> Placement:
    """Kafka's placement of a new topic; the settings compared on one cluster share it."""
    rack_aware = all(rack is not None for _, rack in brokers)
    table = assign(
        {broker: rack if rack_aware else None for broker, rack in brokers},
        partitions=partitions,
        replication_factor=replication_factor,
        algorithm="striped" if striped else "rack_alternated",
    )
    sets = Counter(tuple(replicas) for replicas in table.values())
    return Placement(tuple(sets.items()), len(brokers), _racks(brokers), dict(voters))


def _check(replicas: Replicas, config: Config, racks: Mapping[int, str]) -> None:
    brokers = set(replicas)
    if len(brokers) == len(replicas) == config.replication_factor and brokers <= racks.keys():
        return
    unknown = [broker for broker in replicas if broker not in racks]
    if unknown:
        raise InputError(f"placement {list(replicas)}: broker {unknown[0]} is not in the cluster")
    if len(set(replicas)) != len(replicas):
        raise InputError(f"placement {list(replicas)}: a broker holds two replicas")
    if len(replicas) != config.replication_factor:
        raise InputError(
            f"placement {list(replicas)} has {len(replicas)} replicas, "
            f"replication_factor={config.replication_factor}"
        )
