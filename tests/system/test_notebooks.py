"""The notebooks as documents: stored with outputs, without warnings, thin, portable."""

import ast
import html
import re
from pathlib import Path

import nbformat
import pytest

from advisor.protocol.rules.versions import NEWEST_KNOWN

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
LONGEST_FUNCTION = 5
WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks() -> None:
    """There are notebooks to test."""
    assert NOTEBOOKS


def test_it_is_a_valid_notebook_for_any_python(notebook: nbformat.NotebookNode) -> None:
    """The format is valid, and the kernel is one that every Jupyter has."""
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"


def test_it_was_run_from_top_to_bottom(notebook: nbformat.NotebookNode) -> None:
    """Counts go up by one and something is shown: the stored outputs belong to these cells."""
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert any(cell.outputs for cell in code_cells(notebook))


def test_it_is_quiet(notebook: nbformat.NotebookNode) -> None:
    """No errors, no warnings, and no names or paths of one host."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"
            words = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            assert not re.search(r"(^|\s)/(home|root|tmp|work|Users)/|\b0x[0-9a-f]{6,}", words)


def test_it_asserts_what_it_claims(notebook: nbformat.NotebookNode) -> None:
    """Each notebook contains assertions."""
    asserts = [
        node
        for cell in code_cells(notebook)
        for node in ast.walk(ast.parse(cell.source))
        if isinstance(node, ast.Assert)
    ]
    assert len(asserts) >= 3


def test_prose_comes_before_code(notebook: nbformat.NotebookNode) -> None:
    """It begins with a title, and no function in it is long."""
    assert notebook.cells[0].cell_type == "markdown"
    assert notebook.cells[0].source.startswith("# ")
    for cell in code_cells(notebook):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION


def test_tables_say_what_they_lack(notebook: nbformat.NotebookNode) -> None:
    """No NaN, no <NA>, no bare tuple and no fraction of five digits is shown to a reader."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            page = output.get("data", {}).get("text/html", "")
            values = [html.unescape(text) for text in re.findall(r"<td>(.*?)</td>", page)]
            for value in values:
                assert value not in ("NaN", "<NA>", "None")
                assert not re.fullmatch(r"\(.*\)", value)
                assert (
                    not re.fullmatch(r"(0\.0*)?[1-9]\.?\d{4,}(e-\d+)?", value) or "." not in value
                )


def test_controls_work_on_pages_without_a_kernel() -> None:
    """The explorer is stored as HTML with its own data, small, and not as a widget."""
    stored = [
        output.data
        for path in NOTEBOOKS
        for cell in code_cells(nbformat.read(path, as_version=4))
        for output in cell.outputs
        if "advisor-explorer" in output.get("data", {}).get("text/html", "")
    ]
    assert stored
    for data in stored:
        assert WIDGET not in data
        assert '<script type="application/json">' in data["text/html"]
        assert len(data["text/html"]) < 300_000


def test_the_versions_told_are_the_versions_known() -> None:
    """Prose that names the newest Kafka names the newest one that the model knows."""
    prose = " ".join(
        cell.source
        for path in NOTEBOOKS
        for cell in nbformat.read(path, as_version=4).cells
        if cell.cell_type == "markdown"
    )
    assert re.findall(r"from 0\.8\.0 to ([0-9.]+[0-9])", prose) == [NEWEST_KNOWN]
