"""A few dozen results stay what they were, within what another C library may change."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The last bits depend on the platform's exp and log; a changed formula shows long before this.
RELATIVE = 1e-9


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    """Load the program that writes golden files; `bench/` is no package."""
    spec = importlib.util.spec_from_file_location("golden", ROOT / "bench" / "golden.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_results_are_those_of_the_golden_file(golden: ModuleType, root: Path) -> None:
    """Measures and causes of 63 settings equal `tests/facts/golden.json`."""
    before = json.loads((root / "tests" / "facts" / "golden.json").read_text())
    now = json.loads(json.dumps(golden.entries("small")))
    assert len(before) == 63
    assert list(golden.differences("", before, now, RELATIVE)) == []


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 * (1 + 1e-10)]}, 0),
        ({"a": [1.0, 2.0]}, {"a": [1.0, 2.0 * (1 + 1e-8)]}, 1),
        ({"a": 1.0}, {"a": float("inf")}, 1),
        ({"a": 1.0}, {"a": float("nan")}, 1),
        ({"a": 0.0}, {"a": 1e-300}, 1),
        ({"a": 1.0}, {"b": 1.0}, 2),
        ({"a": [1.0]}, {"a": [1.0, 1.0]}, 1),
        ({"a": "text"}, {"a": "words"}, 1),
    ],
)
def test_a_difference_is_found(golden: ModuleType, one: Any, other: Any, count: int) -> None:
    """Numbers beyond the tolerance, texts, and entries that came or went are each reported."""
    found = list(golden.differences("", golden.plain(one), golden.plain(other), RELATIVE))
    assert len(found) == count
