"""Parse topics kept as code: Terraform (Mongey's and Aiven's), JulieOps' topologies, YAML.

Of Aiven also what its command line prints as JSON, and the `kafka_user_config` of a service.

YAML is a list of topics or a table of them under `topics` (kafka-gitops and many others), or one
topic in each document (topicctl). They have counts of partitions and replicas, and settings, and
nothing of brokers: these come from the racks that the user gives, and replicas are placed as Kafka
would. What is computed (`var.x`, `for_each`, plans of JulieOps) is refused, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from advisor.cluster.formats.additions import Addition
from advisor.cluster.formats.kubernetes import cut_note, integer, nested, yaml_in
from advisor.cluster.managed_services import AIVEN
from advisor.cluster.model import Cluster
from advisor.cluster.observed import right_name
from advisor.cluster.placing import CountedTopic, place_all
from advisor.errors import InputError, shown
from advisor.parsing import read_json

_RESOURCE = re.compile(r'resource\s+"(kafka_topic|aiven_kafka_topic)"\s+"([^"]*)"\s*\{')
_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|(?:#|//)[^\n]*|/\*.*?\*/', re.DOTALL)
_ATTRIBUTE = re.compile(
    r'^\s*"?([\w.-]+)"?\s*[=:]\s*("(?:[^"\\\n]|\\.)*"|[^\n,{}]+?)\s*,?\s*$', re.M
)
_CONFIG = re.compile(r"^\s*config(?:uration)?\s*=?\s*\{([^{}]*)\}", re.MULTILINE)
_COMPUTED = re.compile(r"^\s*(for_each|count|dynamic)\b", re.MULTILINE)
_USER_CONFIG = re.compile(r"\bkafka_user_config\s*\{")
_OPTIONS = re.compile(r"^[ \t]*kafka\s*\{", re.MULTILINE)
_FOLLOWED = ("min.insync.replicas", "unclean.leader.election.enable")
_LONGEST_BLOCK = 20_000


def parse_terraform(text: str, source: str, racks: Mapping[int, str | None]) -> Cluster:
    """Return the topics of Terraform's resources, placed on the brokers of the racks."""
    plain = _COMMENT.sub(lambda match: match[1] or "", text)
    cluster = _placed(_terraform_topics(plain, source), source, racks)
    if '"aiven_kafka_topic"' not in plain:
        return cluster
    return _on_aiven(cluster, *_service_in_terraform(plain, source))


def parse_aiven(text: str, source: str, racks: Mapping[int, str | None]) -> Cluster:
    """Return the topics that `avn service topic-list --json` or `service get --json` print."""
    value = _json(text, source)
    table = value if isinstance(value, Mapping) else {}
    rows = table.get("topics") or [table.get("topic")] if table else value
    topics = []
    for row in rows if isinstance(rows, list) else ():
        counted = {**row} if isinstance(row, Mapping) else {}
        partitions = counted.get("partitions")
        counted["partitions"] = len(partitions) if isinstance(partitions, list) else partitions
        configs = {key: v for key, v in counted.items() if right_name(key) and v is not None}
        texts = {key: str(v) for key, v in counted.items() if isinstance(v, str | int)}
        topics.append({**texts, "config": {right_name(key): v for key, v in configs.items()}})
    cluster = _placed(topics_in(topics, source), source, racks)
    return _on_aiven(cluster, *_service_in_json(value))


def read_aiven_service(text: str, source: str) -> Addition:
    """Return the brokers' settings and the version in `kafka_user_config`, HCL or JSON."""
    if text.lstrip().startswith(("{", "[")):
        settings, version = _service_in_json(_json(text, source))
    else:
        plain = _COMMENT.sub(lambda match: match[1] or "", text)
        settings, version = _service_in_terraform(plain, source)
    return Addition(source, defaults=settings, kafka_version=version)


def _on_aiven(cluster: Cluster, settings: Mapping[str, str], version: str | None) -> Cluster:
    """Return the cluster as that of a service: its topics follow what the service sets."""
    inherited = {key: settings[key] for key in _FOLLOWED if key in settings}
    topics = (replace(t, configs={**inherited, **t.configs}) for t in cluster.topics)
    return replace(
        cluster,
        topics=tuple(topics),
        broker_settings=settings,
        kafka_version=version,
        managed=AIVEN,
    )


