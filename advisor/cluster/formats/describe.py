"""Parse the output of `kafka-topics.sh --describe`, Kafka 0.8.0 to today.

The columns are those of `kafka/admin/ListTopicCommand.scala` (0.8.0),
`kafka/admin/TopicCommand.scala` (0.8.1 to 3.6) and `org/apache/kafka/tools/TopicCommand.java`.
The output may have been pasted through a terminal or chat: tabs may have become spaces, lines may
be wrapped before a label, and prompts or prose may surround it. Other lines are skipped; a line
of the tool that is incomplete is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

from advisor.cluster.completeness import clusters_shown, part_shown
from advisor.cluster.describe_layouts import layout_of
from advisor.cluster.formats.pasted import (
    CONFLUENT,
    HEADER_LABELS,
    LABELS,
    PAIRS,
    PARTITION_LABELS,
    rejoined,
)
from advisor.cluster.model import Cluster
from advisor.cluster.racks import MAX_ID
from advisor.cluster.topic import TOPIC_NAME, Partition, Topic
from advisor.errors import InputError, shown
from advisor.parsing import whole_number

_ON_EACH = ("Offline", "LiveObservers")
_OBSERVER_COUNTS = re.compile(r'"observers":\[(.*?)\]')
_COUNT = re.compile(r'"count":(\d{1,3})\b')
_SPELLING = {label.lower(): label for label in ("Topic", *LABELS)}
_LABEL = re.compile(
    rf"(?<!\S)(?a:({'|'.join(sorted(_SPELLING, key=len, reverse=True))})):", re.IGNORECASE
)
# A line that begins with another label than these was wrapped.
_WRAPPED = re.compile(
    rf"(?a:{'|'.join(label for label in _SPELLING if label not in ('topic', 'partition'))}):",
    re.IGNORECASE,
)
# Every label on a line of its own.
_UPRIGHT = re.compile(
    r"^[ \t]*Partition:[ \t]*\d+[ \t\r]*\n[ \t]*Leader:[ \t]*\S+[ \t\r]*\n[ \t]*Replicas:", re.M
)
_IDS = r"\d{1,9}(?:,\d{1,9})*"
_PLAIN = re.compile(
    r"Topic:[ \t]+([A-Za-z0-9._-]{1,249})[ \t]+Partition:[ \t]+(\d{1,9})"
    rf"[ \t]+Leader:[ \t]+(\d{{1,9}}|none)[ \t]+Replicas:[ \t]+({_IDS})[ \t]+Isr:[ \t]*({_IDS}|)"
    rf"(?:[ \t]+Elr:[ \t]*(N/A|{_IDS}|)[ \t]+LastKnownElr:[ \t]*(N/A|{_IDS}|))?",
    re.ASCII,
)
_LAST = re.compile(r"(?<!\S)topic:\s*(\S+)\s+partition:\s*(\d{1,9})\b", re.IGNORECASE)
_LAST_CHARACTERS = 10_000
_NO_VALUES: Mapping[str, str] = MappingProxyType({})
_NEXT_CONFIG = re.compile(r",\s*(?=[A-Za-z][\w.-]*=)")
# Bold or code in Markdown, around a setting that its author points at; `*` is a value of some.
_EMPHASIS = re.compile(r"\*{2,}|`")
_EMPHASISED = re.compile(r"(^|,)\s*\*([A-Za-z][\w.-]*=[^,*]*)\*(?=,|$)")
# What an author writes behind a line: `Isr: 1,2  <-- 3 is down`, `# 3 is down`.
_COMMENT = re.compile(r"\s(?:#|//|<[-=]|[\u2190\u21d0]).*")
_COMMENTED = re.compile(r"^[ \t]*#+[ \t]*Topic:\s*\S+\s+Partition:", re.MULTILINE | re.IGNORECASE)
# What decides about records is never a part of the value of another setting.
_HIDDEN = re.compile(r"(min\.insync\.replicas|unclean\.leader\.election\.enable)\s*[=:]")
_ESCAPE_CODES = re.compile("\x1b\\[[0-9;?]*[A-Za-z]|\ufeff")
_TO_FILE = "run kafka-topics.sh --bootstrap-server HOST:9092 --describe > FILE"
_RETRY = "save the whole output of kafka-topics.sh --describe again"
_DAMAGED = (
    "if kafka-topics.sh --bootstrap-server HOST:9092 --describe > FILE shows the same, the "
    "cluster's metadata is damaged: see the log of the controller"
)


class _Line(NamedTuple):
    """One line of the tool: its position, and the text after each label or the partition it is."""

    source: str
    number: int
    topic: str
    values: Mapping[str, str]
    partition: Partition | None = None
    has_elr: bool = False

    @property
    def where(self) -> str:
        return f"{self.source}:{self.number}"

    @property
    def header(self) -> bool:
        return self.partition is None and "Partition" not in self.values


def looks_like_describe(text: str) -> bool:
    """Whether a line of the text has labels of `kafka-topics.sh --describe`."""
    if "\\tPartition: " in text:
        return True  # tabs as JSON writes them
    if _UPRIGHT.search(text):
        return True
    return any(len(_LABEL.findall(line)) >= 2 for line in text.splitlines())


def read_describe(text: str, source: str) -> Cluster:
    """Return the cluster of a describe output: its topics, the brokers in them, and the layout."""
    is_ended = text.endswith(("\n", "\r"))
    text = rejoined(text)
    described = _described(text, source)
    topics = described.topics
    of_topics = [topic.brokers() for topic in topics]
    brokers = dict.fromkeys(sorted(set().union(*of_topics)), None)
    try:
        return Cluster(
            brokers,
            topics,
            source=source,
            layout=layout_of(text, topics),
            part=" ".join(filter(None, (clusters_shown(text, of_topics), _part(described)))),
            notes=(*(() if is_ended else _cut_note(text, topics)), *_observers_note(topics)),
        )
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _part(described: _Described) -> str:
    return part_shown(
        described.topics,
        described.with_headers,
        described.empty,
        headless=described.headless,
    )


def _observers_note(topics: tuple[Topic, ...]) -> Iterator[str]:
    """Say of which partition constraints state observers that its line does not show."""
    for topic in topics:
        count = _stated_observers(topic.configs)
        without = [p.index for p in topic.partitions if not p.observers] if count else []
        if without:
            yield (
                f"{topic.name}-{without[0]} shows no observer that is out of sync, and its "
                f"placement constraints state {count}: they were promoted, or the line may be cut."
            )
            return


def _cut_note(text: str, topics: tuple[Topic, ...]) -> tuple[str, ...]:
    """Say that the ISR of a last line without a line end may have been longer."""
    lines = [line for line in text[-_LAST_CHARACTERS:].splitlines() if line.strip()]
    shown_last = _LAST.search(lines[-1]) if len(lines) > 1 else None
    if shown_last is None:
        return ()
    name, index = shown_last[1], int(shown_last[2])
    for topic in topics:
        for partition in topic.partitions if topic.name == name else ():
            if partition.index == index and not {*partition.isr} >= {*partition.held}:
                return (f"The text ends without a line end: the ISR of {name}-{index} may be cut.",)
    return ()


class _Described(NamedTuple):
    """Topics, whether they have header lines, and topics that have only or no such line."""

    topics: tuple[Topic, ...]
    with_headers: bool
    empty: tuple[str, ...]
    headless: tuple[str, ...]


def _described(text: str, source: str) -> _Described:
    headers: dict[str, _Line] = {}
    partitions: dict[str, list[_Line]] = {}
    for line in _lines(text, source):
        if not line.header:
            partitions.setdefault(line.topic, []).append(line)
        elif line.topic in headers:
            raise InputError(
                f"{line.where}: topic {line.topic} is described a second time; "
                "keep one output in a file"
            )
        else:
            headers[line.topic] = line
            partitions.setdefault(line.topic, [])
    if not partitions and _COMMENTED.search(text):
        raise InputError(
            f"{source}: its lines begin with #, and what begins with # is skipped as a comment; "
            "take the # away"
        )
    if not partitions:
        raise InputError(
            f"{source}: there is no topic in it; give the output of kafka-topics.sh --describe"
        )
    empty = tuple(name for name, lines in partitions.items() if not lines)
    if len(empty) == len(partitions):
        raise InputError(
            f"{headers[empty[0]].where}: topic {empty[0]} has no line of a partition, nor has any "
            "other, as with --topics-with-overrides; leave that out: kafka-topics.sh --describe"
        )
    _check_offline_columns([line for lines in partitions.values() for line in lines])
    topics = tuple(
        _topic(name, headers.get(name), lines) for name, lines in partitions.items() if lines
    )
    headless = tuple(name for name in partitions if name not in headers) if headers else ()
    return _Described(topics, bool(headers), empty, headless)


def _lines(text: str, source: str) -> Iterator[_Line]:
    lines = re.split(r"\r\n|\n|\r", text)
    if "\x1b" in text or "\ufeff" in text:
        lines = [_ESCAPE_CODES.sub("", line) for line in lines]
    last = next((number for number in range(len(lines), 0, -1) if lines[number - 1].strip()), 0)
    if last and "topic:".startswith(lines[last - 1].strip().lower()):
        raise InputError(f"{source}:{last}: the output is cut here; {_RETRY}")
    ends_in_line = text[-1:] not in ("\n", "\r")
    for number, line, end in _join_wrapped_lines(lines):
        cut = ends_in_line and end == last
        parsed = None if cut else _plain_line(line, source, number)
        parsed = parsed or _parse_line(line, source, number, is_last=end == last)
        if parsed is not None:
            if cut:
                _check_isr_not_cut(parsed)
            yield parsed


def _join_wrapped_lines(lines: Sequence[str]) -> Iterator[tuple[int, str, int]]:
    """Yield whole lines, none blank, each with the numbers of its first and last line."""
    first, pieces, last = 0, [""], 0
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if not stripped:
            continue
        if first and _WRAPPED.match(stripped) and _LABEL.search(pieces[0]):
            pieces.append(stripped)
        else:
            if first:
                yield first, "\t".join(pieces), last
            first, pieces = number, [stripped]
        last = number
    if first:
        yield first, "\t".join(pieces), last


def _plain_line(line: str, source: str, number: int) -> _Line | None:
    """Parse the line of a healthy partition as the tool prints it; None if it is another."""
    match = _PLAIN.fullmatch(line)
    if match is None:
        return None
    topic, index, leader, replicas, isr, elr, last_known = match.groups()
    ids = _plain_ids(replicas)
    try:
        partition = Partition(
            int(index),
            None if leader == "none" else _plain_id(leader),
            ids,
            ids if isr == replicas else _plain_ids(isr),
            None if elr in (None, "N/A") else _plain_ids(elr),
            None if last_known in (None, "N/A") else _plain_ids(last_known),
        )
    except InputError:
        # Another line may have a mistake that is named first.
        return None
    if partition.leader is not None and not partition.isr:
        return None
    return _Line(source, number, topic, _NO_VALUES, partition, elr is not None)


def _plain_ids(text: str) -> tuple[int, ...]:
    return tuple(map(_plain_id, text.split(","))) if text else ()


def _parse_line(line: str, source: str, number: int, is_last: bool) -> _Line | None:
    """Parse the labels of one line; None if it is prose, a prompt or a comment."""
    where = f"{source}:{number}"
    if _LAST.search(line):  # it is a partition's
        line = _COMMENT.sub("", _EMPHASIS.sub("", line))
    matches = list(_LABEL.finditer(line))
    configs = next((match for match in matches if match[1].lower() == "configs"), None)
    if configs is not None:
        # A config value may contain anything; only MarkedForDeletion can follow the configs.
        matches = [
            match
            for match in matches
            if match.start() <= configs.start() or match[1].lower() == "markedfordeletion"
        ]
    labels = [_SPELLING[match[1].lower()] for match in matches]
    is_tool_line = len(labels) >= 2 or (labels == ["Topic"] and matches[0].start() == 0)
    if not is_tool_line or line.startswith("#"):
        return None
    if labels[0] != "Topic":
        raise InputError(f"{where}: this line has {labels[0]} but no Topic before it; {_TO_FILE}")
    ends = [match.start() for match in matches[1:]] + [len(line)]
    values: dict[str, str] = {}
    for label, match, end in zip(labels, matches, ends, strict=True):
        if label in values:
            raise InputError(f"{where}: this line has {label} twice; {_TO_FILE}")
        values[label] = line[match.end() : end].strip()
    _check_labels(values, where, is_last)
    if _LABEL.search(values.get("Configs", "")):
        raise InputError(f"{where}: another line runs into the Configs of this one; {_TO_FILE}")
    if not TOPIC_NAME.fullmatch(values["Topic"]):
        raise InputError(
            f"{where}: {shown(values['Topic'])} is not the name of a topic; {_TO_FILE}"
        )
    return _Line(source, number, values["Topic"], values, has_elr="Elr" in values)


def _check_labels(values: dict[str, str], where: str, is_last: bool) -> None:
    is_partition = any(label in values for label in PARTITION_LABELS)
    required = list(PARTITION_LABELS if is_partition else HEADER_LABELS)
    for pair in PAIRS:
        # The tool prints both labels of a pair or neither.
        if any(label in values for label in pair):
            required.extend(pair)
    for label in required:
        if label not in values and is_last:
            raise InputError(f"{where}: the line is cut, it has no {label}; {_RETRY}")
        if label not in values:
            raise InputError(
                f"{where}: the line has no {label}, which kafka-topics.sh --describe prints on "
                f"each: another tool wrote it, or a screen cut it; {_TO_FILE}"
            )


def _check_isr_not_cut(line: _Line) -> None:
    """Reject a last line truncated in its ISR: the leader is always in the ISR."""
    if line.header or line.has_elr:
        return
    leader, isr = line.values["Leader"], _id_list(line, "Isr")
    unled = leader.isdigit() and leader not in map(str, isr)
    if unled or not {*isr} <= {*_id_list(line, "Replicas")}:
        raise InputError(f"{line.where}: the line is cut in its Isr; {_RETRY}")


def _topic(name: str, header: _Line | None, lines: list[_Line]) -> Topic:
    where = header.where if header is not None else lines[0].where
    count = None if header is None else _number(header, "PartitionCount")
    if count is not None and count < len(lines):
        raise InputError(
            f"{where}: topic {name} says PartitionCount {count} but {len(lines)} partition "
            f"line{'s' * (len(lines) != 1)} can be read; keep one output in a file"
        )
    _check_elr_columns(lines)
    values = header.values if header is not None else {}
    configs = parse_configs(values.get("Configs", ""), where)
    _check_numbers(name, lines)
    observers = _stated_observers(configs)
    outside = [line for line in lines if line.partition is None and _outside(line, observers)]
    if len(outside) == len(lines):
        raise InputError(_outside(lines[0], observers))
    broken = {_number(line, "Partition") for line in outside}
    partitions = tuple(
        _partition(line, observers)
        if line.partition is None
        else _without_observers(line.partition, observers)
        for line in lines
        if line.partition is not None or _number(line, "Partition") not in broken
    )
    if header is not None:
        _check_replication_factor(header, partitions)
    try:
        return Topic(
            name=name,
            partitions=partitions,
            configs=configs,
            topic_id=values.get("TopicId") or None,
            marked_for_deletion=values.get("MarkedForDeletion", "").lower() == "true",
            broken=tuple(sorted(broken)),
            stated_partitions=None if count == len(lines) else count,
        )
    except InputError as error:
        raise _located(error, where) from None


def _check_numbers(name: str, lines: list[_Line]) -> None:
    """Reject a partition that is described twice."""
    first_seen: dict[int, _Line] = {}
    for line in lines:
        index = _number(line, "Partition") if line.partition is None else line.partition.index
        first = first_seen.setdefault(index, line)
        if first is not line:
            raise InputError(
                f"{line.where}: partition {index} of topic {name} was already described "
                f"at {first.where}; keep one output in a file"
            )


def _stated_observers(configs: Mapping[str, str]) -> int:
    """Number of observers that Confluent's placement constraints state for each partition."""
    constraints = configs.get("confluent.placement.constraints", "").replace(" ", "")
    lists = _OBSERVER_COUNTS.findall(constraints)
    return sum(int(count) for constraint in lists for count in _COUNT.findall(constraint))


