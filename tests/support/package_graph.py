"""The import graph of ``advisor``, read from its source without importing it."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "advisor").rglob("*.py"))

Graph = Mapping[str, frozenset[str]]


def module_name(path: Path) -> str:
    """Return the dotted name of a source file of this repository."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: str, module: str, is_package: bool = False) -> Iterator[str]:
    """Yield the dotted name of everything imported: at the top, in functions and by name."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            target = ".".join([*base, *([node.module] if node.module else [])])
            # `from advisor import protocol` names a room only in its last word.
            yield from (f"{target}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            name = node.func.id if isinstance(node.func, ast.Name) else name
            if name in {"import_module", "__import__"}:
                yield str(node.args[0].value)


def import_graph(sources: Mapping[str, tuple[str, bool]]) -> Graph:
    """Return the modules that each module imports; ``sources``: name to (text, is a package)."""
    graph = {}
    for module, (source, is_package) in sources.items():
        targets = {resolve(name, sources) for name in imports(source, module, is_package)}
        graph[module] = frozenset(target for target in targets if target and target != module)
    return graph


def resolve(name: str, modules: Mapping[str, object]) -> str:
    """Return the module that an imported name belongs to; "" where it is none of ``modules``."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def advisor_graph() -> Graph:
    """Return the import graph of the package in this checkout."""
    return import_graph(
        {module_name(path): (path.read_text(), path.name == "__init__.py") for path in MODULES}
    )


def cycles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected components of more than one node, each sorted (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(graph.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)


def floors(graph: Graph) -> int:
    """Return the number of nodes on the longest path of a graph without cycles."""
    heights: dict[str, int] = {}

    def height(node: str) -> int:
        if node not in heights:
            below = (height(target) for target in graph.get(node, ()))
            heights[node] = 1 + max(below, default=0)
        return heights[node]

    return max(map(height, graph))
