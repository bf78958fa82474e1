"""Breadth-first search of everything that can happen, up to a stated bound.

The search knows nothing of Kafka: it is given a first state, the function that lists what can
follow a state, and what must not happen. States are remembered whole and seen in the order of
their distance, so that a path found is a shortest one and a count is exact.

Sources: the method is that of TLC (Yu, Manolios, Lamport, "Model checking TLA+ specifications",
1999); merging symmetric states, that of Ip and Dill ("Better verification through symmetry", 1996).
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
class Found(Generic[S]):
    """A state that must not be, and a shortest way to it.

    Attributes
    ----------
    path : tuple
        From the first state to the violating one. With ``canonical`` each but the first is the
        representative of its class; ``retrace`` turns them into states that follow each other.
    states : int
        States seen until then, the first included.
    """

    path: tuple[S, ...]
    states: int

    @property
    def depth(self) -> int:
        """Transitions from the first state to the violation."""
        return len(self.path) - 1


@dataclass(frozen=True, slots=True)
class Exhausted:
    """Nothing found, and how far was looked.

    Attributes
    ----------
    states : int
        States seen, the first included.
    depth : int
        Every state within so many transitions was seen.
    complete : bool
        No state lies further away: the answer holds without a bound.
    """

    states: int
    depth: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Survey(Generic[S]):
    """Every reachable state counted, and the first violation of each invariant.

    Attributes
    ----------
    states : int
        Distinct states. With ``weight`` the sum of the weights.
    visited : int
        States that were held in memory (fewer than ``states`` where symmetric ones are merged).
    depth : int
        Transitions to the furthest state.
    violations : mapping
        A bit of ``broken`` to a shortest path into a state that has it; only bits that were seen.
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
    enough: Callable[[], bool] | None = None,
    canonical: Callable[[S], S] | None = None,
) -> Found[S] | Exhausted:
    """Look for the shortest way into a state that must not be.

    Parameters
    ----------
    initial : hashable
    successors : callable
        Lists the states that can follow a state; the order decides which of several shortest
        paths is returned, so that equal calls give equal answers.
    violates : callable
        True for a state that must not be. It must not distinguish states that ``canonical`` merges.
    max_depth, max_states : int, optional
        Stop after so many transitions, or once so many states have been seen.
    enough : callable, optional
        Asked after each transition; True stops the search, as a bound does.
    canonical : callable, optional
        The representative of a state's symmetry class.

    Returns
    -------
    Found or Exhausted
        ``Exhausted`` says how far the search came and whether anything was left.
    """
    walk = _Walk(initial, successors, canonical)
    with _without_collector():
        for _ in walk.levels(max_depth, max_states, stop=violates, enough=enough):
            pass
    if walk.stopped_at is not None:
        return Found(walk.path_to(walk.stopped_at[0]), len(walk.parents))
    return Exhausted(len(walk.parents), walk.depth, walk.complete)


def survey(
    initial: S,
    successors: Callable[[S], Iterable[S]],
    *,
    broken: Callable[[S], int],
    canonical: Callable[[S], S] | None = None,
    weight: Callable[[S], int] | None = None,
) -> Survey[S]:
    """See every reachable state, going on through states that break an invariant.

    Parameters
    ----------
    initial, successors, canonical
        As for `explore`. The state space must be finite.
    broken : callable
        The invariants that a state breaks, a bit each; 0 where all is well.
    weight : callable, optional
        How many distinct states a representative stands for; 1 for each when left out.
    """
    walk = _Walk(initial, successors, canonical)
    first: dict[int, S] = {}
    known = states = 0
    with _without_collector():
        for level in walk.levels(None, None, stop=None):
            states += len(level) if weight is None else sum(map(weight, level))
            for state in level:
                fresh = broken(state) & ~known
                while fresh:
                    bit = fresh & -fresh
                    first[bit] = state
                    known |= bit
                    fresh ^= bit
    violations = {bit: walk.path_to(state) for bit, state in sorted(first.items())}
    return Survey(states, len(walk.parents), walk.depth, violations)


def retrace(
    path: tuple[S, ...],
    moves: Callable[[S], Iterable[tuple[A, S]]],
    canonical: Callable[[S], S],
) -> tuple[tuple[A, S], ...]:
    """Name the moves along a path of representatives, with states that truly follow each other.

    Parameters
    ----------
    path : tuple
        As found by `explore` or `survey`; its first state is taken as it is.
    moves : callable
        Lists (label, next state) for a state: the same relation that was searched.
    canonical : callable
        The representative of a state, as in ``path``.

    Raises
    ------
    ValueError
        Where no move leads from one class to the next: ``moves`` is another relation.
    """
    state = path[0]
    told = []
    for target in path[1:]:
        following = ((label, after) for label, after in moves(state) if canonical(after) == target)
        step = next(following, None)
        if step is None:
            raise ValueError(f"no move leads from {state!r} to the class of {target!r}")
        told.append(step)
        state = step[1]
    return tuple(told)


@contextmanager
def _without_collector() -> Iterator[None]:
    """No search for cycles meanwhile: states hold none, and it would go over all of them again."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Walk(Generic[S]):
    """One search: the states seen, each with the state it was first reached from."""

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
        enough: Callable[[], bool] | None = None,
    ) -> Iterable[list[S]]:
        """Yield the states at distance 0, 1, 2, ...; end at a bound, at ``stop`` or at the end."""
        level = [self._start]
        if stop is not None and stop(self._start):
            self.stopped_at = (self._start,)
            return
        yield level
        while max_depth is None or self.depth < max_depth:
            further = self._next_level(level, max_states, stop, enough)
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
        enough: Callable[[], bool] | None,
    ) -> list[S] | None:
        """The states first reached from this level; None when the search ends within it."""
        parents, successors, canonical = self.parents, self._successors, self._canonical
        further: list[S] = []
        for state in level:
            following = successors(state)
            if canonical is not None:
                following = map(canonical, following)
            for after in following:
                if enough is not None and enough():
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
