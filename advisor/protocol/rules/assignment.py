"""Replica assignment of new topics and added partitions: the textbook's, and Kafka's two.

The order of the given brokers matters in two cases: "rack_alternated" without racks takes them as
given, and "striped" keeps it for racks in one bucket of a Java hash map.
Sources: ``AdminUtils`` (to 4.0, KIP-36), ``StripedReplicaPlacer`` and
``ReplicationControlManager`` (KIP-631); both are checked against tables recorded from Kafka.
"""

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import cycle, zip_longest
from typing import Literal, get_args

from advisor.arguments import names_checked
from advisor.errors import InputError, expect, shown
from advisor.protocol.jvm import (
    Draws,
    JavaRandom,
    hash_map_order,
    optional_string_hash,
    shuffle,
    utf16_units,
)

Algorithm = Literal["modulo", "rack_alternated", "striped"]

_NOT_ALL_RACKS = "Not all brokers have rack information for replica rack aware assignment."


MOST_COUNT = 10_000_000
"""Upper limit on the number of partitions."""


@names_checked
def assign(
    brokers: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    algorithm: Algorithm = "striped",
    start_index: int | None = 0,
    shift: int | None = None,
    start_partition: int = 0,
    seed: int | None = None,
    fenced: Collection[int] = frozenset(),
    random: Draws | None = None,
) -> dict[int, list[int]]:
    """Assign replicas to the partitions of a new topic, or to partitions added to one.

    Parameters
    ----------
    brokers : mapping of int to str or None
        Rack of each live broker id, None if unknown, in the order in which Kafka iterates the
        brokers (it rarely matters; see the module's notes).
    partitions : int
        Number of partitions to assign.
    replication_factor : int
        Replicas of each partition.
    algorithm : {"striped", "rack_alternated", "modulo"}
        That of a KRaft controller; of the ZooKeeper controller and older tools; of textbooks.
    start_index : int or None
        "rack_alternated" only: position of partition 0's leader in the broker list. None draws it
        and the shift, in Kafka's order.
    shift : int or None
        "rack_alternated" only: initial shift of the followers, in positions. None is the value of
        `start_index`, as in Kafka.
    start_partition : int
        Number of the first partition to assign; a negative one is taken as 0, as in Kafka.
    seed : int or None
        Seed of the ``java.util.Random``; None is seed 0.
    fenced : collection of int
        "striped" only: ids of brokers that are registered but fenced. Leave brokers in controlled
        shutdown out of `brokers`: they get no replicas.
    random : Draws or None
        Replaces the generator that `seed` would create.

    Returns
    -------
    dict of int to list of int
        Broker ids by partition number, ascending; the first is the preferred leader.

    Raises
    ------
    InputError
        If Kafka would refuse (in Kafka's words), or an argument does not fit the algorithm.

    See Also
    --------
    rack_alternated_brokers : The broker list of "rack_alternated".

    Examples
    --------
    >>> racks = {0: "r0", 1: "r1", 2: "r0"}
    >>> assign(racks, 3, 2, algorithm="rack_alternated", shift=0)
    {0: [0, 1], 1: [1, 2], 2: [2, 1]}
    >>> assign({1: "a", 2: "b", 3: "c"}, partitions=3, replication_factor=2, seed=0)
    {0: [3, 1], 1: [1, 2], 2: [2, 3]}
    """
    _check_types(partitions, replication_factor, start_partition)
    for name, number in (("start_index", start_index), ("shift", shift), ("seed", seed)):
        expect(name, number, int | None, "a whole number, or None")
    if not isinstance(fenced, Collection) or not all(isinstance(b, int) for b in fenced):
        raise InputError(f"fenced={shown(fenced)}: give a collection of broker ids")
    if random is not None and not callable(getattr(random, "next_int", None)):
        raise InputError(f"random={shown(random)}: give a generator such as JavaRandom, or None")
    _check_brokers(brokers, fenced)
    _check_options(algorithm, start_index, shift, seed is not None or random is not None, fenced)
    first = max(0, start_partition)
    numbers = range(first, first + partitions)
    draws = JavaRandom(seed or 0) if random is None else random
    if algorithm == "striped":
        placed = place_striped(brokers, partitions, replication_factor, draws, frozenset(fenced))
    elif algorithm == "rack_alternated":
        placed = _alternated(brokers, numbers, replication_factor, start_index, shift, draws)
    else:
        placed = _modulo(brokers, numbers, replication_factor)
    return dict(zip(numbers, placed, strict=True))


def _check_types(partitions: object, replication_factor: object, start_partition: object) -> None:
    for name, number in (
        ("partitions", partitions),
        ("replication_factor", replication_factor),
        ("start_partition", start_partition),
    ):
        expect(name, number, int, "a whole number")
        if isinstance(number, int) and number > MOST_COUNT:
            raise InputError(f"{name}={shown(number)}: give at most {MOST_COUNT:,}")


