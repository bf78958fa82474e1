"""The notebooks as documents: stored with outputs, without warnings, thin, portable."""

import ast
import html
import re
import runpy
from pathlib import Path

import nbformat
import pytest
from nbconvert import HTMLExporter
from traitlets.config import Config

from advisor.protocol.rules.versions import NEWEST_KNOWN

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
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


def test_the_first_screen_answers_the_title(notebook: nbformat.NotebookNode) -> None:
    """A bold sentence, then what it says as a picture or table; long code is folded."""
    title, first = notebook.cells[:2]
    _, _, answer = title.source.partition("\n\n")
    assert answer.startswith("**")
    assert len(answer.split()) <= 90
    assert re.search("<svg|<table", first.outputs[0]["data"]["text/html"])
    assert "hide-input" in first.metadata.get("tags", []) or len(first.source.splitlines()) <= 6


def test_tables_say_what_they_lack(notebook: nbformat.NotebookNode) -> None:
    """No NaN, no <NA>, no bare tuple and no fraction of five digits is shown to a reader."""
    for cell in code_cells(notebook):
        for output in cell.outputs:
            page = output.get("data", {}).get("text/html", "")
            values = [html.unescape(text) for text in re.findall(r"<td[^>]*>(.*?)</td>", page)]
            for value in values:
                assert value not in ("NaN", "<NA>", "None")
                assert not re.fullmatch(r"\(.*\)", value)
                assert (
                    not re.fullmatch(r"(0\.0*)?[1-9]\.?\d{4,}(e-\d+)?", value) or "." not in value
                )


def pictures_without_words(page: str) -> list[str]:
    """Pictures of a page without a text of some words; those hidden from screen readers count."""
    # What a script draws is tested in a browser.
    page = re.sub(r"<script\b.*?</script>", "", page, flags=re.S)
    tags = re.findall(r"<(?:svg|img|canvas|object|embed|picture)\b[^>]*>", page)
    labels = {tag: re.search(r"\b(?:aria-label|alt)=([\"'])(.*?)\1", tag, re.S) for tag in tags}
    return [tag[:200] for tag, said in labels.items() if not said or len(said[2].split()) < 4]


def test_every_picture_has_alternative_text(notebook: nbformat.NotebookNode) -> None:
    """Stored pictures are HTML with words; an image of any other kind could not have them."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            assert not [kind for kind in data if kind.startswith("image/")]
            assert not pictures_without_words(data.get("text/html", ""))
        if cell.cell_type == "markdown":
            assert "![](" not in cell.source


def test_plots_are_shown() -> None:
    """A cell that calls `plot` or `plot_...` holds a picture."""
    drawn = [
        cell
        for path in NOTEBOOKS
        for cell in code_cells(nbformat.read(path, as_version=4))
        if re.search(r"\.plot\(|^plot_\w+\(", cell.source, re.M)
    ]
    assert len(drawn) >= 8
    for cell in drawn:
        pages = [output.get("data", {}).get("text/html", "") for output in cell.outputs]
        assert any("<svg" in page for page in pages), cell.source


def test_asserts_are_tagged_and_collapsed(notebook: nbformat.NotebookNode) -> None:
    """Readers see them on demand, in JupyterLab and in the documentation; no other cell has one."""
    code = code_cells(notebook)
    tagged = [cell for cell in code if "assert" in cell.metadata.get("tags", [])]
    assert [cell for cell in code if re.search(r"^\s*assert ", cell.source, re.M)] == tagged
    for cell in tagged:
        assert cell.metadata["jupyter"]["source_hidden"]
        assert "hide-input" in cell.metadata["tags"]
        assert not cell.outputs


def test_exported_pages_fold_asserts_and_describe_pictures(
    notebook: nbformat.NotebookNode,
) -> None:
    """What `nbconvert --to html` writes: checks behind a line, pictures with words, no address."""
    config = Config()
    runpy.run_path(
        str(ROOT / "jupyter_nbconvert_config.py"), init_globals={"get_config": lambda: config}
    )
    page, _ = HTMLExporter(config=config).from_notebook_node(notebook)
    body = page[page.index("<body") :]
    folded = re.findall(r"<details.*?</details>", body, re.S)
    asserts = sum("assert" in cell.metadata.get("tags", []) for cell in notebook.cells)
    words = [re.sub(r"<[^>]+>", "", text) for text in folded]
    assert len([text for text in words if "assert " in text]) == asserts > 0
    assert "assert " not in re.sub(
        r"<[^>]+>", "", re.sub(r"<details.*?</details>", "", body, flags=re.S)
    )
    assert "<svg" in body
    shown = [c for c in code_cells(notebook) if "hide-input" not in c.metadata.get("tags", [])]
    assert body.count("hl-ipython3") == len(shown)
    code = sum("hide-input" in c.metadata.get("tags", []) for c in code_cells(notebook)) - asserts
    assert len(re.findall(r"<summary>Code</summary>", body)) == code
    assert not pictures_without_words(body)


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
