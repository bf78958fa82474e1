"""Replica assignment against tables recorded from Kafka, and its promises on any cluster."""

import json
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import InputError
from advisor.protocol.jvm.java_hash import (
    hash_map_order,
    optional_string_hash,
    string_hash,
    utf16_units,
)
from advisor.protocol.jvm.java_random import JavaRandom, shuffle
from advisor.protocol.rules.assignment import assign, rack_alternated_brokers

FACTS = Path(__file__).resolve().parents[2] / "facts"


def facts(name: str) -> dict[str, Any]:
    return json.loads((FACTS / name).read_text(encoding="utf-8"))


class MockRandom(JavaRandom):
    """The generator of Kafka's own unit tests (server-common MockRandom.java), 64 bits of state."""

    def __init__(self) -> None:
        super().__init__(0)
        self._state = 17

    def next_bits(self, bits: int) -> int:
        self._state = (self._state * 2862933555777941757 + 3037000493) % 2**64
        return self._state >> (64 - bits)


def brokers_of(case: dict[str, Any]) -> dict[int, str | None]:
    return dict(case["brokers"])


def outcome(*args: Any, **options: Any) -> dict[int, list[int]] | str:
    try:
        return assign(*args, **options)
    except InputError as error:
        return str(error)


# --- Java's generator and hash table ---------------------------------------------------------


def test_bounded_draws_are_those_of_java():
    """Random.nextInt(bound) is reproduced for 63 pairs of seed and bound, edges included."""
    recorded = facts("java_random.json")["next_int"]
    assert len(recorded) == 63
    for seed, bound, expected in recorded:
        random = JavaRandom(seed)
        assert [random.next_int(bound) for _ in expected] == expected, (seed, bound)


def test_shuffles_are_those_of_java():
    """Collections.shuffle is reproduced for lists of 0, 1, 2, 5 and 12."""
    for seed, size, expected in facts("java_random.json")["shuffle"]:
        items = list(range(size))
        shuffle(items, JavaRandom(seed))
        assert items == expected, (seed, size)


@pytest.mark.parametrize("bound", [0, -1, 2**31])
def test_a_bound_that_java_cannot_take_is_refused(bound: int):
    """A bound outside 1 to 2^31 - 1 is an error, not an endless loop."""
    with pytest.raises(ValueError, match="bound must be from 1 to"):
        JavaRandom(0).next_int(bound)


def test_strings_hash_and_sort_as_in_java():
    """Hash and order go by UTF-16 code units, so an emoji sorts before U+E000."""
    recorded = facts("java_random.json")
    for text, expected in recorded["hash"]:
        assert string_hash(text) == expected, text
    assert sorted(recorded["sorted"], key=utf16_units) == recorded["sorted"]
    assert sorted(recorded["sorted"]) != recorded["sorted"], "Python's order would do"


def test_hash_map_order_is_that_of_java():
    """The order holds through every growth of the table, crowded buckets included."""
    recorded = facts("java_random.json")["order"]
    assert max(len(names.split()) for names, _ in recorded) == 200
    for names, expected in recorded:
        assert hash_map_order(map(optional_string_hash, names.split())) == expected, names


def test_no_rack_hashes_to_zero():
    """Optional.empty and the empty string share bucket 0 in order of insertion."""
    assert hash_map_order([optional_string_hash("b"), optional_string_hash("")]) == [1, 0]
    assert hash_map_order([optional_string_hash(""), optional_string_hash(None)]) == [0, 1]


def test_an_order_that_java_itself_does_not_repeat_is_refused():
    """Eleven rack names of one hash make Java build a tree ordered by object addresses."""
    names = ["".join(pairs) for pairs in product(["Aa", "BB"], repeat=4)][:11]
    assert len({string_hash(name) for name in names}) == 1
    assert hash_map_order(map(string_hash, names[:10])) == list(range(10))
    with pytest.raises(InputError, match="cannot be repeated"):
        hash_map_order(map(string_hash, names))


# --- striped ---------------------------------------------------------------------------------


