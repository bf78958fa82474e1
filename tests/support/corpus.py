"""The corpus of public outputs: its index, readings in a short form, and mutations of the texts."""

import random
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from advisor.cluster import Cluster, Partition, load_cluster
from advisor.cluster.broker_presence import presence_of
from advisor.errors import AdvisorError

FOLDER = Path(__file__).resolve().parents[1] / "cluster" / "corpus"


@dataclass(frozen=True)
class Entry:
    """One text of the index, with what is right."""

    file: str
    source: str
    taken_for: str = ""
    brokers: str = ""
    topics: tuple[str, ...] = ()
    kafka_version: str | None = None
    says: tuple[str, ...] = ()
    refused: str = ""
    wrapped: bool = False

    @property
    def path(self) -> Path:
        return FOLDER / self.file

    @property
    def text(self) -> str:
        content = self.path.read_bytes()
        return content.decode("utf-16" if content.startswith(b"\xff\xfe") else "utf-8-sig")


def entries() -> tuple[Entry, ...]:
    """Return the index."""
    rows = tomllib.loads((FOLDER / "index.toml").read_text(encoding="utf-8"))["text"]
    return tuple(
        Entry(
            file=row["file"],
            source=row["source"],
            taken_for=row.get("taken_for", ""),
            brokers=row.get("brokers", ""),
            topics=tuple(row.get("topics", ())),
            kafka_version=row.get("kafka_version"),
            says=tuple(row.get("says", ())),
            refused=row.get("refused", ""),
            wrapped=row.get("wrapped", False),
        )
        for row in rows
    )


def brokers_in_short(cluster: Cluster) -> str:
    """Return the brokers with their racks: "1=a 2"."""
    return " ".join(f"{b}={rack}" if rack else str(b) for b, rack in cluster.brokers.items())


def topics_in_short(cluster: Cluster) -> tuple[str, ...]:
    """Return each topic: "orders min ISR 2: 0:1/1,2/1"."""
    lines = []
    for topic in cluster.topics:
        rows = [
            f"{p.index}:{'none' if p.leader is None else p.leader}/{_ids(p.replicas)}/{_ids(p.isr)}"
            for p in topic.partitions
        ]
        lines.append(f"{topic.name} min ISR {topic.min_insync_replicas or '?'}: {' '.join(rows)}")
    return tuple(lines)


def _ids(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))


def refusal(text: str) -> str:
    """Return the one sentence with which a text is refused; "" if it is read."""
    read = _read(text)
    return read if isinstance(read, str) else ""


def read_or_refused(text: str) -> Cluster | None:
    """Return the cluster of a text; None if it is refused, which must be in one sentence."""
    read = _read(text)
    return None if isinstance(read, str) else read


def _read(text: str) -> Cluster | str:
    try:
        return load_cluster(text + "\n" if "\n" not in text else text)
    except AdvisorError as error:
        sentence = str(error)
    assert sentence.strip()
    assert "\n" not in sentence
    return sentence


# Sentences that say that something may be missing.
_CUT = r"may be cut|missing line|not in it"
_LOSS = r"may be|may not|not in it|was not read|stood there twice"


# A list of these is no list of lines: one may be gone without a trace.
_STRUCTURE = r"^(apiVersion|kind|services|controller|topics):|^Proposed "


def is_structured(text: str) -> bool:
    """Whether lines of a text are parts of values, so that one may be gone without a trace."""
    opens = sum(line.rstrip().endswith(("{", "[", "(")) for line in text.splitlines())
    begins = text.lstrip().startswith(("[", "{"))
    return opens >= 2 or begins or re.search(_STRUCTURE, text, re.MULTILINE) is not None


def mutated(
    draw: random.Random, text: str, others: list[str], wrapped: bool = False
) -> tuple[str, str, str]:
    """Return the name of a mutation, the mutated text, and the other text that it has parts of.

    Of a text whose lines are wrapped no line is taken or doubled: the rest of another would then
    follow, and nobody could tell.
    """
    kinds: list[Callable[[random.Random, str], str]] = [_cut, _wrap, _double]
    if not is_structured(text) and not wrapped:
        kinds += [_drop, _drop, _repeat, _cut_line, _cut_beginning]
    if draw.random() < 0.15:
        other = draw.choice(others)
        if not (wrapped or is_structured(other) or is_structured(text)):
            return "interleaved", _interleaved(draw, text, other), other
    kind = draw.choice(kinds)
    return kind.__name__.strip("_"), kind(draw, text), ""


def _cut(draw: random.Random, text: str) -> str:
    return text[: draw.randint(1, len(text))]


def _cut_beginning(draw: random.Random, text: str) -> str:
    return text[draw.randint(0, len(text) - 1) :]


