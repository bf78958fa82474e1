"""Parse this project's TOML description of a cluster.

Only brokers are required. Keys are Kafka's names with underscores::

    kafka_version = "4.1"
    mode = "kraft"                        # or "zookeeper"; default: that of the version
    eligible_leader_replicas = false      # default: as in a new cluster of the version

    [brokers]                 # id = rack, "" if unknown
    1 = "a"
    2 = "b"
    3 = ""
                              # or, before any table:  brokers = 6  and  racks = 3  (round robin)
                              # or  racks = ["a", "b", "c"]
    [[broker]]                # or individually
    id = 4
    rack = "c"

    [racks]                   # rack = ids
    c = [3, 4]

    [controllers]             # voters of the controller quorum: id = rack, "" if unknown
    1 = "a"                   # (KRaft node ids, or ZooKeeper servers with ids of their own)
    2 = "b"
    9 = "c"                   # or rack = ids, as in [racks]

    [defaults]                # for all topics
    partitions = 12
    replication_factor = 3
    min_insync_replicas = 2

    [[topic]]
    name = "orders"           # the rest from [defaults]; replicas placed as Kafka would
    configs = { "retention.ms" = 604800000 }

    [[topic]]
    name = "audit"
    replicas = [[1, 2, 3], [2, 3, 1]]     # or an explicit assignment
    leaders = [1, 2]                      # optional, -1 for none; default: first replica
    isr = [[1, 2], [2, 3, 1]]             # optional; default: all replicas
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from advisor.cluster.formats.describe_format import version_numbers
from advisor.cluster.model import Cluster
from advisor.cluster.placing import PLACEMENT_NOTE, CountedTopic, healthy_partition, place
from advisor.cluster.racks import broker_id, moved, rack_mapping
from advisor.cluster.topic import Partition, Topic, check_partitions
from advisor.errors import InputError, shown
from advisor.parsing import read_toml

MAX_BROKERS = 10_000
_TOP = frozenset(
    {"kafka_version", "brokers", "broker", "racks", "controllers", "defaults", "topic"}
    | {"mode", "eligible_leader_replicas"}
)
_DEFAULTS = frozenset({"partitions", "replication_factor", "min_insync_replicas"})
_TOPIC = _DEFAULTS | {"name", "replicas", "leaders", "isr", "configs"}


def parse_toml(text: str, source: str, racks: Mapping[int, str | None] | None = None) -> Cluster:
    """Parse a cluster from TOML in the format of this module."""
    try:
        document = read_toml(text)
    except ValueError as error:
        raise InputError(f"{source}: this is not TOML: {error}") from None
    _check_keys(document, _TOP, source, "the file")
    brokers, controllers = moved(
        _brokers(document, source), _controllers(document, source), racks or {}
    )
    version = document.get("kafka_version")
    if version is not None:
        try:
            version_numbers(version)
        except InputError as error:
            raise InputError(f"{_line_of(text, 'kafka_version', source)}: {error}") from None
    defaults = _table(document.get("defaults", {}), f"{source}: [defaults]")
    _check_keys(defaults, _DEFAULTS, source, "[defaults]")
    topics: list[Topic] = []
    placed: list[str] = []
    partitions = 0
    for order, (where, table) in enumerate(_tables(text, document, "topic", source)):
        _check_keys(table, _TOPIC, where, "[[topic]]")
        name = table.get("name")
        if not isinstance(name, str) or not name:
            raise InputError(f'{where}: a [[topic]] needs a name = "..."')
        try:
            topics.append(_topic(table, {**defaults, **table}, brokers, order))
            partitions += len(topics[-1].partitions)
            check_partitions(partitions)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if "replicas" not in table:
            placed.append(name)
    try:
        return Cluster(
            brokers=brokers,
            topics=tuple(topics),
            kafka_version=version,
            source=source,
            notes=(PLACEMENT_NOTE.format(", ".join(placed)),) if placed else (),
            controllers=controllers,
            mode=document.get("mode"),
            eligible_leader_replicas=document.get("eligible_leader_replicas"),
        )
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _brokers(document: Mapping[str, Any], source: str) -> dict[int, str | None]:
    brokers_given, racks = document.get("brokers", {}), document.get("racks")
    if isinstance(brokers_given, int) and not isinstance(brokers_given, bool):
        return _counted_brokers(brokers_given, racks, source)
    brokers = rack_mapping(_table(brokers_given, f"{source}: [brokers]"), f"{source}: [brokers]")
    rows = document.get("broker", [])
    if not isinstance(rows, list):
        raise InputError(f"{source}: write a broker as [[broker]] with id and rack")
    for row in rows:
        row = _table(row, f"{source}: [[broker]]")
        _check_keys(row, frozenset({"id", "rack"}), source, "[[broker]]")
        broker = broker_id(row.get("id"), f"{source}: [[broker]] id")
        if broker in brokers:
            raise InputError(f"{source}: broker {broker} is there twice; keep one")
        brokers.update(rack_mapping({broker: row.get("rack")}, f"{source}: [[broker]]"))
    if racks is not None:
        where = f"{source}: [racks]"
        for broker, rack in rack_mapping(_table(racks, where), where).items():
            if brokers.get(broker) not in (None, rack):
                raise InputError(
                    f"{where}: broker {broker} is put into the racks {brokers[broker]} and {rack}; "
                    "name one"
                )
            brokers[broker] = rack
    if not brokers:
        raise InputError(f'{source}: there are no brokers; write [brokers] with lines like 1 = "a"')
    return brokers


def _controllers(document: Mapping[str, Any], source: str) -> dict[int, str | None] | None:
    if "controllers" not in document:
        return None
    where = f"{source}: [controllers]"
    controllers = rack_mapping(_table(document["controllers"], where), where, "controller")
    if not controllers:
        raise InputError(f'{where} is empty; write a line like 1 = "a" for each voter')
    return controllers


def _counted_brokers(count: int, racks: object, source: str) -> dict[int, str | None]:
    if not 1 <= count <= MAX_BROKERS:
        raise InputError(f"{source}: brokers = {shown(count)}; give 1 to {MAX_BROKERS}")
    if isinstance(racks, list):
        if not racks or not all(isinstance(rack, str) and rack.strip() for rack in racks):
            raise InputError(f'{source}: racks = {shown(racks)}; write names, like ["a", "b", "c"]')
        return {i + 1: racks[i % len(racks)] for i in range(count)}
    if racks is not None and (not isinstance(racks, int) or isinstance(racks, bool)):
        raise InputError(
            f"{source}: beside brokers = {shown(count)}, racks is a number or a list of names"
        )
    try:
        return dict(Cluster.uniform(count, racks).brokers)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _topic(
    table: Mapping[str, Any],
    settings: Mapping[str, Any],
    brokers: Mapping[int, str | None],
    order: int,
) -> Topic:
    name = table["name"]
    configs = dict(_flatten(_table(table.get("configs", {}), f"topic {name}: configs")))
    if "min_insync_replicas" in settings:
        min_isr = str(_integer(settings, "min_insync_replicas", name))
        configs.setdefault("min.insync.replicas", min_isr)
        if "min_insync_replicas" in table and configs["min.insync.replicas"] != min_isr:
            raise InputError(f"topic {name} states min_insync_replicas twice, and differently")
    if "replicas" not in table:
        for key in ("leaders", "isr"):
            if key in table:
                raise InputError(f"topic {name} has {key} but no replicas; give both")
        counted = CountedTopic(
            name=name,
            partitions=_integer(settings, "partitions", name),
            replication_factor=_integer(settings, "replication_factor", name),
            configs=configs,
        )
        return place(counted, brokers, order)
    topic = Topic(name=name, partitions=tuple(_partitions(table, name)), configs=configs)
    for key, actual in (
        ("partitions", len(topic.partitions)),
        ("replication_factor", topic.replication_factor),
    ):
        if key in table and _integer(table, key, name) != actual:
            raise InputError(f"topic {name} has {key} {table[key]} but its replicas say {actual}")
    for broker in sorted(topic.brokers()):
        if broker not in brokers:
            raise InputError(f"topic {name} has replicas on broker {broker}, which is not listed")
    return topic


def _partitions(table: Mapping[str, Any], name: str) -> Iterator[Partition]:
    replicas = _id_lists(table["replicas"], f"topic {name}: replicas")
    isr = _id_lists(table.get("isr", table["replicas"]), f"topic {name}: isr")
    leaders = table.get("leaders", [ids[0] if ids else -1 for ids in replicas])
    if not isinstance(leaders, list) or not len(leaders) == len(isr) == len(replicas):
        raise InputError(f"topic {name} needs as many leaders and isr lists as replicas lists")
    for index, (leader, ids, synced) in enumerate(zip(leaders, replicas, isr, strict=True)):
        healthy = healthy_partition(index, ids)
        yield Partition(
            index=index,
            leader=None if leader == -1 else broker_id(leader, f"topic {name}: leaders"),
            replicas=healthy.replicas,
            isr=synced,
        )


def _id_lists(value: object, where: str) -> list[tuple[int, ...]]:
    if not isinstance(value, list) or not all(isinstance(ids, list) for ids in value):
        raise InputError(f"{where} is a list with one list of broker ids for each partition")
    return [tuple(broker_id(broker, where) for broker in ids) for ids in value]


def _integer(settings: Mapping[str, Any], key: str, name: str) -> int:
    value = settings.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        given = "no " + key if value is None else f"{key} = {shown(value)}"
        raise InputError(f"topic {name} has {given}; give a whole number or replicas = [[1, 2]]")
    return value


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield config names and values; an unquoted `a.b = 1` is a nested table in TOML."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        elif isinstance(value, bool):
            yield f"{prefix}{key}", str(value).lower()
        elif isinstance(value, list):
            yield f"{prefix}{key}", ",".join(map(str, value))
        else:
            yield f"{prefix}{key}", str(value)


def _table(value: object, where: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where} is not a table")
    return value


def _tables(
    text: str, document: Mapping[str, Any], key: str, source: str
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each table of an array with its position (`file:line`)."""
    rows = document.get(key, [])
    if not isinstance(rows, list):
        raise InputError(f"{source}: write a {key} as [[{key}]], with two brackets")
    pattern = re.compile(rf"\s*\[\[\s*{key}\s*\]\]")
    starts = [n for n, line in enumerate(text.split("\n"), start=1) if pattern.match(line)]
    for position, row in enumerate(rows):
        where = f"{source}:{starts[position]}" if len(starts) == len(rows) else source
        yield where, _table(row, f"{where}: [[{key}]]")


def _line_of(text: str, key: str, source: str) -> str:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.lstrip().startswith(key):
            return f"{source}:{number}"
    return source


def _check_keys(
    table: Mapping[str, Any], allowed: frozenset[str], where: str, place_name: str
) -> None:
    for key in table:
        if key not in allowed:
            raise InputError(
                f"{where}: {shown(key)} is not known in {place_name}; "
                f"what is known is {', '.join(sorted(allowed))}"
            )
