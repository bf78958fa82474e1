"""Convert a running cluster to a protocol state, for scenario output and invariant checks.

Registrations come from the controller, logs from the brokers' disks, high watermarks from the
leaders. A broker's internal view is not visible: a deposed leader counts as a follower, and
followers' high watermarks are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.kafka_lab.formats import log_directory
from advisor.kafka_lab.formats.log_directory import batches, segments
from advisor.kafka_lab.observation.controller_state import ControllerState, PartitionKey
from advisor.protocol.log import replica_log as logs
from advisor.protocol.log.leader_epoch_cache import EpochStart
from advisor.protocol.log.replica_log import Log, Run
from advisor.protocol.rules.partition_registration import NO_LEADER
from advisor.protocol.simulation.state import (
    ACTIVE,
    FENCED,
    FOLLOWER,
    LEADER,
    OFFLINE,
    Partition,
    Replica,
    State,
)

ReplicaKey = tuple[int, str, int]


@dataclass(frozen=True)
class Snapshot:
    """A cluster at one moment.

    logs: every replica on disk, also of stopped brokers.
    high_watermarks: from the registered leader; None if it does not answer as leader.
    """

    controller: ControllerState
    logs: Mapping[ReplicaKey, Log]
    high_watermarks: Mapping[PartitionKey, int | None]
    running: frozenset[int]


def read_replica_log(folder: Path) -> Log:
    """Read a replica log whose record values are the record numbers of the scenario."""
    runs: list[Run] = []
    for segment in segments(folder):
        for batch in batches(segment):
            for value in batch.values:
                number, last = int(value), runs[-1] if runs else None
                if last and (last.epoch, last.first + last.length) == (batch.leader_epoch, number):
                    runs[-1] = last._replace(length=last.length + 1)
                else:
                    runs.append(Run(batch.leader_epoch, number, 1))
    disk_log = log_directory.read_log(folder)
    epochs = tuple(EpochStart(epoch, start) for epoch, start in disk_log.epochs)
    return Log(runs=tuple(runs), leo=disk_log.leo, epochs=epochs)


def state_from_snapshot(snapshot: Snapshot, before: State) -> State:
    """Convert a snapshot to a protocol state.

    before: previous state, for topic settings and the acknowledged and committed records; records
        below the current high watermark are added to the latter.
    """
    serving = snapshot.controller.serving
    brokers = tuple(
        broker._replace(
            session=ACTIVE if broker.id in serving else FENCED,
            running=broker.id in snapshot.running,
        )
        for broker in before.brokers
    )
    partitions = tuple(_partition(snapshot, partition) for partition in before.partitions)
    return before._replace(brokers=brokers, partitions=partitions)


def _partition(snapshot: Snapshot, before: Partition) -> Partition:
    key = before.topic, before.number
    record = snapshot.controller.registrations.get(key, before.registration)
    hw = snapshot.high_watermarks.get(key)
    replicas = []
    committed = before.committed
    for (broker, *name), log in sorted(snapshot.logs.items()):
        if tuple(name) != key:
            continue
        leads = broker == record.leader != NO_LEADER and hw is not None
        role = FOLLOWER if broker in snapshot.running else OFFLINE
        if leads and hw is not None:
            committed = logs.merged((*committed, *logs.spans(logs.records(log, 0, hw))))
        replicas.append(
            Replica(
                broker=broker,
                log=log,
                hw=min(hw, log.leo) if leads and hw is not None else 0,
                role=LEADER if leads else role,
                leader=record.leader,
                leader_epoch=record.leader_epoch,
                isr=record.isr if leads else (),
            )
        )
    copies = tuple(replicas)
    return before._replace(registration=record, replicas=copies, committed=committed)
