"""Put describe output back together that went through a terminal, a log, a chat or a mail.

A terminal cuts lines at its last column, anywhere: `Isr: 10` and `01,1002` in the next line. Left
alone, the first half may be a valid line that says something else. Here such lines are joined
again, quote marks are removed, and lines that a paste has put on one are separated. What remains
incomplete is left as it is: the parser refuses it.
"""

from __future__ import annotations

import re

PARTITION_LABELS = ("Partition", "Leader", "Replicas", "Isr")
HEADER_LABELS = ("PartitionCount", "ReplicationFactor", "Configs")
PAIRS = (("Elr", "LastKnownElr"), ("Adding Replicas", "Removing Replicas"))
"""Labels that the tool prints together or not at all."""
CONFLUENT = ("Offline", "Observers", "LiveObservers")
"""Columns of Confluent's tool (5.4 has observers as LiveObservers):
https://github.com/confluentinc/examples/blob/6.1.0-post/multiregion"""
LABELS = (
    *(*PARTITION_LABELS, *HEADER_LABELS, "TopicId", "MarkedForDeletion", *CONFLUENT),
    *(label for pair in PAIRS for label in pair),
)
"""Every label after the name of a topic."""
LINE_PREFIX = re.compile(
    r"^(> ?|[\w.-]{0,60}-\d{1,6} {1,30}\| |\d{4}-\d\d-\d\dT\S{1,40} (stdout|stderr) [FP] )"
)
"""What a quote, docker compose or a container's log puts before every line."""

_RECORD = re.compile(r"(?<!\S)topic:", re.IGNORECASE)
_LABEL = re.compile(rf"(?<!\S)(?:{'|'.join(LABELS)}):", re.IGNORECASE)
_NEEDED, _NEEDED_OF_HEADER = (
    tuple(re.compile(rf"(?<!\S){label}:", re.IGNORECASE) for label in labels)
    for labels in (PARTITION_LABELS, HEADER_LABELS)
)
# What a line of clean output never is: the rest is not looked at twice.
_UNUSUAL = re.compile(
    r"^(?![ \t]*[Tt]opic:)[ \t]*[^\s#]|[Tt]opic:[^\n]*\s[Tt]opic:|\\t|\|[ \t]*$", re.MULTILINE
)
_LOG_FIELDS = re.compile(r"\\n\",\s*\"(stream|time)\".*")
# An item of a list of lines, as Ansible shows them: "\\tTopic: a\\tPartition: 0 ...",
_LISTED = re.compile(r'^[ \t]*"((?:\\t|[ \t])*topic:[^"\n]*(?:\\"[^"\n]*)*)",?[ \t]*$', re.I | re.M)
_QUOTE = re.compile(r"^(?:[ \t]*>)+[ \t]?")
_GLUED = re.compile(r"(?<=[:|>\])+\"'])(?=topic:\s)", re.IGNORECASE)
# A second record in one line.
_SECOND = re.compile(r"(?<=\S)\s+(?=topic:\s*\S+\s+partition:)", re.IGNORECASE)
_NO_REST = re.compile(
    r"[#$%`]|\",|([=~*-])\1|[*-] |\S*[$#%>] |(PS )?[A-Z]:\\|\d{4}-\d\d-\d\d|[^\w:,=]*$"
)
_LONGEST = 20_000
_LAST_LABEL = re.compile(r"LastKnownElr:\s*$", re.IGNORECASE)
_REPLICAS = re.compile(r"(?<!\S)Replicas:\s*([\d,]+)", re.IGNORECASE)
_CONFIGS = re.compile(r"(?<!\S)Configs:", re.IGNORECASE)
_NUMBERS = re.compile(rf"[\d,][\d,\s]*($|{_LABEL.pattern})", re.IGNORECASE)


def rejoined(text: str) -> str:
    r"""Return describe output with each line whole, in as many lines as it had.

    >>> rejoined("Topic: t Partition: 0 Leader: 1 Replicas: 1,12 Isr: 1\n2,1\n")
    'Topic: t Partition: 0 Leader: 1 Replicas: 1,12 Isr: 12,1\n\n'
    """
    if _LISTED.search(text):
        text = _LISTED.sub(lambda line: line[1].replace('\\"', '"').replace("\\t", "\t"), text)
    if "\\tPartition" in text:
        # A log driver has written tabs and line ends as JSON does.
        text = _LOG_FIELDS.sub("", text).replace("\\t", "\t").replace("\\n", "\n")
    if not _UNUSUAL.search(text):
        return text
    lines: list[str] = []
    record = -1
    for raw in re.split(r"\r\n|\n|\r", text):
        line = _GLUED.sub(" ", _QUOTE.sub("", raw))
        if line.rstrip().endswith("|"):
            line = line.rstrip("| \t")  # a table's right border
        if _RECORD.search(line):
            lines += _SECOND.split(line)
            record = len(lines) - 1
        elif record >= 0 and _continues(lines[record], line):
            lines[record] += _between(lines[record], line) + line.strip()
            lines.append("")
        else:
            record = -1
            lines.append(line)
    return "\n".join(lines)


def _are_replicas(numbers: str, record: str) -> bool:
    replicas = _REPLICAS.search(record)
    return replicas is not None and set(numbers.split(",")) <= set(replicas[1].split(","))


def _between(record: str, line: str) -> str:
    """Return what stood where a line was cut: labels follow a space, other things nothing."""
    if not _LABEL.match(line.strip()):
        return ""
    return " " if record.endswith((" Adding", "\tAdding", " Removing", "\tRemoving")) else "\t"


def _continues(record: str, line: str) -> bool:
    """Whether a line is the rest of a record of the tool, cut where a terminal ended."""
    rest = line.strip()
    if not rest or len(record) > _LONGEST:
        return False
    last_word = re.split(r"\s", record)[-1]
    if _CONFIGS.search(record):
        # Settings have no spaces; only this label can follow them.
        return not _NO_REST.match(rest) and not re.search(r"\s(?!MarkedForDeletion:)", rest)
    if _LABEL.match(rest) or _LABEL.match(last_word + rest):
        return True
    if not _LABEL.search(record):
        return False
    if _NUMBERS.match(rest):
        # After the last label numbers need not follow: these may be something else.
        return not _LAST_LABEL.search(record) or _are_replicas(rest, record)
    if _NO_REST.match(rest):
        return False
    needed_labels = _NEEDED if _NEEDED[0].search(record) else _NEEDED_OF_HEADER
    return not all(label.search(record) for label in needed_labels)
