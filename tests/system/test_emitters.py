"""What emits text takes rendered text; what mypy cannot see of that is checked in the source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from package_graph import MODULES, module_name

# Every function that prints or writes, and what it is given.
EMITTERS = {
    "advisor.cli.terminal.emit": "Terminal",
    "advisor.files.write_file": "FileText",
    "advisor.files._written": "FileText, or bytes that nothing shows or runs",
    "advisor.pipeline.java._write_executable": "ShellScript",
    "advisor.present.figures.chart.save": "a figure, by matplotlib",
    "advisor.present.figures.style.svg": "a figure, by matplotlib",
    "advisor.present.interactive.worker._give_way": "a number, to the operating system",
    "advisor.present.second_process.__init__": "pickled tasks, to a process of its own",
    "advisor.cluster.live.tls._load_keystore": "a key, for OpenSSL",
    "advisor.kafka_lab.nodes.distribution.class_path_of": "paths of jars, read back here only",
}
EMITTING = {"print", "echo", "secho", "write", "writelines", "write_text", "write_bytes", "savefig"}
TYPES = {"Terminal", "ShellWord", "ShellLine", "ShellScript", "Yaml", "Properties", "Json"}
TYPES |= {"FileLines", "Html"}
# Functions of `advisor/rendering.py` that take code as it stands in the source.
TEMPLATES = {"shell", "shell_lines", "markup"}
# Functions that take what another library has escaped, and the only modules that may call them.
TRUSTING = {
    "html_figure": "advisor.present.figures.style",
    "html_page": "advisor.present.report.page",
}
# Other modules may not escape, quote or dump by themselves.
ESCAPES = {"html", "shlex", "markupsafe"}
DUMPS = {
    "advisor.cluster.live.sasl": "a token, in base64",
    "advisor.learning.prometheus_api": "a server's answers, packed, to be read here again",
    "advisor.reliability.chain.structure_store": "what an array on disk is made of",
    "advisor.lessons.zookeeper.znodes": "the data of a simulated znode",
    "advisor.present.report.page": "what a digest is made of",
    "advisor.present.interactive.settings_grid": "what equal rows of a page are known by",
}
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
RENDERING = "advisor.rendering"


def scoped(tree: ast.AST, name: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Yield every node with the innermost function that it stands in."""
    for node in ast.iter_child_nodes(tree):
        inner = node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else name
        yield name, node
        yield from scoped(node, inner)


def called(node: ast.AST | None) -> str:
    """Return the name of a called function or method; "" for another node."""
    if not isinstance(node, ast.Call):
        return ""
    function = node.func
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""


def of_library(node: ast.AST) -> bool:
    """Whether a call is one of `json` or `yaml`, and not of `pickle`."""
    assert isinstance(node, ast.Call)
    function = node.func
    owner = function.value if isinstance(function, ast.Attribute) else None
    return not isinstance(owner, ast.Name) or owner.id in ("json", "yaml")


def emitters(source: str, module: str) -> list[str]:
    """List the functions of a module that print or write, by their full names."""
    return sorted(
        {
            f"{module}.{function}"
            for function, node in scoped(ast.parse(source))
            # A simulated client's `write` is no file's; that room does no I/O.
            if called(node) in EMITTING and not module.startswith("advisor.protocol.")
        }
    )


def constants(tree: ast.AST) -> set[str]:
    """Return the names that a source assigns, and only a literal text."""
    literal, other = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            names = {target.id for target in node.targets if isinstance(target, ast.Name)}
            is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            (literal if is_text else other).update(names)
    return literal - other


def is_literal(node: ast.expr, names: set[str]) -> bool:
    """Whether a template stands in the source, or in a file of the package."""
    if isinstance(node, ast.IfExp):
        return is_literal(node.body, names) and is_literal(node.orelse, names)
    if isinstance(node, ast.JoinedStr):
        return all(is_literal(part, names) for part in node.values)
    if isinstance(node, ast.FormattedValue):
        return is_literal(node.value, names)
    if isinstance(node, ast.Name):
        return node.id in names or CONSTANT.fullmatch(node.id) is not None
    return isinstance(node, ast.Constant) or called(node) == "source"


