"""Output files: regular or new ones only, whole or not at all, several all or none."""

import errno
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from advisor.__main__ import main
from advisor.cli.commands import check_output_path
from advisor.errors import InputError
from advisor.files import replace_file, write_new_files
from advisor.rendering import FileLines, file_lines
from patience import PATIENCE_S

TWO = {"a.sh": file_lines(["first"]), "b.json": file_lines(["second"])}


def ended(work: Any, *arguments: Any) -> BaseException | None:
    """Run a function in a thread that may hang; return what it raised."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work(*arguments)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    assert not thread.is_alive(), "it hangs"
    return raised[0] if raised else None


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    """Neither the check nor the writing waits for a pipe, and the pipe stays."""
    pipe = tmp_path / "report.html"
    os.mkfifo(pipe)
    assert isinstance(ended(check_output_path, pipe), InputError)
    assert isinstance(ended(replace_file, pipe, b"x"), InputError)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert left(tmp_path) == ["report.html"]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/zero"])
def test_a_device_is_refused(device: str, tmp_path: Path) -> None:
    """A device, also behind a link, is neither read nor replaced."""
    link = tmp_path / "report.html"
    link.symlink_to(device)
    for path in (Path(device), link):
        assert isinstance(ended(check_output_path, path), InputError)
        assert isinstance(ended(replace_file, path, b"x"), InputError)
    assert stat.S_ISCHR(os.stat(device).st_mode)
    assert link.is_symlink()


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(tmp_path: Path, there: bool) -> None:
    """The target of a link is written; the link stays."""
    (tmp_path / "real").mkdir()
    target = tmp_path / "real" / "page.html"
    if there:
        target.write_text("<html>old")
        target.chmod(0o640)
    link = tmp_path / "link.html"
    link.symlink_to(target)
    check_output_path(link)
    replace_file(link, b"<html>new")
    assert link.is_symlink()
    assert target.read_text() == "<html>new"
    assert not there or stat.S_IMODE(target.stat().st_mode) == 0o640
    assert left(tmp_path / "real") == ["page.html"]


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    """A link to itself has no target."""
    link = tmp_path / "link.html"
    link.symlink_to(link)
    with pytest.raises(InputError):
        replace_file(link, b"x")


def test_the_file_is_on_the_disk_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An fsync of the file comes first, then the rename."""
    order: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def spied_fsync(descriptor: int) -> None:
        order.append("fsync")
        fsync(descriptor)

    def spied_replace(part: Path, target: Path) -> Path:
        order.append("rename")
        return replace(part, target)

    monkeypatch.setattr(os, "fsync", spied_fsync)
    monkeypatch.setattr(Path, "replace", spied_replace)
    replace_file(tmp_path / "page.html", b"text")
    assert order[:2] == ["fsync", "rename"]


@pytest.mark.parametrize("content", [b"x" * 10, FileLines("\ud800")])
def test_a_failure_leaves_the_old_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | FileLines
) -> None:
    """A full disk, or a text that is not Unicode, changes nothing."""

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if isinstance(content, bytes):
        monkeypatch.setattr(os, "fsync", full)
    (tmp_path / "page.html").write_text("old")
    with pytest.raises(InputError, match="cannot be written"):
        replace_file(tmp_path / "page.html", content)
    assert left(tmp_path) == ["page.html"]
    assert (tmp_path / "page.html").read_text() == "old"


@pytest.mark.parametrize("failing", range(4))
def test_several_files_are_written_all_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    """Whichever step fails, no file and no new folder is left."""
    calls = 0
    fsync, link = os.fsync, os.link

    def fails(real: Any) -> Any:
        def step(*arguments: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls - 1 == failing:
                raise FileExistsError(errno.EEXIST, "File exists")
            return real(*arguments)

        return step

    monkeypatch.setattr(os, "fsync", fails(fsync))
    monkeypatch.setattr(os, "link", fails(link))
    with pytest.raises(InputError):
        write_new_files(tmp_path / "new" / "deep", TWO)
    assert left(tmp_path) == []


def test_several_files_are_written(tmp_path: Path) -> None:
    """All files are there, nothing else, and none is written twice."""
    write_new_files(tmp_path / "new", TWO)
    texts = {name: content.text for name, content in TWO.items()}
    assert {p.name: p.read_text() for p in (tmp_path / "new").iterdir()} == texts
    (tmp_path / "new" / "a.sh").unlink()
    with pytest.raises(InputError, match=r"b\.json is there already"):
        write_new_files(tmp_path / "new", TWO)
    assert left(tmp_path / "new") == ["b.json"]


def test_a_dangling_link_is_not_overwritten(tmp_path: Path) -> None:
    """A name that is taken by a link without a target is taken."""
    (tmp_path / "a.sh").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="is there already"):
        write_new_files(tmp_path, TWO)
    assert left(tmp_path) == ["a.sh"]


KILLED = """
import os, signal, sys
import advisor.__main__ as command
from advisor import files
fsync = os.fsync
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGTERM)
command.advisor.invoke = lambda context: files.replace_file(sys.argv[1], b"text")
sys.exit(command.main(["cards"]))
"""


def test_a_terminated_command_leaves_no_part(tmp_path: Path) -> None:
    """SIGTERM while the file is written removes the temporary file."""
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "page.html")],
        capture_output=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 128 + signal.SIGTERM, done.stderr
    assert left(tmp_path) == []


def test_a_command_leaves_the_handling_of_signals_as_it_was() -> None:
    """A program that calls `main` is terminated as before."""
    before = signal.getsignal(signal.SIGTERM)
    assert main(["cards"]) == 0
    assert signal.getsignal(signal.SIGTERM) == before
