"""Read what `kafka-topics.sh --describe` prints, from 0.8.0 to today.

The columns come from the tool's own sources: `kafka/admin/ListTopicCommand.scala` (0.8.0),
`kafka/admin/TopicCommand.scala` (0.8.1 to 3.6) and `org/apache/kafka/tools/TopicCommand.java`.
People paste the output through terminals and chats. So tabs may have become blanks, a line may
have been broken before a label, and prompts and prose may stand around it. What is not a line of
the tool is passed over; a line of the tool that is broken is refused, never guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from advisor.cluster.model import TOPIC_NAME, Partition, Topic
from advisor.cluster.racks import MAX_ID
from advisor.errors import InputError

PARTITION_LABELS = ("Partition", "Leader", "Replicas", "Isr")
HEADER_LABELS = ("PartitionCount", "ReplicationFactor", "Configs")
_PAIRS = (("Elr", "LastKnownElr"), ("Adding Replicas", "Removing Replicas"))
_OTHERS = ("Topic", "TopicId", "MarkedForDeletion", *(label for pair in _PAIRS for label in pair))
_SPELLING = {label.lower(): label for label in (*PARTITION_LABELS, *HEADER_LABELS, *_OTHERS)}
_LABEL = re.compile(
    rf"(?<!\S)({'|'.join(sorted(_SPELLING, key=len, reverse=True))}):", re.IGNORECASE
)
_IDS = re.compile(r"[0-9]+(?:,[0-9]+)*")
_COMMA = re.compile(r"\s*,\s*")
_NEXT_CONFIG = re.compile(r",\s*(?=[A-Za-z][\w.-]*=)")
_NOISE = re.compile("\x1b\\[[0-9;?]*[A-Za-z]|\ufeff")
_AGAIN = "save the whole output of kafka-topics.sh --describe again"


@dataclass(frozen=True)
class _Line:
    """One line of the tool: where it stands, and the text after each label."""

    where: str
    topic: str
    values: dict[str, str]

    @property
    def header(self) -> bool:
        return "Partition" not in self.values


def looks_like_describe(text: str) -> bool:
    """Say whether some line of the text has the labels of `kafka-topics.sh --describe`."""
    return any(len(_LABEL.findall(line)) >= 2 for line in text.splitlines())


def parse_describe(text: str, source: str) -> tuple[Topic, ...]:
    """Return the topics of a describe output, in the order in which they first appear.

    Parameters
    ----------
    text : str
        The output of `kafka-topics.sh --describe` (0.8.0: `kafka-list-topic.sh`).
    source : str
        What errors call it, usually the file's name.

    Returns
    -------
    tuple of Topic
        `configs` holds what the header says. Since 2.2 (with `--bootstrap-server`) these are all
        settings that differ from Kafka's defaults, whoever set them; with `--zookeeper` only the
        topic's own.

    Raises
    ------
    InputError
        If there is no topic in it, or a line is broken, contradicts itself or its header.
    """
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
    if not partitions:
        raise InputError(
            f"{source}: there is no topic in it; give the output of kafka-topics.sh --describe"
        )
    return tuple(_topic(name, headers.get(name), lines) for name, lines in partitions.items())


def _lines(text: str, source: str) -> Iterator[_Line]:
    numbered = [
        (number, _NOISE.sub("", line).strip())
        for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1)
    ]
    numbered = [(number, line) for number, line in numbered if line]
    if numbered and "topic:".startswith(numbered[-1][1].lower()):
        raise InputError(f"{source}:{numbered[-1][0]}: the output is cut here; {_AGAIN}")
    ends_in_line = text[-1:] not in ("\n", "\r")
    joined = _rejoined(numbered)
    for position, (number, line) in enumerate(joined):
        read = _read_line(line, f"{source}:{number}")
        if read is not None:
            if ends_in_line and position == len(joined) - 1:
                _refuse_cut_isr(read)
            yield read


def _rejoined(numbered: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Put a line that begins with a label back behind the line it was broken off from."""
    result: list[tuple[int, str]] = []
    for number, line in numbered:
        first = _LABEL.match(line)
        broken_off = first is not None and first[1].lower() not in ("topic", "partition")
        if broken_off and result and _LABEL.search(result[-1][1]):
            result[-1] = (result[-1][0], f"{result[-1][1]}\t{line}")
        else:
            result.append((number, line))
    return result