def unrendered(source: str, module: str) -> list[str]:
    """List what makes text for a target past `advisor/rendering.py`."""
    tree = ast.parse(source)
    names, wrong = constants(tree), []
    for function, node in scoped(tree):
        where = f"{module}.{function}:{getattr(node, 'lineno', 0)}"
        name = called(node)
        if name in TYPES:
            wrong.append(f"{where} makes a {name}")
        if name in TRUSTING and module != TRUSTING[name]:
            wrong.append(f"{where} calls {name}")
        if name in TEMPLATES:
            assert isinstance(node, ast.Call)
            if not is_literal(node.args[0], names):
                wrong.append(f"{where} has a template that is not in the source")
        if name in ("dumps", "dump") and of_library(node) and module not in DUMPS:
            wrong.append(f"{where} calls {name}")
        if isinstance(node, ast.Import | ast.ImportFrom):
            imported = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                imported = [node.module or ""]
            wrong += [f"{where} imports {each}" for each in imported if each in ESCAPES]
        if function == "_repr_html_" and isinstance(node, ast.Return):
            value = node.value.args[0] if called(node.value) == "str" else node.value
            if not (isinstance(value, ast.Attribute) and value.attr in ("text", "html")):
                wrong.append(f"{where} returns what is not rendered")
    return wrong


def sources() -> Iterator[tuple[str, str]]:
    for path in MODULES:
        yield Path(path).read_text(), module_name(path)


def test_only_the_emitters_print_and_write() -> None:
    """No other function prints, writes a file or saves a figure."""
    made = [name for source, module in sources() for name in emitters(source, module)]
    assert sorted(made) == sorted(EMITTERS)


def test_all_text_for_a_target_is_rendered() -> None:
    """Only `advisor/rendering.py` makes its types, quotes, escapes and dumps."""
    others = [(source, module) for source, module in sources() if module != RENDERING]
    assert len(others) == len(MODULES) - 1
    assert [line for source, module in others for line in unrendered(source, module)] == []


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return Terminal(x)",
        "def f(x):\n    return rendering.Html(x)",
        "def f(x):\n    return shell(x)",
        'def f(x):\n    return markup(f"<p>{x}</p>")',
        'def f(x):\n    words = "a"\n    words = x\n    return markup(words)',
        "def f(x):\n    return html_figure(x)",
        "import shlex",
        "from html import escape",
        "from markupsafe import Markup",
        "def f(x):\n    return json.dumps(x)",
        "def _repr_html_(self):\n    return f'<p>{self}</p>'",
    ],
)
def test_text_past_the_renderer_is_found(source: str) -> None:
    """Each way round `advisor/rendering.py` is reported once."""
    assert len(unrendered(source, "advisor.advice.made_up")) == 1


@pytest.mark.parametrize(
    "source",
    [
        'def f(x):\n    row = "<p>{}</p>"\n    return markup(row, html(x))',
        "def f(x):\n    return shell(_CODE, shell_word(x))",
        'def f(x):\n    return shell("{}={}" if x else "{} {}", a, b)',
        "def _repr_html_(self):\n    return html_table(self.rows).text",
    ],
)
def test_rendered_text_passes(source: str) -> None:
    """Templates of the source and rendered results are not reported."""
    assert unrendered(source, "advisor.advice.made_up") == []


@pytest.mark.parametrize(
    "call", ["print(x)", "click.echo(x)", "path.write_text(x)", "sys.stdout.write(x)"]
)
def test_an_emitter_is_found(call: str) -> None:
    """Each way to print or write is reported, with the function that it stands in."""
    assert emitters(f"def f(x):\n    {call}\n", "advisor.m") == ["advisor.m.f"]
