"""Copysets, scatter widths, and losses when several brokers are lost at once."""

import random
from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.errors import InputError
from advisor.reliability.common_cause import copysets as module
from advisor.reliability.common_cause.copysets import (
    chance_all_lost,
    copysets,
    pairs_by_union,
)
from published import chance_any_lost

BROKERS = 9
PLACEMENTS = st.lists(
    st.sets(st.integers(1, BROKERS), min_size=1, max_size=4), min_size=1, max_size=30
)


def fatal_share(placements: list[set[int]], lost: int) -> float:
    """Share of all sets of lost brokers that hold a whole placement."""
    every = list(combinations(range(1, BROKERS + 1), lost))
    return sum(any(p <= set(gone) for p in placements) for gone in every) / len(every)


def test_copysets_ignore_replica_order() -> None:
    """Three partitions on the same brokers are one copyset, with any leader."""
    found = copysets([(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 4, 5)], brokers=6)
    assert found.sets == {frozenset({1, 2, 3}), frozenset({1, 4, 5})}


def test_the_scatter_width_counts_the_others() -> None:
    """Broker 1 shares partitions with four others, the rest with two; broker 6 holds nothing."""
    found = copysets([(1, 2, 3), (1, 4, 5)], brokers=6)
    assert found.scatter_width == {1: 4, 2: 2, 3: 2, 4: 2, 5: 2}
    assert found.mean_scatter_width == 12 / 5
    assert copysets([], brokers=3).mean_scatter_width == 0.0


@settings(max_examples=60)
@given(PLACEMENTS, st.integers(0, BROKERS))
def test_the_chance_is_that_of_all_cases(placements: list[set[int]], lost: int) -> None:
    """The probability of a loss is the share of all sets of lost brokers that lose a partition."""
    found = copysets(placements, BROKERS).chance_of_loss(lost)
    assert found.exact
    assert found.value == pytest.approx(fatal_share(placements, lost), rel=1e-12)


@settings(max_examples=60)
@given(PLACEMENTS, st.integers(1, BROKERS))
def test_the_bounds_hold_the_chance(placements: list[set[int]], lost: int) -> None:
    """Without enumeration, both the true probability and the estimate are within the bounds."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_MOST_ENUMERATED", -1)
        found = copysets(placements, BROKERS).chance_of_loss(lost)
    assert found.low <= found.value <= found.high
    truth = fatal_share(placements, lost)
    # Sums of at most 30 terms and 435 pairs: rounding stays far below this.
    assert found.low - 1e-12 <= truth <= found.high + 1e-12


def test_the_lower_bound_is_at_most_one(monkeypatch) -> None:
    """Rounding once took it above 1, with single-broker copysets and nearly all brokers lost."""
    monkeypatch.setattr(module, "_MOST_ENUMERATED", -1)
    found = copysets([{1}, {2}, {3}, {4}, {5}], BROKERS).chance_of_loss(8)
    assert found.low <= found.value <= found.high <= 1.0


@pytest.mark.parametrize("largest", [2**62, 20])
@given(placements=PLACEMENTS)
def test_pairs_are_counted_by_their_union(largest: int, placements: list[set[int]]) -> None:
    """Counting by shared subsets agrees with comparing every pair, also where brokers are many."""
    sets = {frozenset(placement) for placement in placements}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "_LARGEST_CODE", largest)
        found = pairs_by_union(sets)
    assert found == Counter(len(one | other) for one, other in combinations(sets, 2))


def test_many_large_copysets_are_told_apart() -> None:
    """Brokers to the power of the replicas exceed 64 bits; the counts are those of every pair."""
    rng = random.Random(4)
    sets = {frozenset(range(start, start + 8)) for start in range(0, 2048, 8)}
    for _ in range(200):
        # As digits to the base 2048, the two differ beyond the 64th bit alone.
        same = rng.sample(range(100, 2048), 7)
        sets |= {frozenset([first, *same]) for first in rng.sample(range(100), 2)}
    assert pairs_by_union(sets) == Counter(len(one | two) for one, two in combinations(sets, 2))


@given(PLACEMENTS)
def test_scatter_and_smallest_copysets_are_those_of_every_pair(placements: list[set[int]]) -> None:
    """Brokers that share a set, and sets that contain no other, found by comparing each."""
    found = copysets(placements, BROKERS)
    for broker in range(1, BROKERS + 1):
        holding = [members for members in found.sets if broker in members]
        others = {other for members in holding for other in members} - {broker}
        assert found.scatter_width.get(broker) == (len(others) if holding else None)
    smallest = [one for one in found.sets if not any(other < one for other in found.sets)]
    assert sorted(map(sorted, found._smallest)) == sorted(map(sorted, smallest))


def test_large_copysets_get_first_order_bounds() -> None:
    """Eleven replicas have too many subsets to count pairs: likeliest copyset and union bound."""
    rng = random.Random(3)
    found = copysets([rng.sample(range(40), 11) for _ in range(50)], 40).chance_of_loss(20)
    each = chance_all_lost(11, 40, 20)
    assert (found.low, found.high) == pytest.approx((each, 50 * each))


def test_random_placement_meets_random_failures() -> None:
    """The copyset formula against 20,000 draws of 12 of 120 brokers."""
    rng = random.Random(11)
    sets = copysets([rng.sample(range(120), 3) for _ in range(600)], 120)
    by_broker = [[s for s in sets.sets if min(s) == broker] for broker in range(120)]
    draws, hit = 20_000, 0
    for _ in range(draws):
        gone = set(rng.sample(range(120), 12))
        hit += any(s <= gone for broker in gone for s in by_broker[broker])
    expected = chance_any_lost(len(sets.sets), 3, 120, 12)
    # Four standard errors, and the pairs that share two brokers, which are lost together more often
    # than the formula says.
    error = 4 * (expected * (1 - expected) / draws) ** 0.5
    shared = pairs_by_union(sets.sets)[4] * chance_all_lost(4, 120, 12)
    assert abs(hit / draws - expected) < error + shared
    found = sets.chance_of_loss(12)
    assert not found.exact
    assert found.low - error <= hit / draws <= found.high + error


@pytest.mark.parametrize("lost", [-1, 4, 1.5, True])
def test_impossible_numbers_of_lost_brokers_are_refused(lost: object) -> None:
    """Negative, too many, fractional or boolean: the error names the argument."""
    with pytest.raises(InputError, match="lost="):
        copysets([(1, 2)], brokers=3).chance_of_loss(lost)


def test_impossible_placements_have_no_copysets() -> None:
    """More brokers than there are, or a partition without replicas, is refused."""
    with pytest.raises(InputError, match="name 3 brokers"):
        copysets([(1, 2, 3)], brokers=2)
    with pytest.raises(InputError, match="without replicas"):
        copysets([()], brokers=2)
