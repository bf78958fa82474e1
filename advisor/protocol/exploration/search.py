"""Bounded breadth-first search of a state space, for invariant checking.

Independent of Kafka: the caller gives the initial state, the successor function and the invariant.
States are stored whole (not as hashes) and visited in order of distance, so paths are shortest and
counts are exact.

Sources: explicit-state model checking as in TLC (Yu, Manolios, Lamport, "Model checking TLA+
specifications", 1999); symmetry reduction by Ip and Dill ("Better verification through symmetry",
1996).
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Violation(Generic[S]):
    """A state that violates the invariant, and a shortest path to it.

    path: from the initial state to the violating one. With ``canonical``, every state but the
        initial one is the representative of its class; `retrace` recovers actual transitions.
    states: states visited, the initial one included.
    """

    path: tuple[S, ...]
    states: int

    @property
    def depth(self) -> int:
        """Transitions from the initial state to the violation."""
        return len(self.path) - 1


@dataclass(frozen=True, slots=True)
class Exhausted:
    """No violation found within the bounds.

    states: states visited, the initial one included.
    depth: all states within this number of transitions were visited.
    complete: whether all reachable states were visited.
    """

    states: int
    depth: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Survey(Generic[S]):
    """Count of all reachable states, and a shortest violation of each invariant.

    states: distinct states; with ``weight``, the sum of the weights.
    visited: states stored (fewer than ``states`` under symmetry reduction).
    depth: transitions to the furthest state.
    violations: bit of ``broken`` -> shortest path to a state that has it. Bits never seen are
        absent.
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
    max_depth: int | None = None,
    max_states: int | None = None,
    should_stop: Callable[[], bool] | None = None,
    canonical: Callable[[S], S] | None = None,
) -> Violation[S] | Exhausted:
    """Search for a shortest path to a state that violates an invariant.

    successors: yields the states that can follow a state. Their order decides which of several
        shortest paths is returned.
    violates: True for a violating state. Must not distinguish states that ``canonical`` merges.
    max_depth, max_states: stop after this number of transitions, or when this number of states was
        visited.
    should_stop: called after each transition; the search stops when it returns True.
    canonical: maps a state to the representative of its symmetry class.
    Returns ``Exhausted`` if no visited state violates the invariant.
    """
    walk = _Walk(initial, successors, canonical)
    with _garbage_collection_off():
        for _ in walk.levels(max_depth, max_states, stop=violates, should_stop=should_stop):
            pass
    if walk.stopped_at is not None:
        return Violation(walk.path_to(walk.stopped_at[0]), len(walk.parents))
    return Exhausted(len(walk.parents), walk.depth, walk.complete)


def survey(
    initial: S,
    successors: Callable[[S], Iterable[S]],
    *,
    broken: Callable[[S], int],
    canonical: Callable[[S], S] | None = None,
    weight: Callable[[S], int] | None = None,
) -> Survey[S]:
    """Visit every reachable state, without stopping at violations.

    initial, successors, canonical: as for `explore`. The state space must be finite.
    broken: bit mask of the invariants that a state violates; 0 for none.
    weight: number of distinct states that a representative stands for. Default 1.
    """
    walk = _Walk(initial, successors, canonical)
    first: dict[int, S] = {}
    known = states = 0
    with _garbage_collection_off():
        for level in walk.levels(None, None, stop=None):
            states += len(level) if weight is None else sum(map(weight, level))
            for state in level:
                new = broken(state) & ~known
                while new:
                    bit = new & -new
                    first[bit] = state
                    known |= bit
                    new ^= bit
    violations = {bit: walk.path_to(state) for bit, state in sorted(first.items())}
    return Survey(states, len(walk.parents), walk.depth, violations)


def retrace(
    path: tuple[S, ...],
    moves: Callable[[S], Iterable[tuple[A, S]]],
    canonical: Callable[[S], S],
) -> tuple[tuple[A, S], ...]:
    """Turn a path of representatives into labelled transitions between actual states.

    path: from `explore` or `survey`; its first state is used as it is.
    moves: yields (label, next state) of a state; the relation that was searched.
    canonical: maps a state to its representative, as in ``path``.
    Raises ValueError if no transition leads from one class to the next, so ``moves`` is a different
        relation.
    """
    state = path[0]
    steps = []
    for target in path[1:]:
        following = ((label, after) for label, after in moves(state) if canonical(after) == target)
        step = next(following, None)
        if step is None:
            raise ValueError(f"no move leads from {state!r} to the class of {target!r}")
        steps.append(step)
        state = step[1]
    return tuple(steps)


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


class _Walk(Generic[S]):
    """State of one search: every visited state with its predecessor on a shortest path."""

    def __init__(
        self,
        initial: S,
        successors: Callable[[S], Iterable[S]],
        canonical: Callable[[S], S] | None,
    ) -> None:
        self._first = initial
        self._successors = successors
        self._canonical = canonical
        start = initial if canonical is None else canonical(initial)
        self._start = start
        self.parents: dict[S, S] = {start: start}
        self.depth = 0
        self.complete = False
        self.stopped_at: tuple[S] | None = None

    def levels(
        self,
        max_depth: int | None,
        max_states: int | None,
        stop: Callable[[S], bool] | None,
        should_stop: Callable[[], bool] | None = None,
    ) -> Iterable[list[S]]:
        """Yield the states at distance 0, 1, 2, ..., up to a bound or a state with ``stop``."""
        level = [self._start]
        if stop is not None and stop(self._start):
            self.stopped_at = (self._start,)
            return
        yield level
        while max_depth is None or self.depth < max_depth:
            further = self._next_level(level, max_states, stop, should_stop)
            if further is None:
                return
            if not further:
                self.complete = True
                return
            self.depth += 1
            level = further
            yield level

    def _next_level(
        self,
        level: list[S],
        max_states: int | None,
        stop: Callable[[S], bool] | None,
        should_stop: Callable[[], bool] | None,
    ) -> list[S] | None:
        """States first reached from this level; None if the search stops within it."""
        parents, successors, canonical = self.parents, self._successors, self._canonical
        further: list[S] = []
        for state in level:
            following = successors(state)
            if canonical is not None:
                following = map(canonical, following)
            for after in following:
                if should_stop is not None and should_stop():
                    return None
                if max_states is not None and len(parents) >= max_states:
                    if after in parents:
                        continue
                    return None
                before = len(parents)
                parents.setdefault(after, state)
                if len(parents) == before:
                    continue
                further.append(after)
                if stop is not None and stop(after):
                    self.stopped_at = (after,)
                    return None
        return further

    def path_to(self, state: S) -> tuple[S, ...]:
        path = [state]
        while path[-1] != self._start:
            path.append(self.parents[path[-1]])
        path[-1] = self._first
        return tuple(reversed(path))
