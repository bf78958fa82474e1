"""Parse JSON: `Cluster.to_dict`, and plans of `kafka-reassign-partitions.sh`.

Of the two plans that its `--generate` prints, the current assignment is the cluster. `--execute`
prints the assignment before, `--verify` and `--list` none of all partitions: these are declined.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any

from advisor.cluster.formats.describe_format import version_numbers
from advisor.cluster.formats.literals import LiteralError, read_literal
from advisor.cluster.model import Cluster
from advisor.cluster.observed import Observed
from advisor.cluster.placing import healthy_partition
from advisor.cluster.racks import broker_id, rack_mapping
from advisor.cluster.topic import Partition, Topic
from advisor.errors import InputError, shown
from advisor.formatting import counted
from advisor.parsing import read_json

PLAN_NOTE = (
    "A reassignment plan tells neither leaders nor ISR: the first replica is taken as the leader, "
    "and every replica as in sync."
)

_CURRENT = re.compile(r"Current partition replica assignment\s*")
_PROPOSED = re.compile(r"Proposed partition reassignment configuration\s*")
_EXECUTED = re.compile(
    r"Save this to use as the --reassignment-json-file|Successfully started (partition )?reassign"
)


def parse_json(text: str, source: str) -> Cluster:
    """Parse a cluster from `Cluster.to_dict` data or a plan of `kafka-reassign-partitions.sh`."""
    try:
        document = read_json(text)
    except ValueError as error:
        raise InputError(f"{source}: this is not JSON: {error}") from None
    try:
        if isinstance(document, dict) and "brokers" in document:
            return cluster_from_dict(document, source)
        if isinstance(document, dict) and isinstance(document.get("partitions"), list):
            return _from_plan(document["partitions"], source)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    raise InputError(
        f"{source}: this JSON has neither brokers (as a saved cluster has) nor partitions (as the "
        "plan of kafka-reassign-partitions.sh has); give one of these"
    )


def cluster_from_dict(document: Mapping[str, Any], source: str = "") -> Cluster:
    """Build a cluster from `Cluster.to_dict` data."""
    version, voters = _text_or_none(document, "kafka_version"), document.get("controllers")
    if version is not None:
        version_numbers(version)
    return Cluster(
        brokers=rack_mapping(_mapping(document["brokers"], "brokers"), "brokers"),
        topics=tuple(_topic(_mapping(t, "a topic")) for t in _list(document, "topics")),
        kafka_version=version,
        source=source or str(document.get("source", "")),
        notes=tuple(str(note) for note in _list(document, "notes")),
        observed=_observed(document.get("observed")),
        controllers=None
        if voters is None
        else rack_mapping(_mapping(voters, "controllers"), "controllers", "controller"),
        mode=_text_or_none(document, "mode"),
        eligible_leader_replicas=document.get("eligible_leader_replicas"),
        layout=_text_or_none(document, "layout"),
        part=_text_or_none(document, "part") or "",
        managed=_text_or_none(document, "managed"),
        broker_settings=_mapping(document.get("broker_settings", {}), "broker_settings"),
        replica_bytes=_mapping(document.get("replica_bytes", {}), "replica_bytes"),
    )


def _observed(value: object) -> Observed | None:
    if value is None:
        return None
    try:
        return Observed.from_dict(_mapping(value, "observed"))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError("observed is not what a saved cluster has; leave it out") from None


def _topic(table: Mapping[str, Any]) -> Topic:
    name = table.get("name")
    if not isinstance(name, str):
        raise InputError(f"a topic has the name {shown(name)}; give text")
    configs = _mapping(table.get("configs", {}), f"configs of topic {name}")
    rows = [_mapping(row, f"a partition of topic {name}") for row in _list(table, "partitions")]
    return Topic(
        name=name,
        partitions=tuple(_partition(row, name) for row in rows),
        configs={str(key): str(value) for key, value in configs.items()},
        topic_id=_text_or_none(table, "topic_id"),
        marked_for_deletion=table.get("marked_for_deletion") is True,
        broken=_ids(table, "broken", f"topic {name}") or (),
        stated_partitions=table.get("stated_partitions"),
    )


def _partition(row: Mapping[str, Any], name: str) -> Partition:
    where = f"topic {name}"
    leader = row.get("leader")
    replicas = _ids(row, "replicas", where) or ()
    isr = _ids(row, "isr", where)
    return Partition(
        index=broker_id(row.get("index"), f"{where}: index"),
        leader=None if leader is None else broker_id(leader, f"{where}: leader"),
        replicas=replicas,
        isr=replicas if isr is None else isr,
        elr=_ids(row, "elr", where),
        last_known_elr=_ids(row, "last_known_elr", where),
        adding=_ids(row, "adding", where) or (),
        removing=_ids(row, "removing", where) or (),
        leader_epoch=_epoch(row.get("leader_epoch"), where),
        observers=_ids(row, "observers", where) or (),
        offline=_ids(row, "offline", where) or (),
    )


def _epoch(value: object, where: str) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise InputError(f"{where}: leader_epoch is {shown(value)}, which is not a whole number from 0")


def _from_plan(rows: list[Any], source: str) -> Cluster:
    partitions: dict[str, list[Partition]] = {}
    for row in rows:
        row = _mapping(row, "an entry of partitions")
        name = row.get("topic")
        if not isinstance(name, str) or "partition" not in row or "replicas" not in row:
            raise InputError(f"the entry {reprlib.repr(row)} needs topic, partition and replicas")
        index = broker_id(row["partition"], f"topic {name}: partition")
        replicas = _ids(row, "replicas", f"topic {name}") or ()
        partitions.setdefault(name, []).append(healthy_partition(index, replicas))
    if not partitions:
        raise InputError("the plan moves no partition; give one that does")
    topics = tuple(Topic(name=name, partitions=tuple(p)) for name, p in partitions.items())
    return Cluster(brokers=seen_brokers(topics), topics=topics, source=source, notes=(PLAN_NOTE,))


def seen_brokers(topics: tuple[Topic, ...]) -> dict[int, str | None]:
    """Return every broker in the topics, without racks."""
    return dict.fromkeys(sorted(set().union(*(topic.brokers() for topic in topics))), None)


def _ids(row: Mapping[str, Any], key: str, where: str) -> tuple[int, ...] | None:
    if row.get(key) is None:
        return None
    return tuple(broker_id(broker, f"{where}: {key}") for broker in _list(row, key))


def _list(table: Mapping[str, Any], key: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list):
        raise InputError(f"{key} is {reprlib.repr(value)}, which is not a list")
    return value


def _mapping(value: object, name: str) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"{name} is {reprlib.repr(value)}, which is not an object with names")
    return value


def _text_or_none(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"{key} is {reprlib.repr(value)}, which is not text")
    return value


def is_generated_plan(beginning: str) -> bool:
    """Whether a text is what `--generate` prints, and not what `--execute` prints."""
    return _CURRENT.search(beginning) is not None and not _EXECUTED.search(beginning)


def parse_generated_plan(text: str, source: str) -> Cluster:
    """Return the cluster as the current assignment of `--generate` has it."""
    current = _plan_after(_CURRENT, text, source)
    if current is None:
        raise InputError(f"{source}: the current assignment is not in it; run --generate again")
    note = "The proposed assignment is not in it."
    proposed = _plan_after(_PROPOSED, text, source)
    if proposed is not None:
        replicas = _replicas(proposed)
        moves = sum(
            replicas.get(key, current_replicas) != current_replicas
            for key, current_replicas in _replicas(current).items()
        )
        note = (
            f"The current assignment was read; the proposed one would change "
            f"{counted(moves, 'partition')} of {len(_replicas(current))} and was not taken into "
            "account."
        )
    brokers = {*current.brokers, *(proposed.brokers if proposed is not None else ())}
    return Cluster(
        brokers=dict.fromkeys(sorted(brokers)),
        topics=current.topics,
        source=source,
        notes=(*current.notes, note),
    )


def _plan_after(heading: re.Pattern[str], text: str, source: str) -> Cluster | None:
    """Return the assignment below a heading; None if the heading is not there."""
    begin = heading.search(text)
    if begin is None:
        return None
    line = text.count("\n", 0, begin.end()) + 1
    start = text.find("{", begin.end())
    try:
        if start < 0 or text[begin.end() : start].strip():
            raise LiteralError("it is not there", begin.end())
        _, end = read_literal(text, start)
    except LiteralError as error:
        raise InputError(
            f"{source}:{line}: the assignment that should follow here cannot be read ({error}); "
            "run --generate again and save all of it"
        ) from None
    return parse_json(text[start:end], f"{source}:{line}")


def _replicas(cluster: Cluster) -> dict[tuple[str, int], tuple[int, ...]]:
    return {
        (topic.name, partition.index): partition.replicas
        for topic in cluster.topics
        for partition in topic.partitions
    }
