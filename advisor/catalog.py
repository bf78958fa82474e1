"""Find and check the documents that ship with the package: `models/` and `data/`.

The source tree keeps both beside `advisor/`; an installed wheel carries them inside it, in
`advisor/_shipped/`. Nothing here reads a card's numbers: that is `advisor.reliability.failures.card`.
"""

import csv
import datetime
import difflib
import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType

from advisor.errors import InputError, ModelError

_PACKAGE = Path(__file__).resolve().parent
_VERIFIED = ("primary", "secondary", "assumption")


@dataclass(frozen=True)
class Evidence:
    """One row of `data/failure_rates.csv`: a number, and why anyone should believe it.

    Attributes
    ----------
    id
        What a card's `evidence` names.
    quantity
        What was counted; for a row that a card cites, the card's key (`broker.crash.per_year`).
    value, low, high
        The figure and its 95 % range, in `unit`.
    unit
        The last word of the card's key (`per_year`, `minutes`), or a unit in plain words.
    source, url, year, retrieved
        Who published it, where (empty for an assumption), when, and the day it was looked up
        (ISO date).
    verified
        "primary": read in the source itself; "secondary": read in a quotation or summary of it;
        "assumption": our judgement, no public figure was found.
    note
        How the figure follows from the source. `[id]` refers to another row.
    """

    id: str
    quantity: str
    value: float
    low: float
    high: float
    unit: str
    source: str
    url: str
    year: int
    retrieved: str
    verified: str
    note: str


def models_dir() -> Path:
    """Return the directory of the shipped failure-model cards (`*.toml`)."""
    return _shipped("models")


def data_dir() -> Path:
    """Return the directory of the shipped data (`failure_rates.csv`, `clusters/`)."""
    return _shipped("data")


def model_names() -> tuple[str, ...]:
    """Return the names of the shipped cards, sorted."""
    return tuple(sorted(path.stem for path in models_dir().glob("*.toml")))


def model_path(name_or_path: str | Path) -> Path:
    """Return the file of a card, given by the name of a shipped one or by a path.

    Parameters
    ----------
    name_or_path
        "three_az_cloud", or the path of a TOML file. A shipped name wins over a file so called.

    Raises
    ------
    ModelError
        Neither a shipped card nor a file.
    """
    names = model_names()
    if str(name_or_path) in names:
        return models_dir() / f"{name_or_path}.toml"
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.suffix == ".toml":
        raise ModelError(
            f"no file {path}: give the path of a failure-model card, or the name of one that "
            f"ships: {', '.join(names)}."
        )
    close = difflib.get_close_matches(str(name_or_path).replace("-", "_"), names, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    raise ModelError(
        f"no failure-model card is called '{name_or_path}'.{hint} These ship: {', '.join(names)}; "
        "or give the path of a .toml file."
    )


def data_path(relative: str | Path) -> Path:
    """Return a shipped data file or directory, as in `data_path("clusters")`.

    Raises
    ------
    InputError
        Nothing of that name ships, or the name leads out of `data/`.
    """
    root = data_dir()
    path = (root / relative).resolve()
    if not path.is_relative_to(root.resolve()) or not path.exists():
        raise InputError(f"no data file '{relative}' ships with advisor; look in {root}.")
    return path


@functools.cache
def evidence() -> Mapping[str, Evidence]:
    """Return the shipped evidence, `data/failure_rates.csv`, by id (read once)."""
    return read_evidence(data_path("failure_rates.csv"))


def read_evidence(path: Path) -> Mapping[str, Evidence]:
    """Read a table of published rates, in file order, by id.

    Raises
    ------
    ModelError
        A column or field is missing, an id comes twice, a number is impossible; names file:line.
    """
    rows: dict[str, Evidence] = {}
    columns = [field.name for field in fields(Evidence)]
    with path.open(encoding="utf-8", newline="") as lines:
        table = csv.DictReader(lines, strict=True)
        if table.fieldnames != columns:
            raise ModelError(f"{path}:1: the columns must be {', '.join(columns)}.")
        for cells in table:
            row = _evidence(cells, f"{path}:{table.line_num}")
            if row.id in rows:
                raise ModelError(f"{path}:{table.line_num}: the id '{row.id}' comes twice.")
            rows[row.id] = row
    return MappingProxyType(rows)


def kafka_pom() -> Path:
    """Return the Maven project that brings the jars of a real broker."""
    inside = _PACKAGE / "_shipped" / "kafka" / "pom.xml"
    return inside if inside.is_file() else _PACKAGE.parent / "tests" / "kafka" / "pom.xml"


def _shipped(name: str) -> Path:
    inside = _PACKAGE / "_shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def _evidence(cells: Mapping[str | None, str | None], where: str) -> Evidence:
    judged = (cells.get("verified") or "").strip() == "assumption"
    for column in fields(Evidence):
        # A judgement was published nowhere else; its note says what it rests on.
        if not (cells.get(column.name) or "").strip() and not (judged and column.name == "url"):
            raise ModelError(f"{where}: the field '{column.name}' is empty; every row needs it.")
    if None in cells:
        raise ModelError(f"{where}: more fields than columns; quote a field that holds a comma.")
    text = {key: (value or "").strip() for key, value in cells.items() if key}
    try:
        value, low, high = (float(text[key]) for key in ("value", "low", "high"))
        year = int(text["year"])
        datetime.date.fromisoformat(text["retrieved"])
    except ValueError as error:
        raise ModelError(f"{where}: {error}; see data/README.md for the columns.") from error
    if not 0 <= low <= value <= high < math.inf:
        raise ModelError(f"{where}: need 0 <= low <= value <= high, got {low}, {value}, {high}.")
    if text["verified"] not in _VERIFIED:
        raise ModelError(f"{where}: verified is '{text['verified']}', not one of {_VERIFIED}.")
    return Evidence(
        id=text["id"],
        quantity=text["quantity"],
        value=value,
        low=low,
        high=high,
        unit=text["unit"],
        source=text["source"],
        url=text["url"],
        year=year,
        retrieved=text["retrieved"],
        verified=text["verified"],
        note=text["note"],
    )
