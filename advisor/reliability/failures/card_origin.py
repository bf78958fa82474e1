"""Where a card comes from, and what an error about one of its keys says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass

from advisor.errors import ModelError


@dataclass(frozen=True)
class Origin:
    """Where a card comes from, to say in errors: a name, and the text if it was a file."""

    name: str
    text: str | None = None

    def error(self, path: str, problem: str) -> ModelError:
        """Return (not raise) the error for the key `path`, naming file, line and key."""
        line = _line_of(path, self.text) if self.text is not None else None
        where = self.name if line is None else f"{self.name}:{line}"
        # A stranger's key may hold a line break; an error stays one line.
        subject = f"{repr(path)[1:-1]} " if path else ""
        return ModelError(f"{where}: {subject}{problem}")


def nearest(word: str, known: Collection[str]) -> str:
    """Return the known word that is most like another, as a question; else all of them."""
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean '{close[0]}'?"
    return f"known are {', '.join(sorted(known))}."


def _line_of(path: str, text: str) -> int | None:
    """Return the line on which a card file sets `path`, or else what encloses it, from 1."""
    while path:
        section = ""
        for number, line in enumerate(text.splitlines(), start=1):
            header = re.match(r"\s*\[\s*([\w.\-]+)\s*\]", line)
            key = re.match(r"\s*([\w.\-]+)\s*=", line)
            if header:
                section = header[1]
            elif not key:
                continue
            name = ".".join(filter(None, (section, key[1] if key else "")))
            if f"{name}.".startswith(f"{path}."):
                return number
        path = path.rpartition(".")[0]
    return None
