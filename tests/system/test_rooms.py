"""The rooms inside the package: their order and what they import of each other."""

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from package_graph import MODULES, Graph, advisor_graph, cycles, floors, import_graph, module_name

GRAPH = advisor_graph()
PACKAGES = [path for path in MODULES if path.name == "__init__.py"]
LONGEST_OPENING = 10
MOST_FLOORS = {"protocol": 5, "reliability": 8}

# What every room may import of the package, beside itself.
SHARED = {"arguments", "caches", "errors", "catalog", "files", "formatting", "parsing", "plotting"}
SHARED |= {"engines", "progress", "rendering", "tables", "value_tables", "verdicts"}
RULES = "protocol.rules"

# Room: the rooms below `advisor` that it may import, itself and the shared modules aside.
PROTOCOL: Mapping[str, set[str]] = {
    "jvm": set(),
    "log": set(),
    "rules": {"protocol.jvm"},
    "simulation": {RULES, "protocol.log"},
    "scenario": {"protocol.simulation", RULES, "protocol.log"},
    "exploration": {"protocol.scenario", "protocol.simulation", RULES},
}
RELIABILITY: Mapping[str, set[str]] = {
    "workload": set(),
    "calendar": set(),
    "measure_table": {"reliability.partition"},
    "failures": {RULES},
    "solver": set(),
    "partition": {"reliability.solver", RULES},
    "statespace": {"reliability.partition", "reliability.failures", "reliability.solver", RULES},
    "common_cause": {
        "reliability.failures",
        "reliability.solver",
        "reliability.statespace",
        RULES,
    },
    "chain": {
        "reliability.common_cause.outage_class",
        "reliability.common_cause.struck_losses",
        "reliability.statespace",
        "reliability.partition",
        "reliability.failures",  # the table of mechanisms, which says what a rate's name stands for
        "reliability.solver",
    },
    "case": {
        "reliability.common_cause",
        "reliability.partition",
        "reliability.failures",
        "reliability.solver",
        RULES,
    },
    "results": {"reliability.failures", "reliability.common_cause", RULES},
    "measures": {
        "reliability.case",
        "reliability.chain",
        "reliability.results",
        "reliability.common_cause",
        "reliability.statespace",
        "reliability.partition",
        "reliability.failures",
        "reliability.solver",
        RULES,
    },
    "evaluate": {
        "reliability.case",
        "reliability.measures",
        "reliability.results",
        "reliability.common_cause",
        "reliability.failures",
        "reliability.solver",
        RULES,
    },
    "sampler": {
        "reliability.solver.jit",
        "reliability.case",
        "reliability.measures",
        "reliability.results",
        "reliability.common_cause",
        "reliability.statespace",
        "reliability.partition",
        "reliability.failures",
        RULES,
    },
    "patching_choices": {"reliability.failures", "reliability.results", RULES},
    "patching": {
        "reliability.evaluate",
        "reliability.failures",
        "reliability.patching_choices",
        "reliability.results",
        "reliability.sampler",
        RULES,
    },
}
LESSONS: Mapping[str, set[str]] = {
    "clients": {RULES},
    "leader_balance": {RULES},
    "schemes": {RULES, "protocol.log"},
    "specification": {"protocol.exploration.search"},
    "zookeeper": {RULES, "protocol.jvm"},
    "scheme_reliability": {
        "reliability.case",
        "reliability.chain",
        "reliability.common_cause",
        "reliability.evaluate",
        "reliability.failures",
        "reliability.measures",
        "reliability.partition",
        "reliability.results",
        "reliability.solver",
        "reliability.statespace",
        RULES,
        "lessons.schemes",
    },
}
RULES_OF = {"protocol": PROTOCOL, "reliability": RELIABILITY, "lessons": LESSONS}
# Small input types that every room may take that computes with `reliability/`.
INPUTS = {"reliability.workload", "reliability.calendar", "reliability.measure_table"}
FRONT_DOORS = {
    "evaluate",
    "workload",
    "calendar",
    "measure_table",
    "failures",
    "results",
    "common_cause.placement",
    "common_cause.copysets",
    "patching",
    "patching_choices",
    "sampler.plan",
    "sampler.plan_reader",
    "sampler.block",
    "sampler.methods",
    "sampler.estimators",
    "sampler.intervals",
}
VISITORS = {"decision", "advice", "learning", "present", "pipeline", "cli"}


def under(module: str, rooms: set[str]) -> bool:
    """Say whether a module is one of some rooms below `advisor`, or stands in one."""
    name = module.removeprefix("advisor.")
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def misplaced(graph: Graph) -> list[str]:
    """List the imports inside and from rooms with rules of their own that have no rule."""
    wrong = []
    for module, targets in graph.items():
        top, _, rest = module.removeprefix("advisor.").partition(".")
        if top not in RULES_OF or not rest:
            continue
        room = rest.split(".")[0]
        allowed = RULES_OF[top].get(room, set()) | SHARED | {f"{top}.{room}"}
        allowed |= set() if top == "protocol" else INPUTS
        wrong += [f"{module} imports {target}" for target in targets if not under(target, allowed)]
    return sorted(wrong)


def past_the_doors(graph: Graph) -> list[str]:
    """List the imports of `reliability/` from above it that go past its front doors."""
    doors = {f"reliability.{door}" for door in FRONT_DOORS}
    return sorted(
        f"{module} imports {target}"
        for module, targets in graph.items()
        for target in targets
        if under(module, VISITORS) and under(target, {"reliability"}) and not under(target, doors)
    )


