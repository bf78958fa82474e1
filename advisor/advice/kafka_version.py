"""The Kafka version and the controller of a described cluster, as far as the input shows."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from advisor.cluster import Cluster
from advisor.cluster.observed import Observed
from advisor.parsing import whole_number
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import NEWEST_KNOWN, parse_version

NEWEST_WITH_ZOOKEEPER = "3.9"
_WRITTEN_BY_HAND = frozenset({".toml", ".json", ".yaml", ".yml"})


def version_of(cluster: Cluster, given: str | None = None) -> tuple[str, str]:
    """Return the Kafka version to assume, and a note about the assumption ("" if none was needed).

    The columns of a describe output bound the version: topic ids came in 2.8, the ELR in 3.8
    (``kafka/admin/TopicCommand.scala``, ``org/apache/kafka/tools/TopicCommand.java``).

    Parameters
    ----------
    cluster : Cluster
    given : str, optional
        Version that the user states; it takes precedence.

    Raises
    ------
    ConfigError
        If the stated version is not a version number.
    """
    stated = given or cluster.kafka_version
    if stated is not None:
        if parse_version(stated) > parse_version(NEWEST_KNOWN):
            return stated, (
                f"Kafka {stated} is newer than {NEWEST_KNOWN}, the newest known here; "
                "replication is assumed to be unchanged."
            )
        return stated, ""
    partitions = [partition for topic in cluster.topics for partition in topic.partitions]
    described = PurePath(cluster.source).suffix.lower() not in _WRITTEN_BY_HAND
    described = described and cluster.source not in ("", "uniform", "the text")
    has_ids = any(topic.topic_id for topic in cluster.topics)
    has_elr = any(partition.elr is not None for partition in partitions)
    ask = "say --kafka-version if it is another."
    if cluster.mode == "zookeeper" and (has_elr or not partitions or not (described or has_ids)):
        return NEWEST_WITH_ZOOKEEPER, (
            f"Kafka's version is not stated; taken as {NEWEST_WITH_ZOOKEEPER}, the last with "
            f"ZooKeeper: {ask}"
        )
    if has_elr:
        return NEWEST_KNOWN, (
            "Kafka's version is not stated; the columns are those of kafka-topics.sh 3.8 and "
            f"newer, so it is taken as {NEWEST_KNOWN}: {ask}"
        )
    if not partitions or not (described or has_ids):
        return NEWEST_KNOWN, f"Kafka's version is not stated; taken as {NEWEST_KNOWN}: {ask}"
    newest, columns = ("3.7", "2.8 to 3.7") if has_ids else ("2.7", "2.7 or older")
    return newest, (
        f"Kafka's version is not stated; the columns are those of {columns}, so it is taken as "
        f"{newest}: {ask}"
    )


def controller_of(cluster: Cluster, version: str) -> dict[str, Any]:
    """Return mode, ELR and session timeout as `Config` options, as far as they are known.

    They are stated by the user, read from a live cluster, or shown by a partition with an ELR. An
    upgraded cluster may lack what a new one of its version has, such as KIP-966. What is read from
    a live cluster says nothing about a version that it does not run.
    """
    observed, options = cluster.observed, dict[str, Any]()
    shown = any(partition.elr for topic in cluster.topics for partition in topic.partitions)
    if observed is None and shown:
        options["eligible_leader_replicas"] = parse_version(version) >= (4, 0) or None
    if observed is not None and version in observed.versions.values():
        options["mode"] = observed.mode
        options["eligible_leader_replicas"] = observed.eligible_leader_replicas
        if cluster.mode in (None, observed.mode):
            options |= session_timeout(cluster, observed)
    stated = {"mode": cluster.mode, "eligible_leader_replicas": cluster.eligible_leader_replicas}
    options |= {name: value for name, value in stated.items() if value is not None}
    return {name: value for name, value in options.items() if value is not None}


def controller_note(cluster: Cluster, version: str) -> str:
    """Return what is assumed of a described cluster's controller and ELR; "" if nothing is."""
    if not cluster.topics:
        return ""
    known = controller_of(cluster, version)
    config = Config(kafka_version=version, **known)
    # From 4.0 on there is no other mode, before 3.3 ZooKeeper is the usual one.
    if "mode" not in known and (3, 3) <= parse_version(version) < (4, 0):
        return (
            f"KRaft is assumed, as in a new cluster of {version}; this description does not show "
            "it: say --mode zookeeper if the brokers use ZooKeeper."
        )
    if "eligible_leader_replicas" in known or not config.eligible_leader_replicas:
        return ""
    return (
        "Eligible leader replicas (KIP-966) and KRaft are assumed, as in a new cluster of "
        f"{version}; one made before 4.1 has no eligible leader replicas unless they were enabled. "
        "This description does not show it: see kafka-features.sh --bootstrap-server $BS describe, "
        "and say --elr off if the level of eligible.leader.replicas.version is 0."
    )


def session_timeout(cluster: Cluster, observed: Observed) -> dict[str, int]:
    """Return the longest session timeout that applies to brokers; {} if not reported.

    Under ZooKeeper each broker's own applies, under KRaft the controllers': brokers that are no
    controllers report a value that is not used.
    """
    zookeeper = observed.mode == "zookeeper"
    key = "zookeeper.session.timeout.ms" if zookeeper else "broker.session.timeout.ms"
    values = [
        whole_number(value, 2**31 - 1) or 0
        for broker, value in observed.broker_values(key).items()
        if zookeeper or broker in (cluster.controllers or {})
    ]
    longest = max(values, default=0)
    return {key.replace(".", "_"): longest} if longest else {}
