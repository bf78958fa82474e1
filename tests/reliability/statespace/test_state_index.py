"""Numbers for what is met: in order, for good, however large the codes are."""

import numpy as np
import pytest

from advisor.reliability.statespace import state_index
from advisor.reliability.statespace.state_index import (
    Numbering,
    Pairs,
    met_in_order,
    place_values,
    spread,
)


@pytest.mark.parametrize("codes", [(), (8,)])
def test_numbers_are_given_in_the_order_of_asking_and_stay(codes):
    """The first code asked about is 0, and asking again changes nothing; of few codes, or any."""
    numbers = Numbering(*codes)
    first, new = numbers.of(np.array([7, 3, 7, 5]))
    assert first.tolist() == [0, 1, 0, 2]
    assert new.tolist() == [0, 1, 3]
    again, newer = numbers.of(np.array([5, 4, 7]))
    assert again.tolist() == [2, 3, 0]
    assert newer.tolist() == [1]
    assert numbers.of(np.array([0]))[0].tolist() == [4]


@pytest.mark.parametrize(("base", "digits"), [(36, 5), (2, 61), (2, 62), (108, 12)])
def test_codes_are_exact_however_long(base, digits):
    """Every digit comes back out of its code, beyond 64 bits too."""
    places = place_values(base, digits)
    rows = np.array([[base - 1] * digits, [1] + [0] * (digits - 1), [0] * (digits - 1) + [1]])
    codes = rows @ places
    assert [int(code) for code in codes] == [base**digits - 1, base ** (digits - 1), 1]
    assert (codes[:, None] // places % base).tolist() == rows.tolist()
    assert Numbering().of(codes)[0].tolist() == [0, 1, 2]


def test_rows_of_a_ragged_table():
    """Every owner gets its rows, wherever they begin, and one without rows none."""
    owner, row = spread(np.array([4, 0, 9]), np.array([2, 0, 3]))
    assert owner.tolist() == [0, 0, 2, 2, 2]
    assert row.tolist() == [4, 5, 9, 10, 11]


@pytest.mark.parametrize("largest_table", [0, 2**10, 2**22])
def test_pairs_are_numbered_like_their_codes(monkeypatch, largest_table):
    """However many rows and columns there are, and when the table is given up on the way."""
    monkeypatch.setattr(state_index, "_LARGEST_TABLE", largest_table)
    rng = np.random.default_rng(3)
    pairs, codes = Pairs(), Numbering()
    for most in (5, 20, 90, 400, 60):
        one, other = rng.integers(0, most, (2, 300))
        found, new = pairs.of(one, other)
        expected, newer = codes.of(one << 32 | other)
        assert found.tolist() == expected.tolist()
        assert new.tolist() == newer.tolist()


def test_numbers_in_the_order_in_which_they_are_met():
    """Each once, and where each of them went."""
    distinct, place = met_in_order(np.array([4, 2, 4, 0, 2]), 6)
    assert distinct.tolist() == [4, 2, 0]
    assert place.tolist() == [0, 1, 0, 2, 1]
    nothing, nowhere = met_in_order(np.zeros(0, dtype=np.int64), 0)
    assert (nothing.tolist(), nowhere.tolist()) == ([], [])
