"""Which brokers and racks hold the partitions whose reliability is asked for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, Protocol

from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.outage_class import CLUSTER

Replicas = tuple[int, ...]


class Brokers(Protocol):
    """Anything with brokers and their racks."""

    @property
    def brokers(self) -> Mapping[int, str | None]:
        """Broker id to rack, None where it is not known."""


class ReplicaSetClass(NamedTuple):
    """Replica sets of one rack pattern, which lose alike, and where they meet others.

    Attributes
    ----------
    partitions : int
        On all of these sets.
    sets : int
        Distinct sets; one that has partitions of several patterns counts where it has most.
    lists : int
        The same, told apart by who leads, and by the whole order if it decides elections.
    struck : mapping of (scope, int) to mapping of site to int
        Of the sets that stand at so many sites of a scope (the brokers, the racks, the cluster),
        how many stand at each site; partitions where each is counted by itself.
    """

    partitions: int
    sets: int
    lists: int
    struck: Mapping[tuple[str, int], Mapping[Hashable, int]]


@dataclass(frozen=True, eq=False)
class Placement:
    """A topic's partitions, grouped by their replicas; equal only to itself.

    Attributes
    ----------
    sets : tuple of (replicas, count)
        Replica lists in assignment order and how many partitions have each.
    brokers : int
        Of the whole cluster.
    rack_of : dict
        Rack per broker; a broker whose rack is not known stands in one of its own.
    """

    sets: tuple[tuple[Replicas, int], ...]
    brokers: int
    rack_of: Mapping[int, str]
    # A card is drawn many times for one placement, which has ten thousands of sets.
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def partitions(self) -> int:
        """How many partitions there are."""
        return sum(count for _, count in self.sets)

    @cached_property
    def brokers_per_rack(self) -> float:
        """How many brokers stand in a partition's first rack, on average; its leaders go at once.

        That is where the preferred leader is.
        """
        beside = Counter(self.rack_of.values())
        there = sum(beside[self.rack_of[first]] * count for (first, *_), count in self.sets)
        return there / self.partitions

    @cached_property
    def followers_away(self) -> Mapping[int, int]:
        """How many partitions have so many followers in another rack than the first replica."""
        found: Counter[int] = Counter()
        for (leader, *followers), count in self.sets:
            home = self.rack_of[leader]
            found[sum(self.rack_of[follower] != home for follower in followers)] += count
        return found

    def alike(
        self, ordered: bool, apart: bool, leaders: int | None = None, led: bool = True
    ) -> Mapping[tuple[int, ...], ReplicaSetClass]:
        """Put the sets of each rack pattern together; the same question is answered once.

        Parameters
        ----------
        ordered : bool
            As for `pattern`.
        apart : bool
            Sets that differ only in their order are told apart.
        leaders : int, optional
            What is lost is lost with one of so many of a set's replicas, from the first, and by
            each partition by itself; None: with any of them, by all partitions there together.
        led : bool
            The first replica leads whenever it can, as with Kafka; otherwise any may.
        """
        key = (ordered, apart, leaders, led)
        if key not in self._known:
            self._known[key] = self._put_together(*key)
        known: Mapping[tuple[int, ...], ReplicaSetClass] = self._known[key]
        return known

    def coincident_sets(self, ordered: bool, led: bool = True) -> CoincidentSets:
        """Which of its sets are weak and struck together; the same question is answered once.

        Parameters
        ----------
        ordered, led : bool
            As for `alike`.
        """
        key = ("meetings", ordered, led)
        if key not in self._known:
            there: dict[tuple[int, ...], set[Replicas]] = defaultdict(set)
            for replicas, _ in self.sets:
                pattern = self.pattern(replicas, ordered) if led else self._by_size(replicas)
                there[pattern].add(_told_apart(replicas, False, led))
            members = {pattern: sorted(sets) for pattern, sets in there.items()}
            self._known[key] = CoincidentSets(members, self.rack_of, led)
        known: CoincidentSets = self._known[key]
        return known

    def _put_together(
        self, ordered: bool, apart: bool, leaders: int | None, led: bool
    ) -> dict[tuple[int, ...], ReplicaSetClass]:
        partitions: Counter[tuple[int, ...]] = Counter()
        lists: dict[tuple[int, ...], set[Replicas]] = defaultdict(set)
        there: dict[Replicas, Counter[tuple[int, ...]]] = defaultdict(Counter)
        for replicas, count in self.sets:
            pattern = self.pattern(replicas, ordered) if led else self._by_size(replicas)
            partitions[pattern] += count
            lists[pattern].add(_told_apart(replicas, ordered, led))
            there[replicas if apart else tuple(sorted(replicas))][pattern] += count
        members: dict[tuple[int, ...], dict[Replicas, int]] = defaultdict(dict)
        for replicas, patterns in there.items():
            # Those who lose together are counted once, whoever leads them.
            most = min(patterns, key=lambda pattern: (-patterns[pattern], pattern))
            members[most][replicas] = patterns.total()
        # Where there is one set only, its pattern comes first.
        return {
            pattern: ReplicaSetClass(
                partitions[pattern],
                len(members[pattern]),
                len(lists[pattern]),
                self._struck(members[pattern], leaders),
            )
            for pattern in sorted(partitions, key=lambda pattern: not members[pattern])
        }

    def _struck(
        self, sets: Mapping[Replicas, int], leaders: int | None
    ) -> dict[tuple[str, int], Counter[Hashable]]:
        found: dict[tuple[str, int], Counter[Hashable]] = defaultdict(Counter)
        for replicas, partitions in sets.items():
            struck = replicas[:leaders]
            racks = {self.rack_of[broker] for broker in struck}
            for scope, sites in (("broker", struck), ("rack", racks)):
                counter = found[scope, len(sites)]
                for site in sites:
                    counter[site] += 1 if leaders is None else partitions
        times = len(sets) if leaders is None else sum(sets.values())
        found["cluster", 1][CLUSTER] = times
        return dict(found)

    def pattern(self, replicas: Replicas, ordered: bool) -> tuple[int, ...]:
        """Rack numbers of a replica list.

        Parameters
        ----------
        replicas : tuple of int
        ordered : bool
            Keep the order of the assignment, which decides unclean elections. Otherwise the
            leader's rack comes first, for its failure costs other measures than a follower's, and
            the rest by size, so that like sets share one chain. That leaves out which follower
            leads next: where racks are not equally full, a share of rate times duration.
        """
        racks = [self.rack_of[broker] for broker in replicas]
        if len(set(racks)) == len(racks):
            return tuple(range(len(racks)))
        if ordered:
            names = list(dict.fromkeys(racks))
            return tuple(names.index(rack) for rack in racks)
        return self._by_size(replicas, racks[0])

    def _by_size(self, replicas: Replicas, first: str | None = None) -> tuple[int, ...]:
        """Rack numbers with the fullest rack first, behind the one that is named."""
        sizes = Counter(self.rack_of[broker] for broker in replicas)
        order = sorted(sizes, key=lambda rack: (rack != first, -sizes[rack]))
        return tuple(number for number, rack in enumerate(order) for _ in range(sizes[rack]))


def _told_apart(replicas: Replicas, ordered: bool, led: bool) -> Replicas:
    """The same for partitions that lose together: by the order, the leader, or who they are."""
    if ordered:
        return replicas
    return (replicas[0], *sorted(replicas[1:])) if led else tuple(sorted(replicas))


def place(
    cluster: Brokers,
    config: Config,
    partitions: int,
    placement: tuple[Replicas, ...] | None = None,
) -> Placement:
    """Place a topic as Kafka would, or take the placement that it has.

    Parameters
    ----------
    cluster : Brokers
    config : Config
        Its replication factor, and its mode for the algorithm.
    partitions : int
        Ignored when ``placement`` is given.
    placement : tuple of tuple of int, optional
        Replicas of each partition.

    Raises
    ------
    InputError
        If Kafka would refuse: more replicas than brokers; or a replica on an unknown broker.
    """
    if placement is None:
        assert config.replication_factor is not None
        brokers, striped = tuple(cluster.brokers.items()), config.mode == "kraft"
        return _as_kafka_would(brokers, partitions, config.replication_factor, striped)
    racks = _racks(cluster.brokers)
    lists = Counter(tuple(replicas) for replicas in placement)
    for replicas in lists:
        _check(replicas, config, racks)
    return Placement(tuple(lists.items()), len(racks), racks)


def _racks(brokers: Mapping[int, str | None]) -> dict[int, str]:
    return {
        broker: f"rack {rack}" if rack is not None else f"broker {broker}"
        for broker, rack in brokers.items()
    }


@lru_cache(maxsize=64)
def _as_kafka_would(
    brokers: tuple[tuple[int, str | None], ...],
    partitions: int,
    replication_factor: int,
    striped: bool,
) -> Placement:
    """Many settings are asked about on one cluster; its placement stays."""
    known = all(rack is not None for _, rack in brokers)
    table = assign(
        {broker: rack if known else None for broker, rack in brokers},
        partitions=partitions,
        replication_factor=replication_factor,
        algorithm="striped" if striped else "rack_alternated",
    )
    sets = Counter(tuple(replicas) for replicas in table.values())
    return Placement(tuple(sets.items()), len(brokers), _racks(dict(brokers)))


def _check(replicas: Replicas, config: Config, racks: Mapping[int, str]) -> None:
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
