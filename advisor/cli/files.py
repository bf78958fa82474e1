"""Where the command line may write: never over what is not its own."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from advisor.errors import InputError

_HTML = (b"<!doctype html", b"<html")


def checked_output(path: Path) -> Path:
    """Return the path of a report if it can be written there, before any work is done.

    Raises
    ------
    InputError
        It is a directory, a file that is no HTML, or in a place that is none or is read-only.
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


def write_new(folder: Path, files: Mapping[str, str]) -> None:
    """Write files into a folder, all or none, and none over another.

    Raises
    ------
    InputError
        One of them is there already, or the folder is none.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --files names a folder.")
    taken = sorted(name for name in files if (folder / name).exists())
    if taken:
        raise InputError(f"{folder / taken[0]} is there already and is not overwritten.")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".advisor-") as aside:
        for name, content in files.items():
            (Path(aside) / name).write_text(content, encoding="utf-8")
        for name in files:
            (Path(aside) / name).rename(folder / name)
