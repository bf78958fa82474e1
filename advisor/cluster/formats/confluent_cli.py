"""Parse the tables of the Confluent CLI: `kafka topic describe` and `kafka replica list`.

`ccloud kafka topic describe` (2019 to 2021), and `confluent kafka topic describe` of a cluster on
premises (`test/fixtures/output/kafka/topic` in confluentinc/cli), have replicas and ISR. `confluent
kafka replica list` has a line for each replica. Any table with such columns is read, also one of
Markdown. JSON of the same commands is read by `printed_objects`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from advisor.cluster.formats.pasted import LINE_PREFIX
from advisor.cluster.formats.rows import Row, Rows, ids_of, number_of, partition_of
from advisor.cluster.model import Cluster
from advisor.errors import InputError, shown

_DESCRIBED = {"partition", "leader", "replicas", "isr"}
_REPLICA = {"broker", "partition", "leader", "inisr"}
_TITLE = re.compile(
    r"^[>\s]*Topic: (\S+)(?: PartitionCount: (\d+) ReplicationFactor: \d+| Configuration)?\s*$"
)
_COUNT = re.compile(r"^[>\s|]*Partition ?Count\s*[:|]\s*(\d+)")
_NAME = re.compile(r"^[>\s]*\|\s*Name\s*\|\s*([A-Za-z0-9._-]+)\s*\|\s*$")
_RULE = re.compile(r"^[>\s|]*[-+|:\s]+$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_LIST = re.compile(r"\[[\d\s,]*\]")
_PLAIN_LIST = re.compile(r"\d{1,9}(\s*,\s*\d{1,9})*|")
_AGAIN = "save the whole output of the Confluent CLI again"


class _Line(NamedTuple):
    """A line of a table: its place, and its cells by the head of their column."""

    where: str
    cells: Mapping[str, str]


def is_confluent_table(beginning: str) -> bool:
    """Whether a text has a table of partitions, or of replicas, in columns between bars."""
    lines = (LINE_PREFIX.sub("", line) for line in beginning.splitlines())
    return any("|" in line and _is_head(_cells(line)) for line in lines)


def is_framed_table(beginning: str) -> bool:
    """Whether it is such a table with bars all around and lists without brackets, by hand."""
    if re.search(r"\[\s*\d", beginning) or not is_confluent_table(beginning):
        return False
    lines = (LINE_PREFIX.sub("", line).strip() for line in beginning.splitlines())
    heads = [line for line in lines if "|" in line and set(_cells(line)) >= _DESCRIBED]
    return bool(heads) and all(line[0] == line[-1] == "|" for line in heads)


def parse_framed_table(text: str, source: str) -> Cluster:
    """Return the cluster of a table in Markdown."""
    return parse_confluent_cli(text, source, "this table", _PLAIN_LIST)


def parse_confluent_cli(
    text: str,
    source: str,
    tool: str = "the Confluent CLI",
    lists: re.Pattern[str] = _LIST,
) -> Cluster:
    """Return the cluster of the Confluent CLI's tables."""
    rows = Rows(tool)
    replicas: dict[tuple[str, str], list[_Line]] = {}
    for topic, count, line in _table_lines(text, source):
        cells = line.cells
        name = cells.get("topic", topic)
        if cells.keys() >= _DESCRIBED:
            _add(rows, name, line, lists)
            if count is not None:
                rows.stated[name] = number_of(count, "the count of partitions")
        elif cells.keys() >= _REPLICA:
            replicas.setdefault((name, cells["partition"]), []).append(line)
        # Lines of the summary, such as "Internal", where another output runs into this one.
        elif topic and cells["name"][:1].islower():
            rows.configs.setdefault(topic, {})[cells["name"]] = cells["value"]
    rows.rows += _of_replicas(replicas, rows)
    return rows.cluster(source)