def _read_line(line: str, where: str) -> _Line | None:
    """Return the labels of one line; None when it is prose, a prompt or a comment."""
    found = list(_LABEL.finditer(line))
    configs = next((match for match in found if match[1].lower() == "configs"), None)
    if configs is not None:
        # A config value may hold anything; only this one label ever follows the configs.
        found = [
            match
            for match in found
            if match.start() <= configs.start() or match[1].lower() == "markedfordeletion"
        ]
    labels = [_SPELLING[match[1].lower()] for match in found]
    tool = len(labels) >= 2 or (labels == ["Topic"] and found[0].start() == 0)
    if not tool or line.startswith("#"):
        return None
    if labels[0] != "Topic":
        raise InputError(f"{where}: this line has {labels[0]} but no Topic before it; {_AGAIN}")
    ends = [match.start() for match in found[1:]] + [len(line)]
    values: dict[str, str] = {}
    for label, match, end in zip(labels, found, ends, strict=True):
        if label in values:
            raise InputError(f"{where}: this line has {label} twice; {_AGAIN}")
        values[label] = line[match.end() : end].strip()
    _refuse_missing(values, where)
    if not TOPIC_NAME.fullmatch(values["Topic"]):
        raise InputError(f"{where}: {values['Topic']!r} is not the name of a topic; {_AGAIN}")
    return _Line(where, values["Topic"], values)


def _refuse_missing(values: dict[str, str], where: str) -> None:
    is_partition = any(label in values for label in PARTITION_LABELS)
    wanted = list(PARTITION_LABELS if is_partition else HEADER_LABELS)
    for pair in _PAIRS:
        # The tool prints both of a pair or neither.
        if any(label in values for label in pair):
            wanted.extend(pair)
    for label in wanted:
        if label not in values:
            raise InputError(f"{where}: the line is cut, it has no {label}; {_AGAIN}")


def _refuse_cut_isr(line: _Line) -> None:
    """Refuse a last line that ends inside its ISR: a leader is always one of its own ISR."""
    if line.header or "Elr" in line.values:
        return
    leader = line.values["Leader"]
    if leader.isdigit() and leader not in re.split(r"\s*,\s*", line.values["Isr"]):
        raise InputError(f"{line.where}: the line is cut in its Isr; {_AGAIN}")


def _topic(name: str, header: _Line | None, lines: list[_Line]) -> Topic:
    where = header.where if header is not None else lines[0].where
    if header is not None:
        stated = _number(header, "PartitionCount")
        if stated != len(lines):
            raise InputError(
                f"{where}: topic {name} says PartitionCount {stated} but {len(lines)} partition "
                f"line{'s' * (len(lines) != 1)} can be read; {_AGAIN}"
            )
    _refuse_uneven(lines)
    partitions = tuple(_partition(line) for line in lines)
    first_seen: dict[int, str] = {}
    for partition, line in zip(partitions, lines, strict=True):
        if partition.index in first_seen:
            raise InputError(
                f"{line.where}: partition {partition.index} of topic {name} was already described "
                f"at {first_seen[partition.index]}; keep one output in a file"
            )
        first_seen[partition.index] = line.where
    if header is not None:
        _refuse_factor(header, partitions)
    values = header.values if header is not None else {}
    try:
        return Topic(
            name=name,
            partitions=partitions,
            configs=parse_configs(values.get("Configs", ""), where),
            topic_id=values.get("TopicId") or None,
            marked_for_deletion=values.get("MarkedForDeletion", "").lower() == "true",
        )
    except InputError as error:
        raise _located(error, where) from None


