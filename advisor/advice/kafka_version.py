"""The Kafka version and the controller of a described cluster, as far as the input shows."""

from __future__ import annotations

from typing import Any

from advisor.cluster import Cluster
from advisor.cluster.describe_layouts import LAYOUTS, Layout
from advisor.cluster.observed import Observed
from advisor.parsing import whole_number
from advisor.protocol.rules.config import Config
from advisor.protocol.rules.versions import NEWEST_KNOWN, OLDEST, parse_version

NEWEST_WITH_ZOOKEEPER = "3.9"
# From 3.7 on the ISR is compared with min(min.insync.replicas, replicas): `effectiveMinIsr` in
# `kafka/cluster/Partition.scala`, absent in 3.6.2 (KAFKA-15583). No feature level switches it.
NEWEST_REFUSING = "3.6"
_ASK = "say --kafka-version if it is another."


def version_of(cluster: Cluster, given: str | None = None) -> tuple[str, str]:
    """Return the Kafka version to assume, and a note about the assumption ("" if none was needed).

    The columns of a describe output bound the version (`advisor.cluster.describe_layouts`).
    Where that leaves versions on both sides of KAFKA-15583 (3.7) and a topic has a min ISR above
    its number of replicas, the older side is taken: it refuses acks=all.

    given: version that the user states; it takes precedence.
    Raises ConfigError if the stated version is not a version number.
    """
    stated = given or cluster.kafka_version
    if stated is not None:
        if parse_version(stated) > parse_version(NEWEST_KNOWN):
            return stated, (
                f"Kafka {stated} is newer than {NEWEST_KNOWN}, the newest known here; "
                "replication is assumed to be unchanged."
            )
        return stated, ""
    layout = LAYOUTS.get(cluster.layout or "")
    version, why = _newest(cluster, layout)
    topic = _above_factor(cluster)
    oldest = OLDEST if layout is None else parse_version(layout.first)
    refusing = parse_version(NEWEST_REFUSING)
    if topic and oldest <= refusing < parse_version(version):
        # Of what it may be, the worse: numbers, findings and state then agree with each other.
        why = "" if layout is None else f"{layout.words}, "
        why += (
            f"taken as {NEWEST_REFUSING}, the last that refuses every acks=all write where "
            f"min.insync.replicas is above the number of replicas, as in topic {topic}; 3.7 and "
            "newer count it as that number"
        )
        version = NEWEST_REFUSING
    return version, f"Kafka's version is not stated; {why}: {_ASK}"


def _newest(cluster: Cluster, layout: Layout | None) -> tuple[str, str]:
    """Return the newest version that the input allows, and from what that follows."""
    if cluster.mode == "zookeeper" and (layout is None or layout.last is None):
        return NEWEST_WITH_ZOOKEEPER, f"taken as {NEWEST_WITH_ZOOKEEPER}, the last with ZooKeeper"
    if layout is None:
        return NEWEST_KNOWN, f"taken as {NEWEST_KNOWN}"
    version = layout.last or NEWEST_KNOWN
    controller = " with ZooKeeper" if layout.mode == "zookeeper" and cluster.mode is None else ""
    return version, f"{layout.words}, so it is taken as {version}{controller}"


def _above_factor(cluster: Cluster) -> str | None:
    """Return the first topic whose min ISR is above its replicas; None if there is none.

    A version that counts it as the number of replicas is then not assumed, unless it is proven.
    """
    if cluster.eligible_leader_replicas:
        return None
    for topic in cluster.topics:
        least = topic.min_insync_replicas or 1
        if any(partition.replication_factor < least for partition in topic.partitions):
            return topic.name
    return None


def controller_of(cluster: Cluster, version: str) -> dict[str, Any]:
    """Return mode, ELR and session timeout as `Config` options, as far as they are known.

    They are stated by the user, read from a live cluster, or shown by a partition with an ELR. An
    upgraded cluster may lack what a new one of its version has, such as KIP-966. What is read from
    a live cluster says nothing about a version that it does not run.
    """
    observed, options = cluster.observed, dict[str, Any]()
    layout = LAYOUTS.get(cluster.layout or "")
    # Before 3.3 ZooKeeper is the usual controller, and from 4.0 on KRaft the only one.
    if layout is not None and layout.mode and (3, 3) <= parse_version(version) < (4, 0):
        options["mode"] = layout.mode
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
    options = controller_of(cluster, version)
    config = Config(kafka_version=version, **options)
    # From 4.0 on there is no other mode, before 3.3 ZooKeeper is the usual one.
    if "mode" not in options and (3, 3) <= parse_version(version) < (4, 0):
        return (
            f"KRaft is assumed, as in a new cluster of {version}; this description does not show "
            "it: say --mode zookeeper if the brokers use ZooKeeper."
        )
    if "eligible_leader_replicas" in options or not config.eligible_leader_replicas:
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