def _service_in_terraform(text: str, source: str) -> tuple[dict[str, str], str | None]:
    """Return options of brokers and the version of `aiven_kafka`; what is computed is left out."""
    blocks = [
        _block(text, match.end(), f"{source}: kafka_user_config")
        for match in _USER_CONFIG.finditer(text)
    ]
    if len(blocks) > 1:
        raise InputError(f"{source}: it has {len(blocks)} services; keep one cluster in a file")
    body = blocks[0] if blocks else ""
    options = _OPTIONS.search(body)
    inside = _block(body, options.end(), f"{source}: kafka") if options else ""
    return _service(_plain_literals(inside), _plain_literals(body).get("kafka_version"))


def _service_in_json(value: Any) -> tuple[dict[str, str], str | None]:
    table = value if isinstance(value, Mapping) else {}
    config = table.get("kafka_user_config") or table.get("user_config") or {}
    config = config[0] if isinstance(config, list) and config else config
    options = config.get("kafka") if isinstance(config, Mapping) else None
    options = options[0] if isinstance(options, list) and options else options
    settings = options if isinstance(options, Mapping) else {}
    version = config.get("kafka_version") if isinstance(config, Mapping) else None
    return _service(settings, None if version is None else str(version))


def _service(options: Mapping[str, Any], version: str | None) -> tuple[dict[str, str], str | None]:
    named = {right_name(key): value for key, value in options.items() if value is not None}
    settings = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in named.items()
        if key
    }
    return settings, version


def _plain_literals(body: str) -> dict[str, str]:
    """Return the attributes of a block that are written out."""
    attributes = ((key, value.strip('"')) for key, value in _ATTRIBUTE.findall(body))
    return {key: value for key, value in attributes if re.fullmatch(r"[\w.-]+", value)}


def _json(text: str, source: str) -> Any:
    try:
        return read_json(text)
    except ValueError as error:
        raise InputError(f"{source}: this is not JSON: {error}; {_INSTEAD}") from None


def _terraform_topics(text: str, source: str) -> Iterator[CountedTopic]:
    for match in _RESOURCE.finditer(text):
        provider, label = match.groups()
        where = f"{source}: resource {provider}.{label}"
        body = _block(text, match.end(), where)
        if _COMPUTED.search(body):
            raise InputError(f"{where}: it is computed (for_each or count); {_INSTEAD}")
        config = _CONFIG.search(body)
        settings = {} if config is None else dict(_ATTRIBUTE.findall(config[1]))
        configs = {key: _literal(settings, (key,), where) for key in settings}
        if provider == "aiven_kafka_topic":
            configs = {key.replace("_", "."): value for key, value in configs.items()}
        outside = body if config is None else body[: config.start()] + body[config.end() :]
        attributes = dict(_ATTRIBUTE.findall(outside))
        name, partitions, factor = (
            _literal(attributes, names, where)
            for names in (
                ("name", "topic_name"),
                ("partitions", "num_partitions"),
                ("replication_factor", "replication"),
            )
        )
        yield CountedTopic(
            name,
            integer(partitions, f"{where}: partitions"),
            integer(factor, f"{where}: replication_factor"),
            configs,
        )


def _block(text: str, start: int, where: str) -> str:
    """Return what stands up to the bracket that closes a block."""
    depth = 1
    for match in re.compile(r'"(?:[^"\\\n]|\\.)*"|[{}]').finditer(
        text, start, start + _LONGEST_BLOCK
    ):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[start : match.start()]
    raise InputError(f"{where}: it is not closed; give the whole file")


def _literal(attributes: Mapping[str, str], names: tuple[str, ...], where: str) -> str:
    for name in names:
        value = attributes.get(name)
        if value is None:
            continue
        plain = value[1:-1] if value.startswith('"') else value
        if "${" in value or not (
            value.startswith('"') or re.fullmatch(r"-?[0-9.]+|true|false", value)
        ):
            raise InputError(f"{where}: {name} is {shown(plain)}, which is computed; {_INSTEAD}")
        return plain
    raise InputError(f"{where}: it has no {names[0]}; {_INSTEAD}")


def parse_julie(text: str, source: str, racks: Mapping[int, str | None]) -> Cluster:
    """Return the topics of a topology of JulieOps, placed on the brokers of the racks."""
    topologies = yaml_in(text, source, aliases=False)
    topics = [topic for topology in topologies for topic in _julie_topics(topology, source)]
    return _placed(iter(topics), source, racks)


