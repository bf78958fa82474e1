"""Kafka's striped replica placement: how a KRaft controller places a new topic's replicas.

Source: ``metadata/src/main/java/org/apache/kafka/metadata/placement/StripedReplicaPlacer.java``
(KIP-631). Brokers are grouped by rack, and a rack provides its unfenced brokers before its fenced
ones. Each partition starts one rack further than the previous one and takes a broker from each rack
in turn. After as many partitions as there are unfenced brokers, everything is shuffled.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from advisor.errors import InputError
from advisor.protocol.jvm.java_hash import hash_map_order, optional_string_hash, utf16_units
from advisor.protocol.jvm.java_random import Draws, shuffle


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

    brokers: rack of each registered broker that is not in controlled shutdown, in the order in
        which the controller iterates them. The order matters only for racks whose names fall into
        one bucket of Java's hash table.
    random: source of the draws; its state advances.
    fenced: brokers that get replicas only if the others do not suffice.
    Returns the replicas of each partition; the first is its preferred leader, never fenced.
    Raises InputError: in Kafka's words, if a number is not positive, every broker is fenced or
        there are too few brokers (its InvalidReplicationFactorException,
        InvalidPartitionsException).
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
