"""What the project's documents name exists, and their indexes are complete."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import advisor

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "DECISIONS.md",
    "GLOSSARY.md",
    "README.md",
    "data/README.md",
    "data/logs/README.md",
]
FOLDERS = ("advisor", "bench", "data", "models", "notebooks", "tests")
# A path below the top, or one of the package's rooms; a last `*` stands for any ending.
PATH = re.compile(rf"`((?:{'|'.join(FOLDERS)})/[\w./*-]*)`")


def missing(text: str) -> list[str]:
    """List the paths in backquotes that are not in the checkout."""
    paths = {match[1] for match in PATH.finditer(text)}
    return sorted(path for path in paths if not list(ROOT.glob(path.rstrip("/"))))


@pytest.mark.parametrize("name", DOCUMENTS)
def test_paths_in_documents_exist(name: str) -> None:
    """Every path that a document names is a file or folder of this checkout."""
    assert missing((ROOT / name).read_text(encoding="utf-8")) == []


def test_glossary_says_where() -> None:
    """Every term of the glossary names files or folders below `advisor/`."""
    text = (ROOT / "GLOSSARY.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    terms = [row for row in rows if not row.startswith("| term ")]
    assert len(terms) > 50
    for row in terms:
        places = re.findall(r"`([^`]+)`", row.split(" | ")[2])
        assert places, row
        assert [place for place in places if not (ROOT / "advisor" / place).exists()] == []


def test_a_missing_path_is_found() -> None:
    """A path of a file that is not there is reported, one that is there is not."""
    text = "`advisor/errors.py`, `tests/scenarios/l07-*`, `advisor/nothing.py`, `bench/x-*`"
    assert missing(text) == ["advisor/nothing.py", "bench/x-*"]


def test_decisions_are_numbered_dated_and_indexed() -> None:
    """Entries go by number and date, each is in its area's row, and no number is missing."""
    text = (ROOT / "DECISIONS.md").read_text(encoding="utf-8")
    head = r"^## (\d+)\. (.+)\n\n\*(\d{4}-\d\d-\d\d), ([^.*]+)\.\*"
    entries = re.findall(head, text, re.MULTILINE)
    assert len(entries) == text.count("\n## ") - 1  # the index
    assert [date for _, _, date, _ in entries] == sorted(date for _, _, date, _ in entries)
    rows = dict(re.findall(r"^\| ([a-z ]+) \| (.+) \|$", text, re.MULTILINE))
    replaced = rows.pop("replaced")
    assert rows.pop("area") == "decisions"
    indexed = [(area, entry) for area, row in rows.items() for entry in row.split("; ")]
    assert sorted(indexed) == sorted((area, f"{n} {title}") for n, title, _, area in entries)
    numbers = [int(number) for number, _, _, _ in entries]
    assert numbers == sorted(numbers)
    gone = {
        int(number): int(successor)
        for replaced_numbers, successor in re.findall(r"([\d, ]+) by (\d+)", replaced)
        for number in replaced_numbers.split(",")
    }
    assert set(gone.values()) <= set(numbers)
    assert sorted([*numbers, *gone]) == list(range(1, max(numbers) + 1))


def test_decisions_are_short() -> None:
    """Who reads a decision reads a few lines: the file stays below 60 kB."""
    assert (ROOT / "DECISIONS.md").stat().st_size <= 60_000


def test_one_version_and_one_licence() -> None:
    """Package, project file and citation name the same version and licence, which is here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert project["version"] == citation["version"] == advisor.__version__
    assert project["license"] == citation["license"] == "Apache-2.0"
    assert "Apache License Version 2.0" in " ".join((ROOT / "LICENSE").read_text().split())


def test_hooks_run_what_make_check_runs() -> None:
    """The hooks before a commit check style and types as `make check`, and download nothing."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [repo["repo"] for repo in hooks] == ["local"]
    assert [hook["entry"] for hook in hooks[0]["hooks"]] == ["make style", "make types"]
    # Types are one of the tests.
    assert re.search("^check: style$", (ROOT / "Makefile").read_text(), re.MULTILINE)