def rack_alternated_brokers(brokers: Mapping[int, str | None]) -> list[int]:
    """Return the broker list of "rack_alternated" (``AdminUtils.getRackAlternatedBrokerList``).

    One broker of each rack in turn, racks by name and brokers by id; without any rack as given.
    """
    members: dict[str, list[int]] = {}
    for broker, rack in brokers.items():
        if rack is not None:
            members.setdefault(rack, []).append(broker)
    if not members:
        return list(brokers)
    if sum(map(len, members.values())) < len(brokers):
        raise InputError(_NOT_ALL_RACKS)
    queues = [sorted(members[rack]) for rack in sorted(members, key=utf16_units)]
    turns = zip_longest(*queues)
    return [broker for turn in turns for broker in turn if broker is not None]


def _modulo(
    brokers: Mapping[int, str | None], numbers: range, replication_factor: int
) -> list[list[int]]:
    """Put replica j of partition i on broker (i + j) mod n of the sorted brokers."""
    _check_counts(len(brokers), len(numbers), replication_factor)
    order = sorted(brokers)
    return [
        [order[(partition + replica) % len(order)] for replica in range(replication_factor)]
        for partition in numbers
    ]


def _alternated(
    brokers: Mapping[int, str | None],
    numbers: range,
    replication_factor: int,
    start_index: int | None,
    shift: int | None,
    draws: Draws,
) -> list[list[int]]:
    """Rotate leaders through the brokers; each complete round shifts the followers further."""
    _check_counts(len(brokers), len(numbers), replication_factor)
    order = rack_alternated_brokers(brokers)
    size = len(order)
    start = draws.next_int(size) if start_index is None else start_index
    if shift is None:
        shift = draws.next_int(size) if start_index is None else start
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    stride = len(set(racks.values())) if racks else 1
    placed = []
    for partition in numbers:
        if partition > 0 and partition % size == 0:
            shift += 1
        leader = (partition + start) % size
        # The other brokers in a circle, starting `shift` strides after the leader's neighbour.
        circle = order[leader + 1 :] + order[:leader]
        entry = shift * stride % len(circle) if circle else 0
        others = circle[entry:] + circle[:entry]
        placed.append(_with_followers(order[leader], others, racks, replication_factor))
    return placed


def _with_followers(
    leader: int, others: Sequence[int], racks: Mapping[int, str], replication_factor: int
) -> list[int]:
    """Add followers from `others`; a rack repeats only when every rack has a replica."""
    replicas = [leader]
    used = {racks.get(leader)}
    all_racks = set(racks.values())
    walk = cycle(others)
    while len(replicas) < replication_factor:
        broker = next(walk)
        rack = racks.get(broker)
        if broker not in replicas and (rack not in used or used >= all_racks):
            replicas.append(broker)
            used.add(rack)
    return replicas