def _outside(line: _Line, observers: int) -> str:
    """Say that a leader or in-sync replica is none of the replicas; "" if all are."""
    members = [("Isr", broker) for broker in _id_list(line, "Isr")]
    leader = _leader(line)
    members += [] if leader is None else [("Leader", leader)]
    replicas, _ = _copies(line, observers)
    if not replicas or len(set(replicas)) < len(replicas):
        return ""  # another mistake, which has a sentence of its own
    for label, broker in members:
        if broker not in replicas:
            return (
                f"{line.where}: partition {_number(line, 'Partition')} has broker {broker} as "
                f"{label} but not in its Replicas {','.join(map(str, replicas))}; {_DAMAGED}"
            )
    return ""


def _copies(line: _Line, stated_observers: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the replicas that acknowledge and are elected, and the asynchronous observers.

    An observer in the ISR was promoted and counts as a replica. Without a column of observers they
    are the last ones, as many as the constraints state.
    """
    listed, isr = _id_list(line, "Replicas"), _id_list(line, "Isr")
    observing = {*_id_list(line, "Observers"), *_id_list(line, "LiveObservers")}
    if not {"Observers", "LiveObservers"} & line.values.keys() and stated_observers:
        observing = set(listed[-stated_observers:])
    serving = {*isr, _leader(line)}
    observers = tuple(broker for broker in listed if broker in observing and broker not in serving)
    replicas = tuple(broker for broker in listed if broker not in observers)
    return (replicas, observers) if replicas else (listed, ())


def _check_offline_columns(lines: list[_Line]) -> None:
    """Refuse lines without what others have and Confluent's tool prints on each."""
    for line in lines:
        columns = line.values.keys() ^ lines[0].values.keys()
        lacking = [label for label in _ON_EACH if label in columns]
        if lacking:
            raise InputError(
                f"{line.where}: some lines have {lacking[0]} and others do not; {_RETRY}"
            )


def _check_elr_columns(lines: list[_Line]) -> None:
    """Refuse lines of which some lack a column that others have: those are cut."""
    for line in lines:
        lacking = [name for name in CONFLUENT if (name in line.values) != (name in lines[0].values)]
        if lacking:
            raise InputError(
                f"{line.where}: some lines of topic {line.topic} have {lacking[0]} and others do "
                f"not; {_RETRY}"
            )
        if line.has_elr != lines[0].has_elr:
            raise InputError(
                f"{line.where}: some lines of topic {line.topic} have Elr and others do not; "
                f"{_TO_FILE}"
            )


def _check_replication_factor(header: _Line, partitions: tuple[Partition, ...]) -> None:
    # The header has the factor of one partition, and partitions may differ: any may match.
    if any(partition.adding or partition.removing for partition in partitions):
        return
    factor = _number(header, "ReplicationFactor")
    factors = {p.replication_factor + len(p.observers) for p in partitions}
    if factor not in factors:
        raise InputError(
            f"{header.where}: topic {header.topic} says ReplicationFactor {factor} but its "
            f"partitions have {partitions[0].replication_factor} replicas; {_TO_FILE}"
        )


def _without_observers(partition: Partition, stated_observers: int) -> Partition:
    """Return a partition without its last replicas, if constraints make them observers."""
    serving = {*partition.isr, partition.leader}
    last = partition.replicas[len(partition.replicas) - stated_observers :]
    observers = tuple(broker for broker in last if broker not in serving)
    replicas = tuple(broker for broker in partition.replicas if broker not in observers)
    if not observers or not replicas:
        return partition
    return replace(partition, replicas=replicas, observers=observers)


def _leader(line: _Line) -> int | None:
    leader = line.values["Leader"]
    return None if leader.lower() == "none" or leader == "-1" else _number(line, "Leader")


def _partition(line: _Line, stated_observers: int) -> Partition:
    replicas, observers = _copies(line, stated_observers)
    try:
        partition = Partition(
            index=_number(line, "Partition"),
            leader=_leader(line),
            replicas=replicas,
            isr=_id_list(line, "Isr"),
            elr=_optional_ids(line, "Elr"),
            last_known_elr=_optional_ids(line, "LastKnownElr"),
            adding=_id_list(line, "Adding Replicas"),
            removing=_id_list(line, "Removing Replicas"),
            observers=observers,
            offline=tuple(b for b in _id_list(line, "Offline") if b in (*replicas, *observers)),
        )
    except InputError as error:
        raise _located(error, line.where) from None
    if partition.leader is not None and not partition.isr:
        raise InputError(
            f"{line.where}: partition {partition.index} has the leader {partition.leader} and an "
            f"empty Isr, which cannot be; {_DAMAGED}"
        )
    return partition


def _located(error: InputError, where: str) -> InputError:
    text = str(error)
    return error if text.startswith(where) else InputError(f"{where}: {text}; {_TO_FILE}")


def _number(line: _Line, label: str) -> int:
    number = whole_number(line.values[label], MAX_ID)
    if number is None:
        value = shown(line.values[label])
        wrong = _too_large(line.values[label]) or "is not a number"
        raise InputError(f"{line.where}: {label} {value} {wrong}; {_TO_FILE}")
    return number


def _id_list(line: _Line, label: str) -> tuple[int, ...]:
    text = line.values.get(label, "")
    ids = _numbers(text)
    if ids is None:
        text = ",".join(number.strip() for number in text.split(","))
        wrong = "is not a list of broker ids"
        for number in text.split(","):
            wrong = _too_large(number) or wrong
        raise InputError(f"{line.where}: {label} {shown(text)} {wrong}; {_TO_FILE}")
    return ids


def _too_large(text: str) -> str:
    """Say that a number is larger than Kafka allows; "" for one that is not, or no number."""
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()) or whole_number(digits, MAX_ID) is not None:
        return ""
    return f"has a number larger than Kafka allows ({MAX_ID})"