def _refuse_uneven(lines: list[_Line]) -> None:
    for line in lines:
        if ("Elr" in line.values) != ("Elr" in lines[0].values):
            raise InputError(
                f"{line.where}: some lines of topic {line.topic} have Elr and others do not; "
                f"{_AGAIN}"
            )


def _refuse_factor(header: _Line, partitions: tuple[Partition, ...]) -> None:
    # The header counts the replicas of one partition. Partitions may differ, so any may match.
    if any(partition.adding or partition.removing for partition in partitions):
        return
    stated = _number(header, "ReplicationFactor")
    if all(partition.replication_factor != stated for partition in partitions):
        raise InputError(
            f"{header.where}: topic {header.topic} says ReplicationFactor {stated} but its "
            f"partitions have {partitions[0].replication_factor} replicas; {_AGAIN}"
        )


def _partition(line: _Line) -> Partition:
    leader = line.values["Leader"]
    absent = leader.lower() == "none" or leader == "-1"
    try:
        partition = Partition(
            index=_number(line, "Partition"),
            leader=None if absent else _number(line, "Leader"),
            replicas=_id_list(line, "Replicas"),
            isr=_id_list(line, "Isr"),
            elr=_optional_ids(line, "Elr"),
            last_known_elr=_optional_ids(line, "LastKnownElr"),
            adding=_id_list(line, "Adding Replicas"),
            removing=_id_list(line, "Removing Replicas"),
        )
    except InputError as error:
        raise _located(error, line.where) from None
    if partition.leader is not None and not partition.isr:
        raise InputError(
            f"{line.where}: partition {partition.index} has the leader {partition.leader} and an "
            f"empty Isr, which cannot be; {_AGAIN}"
        )
    return partition


def _located(error: InputError, where: str) -> InputError:
    text = str(error)
    return error if text.startswith(where) else InputError(f"{where}: {text}; {_AGAIN}")


def _number(line: _Line, label: str) -> int:
    text = line.values[label]
    if not re.fullmatch(r"[0-9]{1,10}", text) or int(text) > MAX_ID:
        raise InputError(f"{line.where}: {label} {text!r} is not a number; {_AGAIN}")
    return int(text)


def _id_list(line: _Line, label: str) -> tuple[int, ...]:
    text = line.values.get(label, "")
    ids = _numbers(text)
    if ids is None:
        text = _COMMA.sub(",", text)
        raise InputError(f"{line.where}: {label} {text!r} is not a list of broker ids; {_AGAIN}")
    return ids


@lru_cache(maxsize=4096)  # most partitions have an ISR like their replicas, and like others'
def _numbers(text: str) -> tuple[int, ...] | None:
    """Return ids with commas between them; None when it is something else."""
    if not text:
        return ()
    text = _COMMA.sub(",", text)
    ids = text.split(",")
    if not _IDS.fullmatch(text) or any(len(i) > 10 or int(i) > MAX_ID for i in ids):
        return None
    return tuple(map(int, ids))


def _optional_ids(line: _Line, label: str) -> tuple[int, ...] | None:
    """Return the ids; None when the tool did not print them or a broker could not tell (N/A)."""
    if line.values.get(label, "N/A").upper() == "N/A":
        return None
    return _id_list(line, label)


def parse_configs(text: str, where: str) -> dict[str, str]:
    """Return `a=b,c=d,e` as {"a": "b", "c": "d,e"}: a value may hold commas, a key may not.

    Raises
    ------
    InputError
        If the text does not begin with `key=`.
    """
    configs: dict[str, str] = {}
    for part in _NEXT_CONFIG.split(text.strip()) if text.strip() else ():
        key, equals, value = part.partition("=")
        if not equals or not re.fullmatch(r"[\w.-]+", key.strip()):
            raise InputError(f"{where}: Configs has {part!r}, which is not key=value; {_AGAIN}")
        configs[key.strip()] = value.strip()
    return configs
