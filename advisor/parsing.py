"""Texts that users give: numbers, TOML and JSON, with limits on depth and size."""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

MOST_DEPTH = 32
MOST_TOML_CHARACTERS = 4_000_000
MOST_JSON_CHARACTERS = 40_000_000
# Every dot of a key is a table in TOML, and tomllib takes the square of their number.
_MOST_DOTS = 32
_MOST_DIGITS = 19
_LONGEST_MESSAGE, _LONGEST_KEY = 200, 80


def whole_number(text: str, most: int = 2**63 - 1) -> int | None:
    """Return a whole number from 0 to `most`; None if the text is something else.

    >>> whole_number("042"), whole_number("-1"), whole_number("9" * 5000), whole_number("٣")
    (42, None, None, None)
    """
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text.lstrip("0") or "0"
    number = int(digits) if len(digits) <= _MOST_DIGITS else most + 1
    return number if number <= most else None


def read_toml(text: str) -> dict[str, Any]:
    """Parse TOML; a ValueError also if it is too long, or as `check_document` refuses it."""
    _check_length(text, MOST_TOML_CHARACTERS)
    for number, line in enumerate(text.split("\n"), start=1):
        if line.count(".") > _MOST_DOTS and not line.lstrip().startswith("#"):
            raise ValueError(f"more than {_MOST_DOTS} dots in line {number}")
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise ValueError("tables are nested too deep") from None
    except ValueError as error:
        raise ValueError(_short(error)) from None
    check_document(document)
    return document


def read_json(text: str) -> Any:
    """Parse JSON; a ValueError also as for `read_toml`, or if an object has a key twice."""
    _check_length(text, MOST_JSON_CHARACTERS)
    try:
        document = json.loads(text, object_pairs_hook=without_duplicates)
    except RecursionError:
        raise ValueError("objects are nested too deep") from None
    except ValueError as error:
        raise ValueError(_short(error)) from None
    check_document(document)
    return document


def without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs of an object as a table; twice the same key is a ValueError."""
    table = dict(pairs)
    if len(table) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"an object has the key {twice[:_LONGEST_KEY]!r} more than once")
    return table


def check_document(document: object) -> None:
    """Refuse data that is too deep, or has a number beyond 64 bits or half a surrogate pair."""
    left: list[tuple[object, int]] = [(document, 0)]
    while left:
        value, depth = left.pop()
        if depth > MOST_DEPTH:
            raise ValueError(f"nested more than {MOST_DEPTH} levels deep")
        if isinstance(value, Mapping):
            left.extend((key, depth) for key in value)
            left.extend((inner, depth + 1) for inner in value.values())
        elif isinstance(value, list):
            left.extend((inner, depth + 1) for inner in value)
        elif isinstance(value, str):
            if not is_unicode(value):
                raise ValueError("a text has half of a surrogate pair")
        elif isinstance(value, int) and abs(value) > 2**63:
            raise ValueError("a number has more digits than 64 bits hold")


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded, that is, has no unpaired surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_length(text: str, most: int) -> None:
    if len(text) > most:
        raise ValueError(f"it has more than {most:,} characters")


def _short(error: ValueError) -> str:
    """Return the message in one line; Python's on an integer of thousands of digits is replaced."""
    text = " ".join(str(error).split())
    if "integer string conversion" in text:
        return "a number has more digits than can be read"
    return text[:_LONGEST_MESSAGE]
