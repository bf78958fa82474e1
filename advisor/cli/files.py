"""Write output files without overwriting unrelated ones."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from advisor.errors import InputError

_HTML = (b"<!doctype html", b"<html")


def check_output_path(path: Path) -> Path:
    """Check that a report can be written to a path, and return the path.

    Raises
    ------
    InputError
        If it is a directory, a file that is not HTML, or its parent is not a writable directory.
    """
    if path.is_dir():
        raise InputError(f"{path} is a directory; --output names the HTML file to write.")
    if path.exists():
        with path.open("rb") as file:
            start = file.read(64).lstrip().lower()
        if start and not start.startswith(_HTML):
            raise InputError(f"{path} is no HTML file and is not overwritten; name another.")
    parent = path.parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"{parent} is no directory that can be written to; name another --output.")
    return path


def write_new_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files to a folder, all or none, without overwriting.

    Raises
    ------
    InputError
        If one of them exists, or the folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --files names a folder.")
    existing = sorted(name for name in files if (folder / name).exists())
    if existing:
        raise InputError(f"{folder / existing[0]} is there already and is not overwritten.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".advisor-") as staging:
        for name, content in files.items():
            (Path(staging) / name).write_text(content, encoding="utf-8")
        for name in files:
            (Path(staging) / name).rename(folder / name)
