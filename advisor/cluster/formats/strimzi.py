"""Parse Strimzi's Kubernetes resources: `Kafka`, `KafkaNodePool` and `KafkaTopic`.

API versions `kafka.strimzi.io/v1beta2` and `v1`, hand-written or saved with
`kubectl get kafka,kafkanodepool,kafkatopic -o yaml` (or `-o json`). Brokers are the node pools with
the role broker, or `spec.kafka.replicas` without pools; controllers are the node pools with the
role controller, or `spec.zookeeper.replicas`. Node ids are those of `status.nodeIds`, otherwise
numbered as the operator numbers a new cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from advisor.cluster.formats.describe_format import version_numbers
from advisor.cluster.formats.kubernetes import (
    cluster_in,
    integer,
    name_of,
    nested,
    node_count,
    of_kind,
    settings_of,
)
from advisor.cluster.model import Cluster
from advisor.cluster.observed import right_name
from advisor.cluster.placing import CountedTopic, place_all
from advisor.cluster.racks import broker_id, moved
from advisor.cluster.topic import INTERNAL_TOPICS
from advisor.errors import InputError

_DEFAULTS = {"num.partitions": "1", "default.replication.factor": "1"}
_OTHER_DEFAULTS = {"auto.create.topics.enable": "true"}
# Options of brokers that topics without a value of their own follow, under the same name.
_INHERITED = ("min.insync.replicas", "unclean.leader.election.enable")
# Topics that clients create are then diskless, Kafka's own excepted (https://github.com/aiven/inkless).
_DISKLESS_BY_DEFAULT = ("log.diskless.enable", "log.inkless.enable")
_LABEL = "strimzi.io/cluster"


def parse_strimzi(text: str, source: str, racks: Mapping[int, str | None]) -> Cluster:
    """Parse the cluster that Strimzi resources describe, replicas placed by the racks given."""
    return cluster_in(text, source, "kafka.strimzi.io/", partial(_cluster, racks=racks))


def _cluster(
    resources: list[Mapping[str, Any]], source: str, racks: Mapping[int, str | None]
) -> Cluster:
    kafkas = of_kind(resources, "Kafka")
    if len(kafkas) > 1:
        names = " and ".join(name_of(kafka) for kafka in kafkas)
        raise InputError(f"there are several clusters, {names}; keep one in a file")
    kafka = kafkas[0] if kafkas else {}
    cluster_name = name_of(kafka) if kafkas else None
    spec = nested(kafka, "spec", "kafka")
    pools = _of_cluster(of_kind(resources, "KafkaNodePool"), cluster_name)
    brokers, voters, notes = _nodes(spec, pools)
    mode = None if voters is None else "kraft"
    if voters is None:
        if nested(kafka, "spec", "zookeeper"):
            mode = "zookeeper"
        voters, numbered = _zookeeper(nested(kafka, "spec", "zookeeper"), brokers)
        notes += numbered
    unknown = sorted(racks.keys() - brokers.keys() - (voters or {}).keys())
    if unknown:
        raise InputError(f"racks: broker {unknown[0]} is not one of the node pools' brokers")
    brokers, voters = moved(brokers, voters, racks)
    if not racks:
        key = nested(spec, "rack").get("topologyKey")
        spread = f"Brokers are spread by {key}, but which is where" if key else "Where brokers are"
        notes.append(f"{spread} is unknown; give racks.")
    version = spec.get("version")
    if version is not None:
        version_numbers(version)
    configs = {**_DEFAULTS, **settings_of(nested(spec, "config"))}
    described = _of_cluster(of_kind(resources, "KafkaTopic"), cluster_name)
    topics, placed = place_all((_counted(resource, configs) for resource in described), brokers)
    # What brokers state, or Kafka has by default, of topics that Kafka creates.
    settings = {**_OTHER_DEFAULTS, **configs} if kafkas else {}
    return Cluster(
        brokers=brokers,
        topics=topics,
        kafka_version=version,
        source=source,
        notes=(*notes, *placed),
        controllers=voters,
        mode=mode,
        broker_settings={key: settings[key] for key in settings if right_name(key)},
    )


def _nodes(
    spec: Mapping[str, Any], pools: list[Mapping[str, Any]]
) -> tuple[dict[int, str | None], dict[int, str | None] | None, list[str]]:
    """Return brokers, voters (None without a pool of controllers) and notes; no rack is known."""
    if not pools:
        if "replicas" not in spec:
            raise InputError(
                "there are no brokers; add the KafkaNodePool resources: kubectl get "
                "kafka,kafkanodepool,kafkatopic -o yaml"
            )
        return dict.fromkeys(range(node_count(spec["replicas"], "Kafka"))), None, []
    ids_of_pools = [_stated_ids(pool) for pool in pools]
    used_ids = {node for nodes in ids_of_pools for node in nodes}
    if len(used_ids) < sum(map(len, ids_of_pools)):
        raise InputError("two node pools have the same node id in status.nodeIds")
    ids: dict[str, list[int]] = {"broker": [], "controller": []}
    assumed: list[str] = []
    for pool, nodes in zip(pools, ids_of_pools, strict=True):
        name = name_of(pool)
        count = node_count(nested(pool, "spec").get("replicas"), f"KafkaNodePool {name}")
        if not nodes:
            nodes = _free_ids(count, used_ids)
            used_ids.update(nodes)
            assumed.append(name)
        roles = nested(pool, "spec").get("roles", [])
        for role, ids_of_role in ids.items():
            if isinstance(roles, list) and role in roles:
                ids_of_role.extend(nodes)
    if not ids["broker"]:
        raise InputError("no KafkaNodePool has the role broker; add the one that has")
    notes = []
    if assumed:
        notes.append(
            f"Node ids of {', '.join(assumed)} are assumed: numbered from 0 in the file's order."
        )
    voters = dict.fromkeys(sorted(ids["controller"]))
    return dict.fromkeys(sorted(ids["broker"])), voters or None, notes


def _zookeeper(
    spec: Mapping[str, Any], brokers: Mapping[int, str | None]
) -> tuple[dict[int, str | None] | None, list[str]]:
    """Return the servers of the ensemble, numbered after the brokers so that no id is shared."""
    count = node_count(spec["replicas"], "zookeeper") if "replicas" in spec else 0
    if not count:
        return None, []
    first = max(brokers, default=-1) + 1
    servers = dict.fromkeys(range(first, first + count))
    return servers, [f"ZooKeeper servers are numbered {', '.join(map(str, servers))} here."]


def _stated_ids(pool: Mapping[str, Any]) -> list[int]:
    ids = nested(pool, "status").get("nodeIds")
    if not isinstance(ids, list):
        return []
    return [broker_id(node, f"KafkaNodePool {name_of(pool)}: nodeIds") for node in ids]


def _free_ids(count: int, used_ids: set[int]) -> list[int]:
    result: list[int] = []
    candidate = 0
    while len(result) < count:
        if candidate not in used_ids:
            result.append(candidate)
        candidate += 1
    return result


def _counted(resource: Mapping[str, Any], configs: Mapping[str, str]) -> CountedTopic:
    spec = nested(resource, "spec")
    name = spec.get("topicName", name_of(resource))
    settings = settings_of(nested(spec, "config"))
    for option in _INHERITED:
        if option in configs:
            settings.setdefault(option, configs[option])
    diskless = any(configs.get(option) == "true" for option in _DISKLESS_BY_DEFAULT)
    if diskless and name not in INTERNAL_TOPICS:
        settings.setdefault("diskless.enable", "true")
    # -1 means the broker default, as in the tools (KIP-464).
    counts = [
        configs[default] if spec.get(key) in (None, "-1") else spec[key]
        for key, default in (
            ("partitions", "num.partitions"),
            ("replicas", "default.replication.factor"),
        )
    ]
    return CountedTopic(
        name=str(name),
        partitions=integer(counts[0], f"KafkaTopic {name}: partitions"),
        replication_factor=integer(counts[1], f"KafkaTopic {name}: replicas"),
        configs=settings,
    )


def _of_cluster(resources: list[Mapping[str, Any]], cluster: str | None) -> list[Mapping[str, Any]]:
    """Return the resources that are not labelled as another cluster's."""
    return [
        resource
        for resource in resources
        if cluster is None or nested(resource, "metadata", "labels").get(_LABEL, cluster) == cluster
    ]
