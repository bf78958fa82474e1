"""Check the output file before minutes are spent on what goes in."""

from __future__ import annotations

import os
from pathlib import Path

from advisor.errors import InputError
from advisor.files import check_target

_HTML = (b"<!doctype html", b"<html")


def check_output_path(path: Path) -> Path:
    """Check that a report can be written to a path, and return the path.

    Raises
    ------
    InputError
        If it is no regular file, a file that is not HTML, or its parent is not a writable
        directory.
    """
    if path.is_dir():
        raise InputError(f"{path} is a directory; --output names the HTML file to write.")
    target = check_target(path)
    if target.exists():
        with target.open("rb") as file:
            start = file.read(64).lstrip().lower()
        if start and not start.startswith(_HTML):
            raise InputError(f"{path} is no HTML file and is not overwritten; name another.")
    parent = target.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"{parent} is no directory that can be written to; name another --output.")
    return path
