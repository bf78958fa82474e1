"""Check output paths before long computations, and write data files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.errors import InputError
from advisor.files import check_target, read_input, replace_file
from advisor.parsing import MOST_JSON_CHARACTERS
from advisor.rendering import json_file

if TYPE_CHECKING:
    from advisor.advice import Audit

_HTML = (b"<!doctype html", b"<html")


def check_output_path(path: Path) -> Path:
    """Check that a report can be written to a path, and return the path.

    Raises InputError if the path is not a regular file, is a file that is not HTML, or its parent
        is not a writable directory.
    """
    if path.is_dir():
        raise InputError(f"{path} is a directory; --output names the HTML file to write.")
    target = check_target(path)
    if target.exists():
        with target.open("rb") as file:
            start = file.read(64).lstrip().lower()
        if start and not start.startswith(_HTML):
            raise InputError(f"{path} is not an HTML file and is not overwritten; name another.")
    parent = target.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"{parent} is not a writable directory; name another --output.")
    return path


def check_sarif_path(path: Path) -> Path:
    """Check that a SARIF file can be written to a path, and return the path.

    Raises InputError if the path is not a regular file, is a file that this advisor did not write,
        or its folder does not exist.
    """
    from advisor.advice.audits.sarif import is_own_log

    target = check_target(path)
    if target.exists():
        try:
            text = read_input(target, MOST_JSON_CHARACTERS).decode(errors="replace")
        except OSError:
            text = "too large, or not readable"
        if text and not is_own_log(text):
            raise InputError(
                f"{path} is not a SARIF file of this advisor and is not overwritten; name another."
            )
    if not target.parent.is_dir():
        raise InputError(f"{target.parent} is not a directory; name another file for --sarif.")
    return path


def read_baseline(path: Path) -> str:
    """Read the SARIF file of an accepted audit.

    Raises InputError if it cannot be read.
    """
    try:
        return read_input(path, MOST_JSON_CHARACTERS).decode(errors="replace")
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}. Write it with advisor audit --sarif, and "
            "accept what it says."
        ) from None


def write_sarif(path: Path, audit: Audit, source: str, accepted: str = "") -> None:
    """Write the findings of an audit as SARIF, with the lines of the file that was audited."""
    text = ""
    if os.path.isfile(source):
        text = Path(source).read_text(encoding="utf-8", errors="replace")
    replace_file(path, json_file(audit.to_sarif(text, accepted)))
