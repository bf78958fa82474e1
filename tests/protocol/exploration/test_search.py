"""Breadth-first search: shortest paths, reported bounds, symmetry reduction."""

from __future__ import annotations

import math
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.protocol.exploration.search import Exhausted, Violation, explore, retrace, survey

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
        assert outcome.depth == wanted[target]
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
    assert explore(7, lambda _: [], violates=lambda state: state == 7) == Violation((7,), 1)


def test_depth_bound_says_how_far_it_looked():
    """With max_depth the search goes exactly that deep and is not reported as complete."""

    def count(state):
        return [state + 1]

    assert explore(0, count, violates=lambda s: s == 6, max_depth=5) == Exhausted(6, 5, False)
    assert explore(0, count, violates=lambda s: s == 5, max_depth=5) == Violation(
        (0, 1, 2, 3, 4, 5), 6
    )
    assert explore(0, lambda _: [0], violates=lambda _: False, max_depth=5).complete


def test_state_bound_reports_only_full_levels():
    """With max_states the depth reported is that of the last complete level."""

    def binary(state):
        return [2 * state, 2 * state + 1]

    for bound, depth in [(1, 0), (2, 0), (3, 1), (6, 1), (7, 2), (8, 2)]:
        outcome = explore(1, binary, violates=lambda _: False, max_states=bound)
        assert outcome == Exhausted(bound, depth, False)


def test_two_equal_searches_give_the_same_path():
    """Of several shortest paths the first in the order of successors is returned."""
    outcome = explore("", lambda s: [s + "b", s + "a"], violates=lambda s: sorted(s) == ["a", "b"])
    assert outcome.path == ("", "b", "ba")


def hop(places):
    """Three tokens on a row of four places; any may move to a free neighbouring place."""
    for token, place in enumerate(places):
        for after in (place - 1, place + 1):
            if 0 <= after < 4 and after not in places:
                label = f"{token} from {place} to {after}"
                yield label, (*places[:token], after, *places[token + 1 :])


def jump(places):
    """As hop, but also over other tokens, so every order is reachable."""
    for token in range(len(places)):
        for after in range(4):
            if after not in places:
                yield f"{token} to {after}", (*places[:token], after, *places[token + 1 :])


@pytest.mark.parametrize("moves", [hop, jump])
def test_symmetry_changes_no_count(moves):
    """Exchangeable tokens: representatives weighted by class size count all states."""

    def successors(places):
        return [after for _, after in moves(places)]

    def canonical(places):
        return min(permutations(places))

    starts = list(permutations((0, 1, 2)))
    plain = explore((), lambda s: starts if s == () else successors(s), violates=lambda _: False)
    merged = survey(
        (0, 1, 2),
        successors,
        broken=lambda _: 0,
        canonical=canonical,
        weight=lambda places: len(set(permutations(places))),
    )
    assert merged.states == plain.states - 1
    assert merged.visited * 6 == merged.states


def test_survey_finds_the_first_break_of_each_invariant():
    """A survey continues past violations and keeps a shortest path for each invariant."""

    def broken(state):
        return (state >= 3) | (state == 4) << 1 | (state == 99) << 2

    seen = survey(0, lambda s: [s + 1, s + 2] if s < 6 else [], broken=broken)
    assert {bit: len(path) - 1 for bit, path in seen.violations.items()} == {1: 2, 2: 2}
    assert (seen.states, seen.visited, seen.depth) == (8, 8, 4)


def test_retrace_names_real_moves():
    """A path of representatives becomes transitions between actual states."""

    def canonical(places):
        return tuple(sorted(places))

    outcome = explore(
        (2, 0, 1),
        lambda places: [after for _, after in jump(places)],
        violates=lambda places: sorted(places) == [1, 2, 3],
        canonical=canonical,
    )
    steps = retrace(outcome.path, jump, canonical)
    state = (2, 0, 1)
    for label, after in steps:
        assert (label, after) in list(jump(state))
        state = after
    assert sorted(state) == [1, 2, 3]


def test_retrace_refuses_another_relation():
    """A path that the given transitions do not allow is an error."""
    with pytest.raises(ValueError, match="no move leads from 0 to the class of 2"):
        retrace((0, 2), lambda s: [("one", s + 1)], lambda s: s)
