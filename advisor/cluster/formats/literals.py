"""Read values as programs print them: JSON, Python, JavaScript, Java and Scala.

All of them write lists in brackets and objects as `key: value` or `key=value`. So one reader
suffices: `{'a': [1, None]}`, `{ a: [ 1, null ] }`, `Partition(topic = t, leader = 1)`,
`(error_code=0, topic='t')` and `{t=(name=t)}` all become lists, tables, texts and whole numbers. An
object that has a name, such as `Partition(...)`, has it under the key `""`.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from advisor.parsing import MOST_DEPTH

MOST_CHARACTERS = 4_000_000
_CONSTANTS = {
    "null": None,
    "None": None,
    "undefined": None,
    "nil": None,
    "true": True,
    "True": True,
    "false": False,
    "False": False,
}
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>[bu]?"(?:[^"\\]|\\.)*"|[bu]?'(?:[^'\\]|\\.)*')
      |(?P<open>[\[({])
      |(?P<close>[\])}])
      |(?P<comma>,)
      |(?P<equals>[=:](?!\s*[:=]))
      |(?P<word>[^\s,\[\](){}=:'"][^,\[\](){}=:'"\n]*)
    )""",
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"[": "]", "(": ")", "{": "}"}


class LiteralError(ValueError):
    """A text that is no value, and how far it could be read."""

    def __init__(self, message: str, position: int):
        super().__init__(message)
        self.position = position


def read_literal(text: str, start: int = 0) -> tuple[Any, int]:
    """Return the value that begins at a position, and the position after it."""
    if len(text) - start > MOST_CHARACTERS:
        raise LiteralError(f"it has more than {MOST_CHARACTERS:,} characters", start)
    reader = _Reader(text, start)
    value = reader.value(0)
    return value, reader.position


class _Reader:
    """A position in a text; each method reads one thing and moves on."""

    def __init__(self, text: str, position: int):
        self.text, self.position = text, position

    def fail(self, message: str) -> NoReturn:
        raise LiteralError(message, self.position)

    def next(self) -> tuple[str, str]:
        """Return kind and text of the next token, without moving."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            if self.text[self.position :].strip():
                self.fail("this is no value")
            self.fail("it is not closed")
        self.end = match.end()
        kind = str(match.lastgroup)
        return kind, match[kind]

    def take(self) -> tuple[str, str]:
        token = self.next()
        self.position = self.end
        return token

    def value(self, depth: int) -> Any:
        if depth > MOST_DEPTH:
            self.fail(f"nested more than {MOST_DEPTH} levels deep")
        kind, text = self.take()
        if kind == "open":
            return self.items(text, depth + 1)
        if kind == "string":
            return _unquoted(text)
        if kind != "word":
            self.fail(f"{text!r} stands where a value should")
        if self.position < len(self.text) and self.text[self.position] == "(":
            self.position += 1
            items = self.items("(", depth + 1)
            return {"": text, **items} if isinstance(items, dict) else {"": text, "items": items}
        return _scalar(text)

    def items(self, opened: str, depth: int) -> list[Any] | dict[str, Any]:
        """Read up to the closing bracket: a table if there are keys, otherwise a list."""
        values: list[Any] = []
        table: dict[str, Any] = {}
        needs_comma = False
        while True:
            kind, text = self.next()
            if kind == "close":
                if text != _CLOSES[opened]:
                    self.fail(f"{opened!r} is closed by {text!r}")
                self.position = self.end
                return table if table or (opened == "{" and not values) else values
            if kind == "comma":
                self.position = self.end
                needs_comma = False
                continue
            if needs_comma:
                self.fail("a comma is missing")
            self.item(values, table, depth)
            if table and values:
                self.fail("some values have a name and others have none")
            needs_comma = True

    def item(self, values: list[Any], table: dict[str, Any], depth: int) -> None:
        """Read one value, and its name if it has one."""
        value = self.value(depth)
        if self.next()[0] != "equals":
            values.append(value)
            return
        self.position = self.end
        key = "null" if value is None else str(value)
        if key in table:
            self.fail(f"the key {key[:80]!r} stands there twice")
        table[key] = self.value(depth)


def _scalar(word: str) -> Any:
    word = word.strip()
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if re.fullmatch(r"-?[0-9]{1,18}", word):
        return int(word)
    return word


def _unquoted(quoted: str) -> str:
    inner = quoted.lstrip("bu")[1:-1]
    return re.sub(r"\\(.)", r"\1", inner) if "\\" in inner else inner
