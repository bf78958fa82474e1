"""Parse what clients of librdkafka print of a cluster: `kcat -L`, and its kin.

The lines are those of `metadata_print_list` in kcat's `kcat.c` (kafkacat before 1.7), of
librdkafka's `rdkafka_example -L`, and of `list` in confluent-kafka-python's `examples/adminapi.py`.
There are no settings in them. Every number of lines is said before the lines, so that a missing one
is seen. JSON (`kcat -L -J`) is read by `printed_objects`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from advisor.cluster.formats.rows import Row, Rows, may_be_cut, number_of, partition_of
from advisor.cluster.model import Cluster
from advisor.errors import InputError, shown

_IDS = r"\d+(?:\s*,\s*\d+)*"
_LIST = rf"((?:\[\s*(?:{_IDS})?\s*\]|{_IDS})?)"
_BROKERS = re.compile(r"(\d+)\s+brokers:")
_BROKER = re.compile(r"\bbroker\s+(\d+)\s+at\s+\S+|^\s*\S+:\d+/(\d+)\s*(?:\(controller\))?$")
_TOPICS = re.compile(r"(\d+)\s+topics:")
_TOPIC = re.compile(r'"([^"]*)"\s+with\s+(\d+)\s+partition(?:s:|\(s\))\s*:?\s*(.*)')
_PARTITION = re.compile(
    rf"partition\s+(\d+),?\s*leader:?\s*(-?\d+),\s*replicas:\s*{_LIST},"
    # Where none is in sync, kcat says after the empty list why there is no leader.
    rf"\s*isrs:(?!\s*$)\s*{_LIST}(?:\s*errstr:.*|,\s*\D.*|\s*)$"
)
_STARTS = re.compile(
    r"Metadata for .*\(from|metadata \(response from|\d+\s+(brokers|topics):|\bbroker\s+\d+\s+at\b"
    r'|^\s*\S+:\d+/\d+\s*(\(controller\))?$|"\s+with\s+\d+\s+partition|\bpartition\s+\d+,?\s*leader'
    r"|\bpartition\s+\d+,|topic\s+\"|consumer groups"
)
HEADING = (
    r"Metadata for .*\(from broker|Cluster \S+ metadata \(response from"
    r"|\bpartition \d+,? leader:? -?\d+, replicas:"
)
_LONGEST = 2_000
_REST = re.compile(r"^[\d,\s\]]+$|^\W*\w*[\s:,]*(replicas|isrs|leader|icas|srs|rs|s|as)\b")


def parse_kcat(text: str, source: str) -> Cluster:
    """Return the cluster that `kcat -L` prints."""
    rows = Rows("kcat -L", brokers={})
    counts: dict[str, int] = {}
    topic, topics, is_wrapped = "", 0, False
    for where, line, pieces in _lines(text, source):
        is_wrapped = is_wrapped or pieces > 1
        if match := _PARTITION.search(line):
            index, leader, replicas, isr = match.groups()
            if not topic:
                raise InputError(
                    f"{where}: a partition stands before any topic; save the whole output again"
                )
            partition = partition_of(where, index, leader, replicas.strip("[]"), isr.strip("[]"))
            rows.rows.append(Row(topic, partition, where))
        elif match := _TOPIC.search(line):
            topic, topics = match[1], topics + 1
            if topic in rows.stated:
                raise InputError(
                    f"{where}: topic {shown(topic)} is described a second time; keep one output in "
                    "a file"
                )
            rows.stated[topic] = number_of(match[2], "the count of partitions")
            if match[3]:
                rows.notes.append(f"Of topic {topic} the brokers said: {match[3]}.")
        elif match := _BROKERS.search(line):
            counts.setdefault("brokers", number_of(match[1], "the count of brokers"))
        elif match := _TOPICS.search(line):
            counts.setdefault("topics", number_of(match[1], "the count of topics"))
        elif match := _BROKER.search(line):
            assert rows.brokers is not None
            rows.brokers[number_of(match[1] or match[2], "broker")] = None
        elif re.search(r'\bpartition\s+\d+|topic\s+"', line):
            raise InputError(f"{where}: the line is cut; save the whole output of kcat -L again")
    if rows.rows:
        rows.notes += _cut_notes(rows.rows[-1], text, is_wrapped)
    return _checked(rows, counts, topics, source)


def _cut_notes(last: Row, text: str, is_wrapped: bool) -> list[str]:
    if text[-1:] not in ("\n", "\r"):
        return may_be_cut(last, "The text ends without a line end")
    return may_be_cut(last, "Lines are wrapped in this text") if is_wrapped else []


def _checked(rows: Rows, counts: dict[str, int], topics: int, source: str) -> Cluster:
    """Return the cluster if it has as many brokers and topics as was said."""
    brokers = rows.brokers or {}
    if counts.get("brokers", len(brokers)) != len(brokers):
        raise InputError(
            f"{source}: {counts['brokers']} brokers are said to be in it but {len(brokers)} can be "
            "read; save the whole output of kcat -L again"
        )
    if counts.get("topics", topics) != topics:
        raise InputError(
            f"{source}: {counts['topics']} topics are said to be in it but {topics} can be read; "
            "save the whole output again, or that of kcat -L -t TOPIC"
        )
    if "brokers" not in counts:
        rows.brokers = None
    return rows.cluster(source)


def _lines(text: str, source: str) -> Iterator[tuple[str, str, int]]:
    """Yield the place of each line of the tool, the line joined, and from how many pieces."""
    current, where, pieces = "", "", 0
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        plain = re.sub("\x1b\\[[0-9;?]*[A-Za-z]|\ufeff|^(\\s*>)+", "", line).rstrip()
        if _STARTS.search(plain):
            if current:
                yield where, current, pieces
            current, where, pieces = plain.strip(), f"{source}:{number}", 1
        elif current and _continues(current, plain):
            current += plain.lstrip() if current.endswith((",", " ")) else plain
            pieces += 1
    if current:
        yield where, current, pieces


def _continues(current: str, line: str) -> bool:
    """Whether a line is the rest of one that a terminal has wrapped."""
    if not line.strip() or "partition" not in current or len(current) > _LONGEST:
        return False
    is_complete = _PARTITION.search(current) or _TOPIC.search(current)
    return not is_complete or bool(_REST.match(line.strip()))