def room_graph(graph: Graph, top: str) -> Graph:
    """Return the imports between the rooms of a top-level room."""
    prefix = f"advisor.{top}."
    rooms: dict[str, set[str]] = {}
    for module, targets in graph.items():
        if module.startswith(prefix):
            room = module.removeprefix(prefix).split(".")[0]
            inside = {name.removeprefix(prefix) for name in targets if name.startswith(prefix)}
            rooms.setdefault(room, set()).update(name.split(".")[0] for name in inside)
    return {room: frozenset(targets - {room}) for room, targets in rooms.items()}


def test_no_imports_go_in_a_circle() -> None:
    """No module imports itself through others, functions and type checking included."""
    assert cycles(GRAPH) == []


def test_rooms_import_what_their_rule_names() -> None:
    """Rooms inside the rooms above import what their rule names."""
    assert misplaced(GRAPH) == []


def test_every_room_has_a_rule() -> None:
    """A new room of `protocol/`, `reliability/` or `lessons/` must be given its place."""
    assert {top: set(room_graph(GRAPH, top)) for top in RULES_OF} == {
        top: set(rules) for top, rules in RULES_OF.items()
    }


@pytest.mark.parametrize("top", MOST_FLOORS)
def test_rooms_stand_on_few_floors(top: str) -> None:
    """The longest chain of rooms that import each other is short."""
    rooms = room_graph(GRAPH, top)
    assert cycles(rooms) == []
    assert floors(rooms) <= MOST_FLOORS[top]


def test_reliability_is_entered_by_its_front_doors() -> None:
    """Advice, plots, Spark and the command line import from `reliability/` its front doors only."""
    assert past_the_doors(GRAPH) == []


@pytest.mark.parametrize("path", PACKAGES, ids=module_name)
def test_packages_open_with_a_short_docstring(path: Path) -> None:
    """Every package says in at most ten lines what it is for."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert text not in {"", "To be described."}
    assert len(text.splitlines()) <= LONGEST_OPENING


def test_tests_mirror_the_rooms() -> None:
    """Tests of one room stand in a folder of its path, all others in a folder named below."""
    tests = MODULES[0].parents[1] / "tests"
    others = {"facts", "kafka", "scenarios", "support", "system"}
    folders = {path.parent.relative_to(tests) for path in tests.rglob("test_*.py")}
    rooms = {folder for folder in folders if folder.parts and folder.parts[0] not in others}
    assert len(rooms) > 10
    assert [room for room in rooms if not (MODULES[0].parent / room / "__init__.py").exists()] == []


MADE_UP = {
    "advisor.errors": ("", False),
    "advisor.plotting": ("", False),
    "advisor.protocol.rules.isr": ("from advisor import errors", False),
    "advisor.protocol.log.replica_log": ("", False),
    "advisor.protocol.simulation.step": ("from ..rules import isr", False),
    "advisor.reliability.workload": ("", False),
    "advisor.reliability.evaluate": ("from advisor.reliability import workload", False),
    "advisor.reliability.solver.generator": ("", False),
    "advisor.reliability.chain.ctmc": ("from advisor.reliability.solver import generator", False),
    "advisor.advice.search": ("from advisor.reliability.evaluate import evaluate", False),
}


def test_the_made_up_package_keeps_the_rules() -> None:
    """The package that the next tests break is in order before."""
    graph = import_graph(MADE_UP)
    assert graph["advisor.protocol.simulation.step"] == {"advisor.protocol.rules.isr"}
    assert (cycles(graph), misplaced(graph), past_the_doors(graph)) == ([], [], [])


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("advisor.protocol.rules.isr", "from advisor.protocol.simulation import step"),
        ("advisor.protocol.rules.isr", "def f():\n    from ..log import replica_log"),
        ("advisor.protocol.log.replica_log", "import advisor.protocol.rules.isr"),
        ("advisor.reliability.solver.generator", "from advisor.reliability import evaluate"),
        (
            "advisor.reliability.chain.ctmc",
            "if TYPE_CHECKING:\n    from advisor.reliability.evaluate import evaluate",
        ),
        ("advisor.reliability.chain.ctmc", "from advisor.protocol.rules import isr"),
        ("advisor.reliability.new_room.x", "from advisor.reliability.chain import ctmc"),
    ],
)
def test_an_import_without_a_rule_is_found(module: str, source: str) -> None:
    """Each import that a room's rule does not name is reported, wherever it is written."""
    assert len(misplaced(import_graph({**MADE_UP, module: (source, False)}))) == 1


@pytest.mark.parametrize("visitor", ["advice.search", "present.x", "pipeline.x", "cli.commands"])
def test_a_visitor_past_the_front_doors_is_found(visitor: str) -> None:
    """An import of the chain or the solver from above `reliability/` is reported."""
    source = "from advisor.reliability.chain import ctmc"
    graph = import_graph({**MADE_UP, f"advisor.{visitor}": (source, False)})
    assert past_the_doors(graph) == [f"advisor.{visitor} imports advisor.reliability.chain.ctmc"]


def test_a_circle_is_found() -> None:
    """A cycle of three modules is reported once, also where one import is inside a function."""
    graph = import_graph(
        {
            "advisor.a": ("from advisor import b", False),
            "advisor.b": ("def f():\n    from advisor.c import g", False),
            "advisor.c": ("from . import a, d", False),
            "advisor.d": ("", False),
        }
    )
    assert cycles(graph) == [["advisor.a", "advisor.b", "advisor.c"]]


def test_floors_are_counted() -> None:
    """The number of floors is the length of the longest chain of imports."""
    assert floors({"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset()}) == 3