def _check_counts(brokers: int, partitions: int, replication_factor: int) -> None:
    """Reject what AdminUtils rejects, in its words and its order."""
    if partitions <= 0:
        raise InputError("Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise InputError("Replication factor must be larger than 0.")
    if replication_factor > brokers:
        raise InputError(
            f"Replication factor: {replication_factor} larger than available brokers: {brokers}."
        )


def _check_brokers(brokers: Mapping[int, str | None], fenced: Collection[int]) -> None:
    """Reject anything but a mapping of broker ids to racks."""
    if not isinstance(brokers, Mapping) or not all(
        isinstance(broker, int) and (rack is None or isinstance(rack, str))
        for broker, rack in brokers.items()
    ):
        raise InputError(
            "brokers must map each broker id to its rack, or to None where none is known, "
            'such as {0: "a", 1: "b", 2: None}'
        )
    if unknown := set(fenced) - brokers.keys():
        raise InputError(f"fenced names brokers that are not in brokers: {sorted(unknown)}")


def _check_options(
    algorithm: str,
    start_index: int | None,
    shift: int | None,
    draws: bool,
    fenced: Collection[int],
) -> None:
    """Reject an option that the algorithm would silently ignore."""
    if algorithm not in get_args(Algorithm):
        names = ", ".join(get_args(Algorithm))
        raise InputError(f"unknown assignment algorithm {algorithm!r}; choose one of {names}")
    for name, value in (("start_index", start_index), ("shift", shift)):
        if value is not None and value < 0:
            raise InputError(f"{name} must be 0 or larger, not {value}")
    ignored = []
    if algorithm != "rack_alternated":
        ignored += ["start_index"] if start_index != 0 else []
        ignored += ["shift"] if shift else []
    if algorithm == "modulo" or (algorithm == "rack_alternated" and start_index is not None):
        ignored += ["seed or random"] if draws else []
    if algorithm != "striped":
        ignored += ["fenced"] if fenced else []
    if ignored:
        raise InputError(
            f"{' and '.join(ignored)} would have no effect on {algorithm!r}; leave it out"
        )


@dataclass
class _Ring:
    """Brokers provided in a circle, each at most once per epoch, rotated by one each epoch."""

    brokers: list[int] = field(default_factory=list)
    offset: int = 0
    taken: int = 0
    epoch: int = 0

    def prepare(self, random: Draws) -> None:
        """Sort the brokers and draw the start of the circle; an empty ring draws nothing."""
        if self.brokers:
            self.brokers.sort()
            self.offset = random.next_int(len(self.brokers))

    def take(self, epoch: int) -> int | None:
        """Return the next broker, or None if all were taken in this epoch."""
        size = len(self.brokers)
        if size == 0:
            return None
        if epoch != self.epoch:
            self.epoch = epoch
            self.taken = 0
            self.offset = (self.offset + 1) % size
        if self.taken == size:
            return None
        self.taken += 1
        return self.brokers[(self.taken - 1 + self.offset) % size]


@dataclass
class _Rack:
    name: str | None
    fenced: _Ring = field(default_factory=_Ring)
    unfenced: _Ring = field(default_factory=_Ring)

    def take(self, epoch: int) -> int | None:
        """Return the next unfenced broker, then the next fenced one, then None."""
        broker = self.unfenced.take(epoch)
        return self.fenced.take(epoch) if broker is None else broker


def _group_by_rack(brokers: Mapping[int, str | None], fenced: frozenset[int]) -> list[_Rack]:
    """Group the brokers by rack; racks in order of first appearance."""
    racks: dict[str | None, _Rack] = {}
    for broker, name in brokers.items():
        rack = racks.setdefault(name, _Rack(name))
        (rack.fenced if broker in fenced else rack.unfenced).brokers.append(broker)
    return list(racks.values())


def _sorting_key(rack: _Rack) -> tuple[bool, tuple[int, ...]]:
    """Sort brokers without a rack first, then rack names as Java compares strings."""
    return (rack.name is not None, utf16_units(rack.name or ""))


def _replicas(racks: list[_Rack], replication_factor: int, epoch: int) -> list[int]:
    """Take one partition's replicas, visiting `racks` in the given order."""
    leader = home = None
    for home in racks:
        leader = home.unfenced.take(epoch)
        if leader is not None:
            break
    assert leader is not None
    replicas = [leader]
    # The leader's rack is skipped once, so that every other rack is used before it.
    # This terminates: the rings used for the last partition are full again in a new epoch.
    others = [rack for rack in racks if rack is not home]
    while len(replicas) < replication_factor:
        for rack in others:
            broker = rack.take(epoch)
            if broker is not None:
                replicas.append(broker)
                if len(replicas) == replication_factor:
                    break
        others = racks
    return replicas


def place_striped(
    brokers: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    random: Draws,
    fenced: frozenset[int] = frozenset(),
) -> list[list[int]]:
    """Place all partitions of one request, as one call of Kafka's placer does.

    Brokers are grouped by rack, and a rack provides its unfenced brokers before its fenced ones.
    Each partition starts one rack further than the previous one and takes a broker from each rack
    in turn. After as many partitions as there are unfenced brokers, everything is shuffled.
    """
    _check_request(brokers.keys(), fenced, partitions, replication_factor)
    grouped = _group_by_rack(brokers, fenced)
    # Java iterates its hash map to draw the offsets and to shuffle, but sorts for placement.
    hash_ordered = [
        grouped[i] for i in hash_map_order(optional_string_hash(rack.name) for rack in grouped)
    ]
    for rack in hash_ordered:
        rack.fenced.prepare(random)
        rack.unfenced.prepare(random)
    racks = sorted(grouped, key=_sorting_key)
    offset = random.next_int(len(racks))
    unfenced = sum(len(rack.unfenced.brokers) for rack in racks)
    epoch = 0
    placed = []
    for _ in range(partitions):
        if epoch == unfenced and unfenced > 1:
            _shuffle(racks, hash_ordered, random)
            epoch = 0
        offset %= len(racks)
        placed.append(_replicas(racks[offset:] + racks[:offset], replication_factor, epoch))
        epoch += 1
        offset += 1
    return placed


def _shuffle(racks: list[_Rack], hash_ordered: list[_Rack], random: Draws) -> None:
    """Shuffle the order of the racks, then the brokers of each rack, fenced ones first."""
    shuffle(racks, random)
    for rack in hash_ordered:
        shuffle(rack.fenced.brokers, random)
        shuffle(rack.unfenced.brokers, random)


def _check_request(
    brokers: Set[int], fenced: frozenset[int], partitions: int, replication_factor: int
) -> None:
    """Reject what the controller rejects, in its words and its order."""
    if replication_factor <= 0:
        raise InputError(
            f"Invalid replication factor {replication_factor}: "
            "the replication factor must be positive."
        )
    if partitions <= 0:
        raise InputError("Number of partitions was set to an invalid non-positive value.")
    if brokers <= fenced:
        raise InputError("All brokers are currently fenced.")
    if replication_factor > len(brokers):
        raise InputError(
            f"The target replication factor of {replication_factor} cannot be reached "
            f"because only {len(brokers)} broker(s) are registered."
        )
