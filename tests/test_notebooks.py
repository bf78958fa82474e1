"""The notebooks as documents: stored with outputs, quiet, thin, and the same for everyone."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parent.parent / "notebooks").glob("*.ipynb"))
LONGEST_FUNCTION = 5


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return nbformat.read(request.param, as_version=4)


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_there_are_notebooks() -> None:
    """The tests below look at something."""
    assert NOTEBOOKS


def test_it_is_a_valid_notebook_for_any_python(notebook: nbformat.NotebookNode) -> None:
    """Valid format, and the kernel that every Jupyter has."""
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"


def test_it_was_run_from_top_to_bottom(notebook: nbformat.NotebookNode) -> None:
    """Counts go up by one and something is shown: the stored outputs belong to these cells."""
    counts = [cell.execution_count for cell in code_cells(notebook)]
    assert counts == list(range(1, len(counts) + 1))
    assert any(cell.outputs for cell in code_cells(notebook))


def test_it_is_quiet(notebook: nbformat.NotebookNode) -> None:
    """No errors, no warnings, and nothing that only one machine knows."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr"
            words = output.get("text", "") or output.get("data", {}).get("text/plain", "")
            assert not re.search(r"(^|\s)/(home|root|tmp|work|Users)/|\b0x[0-9a-f]{6,}", words)


def test_it_asserts_what_it_claims(notebook: nbformat.NotebookNode) -> None:
    """A notebook that runs has checked something."""
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
