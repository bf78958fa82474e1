"""Replica assignment against tables recorded from Kafka."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from advisor.errors import InputError
from advisor.protocol.jvm import JavaRandom
from advisor.protocol.rules.assignment import assign, rack_alternated_brokers

FACTS = Path(__file__).resolve().parents[2] / "facts"


def facts(name: str) -> dict[str, Any]:
    return json.loads((FACTS / name).read_text(encoding="utf-8"))


class MockRandom(JavaRandom):
    """The generator of Kafka's own unit tests (MockRandom.java), with 64-bit state."""

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
    """Each error of the KRaft controller has its own words and comes in its order."""
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


def test_a_given_shift_is_used_and_the_default_is_the_start_index():
    """A shift moves only the followers; by default it is the start index, as in Kafka."""
    five = dict.fromkeys(range(5))

    def first_row(**options: Any) -> list[int]:
        return assign(five, 1, 3, algorithm="rack_alternated", **options)[0]

    assert first_row(start_index=2, shift=0) == [2, 3, 4]
    assert first_row(start_index=2, shift=1) == [2, 4, 0]
    assert first_row(start_index=2) == first_row(start_index=2, shift=2) == [2, 0, 1]


@pytest.mark.parametrize("partitions", range(1, 12))
@pytest.mark.parametrize("added", range(1, 6))
def test_added_partitions_continue_the_table_within_its_round(partitions: int, added: int):
    """Adding partitions equals a larger topic, except for the shifts of completed rounds."""
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
    """The rack-aware algorithm rejects a broker without a rack among brokers with racks."""
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


def test_modulo_continues_the_numbering_of_added_partitions():
    """start_partition continues the table that a larger topic would have."""
    three = dict.fromkeys(range(3))
    whole = assign(three, 5, 2, algorithm="modulo")
    assert assign(three, 2, 2, algorithm="modulo", start_partition=3) == {3: whole[3], 4: whole[4]}
