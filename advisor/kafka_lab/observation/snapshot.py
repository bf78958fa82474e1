"""A running cluster as a state of the protocol: what is looked at, and what the checks compare.

The controller's records come from its own log, the copies from the brokers' disks, the high
watermarks from the leaders. What a broker believes and nobody can see from outside is left out:
a deposed leader counts as a follower, and followers' high watermarks are not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.kafka_lab.formats import log_directory
from advisor.kafka_lab.formats.record_batches import batches, segments
from advisor.kafka_lab.observation.controller_state import ControllerState, PartitionName
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

CopyName = tuple[int, str, int]


@dataclass(frozen=True)
class Reading:
    """What was read of a cluster at one moment.

    Attributes
    ----------
    truth : Truth
        The controller's records.
    logs : mapping of (broker, topic, partition) to Log
        Of every copy on a disk, of brokers that are down too.
    high_watermarks : mapping of (topic, partition) to int or None
        As the leader on record tells consumers; None if it does not answer as leader.
    running : frozenset of int
    """

    truth: ControllerState
    logs: Mapping[CopyName, Log]
    high_watermarks: Mapping[PartitionName, int | None]
    running: frozenset[int]


def copy_on_disk(folder: Path) -> Log:
    """A broker's copy of a partition, its records by the numbers that are their values."""
    runs: list[Run] = []
    for segment in segments(folder):
        for batch in batches(segment):
            for value in batch.values:
                number, last = int(value), runs[-1] if runs else None
                if last and (last.epoch, last.first + last.length) == (batch.leader_epoch, number):
                    runs[-1] = last._replace(length=last.length + 1)
                else:
                    runs.append(Run(batch.leader_epoch, number, 1))
    found = log_directory.read(folder)
    epochs = tuple(EpochStart(epoch, start) for epoch, start in found.epochs)
    return Log(runs=tuple(runs), leo=found.leo, epochs=epochs)


def state_of(reading: Reading, before: State) -> State:
    """The state that a reading shows.

    Parameters
    ----------
    reading : Reading
    before : State
        Its partitions bring the topics' settings, and what was acknowledged and committed: to the
        latter is added what is below the high watermark now.
    """
    serving = reading.truth.serving
    brokers = tuple(
        broker._replace(
            session=ACTIVE if broker.id in serving else FENCED,
            running=broker.id in reading.running,
        )
        for broker in before.brokers
    )
    partitions = tuple(_partition(reading, partition) for partition in before.partitions)
    return before._replace(brokers=brokers, partitions=partitions)


def _partition(reading: Reading, before: Partition) -> Partition:
    key = before.topic, before.number
    record = reading.truth.registrations.get(key, before.registration)
    hw = reading.high_watermarks.get(key)
    replicas = []
    committed = before.committed
    for (broker, *name), log in sorted(reading.logs.items()):
        if tuple(name) != key:
            continue
        leads = broker == record.leader != NO_LEADER and hw is not None
        role = FOLLOWER if broker in reading.running else OFFLINE
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
