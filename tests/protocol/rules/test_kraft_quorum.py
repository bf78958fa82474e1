"""KRaft quorum: majorities, zones, combined mode (KIP-595, KIP-853, Kafka's operations guide)."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import ConfigError
from advisor.protocol.rules.kraft_quorum import (
    even_spread,
    fatal_zones,
    majority,
    quorum_survives,
    spread,
    spread_table,
    tolerated,
)


def subsets(items):
    return [set(some) for size in range(len(items) + 1) for some in combinations(items, size)]


@pytest.mark.parametrize(
    ("voters", "lost"), [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2), (7, 3)]
)
def test_operations_guide_how_many_controllers_may_be_lost(voters, lost):
    """Three tolerate one failure, five two; an even number tolerates no more than one fewer."""
    assert tolerated(voters) == lost
    ids = range(voters)
    for failed in subsets(ids):
        assert quorum_survives(ids, failed) == (len(failed) <= lost)


def test_any_two_majorities_share_a_voter():
    """No two majorities are disjoint, and a smaller quorum does not have this property."""
    for voters in range(1, 8):
        least = majority(voters)
        assert 2 * least > voters
        assert 2 * (least - 1) <= voters


def test_brokers_that_are_not_voters_do_not_count():
    """Losing brokers 10 and 11 does not affect the quorum of 1, 2, 3."""
    assert quorum_survives([1, 2, 3], [10, 11, 1])
    assert not quorum_survives([1, 2, 3], [1, 2])


def test_two_zones_can_never_survive_the_loss_of_either():
    """Every split of one to nine voters over two zones loses its quorum with one of the zones."""
    for voters in range(1, 10):
        for first in range(voters + 1):
            assert spread([first, voters - first]).tolerates_zones == 0
            zone_of = {v: "a" if v < first else "b" for v in range(voters)}
            assert fatal_zones(zone_of)


def test_table_of_voters_over_zones():
    """Failures tolerated by 1, 3 and 5 controllers over 1, 2 and 3 zones."""
    rows = [(s.voters, s.zones, s.tolerates_voters, s.tolerates_zones) for s in spread_table()]
    assert rows == [
        (1, 1, 0, 0),
        (1, 1, 0, 0),
        (1, 1, 0, 0),
        (3, 1, 1, 0),
        (3, 2, 1, 0),
        (3, 3, 1, 1),
        (5, 1, 2, 0),
        (5, 2, 2, 0),
        (5, 3, 2, 1),
    ]
    assert even_spread(5, 3).per_zone == (2, 2, 1)


def test_an_even_spread_is_as_good_as_any():
    """No placement of up to seven voters over up to four zones tolerates more zone failures."""
    for voters, zones in product(range(1, 8), range(1, 5)):
        best = max(
            spread(counts).tolerates_zones
            for counts in product(range(voters + 1), repeat=zones)
            if sum(counts) == voters
        )
        assert even_spread(voters, zones).tolerates_zones == best


def test_which_zone_stops_the_quorum():
    """2, 2, 1 tolerates the loss of any zone but of no pair; 3, 1, 1 fails with the first zone."""
    even = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    assert fatal_zones(even) == ()
    assert fatal_zones(even, 2) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert fatal_zones({1: "a", 2: "a", 3: "a", 4: "b", 5: "c"}) == (("a",),)


@given(st.dictionaries(st.integers(0, 8), st.sampled_from("abcd"), min_size=1))
def test_fatal_zones_agree_with_the_count(zone_of):
    """Fatal sets of zones agree with the number of zones tolerated."""
    counts = [list(zone_of.values()).count(zone) for zone in "abcd"]
    survived = spread(counts).tolerates_zones
    for size in range(1, len(set(zone_of.values())) + 1):
        assert (fatal_zones(zone_of, size) == ()) == (size <= survived)


def test_no_voters_is_an_error():
    """A quorum without voters and a placement without zones are errors."""
    with pytest.raises(ConfigError, match="at least 1"):
        majority(0)
    with pytest.raises(ConfigError, match="zones=0"):
        even_spread(3, 0)
