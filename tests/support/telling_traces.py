"""Find traces of faults that tell a broken rule from the right one.

`tests/system/test_telling_traces.py` keeps some of them. To find more, after a rule was added to
`MUTANTS`:

    python tests/support/telling_traces.py [name]

Random traces go through the reduction alone, thousands a second; those whose outcome differs are
made short and repeated beside the reference.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

from advisor.protocol.rules import controller
from advisor.reliability.partition import reduced_state as red
from advisor.reliability.partition.controller_policy import ChainConstants
from advisor.reliability.partition.transition_table import PartitionTransitionTable
from agreement_cluster import DivergedError, Move
from agreement_moves import TOGETHER
from agreement_search import RULES, configuration
from agreement_twin import Experiment

TRACES = 10_000
MOVES = 9
KEPT = 3
# Those that the reference knows.
OF_BROKERS = tuple(set(range(red.QUORUM_LOST)) - {red.EARLY_POWER})
Tables = dict["Case", PartitionTransitionTable]


class Mutant(NamedTuple):
    """A line that is changed, and the names that take the changed thing."""

    module: ModuleType
    line: str
    instead: str
    name: str
    taken_by: tuple[Any, ...]


MUTANTS = {
    "leader fenced last": Mutant(
        red, "return slot != on_record.leader,", "return slot == on_record.leader,",
        "Transition", (red,),
    ),
    "fenced in the reverse order": Mutant(
        red, "fallen.sort(key=self._decision_order)",
        "fallen.sort(key=self._decision_order, reverse=True)", "Transition", (red,),
    ),
    "cut off counts as an unclean stop": Mutant(
        red, "[DOWN_CLEAN if c == CUT_OFF", "[DOWN_UNCLEAN if c == CUT_OFF",
        "Transition", (red,),
    ),
    "a crash without a controller counts as clean": Mutant(
        red, "if event == CRASH and old == WAITING_CLEAN:", "if event == CRASH:",
        "Transition", (red,),
    ),
    "a clean stop that is not registered yet counts as unclean": Mutant(
        red, "if event == CRASH and old == WAITING_CLEAN:", "if False:",
        "Transition", (red,),
    ),
    "the operator waits for one electable replica only if all are down": Mutant(
        red, "if any(condition[slot] in DOWN for slot in electable)",
        "if all(condition[slot] in DOWN for slot in electable)",
        "operator_can_elect", (red,),
    ),
    "a new ZooKeeper controller removes replicas in the reverse order": Mutant(
        controller, "[b for b in order if b in dead]",
        "[b for b in reversed(order) if b in dead]",
        "controller_started", (controller,),
    ),
}  # fmt: skip


@contextmanager
def broken(mutant: Mutant) -> Iterator[None]:
    """Put the changed thing in the place of the right one."""
    assert mutant.module.__file__ is not None
    source = Path(mutant.module.__file__).read_text()
    assert source.count(mutant.line) == 1, mutant.line
    changed = vars(ModuleType(mutant.module.__name__))
    exec(compile(source.replace(mutant.line, mutant.instead), "changed", "exec"), changed)
    patches = [mock.patch.object(by, mutant.name, changed[mutant.name]) for by in mutant.taken_by]
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in patches:
            patch.stop()


class Case(NamedTuple):
    """A configuration's rules, replicas, min ISR, acks and unclean election; and what strikes."""

    rules: str
    replicas: int
    min_isr: int
    acks: str | int
    unclean: bool
    moves: tuple[Move, ...] = ()


def experiment_of(case: Case, **changes: Any) -> Experiment:
    """Return the case in both fidelities."""
    flags = {"page_cache": True, "tail": True, "apart": True, "quorum": True, **changes}
    return Experiment(configuration(*case[:5]), **flags)


def drawn(rng: random.Random, mode: str, tables: Tables) -> Case:
    """Return a configuration and moves that find something to strike."""
    rules = rng.choice([name for name, (_, own, _) in RULES.items() if own == mode])
    replicas, acks = rng.randint(2, 3), rng.choice(("all", "all", 1))
    case = Case(rules, replicas, rng.randint(1, replicas), acks, rng.random() < 0.2)
    table, number = _table_of(case, tables), 0
    moves = []
    for _ in range(MOVES):
        possible = _possible(table, number)
        event, slots = rng.choice(possible)
        others = [move.slots for move in possible if move.event == event in TOGETHER]
        slots = tuple(sorted({*slots, *rng.choice(others)})) if others else slots
        moves.append(Move(event, slots))
        number, _ = _step(table, number, moves[-1])
    return case._replace(moves=tuple(moves))


