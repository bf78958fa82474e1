"""Which brokers and racks hold the partitions: replica sets, and the exchangeable ones."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, Protocol

from advisor.errors import InputError
from advisor.protocol.rules.assignment import assign
from advisor.protocol.rules.config import Config
from advisor.reliability.common_cause.coincidence import CoincidentSets
from advisor.reliability.common_cause.outage_class import CLUSTER
from advisor.reliability.common_cause.picked_brokers import PickedBrokers
from advisor.reliability.failures.fault_environment import Exchangeable, Replicas, rack_pattern

_LARGE_RACK, _SEED = 20, 20130626


class Brokers(Protocol):
    """Anything with brokers and their racks."""

    @property
    def brokers(self) -> Mapping[int, str | None]:
        """Rack of each broker id, None where unknown."""


@dataclass(frozen=True, eq=False)
class ReplicaSetClass:
    """Exchangeable replica sets: those of one rack pattern, which have the same CTMC.

    Attributes
    ----------
    partitions : int
        On all of these sets.
    lists : int
        Distinct sets by leader as well, and by order where that decides elections.
    on_set : mapping of replicas to int
        Partitions on each distinct set. One with several patterns is here where it has most.
    rack_of : mapping
        Rack of each broker.
    leaders : int or None
        Each partition loses on its own, with its leader: one of the first ``leaders`` replicas of
        the list. None if all on a set lose together, with any of their brokers.
    """

    partitions: int
    lists: int
    on_set: Mapping[Replicas, int]
    rack_of: Mapping[int, str]
    leaders: int | None

    @property
    def sets(self) -> int:
        """Number of distinct sets."""
        return len(self.on_set)

    @property
    def members(self) -> tuple[Replicas, ...]:
        """The distinct sets."""
        return tuple(self.on_set)

    @cached_property
    def exposure(self) -> Mapping[tuple[str, int], Mapping[Hashable, int]]:
        """By scope (broker, rack, cluster) and number of sites: sets that span that many, by site.

        Partitions rather than sets where each partition loses on its own.
        """
        exposure: dict[tuple[str, int], Counter[Hashable]] = defaultdict(Counter)
        whole = 0
        for replicas, partitions in self.on_set.items():
            exposed, count = replicas[: self.leaders], 1 if self.leaders is None else partitions
            racks = {self.rack_of[broker] for broker in exposed}
            for scope, sites in (("broker", exposed), ("rack", racks)):
                counter = exposure[scope, len(sites)]
                for site in sites:
                    counter[site] += count
            whole += count
        exposure["cluster", 1][CLUSTER] = whole
        return dict(exposure)


@dataclass(frozen=True, eq=False)
class Placement:
    """A topic's partitions, grouped by replica list; equal only to itself.

    Attributes
    ----------
    sets : tuple of (replicas, count)
        Replica lists in assignment order, and how many partitions have each.
    brokers : int
        In the whole cluster.
    rack_of : dict
        Rack of each broker; a broker whose rack is unknown has one of its own.
    voters : dict
        Voters of the controller quorum by rack; empty if no outage of racks that counts can take
        the majority, or where they stand is unknown.
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
    _distinct: dict[Exchangeable, tuple[Replicas, ...]] = field(
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

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return sum(count for _, count in self.sets)

    @cached_property
    def brokers_per_rack(self) -> float:
        """Mean number of brokers in the rack of a partition's preferred leader.

        If the rack fails, the leaders on all of them move at once. Whole numbers in large racks,
        so that topics share a solution.
        """
        brokers_in = Counter(self.rack_of.values())
        mean = sum(brokers_in[r[0]] * n for r, n in self._by_racks.items()) / self.partitions
        return mean if mean < _LARGE_RACK else float(round(mean))

    @cached_property
    def cross_rack_followers(self) -> Mapping[int, int]:
        """Number of partitions by how many followers are in another rack than the leader."""
        found: Counter[int] = Counter()
        for racks, count in self._by_racks.items():
            found[len(racks) - racks.count(racks[0])] += count
        return found

    @cached_property
    def _by_racks(self) -> Mapping[tuple[str, ...], int]:
        found = Counter[tuple[str, ...]]()
        for replicas, count in self.sets:
            found[self._racks_of(replicas)] += count
        return found

    def distinct(self, exchangeable: Exchangeable) -> tuple[Replicas, ...]:
        """Sets that may lose independently, in an order by chance, always the same."""
        if exchangeable not in self._distinct:
            found = sorted({exchangeable.canonical(replicas) for replicas, _ in self.sets})
            random.Random(_SEED).shuffle(found)
            self._distinct[exchangeable] = tuple(found)
        return self._distinct[exchangeable]

    def some_of(self, sets: int, exchangeable: Exchangeable) -> Placement:
        """So many of the distinct sets, with a partition on each."""
        if (sets, exchangeable) not in self._parts:
            some = tuple((replicas, 1) for replicas in self.distinct(exchangeable)[:sets])
            part = Placement(some, self.brokers, self.rack_of, self.voters)
            self._parts[sets, exchangeable] = part
        return self._parts[sets, exchangeable]

    def replica_set_classes(
        self, exchangeable: Exchangeable = Exchangeable.FOLLOWERS, leaders: int | None = None
    ) -> Mapping[tuple[int, ...], ReplicaSetClass]:
        """Group the sets by rack pattern; computed once.

        Parameters
        ----------
        leaders : int, optional
            Count what each partition loses on its own, with its leader: one of the first
            ``leaders`` replicas of the list. None: what all partitions on a set lose together,
            with any of their brokers.
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
            sets: dict[tuple[int, ...], set[Replicas]] = defaultdict(set)
            for replicas, _ in self.sets:
                sets[self.rack_pattern(replicas, exchangeable)].add(fixed.canonical(replicas))
            members = {pattern: sorted(lists) for pattern, lists in sets.items()}
            found = CoincidentSets(members, self.rack_of, preferred_leader)
            self._coincident[exchangeable] = found
        return self._coincident[exchangeable]

    def picked_brokers(self, exchangeable: Exchangeable) -> PickedBrokers:
        """Choices of brokers among those that hold the sets; computed once."""
        if exchangeable not in self._picked:
            classes = self.replica_set_classes(exchangeable)
            sets = {pattern: found.members for pattern, found in classes.items()}
            self._picked[exchangeable] = PickedBrokers(sets)
        return self._picked[exchangeable]

    def _grouped(
        self, exchangeable: Exchangeable, leaders: int | None
    ) -> dict[tuple[int, ...], ReplicaSetClass]:
        # Patterns by number, which is quicker to look up.
        numbers: dict[tuple[int, ...], int] = defaultdict(lambda: len(numbers))
        number_of = {racks: numbers[self._pattern(racks, exchangeable)] for racks in self._by_racks}
        patterns, partitions = list(numbers), [0] * len(numbers)
        lists: list[set[Replicas]] = [set() for _ in patterns]
        counts_of: dict[Replicas, dict[int, int]] = {}
        for replicas, count in self.sets:
            number = number_of[self._racks_of(replicas)]
            partitions[number] += count
            lists[number].add(exchangeable.canonical(replicas))
            together = tuple(sorted(replicas)) if leaders is None else replicas
            counts = counts_of.setdefault(together, {})
            counts[number] = counts.get(number, 0) + count
        members: list[dict[Replicas, int]] = [{} for _ in patterns]
        for together, counts in counts_of.items():
            # Partitions that lose together count once, whichever replica leads them.
            most = min(counts, key=lambda number: (-counts[number], patterns[number]))
            members[most][together] = sum(counts.values())
        # Where there is one set only, its pattern comes first.
        entries = zip(patterns, partitions, map(len, lists), members, strict=True)
        return {
            pattern: ReplicaSetClass(count, distinct, on_set, self.rack_of, leaders)
            for pattern, count, distinct, on_set in sorted(entries, key=lambda entry: not entry[3])
        }

    def rack_pattern(self, replicas: Replicas, exchangeable: Exchangeable) -> tuple[int, ...]:
        """Rack numbers of a replica list, in a canonical order unless the order matters.

        Parameters
        ----------
        exchangeable : Exchangeable
            NONE keeps the order. FOLLOWERS puts the leader's rack first, whose failure costs other
            measures than a follower's, and ALL the fullest; the rest follow by size, so that
            exchangeable sets share a chain. Which follower leads next is lost thereby: where racks
            are not equally full, an error of a share rate times duration.
        """
        return self._pattern(self._racks_of(replicas), exchangeable)

    def _pattern(self, racks: tuple[str, ...], exchangeable: Exchangeable) -> tuple[int, ...]:
        return rack_pattern(racks, exchangeable, tuple(self.voters.items()))

    def _racks_of(self, replicas: Replicas) -> tuple[str, ...]:
        return tuple(map(self.rack_of.__getitem__, replicas))


def place(
    cluster: Brokers,
    config: Config,
    partitions: int,
    placement: tuple[Replicas, ...] | None = None,
    racks_at_once: int = 1,
) -> Placement:
    """Place a new topic as Kafka would, or take the placement of an existing one.

    Parameters
    ----------
    cluster : Brokers
        Broker ids and their racks.
    config : Config
        Gives the replication factor, and with its mode the placement algorithm.
    partitions : int
        Number of partitions; ignored if ``placement`` is given.
    placement : tuple of tuple of int, optional
        Replicas of each partition, preferred leader first.
    racks_at_once : int
        How many racks one failure can strike; it matters for the controller quorum.

    Returns
    -------
    Placement
        Partitions grouped by replica list.

    Raises
    ------
    InputError
        If Kafka would refuse: more replicas than brokers, a replica on an unknown broker, a broker
        with two replicas, or another number of replicas than the replication factor.

    See Also
    --------
    advisor.assign : the placement of each partition, by algorithm.
    copysets : distinct sets of brokers, and the chance to lose one of them.

    Examples
    --------
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

    Only outages that begin at once count: of one rack, or of two where failures can spread. If
    it is unknown where the voters stand and there are two racks, three voters are assumed, two of
    them in the first rack; with more racks, that a majority is always left.
    """
    known: Mapping[str, int] | None = getattr(cluster, "voters_by_rack", None)
    if known is None:
        names = sorted(rack for rack in set(cluster.brokers.values()) if rack is not None)
        known = {names[0]: 2, names[1]: 1} if len(names) == 2 else {}
    most = sorted(known.values(), reverse=True)[: min(racks_at_once, 2)]
    if not known or 2 * sum(most) < sum(known.values()):
        return {}
    return {_rack_name(rack): voters for rack, voters in known.items() if voters}


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