def _drop(draw: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    start = draw.randrange(len(lines))
    del lines[start : start + draw.choice((1, 1, 2, 3))]
    return "".join(lines)


def _repeat(draw: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    start = draw.randrange(len(lines))
    piece = lines[start : start + draw.choice((1, 1, 2, 5))]
    at = draw.randint(0, len(lines))
    return "".join([*lines[:at], *piece, *lines[at:]])


def _double(_draw: random.Random, text: str) -> str:
    return text + text


def _cut_line(draw: random.Random, text: str) -> str:
    """Cut a line anywhere but in a list of brokers at its end: a shorter list leaves no trace."""
    lines = text.splitlines(keepends=True)
    at = draw.randrange(len(lines))
    list_begins = len(lines[at].rstrip("0123456789, |\n"))
    lines[at] = lines[at][: draw.randint(0, list_begins)].rstrip("\n") + "\n"
    return "".join(lines)


def _wrap(draw: random.Random, text: str) -> str:
    width = draw.choice((40, 60, 72, 79, 80, 100, 120))
    lines = []
    for line in (text.expandtabs() if draw.random() < 0.7 else text).split("\n"):
        pieces = [line[start : start + width] for start in range(0, len(line), width)] or [""]
        lines += [piece.rstrip() for piece in pieces] if draw.random() < 0.5 else pieces
    return "\n".join(lines)


def _interleaved(draw: random.Random, text: str, other: str) -> str:
    queues = [text.splitlines(keepends=True), other.splitlines(keepends=True)]
    lines = []
    while any(queues):
        queue = draw.choice([queue for queue in queues if queue])
        lines.append(queue.pop(0).rstrip("\n") + "\n")
    return "".join(lines)


def misreading(whole: list[Cluster], text: str) -> str:
    """Say what a mutated text is misread as; "" if it is read as it was, or the loss is said.

    Parameters
    ----------
    whole : list of Cluster
        What the texts that it was made of describe.
    text : str
    """
    read = read_or_refused(text)
    if read is None:
        return ""
    said = bool(read.part) or any(re.search(_LOSS, note) for note in read.notes)
    cut = any(re.search(_CUT, note) for note in read.notes)
    right = {
        (topic.name, _without_elr(partition))
        for cluster in whole
        for topic in cluster.topics
        for partition in topic.partitions
    }
    for topic in read.topics:
        for partition in topic.partitions:
            if (topic.name, _without_elr(partition)) not in right and not cut:
                return f"{topic.name}-{partition.index} is read as {partition}"
        numbers = {partition.index for partition in topic.partitions}
        lost = {p.index for name, p in right if name == topic.name} - numbers
        if min(lost, default=max(numbers)) < max(numbers) and not said:
            return f"partitions {lost} of {topic.name} are gone, and nothing is said"
        if not said and (wrong := _other_settings(dict(topic.configs), topic.name, whole)):
            return f"{wrong} of {topic.name} is wrong"
    brokers = {broker for cluster in whole for broker in cluster.brokers}
    if not brokers >= {*read.brokers}:
        return f"brokers {set(read.brokers) - brokers} are not in it"
    missing = {broker for cluster in whole for broker in presence_of(cluster).missing}
    concluded = {*presence_of(read).missing} - missing
    if concluded and not said:
        return f"brokers {concluded} are said to be in no ISR"
    names = {topic.name for topic in read.topics}
    for cluster in whole if len(whole) > 1 else ():
        if not names & {topic.name for topic in cluster.topics} and not said:
            return "one of two texts is gone, and nothing is said"
    return ""


def _without_elr(partition: Partition) -> Partition:
    """Without what an older tool does not print: a line may be cut before it."""
    return replace(partition, elr=None, last_known_elr=None)


def _other_settings(configs: dict[str, str], topic: str, whole: list[Cluster]) -> str:
    """Return a setting that no text has; a line may be cut in its value."""
    # A table of settings may not say of which topic it is, where two outputs are mixed.
    right = [
        described.configs
        for cluster in whole
        for described in cluster.topics
        if described.name == topic or len(whole) > 1
    ]
    for key, value in configs.items():
        if not any(settings.get(key, "").startswith(value) for settings in right):
            return f"{key}={value}"
    return ""


def try_mutations(seed: str, count: int) -> Iterator[tuple[str, str, str]]:
    """Yield the mutations of the texts that are misread: a name, what is wrong, and the text."""
    readable = [entry for entry in entries() if not entry.refused]
    whole = {entry.text: read_or_refused(entry.text) for entry in readable}
    files = {entry.text: entry.file for entry in readable}
    mixed = [entry.text for entry in readable if not entry.wrapped]
    for index in range(count):
        draw = random.Random(f"{seed}-{index}")
        entry = draw.choice(readable)
        kind, changed, other = mutated(draw, entry.text, mixed, entry.wrapped)
        clusters = [whole[entry.text], *([whole[other]] if other else [])]
        wrong = misreading([cluster for cluster in clusters if cluster is not None], changed)
        if wrong:
            names = " and ".join(files[part] for part in filter(None, (entry.text, other)))
            yield f"mutation {index} of seed {seed}, {kind}, {names}", wrong, changed
