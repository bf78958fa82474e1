"""The class path of a Kafka version, brought by Maven once and remembered."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from advisor.catalog import kafka_pom
from advisor.errors import AdvisorError

# What a scenario's `kafka=3.9` runs on: the last patch release of each line that is still run.
# 4.4.0 is the newest, but its tools are not published.
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
LEAST_JAVA = 17
_DOWNLOAD_WITHIN_S = 900


class BrokersUnavailableError(AdvisorError):
    """Real brokers cannot be run on this machine; the text says what is missing."""


@dataclass(frozen=True)
class Jars:
    """What it takes to start a Kafka of one release.

    Attributes
    ----------
    release : str
        Such as ``3.9.2``.
    java : str
        The ``java`` that starts it.
    class_path : str
    archive : Path
        Where the classes of a started broker are kept parsed, so that the next starts sooner.
    """

    release: str
    java: str
    class_path: str
    archive: Path

    @property
    def major(self) -> int:
        """3 or 4."""
        return int(self.release.split(".")[0])


def release_of(version: str) -> str:
    """The release that stands for a version: ``3.9`` is 3.9.2; a full one stands for itself.

    Raises
    ------
    BrokersUnavailableError
        If no release of that line is run here.
    """
    if re.fullmatch(r"\d+\.\d+\.\d+", version) and _line(version) in RELEASES:
        return version
    if version not in RELEASES:
        raise BrokersUnavailableError(
            f"real brokers are run from Kafka {next(iter(RELEASES))} to {list(RELEASES)[-1]}, "
            f"not {version}"
        )
    return RELEASES[version]


@lru_cache
def jars_of(version: str) -> Jars:
    """The jars of a version, fetched if they are not here yet.

    Raises
    ------
    BrokersUnavailableError
        Without Java 17, without Maven, or if Maven cannot bring the jars.
    """
    release = release_of(version)
    java = _java()
    folder = _cache() / release
    remembered = folder / "class-path.txt"
    class_path = remembered.read_text() if remembered.is_file() else ""
    if not class_path or not all(Path(jar).is_file() for jar in class_path.split(os.pathsep)):
        class_path = _fetched(release)
        folder.mkdir(parents=True, exist_ok=True)
        # Renamed into place: another process may be reading it.
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False) as written:
            written.write(class_path)
        Path(written.name).replace(remembered)
    return Jars(release, java, class_path, folder / "broker.jsa")


def _line(release: str) -> str:
    return ".".join(release.split(".")[:2])


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "kafka-replication-advisor"


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java or not Path(java).is_file():
        raise BrokersUnavailableError(
            f"no java was found: install Java {LEAST_JAVA} or newer, or set JAVA_HOME"
        )
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(\d+)', told)
    if found is None or int(found[1]) < LEAST_JAVA:
        raise BrokersUnavailableError(
            f"{java} is older than {LEAST_JAVA}: install Java {LEAST_JAVA} or newer, or set "
            "JAVA_HOME"
        )
    return java


def _fetched(release: str) -> str:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokersUnavailableError(
            f"Maven brings the jars of Kafka {release}, and no mvn was found: install Maven"
        )
    pom = kafka_pom()
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "class-path.txt"
        goal = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:build-classpath"
        given = [f"-Dkafka.version={release}", f"-Dmdep.outputFile={output}"]
        profile = f"-P{release.split('.')[0]}"
        try:
            done = subprocess.run(
                [maven, "-q", "-B", "-f", str(pom), profile, *given, goal],
                capture_output=True,
                text=True,
                check=False,
                timeout=_DOWNLOAD_WITHIN_S,
            )
        except subprocess.TimeoutExpired:
            raise BrokersUnavailableError(
                f"Maven did not bring Kafka {release} within {_DOWNLOAD_WITHIN_S} s"
            ) from None
        if done.returncode or not output.is_file():
            said = next((x for x in done.stdout.splitlines() if "ERROR" in x), "it gave no reason")
            raise BrokersUnavailableError(f"Maven could not bring Kafka {release}: {said}")
        return output.read_text().strip()
