"""The decisions of a real controller, from its metadata log or ZooKeeper's transaction log.

Each decision has the timestamp, in milliseconds, that the controller or ZooKeeper gave it. The
brokers' own logs are not read.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from advisor.kafka_lab.formats.log_directory import batches, segments
from advisor.kafka_lab.formats.metadata_records import BrokerFencing as Fence
from advisor.kafka_lab.formats.metadata_records import PartitionChange as Changed
from advisor.kafka_lab.formats.metadata_records import PartitionRecord as Created
from advisor.kafka_lab.nodes.cluster import RealCluster
from advisor.kafka_lab.nodes.node_properties import CONTROLLER
from advisor.kafka_lab.observation.controller_state import MetadataLog
from advisor.protocol.rules.partition_registration import Registration

PartitionName = tuple[str, int]

# Header sizes of ZooKeeper's transaction log: of the file, a frame and a transaction.
_FILE_HEADER, _FRAME, _HEADER = 16, 12, 32
_CLOSE_SESSION = -11
_STATE = re.compile(rb"/brokers/topics/([^/]+)/partitions/(\d+)/state.{4,5}?(\{[^}]*\})", re.DOTALL)
_BROKER = re.compile(rb"/brokers/ids/(\d+)")
_ELECTED = re.compile(rb'/controller.{4,5}?\{[^}]*"brokerid":(\d+)', re.DOTALL)


@dataclass(frozen=True)
class PartitionChange:
    """A change of a partition's registration; ``before`` is None for a new partition."""

    at_ms: int
    partition: PartitionName
    before: Registration | None
    after: Registration

    @property
    def left(self) -> frozenset[int]:
        """Brokers that left the ISR."""
        before = self.before.isr if self.before else ()
        return frozenset(before) - frozenset(self.after.isr)

    @property
    def joined(self) -> frozenset[int]:
        """Brokers that joined the ISR; empty for a new partition."""
        return (
            frozenset(self.after.isr) - frozenset(self.before.isr) if self.before else frozenset()
        )

    @property
    def elected(self) -> bool:
        """Whether the leader changed."""
        moved = self.before is not None and self.before.leader != self.after.leader
        return moved and self.after.leader >= 0


@dataclass(frozen=True)
class BrokerChange:
    """A broker was unfenced or fenced; under ZooKeeper its session began or ended."""

    at_ms: int
    broker: int
    serves: bool


@dataclass(frozen=True)
class ControllerChange:
    """A controller took over."""

    at_ms: int
    controller: int


Decision = PartitionChange | BrokerChange | ControllerChange


class History:
    """The decisions of a cluster's controllers so far, read incrementally.

    Parameters
    ----------
    cluster : RealCluster

    Attributes
    ----------
    decisions : list of Decision
        In order.
    registrations : dict of (topic, partition) to Registration
        As they stand.
    serving : set of int
    """

    def __init__(self, cluster: RealCluster) -> None:
        self.decisions: list[Decision] = []
        self.registrations: dict[PartitionName, Registration] = {}
        self.serving: set[int] = set()
        data = cluster.data(CONTROLLER)
        kraft = cluster.spec.mode == "kraft"
        self._source = _Metadata(data) if kraft else _Transactions(data / "version-2")

    def read(self) -> int:
        """Read what is new and return how many decisions there are now."""
        for at_ms, found in self._source.read():
            if isinstance(found, Fence):
                if found.fenced == (found.broker in self.serving):
                    self.decisions.append(BrokerChange(at_ms, found.broker, not found.fenced))
                (self.serving.discard if found.fenced else self.serving.add)(found.broker)
            elif isinstance(found, int):
                self.decisions.append(ControllerChange(at_ms, found))
            else:
                self._partition(at_ms, *found)
        return len(self.decisions)

    def _partition(self, at_ms: int, name: PartitionName, change: Changed | Registration) -> None:
        before = self.registrations.get(name)
        if isinstance(change, Changed):
            if before is None:
                raise RuntimeError(f"{name} was changed before it was made")
            change = change.applied(before)
        self.registrations[name] = change
        self.decisions.append(PartitionChange(at_ms, name, before, change))


_Found = Fence | int | tuple[PartitionName, "Changed | Registration"]


class _Metadata:
    """The metadata log of a KRaft controller."""

    def __init__(self, data: Path) -> None:
        self._folder = data / "__cluster_metadata-0"
        self._log = MetadataLog(self._folder)
        self._seen = 0
        self._epoch = 0
        self._at: dict[Path, int] = {}

    def read(self) -> Iterator[tuple[int, _Found]]:
        """Yield the decisions that are new since the last call."""
        yield from self._controllers()
        self._log.read()
        new = self._log.history[self._seen :]
        self._seen = len(self._log.history)
        for at_ms, record in new:
            if isinstance(record, Fence):
                yield at_ms, record
            elif isinstance(record, Created):
                name = self._log.name_of(record.topic_id), record.partition
                yield at_ms, (name, record.registration)
            elif isinstance(record, Changed):
                yield at_ms, ((self._log.name_of(record.topic_id), record.partition), record)

    def _controllers(self) -> Iterator[tuple[int, _Found]]:
        for segment in segments(self._folder):
            for batch in batches(segment, self._at.get(segment, 0)):
                self._at[segment] = batch.at_byte + batch.size_bytes
                if batch.leader_epoch > self._epoch:
                    self._epoch = batch.leader_epoch
                    yield batch.timestamp_ms, CONTROLLER


class _Transactions:
    """ZooKeeper's transaction log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._at: dict[Path, int] = {}
        self._sessions: dict[int, int] = {}

    def read(self) -> Iterator[tuple[int, _Found]]:
        """Yield the decisions that are new since the last call."""
        for file in sorted(self._folder.glob("log.*"), key=lambda f: int(f.suffix[1:], 16)):
            for session, at_ms, kind, body in self._transactions(file):
                yield from ((at_ms, found) for found in self._meaning(session, kind, body))

    def _transactions(self, file: Path) -> Iterator[tuple[int, int, int, bytes]]:
        data = file.read_bytes()
        at = self._at.get(file, _FILE_HEADER)
        while at + _FRAME <= len(data):
            _, size = struct.unpack_from(">qi", data, at)
            end = at + _FRAME + size
            # The file is preallocated with zeros; a complete transaction ends in a B.
            if size <= 0 or data[end : end + 1] != b"B":
                break
            start = at + _FRAME
            session, _, _, at_ms, kind = struct.unpack_from(">qiqqi", data, start)
            yield session, at_ms, kind, data[start + _HEADER : end]
            at = end + 1
        self._at[file] = at

    def _meaning(self, session: int, kind: int, body: bytes) -> Iterator[_Found]:
        if kind == _CLOSE_SESSION:
            if session in self._sessions:
                yield Fence(self._sessions.pop(session), fenced=True)
            return
        for topic, number, text in _STATE.findall(body):
            state = json.loads(text)
            epoch = state["leader_epoch"]
            found = Registration((), tuple(state["isr"]), state["leader"], leader_epoch=epoch)
            yield (topic.decode(), int(number)), found
        for broker in _ELECTED.findall(body):
            yield int(broker)
        for broker in set(_BROKER.findall(body)):
            self._sessions[session] = int(broker)
            yield Fence(int(broker), fenced=False)
