"""Breadth-first search of a state space: shortest paths to violations, and exact counts.

The caller gives the initial state, the successor function and the invariants. States are stored
whole, not as hashes. Source: explicit-state model checking as in TLC (Yu, Manolios, Lamport, "Model
checking TLA+ specifications", 1999).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Violation(Generic[S]):
    """A shortest path from the initial state to one that violates the invariant."""

    path: tuple[S, ...]


@dataclass(frozen=True, slots=True)
class Exhausted:
    """No violation found.

    states: states visited, the initial one included.
    depth: all states within this number of transitions were visited.
    """

    states: int
    depth: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Survey(Generic[S]):
    """Count of all reachable states, and a shortest violation of each invariant.

    states: sum of the weights of the states visited.
    depth: transitions to the furthest state.
    violations: bit of ``broken`` -> shortest path to a state that has it.
    """

    states: int
    visited: int
    depth: int
    violations: Mapping[int, tuple[S, ...]]


def explore(
    initial: S,
    successors: Callable[[S], Iterable[S]],
    *,
    violates: Callable[[S], bool],
    should_stop: Callable[[], bool] = lambda: False,
) -> Violation[S] | Exhausted:
    """Search for a shortest path to a state that violates an invariant.

    successors: their order decides which of several shortest paths is returned.
    should_stop: called after each transition.
    """
    if violates(initial):
        return Violation((initial,))
    parents = {initial: initial}
    level, depth = [initial], 0
    with _garbage_collection_off():
        while level:
            further: list[S] = []
            for state in level:
                for after in successors(state):
                    if should_stop():
                        return Exhausted(len(parents), depth, complete=False)
                    if not _is_new(after, state, parents):
                        continue
                    if violates(after):
                        return Violation(_path_to(after, parents))
                    further.append(after)
            level, depth = further, depth + bool(further)
    return Exhausted(len(parents), depth, complete=True)


def survey(
    initial: S,
    successors: Callable[[S], Iterable[S]],
    *,
    broken: Callable[[S], int],
    weight: Callable[[S], int],
) -> Survey[S]:
    """Visit every reachable state, without stopping at violations.

    broken: bit mask of the invariants that a state violates; 0 for none.
    weight: number of distinct states that a state stands for.
    """
    parents = {initial: initial}
    first: dict[int, S] = {}
    level, depth, states, reported = [initial], 0, 0, 0
    with _garbage_collection_off():
        while level:
            states += sum(map(weight, level))
            for state in level:
                new = broken(state) & ~reported
                while new:
                    bit = new & -new
                    first[bit] = state
                    reported |= bit
                    new ^= bit
            further: list[S] = []
            for state in level:
                for after in successors(state):
                    if _is_new(after, state, parents):
                        further.append(after)
            level, depth = further, depth + bool(further)
    violations = {bit: _path_to(state, parents) for bit, state in sorted(first.items())}
    return Survey(states, len(parents), depth, violations)


def _is_new(after: S, before: S, parents: dict[S, S]) -> bool:
    """Remember how a state was first reached; hashes it only once, which takes most of the time."""
    states_before = len(parents)
    parents.setdefault(after, before)
    return len(parents) > states_before


def _path_to(state: S, parents: Mapping[S, S]) -> tuple[S, ...]:
    path = [state]
    while parents[path[-1]] != path[-1]:
        path.append(parents[path[-1]])
    return tuple(reversed(path))


@contextmanager
def _garbage_collection_off() -> Iterator[None]:
    """Disable cyclic garbage collection: states hold no cycles, and each pass scans them all."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
