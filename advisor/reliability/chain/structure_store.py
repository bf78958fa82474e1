"""Chains on disk: which states a chain has is found out once for all processes of a user.

A file's name is a digest of everything that its content depends on: the question, and the sources
of the rooms that answer it. So nothing in the store is ever out of date, and what is no longer
asked for is removed as the store grows. ``ADVISOR_CHAINS`` names another folder; "off" keeps
nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.caches import cache_folder, is_private_file
from advisor.reliability.chain.state_selection import NominalRates
from advisor.reliability.failures.fault_processes import FaultEnvironment
from advisor.reliability.failures.mechanisms import Table
from advisor.reliability.partition.controller_policy import ChainConstants

Arrays = Mapping[str, NDArray[Any]]

FOLDER_VARIABLE, OFF = "ADVISOR_CHAINS", "off"
_FORMAT = "1"
# What a chain's states depend on.
_ROOMS = (
    "protocol/rules",
    "reliability/chain",
    "reliability/common_cause",
    "reliability/failures",
    "reliability/partition",
    "reliability/solver",
    "reliability/statespace",
)
# A smaller chain is explored as quickly as it is read.
_FEWEST_STATES = 50
_MOST_BYTES = 256 * 2**20
_ADVISOR = Path(__file__).resolve().parents[2]


def key_of(
    constants: ChainConstants, environment: FaultEnvironment, guides: tuple[NominalRates, ...]
) -> str:
    """The digest of a question, the same in every process; "" if the sources cannot be read."""
    sources = _sources()
    if not sources:
        return ""
    question = (
        *(_FORMAT, sources, _of_table(environment.table)),
        *(repr(getattr(constants, entry.name)) for entry in fields(constants)),
        *(repr(environment.racks), repr(sorted(environment.mechanisms)), repr(environment.voters)),
        *map(repr, guides),
    )
    return sha256("\n".join(question).encode()).hexdigest()


def load(key: str) -> Arrays | None:
    """The arrays of a chain; None if the store does not have it whole."""
    folder = _folder()
    if folder is None or not key:
        return None
    path = folder / f"{key}.npz"
    try:
        if not is_private_file(path):
            return None
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        os.utime(path)
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        return None
    return arrays


def save(key: str, states: int, arrays: Callable[[], Arrays]) -> None:
    """Keep the arrays of a chain; a folder that cannot be written to keeps nothing."""
    folder = _folder()
    if folder is None or not key or states < _FEWEST_STATES:
        return
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=folder, prefix="new-")
        new_file = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                stored: dict[str, Any] = {name: narrow(a) for name, a in arrays().items()}
                np.savez_compressed(file, **stored)
            new_file.replace(folder / f"{key}.npz")
        except BaseException:
            new_file.unlink(missing_ok=True)
            raise
        _forget_oldest(folder)


def narrow(array: NDArray[Any]) -> NDArray[Any]:
    """Integers in the fewest bytes that hold them; other arrays as they are.

    >>> narrow(np.array([0, 300])).dtype.name, narrow(np.array([-1, 9])).dtype.name
    ('int16', 'int8')
    """
    if array.dtype.kind != "i" or not array.size:
        return array
    return array.astype(np.min_scalar_type(min(int(array.min()), -int(array.max()) - 1)))


def text_as_array(value: object) -> NDArray[np.uint8]:
    """Names and other small things as bytes of JSON."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def text_of(array: NDArray[Any]) -> Any:
    """What `text_as_array` was given."""
    return json.loads(array.astype(np.uint8).tobytes())


def _folder() -> Path | None:
    folder_name = os.environ.get(FOLDER_VARIABLE, "")
    if folder_name == OFF:
        return None
    with suppress(OSError):
        return _made(folder_name)
    return None


@cache
def _made(folder_name: str) -> Path:
    return cache_folder("chains", folder_name)


@cache
def _sources() -> str:
    """The digest of all sources that a chain depends on; "" where they are no files."""
    digest = sha256()
    for room in _ROOMS:
        paths = sorted((_ADVISOR / room).rglob("*.py"))
        if not paths:
            return ""
        for path in paths:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(_ADVISOR)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


@lru_cache(maxsize=8)
def _of_table(mechanisms: Table) -> str:
    return sha256(repr(mechanisms.entries).encode()).hexdigest()


def _forget_oldest(folder: Path) -> None:
    """Remove the chains that were used longest ago once all of them take too much."""
    files = []
    for path in folder.glob("*.npz"):
        with suppress(FileNotFoundError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    size = sum(entry[1] for entry in files)
    for _, file_bytes, path in sorted(files):
        if size <= _MOST_BYTES:
            return
        path.unlink(missing_ok=True)
        size -= file_bytes
