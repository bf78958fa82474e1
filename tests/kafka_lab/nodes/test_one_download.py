"""Jars are brought once, whoever else wants them at the same time."""

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from advisor.kafka_lab.nodes.distribution import BrokersUnavailableError, class_path_of

# Takes its time, as a download does, and notes that it ran.
MAVEN = """#!/bin/sh
echo ran >> "$RUNS"
sleep 1
for word in "$@"; do
  case "$word" in -Dmdep.outputFile=*) echo "$JAR" > "${word#*=}";; esac
done
"""
ASK = """
import sys
from pathlib import Path
from advisor.kafka_lab.nodes.distribution import class_path_of
print(class_path_of("Kafka 0.0", Path("pom.xml"), [], Path(sys.argv[1])))
"""


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A slow `mvn` that brings one jar; return the file in which each of its runs leaves a line."""
    program, jar, runs = (tmp_path / name for name in ("mvn", "one.jar", "runs"))
    program.write_text(MAVEN)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    jar.write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("JAR", str(jar))
    monkeypatch.setenv("RUNS", str(runs))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return runs


def test_two_processes_and_two_threads_download_once(maven: Path, tmp_path: Path) -> None:
    """All four get the class path, and Maven ran once."""
    others = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    with ThreadPoolExecutor(2) as threads:
        asked = [
            threads.submit(class_path_of, "Kafka 0.0", Path("pom.xml"), [], tmp_path)
            for _ in range(2)
        ]
        own = [each.result() for each in asked]
    told = [process.communicate()[0].strip() for process in others]
    assert [*own, *told] == [str(tmp_path / "one.jar")] * 4
    assert maven.read_text() == "ran\n"


def test_jars_that_are_gone_are_brought_again(maven: Path, tmp_path: Path) -> None:
    """A class path is not believed once one of its jars is missing."""
    (tmp_path / "class-path.txt").write_text(str(tmp_path / "gone.jar"))
    assert class_path_of("Kafka 0.0", Path("pom.xml"), [], tmp_path) == str(tmp_path / "one.jar")
    assert maven.read_text() == "ran\n"


def test_without_maven_it_says_what_is_missing(
    maven: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No `mvn` on the path is one sentence."""
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BrokersUnavailableError, match=r"Kafka 0\.0, and no mvn was found"):
        class_path_of("Kafka 0.0", Path("pom.xml"), [], tmp_path)
    assert not maven.exists()
