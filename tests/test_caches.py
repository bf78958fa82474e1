"""What is executed later is kept where only the user can write, and used only if it is whole.

The tests run as root on many machines, where modes stop nobody: files are given to another user.
"""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

from advisor.caches import cache_folder, cache_folders

ANOTHER_USER = 12345
NUMBA = f"numba-{numba.__version__}"
SMALL_KERNEL = """
from advisor.reliability.solver.jit import entry

def _count(numbers):
    return numbers.size

count = entry(_count, ())
"""


class Planted:
    """When it is unpickled, a file appears."""

    def __init__(self, hit: Path) -> None:
        self.hit = hit

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return os.mkdir, (str(self.hit),)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the cache that the user named, and set another one as his own."""
    named = tmp_path / "named"
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(named))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "own"))
    return named


@pytest.fixture
def load(tmp_path: Path, cache: Path) -> Callable[[], ModuleType]:
    """Return a function that loads a module with a small kernel as a new process would."""
    assert not cache.exists()
    source = tmp_path / "small_kernel.py"
    source.write_text(SMALL_KERNEL)

    def loaded() -> ModuleType:
        spec = importlib.util.spec_from_file_location("small_kernel", source)
        assert spec is not None
        assert spec.loader is not None
        sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return loaded


def run(load: Callable[[], ModuleType]) -> tuple[bool, Any]:
    """Count three numbers; return whether a kept kernel did it, and the kernel."""
    kernel = load().count
    was_kept = kernel.is_ready
    assert kernel(np.zeros(3)) == 3
    assert bool(kernel.compiled.stats.cache_hits) == was_kept
    return was_kept, kernel


def test_what_was_compiled_is_kept(cache: Path, load: Callable[[], ModuleType]) -> None:
    """The second process finds it, in files that only the user can read."""
    assert not run(load)[0]
    files = list((cache / NUMBA).iterdir())
    assert sorted(path.suffix for path in files) == [".nbc", ".nbi"]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (cache / NUMBA).stat().st_mode & 0o777 == 0o700
    assert run(load)[0]


def test_kernels_are_private_under_an_open_umask(load: Callable[[], ModuleType]) -> None:
    """A umask that lets everybody write does not make the next process compile again."""
    before = os.umask(0)
    try:
        assert not run(load)[0]
        assert run(load)[0]
    finally:
        os.umask(before)


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize("left", [0, 1, 20, -40, -1])
def test_a_torn_file_is_made_again(
    suffix: str, left: int, cache: Path, load: Callable[[], ModuleType]
) -> None:
    """Of an index or a kernel only the beginning is left, as after a power cut: it is compiled."""
    run(load)
    (path,) = (cache / NUMBA).glob(f"*{suffix}")
    whole = path.read_bytes()
    path.write_bytes(whole[:left])
    assert not run(load)[0]
    assert run(load)[0]


def test_a_changed_kernel_is_made_again(cache: Path, load: Callable[[], ModuleType]) -> None:
    """A block of zeros within the machine code, which can still be unpickled, is not executed."""
    run(load)
    (path,) = (cache / NUMBA).glob("*.nbc")
    content = path.read_bytes()
    middle = content.index(b"ELF") + 100 if b"ELF" in content else len(content) // 2
    path.write_bytes(content[:middle] + bytes(64) + content[middle + 64 :])
    assert not run(load)[0]
    assert run(load)[0]


def test_a_kernel_that_cannot_be_unpickled_is_made_again(
    cache: Path, load: Callable[[], ModuleType]
) -> None:
    """A whole file of the user's that names what no longer exists does not stop the sampler."""
    kernel = run(load)[1]
    (path,) = (cache / NUMBA).glob("*.nbc")
    kernel.compiled._cache._cache_file._save_data(path.name, np.float64)
    path.write_bytes(_signed(path.read_bytes().replace(b"float64", b"float65")[:-32]))
    renamed = load().count
    assert renamed(np.zeros(3)) == 3
    assert not renamed.compiled.stats.cache_hits
    assert run(load)[0]


