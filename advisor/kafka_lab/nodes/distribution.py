"""Class path of a Kafka release, resolved by Maven and cached."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from advisor.caches import cache_folder
from advisor.catalog import kafka_pom
from advisor.errors import AdvisorError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Latest patch release of each supported line. 4.4.0 is the newest, but its tools are not published.
RELEASES = {
    "3.4": "3.4.1",
    "3.5": "3.5.2",
    "3.6": "3.6.2",
    "3.7": "3.7.2",
    "3.8": "3.8.1",
    "3.9": "3.9.2",
    "4.0": "4.0.2",
    "4.1": "4.1.2",
    "4.2": "4.2.1",
    "4.3": "4.3.1",
}
MIN_JAVA = 17
_DOWNLOAD_TIMEOUT_S = 900


class BrokersUnavailableError(AdvisorError):
    """Real brokers cannot run on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Jars:
    """Java, class path and class-data-sharing archive of a Kafka release, such as ``3.9.2``."""

    release: str
    java: str
    class_path: str
    archive: Path

    @property
    def major(self) -> int:
        """Major version: 3 or 4."""
        return int(self.release.split(".")[0])


def release_of(version: str) -> str:
    """Return the release for a version: 3.9.2 for ``3.9``; a full version is returned as is."""
    if re.fullmatch(r"\d+\.\d+\.\d+", version) and _line(version) in RELEASES:
        return version
    if version not in RELEASES:
        raise BrokersUnavailableError(
            f"real brokers are run from Kafka {next(iter(RELEASES))} to {list(RELEASES)[-1]}, "
            f"not {version}"
        )
    return RELEASES[version]


@lru_cache
def jars_for(version: str) -> Jars:
    """Return the jars of a version, downloading them if needed."""
    release = release_of(version)
    java = _java()
    folder = cache_folder(release)
    options = [f"-Dkafka.version={release}", f"-P{release.split('.')[0]}"]
    class_path = class_path_of(f"Kafka {release}", kafka_pom(), options, folder)
    return Jars(release, java, class_path, folder / "broker.jsa")


def class_path_of(what: str, pom: Path, options: Sequence[str], folder: Path) -> str:
    """Return the class path of a Maven project, downloading its jars if needed.

    what: what it brings, for the error.
    folder: keeps the class path in a file.
    """
    cached = folder / "class-path.txt"
    class_path = _cached_class_path(cached)
    if class_path:
        return class_path
    with only_maven():
        class_path = _cached_class_path(cached)  # Another process may have brought them meanwhile.
        if not class_path:
            class_path = _resolve_class_path(what, pom, options)
            # Atomic rename: another process may be reading it.
            with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as written:
                written.write(class_path)
            Path(written.name).replace(cached)
    return class_path


def _cached_class_path(cached: Path) -> str:
    """Return the class path that a file keeps; empty unless all its jars are there."""
    class_path = cached.read_text() if cached.is_file() else ""
    return class_path if all(Path(jar).is_file() for jar in class_path.split(os.pathsep)) else ""


def only_maven() -> AbstractContextManager[None]:
    """Let one Maven at a time fill its folder of jars."""
    return only_process(cache_folder("maven") / "lock")


@contextmanager
def only_process(lock: Path) -> Iterator[None]:
    """Let one process, and one thread of it, at a time into what follows; the others wait."""
    with lock.open("a") as held:
        if fcntl is not None:
            fcntl.flock(held, fcntl.LOCK_EX)
        yield  # Closing the file releases it, and so does the end of the process.


def _line(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).is_file():
        raise BrokersUnavailableError(
            f"no java was found: install Java {MIN_JAVA} or newer, or set JAVA_HOME"
        )
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', output)
    if version is None or int(version[1]) < MIN_JAVA:
        raise BrokersUnavailableError(
            f"{java} is older than {MIN_JAVA}: install Java {MIN_JAVA} or newer, or set JAVA_HOME"
        )
    return java


def _resolve_class_path(what: str, pom: Path, options: Sequence[str]) -> str:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "class-path.txt"
        run_maven(what, pom, "build-classpath", [*options, f"-Dmdep.outputFile={output}"])
        if not output.is_file():
            raise BrokersUnavailableError(f"Maven brought {what} without a class path")
        return output.read_text().strip()


def run_maven(what: str, pom: Path, goal: str, options: Sequence[str]) -> None:
    """Run a goal of Maven's dependency plugin on a project, for 15 minutes at most."""
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokersUnavailableError(
            f"Maven brings the jars of {what}, and no mvn was found: install Maven"
        )
    full_goal = f"org.apache.maven.plugins:maven-dependency-plugin:3.6.1:{goal}"
    try:
        done = subprocess.run(
            [maven, "-q", "-B", "-f", str(pom), *options, full_goal],
            capture_output=True,
            text=True,
            check=False,
            timeout=_DOWNLOAD_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise BrokersUnavailableError(
            f"Maven did not bring {what} within {_DOWNLOAD_TIMEOUT_S} s"
        ) from None
    if done.returncode:
        reason = next((x for x in done.stdout.splitlines() if "ERROR" in x), "it gave no reason")
        raise BrokersUnavailableError(f"Maven could not bring {what}: {reason}")
