"""The files that `tests/conftest.py` lists by name are there."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(("name", "below"), [("SLOW", "tests"), ("LONGEST", ".")])
def test_listed_files_exist(name: str, below: str) -> None:
    """A file that was renamed would be tested late, or by `make check`, and no one would see."""
    spec = importlib.util.spec_from_file_location("schedule", ROOT / "tests" / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    schedule = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(schedule)
    listed = getattr(schedule, name)
    assert len(set(listed)) == len(listed)
    assert [path for path in listed if not any((ROOT / below).glob(f"{path}*"))] == []
