"""Files that users name: regular ones only, read up to a limit, written whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from advisor.errors import InputError
from advisor.rendering import FileText


def read_input(path: str | os.PathLike[str], most_bytes: int) -> bytes:
    """Return the content of a regular file, or of standard input for "-"; else an OSError."""
    if os.fspath(path) == "-":
        content = sys.stdin.buffer.read(most_bytes + 1)
    else:
        # Opening a pipe without a writer would wait for one.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, "it is a directory")
            if not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, "it is a device or a pipe; for a pipe, say -")
            content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"it has more than {most_bytes:,} bytes")
    return content


def check_target(path: str | os.PathLike[str]) -> Path:
    """Return the file that writing to a path changes, links followed; else an InputError."""
    try:
        target = Path(os.path.realpath(path))
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except (OSError, ValueError, TypeError) as error:
        raise _unwritable(path, error) from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a directory; name a file to write.")
    if not stat.S_ISREG(mode):
        raise InputError(f"{path} is a device or a pipe; name a regular file, or a new one.")
    if not os.access(target, os.W_OK):
        raise InputError(f"{path} is read-only; name another file.")
    return target


def replace_file(path: str | os.PathLike[str], content: FileText | bytes) -> None:
    """Write a file completely or not at all; an existing one is replaced and keeps its mode.

    Bytes are data of one's own, which no other program shows or runs.
    """
    target = check_target(path)
    part = None
    try:
        part = _written(target, content)
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
        _sync_folder(target.parent)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    finally:
        _remove(part)


def write_new_files(folder: Path, files: Mapping[str, FileText]) -> None:
    """Write new files to a folder, all or none."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file; --files names a folder.")
    for name in sorted(files):
        if os.path.lexists(folder / name):
            raise InputError(f"{folder / name} is there already and is not overwritten.")
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    parts: dict[Path, Path] = {}
    moved: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            parts[folder / name] = _written(folder / name, content)
        for target, part in parts.items():
            _move_to_new(part, target)
            moved.append(target)
        _sync_folder(folder)
    except BaseException as error:
        for path in (*moved, *parts.values()):
            _remove(path)
        for path in made:
            with suppress(OSError):
                path.rmdir()
        if isinstance(error, OSError | ValueError):
            raise _unwritable(folder, error) from None
        raise


def write_file(path: Path, content: FileText) -> None:
    """Write a file of this package's own programs, whole or torn; an existing one is replaced."""
    path.write_text(content.text, encoding="utf-8")


def _written(target: Path, content: FileText | bytes) -> Path:
    """Write a text, as UTF-8, beside its target, to the disk, and return the file."""
    part = target.parent / f".{target.name[:100]}.{secrets.token_hex(8)}.part"
    try:
        # The file is made here, so its mode follows the umask.
        with part.open("xb") as out:
            out.write(content if isinstance(content, bytes) else content.text.encode())
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        _remove(part)
        raise
    return part


def _move_to_new(part: Path, target: Path) -> None:
    """Rename a file; fail if the target has come into being meanwhile."""
    try:
        os.link(part, target)
    except FileExistsError:
        raise
    except OSError:
        # A file system without hard links.
        if os.path.lexists(target):
            raise
        part.rename(target)
        return
    part.unlink()


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder last, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _remove(path: Path | None) -> None:
    if path is not None:
        with suppress(OSError):
            path.unlink()


def _unwritable(path: object, error: Exception) -> InputError:
    why = getattr(error, "strerror", None) or "not a path, or a text that is not Unicode"
    return InputError(f"{path}: this cannot be written ({why}); name another place.")
