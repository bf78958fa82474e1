"""Where a card and its numbers come from, and what an error about one of its keys says."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from advisor.errors import ModelError, shown

OWN_EVIDENCE = "own:"
"""A card of the reader's own may say `evidence = "own: we counted 7 in 2 years"`."""


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


def check_evidence(cited: Mapping[str, str], origin: Origin, known: Collection[str]) -> None:
    """Refuse a number or distribution, by dotted path, whose evidence is missing or unknown."""
    for path, evidence in cited.items():
        if not evidence:
            raise origin.error(
                path,
                "has no evidence; say { value = .., low = .., high = .., evidence = .. } with an "
                'id of data/failure_rates.csv or evidence = "own: where the number comes from".',
            )
        own = evidence.startswith(OWN_EVIDENCE) and evidence[len(OWN_EVIDENCE) :].strip()
        if not own and evidence not in known:
            close = difflib.get_close_matches(evidence, known, n=1)
            hint = f"did you mean '{close[0]}'? Else" if close else "see data/README.md, or"
            raise origin.error(
                path,
                f"cites evidence {shown(evidence)}, which data/failure_rates.csv does not hold; "
                f'{hint} start it with "own:" and say where the number comes from.',
            )


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
