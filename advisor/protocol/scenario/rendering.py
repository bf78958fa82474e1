"""Formats scenario output: partition states, logs, ``kafka-topics.sh --describe``."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping

from advisor.protocol.log import replica_log as logs
from advisor.protocol.rules.partition_registration import NO_LEADER, Registration
from advisor.protocol.rules.versions import parse_version
from advisor.protocol.simulation.cluster import LEADER_NOT_AVAILABLE, Simulation
from advisor.protocol.simulation.state import Partition, State, current_leader, replica_of


def ids(brokers: Iterable[int]) -> str:
    """Broker ids, comma-separated."""
    return ",".join(str(b) for b in brokers)


def _leader(registration: Registration) -> str:
    return "none" if registration.leader == NO_LEADER else str(registration.leader)


def state_line(state: State, partition: Partition) -> str:
    """``leader=1 epoch=0 replicas=1,2,3 isr=1,2 elr= hw=10``; ISR and ELR sorted."""
    record = partition.registration
    leader = current_leader(state, partition)
    hw = "-" if leader is None else str(leader.hw)
    return (
        f"leader={_leader(record)} epoch={record.leader_epoch} replicas={ids(record.replicas)} "
        f"isr={ids(sorted(record.isr))} elr={ids(sorted(record.elr))} hw={hw}"
    )


def registration_line(record: Registration) -> str:
    """The controller's partition registration, with sorted lists."""
    recovery = "recovering" if record.recovering else "recovered"
    return (
        f"leader={_leader(record)} leader_epoch={record.leader_epoch} "
        f"partition_epoch={record.partition_epoch} isr={ids(sorted(record.isr))} "
        f"elr={ids(sorted(record.elr))} last_known_elr={ids(sorted(record.last_known_elr))} "
        f"recovery={recovery}"
    )


def log_line(partition: Partition, broker: int) -> str:
    """``leo=10 epochs=0@0`` of a broker's replica; an empty log if it has none."""
    replica = replica_of(partition, broker)
    log = logs.EMPTY if replica is None else replica.log
    epochs = ",".join(f"{entry.epoch}@{entry.start}" for entry in log.epochs)
    return f"leo={log.leo} epochs={epochs}"


def consume_line(state: State, partition: Partition) -> str:
    """Number of records that a consumer reading from offset 0 gets now."""
    leader = current_leader(state, partition)
    if leader is None:
        return f"read 0 {LEADER_NOT_AVAILABLE}"
    return f"read {leader.hw}"


def describe_lines(
    cluster: Simulation, topic: str, configs: Mapping[str, str], number: int
) -> list[str]:
    """Output of ``kafka-topics.sh --describe`` in the format of the cluster's version.

    configs: configs set on the topic, with Kafka's dotted names.
    number: index of the topic in the cluster; with the name it determines the topic id.
    """
    version = parse_version(cluster.settings.config.kafka_version)
    partitions = [p for p in cluster.state.partitions if p.topic == topic]
    if version < (0, 8, 1):
        return [_line_080(p) for p in partitions]
    shown = {**_broker_configs(cluster, version), **configs}
    set_here = ",".join(f"{key}={value}" for key, value in sorted(shown.items()))
    first = partitions[0].registration
    factor = len(first.replicas) - (len(first.adding) if version >= (2, 4) else 0)
    blank = "" if version < (2, 2) else " "
    cells = [f"Topic:{blank}{topic}"]
    if version >= (2, 8):
        cells.append(f"TopicId: {topic_id(topic, number)}")
    cells.append(f"PartitionCount:{blank}{len(partitions)}")
    cells.append(f"ReplicationFactor:{blank}{factor}")
    cells.append(f"Configs:{blank}{set_here}")
    kraft = cluster.settings.kraft
    return ["\t".join(cells), *(_line(p, version, kraft) for p in partitions)]


def _broker_configs(cluster: Simulation, version: tuple[int, ...]) -> dict[str, str]:
    """Broker and cluster configs that the tool lists for every topic (2.2 and newer).

    Enabling ELR writes a cluster-level min.insync.replicas
    (``ConfigurationControlManager.maybeGenerateElrSafetyRecords``).
    """
    config = cluster.settings.config
    keys = {"min_insync_replicas", "unclean_leader_election_enable"} & config.explicit
    if config.eligible_leader_replicas:
        keys = keys | {"min_insync_replicas"}
    if version < (2, 2):
        return {}
    return {key.replace("_", "."): str(getattr(config, key)).lower() for key in keys}


def _line_080(partition: Partition) -> str:
    record = partition.registration
    return (
        f"topic: {partition.topic}\tpartition: {partition.number}\tleader: {_leader(record)}"
        f"\treplicas: {ids(record.replicas)}\tisr: {ids(record.isr)}"
    )


def _line(partition: Partition, version: tuple[int, ...], kraft: bool) -> str:
    record = partition.registration
    line = (
        f"\tTopic: {partition.topic}\tPartition: {partition.number}\tLeader: {_leader(record)}"
        f"\tReplicas: {ids(record.replicas)}\tIsr: {ids(record.isr)}"
    )
    if version >= (2, 2) and (record.adding or record.removing):
        line += (
            f"\tAdding Replicas: {ids(record.adding)}\tRemoving Replicas: {ids(record.removing)}"
        )
    if version >= (3, 8):
        # Only KRaft brokers return the ELR; for others the tool prints N/A.
        elr, last_known = (ids(record.elr), ids(record.last_known_elr)) if kraft else ("N/A", "N/A")
        line += f"\tElr: {elr}\tLastKnownElr: {last_known}"
    return line


def topic_id(topic: str, number: int) -> str:
    """Topic id in Kafka's base64 format (22 characters), the same in every run."""
    digest = hashlib.sha256(f"{number} {topic}".encode()).digest()[:16]
    text = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    return text if not text.startswith("-") else "A" + text[1:]