def _possible(table: PartitionTransitionTable, number: int) -> list[Move]:
    state = table.states[number]
    works = state.controller == red.CONTROLLER_WORKS
    # As often as failures, so that it is lost and back within a trace.
    of_quorum = [Move(red.QUORUM_LOST if works else red.QUORUM_BACK, (0,))] * table.replicas
    slots = range(table.replicas)
    pairs = [(event, slot) for event in OF_BROKERS for slot in slots]
    return of_quorum + [Move(e, (slot,)) for e, slot in pairs if red.applies(state, e, slot)]


def _step(table: PartitionTransitionTable, number: int, move: Move) -> tuple[int, red.Outcome]:
    """One move, and the operator's election if it is due."""
    number, outcome = table.step(number, *move)
    if red.operator_can_elect(table.states[number]):
        number, later = table.step(number, red.DECIDED, (0,))
        outcome = outcome.then(later)
    return number, outcome


def _table_of(case: Case, tables: Tables) -> PartitionTransitionTable:
    key = case._replace(moves=())
    if key not in tables:
        tables[key] = PartitionTransitionTable(_constants_of(key), case.replicas)
    return tables[key]


def outcomes(case: Case, tables: Tables) -> list[tuple[object, ...]]:
    """Return what the reduction says after each move, as far as the reference can tell."""
    table, number = _table_of(case, tables), 0
    said: list[tuple[object, ...]] = []
    for move in case.moves:
        number, outcome = _step(table, number, move)
        state = table.states[number]
        said.append((state.registration, state.level, outcome.losses, red.is_readable(state)))
    return said


@cache
def _constants_of(case: Case) -> ChainConstants:
    return experiment_of(case).constants


def is_held(case: Case) -> bool:
    """Whether both fidelities live through the moves and agree."""
    experiment = experiment_of(case)
    twin = experiment.start()
    for move in case.moves:
        if move not in experiment.moves(twin, together=True):
            return False
        try:
            twin = experiment.step(twin, move)
        except (AssertionError, DivergedError):
            return False
    return True


class Search:
    """Cases that tell one mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant
        self.right: Tables = {}
        self.wrong: Tables = {}

    def differing(self, cases: list[Case]) -> list[Case]:
        """Return the cases for which the broken rule changes what the reduction says."""
        right = [outcomes(case, self.right) for case in cases]
        with broken(self.mutant):
            wrong = [outcomes(case, self.wrong) for case in cases]
        return [case for case, *said in zip(cases, right, wrong, strict=True) if said[0] != said[1]]

    def shortened(self, case: Case) -> Case:
        """Return the case without the moves that it can do without."""
        for start in reversed(range(len(case.moves))):
            shorter = case._replace(moves=case.moves[:start] + case.moves[start + 1 :])
            case = (self.differing([shorter]) or [case])[0]
        return case

    def telling(self, seed: int = 1) -> list[Case]:
        """Return short random cases, one of each configuration, that the reference agrees with."""
        rng = random.Random(seed)
        mode = "zookeeper" if self.mutant.module is controller else "kraft"
        cases = [drawn(rng, mode, self.right) for _ in range(TRACES)]
        different = self.differing(cases)
        print(f"  {len(different)} of {TRACES} traces differ", flush=True)
        short = {self.shortened(case) for case in different[:60]}
        held: dict[Case, Case] = {}
        for case in sorted(short, key=lambda case: (len(case.moves), case[:2])):
            if case._replace(moves=()) not in held and is_held(case):
                held[case._replace(moves=())] = case
        return list(held.values())


def main() -> None:
    """Print cases for all mutants, or for one."""
    for name, mutant in MUTANTS.items():
        if name in (sys.argv[1:] or [name]):
            print(name)
            for case in Search(mutant).telling()[:KEPT]:
                print(" ", case[:5], *case.moves)


if __name__ == "__main__":
    main()
