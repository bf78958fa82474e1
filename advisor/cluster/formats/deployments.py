"""Read how brokers are deployed: files of docker compose, and values of Helm charts.

They have the brokers, their racks and settings, among them those of Kafka's own topics; charts may
also make topics. Images of Apache Kafka, Confluent, wurstmeister and Bitnami take broker options as
environment variables: `KAFKA_MIN_INSYNC_REPLICAS`, with the prefix `KAFKA_CFG_` for Bitnami's.
Charts: Bitnami's kafka and Confluent's cp-kafka.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from advisor.cluster.formats.kubernetes import (
    cut_note,
    node_count,
    settings_of,
    version_of_image,
    yaml_in,
)
from advisor.cluster.formats.topics_as_code import topics_in
from advisor.cluster.model import Cluster
from advisor.cluster.observed import right_name
from advisor.cluster.other_systems import REDPANDA
from advisor.cluster.placing import place_all
from advisor.cluster.racks import broker_id, is_rack, moved
from advisor.errors import InputError

_KAFKA_IMAGE = re.compile(r"(^|/)(cp-)?(kafka|server|enterprise-kafka|kafka-native)(:|@|$)")
_REDPANDA_IMAGE = re.compile(r"(^|/)redpanda(:|@|$)")
_PREFIX = re.compile(r"KAFKA_(?:CFG_)?(?=[A-Z])")
_VARIABLE = re.compile(r"\$\{[A-Za-z_]\w*(?::?-([^{}$]*))?\}|\$[A-Za-z_]\w*")
_OF_BROKERS = ("node.id", "broker.id", "process.roles", "zookeeper.connect", "advertised.listeners")
_VOTER = re.compile(r"(\d{1,9})@")
_FOLLOWED = ("min.insync.replicas", "unclean.leader.election.enable")
_NOT_ALL = "run kafka-topics.sh --describe once they run"
# Parameters of Bitnami's chart that stand for an option of brokers.
_PARAMETERS = {
    "defaultReplicationFactor": "default.replication.factor",
    "offsetsTopicReplicationFactor": "offsets.topic.replication.factor",
    "transactionStateLogReplicationFactor": "transaction.state.log.replication.factor",
    "transactionStateLogMinIsr": "transaction.state.log.min.isr",
    "numPartitions": "num.partitions",
    "autoCreateTopicsEnable": "auto.create.topics.enable",
}
_FIRST_BROKER = 100


def parse_compose(text: str, source: str) -> Cluster:
    """Return the brokers that a file of docker compose starts."""
    document = _document(text, source)
    services = document.get("services")
    nodes, notes = [], []
    for name, service in services.items() if isinstance(services, Mapping) else ():
        if not isinstance(service, Mapping):
            continue
        image = str(service.get("image", ""))
        if _REDPANDA_IMAGE.search(image):
            raise InputError(f"{source}: {name} is started from {image}. {REDPANDA}")
        options = _options(_environment(service.get("environment")))
        if _KAFKA_IMAGE.search(image) or any(option in options for option in _OF_BROKERS):
            if not options and "env_file" not in service:
                raise InputError(
                    f"{source}: {name} has no settings of Kafka, as where a file is cut; give the "
                    "whole file"
                )
            nodes.append((str(name), image, options))
            if "env_file" in service:
                notes.append(f"{name} has an env_file, which was not read.")
    cluster = _started(nodes, source, [*notes, *cut_note(text)])
    if cut_note(text) and any("are assumed" in note for note in cluster.notes):
        raise InputError(
            f"{source}: the text ends without a line end, and a broker has no id: it may be cut; "
            "give the whole file"
        )
    return cluster


def _started(
    nodes: Sequence[tuple[str, str, Mapping[str, str]]], source: str, notes: list[str]
) -> Cluster:
    brokers: dict[int, str | None] = {}
    settings: list[Mapping[str, str]] = []
    voters: set[int] = set()
    versions: set[str | None] = set()
    mode = None
    unnamed = 0
    for name, image, options in nodes:
        node_text = options.get("node.id", options.get("broker.id", ""))
        node = broker_id(node_text, f"{source}: {name}") if node_text.isdigit() else unnamed
        unnamed += not node_text.isdigit()
        voters |= set(map(int, _VOTER.findall(options.get("controller.quorum.voters", ""))))
        roles = options.get("process.roles", "")
        if roles or "zookeeper.connect" in options:
            mode = "kraft" if roles else "zookeeper"
        if "controller" in roles and "controller.quorum.voters" not in options:
            voters.add(node)
        versions.add(version_of_image(image))
        if "broker" not in roles and roles:
            continue
        if node in brokers:
            raise InputError(f"{source}: {name} has the id {node}, which another broker has")
        rack = options.get("broker.rack", "")
        brokers[node] = rack if is_rack(rack) else None
        settings.append(options)
    if not brokers:
        raise InputError(f"{source}: it starts no broker of Kafka; {_NOT_ALL}")
    if unnamed:
        notes.append(f"Ids of {unnamed} of {len(nodes)} nodes are assumed: numbered from 0.")
    return Cluster(
        brokers=dict(sorted(brokers.items())),
        kafka_version=next(iter(versions)) if len(versions) == 1 else None,
        source=source,
        notes=tuple(notes),
        controllers={voter: brokers.get(voter) for voter in sorted(voters)} or None,
        mode=mode,
        broker_settings=_common(settings),
    )


def _common(settings: list[Mapping[str, str]]) -> dict[str, str]:
    """The settings of replication that all brokers have alike."""
    return {
        key: value
        for key, value in settings[0].items()
        if right_name(key) and all(other.get(key) == value for other in settings)
    }


def _environment(value: object) -> dict[str, str]:
    """Return variables, from a table or a list of `NAME=value`; defaults of variables are taken."""
    if isinstance(value, list):
        value = dict(str(row).partition("=")[::2] for row in value)
    pairs = value if isinstance(value, Mapping) else {}
    filled = ((str(key), _VARIABLE.sub(lambda m: m[1] or "", str(v))) for key, v in pairs.items())
    return {key: text for key, text in filled if text}


def _options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return broker options by Kafka's names."""
    return {
        _PREFIX.sub("", key).lower().replace("_", "."): value.strip()
        for key, value in environment.items()
        if _PREFIX.match(key) and value.isprintable()
    }


