"""The files and tests that `tests/conftest.py` lists by name are there."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "below"), [("SLOW", "tests"), ("LONGEST", ".")])
def test_what_is_listed_exists(name: str, below: str) -> None:
    """What was renamed would be tested late, or by `make check`, and no one would see."""
    spec = importlib.util.spec_from_file_location("schedule", ROOT / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    schedule = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(schedule)
    listed = getattr(schedule, name)
    assert len(set(listed)) == len(listed)
    assert [words for words in listed if not names_something(ROOT / below, words)] == []


def names_something(folder: Path, words: str) -> bool:
    """Whether there is such a file or folder, or a test of a file that begins so."""
    path, _, test = words.partition("::")
    files = list(folder.glob(f"{path}*"))
    return bool(files) and (not test or f"def {test}" in files[0].read_text(encoding="utf-8"))
