"""Locate the documents that ship with the package (`models/`, `data/`) and read the evidence.

In the source tree both directories are beside `advisor/`; in an installed wheel they are inside
it, in `advisor/_shipped/`. Cards are read in `advisor.reliability.failures.card`.
"""

import csv
import datetime
import difflib
import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from advisor.errors import InputError, ModelError, expect, shown

_LONGEST_PATH = 4096
_PACKAGE = Path(__file__).resolve().parent
_VERIFIED = ("primary", "secondary", "assumption")


@dataclass(frozen=True)
class Evidence:
    """One row of `data/failure_rates.csv`, whose columns `data/README.md` describes."""

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
    """Return the file of a failure-model card; a shipped name goes before a file of that name."""
    expect("name_or_path", name_or_path, str | Path, "the name or the path of a card")
    if not str(name_or_path).isprintable() or len(str(name_or_path)) > _LONGEST_PATH:
        raise ModelError(f"name_or_path={shown(name_or_path)}: this is neither a name nor a path.")
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
    """Return the path of a shipped data file or directory, such as `data_path("clusters")`."""
    root = data_dir()
    path = (root / relative).resolve()
    if not path.is_relative_to(root.resolve()) or not path.exists():
        raise InputError(f"no data file '{relative}' ships with advisor; look in {root}.")
    return path


@functools.cache
def evidence() -> Mapping[str, Evidence]:
    """Return the rows of `data/failure_rates.csv` by id (cached)."""
    return read_evidence(data_path("failure_rates.csv"))


def read_evidence(path: Path) -> Mapping[str, Evidence]:
    """Read a table of published rates into a mapping by id, in file order."""
    rows: dict[str, Evidence] = {}
    for where, cells in table_rows(path, Evidence):
        row = _evidence(cells, where)
        if row.id in rows:
            raise ModelError(f"{where}: the id '{row.id}' comes twice.")
        rows[row.id] = row
    return MappingProxyType(rows)


def table_rows(path: Path, row_type: type) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of a CSV file, each with its file and line, by the fields of a dataclass."""
    columns = [field.name for field in fields(row_type)]
    with path.open(encoding="utf-8", newline="") as lines:
        table = csv.reader(lines, strict=True)
        if next(table, None) != columns:
            raise ModelError(f"{path}:1: the columns must be {', '.join(columns)}.")
        for cells in filter(None, table):
            where = f"{path}:{table.line_num}"
            if len(cells) > len(columns):
                raise ModelError(
                    f"{where}: more fields than columns; quote a field that holds a comma."
                )
            if len(cells) < len(columns):
                missing = columns[len(cells)]
                raise ModelError(
                    f"{where}: the field '{missing}' is missing; every row has all columns."
                )
            yield where, dict(zip(columns, cells, strict=True))


def kafka_pom() -> Path:
    """Return the Maven project that downloads the jars of a real broker."""
    inside = _PACKAGE / "_shipped" / "kafka" / "pom.xml"
    return inside if inside.is_file() else _PACKAGE.parent / "tests" / "kafka" / "pom.xml"


def _shipped(name: str) -> Path:
    inside = _PACKAGE / "_shipped" / name
    return inside if inside.is_dir() else _PACKAGE.parent / name


def _evidence(cells: Mapping[str, str], where: str) -> Evidence:
    text: dict[str, Any] = {column: cell.strip() for column, cell in cells.items()}
    for column, cell in text.items():
        # An assumption has no address; its note gives the reasoning.
        optional = text["verified"] == "assumption" and column == "url"
        if not cell and not optional:
            raise ModelError(f"{where}: the field '{column}' is empty; every row needs it.")
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
    return Evidence(**{**text, "value": value, "low": low, "high": high, "year": year})