# Ids that are equal are one object, which saves memory.
_plain_id = lru_cache(maxsize=65_536)(int)


@lru_cache(maxsize=4096)  # the same lists occur again and again
def _numbers(text: str) -> tuple[int, ...] | None:
    """Parse comma-separated ids; None if the text is something else."""
    if not text:
        return ()
    ids = [whole_number(written.strip(), MAX_ID) for written in text.split(",")]
    return None if None in ids else tuple(number for number in ids if number is not None)


def _optional_ids(line: _Line, label: str) -> tuple[int, ...] | None:
    """Return the ids; None if the tool printed none or N/A."""
    if line.values.get(label, "N/A").upper() == "N/A":
        return None
    return _id_list(line, label)


def parse_configs(text: str, where: str) -> dict[str, str]:
    """Parse `a=b,c=d,e` as {"a": "b", "c": "d,e"}: values may contain commas, keys may not."""
    configs: dict[str, str] = {}
    text = _EMPHASISED.sub(r"\1\2", _EMPHASIS.sub("", text))
    for pair in _NEXT_CONFIG.split(text.strip()) if text.strip() else ():
        key, equals, value = pair.partition("=")
        is_pair = equals and re.fullmatch(r"[\w.-]+", key.strip())
        if not is_pair or _HIDDEN.search(value):
            raise InputError(
                f"{where}: Configs has {shown(pair)}, which is not key=value; {_TO_FILE}"
            )
        configs[key.strip()] = value.strip()
    return configs
