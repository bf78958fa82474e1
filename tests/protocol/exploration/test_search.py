"""Breadth-first search: shortest paths, reported bounds, weighted counts."""

from __future__ import annotations

import itertools
import math
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from advisor.protocol.exploration.search import Exhausted, Violation, explore, survey

PAIRS = [(a, b) for a, b in product(range(3), repeat=2) if a != b]


def distances(edges, nodes):
    """Distances from node 0 by Floyd-Warshall, as an independent check."""
    far = math.inf
    reach = {(a, b): 0 if a == b else far for a, b in product(range(nodes), repeat=2)}
    reach.update({edge: 1 for edge in edges if edge[0] != edge[1]})
    for through, a, b in product(range(nodes), repeat=3):
        reach[a, b] = min(reach[a, b], reach[a, through] + reach[through, b])
    return [reach[0, node] for node in range(nodes)]


def follow(edges):
    return lambda node: [b for a, b in edges if a == node]


def assert_search_agrees(edges, nodes, target):
    wanted = distances(edges, nodes)
    outcome = explore(0, follow(edges), violates=lambda node: node == target)
    if math.isinf(wanted[target]):
        reached = [distance for distance in wanted if not math.isinf(distance)]
        assert outcome == Exhausted(len(reached), max(reached), complete=True)
    else:
        assert isinstance(outcome, Violation)
        assert len(outcome.path) - 1 == wanted[target]
        assert all(step in edges for step in zip(outcome.path, outcome.path[1:], strict=False))
        assert (outcome.path[0], outcome.path[-1]) == (0, target)


def test_every_graph_of_three_nodes():
    """In each of the 64 directed graphs on three nodes the path found is a shortest one."""
    for chosen in product([False, True], repeat=len(PAIRS)):
        edges = {pair for pair, taken in zip(PAIRS, chosen, strict=True) if taken}
        for target in range(3):
            assert_search_agrees(edges, 3, target)


@given(st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=24), st.integers(0, 7))
def test_random_graphs(edges, target):
    """The same for random graphs of eight nodes; an exhausted search visited all reachable ones."""
    assert_search_agrees(edges, 8, target)


def test_first_state_may_already_violate():
    """A violating initial state is a violation of depth 0."""
    assert explore(7, lambda _: [], violates=lambda state: state == 7) == Violation((7,))


def test_a_search_that_is_stopped_reports_only_full_levels():
    """The depth reported is that of the last complete level, and it is not complete."""

    def binary(state):
        return [2 * state, 2 * state + 1]

    for bound, depth in [(1, 0), (2, 0), (3, 1), (6, 1), (7, 2), (8, 2)]:
        calls = itertools.count(1)
        outcome = explore(
            1,
            binary,
            violates=lambda _: False,
            should_stop=lambda calls=calls, bound=bound: next(calls) >= bound,
        )
        assert outcome == Exhausted(bound, depth, False)


def test_two_equal_searches_give_the_same_path():
    """Of several shortest paths the first in the order of successors is returned."""
    outcome = explore("", lambda s: [s + "b", s + "a"], violates=lambda s: sorted(s) == ["a", "b"])
    assert outcome.path == ("", "b", "ba")


def test_survey_finds_the_first_break_of_each_invariant():
    """A survey continues past violations and keeps a shortest path for each invariant."""

    def broken(state):
        return (state >= 3) | (state == 4) << 1 | (state == 99) << 2

    seen = survey(0, lambda s: [s + 1, s + 2] if s < 6 else [], broken=broken, weight=lambda _: 10)
    assert {bit: len(path) - 1 for bit, path in seen.violations.items()} == {1: 2, 2: 2}
    assert (seen.states, seen.visited, seen.depth) == (80, 8, 4)
