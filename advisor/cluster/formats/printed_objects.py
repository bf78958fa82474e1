"""Parse topics as programs print them: JSON of any client, objects of Python, Java, JavaScript.

Wherever in a value a table has partitions with replicas and ISR, it is a topic. One table has the
names that clients give to these: `kcat -L -J`, Kafka's REST APIs, kafka-python's
`describe_topics()` and its metadata responses, kafkajs' and node-rdkafka's metadata, topics of
Kafka UI, AKHQ and Kafdrop, Ansible's `kafka_info`, and Java's `PartitionInfo`. Confluent's REST API
(v3) lists a row for each replica, which are put together. Java's `TopicDescription` writes its
nodes in a way of its own (`clients/.../common/Node.java`): they become ids first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from advisor.cluster.formats.literals import LiteralError, read_literal
from advisor.cluster.formats.rows import Row, Rows, ids_of, number_of, partition_of
from advisor.cluster.model import Cluster
from advisor.errors import InputError, shown
from advisor.parsing import read_json

# Names of fields, in lower case and without signs between their words.
_TOPIC = ("topic", "topicname", "name")
_INDEX = ("partition", "partitionindex", "partitionid", "partitionnumber", "index", "id", "number")
_LEADER = ("leader", "leaderid", "leaderbrokerid")
_REPLICAS = ("replicas", "replicanodes", "assignedreplicas", "nodes")
_ISR = ("isr", "isrs", "isrnodes", "insyncreplicas", "insyncreplicanodes", "insync")
_IN_SYNC = ("insync", "isinsync", "isinisr", "insyncs", "inservice")
_IS_LEADER = ("leader", "isleader")
_BROKER = ("id", "broker", "nodeid", "brokerid")
_ELR = ("elr", "eligibleleaderreplicas")
_LAST_ELR = ("lastknownelr",)
_OFFLINE = ("offlinereplicas", "offline")

_OF_ONE_BROKER = re.compile(r"/brokers/\d+/partition-replicas")

# host:9092 (id: 1 rack: a isFenced: false)
_NODE = re.compile(
    r"(?<![^\s,=(\[])[^\s,=(\[]*:-?\d+ \(id: (-?\d+) rack: ([^()]*?)(?: isFenced: (\w+))?\)"
)
_JAVA_TOPIC = re.compile(r"\(name=[^,()]+, (?:topicId=[\w-]+, )?internal=(?:true|false), partition")
_JAVA_PARTITION = re.compile(
    r"\(partition=(\d+), leader=([^(),]*), replicas=([-\d, ]*), isr=([-\d, ]*)"
    r"(?:, elr=([-\d, ]*|N/A), lastKnownElr=([-\d, ]*|N/A))?\)"
)
_JAVA_PARTITIONS = re.compile(r"partitions=(\(partition=[^()]*\)(?:,\s*\(partition=[^()]*\))*)")
# A list of brokers begins with a bracket: `replicas: 1,2` is another tool's line.
_KEY = re.compile(
    r"(?<![\w.])['\"]?([A-Za-z_-]{2,30})['\"]?\s*[:=]\s*(\[(?!\[)|\(|[A-Z]\w*\(|true\b|True\b|false\b|False\b)"
)
_OBJECT = re.compile(r"[\[{(]|\b[A-Z]\w*\(")
_QUOTE = re.compile(r"^(\s*>)+ ?")
_ABBREVIATED = re.compile(r"\[(Array|Object)\]|\.\.\. \d+ more items?|<\S+ object at 0x")


def looks_like_objects(beginning: str) -> bool:
    """Whether a text names partitions with replicas and ISR as values of a program."""
    if _JAVA_TOPIC.search(beginning):
        return True
    keys = {_plain(match[1]) for match in _KEY.finditer(beginning)}
    return all(keys & {*names} for names in (_REPLICAS, (*_ISR, *_IN_SYNC)))


@lru_cache(maxsize=4096)  # the same names occur again and again
def _plain(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


def parse_kcat_json(text: str, source: str) -> Cluster:
    """Return the cluster of `kcat -L -J`, as `parse_objects` does."""
    return parse_objects(text, source, "kcat -L -J")


def parse_replica_list(text: str, source: str) -> Cluster:
    """Return the cluster of Confluent's REST API: answers that list the replicas of partitions."""
    if _OF_ONE_BROKER.search(text):
        raise InputError(
            f"{source}: this lists the replicas on one broker; ask for those of partitions, "
            "/v3/clusters/ID/topics/TOPIC/partitions/PARTITION/replicas"
        )
    return parse_objects(text, source, "Confluent's REST API")


