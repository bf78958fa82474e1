"""What advice says of a cluster that is read with a version and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from advisor.advice.audits.current_state import CurrentState, current_state
from advisor.advice.findings.catalogue import Finding
from advisor.advice.findings.checks import check_cluster, check_topic
from advisor.advice.situation import Situation
from advisor.cluster import Cluster, Topic


def state_of(cluster: Cluster, kafka_version: str) -> CurrentState:
    """The state of a cluster when it was described, by the rules of a version."""
    return current_state(Situation.read(cluster, kafka_version=kafka_version))


def findings_of_topic(topic: Topic, cluster: Cluster, version: str = "4.1") -> Iterator[Finding]:
    """The findings about one topic of a cluster, by the rules of a version."""
    return check_topic(topic, Situation.read(cluster, kafka_version=version))


def findings_of(cluster: Cluster) -> Iterator[Finding]:
    """The findings about controllers, brokers and racks."""
    return check_cluster(Situation.read(cluster))