def parse_helm(text: str, source: str, racks: Mapping[int, str | None]) -> Cluster:
    """Return the brokers and topics that values of a Helm chart ask for."""
    values = _document(text, source)
    chart = _chart(values)
    ids, voters, notes = _nodes(chart, source)
    settings = _settings(chart)
    brokers, controllers = moved(dict.fromkeys(ids), dict.fromkeys(voters) or None, racks)
    inherited = {key: settings[key] for key in _FOLLOWED if key in settings}
    described = topics_in(_provisioned(chart, settings), source)
    with_inherited = (replace(t, configs={**inherited, **t.configs}) for t in described)
    topics, placed = place_all(with_inherited, brokers)
    image = chart.get("image")
    tag = (
        str(image.get("tag", "")) if isinstance(image, Mapping) else str(chart.get("imageTag", ""))
    )
    return Cluster(
        brokers=brokers,
        topics=topics,
        kafka_version=version_of_image(f"/{'cp-' if 'brokers' in chart else ''}kafka:{tag}"),
        source=source,
        notes=(*notes, *placed, *cut_note(text)),
        controllers=controllers,
        mode="kraft" if voters else None,
        broker_settings={key: v for key, v in settings.items() if right_name(key)},
    )


def _chart(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the values of Kafka's chart, which may be one among others."""
    for table in (values.get("kafka"), values.get("cp-kafka"), values.get("cp-helm-charts")):
        if isinstance(table, Mapping):
            return _chart(table) if "cp-kafka" in table else table
    return values


def _nodes(chart: Mapping[str, Any], source: str) -> tuple[list[int], list[int], list[str]]:
    """Return brokers, voters and notes: counts stand at controllers and brokers, or at the top."""
    notes = ["Ids of the brokers are assumed: numbered as the chart does."]
    if "brokers" in chart and not isinstance(chart["brokers"], Mapping):
        return list(range(node_count(chart["brokers"], f"{source}: brokers"))), [], notes
    pools = {name: chart.get(name) for name in ("controller", "broker")}
    counts = {
        name: node_count(pool["replicaCount"], f"{source}: {name}")
        for name, pool in pools.items()
        if isinstance(pool, Mapping) and "replicaCount" in pool
    }
    if not counts and "replicaCount" in chart:
        return list(range(node_count(chart["replicaCount"], source))), [], notes
    if not counts:
        raise InputError(
            f"{source}: these values of a Helm chart do not say how many brokers there are "
            f"(replicaCount); {_NOT_ALL}"
        )
    voters = list(range(counts.get("controller", 0)))
    pool = pools["controller"]
    no_broker = isinstance(pool, Mapping) and str(pool.get("controllerOnly", "")).lower() == "true"
    brokers = [] if no_broker else voters
    brokers = [*brokers, *range(_FIRST_BROKER, _FIRST_BROKER + counts.get("broker", 0))]
    if not brokers:
        raise InputError(f"{source}: these values of a Helm chart start no broker; {_NOT_ALL}")
    return brokers, voters, notes


def _settings(chart: Mapping[str, Any]) -> dict[str, str]:
    """Return options of brokers: parameters of the chart, then what overrides them."""
    settings = {
        option: str(chart[name])
        for name, option in _PARAMETERS.items()
        if isinstance(chart.get(name), str)
    }
    for key in ("configurationOverrides", "overrideConfiguration", "extraConfig", "config"):
        settings |= dict(_pairs(chart.get(key)))
    return {key: value for key, value in settings.items() if value.isprintable()}


def _pairs(value: object) -> Iterator[tuple[str, str]]:
    """Yield options that stand as a table, or as the lines of a properties file."""
    if isinstance(value, Mapping):
        yield from settings_of(value).items()
    elif isinstance(value, str):
        for line in value.splitlines():
            key, equals, setting = line.partition("=")
            if equals and not key.lstrip().startswith("#"):
                yield key.strip(), setting.strip()


def _provisioned(chart: Mapping[str, Any], settings: Mapping[str, str]) -> list[Any]:
    """Return the topics that the chart makes, with the counts that hold for all of them."""
    provisioning = chart.get("provisioning")
    if not isinstance(provisioning, Mapping) or not isinstance(provisioning.get("topics"), list):
        return []
    counts = {
        "partitions": provisioning.get("numPartitions", settings.get("num.partitions", "1")),
        "replicationFactor": provisioning.get(
            "replicationFactor", settings.get("default.replication.factor", "1")
        ),
    }
    rows = provisioning["topics"]
    return [{**counts, **row} if isinstance(row, Mapping) else row for row in rows]


def _document(text: str, source: str) -> Mapping[str, Any]:
    documents = [table for table in yaml_in(text, source) if isinstance(table, Mapping)]
    if not documents:
        raise InputError(f"{source}: there is no table in it; {_NOT_ALL}")
    return documents[0]