def parse_objects(text: str, source: str, tool: str = "the client") -> Cluster:
    """Return the cluster of a value that a program has printed."""
    try:
        return _parsed(text, source, tool)
    except InputError:
        # A terminal may have cut a long line, also in the middle of a number.
        joined = "".join(_QUOTE.sub("", line) for line in text.splitlines())
        try:
            return _parsed(joined, source, tool)
        except InputError:
            pass
        raise


def _parsed(text: str, source: str, tool: str) -> Cluster:
    rows = Rows(tool)
    if _ABBREVIATED.search(text):
        raise InputError(
            f"{source}: the program has printed this in short ([Array], [Object], ...); print it "
            "as JSON, with every partition"
        )
    if " rack: " in text or _JAVA_TOPIC.search(text):
        text = _java_nodes_as_ids(text, rows, source)
    for value, where in _values(text, source):
        _collect(value, rows, where)
    return rows.cluster(source)


def _java_nodes_as_ids(text: str, rows: Rows, source: str) -> str:
    """Rewrite Java's partitions and nodes with plain ids, and note the racks of the nodes."""

    def node(match: re.Match[str]) -> str:
        number, rack, _ = match.groups()
        if not number.startswith("-") and rack != "null":
            rows.racks[number_of(number, "broker")] = rack
        return number

    def partition(match: re.Match[str]) -> str:
        index, leader, replicas, isr, elr, last = match.groups()
        fields = [f"partition={index}", f"leader={leader}", f"replicas=[{replicas}]"]
        fields.append(f"isr=[{isr}]")
        for name, nodes in (("elr", elr), ("lastKnownElr", last)):
            if nodes not in (None, "N/A"):
                fields.append(f"{name}=[{nodes}]")
        return f"({', '.join(fields)})"

    text = _NODE.sub(node, text)
    begun = text.count("(partition=")
    text, read = _JAVA_PARTITION.subn(partition, text)
    if read != begun:
        raise InputError(
            f"{source}: {begun} partitions begin in it but {read} can be read; print it again"
        )
    # Its partitions stand side by side, without a bracket around them.
    return _JAVA_PARTITIONS.sub(r"partitions=[\1]", text)


def _values(text: str, source: str) -> Iterator[tuple[Any, str]]:
    """Yield the values in a text that name replicas, each with its place."""
    if text.lstrip().startswith(("{", "[")):
        try:
            yield read_json(text), source
            return
        except ValueError:
            pass
    position, line = 0, 1
    while match := _OBJECT.search(text, position):
        line += text.count("\n", position, match.start())
        start = match.start()
        try:
            value, position = read_literal(text, start)
        except LiteralError as error:
            if looks_like_objects(text[start : error.position]):
                raise InputError(
                    f"{source}:{line}: the value that begins here cannot be read to its end "
                    f"({error}, in line {line + text.count(chr(10), start, error.position)}); "
                    "print it again, whole"
                ) from None
            position = match.end()
        else:
            yield value, f"{source}:{line}"
        line += text.count("\n", start, position)


def _collect(value: object, rows: Rows, where: str, topic_above: str | None = None) -> None:
    """Add the topics and brokers that are anywhere in a value."""
    if isinstance(value, list):
        for item in _with_replicas_together(value):
            _collect(item, rows, where, topic_above)
    if not isinstance(value, Mapping):
        return
    partitions = _partitions(value)
    name = _first(value, _TOPIC)
    if partitions is not None:
        topic = name if name is not None else topic_above
        if not isinstance(topic, str):
            raise InputError(f"{where}: partitions stand there without the name of their topic")
        _add_topic(topic, value, partitions, rows, where)
    elif _is_partition(value) and isinstance(name, str):
        rows.rows.append(_row(name, value, where))
    else:
        _add_brokers(value, rows, where)
        for key, inner in value.items():
            _collect(inner, rows, where, key)


def _with_replicas_together(values: list[Any]) -> list[Any]:
    """Return the values, with rows that are a replica each put together to partitions."""
    partitions: dict[tuple[Any, Any], dict[str, Any]] = {}
    others = []
    for value in values:
        key = _first(value, ("topicname",)), _first(value, ("partitionid",))
        broker, flag = _first(value, ("brokerid",)), _first(value, _IN_SYNC)
        if None in (*key, broker) or not isinstance(flag, bool):
            others.append(value)
            continue
        partition = partitions.setdefault(
            key, {"topic": key[0], "partition": key[1], "replicas": [], "asynchronous": []}
        )
        row = {"id": broker, "in_sync": flag, "leader": _first(value, _IS_LEADER)}
        is_observer = _first(value, ("isobserver",)) is True and not flag
        partition["asynchronous" if is_observer else "replicas"].append(row)
    return [*others, *partitions.values()]


