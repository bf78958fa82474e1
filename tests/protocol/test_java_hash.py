"""Java's string hashes, string order and ``HashMap`` order against recorded ones."""

import json
from itertools import product
from pathlib import Path

import pytest

from advisor.errors import InputError
from advisor.protocol.jvm import (
    hash_map_order,
    optional_string_hash,
    string_hash,
    utf16_units,
)

RECORDED = json.loads(
    (Path(__file__).resolve().parents[1] / "facts" / "java_random.json").read_text(encoding="utf-8")
)


def test_strings_hash_and_sort_as_in_java():
    """Hash and order use UTF-16 code units, so an emoji sorts before U+E000."""
    for text, expected in RECORDED["hash"]:
        assert string_hash(text) == expected, text
    assert sorted(RECORDED["sorted"], key=utf16_units) == RECORDED["sorted"]
    assert sorted(RECORDED["sorted"]) != RECORDED["sorted"], "Python's order would do"


def test_hash_map_order_is_that_of_java():
    """The order holds through every resize of the table, overfull buckets included."""
    recorded = RECORDED["order"]
    assert max(len(names.split()) for names, _ in recorded) == 200
    for names, expected in recorded:
        assert hash_map_order(map(optional_string_hash, names.split())) == expected, names


def test_no_rack_hashes_to_zero():
    """Optional.empty and the empty string share bucket 0 in order of insertion."""
    assert hash_map_order([optional_string_hash("b"), optional_string_hash("")]) == [1, 0]
    assert hash_map_order([optional_string_hash(""), optional_string_hash(None)]) == [0, 1]


def test_a_bucket_that_java_turns_into_a_tree_is_refused():
    """Eleven rack names of one hash form a tree ordered by object addresses: not reproducible."""
    names = ["".join(pairs) for pairs in product(["Aa", "BB"], repeat=4)][:11]
    assert len({string_hash(name) for name in names}) == 1
    assert hash_map_order(map(string_hash, names[:10])) == list(range(10))
    with pytest.raises(InputError, match="cannot be repeated"):
        hash_map_order(map(string_hash, names))
