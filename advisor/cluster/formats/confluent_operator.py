"""Parse resources of Confluent for Kubernetes: `Kafka`, `KRaftController` and `KafkaTopic`.

API version `platform.confluent.io/v1beta1`, hand-written or saved with
`kubectl get kafka,kraftcontroller,kafkatopic -o yaml` (or `-o json`). Brokers are numbered from the
annotation `broker-id-offset`, or from 0. What the operator sets beyond `configOverrides` is not in
the resources, so that a setting that does not stand there is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from advisor.cluster.formats.kubernetes import (
    cluster_in,
    integer,
    name_of,
    nested,
    node_count,
    of_kind,
    settings_of,
    version_of_image,
)
from advisor.cluster.model import Cluster
from advisor.cluster.observed import right_name
from advisor.cluster.placing import PLACEMENT_NOTE, CountedTopic, place
from advisor.cluster.racks import moved
from advisor.cluster.topic import check_partitions
from advisor.errors import InputError

_API = "platform.confluent.io/"
_OFFSET = "platform.confluent.io/broker-id-offset"


def parse_confluent_operator(text: str, source: str, racks: Mapping[int, str | None]) -> Cluster:
    """Return the cluster that resources of Confluent for Kubernetes describe."""
    return cluster_in(text, source, _API, partial(_cluster, racks=racks))


def _cluster(
    resources: list[Mapping[str, Any]], source: str, racks: Mapping[int, str | None]
) -> Cluster:
    kafka = _only(resources, "Kafka")
    if kafka is None:
        raise InputError(
            "there are no brokers; add the Kafka resource: kubectl get kafka,kafkatopic -o yaml"
        )
    spec = nested(kafka, "spec")
    stated = nested(kafka, "metadata", "annotations").get(_OFFSET)
    first = 0 if stated is None else integer(stated, f"Kafka: {_OFFSET}")
    number = node_count(spec.get("replicas"), "Kafka")
    configs = _overrides(spec)
    rack = configs.get("broker.rack") or None
    brokers: Mapping[int, str | None] = dict.fromkeys(range(first, first + number), rack)
    controllers, mode, notes = _controllers(resources, first + number)
    brokers, controllers = moved(brokers, controllers, racks)
    if stated is None:
        notes.insert(0, "Ids of the brokers are assumed: numbered from 0.")
    if set(brokers.values()) == {None}:
        notes.append("Where brokers are is unknown; give racks.")
    topics = []
    for order, resource in enumerate(of_kind(resources, "KafkaTopic")):
        owner = nested(resource, "spec", "kafkaClusterRef").get("name")
        if owner in (None, name_of(kafka)):
            topics.append(place(_counted(resource, configs), brokers, order))
            check_partitions(sum(len(topic.partitions) for topic in topics))
    if topics:
        notes.append(PLACEMENT_NOTE.format(", ".join(topic.name for topic in topics)))
    return Cluster(
        brokers=brokers,
        topics=tuple(topics),
        kafka_version=version_of_image(str(nested(spec, "image").get("application", ""))),
        source=source,
        notes=tuple(notes),
        controllers=controllers,
        mode=mode,
        broker_settings={key: configs[key] for key in configs if right_name(key)},
    )


def _controllers(
    resources: list[Mapping[str, Any]], first: int
) -> tuple[dict[int, str | None] | None, str | None, list[str]]:
    """Return voters, numbered from `first`, the kind of controller, and a note on the numbers."""
    for kind, mode in (("KRaftController", "kraft"), ("Zookeeper", "zookeeper")):
        resource = _only(resources, kind)
        if resource is not None:
            number = node_count(nested(resource, "spec").get("replicas"), kind)
            voters = dict.fromkeys(range(first, first + number))
            note = f"Nodes of {kind} are numbered {', '.join(map(str, voters))} here."
            return voters or None, mode, [note]
    return None, None, []


def _counted(resource: Mapping[str, Any], configs: Mapping[str, str]) -> CountedTopic:
    spec = nested(resource, "spec")
    name = str(spec.get("name") or name_of(resource))
    settings = settings_of(nested(spec, "configs"))
    for option in ("min.insync.replicas", "unclean.leader.election.enable"):
        if option in configs:
            settings.setdefault(option, configs[option])
    counts = []
    for key, option in (
        ("partitionCount", "num.partitions"),
        ("replicas", "default.replication.factor"),
    ):
        value = spec.get(key) or configs.get(option)
        if value is None:
            raise InputError(
                f"KafkaTopic {name} has no {key}, and the brokers' {option} is not stated; add "
                "one, or run kafka-topics.sh --describe"
            )
        counts.append(integer(value, f"KafkaTopic {name}: {key}"))
    return CountedTopic(name, counts[0], counts[1], settings)


def _overrides(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return `configOverrides.server`, a list of `key=value`."""
    lines = nested(spec, "configOverrides").get("server", [])
    if not isinstance(lines, list):
        raise InputError("configOverrides.server is not a list of key=value")
    pairs = [str(line).partition("=") for line in lines]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _only(resources: list[Mapping[str, Any]], kind: str) -> Mapping[str, Any] | None:
    matching = of_kind(resources, kind)
    if len(matching) > 1:
        names = " and ".join(map(name_of, matching))
        raise InputError(f"there are several resources {kind}, {names}; keep one cluster in a file")
    return matching[0] if matching else None