def test_striped_is_kafkas_on_every_recorded_cluster():
    """300 placements recorded from StripedReplicaPlacer of 3.9.1 and 4.1.1 are reproduced."""
    cases = facts("striped_placements.json")["cases"]
    assert len(cases) == 300
    assert sum("message" in case for case in cases) == 15
    for case in cases:
        got = outcome(
            brokers_of(case),
            case["partitions"],
            case["replication_factor"],
            seed=case["seed"],
            fenced=case["fenced"],
        )
        expected = dict(enumerate(case["replicas"])) if "replicas" in case else case["message"]
        assert got == expected, case


@pytest.mark.parametrize(
    ("brokers", "fenced", "replication_factor", "expected"),
    [
        ([3, 1, 0, 4, 2], {1}, 4, "3402 4023 0234 2340 0432"),
        ([3, 1, 2], {1}, 3, "321 231 321 231"),
        ([0, 1], {1}, 1, "0 0 0"),
        ([0, 3, 2, 1], set(), 3, "230 301 012 123 102"),
    ],
)
def test_one_rack_is_placed_as_in_kafkas_own_tests(
    brokers: list[int], fenced: set[int], replication_factor: int, expected: str
):
    """The tables of StripedReplicaPlacerTest without racks come out with its MockRandom."""
    rows = [[int(digit) for digit in row] for row in expected.split()]
    mapping = dict.fromkeys(brokers)
    got = assign(mapping, len(rows), replication_factor, fenced=fenced, random=MockRandom())
    assert list(got.values()) == rows


