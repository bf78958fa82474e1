"""Parse `kafka_cluster_state` of Cruise Control, as JSON and as text.

The fields are those of `servlet/response/ClusterPartitionState.java`, `PartitionState.java` and
`ClusterBrokerState.java`. Only with `verbose=true` all partitions are in it; without, it has those
that are in trouble, and nothing can be concluded from the others. A partition may stand in several
of its lists. `min-isr` is the value that holds, of the topic or of the brokers.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from advisor.cluster.formats.rows import Row, Rows, ids_of, number_of, partition_of
from advisor.cluster.model import Cluster
from advisor.errors import InputError
from advisor.parsing import read_json

VERBOSE = "GET /kafkacruisecontrol/kafka_cluster_state?verbose=true&json=true"
_LISTS = ("offline", "with-offline-replicas", "urp", "under-min-isr", "other")
_IDS = r"(\[[\d, ]*\])"
_PARTITION = re.compile(
    rf"^\s*([A-Za-z0-9._-]+)\s+(\d+)\s+(-?\d+)\s+{_IDS}\s+{_IDS}\s+{_IDS}(?:\s+{_IDS})?(?:\s+(\d+))?$"
)
_BROKER = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(true|false)\b")
_SECTION = re.compile(r"^\s*[A-Z][\w ]+ (Partitions|Replicas):\s*$")
_HEADER = re.compile(r"^\s*TOPIC\s+PARTITION\s+LEADER\s+REPLICAS\s+IN-SYNC")


def is_cluster_state(beginning: str) -> bool:
    """Whether a text is `kafka_cluster_state`, JSON or text."""
    lines = beginning.splitlines()
    return '"KafkaPartitionState"' in beginning or any(map(_HEADER.match, lines))


def parse_cluster_state(text: str, source: str) -> Cluster:
    """Return the cluster of a verbose `kafka_cluster_state`."""
    rows = Rows("Cruise Control")
    partitions, counts = (
        _from_json(text, source) if text.lstrip().startswith("{") else _from_text(text, source)
    )
    for topic, index, leader, replicas, isr, offline, min_isr, where in partitions:
        partition = partition_of(
            where, index, leader, replicas, isr, offline=ids_of(offline or (), "offline")
        )
        rows.rows.append(Row(topic, partition, where))
        if min_isr is not None:
            rows.configs.setdefault(topic, {"min.insync.replicas": str(min_isr)})
    # A partition may stand in several lists.
    rows.rows = list({(row.topic, row.partition): row for row in rows.rows}.values())
    _check_counts(rows, counts, source)
    # Its list also has brokers that are down, so it does not tell which run.
    cluster = rows.cluster(source)
    idle = dict.fromkeys(sorted(set(counts) - set(cluster.brokers)))
    return cluster.with_racks(idle) if idle else cluster


def _check_counts(rows: Rows, counts: Mapping[int, int], source: str) -> None:
    """Compare the replicas of each broker with those that are said, of partitions with a leader."""
    replicas_read = Counter(
        broker
        for row in rows.rows
        for broker in row.partition.replicas
        if row.partition.leader is not None
    )
    for broker in sorted({*counts, *replicas_read}) if counts else ():
        if counts.get(broker, 0) != replicas_read[broker]:
            raise InputError(
                f"{source}: broker {broker} is said to have {counts.get(broker, 0)} replicas but "
                f"{replicas_read[broker]} can be read; give all topics, as from {VERBOSE}"
            )


def _from_json(text: str, source: str) -> tuple[Iterator[tuple[Any, ...]], dict[int, int]]:
    try:
        document = read_json(text)
    except ValueError as error:
        raise InputError(f"{source}: this is not JSON: {error}; save it again, whole") from None
    state = document.get("KafkaPartitionState")
    brokers = document.get("KafkaBrokerState")
    counts = brokers.get("ReplicaCountByBrokerId") if isinstance(brokers, Mapping) else None
    if not isinstance(state, Mapping):
        raise InputError(f"{source}: KafkaPartitionState is not a table; save it again, whole")
    if "other" not in state:
        raise _not_verbose(source)
    said = {
        number_of(broker, "broker"): number_of(number, "the count of replicas")
        for broker, number in (counts.items() if isinstance(counts, Mapping) else ())
    }
    return _json_rows(state, source), said


def _json_rows(state: Mapping[str, Any], source: str) -> Iterator[tuple[Any, ...]]:
    for key in _LISTS:
        for row in state.get(key, ()):
            if not isinstance(row, Mapping) or not isinstance(row.get("topic"), str):
                raise InputError(f"{source}: {key} has an entry without a topic")
            where = f"{source}: {key}"
            fields = ("partition", "leader", "replicas", "in-sync", "offline", "min-isr")
            yield (row["topic"], *(row.get(field) for field in fields), where)


def _from_text(text: str, source: str) -> tuple[Iterator[tuple[Any, ...]], dict[int, int]]:
    counts: dict[int, int] = {}
    partitions: list[tuple[Any, ...]] = []
    verbose = in_table = False
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{source}:{number}"
        if _HEADER.match(line):
            in_table = True
        elif match := _PARTITION.match(line.rstrip()):
            topic, index, leader, replicas, isr, _, offline, min_isr = match.groups()
            ids = [(text or "").strip("[]") for text in (replicas, isr, offline)]
            partitions.append((topic, index, leader, *ids, min_isr, where))
        elif match := _BROKER.match(line):
            broker, replicas = match[1], match[3]
            counts[number_of(broker, "broker")] = number_of(replicas, "the count of replicas")
        elif line.strip() == "Other Partitions:":
            verbose = True
        elif in_table and line.strip() and not _SECTION.match(line):
            raise InputError(f"{where}: the line is cut; save the whole answer again")
    if not verbose:
        raise _not_verbose(source)
    return iter(partitions), counts


def _not_verbose(source: str) -> InputError:
    return InputError(
        f"{source}: this is Cruise Control's kafka_cluster_state without verbose=true, which has "
        f"only partitions in trouble; ask for all of them: {VERBOSE}"
    )