def _table_lines(text: str, source: str) -> Iterator[tuple[str, str | None, _Line]]:
    """Yield the lines of the tables, each with its topic and the count of that one's partitions."""
    topic, count = "", None
    head: Sequence[str] = ()
    for number, raw in enumerate(text.splitlines(), start=1):
        where, line = f"{source}:{number}", LINE_PREFIX.sub("", raw)
        if match := _TITLE.match(line):
            if not line.rstrip().endswith("Configuration"):
                topic, count, head = match[1], match[2], ()
        elif match := _COUNT.match(line):
            count = match[1]
        elif not line.strip() or _FENCE.match(line):
            head = ()
        elif _RULE.match(line):
            continue
        elif "|" in line and (_is_head(_cells(line)) or _cells(line) == ["name", "value"]):
            head = _cells(line)
        elif head:
            yield topic, count, _Line(where, _row(line, head, where))
        elif match := _NAME.match(line):
            topic = match[1]


def _is_head(cells: Sequence[str]) -> bool:
    return set(cells) >= _DESCRIBED or set(cells) >= _REPLICA


def _cells(line: str) -> list[str]:
    """Return the heads of a table's columns: "Partition ID" is "partition"."""
    heads = [re.sub(r"[^a-z]", "", cell.lower()) for cell in line.split("|")]
    heads = heads[1:-1] if heads[0] == heads[-1] == "" else heads
    names = {"partitionid": "partition", "brokerid": "broker", "isleader": "leader"}
    names |= {"topicname": "topic", "isinisr": "inisr", "isobserver": "observer"}
    return [names.get(head, head) for head in heads]


def _row(line: str, head: Sequence[str], where: str) -> dict[str, str]:
    cells = [cell.strip() for cell in line.lstrip("> ").split("|")]
    if len(cells) == len(head) + 2 and cells[0] == cells[-1] == "":
        cells = cells[1:-1]  # bars all around, as in Markdown
    if len(cells) != len(head):
        raise InputError(
            f"{where}: the line has {len(cells)} columns and its table {len(head)}; {_AGAIN}"
        )
    return dict(zip(head, cells, strict=True))


def _add(rows: Rows, topic: str, line: _Line, written: re.Pattern[str]) -> None:
    if not topic:
        raise InputError(f"{line.where}: the table does not say of which topic it is; {_AGAIN}")
    lists = [line.cells[name] for name in ("replicas", "isr")]
    for ids in lists:
        if not written.fullmatch(ids):
            brackets = " in brackets" if written is _LIST else ""
            again = _AGAIN if written is _LIST else "give the whole table"
            raise InputError(
                f"{line.where}: {shown(ids)} is not a list of brokers{brackets}; {again}"
            )
    replicas, isr = (ids.strip("[]") for ids in lists)
    partition = partition_of(
        line.where, line.cells["partition"], line.cells["leader"], replicas, isr
    )
    rows.rows.append(Row(topic, partition, line.where))


def _of_replicas(replicas: Mapping[tuple[str, str], Sequence[_Line]], rows: Rows) -> Iterator[Row]:
    """Yield the partitions of a table that has a line for each replica, the leader first."""
    if not replicas:
        return
    rows.notes.append(
        "The table has a line for each replica, no count of them and no order: a missing line may "
        "not be noticed, and the leader is taken as the preferred one."
    )
    usual = Counter(map(len, replicas.values())).most_common(1)[0][0]
    for (topic, index), lines in replicas.items():
        where = lines[0].where
        leaders = [line.cells["broker"] for line in lines if line.cells["leader"] == "true"]
        if len(leaders) != 1:
            raise InputError(
                f"{where}: partition {index[:20]} of topic {shown(topic)} has "
                f"{'no leader' if not leaders else 'two leaders'} in this table; lines may be "
                "missing: run kafka-topics.sh --describe"
            )
        if len(lines) != usual:
            rows.notes.append(
                f"Partition {index} of topic {topic} has {len(lines)} lines and others {usual}: "
                "lines may be missing."
            )
        copies = sorted(lines, key=lambda line: line.cells["leader"] != "true")
        observers = [line for line in copies if line.cells.get("observer") == "true"]
        partition = partition_of(
            where,
            index,
            leaders[0],
            [line.cells["broker"] for line in copies if line not in observers],
            [line.cells["broker"] for line in copies if line.cells["inisr"] == "true"],
            observers=ids_of([line.cells["broker"] for line in observers], "observers"),
        )
        yield Row(topic, partition, where)