def _julie_topics(topology: Any, source: str) -> Iterator[CountedTopic]:
    if not isinstance(topology, Mapping):
        return
    # The name begins with the context and with what stands between it and the projects.
    prefix = []
    for key, value in topology.items():
        if key == "projects":
            break
        if isinstance(value, str):
            prefix.append(value)
    for project in _tables(topology.get("projects")):
        for topic in _tables(project.get("topics")):
            names = [*prefix, project.get("name"), topic.get("name"), topic.get("dataType")]
            name = ".".join(str(part) for part in names if part)
            where = f"{source}: topic {shown(name)}"
            config = topic.get("config")
            configs = (
                {str(k): str(v) for k, v in config.items()} if isinstance(config, Mapping) else {}
            )
            counts = [configs.pop(key, None) for key in ("num.partitions", "replication.factor")]
            if topic.get("plan") or None in counts:
                raise InputError(f"{where}: its counts are in a plan or left out; {_INSTEAD}")
            yield CountedTopic(
                name,
                integer(counts[0], f"{where}: num.partitions"),
                integer(counts[1], f"{where}: replication.factor"),
                configs,
            )


def parse_topic_lists(text: str, source: str, racks: Mapping[int, str | None]) -> Cluster:
    """Return the topics of a list or table in YAML, placed on the brokers of the racks."""
    rows = [row for document in yaml_in(text, source) for row in _rows(document)]
    cluster = _placed(topics_in(rows, source), source, racks)
    return replace(cluster, notes=(*cluster.notes, *cut_note(text)))


def _rows(document: Any) -> list[Any]:
    """The topics of a document, each a table with its name and counts."""
    if not isinstance(document, Mapping):
        return []
    if isinstance(document.get("meta"), Mapping) and isinstance(document.get("spec"), Mapping):
        return [{**document["spec"], "name": document["meta"].get("name")}]
    topics = document.get("topics")
    if isinstance(topics, list):
        return topics
    if not isinstance(topics, Mapping):
        return []
    # What kafka-gitops takes where a topic does not say it.
    settings = document.get("settings")
    defaults = nested(settings, "topics", "defaults") if isinstance(settings, Mapping) else {}
    rows = ((name, row if isinstance(row, Mapping) else {}) for name, row in topics.items())
    return [{**defaults, **row, "name": name} for name, row in rows]


_NAMES = ("name", "topic", "topicName", "topic_name")
_PARTITIONS = (
    *("partitions", "partitionCount", "partition_count", "partitions_count", "numPartitions"),
    *("num_partitions", "num.partitions"),
)
_FACTORS = (
    *("replicationFactor", "replication_factor", "replication", "replicas", "replication-factor"),
    *("replication.factor", "replicationfactor"),
)
_CONFIGS = ("config", "configs", "configuration", "settings", "configEntries", "topicConfig")


def topics_in(rows: list[Any], source: str) -> Iterator[CountedTopic]:
    """Yield topics of tables that have a name, counts and settings under the usual names."""
    for place_in_list, row in enumerate(rows, start=1):
        table = row if isinstance(row, Mapping) else {}
        name = _first(table, _NAMES)
        where = f"{source}: topic {shown(name) if name else f'number {place_in_list}'}"
        counts = [_first(table, names) for names in (_PARTITIONS, _FACTORS)]
        if not isinstance(name, str) or None in counts:
            raise InputError(f"{where}: its name, partitions or replicas are left out; {_INSTEAD}")
        configs = _first(table, _CONFIGS)
        yield CountedTopic(
            name,
            integer(counts[0], f"{where}: {_PARTITIONS[0]}"),
            integer(counts[1], f"{where}: {_FACTORS[0]}"),
            {str(key): _plain(value) for key, value in configs.items()}
            if isinstance(configs, Mapping)
            else {},
        )


def _first(table: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((table[name] for name in names if name in table), None)


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [row for row in value if isinstance(row, Mapping)] if isinstance(value, list) else []


def _placed(
    topics: Iterator[CountedTopic], source: str, racks: Mapping[int, str | None]
) -> Cluster:
    placed, notes = place_all(topics, racks)
    if not placed:
        raise InputError(f"{source}: no topic can be read from it; {_INSTEAD}")
    return Cluster(brokers=racks, topics=placed, source=source, notes=notes)


_INSTEAD = "run kafka-topics.sh --describe on the cluster"
