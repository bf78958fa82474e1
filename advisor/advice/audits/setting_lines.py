"""The lines of a description at which a topic and its settings stand, for code scanning.

A describe output has a topic and its settings in one line. In Terraform, YAML and resources a
setting has a line of its own, within the block of its topic: a resource, a document, an item of a
list, or what is indented below the topic's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

MIN_ISR, FACTOR, UNCLEAN = "min.insync.replicas", "replication.factor", "unclean"
_SETTINGS = {
    MIN_ISR: re.compile(r"min[._-]?in[._-]?sync[._-]?replicas", re.IGNORECASE),
    FACTOR: re.compile(r"^\W*(replication([._-]?factor)?|replicas)\W*[:=]", re.IGNORECASE),
    UNCLEAN: re.compile(r"unclean[._-]?leader[._-]?election", re.IGNORECASE),
}
_OF_CODE = {
    **dict.fromkeys(("KRA101", "KRA102", "KRA103", "KRA206"), MIN_ISR),
    **dict.fromkeys(("KRA201", "KRA202", "KRA203", "KRA204", "KRA205", "KRA304", "KRA306"), FACTOR),
    "KRA302": UNCLEAN,
}
_NAME = re.compile(r"[\w.-]+")
_RESOURCE = re.compile(r"\s*resource\b")
_ITEM = re.compile(r"( *)- ")
_DOCUMENT = "---"


def setting_of(code: str) -> str:
    """Return the setting that a finding is about; "" if it is none in particular."""
    return _OF_CODE.get(code, "")


@dataclass(frozen=True)
class Lines:
    """Where topics and their settings stand in a text, counted from 1.

    named: first line that names each topic.
    """

    text: tuple[str, ...]
    named: Mapping[str, int]

    @classmethod
    def read(cls, text: str, topics: Collection[str]) -> Lines:
        """Find the topics in a text."""
        lines = tuple(text.splitlines())
        first: dict[str, int] = {}
        names = set(topics)
        for number, line in enumerate(lines, 1):
            for name in names.intersection(_NAME.findall(line)):
                first.setdefault(name, number)
        for name in names - first.keys():
            number = _composed(name, lines)
            if number:
                first[name] = number
        return cls(lines, first)

    def of(self, topic: str, setting: str) -> int:
        """Return the line of a topic's setting; of its name, or 1, where it does not stand."""
        named = self.named.get(topic, 1)
        if setting not in _SETTINGS or topic not in self.named:
            return named
        start, end = self._block(named - 1)
        for number in range(start, end):
            if _SETTINGS[setting].search(self.text[number]):
                return number + 1
        return named

    def _block(self, named: int) -> tuple[int, int]:
        """Return the lines, counted from 0, of the block of a topic."""
        line = self.text[named]
        depth = _depth(line)
        if line.rstrip().endswith(":"):  # a table of topics: what follows is deeper
            return named, self._end(named, depth)
        for number in range(named, -1, -1):
            above = self.text[number]
            if _RESOURCE.match(above):
                return number, self._next(number, _RESOURCE.match)
            item = _ITEM.match(above)
            if item is not None and (number == named or len(item[1]) < depth):
                return number, self._end(number, len(item[1]))
            if above.rstrip() == _DOCUMENT or number == 0:
                return number, self._next(number, lambda other: other.rstrip() == _DOCUMENT)
        return named, named + 1

    def _end(self, start: int, depth: int) -> int:
        """The first line after a start that is not deeper."""
        return self._next(start, lambda other: bool(other.strip()) and _depth(other) <= depth)

    def _next(self, start: int, ends: Callable[[str], object]) -> int:
        for number in range(start + 1, len(self.text)):
            if ends(self.text[number]):
                return number
        return len(self.text)


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _composed(name: str, lines: tuple[str, ...]) -> int:
    """The line that gives a name its last part, where a tool puts it together from several."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        for start in range(len(parts) - length, -1, -1):
            key = re.escape(".".join(parts[start : start + length]))
            pattern = re.compile(rf"[\W]*name\W+{key}\W*", re.IGNORECASE)
            matches = [number for number, line in enumerate(lines, 1) if pattern.fullmatch(line)]
            if matches:
                return matches[-1]
    return 0