@pytest.mark.parametrize(
    ("brokers", "fenced", "expected"),
    [
        (
            [11, 10, 30, 31, 21, 20],
            {20},
            [[11, 21, 31, 10], [21, 30, 10, 20], [31, 11, 21, 30]],
        ),
        (
            [11, 10, 30, 31, 20, 21, 41, 40],
            {30, 31, 20, 21, 40},
            [[41, 11, 21, 30], [10, 20, 31, 41], [41, 21, 30, 11]],
        ),
    ],
)
def test_racks_are_placed_as_in_kafkas_own_tests(
    brokers: list[int], fenced: set[int], expected: list[list[int]]
):
    """The tables of StripedReplicaPlacerTest with racks come out with its MockRandom."""
    mapping = {broker: str(broker // 10) for broker in brokers}
    assert list(assign(mapping, 3, 4, fenced=fenced, random=MockRandom()).values()) == expected


def test_two_hundred_partitions_are_spread_as_in_kafkas_own_test():
    """The counts of StripedReplicaPlacerTest.testEvenDistribution need the reshuffles right."""
    placed = assign(dict.fromkeys(range(4)), 200, 2, random=MockRandom())
    assert Counter(map(tuple, placed.values())) == {
        (0, 1): 14, (0, 2): 22, (0, 3): 14, (1, 0): 17, (1, 2): 17, (1, 3): 16,
        (2, 0): 13, (2, 1): 17, (2, 3): 20, (3, 0): 20, (3, 1): 19, (3, 2): 11,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("brokers", "partitions", "replication_factor", "fenced", "words"),
    [
        (2, 1, 0, (), "Invalid replication factor 0: the replication factor must be positive."),
        (2, 1, -1, (), "Invalid replication factor -1: the replication factor must be positive."),
        (2, 0, 1, (), "Number of partitions was set to an invalid non-positive value."),
        (2, 1, 3, (0, 1), "All brokers are currently fenced."),
        (0, 1, 1, (), "All brokers are currently fenced."),
        (
            2,
            1,
            3,
            (),
            "The target replication factor of 3 cannot be reached because only "
            "2 broker(s) are registered.",
        ),
    ],
)
def test_striped_refuses_in_kafkas_words(
    brokers: int, partitions: int, replication_factor: int, fenced: tuple[int, ...], words: str
):
    """Each refusal of the KRaft controller comes in its own words and in its order."""
    mapping = dict.fromkeys(range(brokers))
    assert outcome(mapping, partitions, replication_factor, fenced=fenced) == words


# --- rack_alternated -------------------------------------------------------------------------


def test_rack_alternated_is_kafkas_on_every_recorded_cluster():
    """250 tables recorded from AdminUtils are reproduced, random starts and refusals included."""
    cases = facts("rack_alternated_placements.json")["cases"]
    assert len(cases) == 250
    assert sum("message" in case for case in cases) == 15
    for case in cases:
        got = outcome(
            brokers_of(case),
            case["partitions"],
            case["replication_factor"],
            algorithm="rack_alternated",
            start_index=case["start_index"],
            start_partition=case["start_partition"],
            seed=case.get("seed"),
        )
        if "replicas" in case:
            assert got == dict(enumerate(case["replicas"], case["first"])), case
        else:
            assert got == case["message"], case


def test_racks_alternate_as_in_kafkas_own_test():
    """AdminRackAwareTest: the alternated list, and partition 6 with its followers shifted."""
    racks: dict[int, str | None] = dict(
        enumerate(["rack1", "rack3", "rack3", "rack2", "rack2", "rack1"])
    )
    assert rack_alternated_brokers(racks) == [0, 3, 1, 5, 4, 2]
    placed = assign(racks, 7, 3, algorithm="rack_alternated")
    rows = ["031", "315", "154", "542", "420", "203", "042"]
    assert placed == {p: [int(digit) for digit in row] for p, row in enumerate(rows)}
    del racks[5]
    assert rack_alternated_brokers(racks) == [0, 3, 1, 4, 2]


def test_without_racks_followers_shift_after_each_round():
    """AdminRackAwareTest.testReplicaAssignment: ten partitions on five brokers."""
    placed = assign(dict.fromkeys(range(5)), 10, 3, algorithm="rack_alternated", start_partition=-1)
    rows = ["012", "123", "234", "340", "401", "023", "134", "240", "301", "412"]
    assert placed == {p: [int(digit) for digit in row] for p, row in enumerate(rows)}


def test_a_given_shift_is_taken_and_one_left_out_equals_the_start():
    """A shift moves only the followers; left out it is the start index, as in Kafka."""
    five = dict.fromkeys(range(5))

    def first_row(**options: Any) -> list[int]:
        return assign(five, 1, 3, algorithm="rack_alternated", **options)[0]

    assert first_row(start_index=2, shift=0) == [2, 3, 4]
    assert first_row(start_index=2, shift=1) == [2, 4, 0]
    assert first_row(start_index=2) == first_row(start_index=2, shift=2) == [2, 0, 1]


@pytest.mark.parametrize("partitions", range(1, 12))
@pytest.mark.parametrize("added", range(1, 6))
def test_added_partitions_continue_a_table_within_its_round(partitions: int, added: int):
    """Adding partitions equals a larger topic, but for the shifts of rounds already complete."""
    racks: dict[int, str | None] = dict(enumerate("abcabc"))
    whole = assign(racks, partitions + added, 3, algorithm="rack_alternated", start_index=1)
    rounds = (partitions - 1) // len(racks)
    tail = assign(
        racks,
        added,
        3,
        algorithm="rack_alternated",
        start_index=1,
        shift=1 + rounds,
        start_partition=partitions,
    )
    assert tail == {p: whole[p] for p in range(partitions, partitions + added)}


def test_racks_known_for_some_brokers_only_are_refused_in_kafkas_words():
    """A broker without a rack among brokers with one stops the rack-aware algorithm."""
    assert outcome({0: "a", 1: None}, 1, 1, algorithm="rack_alternated") == (
        "Not all brokers have rack information for replica rack aware assignment."
    )


# --- modulo ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", range(1, 6))
@pytest.mark.parametrize("partitions", range(1, 12))
def test_modulo_is_the_textbooks_rule(size: int, partitions: int):
    """Replica j of partition i is on sorted broker (i + j) mod n, in every small cluster."""
    brokers = dict.fromkeys(range(10 * size, 0, -10))
    for replication_factor in range(1, size + 1):
        placed = assign(brokers, partitions, replication_factor, algorithm="modulo")
        assert placed == {
            i: [10 * ((i + j) % size + 1) for j in range(replication_factor)]
            for i in range(partitions)
        }


def test_modulo_numbers_added_partitions_on():
    """start_partition goes on with the table that a larger topic would have."""
    three = dict.fromkeys(range(3))
    whole = assign(three, 5, 2, algorithm="modulo")
    assert assign(three, 2, 2, algorithm="modulo", start_partition=3) == {3: whole[3], 4: whole[4]}