def test_a_full_disk_does_not_stop_the_kernel(
    cache: Path, load: Callable[[], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be kept was compiled all the same."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert not run(load)[0]
    assert list((cache / NUMBA).iterdir()) == []


def _signed(content: bytes) -> bytes:
    return content + sha256(content).digest()


def _plant(folder: Path, hit: Path) -> None:
    """Replace all that is kept by files that are whole, and run a command when they are read."""
    evil = pickle.dumps(Planted(hit))
    version = pickle.dumps(numba.__version__, protocol=-1)
    for path in folder.iterdir():
        path.unlink()
        path.write_bytes((version if path.suffix == ".nbi" else b"") + _signed(evil))
        path.chmod(0o600)


def _give_away(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(path, ANOTHER_USER, ANOTHER_USER)


def test_what_is_planted_would_run(
    cache: Path, load: Callable[[], ModuleType], tmp_path: Path
) -> None:
    """The tests below can fail: the same files, if they are the user's, are read."""
    run(load)
    _plant(cache / NUMBA, tmp_path / "HIT")
    assert load().count(np.zeros(3)) == 3
    assert (tmp_path / "HIT").exists()


@pytest.mark.parametrize("suffix", [".nbi", ".nbc", ""])
def test_a_file_of_another_user_is_not_read(
    suffix: str, cache: Path, load: Callable[[], ModuleType], tmp_path: Path
) -> None:
    """In a folder that was open once, another user's files are removed and made again."""
    run(load)
    hit = tmp_path / "HIT"
    whole = {path: path.read_bytes() for path in (cache / NUMBA).iterdir()}
    _plant(cache / NUMBA, hit)
    for path, content in whole.items():
        if path.suffix == suffix or not suffix:
            _give_away(path)
        else:
            path.write_bytes(content)
    assert not run(load)[0]
    assert run(load)[0]
    assert not hit.exists()


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_can_write_is_not_read(
    mode: int, cache: Path, load: Callable[[], ModuleType], tmp_path: Path
) -> None:
    """The same for the user's files that others could have written."""
    run(load)
    _plant(cache / NUMBA, tmp_path / "HIT")
    for path in (cache / NUMBA).iterdir():
        path.chmod(mode)
    assert not run(load)[0]
    assert not (tmp_path / "HIT").exists()


def test_a_link_is_not_followed(
    cache: Path, load: Callable[[], ModuleType], tmp_path: Path
) -> None:
    """A kernel's name that leads to another file is removed; the other file stays."""
    run(load)
    _plant(cache / NUMBA, tmp_path / "HIT")
    for path in list((cache / NUMBA).iterdir()):
        target = path.rename(tmp_path / path.name)
        path.symlink_to(target)
    assert not run(load)[0]
    assert not (tmp_path / "HIT").exists()
    assert len(list(tmp_path.glob("small_kernel.count*"))) == 2


@pytest.mark.parametrize("inside", ["", NUMBA])
@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770, 0o702, None])
def test_a_folder_that_others_can_write_to_is_not_used(
    inside: str,
    mode: int | None,
    cache: Path,
    load: Callable[[], ModuleType],
    tmp_path: Path,
) -> None:
    """What is planted there does not run; the user's own cache is used, and a warning says so."""
    run(load)
    _plant(cache / NUMBA, tmp_path / "HIT")
    folder = cache / inside
    if mode is None:
        _give_away(folder)
    else:
        folder.chmod(mode)
    words = "belongs to another user" if mode is None else "others can write to"
    with pytest.warns(UserWarning, match=words):
        assert not run(load)[0]
    kept = tmp_path / "own" / "kafka-replication-advisor" / NUMBA
    assert sorted(path.suffix for path in kept.iterdir()) == [".nbc", ".nbi"]
    assert run(load)[0]
    assert not (tmp_path / "HIT").exists()


def test_a_folder_above_that_others_can_write_to(tmp_path: Path) -> None:
    """There others could put a folder of their own in its place, unless only owners may move it."""
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o777)
    with pytest.warns(UserWarning, match=f"others can write to {above}; say: chmod go-w"):
        assert not cache_folder("room", above / "cache").is_relative_to(above)
    above.chmod(0o1777)
    assert cache_folder("room", above / "cache") == above / "cache" / "room"


def test_a_folder_above_of_another_user(tmp_path: Path) -> None:
    """As when root runs with the home of another user, who can move what is in it."""
    home = tmp_path / "home"
    (home / ".cache").mkdir(parents=True)
    _give_away(home)
    environ = {"HOME": str(home)}
    with pytest.warns(UserWarning, match=f"{home} belongs to another user"):
        (folder,) = cache_folders("room", environ=environ)
    assert not folder.is_relative_to(tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700
    os.chown(home, os.geteuid(), os.getegid())
    assert next(cache_folders("room", environ=environ)) == (
        home / ".cache" / "kafka-replication-advisor" / "room"
    )


def test_a_link_to_a_cache_leads_to_the_folder_that_was_checked(tmp_path: Path) -> None:
    """A link that is changed afterwards changes nothing."""
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    assert cache_folder("room", tmp_path / "link") == tmp_path / "real" / "room"


@pytest.mark.parametrize("umask", [0, 0o077])
def test_folders_are_made_private(umask: int, tmp_path: Path) -> None:
    """Whatever the umask; those above it that were missing, too."""
    before = os.umask(umask)
    try:
        folder = cache_folder("a/b", tmp_path / "new" / "cache")
    finally:
        os.umask(before)
    assert folder == tmp_path / "new" / "cache" / "a" / "b"
    made = (folder, *folder.parents[:3])
    assert {path.stat().st_mode & 0o777 for path in made} == {0o700}


def test_a_file_in_the_way_leads_to_a_temporary_folder(tmp_path: Path) -> None:
    """Without any folder of the user's, one that goes with the process; without a warning."""
    (tmp_path / "file").write_text("")
    environ = {"XDG_CACHE_HOME": str(tmp_path / "file")}
    (folder,) = cache_folders("room", tmp_path / "file", environ)
    assert folder.name == "room"
    assert folder.is_dir()
    assert not folder.is_relative_to(tmp_path)
