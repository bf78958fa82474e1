"""Brokers destroyed together and replaced one by one: how often any set is exposed."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from advisor.reliability.common_cause.staggered_replacement import Destroyed, StaggeredReplacement


def destroyed(*rows: tuple[tuple[int, ...], ...]) -> Destroyed:
    """Rows of one event, each with the destroyed brokers of every part."""
    return Destroyed(np.zeros((len(rows), 1), dtype=np.int64), np.array(rows, dtype=np.int64))


def after_rack_destructions(*classes: Destroyed, sizes: tuple[float, ...] = (1.0,)) -> float:
    """Share of the sum over rows that all have the same rate."""
    share, _ = StaggeredReplacement(classes, 20).after_rack_destructions(
        np.ones(len(classes)), np.array(sizes)
    )
    return share


def harmonic(count: int, first: int = 1) -> float:
    """1/first + ... + 1/count."""
    return sum(1.0 / number for number in range(first, count + 1))


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_some_broker_of_a_rack_is_out_for_a_harmonic_number_of_replacements(count: int) -> None:
    """One destroyed rack and any of its brokers; then two racks and any pair of their brokers."""
    one = destroyed(*[((broker,),) for broker in range(count)])
    assert after_rack_destructions(one) == pytest.approx(harmonic(count) / count)
    pairs = destroyed(*[((a,), (b,)) for a, b in product(range(count), range(count, 2 * count))])
    assert after_rack_destructions(pairs) == pytest.approx((harmonic(count) / count) ** 2)


def test_two_brokers_of_a_rack_are_out_until_one_is_left() -> None:
    """Any two of five brokers that were destroyed together."""
    rows = destroyed(*[(pair,) for pair in combinations(range(5), 2)])
    assert after_rack_destructions(rows, sizes=(2.0,)) == pytest.approx(harmonic(5, 2) * 2.0 / 10.0)


def test_pairs_without_a_broker_in_common_are_nearly_independent() -> None:
    """Two pairs from two racks: 2 - 1/4 of 2, as each is out for 1, and both for 1/2 by 1/2."""
    share, error = StaggeredReplacement(
        [destroyed(((0,), (10,)), ((1,), (11,)))], 20
    ).after_rack_destructions(np.ones(1), np.ones(1))
    assert 0.0 < error < 0.02
    assert abs(share - 1.75 / 2.0) < 4.0 * error


def test_a_class_that_another_contains_adds_nothing() -> None:
    """Sets that need one of two destroyed brokers, and sets that need both."""
    either, both = destroyed(((0,),), ((1,),)), destroyed(((0, 1),))
    staggered_replacement = StaggeredReplacement([either, both], 20)
    # Each of two brokers is out for 1, both are for 1/2, either is for 3/2.
    share, _ = staggered_replacement.after_rack_destructions(
        np.array([1.0, 0.5]), np.array([1.0, 2.0])
    )
    assert share == pytest.approx(1.5 / 2.5)


def test_a_row_of_two_classes_counts_once() -> None:
    """The same brokers expose sets of two rack patterns."""
    row = destroyed(((0,),))
    assert after_rack_destructions(row, row, sizes=(1.0, 1.0)) == pytest.approx(1.0)


@pytest.mark.parametrize(("share", "expected"), [(1.0, 2.45 / 6.0), (1e-6, 1.0)])
def test_picked_brokers_are_out_like_those_of_a_rack_or_alone(
    share: float, expected: float
) -> None:
    """An event that picks all of six brokers, and one that hardly ever picks two."""
    rows = destroyed(*[((broker,),) for broker in range(6)])
    found, _ = StaggeredReplacement([rows], 6).after_random_destructions(
        np.ones(1), np.ones(1), share
    )
    assert found == pytest.approx(expected, rel=1e-5)
