"""Decode KRaft metadata records about partitions and broker fencing.

Fields and tags are those of ``metadata/src/main/resources/common/metadata/*.json`` in Kafka 3.3 to
4.3, all flexible versions. Other records are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from advisor.protocol.rules.partition_registration import Registration

_REGISTER_BROKER, _UNREGISTER_BROKER, _TOPIC, _PARTITION = 0, 1, 2, 3
_PARTITION_CHANGE, _FENCE_BROKER, _UNFENCE_BROKER, _REMOVE_TOPIC = 5, 7, 8, 9
_BROKER_CHANGE, _CLEAR_ELR = 17, 28
_NO_LEADER_CHANGE = -2


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic was created (TopicRecord)."""

    name: str
    topic_id: bytes


@dataclass(frozen=True, slots=True)
class TopicRemoval:
    """A topic was deleted (RemoveTopicRecord)."""

    topic_id: bytes


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """The full state of a partition (PartitionRecord)."""

    topic_id: bytes
    partition: int
    registration: Registration


@dataclass(frozen=True, slots=True)
class PartitionChange:
    """A change of a partition (PartitionChangeRecord); None leaves a field unchanged."""

    topic_id: bytes
    partition: int
    isr: tuple[int, ...] | None
    leader: int | None
    replicas: tuple[int, ...] | None
    removing: tuple[int, ...] | None
    adding: tuple[int, ...] | None
    recovering: bool | None
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None

    def applied(self, before: Registration) -> Registration:
        """Return the changed registration (``PartitionRegistration.merge``)."""
        fields = ("isr", "leader", "replicas", "removing", "adding", "recovering", "elr")
        changes = {name: getattr(self, name) for name in (*fields, "last_known_elr")}
        return replace(
            before,
            **{name: value for name, value in changes.items() if value is not None},
            leader_epoch=before.leader_epoch + (self.leader is not None),
            partition_epoch=before.partition_epoch + 1,
        )


@dataclass(frozen=True, slots=True)
class ElrClear:
    """The ELR of a topic was cleared (ClearElrRecord); of all topics if the name is empty."""

    name: str


@dataclass(frozen=True, slots=True)
class BrokerFencing:
    """A broker was fenced or unfenced; ``gone`` if it was unregistered."""

    broker: int
    fenced: bool
    gone: bool = False


Record = Topic | TopicRemoval | PartitionRecord | PartitionChange | ElrClear | BrokerFencing


def decode(data: bytes) -> Record | None:
    """Decode one record; None for other kinds."""
    source = _Reader(data)
    source.unsigned()  # The frame's version, always 1.
    kind, version = source.unsigned(), source.unsigned()
    read = _READERS.get(kind)
    return None if read is None else read(source, version)


class _Reader:
    """Kafka's primitive types, read in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def unsigned(self) -> int:
        """An unsigned varint."""
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def number(self, kind: str) -> int:
        """A fixed-size number, by its ``struct`` format."""
        (value,) = struct.unpack_from(">" + kind, self._data, self._at)
        self._at += struct.calcsize(">" + kind)
        return int(value)

    def take(self, size: int) -> bytes:
        """The next ``size`` bytes."""
        self._at += size
        return self._data[self._at - size : self._at]

    def text(self) -> str:
        """A compact string, empty for null."""
        return self.take(max(0, self.unsigned() - 1)).decode()

    def ids(self) -> tuple[int, ...] | None:
        """A compact array of broker ids."""
        size = self.unsigned() - 1
        return None if size < 0 else tuple(self.number("i") for _ in range(size))

    def tags(self) -> Mapping[int, _Reader]:
        """The tagged fields."""
        count = self.unsigned()
        fields = {}
        for _ in range(count):
            tag, size = self.unsigned(), self.unsigned()
            fields[tag] = _Reader(self.take(size))
        return fields


def _ids(tags: Mapping[int, _Reader], tag: int) -> tuple[int, ...] | None:
    return tags[tag].ids() if tag in tags else None


def _partition(source: _Reader, version: int) -> PartitionRecord:
    number, topic_id = source.number("i"), source.take(16)
    replicas, isr, removing, adding = (source.ids() or () for _ in range(4))
    leader, leader_epoch, partition_epoch = (source.number("i") for _ in range(3))
    if version >= 1:
        for _ in range(source.unsigned() - 1):
            source.take(16)  # The directory of each replica.
    tags = source.tags()
    registration = Registration(
        replicas=replicas,
        isr=isr,
        leader=leader,
        elr=_ids(tags, 1) or (),
        last_known_elr=_ids(tags, 2) or (),
        leader_epoch=leader_epoch,
        partition_epoch=partition_epoch,
        recovering=0 in tags and tags[0].number("b") == 1,
        adding=adding,
        removing=removing,
    )
    return PartitionRecord(topic_id, number, registration)


def _partition_change(source: _Reader, _version: int) -> PartitionChange:
    number, topic_id = source.number("i"), source.take(16)
    tags = source.tags()
    leader = tags[1].number("i") if 1 in tags else _NO_LEADER_CHANGE
    recovery = tags[5].number("b") if 5 in tags else -1
    return PartitionChange(
        topic_id,
        number,
        isr=_ids(tags, 0),
        leader=None if leader == _NO_LEADER_CHANGE else leader,
        replicas=_ids(tags, 2),
        removing=_ids(tags, 3),
        adding=_ids(tags, 4),
        recovering=None if recovery < 0 else recovery == 1,
        elr=_ids(tags, 6),
        last_known_elr=_ids(tags, 7),
    )


def _register(source: _Reader, version: int) -> BrokerFencing:
    broker = source.number("i")
    if version >= 2:
        source.take(1)  # Whether it comes from ZooKeeper.
    source.take(16 + 8)  # Its incarnation and its epoch.
    for _ in range(source.unsigned() - 1):
        source.text(), source.text()
        source.take(2 + 2)
        source.tags()
    for _ in range(source.unsigned() - 1):
        source.text()
        source.take(2 + 2)
        source.tags()
    source.text()  # Its rack.
    return BrokerFencing(broker, source.number("b") == 1)


def _broker_change(source: _Reader, _version: int) -> BrokerFencing | None:
    broker = source.number("i")
    source.take(8)  # Its epoch.
    tags = source.tags()
    change = tags[0].number("b") if 0 in tags else 0
    return BrokerFencing(broker, fenced=change > 0) if change else None


_READERS: dict[int, Callable[[_Reader, int], Record | None]] = {
    _REGISTER_BROKER: _register,
    _UNREGISTER_BROKER: lambda s, _: BrokerFencing(s.number("i"), fenced=True, gone=True),
    _TOPIC: lambda s, _: Topic(s.text(), s.take(16)),
    _PARTITION: _partition,
    _PARTITION_CHANGE: _partition_change,
    _FENCE_BROKER: lambda s, _: BrokerFencing(s.number("i"), fenced=True),
    _UNFENCE_BROKER: lambda s, _: BrokerFencing(s.number("i"), fenced=False),
    _REMOVE_TOPIC: lambda s, _: TopicRemoval(s.take(16)),
    _BROKER_CHANGE: _broker_change,
    _CLEAR_ELR: lambda s, _: ElrClear(s.text()),
}
