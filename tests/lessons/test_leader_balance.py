"""Who leads, and who takes over from a dead broker."""

import pytest

from advisor.lessons.leader_balance import leaders_by_broker
from advisor.protocol.rules.assignment import Algorithm, assign


@pytest.mark.parametrize("algorithm", ["modulo", "rack_alternated", "striped"])
def test_leaders_are_balanced_and_all_found_new_ones(algorithm: Algorithm) -> None:
    """Sixty partitions on six brokers: ten leaders each, and after a death five lead all sixty."""
    assignment = assign(dict.fromkeys(range(6)), 60, 3, algorithm=algorithm)
    assert set(leaders_by_broker(assignment).values()) == {10}
    after = leaders_by_broker(assignment, [0])
    assert (after[0], sum(after.values())) == (0, 60)


def test_the_textbook_formula_leaves_all_to_the_neighbour() -> None:
    """With (i + j) mod n broker 1 takes everything; Kafka's shift gives each of five the same."""
    brokers = dict.fromkeys(range(6))
    textbook = assign(brokers, 60, 3, algorithm="modulo")
    kafka = assign(brokers, 60, 3, algorithm="rack_alternated")
    assert leaders_by_broker(textbook, [0]) == {0: 0, 1: 20, 2: 10, 3: 10, 4: 10, 5: 10}
    assert leaders_by_broker(kafka, [0]) == {0: 0, 1: 12, 2: 12, 3: 12, 4: 12, 5: 12}


def test_a_partition_without_live_replicas_has_no_leader() -> None:
    """It is counted for none of the brokers."""
    assert leaders_by_broker({0: [1, 2], 1: [3, 1]}, [1, 2]) == {1: 0, 2: 0, 3: 1}
