"""Where this project keeps what it can make again: a folder that only its user can write to.

What is kept there is executed later: compiled kernels (unpickled), a start script, jars. Other
users who can write to the folder, or to one above it, could run commands as its user.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from advisor.progress import warn

_NAME = "kafka-replication-advisor"
# Windows has neither owners in numbers nor modes; a user's folders are his alone there.
_HAS_OWNERS = hasattr(os, "geteuid")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder(room: str, named: str | os.PathLike[str] = "") -> Path:
    """Return the first of `cache_folders` for this process's environment."""
    return next(cache_folders(room, named))


def cache_folders(
    room: str, named: str | os.PathLike[str] = "", environ: Mapping[str, str] | None = None
) -> Iterator[Path]:
    """Yield folders in the order to try; each can be written to by the user alone.

    The folder that the user named, the one in his cache (``XDG_CACHE_HOME``, else ``~/.cache``),
    and a temporary one. A folder that others could write to is left out, with a warning.
    """
    refusals = []
    for base in _bases(named, os.environ if environ is None else environ):
        try:
            top = Path(os.path.realpath(base))
            folder = top / room
            _make(folder)
            refusal = _refusal(top) or _refusal(folder)
            is_writable = os.access(folder, os.W_OK | os.X_OK)
        except (OSError, ValueError):
            continue
        if refusal:
            refusals.append(refusal)
        elif is_writable:
            _warn_of(refusals, folder)
            yield folder
    temporary = _temporary_folder() / room
    _make(temporary)
    _warn_of(refusals, temporary)
    yield temporary


def is_private_file(path: Path) -> bool:
    """Whether it is a regular file of the user's that others cannot write to."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return False
    is_own = not _HAS_OWNERS or status.st_uid == os.geteuid()
    return is_own and not (_HAS_OWNERS and status.st_mode & _OTHERS_WRITE)


def _bases(named: str | os.PathLike[str], environ: Mapping[str, str]) -> Iterator[Path]:
    if named:
        yield Path(named)
    if environ.get("XDG_CACHE_HOME"):
        yield Path(environ["XDG_CACHE_HOME"], _NAME)
        return
    with suppress(RuntimeError):  # without a home
        yield Path(environ.get("HOME") or Path.home(), ".cache", _NAME)


def _make(folder: Path) -> None:
    """Make a folder and those above it that are missing, whatever the umask."""
    for path in reversed((folder, *folder.parents)):
        with suppress(FileExistsError):
            if not path.is_dir():
                path.mkdir(mode=0o700)


def _refusal(folder: Path) -> str:
    """Say how other users could change what is in a folder, and what to do; "" if they cannot."""
    if not _HAS_OWNERS:
        return ""
    user = os.geteuid()
    for path in (folder, *folder.parents):
        status = path.lstat()
        is_above = path != folder
        if status.st_uid != user and not (is_above and status.st_uid == 0):
            return f"{path} belongs to another user (number {status.st_uid}); name another folder"
        writers = status.st_mode & _OTHERS_WRITE
        if is_above and status.st_mode & stat.S_ISVTX:
            writers = 0  # only owners rename or remove what is in it
        if is_above and _is_alone_in(status.st_gid):
            writers &= stat.S_IWOTH
        if writers:
            return f"others can write to {path}; say: chmod go-w '{path}'"
    return ""


def _is_alone_in(group: int) -> bool:
    """Whether a group has the user as its only member, as many systems set it up for each user."""
    import grp
    import pwd

    try:
        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    of_the_user = user.pw_gid == group and user.pw_name == members.gr_name
    return of_the_user and set(members.gr_mem) <= {user.pw_name}


@cache
def _warn_once(sentence: str) -> None:
    warn(sentence)


def _warn_of(refusals: list[str], instead: Path) -> None:
    for refusal in refusals:
        _warn_once(f"This cache is not used: {refusal}. Instead of it: {instead}.")
    refusals.clear()


@cache
def _temporary_folder() -> Path:
    folder = tempfile.mkdtemp(prefix=f"{_NAME}-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