def _partitions(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the partitions of a table that is a topic; None if it is none."""
    inner = _first(value, ("partitions", "partitionmetadata"))
    if inner is None and value and all(str(key).isdigit() for key in value):
        inner = value  # by number, as in a client's dict of dicts
    if isinstance(inner, Mapping):
        inner = [
            {"partition": key, **row} if _first(row, _INDEX) is None else row
            for key, row in inner.items()
            if isinstance(row, Mapping)
        ]
    if not isinstance(inner, list) or not any(map(_is_partition, inner)):
        return None
    topics = [_first(row, _TOPIC) for row in inner if isinstance(row, Mapping)]
    topic = _first(value, _TOPIC)
    return inner if all(name in (None, topic) for name in topics) else None


def _is_partition(value: object) -> bool:
    return (
        isinstance(value, Mapping)
        and _first(value, _REPLICAS) is not None
        and (_first(value, _ISR) is not None or _isr_of_replicas(value) is not None)
    )


def _add_topic(
    topic: str, value: Mapping[str, Any], partitions: list[Any], rows: Rows, where: str
) -> None:
    for row in partitions:
        if not _is_partition(row):
            raise InputError(f"{where}: a partition of topic {shown(topic)} has no replicas or ISR")
        rows.rows.append(_row(topic, row, where))
    partition_count = _first(value, ("partitioncount", "partitionscount"))
    if isinstance(partition_count, int):
        rows.stated[topic] = partition_count
    configs = _first(value, ("configs", "config"))
    if isinstance(configs, Mapping) and all(isinstance(text, str) for text in configs.values()):
        rows.configs[topic] = {key: text for key, text in configs.items() if key}


def _row(topic: str, value: Mapping[str, Any], where: str) -> Row:
    place = f"{where}: topic {topic}" if topic.isprintable() else where
    names = {_plain(str(key)) for key in value}
    flagged = _isr_of_replicas(value)
    for keys in (_INDEX, _LEADER) if flagged is None else (_INDEX,):
        if not names & {*keys}:
            raise InputError(f"{place}: a partition has no {keys[0]}; print it again, whole")
    partition = partition_of(
        place,
        _first(value, _INDEX),
        _broker(_first(value, _LEADER, _leader_of_replicas(value))),
        _ids(_first(value, _REPLICAS)),
        _ids(_first(value, _ISR, flagged)),
        _optional_ids(value, _ELR),
        _optional_ids(value, _LAST_ELR),
        observers=_optional_ids(value, ("asynchronous",)) or (),
        offline=_optional_ids(value, _OFFLINE) or (),
    )
    return Row(topic, partition, where)


def _optional_ids(value: Mapping[str, Any], names: tuple[str, ...]) -> tuple[int, ...] | None:
    ids = _first(value, names)
    return None if ids is None else ids_of(_ids(ids), names[0])


def _isr_of_replicas(value: Mapping[str, Any]) -> list[Any] | None:
    """Return the replicas that say of themselves that they are in sync, as in REST APIs."""
    replicas = _first(value, _REPLICAS)
    if not isinstance(replicas, list) or not replicas:
        return None
    flags = [_first(row, _IN_SYNC) for row in replicas]
    if not all(isinstance(flag, bool) for flag in flags):
        return None
    return [row for row, flag in zip(replicas, flags, strict=True) if flag]


def _leader_of_replicas(value: Mapping[str, Any]) -> Any:
    replicas = _first(value, _REPLICAS)
    leaders = [
        row
        for row in (replicas if isinstance(replicas, list) else ())
        if _first(row, _IS_LEADER) is True
    ]
    return leaders[0] if len(leaders) == 1 else None


def _add_brokers(value: Mapping[str, Any], rows: Rows, where: str) -> None:
    brokers = _first(value, ("brokers", "nodes"))
    if not isinstance(brokers, list) or not brokers:
        return
    for row in brokers:
        number = _broker(row)
        if not isinstance(number, int) or isinstance(number, bool):
            return
        rack = _first(row, ("rack",))
        rows.brokers = rows.brokers or {}
        rows.brokers[number_of(number, f"{where}: broker")] = (
            rack if isinstance(rack, str) and rack else None
        )


def _broker(value: Any) -> Any:
    """Return the id in a broker's table, or the value itself."""
    return _first(value, _BROKER) if isinstance(value, Mapping) else value


def _ids(value: Any) -> Any:
    """Return a list of ids from a list of brokers."""
    if isinstance(value, Mapping) and "items" in value:
        value = value["items"]  # Scala's List(1, 2)
    return [_broker(item) for item in value] if isinstance(value, list) else value


def _first(value: Any, names: tuple[str, ...], otherwise: Any = None) -> Any:
    """Return the value under the first of some names that is there."""
    if isinstance(value, Mapping):
        plain = {_plain(str(key)): inner for key, inner in value.items()}
        for name in names:
            if name in plain:
                return plain[name]
    return otherwise
