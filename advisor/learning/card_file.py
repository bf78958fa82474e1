"""A failure-model card as a TOML file, which `advisor.load_model` reads back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.errors import InputError
from advisor.files import check_target, read_input, replace_file
from advisor.reliability.failures.failure_model import FailureModel
from advisor.rendering import FileLines, file_lines, json_text, one_line

_FIRST_LINE = "# A card that advisor has learned."
_MOST_BYTES = 4_000_000


def check_card_path(path: str | os.PathLike[str]) -> Path:
    """Check that a card can be written to a path, and return the path.

    Raises InputError if it is not a regular file, is a file that this advisor did not write, or its
        folder does not exist.
    """
    target = check_target(path)
    if target.exists():
        try:
            start = read_input(target, _MOST_BYTES)
        except OSError:
            start = b"?"
        if start and not start.startswith(_FIRST_LINE.encode()):
            raise InputError(
                f"{path} is not a card that advisor has learned and is not overwritten; name "
                "another file."
            )
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a directory; name another file for the card.")
    return Path(path)


def write_card(path: str | os.PathLike[str], model: FailureModel, comments: Sequence[str]) -> None:
    """Write a card, with comments at its head.

    Raises InputError as `check_card_path`.
    """
    replace_file(check_card_path(path), card_text(model, comments))


def card_text(model: FailureModel, comments: Sequence[str]) -> FileLines:
    """Return the text of a card, with comments at its head."""
    head = [_FIRST_LINE, *(f"# {one_line(line)}" for line in comments), ""]
    return file_lines([*head, *_table("", model.to_dict())])


def _table(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    """Lines of a table: its own keys, then the tables in it."""
    inner = {key: value for key, value in table.items() if _is_table(name, value)}
    own = {key: value for key, value in table.items() if key not in inner}
    if name and own:
        yield f"[{name}]"
    for key, value in own.items():
        yield f"{key} = {_value(value)}"
    if own:
        yield ""
    for key, value in inner.items():
        yield from _table(f"{name}.{key}".lstrip("."), value)


def _is_table(parent: str, value: Any) -> bool:
    """Whether a value is a section, or a group of sections; numbers are tables in one line."""
    if not isinstance(value, Mapping):
        return False
    return not parent or all(isinstance(number, Mapping) for number in value.values())


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{key} = {_value(inner)}' for key, inner in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    # Texts and numbers are written as in JSON, but for what Python calls infinite.
    return json_text(value).text
